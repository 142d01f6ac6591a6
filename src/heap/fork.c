#include "heap/fork.h"

#include "os/thread.h"
#include "span/meta.h"
#include "span/purge.h"
#include "span/span.h"
#include "thread/reclaim.h"
#include "thread/registry.h"
#include "zone/chunk.h"

/* Bins are many locks of one rank; only here more than one is held. The audit's note is made for the first and the
 * last. */
static void take_bins(void) {
    lock_note_taken(RANK_BIN);
    for (unsigned i = 0; i < LANE_MAX && lane_get(i) != NULL; i++)
        for (unsigned class = 0; class < CLASS_COUNT; class++) lock_take_unranked(&lane_get(i)->bins[class].lock);
}

static void release_bins(void) {
    lock_note_released(RANK_BIN);
    for (unsigned i = 0; i < LANE_MAX && lane_get(i) != NULL; i++)
        for (unsigned class = 0; class < CLASS_COUNT; class++) lock_release_unranked(&lane_get(i)->bins[class].lock);
}

/* From prepare to parent or child, guarded by registry_lock: the forking thread's heap, and which thread it is (the
 * address of its heap_place; read without the lock only to ask whether it is the caller). */
static struct heap_use forking;
static uintptr_t *forking_thread;

void fork_prepare(void) {
    struct heap_use use = heap_enter();
    if (use.is_nested) return;
    if (use.heap == NULL || !heap_is_shared(use.heap)) lock_take(&heap_late_lock, RANK_LATE); /* else heap_enter did */
    lock_take(&reclaim_lock, RANK_RECLAIM);
    lock_take(&reclaim_pages_lock, RANK_PAGES);
    lock_take(&registry_lock, RANK_REGISTRY);
    take_bins();
    lock_take(&message_pool_lock, RANK_POOL);
    lock_take(&purge_lock, RANK_PURGE);
    lock_take(&depot_lock, RANK_DEPOT);
    lock_take(&span_lock, RANK_SPAN);
    lock_take(&meta_lock, RANK_META);
    forking = use;
    relaxed_store(&forking_thread, &heap_place);
}

static void release_all(void) {
    struct heap_use use = forking;
    relaxed_store(&forking_thread, NULL);
    lock_release(&meta_lock, RANK_META);
    lock_release(&span_lock, RANK_SPAN);
    lock_release(&depot_lock, RANK_DEPOT);
    lock_release(&purge_lock, RANK_PURGE);
    lock_release(&message_pool_lock, RANK_POOL);
    release_bins();
    lock_release(&registry_lock, RANK_REGISTRY);
    lock_release(&reclaim_pages_lock, RANK_PAGES);
    lock_release(&reclaim_lock, RANK_RECLAIM);
    if (use.heap == NULL || !heap_is_shared(use.heap)) lock_release(&heap_late_lock, RANK_LATE);
    heap_leave(use);
}

void fork_parent(void) {
    if (relaxed_load(&forking_thread) == &heap_place) release_all();
}

void fork_child(void) {
    if (forking_thread != &heap_place) return;
    registry_keep_only_locked(forking.heap);
    os_thread_forget();
    /* A lock's word may say that somebody sleeps: nobody does here, and a wake-up for nobody is harmless. */
    release_all();
}
