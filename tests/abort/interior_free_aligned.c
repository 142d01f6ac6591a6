// expect-abort: invalid free of
// each: 64 4096 65536 1048576
// each: 100 5000 100000
// each: 16 64 4096
#include "faults.h"

/* Also at multiples of the alignment, where another aligned block could begin. */
int main(int argc, char **argv) {
    (void)argc;
    char *p = memalign(size_argument(argv, 1), size_argument(argv, 2));
    size_t offset = size_argument(argv, 3);
    if (p == NULL) return 4;
    size_t bytes = malloc_usable_size(p);
    if (offset >= bytes) return 77;
    expect_invalid_free(p + offset, offset, bytes);
    free(hidden(p + offset));
    return not_stopped();
}
