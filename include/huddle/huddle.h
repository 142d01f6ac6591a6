/* huddle.h - what huddle offers beyond malloc.
 *
 * huddle replaces malloc, free and their relatives by being preloaded or linked; a program needs none of this
 * header for that. Here are the questions and controls that the C interface has no name for.
 *
 * Every function may be called from any thread at any time. None sets errno unless its comment says so.
 */
#ifndef HUDDLE_HUDDLE_H
#define HUDDLE_HUDDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HUDDLE_VERSION_MAJOR 0
#define HUDDLE_VERSION_MINOR 1
#define HUDDLE_VERSION_PATCH 0
#define HUDDLE_VERSION_STRING "0.1.0"

/* Size classes and lanes that a statistics report has room for. */
#define HUDDLE_CLASSES 72
#define HUDDLE_LANES 64

/* The version of the library that is running, "MAJOR.MINOR.PATCH": compare it with HUDDLE_VERSION_STRING, the
 * version that was compiled against. */
const char *huddle_version(void);

/* Bytes that the program may use at `block`, a block that huddle allocated and that is not freed; never less than
 * was asked for, and constant for the life of the block. 0 for NULL and for any address that is not the start of
 * such a block: unlike malloc_usable_size, this may be asked of any 64-bit value. */
size_t huddle_usable_size(const void *block);

/* Bytes that a block of `size` bytes would have: asking for that many instead wastes nothing. 0 when `size` is above
 * PTRDIFF_MAX. */
size_t huddle_good_size(size_t size);

/* Whether `address` lies in memory that huddle holds, in a block or not. Safe for any 64-bit value. */
bool huddle_owns(const void *address);

/* One size class of a statistics report. Counts are of cells. */
struct huddle_class_stats {
    size_t cell_bytes; /* size of a cell */
    size_t runs;       /* runs of this class, in all lanes */
    size_t live;       /* cells that the program has */
    size_t cached;     /* cells in magazines, or freed by another lane and on their way back */
    size_t free;       /* cells on the free lists of runs */
    size_t fresh;      /* cells that were never handed out */
};

/* One lane of a statistics report. */
struct huddle_lane_stats {
    size_t heaps;       /* threads that allocate in this lane */
    size_t runs;        /* runs that it holds */
    size_t live_bytes;  /* bytes of cells that the program has, out of this lane's runs */
    size_t inbox_cells; /* cells freed by other lanes and not yet taken in; also counted as cached */
};

/* A statistics report. All *_bytes are bytes, and sizes of blocks are their usable sizes. At a point where no thread
 * is inside the allocator the figures are exact; beside running threads each is a value from during the call. */
struct huddle_stats {
    size_t struct_size;    /* set by the caller to sizeof(struct huddle_stats): how much may be filled in */
    size_t live_bytes;     /* blocks that the program has */
    size_t live_blocks;    /* their number */
    size_t large_bytes;    /* of live_bytes, those in blocks above the largest size class */
    size_t large_blocks;   /* their number */
    size_t cached_bytes;   /* cells in magazines and on their way between lanes */
    size_t run_bytes;      /* runs, whole: live, cached, free and fresh cells and what is left over */
    size_t dirty_bytes;    /* free spans that still hold memory of the system */
    size_t metadata_bytes; /* what huddle keeps its own records in, as far as it was used */
    size_t mapped_bytes;   /* address space taken from the system, in all, now */
    size_t peak_mapped_bytes;
    size_t purged_bytes;   /* given back to the system so far */
    size_t system_calls;   /* memory calls to the system so far */
    size_t lanes;          /* how many of `lane` are filled in */
    size_t heaps;          /* threads that have a heap now */
    struct huddle_class_stats classes[HUDDLE_CLASSES];
    struct huddle_lane_stats lane[HUDDLE_LANES];
    size_t zone_bytes; /* chunks and large objects of zones (zone.h), used or kept for the next; not in live_bytes */
};

/* Fills in `stats` as far as stats->struct_size reaches, so that a program compiled against an older header gets what
 * it knows. Returns false, and changes nothing, when struct_size is smaller than the fields up to live_blocks need.
 * Takes time proportional to the heap. */
bool huddle_stats(struct huddle_stats *stats);

/* Writes the report as one JSON object and a newline to the file descriptor. Returns false when a write failed. */
bool huddle_stats_json(int descriptor);

/* Gives free memory back to the system now: this thread's cached cells, what other threads freed and nobody has taken
 * in yet, and all free spans but `keep` bytes of them. Returns the bytes given back. */
size_t huddle_trim(size_t keep);

/* The value of the option `key`, written to `value` as a string of at most `size` bytes with its end. Returns false
 * for an unknown key or too small a size. The options are listed in huddle(7). */
bool huddle_option_get(const char *key, char *value, size_t size);

/* Sets the option `key` from `value` as HUDDLE_OPTIONS would. Returns false for an unknown key, a value that does not
 * parse, or an option that can only be set at start-up. */
bool huddle_option_set(const char *key, const char *value);

#ifdef __cplusplus
}
#endif

#endif
