#include "zone/chunk.h"

#include "base/options.h"
#include "os/fail.h"
#include "os/memory.h"
#include "os/system.h"
#include "span/meta.h"
#include "span/purge.h"
#include "span/span.h"
#include "zone/tools.h"

enum {
    SPAN_MAX_BYTES = 32 << 20, /* larger objects are mappings */
    HUGE_PAGE_BYTES = 2 << 20,
    POLL_GIVES = 64,
};

/* A unit cut into pieces. The descriptor leads to piece[0]. */
struct unit {
    struct unit *next, *previous; /* K2 */
    uint64_t free;                /* a bit for each piece */
    char *base;
    uint32_t class;
    uint32_t unused[7];
    struct chunk piece[];
};

_Static_assert(sizeof(struct unit) == META_LINE, "so that no record straddles lines");

static struct {
    struct chunk *first;
    uint32_t count, low; /* low: the least count since the last tick */
    struct unit *units;
} depot[CHUNK_CLASSES];

struct lock depot_lock;
size_t depot_bytes; /* K3 */
size_t chunk_all_bytes;

/* The purge's clock is looked at when the depot holds more than ever since the last tick, and now and then; guarded by
 * depot_lock. */
static size_t depot_peak;
static uint32_t gives;

/* Chunks given by signal handlers: pushed with release (chunk_give_nested), taken whole with acquire
 * (take_nested_locked). */
static struct chunk *nested;

/* ---- units ---- */

static unsigned pieces_of(unsigned class) {
    return 1u << (CHUNK_PIECE_CLASSES - class);
}

static uint64_t all_pieces(unsigned class) {
    return ((uint64_t)1 << pieces_of(class)) - 1;
}

static size_t piece_index(const struct chunk *c) {
    return ((uintptr_t)c->base & (UNIT_BYTES - 1)) >> (CHUNK_SHIFT + c->class);
}

static struct unit *unit_of(const struct chunk *c) {
    return (struct unit *)((uintptr_t)(c - piece_index(c)) - sizeof(struct unit));
}

static void link_unit_locked(struct unit *u) {
    struct unit **list = &depot[u->class].units;
    u->previous = NULL;
    u->next = *list;
    if (*list != NULL) (*list)->previous = u;
    *list = u;
}

static void unlink_unit_locked(struct unit *u) {
    if (u->previous != NULL) u->previous->next = u->next;
    else depot[u->class].units = u->next;
    if (u->next != NULL) u->next->previous = u->previous;
}

/* ---- the page map ---- */

/* All units from `base` lead to the record (of a unit of pieces: to the first of them). */
static void announce(char *base, size_t bytes, const struct chunk *record, unsigned magazine) {
    for (size_t at = 0; at < bytes; at += UNIT_BYTES) {
        struct descriptor *d = page_map_find(base + at);
        d->cells = (uint8_t *)record;
        d->start = 0;
        d->magazine = (uint16_t)magazine;
        release_store(&d->owner, OWNER_ZONE);
    }
    shared_add(&chunk_all_bytes, bytes);
}

static void retract(char *base, size_t bytes, enum owner owner) {
    page_map_set_owner(base, bytes / UNIT_BYTES, owner);
    shared_add(&chunk_all_bytes, -bytes);
}

struct chunk *chunk_find(const void *address) {
    const struct descriptor *d = page_map_find(address);
    if (acquire_load(&d->owner) != OWNER_ZONE) return NULL;
    struct chunk *c = (struct chunk *)d->cells;
    if (d->magazine < CHUNK_PIECE_CLASSES) c += ((uintptr_t)address & (UNIT_BYTES - 1)) >> (CHUNK_SHIFT + d->magazine);
    return c;
}

/* ---- making ---- */

/* What the clock of a new record starts from, so that no zone's clock is ever again what another's at the same address was,
 * by which a thread knows its part of a SHARED zone: the highest of all records that were destroyed. Atomic; the lock of the
 * spans orders two uses of one address. */
static uint64_t clock_floor;

static void init(struct chunk *c, char *base, size_t bytes, enum chunk_kind kind, unsigned class, bool is_zero) {
    *c = (struct chunk){.base = base, .end = base + bytes, .top = base, .kind = (uint8_t)kind, .class = (uint8_t)class};
    c->clock = relaxed_load(&clock_floor);
    c->zero_from = is_zero ? base : c->end;
}

/* The record is given up. */
static void retire_clock(const struct chunk *c) {
    uint64_t floor = relaxed_load(&clock_floor);
    while (floor < c->clock &&
           !__atomic_compare_exchange_n(&clock_floor, &floor, c->clock, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}

/* A new unit of pieces, not yet known to the depot. */
static struct unit *make_unit(unsigned class) {
    unsigned pieces = pieces_of(class);
    size_t record_bytes = sizeof(struct unit) + pieces * sizeof(struct chunk);
    struct unit *u = meta_alloc(record_bytes);
    bool is_zero;
    char *base = u != NULL ? span_alloc(1, UNIT_BYTES, &is_zero) : NULL;
    if (base == NULL) {
        if (u != NULL) meta_free(u, record_bytes);
        return NULL;
    }
    u->base = base;
    u->class = class;
    u->free = all_pieces(class);
    size_t bytes = chunk_class_bytes(class);
    for (unsigned i = 0; i < pieces; i++) init(&u->piece[i], base + i * bytes, bytes, CHUNK_POOLED, class, is_zero);
    announce(base, UNIT_BYTES, u->piece, class);
    return u;
}

static void destroy_unit(struct unit *u) {
    for (unsigned i = 0; i < pieces_of(u->class); i++) retire_clock(&u->piece[i]);
    retract(u->base, UNIT_BYTES, OWNER_FREE);
    span_free(u->base, 1);
    meta_free(u, sizeof *u + pieces_of(u->class) * sizeof(struct chunk));
}

/* A chunk or object that is a span of its own. */
static struct chunk *make_whole(size_t n, size_t alignment, enum chunk_kind kind, unsigned class) {
    struct chunk *c = meta_alloc(sizeof *c);
    size_t units = round_up(n, UNIT_BYTES) / UNIT_BYTES;
    bool is_zero;
    char *base = c != NULL ? span_alloc(units, max_size(alignment, UNIT_BYTES), &is_zero) : NULL;
    if (base == NULL) {
        if (c != NULL) meta_free(c, sizeof *c);
        return NULL;
    }
    init(c, base, units * UNIT_BYTES, kind, class, is_zero);
    announce(base, units * UNIT_BYTES, c, CHUNK_WHOLE);
    return c;
}

struct chunk *chunk_make_span(size_t n, size_t alignment) {
    if (n + alignment > SPAN_MAX_BYTES) return chunk_make_mapping(n, alignment, MAPPING_PLAIN);
    return make_whole(n, alignment, CHUNK_SPAN, 0);
}

struct chunk *chunk_make_mapping(size_t n, size_t alignment, unsigned flags) {
    size_t grain = flags & MAPPING_HUGE ? HUGE_PAGE_BYTES : UNIT_BYTES;
    size_t bytes = round_up(n, grain);
    if (bytes < n) return NULL;
    struct chunk_mapped *m = meta_alloc(sizeof *m);
    if (m == NULL) return NULL;
    if (!mapping_make(&m->map, bytes, max_size(alignment, grain), false)) {
        meta_free(m, sizeof *m);
        return NULL;
    }
    bool is_advised = (!(flags & MAPPING_NODUMP) || os_keep_out_of_dumps(m->map.base, bytes)) &&
                      page_map_cover(m->map.base, bytes);
    if (!is_advised) {
        mapping_release(&m->map);
        meta_free(m, sizeof *m);
        return NULL;
    }
    if (flags & MAPPING_HUGE) os_want_huge(m->map.base, bytes);
    init(&m->chunk, m->map.base, bytes, CHUNK_MAPPED, 0, true);
    announce(m->map.base, bytes, &m->chunk, CHUNK_WHOLE);
    return &m->chunk;
}

/* A chunk or object that is no piece. */
static void destroy_whole(struct chunk *c) {
    tool_allow(c->base, chunk_bytes(c), true);
    retire_clock(c);
    if (c->kind == CHUNK_MAPPED) {
        struct chunk_mapped *m = (struct chunk_mapped *)c;
        retract(c->base, chunk_bytes(c), OWNER_NONE);
        mapping_release(&m->map);
        meta_free(m, sizeof *m);
        return;
    }
    retract(c->base, chunk_bytes(c), OWNER_FREE);
    span_free(c->base, chunk_bytes(c) / UNIT_BYTES);
    meta_free(c, sizeof *c);
}

/* ---- the depot ---- */

static struct chunk *pop_locked(unsigned class) {
    struct chunk *c = depot[class].first;
    if (c == NULL) return NULL;
    depot[class].first = c->next;
    depot[class].count--;
    depot[class].low = (uint32_t)min_size(depot[class].low, depot[class].count);
    relaxed_store(&depot_bytes, depot_bytes - chunk_bytes(c));
    return c;
}

/* A piece back into its unit. Returns the unit if all of its pieces are free now: it is on no list then. */
static struct unit *put_piece_locked(struct chunk *c) {
    struct unit *u = unit_of(c);
    bool was_full = u->free == 0;
    ASSERT((u->free >> piece_index(c) & 1) == 0);
    u->free |= (uint64_t)1 << piece_index(c);
    if (u->free == all_pieces(u->class)) {
        if (!was_full) unlink_unit_locked(u);
        return u;
    }
    if (was_full) link_unit_locked(u);
    return NULL;
}

static struct chunk *take_piece_locked(unsigned class) {
    struct unit *u = depot[class].units;
    if (u == NULL) return NULL;
    struct chunk *c = &u->piece[__builtin_ctzl(u->free)];
    u->free &= u->free - 1;
    if (u->free == 0) unlink_unit_locked(u);
    return c;
}

/* Under a tool nothing in the depot is used again: there it is still forbidden. */
static struct chunk *take_locked(unsigned class) {
    struct chunk *c = tool_is_active() ? NULL : pop_locked(class);
    return c != NULL || class >= CHUNK_PIECE_CLASSES ? c : take_piece_locked(class);
}

/* What a give to the depot leaves to be done without the lock. */
struct leavings {
    struct unit *units;
    struct chunk *wholes;
};

static void release_locked(struct chunk *c, struct leavings *left) {
    tool_allow(c->base, chunk_bytes(c), true);
    if (c->kind != CHUNK_POOLED || c->class >= CHUNK_PIECE_CLASSES) {
        c->next = left->wholes;
        left->wholes = c;
        return;
    }
    struct unit *u = put_piece_locked(c);
    if (u == NULL) return;
    u->next = left->units;
    left->units = u;
}

static void finish_leavings(const struct leavings *left) {
    struct unit *next_unit;
    for (struct unit *u = left->units; u != NULL; u = next_unit) {
        next_unit = u->next;
        destroy_unit(u);
    }
    struct chunk *next;
    for (struct chunk *c = left->wholes; c != NULL; c = next) {
        next = c->next;
        destroy_whole(c);
    }
}

static void empty_locked(struct leavings *left) {
    for (unsigned class = 0; class < CHUNK_CLASSES; class++) {
        while (depot[class].first != NULL) release_locked(pop_locked(class), left);
        depot[class].low = 0;
    }
}

static void release_list_locked(struct chunk *list, struct leavings *left) {
    struct chunk *next;
    for (struct chunk *c = list; c != NULL; c = next) {
        next = c->next;
        release_locked(c, left);
    }
}

static void give_locked(const struct chunk_batch *b, struct leavings *left) {
    if (tool_is_active() && depot_bytes > DEPOT_BYTES / 2) empty_locked(left);
    bool is_kept = relaxed_load(&options.purge_ms) != 0;
    release_list_locked(b->others, left);
    for (unsigned class = 0; class < CHUNK_CLASSES; class++) {
        size_t count = b->class[class].count, bytes = count << (CHUNK_SHIFT + class);
        if (count == 0) continue;
        if (!is_kept || depot_bytes + bytes > DEPOT_BYTES) {
            release_list_locked(b->class[class].first, left);
            continue;
        }
        b->class[class].last->next = depot[class].first;
        depot[class].first = b->class[class].first;
        depot[class].count += (uint32_t)count;
        relaxed_store(&depot_bytes, depot_bytes + bytes);
    }
}

static void take_nested_locked(struct leavings *left) {
    if (likely(relaxed_load(&nested) == NULL)) return;
    struct chunk_batch b = {.others = NULL};
    struct chunk *next;
    for (struct chunk *c = __atomic_exchange_n(&nested, NULL, __ATOMIC_ACQUIRE); c != NULL; c = next) {
        next = c->next;
        chunk_add(&b, c);
    }
    give_locked(&b, left);
}

struct chunk *chunk_take(unsigned class, unsigned most) {
    struct leavings left = {NULL, NULL};
    struct unit *made = NULL;
    for (;;) {
        struct chunk *list = NULL;
        lock_take(&depot_lock, RANK_DEPOT);
        take_nested_locked(&left);
        if (made != NULL) link_unit_locked(made);
        for (unsigned i = 0; i < most; i++) {
            /* A unit just made is no longer whole, whatever else the depot was given meanwhile: K2. */
            struct chunk *c = i == 0 && made != NULL ? take_piece_locked(class) : take_locked(class);
            if (c == NULL) break;
            c->next = list;
            list = c;
        }
        lock_release(&depot_lock, RANK_DEPOT);
        finish_leavings(&left);
        left = (struct leavings){NULL, NULL};
        if (list != NULL) return list;
        if (class >= CHUNK_PIECE_CLASSES) return make_whole(chunk_class_bytes(class), UNIT_BYTES, CHUNK_POOLED, class);
        made = make_unit(class);
        if (made == NULL) return NULL;
    }
}

void chunk_give(const struct chunk_batch *b) {
    struct leavings left = {NULL, NULL};
    lock_take(&depot_lock, RANK_DEPOT);
    take_nested_locked(&left);
    give_locked(b, &left);
    bool is_news = depot_bytes > depot_peak || ++gives % POLL_GIVES == 0;
    size_t bytes = depot_bytes;
    if (bytes > depot_peak) depot_peak = bytes;
    if (HUDDLE_AUDIT) depot_check();
    lock_release(&depot_lock, RANK_DEPOT);
    finish_leavings(&left);
    if (is_news) purge_poll(bytes);
}

static void push_nested(struct chunk *list) {
    if (list == NULL) return;
    struct chunk *last = list;
    while (last->next != NULL) last = last->next;
    struct chunk *first = relaxed_load(&nested);
    do last->next = first;
    while (!__atomic_compare_exchange_n(&nested, &first, list, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

void chunk_give_nested(const struct chunk_batch *b) {
    push_nested(b->others);
    for (unsigned class = 0; class < CHUNK_CLASSES; class++) push_nested(b->class[class].first);
}

bool depot_age(bool all) {
    struct leavings left = {NULL, NULL};
    lock_take(&depot_lock, RANK_DEPOT);
    take_nested_locked(&left);
    if (all) empty_locked(&left);
    for (unsigned class = 0; class < CHUNK_CLASSES && !tool_is_active(); class++) {
        for (uint32_t n = depot[class].low; n != 0; n--) release_locked(pop_locked(class), &left);
        depot[class].low = depot[class].count;
    }
    bool is_left = depot_bytes != 0;
    depot_peak = depot_bytes;
    lock_release(&depot_lock, RANK_DEPOT);
    finish_leavings(&left);
    return is_left;
}

bool purge_depot(void) {
    return depot_age(false);
}

bool span_take_back(size_t bytes) {
    if (relaxed_load(&depot_bytes) < bytes || tool_is_active()) return false;
    depot_age(true);
    return true;
}

void chunk_each_head(bool (*fn)(struct huddle_zone *z, void *arg), void *arg) {
    for (struct region *r = acquire_load(&span_regions); r != NULL; r = acquire_load(&r->next)) {
        for (size_t i = 0; i < relaxed_load(&r->units); i++) {
            char *base = relaxed_load(&r->base) + i * UNIT_BYTES;
            struct chunk *c = chunk_find(base);
            if (c == NULL || c->base != base) continue;
            unsigned pieces = c->class < CHUNK_PIECE_CLASSES && c->kind == CHUNK_POOLED ? pieces_of(c->class) : 1;
            for (; pieces != 0; pieces--, c++) {
                struct huddle_zone *z = acquire_load(&c->zone);
                if (z != NULL && relaxed_load(&c->is_head) && !fn(z, arg)) return;
            }
        }
    }
}

void depot_check(void) {
    size_t bytes = 0;
    for (unsigned class = 0; class < CHUNK_CLASSES; class++) {
        uint32_t count = 0;
        for (const struct chunk *c = depot[class].first; c != NULL; c = c->next) {
            REQUIRE(c->zone == NULL && c->class == class && c->kind == CHUNK_POOLED); /* K1 */
            REQUIRE(chunk_bytes(c) == chunk_class_bytes(class) && c->zero_from >= c->base && c->zero_from <= c->end);
            bytes += chunk_bytes(c);
            count++;
        }
        REQUIRE(count == depot[class].count && depot[class].low <= count);
        for (const struct unit *u = depot[class].units; u != NULL; u = u->next) {
            REQUIRE(u->free != 0 && u->free != all_pieces(class) && u->class == class); /* K2 */
            REQUIRE(u->next == NULL || u->next->previous == u);
        }
    }
    REQUIRE(bytes == depot_bytes && bytes <= DEPOT_BYTES); /* K3 */
}
