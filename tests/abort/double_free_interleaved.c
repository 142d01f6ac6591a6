// expect-abort: double free of
// each: class 100000 20971520
#include "faults.h"

int main(int argc, char **argv) {
    (void)argc;
    size_t n = size_argument(argv, 1);
    void *a = allocate(n), *b = allocate(n);
    size_t bytes = malloc_usable_size(a);
    free(a);
    free(b);
    expect_double_free(a, bytes);
    free(hidden(a));
    return not_stopped();
}
