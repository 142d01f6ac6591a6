// expect-abort: ^huddle: free of 0x[0-9a-f]+, which huddle did not allocate$
// options: foreign=abort
// each: libc stack
// each: 1 5000 1000000
// each: free cfree free_sized realloc realloc_0
#include "foreign.h"

int main(int argc, char **argv) {
    (void)argc;
    size_t n = size_argument(argv, 2);
    void *p = strcmp(argv[1], "libc") == 0 ? allocate_by_libc(n) : (void *)address_of(argv[1]);
    expect_foreign_free(p);
    free_by(argv[3], p, n);
    return not_stopped();
}
