/* cache.c - are small blocks of two threads put into one line of the cache, so that their writes stop each other?
 *
 * `cache thrash|scratch THREADS ROUNDS`: in each of ROUNDS rounds each of the threads allocates a block of 8 bytes,
 * increments it 1000 times and frees it. In `thrash` that is all; in `scratch` the main thread has allocated the first
 * block of each, one after the other, and handed it on, so that an allocator that gives it out again where it was freed
 * keeps them together (the benchmarks "cache-thrash" and "cache-scratch" of Hoard, Berger et al. 2000). Prints
 * nanoseconds per write. */
#include "bench.h"

enum { WRITES = 1000 };

static size_t rounds;
static volatile uint64_t *first[BENCH_THREADS_MAX];

static void *work(void *index) {
    volatile uint64_t *p = first[(size_t)index];
    if (p != NULL) free((void *)p);
    for (size_t i = 0; i < rounds; i++) {
        p = checked(malloc(sizeof *p));
        *p = 0;
        for (size_t k = 0; k < WRITES; k++) *p += 1;
        if (*p != WRITES) fail("a block is not what was written to it");
        free((void *)p);
    }
    return NULL;
}

int main(int count, char **argument) {
    size_t threads = number(count, argument, 2, 0);
    rounds = number(count, argument, 3, 0);
    if (threads == 0 || threads > BENCH_THREADS_MAX || rounds == 0) usage("cache thrash|scratch THREADS ROUNDS");
    for (size_t t = 0; t < threads && argument[1][0] == 's'; t++) first[t] = checked(malloc(sizeof *first[t]));
    double seconds = run_threads(threads, work);
    printf("cache_%s %.3f ns/write\n", argument[1], seconds / (double)(threads * rounds * WRITES) * 1e9);
    return 0;
}
