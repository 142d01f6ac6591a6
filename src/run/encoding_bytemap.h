/* encoding_bytemap.h - one byte for each cell, with all there is to know of it.
 *
 *   | a byte for each cell, and one more | a head byte for each group of 64 cells |
 *
 *   FRESH       never handed out; its memory is not touched either
 *   FREE|link   on the free list of its group; link is the index in the group of the next one, or its own: the last
 *   CACHED, RETURNING, LIVE
 *
 * A group's list begins at its head byte, when the group's bit in `groups` is set: indices of 6 bits inside the run, out
 * of line. No byte is written by an atomic read-modify-write, and a new run writes none. */
enum { ENCODING_CELLS_MAX = RUN_CELLS_MAX };
#define ENCODING_NAME "bytemap"

enum cell_state {
    CELL_CACHED = 0x80,
    CELL_RETURNING = 0x81,
    CELL_LIVE = 0xc0,
};

enum {
    BYTEMAP_FRESH = 0x00,
    BYTEMAP_FREE = 0x40, /* | link */
    BYTEMAP_KIND = 0xc0,
    BYTEMAP_LINK = 0x3f,
    BYTEMAP_GROUP = 64,
};

_Static_assert((int)RUN_CELLS_MAX <= 64 * BYTEMAP_GROUP, "a bit for each group");

typedef uint8_t *mark_t;

static ALWAYS_INLINE mark_t mark_at(uint8_t *marks, size_t index) {
    return marks + index;
}

#include "run/cell_ref.h"

static inline size_t mark_index(struct run *r, mark_t mark) {
    return (size_t)(mark - run_marks(r));
}

static ALWAYS_INLINE bool mark_is(mark_t mark, enum cell_state state) {
    return foldable_load(mark) == state;
}

static ALWAYS_INLINE void mark_set(mark_t mark, enum cell_state state) {
    relaxed_store(mark, (uint8_t)state);
}

/* A free cell's mark says so. */
static inline bool encoding_is_free_locked(struct run *r, mark_t mark) {
    (void)r;
    (void)mark;
    return false;
}

static inline bool encoding_is_listed_locked(struct run *r, size_t index) {
    return (relaxed_load(run_marks(r) + index) & BYTEMAP_KIND) == BYTEMAP_FREE;
}

static inline size_t encoding_bytes(size_t cells) {
    return cells + 1 + (cells + BYTEMAP_GROUP - 1) / BYTEMAP_GROUP;
}

static inline void encoding_init(struct run *r) {
    (void)r;
}

static inline uint8_t *bytemap_heads(struct run *r) {
    return run_marks(r) + r->cells + 1;
}

static inline size_t encoding_lease_locked(struct run *r, struct cell_ref *out, size_t n) {
    size_t done = 0;
    while (done < n && r->groups != 0) {
        unsigned group = (unsigned)__builtin_ctzl(r->groups);
        uint8_t *bytes = run_marks(r) + group * BYTEMAP_GROUP, *head = &bytemap_heads(r)[group];
        unsigned at = *head, link;
        for (;;) {
            ASSERT((bytes[at] & BYTEMAP_KIND) == BYTEMAP_FREE);
            link = bytes[at] & BYTEMAP_LINK;
            relaxed_store(&bytes[at], CELL_CACHED);
            out[done++] = run_ref(r, group * BYTEMAP_GROUP + at);
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
    return done;
}

static inline void encoding_give_back_locked(struct run *r, size_t index) {
    unsigned group = (unsigned)(index / BYTEMAP_GROUP), at = (unsigned)(index % BYTEMAP_GROUP);
    uint64_t group_bit = (uint64_t)1 << group;
    uint8_t *head = &bytemap_heads(r)[group];
    relaxed_store(run_marks(r) + index, (uint8_t)(BYTEMAP_FREE | (r->groups & group_bit ? *head : at)));
    *head = (uint8_t)at;
    r->groups |= group_bit;
}

static inline size_t encoding_walk_locked(struct run *r) {
    const uint8_t *bytes = run_marks(r);
    size_t listed = 0;
    for (unsigned g = 0; g * BYTEMAP_GROUP < r->cells; g++) {
        if ((r->groups >> g & 1) == 0) continue;
        unsigned at = bytemap_heads(r)[g], link;
        for (size_t steps = 0;; at = link, steps++) {
            size_t index = g * BYTEMAP_GROUP + at;
            REQUIRE(steps < BYTEMAP_GROUP && index >= r->first && index < r->fresh);
            REQUIRE((bytes[index] & BYTEMAP_KIND) == BYTEMAP_FREE);
            link = bytes[index] & BYTEMAP_LINK;
            listed++;
            if (link == at) break;
        }
    }
    return listed;
}

static inline struct run_count encoding_count(struct run *r) {
    struct run_count c = {0, 0, 0, 0, 0};
    const uint8_t *bytes = run_marks(r);
    for (size_t i = r->first; i < r->fresh; i++) {
        uint8_t state = relaxed_load(&bytes[i]);
        c.returning += state == CELL_RETURNING;
        switch (state & BYTEMAP_KIND) {
        case CELL_LIVE: c.live++; break;
        case CELL_CACHED: c.cached++; break;
        case BYTEMAP_FREE: c.free++; break;
        default: REQUIRE(false);
        }
    }
    return c;
}
