/* lane.h - an independent set of bins, one for each size class, and an inbox for cells that other lanes freed.
 *
 * Threads are spread over lanes; while there are no more threads than lanes, each has its own. A lane is made when its
 * first thread comes, and stays. */
#ifndef HUDDLE_LANE_LANE_H
#define HUDDLE_LANE_LANE_H

#include "lane/bin.h"
#include "lane/inbox.h"

enum { LANE_MAX = 64 };

_Static_assert((int)LANE_MAX == (int)OWNER_LANE_LAST, "every lane has an owner number in the page map");

struct lane {
    struct bin bins[CLASS_COUNT];
    uint32_t number;
    uint32_t heaps; /* threads in this lane; guarded by the registry's lock */
    struct inbox inbox __attribute__((aligned(64)));
};

/* The lane with this number, or NULL when it does not exist (yet). */
struct lane *lane_get(unsigned number);

/* The lane with this number, made when it does not exist. NULL when there is no memory. The registry's lock is held. */
struct lane *lane_make_locked(unsigned number);

/* Takes the lane's inbox and puts its cells back into their runs, under the locks of the bins: for a lane that sleeps.
 * Stops the program at a cell that was freed twice. */
void lane_drain(struct lane *l);

/* Puts the cells of one message back into their runs. */
void lane_drain_message(struct lane *l, const struct message *m);

/* Checks a pointer of a message, which another lane freed: it is the start of a cell of this lane, of the class that it
 * says. Stops the program when not (the run went back to the system meanwhile: the cell was freed twice). */
struct cell_ref lane_resolve(const struct lane *l, void *cell, unsigned *class);

/* Drains the inbox and gives up the runs that nobody uses. */
void lane_trim(struct lane *l);

void lane_check(struct lane *l);

#endif
