/* alloc.h - allocation. Read this first, then free.h.
 *
 * heap_alloc_hit is the whole hit path: one thread-local load, one table load, one pop. Everything else is a call to
 * heap_alloc_slow. Results are at multiples of 16 and, for cells whose size is a multiple of a larger power of two, at
 * multiples of that. NULL means there is no memory, or more than PTRDIFF_MAX bytes were asked for; errno is the
 * caller's (api/) to set. Any thread may call at any time. */
#ifndef HUDDLE_HEAP_ALLOC_H
#define HUDDLE_HEAP_ALLOC_H

#include "thread/heap.h"

/* heap_alloc without its hit path: sizes without a table entry, empty magazines, threads without a heap. */
void *heap_alloc_slow(size_t n);

/* The hit path: a cell from this thread's magazine, or NULL. */
static ALWAYS_INLINE void *heap_alloc_hit(size_t n) {
    if (unlikely(n > DIRECT_SIZE_MAX)) return NULL;
    struct heap *h = heap_seize();
    struct magazine *m = foldable_load(&h->by_size[(n + GRAIN_BYTES - 1) / GRAIN_BYTES]);
    struct cell_ref *e = m->top - 1;
    void *cell = e->cell;
    if (likely(cell != NULL)) { /* as it is in the entry below the oldest one */
        mark_set(e->mark, CELL_LIVE);
        m->top = e;
    }
    heap_release(h);
    return cell;
}

/* A block of at least n bytes, not zeroed. */
static ALWAYS_INLINE void *heap_alloc(size_t n) {
    void *p = heap_alloc_hit(n);
    return likely(p != NULL) ? p : heap_alloc_slow(n);
}

/* A block above CELL_MAX bytes or above that alignment; says whether it is known to read as zero. */
void *heap_alloc_large(size_t n, size_t alignment, bool *is_zero);

/* A block of at least n bytes that reads as zero. */
void *heap_alloc_zeroed(size_t n);

/* A block of at least n bytes at a multiple of the power of two `alignment`. */
void *heap_alloc_aligned(size_t n, size_t alignment);

/* Whether a block of `usable` bytes that asks for n (above 0) stays where it is: within its class, and, so that repeated small
 * changes cost nothing, down to three quarters of it. Of large blocks heap_realloc decides. */
static inline bool heap_fits(size_t usable, size_t n) {
    if (n > usable || usable > CELL_MAX) return false;
    return n > usable - usable / 4 || size_class_bytes(size_class_of(n)) == usable;
}

/* The block p with at least n bytes, its contents kept as far as both sizes go; moved if need be. n is above 0. NULL
 * when there is no memory: p is unchanged then. Stops the program when p is not a block. */
void *heap_realloc(void *p, size_t n);

#endif
