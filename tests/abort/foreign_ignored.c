// expect-success
// options: foreign=ignore
// each: stack global constant code mapped mapped_inside unmapped low high 0x10 minus_1 vsyscall kernel noncanonical
// also: tagged environment
// each: free cfree free_sized realloc_0
#include "foreign.h"

#include <errno.h>

int main(int argc, char **argv) {
    (void)argc;
    void *p = (void *)address_of(argv[1]);
    char before = strcmp(argv[1], "global") == 0 ? *(volatile char *)p : 0;
    errno = 77;
    free_by(argv[2], p, 48);
    if (errno != 77) return 10;
    free_by(argv[2], p, 48);
    if (realloc(hidden(p), 100) != NULL || errno != ENOMEM || malloc_usable_size(hidden(p)) != 0) return 11;
    if (before != 0 && *(volatile char *)p != before) return 12;
    char *of_libc = allocate_by_libc(100);
    memset(of_libc, 5, 100);
    of_libc = realloc(of_libc, 100000);
    if (of_libc == NULL || of_libc[99] != 5) return 13;
    free(of_libc);
    return 0;
}
