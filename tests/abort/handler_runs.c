// expect-abort: double free of
// expect-output: handler ran
// each: quiet allocates other_stack
// each: 48 100000 20971520
#include "faults.h"

#include <signal.h>

static int allocates;

static void handler(int number) {
    (void)number;
    if (allocates) {
        for (size_t n = 1; n < 100000; n = n * 3) free(realloc(allocate(n), n * 2));
        free(allocate(48));
    }
    say("handler ran\n");
}

/* The program's handler is called, may allocate, and cannot save the program by returning. */
int main(int argc, char **argv) {
    (void)argc;
    static char stack[65536];
    struct sigaction action = {.sa_handler = handler};
    allocates = strcmp(argv[1], "allocates") == 0;
    if (strcmp(argv[1], "other_stack") == 0) {
        stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
        sigaltstack(&other, NULL);
        action.sa_flags = SA_ONSTACK;
    }
    sigaction(SIGABRT, &action, NULL);
    void *p = allocate(size_argument(argv, 2));
    size_t bytes = malloc_usable_size(p);
    free(p);
    expect_double_free(p, bytes);
    free(hidden(p));
    return not_stopped();
}
