#include "run/run.h"

#include "os/fail.h"
#include "run/index.h"
#include "span/meta.h"
#include "span/span.h"

enum {
    SINGLE_UNIT_CELL_MAX = 8192, /* larger cells waste less of two units */
    STAGGER_BYTES = 256,         /* from run to run of a class */
    STAGGER_CYCLE = 16,
};

size_t run_units(unsigned class) {
    return size_class_bytes(class) <= SINGLE_UNIT_CELL_MAX ? 1 : 2;
}

size_t run_cells(unsigned class) {
    return run_units(class) * UNIT_BYTES / size_class_bytes(class);
}

static size_t record_bytes(size_t cells) {
    return sizeof(struct run) + cells + (cells + GROUP_CELLS - 1) / GROUP_CELLS;
}

static uint8_t *heads_of(struct run *r) {
    return run_bytes(r) + r->cells;
}

/* How many cells to leave out at the front: a few lines that depend on the class, and more with every run. A class's
 * first run loses less than 256 bytes, which small programs would notice. */
static size_t stagger_cells(unsigned class, uint32_t serial) {
    size_t bytes = class * 64 % STAGGER_BYTES + serial % STAGGER_CYCLE * STAGGER_BYTES;
    return bytes / size_class_bytes(class);
}

struct run *run_create(unsigned class, unsigned lane, uint32_t serial) {
    size_t cells = run_cells(class), units = run_units(class);
    struct run *r = meta_alloc(record_bytes(cells));
    if (r == NULL) return NULL;
    bool is_zero;
    r->base = span_alloc(units, UNIT_BYTES, &is_zero);
    if (r->base == NULL) {
        meta_free(r, record_bytes(cells));
        return NULL;
    }
    r->cell_bytes = (uint32_t)size_class_bytes(class);
    r->cells = (uint16_t)cells;
    r->class = (uint8_t)class;
    r->lane = (uint8_t)lane;
    r->units = (uint8_t)units;
    r->fresh = r->first = (uint16_t)stagger_cells(class, serial);
    for (size_t i = 0; i < units; i++) {
        struct descriptor *d = page_map_find(r->base + i * UNIT_BYTES);
        d->cells = run_bytes(r);
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
    meta_free(r, record_bytes(r->cells));
    span_free(base, units);
}

static struct cell_ref ref_of(struct run *r, size_t index) {
    return (struct cell_ref){r->base + index * r->cell_bytes, run_bytes(r) + index};
}

size_t run_lease_locked(struct run *r, struct cell_ref *out, size_t n) {
    size_t done = 0;
    while (done < n && r->groups != 0) {
        unsigned group = (unsigned)__builtin_ctzl(r->groups);
        uint8_t *bytes = run_bytes(r) + group * GROUP_CELLS, *head = &heads_of(r)[group];
        unsigned at = *head, link;
        for (;;) {
            ASSERT((bytes[at] & CELL_KIND) == CELL_FREE);
            link = bytes[at] & CELL_LINK;
            relaxed_store(&bytes[at], CELL_CACHED);
            out[done++] = ref_of(r, group * GROUP_CELLS + at);
            if (link == at) {
                r->groups &= r->groups - 1;
                break;
            }
            at = link;
            if (done == n) {
                *head = (uint8_t)at;
                break;
            }
        }
    }
    for (; done < n && r->fresh < r->cells; r->fresh++) {
        out[done] = ref_of(r, r->fresh);
        relaxed_store(out[done++].byte, CELL_CACHED);
    }
    r->used += (uint32_t)done;
    return done;
}

void run_give_back_locked(struct run *r, uint8_t *byte) {
    size_t index = (size_t)(byte - run_bytes(r));
    unsigned group = (unsigned)(index / GROUP_CELLS), at = (unsigned)(index % GROUP_CELLS);
    uint64_t group_bit = (uint64_t)1 << group;
    uint8_t *head = &heads_of(r)[group];
    ASSERT(index < r->cells && *byte == CELL_CACHED && r->used != 0);
    relaxed_store(byte, (uint8_t)(CELL_FREE | (r->groups & group_bit ? *head : at)));
    *head = (uint8_t)at;
    r->groups |= group_bit;
    r->used--;
}

struct run_count run_tally(struct run *r) {
    struct run_count c = {0, 0, 0, 0, 0};
    const uint8_t *bytes = run_bytes(r);
    for (size_t i = r->first; i < r->cells; i++) {
        uint8_t state = cell_state(&bytes[i]);
        c.returning += state == CELL_RETURNING;
        switch (state & CELL_KIND) {
        case CELL_LIVE: c.live++; break;
        case CELL_CACHED: c.cached++; break;
        case CELL_FREE: c.free++; break;
        default: c.fresh++; break;
        }
    }
    return c;
}

void run_check_locked(struct run *r) {
    const uint8_t *bytes = run_bytes(r);
    size_t listed = 0;
    for (unsigned g = 0; g * GROUP_CELLS < r->cells; g++) {
        if ((r->groups >> g & 1) == 0) continue;
        unsigned at = heads_of(r)[g], link;
        for (size_t steps = 0;; at = link, steps++) {
            size_t index = g * GROUP_CELLS + at;
            REQUIRE(steps < GROUP_CELLS && index >= r->first && index < r->fresh);
            REQUIRE((bytes[index] & CELL_KIND) == CELL_FREE);
            link = bytes[index] & CELL_LINK;
            listed++;
            if (link == at) break;
        }
    }
    struct run_count c = run_tally(r);
    REQUIRE(c.free == listed && c.fresh == (size_t)(r->cells - r->fresh));
    REQUIRE(r->used + c.free + c.fresh == (size_t)(r->cells - r->first)); /* R3; used = live + cached, which others may change */
    REQUIRE(c.live + c.cached == r->used);
}
