#include "span/large.h"

#include "base/copy.h"
#include "base/size_class.h"
#include "os/fail.h"
#include "os/memory.h"
#include "span/meta.h"
#include "span/purge.h"
#include "span/span.h"

/* Guarded by span_lock: the lists, and the records on them. A record that is on no list belongs to one thread. */
static struct large *live, *kept;
static size_t kept_bytes; /* also read relaxed, without the lock */

static void push_locked(struct large **list, struct large *l) {
    l->previous = NULL;
    l->next = *list;
    if (*list != NULL) (*list)->previous = l;
    *list = l;
}

static void unlink_locked(struct large **list, struct large *l) {
    if (l->previous != NULL) l->previous->next = l->next;
    else *list = l->next;
    if (l->next != NULL) l->next->previous = l->previous;
}

size_t large_good_size(size_t n) {
    return round_up(n, os_page_bytes);
}

static size_t units_for(size_t bytes) {
    return (bytes + UNIT_BYTES - 1) / UNIT_BYTES;
}

static struct large *record_of(const void *p) {
    return (struct large *)(void *)page_map_find(p)->cells;
}

/* The units that lead to the record: all of a span, the first of a direct block. */
static size_t units_in_map(const struct large *l) {
    return l->units == 0 ? 1 : l->units;
}

/* Makes the page map lead to the record, from unit `from` on. */
static void publish(struct large *l, size_t from) {
    for (size_t i = from; i < units_in_map(l); i++) {
        struct descriptor *d = page_map_find(l->base + i * UNIT_BYTES);
        d->cells = (uint8_t *)l;
        release_store(&d->owner, OWNER_LARGE);
    }
}

/* Writes into the map, from unit `from` on, what stood there: a later free of it can then be named. */
static void retire(const struct large *l, size_t from) {
    for (size_t i = from; i < units_in_map(l); i++) {
        struct descriptor *d = page_map_find(l->base + i * UNIT_BYTES);
        d->start = (uint32_t)min_size(l->bytes / KIB, UINT32_MAX);
        relaxed_store(&d->magazine, (uint16_t)(i == 0));
        release_store(&d->owner, OWNER_WAS_LARGE);
    }
}

/* Under the lock, because large_count and large_find look at other threads' blocks. */
static void set_bytes(struct large *l, size_t bytes) {
    lock_take(&span_lock, RANK_SPAN);
    l->bytes = bytes;
    lock_release(&span_lock, RANK_SPAN);
}

static void add_live(struct large *l) {
    lock_take(&span_lock, RANK_SPAN);
    push_locked(&live, l);
    publish(l, 0);
    lock_release(&span_lock, RANK_SPAN);
}

/* Makes the record tell of a mapping. */
static void move_record(struct large *l, const struct mapping *to, size_t bytes) {
    lock_take(&span_lock, RANK_SPAN);
    if (l->base != to->base) retire(l, 0);
    l->base = to->base;
    l->map = *to;
    l->units = 0;
    l->bytes = bytes;
    publish(l, 0);
    lock_release(&span_lock, RANK_SPAN);
}

/* ---- direct blocks ---- */

/* The kept mapping whose size is nearest to n bytes, and from `least` to `most`, taken from the list. */
static struct large *take_kept(size_t n, size_t alignment, size_t least, size_t most) {
    struct large *best = NULL;
    size_t nearest = SIZE_MAX;
    lock_take(&span_lock, RANK_SPAN);
    for (struct large *l = kept; l != NULL; l = l->next) {
        size_t room = mapping_room(&l->map), difference = room > n ? room - n : n - room;
        if (difference >= nearest || room < least || room > most) continue;
        if (((uintptr_t)l->map.base & (alignment - 1)) != 0) continue;
        best = l;
        nearest = difference;
    }
    if (best != NULL) {
        unlink_locked(&kept, best);
        relaxed_store(&kept_bytes, kept_bytes - best->map.bytes);
    }
    lock_release(&span_lock, RANK_SPAN);
    return best;
}

static void release_record(struct large *l) {
    mapping_release(&l->map);
    meta_free(l, sizeof *l);
}

/* A kept mapping made to fit: its pages are there already, which costs less than faulting in new ones. NULL when none
 * is kept. */
static struct large *reuse_kept(size_t room, size_t alignment) {
    struct large *l = take_kept(room, alignment, 0, SIZE_MAX);
    if (l == NULL) return NULL;
    if ((mapping_room(&l->map) < room && alignment > UNIT_BYTES) || !mapping_grow(&l->map, room, room)) {
        release_record(l);
        return NULL;
    }
    mapping_shrink(&l->map, room);
    return l;
}

static void *direct_alloc(size_t bytes, size_t room, size_t alignment, bool *is_zero) {
    struct large *l = reuse_kept(room, alignment);
    *is_zero = l == NULL;
    if (l == NULL) {
        l = meta_alloc(sizeof *l);
        if (l == NULL) return NULL;
        if (!mapping_make(&l->map, room, alignment, false)) {
            meta_free(l, sizeof *l);
            return NULL;
        }
    }
    purge_note_taken(*is_zero ? room / UNIT_BYTES : 0);
    l->base = l->map.base;
    l->bytes = bytes;
    l->units = 0;
    add_live(l);
    return l->base;
}

size_t large_release_cached(bool only_aged) {
    struct large *doomed = NULL;
    size_t bytes = 0;
    lock_take(&span_lock, RANK_SPAN);
    for (struct large *l = kept, *next; l != NULL; l = next) {
        next = l->next;
        if (only_aged && !l->is_aged) {
            l->is_aged = true;
            continue;
        }
        unlink_locked(&kept, l);
        relaxed_store(&kept_bytes, kept_bytes - l->map.bytes);
        l->next = doomed;
        doomed = l;
    }
    lock_release(&span_lock, RANK_SPAN);
    while (doomed != NULL) {
        struct large *l = doomed;
        doomed = l->next;
        bytes += l->map.bytes;
        release_record(l);
    }
    return bytes;
}

/* ---- blocks ---- */

static void *alloc(size_t n, size_t room, size_t alignment, bool *is_zero) {
    size_t bytes = large_good_size(n);
    if (bytes < n || bytes > PTRDIFF_MAX || room > PTRDIFF_MAX) return NULL;
    alignment = max_size(alignment, UNIT_BYTES);
    size_t units = units_for(max_size(bytes, room));
    if (bytes > DIRECT_MIN || alignment > DIRECT_MIN) return direct_alloc(bytes, units * UNIT_BYTES, alignment, is_zero);
    if (span_is_scarce() && units * UNIT_BYTES - bytes > bytes / 16) {
        void *p = direct_alloc(bytes, bytes, alignment, is_zero);
        if (p != NULL) return p;
    }
    struct large *l = meta_alloc(sizeof *l);
    if (l == NULL) return NULL;
    l->base = span_alloc(units, alignment, is_zero);
    if (l->base == NULL) {
        meta_free(l, sizeof *l);
        return NULL;
    }
    l->bytes = bytes;
    l->units = units;
    add_live(l);
    return l->base;
}

void *large_alloc(size_t n, size_t alignment, bool *is_zero) {
    return alloc(n, n, alignment, is_zero);
}

void *large_alloc_growing(size_t n) {
    bool is_zero;
    size_t room = n + n / 4;
    void *p = room < n ? NULL : alloc(n, room, UNIT_BYTES, &is_zero);
    return p != NULL ? p : alloc(n, n, UNIT_BYTES, &is_zero);
}

enum { SCARCE_KEPT_MAX = 4 << 20 };

static void free_direct(struct large *l) {
    size_t bytes = l->map.bytes;
    if (purge_is_excess(bytes / UNIT_BYTES) || (span_is_scarce() && large_kept_bytes() > SCARCE_KEPT_MAX)) {
        release_record(l);
    } else {
        l->is_aged = false;
        lock_take(&span_lock, RANK_SPAN);
        push_locked(&kept, l);
        relaxed_store(&kept_bytes, kept_bytes + bytes);
        lock_release(&span_lock, RANK_SPAN);
    }
    purge_poll(bytes);
}

size_t large_kept_bytes(void) {
    return relaxed_load(&kept_bytes);
}

void large_free(void *p) {
    lock_take(&span_lock, RANK_SPAN);
    struct descriptor *d = page_map_find(p);
    struct large *l = d->owner == OWNER_LARGE ? record_of(p) : NULL;
    bool is_start = l != NULL && l->base == p;
    if (is_start) {
        unlink_locked(&live, l);
        retire(l, 0);
    }
    lock_release(&span_lock, RANK_SPAN);
    if (l == NULL) fail_double_free(p, (size_t)d->start * KIB, "block");
    if (!is_start) fail_invalid_free(p, (size_t)((char *)p - l->base), l->bytes, "block");
    if (l->units == 0) {
        free_direct(l);
        return;
    }
    span_free(l->base, l->units);
    meta_free(l, sizeof *l);
}

enum { GROWING_KEPT_MAX = 16 << 20 }; /* what a growing block may take over of kept memory, though it is small yet */

/* A kept mapping with the span's contents, copied; its pages need not be faulted in again as the block grows. */
static bool copy_to_kept(const struct large *l, size_t room, struct mapping *to) {
    struct large *k = take_kept(room, UNIT_BYTES, 0, max_size(room * 4, GROWING_KEPT_MAX));
    if (k == NULL) return false;
    if (!mapping_grow(&k->map, room, room)) {
        release_record(k);
        return false;
    }
    copy_block(k->map.base, l->base, l->bytes);
    *to = k->map;
    meta_free(k, sizeof *k);
    purge_note_taken(0);
    return true;
}

/* A new mapping with the span's pages, moved. The span reads as zero then. */
static bool move_to_mapping(const struct large *l, size_t room, struct mapping *to) {
    size_t old_bytes = l->units * UNIT_BYTES;
    if (!mapping_make(to, old_bytes, UNIT_BYTES, true)) return false;
    bool is_moved = os_move_pages(l->base, old_bytes, to->base);
    if (is_moved && mapping_grow(to, room, room)) return true;
    if (is_moved) copy_block(l->base, to->base, l->bytes); /* back: this cannot fail */
    mapping_release(to);
    return false;
}

/* Makes a span a mapping of its own, with room to grow: from then on it grows without copying. */
static void *span_to_direct(struct large *l, size_t bytes) {
    struct mapping to;
    char *span = l->base;
    size_t units = l->units, room = units_for(bytes + bytes / 4) * UNIT_BYTES;
    if (room < bytes) return NULL;
    bool is_copied = copy_to_kept(l, room, &to);
    if (!is_copied && !move_to_mapping(l, room, &to)) return NULL;
    move_record(l, &to, bytes);
    if (is_copied) span_free(span, units);
    else span_free_clean(span, units);
    return l->base;
}

/* A span keeps its place and gives up or takes units at its end. */
static void *resize_span(struct large *l, size_t bytes) {
    size_t units = units_for(bytes), old = l->units;
    if (units > old && (bytes > DIRECT_MIN || !span_extend(l->base, old, units)))
        return bytes >= DIRECT_GROWN_MIN ? span_to_direct(l, bytes) : NULL;
    if (units > old) {
        l->units = units;
        publish(l, old);
    } else if (units < old - old / 4) {
        page_map_set_owner(l->base + units * UNIT_BYTES, old - units, OWNER_FREE);
        l->units = units;
        span_free(l->base + units * UNIT_BYTES, old - units);
    }
    set_bytes(l, bytes);
    return l->base;
}

/* A growing block takes a kept mapping of twice to four times its size, which gets its contents, and leaves its own: to
 * copy a page costs less than to fault in a new one, and there is room for as many again. */
static bool exchange_for_kept(struct large *l, size_t bytes, size_t wanted) {
    if (wanted <= mapping_room(&l->map) || wanted > GROWING_KEPT_MAX) return false;
    struct large *k = take_kept(wanted * 2, UNIT_BYTES, wanted * 2, wanted * 4);
    if (k == NULL) return false;
    struct mapping old = l->map;
    copy_block(k->map.base, l->base, l->bytes);
    move_record(l, &k->map, bytes);
    purge_note_taken(0);
    k->map = old;
    free_direct(k);
    return true;
}

static void *resize_direct(struct large *l, size_t bytes) {
    size_t wanted = units_for(bytes) * UNIT_BYTES, growing = units_for(bytes + bytes / 4) * UNIT_BYTES;
    struct mapping to = l->map;
    if (bytes < DIRECT_GROWN_MIN / 2 || growing < bytes) return NULL; /* small enough now for a span; or far too large */
    if (exchange_for_kept(l, bytes, wanted)) return l->base;
    if (!mapping_grow(&to, wanted, growing)) return NULL;
    if (bytes < l->bytes) mapping_shrink(&to, wanted);
    move_record(l, &to, bytes);
    return l->base;
}

void *large_resize(void *p, size_t n) {
    struct large *l = record_of(p);
    size_t bytes = large_good_size(n);
    if (bytes < n || bytes > PTRDIFF_MAX) return NULL;
    return l->units == 0 ? resize_direct(l, bytes) : resize_span(l, bytes);
}

size_t large_usable(const void *p) {
    const struct large *l = record_of(p);
    return l->base == p ? l->bytes : 0;
}

bool large_find(const void *address, struct large *found) {
    bool is_found = false;
    lock_take(&span_lock, RANK_SPAN);
    for (struct large *l = live; l != NULL && !is_found; l = l->next) {
        is_found = (uintptr_t)address - (uintptr_t)l->base < l->bytes;
        if (is_found) *found = *l;
    }
    lock_release(&span_lock, RANK_SPAN);
    return is_found;
}

struct large_totals large_count(void) {
    struct large_totals t = {0, 0, 0};
    lock_take(&span_lock, RANK_SPAN);
    for (struct large *l = live; l != NULL; l = l->next) {
        t.blocks++;
        t.bytes += l->bytes;
    }
    t.kept_bytes = kept_bytes;
    lock_release(&span_lock, RANK_SPAN);
    return t;
}
