#include "heap/query.h"

#include "heap/free.h"
#include "heap/nested.h"
#include "span/large.h"

size_t heap_usable(const void *p) {
    const struct descriptor *d = page_map_find(p);
    if (d->owner == OWNER_LARGE) return large_usable(p);
    if (d->owner == OWNER_NESTED || d->owner == OWNER_NESTED_LARGE) return nested_usable(p);
    if (!owner_is_lane(d->owner)) return 0;
    size_t bytes = descriptor_cell_bytes(d), offset = (uint32_t)(uintptr_t)p - d->start;
    bool is_live = offset % bytes == 0 && offset / bytes < run_of(d)->cells && mark_is(mark_at(d->cells, offset / bytes), CELL_LIVE);
    return is_live ? bytes : 0;
}

size_t heap_usable_or_fail(void *p) {
    size_t bytes = heap_usable(p);
    if (unlikely(bytes == 0)) heap_free_slow(p);
    return bytes;
}

size_t heap_good_size(size_t n) {
    if (n <= CELL_MAX) return size_class_bytes(size_class_of(n));
    return n > PTRDIFF_MAX ? 0 : large_good_size(n);
}

bool heap_owns(const void *p) {
    if (page_map_find(p)->owner != OWNER_NONE) return true;
    struct large l;
    struct heap_use use = heap_enter();
    bool is_inside = !use.is_nested && large_find(p, &l);
    heap_leave(use);
    return is_inside;
}
