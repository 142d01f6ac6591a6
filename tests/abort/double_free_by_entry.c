// expect-abort: double free of
// each: free cfree __libc_free free_sized free_aligned_sized realloc_0
// each: free cfree __libc_free free_sized free_aligned_sized realloc_0 realloc realloc_smaller realloc_same
// also: reallocarray
// each: 48 1000 100000 20971520
#include "faults.h"

int main(int argc, char **argv) {
    (void)argc;
    size_t n = size_argument(argv, 3);
    void *p = allocate(n);
    size_t bytes = malloc_usable_size(p);
    free_by(argv[1], p, n);
    expect_double_free(p, bytes);
    free_by(argv[2], p, n);
    return not_stopped();
}
