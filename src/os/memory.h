/* memory.h - address space and pages from the system: the only callers of mmap, munmap, mprotect, madvise and mremap.
 *
 * Every address and length is a multiple of the page size (required, in every build). Any call may fail, and the
 * options fail_nth and fail_count make chosen ones fail. Nothing here locks: counters are atomic. */
#ifndef HUDDLE_OS_MEMORY_H
#define HUDDLE_OS_MEMORY_H

#include "base/base.h"

/* Bytes of a page, from os_memory_init on: the system's, or the option page_size when that is a larger power of two. */
extern size_t os_page_bytes;

/* The system's, whatever the option says. */
extern size_t os_real_page_bytes;

/* `real_page_bytes` as the kernel told the process, 0 when unknown (then 4096). */
void os_memory_init(size_t real_page_bytes, size_t wanted_page_bytes);

/* n bytes that read as zero and may be written, not charged before they are touched. NULL when the system refuses.
 * `hint` is an address to try first, or NULL. */
void *os_map(void *hint, size_t n);

/* Asks for no huge pages in the whole pages of p .. p + n, of which a few bytes here and there will be used: where the
 * system gives them to everybody, a small program would have megabytes of them. May fail, silently. */
void os_keep_small(const void *p, size_t n);

/* Has the system provide the pages of p .. p + n now, instead of at a fault for each. May fail, silently. */
void os_populate(void *p, size_t n);

/* Asks for huge pages in a mapping. May fail, silently. */
void os_want_huge(void *p, size_t n);

/* Leaves a mapping out of core dumps. */
bool os_keep_out_of_dumps(void *p, size_t n);

/* n bytes of address space that nothing may touch. NULL when the system refuses. */
void *os_reserve(size_t n);

/* Makes reserved bytes usable. */
bool os_commit(void *p, size_t n);

/* Gives the address range back. On failure (the map table is full) it is still mapped. */
bool os_unmap(void *p, size_t n);

/* Gives the memory back and keeps the addresses; they read as zero afterwards. On failure nothing is known of them. */
bool os_purge(void *p, size_t n);

struct os_range {
    void *start;
    size_t bytes;
};

/* os_purge of many ranges in one system call where the kernel can. Returns how many ranges, from the first, are
 * done. */
size_t os_purge_many(const struct os_range *ranges, size_t count);

/* Makes the mapping at p, old_bytes long, new_bytes long without moving it. */
bool os_resize(void *p, size_t old_bytes, size_t new_bytes);

/* Moves the pages at p, old_bytes long, over the reserved range at `to`, which becomes new_bytes long. */
bool os_move(void *p, size_t old_bytes, void *to, size_t new_bytes);

/* Moves the pages at p over the reserved range at `to`, which is as long and becomes usable; p stays mapped and reads
 * as zero. */
bool os_move_pages(void *p, size_t n, void *to);

struct os_counters {
    size_t mapped_bytes, peak_mapped_bytes, purged_bytes, calls;
};

struct os_counters os_memory_counters(void);

/* How many bytes this process may map: the lower one of RLIMIT_AS and RLIMIT_DATA now, SIZE_MAX without. */
size_t os_memory_limit(void);

#endif
