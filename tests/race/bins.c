/* bins.c - many threads in one lane: they lease from the same bins and give back to them, and nobody gets a cell that
 * another one has. Magazines are kept tiny, so that nearly every call takes a bin's lock; the large classes make and
 * destroy runs all the time. */
#include "race.h"

enum { THREADS = 6, HELD = 40 };

static const size_t sizes[] = {16, 64, 1024, 12000, 32768};
static size_t turns;

struct held {
    uint64_t *p;
    uint64_t mark;
};

static void drop(struct held *h) {
    EXPECT(*h->p == h->mark);
    *h->p = 0;
    release(h->p);
    h->p = NULL;
}

static void *run(void *number) {
    struct held held[HELD] = {{NULL, 0}};
    uint64_t random = (uintptr_t)number + 1;
    race_wait();
    for (size_t i = 0; i < turns; i++) {
        struct held *h = &held[random_below(&random, HELD)];
        if (h->p != NULL) {
            drop(h);
            continue;
        }
        h->p = allocate(sizes[random_below(&random, sizeof sizes / sizeof sizes[0])]);
        EXPECT(h->p != NULL);
        h->mark = i << 8 | (uintptr_t)number;
        *h->p = h->mark;
        if (random_below(&random, 500) == 0) heap_flush(heap_of_thread());
    }
    for (size_t i = 0; i < HELD; i++)
        if (held[i].p != NULL) drop(&held[i]);
    allocator_thread_ends();
    return NULL;
}

int main(int argc, char **argv) {
    allocator_start();
    options.lanes = 1;
    options.cache_kib = 0;
    turns = race_amount(argc, argv, 1000000);
    race_run(THREADS, run);
    race_finish();
    return 0;
}
