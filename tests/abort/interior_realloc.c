// expect-abort: invalid free of 0x[0-9a-f]+: [0-9]+ bytes into a [0-9]+-byte cell
// each: 16 48 128 144 1000 4096 5000 32768
// each: 1 8 16 24
// each: realloc realloc_same realloc_smaller realloc_0 reallocarray __libc_free cfree free_aligned_sized
#include "faults.h"

int main(int argc, char **argv) {
    (void)argc;
    size_t n = size_argument(argv, 1), offset = size_argument(argv, 2);
    char *p = allocate(n);
    size_t bytes = malloc_usable_size(p);
    if (offset >= bytes) return 77;
    expect_invalid_free(p + offset, offset, bytes);
    free_by(argv[3], p + offset, n);
    return not_stopped();
}
