// expect-abort: double free of
// each: 0 1 2 3 4 5 6 7 8 9 10 11
// each: 48 5000 100000
#include "faults.h"

#include <new>

static void drop(int form, void *p, size_t n) {
    const std::align_val_t a{16};
    p = hidden(p);
    switch (form) {
    case 0: ::operator delete(p); break;
    case 1: ::operator delete(p, n); break;
    case 2: ::operator delete(p, std::nothrow); break;
    case 3: ::operator delete[](p); break;
    case 4: ::operator delete[](p, n); break;
    case 5: ::operator delete[](p, std::nothrow); break;
    case 6: ::operator delete(p, a); break;
    case 7: ::operator delete(p, n, a); break;
    case 8: ::operator delete(p, a, std::nothrow); break;
    case 9: ::operator delete[](p, a); break;
    case 10: ::operator delete[](p, n, a); break;
    default: ::operator delete[](p, a, std::nothrow);
    }
}

int main(int argc, char **argv) {
    (void)argc;
    int form = (int)size_argument(argv, 1);
    size_t n = size_argument(argv, 2);
    void *p = form < 6 ? ::operator new(n) : ::operator new(n, std::align_val_t{16});
    size_t bytes = malloc_usable_size(p);
    drop(form, p, n);
    expect_double_free(p, bytes);
    drop(form, p, n);
    return not_stopped();
}
