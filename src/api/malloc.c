/* malloc.c - the C interface: C11, C23, POSIX 2024, and glibc's manual for the rest. The hit paths are those of
 * heap/alloc.h and heap/free.h. */
#include <stddef.h>

#include "api/api.h"
#include "api/foreign.h"
#include "heap/alloc.h"
#include "heap/free.h"
#include "heap/query.h"
#include "os/memory.h"

EXPORT void *malloc(size_t n);
EXPORT void free(void *p);
EXPORT void *calloc(size_t count, size_t size);
EXPORT void *realloc(void *p, size_t n);
EXPORT void *reallocarray(void *p, size_t count, size_t size);
EXPORT void *aligned_alloc(size_t alignment, size_t n);
EXPORT void *memalign(size_t alignment, size_t n);
EXPORT int posix_memalign(void **out, size_t alignment, size_t n);
EXPORT void *valloc(size_t n);
EXPORT void *pvalloc(size_t n);
EXPORT size_t malloc_usable_size(void *p);

static NOINLINE void *malloc_miss(size_t n) {
    void *p = heap_alloc_slow(n);
    return likely(p != NULL) ? p : api_no_memory();
}

void *malloc(size_t n) {
    void *p = heap_alloc_hit(n);
    return likely(p != NULL) ? p : malloc_miss(n);
}

void free(void *p) {
    heap_free(p);
}

/* count * size, or PTRDIFF_MAX + 1, which no block can have. */
static size_t product(size_t count, size_t size) {
    size_t n;
    return __builtin_mul_overflow(count, size, &n) ? (size_t)PTRDIFF_MAX + 1 : n;
}

void *calloc(size_t count, size_t size) {
    void *p = heap_alloc_zeroed(product(count, size));
    return likely(p != NULL) ? p : api_no_memory();
}

/* As glibc: of size 0 a block is freed, and there is no new one. (C23 leaves it undefined.) */
void *realloc(void *p, size_t n) {
    if (p == NULL) return malloc(n);
    if (n == 0) {
        heap_free(p);
        return NULL;
    }
    size_t usable = heap_usable(p);
    if (likely(heap_fits(usable, n))) return p;
    void *result;
    if (unlikely(usable == 0) && foreign_realloc(p, n, &result)) return result;
    p = heap_realloc(p, n);
    return likely(p != NULL) ? p : api_no_memory();
}

void *reallocarray(void *p, size_t count, size_t size) {
    return realloc(p, product(count, size));
}

static void *alloc_aligned(size_t alignment, size_t n) {
    void *p = heap_alloc_aligned(n, alignment);
    return likely(p != NULL) ? p : api_no_memory();
}

void *aligned_alloc(size_t alignment, size_t n) {
    if (is_power_of_two(alignment)) return alloc_aligned(alignment, n);
    errno = EINVAL;
    return NULL;
}

/* As glibc: an alignment that is no power of two is rounded up to one. */
void *memalign(size_t alignment, size_t n) {
    if (alignment <= GRAIN_BYTES) return malloc(n);
    if (alignment > (size_t)1 << 63) {
        errno = EINVAL;
        return NULL;
    }
    if (!is_power_of_two(alignment)) alignment = (size_t)2 << log2_floor(alignment);
    return alloc_aligned(alignment, n);
}

int posix_memalign(void **out, size_t alignment, size_t n) {
    if (!is_power_of_two(alignment) || alignment % sizeof(void *) != 0) return EINVAL;
    void *p = heap_alloc_aligned(n, alignment);
    if (p == NULL) return ENOMEM;
    *out = p;
    return 0;
}

void *valloc(size_t n) {
    return alloc_aligned(os_page_bytes, n);
}

void *pvalloc(size_t n) {
    size_t bytes = round_up(n, os_page_bytes);
    return bytes < n ? api_no_memory() : alloc_aligned(os_page_bytes, bytes);
}

size_t malloc_usable_size(void *p) {
    size_t bytes = heap_usable(p);
    if (unlikely(bytes == 0) && p != NULL) foreign_usable(p, &bytes);
    return bytes;
}

/* C23. The size and alignment are the caller's word; the page map knows better. */
EXPORT void free_sized(void *p, size_t n);
EXPORT void free_aligned_sized(void *p, size_t alignment, size_t n);

void free_sized(void *p, size_t n) {
    (void)n;
    heap_free(p);
}

void free_aligned_sized(void *p, size_t alignment, size_t n) {
    (void)alignment;
    (void)n;
    heap_free(p);
}

/* Names that old programs, and libraries that wrap malloc, use. */
EXPORT void cfree(void *p);
EXPORT void *__libc_malloc(size_t n);
EXPORT void __libc_free(void *p);
EXPORT void *__libc_calloc(size_t count, size_t size);
EXPORT void *__libc_realloc(void *p, size_t n);
EXPORT void *__libc_memalign(size_t alignment, size_t n);
EXPORT void *__libc_valloc(size_t n);
EXPORT void *__libc_pvalloc(size_t n);
EXPORT void __libc_cfree(void *p);
EXPORT int __posix_memalign(void **out, size_t alignment, size_t n);

void cfree(void *p) ALIAS(free);
void *__libc_malloc(size_t n) ALIAS(malloc);
void __libc_free(void *p) ALIAS(free);
void *__libc_calloc(size_t count, size_t size) ALIAS(calloc);
void *__libc_realloc(void *p, size_t n) ALIAS(realloc);
void *__libc_memalign(size_t alignment, size_t n) ALIAS(memalign);
void *__libc_valloc(size_t n) ALIAS(valloc);
void *__libc_pvalloc(size_t n) ALIAS(pvalloc);
void __libc_cfree(void *p) ALIAS(free);
int __posix_memalign(void **out, size_t alignment, size_t n) ALIAS(posix_memalign);
