#include "os/thread.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include "os/memory.h"
#include "os/system.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { IS_POSSIBLE = 0 }; /* their run-times have to know every thread */
#else
enum { IS_POSSIBLE = 1 };
#endif

enum {
    STACK_BYTES = 32 * 1024,
    TLS_BYTES = 16 * 1024,
    MAPPING_BYTES = 64 * 1024,
    /* The flags that libc's threads have, all of them: tracers know no others. */
    FLAGS = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |
            CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID,
};

_Static_assert(STACK_BYTES + TLS_BYTES < MAPPING_BYTES, "both fit, and the rest is for the thread's control block");

/* Written by the starter under its lock. The kernel stores the thread's number in `tid` and zeroes it at its end. */
static char *memory;
static uint32_t tid;
static void (*start)(void);
static const char *start_name;

static void run_thread(void) {
    system_call(SYS_prctl, PR_SET_NAME, (long)start_name, 0, 0, 0, 0);
    start();
}

/* Starts run_thread on the stack that ends at `top`, with `tls` as its thread pointer. */
static long clone_thread(char *top, char *tls) {
    long result;
#if defined(__x86_64__)
    register long r10 __asm__("r10") = (long)&tid;
    register long r8 __asm__("r8") = (long)tls;
    __asm__ volatile(
        "syscall\n\t"
        "test %%rax, %%rax\n\t"
        "jnz 1f\n\t"
        "xor %%ebp, %%ebp\n\t"
        "call *%%rbx\n\t"
        "mov %[exit], %%eax\n\t"
        "xor %%edi, %%edi\n\t"
        "syscall\n"
        "1:"
        : "=a"(result)
        : "a"(SYS_clone), "D"((long)FLAGS), "S"(top), "d"(&tid), "r"(r10), "r"(r8), "b"(run_thread), [exit] "i"(SYS_exit)
        : "rcx", "r11", "memory");
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = SYS_clone;
    register long x0 __asm__("x0") = FLAGS;
    register long x1 __asm__("x1") = (long)top;
    register long x2 __asm__("x2") = (long)&tid;
    register long x3 __asm__("x3") = (long)tls;
    register long x4 __asm__("x4") = (long)&tid;
    register void (*x9)(void) __asm__("x9") = run_thread;
    __asm__ volatile(
        "svc 0\n\t"
        "cbnz x0, 1f\n\t"
        "mov x29, xzr\n\t"
        "blr %[run]\n\t"
        "mov x8, %[exit]\n\t"
        "mov x0, xzr\n\t"
        "svc 0\n"
        "1:"
        : "+r"(x0)
        : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), [run] "r"(x9), [exit] "i"(SYS_exit)
        : "memory");
    result = x0;
#endif
    return result;
}

/* A thread pointer inside n zeroed bytes at p such that the library's variables lie in them, wherever the dynamic
 * linker has placed them. NULL when they are too far off. */
static char *thread_pointer(char *p, size_t n) {
#if defined(__x86_64__)
    char *mine;
    __asm__("mov %%fs:0, %0" : "=r"(mine));
    ptrdiff_t distance = (char *)os_thread_local_example() - mine;
    if (distance > 0 || (size_t)-distance + 256 > n) return NULL; /* variables below the pointer */
    char *pointer = p + n;
    *(char **)(void *)pointer = pointer;
    return pointer;
#else
    ptrdiff_t distance = (char *)os_thread_local_example() - (char *)__builtin_thread_pointer();
    if (distance < 0 || (size_t)distance + 256 > n) return NULL; /* variables above it */
    return p;
#endif
}

bool os_thread_start(void (*run)(void), const char *name) {
    if (!IS_POSSIBLE || os_thread_is_running()) return false;
    if (memory == NULL) memory = os_map(NULL, round_up(MAPPING_BYTES, os_page_bytes));
    if (memory == NULL) return false;
    char *tls = thread_pointer(memory + STACK_BYTES, TLS_BYTES);
    if (tls == NULL) return false;
    start = run;
    start_name = name;
    os_set_threaded();
    uint64_t all = ~(uint64_t)0, before = 0;
    system_call(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, (long)&all, (long)&before, sizeof all, 0, 0);
    long result = clone_thread(memory + STACK_BYTES, tls);
    system_call(SYS_rt_sigprocmask, 2, (long)&before, 0, sizeof before, 0, 0);
    if (!is_system_error(result)) return true;
    os_system_init(); /* there is no such thread after all */
    return false;
}

bool os_thread_is_running(void) {
    return acquire_load(&tid) != 0;
}

/* The effective one of the four numbers after `name` in /proc/self/status, which tells of the process's first thread;
 * -1 if there is none. */
static long effective(const char *status, const char *name) {
    for (; *status != '\0'; status++) {
        size_t i = 0;
        while (name[i] != '\0' && status[i] == name[i]) i++;
        if (name[i] != '\0') continue;
        long n = 0;
        for (status += i; *status >= '0' && *status <= '9'; status++) { /* the real one */
        }
        for (status++; *status >= '0' && *status <= '9'; status++) n = n * 10 + (*status - '0');
        return n;
    }
    return -1;
}

bool os_thread_is_left_behind(void) {
    char status[1025];
    long uid = system_call(SYS_geteuid, 0, 0, 0, 0, 0, 0), gid = system_call(SYS_getegid, 0, 0, 0, 0, 0, 0);
    long d = system_call(SYS_openat, AT_FDCWD, (long)"/proc/self/status", O_RDONLY | O_CLOEXEC, 0, 0, 0);
    long n = is_system_error(d) ? 0 : system_call(SYS_read, d, (long)status, sizeof status - 1, 0, 0, 0);
    if (!is_system_error(d)) os_close((int)d);
    status[n > 0 ? n : 0] = '\0';
    long first_uid = effective(status, "\nUid:\t"), first_gid = effective(status, "\nGid:\t");
    if (first_uid < 0 || first_gid < 0) return uid == 0;
    return first_uid != uid || first_gid != gid;
}

void os_thread_forget(void) {
    /* What it had in thread-local storage at the fork is not for the next one. */
    if (tid != 0 && !os_purge(memory, round_up(MAPPING_BYTES, os_page_bytes))) memory = NULL;
    tid = 0;
    os_system_init();
}

void os_sleep_ms(uint64_t ms) {
    struct timespec t = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    system_call(SYS_nanosleep, (long)&t, 0, 0, 0, 0, 0);
}
