/* large.c - blocks above the cells: spans and mappings of their own. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/options.h"
#include "base/size_class.h"
#include "inside.h"
#include "span/large.h"
#include "span/purge.h"
#include "span/span.h"

static uint64_t seed;

/* A word in every page says where it is. */
static void mark(char *p, size_t n) {
    for (size_t i = 0; i + sizeof i <= n; i += 4096) *(size_t *)(void *)(p + i) = i + 1;
}

static void assert_marked(const char *p, size_t n) {
    for (size_t i = 0; i + sizeof i <= n; i += 4096) assert_int_equal(*(const size_t *)(const void *)(p + i), i + 1);
}

static char *new_block(size_t n, size_t alignment) {
    bool is_zero;
    char *p = large_alloc(n, alignment, &is_zero);
    assert_non_null(p);
    assert_int_equal((uintptr_t)p % max_size(alignment, UNIT_BYTES), 0);
    assert_int_equal(large_usable(p), large_good_size(n));
    assert_int_equal(page_map_find(p)->owner, OWNER_LARGE);
    if (is_zero) assert_true(is_all_zero(p, large_good_size(n)));
    return p;
}

static void large_blocks_of_every_kind_of_size(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 4096, CELL_MAX + 1, UNIT_BYTES - 1, UNIT_BYTES, UNIT_BYTES + 1, 1000000,
                                   DIRECT_MIN - 1, DIRECT_MIN, DIRECT_MIN + 1, 40 << 20};
    enum { COUNT = sizeof sizes / sizeof sizes[0] };
    char *blocks[COUNT];
    struct large_totals before = large_count();
    size_t bytes = 0;
    for (size_t i = 0; i < COUNT; i++) {
        blocks[i] = new_block(sizes[i], 1);
        assert_true(large_good_size(sizes[i]) - sizes[i] < os_page_bytes);
        bytes += large_good_size(sizes[i]);
        mark(blocks[i], sizes[i]);
    }
    assert_int_equal(large_count().blocks, before.blocks + COUNT);
    assert_int_equal(large_count().bytes, before.bytes + bytes);
    for (size_t i = 0; i < COUNT; i++) {
        assert_marked(blocks[i], sizes[i]);
        large_free(blocks[i]);
        assert_int_equal(page_map_find(blocks[i])->owner, OWNER_WAS_LARGE);
    }
    assert_int_equal(large_count().blocks, before.blocks);
}

static void large_blocks_that_cannot_be(void **state) {
    (void)state;
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 4095, SIZE_MAX - 4096, (size_t)PTRDIFF_MAX + 1, PTRDIFF_MAX,
                                   (size_t)1 << 62, (size_t)1 << 48};
    bool is_zero;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_null(large_alloc(sizes[i], 1, &is_zero));
        assert_null(large_alloc(sizes[i], GIB, &is_zero));
        assert_null(large_alloc_growing(sizes[i]));
    }
    assert_null(large_alloc(100, (size_t)1 << 62, &is_zero));
    char *p = new_block(100000, 1);
    assert_null(large_resize(p, SIZE_MAX));
    assert_null(large_resize(p, (size_t)1 << 62));
    assert_int_equal(large_usable(p), large_good_size(100000));
    large_free(p);
}

static void large_alignment_up_to_1_gib(void **state) {
    (void)state;
    for (size_t alignment = 16; alignment <= GIB; alignment *= 2) {
        size_t mapped = os_memory_counters().mapped_bytes;
        char *small = new_block(1, alignment), *large = new_block(9 * MIB, alignment);
        mark(small, 1);
        mark(large, 9 * MIB);
        if (alignment > DIRECT_MIN) assert_true(os_memory_counters().mapped_bytes - mapped < 11 * MIB);
        large_free(small);
        large_free(large);
        purge_all(0);
    }
}

static void large_find_names_the_block_of_any_address(void **state) {
    (void)state;
    struct large found;
    char *span = new_block(100000, 1), *direct = new_block(9 * MIB, 1);
    assert_true(large_find(span, &found) && found.base == span && found.bytes == large_good_size(100000));
    assert_true(large_find(span + 99999, &found) && found.base == span);
    assert_false(large_find(span + large_good_size(100000), &found) && found.base == span);
    assert_true(large_find(direct, &found) && found.base == direct);
    assert_true(large_find(direct + 9 * MIB - 1, &found) && found.base == direct);
    assert_int_equal(large_usable(span + 65536), 0);
    large_free(span);
    large_free(direct);
    assert_false(large_find(span, &found));
    assert_false(large_find(direct, &found));
}

static void large_resize_keeps_contents(void **state) {
    (void)state;
    uint64_t random = seed;
    size_t in_place = 0, moved = 0;
    for (int start = 0; start < 12; start++) {
        size_t n = start % 2 == 0 ? 40000 + random_below(&random, 4 * MIB) : 9 * MIB + random_below(&random, 8 * MIB);
        char *p = start % 3 == 0 ? large_alloc_growing(n) : new_block(n, 1);
        assert_non_null(p);
        mark(p, n);
        for (int step = 0; step < 20; step++) {
            size_t to =
                CELL_MAX + 1 +
                (random_below(&random, 3) == 0 ? random_below(&random, 30 * MIB) : n / 2 + random_below(&random, n));
            char *q = large_resize(p, to);
            if (q == NULL) {
                assert_marked(p, n);
                continue;
            }
            assert_marked(q, min_size(n, to));
            assert_true(large_usable(q) >= to && large_usable(q) - to < os_page_bytes);
            in_place += q == p;
            moved += q != p;
            p = q;
            n = to;
            mark(p, n);
        }
        large_free(p);
    }
    assert_true(in_place != 0);
    assert_int_equal(large_count().blocks, 0);
    (void)moved;
}

static void large_direct_block_moves_its_pages_when_it_is_hemmed_in(void **state) {
    (void)state;
    char *p = new_block(9 * MIB, 1);
    mark(p, 9 * MIB);
    /* Wherever the system would have made the mapping longer, there is one already. */
    bool is_hemmed_in = os_map(p + 9 * MIB, os_page_bytes) == p + 9 * MIB;
    char *q = large_resize(p, 64 * MIB);
    assert_non_null(q);
    if (is_hemmed_in) {
        assert_ptr_not_equal(q, p);
        assert_int_equal(page_map_find(p)->owner, OWNER_WAS_LARGE);
    }
    assert_marked(q, 9 * MIB);
    assert_int_equal(large_usable(q), 64 * MIB);
    large_free(q);
}

static void large_growing_block_has_room(void **state) {
    (void)state;
    char *p = large_alloc_growing(1 * MIB);
    assert_non_null(p);
    mark(p, 1 * MIB);
    assert_ptr_equal(large_resize(p, 1 * MIB + 200 * KIB), p);
    assert_marked(p, 1 * MIB);
    large_free(p);
}

static void large_freed_mapping_is_kept_for_the_next(void **state) {
    (void)state;
    options.purge_ms = UINT32_MAX;
    purge_all(0);
    char *p = new_block(20 * MIB, 1);
    mark(p, 20 * MIB);
    large_free(p);
    assert_true(large_kept_bytes() >= 20 * MIB);
    assert_int_equal(large_count().kept_bytes, large_kept_bytes());
    size_t calls = os_memory_counters().calls;
    char *q = new_block(19 * MIB, 1);
    assert_ptr_equal(q, p);
    assert_int_equal(os_memory_counters().calls, calls);
    assert_int_equal(large_kept_bytes(), 0);
    large_free(q);
    /* Kept through one tick, given back with the second. */
    assert_int_equal(large_release_cached(true), 0);
    assert_true(large_release_cached(true) >= 19 * MIB);
    assert_int_equal(large_kept_bytes(), 0);
    options.purge_ms = 1000;
}

static void large_growing_block_takes_a_kept_mapping_and_leaves_its_own(void **state) {
    (void)state;
    options.purge_ms = UINT32_MAX;
    purge_all(0);
    char *p = new_block(30 * MIB, 1), *q = new_block(9 * MIB, 1), *r = new_block(12 * MIB, 1);
    mark(q, 9 * MIB);
    large_free(p);
    large_free(r); /* too small for that */
    assert_true(large_release_cached(true) == 0);
    size_t calls = os_memory_counters().calls;
    assert_ptr_equal(large_resize(q, 10 * MIB), p);
    assert_marked(p, 9 * MIB);
    assert_int_equal(large_usable(p), 10 * MIB);
    assert_int_equal(page_map_find(q)->owner, OWNER_WAS_LARGE);
    assert_in_range(large_kept_bytes(), 21 * MIB, 22 * MIB);
    assert_ptr_equal(large_resize(p, 25 * MIB), p);
    assert_marked(p, 9 * MIB);
    assert_int_equal(os_memory_counters().calls, calls);
    /* Its own is kept since now, not for as long as the one it took was. */
    assert_in_range(large_release_cached(true), 12 * MIB, 13 * MIB);
    assert_in_range(large_release_cached(true), 9 * MIB, 10 * MIB);
    large_free(p);
    options.purge_ms = 1000;
}

/* ---- wrong frees ---- */

static void free_twice(void *argument) {
    char *p = new_block(*(size_t *)argument, 1);
    large_free(p);
    large_free(p);
}

static void free_inside(void *argument) {
    large_free(new_block(*(size_t *)argument, 1) + UNIT_BYTES);
}

static void large_free_stops_at_wrong_pointers(void **state) {
    (void)state;
    size_t sizes[] = {196000, 9 * MIB};
    assert_true(is_stopped(free_twice, &sizes[0], "(a 196608-byte block)"));
    assert_true(is_stopped(free_twice, &sizes[1], "(a 9437184-byte block)"));
    assert_true(is_stopped(free_inside, &sizes[0], "65536 bytes into a 196608-byte block"));
}

int main(void) {
    inside_start();
    seed = random_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_blocks_of_every_kind_of_size),
        cmocka_unit_test(large_blocks_that_cannot_be),
        cmocka_unit_test(large_alignment_up_to_1_gib),
        cmocka_unit_test(large_find_names_the_block_of_any_address),
        cmocka_unit_test(large_resize_keeps_contents),
        cmocka_unit_test(large_direct_block_moves_its_pages_when_it_is_hemmed_in),
        cmocka_unit_test(large_growing_block_has_room),
        cmocka_unit_test(large_freed_mapping_is_kept_for_the_next),
        cmocka_unit_test(large_growing_block_takes_a_kept_mapping_and_leaves_its_own),
        cmocka_unit_test(large_free_stops_at_wrong_pointers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
