/* free.h - taking blocks back. heap_free is the whole hit path: a block of this thread's lane, whose magazine has room.
 *
 * The checks, on every call and in every build:
 *
 *   owner      the run index says for any 64-bit value whether the address is in a run of this lane; NULL, foreign
 *              addresses, large blocks, zones and other lanes differ here, in one comparison
 *   exactness  offset * reciprocal: its high half is the index of the cell, and its low half is below the reciprocal
 *              just when the address is the start of the cell (run.h)
 *   state      the cell's mark is LIVE: not freed, not cached, not fresh
 *
 * Cells of other lanes are checked in the same way on the slow path. errno is not touched.
 * Any thread may call at any time, with any block. */
#ifndef HUDDLE_HEAP_FREE_H
#define HUDDLE_HEAP_FREE_H

#include "run/index.h"
#include "thread/heap.h"

/* NULL, large blocks, cells of other lanes, full magazines, threads without a heap; and wrong pointers, which stop the
 * program. */
void heap_free_slow(void *p);

/* api/'s, absent where only the layers below are linked: frees a block that libc's malloc made. Returns false when p
 * is none. */
bool heap_take_foreign(void *p) __attribute__((weak));

/* Frees the block p, or does nothing for NULL. Stops the program when p is anything else. */
static ALWAYS_INLINE void heap_free(void *p) {
    uintptr_t unit = (uintptr_t)p >> UNIT_SHIFT;
    size_t slot = index_slot(unit);
    struct heap *h = heap_seize();
    if (likely(foldable_load(&run_index.key[slot]) == unit + foldable_load(&h->owner_key))) {
        struct magazine *m = (struct magazine *)((char *)h + run_index.place[slot].magazine);
        uint64_t product = (uint64_t)((uint32_t)(uintptr_t)p - run_index.place[slot].start) * m->reciprocal;
        if (likely((uint32_t)product < m->reciprocal)) {
            mark_t mark = mark_at(run_index.cells[slot], product >> 32);
            struct cell_ref *top = m->top;
            if (likely(mark_is(mark, CELL_LIVE) && top != m->limit)) {
                mark_set(mark, CELL_CACHED);
                *top = (struct cell_ref){p, mark};
                m->top = top + 1;
                heap_release(h);
                return;
            }
        }
    }
    heap_release(h);
    heap_free_slow(p);
}

#endif
