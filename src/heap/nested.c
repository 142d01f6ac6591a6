#include "heap/nested.h"

#include "base/size_class.h"
#include "lane/lane.h"
#include "os/fail.h"
#include "os/memory.h"
#include "span/large.h"

enum {
    ARENA_UNITS = 16,
    SHIFT_FIRST = 4,
    SHIFT_LAST = 15,
    CELLS_MAX = UNIT_BYTES >> SHIFT_FIRST,
};

enum nested_state { NESTED_FREE, NESTED_LIVE, NESTED_INTERNAL /* a message or a record: not the program's */ };

struct nested_run {
    char *base;
    struct nested_run *next;
    uint32_t shift; /* log2 of the cell size */
    uint32_t hint;  /* where to look first; relaxed */
    uint8_t bytes[CELLS_MAX]; /* N1 */
};

struct arena {
    struct arena *next;
    char *units;
    uint32_t taken; /* units; may count beyond ARENA_UNITS */
    struct nested_run runs[ARENA_UNITS];
};

/* A block in a mapping of its own. */
struct nested_large {
    char *map_base;
    size_t map_bytes, bytes;
};

static struct arena *arenas;                             /* N2; the first one is allocated from */
static struct nested_run *lists[SHIFT_LAST + 1];         /* N2 */
static struct inbox large_inbox;
static size_t large_blocks, large_bytes; /* relaxed */

static size_t arena_header_bytes(void) {
    return round_up(sizeof(struct arena), UNIT_BYTES);
}

/* n bytes at a multiple of the alignment, from a mapping of which the rest stays unused. */
static char *map(size_t n, size_t alignment, char **map_base, size_t *map_bytes) {
    *map_bytes = n + alignment;
    if (*map_bytes < n) return NULL;
    *map_base = os_map(NULL, *map_bytes);
    if (*map_base == NULL) return NULL;
    char *p = (char *)round_up((uintptr_t)*map_base, alignment);
    if (page_map_cover(p, n)) return p;
    os_unmap(*map_base, *map_bytes);
    return NULL;
}

static struct arena *make_arena(struct arena *seen) {
    char *map_base;
    size_t map_bytes, n = arena_header_bytes() + (size_t)ARENA_UNITS * UNIT_BYTES;
    struct arena *a = (struct arena *)(void *)map(n, UNIT_BYTES, &map_base, &map_bytes);
    if (a == NULL) return NULL;
    a->units = (char *)a + arena_header_bytes();
    a->next = seen;
    if (__atomic_compare_exchange_n(&arenas, &seen, a, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)) return a;
    os_unmap(map_base, map_bytes);
    return seen;
}

/* A new run of cells of the size, on its list. */
static struct nested_run *make_run(unsigned shift) {
    struct arena *a = acquire_load(&arenas);
    uint32_t i = ARENA_UNITS;
    if (a != NULL) i = __atomic_fetch_add(&a->taken, 1, __ATOMIC_RELAXED);
    while (i >= ARENA_UNITS) {
        a = make_arena(a);
        if (a == NULL) return NULL;
        i = __atomic_fetch_add(&a->taken, 1, __ATOMIC_RELAXED);
    }
    struct nested_run *r = &a->runs[i];
    r->base = a->units + (size_t)i * UNIT_BYTES;
    r->shift = shift;
    struct descriptor *d = page_map_find(r->base);
    d->cells = (uint8_t *)r;
    release_store(&d->owner, OWNER_NESTED);
    r->next = acquire_load(&lists[shift]);
    while (!__atomic_compare_exchange_n(&lists[shift], &r->next, r, true, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)) {
    }
    return r;
}

static void *take_cell(struct nested_run *r, enum nested_state state) {
    uint32_t cells = (uint32_t)UNIT_BYTES >> r->shift, from = relaxed_load(&r->hint);
    for (uint32_t k = 0; k < cells; k++) {
        uint32_t i = (from + k) % cells;
        uint8_t expected = NESTED_FREE;
        if (relaxed_load(&r->bytes[i]) != NESTED_FREE) continue;
        if (!__atomic_compare_exchange_n(&r->bytes[i], &expected, (uint8_t)state, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        relaxed_store(&r->hint, i + 1);
        return r->base + ((size_t)i << r->shift);
    }
    return NULL;
}

static void *alloc_cell(size_t n, enum nested_state state) {
    unsigned shift = n <= GRAIN_BYTES ? SHIFT_FIRST : log2_floor(n - 1) + 1;
    for (struct nested_run *r = acquire_load(&lists[shift]); r != NULL; r = r->next) {
        void *p = take_cell(r, state);
        if (p != NULL) return p;
    }
    for (;;) {
        struct nested_run *r = make_run(shift);
        if (r == NULL) return NULL;
        void *p = take_cell(r, state);
        if (p != NULL) return p;
    }
}

static void free_cell(void *p, enum nested_state state) {
    struct nested_run *r = (struct nested_run *)(void *)page_map_find(p)->cells;
    size_t offset = (size_t)((char *)p - r->base), bytes = (size_t)1 << r->shift;
    if (offset % bytes != 0) fail_invalid_free(p, offset % bytes, bytes, "cell");
    uint8_t expected = (uint8_t)state;
    if (!__atomic_compare_exchange_n(&r->bytes[offset >> r->shift], &expected, NESTED_FREE, false, __ATOMIC_RELEASE,
                                     __ATOMIC_RELAXED))
        fail_double_free(p, bytes, "cell");
}

static void *alloc_large(size_t n, size_t alignment) {
    size_t bytes = round_up(n, os_page_bytes);
    struct nested_large *l = bytes < n ? NULL : alloc_cell(sizeof *l, NESTED_INTERNAL);
    if (l == NULL) return NULL;
    char *p = map(bytes, max_size(alignment, UNIT_BYTES), &l->map_base, &l->map_bytes);
    if (p == NULL) {
        free_cell(l, NESTED_INTERNAL);
        return NULL;
    }
    /* Pairs with the release in free_large: the system gives addresses again that were given up there. */
    __atomic_add_fetch(&large_blocks, 1, __ATOMIC_ACQUIRE);
    l->bytes = bytes;
    struct descriptor *d = page_map_find(p);
    d->cells = (uint8_t *)l;
    release_store(&d->owner, OWNER_NESTED_LARGE);
    __atomic_add_fetch(&large_bytes, bytes, __ATOMIC_RELAXED);
    return p;
}

static void free_large(void *p) {
    struct descriptor *d = page_map_find(p);
    struct nested_large *l = (struct nested_large *)(void *)d->cells;
    size_t bytes = l->bytes;
    uint16_t expected = OWNER_NESTED_LARGE;
    if ((uintptr_t)p % UNIT_BYTES != 0) fail_invalid_free(p, (uintptr_t)p % UNIT_BYTES, bytes, "block");
    if (!__atomic_compare_exchange_n(&d->owner, &expected, OWNER_WAS_LARGE, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        fail_double_free(p, bytes, "block");
    d->start = (uint32_t)min_size(bytes / KIB, UINT32_MAX);
    d->magazine = 1;
    __atomic_sub_fetch(&large_blocks, 1, __ATOMIC_RELEASE);
    __atomic_sub_fetch(&large_bytes, bytes, __ATOMIC_RELAXED);
    if (!os_unmap(l->map_base, l->map_bytes)) os_purge(l->map_base, l->map_bytes);
    free_cell(l, NESTED_INTERNAL);
}

void *nested_alloc(size_t n, size_t alignment) {
    if (n > PTRDIFF_MAX) return NULL;
    size_t cell = max_size(n, alignment);
    return cell <= (size_t)1 << SHIFT_LAST ? alloc_cell(cell, NESTED_LIVE) : alloc_large(max_size(n, 1), alignment);
}

void nested_free(void *p) {
    if (page_map_find(p)->owner == OWNER_NESTED) free_cell(p, NESTED_LIVE);
    else free_large(p);
}

void nested_free_later(void *p, const struct descriptor *d) {
    struct message *m = alloc_cell(sizeof *m, NESTED_INTERNAL);
    if (m == NULL) return; /* without memory for a message the block stays the program's: never reused, never corrupt */
    m->count = 1;
    m->bytes = 0;
    m->cell[0] = p;
    inbox_push(d->owner == OWNER_LARGE ? &large_inbox : &lane_get(d->owner - 1u)->inbox, m);
}

void nested_drain(void) {
    struct message *first = inbox_take(&large_inbox), *last = NULL;
    for (struct message *m = first; m != NULL; m = m->next) {
        large_free(m->cell[0]);
        last = m;
    }
    if (first != NULL) message_pool_give(first, last);
}

size_t nested_usable(const void *p) {
    const struct descriptor *d = page_map_find(p);
    if (d->owner == OWNER_NESTED_LARGE)
        return (uintptr_t)p % UNIT_BYTES == 0 ? ((const struct nested_large *)(const void *)d->cells)->bytes : 0;
    const struct nested_run *r = (const struct nested_run *)(const void *)d->cells;
    size_t offset = (size_t)((const char *)p - r->base), bytes = (size_t)1 << r->shift;
    bool is_live = offset % bytes == 0 && relaxed_load(&r->bytes[offset >> r->shift]) == NESTED_LIVE;
    return is_live ? bytes : 0;
}

struct nested_totals nested_count(void) {
    struct nested_totals t = {relaxed_load(&large_blocks), relaxed_load(&large_bytes)};
    for (unsigned shift = SHIFT_FIRST; shift <= SHIFT_LAST; shift++) {
        for (struct nested_run *r = acquire_load(&lists[shift]); r != NULL; r = r->next) {
            for (size_t i = 0; i < (size_t)UNIT_BYTES >> shift; i++) {
                if (relaxed_load(&r->bytes[i]) != NESTED_LIVE) continue;
                t.blocks++;
                t.bytes += (size_t)1 << shift;
            }
        }
    }
    return t;
}
