/* bench.h - what the programs of bench/patterns/ share: a clock, random numbers that are the same in every run, a mix
 * of sizes, blocks that are marked so that a wrong one shows, and threads.
 *
 * Each program prints what it measured as lines "NAME NUMBER UNIT", less being better, on standard output, and ends
 * with status 1 when a block was not what was written to it. */
#ifndef BENCH_H
#define BENCH_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BENCH_SMALLEST = 16, BENCH_DOUBLINGS = 6, BENCH_THREADS_MAX = 64 };

static inline double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A step of splitmix64. */
static inline uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* A number below n < 2^32, of a random number's upper half. */
static inline size_t below(uint64_t random, size_t n) {
    return (size_t)(((random >> 32) * n) >> 32);
}

/* 16 to 31 bytes half the time, 32 to 63 a quarter, and so on to 2047; of a random number's lower half. */
static inline size_t mixed_size(uint64_t random) {
    size_t least = (size_t)BENCH_SMALLEST << __builtin_ctzll(random | 1 << BENCH_DOUBLINGS);
    return least + ((random >> 8) & (least - 1));
}

static inline _Noreturn void fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static inline void *checked(void *block) {
    if (block == NULL) fail("no memory");
    return block;
}

/* The first and the last word of a block of n >= 16 bytes tell its address, n and a key. */
static inline void mark(void *block, size_t n, uint64_t key) {
    uint64_t word = (uint64_t)(uintptr_t)block ^ n << 48 ^ key;
    memcpy(block, &word, sizeof word);
    memcpy((char *)block + n - sizeof word, &word, sizeof word);
}

static inline void check_mark(const void *block, size_t n, uint64_t key) {
    uint64_t word = (uint64_t)(uintptr_t)block ^ n << 48 ^ key, first, last;
    memcpy(&first, block, sizeof first);
    memcpy(&last, (const char *)block + n - sizeof last, sizeof last);
    if (first != word || last != word) fail("a block is not what was written to it");
}

/* Argument i as a number, or `unless`. */
static inline size_t number(int count, char **argument, int i, size_t unless) {
    return count > i ? strtoul(argument[i], NULL, 10) : unless;
}

static inline _Noreturn void usage(const char *line) {
    fprintf(stderr, "usage: %s\n", line);
    exit(2);
}

/* Runs work(0) to work(threads - 1) at once, work(0) in this thread, so that a program without threads is measured as
 * such. Returns the seconds. */
static inline double run_threads(size_t threads, void *(*work)(void *index)) {
    pthread_t thread[BENCH_THREADS_MAX];
    double begin = now();
    for (size_t i = 1; i < threads; i++)
        if (pthread_create(&thread[i], NULL, work, (void *)i) != 0) fail("no thread");
    work((void *)0);
    for (size_t i = 1; i < threads; i++) pthread_join(thread[i], NULL);
    return now() - begin;
}

#endif
