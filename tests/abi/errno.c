/* Requests that cannot be met say NULL and ENOMEM, and freeing leaves errno alone. */
#include "abi.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>

static const size_t impossible[] = {
    PTRDIFF_MAX,           (size_t)PTRDIFF_MAX + 1, (size_t)PTRDIFF_MAX + 2, SIZE_MAX,
    SIZE_MAX - 1,          SIZE_MAX - 15,           SIZE_MAX - 16,           SIZE_MAX - 4095,
    SIZE_MAX - 4096,       SIZE_MAX - 4097,         SIZE_MAX - 65535,        SIZE_MAX - 65536,
    SIZE_MAX - 65537,      SIZE_MAX - (4 * MIB),    (size_t)1 << 56,         ((size_t)1 << 56) - 1,
    ((size_t)1 << 56) + 1, (size_t)1 << 48,         (size_t)1 << 47,         ((size_t)1 << 62) + 4096,
};

/* Pairs whose product wraps, some of them to small numbers, and some that only do not fit. */
static const size_t products[][2] = {
    {SIZE_MAX, 2},
    {2, SIZE_MAX},
    {SIZE_MAX, SIZE_MAX},
    {(size_t)1 << 32, (size_t)1 << 32},
    {((size_t)1 << 32) + 1, (size_t)1 << 32},
    {(size_t)1 << 63, 2},
    {(size_t)1 << 33, (size_t)1 << 31},
    {SIZE_MAX / 3 + 1, 3},
    {16, SIZE_MAX / 16 + 1},
    {24, SIZE_MAX / 24 + 2},
    {SIZE_MAX / 2, 3},
    {PTRDIFF_MAX, 1},
    {1, (size_t)PTRDIFF_MAX + 1},
    {(size_t)1 << 28, (size_t)1 << 28},
};

#define FAILS(call)                         \
    do {                                    \
        errno = 0;                          \
        assert_null(opaque((void *)(call))); \
        assert_int_equal(errno, ENOMEM);    \
    } while (0)

static void impossible_sizes_are_NULL_and_ENOMEM(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(impossible); i++) {
        size_t n = opaque_size(impossible[i]);
        FAILS(malloc(n));
        FAILS(calloc(n, 1));
        FAILS(calloc(1, n));
        FAILS(realloc(NULL, n));
        FAILS(reallocarray(NULL, n, 1));
        FAILS(reallocarray(NULL, 1, n));
        FAILS(valloc(n));
        FAILS(pvalloc(n));
        for (size_t alignment = 8; alignment <= MIB; alignment *= 2) {
            FAILS(aligned_alloc(alignment, n));
            FAILS(memalign(alignment, n));
        }
    }
}

static void products_that_wrap_are_NULL_and_ENOMEM(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(products); i++) {
        size_t a = opaque_size(products[i][0]), b = opaque_size(products[i][1]);
        FAILS(calloc(a, b));
        FAILS(reallocarray(NULL, a, b));
    }
}

static void impossible_alignments_are_NULL(void **state) {
    (void)state;
    for (unsigned shift = 48; shift < 64; shift++) {
        FAILS(memalign(opaque_size((size_t)1 << shift), 1));
        FAILS(aligned_alloc(opaque_size((size_t)1 << shift), opaque_size((size_t)1 << shift)));
    }
    errno = 0;
    assert_null(opaque(memalign(opaque_size(SIZE_MAX), 1))); /* no power of two is as large */
    assert_int_not_equal(errno, 0);
    errno = 0;
    assert_null(opaque(memalign(opaque_size(((size_t)1 << 63) + 1), 1)));
    assert_int_not_equal(errno, 0);
}

static void posix_memalign_returns_ENOMEM_and_touches_neither_errno_nor_the_result(void **state) {
    (void)state;
    int here;
    for (size_t i = 0; i < COUNT(impossible); i++) {
        for (size_t alignment = 8; alignment <= MIB; alignment *= 2) {
            void *result = &here;
            errno = 77;
            assert_int_equal(posix_memalign(&result, alignment, opaque_size(impossible[i])), ENOMEM);
            if (is_on_huddle()) assert_int_equal(errno, 77);
            assert_ptr_equal(result, &here);
        }
    }
    for (unsigned shift = 48; shift < 64; shift++) {
        void *result = &here;
        errno = 77;
        assert_int_equal(posix_memalign(&result, opaque_size((size_t)1 << shift), 1), ENOMEM);
        if (is_on_huddle()) assert_int_equal(errno, 77);
        assert_ptr_equal(result, &here);
    }
}

static void failed_realloc_leaves_the_block(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 48, 1000, 32768, 32769, 300000, 5 * MIB};
    for (size_t s = 0; s < COUNT(sizes); s++) {
        char *block = malloc(sizes[s]);
        assert_non_null(block);
        fill(block, sizes[s], 3);
        size_t usable = malloc_usable_size(block);
        for (size_t i = 0; i < COUNT(impossible); i++) {
            FAILS(realloc(opaque(block), opaque_size(impossible[i])));
            FAILS(reallocarray(opaque(block), opaque_size(impossible[i]), 1));
        }
        for (size_t i = 0; i < COUNT(products); i++)
            FAILS(reallocarray(opaque(block), opaque_size(products[i][0]), opaque_size(products[i][1])));
        assert_int_equal(malloc_usable_size(block), usable);
        assert_true(is_filled(block, sizes[s], 3));
        free(block);
    }
}

/* After failures the allocator still serves: none of them may have left something locked or half made. */
static void requests_after_failures_succeed(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(impossible); i++) {
        FAILS(malloc(opaque_size(impossible[i])));
        void *small = malloc(100), *large = malloc(3 * MIB);
        assert_non_null(small);
        assert_non_null(large);
        free(small);
        free(large);
    }
}

typedef void freeing(void *block, size_t size);

static void by_free(void *block, size_t size) {
    (void)size;
    free(block);
}

static void by_cfree(void *block, size_t size) {
    __typeof__(cfree) *f = FIND(cfree);
    (void)size;
    f != NULL ? f(block) : free(block);
}

static void by_free_sized(void *block, size_t size) {
    __typeof__(free_sized) *f = FIND(free_sized);
    f != NULL ? f(block, size) : free(block);
}

static void by_realloc(void *block, size_t size) {
    (void)size;
    assert_null(opaque(realloc(block, opaque_size(0))));
}

static void by_reallocarray(void *block, size_t size) {
    assert_null(opaque(reallocarray(block, opaque_size(0), size)));
}

static void freeing_keeps_errno(void **state) {
    (void)state;
    static freeing *const entries[] = {by_free, by_cfree, by_free_sized, by_realloc, by_reallocarray};
    static const size_t sizes[] = {1, 16, 100, 5000, 32768, 40000, 200000, 2 * MIB, 9 * MIB};
    enum { BLOCKS = 40 };
    for (size_t e = 0; e < COUNT(entries); e++) {
        for (size_t s = 0; s < COUNT(sizes); s++) {
            void *blocks[BLOCKS];
            for (int i = 0; i < BLOCKS; i++) assert_non_null(blocks[i] = malloc(sizes[s]));
            for (int i = 0; i < BLOCKS; i++) {
                errno = 77 + i;
                entries[e](blocks[i], sizes[s]);
                assert_int_equal(errno, 77 + i);
            }
        }
    }
}

/* Many enough that magazines overflow, runs end and memory goes back to the system. */
static void freeing_keeps_errno_when_much_is_freed(void **state) {
    (void)state;
    enum { BLOCKS = 100000 };
    void **blocks = malloc(BLOCKS * sizeof *blocks);
    assert_non_null(blocks);
    for (size_t i = 0; i < BLOCKS; i++) assert_non_null(blocks[i] = malloc(i % 700));
    bool kept = true;
    for (size_t i = 0; i < BLOCKS; i++) {
        errno = 78;
        free(blocks[i]);
        kept = kept && errno == 78;
    }
    assert_true(kept);
    free(blocks);
    errno = 79;
    free(NULL);
    assert_int_equal(errno, 79);
}

static void free_aligned_sized_keeps_errno(void **state) {
    (void)state;
    __typeof__(free_aligned_sized) *f = FIND(free_aligned_sized);
    if (f == NULL) skip();
    for (size_t alignment = 8; alignment <= 4 * MIB; alignment *= 2) {
        void *block = aligned_alloc(alignment, alignment * 2);
        assert_non_null(block);
        errno = 77;
        f(block, alignment, alignment * 2);
        assert_int_equal(errno, 77);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        RUNS_ON_HUDDLE,
        cmocka_unit_test(impossible_sizes_are_NULL_and_ENOMEM),
        cmocka_unit_test(products_that_wrap_are_NULL_and_ENOMEM),
        cmocka_unit_test(impossible_alignments_are_NULL),
        cmocka_unit_test(posix_memalign_returns_ENOMEM_and_touches_neither_errno_nor_the_result),
        cmocka_unit_test(failed_realloc_leaves_the_block),
        cmocka_unit_test(requests_after_failures_succeed),
        cmocka_unit_test(freeing_keeps_errno),
        cmocka_unit_test(freeing_keeps_errno_when_much_is_freed),
        cmocka_unit_test(free_aligned_sized_keeps_errno),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
