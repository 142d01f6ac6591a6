/* Every alignment that can be asked for is given, and every one that cannot is refused as the manuals say. */
#include "abi.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>

/* Writes the first and the last byte, which for giant blocks must do. */
static void check_block(char *p, size_t n, size_t alignment) {
    assert_non_null(p);
    assert_true(is_aligned(p, alignment) && is_aligned(p, 16));
    assert_true(malloc_usable_size(p) >= n);
    p[0] = 1;
    p[n - 1] = 2;
    assert_int_equal(p[n - 1], 2);
}

static void every_power_of_two_to_a_gigabyte_is_given(void **state) {
    (void)state;
    for (size_t a = 8; a <= (size_t)1 << 30; a *= 2) {
        const size_t sizes[] = {1, a - 1, a, a + 1, 3 * a};
        for (size_t s = 0; s < COUNT(sizes); s++) {
            void *p = NULL;
            check_block(p = aligned_alloc(a, sizes[s]), sizes[s], a);
            free(p);
            check_block(p = memalign(a, sizes[s]), sizes[s], a);
            free(p);
            errno = 77;
            assert_int_equal(posix_memalign(&p, a, sizes[s]), 0);
            assert_int_equal(errno, 77);
            check_block(p, sizes[s], a);
            free(p);
        }
    }
}

static void aligned_alloc_takes_sizes_that_are_no_multiple(void **state) {
    (void)state;
    static const size_t pairs[][2] = {{1, 1}, {2, 2}, {4, 3}, {64, 1}, {64, 65}, {4096, 1}, {4096, 5000}, {65536, 3}};
    for (size_t i = 0; i < COUNT(pairs); i++) {
        void *p = aligned_alloc(pairs[i][0], pairs[i][1]);
        check_block(p, pairs[i][1], pairs[i][0]);
        free(p);
    }
}

/* glibc before 2.38 rounds up instead. */
static void aligned_alloc_refuses_what_is_no_power_of_two(void **state) {
    (void)state;
    if (!is_on_huddle()) skip();
    static const size_t wrong[] = {0,  3,  5,   6,    7,    9,     12,                      24,
                                   48, 96, 100, 4095, 4097, 65537, ((size_t)1 << 40) + 1, SIZE_MAX};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        errno = 0;
        assert_null(aligned_alloc(opaque_size(wrong[i]), 96));
        assert_int_equal(errno, EINVAL);
    }
}

static void posix_memalign_refuses_all_but_powers_of_two_from_a_pointer_up(void **state) {
    (void)state;
    static const size_t wrong[] = {0,  1,  2,  3,  4,    5,    6,     7,        9,
                                   12, 24, 48, 96, 4095, 4097, 65537, SIZE_MAX, SIZE_MAX - 7};
    static const size_t sizes[] = {0, 1, 96, MIB, SIZE_MAX};
    int here;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        for (size_t s = 0; s < COUNT(sizes); s++) {
            void *result = &here;
            errno = 77;
            assert_int_equal(posix_memalign(&result, opaque_size(wrong[i]), opaque_size(sizes[s])), EINVAL);
            assert_int_equal(errno, 77);
            assert_ptr_equal(result, &here);
        }
    }
}

static void memalign_rounds_up_to_a_power_of_two(void **state) {
    (void)state;
    for (size_t a = 0; a <= 300; a++) {
        size_t power = 16;
        while (power < a) power *= 2;
        void *p = memalign(opaque_size(a), 10);
        check_block(p, 10, power);
        free(p);
    }
    static const size_t odd[] = {4095, 4097, 65535, 65537, 3 * MIB, (size_t)1000 << 20};
    for (size_t i = 0; i < COUNT(odd); i++) {
        size_t power = 16;
        while (power < odd[i]) power *= 2;
        void *p = memalign(odd[i], 100);
        check_block(p, 100, power);
        free(p);
    }
}

static void valloc_and_pvalloc_give_whole_pages(void **state) {
    (void)state;
    size_t page = page_bytes();
    for (size_t n = 0; n < 3 * MIB; n = n * 5 / 4 + 1) {
        char *p = valloc(n), *q = pvalloc(n);
        assert_non_null(p);
        assert_non_null(q);
        assert_true(is_aligned(p, page) && is_aligned(q, page));
        size_t whole = (n + page - 1) / page * page;
        assert_true(malloc_usable_size(q) >= whole);
        fill(p, n, 1);
        fill(q, whole, 2);
        assert_true(is_filled(p, n, 1));
        free(p);
        free(q);
    }
}

static void every_size_is_aligned_to_sixteen(void **state) {
    (void)state;
    bool aligned = true;
    for (size_t n = 1; n <= 70000; n++) {
        void *a = malloc(n), *b = calloc(1, n), *c = realloc(NULL, n);
        aligned = aligned && a && b && c && is_aligned(a, 16) && is_aligned(b, 16) && is_aligned(c, 16);
        void *d = realloc(a, n / 2 + 1), *e = realloc(b, n + n / 2);
        aligned = aligned && d && e && is_aligned(d, 16) && is_aligned(e, 16);
        free(c);
        free(d);
        free(e);
    }
    assert_true(aligned);
}

struct held {
    unsigned char *block;
    size_t usable;
};

/* Many at once, each wholly written: aligned blocks end where the next begins, and not one byte later. */
static void aligned_blocks_do_not_overlap(void **state) {
    (void)state;
    enum { BLOCKS = 3000 };
    static struct held held[BLOCKS];
    unsigned random = 1;
    for (unsigned i = 0; i < BLOCKS; i++) {
        random = random * 1103515245u + 12345;
        size_t a = (size_t)8 << (random >> 16) % 11, n = (random >> 8) % 5000;
        held[i].block = i % 3 == 0 ? malloc(n) : memalign(a, n);
        assert_non_null(held[i].block);
        held[i].usable = malloc_usable_size(held[i].block);
        fill(held[i].block, held[i].usable, i);
        if (i % 4 == 3) {
            struct held *old = &held[i / 2];
            if (old->block == NULL) continue;
            assert_true(is_filled(old->block, old->usable, i / 2));
            free(old->block);
            old->block = NULL;
        }
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        if (held[i].block != NULL) assert_true(is_filled(held[i].block, held[i].usable, i));
        free(held[i].block);
    }
}

static void aligned_blocks_keep_their_content_in_realloc(void **state) {
    (void)state;
    for (size_t a = 16; a <= 4 * MIB; a *= 4) {
        static const size_t sizes[] = {1, 40, 600, 33000, 300000, 5 * MIB};
        for (size_t from = 0; from < COUNT(sizes); from++) {
            for (size_t to = 0; to < COUNT(sizes); to++) {
                size_t kept = sizes[from] < sizes[to] ? sizes[from] : sizes[to];
                void *p = memalign(a, sizes[from]);
                assert_non_null(p);
                fill(p, sizes[from], (unsigned)to);
                assert_non_null(p = realloc(p, sizes[to]));
                assert_true(is_filled(p, kept, (unsigned)to));
                free(p);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        RUNS_ON_HUDDLE,
        cmocka_unit_test(every_power_of_two_to_a_gigabyte_is_given),
        cmocka_unit_test(aligned_alloc_takes_sizes_that_are_no_multiple),
        cmocka_unit_test(aligned_alloc_refuses_what_is_no_power_of_two),
        cmocka_unit_test(posix_memalign_refuses_all_but_powers_of_two_from_a_pointer_up),
        cmocka_unit_test(memalign_rounds_up_to_a_power_of_two),
        cmocka_unit_test(valloc_and_pvalloc_give_whole_pages),
        cmocka_unit_test(every_size_is_aligned_to_sixteen),
        cmocka_unit_test(aligned_blocks_do_not_overlap),
        cmocka_unit_test(aligned_blocks_keep_their_content_in_realloc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
