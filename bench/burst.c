/* burst.c - `burst COUNT SIZE ROUNDS`: COUNT blocks of SIZE bytes are allocated in a row and then freed in the same
 * order, ROUNDS times after once to warm up. Prints nanoseconds per block for each half.
 *
 * With many blocks almost every call takes its share of a refill of the thread's cache, or of a flush. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Not inlined, as `encodings` counts what is called from these two; warm_up is apart for that. */
static __attribute__((noinline)) void allocate_all(void **x, size_t count, size_t size) {
    for (size_t i = 0; i < count; i++) x[i] = malloc(size);
}

static __attribute__((noinline)) void free_all(void **x, size_t count) {
    for (size_t i = 0; i < count; i++) free(x[i]);
}

static __attribute__((noinline)) void warm_up(void **x, size_t count, size_t size) {
    for (size_t i = 0; i < count; i++) x[i] = malloc(size);
    for (size_t i = 0; i < count; i++) free(x[i]);
}

int main(int arguments, char **argument) {
    size_t count = arguments > 3 ? strtoul(argument[1], NULL, 10) : 0;
    size_t size = arguments > 3 ? strtoul(argument[2], NULL, 10) : 0;
    size_t rounds = arguments > 3 ? strtoul(argument[3], NULL, 10) : 0;
    if (count == 0 || rounds == 0) {
        fprintf(stderr, "usage: burst COUNT SIZE ROUNDS\n");
        return 2;
    }
    void **x = calloc(count, sizeof *x);
    if (x == NULL) return 1;
    warm_up(x, count, size);
    double allocating = 0, freeing = 0;
    for (size_t i = 0; i < rounds; i++) {
        double begin = now();
        allocate_all(x, count, size);
        double middle = now();
        free_all(x, count);
        allocating += middle - begin;
        freeing += now() - middle;
    }
    double blocks = (double)count * (double)rounds;
    printf("burst_malloc %.2f ns/block\n", allocating / blocks * 1e9);
    printf("burst_free %.2f ns/block\n", freeing / blocks * 1e9);
    free(x);
    return 0;
}
