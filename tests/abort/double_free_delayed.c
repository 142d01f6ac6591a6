// expect-abort: double free of
// each: class
// each: other_sizes same_size
#include "faults.h"

/* The block stays free while thousands of others come and go: of all other sizes, or of its own, the last freed first.
 * */
int main(int argc, char **argv) {
    (void)argc;
    enum { OTHERS = 3000 };
    static void *others[OTHERS];
    size_t n = size_argument(argv, 1);
    int same = strcmp(argv[2], "same_size") == 0;
    void *p = allocate(n);
    size_t bytes = malloc_usable_size(p);
    if (same) {
        for (int i = 0; i < 20; i++) others[i] = allocate(n);
        free(p);
        for (int i = 0; i < 20; i++) free(others[i]);
        for (int i = 0; i < 5; i++)
            if ((others[i] = allocate(n)) == p) return 77;
    } else {
        free(p);
        for (size_t i = 0; i < OTHERS; i++) {
            size_t m = i * 11 % LARGEST_CELL;
            others[i] = allocate(m);
            if (malloc_usable_size(others[i]) != bytes) continue;
            free(others[i]);
            others[i] = NULL;
        }
        for (int i = 0; i < OTHERS; i += 2) free(others[i]);
    }
    expect_double_free(p, bytes);
    free(hidden(p));
    return not_stopped();
}
