#include "observe/stats.h"

#include "heap/nested.h"
#include "os/memory.h"
#include "span/large.h"
#include "span/meta.h"
#include "span/span.h"
#include "thread/registry.h"
#include "zone/chunk.h"

_Static_assert((int)HUDDLE_CLASSES == (int)CLASS_COUNT && (int)HUDDLE_LANES == (int)LANE_MAX,
               "the public header says how much there is");

static void count_run(struct huddle_stats *s, struct run *r) {
    struct run_count n = run_tally(r);
    struct huddle_class_stats *c = &s->classes[r->class];
    struct huddle_lane_stats *l = &s->lane[r->lane];
    c->runs++;
    c->live += n.live;
    c->cached += n.cached;
    c->free += n.free;
    c->fresh += n.fresh;
    l->runs++;
    l->live_bytes += n.live * r->cell_bytes;
    l->inbox_cells += n.returning;
    s->run_bytes += (size_t)r->units * UNIT_BYTES;
}

/* The run that begins at this unit, if one does. It cannot go away under the lock of its bin, which the descriptor
 * names. */
static void count_unit(struct huddle_stats *s, const char *unit) {
    const struct descriptor *d = page_map_find(unit);
    unsigned owner = acquire_load(&d->owner), class = relaxed_load(&d->magazine) >> MAGAZINE_SHIFT;
    if (!owner_is_lane(owner) || class >= CLASS_COUNT) return;
    struct bin *b = &lane_get(owner - 1)->bins[class];
    lock_take(&b->lock, RANK_BIN);
    bool is_same = acquire_load(&d->owner) == owner && relaxed_load(&d->magazine) >> MAGAZINE_SHIFT == class;
    if (is_same && run_of(d)->base == unit) count_run(s, run_of(d));
    lock_release(&b->lock, RANK_BIN);
}

/* Regions are never unmapped, and their list only grows: it is walked without the lock. */
static void count_runs(struct huddle_stats *s) {
    for (struct region *r = acquire_load(&span_regions); r != NULL; r = acquire_load(&r->next))
        for (size_t i = 0; i < r->units; i++) count_unit(s, r->base + i * UNIT_BYTES);
    s->dirty_bytes += relaxed_load(&region_dirty_free_units) * UNIT_BYTES;
}

static void count_heaps(struct huddle_stats *s) {
    lock_take(&registry_lock, RANK_REGISTRY);
    for (struct heap *h = registry_heaps; h != NULL; h = h->next) s->heaps++;
    for (unsigned i = 0; i < LANE_MAX && lane_get(i) != NULL; i++) {
        s->lanes = i + 1;
        s->lane[i].heaps = lane_get(i)->heaps;
    }
    lock_release(&registry_lock, RANK_REGISTRY);
}

static void count_all(struct huddle_stats *s) {
    nested_drain();
    count_runs(s);
    count_heaps(s);
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        const struct huddle_class_stats *c = &s->classes[class];
        s->live_blocks += c->live;
        s->live_bytes += c->live * c->cell_bytes;
        s->cached_bytes += c->cached * c->cell_bytes;
    }
    struct large_totals large = large_count();
    s->large_blocks = large.blocks;
    s->large_bytes = large.bytes;
    s->live_blocks += large.blocks;
    s->live_bytes += large.bytes;
    s->dirty_bytes += large.kept_bytes;
    s->metadata_bytes = meta_used_bytes();
    s->zone_bytes = relaxed_load(&chunk_all_bytes);
    struct nested_totals nested = nested_count();
    s->live_blocks += nested.blocks;
    s->live_bytes += nested.bytes;
}

void stats_collect(struct huddle_stats *s) {
    size_t size = s->struct_size;
    for (size_t i = 0; i < sizeof *s / sizeof(size_t); i++) ((size_t *)(void *)s)[i] = 0;
    s->struct_size = size;
    for (unsigned class = 0; class < CLASS_COUNT; class++) s->classes[class].cell_bytes = size_class_bytes(class);
    struct heap_use use = heap_enter();
    if (!use.is_nested) count_all(s);
    heap_leave(use);
    struct os_counters os = os_memory_counters();
    s->mapped_bytes = os.mapped_bytes;
    s->peak_mapped_bytes = os.peak_mapped_bytes;
    s->purged_bytes = os.purged_bytes;
    s->system_calls = os.calls;
}

void stats_check_all(void) {
    struct heap_use use = heap_enter();
    if (use.heap != NULL) heap_check(use.heap);
    for (unsigned i = 0; i < LANE_MAX && lane_get(i) != NULL; i++) lane_check(lane_get(i));
    lock_take(&span_lock, RANK_SPAN);
    for (struct region *r = span_regions; r != NULL; r = r->next) region_check(r);
    lock_release(&span_lock, RANK_SPAN);
    heap_leave(use);
}
