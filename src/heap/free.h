/* free.h - taking blocks back. heap_free with heap_push (thread/heap.h) is the whole hit path: a block of this thread's
 * lane, whose magazine has room.
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
    struct heap *h = heap_seize();
    bool is_done = heap_push(h, p, CELL_LIVE);
    heap_release(h);
    if (unlikely(!is_done)) heap_free_slow(p);
}

#endif
