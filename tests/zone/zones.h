/* zones.h - what the tests of zones share. They link the core and the interface of zones, in every preset. */
#ifndef TESTS_ZONE_ZONES_H
#define TESTS_ZONE_ZONES_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>

#include "allocator.h"
#include "huddle/zone.h"

#if defined(__SANITIZE_ADDRESS__)
#define TEST_UNDER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TEST_UNDER_ASAN 1
#endif
#endif
#ifndef TEST_UNDER_ASAN
#define TEST_UNDER_ASAN 0
#endif

/* Resident memory says nothing under the sanitizers, which keep shadows of it. */
#if defined(__SANITIZE_THREAD__)
#define TEST_COUNTS_RESIDENT 0
#else
#define TEST_COUNTS_RESIDENT (!TEST_UNDER_ASAN && !TEST_IS_EMULATED)
#endif

#define OPTIONS(...) (&(huddle_zone_options_t){.struct_size = sizeof(huddle_zone_options_t), __VA_ARGS__})

/* The call fails with this error, and errno is left alone by calls that succeed. */
#define FAILS(call, error)              \
    do {                                \
        errno = 0;                      \
        assert_true(!(call));           \
        assert_int_equal(errno, error); \
    } while (0)

#define IS_ERROR(call, error)                 \
    do {                                      \
        errno = 0;                            \
        assert_int_equal(call, -1);           \
        assert_int_equal(errno, error);       \
    } while (0)

/* A zone with these options, and errno as it was. */
static inline huddle_zone_t *open_zone(const huddle_zone_options_t *wanted) {
    errno = 77;
    huddle_zone_t *z = huddle_zone_open(wanted);
    assert_non_null(z);
    assert_int_equal(errno, 77);
    return z;
}

static inline void close_zone(huddle_zone_t *z) {
    errno = 77;
    assert_int_equal(huddle_zone_close(z), 0);
    assert_int_equal(errno, 77);
}

static inline huddle_zone_stats_t stats_of(const huddle_zone_t *z) {
    huddle_zone_stats_t s = {.struct_size = sizeof s};
    assert_int_equal(huddle_zone_stats(z, &s), 0);
    return s;
}

/* n bytes of the zone, written to. */
static inline char *take(huddle_zone_t *z, size_t n) {
    char *p = huddle_zone_alloc(z, n);
    assert_non_null(p);
    assert_int_equal((uintptr_t)p % 16, 0);
    memset(p, 0xa5, n);
    return p;
}

#endif
