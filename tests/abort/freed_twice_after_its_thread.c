// expect-abort: double free of
// each: 16 48 1000 32768
// each: trim thread
// options: lanes=1 | lanes=2 | lanes=64
#include "faults.h"

#include <pthread.h>

/* The thread that allocated the blocks is gone, and with it whoever would have used its lane. Taking everything in
 * finds the double free, and so does the next thread that allocates there. */
enum { OTHERS = 4000, LIMIT = 300000 };
static void *others[OTHERS];
static size_t size;

static void *allocate_others(void *argument) {
    for (int i = 0; i < OTHERS; i++) others[i] = allocate_stamped(size);
    return argument;
}

static void *allocate_many(void *argument) {
    for (int i = 0; i < LIMIT; i++) allocate_stamped(size);
    return argument;
}

static void run(void *(*function)(void *)) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, function, NULL) != 0) _exit(4);
    pthread_join(thread, NULL);
}

int main(int argc, char **argv) {
    (void)argc;
    size = size_argument(argv, 1);
    run(allocate_others);
    void *block = others[0];
    expect_double_free(block, malloc_usable_size(block));
    free_stamped(block);
    free(hidden(block));
    if (strcmp(argv[2], "trim") == 0) malloc_trim(0);
    /* So many more that what is on its way to that lane does not wait for a full batch. */
    for (int i = 1; i < OTHERS; i++) free_stamped(others[i]);
    run(allocate_many);
    allocate_many(NULL);
    return not_stopped();
}
