/* span.h - whole 64 KiB units for runs, large blocks and zones: taken from regions, regions from the system.
 *
 * Dirty units are handed out before clean ones, single ones at low addresses, several where the gap is the shortest:
 * what was touched is touched again. Regions start at 4 MiB and grow with the heap to 64 MiB. From the option huge_mib on
 * those for runs of one unit are dense: with huge pages, until something in them is purged. The system is only asked
 * outside the span lock. */
#ifndef HUDDLE_SPAN_SPAN_H
#define HUDDLE_SPAN_SPAN_H

#include "base/base.h"
#include "os/lock.h"
#include "span/region.h"

/* Guards all regions, the list of large blocks, and the top of the page map. */
extern struct lock span_lock;

/* The list of all regions, oldest first; grows at the end, and a retired region stays in it, without units. Guarded by
 * span_lock. */
extern struct region *span_regions;

/* `units` (1 to REGION_UNITS) at a multiple of `alignment` (a power of two from UNIT_BYTES up; a larger one and the
 * units must fit into a region together), or NULL. Says whether the
 * memory is known to read as zero. The descriptors are the caller's to write. */
void *span_alloc(size_t units, size_t alignment, bool *is_zero);

/* As span_alloc, for what is used in full, as a run's cells are: also clean units of dense regions. What may be used in part
 * only, as large blocks and zones, would bring huge pages of which little is used. */
void *span_alloc_dense(size_t units, bool *is_zero);

/* zone/'s, absent where only the layers below it are linked: frees spans that are kept for zones, if they are so many bytes
 * or more. Called, with no lock held, before memory is taken that has to be faulted in. */
bool span_take_back(size_t bytes) __attribute__((weak));

/* To be called before memory inside spans in use is purged: the region of p is not to have huge pages any more, or the
 * system would fill the gaps again (khugepaged does, for a single page that is left). */
void span_before_purge(const void *p);

/* Has the system provide n bytes of a span at once that will soon be written, instead of at a fault for each page. Only a
 * matter of speed. */
void span_populate(void *p, size_t n);

/* Takes units back; the descriptors are written already (an owner that nobody answers to). They are dirty. */
void span_free(void *p, size_t units);

/* As span_free, of units that read as zero and hold no memory. */
void span_free_clean(void *p, size_t units);

/* Unmaps the regions in which nothing is used, and freed blocks that are kept: for when the system refuses address
 * space. Returns the bytes. */
size_t span_release_unused(void);

/* Whether address space is limited, and an eighth of the limit is used: nothing should be rounded up to units then. As
 * of the last region that was made; read relaxed. */
bool span_is_scarce(void);

/* Lengthens a span in place from old_units to new_units. Returns false when what follows is not free. */
bool span_extend(void *p, size_t old_units, size_t new_units);

#endif
