/* from_handler.c - a timer's handler forks, and so interrupts calls of the only thread at any place. The child's handler
 * allocates and frees, and returns into the interrupted call, which ends well in both processes. */
#include "allocator.h"

#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

static volatile sig_atomic_t forks, is_child;

static void on_timer(int number) {
    (void)number;
    int error = errno;
    if (is_child) return;
    pid_t pid = fork();
    EXPECT(pid >= 0);
    if (pid == 0) {
        is_child = 1;
        alarm(60);
        void *p = malloc(100), *q = calloc(3, 30000);
        EXPECT(p != NULL && q != NULL);
        free(p);
        free(q);
    } else {
        int status = -1;
        EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
        forks = forks + 1;
    }
    errno = error;
}

int main(int argc, char **argv) {
    sig_atomic_t enough = argc > 1 ? (sig_atomic_t)strtoul(argv[1], NULL, 10) : 500;
    allocator_start();
    struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
    EXPECT(sigaction(SIGVTALRM, &action, NULL) == 0);
    alarm(280);
    struct itimerval often = {{0, 1000}, {0, 1000}};
    EXPECT(setitimer(ITIMER_VIRTUAL, &often, NULL) == 0);
    static char *held[100];
    unsigned n = 1;
    for (size_t left = 100000; forks < enough && left > 0; left -= is_child ? 1u : 0u) {
        n = n * 1103515245 + 12345;
        char **p = &held[(n >> 16) % 100];
        size_t bytes = 1 + (n >> 8) % ((n >> 4 & 15) == 0 ? 200000 : 3000);
        EXPECT(*p == NULL || **p == 'x');
        free(*p);
        *p = malloc(bytes);
        EXPECT(*p != NULL);
        **p = 'x';
        if (is_child && left < 98000) _exit(0);
    }
    printf("%d forks\n", (int)forks);
    return forks >= enough ? 0 : 1;
}
