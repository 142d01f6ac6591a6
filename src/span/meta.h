/* meta.h - memory for huddle's own records: run headers and state bytes, heaps, magazines, messages, regions.
 *
 * Out of line: in regions of its own with a guard page at each end, so that nothing the allocator trusts lies next to
 * user bytes. Packed: pieces are multiples of 64 bytes, one after the other, so that a small program touches few
 * pages; the records of runs are not powers of two long, which staggers equal ones over the cache sets. Pieces given
 * back are kept in lists by exact size; nothing is unmapped, so a stale pointer into metadata can be read without a
 * fault. */
#ifndef HUDDLE_SPAN_META_H
#define HUDDLE_SPAN_META_H

#include "os/lock.h"

enum {
    META_LINE = 64,
    META_COARSE = 4096,
    META_FINE_MAX = 12288, /* up to here sizes are rounded to lines, above to META_COARSE */
    META_MAX = 256 * 1024,
};

/* What a piece of so many bytes takes. */
static inline size_t meta_piece_bytes(size_t bytes) {
    return round_up(bytes, bytes <= META_FINE_MAX ? META_LINE : META_COARSE);
}

/* `bytes` (1 to META_MAX) of zeroed memory at a multiple of 64, or NULL. */
void *meta_alloc(size_t bytes);

/* Takes a piece back; `bytes` as it was allocated with. */
void meta_free(void *p, size_t bytes);

/* Bytes handed out or kept in lists: what was ever touched. */
size_t meta_used_bytes(void);

extern struct lock meta_lock;

#endif
