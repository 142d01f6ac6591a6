#include "zone/zone.h"

/* ---- what ends with the zone ---- */

void zone_end_younger(struct zone *z, uint64_t time) {
    for (;;) {
        struct zone_callback *c = z->callbacks;
        if (z->children != NULL && z->children->birth > time) {
            zone_close(z->children);
        } else if (c != NULL && c->time > time) {
            z->callbacks = c->older;
            if (c->fn != NULL) c->fn(c->arg);
        } else {
            return;
        }
    }
}

/* Callbacks and children of a SHARED zone may come from several threads. */
static void lock_family(struct zone *z) {
    if (unlikely(z->shared != NULL)) lock_take(&z->shared->lock, RANK_ZONE);
}

static void unlock_family(struct zone *z) {
    if (unlikely(z->shared != NULL)) lock_release(&z->shared->lock, RANK_ZONE);
}

void zone_adopt(struct zone *parent, struct zone *child) {
    lock_family(parent);
    child->parent = parent;
    parent->is_plain = child->is_plain = false;
    child->birth = ++parent->clock;
    child->younger = NULL;
    child->older = parent->children;
    if (parent->children != NULL) parent->children->younger = child;
    parent->children = child;
    unlock_family(parent);
}

void zone_leave_parent(struct zone *z) {
    struct zone *parent = z->parent;
    lock_family(parent);
    if (z->younger != NULL) z->younger->older = z->older;
    else parent->children = z->older;
    if (z->older != NULL) z->older->younger = z->younger;
    z->parent = NULL;
    unlock_family(parent);
}

uint64_t zone_on_close(struct zone *z, void (*fn)(void *arg), void *arg) {
    struct zone_callback *c = zone_alloc(z, ZONE_ALIGN, sizeof *c, FILL_NONE);
    if (c == NULL) return 0;
    lock_family(z);
    *c = (struct zone_callback){.older = z->callbacks, .time = ++z->clock, .fn = fn, .arg = arg};
    z->callbacks = c;
    z->is_plain = false;
    uint64_t number = c->time;
    unlock_family(z);
    return number;
}

bool zone_cancel(struct zone *z, uint64_t number) {
    lock_family(z);
    struct zone_callback **link = &z->callbacks;
    while (*link != NULL && (*link)->time > number) link = &(*link)->older;
    bool is_found = *link != NULL && (*link)->time == number;
    if (is_found) *link = (*link)->older;
    unlock_family(z);
    return is_found;
}

/* ---- merge ---- */

static bool is_ancestor(const struct zone *z, const struct zone *of) {
    for (; of != NULL; of = of->parent)
        if (of == z) return true;
    return false;
}

static bool has_buffer(const struct zone *z) {
    return z->base_chunk->kind == CHUNK_BUFFER;
}

static bool is_alike(const struct zone *a, const struct zone *b) {
    const huddle_zone_options_t *o = a->options, *p = b->options;
    return a->flags == b->flags && o->min_align == p->min_align && o->on_oom == p->on_oom && o->on_chunk == p->on_chunk &&
           o->arg == p->arg;
}

static bool can_merge(const struct zone *into, const struct zone *from) {
    if (into->state != ZONE_OPEN || from->state != ZONE_OPEN || into->is_ending || from->is_ending) return false;
    if (is_ancestor(from, into) || into->flags & HUDDLE_ZONE_SHARED) return false;
    return !has_buffer(into) && !has_buffer(from) && is_alike(into, from);
}

/* All chunks of the list are the other zone's. Returns the last link. */
static struct chunk **hand_over(struct chunk **list, struct zone *into, struct zone *from) {
    for (; *list != NULL; list = &(*list)->next) {
        zone_tell(from, *list, false);
        relaxed_store(&(*list)->is_head, false);
        release_store(&(*list)->zone, &into->head);
        zone_tell(into, *list, true);
    }
    return list;
}

/* Callbacks and children keep their order, and all come to be at one time: no mark lies between them. */
static void hand_over_family(struct zone *into, struct zone *from, uint64_t time) {
    struct zone_callback **link = &from->callbacks;
    for (; *link != NULL; link = &(*link)->older) (*link)->time = time;
    *link = into->callbacks;
    into->callbacks = from->callbacks;
    struct zone *oldest = NULL;
    for (struct zone *c = from->children; c != NULL; c = c->older) {
        c->parent = into;
        c->birth = time;
        oldest = c;
    }
    if (oldest == NULL) return;
    oldest->older = into->children;
    if (into->children != NULL) into->children->younger = oldest;
    into->children = from->children;
}

bool zone_merge(struct zone *into, struct zone *from) {
    if (!can_merge(into, from)) return false;
    if (from->parent != NULL) zone_leave_parent(from);
    uint64_t time = ++into->clock;
    into->is_plain = false;
    from->base_chunk->clock = from->clock;
    for (struct chunk *c = from->objects; c != NULL; c = c->next) c->clock = time;
    hand_over_family(into, from, time);
    *hand_over(&from->objects, into, from) = into->objects;
    into->objects = from->objects;
    *hand_over(&from->spare, into, from) = into->spare;
    into->spare = from->spare;
    into->spare_bytes += from->spare_bytes;
    into->held += from->held;
    /* The younger zone's current chunk is the current one from now on. */
    struct chunk *current = from->chunk;
    char *cur = from->head.cur;
    zone_leave_chunk(from);
    zone_leave_chunk(into);
    into->used_before += from->used_before;
    *hand_over(&from->chunk, into, from) = into->chunk;
    if (into->next_class < from->next_class) into->next_class = from->next_class;
    zone_enter_chunk(into, current, cur);
    from->state = ZONE_CLOSED;
    from->head = (huddle_zone_t){NULL, NULL, NULL};
    if (HUDDLE_AUDIT) zone_check(into);
    return true;
}
