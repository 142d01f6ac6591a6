// expect-abort: double free of
// each: 16 32 64 256 4096 32768 65536 1048576 67108864
// each: 1 100 5000 40000 200000
#include "faults.h"

int main(int argc, char **argv) {
    (void)argc;
    size_t alignment = size_argument(argv, 1);
    void *p = memalign(alignment, size_argument(argv, 2));
    if (p == NULL) return 4;
    size_t bytes = malloc_usable_size(p);
    free(p);
    expect_double_free_of(alignment > LARGEST_CELL ? "block" : noun(bytes), p, bytes);
    free(hidden(p));
    return not_stopped();
}
