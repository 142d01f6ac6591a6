/* mapping.h - address space of one large block alone: aligned, grown, moved and cut without copying.
 *
 *   | head | base ... usable ... |       start .. start + bytes is mapped; the head is mostly empty
 *
 * Nothing here locks or knows of blocks: a mapping belongs to whoever holds it. A function that fails changes
 * nothing. */
#ifndef HUDDLE_SPAN_MAPPING_H
#define HUDDLE_SPAN_MAPPING_H

#include "base/base.h"

struct mapping {
    char *base;
    char *start;
    size_t bytes;
};

/* Bytes from base to the end. */
static inline size_t mapping_room(const struct mapping *m) {
    return (size_t)(m->start + m->bytes - m->base);
}

/* n bytes (whole pages) at a multiple of `alignment`, covered by the page map; usable, or only reserved. */
bool mapping_make(struct mapping *m, size_t n, size_t alignment, bool is_reserved);

/* Makes the room at least `room` bytes, in place; or by moving the pages to a place with `room_if_moved`. */
bool mapping_grow(struct mapping *m, size_t room, size_t room_if_moved);

/* Cuts off what there is beyond `room` bytes, if that is more than a quarter of it. */
void mapping_shrink(struct mapping *m, size_t room);

/* Gives it back to the system: the addresses, or, when the map table is full, at least the memory. */
void mapping_release(const struct mapping *m);

#endif
