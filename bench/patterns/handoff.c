/* handoff.c - what does a block cost that one thread allocates and another one frees?
 *
 * `handoff [BLOCKS [SIZE [PRODUCERS [CONSUMERS [touch]]]]]`: the producers allocate BLOCKS blocks of SIZE bytes (20
 * million of 64, one of each), the consumers free them, after reading what the producer wrote if they touch them. The
 * blocks pass in batches through bounded rings: ring k is filled by producer k modulo their number, and emptied by
 * consumer k modulo theirs. Prints nanoseconds per block. */
#include "bench.h"

#include <sched.h>
#include <stdatomic.h>

enum { BATCH = 64, SLOTS = 64, RINGS = BENCH_THREADS_MAX };

static struct ring {
    /* Batches put in and taken out; each releases to the other side's acquire. */
    _Alignas(64) _Atomic size_t put;
    _Alignas(64) _Atomic size_t taken;
    void *batch[SLOTS][BATCH];
} rings[RINGS];

static size_t producers, consumers, count_of_rings, batches, size;
static int is_touching;

/* Not inlined, as `encodings` counts what is called from these two and not the waiting around them. */
static __attribute__((noinline)) void allocate_batch(void **batch) {
    for (size_t k = 0; k < BATCH; k++) batch[k] = malloc(size);
}

static __attribute__((noinline)) void free_batch(void **batch) {
    for (size_t k = 0; k < BATCH; k++) free(batch[k]);
}

static void put_batch(struct ring *r) {
    size_t i = atomic_load_explicit(&r->put, memory_order_relaxed);
    while (i - atomic_load_explicit(&r->taken, memory_order_acquire) == SLOTS) sched_yield();
    void **batch = r->batch[i % SLOTS];
    allocate_batch(batch);
    for (size_t k = 0; k < BATCH && is_touching; k++) mark(batch[k], size, i);
    atomic_store_explicit(&r->put, i + 1, memory_order_release);
}

/* Whether there was one. */
static int take_batch(struct ring *r) {
    size_t i = atomic_load_explicit(&r->taken, memory_order_relaxed);
    if (atomic_load_explicit(&r->put, memory_order_acquire) == i) return 0;
    void **batch = r->batch[i % SLOTS];
    for (size_t k = 0; k < BATCH && is_touching; k++) check_mark(batch[k], size, i);
    free_batch(batch);
    atomic_store_explicit(&r->taken, i + 1, memory_order_release);
    return 1;
}

static void produce(size_t index) {
    for (size_t i = 0; i < batches; i++)
        for (size_t k = index; k < count_of_rings; k += producers) put_batch(&rings[k]);
}

static void consume(size_t index) {
    size_t left = 0;
    for (size_t k = index; k < count_of_rings; k += consumers) left += batches;
    while (left > 0) {
        size_t before = left;
        for (size_t k = index; k < count_of_rings; k += consumers) left -= (size_t)take_batch(&rings[k]);
        if (left == before) sched_yield();
    }
}

static void *work(void *index) {
    if ((size_t)index < producers) produce((size_t)index);
    else consume((size_t)index - producers);
    return NULL;
}

int main(int count, char **argument) {
    size_t blocks = number(count, argument, 1, 20 * 1000 * 1000);
    size = number(count, argument, 2, 64);
    producers = number(count, argument, 3, 1);
    consumers = number(count, argument, 4, 1);
    is_touching = count > 5 && size >= 16;
    count_of_rings = producers > consumers ? producers : consumers;
    if (producers + consumers > BENCH_THREADS_MAX || producers == 0 || consumers == 0 || blocks / BATCH < count_of_rings)
        usage("handoff [BLOCKS [SIZE [PRODUCERS [CONSUMERS [touch]]]]]");
    batches = blocks / BATCH / count_of_rings;
    double seconds = run_threads(producers + consumers, work);
    printf("handoff %.2f ns/block\n", seconds / (double)(batches * count_of_rings * BATCH) * 1e9);
    return 0;
}
