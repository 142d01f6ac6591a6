/* faults.h - what the faulty programs share: saying what they expect, and hiding their faults from the compiler. */
#ifndef TESTS_ABORT_FAULTS_H
#define TESTS_ABORT_FAULTS_H

#include <dlfcn.h>
#include <malloc.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LARGEST_CELL 32768

/* The same pointer, of which the compiler no longer knows that it was freed. */
static inline void *hidden(void *p) {
    __asm__ volatile("" : "+r"(p));
    return p;
}

__attribute__((format(printf, 1, 2))) static inline void say(const char *format, ...) {
    char line[300];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (write(STDOUT_FILENO, line, (size_t)n) != n) _exit(2);
}

/* What a block of so many bytes is, unless it is aligned to more than the largest cell: then it is a block too. */
static inline const char *noun(size_t bytes) {
    return bytes <= LARGEST_CELL ? "cell" : "block";
}

/* The line that the next call is expected to stop the program with. `bytes` is the usable size of the block. */
static inline void expect_double_free_of(const char *what, const void *p, size_t bytes) {
    say("huddle: double free of %p (a %zu-byte %s)\n", p, bytes, what);
}

static inline void expect_double_free(const void *p, size_t bytes) {
    expect_double_free_of(noun(bytes), p, bytes);
}

static inline void expect_invalid_free_of(const char *what, const void *p, size_t offset, size_t bytes) {
    say("huddle: invalid free of %p: %zu bytes into a %zu-byte %s\n", p, offset, bytes, what);
}

static inline void expect_invalid_free(const void *p, size_t offset, size_t bytes) {
    expect_invalid_free_of(noun(bytes), p, offset, bytes);
}

static inline void expect_foreign_free(const void *p) {
    say("huddle: free of %p, which huddle did not allocate\n", p);
}

/* The end of a program that should have been stopped. */
static inline int not_stopped(void) {
    say("not stopped\n");
    return 3;
}

static inline void *allocate(size_t n) {
    void *p = malloc(n);
    if (p == NULL) _exit(4);
    return p;
}

static inline size_t size_argument(char **argv, int i) {
    return strtoul(argv[i], NULL, 10);
}

/* Frees p by the entry point of that name. Does not allocate before: a block that was freed could be handed out again.
 * */
static inline void free_by(const char *entry, void *p, size_t size) {
    void *address;
    if (strcmp(entry, "realloc") == 0) p = realloc(hidden(p), size + 1);
    else if (strcmp(entry, "realloc_smaller") == 0) p = realloc(hidden(p), size / 2 + 1);
    else if (strcmp(entry, "realloc_same") == 0) p = realloc(hidden(p), size);
    else if (strcmp(entry, "realloc_0") == 0) p = realloc(hidden(p), 0);
    else if (strcmp(entry, "reallocarray") == 0) p = reallocarray(hidden(p), 2, size);
    else if ((address = dlsym(RTLD_DEFAULT, entry)) == NULL) _exit(5);
    else if (strcmp(entry, "free_sized") == 0) ((void (*)(void *, size_t))address)(p, size);
    else if (strcmp(entry, "free_aligned_sized") == 0) ((void (*)(void *, size_t, size_t))address)(p, 16, size);
    else ((void (*)(void *))address)(hidden(p));
}

/* Blocks that the program has are stamped, so that one that is handed out a second time is noticed. */
#define STAMP ((uintptr_t)0x5ca1ab1e0ddba11u)

static inline void *allocate_stamped(size_t n) {
    uintptr_t *p = (uintptr_t *)allocate(n);
    if (*(volatile uintptr_t *)p == (STAMP ^ (uintptr_t)p)) {
        say("handed out twice: %p\n", (void *)p);
        _exit(6);
    }
    *(volatile uintptr_t *)p = STAMP ^ (uintptr_t)p;
    return p;
}

static inline void free_stamped(void *p) {
    *(volatile uintptr_t *)p = 0;
    free(p);
}

#endif
