/* peak.c - `peak [-p LIBRARY] [-o FILE] COMMAND [ARG...]`: runs COMMAND, with LIBRARY preloaded into it alone, and
 * writes what it used to FILE or standard output, as one line of NAME=NUMBER:
 *
 *   seconds, cpu_s      elapsed, and of processors
 *   peak_kib, end_kib   resident set: its peak, and when the process ends
 *   vm_kib              peak of the address space
 *   faults, switches    page faults without a read, and voluntary context switches
 *   status              exit status as a shell has it
 *
 * cpu_s, faults and switches are those of COMMAND's process and of the children that it waited for, the memory is of
 * the process alone.
 *
 * The command is traced with ptrace(2) for one purpose: it stops once more when it ends, while its memory is still
 * there and /proc/PID/status still tells the peaks. ru_maxrss would count this process too, as the child starts as a
 * copy of it. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double in_seconds(struct timeval t) {
    return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

static _Noreturn void fail(const char *what) {
    fprintf(stderr, "peak: %s: %s\n", what, strerror(errno));
    exit(125);
}

static _Noreturn void run(const char *library, char **command) {
    if (library != NULL ? setenv("LD_PRELOAD", library, 1) : unsetenv("LD_PRELOAD")) fail("LD_PRELOAD");
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) fail("ptrace");
    raise(SIGSTOP); /* until the parent has set its options */
    execvp(command[0], command);
    fprintf(stderr, "peak: %s: %s\n", command[0], strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}

static void read_memory(pid_t child, long *peak_kib, long *end_kib, long *vm_kib) {
    char line[256];
    snprintf(line, sizeof line, "/proc/%d/status", (int)child);
    FILE *f = fopen(line, "r");
    if (f == NULL) fail(line);
    while (fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, "VmHWM:", 6) == 0) *peak_kib = strtol(line + 6, NULL, 10);
        if (strncmp(line, "VmRSS:", 6) == 0) *end_kib = strtol(line + 6, NULL, 10);
        if (strncmp(line, "VmPeak:", 7) == 0) *vm_kib = strtol(line + 7, NULL, 10);
    }
    fclose(f);
}

int main(int count, char **argument) {
    const char *library = NULL, *output = NULL;
    int option;
    while ((option = getopt(count, argument, "+p:o:")) != -1) {
        if (option == 'p') library = optarg;
        else if (option == 'o') output = optarg;
        else return 2;
    }
    if (optind == count) {
        fprintf(stderr, "usage: peak [-p LIBRARY] [-o FILE] COMMAND [ARG...]\n");
        return 2;
    }
    double begin = now();
    pid_t child = fork();
    if (child < 0) fail("fork");
    if (child == 0) run(library, argument + optind);

    /* The terminal's signals are for the command. */
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    long peak_kib = 0, end_kib = 0, vm_kib = 0;
    struct rusage used;
    int status, is_started = 0;
    for (;;) {
        if (wait4(child, &status, 0, &used) < 0) fail("wait4");
        if (!WIFSTOPPED(status)) break;
        int signal_number = WSTOPSIG(status);
        if (!is_started) {
            is_started = 1;
            signal_number = 0;
            long options = PTRACE_O_TRACEEXIT | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
            if (ptrace(PTRACE_SETOPTIONS, child, NULL, options) != 0) fail("ptrace");
        } else if (status >> 16 == PTRACE_EVENT_EXIT) {
            read_memory(child, &peak_kib, &end_kib, &vm_kib);
            signal_number = 0;
        } else if (status >> 16 != 0) {
            signal_number = 0;
        }
        ptrace(PTRACE_CONT, child, NULL, (long)signal_number);
    }
    double seconds = now() - begin;
    int shell_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    FILE *f = output != NULL ? fopen(output, "w") : stdout;
    if (f == NULL) fail(output);
    fprintf(f, "seconds=%.6f cpu_s=%.6f peak_kib=%ld end_kib=%ld vm_kib=%ld faults=%ld switches=%ld status=%d\n", seconds,
            in_seconds(used.ru_utime) + in_seconds(used.ru_stime), peak_kib, end_kib, vm_kib, used.ru_minflt, used.ru_nvcsw,
            shell_status);
    if (fclose(f) != 0) fail("output");
    return shell_status;
}
