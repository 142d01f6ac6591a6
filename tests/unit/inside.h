/* inside.h - what the tests of the inside share: setting up, random numbers, children that are expected to be stopped.
 */
#ifndef TESTS_UNIT_INSIDE_H
#define TESTS_UNIT_INSIDE_H

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "os/memory.h"
#include "os/system.h"

/* What api/ does before the first heap. HUDDLE_TEST_PAGE_SIZE stands for the option page_size. */
static inline void inside_start(void) {
    const char *page = getenv("HUDDLE_TEST_PAGE_SIZE");
    size_t wanted = page != NULL ? strtoul(page, NULL, 10) : 0;
    os_system_init();
    os_memory_init((size_t)sysconf(_SC_PAGESIZE), wanted);
    if (wanted > os_page_bytes) {
        fprintf(stderr, "HUDDLE_TEST_PAGE_SIZE=%zu, but pages have %zu bytes\n", wanted, os_page_bytes);
        exit(1);
    }
}

/* splitmix64 */
static inline uint64_t random_next(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static inline size_t random_below(uint64_t *state, size_t n) {
    return (size_t)(((__uint128_t)random_next(state) * n) >> 64);
}

/* HUDDLE_TEST_SEED, or one that differs from run to run; printed, so that a failure can be repeated. */
static inline uint64_t random_seed(void) {
    const char *text = getenv("HUDDLE_TEST_SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : (uint64_t)time(NULL) * 1000 + (uint64_t)getpid() % 1000;
    printf("HUDDLE_TEST_SEED=%llu\n", (unsigned long long)seed);
    fflush(stdout);
    return seed;
}

struct outcome {
    int status;
    char text[1000]; /* what it wrote to standard error */
};

/* Calls f in a child, which then exits with 0. */
static inline struct outcome run_in_child(void (*f)(void *), void *argument) {
    struct outcome o = {.status = -1};
    int ends[2];
    if (pipe(ends) != 0) return o;
    fflush(stdout);
    fflush(stderr);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        f(argument);
        _exit(0);
    }
    close(ends[1]);
    size_t used = 0;
    ssize_t n;
    while (used < sizeof o.text - 1 && (n = read(ends[0], o.text + used, sizeof o.text - 1 - used)) > 0)
        used += (size_t)n;
    o.text[used] = '\0';
    close(ends[0]);
    if (child < 0 || waitpid(child, &o.status, 0) != child) o.status = -1;
    return o;
}

/* Whether f ends the process by SIGABRT and a line with `message`; says what happened when not. */
static inline bool is_stopped(void (*f)(void *), void *argument, const char *message) {
    struct outcome o = run_in_child(f, argument);
    if (WIFSIGNALED(o.status) && WTERMSIG(o.status) == SIGABRT && strstr(o.text, message) != NULL) return true;
    fprintf(stderr, "expected SIGABRT and \"%s\", seen status 0x%x and \"%s\"\n", message, (unsigned)o.status, o.text);
    return false;
}

static inline bool ends_well(void (*f)(void *), void *argument) {
    struct outcome o = run_in_child(f, argument);
    if (o.status == 0) return true;
    fprintf(stderr, "expected exit status 0, seen 0x%x and \"%s\"\n", (unsigned)o.status, o.text);
    return false;
}

static void fault_handler(int number) {
    (void)number;
    _exit(86);
}

struct access {
    volatile char *address;
};

static inline void touch_in_child(void *argument) {
    signal(SIGSEGV, fault_handler);
    signal(SIGBUS, fault_handler);
    (void)*((struct access *)argument)->address;
}

/* Whether a read of the address faults. */
static inline bool is_unreadable(void *address) {
    struct access a = {address};
    struct outcome o = run_in_child(touch_in_child, &a);
    return WIFEXITED(o.status) && WEXITSTATUS(o.status) == 86;
}

static inline bool is_all_zero(const void *p, size_t n) {
    const unsigned char *b = p;
    return n == 0 || (b[0] == 0 && memcmp(b, b + 1, n - 1) == 0);
}

#endif
