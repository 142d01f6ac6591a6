#include "base/copy.h"
#include "base/options.h"
#include "os/system.h"
#include "zone/tools.h"
#include "zone/zone.h"

enum { SURPLUS_RESETS = 8 }; /* the clock is read at every eighth reset that finds too much kept */

/* The current chunk, which is not the zone's first, becomes a spare one. */
static void set_aside(struct zone *z) {
    struct chunk *c = z->chunk;
    zone_lower(z, z->start);
    zone_leave_chunk(z);
    c->start = 0; /* the first chunk of a zone that was merged had more */
    c->top = c->base;
    z->chunk = c->next;
    c->next = z->spare;
    z->spare = c;
    z->spare_bytes += chunk_bytes(c);
    struct chunk *older = z->chunk;
    zone_enter_chunk(z, older, older->top);
}

size_t zone_trim(struct zone *z, size_t keep) {
    struct chunk_batch b = {.others = NULL};
    size_t bytes = 0;
    while (z->spare != NULL && z->spare_bytes > keep) {
        struct chunk *c = z->spare;
        z->spare = c->next;
        z->spare_bytes -= chunk_bytes(c);
        z->held -= chunk_bytes(c);
        bytes += chunk_bytes(c);
        zone_tell(z, c, false);
        release_store(&c->zone, NULL);
        chunk_add(&b, c);
    }
    zone_shared_give(z, bytes);
    if (bytes != 0) pool_give(&b, NULL, NULL, 0);
    return bytes;
}

/* What reset keeps: all, up to twice what any round of the last purge_ms needed; the option retain in any case. */
static void trim_by_need(struct zone *z, size_t needed) {
    if (needed > z->peak_bytes) z->peak_bytes = needed;
    if (needed > z->period_bytes) z->period_bytes = needed;
    if (likely(z->spare_bytes <= 2 * needed)) return;
    if (z->surplus_resets++ % SURPLUS_RESETS == 0) {
        uint64_t now = os_time_ms();
        if (z->period_ms == 0) z->period_ms = now;
        if (now - z->period_ms >= relaxed_load(&options.purge_ms)) {
            z->peak_bytes = z->period_bytes;
            z->period_bytes = needed;
            z->period_ms = now;
        }
    }
    size_t most = max_size(2 * z->peak_bytes, z->options->retain);
    if (z->spare_bytes > most) zone_trim(z, most);
}

void zone_reset(struct zone *z) {
    z->is_ending = true;
    if (z->children != NULL || z->callbacks != NULL) zone_end_younger(z, 0);
    z->is_ending = false;
    if (z->flags & HUDDLE_ZONE_SHARED) {
        zone_shared_reset(z);
        return;
    }
    z->is_growing = false;
    z->marks = NULL;
    z->clock++;
    while (z->objects != NULL) zone_drop_object(z);
    size_t unneeded = z->spare_bytes;
    while (z->chunk != z->base_chunk) set_aside(z);
    if (z->head.cur != z->start) zone_lower(z, z->start);
    z->packed_end = NULL;
    trim_by_need(z, z->spare_bytes - unneeded);
    if (HUDDLE_AUDIT) zone_check(z);
}

/* Whether everything in the zone is older than its youngest mark, so that another one would say the same. */
static bool is_at_youngest_mark(const struct zone *z) {
    const struct zone_mark *m = z->marks;
    if (m == NULL || (const char *)(m + 1) != z->head.cur) return false;
    return (z->objects == NULL || z->objects->clock < m->id) && (z->callbacks == NULL || z->callbacks->time < m->id) &&
           (z->children == NULL || z->children->birth < m->id) && z->state == ZONE_OPEN;
}

struct zone_mark *zone_mark(struct zone *z, uint64_t *id) {
    if (is_at_youngest_mark(z)) {
        *id = z->marks->id;
        return z->marks;
    }
    struct zone_mark *m = zone_alloc(z, ZONE_ALIGN, sizeof *m, FILL_NONE);
    if (m == NULL) return NULL;
    tool_allow(m, sizeof *m, true);
    m->id = *id = ++z->clock;
    m->older = z->marks;
    z->marks = m;
    z->is_plain = false;
    return m;
}

bool zone_rewind(struct zone *z, uint64_t id) {
    struct zone_mark *m = z->marks;
    while (m != NULL && m->id > id) m = m->older;
    if (m == NULL || m->id != id) return false;
    z->is_ending = true;
    zone_end_younger(z, id);
    z->is_ending = false;
    while (z->objects != NULL && z->objects->clock > id) zone_drop_object(z);
    z->marks = m;
    z->is_growing = false;
    while (!((char *)m >= z->chunk->base && (char *)m < z->chunk->end)) set_aside(z);
    zone_lower(z, (char *)(m + 1));
    z->packed_end = NULL;
    if (HUDDLE_AUDIT) zone_check(z);
    return true;
}
