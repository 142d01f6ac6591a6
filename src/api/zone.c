/* zone.c - huddle/zone.h: here wrong calls are found and errno is set. */
#define HUDDLE_ZONE_NO_INLINE 1 /* huddle_zone_alloc and huddle_zone_zalloc are functions here */
#pragma GCC visibility push(default)
#include "huddle/zone.h"
#pragma GCC visibility pop

#include "api/api.h"
#include "base/copy.h"
#include "heap/free.h"
#include "os/fail.h"
#include "zone/zone.h"

/* ---- errors ---- */

static const char *problem_of(int error) {
    switch (error) {
    case EBADF: return "used after it was closed";
    case EPERM: return "used after it was sealed";
    case EINVAL: return "invalid argument";
    default: return "out of memory";
    }
}

/* Of a zone that may be closed, its memory in use for something else: then its flags mean nothing, and are not used. */
static COLD int set_error(const struct zone *z, int error) {
    bool is_known = zone_is_usable(z) || z->state == ZONE_CLOSED;
    unsigned stops = HUDDLE_ZONE_ABORT | (error == EBADF ? HUDDLE_ZONE_SECURE : 0u);
    if (is_known && z->flags & stops) fail_zone(z, z->options->name, problem_of(error));
    errno = error;
    return -1;
}

/* Why the zone gave no memory. */
static COLD void *no_memory(const struct zone *z) {
    set_error(z, z->state == ZONE_OPEN ? ENOMEM : z->state == ZONE_SEALED ? EPERM : EBADF);
    return NULL;
}

static inline void *given(const struct zone *z, void *p) {
    return likely(p != NULL) ? p : no_memory(z);
}

/* Whether the zone may be changed; sets errno when not. */
static bool is_open(const struct zone *z) {
    if (likely(zone_is_usable(z) && !z->is_ending)) return true;
    set_error(z, EBADF);
    return false;
}

/* k * n, or more than there can be. */
static size_t product(size_t k, size_t n) {
    size_t bytes;
    return __builtin_mul_overflow(k, n, &bytes) ? SIZE_MAX : bytes;
}

/* ---- lifetime ---- */

static huddle_zone_t *opened(struct zone *z, int error) {
    if (likely(z != NULL)) return &z->head;
    errno = error;
    return NULL;
}

huddle_zone_t *huddle_zone_open(const huddle_zone_options_t *options) {
    struct zone *ready = likely(options == NULL) ? zone_open_ready() : NULL;
    if (likely(ready != NULL)) return &ready->head;
    int error = 0;
    if (unlikely(options != NULL && options->struct_size >= offsetof(huddle_zone_options_t, on_oom) && options->parent != NULL))
        return huddle_zone_child(options->parent, options);
    struct zone *z = zone_open(options, 0, &error);
    return opened(z, error);
}

huddle_zone_t *huddle_zone_child(huddle_zone_t *parent, const huddle_zone_options_t *options) {
    int error = 0;
    huddle_zone_options_t with_parent = {.struct_size = sizeof with_parent};
    if (!is_open(zone_from(parent))) return NULL;
    if (options != NULL) copy_bytes(&with_parent, options, min_size(options->struct_size, sizeof with_parent));
    if (options == NULL || options->struct_size > sizeof with_parent) with_parent.struct_size = sizeof with_parent;
    if (with_parent.struct_size >= offsetof(huddle_zone_options_t, chunk_min)) with_parent.struct_size = sizeof with_parent;
    with_parent.parent = parent;
    struct zone *z = zone_open(&with_parent, 0, &error);
    if (z == NULL) set_error(zone_from(parent), error);
    return z != NULL ? &z->head : NULL;
}

huddle_zone_t *huddle_zone_init(void *memory, size_t n, const huddle_zone_options_t *options) {
    int error = 0;
    bool has_parent = options != NULL && options->struct_size >= offsetof(huddle_zone_options_t, on_oom) && options->parent != NULL;
    if (has_parent && !is_open(zone_from(options->parent))) return NULL;
    struct zone *z = zone_init(memory, n, options, &error);
    return opened(z, error);
}

int huddle_zone_close(huddle_zone_t *h) {
    struct zone *z = zone_from(h);
    if (unlikely(!is_open(z))) return -1;
    zone_close(z);
    return 0;
}

int huddle_zone_reset(huddle_zone_t *h) {
    struct zone *z = zone_from(h);
    if (unlikely(!is_open(z))) return -1;
    if (unlikely(z->state == ZONE_SEALED)) return set_error(z, EPERM);
    zone_reset(z);
    return 0;
}

size_t huddle_zone_trim(huddle_zone_t *h, size_t keep) {
    struct zone *z = zone_from(h);
    return is_open(z) ? zone_trim(z, keep) : 0;
}

int huddle_zone_seal(huddle_zone_t *h) {
    struct zone *z = zone_from(h);
    if (!is_open(z)) return -1;
    if (z->state == ZONE_SEALED) return 0;
    zone_trim(z, 0);
    z->state = ZONE_SEALED;
    z->is_plain = false;
    z->head.end = z->head.cur;
    return 0;
}

bool huddle_zone_is_open(const huddle_zone_t *h) {
    const struct chunk *c = chunk_find(h);
    if (c != NULL && c->base == (const char *)h && acquire_load(&c->zone) != h) return false;
    return zone_is_usable(zone_from(h));
}

/* ---- allocation ---- */

/* What an ordinary allocation is aligned to; a closed zone has no options. */
static size_t usual_align(const struct zone *z) {
    return z->state == ZONE_OPEN ? z->options->min_align : ZONE_ALIGN;
}

void *huddle_zone_alloc_slow(huddle_zone_t *h, size_t n) {
    struct zone *z = zone_from(h);
    return given(z, zone_alloc(z, usual_align(z), n, FILL_NONE));
}

void *huddle_zone_zalloc_slow(huddle_zone_t *h, size_t n) {
    struct zone *z = zone_from(h);
    return given(z, zone_alloc(z, usual_align(z), n, FILL_ZERO));
}

/* The same as the header's inline functions. */
void *huddle_zone_alloc(huddle_zone_t *h, size_t n) {
    size_t k = round_up(n, ZONE_ALIGN);
    char *p = h->cur;
    if (unlikely(k - 1 >= (size_t)(h->end - p))) return huddle_zone_alloc_slow(h, n);
    h->cur = p + k;
    return p;
}

void *huddle_zone_zalloc(huddle_zone_t *h, size_t n) {
    size_t k = round_up(n, ZONE_ALIGN);
    char *p = h->cur;
    if (unlikely(k - 1 >= (size_t)(h->end - p))) return huddle_zone_zalloc_slow(h, n);
    h->cur = p + k;
    if (p < h->zero_from) zero_block(p, k);
    return p;
}

static void *aligned(struct zone *z, size_t align, size_t n, enum zone_fill fill) {
    if (unlikely(!is_power_of_two(align))) {
        set_error(z, zone_is_usable(z) ? EINVAL : EBADF);
        return NULL;
    }
    return given(z, zone_alloc(z, max_size(align, usual_align(z)), n, fill));
}

void *huddle_zone_aligned(huddle_zone_t *h, size_t align, size_t n) {
    return aligned(zone_from(h), align, n, FILL_NONE);
}

void *huddle_zone_calloc(huddle_zone_t *h, size_t k, size_t n) {
    return huddle_zone_zalloc(h, product(k, n));
}

void *huddle_zone_array(huddle_zone_t *h, size_t k, size_t n, size_t align) {
    return aligned(zone_from(h), align, product(k, n), FILL_NONE);
}

void *huddle_zone_zarray(huddle_zone_t *h, size_t k, size_t n, size_t align) {
    return aligned(zone_from(h), align, product(k, n), FILL_ZERO);
}

void *huddle_zone_packed(huddle_zone_t *h, size_t n) {
    struct zone *z = zone_from(h);
    return given(z, zone_alloc(z, 1, n, FILL_NONE));
}

void *huddle_zone_at_least(huddle_zone_t *h, size_t n, size_t *got) {
    struct zone *z = zone_from(h);
    size_t grain = z->state == ZONE_OPEN ? zone_grain(z) : ZONE_ALIGN;
    size_t k = n <= PTRDIFF_MAX ? round_up(n + (n == 0), grain) : n;
    void *p = given(z, zone_alloc(z, usual_align(z), k, FILL_NONE));
    *got = p != NULL ? k : 0;
    return p;
}

/* ---- resizing ---- */

bool huddle_zone_extend(huddle_zone_t *h, void *p, size_t old, size_t n) {
    return zone_extend(zone_from(h), p, old, n);
}

void *huddle_zone_realloc(huddle_zone_t *h, void *p, size_t old, size_t n) {
    struct zone *z = zone_from(h);
    if (p != NULL && zone_extend(z, p, old, n)) return p;
    char *to = given(z, zone_alloc(z, usual_align(z), n, FILL_NONE));
    if (to != NULL && p != NULL) copy_bytes(to, p, min_size(old, n));
    return to;
}

bool huddle_zone_pop(huddle_zone_t *h, void *p, size_t n) {
    return zone_pop(zone_from(h), p, n);
}

int huddle_zone_buf_begin(huddle_zone_t *h) {
    struct zone *z = zone_from(h);
    if (!is_open(z)) return -1;
    if (z->state == ZONE_SEALED) return set_error(z, EPERM);
    if (z->is_growing || z->flags & HUDDLE_ZONE_SHARED) return set_error(z, EINVAL);
    z->is_growing = true;
    z->is_plain = false;
    z->object = NULL;
    z->object_length = z->object_room = 0;
    return 0;
}

/* Whether the zone has a growing object; sets errno when not. */
static bool is_growing(const struct zone *z) {
    if (!is_open(z)) return false;
    if (z->is_growing) return true;
    set_error(z, EINVAL);
    return false;
}

void *huddle_zone_buf_grow(huddle_zone_t *h, size_t n) {
    struct zone *z = zone_from(h);
    return is_growing(z) ? given(z, zone_object_grow(z, n)) : NULL;
}

int huddle_zone_buf_append(huddle_zone_t *h, const void *data, size_t n) {
    struct zone *z = zone_from(h);
    bool has_room = z->state == ZONE_OPEN && z->is_growing && n < z->object_room - z->object_length;
    char *p = likely(has_room) ? z->object + z->object_length : huddle_zone_buf_grow(h, n);
    if (p == NULL) return -1;
    if (likely(has_room)) z->object_length += n;
    copy_bytes(p, data, n);
    return 0;
}

void *huddle_zone_buf_finish(huddle_zone_t *h, size_t *length) {
    struct zone *z = zone_from(h);
    return is_growing(z) ? given(z, zone_object_finish(z, length)) : NULL;
}

int huddle_zone_buf_abandon(huddle_zone_t *h) {
    struct zone *z = zone_from(h);
    if (!is_growing(z)) return -1;
    zone_object_abandon(z);
    return 0;
}

/* ---- text ---- */

char *huddle_zone_strdup(huddle_zone_t *h, const char *text) {
    struct zone *z = zone_from(h);
    return given(z, zone_copy_text(z, text, string_length(text)));
}

char *huddle_zone_strndup(huddle_zone_t *h, const char *text, size_t n) {
    struct zone *z = zone_from(h);
    size_t length = 0;
    while (length < n && text[length] != '\0') length++;
    return given(z, zone_copy_text(z, text, length));
}

void *huddle_zone_memdup(huddle_zone_t *h, const void *data, size_t n) {
    struct zone *z = zone_from(h);
    char *p = given(z, zone_alloc(z, usual_align(z), n, FILL_NONE));
    if (p != NULL) copy_bytes(p, data, n);
    return p;
}

char *huddle_zone_strcat(huddle_zone_t *h, ...) {
    struct zone *z = zone_from(h);
    va_list texts;
    va_start(texts, h);
    char *p = given(z, zone_join(z, texts));
    va_end(texts);
    return p;
}

/* ---- scope ---- */

huddle_zone_mark_t huddle_zone_mark(huddle_zone_t *h) {
    struct zone *z = zone_from(h);
    huddle_zone_mark_t mark = {h, 0};
    if (zone_is_usable(z) && z->flags & HUDDLE_ZONE_SHARED) set_error(z, EINVAL);
    else if (zone_mark(z, &mark.id) == NULL) no_memory(z);
    return mark;
}

int huddle_zone_rewind(huddle_zone_t *h, huddle_zone_mark_t mark) {
    struct zone *z = zone_from(h);
    if (!is_open(z)) return -1;
    if (z->state == ZONE_SEALED) return set_error(z, EPERM);
    return mark.zone == h && mark.id != 0 && zone_rewind(z, mark.id) ? 0 : set_error(z, EINVAL);
}

huddle_zone_t *huddle_zone_scratch(huddle_zone_t *const *conflicts, size_t n) {
    int error = 0;
    struct zone *z = zone_scratch(conflicts, n, &error);
    return opened(z, error);
}

/* ---- ownership ---- */

uint64_t huddle_zone_on_close(huddle_zone_t *h, void (*fn)(void *arg), void *arg) {
    struct zone *z = zone_from(h);
    uint64_t number = zone_on_close(z, fn, arg);
    if (number == 0) no_memory(z);
    return number;
}

int huddle_zone_cancel(huddle_zone_t *h, uint64_t number) {
    struct zone *z = zone_from(h);
    if (!zone_is_usable(z)) return set_error(z, EBADF);
    return zone_cancel(z, number) ? 0 : set_error(z, EINVAL);
}

static void free_owned(void *p) {
    heap_free(p);
}

void *huddle_zone_own(huddle_zone_t *h, void *p) {
    return huddle_zone_on_close(h, free_owned, p) != 0 ? p : NULL;
}

int huddle_zone_merge(huddle_zone_t *into, huddle_zone_t *from) {
    struct zone *z = zone_from(into);
    if (!is_open(z) || !is_open(zone_from(from))) return -1;
    return zone_merge(z, zone_from(from)) ? 0 : set_error(z, EINVAL);
}

/* ---- insight ---- */

huddle_zone_t *huddle_zone_of(const void *address) {
    const struct chunk *c = chunk_find(address);
    huddle_zone_t *h = c != NULL ? acquire_load(&c->zone) : NULL;
    return h != NULL && zone_from(h)->flags & ZONE_PART ? &zone_from(h)->root->head : h;
}

bool huddle_zone_contains(const huddle_zone_t *h, const void *address) {
    const struct zone *z = zone_from(h);
    return zone_is_usable(z) && zone_contains(z, address);
}

int huddle_zone_stats(const huddle_zone_t *h, huddle_zone_stats_t *stats) {
    const struct zone *z = zone_from(h);
    if (!zone_is_usable(z)) return set_error(z, EBADF);
    zone_stats(z, stats);
    return 0;
}

void huddle_zone_foreach(bool (*fn)(huddle_zone_t *z, void *arg), void *arg) {
    chunk_each_head(fn, arg);
}

void huddle_zone_walk(const huddle_zone_t *h, bool (*fn)(void *start, size_t n, void *arg), void *arg) {
    const struct zone *z = zone_from(h);
    if (zone_is_usable(z)) zone_walk(z, fn, arg);
}
