/* abi.h - what the tests of the C interface share.
 *
 * The same sources run in three ways: preloaded (the usual: linked against nothing of huddle), and linked statically
 * against libhuddle.a, as -static and as -static-pie. LINKED_STATICALLY says which. Run by hand without a preload they
 * test glibc: what only huddle promises is then skipped. */
#ifndef TESTS_ABI_ABI_H
#define TESTS_ABI_ABI_H

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#include <cmocka.h>
}
#else
#include <cmocka.h>
#endif

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Declared here and not taken from a header, so that a preloaded program need not see huddle's. */
#ifdef __cplusplus
extern "C" {
#endif
void cfree(void *block);
void free_sized(void *block, size_t size);
void free_aligned_sized(void *block, size_t alignment, size_t size);
const char *huddle_version(void);
bool huddle_option_get(const char *key, char *value, size_t size);
#ifdef __cplusplus
}
#endif

/* Values that the compiler knows nothing about: it may neither warn of what these tests do wrong nor leave it out. */
static inline void *opaque(void *p) {
    __asm__ volatile("" : "+r"(p));
    return p;
}

static inline size_t opaque_size(size_t n) {
    __asm__ volatile("" : "+r"(n));
    return n;
}

/* Symbols that the C library's headers do not declare, or that only huddle has: their address, or NULL. */
#ifdef LINKED_STATICALLY
#define FIND(name) ((__typeof__(name) *)opaque((void *)name))
#else
#define FIND(name) ((__typeof__(name) *)dlsym(RTLD_DEFAULT, #name))
#endif

static inline bool is_aligned(const void *p, size_t alignment) {
    return ((uintptr_t)p & (alignment - 1)) == 0;
}

/* Fills n bytes with a pattern that depends on `seed` and the position, and the check of it. */
static inline void fill(void *block, size_t n, unsigned seed) {
    unsigned char *b = (unsigned char *)block;
    for (size_t i = 0; i < n; i++) b[i] = (unsigned char)(seed + i * 7 + (i >> 8));
}

static inline bool is_filled(const void *block, size_t n, unsigned seed) {
    const unsigned char *b = (const unsigned char *)block;
    for (size_t i = 0; i < n; i++)
        if (b[i] != (unsigned char)(seed + i * 7 + (i >> 8))) return false;
    return true;
}

static inline bool is_zero(const void *block, size_t n) {
    const unsigned char *b = (const unsigned char *)block;
    for (size_t i = 0; i < n; i++)
        if (b[i] != 0) return false;
    return true;
}

/* Whether the program runs on huddle. */
static inline bool is_on_huddle(void) {
    return FIND(huddle_version) != NULL;
}

/* Bytes of a page: the option page_size, or the system's. */
static inline size_t page_bytes(void) {
    __typeof__(huddle_option_get) *option = FIND(huddle_option_get);
    size_t page = (size_t)sysconf(_SC_PAGESIZE), wanted = 0;
    char text[20] = "";
    if (option != NULL && option("page_size", text, sizeof text)) wanted = strtoul(text, NULL, 10);
    return wanted > page ? wanted : page;
}

/* The first test of each program: that it does not test glibc by mistake. */
static void the_program_runs_on_huddle_when_it_is_meant_to(void **state) {
    (void)state;
    if (getenv("LD_PRELOAD") == NULL && !is_on_huddle()) skip();
    assert_true(is_on_huddle());
}

#define RUNS_ON_HUDDLE cmocka_unit_test(the_program_runs_on_huddle_when_it_is_meant_to)

#endif
