/* system.h - system calls without libc: no errno, no cancellation points, nothing that a program could replace. */
#ifndef HUDDLE_OS_SYSTEM_H
#define HUDDLE_OS_SYSTEM_H

#include <sys/syscall.h>

#include "base/base.h"

/* The result of system call `number`: a value, or minus an error number between 1 and 4095. */
static ALWAYS_INLINE long system_call(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
#else
#error "huddle knows the system calls of x86-64 and aarch64"
#endif
}

static ALWAYS_INLINE bool is_system_error(long result) {
    return (unsigned long)result > -4096ul;
}

/* Finds what libc says of threads (the address of a weak symbol cannot stand in an initializer). Idempotent. */
void os_system_init(void);

/* CPUs that this thread may run on, at least 1. */
unsigned os_cpu_count(void);

/* Milliseconds of a clock that only moves forward, to the kernel's tick. */
uint64_t os_time_ms(void);

/* A number that an attacker cannot guess, or at worst the clock and an address. */
uint64_t os_entropy(void);

/* Writes n bytes to the descriptor, all of them. */
bool os_write(int descriptor, const char *text, size_t n);

/* Opens a file for appending, creating it. Returns the descriptor or -1. */
int os_open_append(const char *path);

void os_close(int descriptor);

int os_process_id(void);

/* A full memory barrier in every thread of the process that runs (the others had one): membarrier(2). Returns false
 * where the system has none. */
bool os_barrier(void);

/* Reads a word of this process, without a fault where nothing is mapped. */
bool os_read_word(const uintptr_t *from, uintptr_t *to);

/* Ends the process as abort() does: SIGABRT to this thread, with the program's handler if it has one, then without. */
_Noreturn void os_abort(void);

/* Whether the program has, or ever had, a second thread: glibc's __libc_single_threaded. While it has not, locks and
 * shared words are plain loads and stores. Where libc does not say, there always could be one. */
extern const char *os_single_threaded;

/* A thread that libc does not know of is about to start: from now on os_is_threaded() is true. */
void os_set_threaded(void);

/* The address of a thread-local variable of the library, in the calling thread. */
void *os_thread_local_example(void);

static ALWAYS_INLINE bool os_is_threaded(void) {
    return *os_single_threaded == 0;
}

/* Adds to a word that threads share, relaxed, and returns the sum; without an atomic instruction while there is one
 * thread. For figures of reports and bounds: what a signal handler adds in between may be lost then. */
static inline size_t shared_add(size_t *word, size_t n) {
    if (os_is_threaded()) return __atomic_add_fetch(word, n, __ATOMIC_RELAXED);
    relaxed_store(word, *word + n);
    return *word;
}

/* Makes the word `wanted` if it is 0, with acquire. Returns whether it did. */
static inline bool shared_claim(uint64_t *word, uint64_t wanted) {
    uint64_t empty = 0;
    if (os_is_threaded())
        return __atomic_compare_exchange_n(word, &empty, wanted, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
    if (*word != 0) return false;
    relaxed_store(word, wanted);
    return true;
}

#endif
