// expect-abort: double free of
// each: class
// each: first middle last
// each: kept trimmed
#include "faults.h"

/* All blocks of the runs are freed; the runs are no longer runs, and their memory may be the system's again. */
int main(int argc, char **argv) {
    (void)argc;
    enum { BLOCKS = 2000 };
    static void *blocks[BLOCKS];
    size_t n = size_argument(argv, 1);
    for (int i = 0; i < BLOCKS; i++) blocks[i] = allocate(n);
    size_t bytes = malloc_usable_size(blocks[0]);
    for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
    if (strcmp(argv[3], "trimmed") == 0) malloc_trim(0);
    void *p = blocks[strcmp(argv[2], "first") == 0 ? 0 : strcmp(argv[2], "middle") == 0 ? BLOCKS / 2 : BLOCKS - 1];
    expect_double_free(p, bytes);
    free(hidden(p));
    return not_stopped();
}
