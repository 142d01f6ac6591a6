#include "heap/alloc.h"

#include "base/copy.h"
#include "span/large.h"

/* A cell of the class: from the magazine if there is one (sizes without a table entry come here too), else refilled. */
static void *alloc_cell(unsigned class) {
    struct heap *h = heap_enter(heap_current);
    if (h == NULL) return NULL;
    struct magazine *m = &h->magazines[class];
    struct cell_ref *e = m->top - 1;
    void *p = e->cell;
    if (likely(p != NULL)) {
        relaxed_store(e->byte, CELL_LIVE);
        m->top = e;
    } else {
        p = heap_refill(h, m);
    }
    heap_leave(h);
    return p;
}

void *heap_alloc_large(size_t n, size_t alignment, bool *is_zero) {
    /* Large blocks need no heap, but what is set up with the first one. */
    if (unlikely(heap_current == &heap_empty)) heap_leave(heap_enter(&heap_empty));
    return large_alloc(n, alignment, is_zero);
}

NOINLINE void *heap_alloc_slow(size_t n) {
    if (likely(n <= CELL_MAX)) return alloc_cell(size_class_of(n));
    bool is_zero;
    return heap_alloc_large(n, UNIT_BYTES, &is_zero);
}

void *heap_alloc_zeroed(size_t n) {
    if (n <= CELL_MAX) {
        /* Also a fresh cell may lie in a span that was used before. */
        void *p = heap_alloc(n);
        if (p != NULL) zero_block(p, round_up(n, GRAIN_BYTES));
        return p;
    }
    bool is_zero;
    void *p = heap_alloc_large(n, UNIT_BYTES, &is_zero);
    if (p != NULL && !is_zero) zero_block(p, round_up(n, GRAIN_BYTES));
    return p;
}
