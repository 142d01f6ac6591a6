/* statistics.c - reports beside running threads, which come and go meanwhile: figures are then approximate, but never
 * nonsense. */
#include "race.h"

enum { WORKERS = 3, HELD = 100 };

static size_t turns;
static uint32_t workers_left = WORKERS; /* atomic */
static uint64_t *shared[HELD];

static size_t random_size(uint64_t *random) {
    return random_below(random, 20) == 0 ? random_below(random, 300000) + 16 : random_below(random, 3000) + 16;
}

static void *work_briefly(void *argument) {
    uint64_t random = (uintptr_t)argument;
    for (size_t i = 0; i < 400; i++) {
        void *p = allocate(random_size(&random));
        EXPECT(p != NULL);
        if (random_below(&random, 4) == 0) {
            p = reallocate(p, random_size(&random));
            EXPECT(p != NULL);
        }
        p = __atomic_exchange_n(&shared[random_below(&random, HELD)], p, __ATOMIC_ACQ_REL);
        if (p != NULL) release(p);
    }
    allocator_thread_ends();
    return NULL;
}

static void *work(void *number) {
    race_wait();
    for (size_t i = 0; i < turns; i++) {
        pthread_t id;
        EXPECT(pthread_create(&id, NULL, work_briefly, (void *)(i * WORKERS + (uintptr_t)number + 1)) == 0);
        EXPECT(pthread_join(id, NULL) == 0);
    }
    __atomic_sub_fetch(&workers_left, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void *report(void *unused) {
    (void)unused;
    struct huddle_stats s = {.struct_size = sizeof s};
    race_wait();
    size_t reports = 0;
    while (acquire_load(&workers_left) != 0) {
        stats_collect(&s);
        EXPECT(s.struct_size == sizeof s);
        EXPECT(s.mapped_bytes <= s.peak_mapped_bytes);
        EXPECT(s.run_bytes <= s.peak_mapped_bytes && s.dirty_bytes <= s.peak_mapped_bytes);
        EXPECT(s.live_bytes <= s.peak_mapped_bytes && s.cached_bytes <= s.peak_mapped_bytes);
        for (size_t c = 0; c < HUDDLE_CLASSES; c++) {
            const struct huddle_class_stats *k = &s.classes[c];
            EXPECT((k->live + k->cached + k->free + k->fresh) * k->cell_bytes <= s.run_bytes);
        }
        reports++;
    }
    EXPECT(reports != 0);
    return NULL;
}

static void *run(void *number) {
    return (uintptr_t)number < WORKERS ? work(number) : report(number);
}

int main(int argc, char **argv) {
    allocator_start();
    options.lanes = 2;
    options.purge_ms = 0;
    turns = race_amount(argc, argv, 300);
    race_run(WORKERS + 1, run);
    for (size_t i = 0; i < HELD; i++) release(shared[i]);
    race_finish();
    return 0;
}
