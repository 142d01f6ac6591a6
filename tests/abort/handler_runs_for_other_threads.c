// expect-abort: ^huddle: (double free|invalid free|free) of
// expect-output: handler ran
// each: double interior foreign
#include "faults.h"

#include <pthread.h>
#include <signal.h>

static void handler(int number) {
    (void)number;
    free(allocate(1000));
    say("handler ran\n");
}

static void *fault(void *kind) {
    char *p = allocate(1000);
    size_t bytes = malloc_usable_size(p);
    if (strcmp(kind, "double") == 0) {
        free(p);
        expect_double_free(p, bytes);
    } else if (strcmp(kind, "interior") == 0) {
        p += 16;
        expect_invalid_free(p, 16, bytes);
    } else {
        p = kind;
        expect_foreign_free(p);
    }
    free(hidden(p));
    return NULL;
}

int main(int argc, char **argv) {
    (void)argc;
    pthread_t thread;
    signal(SIGABRT, handler);
    if (pthread_create(&thread, NULL, fault, argv[1]) != 0) return 4;
    pthread_join(thread, NULL);
    return not_stopped();
}
