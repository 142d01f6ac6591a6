/* large.h - blocks above the largest size class: a span each, or, above 8 MiB, a mapping of their own.
 *
 *   bytes     what the program may use: the request rounded up to pages; constant until realloc
 *   units     what the block holds of its region (not direct): bytes rounded up to units, or more where realloc expects
 *             growth; the rest is never touched
 *   map       the mapping of a direct block, with the same base
 *
 * Where address space is limited and running short, smaller blocks are mappings of their own too, without the room up
 * to the next unit.
 *
 * All units of a span lead to its record through the page map; of a direct block only the first one does, and an
 * address inside is found by walking the list (only to name an error). Freed direct mappings are kept for one purge
 * tick, as long as no other mapping has to be made meanwhile. */
#ifndef HUDDLE_SPAN_LARGE_H
#define HUDDLE_SPAN_LARGE_H

#include "base/base.h"
#include "span/mapping.h"
#include "span/page_map.h"

struct large {
    char *base;
    size_t bytes;
    size_t units; /* 0: direct */
    struct mapping map;
    struct large *next, *previous; /* of all live ones, or of the freed direct ones that are kept */
    bool is_aged;                  /* kept since before the last tick */
};

enum {
    DIRECT_MIN = 8 << 20,        /* blocks larger than this are mappings of their own, */
    DIRECT_GROWN_MIN = 256 << 10, /* and those larger than this that realloc could not lengthen in place */
};

/* A block of n bytes (above 0) at a multiple of `alignment`, or NULL. Says whether it is known to read as zero. */
void *large_alloc(size_t n, size_t alignment, bool *is_zero);

/* Frees the block at p, whose descriptor says OWNER_LARGE; stops the program when p is not its start. */
void large_free(void *p);

/* Gives the block at p n bytes (above CELL_MAX) without copying: in place, or by moving its pages. Returns where it is
 * then, or NULL when it is unchanged. */
void *large_resize(void *p, size_t n);

/* As large_alloc for a block that realloc had to move: with room to grow in place. */
void *large_alloc_growing(size_t n);

/* Usable bytes of the block that starts at p, or 0. */
size_t large_usable(const void *p);

/* Bytes that a request for n has. */
size_t large_good_size(size_t n);

/* The block that `address` lies in, copied to *found. Safe for any address; takes the span lock. */
bool large_find(const void *address, struct large *found);

/* Unmaps kept mappings: all, or those that were kept at the last tick already, and ages the rest. Returns the bytes. */
size_t large_release_cached(bool only_aged);

/* Bytes of freed direct mappings that are kept. */
size_t large_kept_bytes(void);

struct large_totals {
    size_t blocks, bytes, kept_bytes;
};

struct large_totals large_count(void);

#endif
