// expect-abort: double free of
// each: thread_and_main main_and_thread thread_twice
// each: 32769 100000 1000000 20971520
// options: lanes=1 | lanes=2
#include "faults.h"

#include <pthread.h>
#include <semaphore.h>

/* Large blocks belong to no lane: whoever frees one the second time is stopped at the call. The thread exists before
 * the first free, because making one allocates. */
static sem_t go, done;
static int frees;

static void *free_it(void *block) {
    sem_wait(&go);
    for (int i = 0; i < frees; i++) free(hidden(block));
    sem_post(&done);
    return NULL;
}

static void let_thread_free(void) {
    sem_post(&go);
    sem_wait(&done);
}

int main(int argc, char **argv) {
    (void)argc;
    pthread_t thread;
    void *block = allocate(size_argument(argv, 2));
    sem_init(&go, 0, 0);
    sem_init(&done, 0, 0);
    frees = strcmp(argv[1], "thread_twice") == 0 ? 2 : 1;
    if (pthread_create(&thread, NULL, free_it, block) != 0) return 4;
    expect_double_free(block, malloc_usable_size(block));
    if (strcmp(argv[1], "main_and_thread") == 0) free(block);
    let_thread_free();
    if (strcmp(argv[1], "thread_and_main") == 0) free(hidden(block));
    return not_stopped();
}
