// expect-abort: ^huddle: (double|invalid) free of 0x[0-9a-f]+|which huddle did not allocate$
// options: foreign=ignore
// each: 24 5000 100000 20000000
// each: 0 8 16 fresh
// each: free realloc
#include "foreign.h"

int main(int argc, char **argv) {
    (void)argc;
    size_t n = size_argument(argv, 1), offset = size_argument(argv, 2);
    char *p = allocate(n);
    size_t bytes = malloc_usable_size(p);
    if (strcmp(argv[2], "fresh") == 0) {
        p = (char *)address_of("fresh");
        expect_foreign_free(p);
        offset = 0;
    } else if (offset == 0) {
        free(hidden(p));
        expect_double_free(p, bytes);
    } else {
        expect_invalid_free(p + offset, offset, bytes);
    }
    free_by(argv[3], p + offset, n);
    return not_stopped();
}
