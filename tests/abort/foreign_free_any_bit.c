// expect-abort: , which huddle did not allocate
// each: 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 24 28 32 36 40 44 45 46 47 48 49 55 56 60 61 62 63
// each: alone with_block inverted
#include "faults.h"

/* Addresses with one bit set, such a bit flipped in a block's address (only those that lead far away), and its inverse.
 * */
int main(int argc, char **argv) {
    (void)argc;
    size_t bit = size_argument(argv, 1);
    uintptr_t one = (uintptr_t)1 << bit, p = one;
    if (strcmp(argv[2], "with_block") == 0) {
        if (bit < 36) return 77;
        p = (uintptr_t)allocate(48) ^ one;
    } else if (strcmp(argv[2], "inverted") == 0) {
        p = ~one;
    }
    expect_foreign_free((void *)p);
    free(hidden((void *)p));
    return not_stopped();
}
