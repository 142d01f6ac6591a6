/* churn.c - what does a pair cost in the loop that the glibc list's proposal of 2013 was measured with, and does it
 * scale?
 *
 * `churn [THREADS [PAIRS]]`: each thread keeps 1024 blocks of 32 to 95 bytes and replaces the oldest one, PAIRS times
 * (20 million when not given). Prints nanoseconds per pair, the mean of the threads. */
#include "bench.h"

enum { BLOCKS = 1024 };

static size_t pairs;
static pthread_barrier_t start;
static double ns[BENCH_THREADS_MAX];

/* Not inlined, as `encodings` counts what is called from here. */
static __attribute__((noinline)) void replace_oldest(void **x) {
    for (size_t i = 0; i < pairs; i++) {
        free(x[i % BLOCKS]);
        x[i % BLOCKS] = malloc(32 + i % 64);
    }
}

static void *churn(void *index) {
    void *x[BLOCKS] = {NULL};
    pthread_barrier_wait(&start);
    double begin = now();
    replace_oldest(x);
    ns[(size_t)index] = (now() - begin) / (double)pairs * 1e9;
    for (size_t i = 0; i < BLOCKS; i++) free(x[i]);
    return NULL;
}

int main(int count, char **argument) {
    size_t threads = number(count, argument, 1, 1);
    pairs = number(count, argument, 2, 20 * 1000 * 1000);
    if (threads < 1 || threads > BENCH_THREADS_MAX || pairs == 0) usage("churn [THREADS [PAIRS]]");
    if (pthread_barrier_init(&start, NULL, (unsigned)threads) != 0) return 1;
    run_threads(threads, churn);
    double sum = 0;
    for (size_t i = 0; i < threads; i++) sum += ns[i];
    printf("churn %.2f ns/pair\n", sum / (double)threads);
    return 0;
}
