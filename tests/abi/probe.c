/* Says from inside a program what huddle is doing. Run by check_options.py and check_json.py.
 *
 *   probe option KEY...   the values of options, one KEY=VALUE a line
 *   probe lanes           how many lanes there are when there are more threads than lanes
 *   probe json            after allocating, a report in JSON, then live_bytes and live_blocks as huddle_stats has them
 *   probe order [shuffle] where 64 equal blocks in a row lie, relative to the first; after setting the option shuffle
 *   probe secure          whether the process runs with other rights than its caller's (AT_SECURE) */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "huddle/huddle.h"

#ifdef LINKED_STATICALLY
#define FIND(name) (&name)
#else
#define FIND(name) ((__typeof__(name) *)dlsym(RTLD_DEFAULT, #name))
#endif

static struct huddle_stats stats = {.struct_size = sizeof stats};

static int print_options(char **keys) {
    char value[1024];
    for (; *keys != NULL; keys++)
        if (FIND(huddle_option_get)(*keys, value, sizeof value)) printf("%s=%s\n", *keys, value);
    return 0;
}

static int print_json(void) {
    static void *blocks[1000];
    for (size_t i = 0; i < 1000; i++) blocks[i] = malloc(i * 100);
    for (size_t i = 0; i < 1000; i += 2) free(blocks[i]);
    if (!FIND(huddle_stats)(&stats)) return 1;
    if (!FIND(huddle_stats_json)(STDOUT_FILENO)) return 1;
    char line[100];
    int n = snprintf(line, sizeof line, "%zu %zu\n", stats.live_bytes, stats.live_blocks);
    return write(STDOUT_FILENO, line, (size_t)n) != n;
}

enum { THREADS = 70 };
static pthread_barrier_t barrier;

static void *allocate_and_wait(void *argument) {
    free(malloc(100));
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return argument;
}

static int print_lanes(void) {
    pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, allocate_and_wait, NULL) != 0) return 1;
    pthread_barrier_wait(&barrier);
    bool filled = FIND(huddle_stats)(&stats);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    printf("%zu\n", stats.lanes);
    return !filled;
}

static int print_order(bool shuffles_later) {
    static char *blocks[64];
    if (shuffles_later && !FIND(huddle_option_set)("shuffle", "1")) return 1;
    for (size_t i = 0; i < 64; i++) blocks[i] = malloc(208);
    for (size_t i = 0; i < 64; i++) printf("%td ", blocks[i] - blocks[0]);
    puts("");
    return 0;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "option") == 0) return print_options(argv + 2);
    if (strcmp(what, "json") == 0) return print_json();
    if (strcmp(what, "lanes") == 0) return print_lanes();
    if (strcmp(what, "order") == 0) return print_order(argc > 2);
    if (strcmp(what, "secure") == 0) return printf("%lu\n", getauxval(AT_SECURE)) < 0;
    return 2;
}
