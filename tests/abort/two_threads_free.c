// expect-abort: double free of
// each: 16 48 256 1000 5000 32768
// options: lanes=1 | lanes=2 | lanes=64
#include "faults.h"

#include <pthread.h>

/* A block is freed by the thread that allocated it, then by another. */
enum { LIMIT = 500000 };

static void *free_it(void *block) {
    free(hidden(block));
    return NULL;
}

int main(int argc, char **argv) {
    (void)argc;
    pthread_t thread;
    size_t n = size_argument(argv, 1);
    void *block = allocate_stamped(n);
    expect_double_free(block, malloc_usable_size(block));
    free_stamped(block);
    if (pthread_create(&thread, NULL, free_it, hidden(block)) != 0) return 4;
    pthread_join(thread, NULL);
    for (int i = 0; i < LIMIT; i++) allocate_stamped(n);
    return not_stopped();
}
