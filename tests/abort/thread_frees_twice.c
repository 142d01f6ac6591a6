// expect-abort: double free of
// each: ends stays
// each: 16 48 256 1000 5000 32768
// options: lanes=1 | lanes=2 | lanes=64
#include "faults.h"

#include <pthread.h>
#include <semaphore.h>

/* Another thread frees a block twice. Whatever it costs to notice (in another lane's cells the owner has to take in
 * what came back), the program is stopped before the block can be handed out twice. */
enum { OTHERS = 4000, LIMIT = 500000 };
static void *block, *others[OTHERS];
static int stays;
static sem_t freed, never;

static void *free_twice(void *argument) {
    free_stamped(block);
    free(hidden(block));
    /* Others of main's, so that what is on its way to main does not wait for a full batch. */
    for (int i = 0; stays && i < OTHERS; i++) free_stamped(others[i]);
    sem_post(&freed);
    while (stays) sem_wait(&never);
    return argument;
}

int main(int argc, char **argv) {
    (void)argc;
    pthread_t thread;
    size_t n = size_argument(argv, 2);
    stays = strcmp(argv[1], "stays") == 0;
    block = allocate_stamped(n);
    for (int i = 0; i < OTHERS; i++) others[i] = allocate_stamped(n);
    sem_init(&freed, 0, 0);
    sem_init(&never, 0, 0);
    expect_double_free(block, malloc_usable_size(block));
    if (pthread_create(&thread, NULL, free_twice, NULL) != 0) return 4;
    sem_wait(&freed);
    if (!stays) pthread_join(thread, NULL);
    for (int i = 0; i < LIMIT; i++) allocate_stamped(n);
    return not_stopped();
}
