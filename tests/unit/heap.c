/* heap.c - allocating, freeing, changing and asking, through the functions that api/ calls. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "allocator.h"

static uint64_t seed;

static void heap_alloc_serves_every_size(void **state) {
    (void)state;
    for (size_t n = 0; n <= 200000; n += n < 5000 ? 1 : 997) {
        char *p = heap_alloc(n);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 16, 0);
        size_t bytes = heap_usable(p);
        assert_true(bytes >= n && bytes == heap_good_size(n));
        assert_true(heap_owns(p) && heap_owns(p + bytes - 1));
        memset(p, 1, bytes);
        heap_free(p);
    }
    heap_free(NULL);
}

static void heap_alloc_refuses_what_cannot_be(void **state) {
    (void)state;
    static const size_t sizes[] = {(size_t)PTRDIFF_MAX + 1, PTRDIFF_MAX, SIZE_MAX, SIZE_MAX - 15, (size_t)1 << 50};
    void *p = heap_alloc(100);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_null(heap_alloc(sizes[i]));
        assert_null(heap_alloc_zeroed(sizes[i]));
        assert_null(heap_alloc_aligned(sizes[i], 4096));
        assert_null(heap_realloc(p, sizes[i]));
    }
    assert_int_equal(heap_usable(p), 112);
    assert_int_equal(heap_good_size((size_t)PTRDIFF_MAX + 1), 0);
    heap_free(p);
}

/* Cells whose size is a multiple of a power of two are aligned so. */
static void heap_alloc_aligns_by_the_size_of_the_cell(void **state) {
    (void)state;
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        size_t bytes = size_class_bytes(class);
        for (int i = 0; i < 20; i++) assert_int_equal((uintptr_t)heap_alloc(bytes) % (bytes & -bytes), 0);
    }
}

static void heap_alloc_aligned_aligns(void **state) {
    (void)state;
    for (size_t alignment = 1; alignment <= 64 * MIB; alignment *= 2) {
        for (size_t n = 0; n <= 300000; n = n * 5 + 1) {
            char *p = heap_alloc_aligned(n, alignment);
            assert_non_null(p);
            assert_int_equal((uintptr_t)p % alignment, 0);
            assert_true(heap_usable(p) >= n);
            memset(p, 1, n);
            heap_free(p);
        }
    }
}

static void heap_alloc_zeroed_zeroes_used_memory(void **state) {
    (void)state;
    uint64_t random = seed;
    for (int i = 0; i < 3000; i++) {
        size_t n = random_below(&random, i % 50 == 0 ? 600000 : 3000);
        char *p = heap_alloc(n);
        memset(p, 0x5a, heap_usable(p));
        heap_free(p);
        p = heap_alloc_zeroed(n);
        assert_non_null(p);
        assert_true(is_all_zero(p, n));
        memset(p, 0x5a, heap_usable(p));
        heap_free(p);
    }
}

static void heap_realloc_keeps_contents_between_all_kinds(void **state) {
    (void)state;
    static const size_t sizes[] = {1,    16,    17,    100,   128,     1000,          1024,
                                   9000, 32768, 32769, 70000, 1 << 20, (8 << 20) + 1, 10 << 20};
    enum { COUNT = sizeof sizes / sizeof sizes[0] };
    for (size_t from = 0; from < COUNT; from++) {
        for (size_t to = 0; to < COUNT; to++) {
            unsigned char *p = heap_alloc(sizes[from]);
            assert_non_null(p);
            size_t kept = min_size(sizes[from], sizes[to]), step = kept / 3000 + 1;
            for (size_t i = 0; i < sizes[from]; i += step) p[i] = (unsigned char)(i * 31 + from);
            p = heap_realloc(p, sizes[to]);
            assert_non_null(p);
            assert_true(heap_usable(p) >= sizes[to]);
            for (size_t i = 0; i < kept; i += step) assert_int_equal(p[i], (unsigned char)(i * 31 + from));
            heap_free(p);
        }
    }
}

static void heap_realloc_stays_where_it_fits(void **state) {
    (void)state;
    char *p = heap_alloc(1000);
    size_t usable_bytes = heap_usable(p);
    for (size_t n = usable_bytes - usable_bytes / 4 + 1; n <= usable_bytes; n++)
        assert_ptr_equal(heap_realloc(p, n), p);
    p = heap_realloc(p, 10); /* a block does not stay large for ever */
    assert_true(heap_usable(p) <= 16);
    heap_free(p);
}

static void heap_usable_answers_for_any_address(void **state) {
    (void)state;
    uint64_t random = seed;
    char *small = heap_alloc(48), *large = heap_alloc(100000), *direct = heap_alloc(9 << 20);
    for (size_t i = 1; i < 48; i++) assert_int_equal(heap_usable(small + i), 0);
    assert_int_equal(heap_usable(large + 4096), 0);
    assert_int_equal(heap_usable(large + 65536), 0);
    assert_int_equal(heap_usable(direct + 65536), 0);
    assert_true(heap_owns(direct + (8 << 20)));
    assert_int_equal(heap_usable(NULL), 0);
    assert_int_equal(heap_usable(&random), 0);
    assert_false(heap_owns(&random));
    for (int i = 0; i < 100000; i++) {
        heap_usable((void *)(uintptr_t)random_next(&random));
        heap_usable((void *)((uintptr_t)small ^ random_next(&random) >> (random_next(&random) % 64)));
    }
    heap_free(small);
    heap_free(large);
    heap_free(direct);
    assert_int_equal(heap_usable(small), 0);
    assert_int_equal(heap_usable(large), 0);
    assert_int_equal(heap_usable(direct), 0);
}

/* ---- figures; in a child of their own ---- */

static void count_blocks(void *unused) {
    (void)unused;
    enum { HELD = 500 };
    static char *held[HELD];
    size_t bytes = 0, blocks = 0, large_bytes = 0, large_blocks = 0, of_class[CLASS_COUNT] = {0};
    uint64_t random = seed;
    for (int step = 0; step < 5000; step++) {
        size_t i = random_below(&random, HELD);
        bool is_new = held[i] == NULL;
        if (is_new) {
            held[i] = heap_alloc(random_below(&random, random_below(&random, 20) == 0 ? 200000 : 4000));
            EXPECT(held[i] != NULL);
        }
        size_t n = heap_usable(held[i]), one = is_new ? 1 : (size_t)-1;
        bytes += one * n;
        blocks += one;
        if (n > CELL_MAX) {
            large_bytes += one * n;
            large_blocks += one;
        } else {
            of_class[size_class_of(n)] += one;
        }
        if (!is_new) {
            heap_free(held[i]);
            held[i] = NULL;
        }
        if (step % 50 != 0) continue;
        struct huddle_stats s = statistics();
        EXPECT(s.live_bytes == bytes && s.live_blocks == blocks);
        EXPECT(s.large_bytes == large_bytes && s.large_blocks == large_blocks);
        EXPECT(s.heaps == 1 && s.lanes == 1 && s.lane[0].heaps == 1);
        EXPECT(s.lane[0].live_bytes == bytes - large_bytes);
        for (unsigned c = 0; c < CLASS_COUNT; c++) EXPECT(s.classes[c].live == of_class[c]);
        EXPECT(s.mapped_bytes >= s.run_bytes + large_bytes && s.peak_mapped_bytes >= s.mapped_bytes);
    }
    stats_check_all();
}

static void stats_are_exact_at_quiet_points(void **state) {
    (void)state;
    assert_true(ends_well(count_blocks, NULL));
}

static void stats_of_nothing(void *unused) {
    (void)unused;
    struct huddle_stats s = statistics();
    EXPECT(s.struct_size == sizeof s && s.live_bytes == 0 && s.live_blocks == 0 && s.cached_bytes == 0);
    for (unsigned c = 0; c < CLASS_COUNT; c++) EXPECT(s.classes[c].cell_bytes == size_class_bytes(c));
    stats_check_all();
}

static void stats_can_be_the_first_call(void **state) {
    (void)state;
    assert_true(ends_well(stats_of_nothing, NULL));
}

static void json_is_one_line(void **state) {
    (void)state;
    int ends[2];
    static char text[65536];
    assert_int_equal(pipe(ends), 0);
    void *p = heap_alloc(100);
    struct huddle_stats s = statistics();
    assert_true(json_write(ends[1], &s));
    close(ends[1]);
    size_t used = 0;
    ssize_t n;
    while ((n = read(ends[0], text + used, sizeof text - 1 - used)) > 0) used += (size_t)n;
    close(ends[0]);
    assert_true(used > 2 && text[0] == '{' && text[used - 2] == '}' && text[used - 1] == '\n');
    assert_ptr_equal(strchr(text, '\n'), text + used - 1);
    char expected[100];
    snprintf(expected, sizeof expected, "\"live_bytes\":%zu,", s.live_bytes);
    assert_non_null(strstr(text, expected));
    assert_false(json_write(-1, &s));
    heap_free(p);
}

/* ---- wrong frees ---- */

enum wrong {
    CELL_TWICE,
    CELL_TWICE_LATER,
    INSIDE_A_CELL,
    NEVER_HANDED_OUT,
    LARGE_TWICE,
    INSIDE_A_LARGE,
    STACK,
    ODD,
    REALLOC_FREED
};

static void free_wrongly(void *argument) {
    int local = 0;
    char *small = heap_alloc(48), *large = heap_alloc(131000);
    switch (*(enum wrong *)argument) {
    case CELL_TWICE:
        heap_free(small);
        heap_free(small);
        break;
    case CELL_TWICE_LATER:
        heap_free(small);
        heap_flush(heap_of_thread());
        heap_free(small);
        break;
    case INSIDE_A_CELL: heap_free(small + 16); break;
    case NEVER_HANDED_OUT: heap_free((char *)((uintptr_t)small | 0xffff) - 47); break;
    case LARGE_TWICE:
        heap_free(large);
        heap_free(large);
        break;
    case INSIDE_A_LARGE: heap_free(large + 65536); break;
    case STACK: heap_free(&local); break;
    case ODD: heap_free(small + 1); break;
    case REALLOC_FREED:
        heap_free(small);
        heap_realloc(small, 1000);
        break;
    }
}

static void heap_free_stops_at_wrong_pointers(void **state) {
    (void)state;
    static const char *const messages[] = {
        [CELL_TWICE] = "(a 48-byte cell)",
        [CELL_TWICE_LATER] = "(a 48-byte cell)",
        [INSIDE_A_CELL] = ": 16 bytes into a 48-byte cell",
        [NEVER_HANDED_OUT] = ", which huddle did not allocate",
        [LARGE_TWICE] = "(a 131072-byte block)",
        [INSIDE_A_LARGE] = ": 65536 bytes into a 131072-byte block",
        [STACK] = ", which huddle did not allocate",
        [ODD] = ": 1 bytes into a 48-byte cell",
        [REALLOC_FREED] = "(a 48-byte cell)",
    };
    for (enum wrong w = CELL_TWICE; w <= REALLOC_FREED; w++)
        if (!is_stopped(free_wrongly, &w, messages[w])) fail_msg("case %d was not noticed", (int)w);
}

int main(void) {
    inside_start();
    seed = random_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stats_can_be_the_first_call),
        cmocka_unit_test(stats_are_exact_at_quiet_points),
        cmocka_unit_test(heap_free_stops_at_wrong_pointers),
        cmocka_unit_test(heap_alloc_serves_every_size),
        cmocka_unit_test(heap_alloc_refuses_what_cannot_be),
        cmocka_unit_test(heap_alloc_aligns_by_the_size_of_the_cell),
        cmocka_unit_test(heap_alloc_aligned_aligns),
        cmocka_unit_test(heap_alloc_zeroed_zeroes_used_memory),
        cmocka_unit_test(heap_realloc_keeps_contents_between_all_kinds),
        cmocka_unit_test(heap_realloc_stays_where_it_fits),
        cmocka_unit_test(heap_usable_answers_for_any_address),
        cmocka_unit_test(json_is_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
