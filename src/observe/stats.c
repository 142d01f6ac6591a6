#include "observe/stats.h"

#include "heap/nested.h"
#include "os/memory.h"
#include "span/large.h"
#include "span/meta.h"
#include "span/span.h"
#include "thread/registry.h"

_Static_assert((int)HUDDLE_CLASSES == (int)CLASS_COUNT && (int)HUDDLE_LANES == (int)LANE_MAX,
               "the public header says how much there is");

/* Moves a freed cell, which its byte still calls LIVE, from the live ones to the cached ones. */
static void count_returning(struct huddle_stats *s, const void *cell) {
    const struct descriptor *d = page_map_find(cell);
    if (!owner_is_lane(d->owner)) return;
    struct run *r = run_of(d);
    s->classes[r->class].live--;
    s->classes[r->class].cached++;
    s->lane[r->lane].live_bytes -= r->cell_bytes;
    s->lane[r->lane].inbox_cells++;
}

static void count_message(struct huddle_stats *s, const struct message *m) {
    for (uint32_t i = 0; i < m->count; i++) count_returning(s, m->cell[i]);
}

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
    s->run_bytes += (size_t)r->units * UNIT_BYTES;
}

/* Regions are never unmapped and the list only grows, so it can be walked after a look under the lock; a run that another
 * thread makes or destroys meanwhile may be missed. */
static void count_runs(struct huddle_stats *s) {
    lock_take(&span_lock, RANK_SPAN);
    for (struct region *r = span_regions; r != NULL; r = r->next) {
        s->dirty_bytes += (size_t)r->dirty_free_units * UNIT_BYTES;
        for (size_t i = 0; i < r->units; i++) {
            const char *unit = r->base + i * UNIT_BYTES;
            const struct descriptor *d = page_map_find(unit);
            if (owner_is_lane(acquire_load(&d->owner)) && run_of(d)->base == unit) count_run(s, run_of(d));
        }
    }
    lock_release(&span_lock, RANK_SPAN);
}

static void count_heaps(struct huddle_stats *s) {
    lock_take(&registry_lock, RANK_REGISTRY);
    for (struct heap *h = registry_heaps; h != NULL; h = h->next) {
        s->heaps++;
        for (unsigned i = 0; h->out != NULL && i < LANE_MAX; i++)
            if (h->out[i] != NULL) count_message(s, h->out[i]);
    }
    for (unsigned i = 0; i < LANE_MAX; i++) {
        struct lane *l = lane_get(i);
        if (l == NULL) break;
        s->lanes = i + 1;
        s->lane[i].heaps = l->heaps;
        for (struct message *m = acquire_load(&l->inbox.head); m != NULL; m = m->next) count_message(s, m);
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
