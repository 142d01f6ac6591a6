/* churn.c - `churn [THREADS [PAIRS]]`: each thread keeps 1024 blocks of 32 to 95 bytes and replaces the oldest one,
 * PAIRS times (20 million when not given). Prints nanoseconds per pair for each thread. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BLOCKS = 1024, THREADS_MAX = 64 };

static size_t pairs = 20 * 1000 * 1000;
static pthread_barrier_t start;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Not inlined, as `encodings` counts what is called from here. */
static __attribute__((noinline)) void replace_oldest(void **x) {
    for (size_t i = 0; i < pairs; i++) {
        free(x[i % BLOCKS]);
        x[i % BLOCKS] = malloc(32 + i % 64);
    }
}

static void *churn(void *result) {
    void *x[BLOCKS] = {NULL};
    pthread_barrier_wait(&start);
    double begin = now();
    replace_oldest(x);
    *(double *)result = (now() - begin) / (double)pairs * 1e9;
    for (size_t i = 0; i < BLOCKS; i++) free(x[i]);
    return NULL;
}

int main(int count, char **argument) {
    size_t threads = count > 1 ? strtoul(argument[1], NULL, 10) : 1;
    if (count > 2) pairs = strtoul(argument[2], NULL, 10);
    if (threads < 1 || threads > THREADS_MAX || pairs == 0) {
        fprintf(stderr, "usage: churn [THREADS [PAIRS]]\n");
        return 2;
    }
    double ns[THREADS_MAX], sum = 0;
    if (pthread_barrier_init(&start, NULL, (unsigned)threads) != 0) return 1;
    /* One thread is the main thread itself, so that a program without threads is measured as such. */
    pthread_t thread[THREADS_MAX];
    for (size_t i = 1; i < threads; i++)
        if (pthread_create(&thread[i], NULL, churn, &ns[i]) != 0) return 1;
    churn(&ns[0]);
    for (size_t i = 1; i < threads; i++) pthread_join(thread[i], NULL);
    for (size_t i = 0; i < threads; i++) {
        printf("thread %zu: %.2f ns/pair\n", i, ns[i]);
        sum += ns[i];
    }
    printf("churn %.2f ns/pair\n", sum / (double)threads);
    return 0;
}
