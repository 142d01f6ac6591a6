/* region.h - a stretch of address space of up to 64 MiB, cut into units, with one bit for each fact about a unit.
 *
 *   free   nothing is in it
 *   dirty  it may hold memory of the system and bytes that are not zero
 *   aged   free and dirty, and so already at the last tick of the purge clock
 *
 * Invariants (region_check):
 *   G1  aged is a subset of free and of dirty
 *   G2  free_units and dirty_free_units are the numbers of bits set in free, and in free and dirty
 *   G3  no stretch of free units is longer than `longest`
 *   G4  bits at `units` and above are 0
 *
 * A unit that is being purged is not free: its bit comes back when the system call is over. Everything here is
 * guarded by the span lock; the choice between regions is span.c's. */
#ifndef HUDDLE_SPAN_REGION_H
#define HUDDLE_SPAN_REGION_H

#include "base/base.h"

enum {
    REGION_UNITS = 1024,
    REGION_WORDS = REGION_UNITS / 64,
};

struct region {
    char *base;
    char *map_start; /* the mapping that the units lie in */
    size_t map_bytes;
    uint32_t units;
    uint32_t free_units, dirty_free_units;
    uint32_t longest; /* an upper bound */
    struct region *next; /* all regions, oldest first */
    struct region *next_retired;
    bool is_linked; /* in the list, for good */
    bool is_dense;  /* for runs of one unit; begins at a huge page */
    bool is_huge;   /* the system was asked for huge pages, and nothing was purged here since */
    uint64_t free[REGION_WORDS], dirty[REGION_WORDS], aged[REGION_WORDS];
};

/* Free dirty units of all regions together. Written under the span lock; a relaxed read is good enough for the
 * purge. */
extern size_t region_dirty_free_units;

enum region_wish { REGION_DIRTY, REGION_ANY };

/* The index of n free units (all of them dirty, for REGION_DIRTY) at a multiple of `alignment` bytes, or -1: of one unit
 * the lowest, of several the lowest in the shortest stretch where there are any. */
int region_find_locked(struct region *r, size_t n, size_t alignment, enum region_wish wish);

/* Takes n free units from index i. Returns how many of them hold no memory and read as zero; all are dirty from now
 * on. */
size_t region_take_locked(struct region *r, size_t i, size_t n);

/* Puts n taken units from index i back, dirty or (after a purge that succeeded) clean. */
void region_put_locked(struct region *r, size_t i, size_t n, bool is_dirty);

/* Takes the region out of use if all of its units are free: it has no units then, and may be given others. */
bool region_retire_locked(struct region *r);

/* Whether n units from index i exist and are free. */
bool region_is_free_locked(const struct region *r, size_t i, size_t n);

/* A stretch of units to purge: aged ones, or with `all` every free dirty one; from index `from`. Returns its length (0:
 * none), and where it starts. Does not take it. */
size_t region_next_dirty_locked(const struct region *r, size_t from, bool all, size_t *start);

/* A stretch of free units that are not dirty, from index `from`, inside one group of `group` units (a power of two, up to 64)
 * of which others are in use or dirty. Returns its length (0: none), and where it starts. Does not take it. */
size_t region_next_untouched_locked(const struct region *r, size_t from, size_t group, size_t *start);

/* One tick: what is free and dirty now is aged. */
void region_age_locked(struct region *r);

/* Walks all invariants (audit builds and tests). */
void region_check(const struct region *r);

#endif
