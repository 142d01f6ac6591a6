/* zone.h - a zone: what lies at the start of its first chunk, and what each file of zone/ does with it.
 *
 *   first chunk   | struct zone | options | objects ...                | soft end ... |
 *                                          start ^            cur ^     ^ end       chunk's end ^
 *
 * cur and end are what the inline functions of huddle/zone.h compare. `end` is a soft end: the chunk's, or where the limit
 * is reached, or up to where a ZERO zone has zeroed, or cur itself where every allocation has to be a call (is_slow).
 *
 *   Z1  start <= cur <= end <= the chunk's end, all multiples of 16 but where min_align is smaller
 *   Z2  used_before is what is handed out outside the current chunk
 *   Z3  held is the bytes of all chunks and objects, spare_bytes of those in `spare`
 *   Z4  what lies at or above zero_from in the current chunk is zero; of a ZERO zone what lies in cur .. zeroed
 *   Z5  objects, callbacks, children and marks are listed youngest first, by the zone's clock
 *
 * A zone has one user at a time, who is the only one to touch it; the parts of a SHARED one are zones of their own. */
#ifndef HUDDLE_ZONE_ZONE_H
#define HUDDLE_ZONE_ZONE_H

#include "huddle/zone.h"
#include "os/lock.h"
#include "zone/pool.h"

enum zone_state {
    ZONE_OPEN = 0x6f70656e,
    ZONE_SEALED = 0x7365616c,
    ZONE_CLOSED = 0x636c6f73,
};

enum {
    ZONE_PART = 1 << 16, /* beside HUDDLE_ZONE_*: a thread's part of a SHARED zone */
    ZONE_ALIGN = 16,
    ZONE_LARGE_MIN = 256 << 10,
    ZONE_IN_PLACE_MIN = 1024, /* of huddle_zone_init */
    ZERO_WINDOW = 4096,
};

struct zone_callback {
    struct zone_callback *older;
    uint64_t time;
    void (*fn)(void *arg);
    void *arg;
};

struct zone_mark {
    uint64_t id;
    struct zone_mark *older;
};

_Static_assert(sizeof(struct zone_mark) == ZONE_ALIGN, "what the header says a mark takes");

/* Of a SHARED zone. */
struct zone_shared {
    struct lock lock;    /* of what follows, and of the zone's callbacks and children */
    struct zone *parts;
    struct zone *common; /* for threads without a pool: used under the lock */
    size_t taken_bytes;  /* atomic: of chunks and objects, against the limit */
};

struct zone {
    huddle_zone_t head; /* cur, end, zero_from */
    uint32_t state;
    uint32_t flags;
    struct chunk *chunk;      /* the current one, then older ones */
    struct chunk *base_chunk; /* where reset starts again */
    struct chunk *spare;      /* kept by reset and rewind */
    struct chunk *objects;    /* with memory of their own */
    char *start;              /* of the current chunk's payload */
    char *zeroed;             /* Z4 */
    char *packed_cur, *packed_end; /* after unaligned allocations, while packed_end is cur: there is room from packed_cur */
    struct zone_callback *callbacks;
    struct zone_mark *marks;
    struct zone *parent, *children, *older, *younger;
    uint64_t birth;  /* by the parent's clock */
    uint64_t clock;  /* never the same again at this address (chunk.h) */
    uint64_t opened; /* the clock then */
    size_t used_before, held, spare_bytes;
    size_t limit; /* 0: none */
    const huddle_zone_options_t *options;
    char *object; /* the growing one */
    size_t object_length, object_room;
    size_t peak_bytes, period_bytes; /* reset.c */
    uint64_t period_ms;
    uint32_t surplus_resets;
    uint8_t next_class, max_class;
    bool is_slow, is_growing, is_ending;
    bool is_simple; /* no options at all: nothing limits or watches the current chunk */
    bool is_plain;  /* no options, one chunk, and nothing but allocations since it was opened: closed and opened in a few steps */
    struct zone_shared *shared; /* of a SHARED zone */
    struct zone *root, *next_part; /* of a part */
    const void *thread;
} __attribute__((aligned(64))); /* and so are objects that begin right behind it */

_Static_assert(offsetof(struct zone, head) == 0 && sizeof(struct zone) % ZONE_ALIGN == 0, "a zone is its head");

static inline struct zone *zone_from(const huddle_zone_t *z) {
    return (struct zone *)(uintptr_t)z;
}

static inline bool zone_is_usable(const struct zone *z) {
    return z->state == ZONE_OPEN || z->state == ZONE_SEALED;
}

/* Handed out, in all. */
static inline size_t zone_used(const struct zone *z) {
    return z->used_before + (size_t)(z->head.cur - z->start);
}

/* To what the size of an allocation is rounded. */
static inline size_t zone_grain(const struct zone *z) {
    return min_size(z->options->min_align, ZONE_ALIGN);
}

/* ---- zone.c ---- */

/* A zone without options where a closed one of the kind lies ready in the thread's pool, or NULL. */
struct zone *zone_open_ready(void);

/* NULL options are the defaults. NULL: *error is ENOMEM or EINVAL. `flags` are added: ZONE_PART. */
struct zone *zone_open(const huddle_zone_options_t *options, unsigned flags, int *error);
struct zone *zone_init(void *memory, size_t n, const huddle_zone_options_t *options, int *error);

/* The zone is usable, and is not ending. */
void zone_close(struct zone *z);

/* Makes the chunk the current one, with cur at `cur`. */
void zone_enter_chunk(struct zone *z, struct chunk *c, char *cur);

/* What the current chunk's record should know, before another one becomes current. */
void zone_leave_chunk(struct zone *z);

/* Tells on_chunk of a chunk or object that comes or goes. */
void zone_tell(struct zone *z, const struct chunk *c, bool is_added);

void zone_check(const struct zone *z);

/* ---- bump.c ---- */

enum zone_fill { FILL_NONE, FILL_ZERO };

/* n bytes; NULL when there is no memory, or the zone is not open. `align` is a power of two; 1: packed. */
void *zone_alloc(struct zone *z, size_t align, size_t n, enum zone_fill fill);

/* Sets `end` for cur. */
void zone_set_end(struct zone *z);

/* Lowers cur, in the current chunk. */
void zone_lower(struct zone *z, char *cur);

bool zone_extend(struct zone *z, char *p, size_t old, size_t n);
bool zone_pop(struct zone *z, char *p, size_t n);

/* Takes the youngest object away from the zone and gives its memory back. */
void zone_drop_object(struct zone *z);

/* ---- reset.c ---- */

void zone_reset(struct zone *z);
size_t zone_trim(struct zone *z, size_t keep);
struct zone_mark *zone_mark(struct zone *z, uint64_t *id);

/* Returns false for a mark that is not the zone's, or stale. */
bool zone_rewind(struct zone *z, uint64_t id);

/* ---- family.c ---- */

/* Closes the children and makes the calls that are younger than `time`. */
void zone_end_younger(struct zone *z, uint64_t time);

void zone_adopt(struct zone *parent, struct zone *child);
void zone_leave_parent(struct zone *z);

/* The number of the call, 0 when there is no memory. */
uint64_t zone_on_close(struct zone *z, void (*fn)(void *arg), void *arg);
bool zone_cancel(struct zone *z, uint64_t number);
bool zone_merge(struct zone *into, struct zone *from);

/* ---- shared.c ---- */

void zone_share(struct zone *root);
void *zone_shared_alloc(struct zone *root, size_t align, size_t n, enum zone_fill fill);
void zone_shared_close(struct zone *root);
void zone_shared_reset(struct zone *root);

/* Whether the root's limit leaves room for so many bytes more, which are counted then; and takes them back. */
bool zone_shared_take(struct zone *part, size_t bytes);
void zone_shared_give(struct zone *part, size_t bytes);

/* ---- text.c ---- */

/* A zero byte follows. */
char *zone_copy_text(struct zone *z, const char *text, size_t n);
char *zone_join(struct zone *z, va_list texts);

/* The growing object of a zone that is_growing. grow: where the n bytes are to be written, or NULL. */
char *zone_object_grow(struct zone *z, size_t n);
void *zone_object_finish(struct zone *z, size_t *length);
void zone_object_abandon(struct zone *z);

/* ---- scratch.c ---- */

/* NULL: *error is ENOMEM, or EINVAL when both are conflicts. */
struct zone *zone_scratch(huddle_zone_t *const *conflicts, size_t n, int *error);

/* Closes the calling thread's. */
void zone_end_scratch(void);

/* ---- insight.c ---- */

void zone_stats(const struct zone *z, huddle_zone_stats_t *stats);
bool zone_contains(const struct zone *z, const char *address);

/* The name of the zone that has the memory there, or NULL. */
const char *zone_name_of(const void *address);
bool zone_walk(const struct zone *z, bool (*fn)(void *start, size_t n, void *arg), void *arg);

#endif
