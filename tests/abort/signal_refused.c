// expect-abort: double free of
// each: blocked ignored both blocked_in_thread all_blocked
// each: 48 100000
#include "faults.h"

#include <pthread.h>
#include <signal.h>

static size_t size;

static void *fault(void *argument) {
    void *p = allocate(size);
    size_t bytes = malloc_usable_size(p);
    free(p);
    expect_double_free(p, bytes);
    free(hidden(p));
    return argument;
}

/* A program that blocks or ignores SIGABRT dies of it all the same. */
int main(int argc, char **argv) {
    (void)argc;
    sigset_t set;
    size = size_argument(argv, 2);
    sigemptyset(&set);
    sigaddset(&set, SIGABRT);
    if (strcmp(argv[1], "all_blocked") == 0) sigfillset(&set);
    if (strcmp(argv[1], "ignored") == 0 || strcmp(argv[1], "both") == 0) signal(SIGABRT, SIG_IGN);
    if (strcmp(argv[1], "ignored") != 0) sigprocmask(SIG_BLOCK, &set, NULL);
    if (strcmp(argv[1], "blocked_in_thread") == 0) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, fault, NULL) != 0) return 4;
        pthread_join(thread, NULL);
    } else {
        fault(NULL);
    }
    return not_stopped();
}
