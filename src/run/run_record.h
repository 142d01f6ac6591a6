/* run_record.h - what is known of a run as a whole; the marks of its cells follow it in memory. */
#ifndef HUDDLE_RUN_RUN_RECORD_H
#define HUDDLE_RUN_RUN_RECORD_H

#include "base/base.h"
#include "base/size_class.h"
#include "span/page_map.h"

enum { RUN_CELLS_MAX = UNIT_BYTES / GRAIN_BYTES };

/* Since a cell was leased from the run or given back to it. */
enum run_age { AGE_NEW, AGE_SEEN /* once, by the purge */, AGE_PURGED };

struct run {
    char *base;
    uint32_t cell_bytes;
    uint16_t cells, first;
    uint8_t class, lane, units;
    bool is_listed;
    uint32_t fresh;  /* index of the first cell that was never handed out */
    uint32_t used;   /* LIVE, CACHED and RETURNING ones */
    uint64_t groups; /* the encoding's: what says that cells are free */
    uint8_t age;     /* enum run_age */
    bool is_apart;   /* taken out of the bin's lists for its free pages to be purged */
    struct run *next, *previous;
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct run) == 64, "the marks follow on a cache line of their own");

static ALWAYS_INLINE uint8_t *run_marks(struct run *r) {
    return (uint8_t *)(r + 1);
}

struct run_count {
    size_t live, cached, returning, free, fresh; /* returning: of cached, where the encoding tells */
};

#endif
