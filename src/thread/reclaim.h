/* reclaim.h - what idle threads cache goes back to their lanes.
 *
 * A thread that sleeps cannot empty its own magazines, so another one does it, and the hit paths pay nothing for that.
 * A heap is closed by overwriting the things in it of which every hit reads one after heap_seize, and that are constant
 * otherwise: owner_key (free), by_size (malloc) and pool (zones). Every call of the owner then misses into the slow path, where
 * heap_enter sees that the heap is closed, waits for reclaim_lock, and opens it again.
 *
 *   owner                                 another thread, holding reclaim_lock
 *   1. heap_place = 0 (heap_seize)        a. closes the heap
 *   2. reads one of the three             b. membarrier
 *   3. uses magazines or pool             c. reads the owner's heap_place
 *   4. heap_place = heap (heap_release)   d. membarrier; then uses both
 *
 * C1  If c finds 0, the owner may be at 3 and have read before a: the heap is opened again and left alone.
 * C2  If c finds another value, the owner is not at 3: had it read before a at 2, then 1 was visible at b, and with it
 *     4 before c. When it comes to 2 again it reads what a wrote, because b lies in between.
 * C3  What the owner wrote at 3 before such a 4 is visible after d.
 *
 * The kernel's membarrier makes the owner's two plain accesses ordered, when it is needed and not at every call
 * (asymmetric fences: liburcu). Where the system has none, nothing is reclaimed. The owner's heap_place is read through
 * the kernel, as a thread that ended without its destructors leaves an address that may be unmapped. */
#ifndef HUDDLE_THREAD_RECLAIM_H
#define HUDDLE_THREAD_RECLAIM_H

#include "os/lock.h"
#include "thread/heap.h"

/* Held while heaps are closed and emptied; a closed heap is opened under it. */
extern struct lock reclaim_lock;

/* Held while pages of some runs are given back, system call included: only a fork waits for it, and another thread that
 * does the same. */
extern struct lock reclaim_pages_lock;

/* Empties the heaps whose owners took no slow path since the call before this one, or all that are not in a call right
 * now; then drains the inboxes of the lanes without a busy thread, and gives up the runs of theirs that nobody uses any
 * more. Returns whether there are others that cache something. Holds no lock of the caller. */
bool reclaim(bool all);

/* Gives back free pages of runs: those that nothing happened to since the call before this one, or all. Returns whether
 * there are others. Holds no lock of the caller. */
bool reclaim_pages(bool all);

/* For the owner, which has seized its heap: waits while it is being emptied, and opens it. */
void reclaim_open(struct heap *h);

#endif
