// expect-abort: ^huddle: free of 0x[0-9a-f]+, which huddle did not allocate$
// each: stack global constant code mapped mapped_inside unmapped low high 0x10 minus_1 vsyscall kernel noncanonical
// also: tagged fresh environment
// each: free cfree __libc_free free_sized realloc realloc_0
#include "foreign.h"

int main(int argc, char **argv) {
    (void)argc;
    void *p = (void *)address_of(argv[1]);
    expect_foreign_free(p);
    free_by(argv[2], p, 48);
    return not_stopped();
}
