// expect-abort: double free of
// each: 16 48 1000 32768
// each: trim thread
// options: lanes=1 | lanes=2 | lanes=64
#include "faults.h"

#include <pthread.h>

/* The thread that allocated the block is gone, and with it whoever would have used its lane. Taking everything in finds the
 * double free, and so does the next thread that allocates there. */
enum { LIMIT = 300000 };

static void *allocate_one(void *size) {
    return allocate_stamped((size_t)size);
}

static void *allocate_many(void *size) {
    for (int i = 0; i < LIMIT; i++) allocate_stamped((size_t)size);
    return NULL;
}

int main(int argc, char **argv) {
    (void)argc;
    pthread_t thread;
    void *block, *n = (void *)size_argument(argv, 1);
    if (pthread_create(&thread, NULL, allocate_one, n) != 0) return 4;
    pthread_join(thread, &block);
    expect_double_free(block, malloc_usable_size(block));
    free_stamped(block);
    free(hidden(block));
    if (strcmp(argv[2], "trim") == 0) malloc_trim(0);
    if (pthread_create(&thread, NULL, allocate_many, n) != 0) return 4;
    pthread_join(thread, NULL);
    allocate_many(n);
    return not_stopped();
}
