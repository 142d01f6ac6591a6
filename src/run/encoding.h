/* encoding.h - how a run notes which of its cells are free: the choice, and what each encoding provides.
 *
 * HUDDLE_ENCODING chooses one when huddle is built; run/encoding_NAME.h is the whole of it, and says how it works. A
 * *mark* is where the state of one cell stands. An encoding defines
 *
 *   ENCODING_NAME, ENCODING_CELLS_MAX   the most cells of a run
 *   enum cell_state      CELL_LIVE: the program has it. CELL_CACHED: a magazine has it. CELL_RETURNING: a thread of
 *                        another lane freed it
 *   mark_t               a word that leads to a mark
 *   mark_at              the mark of the cell with an index; `marks` begins at run_marks
 *   mark_index           the reverse
 *   mark_is, mark_set    for whoever holds the cell; LIVE becomes any other state, RETURNING becomes CACHED, CACHED
 *                        becomes LIVE. Safe beside threads that do it to other cells of the run
 *   encoding_bytes       what the marks and lists of a run with so many cells take
 *   encoding_init        no cell is live or free; the memory is zeroed. The mark at index `cells` exists and is never
 *                        live either: a wrong pointer into the rest of the run may lead to it
 *   encoding_lease_locked      up to n free cells to `out`, in address order as far as the lists are; they become
 *                              CACHED. r->groups is 0 when there are none, and only then
 *   encoding_is_free_locked    whether a cell whose mark says CACHED or RETURNING is free, where a mark does not tell
 *   encoding_is_listed_locked  whether the cell with an index is free
 *   encoding_give_back_locked  a CACHED cell becomes free
 *   encoding_walk_locked       requires that the lists are whole, and returns how many cells are on them
 *   encoding_count             the cells from `first` to `fresh` by their states; the caller holds the bin's lock
 *
 * The free lists are guarded by the lock of the run's bin. Encodings: Mozilla bug 1980047, docs/encodings.md. */
#ifndef HUDDLE_RUN_ENCODING_H
#define HUDDLE_RUN_ENCODING_H

#include "base/base.h"
#include "os/fail.h"
#include "run/run_record.h"

#include HUDDLE_ENCODING_FILE

_Static_assert((int)CELL_LIVE != (int)CELL_CACHED && (int)CELL_LIVE != (int)CELL_RETURNING &&
                   (int)CELL_CACHED != (int)CELL_RETURNING,
               "what free and the inbox check");

#endif
