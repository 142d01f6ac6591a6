/* nested.h - blocks for calls from a signal handler that interrupted this thread inside the allocator.
 *
 * Such a call may touch nothing that the interrupted one might be changing, and may not wait for a lock that it may
 * hold. So it has cells of its own, power-of-two sizes from 16 bytes to 32 KiB, and mappings of its own above, and
 * takes and gives them with single atomic operations; any thread can do so at any time (the glibc list, 2013: a
 * re-entered call takes another path). What it frees that is not nested memory goes to the owner's inbox, where it is
 * checked as all foreign frees are.
 *
 *   arena:  | struct arena with 16 struct nested_run | unit | unit | ... 16 units |     made at the first nested call
 *
 * N1  A cell belongs to whoever changed its byte from FREE to LIVE by compare-and-swap, with acquire; the free's swap
 *     back has release. No list, so nothing to go stale (no ABA).
 * N2  Arenas and runs are never unmapped, and are pushed on their lists complete, with release.
 *
 * A program that never allocates from handlers pays nothing for this but the code. */
#ifndef HUDDLE_HEAP_NESTED_H
#define HUDDLE_HEAP_NESTED_H

#include "base/base.h"
#include "span/page_map.h"

/* A block of n bytes at a multiple of `alignment`, or NULL. Lock-free. */
void *nested_alloc(size_t n, size_t alignment);

/* Frees p, which has an owner of nested memory; stops the program when p is not a live block. Lock-free. */
void nested_free(void *p);

/* Frees p, a cell or a large block with this descriptor, from a nested call: its owner does it later. */
void nested_free_later(void *p, const struct descriptor *d);

/* Frees the large blocks that nested calls have freed. Not from nested calls. */
void nested_drain(void);

/* Usable bytes of the nested block that starts at p, 0 if there is none. */
size_t nested_usable(const void *p);

/* Live blocks of nested memory, and their bytes. */
struct nested_totals {
    size_t blocks, bytes;
};

struct nested_totals nested_count(void);

#endif
