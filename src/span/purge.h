/* purge.h - free memory goes back to the system, after a decay.
 *
 * A clock ticks every purge_ms / 2, noticed on slow paths. At a tick, units that were free and dirty at the tick
 * before and were not touched since (region's `aged`) are purged, and so are freed direct mappings; what is free now
 * ages. So memory is given back between one half and one purge_ms after it was freed, and what is in steady use never.
 * When something is taken again soon after it was purged, the next purges come after 2, 4, at most 8 ticks, until a tick
 * comes in which nothing was taken.
 * The system calls are made outside the locks, many ranges to a call; units are marked taken for that time.
 *
 * Where much is kept, a helper thread does the ticks instead (the option helper): memory goes back although the program
 * makes no call, and no thread of the program spends the time. It also empties what idle threads cache, and gives back
 * free pages inside of runs, which without it only huddle_trim does.
 *
 * How much may be kept dirty until then follows what was needed lately: the target starts at 512 KiB; what is freed
 * above it is purged at once. Clean memory taken soon after such a purge says that the purge was a mistake: the target
 * grows by as much, so that a program which frees and takes the same amount again and again faults in the first round
 * only. With every tick the target falls by a quarter of what was kept all the time since the one before. */
#ifndef HUDDLE_SPAN_PURGE_H
#define HUDDLE_SPAN_PURGE_H

#include "os/lock.h"

/* Held while memory is given back, system calls included: nothing that allocates or frees waits for it. A tick is
 * skipped when another thread works at one; a fork waits until no units are in between. */
extern struct lock purge_lock;

/* Whether a span of so many units, about to be freed, is by half of them or more beyond what should be kept dirty; gives
 * back first what was not needed for longer, and is false when that is enough. Always false for small spans,
 * which are purged in batches by purge_poll. */
bool purge_is_excess(size_t units);

/* Notes that a span or a mapping was taken, with so many units that were clean. */
void purge_note_taken(size_t clean_units);

/* Notes that `bytes` became free, and does what a tick asks for when one is due. Holds no lock of the caller. */
void purge_poll(size_t bytes);

/* What the threads' magazines hold when full, in bytes; relaxed. thread/magazine.c counts it. */
extern size_t purge_cached_bytes;

/* Notes that so many bytes of cells became free inside runs: the helper thread looks for whole pages among them. */
void purge_note_cells(size_t bytes);

/* thread/'s, absent where only the layers below it are linked: gives back what idle threads cache. Returns whether some
 * threads that were not idle cache something. Called by the helper thread, which holds no lock. */
bool purge_reclaim(void) __attribute__((weak));

/* Likewise: gives back whole free pages of runs that nothing happened to for a while. Returns whether there are others
 * to look at next time. */
bool purge_pages(void) __attribute__((weak));

/* zone/'s, absent likewise: gives back chunks that no zone took since the last call. Returns whether there are others. */
bool purge_depot(void) __attribute__((weak));

/* Likewise: bytes of these chunks; relaxed. */
extern size_t depot_bytes __attribute__((weak));

/* While it is true purge_poll does nothing: what becomes free waits for the next tick. */
void purge_defer(bool is_deferred);

/* Gives back all free memory but `keep` bytes. Returns the bytes given back. */
size_t purge_all(size_t keep);

#endif
