// expect-abort: double free of
// each: main_first thread_first
// each: 16 48 256 1000 5000 32768
// options: lanes=1 | lanes=2 | lanes=64
#include "faults.h"

#include <pthread.h>

/* One block, freed by the thread that allocated it and by another, in either order. The program is stopped before the block is
 * handed out twice. */
enum { LIMIT = 500000 };

static void *free_it(void *block) {
    free(hidden(block));
    return NULL;
}

static void free_in_thread(void *block) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, free_it, block) != 0) _exit(4);
    pthread_join(thread, NULL);
}

int main(int argc, char **argv) {
    (void)argc;
    size_t n = size_argument(argv, 2);
    void *block = allocate_stamped(n);
    int main_first = strcmp(argv[1], "main_first") == 0;
    expect_double_free(block, malloc_usable_size(block));
    *(volatile uintptr_t *)block = 0;
    if (main_first) free(block);
    free_in_thread(hidden(block));
    if (!main_first) free(hidden(block));
    for (int i = 0; i < LIMIT; i++) allocate_stamped(n);
    return not_stopped();
}
