/* Size 0 and NULL: as glibc's manual and C leave it to the implementation, and as programs on Linux rely on. */
#include "abi.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>

enum { ENTRIES = 11, EACH = 64 };

/* A block of no bytes from each entry point in turn. */
static void *empty_block(int entry) {
    void *p = NULL;
    size_t zero = opaque_size(0);
    switch (entry) {
    case 0: return malloc(zero);
    case 1: return calloc(zero, 0);
    case 2: return calloc(zero, 8);
    case 3: return calloc(8, zero);
    case 4: return realloc(NULL, zero);
    case 5: return reallocarray(NULL, zero, 8);
    case 6: return aligned_alloc(64, zero);
    case 7: return memalign(4096, zero);
    case 8: return posix_memalign(&p, 128, zero) == 0 ? p : NULL;
    case 9: return valloc(zero);
    default: return pvalloc(zero);
    }
}

static void blocks_of_no_bytes_are_unique_and_not_NULL(void **state) {
    (void)state;
    static void *blocks[ENTRIES * EACH];
    for (int i = 0; i < ENTRIES * EACH; i++) {
        blocks[i] = empty_block(i % ENTRIES);
        assert_non_null(blocks[i]);
        assert_true(is_aligned(blocks[i], 16));
        for (int k = 0; k < i; k++) assert_ptr_not_equal(blocks[i], blocks[k]);
    }
    for (int i = 0; i < ENTRIES * EACH; i++) free(blocks[i]);
}

static void a_block_of_no_bytes_grows_by_realloc(void **state) {
    (void)state;
    for (int entry = 0; entry < ENTRIES; entry++) {
        char *p = realloc(empty_block(entry), 1000);
        assert_non_null(p);
        fill(p, 1000, 1);
        assert_true(is_filled(p, 1000, 1));
        free(p);
    }
}

/* Also read off the statistics: a block that was not freed would still be counted. */
static void realloc_to_no_bytes_frees_and_returns_NULL(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 48, 1000, 32768, 100000, MIB, 20 * MIB};
    for (size_t s = 0; s < COUNT(sizes); s++) {
        for (int i = 0; i < 20; i++) {
            void *p = malloc(sizes[s]);
            assert_non_null(p);
            errno = 77;
            assert_null(opaque(realloc(p, opaque_size(0))));
            assert_int_equal(errno, 77);
            assert_non_null(p = malloc(sizes[s]));
            assert_null(opaque(reallocarray(p, opaque_size(0), 8)));
            assert_non_null(p = malloc(sizes[s]));
            assert_null(opaque(reallocarray(p, 8, opaque_size(0))));
        }
    }
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < 10000; i++) assert_null(opaque(realloc(malloc(700), opaque_size(0))));
    assert_true(mallinfo2().uordblks < before + 100000);
}

static void realloc_of_NULL_is_malloc(void **state) {
    (void)state;
    for (size_t n = 1; n < 10 * MIB; n = n * 3 / 2 + 1) {
        char *p = realloc(NULL, n), *q = reallocarray(NULL, n, 1), *r = reallocarray(NULL, 1, n);
        assert_non_null(p);
        assert_non_null(q);
        assert_non_null(r);
        fill(p, n, 1);
        fill(q, n, 2);
        fill(r, n, 3);
        assert_true(is_filled(p, n, 1) && is_filled(q, n, 2) && is_filled(r, n, 3));
        free(p);
        free(q);
        free(r);
    }
}

static void freeing_NULL_does_nothing(void **state) {
    (void)state;
    __typeof__(cfree) *by_cfree = FIND(cfree);
    __typeof__(free_sized) *by_size = FIND(free_sized);
    __typeof__(free_aligned_sized) *by_alignment = FIND(free_aligned_sized);
    void *null = opaque(NULL);
    for (int i = 0; i < 100; i++) {
        errno = 77;
        free(null);
        if (by_cfree != NULL) by_cfree(null);
        if (by_size != NULL) by_size(null, 0), by_size(null, 48);
        if (by_alignment != NULL) by_alignment(null, 64, 0), by_alignment(null, 64, 64);
        assert_int_equal(errno, 77);
    }
}

static void NULL_has_no_usable_bytes(void **state) {
    (void)state;
    assert_int_equal(malloc_usable_size(opaque(NULL)), 0);
}

/* Wholly writable also when nothing was asked for. */
static void usable_bytes_of_an_empty_block_are_the_programs(void **state) {
    (void)state;
    void *blocks[ENTRIES];
    for (int i = 0; i < ENTRIES; i++) {
        assert_non_null(blocks[i] = empty_block(i));
        fill(blocks[i], malloc_usable_size(blocks[i]), (unsigned)i);
    }
    for (int i = 0; i < ENTRIES; i++) assert_true(is_filled(blocks[i], malloc_usable_size(blocks[i]), (unsigned)i));
    for (int i = 0; i < ENTRIES; i++) free(blocks[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        RUNS_ON_HUDDLE,
        cmocka_unit_test(blocks_of_no_bytes_are_unique_and_not_NULL),
        cmocka_unit_test(a_block_of_no_bytes_grows_by_realloc),
        cmocka_unit_test(realloc_to_no_bytes_frees_and_returns_NULL),
        cmocka_unit_test(realloc_of_NULL_is_malloc),
        cmocka_unit_test(freeing_NULL_does_nothing),
        cmocka_unit_test(NULL_has_no_usable_bytes),
        cmocka_unit_test(usable_bytes_of_an_empty_block_are_the_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
