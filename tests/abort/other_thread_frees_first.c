// expect-abort: double free of
// each: 16 48 256 1000 5000 32768
// options: lanes=1 | lanes=2 | lanes=64
#include "faults.h"

#include <pthread.h>

/* A block is freed by another thread, then by the one that allocated it, which goes on allocating. In another lane's
 * cells the first free may still be on its way then; the block may not be handed out for both. */
enum { LIMIT = 500000 };

static void *free_it(void *block) {
    free_stamped(block);
    return NULL;
}

int main(int argc, char **argv) {
    (void)argc;
    pthread_t thread;
    size_t n = size_argument(argv, 1);
    void *block = allocate_stamped(n);
    expect_double_free(block, malloc_usable_size(block));
    if (pthread_create(&thread, NULL, free_it, block) != 0) return 4;
    pthread_join(thread, NULL);
    free(hidden(block));
    for (int i = 0; i < LIMIT; i++) allocate_stamped(n);
    return not_stopped();
}
