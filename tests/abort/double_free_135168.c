// expect-abort: ^huddle: double free of 0x[0-9a-f]+ \(a 135168-byte block\)$
#include "faults.h"

int main(void) {
    void *p = allocate(135000);
    free(p);
    expect_double_free(p, 135168);
    free(hidden(p));
    return not_stopped();
}
