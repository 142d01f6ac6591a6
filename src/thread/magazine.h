/* magazine.h - a thread's stack of free cells of one class.
 *
 *   base --> { NULL }        so that a pop from an empty magazine finds NULL, and no bounds are compared
 *            { cell, byte }  oldest
 *            ...
 *   top ---> (free entries)
 *   limit -> end of the entries
 *
 * M1  base <= top - 1, top <= limit, and base[0].cell == NULL
 * M2  the bytes of all cells in it are CACHED
 *
 * A magazine that was never used shares one static entry and has no room (top == limit). Its capacity starts small and
 * doubles at every refill and flush until its bound is reached (128 KiB of cells, for cells from 512 bytes 32 KiB), or
 * the thread's, or the process's. Owned by one thread. */
#ifndef HUDDLE_THREAD_MAGAZINE_H
#define HUDDLE_THREAD_MAGAZINE_H

#include "run/run.h"

struct magazine {
    struct cell_ref *top, *limit, *base;
    uint32_t reciprocal; /* of the cell size: run_reciprocal */
    uint16_t capacity;
    uint8_t class;
};

_Static_assert(sizeof(struct magazine) == 1 << MAGAZINE_SHIFT, "descriptors hold offsets of magazines");

extern struct cell_ref magazine_empty_entry[1];

#define MAGAZINE_EMPTY {.top = magazine_empty_entry + 1, .limit = magazine_empty_entry + 1, .base = magazine_empty_entry}

/* The number of lanes, relaxed: the bound in total grows with it. */
extern uint32_t magazine_lanes;

void magazine_init(struct magazine *m, unsigned class);

static inline size_t magazine_count(const struct magazine *m) {
    return (size_t)(m->top - m->base) - 1;
}

/* Makes the magazine larger if its bounds allow, and the thread's, whose magazines hold *bytes when full. Keeps its
 * cells. */
void magazine_grow(struct magazine *m, size_t *bytes);

/* Gives the storage of an empty magazine back, and takes what it could hold off *bytes. */
void magazine_release(struct magazine *m, size_t *bytes);

/* Bytes of all magazines in the process, full: what the bound in total is compared with. */
size_t magazine_total_bytes(void);

void magazine_check(const struct magazine *m);

#endif
