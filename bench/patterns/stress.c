/* stress.c - what does an operation cost when everything is mixed?
 *
 * `stress THREADS OPERATIONS`: each thread has 2,000 slots, and there are 1,000 common ones. An operation takes what is
 * in a slot of its own, or one time in eight in a common one, checks it, and then frees it and allocates another in its
 * place, by malloc, calloc or aligned_alloc, or changes its size by realloc. Sizes are 16 to 2047 bytes (mixed_size),
 * one in 64 to 64 times as much. Prints nanoseconds per operation. */
#include "bench.h"

enum { OWN = 2000, COMMON = 1000 };

struct block {
    size_t n;
};

static size_t operations;
static void *common[COMMON];

static size_t random_size(uint64_t random) {
    size_t n = mixed_size(random);
    return random >> 58 == 0 ? n * 64 : n;
}

static struct block *finish(void *p, size_t n) {
    struct block *b = checked(p);
    memset((char *)b + n - 8, 0x77, 8);
    b->n = n;
    return b;
}

static struct block *allocate(uint64_t random) {
    size_t n = random_size(random);
    if ((random >> 20 & 7) == 0) {
        char *p = checked(calloc(1, n));
        if (p[0] != 0 || p[n / 2] != 0 || p[n - 1] != 0) fail("calloc did not give zeroes");
        return finish(p, n);
    }
    if ((random >> 20 & 31) == 1) {
        n = (n + 63) & ~(size_t)63;
        void *p = aligned_alloc(64, n);
        if ((uintptr_t)p % 64 != 0) fail("aligned_alloc is not aligned");
        return finish(p, n);
    }
    return finish(malloc(n), n);
}

static void check(const struct block *b) {
    const char *end = (const char *)b + b->n;
    for (int i = 1; i <= 8; i++)
        if (end[-i] != 0x77) fail("a block is not what was written to it");
}

static struct block *replace(struct block *b, uint64_t random) {
    if (b != NULL) check(b);
    if (b != NULL && (random >> 25 & 7) == 0) {
        size_t n = random_size(random);
        return finish(realloc(b, n), n);
    }
    free(b);
    return allocate(random);
}

static void *work(void *index) {
    uint64_t state = (size_t)index;
    struct block **own = checked(calloc(OWN, sizeof *own));
    for (size_t i = 0; i < operations; i++) {
        uint64_t random = next_random(&state);
        size_t k = below(random, OWN);
        struct block *b = own[k];
        if ((random >> 29 & 7) == 0) /* swapped with a common one; whoever has a block owns it */
            b = __atomic_exchange_n(&common[k % COMMON], b, __ATOMIC_ACQ_REL);
        own[k] = replace(b, random);
    }
    for (size_t k = 0; k < OWN; k++) free(own[k]);
    free(own);
    return NULL;
}

int main(int count, char **argument) {
    size_t threads = number(count, argument, 1, 0);
    operations = number(count, argument, 2, 0);
    if (threads == 0 || threads > BENCH_THREADS_MAX || operations == 0) usage("stress THREADS OPERATIONS");
    double seconds = run_threads(threads, work);
    for (size_t k = 0; k < COMMON; k++) free(common[k]);
    printf("stress %.2f ns/operation\n", seconds / (double)(threads * operations) * 1e9);
    return 0;
}
