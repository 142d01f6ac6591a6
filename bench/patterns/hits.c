/* hits.c - what do the paths cost that almost every call takes?
 *
 * `hits malloc|free|calloc|realloc|cross SIZE COUNT [threads]`: COUNT calls of the function that can be counted by
 * themselves, see bench/instructions. `cross` has a second thread free what the first one allocated, half of it; `threads`
 * has a second thread alive and asleep. */
#include "bench.h"

#include <unistd.h>

static void **blocks;
static size_t calls, size;

static void *sleep_forever(void *unused) {
    (void)unused;
    for (;;) pause();
    return NULL;
}

static void *free_all(void *unused) {
    for (size_t i = 0; i < calls; i++) free(blocks[i]);
    return unused;
}

static void hand_over(void) {
    blocks = checked(calloc(calls, sizeof *blocks));
    for (size_t i = 0; i < calls; i++) blocks[i] = checked(malloc(size));
    pthread_t thread;
    if (pthread_create(&thread, NULL, free_all, NULL) != 0) fail("no thread");
    pthread_join(thread, NULL);
}

int main(int count, char **argument) {
    size = number(count, argument, 2, 0);
    calls = number(count, argument, 3, 0);
    if (calls == 0) usage("hits malloc|free|calloc|realloc|cross SIZE COUNT [threads]");
    pthread_t thread;
    if (count > 4 && pthread_create(&thread, NULL, sleep_forever, NULL) != 0) fail("no thread");
    const char *path = argument[1];
    if (strcmp(path, "cross") == 0) {
        hand_over();
        return 0;
    }
    void *kept = checked(malloc(size));
    for (size_t i = 0; i < calls; i++) {
        if (path[0] == 'r') kept = checked(realloc(kept, size - i % 2));
        else free(path[0] == 'c' ? calloc(1, size) : malloc(size));
    }
    free(kept);
    return 0;
}
