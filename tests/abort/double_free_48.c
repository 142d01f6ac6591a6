// expect-abort: ^huddle: double free of 0x[0-9a-f]+ \(a 48-byte cell\)$
#include "faults.h"

int main(void) {
    char *name = strdup("a name that has forty bytes with its end");
    free(name);
    expect_double_free(name, 48);
    free(hidden(name));
    return not_stopped();
}
