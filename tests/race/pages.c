/* pages.c - a thread gives back free pages of runs, again and again, while others allocate, free, free for each other and
 * end. What is in a live block stays, no block is handed out twice, and none is lost. */
#include "race.h"
#include "thread/reclaim.h"

enum { THREADS = 3, SLOTS = 1024, WORDS_MAX = 300 };

struct block {
    size_t words;
    uint64_t word[];
};

static struct block *slots[SLOTS];
static size_t rounds;
static unsigned working = THREADS;

static struct block *take(size_t words) {
    struct block *b = allocate(sizeof *b + words * sizeof b->word[0]);
    EXPECT(b != NULL);
    b->words = words;
    for (size_t i = 0; i < words; i++) b->word[i] = (uint64_t)(uintptr_t)b + i;
    return b;
}

static void drop(struct block *b) {
    if (b == NULL) return;
    EXPECT(b->words <= WORDS_MAX);
    for (size_t i = 0; i < b->words; i++) EXPECT(b->word[i] == (uint64_t)(uintptr_t)b + i);
    b->words = SIZE_MAX;
    release(b);
}

static void exchange(size_t slot, struct block *b) {
    drop(__atomic_exchange_n(&slots[slot], b, __ATOMIC_ACQ_REL));
}

/* Whole stretches of blocks become free, so that there are free pages beside live ones. */
static void work(uint64_t *random) {
    size_t from = random_below(random, SLOTS), n = random_below(random, 200), words = random_below(random, WORDS_MAX);
    bool is_freeing = random_below(random, 2) == 0;
    for (size_t i = 0; i < n; i++)
        exchange((from + i) % SLOTS, is_freeing ? NULL : take(i % 8 == 0 ? random_below(random, WORDS_MAX) : words));
    if (random_below(random, 8) == 0) heap_flush(heap_of_thread());
}

static void *run(void *number) {
    uint64_t random = (uintptr_t)number + 1;
    race_wait();
    if ((uintptr_t)number == THREADS) {
        for (size_t i = 0; acquire_load(&working) != 0; i++) reclaim_pages(i % 4 != 0);
    } else {
        for (size_t i = 0; i < rounds; i++) work(&random);
        __atomic_sub_fetch(&working, 1, __ATOMIC_RELEASE);
    }
    allocator_thread_ends();
    return NULL;
}

int main(int argc, char **argv) {
    allocator_start();
    options.lanes = 2;
    rounds = race_amount(argc, argv, 8000);
    race_run(THREADS + 1, run);
    size_t purged = os_memory_counters().purged_bytes;
    printf("%zu bytes were given back\n", purged);
    EXPECT(purged != 0);
    for (size_t i = 0; i < SLOTS; i++) exchange(i, NULL);
    race_finish();
    return 0;
}
