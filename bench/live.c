/* live.c - a library to preload beside glibc's malloc, that counts what a program has allocated: the most bytes that
 * were live at once, by malloc_usable_size, are appended as a line to the file that HUDDLE_BENCH_LIVE names when the
 * process exits. Memory figures are told relative to them. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* glibc's own names of the functions that are replaced here. */
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t n);
extern void *__libc_memalign(size_t alignment, size_t n);
extern void __libc_free(void *block);

static size_t live, most; /* atomic, relaxed: only sums are wanted */

static void add(size_t bytes) {
    size_t now = __atomic_add_fetch(&live, bytes, __ATOMIC_RELAXED);
    size_t before = __atomic_load_n(&most, __ATOMIC_RELAXED);
    while (now > before && (ptrdiff_t)now > 0 &&
           !__atomic_compare_exchange_n(&most, &before, now, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

static void *counted(void *block) {
    if (block != NULL) add(malloc_usable_size(block));
    return block;
}

void *malloc(size_t n) {
    return counted(__libc_malloc(n));
}

void *calloc(size_t count, size_t size) {
    return counted(__libc_calloc(count, size));
}

void *realloc(void *block, size_t n) {
    size_t before = block != NULL ? malloc_usable_size(block) : 0;
    void *moved = __libc_realloc(block, n);
    if (moved != NULL || n == 0) __atomic_sub_fetch(&live, before, __ATOMIC_RELAXED);
    return counted(moved);
}

void *memalign(size_t alignment, size_t n) {
    return counted(__libc_memalign(alignment, n));
}

void *aligned_alloc(size_t alignment, size_t n) {
    return memalign(alignment, n);
}

int posix_memalign(void **block, size_t alignment, size_t n) {
    void *p = memalign(alignment, n);
    if (p == NULL) return ENOMEM;
    *block = p;
    return 0;
}

void free(void *block) {
    if (block != NULL) __atomic_sub_fetch(&live, malloc_usable_size(block), __ATOMIC_RELAXED);
    __libc_free(block);
}

static __attribute__((destructor)) void report(void) {
    const char *file = getenv("HUDDLE_BENCH_LIVE");
    int fd = file != NULL ? open(file, O_WRONLY | O_APPEND | O_CREAT, 0600) : -1;
    if (fd < 0) return;
    char line[32];
    int n = snprintf(line, sizeof line, "%zu\n", most);
    if (write(fd, line, (size_t)n) != n) perror("live");
    close(fd);
}
