/* burst.c - what does a block cost when many are allocated before the first is freed, so that almost every call takes
 * its share of a refill of the thread's cache, or of a flush?
 *
 * `burst COUNT SIZE ROUNDS [fifo|lifo|random]`: COUNT blocks of SIZE bytes are allocated in a row and then freed in the
 * same order, the reverse one or none, ROUNDS times after once to warm up. Prints nanoseconds per block for each half. */
#include "bench.h"

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

static void swap(void **a, void **b) {
    void *t = *a;
    *a = *b;
    *b = t;
}

static void reverse(void **x, size_t count) {
    for (size_t i = 0; i < count / 2; i++) swap(&x[i], &x[count - 1 - i]);
}

static void shuffle(void **x, size_t count) {
    static uint64_t state = 1;
    for (size_t i = count; i > 1; i--) swap(&x[i - 1], &x[below(next_random(&state), i)]);
}

int main(int arguments, char **argument) {
    size_t count = number(arguments, argument, 1, 0), size = number(arguments, argument, 2, 0);
    size_t rounds = number(arguments, argument, 3, 0);
    const char *order = arguments > 4 ? argument[4] : "fifo";
    if (count == 0 || rounds == 0) usage("burst COUNT SIZE ROUNDS [fifo|lifo|random]");
    void **x = checked(calloc(count, sizeof *x));
    warm_up(x, count, size);
    double allocating = 0, freeing = 0;
    for (size_t i = 0; i < rounds; i++) {
        double begin = now();
        allocate_all(x, count, size);
        allocating += now() - begin;
        if (order[0] == 'l') reverse(x, count);
        else if (order[0] == 'r') shuffle(x, count);
        begin = now();
        free_all(x, count);
        freeing += now() - begin;
    }
    double blocks = (double)count * (double)rounds;
    printf("burst_malloc %.2f ns/block\n", allocating / blocks * 1e9);
    printf("burst_free %.2f ns/block\n", freeing / blocks * 1e9);
    free(x);
    return 0;
}
