/* reclaim.c - a thread empties the heaps of others while they allocate and free, at every point of their hit paths; they
 * pause, end, and free each other's blocks meanwhile. No block is ever handed out twice, and none is lost. Prints how
 * many heaps were emptied: some must have been. */
#include "race.h"
#include "thread/reclaim.h"

enum { THREADS = 4, SLOTS = 256, HELD = 24 };

static uint64_t *slots[SLOTS];
static size_t rounds;
static unsigned working = THREADS;
static size_t opened; /* how often an owner found its heap closed */

static uint64_t *take(size_t bytes) {
    uint64_t *p = allocate(bytes);
    EXPECT(p != NULL);
    relaxed_store(p, (uint64_t)(uintptr_t)p);
    return p;
}

static void drop(uint64_t *p) {
    if (p == NULL) return;
    EXPECT(relaxed_load(p) == (uint64_t)(uintptr_t)p);
    relaxed_store(p, 0);
    release(p);
}

/* Hits only, once the magazine has what it needs: what a closed heap must turn into misses. */
static void hits(size_t bytes) {
    uint64_t *held[HELD];
    for (int i = 0; i < HELD; i++) held[i] = take(bytes);
    for (int i = 0; i < HELD; i++) {
        for (int k = 0; k < i; k++) EXPECT(held[k] != held[i]);
        drop(held[i]);
    }
}

static void note_closed(void) {
    const struct heap *h = heap_of_thread();
    if (heap_is_closed(h)) __atomic_add_fetch(&opened, 1, __ATOMIC_RELAXED);
}

static void begin_heap(void) {
    release(allocate(8));
    release_store(&heap_of_thread()->place, &heap_place); /* as heap_enter does when libc tells of the thread's end */
}

static void work(uint64_t random) {
    for (int i = 0; i < 200; i++) {
        note_closed();
        hits(16 + 48 * (random_next(&random) % 4));
        size_t bytes = 16 + random_below(&random, 300) * (i % 16 == 0 ? 150 : 1);
        drop(__atomic_exchange_n(&slots[random_below(&random, SLOTS)], take(bytes), __ATOMIC_ACQ_REL));
        if (i % 64 == 0) system_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    }
}

/* Ends while its heap may be closed. */
static void *live_briefly(void *bytes) {
    begin_heap();
    hits((uintptr_t)bytes);
    system_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    allocator_thread_ends();
    return NULL;
}

static void keep_working(uint64_t number) {
    begin_heap();
    for (size_t i = 0; i < rounds; i++) {
        work(number << 32 | i);
        pthread_t id;
        EXPECT(pthread_create(&id, NULL, live_briefly, (void *)(16 + i % 64 * 16)) == 0);
        EXPECT(pthread_join(id, NULL) == 0);
    }
}

static void keep_reclaiming(void) {
    for (uint64_t i = 0; acquire_load(&working) != 0; i++) {
        reclaim(i % 4 != 0);
        if (i % 8 == 0) system_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    }
}

static void *run(void *number) {
    race_wait();
    if ((uintptr_t)number == THREADS) {
        keep_reclaiming();
    } else {
        keep_working((uintptr_t)number + 1);
        __atomic_sub_fetch(&working, 1, __ATOMIC_RELEASE);
    }
    allocator_thread_ends();
    return NULL;
}

int main(int argc, char **argv) {
    allocator_start();
    if (!os_barrier()) {
        puts("skipped: no membarrier");
        return 77;
    }
    options.lanes = 2;
    rounds = race_amount(argc, argv, 150);
    race_run(THREADS + 1, run);
    printf("%zu times a heap was found closed\n", opened);
    EXPECT(opened != 0);
    for (size_t i = 0; i < SLOTS; i++) drop(slots[i]);
    race_finish();
    return 0;
}
