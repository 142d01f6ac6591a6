#include "base/copy.h"
#include "zone/zone.h"

static size_t handed_out(const struct zone *z, const struct chunk *c) {
    const char *start = c->base + c->start;
    return (size_t)((c == z->chunk ? z->head.cur : c->top) - start);
}

/* Calls fn for z, or for each part of a SHARED zone, under its lock. */
static bool each_part(const struct zone *z, bool (*fn)(const struct zone *part, void *arg), void *arg) {
    if (z->shared == NULL) return fn(z, arg);
    lock_take(&z->shared->lock, RANK_ZONE);
    bool goes_on = z->shared->common == NULL || fn(z->shared->common, arg);
    for (const struct zone *part = z->shared->parts; goes_on && part != NULL; part = part->next_part) goes_on = fn(part, arg);
    lock_release(&z->shared->lock, RANK_ZONE);
    return goes_on;
}

/* ---- stats ---- */

static void add_chunks(const struct zone *z, huddle_zone_stats_t *s) {
    s->used_bytes += zone_used(z);
    s->held_bytes += z->held;
    s->kept_bytes += z->spare_bytes;
    for (const struct chunk *c = z->chunk; c != NULL; c = c->next) s->chunks++;
    for (const struct chunk *c = z->spare; c != NULL; c = c->next) s->chunks++;
    for (const struct chunk *c = z->objects; c != NULL; c = c->next) {
        s->large_objects++;
        s->large_bytes += (size_t)(c->top - c->base);
    }
}

static bool add_part(const struct zone *part, void *stats) {
    add_chunks(part, stats);
    return true;
}

void zone_stats(const struct zone *z, huddle_zone_stats_t *stats) {
    huddle_zone_stats_t s = {.struct_size = stats->struct_size};
    each_part(z, add_part, &s);
    if (z->shared != NULL) {
        s.held_bytes += z->held;
        s.chunks++;
    }
    for (const struct zone *c = z->children; c != NULL; c = c->older) s.children++;
    for (const struct zone_callback *c = z->callbacks; c != NULL; c = c->older) s.callbacks++;
    s.limit = z->options->limit;
    s.flags = z->flags;
    s.name = z->options->name;
    copy_bytes(stats, &s, min_size(stats->struct_size, sizeof s));
}

/* ---- contains, walk ---- */

struct range_search {
    const char *address;
    bool (*fn)(void *start, size_t n, void *arg);
    void *arg;
};

static bool walk_list(const struct zone *z, const struct chunk *list, const struct range_search *w) {
    for (const struct chunk *c = list; c != NULL; c = c->next) {
        size_t n = handed_out(z, c);
        if (n != 0 && !w->fn(c->base + c->start, n, w->arg)) return false;
    }
    return true;
}

static bool walk_part(const struct zone *part, void *walk) {
    return walk_list(part, part->objects, walk) && walk_list(part, part->chunk, walk);
}

bool zone_walk(const struct zone *z, bool (*fn)(void *start, size_t n, void *arg), void *arg) {
    struct range_search w = {.fn = fn, .arg = arg};
    return each_part(z, walk_part, &w);
}

bool zone_contains(const struct zone *z, const char *address) {
    const struct chunk *c = chunk_find(address);
    if (c == NULL || acquire_load(&c->zone) == NULL) {
        for (c = z->chunk; c != NULL; c = c->next) /* at most one, at each end */
            if (c->kind == CHUNK_BUFFER && address >= c->base && address < c->end) break;
        if (c == NULL) return false;
    } else {
        const struct zone *owner = zone_from(c->zone);
        if (owner != z && !(owner->flags & ZONE_PART && owner->root == z)) return false;
        z = owner;
    }
    return address >= c->base + c->start && address < c->base + c->start + handed_out(z, c);
}

const char *zone_name_of(const void *address) {
    const struct chunk *c = chunk_find(address);
    huddle_zone_t *h = c != NULL ? acquire_load(&c->zone) : NULL;
    return h != NULL ? zone_from(h)->options->name : NULL;
}
