// expect-abort: invalid free of
// each: 64 4096 65536 1048576
// each: 100 5000 100000
// each: 16 64 4096
#include "faults.h"

/* Also at multiples of the alignment, where another aligned block could begin. */
int main(int argc, char **argv) {
    (void)argc;
    size_t alignment = size_argument(argv, 1), offset = size_argument(argv, 3);
    char *p = memalign(alignment, size_argument(argv, 2));
    if (p == NULL) return 4;
    size_t bytes = malloc_usable_size(p);
    if (offset >= bytes) return 77;
    expect_invalid_free_of(alignment > LARGEST_CELL ? "block" : noun(bytes), p + offset, offset, bytes);
    free(hidden(p + offset));
    return not_stopped();
}
