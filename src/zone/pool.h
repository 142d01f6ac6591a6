/* pool.h - a thread's chunks: taken and given back without locks, from and to the depot in batches.
 *
 * A part of the thread's heap: whoever has seized the heap has the pool, so that a signal handler's call never meets it half
 * changed. A heap that is closed because its thread is idle (thread/reclaim.h) has no pool to see, and its chunks go
 * to the depot.
 *
 *   P1  a list has at most POOL_CHUNKS chunks, all lists together at most POOL_BYTES; beside them there are those in `ready`
 *   P2  `bytes` is the sum of all lists */
#ifndef HUDDLE_ZONE_POOL_H
#define HUDDLE_ZONE_POOL_H

#include "thread/heap.h"
#include "zone/chunk.h"

enum {
    POOL_CHUNKS = 8,
    POOL_BYTES = 256 << 10,
    POOL_READY = 4,
    POOL_TAKEN = 8, /* chunks that a zone with many gets at a time */
    POOL_SECURE = 16, /* closed SECURE zones whose first chunk is not used again yet */
    POOL_SHARED = 4,  /* SHARED zones that a thread remembers its part of */
    SCRATCH_ZONES = 2,
    FIRST_CLASS_MAX = 4, /* 64 KiB */
};

struct chunk_pool {
    uint32_t ready_count;
    struct chunk *ready[POOL_READY]; /* with a closed zone without options at their base, to be opened as it is */
    struct {
        struct chunk *first;
        uint32_t count;
    } list[CHUNK_CLASSES];
    size_t bytes;
    size_t recent_bytes; /* what the thread's zones needed lately: falls by an eighth with every zone */
    uint32_t recent_class; /* the first chunk for as much: the smallest with room for all, at most 64 KiB */
    uint32_t second_class; /* and the one after it: half as much, at most 1 MiB */
    size_t noted_bytes;  /* of `bytes`, what purge_cached_bytes has */
    struct chunk *secure[POOL_SECURE];
    uint32_t secure_next;
    struct {
        const void *root;
        uint64_t opened;
        void *part;
    } shared[POOL_SHARED];
    void *scratch[SCRATCH_ZONES];
};

/* ---- the hit paths, for whoever has seized the heap ---- */

static inline struct chunk *pool_pop(struct chunk_pool *p, unsigned class) {
    struct chunk *c = p->list[class].first;
    if (unlikely(c == NULL)) return NULL;
    p->list[class].first = c->next;
    p->list[class].count--;
    p->bytes -= chunk_class_bytes(class);
    return c;
}

/* Of a class. Returns false when there is no room. */
static inline bool pool_push(struct chunk_pool *p, struct chunk *c) {
    unsigned class = c->class;
    size_t bytes = p->bytes + chunk_class_bytes(class);
    if (unlikely(p->list[class].count == POOL_CHUNKS || bytes > POOL_BYTES)) return false;
    c->next = p->list[class].first;
    p->list[class].first = c;
    p->list[class].count++;
    p->bytes = bytes;
    return true;
}

static inline void pool_note_need(struct chunk_pool *p, size_t bytes) {
    size_t recent = p->recent_bytes - p->recent_bytes / 8;
    if (bytes > recent) recent = bytes;
    p->recent_bytes = recent;
    if (unlikely(recent > chunk_class_bytes(p->recent_class)) && p->recent_class < FIRST_CLASS_MAX) p->recent_class++;
    else if (unlikely(recent < chunk_class_bytes(p->recent_class) / 2) && p->recent_class != 0) p->recent_class--;
    p->second_class = chunk_class_of(min_size(recent / 2, CHUNK_MAX_BYTES));
}

/* ---- for everybody ---- */

/* One chunk: of the class, or, for class < 0, of the class of what the thread's zones needed lately; and, for a zone
 * that has `held` bytes, perhaps more of them, linked. NULL when there is no memory, or in a signal handler that
 * interrupted the allocator and finds none. */
struct chunk *pool_take(int class, size_t held);

/* Memory for one object, or, with `is_mapped`, a mapping with these flags (zone/chunk.h); NULL likewise. */
struct chunk *pool_make(size_t n, size_t alignment, bool is_mapped, unsigned mapping_flags);

/* Takes back chunks and objects of a zone, and notes how many bytes it needed; 0: nothing to note. `rested`, of a SECURE
 * zone, is not used again for a while; `ready` has a closed zone at its base that can be opened as it is; each may be
 * NULL. */
void pool_give(struct chunk_batch *b, struct chunk *rested, struct chunk *ready, size_t needed_bytes);

/* The calling thread's pool, made when it is wanted, and NULL where it has none of its own: no memory, late in its end, or
 * in a signal handler that interrupted the allocator. Only for what other threads and handlers do not touch: the scratch
 * zones and its address. */
struct chunk_pool *pool_own(void);

/* The thread's part of the SHARED zone `root` that was opened at `opened`, if it remembers it; and remembers it. */
void *pool_find_part(const void *root, uint64_t opened);
void pool_note_part(const void *root, uint64_t opened, void *part);

void pool_check(const struct chunk_pool *p);

#endif
