/* allocator.h - the allocator under test, under one set of names: its inside, called directly, or the malloc of a
 * program into which the library is preloaded (TEST_FROM_OUTSIDE). */
#ifndef TESTS_UNIT_ALLOCATOR_H
#define TESTS_UNIT_ALLOCATOR_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "huddle/huddle.h"

/* Nothing here may allocate: the messages are written as they are. */
_Noreturn static inline void test_failed(const char *what, int line) {
    char text[200];
    int n = snprintf(text, sizeof text, "line %d: %s\n", line, what);
    if (write(STDERR_FILENO, text, (size_t)n) != n) _exit(98);
    _exit(99);
}

#define EXPECT(x) ((void)((x) || (test_failed(#x, __LINE__), 0)))

#ifdef TEST_FROM_OUTSIDE

#include <malloc.h>

#pragma weak huddle_stats
#pragma weak huddle_trim
#pragma weak huddle_option_set
#pragma weak huddle_usable_size

/* errno says why there is no block, and only then. */
#define CHECKED(call)                                          \
    ({                                                         \
        errno = 0;                                             \
        void *checked_ = (call);                               \
        EXPECT(errno == (checked_ == NULL ? ENOMEM : 0));      \
        checked_;                                              \
    })

static inline void allocator_start(void) {
    EXPECT(huddle_stats != NULL);
}

static inline void *allocate(size_t n) {
    return CHECKED(malloc(n));
}

static inline void *allocate_zeroed(size_t n) {
    return CHECKED(calloc(1, n));
}

static inline void *allocate_aligned(size_t n, size_t alignment) {
    return CHECKED(memalign(alignment, n));
}

static inline void *reallocate(void *p, size_t n) {
    return CHECKED(realloc(p, n));
}

static inline void release(void *p) {
    errno = 77;
    free(p);
    EXPECT(errno == 77);
}

static inline size_t usable(const void *p) {
    return huddle_usable_size(p);
}

static inline void trim(void) {
    huddle_trim(0);
}

static inline void set_failing(uint32_t nth, uint32_t count) {
    char text[12];
    snprintf(text, sizeof text, "%u", count);
    EXPECT(huddle_option_set("fail_count", text));
    snprintf(text, sizeof text, "%u", nth);
    EXPECT(huddle_option_set("fail_nth", text));
}

static inline size_t system_calls(void) {
    struct huddle_stats s = {.struct_size = sizeof s};
    EXPECT(huddle_stats(&s));
    return s.system_calls;
}

static inline void allocator_thread_ends(void) {
}

#else

#include "base/options.h"
#include "heap/alloc.h"
#include "heap/free.h"
#include "heap/query.h"
#include "inside.h"
#include "observe/stats.h"
#include "os/memory.h"
#include "span/purge.h"
#include "thread/heap.h"
#include "zone/chunk.h"

static inline void allocator_start(void) {
    inside_start();
}

static inline void *allocate(size_t n) {
    return heap_alloc(n);
}

static inline void *allocate_zeroed(size_t n) {
    return heap_alloc_zeroed(n);
}

static inline void *allocate_aligned(size_t n, size_t alignment) {
    return heap_alloc_aligned(n, alignment);
}

static inline void *reallocate(void *p, size_t n) {
    return heap_realloc(p, n);
}

static inline void release(void *p) {
    heap_free(p);
}

static inline size_t usable(const void *p) {
    return heap_usable(p);
}

/* As huddle_trim. */
static inline void trim(void) {
    if (heap_of_thread() != &heap_empty && heap_of_thread() != &heap_late) heap_flush(heap_of_thread());
    for (unsigned i = 0; i < LANE_MAX && lane_get(i) != NULL; i++) lane_trim(lane_get(i));
    depot_age(true);
    purge_all(0);
}

static inline void set_failing(uint32_t nth, uint32_t count) {
    relaxed_store(&options.fail_count, count);
    relaxed_store(&options.fail_nth, nth);
}

static inline size_t system_calls(void) {
    return os_memory_counters().calls;
}

static inline void allocator_thread_ends(void) {
    heap_thread_exit();
}

static inline struct huddle_stats statistics(void) {
    struct huddle_stats s = {.struct_size = sizeof s};
    stats_collect(&s);
    return s;
}

#endif

#endif
