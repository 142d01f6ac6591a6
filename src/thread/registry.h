/* registry.h - all heaps, and which lane a new one joins. */
#ifndef HUDDLE_THREAD_REGISTRY_H
#define HUDDLE_THREAD_REGISTRY_H

#include "os/lock.h"
#include "thread/heap.h"

extern struct lock registry_lock;

/* All heaps, guarded by registry_lock. */
extern struct heap *registry_heaps;

/* How far reclaim has come, guarded by registry_lock; NULL: at the end. */
extern struct heap *registry_cursor;

/* The lane with the fewest heaps, a new one while there are fewer than CPUs (or than the option lanes says); counted
 * in. NULL when there is no memory. */
struct lane *registry_join_lane_locked(void);

void registry_add_locked(struct heap *h);
void registry_remove_locked(struct heap *h);

/* In the child of a fork: only the heap `own` and the shared one for late calls are left. */
void registry_keep_only_locked(struct heap *own);

#endif
