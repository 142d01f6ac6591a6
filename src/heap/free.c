#include "heap/free.h"

#include "os/fail.h"
#include "span/large.h"
#include "thread/outgoing.h"

/* Stops the program: p lies in a run, or in what was one, but is not a live cell of it. */
_Noreturn COLD static void fail_cell(const void *p, const struct descriptor *d) {
    size_t bytes = descriptor_cell_bytes(d);
    size_t offset = (uint32_t)(uintptr_t)p - d->start;
    bool is_run = owner_is_lane(d->owner);
    if (is_run && offset / bytes >= run_of(d)->fresh) fail_foreign_free(p);
    if (is_run && offset / bytes < run_of(d)->first) fail_foreign_free(p);
    if (offset % bytes != 0) fail_invalid_free(p, offset % bytes, bytes, "cell");
    fail_double_free(p, bytes, "cell");
}

/* Stops the program: p is not in a run of any lane. Only the names of errors are found here, without locks but for the list of
 * large blocks. */
_Noreturn COLD static void fail_elsewhere(const void *p, const struct descriptor *d) {
    struct large l;
    switch (d->owner) {
    case OWNER_ZONE: fail_zone_free(p);
    case OWNER_WAS_RUN: fail_cell(p, d);
    case OWNER_WAS_LARGE:
        if (d->magazine == 1 && (uintptr_t)p % UNIT_BYTES == 0) fail_double_free(p, (size_t)d->start * KIB, "block");
        break;
    default: break;
    }
    if (large_find(p, &l)) fail_invalid_free(p, (size_t)((const char *)p - l.base), l.bytes, "block");
    fail_foreign_free(p);
}

/* Whether p is the start of a cell; where its byte is. */
static bool find_cell(const void *p, const struct descriptor *d, struct cell_ref *ref) {
    size_t bytes = descriptor_cell_bytes(d), offset = (uint32_t)(uintptr_t)p - d->start;
    *ref = (struct cell_ref){(void *)(uintptr_t)p, d->cells + offset / bytes};
    return offset % bytes == 0 && offset / bytes < run_of(d)->cells;
}

static void free_cell(struct heap *h, void *p, const struct descriptor *d) {
    struct cell_ref ref;
    if (!find_cell(p, d, &ref) || cell_state(ref.byte) != CELL_LIVE) fail_cell(p, d);
    if (d->owner != h->owner) {
        outgoing_add(h, d->owner - 1u, p, run_of(d)->cell_bytes);
        return;
    }
    struct magazine *m = &h->magazines[run_of(d)->class];
    relaxed_store(ref.byte, CELL_CACHED);
    if (m->top != m->limit) *m->top++ = ref;
    else heap_push_slow(h, m, ref);
}

NOINLINE void heap_free_slow(void *p) {
    const struct descriptor *d = page_map_find(p);
    if (likely(owner_is_lane(d->owner))) {
        struct heap *h = heap_enter(heap_current);
        if (h == NULL) {
            /* No memory for a heap: the cell goes straight back to its run. */
            struct message m = {.count = 1};
            m.cell[0] = p;
            lane_drain_message(lane_get(d->owner - 1u), &m);
            return;
        }
        free_cell(h, p, d);
        heap_leave(h);
    } else if (p == NULL) {
        return;
    } else if (d->owner == OWNER_LARGE) {
        large_free(p);
    } else {
        fail_elsewhere(p, d);
    }
}
