#include "heap/free.h"

#include "base/options.h"
#include "heap/nested.h"
#include "os/fail.h"
#include "span/large.h"
#include "thread/outgoing.h"
#include "zone/zone.h"

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

/* Stops the program: p is not in a run of any lane. Only the names of errors are found here, without locks but for the
 * list of large blocks. */
_Noreturn COLD static void fail_elsewhere(const void *p, const struct descriptor *d, bool is_nested) {
    struct large l;
    switch (d->owner) {
    case OWNER_ZONE: fail_zone_free(p, zone_name_of(p));
    case OWNER_WAS_RUN: fail_cell(p, d);
    case OWNER_WAS_LARGE:
        if (d->magazine == 1 && (uintptr_t)p % UNIT_BYTES == 0) fail_double_free(p, (size_t)d->start * KIB, "block");
        break;
    default: break;
    }
    if (!is_nested && large_find(p, &l)) fail_invalid_free(p, (size_t)((const char *)p - l.base), l.bytes, "block");
    fail_foreign_free(p);
}

/* Whether p lies in no memory that huddle ever used. */
static bool is_foreign(const void *p, const struct descriptor *d, bool is_nested) {
    struct large l;
    return d->owner == OWNER_NONE && (is_nested || !large_find(p, &l));
}

/* p is not in memory that huddle uses: libc's block, or an error. The option foreign says what to do. */
static void free_elsewhere(void *p, const struct descriptor *d, bool is_nested) {
    if (relaxed_load(&options.foreign) != FOREIGN_ABORT && is_foreign(p, d, is_nested)) {
        if (heap_take_foreign != NULL && heap_take_foreign(p)) return;
        if (relaxed_load(&options.foreign) == FOREIGN_IGNORE) return;
    }
    fail_elsewhere(p, d, is_nested);
}

/* The live cell that starts at p; stops the program when there is none. */
static struct cell_ref live_cell(void *p, const struct descriptor *d) {
    size_t bytes = descriptor_cell_bytes(d), offset = (uint32_t)(uintptr_t)p - d->start;
    struct cell_ref ref = {p, mark_at(d->cells, offset / bytes)};
    if (offset % bytes != 0 || offset / bytes >= run_of(d)->cells || !mark_is(ref.mark, CELL_LIVE)) fail_cell(p, d);
    return ref;
}

static void free_cell(struct heap *h, void *p, const struct descriptor *d) {
    struct cell_ref ref = live_cell(p, d);
    if (h == NULL) {
        /* No memory for a heap: the cell goes straight back to its run. */
        bin_give_back(&lane_get(d->owner - 1u)->bins[run_of(d)->class], &ref, 1, CELL_LIVE);
        return;
    }
    if (d->owner != h->owner) {
        mark_set(ref.mark, CELL_RETURNING);
        outgoing_add(h, d->owner - 1u, p, run_of(d)->cell_bytes);
        return;
    }
    struct magazine *m = &h->magazines[run_of(d)->class];
    mark_set(ref.mark, CELL_CACHED);
    if (m->top != m->limit) *m->top++ = ref;
    else heap_push_slow(h, m, ref);
}

static bool is_nested_memory(const struct descriptor *d) {
    return d->owner == OWNER_NESTED || d->owner == OWNER_NESTED_LARGE;
}

/* From a nested call: the owner does the rest. */
static void free_later(void *p, const struct descriptor *d, bool is_cell) {
    if (is_cell) mark_set(live_cell(p, d).mark, CELL_RETURNING);
    nested_free_later(p, d);
}

/* The usual free for another lane: a live cell whose run the index knows, and a message being filled that it does not
 * complete. As in heap_free, with the open heap seized (the three special ones, and closed ones, have that key). */
static ALWAYS_INLINE bool free_into_message(void *p) {
    uintptr_t unit = (uintptr_t)p >> UNIT_SHIFT;
    size_t slot = index_slot(unit);
    struct heap *h = heap_seize();
    uint64_t key = acquire_load(&run_index.key[slot]);
    bool is_done = false;
    if (!heap_is_closed(h) && h->out != NULL && (key ^ unit) << (64 - INDEX_OWNER_SHIFT) == 0) {
        unsigned owner = (unsigned)(key >> INDEX_OWNER_SHIFT);
        struct message *m = owner_is_lane(owner) && owner != h->owner ? h->out[owner - 1] : NULL;
        unsigned class = run_index.place[slot].magazine >> MAGAZINE_SHIFT;
        uint64_t reciprocal = h->magazines[class].reciprocal;
        uint64_t product = (uint64_t)((uint32_t)(uintptr_t)p - run_index.place[slot].start) * reciprocal;
        mark_t mark = mark_at(run_index.cells[slot], product >> 32);
        if (m != NULL && m->count + 1 < MESSAGE_CELLS && (uint32_t)product < reciprocal && mark_is(mark, CELL_LIVE)) {
            mark_set(mark, CELL_RETURNING);
            m->cell[m->count++] = p;
            m->bytes += size_class_bytes_at_most(class);
            is_done = true;
        }
    }
    heap_release(h);
    return is_done;
}

/* Of its own, as it saves registers that free_into_message does not need. */
static NOINLINE void free_any(void *p) {
    const struct descriptor *d = page_map_find(p);
    bool is_cell = owner_is_lane(acquire_load(&d->owner)); /* before its cells are looked at, also for a wrong p */
    struct heap_use use = heap_enter();
    if (likely(is_cell && !use.is_nested)) free_cell(use.heap, p, d);
    else if (is_nested_memory(d)) nested_free(p);
    else if (!is_cell && d->owner != OWNER_LARGE) free_elsewhere(p, d, use.is_nested);
    else if (use.is_nested) free_later(p, d, is_cell);
    else large_free(p);
    heap_leave(use);
}

NOINLINE void heap_free_slow(void *p) {
    if (p == NULL || free_into_message(p)) return;
    free_any(p);
}
