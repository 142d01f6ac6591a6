/* alloc.c - allocation, resizing and text: every size, alignment and error. */
#include "zones.h"

enum { SIZE_STEPS = 20000 };

static void sizes_of_zero_are_distinct(void **state) {
    (void)state;
    huddle_zone_t *z = open_zone(NULL);
    void *p[6] = {huddle_zone_alloc(z, 0), huddle_zone_zalloc(z, 0), huddle_zone_packed(z, 0), huddle_zone_calloc(z, 0, 8),
                  huddle_zone_aligned(z, 64, 0), huddle_zone_array(z, 5, 0, 8)};
    for (int i = 0; i < 6; i++)
        for (int k = 0; k <= i; k++) assert_true(p[i] != NULL && (k == i || p[i] != p[k]));
    close_zone(z);
}

static void sizes_too_large_have_no_memory(void **state) {
    (void)state;
    static const size_t sizes[] = {(size_t)PTRDIFF_MAX, (size_t)PTRDIFF_MAX + 1, SIZE_MAX, SIZE_MAX - 15, SIZE_MAX - 4096,
                                   (size_t)1 << 56};
    huddle_zone_t *z = open_zone(NULL);
    size_t got = 1;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t n = sizes[i];
        FAILS(huddle_zone_alloc(z, n), ENOMEM);
        FAILS(huddle_zone_zalloc(z, n), ENOMEM);
        FAILS(huddle_zone_packed(z, n), ENOMEM);
        FAILS(huddle_zone_aligned(z, 4096, n), ENOMEM);
        FAILS(huddle_zone_calloc(z, n, 3), ENOMEM);
        FAILS(huddle_zone_calloc(z, 3, n), ENOMEM);
        FAILS(huddle_zone_array(z, n, 7, 8), ENOMEM);
        FAILS(huddle_zone_zarray(z, 7, n, 8), ENOMEM);
        FAILS(huddle_zone_at_least(z, n, &got), ENOMEM);
        assert_int_equal(got, 0);
        FAILS(huddle_zone_realloc(z, NULL, 0, n), ENOMEM);
        char *p = take(z, 10);
        assert_false(huddle_zone_extend(z, p, 10, n));
        FAILS(huddle_zone_realloc(z, p, 10, n), ENOMEM);
    }
    FAILS(huddle_zone_calloc(z, (size_t)1 << 33, (size_t)1 << 33), ENOMEM);
    FAILS(huddle_zone_array(z, SIZE_MAX / 16 + 2, 16, 16), ENOMEM);
    take(z, 100);
    close_zone(z);
}

static void alignments_are_by_address(void **state) {
    (void)state;
    for (size_t align = 1; align <= (size_t)1 << 20; align *= 2) {
        huddle_zone_t *z = open_zone(NULL);
        size_t sizes[] = {1, align - 1, align, align + 1, 3 * align};
        for (int i = 0; i < 5; i++) {
            char *p = huddle_zone_aligned(z, align, sizes[i]);
            assert_non_null(p);
            assert_int_equal((uintptr_t)p & (align - 1), 0);
            memset(p, 1, sizes[i]);
            assert_true(huddle_zone_of(p) == z);
            huddle_zone_packed(z, 3);
        }
        close_zone(z);
    }
    huddle_zone_t *z = open_zone(NULL);
    static const size_t wrong[] = {0, 3, 6, 24, 48, SIZE_MAX, SIZE_MAX - 1};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        FAILS(huddle_zone_aligned(z, wrong[i], 8), EINVAL);
        FAILS(huddle_zone_array(z, 2, 8, wrong[i]), EINVAL);
        FAILS(huddle_zone_zarray(z, 2, 8, wrong[i]), EINVAL);
    }
    close_zone(z);
}

static void blocks_do_not_overlap(void **state) {
    (void)state;
    huddle_zone_t *z = open_zone(NULL);
    char *end = NULL;
    for (size_t n = 1; n < SIZE_STEPS; n += 1 + n / 16) {
        char *p = take(z, n), *q = take(z, n);
        assert_true(p + n <= q || q + n <= p);
        assert_true(end == NULL || p >= end || p + n <= end);
        end = q + n;
    }
    close_zone(z);
}

/* Chunks that were written to before, and fresh ones. */
static void zeroed_memory_is_zero(void **state) {
    (void)state;
    for (int round = 0; round < 3; round++) {
        huddle_zone_t *z = open_zone(NULL);
        for (size_t n = 1; n < SIZE_STEPS; n += 1 + n / 32) {
            char *p = huddle_zone_zalloc(z, n), *q = huddle_zone_calloc(z, 3, n), *r = huddle_zone_zarray(z, 2, n, 64);
            assert_true(is_all_zero(p, n) && is_all_zero(q, 3 * n) && is_all_zero(r, 2 * n));
            memset(p, 0xff, n);
            memset(q, 0xff, 3 * n);
            memset(r, 0xff, 2 * n);
            take(z, n);
        }
        char *large = huddle_zone_zalloc(z, 3000000);
        assert_true(is_all_zero(large, 3000000));
        memset(large, 0xff, 3000000);
        if (round == 0) assert_int_equal(huddle_zone_reset(z), 0);
        for (size_t n = 1; n < 300; n++) assert_true(is_all_zero(huddle_zone_zalloc(z, n), n));
        close_zone(z);
    }
}

static void small_zeroed_sizes_of_a_constant_are_zero(void **state) {
    (void)state;
    huddle_zone_t *z = open_zone(NULL);
    memset(take(z, 3000), 0xff, 3000);
    assert_int_equal(huddle_zone_reset(z), 0);
    assert_true(is_all_zero(huddle_zone_zalloc(z, 1), 1) && is_all_zero(huddle_zone_zalloc(z, 16), 16));
    assert_true(is_all_zero(huddle_zone_zalloc(z, 24), 24) && is_all_zero(huddle_zone_zalloc(z, 48), 48));
    assert_true(is_all_zero(huddle_zone_zalloc(z, 64), 64) && is_all_zero(huddle_zone_zalloc(z, 65), 65));
    struct pair {
        long a, b;
    } *one = huddle_new(z, struct pair), *three = huddle_new(z, struct pair, 3);
    assert_true(is_all_zero(one, sizeof *one) && is_all_zero(three, 3 * sizeof *three));
    close_zone(z);
}

static void packed_blocks_lie_side_by_side(void **state) {
    (void)state;
    huddle_zone_t *z = open_zone(NULL);
    char *p = huddle_zone_packed(z, 3), *q = huddle_zone_packed(z, 5), *r = huddle_zone_packed(z, 100);
    assert_true(q == p + 3 && r == q + 5);
    memset(p, 'p', 3);
    memset(q, 'q', 5);
    char *aligned = take(z, 16);
    assert_true(aligned >= r + 100);
    assert_true((char *)huddle_zone_packed(z, 1) >= aligned + 16);
    assert_memory_equal(p, "pppqqqqq", 8);
    close_zone(z);
}

static void at_least_says_what_may_be_used(void **state) {
    (void)state;
    huddle_zone_t *z = open_zone(NULL);
    for (size_t n = 0; n < 1000; n += 7) {
        size_t got = 0;
        char *p = huddle_zone_at_least(z, n, &got);
        assert_true(p != NULL && got >= n && got != 0);
        memset(p, 1, got);
        char *next = take(z, 1);
        assert_true(next >= p + got || next < p);
    }
    close_zone(z);
}

/* ---- resizing ---- */

static void the_last_block_grows_and_shrinks_in_place(void **state) {
    (void)state;
    huddle_zone_t *z = open_zone(NULL);
    char *first = take(z, 100), *last = take(z, 100);
    assert_false(huddle_zone_extend(z, first, 100, 200));
    assert_true(huddle_zone_extend(z, first, 100, 50));
    assert_true(huddle_zone_extend(z, last, 100, 1000));
    memset(last, 2, 1000);
    assert_true(take(z, 1) >= last + 1000);
    assert_false(huddle_zone_extend(z, last, 1000, 2000));
    close_zone(z);
}

static void packed_blocks_grow_and_shrink_in_place(void **state) {
    (void)state;
    huddle_zone_t *z = open_zone(NULL);
    char *p = huddle_zone_packed(z, 3), *q = huddle_zone_packed(z, 5);
    memset(q, 'q', 5);
    assert_false(huddle_zone_extend(z, p, 3, 10)); /* though p would end where the zone does, rounded */
    assert_false(huddle_zone_pop(z, p, 3));
    assert_true(huddle_zone_extend(z, q, 5, 50));
    assert_true((char *)huddle_zone_packed(z, 1) == q + 50);
    assert_false(huddle_zone_extend(z, q, 50, 51));
    assert_memory_equal(q, "qqqqq", 5);
    close_zone(z);
}

static void pop_takes_the_last_block_back(void **state) {
    (void)state;
    huddle_zone_t *z = open_zone(NULL);
    size_t before = stats_of(z).used_bytes;
    char *p = take(z, 100), *q = take(z, 20);
    assert_false(huddle_zone_pop(z, p, 100));
    assert_true(huddle_zone_pop(z, q, 20));
    assert_ptr_equal(take(z, 30), q);
    assert_true(huddle_zone_pop(z, q, 30) && huddle_zone_pop(z, p, 100));
    assert_int_equal(stats_of(z).used_bytes, before);
    assert_false(huddle_zone_pop(z, (char *)&state, 16));
    char *large = take(z, 400000);
    assert_int_equal(stats_of(z).large_objects, 1);
    assert_true(huddle_zone_pop(z, large, 400000));
    assert_int_equal(stats_of(z).large_objects, 0);
    close_zone(z);
}

static void realloc_keeps_what_is_there(void **state) {
    (void)state;
    huddle_zone_t *z = open_zone(NULL);
    char *p = huddle_zone_realloc(z, NULL, 0, 1);
    size_t old = 1;
    p[0] = 'r';
    for (size_t n = 2; n < 3000000; n = n * 3 / 2 + 1) {
        char *moved = huddle_zone_realloc(z, p, old, n);
        assert_non_null(moved);
        for (size_t i = 0; i < old; i += 1 + old / 100) assert_int_equal(moved[i], 'r');
        memset(moved, 'r', n);
        if (n % 3 == 0) take(z, 10);
        p = moved;
        old = n;
    }
    char *small = huddle_zone_realloc(z, p, old, 10);
    assert_ptr_equal(small, p);
    close_zone(z);
}

static void the_growing_object_is_whole(void **state) {
    (void)state;
    huddle_zone_t *z = open_zone(NULL);
    size_t n;
    IS_ERROR(huddle_zone_buf_append(z, "a", 1), EINVAL);
    FAILS(huddle_zone_buf_finish(z, &n), EINVAL);
    IS_ERROR(huddle_zone_buf_abandon(z), EINVAL);
    assert_int_equal(huddle_zone_buf_begin(z), 0);
    IS_ERROR(huddle_zone_buf_begin(z), EINVAL);
    char *empty = huddle_zone_buf_finish(z, &n);
    assert_true(n == 0 && empty[0] == '\0');
    assert_int_equal(huddle_zone_buf_begin(z), 0);
    for (int i = 0; i < 100000; i++) {
        assert_int_equal(huddle_zone_buf_append(z, "0123456789", (size_t)(i % 11)), 0);
        if (i % 100 == 0) take(z, 20);
    }
    assert_int_equal(huddle_zone_buf_append(z, NULL, 0), 0);
    FAILS(huddle_zone_buf_grow(z, SIZE_MAX - 3), ENOMEM);
    char *text = huddle_zone_buf_finish(z, &n);
    size_t at = 0;
    for (int i = 0; i < 100000; i++) {
        assert_memory_equal(text + at, "0123456789", (size_t)(i % 11));
        at += (size_t)(i % 11);
    }
    assert_true(at == n && text[n] == '\0');
    size_t used = stats_of(z).used_bytes;
    assert_int_equal(huddle_zone_buf_begin(z), 0);
    assert_non_null(huddle_zone_buf_grow(z, 1000));
    assert_int_equal(huddle_zone_buf_abandon(z), 0);
    assert_int_equal(stats_of(z).used_bytes, used);
    assert_int_equal(huddle_zone_buf_begin(z), 0);
    assert_int_equal(huddle_zone_buf_appendf(z, "%d %s", 42, "x"), 0);
    assert_int_equal(huddle_zone_buf_appendf(z, "%01000d", 7), 0);
    text = huddle_zone_buf_finish(z, &n);
    assert_true(n == 1004 && strncmp(text, "42 x000", 7) == 0 && text[1003] == '7');
    close_zone(z);
}

/* ---- text ---- */

static void text_is_copied(void **state) {
    (void)state;
    huddle_zone_t *z = open_zone(NULL);
    char *p = huddle_zone_strdup(z, "first"), *q = huddle_zone_strdup(z, "");
    assert_ptr_equal(q, p + 6);
    assert_string_equal(p, "first");
    assert_string_equal(q, "");
    assert_string_equal(huddle_zone_strndup(z, "second", 3), "sec");
    assert_string_equal(huddle_zone_strndup(z, "second", 30), "second");
    assert_string_equal(huddle_zone_strndup(z, "second", 0), "");
    assert_string_equal(huddle_zone_strcat(z, "a", "", "bc", "def", (char *)NULL), "abcdef");
    assert_string_equal(huddle_zone_strcat(z, (char *)NULL), "");
    assert_string_equal(huddle_zone_printf(z, "%s-%d", "n", 5), "n-5");
    char *wide = huddle_zone_printf(z, "%0500d", 1);
    assert_true(strlen(wide) == 500 && wide[499] == '1');
    int data[3] = {1, 2, 3}, *copy = huddle_zone_memdup(z, data, sizeof data);
    assert_memory_equal(copy, data, sizeof data);
    assert_int_equal((uintptr_t)copy % 16, 0);
    assert_non_null(huddle_zone_memdup(z, NULL, 0));
    close_zone(z);
}

static void calls_that_succeed_leave_errno_alone(void **state) {
    (void)state;
    huddle_zone_t *z = open_zone(NULL);
    errno = 77;
    for (size_t i = 0; i < 300; i++) huddle_zone_realloc(z, huddle_zone_alloc(z, i * 100), i * 100, i * 110);
    huddle_zone_strdup(z, "x");
    huddle_zone_rewind(z, huddle_zone_mark(z));
    huddle_zone_reset(z);
    assert_int_equal(errno, 77);
    close_zone(z);
}

int main(void) {
    allocator_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_of_zero_are_distinct),
        cmocka_unit_test(sizes_too_large_have_no_memory),
        cmocka_unit_test(alignments_are_by_address),
        cmocka_unit_test(blocks_do_not_overlap),
        cmocka_unit_test(zeroed_memory_is_zero),
        cmocka_unit_test(small_zeroed_sizes_of_a_constant_are_zero),
        cmocka_unit_test(packed_blocks_lie_side_by_side),
        cmocka_unit_test(at_least_says_what_may_be_used),
        cmocka_unit_test(the_last_block_grows_and_shrinks_in_place),
        cmocka_unit_test(packed_blocks_grow_and_shrink_in_place),
        cmocka_unit_test(pop_takes_the_last_block_back),
        cmocka_unit_test(realloc_keeps_what_is_there),
        cmocka_unit_test(the_growing_object_is_whole),
        cmocka_unit_test(text_is_copied),
        cmocka_unit_test(calls_that_succeed_leave_errno_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
