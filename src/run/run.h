/* run.h - a span formatted into equal cells, and what is known of each: a mark, out of line.
 *
 *   span:      | skipped | cell first | ... | cell cells - 1 | rest |         64 KiB, or 128 KiB for cells above 8 KiB
 *   metadata:  | struct run, 64 bytes | marks and list heads, as the encoding has them (run/encoding.h) |
 *
 * Cell i starts at base + i * cell_bytes. The first few are skipped, differently from run to run, so that equal
 * offsets in different runs do not share cache sets. Free lists are indices inside the run, out of line (Mozilla bug
 * 1980047).
 *
 * Rules (run_check walks R3 and the lists; the others are kept by who calls):
 *   R1  Whoever holds a cell is the only one who changes its mark.
 *   R2  The marks of a run are changed by threads of its lane only; but a thread of another lane that frees a cell
 *       makes its mark RETURNING, which ends its hold, and when the lane sleeps a thread that holds the lock of the
 *       bin takes cells back.
 *   R3  used + free + fresh == cells - first, with used = LIVE + CACHED, whenever nobody is inside the run.
 *   R4  A run is retired only when used == 0, and destroyed outside all locks.
 *
 * `groups`, `fresh`, `used`, `age` and the lists are guarded by the lock of the run's bin (lane/bin.h), which also owns
 * `next`, `previous`, `is_listed` and `is_apart`. The rest is constant while the run exists. This file does not decide
 * which run serves whom. */
#ifndef HUDDLE_RUN_RUN_H
#define HUDDLE_RUN_RUN_H

#include "base/base.h"
#include "base/size_class.h"
#include "os/memory.h"
#include "run/encoding.h"
#include "span/page_map.h"

enum { MAGAZINE_SHIFT = 5 /* log2 of the bytes of a magazine: descriptors hold the offset of their class's */ };

static ALWAYS_INLINE struct run *run_of(const struct descriptor *d) {
    return (struct run *)(void *)d->cells - 1;
}

static ALWAYS_INLINE bool owner_is_lane(unsigned owner) {
    return owner - 1 < OWNER_LANE_LAST;
}

/* Bytes of a cell of the run that the descriptor tells of; never 0, whatever it was read beside. */
static inline size_t descriptor_cell_bytes(const struct descriptor *d) {
    return size_class_bytes((unsigned)d->magazine >> MAGAZINE_SHIFT);
}

/* The number m for which (n * m) >> 32 == n / cell_bytes, and (n * m) mod 2^32 < m just when cell_bytes divides n, for
 * all n below 128 KiB: index and exactness for one multiplication. m = ceil(2^32 / cell_bytes); its error e, below
 * cell_bytes, does no harm while n * e < 2^32. (Lemire, Kaser and Kurz, Faster remainder by direct computation,
 * 2019) */
static inline uint32_t run_reciprocal(size_t cell_bytes) {
    return (uint32_t)((((uint64_t)1 << 32) + cell_bytes - 1) / cell_bytes);
}

enum { SINGLE_UNIT_CELL_MAX = 8192 /* larger cells waste less of two units */ };

static inline size_t run_units(unsigned class) {
    return size_class_bytes(class) <= SINGLE_UNIT_CELL_MAX ? 1 : 2;
}

static inline size_t run_cells(unsigned class) {
    return min_size(run_units(class) * UNIT_BYTES / size_class_bytes(class), ENCODING_CELLS_MAX);
}

/* What is known of a run with so many cells, out of line. */
static inline size_t run_record_bytes(size_t cells) {
    return sizeof(struct run) + encoding_bytes(cells);
}

enum { RUN_SERIAL_MAX = 24 };

/* A new run for the class in the lane; `serial` is the number of runs that the bin made before, RUN_SERIAL_MAX for more.
 * NULL when there is no memory. Takes no bin's lock and must not be called under one. */
struct run *run_create(unsigned class, unsigned lane, uint32_t serial);

/* Takes a run that nobody uses (R4) out of the page map and the index; then, outside the lock, run_destroy gives up its
 * span and its record. Who holds the bin's lock sees every run in the map whole, or not at all. */
void run_retire_locked(struct run *r);
void run_destroy(struct run *r);

/* Leases up to n cells, freed ones before fresh ones and in address order as far as the lists are, to `out`; their
 * marks become CACHED. Returns how many. */
size_t run_lease_locked(struct run *r, struct cell_ref *out, size_t n);

enum { RUN_RANGES_MAX = 17 };

/* Whole pages of the run in which nothing is leased, to `out`; returns the number of ranges. */
size_t run_free_pages_locked(struct run *r, struct os_range out[RUN_RANGES_MAX]);

/* Takes back cells from the front of `cells`, n of them at most, as far as they are of this run and have that state.
 * Returns how many. */
size_t run_give_back_locked(struct run *r, const struct cell_ref *cells, size_t n, enum cell_state state);

/* Whether no cell is left to lease. */
static inline bool run_is_exhausted(const struct run *r) {
    return r->groups == 0 && r->fresh == r->cells;
}

/* Counts the cells by their marks; the caller holds the bin's lock. */
struct run_count run_tally(struct run *r);

/* Walks the lists and R3; the caller holds the bin's lock. */
void run_check_locked(struct run *r);

#endif
