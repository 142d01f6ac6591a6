#include "thread/reclaim.h"

#include "os/memory.h"
#include "span/purge.h"
#include "thread/registry.h"

enum { BATCH = 16 }; /* heaps closed at a time: about 0.3 ms that an owner who comes back may have to wait */

struct lock reclaim_lock, reclaim_pages_lock;

static void close_heap(struct heap *h) {
    relaxed_store(&h->owner_key, HEAP_CLOSED_KEY);
    relaxed_store(&h->pool, NULL);
    for (size_t i = 0; i < DIRECT_SIZES; i++) relaxed_store(&h->by_size[i], &heap_empty.magazines[0]);
}

static void open_heap_locked(struct heap *h) {
    for (size_t i = 0; i < DIRECT_SIZES; i++) relaxed_store(&h->by_size[i], &h->magazines[size_class_of(i * GRAIN_BYTES)]);
    relaxed_store(&h->pool, h->pool_kept);
    release_store(&h->owner_key, (uint64_t)h->owner << INDEX_OWNER_SHIFT);
}

void reclaim_open(struct heap *h) {
    lock_take(&reclaim_lock, RANK_RECLAIM);
    open_heap_locked(h);
    lock_release(&reclaim_lock, RANK_RECLAIM);
}

/* Whether the owner is outside the allocator: false also when its thread-local memory cannot be read. */
static bool is_outside(const struct heap *h) {
    uintptr_t place;
    return os_read_word(h->place, &place) && place != 0;
}

/* Whether to take it; notes its lane as busy when its owner is not idle. The registry's lock is held. */
static bool is_chosen(struct heap *h, bool all, uint64_t *busy_lanes) {
    if (acquire_load(&h->place) == NULL || heap_is_closed(h)) return false;
    uint32_t activity = relaxed_load(&h->activity);
    bool is_idle = all || activity == h->activity_seen;
    h->activity_seen = activity;
    if (!is_idle) *busy_lanes |= (uint64_t)1 << h->lane->number;
    return is_idle;
}

/* Closes up to BATCH chosen heaps from registry_cursor on. */
static size_t close_some(struct heap **closed, bool all, uint64_t *busy_lanes) {
    size_t n = 0;
    struct heap *h = registry_cursor;
    for (; h != NULL && n < BATCH; h = h->next) {
        if (!is_chosen(h, all, busy_lanes)) continue;
        close_heap(h);
        closed[n++] = h;
    }
    registry_cursor = h;
    return n;
}

/* Opens those again that are in use. */
static size_t keep_outside(struct heap **closed, size_t n) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (is_outside(closed[i])) closed[kept++] = closed[i];
        else open_heap_locked(closed[i]);
    }
    return kept;
}

/* Returns false at the end of the registry. */
static bool reclaim_some(bool all, uint64_t *busy_lanes) {
    struct heap *closed[BATCH];
    lock_take(&reclaim_lock, RANK_RECLAIM);
    lock_take(&registry_lock, RANK_REGISTRY);
    size_t n = close_some(closed, all, busy_lanes);
    bool is_ordered = n != 0 && os_barrier(), is_more = registry_cursor != NULL;
    if (is_ordered) n = keep_outside(closed, n);
    /* From here on a thread that ends waits in heap_enter: its heap stays. */
    lock_release(&registry_lock, RANK_REGISTRY);
    is_ordered = is_ordered && os_barrier();
    purge_defer(true);
    for (size_t i = 0; i < n; i++) {
        if (is_ordered) heap_flush(closed[i]);
        else open_heap_locked(closed[i]);
    }
    purge_defer(false);
    lock_release(&reclaim_lock, RANK_RECLAIM);
    return is_more;
}

bool reclaim(bool all) {
    uint64_t busy_lanes = 0;
    if (os_barrier()) { /* the first one registers, which takes long: before any lock is taken */
        lock_take(&registry_lock, RANK_REGISTRY);
        registry_cursor = registry_heaps;
        lock_release(&registry_lock, RANK_REGISTRY);
        while (reclaim_some(all, &busy_lanes)) {
        }
    }
    for (unsigned i = 0; i < LANE_MAX && lane_get(i) != NULL; i++)
        if ((busy_lanes >> i & 1) == 0) lane_trim(lane_get(i));
    return busy_lanes != 0;
}

bool reclaim_pages(bool all) {
    bool is_wanted = false, is_more;
    for (unsigned i = 0; i < LANE_MAX && lane_get(i) != NULL; i++) {
        for (unsigned class = 0; class < CLASS_COUNT; class++) {
            size_t left = SIZE_MAX;
            do {
                lock_take(&reclaim_pages_lock, RANK_PAGES);
                is_more = bin_purge(&lane_get(i)->bins[class], &left, all, &is_wanted);
                lock_release(&reclaim_pages_lock, RANK_PAGES);
            } while (is_more);
        }
    }
    return is_wanted;
}

bool purge_pages(void) {
    return reclaim_pages(false);
}

bool purge_reclaim(void) {
    return reclaim(false);
}
