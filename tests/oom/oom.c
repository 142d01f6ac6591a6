/* oom.c - every scenario again and again: with the first system call refused, with the second, ... until there are no
 * more; and with all from that one on refused.
 *
 *   oom SCENARIO            links the inside; each time is a child of its own
 *   oom SCENARIO LIBRARY    with a library to preload: each time is a process of its own, this program again, which the
 *                           variable OOM_CHILD tells so */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "allocator.h"
#include "scenarios.h"

enum { NTH_MAX = 2000 };

static const struct scenario *find(const char *name) {
    for (unsigned i = 0; i < scenario_count; i++)
        if (strcmp(scenarios[i].name, name) == 0) return &scenarios[i];
    fprintf(stderr, "no scenario %s\n", name);
    exit(2);
}

static void no_core(void) {
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
}

#ifdef TEST_FROM_OUTSIDE

/* The child writes how many system calls its scenario made to this descriptor. */
enum { RESULT_DESCRIPTOR = 9 };

static int play(const char *name) {
    allocator_start();
    unsigned long calls = scenario_play(find(name));
    return write(RESULT_DESCRIPTOR, &calls, sizeof calls) == sizeof calls ? 0 : 4;
}

/* Execs this program with the library preloaded. */
static void child(char **argv, uint32_t nth, uint32_t count, int result) {
    char preload[4200], limits[100];
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", argv[2]);
    snprintf(limits, sizeof limits, "HUDDLE_OPTIONS=lanes=2,purge_ms=0,fail_nth=%u,fail_count=%u", nth, count);
    char child_mark[] = "OOM_CHILD=1";
    char *environment[] = {preload, limits, child_mark, NULL};
    dup2(result, RESULT_DESCRIPTOR);
    execve("/proc/self/exe", argv, environment);
    _exit(127);
}

#else

static void child(char **argv, uint32_t nth, uint32_t count, int result) {
    options.lanes = 2;
    options.purge_ms = 0;
    set_failing(nth, count);
    unsigned long calls = scenario_play(find(argv[1]));
    _exit(write(result, &calls, sizeof calls) == sizeof calls ? 0 : 4);
}

#endif

/* Returns the system calls of the scenario. */
static unsigned long play_in_child(char **argv, uint32_t nth, uint32_t count) {
    int ends[2], status = -1;
    unsigned long calls = 0;
    if (pipe(ends) != 0) exit(3);
    pid_t pid = fork();
    if (pid == 0) {
        no_core();
        close(ends[0]);
        child(argv, nth, count, ends[1]);
    }
    close(ends[1]);
    ssize_t n = read(ends[0], &calls, sizeof calls);
    close(ends[0]);
    if (waitpid(pid, &status, 0) != pid || status != 0 || n != sizeof calls) {
        fprintf(stderr, "%s: fail_nth=%u fail_count=%u: status 0x%x\n", argv[1], nth, count, (unsigned)status);
        exit(1);
    }
    return calls;
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
#ifdef TEST_FROM_OUTSIDE
    if (getenv("OOM_CHILD") != NULL) return play(argv[1]);
    if (argc != 3) return 2;
#else
    inside_start();
#endif
    find(argv[1]);
    uint32_t nth = 1;
    unsigned long calls, calls_of_others;
    do {
        calls = play_in_child(argv, nth, 1);
        calls_of_others = play_in_child(argv, nth, UINT32_MAX);
        nth++;
    } while ((calls >= nth - 1 || calls_of_others >= nth - 1) && nth < NTH_MAX);
    printf("%s: %u system calls refused, one or all from there on\n", argv[1], nth - 2);
    return nth > 2 && nth < NTH_MAX ? 0 : 1;
}
