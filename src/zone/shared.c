#include "zone/tools.h"
#include "zone/zone.h"

/* A SHARED zone is a root, which hands nothing out itself (cur == end), and a part for each thread that has allocated in it:
 * a zone of its own, used by that thread alone without a lock. A thread finds its part by what it remembers, or in the
 * root's list, by the address of its pool. When a thread has ended, another whose pool lies at the same address takes its
 * part over: what the first wrote is visible to it, because that memory came to it through a lock. */

void zone_share(struct zone *root) {
    struct chunk *c = root->base_chunk;
    struct zone_shared *s = (struct zone_shared *)root->start;
    tool_allow(s, sizeof *s, true);
    *s = (struct zone_shared){0};
    c->start = (uint16_t)(c->start + round_up(sizeof *s, ZONE_ALIGN));
    zone_enter_chunk(root, c, c->base + c->start);
    root->shared = s;
}

static struct zone *open_part(struct zone *root, const void *thread) {
    int error;
    struct zone *part = zone_open(root->options, ZONE_PART, &error);
    if (part == NULL) return NULL;
    part->root = root;
    part->thread = thread;
    zone_tell(part, part->chunk, true);
    if (zone_shared_take(part, part->held)) return part;
    zone_close(part);
    return NULL;
}

/* The thread's part, from the list or a new one. */
static struct zone *find_part(struct zone *root, const void *thread) {
    struct zone_shared *s = root->shared;
    lock_take(&s->lock, RANK_ZONE);
    struct zone *part = s->parts;
    while (part != NULL && part->thread != thread) part = part->next_part;
    if (part == NULL && (part = open_part(root, thread)) != NULL) {
        part->next_part = s->parts;
        s->parts = part;
    }
    lock_release(&s->lock, RANK_ZONE);
    if (part != NULL) pool_note_part(root, root->opened, part);
    return part;
}

static void *alloc_in_common(struct zone *root, size_t align, size_t n, enum zone_fill fill) {
    struct zone_shared *s = root->shared;
    lock_take(&s->lock, RANK_ZONE);
    if (s->common == NULL) s->common = open_part(root, NULL);
    void *p = s->common != NULL ? zone_alloc(s->common, align, n, fill) : NULL;
    lock_release(&s->lock, RANK_ZONE);
    return p;
}

void *zone_shared_alloc(struct zone *root, size_t align, size_t n, enum zone_fill fill) {
    struct zone *part = pool_find_part(root, root->opened);
    if (unlikely(part == NULL)) {
        const void *thread = pool_own();
        if (thread == NULL) return alloc_in_common(root, align, n, fill);
        part = find_part(root, thread);
        if (part == NULL) return NULL;
    }
    return zone_alloc(part, align, n, fill);
}

void zone_shared_close(struct zone *root) {
    struct zone_shared *s = root->shared;
    struct zone *next;
    for (struct zone *part = s->parts; part != NULL; part = next) {
        next = part->next_part;
        zone_close(part);
    }
    if (s->common != NULL) zone_close(s->common);
    s->parts = s->common = NULL;
}

void zone_shared_reset(struct zone *root) {
    struct zone_shared *s = root->shared;
    for (struct zone *part = s->parts; part != NULL; part = part->next_part) zone_reset(part);
    if (s->common != NULL) zone_reset(s->common);
}

bool zone_shared_take(struct zone *part, size_t bytes) {
    if (!(part->flags & ZONE_PART)) return true;
    size_t *taken = &part->root->shared->taken_bytes, limit = part->options->limit;
    size_t sum = __atomic_add_fetch(taken, bytes, __ATOMIC_RELAXED);
    if (limit == 0 || sum <= limit) return true;
    __atomic_sub_fetch(taken, bytes, __ATOMIC_RELAXED);
    return false;
}

void zone_shared_give(struct zone *part, size_t bytes) {
    if (part->flags & ZONE_PART) __atomic_sub_fetch(&part->root->shared->taken_bytes, bytes, __ATOMIC_RELAXED);
}
