/* fork.h - what happens to locks and heaps when the process forks.
 *
 * Before: every lock is taken, in rank order, so that the child's copy of everything is whole. After: both sides
 * release them, and the child forgets the heaps of threads that it does not have. Their magazines may have been in the
 * middle of a change; the cells in them stay unused in the child (each thread's bound: the option cache_kib). Nothing
 * of the heap itself is written, so that the child shares its pages.
 *
 * The forking thread's heap is seized all the while: what other fork handlers, or libc, allocate in between is nested
 * (heap/nested.h) and needs none of the locks. In a fork from a signal handler that interrupted the allocator the
 * locks may be this thread's own: then nothing is taken. */
#ifndef HUDDLE_HEAP_FORK_H
#define HUDDLE_HEAP_FORK_H

void fork_prepare(void);
void fork_parent(void);
void fork_child(void);

#endif
