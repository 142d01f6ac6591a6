/* page_map.h - who owns an address: one 16-byte descriptor for every 64 KiB of address space.
 *
 *   top[address >> 31] ---> leaf[(address >> 16) & 0x7fff] = { cells, start, owner, magazine }
 *        (an offset; 0 leads to the zero leaf)
 *
 * The map answers for any 64-bit value without a fault: an address above the user's half gets the first descriptor
 * of the zero leaf, and so does all that no leaf was made for. Every pointer that a program hands in passes
 * page_map_find; this is what makes foreign and interior pointers safe to look at.
 *
 * Written by whoever holds the span in question, with `owner` last (release); read without a lock. A reader that was
 * given a live block by its owner sees the descriptor complete, because the program handed the block over with an
 * ordering of its own. A reader of a wild pointer may see any mixture: it then compares bytes that exist, because
 * metadata is never unmapped, and stops the program or not, as it must with any wild pointer.
 *
 * The descriptor has 16 bytes and not 8: with the fields ready-made the fast path of free is 6 instructions
 * shorter (docs/decisions/0001-byte-map-by-multiplication.md).
 */
#ifndef HUDDLE_SPAN_PAGE_MAP_H
#define HUDDLE_SPAN_PAGE_MAP_H

#include "base/base.h"

enum {
    UNIT_SHIFT = 16,
    UNIT_BYTES = 1 << UNIT_SHIFT, /* spans are whole units, at multiples of this */
    LEAF_SHIFT = 31,              /* a leaf covers 2 GiB */
    LEAF_UNITS = 1 << (LEAF_SHIFT - UNIT_SHIFT),
#if defined(__x86_64__)
    ADDRESS_BITS = 47,
#else
    ADDRESS_BITS = 48,
#endif
    TOP_ENTRIES = 1 << (ADDRESS_BITS - LEAF_SHIFT),
};

/* `owner`: 1 to 64 is a run of lane owner - 1; the others are above all lanes. */
enum owner {
    OWNER_NONE = 0,          /* not huddle's */
    OWNER_LANE_LAST = 64,    /* runs of small cells: cells, start and magazine are set */
    OWNER_NOBODY = 0x4000,   /* what the empty heap compares with: no descriptor has it */
    OWNER_LARGE = 0x8000,    /* a unit of a large block: cells points to its struct large */
    OWNER_FREE = 0x8001,     /* a unit of a region that nothing was in yet */
    OWNER_WAS_RUN = 0x8002,  /* free now; start and magazine say what it was, for messages */
    OWNER_WAS_LARGE = 0x8003, /* free now; start is its size in KiB; magazine is 1 in its first unit */
    OWNER_ZONE = 0x8004,     /* a zone's chunk */
    OWNER_NESTED = 0x8005,       /* cells for calls from signal handlers: cells points to the run (heap/nested.c) */
    OWNER_NESTED_LARGE = 0x8006, /* the first unit of a block for such a call: cells points to its record */
};

struct descriptor {
    uint8_t *cells;    /* marks of the run whose unit this is */
    uint32_t start;    /* low half of the address where the run starts */
    uint16_t owner;    /* enum owner */
    uint16_t magazine; /* offset of the class's magazine in a thread's heap: class << MAGAZINE_SHIFT */
};

_Static_assert(sizeof(struct descriptor) == 16, "page_map_find shifts by 12, not 16, to index by descriptors");

struct page_map {
    struct descriptor zero_leaf[LEAF_UNITS];
    /* Distance in bytes from the zero leaf to the leaf; 0 is the zero leaf itself. Stored once, with release. */
    uintptr_t top[TOP_ENTRIES];
};

extern struct page_map page_map;

/* The descriptor for any value of p; never NULL, to be written only by the owner of the unit. */
static ALWAYS_INLINE struct descriptor *page_map_find(const void *p) {
    uintptr_t a = (uintptr_t)p;
    uintptr_t t = a >> LEAF_SHIFT;
    if (unlikely(t >= TOP_ENTRIES)) return page_map.zero_leaf;
    /* Who was handed a block has seen its leaf; who was not may see either leaf. So relaxed is enough. */
    uintptr_t at = (uintptr_t)page_map.zero_leaf + relaxed_load(&page_map.top[t]);
    return (struct descriptor *)(at + ((a >> (UNIT_SHIFT - 4)) & ((LEAF_UNITS - 1) << 4)));
}

/* Makes the leaves for `bytes` from `start`. Returns false when there is no memory for one. Lock-free. */
bool page_map_cover(const void *start, size_t bytes);

/* Writes the same owner, and nothing else, into `units` descriptors from `start`. */
void page_map_set_owner(const void *start, size_t units, enum owner owner);

#endif
