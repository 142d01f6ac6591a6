/* pair.c - what does the shortest way through malloc and free cost?
 *
 * `pair SIZE COUNT real|empty [threads]`: COUNT times malloc(SIZE) and free, each block freed at once. Made for counting instructions too. `empty` calls two functions that only return, by the same
 * loop; what they cost is the loop itself. `threads` has a second thread alive and asleep. Prints nanoseconds per
 * pair. */
#include "bench.h"

#include <unistd.h>

static __attribute__((naked, noinline)) void *empty_malloc(size_t size __attribute__((unused))) {
    __asm__("ret");
}

static __attribute__((naked, noinline)) void empty_free(void *block __attribute__((unused))) {
    __asm__("ret");
}

static void *sleep_forever(void *unused) {
    (void)unused;
    for (;;) pause();
    return NULL;
}

/* Not inlined, as `encodings` counts what is called from here. */
static __attribute__((noinline)) void allocate_and_free(int is_real, size_t size, size_t pairs) {
    void *(*volatile allocate)(size_t) = is_real ? malloc : empty_malloc;
    void (*volatile release)(void *) = is_real ? free : empty_free;
    for (size_t i = 0; i < pairs; i++) release(allocate(size));
}

int main(int count, char **argument) {
    if (count < 4 || (strcmp(argument[3], "real") != 0 && strcmp(argument[3], "empty") != 0)) {
        fprintf(stderr, "usage: pair SIZE COUNT real|empty [threads]\n");
        return 2;
    }
    size_t size = strtoul(argument[1], NULL, 10);
    size_t pairs = strtoul(argument[2], NULL, 10);
    int is_real = strcmp(argument[3], "real") == 0;
    pthread_t thread;
    if (count > 4 && pthread_create(&thread, NULL, sleep_forever, NULL) != 0) return 1;
    double begin = now();
    allocate_and_free(is_real, size, pairs);
    printf("pair %.2f ns/pair\n", (now() - begin) / (double)pairs * 1e9);
    return 0;
}
