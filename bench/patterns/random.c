/* random.c - what does a pair cost when the blocks of a working set are replaced in no order?
 *
 * `random OBJECTS OPERATIONS`: OBJECTS live blocks of 16 to 2047 bytes (mixed_size), of which one at random is replaced
 * by a new one OPERATIONS times. Prints nanoseconds per pair. */
#include "bench.h"

static uint64_t state = 1;

/* A block of random size whose first word is written. */
static inline uint64_t *new_block(uint64_t random) {
    uint64_t *block = checked(malloc(mixed_size(random)));
    *block = random;
    return block;
}

/* Not inlined, as `encodings` counts what is called from here. */
static __attribute__((noinline)) void replace_at_random(uint64_t **x, size_t objects, size_t operations) {
    for (size_t i = 0; i < operations; i++) {
        uint64_t random = next_random(&state);
        size_t k = below(random, objects);
        free(x[k]);
        x[k] = new_block(random);
    }
}

int main(int count, char **argument) {
    size_t objects = number(count, argument, 1, 0), operations = number(count, argument, 2, 0);
    if (objects == 0 || objects > UINT32_MAX || operations == 0) usage("random OBJECTS OPERATIONS");
    uint64_t **x = calloc(objects, sizeof *x);
    if (x == NULL) return 1;
    for (size_t i = 0; i < objects; i++) x[i] = new_block(next_random(&state));
    double begin = now();
    replace_at_random(x, objects, operations);
    printf("random %.2f ns/pair\n", (now() - begin) / (double)operations * 1e9);
    return 0;
}
