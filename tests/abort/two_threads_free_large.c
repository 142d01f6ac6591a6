// expect-abort: double free of
// each: thread_and_main main_and_thread thread_twice two_threads
// each: 32769 100000 1000000 20971520
// options: lanes=1 | lanes=2
#include "faults.h"

#include <pthread.h>

/* Large blocks belong to no lane: whoever frees one the second time is stopped at the call. */
static void *free_it(void *block) {
    free(hidden(block));
    return NULL;
}

static void free_in_thread(void *block) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, free_it, block) != 0) _exit(4);
    pthread_join(thread, NULL);
}

static void *free_it_twice(void *block) {
    size_t bytes = malloc_usable_size(block);
    free_it(block);
    expect_double_free(block, bytes);
    return free_it(block);
}

int main(int argc, char **argv) {
    (void)argc;
    void *block = allocate(size_argument(argv, 2));
    size_t bytes = malloc_usable_size(block);
    if (strcmp(argv[1], "thread_twice") == 0) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, free_it_twice, block) != 0) return 4;
        pthread_join(thread, NULL);
        return not_stopped();
    }
    int main_is_first = strcmp(argv[1], "main_and_thread") == 0, main_is_second = strcmp(argv[1], "thread_and_main") == 0;
    if (main_is_first) free(block);
    else free_in_thread(block);
    expect_double_free(block, bytes);
    if (main_is_second) free(hidden(block));
    else free_in_thread(hidden(block));
    return not_stopped();
}
