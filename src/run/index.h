/* index.h - the fast way from an address to its run: a direct-mapped cache in front of the page map.
 *
 *   slot = (address >> 16) mod 2^18      key[slot] = address >> 16 | owner << 48
 *
 * One comparison of the whole key answers for any 64-bit value whether the address lies in a run of the lane that
 * asks: foreign addresses, large blocks, other lanes, and addresses whose slot another unit has, all differ. Then the
 * page map is asked. That saves 8 instructions and a dependent load in free (docs/decisions/0002-run-index.md).
 *
 * X1  A slot is filled when a run is made and the slot is empty, and emptied when that run is destroyed; it is never
 *     overwritten. So who holds a live cell of a run finds its slot constant, and no reader sees a mixture of two.
 * X2  key is written last (release) when filled, first when emptied.
 *
 * Units 16 GiB apart share a slot; the later one is then found through the page map only. */
#ifndef HUDDLE_RUN_INDEX_H
#define HUDDLE_RUN_INDEX_H

#include "base/base.h"
#include "span/page_map.h"

enum { INDEX_SLOTS = 1 << 18, INDEX_OWNER_SHIFT = 48 };

struct run_place {
    uint32_t start;     /* as in struct descriptor */
    uint32_t magazine;  /* likewise */
};

/* Three arrays and not one of structures: each is indexed without a multiplication. */
struct run_index {
    uint64_t key[INDEX_SLOTS];
    uint8_t *cells[INDEX_SLOTS];
    struct run_place place[INDEX_SLOTS];
};

extern struct run_index run_index;

static ALWAYS_INLINE size_t index_slot(uintptr_t unit) {
    return unit & (INDEX_SLOTS - 1);
}

/* Notes the unit that this descriptor tells of, unless its slot is taken; forgets it. */
void index_add(const void *unit, const struct descriptor *d);
void index_remove(const void *unit, const struct descriptor *d);

#endif
