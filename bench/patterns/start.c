/* start.c - what does an allocator cost a program that hardly uses it?
 *
 * `start COUNT`: COUNT times this program is started again, which allocates 50 blocks, frees half of them, and ends.
 * Prints microseconds for each. */
#include "bench.h"

#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

static int be_small(void) {
    void *x[50];
    uint64_t state = 1;
    for (size_t i = 0; i < 50; i++) {
        size_t n = mixed_size(next_random(&state));
        x[i] = checked(malloc(n));
        mark(x[i], n, 0);
    }
    for (size_t i = 0; i < 50; i += 2) free(x[i]);
    return 0;
}

int main(int count, char **argument) {
    size_t starts = number(count, argument, 1, 0);
    if (starts == 0) usage("start COUNT");
    if (count > 2) return be_small();
    char small[] = "small";
    char *again[] = {argument[0], argument[1], small, NULL};
    double begin = now();
    for (size_t i = 0; i < starts; i++) {
        pid_t child;
        int status;
        if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, again, environ) != 0) fail("no process");
        if (waitpid(child, &status, 0) != child || status != 0) fail("the child failed");
    }
    printf("start %.2f us/process\n", (now() - begin) / (double)starts * 1e6);
    return 0;
}
