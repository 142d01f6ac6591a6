/* span.c - page map, metadata, spans and how they are given back. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/options.h"
#include "inside.h"
#include "span/large.h"
#include "span/meta.h"
#include "span/page_map.h"
#include "span/purge.h"
#include "span/span.h"

static uint64_t seed;

/* ---- page map ---- */

static void assert_not_ours(uint64_t value) {
    const struct descriptor *d = page_map_find((const void *)(uintptr_t)value);
    if (d->owner != OWNER_NONE) fail_msg("0x%llx has owner %u", (unsigned long long)value, d->owner);
    struct large l;
    assert_false(large_find((const void *)(uintptr_t)value, &l));
}

static void page_map_answers_for_any_value(void **state) {
    (void)state;
    uint64_t random = seed;
    assert_not_ours(0);
    for (int b = 0; b < 64; b++) {
        assert_not_ours((uint64_t)1 << b);
        assert_not_ours(((uint64_t)1 << b) - 1);
        assert_not_ours(~((uint64_t)1 << b));
        assert_not_ours(UINT64_MAX << b);
    }
    for (int i = 0; i < 100000; i++) {
        assert_not_ours(random_next(&random) | (uint64_t)1 << 63);  /* the kernel's half */
        assert_not_ours(random_next(&random) >> 17 | (uint64_t)1 << 47); /* above the user's half */
        assert_not_ours(random_next(&random) >> 20);                 /* below where anything is mapped */
    }
    /* The program's own code, data and stack. */
    static int data;
    assert_not_ours((uintptr_t)&data);
    assert_not_ours((uintptr_t)&random);
    assert_not_ours((uintptr_t)assert_not_ours);
}

static void page_map_keeps_what_is_written_for_each_unit(void **state) {
    (void)state;
    bool is_zero;
    char *p = span_alloc(4, UNIT_BYTES, &is_zero);
    assert_non_null(p);
    page_map_set_owner(p + UNIT_BYTES, 2, OWNER_ZONE);
    assert_int_equal(page_map_find(p)->owner, OWNER_FREE);
    assert_int_equal(page_map_find(p + UNIT_BYTES - 1)->owner, OWNER_FREE);
    assert_int_equal(page_map_find(p + UNIT_BYTES)->owner, OWNER_ZONE);
    assert_int_equal(page_map_find(p + 3 * UNIT_BYTES - 1)->owner, OWNER_ZONE);
    assert_int_equal(page_map_find(p + 3 * UNIT_BYTES)->owner, OWNER_FREE);
    page_map_set_owner(p, 4, OWNER_FREE);
    span_free(p, 4);
}

/* ---- metadata ---- */

static void meta_is_zeroed_and_aligned(void **state) {
    (void)state;
    uint64_t random = seed;
    for (int round = 0; round < 2; round++) {
        enum { PIECES = 200 };
        static char *pieces[PIECES];
        static size_t sizes[PIECES];
        for (size_t i = 0; i < PIECES; i++) {
            sizes[i] = 1 + random_below(&random, i % 4 == 0 ? META_MAX : META_FINE_MAX);
            pieces[i] = meta_alloc(sizes[i]);
            assert_non_null(pieces[i]);
            assert_int_equal((uintptr_t)pieces[i] % META_LINE, 0);
            assert_true(is_all_zero(pieces[i], sizes[i]));
            memset(pieces[i], (int)i + 1, sizes[i]);
        }
        for (size_t i = 0; i < PIECES; i++) {
            for (size_t k = 0; k < sizes[i]; k += 61)
                assert_int_equal((unsigned char)pieces[i][k], (unsigned char)(i + 1));
            meta_free(pieces[i], sizes[i]);
        }
    }
}

static void meta_is_used_again_for_the_same_size(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 64, 65, 1000, META_FINE_MAX, META_FINE_MAX + 1, 100000, META_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        void *p = meta_alloc(sizes[i]);
        size_t used = meta_used_bytes();
        meta_free(p, sizes[i]);
        assert_ptr_equal(meta_alloc(sizes[i]), p);
        assert_int_equal(meta_used_bytes(), used);
        void *other = meta_alloc(sizes[i]);
        assert_ptr_not_equal(other, p);
        meta_free(p, sizes[i]);
        meta_free(other, sizes[i]);
    }
}

/* The first piece of a region of metadata begins after a guard page, and another one follows its end. */
static void meta_lies_between_guard_pages(void **state) {
    (void)state;
    char *p, *before = NULL;
    size_t mapped;
    do {
        mapped = os_memory_counters().mapped_bytes;
        before = p = meta_alloc(META_MAX);
        assert_non_null(p);
    } while (os_memory_counters().mapped_bytes == mapped);
    assert_true(is_unreadable(before - 1));
    size_t region_bytes = os_memory_counters().mapped_bytes - mapped;
    char *end = before - os_page_bytes + region_bytes;
    assert_true(is_unreadable(end - 1));
    assert_true(is_unreadable(end - os_page_bytes));
    assert_false(is_unreadable(end - os_page_bytes - 1));
}

/* ---- spans ---- */

static void span_is_aligned_and_zero_when_it_says_so(void **state) {
    (void)state;
    uint64_t random = seed;
    enum { HELD = 40 };
    struct {
        char *p;
        size_t units;
    } held[HELD] = {{NULL, 0}};
    size_t zeros = 0, others = 0;
    for (int step = 0; step < 1500; step++) {
        size_t i = random_below(&random, HELD);
        if (held[i].p != NULL) {
            span_free(held[i].p, held[i].units);
            held[i].p = NULL;
            if (random_below(&random, 50) == 0) purge_all(random_below(&random, 20 * MIB));
            continue;
        }
        size_t units = 1 + random_below(&random, random_below(&random, 10) == 0 ? 160 : 8);
        size_t alignment = (size_t)UNIT_BYTES << (random_below(&random, 4) == 0 ? random_below(&random, 8) : 0);
        bool is_zero;
        char *p = span_alloc(units, alignment, &is_zero);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % alignment, 0);
        if (is_zero) assert_true(is_all_zero(p, units * UNIT_BYTES));
        zeros += is_zero;
        others += !is_zero;
        for (size_t k = 0; k < HELD; k++)
            if (held[k].p != NULL)
                assert_true(p + units * UNIT_BYTES <= held[k].p || held[k].p + held[k].units * UNIT_BYTES <= p);
        memset(p, 0x5a, units * UNIT_BYTES);
        held[i].p = p;
        held[i].units = units;
    }
    assert_true(zeros != 0 && others != 0);
    for (size_t i = 0; i < HELD; i++)
        if (held[i].p != NULL) span_free(held[i].p, held[i].units);
    for (struct region *r = span_regions; r != NULL; r = r->next) region_check(r);
}

static void span_at_every_alignment_up_to_8_mib(void **state) {
    (void)state;
    for (size_t alignment = UNIT_BYTES; alignment <= 8 * MIB; alignment *= 2) {
        bool is_zero;
        char *a = span_alloc(3, alignment, &is_zero), *b = span_alloc(128, alignment, &is_zero);
        assert_true(a != NULL && (uintptr_t)a % alignment == 0);
        assert_true(b != NULL && (uintptr_t)b % alignment == 0);
        span_free(a, 3);
        span_free(b, 128);
    }
}

static void span_extends_into_free_units_only(void **state) {
    (void)state;
    bool is_zero;
    char *p = span_alloc(20, UNIT_BYTES, &is_zero);
    assert_non_null(p);
    memset(p, 0x5a, 20 * UNIT_BYTES);
    span_free(p + 10 * UNIT_BYTES, 5);
    assert_false(span_extend(p, 10, 16));
    assert_true(span_extend(p, 10, 15));
    assert_false(span_extend(p, 15, 16));
    for (size_t i = 0; i < 10 * UNIT_BYTES; i += 4096) assert_int_equal(p[i], 0x5a);
    span_free(p, 20);
}

/* ---- purge ---- */

static void purge_all_gives_back_all_but_what_is_to_be_kept(void **state) {
    (void)state;
    options.purge_ms = UINT32_MAX;
    enum { SPANS = 200 };
    static char *spans[SPANS];
    bool is_zero;
    purge_all(0);
    assert_int_equal(region_dirty_free_units, 0);
    for (size_t i = 0; i < SPANS; i++) {
        spans[i] = span_alloc(2, UNIT_BYTES, &is_zero);
        assert_non_null(spans[i]);
        memset(spans[i], 0x5a, 2 * UNIT_BYTES);
    }
    for (size_t i = 0; i < SPANS; i += 2) span_free(spans[i], 2);
    assert_int_equal(region_dirty_free_units, SPANS);
    size_t purged = os_memory_counters().purged_bytes;
    assert_int_equal(purge_all(40 * UNIT_BYTES), (SPANS - 40) * UNIT_BYTES);
    assert_int_equal(os_memory_counters().purged_bytes, purged + (SPANS - 40) * UNIT_BYTES);
    assert_int_equal(region_dirty_free_units, 40);
    assert_int_equal(purge_all(0), 40 * UNIT_BYTES);
    assert_int_equal(purge_all(0), 0);
    for (size_t i = 0; i < SPANS; i += 2) assert_true(is_all_zero(spans[i], 2 * UNIT_BYTES));
    for (size_t i = 1; i < SPANS; i += 2) {
        for (size_t k = 0; k < 2 * UNIT_BYTES; k += 4096) assert_int_equal(spans[i][k], 0x5a);
        span_free(spans[i], 2);
    }
    purge_all(0);
    options.purge_ms = 1000;
}

static void purge_that_fails_leaves_units_dirty(void **state) {
    (void)state;
    options.purge_ms = UINT32_MAX;
    bool is_zero;
    char *p = span_alloc(8, UNIT_BYTES, &is_zero);
    memset(p, 0x5a, 8 * UNIT_BYTES);
    span_free(p, 8);
    options.fail_nth = 1;
    options.fail_count = UINT32_MAX;
    assert_int_equal(purge_all(0), 0);
    options.fail_nth = 0;
    options.fail_count = 1;
    assert_int_equal(region_dirty_free_units, 8);
    char *q = span_alloc(8, UNIT_BYTES, &is_zero);
    assert_ptr_equal(q, p);
    assert_false(is_zero);
    span_free(q, 8);
    assert_int_equal(purge_all(0), 8 * UNIT_BYTES);
    options.purge_ms = 1000;
}

static void purge_ms_0_keeps_nothing(void **state) {
    (void)state;
    options.purge_ms = 0;
    bool is_zero;
    char *small = span_alloc(1, UNIT_BYTES, &is_zero), *large = span_alloc(50, UNIT_BYTES, &is_zero);
    memset(small, 1, UNIT_BYTES);
    memset(large, 1, 50 * UNIT_BYTES);
    span_free(small, 1);
    assert_int_equal(region_dirty_free_units, 0);
    span_free(large, 50);
    assert_int_equal(region_dirty_free_units, 0);
    options.purge_ms = 1000;
}

/* A program that needs the same amount again and again: the first rounds purge, the later ones do not. */
static void purge_keeps_what_is_needed_again(void **state) {
    (void)state;
    bool is_zero;
    size_t purged = 0;
    options.purge_ms = UINT32_MAX - 1; /* never by age */
    for (int round = 0; round < 10; round++) {
        char *p = span_alloc(128, UNIT_BYTES, &is_zero);
        assert_non_null(p);
        memset(p, 1, 128 * UNIT_BYTES);
        if (round == 5) purged = os_memory_counters().purged_bytes;
        span_free(p, 128);
    }
    assert_int_equal(os_memory_counters().purged_bytes, purged);
    purge_all(0);
    options.purge_ms = 1000;
}

int main(void) {
    inside_start();
    seed = random_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(page_map_answers_for_any_value),
        cmocka_unit_test(page_map_keeps_what_is_written_for_each_unit),
        cmocka_unit_test(meta_is_zeroed_and_aligned),
        cmocka_unit_test(meta_is_used_again_for_the_same_size),
        cmocka_unit_test(meta_lies_between_guard_pages),
        cmocka_unit_test(span_is_aligned_and_zero_when_it_says_so),
        cmocka_unit_test(span_at_every_alignment_up_to_8_mib),
        cmocka_unit_test(span_extends_into_free_units_only),
        cmocka_unit_test(purge_all_gives_back_all_but_what_is_to_be_kept),
        cmocka_unit_test(purge_that_fails_leaves_units_dirty),
        cmocka_unit_test(purge_ms_0_keeps_nothing),
        cmocka_unit_test(purge_keeps_what_is_needed_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
