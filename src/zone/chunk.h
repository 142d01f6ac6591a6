/* chunk.h - memory of zones: chunks of 4 KiB to 1 MiB, objects with memory of their own, and the depot.
 *
 *   unit of 64 KiB    [ 16 KiB | 16 KiB | 16 KiB | 16 KiB ]   pieces of one class, up to 32 KiB
 *   span              [ 256 KiB                          ]   a chunk from 64 KiB up, or one object
 *   mapping           [ 2 MiB                            ]   a chunk or an object with flags of its own
 *
 * Each has a record in the metadata, which the page map leads to, so that a chunk which is closed or kept is not touched, and
 * that the zone of an address is found in constant time.
 *
 * A chunk that no zone has is in a thread's pool (zone/pool.h), in the depot, or, a piece, free in its unit. The depot keeps
 * chunks by class for all threads; what nobody took from it for a tick of the purge's clock goes back to the spans, and
 * units all of whose pieces are free.
 *
 *   K1  a record's zone is NULL unless a zone has the chunk
 *   K2  a unit is in the list of its class if and only if some of its pieces are free in it, and not all
 *   K3  depot bytes are those of the chunks in it, and at most DEPOT_BYTES
 *   K4  all bytes of a chunk from zero_from on are zero
 *
 * Functions that take chunks or give them back are called between heap_enter and heap_leave, and not when that says
 * is_nested; chunk_give_nested is for that case. */
#ifndef HUDDLE_ZONE_CHUNK_H
#define HUDDLE_ZONE_CHUNK_H

#include "base/base.h"
#include "os/lock.h"
#include "span/mapping.h"
#include "span/page_map.h"

enum {
    CHUNK_SHIFT = 12,
    CHUNK_CLASSES = 9,
    CHUNK_MIN_BYTES = 1 << CHUNK_SHIFT, /* a multiple of it is where every chunk starts, but a caller's buffer */
    CHUNK_MAX_BYTES = CHUNK_MIN_BYTES << (CHUNK_CLASSES - 1),
    CHUNK_PIECE_CLASSES = UNIT_SHIFT - CHUNK_SHIFT, /* below it chunks are pieces of a unit */
    CHUNK_WHOLE = 0xff,                             /* as a descriptor's magazine: the unit has one record */
    DEPOT_BYTES = 32 << 20,
};

enum chunk_kind {
    CHUNK_POOLED, /* of a class */
    CHUNK_SPAN,   /* a span for one object */
    CHUNK_MAPPED, /* a struct chunk_mapped */
    CHUNK_BUFFER, /* the caller's memory; the record lies in the zone */
};

struct chunk {
    struct chunk *next;       /* in the list it is in: the zone's older one, the pool's, the depot's */
    struct huddle_zone *zone; /* stored with release; read by anybody */
    char *base, *end;
    char *top;       /* in a zone: what is handed out ends here; of the current chunk the zone's cur says so */
    char *zero_from; /* K4 */
    uint64_t clock;  /* of a zone's first chunk: where the clock of the next zone there starts; of an object: its time */
    uint16_t start;  /* offset from base to what may be handed out */
    uint8_t kind, class;
    bool is_head;   /* a zone lies at its base, no part of a SHARED one */
    bool is_object; /* of one object */
};

_Static_assert(sizeof(struct chunk) == 64, "a line each");

struct chunk_mapped {
    struct chunk chunk;
    struct mapping map;
};

/* Guards the depot and the units' lists. */
extern struct lock depot_lock;

static inline size_t chunk_class_bytes(unsigned class) {
    return (size_t)1 << (CHUNK_SHIFT + class);
}

/* The smallest class with n bytes, n at most 1 MiB. */
static inline unsigned chunk_class_of(size_t n) {
    return n <= chunk_class_bytes(0) ? 0 : log2_floor(n - 1) + 1 - CHUNK_SHIFT;
}

static inline size_t chunk_bytes(const struct chunk *c) {
    return (size_t)(c->end - c->base);
}

/* The chunk or object that any 64-bit value lies in, or NULL. */
struct chunk *chunk_find(const void *address);

/* 1 to `most` chunks of the class, linked, or NULL: from the depot, or one or more new ones. */
struct chunk *chunk_take(unsigned class, unsigned most);

/* Chunks by class, and what is of none. */
struct chunk_batch {
    struct {
        struct chunk *first, *last;
        uint32_t count;
    } class[CHUNK_CLASSES];
    struct chunk *others;
};

static inline void chunk_add(struct chunk_batch *b, struct chunk *c) {
    if (unlikely(c->kind != CHUNK_POOLED)) {
        c->next = b->others;
        b->others = c;
        return;
    }
    c->next = b->class[c->class].first;
    if (c->next == NULL) b->class[c->class].last = c;
    b->class[c->class].first = c;
    b->class[c->class].count++;
}

/* So many pooled chunks of one class, linked from first to last. */
static inline void chunk_add_row(struct chunk_batch *b, struct chunk *first, struct chunk *last, uint32_t count) {
    last->next = b->class[first->class].first;
    if (last->next == NULL) b->class[first->class].last = last;
    b->class[first->class].first = first;
    b->class[first->class].count += count;
}

/* Gives chunks and objects to the depot; what is of no class, and what it has no room for, goes back to the spans or the
 * system. */
void chunk_give(const struct chunk_batch *b);

/* For a signal handler that interrupted the allocator: the next chunk_take or chunk_give does the rest. Lock-free. */
void chunk_give_nested(const struct chunk_batch *b);

/* A span for an object of n bytes at a multiple of `alignment`, or NULL. */
struct chunk *chunk_make_span(size_t n, size_t alignment);

enum mapping_flags { MAPPING_PLAIN = 0, MAPPING_NODUMP = 1, MAPPING_HUGE = 2 };

/* A mapping of at least n bytes at a multiple of `alignment`, or NULL. */
struct chunk *chunk_make_mapping(size_t n, size_t alignment, unsigned flags);

/* Bytes of the chunks in the depot; relaxed. */
extern size_t depot_bytes;

/* Bytes of all units and mappings that hold chunks or objects; relaxed. */
extern size_t chunk_all_bytes;

/* Gives the spans what nobody took from the depot since the last call, or all. Returns whether the depot holds any. */
bool depot_age(bool all);

/* Calls fn for every chunk that a zone made by zone_open lies in, until it returns false. */
void chunk_each_head(bool (*fn)(struct huddle_zone *z, void *arg), void *arg);

void depot_check(void);

#endif
