/* large.c - what does a page of a large block cost when many are allocated and freed over and over?
 *
 * `large ROUNDS [MBYTES]`: in each round blocks of 0.1 to 25 MiB are allocated until MBYTES MiB (200) are live, a byte of
 * each page is written, and all are freed in no order: a saw-tooth. Prints microseconds per MiB. */
#include "bench.h"

enum { BLOCKS_MAX = 4096, LEAST = 100 << 10, STEP = 4096 };

/* Evenly spread logarithms, so that there are as many of 0.1 to 1 MiB as of 2.5 to 25. */
static size_t random_bytes(uint64_t random) {
    size_t n = (size_t)LEAST << (random & 7);
    return n + below(random, n);
}

int main(int count, char **argument) {
    size_t rounds = number(count, argument, 1, 0), most = number(count, argument, 2, 200) << 20;
    if (rounds == 0 || most == 0) usage("large ROUNDS [MBYTES]");
    static struct {
        char *p;
        size_t n;
    } block[BLOCKS_MAX];
    uint64_t state = 1;
    size_t bytes = 0;
    double begin = now();
    for (size_t round = 0; round < rounds; round++) {
        size_t blocks = 0;
        for (size_t sum = 0; sum < most && blocks < BLOCKS_MAX; blocks++) {
            size_t n = random_bytes(next_random(&state));
            char *p = checked(malloc(n));
            for (size_t i = 0; i < n; i += STEP) p[i] = (char)i;
            mark(p, n, round);
            block[blocks].p = p;
            block[blocks].n = n;
            sum += n;
        }
        while (blocks > 0) {
            size_t k = below(next_random(&state), blocks);
            check_mark(block[k].p, block[k].n, round);
            bytes += block[k].n;
            free(block[k].p);
            block[k] = block[--blocks];
        }
    }
    printf("large %.3f us/MiB\n", (now() - begin) * 1e6 / ((double)bytes / (1 << 20)));
    return 0;
}
