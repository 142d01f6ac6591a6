#include "run/run.h"

#include "os/fail.h"
#include "run/index.h"
#include "span/meta.h"
#include "span/span.h"

enum {
    STAGGER_BYTES = 256,         /* from run to run of a class */
    STAGGER_CYCLE = 16,
    POPULATE_STEP = 16 << 10,
};

/* How many cells to leave out at the front: a few lines that depend on the class, and more that depend on the place, so
 * that a run made again in the same place is the same. The first runs of a class leave out less, since small programs
 * would notice: the very first below 256 bytes. */
static size_t stagger_cells(unsigned class, uint32_t serial, const char *base) {
    size_t step = (uintptr_t)base / UNIT_BYTES % min_size(serial + (size_t)1, STAGGER_CYCLE);
    size_t bytes = class * 64 % STAGGER_BYTES + step * STAGGER_BYTES;
    return bytes / size_class_bytes(class);
}

/* How much of a run of new memory is provided at once: up to all of it, but little beside what the class has already. */
static size_t bytes_to_populate(size_t run_bytes, uint32_t serial) {
    size_t step = max_size(POPULATE_STEP, os_page_bytes);
    return run_bytes * serial / RUN_SERIAL_MAX / step * step;
}

struct run *run_create(unsigned class, unsigned lane, uint32_t serial) {
    size_t cells = run_cells(class), units = run_units(class);
    struct run *r = meta_alloc(run_record_bytes(cells));
    if (r == NULL) return NULL;
    bool is_zero;
    r->base = span_alloc_dense(units, &is_zero);
    if (r->base == NULL) {
        meta_free(r, run_record_bytes(cells));
        return NULL;
    }
    size_t ahead = is_zero ? bytes_to_populate(units * UNIT_BYTES, serial) : 0;
    if (ahead != 0) span_populate(r->base, ahead);
    r->cell_bytes = (uint32_t)size_class_bytes(class);
    r->cells = (uint16_t)cells;
    r->class = (uint8_t)class;
    r->lane = (uint8_t)lane;
    r->units = (uint8_t)units;
    r->fresh = r->first = (uint16_t)stagger_cells(class, serial, r->base);
    encoding_init(r);
    for (size_t i = 0; i < units; i++) {
        struct descriptor *d = page_map_find(r->base + i * UNIT_BYTES);
        d->cells = run_marks(r);
        d->start = (uint32_t)(uintptr_t)r->base;
        relaxed_store(&d->magazine, (uint16_t)(class << MAGAZINE_SHIFT));
        release_store(&d->owner, (uint16_t)(lane + 1));
        index_add(r->base + i * UNIT_BYTES, d);
    }
    return r;
}

void run_retire_locked(struct run *r) {
    ASSERT(r->used == 0 && !r->is_listed);
    for (size_t i = 0; i < r->units; i++) index_remove(r->base + i * UNIT_BYTES, page_map_find(r->base + i * UNIT_BYTES));
    page_map_set_owner(r->base, r->units, OWNER_WAS_RUN);
}

void run_destroy(struct run *r) {
    char *base = r->base;
    size_t units = r->units;
    meta_free(r, run_record_bytes(r->cells));
    span_free(base, units);
}

size_t run_lease_locked(struct run *r, struct cell_ref *out, size_t n) {
    size_t done = encoding_lease_locked(r, out, n);
    for (; done < n && r->fresh < r->cells; r->fresh++) {
        out[done] = run_ref(r, r->fresh);
        mark_set(out[done++].mark, CELL_CACHED);
    }
    r->used += (uint32_t)done;
    r->age = AGE_NEW;
    return done;
}

_Static_assert(2 * UNIT_BYTES / 4096 / 2 < RUN_RANGES_MAX, "every other page");

size_t run_free_pages_locked(struct run *r, struct os_range out[RUN_RANGES_MAX]) {
    size_t n = 0;
    char *from = r->base; /* nothing is leased from here to cell i */
    for (size_t i = r->first; i <= r->fresh; i++) {
        if (i < r->fresh && encoding_is_listed_locked(r, i)) continue;
        char *to = r->base + (i < r->fresh ? i * r->cell_bytes : r->units * (size_t)UNIT_BYTES);
        char *start = (char *)round_up((uintptr_t)from, os_page_bytes), *end = (char *)((uintptr_t)to & ~(os_page_bytes - 1));
        if (start < end) out[n++] = (struct os_range){start, (size_t)(end - start)};
        from = to + r->cell_bytes;
    }
    return n;
}

size_t run_give_back_locked(struct run *r, const struct cell_ref *cells, size_t n, enum cell_state state) {
    size_t done = 0, run_bytes = r->units * (size_t)UNIT_BYTES;
    for (; done < n && (size_t)((char *)cells[done].cell - r->base) < run_bytes; done++) {
        mark_t mark = cells[done].mark;
        if (unlikely(!mark_is(mark, state) || encoding_is_free_locked(r, mark))) break;
        if (state != CELL_CACHED) mark_set(mark, CELL_CACHED);
        size_t index = mark_index(r, mark);
        ASSERT(index >= r->first && index < r->fresh && mark_is(mark, CELL_CACHED) && r->used > done);
        encoding_give_back_locked(r, index);
    }
    r->used -= (uint32_t)done;
    r->age = AGE_NEW;
    return done;
}

struct run_count run_tally(struct run *r) {
    struct run_count c = encoding_count(r);
    c.fresh = r->cells - r->fresh;
    return c;
}

void run_check_locked(struct run *r) {
    size_t listed = encoding_walk_locked(r);
    struct run_count c = run_tally(r);
    REQUIRE(c.free == listed);
    REQUIRE(r->used + c.free + c.fresh == (size_t)(r->cells - r->first)); /* R3; used = live + cached, which others may change */
    REQUIRE(c.live + c.cached == r->used);
    for (size_t i = r->fresh; i <= r->cells; i++) REQUIRE(!mark_is(mark_at(run_marks(r), i), CELL_LIVE));
}
