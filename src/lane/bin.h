/* bin.h - one size class of one lane: its runs and the lock that guards them.
 *
 *   current --> run that is leased from
 *   partial --> run --> run --> ...        have free cells; oldest first, taken from the front
 *   (exhausted runs are on no list; the page map leads to them when a cell comes back; nor are those whose free pages
 *   are being purged)
 *
 * B1  A run is current, or listed (is_listed), or apart (is_apart), or exhausted: exactly one of them. (current may be
 *     exhausted too.)
 * B2  A listed run has used > 0: when the last cell of a run comes back and it is not current, it is destroyed.
 * B3  `listed` is the number of listed runs.
 *
 * The lock is held for one batch; system calls are made outside it. */
#ifndef HUDDLE_LANE_BIN_H
#define HUDDLE_LANE_BIN_H

#include "os/lock.h"
#include "run/run.h"

struct bin {
    struct lock lock;
    uint32_t serial; /* runs made so far, at most RUN_SERIAL_MAX */
    struct run *current;
    struct run *partial, *partial_last;
    uint32_t listed; /* runs from partial to partial_last */
    uint32_t freed;  /* bytes of cells given back since the purge was told */
};

/* Leases up to n (above 0) cells of the class to `out`, making a run when there is none to lease from. Returns how
 * many, 0 when there is no memory. */
size_t bin_lease(struct bin *b, unsigned class, unsigned lane, struct cell_ref *out, size_t n);

/* Takes back n cells, all of this bin, whose bytes are all `state`; stops the program when one is not (it was freed
 * twice). */
void bin_give_back(struct bin *b, const struct cell_ref *cells, size_t n, enum cell_state state);

/* Gives the system free pages of some of the bin's runs: of those that nothing was leased from or given back to since they
 * were looked at before, or `all`. *left is how many are still to be looked at, SIZE_MAX at first; returns whether there
 * are any. Sets *is_wanted when another round may find something. The lock is not held during the system call; the
 * caller keeps forks out. */
bool bin_purge(struct bin *b, size_t *left, bool all, bool *is_wanted);

/* Destroys the current run when nothing of it is used. */
void bin_trim(struct bin *b);

/* Walks B1 to B3 and every run on the lists. */
void bin_check(struct bin *b);

#endif
