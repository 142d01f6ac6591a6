/* latency.c - how long do the slow calls take?
 *
 * `latency COUNT`: COUNT times one of 20,000 blocks of 16 to 2047 bytes is freed and another one allocated, with a second
 * thread that does the same, and each call of the first thread is timed by itself (by rdtsc on x86-64, which costs some
 * 20 ns, that are in the figures). Prints nanoseconds at the 50th, 99th, 99.9th and 99.99th percentile of malloc and of
 * free, and the mean of the 20 longest calls, in microseconds. */
#include "bench.h"

#include <stdatomic.h>
#if defined __x86_64__
#include <x86intrin.h>
#endif

enum { BLOCKS = 20 * 1000, LONGEST = 20 };

static _Atomic int is_over;

static inline uint64_t ticks(void) {
#if defined __x86_64__
    unsigned unused;
    return __rdtscp(&unused);
#else
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
#endif
}

static void *disturb(void *unused) {
    (void)unused;
    void *x[1024] = {NULL};
    uint64_t state = 7;
    while (!atomic_load_explicit(&is_over, memory_order_relaxed)) {
        uint64_t random = next_random(&state);
        size_t k = below(random, 1024);
        free(x[k]);
        x[k] = malloc(mixed_size(random));
    }
    for (size_t k = 0; k < 1024; k++) free(x[k]);
    return NULL;
}

static int by_size(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void print(const char *name, uint32_t *times, size_t n, double ns) {
    static const double percentiles[] = {50, 99, 99.9, 99.99};
    qsort(times, n, sizeof *times, by_size);
    for (size_t i = 0; i < 4; i++) {
        size_t k = (size_t)((double)n * percentiles[i] / 100);
        printf("%s_p%g %.1f ns\n", name, percentiles[i], times[k < n ? k : n - 1] * ns);
    }
    double sum = 0;
    for (size_t i = n - LONGEST; i < n; i++) sum += times[i] * ns;
    printf("%s_longest %.2f us\n", name, sum / LONGEST / 1000);
}

int main(int count, char **argument) {
    size_t calls = number(count, argument, 1, 0);
    if (calls < BLOCKS) usage("latency COUNT, at least 20000");
    static void *x[BLOCKS];
    uint32_t *allocating = checked(malloc(calls * sizeof *allocating)), *freeing = checked(malloc(calls * sizeof *freeing));
    memset(allocating, 0, calls * sizeof *allocating);
    memset(freeing, 0, calls * sizeof *freeing);
    pthread_t thread;
    if (pthread_create(&thread, NULL, disturb, NULL) != 0) fail("no thread");
    uint64_t state = 1, begin_ticks = ticks();
    double begin = now();
    for (size_t i = 0; i < calls; i++) {
        uint64_t random = next_random(&state);
        size_t k = below(random, BLOCKS), n = mixed_size(random);
        if (x[k] == NULL) x[k] = malloc(n);
        uint64_t t0 = ticks();
        free(x[k]);
        uint64_t t1 = ticks();
        x[k] = malloc(n);
        uint64_t t2 = ticks();
        memset(x[k], 1, 16);
        freeing[i] = t1 - t0 > UINT32_MAX ? UINT32_MAX : (uint32_t)(t1 - t0);
        allocating[i] = t2 - t1 > UINT32_MAX ? UINT32_MAX : (uint32_t)(t2 - t1);
    }
    double ns = (now() - begin) * 1e9 / (double)(ticks() - begin_ticks);
    atomic_store(&is_over, 1);
    pthread_join(thread, NULL);
    print("malloc", allocating, calls, ns);
    print("free", freeing, calls, ns);
    return 0;
}
