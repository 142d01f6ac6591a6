/* foreign.h - addresses that are no blocks of huddle, of every sort. */
#ifndef TESTS_ABORT_FOREIGN_H
#define TESTS_ABORT_FOREIGN_H

#include "faults.h"

#include <sys/mman.h>

extern char **environ;
static char in_data[64];

/* The address of that kind; allocates. */
static inline uintptr_t address_of(const char *kind) {
    static char on_stack_or_not;
    char here = on_stack_or_not;
    uintptr_t block = (uintptr_t)allocate(48);
    char *mapped = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) _exit(4);
    if (strcmp(kind, "stack") == 0) return (uintptr_t)hidden(&here) & ~(uintptr_t)15;
    if (strcmp(kind, "global") == 0) return (uintptr_t)in_data;
    if (strcmp(kind, "constant") == 0) return (uintptr_t) "a constant";
    if (strcmp(kind, "code") == 0) return (uintptr_t)address_of;
    if (strcmp(kind, "mapped") == 0) return (uintptr_t)mapped;
    if (strcmp(kind, "mapped_inside") == 0) return (uintptr_t)mapped + 4096 + 16;
    if (strcmp(kind, "unmapped") == 0) return munmap(mapped, 1 << 20) == 0 ? (uintptr_t)mapped : 0;
    if (strcmp(kind, "low") == 0) return 0x10000;
    if (strcmp(kind, "high") == 0) return 0x123456789ab0;
    if (strcmp(kind, "0x10") == 0) return 0x10;
    if (strcmp(kind, "minus_1") == 0) return UINTPTR_MAX;
    if (strcmp(kind, "vsyscall") == 0) return 0xffffffffff600000;
    if (strcmp(kind, "kernel") == 0) return 0xffff888000001000;
    if (strcmp(kind, "noncanonical") == 0) return block | (uintptr_t)1 << 48;
    if (strcmp(kind, "tagged") == 0) return block | (uintptr_t)0x5a << 56;
    if (strcmp(kind, "fresh") == 0) return block + 48 * 600; /* a cell of the run that nobody has had yet */
    if (strcmp(kind, "environment") == 0) return (uintptr_t)environ[0];
    _exit(5);
}

/* A block of libc's own malloc. */
static inline void *allocate_by_libc(size_t n) {
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    void *(*libc_malloc)(size_t) = libc == NULL ? NULL : (void *(*)(size_t))dlsym(libc, "malloc");
    void *p = libc_malloc == NULL ? NULL : libc_malloc(n);
    if (p == NULL) _exit(4);
    return p;
}

#endif
