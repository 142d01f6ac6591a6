#include "span/purge.h"

#include "base/options.h"
#include "os/memory.h"
#include "os/system.h"
#include "os/thread.h"
#include "span/large.h"
#include "span/page_map.h"
#include "span/span.h"

enum {
    BATCH = 64,              /* ranges in one system call */
    BATCH_UNITS = 512,       /* 32 MiB in one system call: about 3 ms of zeroing later */
    POLL_BYTES = 1 << 20,    /* the clock is read at least when this much became free, */
    POLL_CALLS = 16,         /* or after so many calls */
    FIRST_TARGET_UNITS = 8,
    AT_ONCE_UNITS = 4,       /* spans of 256 KiB and more are purged by themselves, smaller ones together with others, */
    BATCH_EXCESS_UNITS = 16, /* when they are 1 MiB above the target */
    HELPER_UNITS = 64,       /* the helper thread is started for 4 MiB and more, */
    HELPER_CACHED = 1 << 20, /* or when threads cache 1 MiB and more */
    HELPER_CELLS = 4 << 20,  /* or 4 MiB came back to runs */
    HELPER_CACHED_LEFT = 256 << 10,
    HELPER_SLEEP_MIN_MS = 10,
    HELPER_LATE = 6, /* half purge_ms: then a thread of the program does what the helper should have done */
    STRETCH_MAX = 8, /* half purge_ms */
    NEVER = UINT32_MAX,
};

/* Relaxed: races lose a count, and make a tick a few calls late. */
static uint32_t calls;
static size_t bytes_since;
static bool is_deferred;
static size_t cells_bytes; /* that became free in runs since the helper looked */

size_t purge_cached_bytes;

struct lock purge_lock;
static uint64_t last_tick_ms; /* relaxed; written under purge_lock */

/* Relaxed, and races are harmless: the amount to keep, what was purged for being above it in the last ticks, and the
 * least that was kept at any time since the last one. */
static size_t target_units = FIRST_TARGET_UNITS, regrettable_units, low_units;

/* Relaxed too: what the last tick purged, and whether any of it, or anything at all, was taken since. */
static size_t aged_units;
static bool is_mistaken, is_active;

/* After how many ticks the purge is made, and how many of them are over. Guarded by purge_lock. */
static uint32_t stretch = 1, elapsed;

struct batch {
    size_t count, units;
    struct os_range range[BATCH];
    struct region *region[BATCH];
};

/* Takes up to a batch of dirty free units, of all or the aged ones, at most `most` units. */
static void collect(struct batch *b, bool all, size_t most) {
    b->count = b->units = 0;
    most = min_size(most, BATCH_UNITS);
    lock_take(&span_lock, RANK_SPAN);
    for (struct region *r = span_regions; r != NULL; r = r->next) {
        size_t start = 0, n;
        while (b->count < BATCH && b->units < most && (n = region_next_dirty_locked(r, start, all, &start)) != 0) {
            n = min_size(n, most - b->units);
            region_take_locked(r, start, n);
            b->range[b->count] = (struct os_range){r->base + start * UNIT_BYTES, n * UNIT_BYTES};
            b->region[b->count++] = r;
            b->units += n;
        }
    }
    lock_release(&span_lock, RANK_SPAN);
}

/* Purges a batch and puts it back. Returns the units that are clean now; the rest failed and stays dirty. */
static size_t purge_batch(struct batch *b) {
    for (size_t i = 0; i < b->count; i++) span_before_purge(b->range[i].start);
    size_t done = os_purge_many(b->range, b->count), units = 0;
    lock_take(&span_lock, RANK_SPAN);
    for (size_t i = 0; i < b->count; i++) {
        struct region *r = b->region[i];
        size_t n = b->range[i].bytes / UNIT_BYTES;
        region_put_locked(r, (size_t)((char *)b->range[i].start - r->base) / UNIT_BYTES, n, i >= done);
        if (i < done) units += n;
    }
    lock_release(&span_lock, RANK_SPAN);
    return units;
}

/* Purges until nothing (aged) is left or the system refuses. */
static size_t purge_units(bool all, size_t most) {
    struct batch b;
    size_t units = 0;
    while (units < most) {
        collect(&b, all, most - units);
        if (b.count == 0) break;
        size_t done = purge_batch(&b);
        units += done;
        if (done != b.units) break;
    }
    return units;
}

static size_t kept_units(void) {
    return relaxed_load(&region_dirty_free_units) + large_kept_bytes() / UNIT_BYTES;
}

/* What is free and dirty beyond the target. */
static size_t excess_units(size_t more) {
    size_t dirty = kept_units() + more, target = relaxed_load(&target_units);
    return dirty > target ? dirty - target : 0;
}

static void note_purged(size_t units) {
    relaxed_store(&regrettable_units, relaxed_load(&regrettable_units) + units);
}

/* Purges what is beyond the target, first what was not needed for the longest time; with `more` units that are about to
 * be freed. */
static void purge_excess(size_t more, bool all) {
    if (!lock_try(&purge_lock, RANK_PURGE)) return;
    size_t excess = excess_units(more), done = purge_units(false, excess);
    if (all && done < excess) done += purge_units(true, excess - done);
    note_purged(done);
    lock_release(&purge_lock, RANK_PURGE);
}

bool purge_is_excess(size_t units) {
    if (units < AT_ONCE_UNITS || relaxed_load(&options.purge_ms) == NEVER || excess_units(units) < units / 2) return false;
    purge_excess(units, false);
    if (excess_units(units) < units / 2) return false;
    note_purged(units);
    return true;
}

void purge_note_taken(size_t clean_units) {
    relaxed_store(&low_units, min_size(relaxed_load(&low_units), kept_units()));
    relaxed_store(&is_active, true);
    if (clean_units != 0 && relaxed_load(&aged_units) >= clean_units) relaxed_store(&is_mistaken, true);
    size_t regret = min_size(clean_units, relaxed_load(&regrettable_units));
    if (likely(regret == 0)) return;
    relaxed_store(&is_mistaken, true);
    relaxed_store(&regrettable_units, relaxed_load(&regrettable_units) - regret);
    relaxed_store(&target_units, relaxed_load(&target_units) + regret);
}

static void lower_target(void) {
    size_t target = relaxed_load(&target_units), unused = min_size(relaxed_load(&low_units), target);
    relaxed_store(&target_units, max_size(target - (unused + 3) / 4, FIRST_TARGET_UNITS));
    relaxed_store(&low_units, kept_units());
    relaxed_store(&regrettable_units, relaxed_load(&regrettable_units) / 2);
}

/* Twice as rare when what was purged was needed; as usual again when the program rests. */
static void set_stretch(void) {
    if (relaxed_load(&is_mistaken)) stretch = (uint32_t)min_size(stretch * (size_t)2, STRETCH_MAX);
    if (!relaxed_load(&is_active)) stretch = 1;
    relaxed_store(&is_mistaken, false);
    relaxed_store(&is_active, false);
}

static void tick(void) {
    relaxed_store(&last_tick_ms, os_time_ms());
    elapsed++;
    set_stretch();
    if (elapsed < stretch) return;
    elapsed = 0;
    relaxed_store(&aged_units, purge_units(false, SIZE_MAX));
    lower_target();
    lock_take(&span_lock, RANK_SPAN);
    for (struct region *r = span_regions; r != NULL; r = r->next) region_age_locked(r);
    lock_release(&span_lock, RANK_SPAN);
    large_release_cached(true);
}

/* The helper thread: ticks as long as much is kept, so that memory goes back although the program makes no call. */
static void help(void) {
    bool is_cached = true, is_aging = true;
    while (kept_units() > FIRST_TARGET_UNITS || is_cached || is_aging) {
        uint32_t purge_ms = relaxed_load(&options.purge_ms);
        if (purge_ms == NEVER || relaxed_load(&options.helper) == 0) return;
        uint64_t since = os_time_ms() - relaxed_load(&last_tick_ms);
        os_sleep_ms(since < purge_ms / 2 ? max_size(purge_ms / 2 - since, HELPER_SLEEP_MIN_MS) : HELPER_SLEEP_MIN_MS);
        if (os_thread_is_left_behind()) return;
        is_cached = purge_reclaim != NULL && purge_reclaim() && relaxed_load(&purge_cached_bytes) > HELPER_CACHED_LEFT;
        relaxed_store(&cells_bytes, 0);
        is_aging = purge_pages != NULL && purge_pages();
        is_cached |= purge_depot != NULL && purge_depot();
        lock_take(&purge_lock, RANK_PURGE);
        if (os_time_ms() - relaxed_load(&last_tick_ms) >= purge_ms / 2) tick();
        lock_release(&purge_lock, RANK_PURGE);
    }
}

static size_t purge_all_locked(size_t keep) {
    size_t released = large_release_cached(false);
    lock_take(&span_lock, RANK_SPAN);
    size_t dirty = 0;
    for (struct region *r = span_regions; r != NULL; r = r->next) dirty += r->dirty_free_units;
    lock_release(&span_lock, RANK_SPAN);
    size_t kept = min_size(keep / UNIT_BYTES, dirty);
    return released + purge_units(true, dirty - kept) * UNIT_BYTES;
}

void purge_defer(bool deferred) {
    relaxed_store(&is_deferred, deferred);
}

static bool is_help_wanted(void) {
    if (relaxed_load(&options.helper) == 0) return false;
    if (&depot_bytes != NULL && relaxed_load(&depot_bytes) >= HELPER_CACHED) return true;
    return kept_units() >= HELPER_UNITS || relaxed_load(&purge_cached_bytes) >= HELPER_CACHED ||
           relaxed_load(&cells_bytes) >= HELPER_CELLS;
}

void purge_poll(size_t bytes) {
    uint32_t purge_ms = relaxed_load(&options.purge_ms);
    if (purge_ms == NEVER || relaxed_load(&is_deferred)) return;
    if (purge_ms == 0) {
        if (!lock_try(&purge_lock, RANK_PURGE)) return; /* the next free sees to what is left */
        purge_all_locked(0);
        lock_release(&purge_lock, RANK_PURGE);
        return;
    }
    if (bytes / UNIT_BYTES < AT_ONCE_UNITS && excess_units(0) >= BATCH_EXCESS_UNITS) purge_excess(0, true);
    uint32_t n = relaxed_load(&calls) + 1;
    size_t sum = relaxed_load(&bytes_since) + bytes;
    relaxed_store(&calls, n % POLL_CALLS);
    relaxed_store(&bytes_since, sum);
    if (n < POLL_CALLS && sum < POLL_BYTES) return;
    relaxed_store(&bytes_since, 0);
    /* What is much is left to the helper: to give 200 MB back takes 16 ms. It may be late, or cannot be had. */
    bool is_helped = os_thread_is_running(), is_wanted = !is_helped && is_help_wanted();
    uint64_t late = relaxed_load(&last_tick_ms) + purge_ms / 2 * (is_helped ? HELPER_LATE : 1);
    bool is_due = os_time_ms() >= late;
    if ((!is_due && !is_wanted) || !lock_try(&purge_lock, RANK_PURGE)) return;
    is_due = !(is_wanted && os_thread_start(help, "huddle")) && is_due;
    if (is_due) tick();
    lock_release(&purge_lock, RANK_PURGE);
    if (is_due && purge_depot != NULL) purge_depot();
}

void purge_note_cells(size_t bytes) {
    shared_add(&cells_bytes, bytes);
    purge_poll(bytes);
}

size_t purge_all(size_t keep) {
    lock_take(&purge_lock, RANK_PURGE);
    size_t released = purge_all_locked(keep);
    lock_release(&purge_lock, RANK_PURGE);
    return released;
}
