#include "span/span.h"

#include "base/options.h"
#include "os/fail.h"
#include "os/memory.h"
#include "span/large.h"
#include "span/meta.h"
#include "span/page_map.h"
#include "span/purge.h"

enum {
    FIRST_REGION_BYTES = 4 << 20,
    LAST_REGION_BYTES = REGION_UNITS * UNIT_BYTES,
    SCARCE_PART = 8,
    SCARCE_REGION_PART = 32,
    HUGE_PAGE_BYTES = 2 << 20,
};

struct lock span_lock;
struct region *span_regions;

/* Guarded by span_lock. */
static struct region **last_link = &span_regions;
static size_t region_bytes;
static struct region *retired;

static size_t scarce_limit; /* the process's limit once a part of it is used, else 0; relaxed */

static size_t huge_regions; /* with is_huge; written under span_lock, relaxed */

static void *take_wished_locked(size_t units, size_t alignment, enum region_wish wish, bool is_dense, size_t *clean) {
    for (struct region *r = span_regions; r != NULL; r = r->next) {
        if (r->is_dense && !is_dense && wish != REGION_DIRTY) continue;
        int i = region_find_locked(r, units, alignment, wish);
        if (i < 0) continue;
        *clean = region_take_locked(r, (size_t)i, units);
        return r->base + (size_t)i * UNIT_BYTES;
    }
    return NULL;
}

/* From dense regions too, or only what is dirty of them. */
static void *take(size_t units, size_t alignment, bool is_dense, size_t *clean) {
    lock_take(&span_lock, RANK_SPAN);
    void *p = take_wished_locked(units, alignment, REGION_DIRTY, is_dense, clean);
    lock_release(&span_lock, RANK_SPAN);
    if (p != NULL) return p;
    bool is_more = span_take_back != NULL && span_take_back(units * UNIT_BYTES);
    lock_take(&span_lock, RANK_SPAN);
    if (is_more) p = take_wished_locked(units, alignment, REGION_DIRTY, is_dense, clean);
    if (p == NULL) p = take_wished_locked(units, alignment, REGION_ANY, is_dense, clean);
    lock_release(&span_lock, RANK_SPAN);
    return p;
}

/* A retired region to use again, or a new record; NULL when there is no memory. */
static struct region *take_record(void) {
    lock_take(&span_lock, RANK_SPAN);
    struct region *r = retired;
    if (r != NULL) retired = r->next_retired;
    lock_release(&span_lock, RANK_SPAN);
    return r != NULL ? r : meta_alloc(sizeof *r);
}

static void keep_record(struct region *r) {
    lock_take(&span_lock, RANK_SPAN);
    r->next_retired = retired;
    retired = r;
    lock_release(&span_lock, RANK_SPAN);
}

static char *first_unit(char *p, bool is_dense) {
    return (char *)round_up((uintptr_t)p, is_dense ? HUGE_PAGE_BYTES : UNIT_BYTES);
}

/* Fills in and publishes a region for n mapped bytes at p, which need not be aligned. */
static bool add_region(struct region *r, char *p, size_t n, bool is_dense, bool is_huge) {
    char *base = first_unit(p, is_dense);
    size_t units = min_size((size_t)(p + n - base) / UNIT_BYTES, REGION_UNITS);
    if (!page_map_cover(base, units * UNIT_BYTES)) return false;
    page_map_set_owner(base, units, OWNER_FREE);
    lock_take(&span_lock, RANK_SPAN);
    r->base = base;
    r->map_start = p;
    r->map_bytes = n;
    r->units = (uint32_t)units;
    r->is_dense = is_dense;
    r->is_huge = is_huge;
    if (is_huge) relaxed_store(&huge_regions, huge_regions + 1);
    region_put_locked(r, 0, units, false);
    region_bytes += n;
    if (!r->is_linked) {
        r->is_linked = true;
        release_store(last_link, r); /* statistics walk the list without the lock */
        last_link = &r->next;
    }
    lock_release(&span_lock, RANK_SPAN);
    return true;
}

size_t span_release_unused(void) {
    size_t bytes = large_release_cached(false);
    for (;;) {
        lock_take(&span_lock, RANK_SPAN);
        struct region *r = span_regions;
        while (r != NULL && !region_retire_locked(r)) r = r->next;
        if (r != NULL) {
            region_bytes -= r->map_bytes;
            if (r->is_huge) relaxed_store(&huge_regions, huge_regions - 1);
            r->is_huge = false;
        }
        lock_release(&span_lock, RANK_SPAN);
        if (r == NULL) return bytes;
        char *base = first_unit(r->map_start, r->is_dense);
        page_map_set_owner(base, min_size((size_t)(r->map_start + r->map_bytes - base) / UNIT_BYTES, REGION_UNITS), OWNER_NONE);
        if (!os_unmap(r->map_start, r->map_bytes)) {
            add_region(r, r->map_start, r->map_bytes, r->is_dense, false); /* it is still mapped */
            return bytes;
        }
        bytes += r->map_bytes;
        keep_record(r);
    }
}

/* How large the next region should be: a quarter of what there is, so that their number grows with the logarithm. Near a
 * limit less, for what describes a region is mapped as it is used, and must find room beside the last. */
static size_t next_region_bytes(void) {
    lock_take(&span_lock, RANK_SPAN);
    size_t n = region_bytes / 4, limit = relaxed_load(&scarce_limit);
    lock_release(&span_lock, RANK_SPAN);
    if (limit != 0) n = min_size(n, limit / SCARCE_REGION_PART);
    return min_size(max_size(round_up(n, FIRST_REGION_BYTES), FIRST_REGION_BYTES), LAST_REGION_BYTES);
}

/* The limit is asked for again with every region but the first: a program may set it at any time, and small programs
 * do not make the calls. */
static void note_limit(void) {
    lock_take(&span_lock, RANK_SPAN);
    bool is_first = region_bytes == 0;
    lock_release(&span_lock, RANK_SPAN);
    if (is_first) return;
    size_t limit = os_memory_limit();
    relaxed_store(&scarce_limit, os_memory_counters().mapped_bytes > limit / SCARCE_PART ? limit : 0);
}

bool span_is_scarce(void) {
    return relaxed_load(&scarce_limit) != 0;
}

/* Whether a region for runs is to have huge pages: a growing heap would otherwise fault once for each page, and what of the
 * last huge page is not used is little beside the heap. */
static bool is_dense_wanted(void) {
    size_t from = (size_t)relaxed_load(&options.huge_mib) * (KIB * KIB);
    lock_take(&span_lock, RANK_SPAN);
    bool is_large = region_bytes >= from;
    lock_release(&span_lock, RANK_SPAN);
    return from != 0 && is_large && !span_is_scarce();
}

/* A new region with room for `units` at `alignment`: as large as is usual, else as large as the system still gives. */
static bool grow(size_t units, size_t alignment, bool is_dense) {
    size_t need = units * UNIT_BYTES + (alignment > UNIT_BYTES ? alignment : 0);
    if (need > LAST_REGION_BYTES) return false;
    note_limit();
    is_dense = is_dense && is_dense_wanted();
    struct region *r = take_record();
    if (r == NULL) return false;
    for (size_t n = max_size(next_region_bytes(), need); n >= need; n = n == need ? 0 : max_size(round_up(n / 2, UNIT_BYTES), need)) {
        /* A mapping at an odd page loses the unit that its ends would make together. */
        size_t with_slack = n + (is_dense ? HUGE_PAGE_BYTES : UNIT_BYTES);
        void *p = os_map(NULL, with_slack);
        if (p == NULL) continue;
        if (is_dense) os_want_huge(p, with_slack);
        else if (n == FIRST_REGION_BYTES) os_keep_small(p, with_slack);
        if (add_region(r, p, with_slack, is_dense, is_dense)) return true;
        os_unmap(p, with_slack); /* there is no room for the page map beside it: perhaps beside a smaller one */
    }
    keep_record(r);
    return false;
}

static void *alloc(size_t units, size_t alignment, bool is_dense, bool *is_zero) {
    ASSERT(units != 0 && units <= REGION_UNITS);
    for (bool is_last = false;;) {
        size_t clean;
        void *p = take(units, alignment, is_dense || is_last, &clean);
        if (p != NULL) {
            *is_zero = clean == units;
            purge_note_taken(clean);
            return p;
        }
        if (is_last) return NULL;
        is_last = !grow(units, alignment, is_dense) && !(span_release_unused() != 0 && grow(units, alignment, is_dense));
    }
}

void *span_alloc(size_t units, size_t alignment, bool *is_zero) {
    return alloc(units, alignment, false, is_zero);
}

void *span_alloc_dense(size_t units, bool *is_zero) {
    return alloc(units, UNIT_BYTES, units == 1, is_zero);
}

static struct region *region_of_locked(const void *p) {
    for (struct region *r = span_regions; r != NULL; r = r->next)
        if ((uintptr_t)p - (uintptr_t)r->base < (size_t)r->units * UNIT_BYTES) return r;
    REQUIRE(false);
    return NULL;
}

static size_t index_in(const struct region *r, const void *p) {
    return (size_t)((const char *)p - r->base) / UNIT_BYTES;
}

static void put(void *p, size_t units, bool is_dirty) {
    lock_take(&span_lock, RANK_SPAN);
    struct region *r = region_of_locked(p);
    region_put_locked(r, index_in(r, p), units, is_dirty);
    if (HUDDLE_AUDIT) region_check(r);
    lock_release(&span_lock, RANK_SPAN);
}

/* Units that nothing was in yet, but that huge pages of their neighbours may have brought. Taken meanwhile, as all that is
 * purged is. */
static void purge_untouched(struct region *r) {
    size_t i = 0, n;
    for (;; i += n) {
        lock_take(&span_lock, RANK_SPAN);
        n = region_next_untouched_locked(r, i, HUGE_PAGE_BYTES / UNIT_BYTES, &i);
        if (n != 0) region_take_locked(r, i, n);
        lock_release(&span_lock, RANK_SPAN);
        if (n == 0) return;
        put(r->base + i * UNIT_BYTES, n, !os_purge(r->base + i * UNIT_BYTES, n * UNIT_BYTES));
    }
}

void span_before_purge(const void *p) {
    if (likely(relaxed_load(&huge_regions) == 0)) return;
    lock_take(&span_lock, RANK_SPAN);
    struct region *r = region_of_locked(p);
    char *base = r->base;
    size_t bytes = r->is_huge ? r->units * (size_t)UNIT_BYTES : 0;
    if (bytes != 0) relaxed_store(&huge_regions, huge_regions - 1);
    r->is_huge = false;
    lock_release(&span_lock, RANK_SPAN);
    if (bytes == 0) return;
    os_keep_small(base, bytes);
    purge_untouched(r);
}

void span_populate(void *p, size_t n) {
    if (relaxed_load(&huge_regions) == 0) os_populate(p, n);
}

void span_free(void *p, size_t units) {
    bool is_purged = purge_is_excess(units);
    if (is_purged) {
        span_before_purge(p);
        is_purged = os_purge(p, units * UNIT_BYTES);
    }
    put(p, units, !is_purged);
    purge_poll(units * UNIT_BYTES);
}

void span_free_clean(void *p, size_t units) {
    put(p, units, false);
}

bool span_extend(void *p, size_t old_units, size_t new_units) {
    lock_take(&span_lock, RANK_SPAN);
    struct region *r = region_of_locked(p);
    size_t end = index_in(r, p) + old_units;
    bool is_free = region_is_free_locked(r, end, new_units - old_units);
    if (is_free) region_take_locked(r, end, new_units - old_units);
    lock_release(&span_lock, RANK_SPAN);
    return is_free;
}
