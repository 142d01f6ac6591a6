#include "lane/bin.h"

#include "os/fail.h"
#include "span/purge.h"
#include "span/span.h"

enum {
    FREED_MAX = 256 << 10, /* then the purge is told */
    PURGE_RANGES = 64,     /* in one system call */
    PURGE_LOOKS = 32,      /* at runs while the lock is held */
};

static void list_locked(struct bin *b, struct run *r) {
    ASSERT(!r->is_listed);
    r->is_listed = true;
    r->next = NULL;
    r->previous = b->partial_last;
    if (b->partial_last != NULL) b->partial_last->next = r;
    else b->partial = r;
    b->partial_last = r;
    b->listed++;
}

static void unlist_locked(struct bin *b, struct run *r) {
    ASSERT(r->is_listed);
    r->is_listed = false;
    if (r->previous != NULL) r->previous->next = r->next;
    else b->partial = r->next;
    if (r->next != NULL) r->next->previous = r->previous;
    else b->partial_last = r->previous;
    b->listed--;
}

enum { CHECKED_RUNS = 64 }; /* of a long list only the front, or audit builds would take quadratic time */

static void check_locked(struct bin *b) {
    REQUIRE(b->current == NULL || (!b->current->is_listed && !b->current->is_apart)); /* B1 */
    if (b->current != NULL) run_check_locked(b->current);
    size_t n = 0;
    struct run *r = b->partial;
    for (; r != NULL && n < CHECKED_RUNS; r = r->next, n++) {
        REQUIRE(r->is_listed && !r->is_apart && !run_is_exhausted(r) && r != b->current); /* B1 */
        REQUIRE(r->used != 0);                                            /* B2 */
        REQUIRE(r->next == NULL ? r == b->partial_last : r->next->previous == r);
    }
    REQUIRE(r == NULL ? n == b->listed : n < b->listed); /* B3 */
}

/* Leases from the current run and the partial ones. */
static size_t lease_locked(struct bin *b, struct cell_ref *out, size_t n) {
    size_t done = 0;
    for (;;) {
        if (b->current != NULL) done += run_lease_locked(b->current, out + done, n - done);
        if (done == n || b->partial == NULL) return done;
        b->current = b->partial;
        unlist_locked(b, b->current);
    }
}

/* Makes r the current run. Another thread may have made one meanwhile: it stays at hand, or, when nothing of it is
 * used any more (B2), is returned to be destroyed. */
static struct run *replace_current_locked(struct bin *b, struct run *r) {
    struct run *old = b->current;
    b->current = r;
    if (old == NULL || run_is_exhausted(old)) return NULL;
    if (old->used != 0) {
        list_locked(b, old);
        return NULL;
    }
    run_retire_locked(old);
    return old;
}

size_t bin_lease(struct bin *b, unsigned class, unsigned lane, struct cell_ref *out, size_t n) {
    lock_take(&b->lock, RANK_BIN);
    size_t done = lease_locked(b, out, n);
    uint32_t serial = b->serial;
    if (done == 0 && serial < RUN_SERIAL_MAX) b->serial++;
    lock_release(&b->lock, RANK_BIN);
    if (done != 0) return done;
    struct run *r = run_create(class, lane, serial), *surplus = NULL;
    lock_take(&b->lock, RANK_BIN);
    if (r != NULL) surplus = replace_current_locked(b, r);
    done = lease_locked(b, out, n);
    if (HUDDLE_AUDIT) check_locked(b);
    lock_release(&b->lock, RANK_BIN);
    if (surplus != NULL) run_destroy(surplus);
    return done;
}

/* Sees to the lists after cells came back to a run. Returns the run when it is to be destroyed. */
static struct run *relist_locked(struct bin *b, struct run *r, bool was_exhausted) {
    if (r == b->current || r->is_apart) return NULL;
    if (r->used == 0) {
        if (!was_exhausted) unlist_locked(b, r);
        run_retire_locked(r);
        return r;
    }
    if (was_exhausted) list_locked(b, r);
    return NULL;
}

static void destroy_all(struct run *doomed) {
    while (doomed != NULL) {
        struct run *r = doomed;
        doomed = r->next;
        run_destroy(r);
    }
}

void bin_give_back(struct bin *b, const struct cell_ref *cells, size_t n, enum cell_state state) {
    struct run *doomed = NULL;
    size_t freed = 0;
    lock_take(&b->lock, RANK_BIN);
    for (size_t i = 0, done; i < n; i += done) {
        struct run *r = run_of(page_map_find(cells[i].cell));
        bool was_exhausted = run_is_exhausted(r);
        done = run_give_back_locked(r, cells + i, n - i, state);
        if (unlikely(done == 0)) {
            size_t bytes = r->cell_bytes;
            lock_release(&b->lock, RANK_BIN);
            fail_double_free(cells[i].cell, bytes, "cell");
        }
        freed += done * r->cell_bytes;
        r = relist_locked(b, r, was_exhausted);
        if (r == NULL) continue;
        r->next = doomed;
        doomed = r;
    }
    if (HUDDLE_AUDIT) check_locked(b);
    freed += b->freed;
    b->freed = freed < FREED_MAX ? (uint32_t)freed : 0;
    lock_release(&b->lock, RANK_BIN);
    destroy_all(doomed);
    if (freed >= FREED_MAX) purge_note_cells(freed);
}

/* The ranges of a run that is to be purged now; 0: not now, or there are none. */
static size_t choose_pages_locked(struct run *r, bool all, struct os_range *out, bool *is_wanted) {
    if (r->age == AGE_PURGED) return 0;
    if (r->age == AGE_NEW && !all) {
        r->age = AGE_SEEN;
        *is_wanted = true;
        return 0;
    }
    r->age = AGE_PURGED;
    return run_free_pages_locked(r, out);
}

/* Lists those runs again, or, when the last cell came back meanwhile (B2), returns them to be destroyed. */
static struct run *put_back_locked(struct bin *b, struct run *apart) {
    struct run *doomed = NULL;
    for (struct run *r = apart, *next; r != NULL; r = next) {
        next = r->next;
        r->is_apart = false;
        if (r->used != 0) {
            list_locked(b, r);
            continue;
        }
        run_retire_locked(r);
        r->next = doomed;
        doomed = r;
    }
    return doomed;
}

/* Looks at the first listed run, which becomes the last one, or when there is none at the current one. When it has
 * pages to purge, it is put apart. Returns the number of ranges. */
static size_t purge_next_locked(struct bin *b, bool is_listed, bool all, struct os_range *out, bool *is_wanted,
                                struct run **apart) {
    struct run *r = is_listed ? b->partial : b->current;
    if (r == NULL || run_is_exhausted(r)) return 0;
    size_t n = choose_pages_locked(r, all, out, is_wanted);
    if (is_listed) unlist_locked(b, r);
    if (n == 0) {
        if (is_listed) list_locked(b, r);
        return 0;
    }
    if (!is_listed) b->current = NULL;
    r->is_apart = true;
    r->next = *apart;
    *apart = r;
    return n;
}

bool bin_purge(struct bin *b, size_t *left, bool all, bool *is_wanted) {
    struct os_range ranges[PURGE_RANGES];
    struct run *apart = NULL;
    size_t n = 0;
    lock_take(&b->lock, RANK_BIN);
    *left = min_size(*left, b->listed + (size_t)1);
    for (size_t looks = 0; looks < PURGE_LOOKS && *left != 0 && n + RUN_RANGES_MAX <= PURGE_RANGES; looks++)
        n += purge_next_locked(b, --*left != 0, all, ranges + n, is_wanted, &apart);
    lock_release(&b->lock, RANK_BIN);
    if (n == 0) return *left != 0;
    for (size_t i = 0; i < n; i++) span_before_purge(ranges[i].start);
    os_purge_many(ranges, n);
    lock_take(&b->lock, RANK_BIN);
    struct run *doomed = put_back_locked(b, apart);
    if (HUDDLE_AUDIT) check_locked(b);
    lock_release(&b->lock, RANK_BIN);
    destroy_all(doomed);
    return *left != 0;
}

void bin_trim(struct bin *b) {
    lock_take(&b->lock, RANK_BIN);
    struct run *r = b->current;
    bool is_unused = r != NULL && r->used == 0;
    if (is_unused) {
        b->current = NULL;
        run_retire_locked(r);
    }
    lock_release(&b->lock, RANK_BIN);
    if (is_unused) run_destroy(r);
}

void bin_check(struct bin *b) {
    lock_take(&b->lock, RANK_BIN);
    check_locked(b);
    for (struct run *r = b->partial; r != NULL; r = r->next) run_check_locked(r);
    lock_release(&b->lock, RANK_BIN);
}
