#include "os/system.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/uio.h>
#include <time.h>

static const char never_single = 0;

extern char __libc_single_threaded __attribute__((weak));

const char *os_single_threaded = &never_single;

void os_set_threaded(void) {
    os_single_threaded = &never_single;
}

/* All thread-local variables of the library lie side by side. */
static __thread uint64_t example __attribute__((tls_model("initial-exec")));

void *os_thread_local_example(void) {
    return &example;
}

void os_system_init(void) {
    if (&__libc_single_threaded != NULL) os_single_threaded = &__libc_single_threaded;
}

unsigned os_cpu_count(void) {
    unsigned long mask[1024 / (8 * sizeof(unsigned long))];
    long bytes = system_call(SYS_sched_getaffinity, 0, sizeof mask, (long)mask, 0, 0, 0);
    unsigned count = 0;
    for (size_t i = 0; !is_system_error(bytes) && i < (size_t)bytes / sizeof mask[0]; i++)
        count += (unsigned)__builtin_popcountl(mask[i]);
    return count == 0 ? 1 : count;
}

uint64_t os_time_ms(void) {
    struct timespec t = {0, 0};
    system_call(SYS_clock_gettime, CLOCK_MONOTONIC_COARSE, (long)&t, 0, 0, 0, 0);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

uint64_t os_entropy(void) {
    uint64_t n = 0;
    if (system_call(SYS_getrandom, (long)&n, sizeof n, 1 /* GRND_NONBLOCK */, 0, 0, 0) == sizeof n) return n;
    return os_time_ms() * 0x9e3779b97f4a7c15u ^ (uintptr_t)&n;
}

bool os_write(int descriptor, const char *text, size_t n) {
    while (n != 0) {
        long done = system_call(SYS_write, descriptor, (long)text, (long)n, 0, 0, 0);
        if (done == -4 /* EINTR */) continue;
        if (done <= 0) return false;
        text += done;
        n -= (size_t)done;
    }
    return true;
}

int os_open_append(const char *path) {
    long d = system_call(SYS_openat, AT_FDCWD, (long)path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644, 0, 0);
    return is_system_error(d) ? -1 : (int)d;
}

void os_close(int descriptor) {
    system_call(SYS_close, descriptor, 0, 0, 0, 0, 0);
}

bool os_barrier(void) {
    enum { EXPEDITED = 1 << 3, REGISTER_EXPEDITED = 1 << 4 };
    long r = system_call(SYS_membarrier, EXPEDITED, 0, 0, 0, 0, 0);
    if (r == -EPERM && system_call(SYS_membarrier, REGISTER_EXPEDITED, 0, 0, 0, 0, 0) == 0)
        r = system_call(SYS_membarrier, EXPEDITED, 0, 0, 0, 0, 0);
    return r == 0;
}

bool os_read_word(const uintptr_t *from, uintptr_t *to) {
#if defined(__SANITIZE_THREAD__) /* would not see that the word was read */
    *to = acquire_load(from);
    return true;
#else
    struct iovec here = {to, sizeof *to}, there = {(void *)(uintptr_t)from, sizeof *from};
    return system_call(SYS_process_vm_readv, os_process_id(), (long)&here, 1, (long)&there, 1, 0) == sizeof *to;
#endif
}

int os_process_id(void) {
    return (int)system_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

/* The kernel's form of a signal action, all zero: the default one. */
struct kernel_sigaction {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};

static void raise_abort(void) {
    long tid = system_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
    uint64_t abort_only = (uint64_t)1 << (SIGABRT - 1);
    system_call(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&abort_only, 0, sizeof abort_only, 0, 0);
    system_call(SYS_tgkill, os_process_id(), tid, SIGABRT, 0, 0, 0);
}

_Noreturn void os_abort(void) {
    raise_abort();
    struct kernel_sigaction default_action = {0};
    system_call(SYS_rt_sigaction, SIGABRT, (long)&default_action, 0, sizeof default_action.mask, 0, 0);
    raise_abort();
    for (;;) system_call(SYS_exit_group, 127, 0, 0, 0, 0, 0);
}
