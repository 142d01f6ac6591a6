/* calloc is zero whatever was in the memory before. */
#include "abi.h"

#include <malloc.h>
#include <string.h>

static const size_t sizes[] = {
    1,     8,     16,    17,    32,     48,     100,    128,    129,     256,     700,     1024,
    4096,  5000,  16384, 32767, 32768,  32769,  36864,  40000,  65536,   65537,   100000,  131072,
    262144, 500000, MIB, 2 * MIB, 3 * MIB + 5, 4 * MIB, 6 * MIB, 9 * MIB, 16 * MIB,
};

static void *dirty(size_t n) {
    unsigned char *p = malloc(n);
    assert_non_null(p);
    memset(p, 0xff, malloc_usable_size(p));
    return p;
}

static void calloc_of_a_block_just_freed_is_zero(void **state) {
    (void)state;
    for (size_t s = 0; s < COUNT(sizes); s++) {
        for (int round = 0; round < 4; round++) {
            free(dirty(sizes[s]));
            void *p = calloc(1, sizes[s]);
            assert_non_null(p);
            assert_true(is_zero(p, sizes[s]));
            memset(p, 0xff, malloc_usable_size(p));
            free(p);
            assert_non_null(p = calloc(sizes[s], 1));
            assert_true(is_zero(p, sizes[s]));
            free(p);
        }
    }
}

static void calloc_after_many_dirty_blocks_is_zero(void **state) {
    (void)state;
    for (size_t s = 0; s < COUNT(sizes); s++) {
        void *blocks[64];
        size_t count = sizes[s] > MIB ? 3 : 64;
        for (size_t i = 0; i < count; i++) blocks[i] = dirty(sizes[s]);
        for (size_t i = 0; i < count; i++) free(blocks[i]);
        for (size_t i = 0; i < count; i++) {
            assert_non_null(blocks[i] = calloc(1, sizes[s]));
            assert_true(is_zero(blocks[i], sizes[s]));
            memset(blocks[i], 0xff, malloc_usable_size(blocks[i]));
        }
        for (size_t i = 0; i < count; i++) free(blocks[i]);
    }
}

/* Memory that was one size comes back as another: small from large, large from many small. */
static void calloc_of_memory_that_had_another_size_is_zero(void **state) {
    (void)state;
    enum { SMALL = 20000 };
    static void *blocks[SMALL];
    for (size_t i = 0; i < SMALL; i++) blocks[i] = dirty(i % 900 + 1);
    for (size_t i = 0; i < SMALL; i++) free(blocks[i]);
    for (size_t s = 0; s < COUNT(sizes); s++) {
        void *p = calloc(1, sizes[s]);
        assert_non_null(p);
        assert_true(is_zero(p, sizes[s]));
        memset(p, 0xff, malloc_usable_size(p));
        free(p);
    }
    for (size_t i = 0; i < SMALL; i++) {
        assert_non_null(blocks[i] = calloc(i % 50 + 1, 10));
        assert_true(is_zero(blocks[i], (i % 50 + 1) * 10));
    }
    for (size_t i = 0; i < SMALL; i++) free(blocks[i]);
}

static void calloc_after_memory_was_given_back_is_zero(void **state) {
    (void)state;
    for (size_t s = 0; s < COUNT(sizes); s++) {
        void *a = dirty(sizes[s]), *b = dirty(sizes[s]);
        free(a);
        malloc_trim(0);
        void *p = calloc(1, sizes[s]);
        assert_non_null(p);
        assert_true(is_zero(p, sizes[s]));
        memset(p, 0xff, malloc_usable_size(p));
        free(p);
        free(b);
        malloc_trim(0);
        assert_non_null(p = calloc(1, sizes[s]));
        assert_true(is_zero(p, sizes[s]));
        free(p);
    }
}

/* realloc may grow and shrink in place, over memory that was another block's. */
static void calloc_beside_blocks_that_realloc_moves_is_zero(void **state) {
    (void)state;
    for (size_t s = 0; s + 1 < COUNT(sizes); s++) {
        void *p = dirty(sizes[s + 1]);
        assert_non_null(p = realloc(p, sizes[s]));
        void *q = calloc(1, sizes[s + 1]);
        assert_non_null(q);
        assert_true(is_zero(q, sizes[s + 1]));
        assert_non_null(p = realloc(p, sizes[s + 1] * 2));
        memset(p, 0xff, malloc_usable_size(p));
        free(p);
        void *r = calloc(2, sizes[s + 1]);
        assert_non_null(r);
        assert_true(is_zero(r, sizes[s + 1] * 2));
        free(q);
        free(r);
    }
}

static void calloc_after_dirty_aligned_blocks_is_zero(void **state) {
    (void)state;
    for (size_t a = 16; a <= 2 * MIB; a *= 2) {
        void *p = memalign(a, a + 100);
        assert_non_null(p);
        memset(p, 0xff, malloc_usable_size(p));
        free(p);
        void *q = calloc(1, a + 100);
        assert_non_null(q);
        assert_true(is_zero(q, a + 100));
        free(q);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        RUNS_ON_HUDDLE,
        cmocka_unit_test(calloc_of_a_block_just_freed_is_zero),
        cmocka_unit_test(calloc_after_many_dirty_blocks_is_zero),
        cmocka_unit_test(calloc_of_memory_that_had_another_size_is_zero),
        cmocka_unit_test(calloc_after_memory_was_given_back_is_zero),
        cmocka_unit_test(calloc_beside_blocks_that_realloc_moves_is_zero),
        cmocka_unit_test(calloc_after_dirty_aligned_blocks_is_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
