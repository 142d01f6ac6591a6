#include "base/copy.h"
#include "heap/alloc.h"
#include "heap/free.h"
#include "heap/nested.h"
#include "heap/query.h"
#include "span/large.h"

/* A new block with the old one's contents. */
static void *move(void *p, size_t old_bytes, void *to, size_t n) {
    if (to == NULL) return NULL;
    copy_block(to, p, min_size(old_bytes, round_up(n, GRAIN_BYTES)));
    heap_free(p);
    return to;
}

static void *resize_large(void *p, size_t n) {
    struct heap_use use = heap_enter();
    void *q = use.is_nested || page_map_find(p)->owner != OWNER_LARGE ? NULL : large_resize(p, n);
    heap_leave(use);
    return q;
}

static void *alloc_growing(size_t n) {
    struct heap_use use = heap_enter();
    void *q = use.is_nested ? nested_alloc(n, GRAIN_BYTES) : large_alloc_growing(n);
    heap_leave(use);
    return q;
}

void *heap_realloc(void *p, size_t n) {
    size_t old = heap_usable_or_fail(p);
    if (heap_fits(old, n)) return p;
    if (n <= CELL_MAX) return move(p, old, heap_alloc(n), n);
    if (old > CELL_MAX) {
        void *q = resize_large(p, n);
        if (q != NULL) return q;
        q = move(p, old, alloc_growing(n), n);
        return q == NULL && n <= old ? p : q; /* a block that cannot be made smaller is still large enough */
    }
    return move(p, old, heap_alloc_slow(n), n);
}
