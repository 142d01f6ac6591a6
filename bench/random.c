/* random.c - `random OBJECTS OPERATIONS`: a working set of OBJECTS blocks, of which one at random is replaced by a new
 * one OPERATIONS times. Prints nanoseconds per pair.
 *
 * Sizes are 16 to 31 bytes half the time, 32 to 63 a quarter, and so on to 2047. The same in every run. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SMALLEST = 16, DOUBLINGS = 6 };

static uint64_t state = 1;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A step of splitmix64. */
static uint64_t next_random(void) {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* A block of random size whose first word is written. */
static inline uint64_t *new_block(uint64_t random) {
    size_t least = (size_t)SMALLEST << __builtin_ctzll(random | 1 << DOUBLINGS);
    uint64_t *block = malloc(least + ((random >> 8) & (least - 1)));
    if (block == NULL) abort();
    *block = random;
    return block;
}

/* Not inlined, as `encodings` counts what is called from here. */
static __attribute__((noinline)) void replace_at_random(uint64_t **x, size_t objects, size_t operations) {
    for (size_t i = 0; i < operations; i++) {
        uint64_t random = next_random();
        size_t k = (size_t)(((random >> 32) * objects) >> 32);
        free(x[k]);
        x[k] = new_block(random);
    }
}

int main(int count, char **argument) {
    size_t objects = count > 2 ? strtoul(argument[1], NULL, 10) : 0;
    size_t operations = count > 2 ? strtoul(argument[2], NULL, 10) : 0;
    if (objects == 0 || objects > UINT32_MAX || operations == 0) {
        fprintf(stderr, "usage: random OBJECTS OPERATIONS\n");
        return 2;
    }
    uint64_t **x = calloc(objects, sizeof *x);
    if (x == NULL) return 1;
    for (size_t i = 0; i < objects; i++) x[i] = new_block(next_random());
    double begin = now();
    replace_at_random(x, objects, operations);
    printf("random %.2f ns/pair\n", (now() - begin) / (double)operations * 1e9);
    return 0;
}
