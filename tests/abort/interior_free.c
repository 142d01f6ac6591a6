// expect-abort: ^huddle: invalid free of 0x[0-9a-f]+: [0-9]+ bytes into a [0-9]+-byte cell$
// each: class
// each: 1 8 16 15 17 half last
// each: free free_sized
#include "faults.h"

int main(int argc, char **argv) {
    (void)argc;
    size_t n = size_argument(argv, 1), offset = size_argument(argv, 2);
    char *p = allocate(n);
    size_t bytes = malloc_usable_size(p);
    if (strcmp(argv[2], "half") == 0) offset = bytes / 2;
    if (strcmp(argv[2], "last") == 0) offset = bytes - 1;
    if (offset >= bytes) return 77;
    expect_invalid_free(p + offset, offset, bytes);
    free_by(argv[3], p + offset, n);
    return not_stopped();
}
