#include "thread/heap.h"

#include "base/options.h"
#include "os/fail.h"
#include "os/system.h"
#include "run/index.h"
#include "span/meta.h"
#include "thread/outgoing.h"
#include "thread/reclaim.h"
#include "thread/registry.h"

/* Every magazine of them is empty (nothing to pop) and full (no room to push), every size leads to one of them, and no
 * run's owner is equal to theirs. Never written. */
#define HEAP_WITHOUT_CELLS(heap)                                                                                       \
    {                                                                                                                  \
        .magazines = {[0 ... CLASS_COUNT - 1] = MAGAZINE_EMPTY},                                                       \
        .by_size = {[0 ... DIRECT_SIZES - 1] = (heap).magazines}, .owner = OWNER_NOBODY, .owner_key = HEAP_CLOSED_KEY  \
    }

struct heap heap_special[3] = {HEAP_WITHOUT_CELLS(heap_busy), HEAP_WITHOUT_CELLS(heap_empty), HEAP_WITHOUT_CELLS(heap_late)};

__thread uintptr_t heap_place __attribute__((tls_model("initial-exec"), visibility("hidden"))) = sizeof(struct heap);

struct lock heap_late_lock;

/* For calls after a thread's end. Guarded by heap_late_lock. */
static struct heap *late_shared;

void heap_init(struct heap *h, struct lane *l) {
    for (unsigned class = 0; class < CLASS_COUNT; class++) magazine_init(&h->magazines[class], class);
    for (size_t i = 0; i < DIRECT_SIZES; i++) h->by_size[i] = &h->magazines[size_class_of(i * GRAIN_BYTES)];
    h->lane = l;
    h->owner = l->number + 1;
    h->owner_key = (uint64_t)h->owner << INDEX_OWNER_SHIFT;
}

struct heap *heap_create(void) {
    struct heap *h = meta_alloc(sizeof *h);
    if (h == NULL) return NULL;
    lock_take(&registry_lock, RANK_REGISTRY);
    struct lane *l = registry_join_lane_locked();
    if (l != NULL) {
        heap_init(h, l);
        registry_add_locked(h);
    }
    lock_release(&registry_lock, RANK_REGISTRY);
    if (l != NULL) return h;
    meta_free(h, sizeof *h);
    return NULL;
}

/* The shared heap, locked; NULL, not locked, when there is no memory. */
static struct heap *enter_late(void) {
    lock_take(&heap_late_lock, RANK_LATE);
    struct heap *h = late_shared;
    if (h == NULL) {
        h = heap_create();
        relaxed_store(&late_shared, h);
    }
    if (h == NULL) lock_release(&heap_late_lock, RANK_LATE);
    return h;
}

static bool is_special(const struct heap *h) {
    return h == &heap_busy || h == &heap_empty || h == &heap_late;
}

/* The calling thread's heap, as heap_seize, and open. */
static struct heap *seize_open(void) {
    struct heap *h = heap_seize();
    if (is_special(h)) return h;
    if (unlikely(heap_is_closed(h))) reclaim_open(h);
    relaxed_store(&h->activity, h->activity + 1);
    return h;
}

struct heap_use heap_enter(void) {
    struct heap *h = seize_open();
    struct heap_use use = {.heap = h, .current = h, .is_nested = h == &heap_busy};
    if (likely(!is_special(h))) return use;
    use.heap = NULL;
    if (use.is_nested) return use;
    if (h == &heap_late) {
        use.heap = enter_late();
        return use;
    }
    if (heap_before_first != NULL) heap_before_first();
    h = heap_create();
    if (h == NULL) return use;
    use.heap = use.current = h;
    if (heap_created != NULL) {
        /* Asks libc, which may allocate: with the new heap. */
        heap_release(h);
        bool ends_well = heap_created();
        use.current = heap_seize();
        if (ends_well) release_store(&h->place, &heap_place);
    }
    return use;
}

void heap_leave(struct heap_use use) {
    if (use.heap != NULL && heap_is_shared(use.heap)) lock_release(&heap_late_lock, RANK_LATE);
    heap_release(use.current);
}

bool heap_is_shared(const struct heap *h) {
    return h == relaxed_load(&late_shared);
}

/* xorshift64*: good enough to make the order unknown, three shifts a number. */
static uint64_t next_random(struct heap *h) {
    if (unlikely(h->random == 0)) h->random = os_entropy() | 1;
    h->random ^= h->random >> 12;
    h->random ^= h->random << 25;
    h->random ^= h->random >> 27;
    return h->random * 0x2545f4914f6cdd1du;
}

static void shuffle(struct heap *h, struct cell_ref *cells, size_t n) {
    for (size_t i = n; i > 1; i--) {
        size_t k = (size_t)(((__uint128_t)next_random(h) * i) >> 64);
        struct cell_ref other = cells[i - 1];
        cells[i - 1] = cells[k];
        cells[k] = other;
    }
}

/* Pops a cell and makes it the program's, or returns NULL. */
static void *pop(struct magazine *m) {
    struct cell_ref *e = m->top - 1;
    if (e->cell == NULL) return NULL;
    mark_set(e->mark, CELL_LIVE);
    m->top = e;
    return e->cell;
}

/* A cell that came back, and that heap_push would not have: without room, or an error. */
static NOINLINE void take_cell(struct heap *h, void *p) {
    unsigned class;
    struct cell_ref ref = lane_resolve(h->lane, p, &class);
    if (!mark_is(ref.mark, CELL_RETURNING)) fail_double_free(ref.cell, size_class_bytes(class), "cell");
    mark_set(ref.mark, CELL_CACHED);
    heap_push_slow(h, &h->magazines[class], ref);
}

enum { CACHE_LINE_BYTES = 64 };

/* Another core wrote it. */
static void prefetch_message(const struct message *m) {
    for (size_t line = 0; line < sizeof *m; line += CACHE_LINE_BYTES) __builtin_prefetch((const char *)m + line);
}

/* Takes in what other lanes freed, all of it. */
static void take_inbox(struct heap *h) {
    struct message *next;
    for (struct message *m = inbox_take(&h->lane->inbox); m != NULL; m = next) {
        next = m->next;
        if (next != NULL) prefetch_message(next);
        for (uint32_t i = 0; i < m->count; i++)
            if (unlikely(!heap_push(h, m->cell[i], CELL_RETURNING))) take_cell(h, m->cell[i]);
        heap_keep_message(h, m);
    }
}

/* Half of a magazine, so that frees that follow find room. The batch comes in address order and is pushed in reverse,
 * so that the program gets it in address order. */
static void *lease(struct heap *h, struct magazine *m) {
    struct cell_ref batch[MESSAGE_CELLS], *out = m->base + 1;
    if (m->capacity == 0) { /* no memory for entries: one cell at a time */
        size_t n = bin_lease(&h->lane->bins[m->class], m->class, h->lane->number, batch, 1);
        if (n == 0) return NULL;
        mark_set(batch[0].mark, CELL_LIVE);
        return batch[0].cell;
    }
    size_t n = bin_lease(&h->lane->bins[m->class], m->class, h->lane->number, out, (m->capacity + 1u) / 2);
    if (relaxed_load(&options.shuffle)) {
        shuffle(h, out, n);
    } else {
        for (size_t i = 0; i < n / 2; i++) {
            struct cell_ref other = out[i];
            out[i] = out[n - 1 - i];
            out[n - 1 - i] = other;
        }
    }
    m->top = out + n;
    return pop(m);
}

void *heap_refill(struct heap *h, struct magazine *m) {
    if (!inbox_is_empty(&h->lane->inbox)) {
        take_inbox(h);
        void *p = pop(m);
        if (p != NULL) return p;
    }
    magazine_grow(m, &h->cache_bytes);
    if (HUDDLE_AUDIT) magazine_check(m);
    return lease(h, m);
}

/* Gives the n oldest cells back. */
static void give_back(struct heap *h, struct magazine *m, size_t n) {
    bin_give_back(&h->lane->bins[m->class], m->base + 1, n, CELL_CACHED);
    size_t left = magazine_count(m) - n;
    for (size_t i = 1; i <= left; i++) m->base[i] = m->base[i + n];
    m->top = m->base + 1 + left;
}

void heap_push_slow(struct heap *h, struct magazine *m, struct cell_ref cell) {
    magazine_grow(m, &h->cache_bytes);
    if (m->top == m->limit && m->capacity != 0) give_back(h, m, (m->capacity + 1u) / 2);
    if (HUDDLE_AUDIT) magazine_check(m);
    if (m->top == m->limit) bin_give_back(&h->lane->bins[m->class], &cell, 1, CELL_CACHED);
    else *m->top++ = cell;
}

void heap_flush(struct heap *h) {
    outgoing_flush(h);
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        struct magazine *m = &h->magazines[class];
        if (magazine_count(m) != 0) give_back(h, m, magazine_count(m));
        magazine_release(m, &h->cache_bytes);
    }
    lane_drain(h->lane);
    heap_release_messages(h);
    if (heap_flush_pool != NULL) heap_flush_pool(h);
}

static void destroy(struct heap *h) {
    heap_flush(h);
    if (heap_end_pool != NULL) heap_end_pool(h);
    if (h->out != NULL) meta_free(h->out, LANE_MAX * sizeof(struct message *));
    lock_take(&registry_lock, RANK_REGISTRY);
    registry_remove_locked(h);
    h->lane->heaps--;
    lock_release(&registry_lock, RANK_REGISTRY);
    meta_free(h, sizeof *h);
}

void heap_thread_exit(void) {
    struct heap *h = seize_open();
    if (!is_special(h)) destroy(h);
    heap_release(h == &heap_busy ? h : &heap_late);
}

void heap_check(const struct heap *h) {
    for (unsigned class = 0; class < CLASS_COUNT; class++) magazine_check(&h->magazines[class]);
}
