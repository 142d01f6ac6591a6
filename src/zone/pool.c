#include "zone/pool.h"

#include "os/fail.h"
#include "os/system.h"
#include "span/meta.h"
#include "span/purge.h"
#include "zone/tools.h"

/* What a refill takes at most: half a list, and no more than a quarter of the pool. */
static unsigned refill_count(unsigned class) {
    size_t by_bytes = POOL_BYTES / 4 >> (CHUNK_SHIFT + class);
    return (unsigned)max_size(1, min_size(POOL_CHUNKS / 2, by_bytes));
}

static void note_bytes(struct chunk_pool *p) {
    shared_add(&purge_cached_bytes, p->bytes - p->noted_bytes);
    p->noted_bytes = p->bytes;
}

/* The pool of a heap that was seized and is open; made when there is none. */
static struct chunk_pool *pool_of(struct heap *h) {
    if (h == NULL) return NULL;
    if (h->pool == NULL) {
        h->pool_kept = meta_alloc(sizeof *h->pool);
        relaxed_store(&h->pool, h->pool_kept);
    }
    return h->pool;
}

/* How many chunks a zone with so many bytes is likely to need soon: what zones needed lately, or a quarter more. */
static unsigned likely_count(const struct chunk_pool *p, unsigned class, size_t held) {
    size_t bytes = p->recent_bytes > held ? p->recent_bytes - held : held / 4;
    return (unsigned)max_size(1, min_size(bytes >> (CHUNK_SHIFT + class), POOL_TAKEN));
}

/* From the depot: for the caller; or, when it wants one, also some for the pool. */
NOINLINE static struct chunk *take_slow(int wanted, size_t held) {
    struct heap_use use = heap_enter();
    struct chunk *c = NULL;
    if (!use.is_nested) {
        struct chunk_pool *p = tool_is_active() ? NULL : pool_of(use.heap);
        unsigned class = wanted >= 0 ? (unsigned)wanted : p != NULL ? p->recent_class : 0;
        unsigned most = p != NULL && held != 0 ? likely_count(p, class, held) : 1;
        c = p != NULL ? pool_pop(p, class) : NULL;
        if (c != NULL) {
            c->next = NULL;
        } else if (p == NULL || most > 1) {
            c = chunk_take(class, most);
        } else if ((c = chunk_take(class, refill_count(class))) != NULL) {
            struct chunk_batch rest = {.others = NULL};
            struct chunk *next = c->next;
            c->next = NULL;
            for (struct chunk *r = next; r != NULL; r = next) {
                next = r->next;
                if (!pool_push(p, r)) chunk_add(&rest, r);
            }
            if (rest.class[class].count != 0) chunk_give(&rest);
        }
        if (p != NULL) note_bytes(p);
    }
    heap_leave(use);
    return c;
}

struct chunk *pool_take(int class, size_t held) {
    struct heap *h = heap_seize();
    struct chunk_pool *p = relaxed_load(&h->pool);
    struct chunk *c = likely(p != NULL) ? pool_pop(p, class >= 0 ? (unsigned)class : p->recent_class) : NULL;
    heap_release(h);
    if (unlikely(c == NULL)) return take_slow(class, held);
    c->next = NULL;
    return c;
}

struct chunk *pool_make(size_t n, size_t alignment, bool is_mapped, unsigned mapping_flags) {
    struct heap_use use = heap_enter();
    struct chunk *c = NULL;
    if (!use.is_nested) c = is_mapped ? chunk_make_mapping(n, alignment, mapping_flags) : chunk_make_span(n, alignment);
    heap_leave(use);
    return c;
}

NOINLINE static void give_slow(const struct chunk_batch *b) {
    struct heap_use use = heap_enter();
    if (use.is_nested) {
        chunk_give_nested(b);
    } else {
        chunk_give(b);
        if (use.heap != NULL && use.heap->pool != NULL) note_bytes(use.heap->pool);
    }
    heap_leave(use);
}

/* Moves from the batch to the pool what there is room for. Returns whether something is left. */
static bool push_batch(struct chunk_pool *p, struct chunk_batch *b) {
    bool is_left = b->others != NULL;
    for (unsigned class = 0; class < CHUNK_CLASSES; class++) {
        struct chunk *c = b->class[class].first, *next;
        if (c == NULL) continue;
        for (; c != NULL; c = next, b->class[class].count--) {
            next = c->next;
            if (!pool_push(p, c)) break;
        }
        b->class[class].first = c;
        is_left |= c != NULL;
    }
    return is_left;
}

/* Puts the chunk to rest. Returns the one whose time is over, or NULL. */
static struct chunk *rest(struct chunk_pool *p, struct chunk *c) {
    struct chunk *rested = p->secure[p->secure_next];
    p->secure[p->secure_next] = c;
    p->secure_next = (p->secure_next + 1) % POOL_SECURE;
    return rested;
}

void pool_give(struct chunk_batch *b, struct chunk *rested, struct chunk *ready, size_t needed_bytes) {
    struct heap *h = heap_seize();
    struct chunk_pool *p = relaxed_load(&h->pool);
    if (rested != NULL && p != NULL) rested = rest(p, rested);
    if (rested != NULL) chunk_add(b, rested);
    bool is_left = true;
    if (likely(p != NULL && !tool_is_active())) {
        if (needed_bytes != 0) pool_note_need(p, needed_bytes);
        if (ready != NULL && p->ready_count < POOL_READY && ready->class == p->recent_class) {
            p->ready[p->ready_count++] = ready;
            ready = NULL;
        }
        if (ready != NULL) chunk_add(b, ready);
        is_left = push_batch(p, b);
    } else if (ready != NULL) {
        chunk_add(b, ready);
    }
    heap_release(h);
    if (is_left) give_slow(b);
}

struct chunk_pool *pool_own(void) {
    struct heap *h = heap_seize();
    struct chunk_pool *p = relaxed_load(&h->pool);
    heap_release(h);
    if (likely(p != NULL)) return p;
    struct heap_use use = heap_enter();
    if (!use.is_nested && use.heap != NULL && !heap_is_shared(use.heap)) p = pool_of(use.heap);
    heap_leave(use);
    return p;
}

static size_t part_index(const void *root) {
    return ((uintptr_t)root >> CHUNK_SHIFT) % POOL_SHARED;
}

void *pool_find_part(const void *root, uint64_t opened) {
    struct heap *h = heap_seize();
    struct chunk_pool *p = relaxed_load(&h->pool);
    size_t i = part_index(root);
    void *part = p != NULL && p->shared[i].root == root && p->shared[i].opened == opened ? p->shared[i].part : NULL;
    heap_release(h);
    return part;
}

void pool_note_part(const void *root, uint64_t opened, void *part) {
    struct heap *h = heap_seize();
    struct chunk_pool *p = relaxed_load(&h->pool);
    size_t i = part_index(root);
    if (p != NULL) {
        p->shared[i].root = root;
        p->shared[i].opened = opened;
        p->shared[i].part = part;
    }
    heap_release(h);
}

void heap_flush_pool(struct heap *h) {
    struct chunk_pool *p = h->pool_kept;
    if (p == NULL) return;
    struct chunk_batch b = {.others = NULL};
    while (p->ready_count != 0) chunk_add(&b, p->ready[--p->ready_count]);
    for (unsigned class = 0; class < CHUNK_CLASSES; class++)
        for (struct chunk *c; (c = pool_pop(p, class)) != NULL;) chunk_add(&b, c);
    chunk_give(&b);
    note_bytes(p);
}

void heap_end_pool(struct heap *h) {
    struct chunk_pool *p = h->pool_kept;
    if (p == NULL) return;
    struct chunk_batch b = {.others = NULL};
    for (unsigned i = 0; i < POOL_SECURE; i++)
        if (p->secure[i] != NULL) chunk_add(&b, p->secure[i]);
    chunk_give(&b);
    relaxed_store(&h->pool, NULL);
    h->pool_kept = NULL;
    meta_free(p, sizeof *p);
}

void pool_check(const struct chunk_pool *p) {
    size_t bytes = 0;
    for (unsigned class = 0; class < CHUNK_CLASSES; class++) {
        uint32_t count = 0;
        for (const struct chunk *c = p->list[class].first; c != NULL; c = c->next, count++)
            REQUIRE(c->zone == NULL && c->class == class);
        REQUIRE(count == p->list[class].count && count <= POOL_CHUNKS); /* P1 */
        bytes += count * chunk_class_bytes(class);
    }
    REQUIRE(bytes == p->bytes && bytes <= POOL_BYTES); /* P1, P2 */
}
