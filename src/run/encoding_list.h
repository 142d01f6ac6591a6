/* encoding_list.h - what encodings share in which a mark is 0 for a live cell and holds a link for a free one.
 *
 *   0                live
 *   1 .. LIST_GROUP  free, and the index in the group of the next free cell, + 1
 *   RETURNING        all ones but 2
 *   LIST_END         free, and the last of its list: all ones but 1
 *   CACHED           all ones; never handed out is the same
 *
 * A group is as many cells as links reach. Its list begins at its head, which is a link itself; the group's bit in
 * `groups` is set when it has one. The file that includes this one defines ENCODING_BITS, the reading of a mark
 * (list_link) and the change of one that is CACHED to a link or back (list_set_link), and where the heads are (list_heads: behind the
 * marks, uint16_t each). */
#include "run/cell_ref.h"

enum {
    LIST_END = CELL_CACHED - 1,
    LIST_GROUP = CELL_CACHED - 3, /* the links 1 to LIST_GROUP */
};

_Static_assert((int)RUN_CELLS_MAX <= 64 * LIST_GROUP, "a bit for each group");

static inline size_t list_groups(size_t cells) {
    return (cells + LIST_GROUP - 1) / LIST_GROUP;
}

/* A free cell's mark says so. */
static inline bool encoding_is_free_locked(struct run *r, mark_t mark) {
    (void)r;
    (void)mark;
    return false;
}

static inline bool encoding_is_listed_locked(struct run *r, size_t index) {
    unsigned link = list_link(r, index);
    return link != CELL_LIVE && link != CELL_CACHED && link != CELL_RETURNING;
}

static inline size_t encoding_lease_locked(struct run *r, struct cell_ref *out, size_t n) {
    size_t done = 0;
    while (done < n && r->groups != 0) {
        unsigned group = (unsigned)__builtin_ctzl(r->groups), first = group * LIST_GROUP;
        uint16_t *head = &list_heads(r)[group];
        unsigned link = *head;
        for (; link != LIST_END && done < n; done++) {
            unsigned at = first + link - 1;
            ASSERT(link != 0);
            out[done] = run_ref(r, at);
            link = list_link(r, at);
            list_set_link(r, at, CELL_CACHED);
        }
        *head = (uint16_t)link;
        if (link == LIST_END) r->groups &= r->groups - 1;
    }
    return done;
}

static inline void encoding_give_back_locked(struct run *r, size_t index) {
    unsigned group = (unsigned)(index / LIST_GROUP);
    uint64_t group_bit = (uint64_t)1 << group;
    uint16_t *head = &list_heads(r)[group];
    list_set_link(r, index, r->groups & group_bit ? *head : LIST_END);
    *head = (uint16_t)(index % LIST_GROUP + 1);
    r->groups |= group_bit;
}

static inline size_t encoding_walk_locked(struct run *r) {
    size_t listed = 0;
    for (unsigned g = 0; g < list_groups(r->cells); g++) {
        if ((r->groups >> g & 1) == 0) continue;
        unsigned link = list_heads(r)[g];
        REQUIRE(link != LIST_END);
        for (size_t steps = 0; link != LIST_END; steps++, listed++) {
            REQUIRE(link != 0 && link <= LIST_GROUP); /* no live or cached cell */
            size_t index = g * LIST_GROUP + link - 1;
            REQUIRE(steps < LIST_GROUP && index >= r->first && index < r->fresh);
            link = list_link(r, index);
        }
    }
    return listed;
}

/* Which cells a magazine has is not written anywhere: they are the others. */
static inline struct run_count encoding_count(struct run *r) {
    struct run_count c = {0, 0, 0, encoding_walk_locked(r), 0};
    for (size_t i = r->first; i < r->fresh; i++) {
        c.live += list_link(r, i) == CELL_LIVE;
        c.returning += list_link(r, i) == CELL_RETURNING;
    }
    c.cached = r->fresh - r->first - c.live - c.free;
    return c;
}
