/* lock.h - a mutual-exclusion lock of one word, with a futex behind it.
 *
 * word: 0 free, 1 held, 2 held and somebody may sleep. A thread that finds it held spins for a short while, then
 * sleeps in the kernel: with more threads than CPUs a holder can be off its CPU for a whole time slice. While the
 * program has one thread the word is written plainly (os_is_threaded cannot change between lock and unlock: only the
 * holder could start a thread, and it is in here).
 *
 * Ranks: a thread takes locks in ascending rank only. The audit build checks it. */
#ifndef HUDDLE_OS_LOCK_H
#define HUDDLE_OS_LOCK_H

#include "base/base.h"
#include "os/fail.h"
#include "os/system.h"

enum lock_rank {
    RANK_ZONE,     /* the list of parts of a SHARED zone (zone/shared.c); the program's, as the zone is: not taken at a fork */
    RANK_LATE,     /* the heap for calls after a thread's end (thread/heap.c) */
    RANK_RECLAIM,  /* who empties the heaps of idle threads (thread/reclaim.c) */
    RANK_PAGES,    /* who gives back pages of runs (thread/reclaim.c) */
    RANK_REGISTRY, /* the list of heaps, lanes (thread/registry.c) */
    RANK_BIN,      /* one size class of one lane (lane/bin.c) */
    RANK_POOL,     /* spare messages (lane/inbox.c) */
    RANK_PURGE,    /* who gives memory back (span/purge.c) */
    RANK_DEPOT,    /* chunks that no thread has (zone/chunk.c) */
    RANK_SPAN,     /* regions and large blocks (span/span.c) */
    RANK_META,     /* metadata memory (span/meta.c) */
    RANK_COUNT
};

struct lock {
    uint32_t word;
};

void lock_wait(struct lock *l);
void lock_wake(struct lock *l);

#if HUDDLE_AUDIT
extern __thread uint32_t lock_held_ranks __attribute__((tls_model("initial-exec")));
static inline void lock_note_taken(enum lock_rank rank) {
    ASSERT(lock_held_ranks >> rank == 0);
    lock_held_ranks |= 1u << rank;
}
static inline void lock_note_released(enum lock_rank rank) {
    ASSERT(lock_held_ranks >> rank & 1);
    lock_held_ranks &= ~(1u << rank);
}

/* A test aid, the option hold_rank: a thread that has just taken a lock of that rank sleeps in it now and then, so that
 * forks and ends of threads meet it held. */
void lock_hold(enum lock_rank rank);
#else
static inline void lock_note_taken(enum lock_rank rank) {
    (void)rank;
}
static inline void lock_note_released(enum lock_rank rank) {
    (void)rank;
}
static inline void lock_hold(enum lock_rank rank) {
    (void)rank;
}
#endif

/* Takes the lock if it is free. */
static inline bool lock_try(struct lock *l, enum lock_rank rank) {
    uint32_t expected = 0;
    if (os_is_threaded()) {
        if (!__atomic_compare_exchange_n(&l->word, &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return false;
    } else {
        if (l->word != 0) return false;
        relaxed_store(&l->word, 1);
    }
    lock_note_taken(rank);
    lock_hold(rank);
    return true;
}

static inline void lock_take_unranked(struct lock *l) {
    if (!os_is_threaded()) {
        ASSERT(l->word == 0);
        relaxed_store(&l->word, 1);
        return;
    }
    uint32_t expected = 0;
    if (unlikely(!__atomic_compare_exchange_n(&l->word, &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)))
        lock_wait(l);
}

static inline void lock_take(struct lock *l, enum lock_rank rank) {
    lock_note_taken(rank);
    lock_take_unranked(l);
    lock_hold(rank);
}

static inline void lock_release_unranked(struct lock *l) {
    if (!os_is_threaded()) {
        relaxed_store(&l->word, 0);
        return;
    }
    if (unlikely(__atomic_exchange_n(&l->word, 0, __ATOMIC_RELEASE) == 2)) lock_wake(l);
}

static inline void lock_release(struct lock *l, enum lock_rank rank) {
    lock_note_released(rank);
    lock_release_unranked(l);
}

#endif
