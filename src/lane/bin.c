#include "lane/bin.h"

#include "os/fail.h"

static void list_locked(struct bin *b, struct run *r) {
    ASSERT(!r->is_listed);
    r->is_listed = true;
    r->next = NULL;
    r->previous = b->partial_last;
    if (b->partial_last != NULL) b->partial_last->next = r;
    else b->partial = r;
    b->partial_last = r;
}

static void unlist_locked(struct bin *b, struct run *r) {
    ASSERT(r->is_listed);
    r->is_listed = false;
    if (r->previous != NULL) r->previous->next = r->next;
    else b->partial = r->next;
    if (r->next != NULL) r->next->previous = r->previous;
    else b->partial_last = r->previous;
}

enum { CHECKED_RUNS = 64 }; /* of a long list only the front, or audit builds would take quadratic time */

static void check_locked(struct bin *b) {
    REQUIRE(b->current == NULL || !b->current->is_listed); /* B1 */
    if (b->current != NULL) run_check_locked(b->current);
    size_t n = 0;
    for (struct run *r = b->partial; r != NULL && n++ < CHECKED_RUNS; r = r->next) {
        REQUIRE(r->is_listed && !run_is_exhausted(r) && r != b->current); /* B1 */
        REQUIRE(r->used != 0);                                            /* B2 */
        REQUIRE(r->next == NULL ? r == b->partial_last : r->next->previous == r);
    }
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
    if (done == 0) b->serial++;
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

/* One cell back into its run. Returns the run when it is to be destroyed. */
static struct run *give_back_one_locked(struct bin *b, struct run *r, mark_t mark) {
    bool was_exhausted = run_is_exhausted(r);
    run_give_back_locked(r, mark);
    if (r == b->current) return NULL;
    if (r->used == 0) {
        if (!was_exhausted) unlist_locked(b, r);
        run_retire_locked(r);
        return r;
    }
    if (was_exhausted) list_locked(b, r);
    return NULL;
}

void bin_give_back(struct bin *b, const struct cell_ref *cells, size_t n, enum cell_state state) {
    struct run *doomed = NULL;
    lock_take(&b->lock, RANK_BIN);
    for (size_t i = 0; i < n; i++) {
        struct run *owner = run_of(page_map_find(cells[i].cell));
        if (unlikely(!mark_is(cells[i].mark, state) || encoding_is_free_locked(owner, cells[i].mark))) {
            size_t bytes = owner->cell_bytes;
            lock_release(&b->lock, RANK_BIN);
            fail_double_free(cells[i].cell, bytes, "cell");
        }
        mark_set(cells[i].mark, CELL_CACHED);
        struct run *r = give_back_one_locked(b, owner, cells[i].mark);
        if (r == NULL) continue;
        r->next = doomed;
        doomed = r;
    }
    if (HUDDLE_AUDIT) check_locked(b);
    lock_release(&b->lock, RANK_BIN);
    while (doomed != NULL) {
        struct run *r = doomed;
        doomed = r->next;
        run_destroy(r);
    }
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
