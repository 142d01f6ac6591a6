/* outgoing.h - frees for other lanes, gathered until a message is full.
 *
 * A free for another lane checks the cell's mark and makes it RETURNING, so that a second free of it stops the program
 * at the call whoever makes it; the pointer is noted (the glibc list, 2013: gather what other threads' arenas own
 * until it is worth handing over). To write the byte costs no more than to leave it alone:
 * docs/decisions/0003-returning.md. */
#ifndef HUDDLE_THREAD_OUTGOING_H
#define HUDDLE_THREAD_OUTGOING_H

#include "thread/heap.h"

/* Notes a cell of the lane with this number, another than the heap's. Its mark is RETURNING. */
void outgoing_add(struct heap *h, unsigned lane_number, void *cell, size_t cell_bytes);

/* Sends all messages, full or not. */
void outgoing_flush(struct heap *h);

/* An empty message from the heap's few or the pool; NULL when there is no memory. */
struct message *heap_take_message(struct heap *h);

/* Keeps an emptied message, or gives the heap's few to the pool when it has enough. */
void heap_keep_message(struct heap *h, struct message *m);

/* Gives all the heap's empty messages to the pool. */
void heap_release_messages(struct heap *h);

#endif
