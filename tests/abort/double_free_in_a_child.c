// expect-abort: double free of
// each: before_fork after_fork
// each: 48 100000
#include "faults.h"

#include <signal.h>
#include <sys/wait.h>

/* In the child of a fork, with a block from before or after it. The parent ends as the child did. */
int main(int argc, char **argv) {
    (void)argc;
    int status = 0, freed = strcmp(argv[1], "before_fork") == 0;
    void *p = allocate(size_argument(argv, 2));
    size_t bytes = malloc_usable_size(p);
    if (freed) free(p);
    pid_t child = fork();
    if (child == 0) {
        if (!freed) free(p);
        expect_double_free(p, bytes);
        free(hidden(p));
        _exit(3);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFSIGNALED(status)) return not_stopped();
    raise(WTERMSIG(status));
    return not_stopped();
}
