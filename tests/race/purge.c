/* purge.c - memory is given back beside allocation: units that are being purged belong to nobody meanwhile, or what was
 * just allocated there would lose its contents. Memory that is said to be zero must be so. */
#include "race.h"

#include "span/large.h"

enum { WORKERS = 3, HELD = 24 };

static size_t turns;
static uint32_t workers_left = WORKERS; /* atomic */

struct held {
    uint64_t *p;
    size_t words;
    uint64_t mark;
};

/* Marks at both ends, and twice a page: a purged unit shows. */
static void mark(struct held *h) {
    for (size_t i = 0; i < h->words; i += 256) h->p[i] = h->mark + i;
    h->p[h->words - 1] = h->mark;
}

static void drop(struct held *h) {
    EXPECT(h->p[h->words - 1] == h->mark);
    h->p[h->words - 1] = h->mark + h->words - 1;
    for (size_t i = 0; i < h->words; i += 256) EXPECT(h->p[i] == h->mark + i);
    release(h->p);
    h->p = NULL;
}

static void take(struct held *h, size_t bytes, uint64_t with) {
    h->words = bytes / sizeof(uint64_t);
    h->mark = with;
    if (bytes % 3 == 0) {
        h->p = allocate_zeroed(bytes);
        EXPECT(h->p != NULL);
        for (size_t i = 0; i < h->words; i += 64) EXPECT(h->p[i] == 0);
    } else {
        h->p = allocate(bytes);
        EXPECT(h->p != NULL);
    }
    mark(h);
}

static void *work(void *number) {
    struct held held[HELD] = {{NULL, 0, 0}};
    uint64_t random = (uintptr_t)number + 1;
    race_wait();
    for (size_t i = 0; i < turns; i++) {
        struct held *h = &held[random_below(&random, HELD)];
        if (h->p != NULL) drop(h);
        else
            take(h, 2048 + random_below(&random, random_below(&random, 8) == 0 ? 1000000 : 140000),
                 i << 16 | (uintptr_t)number << 8);
    }
    for (size_t i = 0; i < HELD; i++)
        if (held[i].p != NULL) drop(&held[i]);
    allocator_thread_ends();
    __atomic_sub_fetch(&workers_left, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void *purge(void *unused) {
    (void)unused;
    race_wait();
    while (acquire_load(&workers_left) != 0) {
        purge_all(0);
        sched_yield();
    }
    return NULL;
}

static void *run(void *number) {
    return (uintptr_t)number < WORKERS ? work(number) : purge(number);
}

int main(int argc, char **argv) {
    allocator_start();
    options.lanes = 2;
    turns = race_amount(argc, argv, 60000);
    race_run(WORKERS + 1, run);
    EXPECT(os_memory_counters().purged_bytes != 0);
    race_finish();
    return 0;
}
