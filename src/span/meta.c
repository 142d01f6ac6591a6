#include "span/meta.h"

#include "os/fail.h"
#include "os/lock.h"
#include "os/memory.h"
#include "span/span.h"

enum {
    FIRST_REGION_BYTES = 512 * 1024,
    LAST_REGION_BYTES = 8 * 1024 * 1024,
    SCARCE_REGION_BYTES = 1024 * 1024,
    FINE_LISTS = META_FINE_MAX / META_LINE,
    LISTS = FINE_LISTS + 1 + META_MAX / META_COARSE,
};

struct piece {
    struct piece *next;
};

struct lock meta_lock;

/* All guarded by meta_lock. */
static char *cursor, *limit; /* the unused rest of the newest region */
static size_t next_region_bytes = FIRST_REGION_BYTES;
static size_t used_bytes;
static struct piece *lists[LISTS];

static struct piece **list_of(size_t bytes) {
    return &lists[bytes <= META_FINE_MAX ? bytes / META_LINE : FINE_LISTS + bytes / META_COARSE];
}

/* A new region with a guard page on either side. What was left of the old one stays unused. */
static bool grow_locked(size_t bytes) {
    size_t wanted = span_is_scarce() ? SCARCE_REGION_BYTES : next_region_bytes;
    size_t guard = os_page_bytes, n = max_size(wanted, round_up(bytes, os_page_bytes));
    char *p = os_reserve(n + 2 * guard);
    if (p == NULL) {
        n = round_up(bytes, os_page_bytes);
        p = os_reserve(n + 2 * guard);
        if (p == NULL) return false;
    }
    if (!os_commit(p + guard, n)) {
        os_unmap(p, n + 2 * guard);
        return false;
    }
    cursor = p + guard;
    limit = cursor + n;
    next_region_bytes = min_size(next_region_bytes * 2, LAST_REGION_BYTES);
    return true;
}

static void *alloc(size_t bytes) {
    ASSERT(bytes != 0 && bytes <= META_MAX);
    size_t n = meta_piece_bytes(bytes);
    void *result = NULL;
    bool is_fresh = false;
    lock_take(&meta_lock, RANK_META);
    struct piece **list = list_of(n);
    if (*list != NULL) {
        result = *list;
        *list = (*list)->next;
    } else if ((size_t)(limit - cursor) >= n || grow_locked(n)) {
        result = cursor;
        cursor += n;
        used_bytes += n;
        is_fresh = true;
    }
    lock_release(&meta_lock, RANK_META);
    if (result != NULL && !is_fresh)
        for (size_t i = 0; i < n / sizeof(uint64_t); i++) ((uint64_t *)result)[i] = 0;
    return result;
}

void *meta_alloc(size_t bytes) {
    void *p = alloc(bytes);
    /* When the system refuses, what is mapped for blocks and not used at all is given up for records. */
    if (unlikely(p == NULL) && span_release_unused() != 0) p = alloc(bytes);
    return p;
}

void meta_free(void *p, size_t bytes) {
    struct piece *piece = p;
    lock_take(&meta_lock, RANK_META);
    struct piece **list = list_of(meta_piece_bytes(bytes));
    piece->next = *list;
    *list = piece;
    lock_release(&meta_lock, RANK_META);
}

size_t meta_used_bytes(void) {
    lock_take(&meta_lock, RANK_META);
    size_t n = used_bytes;
    lock_release(&meta_lock, RANK_META);
    return n;
}
