/* aligned.c - what does alignment cost?
 *
 * `aligned COUNT`: COUNT times one of 1000 blocks is replaced by one of 16 to 2047 bytes at an alignment of 32 bytes to 4
 * KiB, smaller ones being more frequent. Prints nanoseconds per posix_memalign and free. */
#include "bench.h"

enum { BLOCKS = 1000 };

int main(int count, char **argument) {
    size_t calls = number(count, argument, 1, 0);
    if (calls == 0) usage("aligned COUNT");
    static struct {
        void *p;
        size_t n;
    } x[BLOCKS];
    uint64_t state = 1;
    double begin = now();
    for (size_t i = 0; i < calls; i++) {
        uint64_t random = next_random(&state);
        size_t k = below(random, BLOCKS), n = mixed_size(random);
        size_t alignment = (size_t)32 << __builtin_ctzll(random >> 16 | 1 << 7);
        if (x[k].p != NULL) check_mark(x[k].p, x[k].n, 0);
        free(x[k].p);
        if (posix_memalign(&x[k].p, alignment, n) != 0) fail("no memory");
        if ((uintptr_t)x[k].p % alignment != 0) fail("posix_memalign is not aligned");
        x[k].n = n;
        mark(x[k].p, n, 0);
    }
    printf("aligned %.2f ns/pair\n", (now() - begin) / (double)calls * 1e9);
    return 0;
}
