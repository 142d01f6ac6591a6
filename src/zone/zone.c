#include "zone/zone.h"

#include <errno.h>

#include "base/copy.h"
#include "os/fail.h"
#include "span/meta.h"
#include "zone/tools.h"

enum {
    KNOWN_FLAGS = HUDDLE_ZONE_ZERO | HUDDLE_ZONE_SHARED | HUDDLE_ZONE_FIXED | HUDDLE_ZONE_ABORT | HUDDLE_ZONE_SECURE |
                  HUDDLE_ZONE_NODUMP | HUDDLE_ZONE_HUGE,
    MIN_ALIGN_MAX = 4096,
};

static const huddle_zone_options_t defaults = {
    .struct_size = sizeof defaults,
    .min_align = ZONE_ALIGN,
    .chunk_max = CHUNK_MAX_BYTES,
    .large_min = ZONE_LARGE_MIN,
};

static size_t or_default(size_t value, size_t otherwise) {
    return value != 0 ? value : otherwise;
}

static bool is_between(size_t n, size_t least, size_t most) {
    return n >= least && n <= most;
}

/* The caller's options with the defaults in. Returns false for what makes no sense. */
static bool complete(huddle_zone_options_t *to, const huddle_zone_options_t *from, bool is_in_place) {
    if (from->struct_size < offsetof(huddle_zone_options_t, chunk_min)) return false;
    *to = (huddle_zone_options_t){0};
    copy_bytes(to, from, min_size(from->struct_size, sizeof *to));
    to->min_align = (unsigned)or_default(to->min_align, ZONE_ALIGN);
    to->chunk_max = or_default(to->chunk_max, max_size(to->chunk_min, CHUNK_MAX_BYTES));
    to->large_min = or_default(to->large_min, ZONE_LARGE_MIN);
    bool has_buffer = is_in_place || to->buffer != NULL;
    if (to->flags & ~(unsigned)KNOWN_FLAGS) return false;
    if (!is_power_of_two(to->min_align) || to->min_align > MIN_ALIGN_MAX) return false;
    if (to->chunk_min != 0 && !is_between(to->chunk_min, CHUNK_MIN_BYTES, CHUNK_MAX_BYTES)) return false;
    if (!is_between(to->chunk_max, max_size(to->chunk_min, CHUNK_MIN_BYTES), CHUNK_MAX_BYTES)) return false;
    if (!is_between(to->large_min, CHUNK_MIN_BYTES, ZONE_LARGE_MIN) || to->limit > PTRDIFF_MAX) return false;
    if (to->flags & HUDDLE_ZONE_FIXED && !is_in_place) return false;
    return !(to->flags & HUDDLE_ZONE_SHARED && has_buffer);
}

void zone_tell(struct zone *z, const struct chunk *c, bool is_added) {
    char *start = c->base + c->start;
    if (z->options->on_chunk == NULL || start == c->end || z->flags & HUDDLE_ZONE_SHARED) return;
    huddle_zone_t *told = z->flags & ZONE_PART ? &z->root->head : &z->head;
    z->options->on_chunk(told, start, (size_t)(c->end - start), is_added, z->options->arg);
}

void zone_leave_chunk(struct zone *z) {
    struct chunk *c = z->chunk;
    c->top = z->head.cur;
    z->used_before += (size_t)(z->head.cur - z->start);
    if (!(z->flags & HUDDLE_ZONE_ZERO)) c->zero_from = z->head.zero_from;
    if (c->zero_from < c->top) c->zero_from = c->top;
}

void zone_enter_chunk(struct zone *z, struct chunk *c, char *cur) {
    z->chunk = c;
    z->start = c->base + c->start;
    z->head.cur = cur;
    z->used_before -= (size_t)(cur - z->start);
    z->packed_end = NULL;
    z->zeroed = cur;
    z->head.zero_from = z->flags & HUDDLE_ZONE_ZERO ? NULL : c->zero_from;
    zone_set_end(z);
}

/* A caller's memory as a chunk, whose record lies at its start. */
static struct chunk *make_buffer(void *memory, size_t n) {
    char *start = (char *)round_up((uintptr_t)memory, META_LINE), *end = (char *)round_down((uintptr_t)memory + n, ZONE_ALIGN);
    if (start + sizeof(struct chunk) >= end) return NULL;
    struct chunk *c = (struct chunk *)start;
    *c = (struct chunk){.base = start, .end = end, .top = start, .zero_from = end, .kind = CHUNK_BUFFER};
    c->start = sizeof *c;
    return c;
}

/* Writes the zone into the chunk, after the record if it lies there. The chunk is the zone's. */
static struct zone *start(struct chunk *c, const huddle_zone_options_t *options, unsigned flags) {
    struct zone *z = (struct zone *)(c->base + c->start);
    uint64_t clock = c->clock + 1;
    zero_block(z, sizeof *z);
    c->start = (uint16_t)(c->start + sizeof *z);
    z->options = &defaults;
    z->max_class = CHUNK_CLASSES - 1;
    if (unlikely(options != NULL)) {
        if (flags & ZONE_PART) {
            z->options = options;
        } else {
            huddle_zone_options_t *copy = (huddle_zone_options_t *)(c->base + c->start);
            copy_bytes(copy, options, sizeof *copy);
            z->options = copy;
            c->start = (uint16_t)(c->start + round_up(sizeof *copy, META_LINE));
        }
        z->max_class = (uint8_t)chunk_class_of(options->chunk_max);
        z->limit = flags & (ZONE_PART | HUDDLE_ZONE_SHARED) ? 0 : round_up(options->limit, ZONE_ALIGN);
        z->is_slow = flags & HUDDLE_ZONE_SHARED || options->min_align != ZONE_ALIGN;
    }
    z->is_slow |= tool_is_active();
    z->is_plain = z->is_simple = options == NULL && !tool_is_active();
    z->flags = flags;
    z->clock = z->opened = clock;
    z->chunk = z->base_chunk = c;
    z->next_class = (uint8_t)min_size(c->class + 1u, z->max_class);
    z->held = chunk_bytes(c);
    if (c->zero_from < c->base + c->start) c->zero_from = c->base + c->start;
    /* Nothing of a zone with mappings of its own lies elsewhere. */
    if (flags & (HUDDLE_ZONE_NODUMP | HUDDLE_ZONE_HUGE)) c->start = (uint16_t)chunk_bytes(c);
    zone_enter_chunk(z, c, c->base + c->start);
    tool_forbid(z->start, (size_t)(c->end - z->start));
    z->state = ZONE_OPEN;
    return z;
}

/* What only zones with options need. */
static void finish_opening(struct zone *z) {
    const huddle_zone_options_t *o = z->options;
    if (o->buffer != NULL) {
        struct chunk *c = make_buffer(o->buffer, o->buffer_bytes);
        if (c != NULL) {
            zone_leave_chunk(z);
            c->next = z->chunk;
            z->held += chunk_bytes(c);
            z->base_chunk = c;
            zone_enter_chunk(z, c, c->base + c->start);
            tool_forbid(z->start, (size_t)(c->end - z->start));
        }
    }
    if (z->flags & HUDDLE_ZONE_SHARED) zone_share(z);
    if (o->parent != NULL) zone_adopt(zone_from(o->parent), z);
}

static int first_class(const huddle_zone_options_t *o) {
    if (o == NULL) return -1;
    if (o->flags & (HUDDLE_ZONE_SECURE | HUDDLE_ZONE_NODUMP | HUDDLE_ZONE_HUGE | HUDDLE_ZONE_SHARED)) return 0;
    if (o->chunk_min != 0) return (int)chunk_class_of(o->chunk_min);
    return o->chunk_max < chunk_class_bytes(FIRST_CLASS_MAX) ? 0 : -1;
}

struct zone *zone_open_ready(void) {
    struct heap *h = heap_seize();
    struct chunk_pool *p = relaxed_load(&h->pool);
    if (unlikely(p == NULL || p->ready_count == 0)) {
        heap_release(h);
        return NULL;
    }
    struct chunk *c = p->ready[--p->ready_count];
    struct zone *z = (struct zone *)c->base;
    z->next_class = (uint8_t)(p->second_class > c->class ? p->second_class : c->class + 1u);
    heap_release(h);
    z->head.cur = z->start;
    z->head.end = c->end;
    z->head.zero_from = c->zero_from;
    z->state = ZONE_OPEN;
    release_store(&c->zone, &z->head);
    return z;
}

/* What zone_open_ready undoes. Returns false when there are enough such zones: nothing is changed then. */
static bool close_plain(struct zone *z) {
    struct chunk *c = z->chunk;
    struct heap *h = heap_seize();
    struct chunk_pool *p = relaxed_load(&h->pool);
    bool is_done = likely(p != NULL) && p->ready_count < POOL_READY && c->class == p->recent_class;
    if (likely(is_done)) {
        if (c->class != 0) pool_note_need(p, (size_t)(z->head.cur - c->base));
        c->zero_from = z->head.cur > z->head.zero_from ? z->head.cur : z->head.zero_from;
        relaxed_store(&c->zone, NULL);
        z->packed_end = NULL;
        z->state = ZONE_CLOSED;
        z->head.cur = z->head.end = NULL;
        p->ready[p->ready_count++] = c;
    }
    heap_release(h);
    return is_done;
}

struct zone *zone_open(const huddle_zone_options_t *options, unsigned flags, int *error) {
    huddle_zone_options_t full;
    if (unlikely(relaxed_load(&tool_state) == TOOL_UNKNOWN)) tool_init();
    if (unlikely(options != NULL)) {
        if (flags & ZONE_PART) {
            flags |= options->flags & ~(unsigned)HUDDLE_ZONE_SHARED;
        } else {
            if (!complete(&full, options, false)) {
                *error = EINVAL;
                return NULL;
            }
            options = &full;
            flags |= full.flags;
        }
    }
    struct chunk *c = pool_take(flags & ZONE_PART ? 0 : first_class(options), 0);
    *error = ENOMEM;
    if (c == NULL) return NULL;
    c->next = NULL;
    c->start = 0;
    c->is_object = false;
    tool_allow(c->base, min_size(chunk_bytes(c), sizeof(struct zone) + sizeof full + ZONE_ALIGN), true);
    struct zone *z = start(c, options, flags);
    relaxed_store(&c->is_head, (flags & ZONE_PART) == 0);
    release_store(&c->zone, &z->head);
    if (unlikely(options != NULL)) {
        if (flags & ZONE_PART) return z;
        zone_tell(z, c, true);
        finish_opening(z);
    }
    return z;
}

struct zone *zone_init(void *memory, size_t n, const huddle_zone_options_t *options, int *error) {
    static uint64_t serial; /* atomic: zones in the same memory have different clocks */
    huddle_zone_options_t full;
    *error = EINVAL;
    if (unlikely(relaxed_load(&tool_state) == TOOL_UNKNOWN)) tool_init();
    if (n < ZONE_IN_PLACE_MIN || (uintptr_t)memory + n < (uintptr_t)memory) return NULL;
    if (!complete(&full, options != NULL ? options : &defaults, true)) return NULL;
    struct chunk *c = make_buffer(memory, n);
    c->clock = __atomic_add_fetch(&serial, 1, __ATOMIC_RELAXED) << 32;
    full.buffer = NULL;
    struct zone *z = start(c, &full, full.flags);
    z->next_class = 0;
    if (full.chunk_min != 0) z->next_class = (uint8_t)chunk_class_of(full.chunk_min);
    finish_opening(z);
    return z;
}

/* All that the zone has, as nobody's. Memory of the caller's is left out, and of a SECURE zone the chunk `rested`. */
static void gather(struct zone *z, struct chunk_batch *b, const struct chunk *rested) {
    bool is_secure = (z->flags & HUDDLE_ZONE_SECURE) != 0;
    struct chunk *next;
    zone_leave_chunk(z);
    struct chunk *parts[] = {z->objects, z->spare, z->chunk};
    for (size_t i = 0; i < 3; i++) {
        for (struct chunk *c = parts[i]; c != NULL; c = next) {
            next = c->next;
            if (unlikely(z->options->on_chunk != NULL) && c->kind != CHUNK_BUFFER) zone_tell(z, c, false);
            if (unlikely(is_secure)) {
                char *used = c->base + c->start;
                tool_allow(used, (size_t)(c->top - used), true);
                zero_bytes(used, (size_t)(c->top - used));
            }
            if (unlikely(c->kind == CHUNK_BUFFER)) {
                tool_allow(c->base, chunk_bytes(c), true);
                continue;
            }
            tool_forbid(c->base + c->start, (size_t)(c->end - c->base) - c->start);
            release_store(&c->zone, NULL);
            if (c != rested) chunk_add(b, c);
        }
    }
}

/* The same where nobody has to be told and nothing zeroed, but what is in the list `kept`: what is of one class in a row is
 * handed on in a row. */
static void gather_plainly(struct zone *z, struct chunk_batch *b, const struct chunk *kept) {
    zone_leave_chunk(z);
    struct chunk *parts[] = {z->objects, z->spare, z->chunk};
    for (size_t i = 0; i < 3; i++) {
        for (struct chunk *c = parts[i], *next; c != NULL; c = next) {
            struct chunk *first = c;
            uint32_t count = 1;
            relaxed_store(&c->zone, NULL);
            if (c == kept) break; /* the last */
            if (unlikely(c->kind != CHUNK_POOLED)) {
                next = c->next;
                if (c->kind != CHUNK_BUFFER) chunk_add(b, c);
                continue;
            }
            while ((next = c->next) != NULL && next->class == first->class && next->kind == CHUNK_POOLED && next != kept) {
                c = next;
                relaxed_store(&c->zone, NULL);
                count++;
            }
            chunk_add_row(b, first, c, count);
        }
    }
}

/* A zone without options, of which `first` is all that is left, as it was when it was opened; but its clock goes on. */
static void make_ready(struct zone *z, struct chunk *first) {
    first->next = NULL;
    z->chunk = z->base_chunk = first;
    z->spare = z->objects = NULL;
    z->start = first->base + first->start;
    z->packed_end = NULL;
    z->marks = NULL;
    z->used_before = z->spare_bytes = 0;
    z->held = chunk_bytes(first);
    z->peak_bytes = z->period_bytes = 0;
    z->period_ms = 0;
    z->is_growing = z->is_ending = false;
    z->is_plain = true;
}

NOINLINE static void close_full(struct zone *z) {
    z->is_ending = true;
    if (unlikely(z->children != NULL || z->callbacks != NULL)) zone_end_younger(z, 0);
    if (unlikely(z->flags & HUDDLE_ZONE_SHARED)) zone_shared_close(z);
    if (unlikely(z->parent != NULL)) zone_leave_parent(z);
    if (HUDDLE_AUDIT) zone_check(z);
    size_t needed = zone_used(z) + sizeof *z;
    struct chunk_batch b = {.others = NULL};
    struct chunk *own = chunk_find(z), *rested = NULL;
    if (likely(own != NULL && own->base == (char *)z)) { /* not in memory of the caller's */
        own->clock = z->clock;
        if (!z->is_simple) relaxed_store(&own->is_head, false);
        if (unlikely(z->flags & HUDDLE_ZONE_SECURE)) rested = own;
    }
    struct chunk *ready = z->is_simple ? z->base_chunk : NULL;
    if (likely((z->flags & HUDDLE_ZONE_SECURE) == 0 && z->options->on_chunk == NULL && !tool_is_active())) gather_plainly(z, &b, ready);
    else gather(z, &b, rested);
    z->state = ZONE_CLOSED;
    z->head = (huddle_zone_t){NULL, NULL, NULL};
    if (likely(ready != NULL)) make_ready(z, ready);
    pool_give(&b, rested, ready, needed);
}

void zone_close(struct zone *z) {
    if (unlikely(!z->is_plain || !close_plain(z))) close_full(z);
}

void zone_check(const struct zone *z) {
    REQUIRE(zone_is_usable(z));
    REQUIRE(z->start <= z->head.cur && z->head.cur <= z->head.end && z->head.end <= z->chunk->end); /* Z1 */
    size_t used = 0, held = 0, spare = 0;
    for (const struct chunk *c = z->chunk; c != NULL; c = c->next) {
        held += chunk_bytes(c);
        if (c != z->chunk) used += (size_t)(c->top - c->base) - c->start;
        REQUIRE(c->kind == CHUNK_BUFFER || c->zone == &z->head);
    }
    for (const struct chunk *c = z->objects; c != NULL; c = c->next) {
        held += chunk_bytes(c);
        used += (size_t)(c->top - c->base);
        REQUIRE(c->is_object && c->zone == &z->head && (c->next == NULL || c->next->clock <= c->clock)); /* Z5 */
    }
    for (const struct chunk *c = z->spare; c != NULL; c = c->next) spare += chunk_bytes(c);
    REQUIRE(used == z->used_before && held + spare == z->held && spare == z->spare_bytes); /* Z2, Z3 */
    for (const struct zone *c = z->children; c != NULL; c = c->older) {
        REQUIRE(c->parent == z && zone_is_usable(c) && c->birth <= z->clock);
        REQUIRE(c->older == NULL || (c->older->younger == c && c->older->birth <= c->birth));
    }
    for (const struct zone_callback *c = z->callbacks; c != NULL; c = c->older)
        REQUIRE(c->time <= z->clock && (c->older == NULL || c->older->time <= c->time));
    for (const struct zone_mark *m = z->marks; m != NULL; m = m->older) REQUIRE(m->older == NULL || m->older->id < m->id);
}
