/* How large blocks really are: bounds on what a size costs, and that all of it is the program's. */
#include "abi.h"

#include <malloc.h>
#include <string.h>

#include "huddle/huddle.h"

enum { CELL_MAX = 32768 };
static size_t page;

static bool wastes_too_much(size_t n, size_t usable) {
    if (usable < n) return true;
    if (n <= 128) return usable - n > (n == 0 ? 16 : 15); /* steps of 16 bytes */
    if (n > CELL_MAX) return usable - n >= page;          /* whole pages; 12.5 % at most where they have 4 KiB */
    return (usable - n) * 8 > n;                          /* 12.5 % */
}

static void no_size_to_a_megabyte_wastes_more_than_an_eighth(void **state) {
    (void)state;
    if (!is_on_huddle()) skip();
    for (size_t n = 0; n <= MIB; n++) {
        void *p = malloc(n);
        size_t usable = malloc_usable_size(p);
        free(p);
        if (p == NULL || wastes_too_much(n, usable)) fail_msg("malloc(%zu) has %zu usable bytes", n, usable);
    }
}

static void larger_sizes_waste_no_more_than_an_eighth(void **state) {
    (void)state;
    if (!is_on_huddle()) skip();
    for (size_t n = MIB; n < (size_t)3 << 30; n += n / 37 + 4097) {
        void *p = malloc(n);
        if (p == NULL || wastes_too_much(n, malloc_usable_size(p)))
            fail_msg("malloc(%zu) has %zu usable bytes", n, malloc_usable_size(p));
        free(p);
    }
}

static void calloc_and_realloc_give_blocks_as_large_as_malloc(void **state) {
    (void)state;
    for (size_t n = 0; n < 200000; n += n / 64 + 1) {
        void *a = malloc(n), *b = calloc(1, n), *c = realloc(NULL, n);
        if (is_on_huddle()) {
            assert_int_equal(malloc_usable_size(b), malloc_usable_size(a));
            assert_int_equal(malloc_usable_size(c), malloc_usable_size(a));
        }
        free(a);
        free(b);
        free(c);
    }
}

static void good_size_is_the_usable_size(void **state) {
    (void)state;
    __typeof__(huddle_good_size) *good_size = FIND(huddle_good_size);
    __typeof__(huddle_usable_size) *usable_size = FIND(huddle_usable_size);
    if (good_size == NULL) skip();
    for (size_t n = 0; n < 20 * MIB; n += n / 200 + 1) {
        void *p = malloc(n);
        size_t usable = malloc_usable_size(p), good = good_size(n);
        if (usable != good || usable_size(p) != good || good_size(good) != good)
            fail_msg("malloc(%zu) has %zu usable bytes, huddle_good_size says %zu", n, usable, good);
        free(p);
    }
    assert_int_equal(good_size((size_t)PTRDIFF_MAX + 1), 0);
    assert_int_equal(good_size(SIZE_MAX), 0);
}

/* Usable sizes in rising order, from 16 bytes to beyond the largest class: what class boundaries are, as seen from
 * outside. */
static size_t boundaries(size_t *at, size_t room) {
    size_t count = 0;
    for (size_t n = 1; n <= 200000 && count < room;) {
        void *p = malloc(n);
        assert_non_null(p);
        at[count] = malloc_usable_size(p);
        free(p);
        n = at[count++] + 1;
    }
    return count;
}

enum { ROOM = 15000 };
static size_t edges[ROOM];

static void realloc_over_every_class_boundary_keeps_the_content(void **state) {
    (void)state;
    size_t count = boundaries(edges, ROOM);
    for (size_t i = 0; i < count; i += 1 + count / 300) {
        size_t edge = edges[i];
        const size_t steps[] = {edge - 1, edge, edge + 1, edge, edge - 1, edge / 2 + 1, edge, edge * 2, edge + 1, edge};
        unsigned char *p = malloc(edge - 1);
        fill(p, edge - 1, 5);
        for (size_t s = 1; s < COUNT(steps); s++) {
            size_t kept = steps[s] < steps[s - 1] ? steps[s] : steps[s - 1];
            assert_non_null(p = realloc(p, steps[s]));
            assert_true(malloc_usable_size(p) >= steps[s]);
            assert_true(is_filled(p, kept, 5));
            fill(p, steps[s], 5);
        }
        free(p);
    }
}

static void realloc_climbs_and_descends_through_all_classes(void **state) {
    (void)state;
    size_t count = boundaries(edges, ROOM);
    unsigned char *p = NULL;
    size_t step = 1 + count / 500, last = 0;
    for (size_t i = 0; i < count; i += step) {
        assert_non_null(p = realloc(p, edges[i]));
        assert_true(is_filled(p, last, 9));
        fill(p, edges[i], 9);
        last = edges[i];
    }
    for (size_t n = last; n <= 24 * MIB; n = n * 3 / 2) {
        assert_non_null(p = realloc(p, n));
        assert_true(is_filled(p, last, 9));
        fill(p, n, 9);
        last = n;
    }
    for (size_t n = last; n > 1; n = n * 2 / 3) {
        assert_non_null(p = realloc(p, n));
        assert_true(is_filled(p, n, 9));
    }
    free(p);
}

struct held {
    unsigned char *block;
    size_t usable;
};

/* Two blocks of each kind stand side by side, wholly written, while the rest comes and goes. */
static void usable_bytes_are_constant_and_wholly_the_programs(void **state) {
    (void)state;
    enum { BLOCKS = 1200 };
    static struct held held[BLOCKS];
    __typeof__(huddle_usable_size) *usable_size = FIND(huddle_usable_size);
    size_t n = 1;
    for (unsigned i = 0; i < BLOCKS; i++) {
        held[i].block = malloc(n);
        assert_non_null(held[i].block);
        held[i].usable = malloc_usable_size(held[i].block);
        fill(held[i].block, held[i].usable, i);
        if (i % 2 == 1) n = n > 4 * MIB ? 1 : n + n / 32 + 1;
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        free(malloc(i * 16));
        assert_int_equal(malloc_usable_size(held[i].block), held[i].usable);
        if (usable_size != NULL) assert_int_equal(usable_size(held[i].block), held[i].usable);
        assert_true(is_filled(held[i].block, held[i].usable, i));
    }
    for (unsigned i = 0; i < BLOCKS; i++) free(held[i].block);
}

static void shrinking_in_place_keeps_the_bytes_that_remain_usable(void **state) {
    (void)state;
    for (size_t n = 64; n <= 16 * MIB; n *= 2) {
        unsigned char *p = malloc(n);
        assert_non_null(p);
        fill(p, n, 4);
        for (size_t m = n - 1; m > n / 2; m -= n / 16) {
            assert_non_null(p = realloc(p, m));
            assert_true(malloc_usable_size(p) >= m);
            assert_true(is_filled(p, m, 4));
            fill(p, malloc_usable_size(p), 4);
        }
        free(p);
    }
}

int main(void) {
    page = page_bytes();
    const struct CMUnitTest tests[] = {
        RUNS_ON_HUDDLE,
        cmocka_unit_test(no_size_to_a_megabyte_wastes_more_than_an_eighth),
        cmocka_unit_test(larger_sizes_waste_no_more_than_an_eighth),
        cmocka_unit_test(calloc_and_realloc_give_blocks_as_large_as_malloc),
        cmocka_unit_test(good_size_is_the_usable_size),
        cmocka_unit_test(realloc_over_every_class_boundary_keeps_the_content),
        cmocka_unit_test(realloc_climbs_and_descends_through_all_classes),
        cmocka_unit_test(usable_bytes_are_constant_and_wholly_the_programs),
        cmocka_unit_test(shrinking_in_place_keeps_the_bytes_that_remain_usable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
