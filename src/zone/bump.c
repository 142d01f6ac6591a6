#include "base/copy.h"
#include "zone/tools.h"
#include "zone/zone.h"

/* ---- the current chunk ---- */

/* Up to where the current chunk may be handed out. */
static char *hard_end(const struct zone *z) {
    char *end = z->chunk->end;
    if (z->limit == 0) return end;
    size_t left = z->limit - min_size(z->limit, zone_used(z));
    return left < (size_t)(end - z->head.cur) ? z->head.cur + left : end;
}

void zone_set_end(struct zone *z) {
    char *end = z->is_slow ? z->head.cur : hard_end(z);
    if (z->flags & HUDDLE_ZONE_ZERO && end > z->zeroed) end = z->zeroed > z->head.cur ? z->zeroed : z->head.cur;
    z->head.end = end;
}

/* In a ZERO zone: up to `to`, which is handed out now, and a bit beyond, all is to be zero. */
static void zero_up_to(struct zone *z, char *to) {
    if (to <= z->zeroed) return;
    char *window = (char *)round_up((uintptr_t)to, ZERO_WINDOW), *end = hard_end(z);
    if (window > end) window = end;
    if (window < to) window = to;
    char *dirty_end = window < z->chunk->zero_from ? window : z->chunk->zero_from;
    if (dirty_end > z->zeroed) {
        tool_allow(z->zeroed, (size_t)(dirty_end - z->zeroed), true);
        zero_bytes(z->zeroed, (size_t)(dirty_end - z->zeroed));
        tool_forbid(z->zeroed, (size_t)(dirty_end - z->zeroed));
    }
    z->zeroed = window;
}

/* Hands out what lies between cur and `to`. */
static void raise(struct zone *z, char *to) {
    if (z->flags & HUDDLE_ZONE_ZERO) zero_up_to(z, to);
    z->head.cur = to;
    zone_set_end(z);
}

void zone_lower(struct zone *z, char *cur) {
    char *old = z->head.cur;
    if (z->flags & HUDDLE_ZONE_SECURE) {
        tool_allow(cur, (size_t)(old - cur), true);
        zero_bytes(cur, (size_t)(old - cur));
    }
    tool_forbid(cur, (size_t)(old - cur));
    if (z->flags & HUDDLE_ZONE_ZERO) {
        if (z->zeroed > z->chunk->zero_from) z->chunk->zero_from = z->zeroed;
        z->zeroed = cur;
    } else if (old > z->head.zero_from) {
        z->head.zero_from = old;
    }
    z->head.cur = cur;
    zone_set_end(z);
}

/* Where n bytes (n > 0) at a multiple of `align` are in the current chunk, or NULL. */
static char *bump(struct zone *z, size_t align, size_t n) {
    char *p = (char *)round_up((uintptr_t)z->head.cur, align), *end = hard_end(z);
    if (p < z->head.cur || p > end || n > (size_t)(end - p)) return NULL;
    raise(z, p + n);
    return p;
}

/* Unaligned allocations in a row fill up what is left before cur. */
static char *bump_packed(struct zone *z, size_t n) {
    char *p = z->packed_end == z->head.cur ? z->packed_cur : z->head.cur;
    if (n > (size_t)(hard_end(z) - p)) return NULL;
    char *cur = (char *)round_up((uintptr_t)p + n, zone_grain(z));
    raise(z, cur > z->head.cur ? cur : z->head.cur);
    z->packed_cur = p + n;
    z->packed_end = z->head.cur;
    return p;
}

/* ---- more memory ---- */

static bool is_mapped(const struct zone *z) {
    return (z->flags & (HUDDLE_ZONE_NODUMP | HUDDLE_ZONE_HUGE)) != 0;
}

static struct chunk *make_mapping(const struct zone *z, size_t n, size_t align) {
    return pool_make(n, align, true, (z->flags & HUDDLE_ZONE_NODUMP ? MAPPING_NODUMP : 0u) |
                                         (z->flags & HUDDLE_ZONE_HUGE ? MAPPING_HUGE : 0u));
}

/* What the zone had for itself, or could not have. */
static void give_back(struct chunk *c) {
    struct chunk_batch b = {.others = NULL};
    chunk_add(&b, c);
    pool_give(&b, NULL, NULL, 0);
}

/* A new chunk or object for the zone; a part of a SHARED zone may not have it when the limit is reached. */
static bool admit(struct zone *z, struct chunk *c) {
    if (c == NULL) return false;
    if (zone_shared_take(z, chunk_bytes(c))) return true;
    give_back(c);
    return false;
}

static void own(struct zone *z, struct chunk *c) {
    z->held += chunk_bytes(c);
    z->is_plain = c->is_head = false;
    tool_forbid(c->base, chunk_bytes(c));
    release_store(&c->zone, &z->head);
    zone_tell(z, c, true);
}

/* Memory of its own for one object: of a class when it is small, to share a unit with others. */
static char *make_object(struct zone *z, size_t align, size_t n, bool *is_zero) {
    bool is_piece = max_size(n, align) <= chunk_class_bytes(CHUNK_PIECE_CLASSES - 1) && !is_mapped(z);
    struct chunk *c = is_piece       ? pool_take((int)chunk_class_of(max_size(n, align)), 0)
                      : is_mapped(z) ? make_mapping(z, n, align)
                                     : pool_make(n, align, false, 0);
    if (!admit(z, c)) return NULL;
    c->clock = ++z->clock;
    c->start = 0;
    c->top = c->base + n;
    c->is_object = true;
    *is_zero = c->zero_from == c->base;
    if (c->zero_from < c->top) c->zero_from = c->top;
    c->next = z->objects;
    z->objects = c;
    z->used_before += n;
    own(z, c);
    zone_set_end(z);
    return c->base;
}

/* A spare chunk with room for n bytes, taken off its list, or NULL. */
static struct chunk *take_spare(struct zone *z, size_t n) {
    for (struct chunk **link = &z->spare; *link != NULL; link = &(*link)->next) {
        struct chunk *c = *link;
        if (chunk_bytes(c) < n) continue;
        *link = c->next;
        z->spare_bytes -= chunk_bytes(c);
        z->held -= chunk_bytes(c);
        return c;
    }
    return NULL;
}

/* Chunks that the depot gave beyond the one that was needed: a zone with many gets several at a time. */
static void keep_spare(struct zone *z, struct chunk *list) {
    struct chunk *next;
    for (struct chunk *c = list; c != NULL; c = next) {
        next = c->next;
        c->start = 0;
        c->is_object = false;
        c->top = c->base;
        c->next = z->spare;
        z->spare = c;
        z->spare_bytes += chunk_bytes(c);
        own(z, c);
    }
}

/* A chunk of the next class, or, where there is no memory for it or a SHARED zone's limit is near, of a smaller one. */
static struct chunk *new_chunk(struct zone *z, size_t n) {
    unsigned least = chunk_class_of(n), class = (unsigned)max_size(z->next_class, least);
    size_t held = z->flags & ZONE_PART || z->limit != 0 ? 0 : z->held;
    struct chunk *c = is_mapped(z) ? make_mapping(z, chunk_class_bytes(class), UNIT_BYTES) : pool_take((int)class, held);
    bool is_admitted = admit(z, c);
    while (!is_admitted && class > least && !is_mapped(z)) is_admitted = admit(z, c = pool_take((int)--class, 0));
    if (!is_admitted) return NULL;
    if (c->next != NULL && !is_mapped(z)) keep_spare(z, c->next);
    c->start = 0;
    c->is_object = false;
    if (z->next_class < z->max_class) z->next_class++;
    return c;
}

/* n bytes that the current chunk has no room for. An object that is large, or would leave less room in a new chunk than
 * there is in the current one, gets memory of its own, and the current chunk stays current. */
static char *bump_more(struct zone *z, size_t align, size_t n, bool *is_zero) {
    size_t need = n + (align > CHUNK_MIN_BYTES ? align : 0), room = (size_t)(z->chunk->end - z->head.cur);
    if (z->flags & HUDDLE_ZONE_FIXED || need < n) return NULL;
    if (z->limit != 0 && n > z->limit - min_size(z->limit, zone_used(z))) return NULL;
    size_t next_bytes = chunk_class_bytes((unsigned)max_size(z->next_class, chunk_class_of(min_size(need, CHUNK_MAX_BYTES))));
    bool is_apart = need >= z->options->large_min || need > chunk_class_bytes(z->max_class) || next_bytes - need < room;
    if (is_apart) {
        if (need < z->options->large_min && z->next_class < z->max_class) z->next_class++; /* so that not all like it are */
        return make_object(z, align, n, is_zero);
    }
    struct chunk *c = take_spare(z, need);
    bool is_spare = c != NULL;
    if (c == NULL) c = new_chunk(z, need);
    if (c == NULL) return NULL;
    zone_leave_chunk(z);
    c->next = z->chunk;
    if (is_spare) z->held += chunk_bytes(c);
    else own(z, c);
    zone_enter_chunk(z, c, c->base);
    return bump(z, align, n);
}

/* ---- allocation ---- */

/* The usual end of a chunk: n bytes from the next spare one, as bump_more does it, in a few steps. NULL: not so. */
static inline char *bump_spare(struct zone *z, size_t n) {
    struct chunk *old = z->chunk, *c = z->spare;
    size_t k = round_up(n, ZONE_ALIGN), room = (size_t)(old->end - z->head.cur);
    if (c == NULL || k <= room || k >= ZONE_LARGE_MIN || chunk_bytes(c) < k + room) return NULL;
    z->spare = c->next;
    z->spare_bytes -= chunk_bytes(c);
    old->top = z->head.cur;
    old->zero_from = z->head.zero_from > old->top ? z->head.zero_from : old->top;
    z->used_before += (size_t)(z->head.cur - z->start);
    c->next = old;
    z->chunk = c;
    z->start = c->base;
    z->head.cur = c->base + k;
    z->head.end = c->end;
    z->head.zero_from = c->zero_from;
    z->packed_end = NULL;
    return c->base;
}

static char *try_alloc(struct zone *z, size_t align, size_t n, enum zone_fill fill) {
    bool is_packed = align == 1, is_zero = (z->flags & HUDDLE_ZONE_ZERO) != 0;
    size_t k = is_packed ? n : round_up(n, zone_grain(z));
    char *zero_from = z->head.zero_from, *p = is_packed ? bump_packed(z, k) : bump(z, align, k);
    if (p == NULL) {
        struct chunk *current = z->chunk;
        bool is_object_zero = false;
        p = bump_more(z, align, is_packed ? round_up(n, zone_grain(z)) : k, &is_object_zero);
        if (p == NULL) return NULL;
        if (z->chunk != current) {
            zero_from = z->chunk->zero_from;
            if (is_packed) {
                z->packed_cur = p + n;
                z->packed_end = z->head.cur;
            }
        } else {
            zero_from = is_object_zero ? p : p + k;
            is_zero = false;
        }
    }
    tool_allow(p, n, fill == FILL_ZERO || is_zero);
    bool is_wanted = fill == FILL_ZERO || z->flags & HUDDLE_ZONE_ZERO;
    if (is_wanted && !is_zero && p < zero_from) zero_bytes(p, min_size(n, (size_t)(zero_from - p)));
    return p;
}

void *zone_alloc(struct zone *z, size_t align, size_t n, enum zone_fill fill) {
    if (z->state != ZONE_OPEN) return NULL;
    if (likely(z->is_simple && align == ZONE_ALIGN && fill == FILL_NONE)) {
        char *p = bump_spare(z, n);
        if (p != NULL) return p;
    }
    if (z->flags & HUDDLE_ZONE_SHARED) return zone_shared_alloc(z, align, n, fill);
    if (align != 1) align = max_size(align, z->options->min_align);
    bool is_possible = n <= PTRDIFF_MAX && align <= PTRDIFF_MAX;
    for (;;) {
        char *p = is_possible ? try_alloc(z, align, n + (n == 0), fill) : NULL;
        if (p != NULL) return p;
        huddle_zone_t *asked = z->flags & ZONE_PART ? &z->root->head : &z->head;
        if (z->options->on_oom == NULL || !z->options->on_oom(asked, n, z->options->arg) || !is_possible) return NULL;
    }
}

/* ---- resizing ---- */

static struct chunk *object_at(const struct zone *z, const char *p) {
    struct chunk *c = chunk_find(p);
    return c != NULL && c->zone == &z->head && c->is_object && c->base == p ? c : NULL;
}

/* What a block lost may be handed out again as a part of itself or of an unaligned one: in a ZERO zone it is to be zero. */
static void zero_cut_off(const struct zone *z, char *from, const char *to) {
    if ((z->flags & HUDDLE_ZONE_ZERO) == 0 || from >= to) return;
    tool_allow(from, (size_t)(to - from), true);
    zero_bytes(from, (size_t)(to - from));
}

static bool extend_object(struct zone *z, struct chunk *c, size_t n) {
    size_t old = (size_t)(c->top - c->base), k = round_up(n + (n == 0), zone_grain(z));
    if (k < n || k > chunk_bytes(c)) return false;
    tool_allow(c->base, old, true);
    if (k > old && z->limit != 0 && k - old > z->limit - min_size(z->limit, zone_used(z))) return false;
    z->used_before += k - old;
    c->top = c->base + k;
    if (k > old) {
        tool_allow(c->base + old, k - old, true);
        if (z->flags & HUDDLE_ZONE_ZERO && c->zero_from > c->base + old)
            zero_bytes(c->base + old, min_size(k, (size_t)(c->zero_from - c->base)) - old);
    } else {
        zero_cut_off(z, c->base + n, c->top);
        tool_forbid(c->top, old - k);
    }
    tool_forbid(c->base + n, k - n);
    if (c->zero_from < c->top) c->zero_from = c->top;
    zone_set_end(z);
    return true;
}

/* Whether the block of `old` bytes at p is the last one of the current chunk, and then whether it is an unaligned one. */
static bool is_last(const struct zone *z, const char *p, size_t old, bool *is_packed) {
    size_t n = old + (old == 0);
    *is_packed = z->packed_end == z->head.cur;
    if (p < z->start || p >= z->head.cur || n > (size_t)(z->head.cur - p)) return false;
    return *is_packed ? p + n == z->packed_cur : p + round_up(n, zone_grain(z)) == z->head.cur;
}

bool zone_extend(struct zone *z, char *p, size_t old, size_t n) {
    bool is_packed;
    if (z->state != ZONE_OPEN) return false;
    if (z->flags & HUDDLE_ZONE_SHARED) return n <= old;
    if (!is_last(z, p, old, &is_packed)) {
        struct chunk *c = n <= PTRDIFF_MAX ? object_at(z, p) : NULL;
        return (c != NULL && extend_object(z, c, n)) || n <= old;
    }
    if (n > (size_t)(hard_end(z) - p)) return false;
    char *cur = (char *)round_up((uintptr_t)p + n + (n == 0), zone_grain(z));
    if (cur > hard_end(z)) return false;
    if (cur < z->head.cur) zone_lower(z, cur);
    else raise(z, cur);
    if (is_packed) {
        z->packed_cur = p + n + (n == 0);
        z->packed_end = cur;
    }
    if (n < old) zero_cut_off(z, p + n, cur);
    if (n > old) tool_allow(p + old, n - old, false);
    else tool_forbid(p + n, old - n);
    return true;
}

void zone_drop_object(struct zone *z) {
    struct chunk *c = z->objects;
    z->objects = c->next;
    z->used_before -= (size_t)(c->top - c->base);
    z->held -= chunk_bytes(c);
    zone_tell(z, c, false);
    if (z->flags & HUDDLE_ZONE_SECURE) {
        tool_allow(c->base, chunk_bytes(c), true);
        zero_bytes(c->base, (size_t)(c->top - c->base));
    }
    release_store(&c->zone, NULL);
    c->is_object = false;
    zone_shared_give(z, chunk_bytes(c));
    give_back(c);
    zone_set_end(z);
}

bool zone_pop(struct zone *z, char *p, size_t n) {
    bool is_packed;
    if (z->state != ZONE_OPEN || z->flags & HUDDLE_ZONE_SHARED) return false;
    if (is_last(z, p, n, &is_packed)) {
        zone_lower(z, (char *)round_up((uintptr_t)p, zone_grain(z)));
        if (is_packed) {
            z->packed_cur = p;
            z->packed_end = z->head.cur;
            zero_cut_off(z, p, z->head.cur);
        }
        return true;
    }
    struct chunk *c = object_at(z, p);
    if (c == NULL || c != z->objects) return false;
    zone_drop_object(z);
    return true;
}
