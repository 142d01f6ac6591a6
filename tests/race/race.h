/* race.h - threads that begin together. */
#ifndef TESTS_RACE_RACE_H
#define TESTS_RACE_RACE_H

#include <pthread.h>

#include "allocator.h"

enum { RACE_THREADS_MAX = 16 };

struct race {
    pthread_t ids[RACE_THREADS_MAX];
    unsigned count;
};

static pthread_barrier_t race_start;

/* Each thread's first call: all go on when all are here. */
static inline void race_wait(void) {
    pthread_barrier_wait(&race_start);
}

/* Runs f in `count` threads, with the numbers from 0 as arguments, and waits for their ends. */
static inline void race_run(unsigned count, void *(*f)(void *)) {
    struct race r = {.count = count};
    EXPECT(count <= RACE_THREADS_MAX && pthread_barrier_init(&race_start, NULL, count) == 0);
    for (unsigned i = 0; i < count; i++) EXPECT(pthread_create(&r.ids[i], NULL, f, (void *)(uintptr_t)i) == 0);
    for (unsigned i = 0; i < count; i++) EXPECT(pthread_join(r.ids[i], NULL) == 0);
    pthread_barrier_destroy(&race_start);
}

/* How much to do: the argument, or `usual`, less under ThreadSanitizer. */
static inline size_t race_amount(int argc, char **argv, size_t usual) {
    if (argc > 1) return strtoul(argv[1], NULL, 10);
#if defined(__SANITIZE_THREAD__)
    return usual / 5;
#else
    return usual;
#endif
}

/* Nothing is live, nothing cached, all lists are whole. */
static inline void race_finish(void) {
    trim();
    stats_check_all();
    struct huddle_stats s = statistics();
    EXPECT(s.live_blocks == 0 && s.live_bytes == 0);
    EXPECT(s.cached_bytes == 0 && s.large_blocks == 0);
}

#endif
