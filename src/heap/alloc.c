#include "heap/alloc.h"

#include "base/copy.h"
#include "heap/nested.h"
#include "span/large.h"

/* A cell of the class: from the magazine if it has one (sizes without a table entry come here too), else refilled. */
static void *alloc_cell(struct heap *h, unsigned class) {
    struct magazine *m = &h->magazines[class];
    struct cell_ref *e = m->top - 1;
    if (e->cell == NULL) return heap_refill(h, m);
    mark_set(e->mark, CELL_LIVE);
    m->top = e;
    return e->cell;
}

NOINLINE void *heap_alloc_slow(size_t n) {
    bool is_zero;
    if (n > CELL_MAX) return heap_alloc_large(n, UNIT_BYTES, &is_zero);
    struct heap_use use = heap_enter();
    void *p = NULL;
    if (likely(use.heap != NULL)) p = alloc_cell(use.heap, size_class_of(n));
    else if (use.is_nested) p = nested_alloc(n, GRAIN_BYTES);
    heap_leave(use);
    return p;
}

void *heap_alloc_large(size_t n, size_t alignment, bool *is_zero) {
    struct heap_use use = heap_enter();
    void *p;
    if (use.is_nested) {
        p = nested_alloc(n, alignment);
        *is_zero = false;
    } else {
        nested_drain();
        p = large_alloc(n, alignment, is_zero);
    }
    heap_leave(use);
    return p;
}

void *heap_alloc_zeroed(size_t n) {
    bool is_zero = false;
    /* A fresh cell may lie in a span that was used before: cells are always zeroed. */
    void *p = n <= CELL_MAX ? heap_alloc(n) : heap_alloc_large(n, UNIT_BYTES, &is_zero);
    if (p != NULL && !is_zero) zero_block(p, round_up(n, GRAIN_BYTES));
    return p;
}
