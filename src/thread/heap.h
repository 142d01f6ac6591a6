/* heap.h - what one thread has: a magazine for each size class, outgoing messages, its lane.
 *
 * The fast paths reach it through one thread-local pointer. It never is NULL: before a thread's first call it leads to
 * heap_empty, whose magazines are empty and full at once and whose lane nobody has, and after the thread's last
 * destructor to heap_late; so that no fast path asks whether there is a heap. Calls that find one of the two take the
 * slow path, where heap_enter makes a heap, or takes the shared heap for late calls under its lock.
 *
 * The pointer is also the lock against the thread's own signal handlers: while a call touches the heap, or holds any
 * lock of the allocator, the pointer leads to heap_busy, a third heap without cells. A call from a handler at that
 * time misses into the slow path, sees that it is nested, and works without heap and locks (heap/nested.h).
 *
 * Everything is owned by the thread, but what is said otherwise of, and `next` and `previous` (guarded by the
 * registry's lock). owner_key, by_size and pool are overwritten by another thread to close the heap
 * (thread/reclaim.h). */
#ifndef HUDDLE_THREAD_HEAP_H
#define HUDDLE_THREAD_HEAP_H

#include "lane/lane.h"
#include "run/index.h"
#include "thread/magazine.h"

enum {
    DIRECT_SIZE_MAX = 1024, /* up to here the magazine of a size is found by one load */
    DIRECT_SIZES = DIRECT_SIZE_MAX / GRAIN_BYTES + 1,
    MESSAGES_KEPT = 16, /* empty messages that a thread keeps */
};

struct heap {
    struct magazine magazines[CLASS_COUNT];   /* first: descriptors hold offsets from the heap */
    struct magazine *by_size[DIRECT_SIZES];   /* [(n + 15) / 16] */
    uint64_t owner_key;                       /* owner << INDEX_OWNER_SHIFT, to compare with the run index */
    uint32_t owner;                           /* what the page map says of runs of its lane */
    uint32_t spare_count;
    struct lane *lane;
    struct message *spare;   /* empty messages */
    struct message **out;    /* one being filled for each lane, or NULL; the array is made at the first free for another lane */
    size_t cache_bytes;      /* what the magazines hold when full */
    uint64_t random;         /* state of the generator for shuffle=1; 0: not seeded yet */
    uint32_t activity;       /* slow calls so far; relaxed, read by others */
    /* For the thread that empties it when its owner is idle (thread/reclaim.h): */
    uint32_t activity_seen;  /* guarded by the registry's lock */
    const uintptr_t *place;  /* the owner's heap_place; NULL: never emptied by others */
    struct chunk_pool *pool;      /* chunks for zones (zone/pool.h); NULL: none yet, or the heap is closed */
    struct chunk_pool *pool_kept; /* the same, also while it is closed */
    struct heap *next, *previous;
};

/* The owner_key of heaps that are closed, and of the three without cells. */
#define HEAP_CLOSED_KEY ((uint64_t)OWNER_NOBODY << INDEX_OWNER_SHIFT)

/* Not for the three heaps without cells. */
static inline bool heap_is_closed(const struct heap *h) {
    return relaxed_load(&h->owner_key) == HEAP_CLOSED_KEY;
}

_Static_assert(offsetof(struct heap, magazines) == 0, "descriptors hold offsets from the heap");

/* The three heaps without cells. */
extern struct heap heap_special[3] __attribute__((visibility("hidden")));
#define heap_busy heap_special[0]
#define heap_empty heap_special[1]
#define heap_late heap_special[2]

/* Where the calling thread's heap is, as a distance in bytes from heap_busy: 0 is heap_busy. So it is before the
 * dynamic linker has set up thread-local storage, when resolvers of indirect functions may allocate already: such
 * calls are nested ones. */
extern __thread uintptr_t heap_place __attribute__((tls_model("initial-exec"), visibility("hidden")));

static ALWAYS_INLINE struct heap *heap_at(uintptr_t place) {
    return (struct heap *)((uintptr_t)&heap_busy + place);
}

/* The calling thread's heap, to look at. */
static inline struct heap *heap_of_thread(void) {
    return heap_at(heap_place);
}

/* Guards the shared heap for calls after a thread's end. */
extern struct lock heap_late_lock;

/* Both are api/'s, and absent where only the layers below it are linked. Called before the first heap is made; and by
 * each thread that got a heap, to ask libc for a call at the thread's end: returns whether that call will come, or the
 * thread ends with the process. */
void heap_before_first(void) __attribute__((weak));
bool heap_created(void) __attribute__((weak));

/* zone/'s, absent likewise: give the chunks of the heap's pool to the depot; and the pool's memory, at the thread's
 * end. */
void heap_flush_pool(struct heap *h) __attribute__((weak));
void heap_end_pool(struct heap *h) __attribute__((weak));

/* What the compiler may not move over: everything between heap_seize and heap_release happens there, as a signal
 * handler of this thread sees it. */
#define signal_fence() __asm__ volatile("" ::: "memory")

/* Takes the calling thread's heap for itself, so that a call from a signal handler finds heap_busy; heap_release puts
 * it back. Two plain stores: others look only behind a membarrier (thread/reclaim.h). */
static ALWAYS_INLINE struct heap *heap_seize(void) {
    uintptr_t place = relaxed_load(&heap_place);
    relaxed_store(&heap_place, 0);
    signal_fence();
    return heap_at(place);
}

static ALWAYS_INLINE void heap_release(struct heap *h) {
    signal_fence();
#if defined(__SANITIZE_THREAD__) /* does not know of membarrier */
    release_store(&heap_place, (uintptr_t)h - (uintptr_t)&heap_busy);
#else
    relaxed_store(&heap_place, (uintptr_t)h - (uintptr_t)&heap_busy);
#endif
}

/* Puts a cell of this heap's own lane, whose mark is `from`, into its magazine. False, and nothing is changed, when p is
 * no such cell, or the magazine is full, or the run index has another unit in that place. The checks are free.h's. */
static ALWAYS_INLINE bool heap_push(struct heap *h, void *p, enum cell_state from) {
    uintptr_t unit = (uintptr_t)p >> UNIT_SHIFT;
    size_t slot = index_slot(unit);
    if (unlikely(foldable_load(&run_index.key[slot]) != unit + foldable_load(&h->owner_key))) return false;
    struct magazine *m = (struct magazine *)((char *)h + run_index.place[slot].magazine);
    uint64_t product = (uint64_t)((uint32_t)(uintptr_t)p - run_index.place[slot].start) * m->reciprocal;
    if (unlikely((uint32_t)product >= m->reciprocal)) return false;
    mark_t mark = mark_at(run_index.cells[slot], product >> 32);
    struct cell_ref *top = m->top;
    if (unlikely(!mark_is(mark, from) || top == m->limit)) return false;
    mark_set(mark, CELL_CACHED);
    *top = (struct cell_ref){p, mark};
    m->top = top + 1;
    return true;
}

/* What a slow path works with: the thread's heap, a new one, or the shared one, locked. */
struct heap_use {
    struct heap *heap;    /* NULL when there is no memory for one, or is_nested */
    struct heap *current; /* what heap_leave puts back */
    bool is_nested;       /* a signal handler interrupted this thread in the allocator: touch no heap and take no lock */
};

/* Everything that takes a lock, or touches a heap, stands between these two. */
struct heap_use heap_enter(void);
void heap_leave(struct heap_use use);

/* Whether it is the shared heap for late calls. */
bool heap_is_shared(const struct heap *h);

/* Refills an empty magazine from the lane and returns one cell, LIVE, or NULL when there is no memory. */
void *heap_refill(struct heap *h, struct magazine *m);

/* Pushes a cell whose mark is CACHED on a full magazine: makes it larger or gives its older half back first. */
void heap_push_slow(struct heap *h, struct magazine *m, struct cell_ref cell);

/* Puts everything that the heap caches back into the lanes: magazines, outgoing messages, and its lane's inbox. */
void heap_flush(struct heap *h);

/* Makes a heap, for heap_enter and tests. */
struct heap *heap_create(void);

/* The end of the calling thread: its heap is given up; calls that still come go through the shared one. */
void heap_thread_exit(void);

/* Sets up a heap's constant parts; `heap` is zeroed memory. */
void heap_init(struct heap *h, struct lane *l);

void heap_check(const struct heap *h);

#endif
