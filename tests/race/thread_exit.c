/* thread_exit.c - threads end while others free their blocks, and while messages are on the way to their lanes. Every
 * block is freed exactly once by somebody; at the end nothing is left, wherever it was freed. Some calls come after the
 * end. */
#include "race.h"

enum { SLOTS = 512, LIVES_AT_ONCE = 4 };

static uint64_t *slots[SLOTS];
static size_t lives;

static void drop(uint64_t *p) {
    if (p == NULL) return;
    EXPECT(*p == (uint64_t)(uintptr_t)p);
    *p = 0;
    release(p);
}

static void *live_briefly(void *argument) {
    uint64_t random = (uintptr_t)argument + 1;
    for (int i = 0; i < 300; i++) {
        uint64_t *p = allocate(16 + random_below(&random, 300) * (i % 16 == 0 ? 150 : 1));
        EXPECT(p != NULL);
        *p = (uint64_t)(uintptr_t)p;
        drop(__atomic_exchange_n(&slots[random_below(&random, SLOTS)], p, __ATOMIC_ACQ_REL));
    }
    allocator_thread_ends();
    /* What another library's destructor could still do. */
    uint64_t *late = allocate(40);
    EXPECT(late != NULL);
    *late = (uint64_t)(uintptr_t)late;
    drop(__atomic_exchange_n(&slots[random_below(&random, SLOTS)], late, __ATOMIC_ACQ_REL));
    return NULL;
}

static void *keep_starting(void *number) {
    race_wait();
    for (size_t i = 0; i < lives; i++) {
        pthread_t id;
        EXPECT(pthread_create(&id, NULL, live_briefly, (void *)((uintptr_t)number << 32 | i)) == 0);
        EXPECT(pthread_join(id, NULL) == 0);
    }
    return NULL;
}

int main(int argc, char **argv) {
    allocator_start();
    options.lanes = 3;
    lives = race_amount(argc, argv, 500);
    race_run(LIVES_AT_ONCE, keep_starting);
    struct huddle_stats s = statistics();
    EXPECT(s.heaps <= 2); /* this thread's, and the one for late calls */
    for (size_t i = 0; i < SLOTS; i++) drop(slots[i]);
    trim();
    stats_check_all();
    s = statistics();
    EXPECT(s.live_blocks == 0 && s.live_bytes == 0);
    return 0;
}
