/* handoff.c - `handoff [BLOCKS [SIZE]]`: one thread allocates BLOCKS blocks of SIZE bytes (20 million of 64), another
 * one frees them without touching them. They pass through a bounded ring in batches. Prints millions of blocks/s. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BATCH = 64, SLOTS = 64 };

static void *ring[SLOTS][BATCH];
/* Batches put in by the allocating thread and taken out by the freeing thread; each releases to the other's acquire. */
static _Alignas(64) _Atomic size_t put;
static _Alignas(64) _Atomic size_t taken;
static size_t batches, size = 64;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Not inlined, as `encodings` counts what is called from these two and not the waiting around them. */
static __attribute__((noinline)) void allocate_batch(void **batch) {
    for (size_t k = 0; k < BATCH; k++) batch[k] = malloc(size);
}

static __attribute__((noinline)) void free_batch(void **batch) {
    for (size_t k = 0; k < BATCH; k++) free(batch[k]);
}

static void *free_all(void *unused) {
    (void)unused;
    for (size_t i = 0; i < batches; i++) {
        while (atomic_load_explicit(&put, memory_order_acquire) == i) sched_yield();
        free_batch(ring[i % SLOTS]);
        atomic_store_explicit(&taken, i + 1, memory_order_release);
    }
    return NULL;
}

int main(int count, char **argument) {
    size_t blocks = count > 1 ? strtoul(argument[1], NULL, 10) : 20 * 1000 * 1000;
    if (count > 2) size = strtoul(argument[2], NULL, 10);
    batches = blocks / BATCH;
    if (batches == 0) {
        fprintf(stderr, "usage: handoff [BLOCKS [SIZE]], BLOCKS at least %d\n", BATCH);
        return 2;
    }
    pthread_t thread;
    double begin = now();
    if (pthread_create(&thread, NULL, free_all, NULL) != 0) return 1;
    for (size_t i = 0; i < batches; i++) {
        while (i - atomic_load_explicit(&taken, memory_order_acquire) == SLOTS) sched_yield();
        allocate_batch(ring[i % SLOTS]);
        atomic_store_explicit(&put, i + 1, memory_order_release);
    }
    pthread_join(thread, NULL);
    printf("handoff %.2f Mblocks/s\n", (double)(batches * BATCH) / (now() - begin) * 1e-6);
    return 0;
}
