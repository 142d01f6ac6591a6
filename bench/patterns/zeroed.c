/* zeroed.c - what does calloc cost where memory is used again, and where it is new?
 *
 * `zeroed COUNT`: COUNT times calloc of 16 bytes to 8 KiB in place of one of 512 blocks, all of whose bytes were written;
 * and COUNT / 1000 times calloc of 1 MiB, of which a word in 64 KiB is used. All is checked to be zero first. Prints
 * nanoseconds per calloc and free for each. */
#include "bench.h"

enum { BLOCKS = 512, LARGE = 1 << 20, STEP = 64 << 10, LARGE_PART = 1000 };

static void check_zero(const unsigned char *p, size_t n, size_t step) {
    for (size_t i = 0; i < n; i += step)
        if (p[i] != 0) fail("calloc did not give zeroes");
}

int main(int count, char **argument) {
    size_t calls = number(count, argument, 1, 0);
    if (calls < LARGE_PART) usage("zeroed COUNT, at least 1000");
    static unsigned char *x[BLOCKS];
    uint64_t state = 1;
    double begin = now();
    for (size_t i = 0; i < calls; i++) {
        uint64_t random = next_random(&state);
        size_t n = (size_t)16 << random % 9, k = below(random, BLOCKS);
        n += (random >> 8) & (n - 1);
        free(x[k]);
        x[k] = checked(calloc(n / 8, 8));
        check_zero(x[k], n / 8 * 8, 61);
        memset(x[k], 0xff, n / 8 * 8);
    }
    printf("calloc_small %.2f ns/pair\n", (now() - begin) / (double)calls * 1e9);
    for (size_t k = 0; k < BLOCKS; k++) free(x[k]);
    begin = now();
    for (size_t i = 0; i < calls / LARGE_PART; i++) {
        unsigned char *p = checked(calloc(LARGE, 1));
        check_zero(p, LARGE, STEP);
        memset(p, 1, STEP);
        free(p);
    }
    printf("calloc_1MiB %.2f ns/pair\n", (now() - begin) / (double)(calls / LARGE_PART) * 1e9);
    return 0;
}
