// expect-abort: ^huddle: double free of 0x[0-9a-f]+ \(a [0-9]+-byte (cell|block)\)$
// each: class 0 1 40 32769 100000 135168 1000000 4194304 20971520
#include "faults.h"

int main(int argc, char **argv) {
    (void)argc;
    void *p = allocate(size_argument(argv, 1));
    size_t bytes = malloc_usable_size(p);
    free(p);
    expect_double_free(p, bytes);
    free(hidden(p));
    return not_stopped();
}
