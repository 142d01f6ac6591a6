#include "thread/registry.h"

#include "base/options.h"
#include "os/system.h"

struct lock registry_lock;
struct heap *registry_heaps, *registry_cursor;

/* How many lanes there may be now. The system is asked only when it matters: not for the first thread. */
static unsigned lane_limit(void) {
    if (options.lanes != 0) return options.lanes;
    return (unsigned)min_size(os_cpu_count(), LANE_MAX);
}

struct lane *registry_join_lane_locked(void) {
    struct lane *best = NULL;
    unsigned existing = 0;
    while (existing < LANE_MAX && lane_get(existing) != NULL) existing++;
    for (unsigned i = 0; i < existing; i++) {
        struct lane *l = lane_get(i);
        if (best == NULL || l->heaps < best->heaps) best = l;
    }
    if (best == NULL || (best->heaps != 0 && existing < lane_limit())) {
        struct lane *made = existing < LANE_MAX ? lane_make_locked(existing) : NULL;
        if (made != NULL) {
            best = made;
            relaxed_store(&magazine_lanes, existing + 1);
        }
    }
    if (best != NULL) best->heaps++;
    return best;
}

void registry_add_locked(struct heap *h) {
    h->previous = NULL;
    h->next = registry_heaps;
    if (registry_heaps != NULL) registry_heaps->previous = h;
    registry_heaps = h;
}

void registry_keep_only_locked(struct heap *own) {
    for (struct heap *h = registry_heaps, *next; h != NULL; h = next) {
        next = h->next;
        if (h == own || heap_is_shared(h)) continue;
        h->lane->heaps--;
        registry_remove_locked(h);
    }
}

void registry_remove_locked(struct heap *h) {
    if (h == registry_cursor) registry_cursor = h->next;
    if (h->previous != NULL) h->previous->next = h->next;
    else registry_heaps = h->next;
    if (h->next != NULL) h->next->previous = h->previous;
}
