/* run.c - runs: cells and their state bytes, leasing and taking back, the walk over R3 and the lists. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "inside.h"
#include "run/run.h"

static uint64_t seed;

static struct run *new_run(unsigned class, uint32_t serial) {
    struct run *r = run_create(class, 3, serial);
    assert_non_null(r);
    return r;
}

static void destroy_when_unused(struct run *r) {
    assert_int_equal(r->used, 0);
    run_retire_locked(r);
    run_retire_locked(r);
    run_destroy(r);
}

static void give_back(struct run *r, mark_t mark) {
    struct cell_ref ref = run_ref(r, mark_index(r, mark));
    assert_int_equal(run_give_back_locked(r, &ref, 1, CELL_CACHED), 1);
}

/* free() finds the index of a cell, and whether there starts one, by this multiplication alone. */
static void run_reciprocal_is_exact_for_every_class_and_offset(void **state) {
    (void)state;
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        uint32_t bytes = (uint32_t)size_class_bytes(class), m = run_reciprocal(bytes);
        size_t run_length = run_units(class) * UNIT_BYTES, wrong = 0;
        for (uint32_t n = 0; n < run_length; n++) {
            uint64_t product = (uint64_t)n * m;
            wrong += product >> 32 != n / bytes;
            wrong += ((uint32_t)product < m) != (n % bytes == 0);
        }
        if (wrong != 0) fail_msg("%zu offsets are wrong in cells of %u bytes", wrong, bytes);
    }
}

static void run_cells_fill_the_span_and_no_more(void **state) {
    (void)state;
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        size_t bytes = size_class_bytes(class), length = run_units(class) * UNIT_BYTES;
        assert_true(run_cells(class) * bytes <= length);
        assert_true((run_cells(class) + 1) * bytes > length || run_cells(class) == ENCODING_CELLS_MAX);
        assert_true(ENCODING_CELLS_MAX >= RUN_CELLS_MAX - 4);
        assert_true(run_cells(class) <= RUN_CELLS_MAX && run_cells(class) >= 4);
    }
}

static void run_stagger_keeps_cells_inside_and_aligned(void **state) {
    (void)state;
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        size_t bytes = size_class_bytes(class), alignment = bytes & -bytes;
        for (uint32_t serial = 0; serial < 40; serial++) {
            struct run *r = new_run(class, serial);
            assert_int_equal((uintptr_t)r->base % UNIT_BYTES, 0);
            assert_true(r->first < r->cells);
            assert_true((size_t)r->first * bytes <= 4096);
            if (serial == 0) assert_true((size_t)r->first * bytes < 256);
            struct cell_ref ref;
            assert_int_equal(run_lease_locked(r, &ref, 1), 1);
            assert_ptr_equal(ref.cell, r->base + (size_t)r->first * bytes);
            assert_int_equal((uintptr_t)ref.cell % alignment, 0);
            give_back(r, ref.mark);
            run_check_locked(r);
            destroy_when_unused(r);
        }
    }
}

static void run_stagger_differs_between_runs_of_small_classes(void **state) {
    (void)state;
    for (unsigned class = 0; size_class_bytes(class) <= 256; class++) {
        struct run *a = new_run(class, 15), *b = new_run(class, 15);
        if (((uintptr_t)a->base ^ (uintptr_t)b->base) / UNIT_BYTES % 16 != 0) assert_int_not_equal(a->first, b->first);
        destroy_when_unused(b);
        unsigned first = a->first;
        const char *base = a->base;
        destroy_when_unused(a);
        a = new_run(class, 15);
        assert_true(a->base != base || a->first == first);
        destroy_when_unused(a);
    }
}

static void run_takes_back_what_is_its_own_and_has_the_state(void **state) {
    (void)state;
    struct run *r = new_run(3, 0), *other = new_run(3, 0);
    struct cell_ref refs[6];
    assert_int_equal(run_lease_locked(r, refs, 4), 4);
    assert_int_equal(run_lease_locked(other, refs + 4, 2), 2);
    mark_set(refs[1].mark, CELL_LIVE);
    mark_set(refs[1].mark, CELL_RETURNING);
    assert_int_equal(run_give_back_locked(r, refs, 6, CELL_CACHED), 1);
    assert_int_equal(run_give_back_locked(r, refs, 6, CELL_CACHED), 0); /* it is free */
    assert_int_equal(run_give_back_locked(r, refs + 1, 5, CELL_RETURNING), 1);
    assert_int_equal(run_give_back_locked(r, refs + 2, 4, CELL_CACHED), 2);
    assert_int_equal(run_give_back_locked(r, refs + 4, 2, CELL_CACHED), 0); /* another run's */
    assert_int_equal(run_give_back_locked(other, refs + 4, 2, CELL_CACHED), 2);
    run_check_locked(r);
    run_check_locked(other);
    destroy_when_unused(r);
    destroy_when_unused(other);
}

/* Against every byte of the run. */
static void run_free_pages_are_those_that_no_leased_cell_touches(void **state) {
    (void)state;
    static char is_used[2 * UNIT_BYTES];
    uint64_t random = seed;
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        for (int round = 0; round < 4; round++) {
            struct run *r = new_run(class, (uint32_t)random_below(&random, 16));
            static struct cell_ref refs[RUN_CELLS_MAX];
            size_t n = run_lease_locked(r, refs, 1 + random_below(&random, r->cells)), bytes = r->cell_bytes;
            size_t length = r->units * (size_t)UNIT_BYTES, kept = random_below(&random, 20) == 0 ? 0 : 1 + random_below(&random, 30);
            for (size_t k = 0; k < length; k++) is_used[k] = 0;
            for (size_t i = 0; i < n; i++) {
                if (random_below(&random, 1000) < kept) {
                    memset(is_used + ((char *)refs[i].cell - r->base), 1, bytes);
                    if (i % 2 == 0) mark_set(refs[i].mark, CELL_LIVE);
                } else {
                    give_back(r, refs[i].mark);
                    refs[i].cell = NULL;
                }
            }
            struct os_range ranges[RUN_RANGES_MAX];
            size_t count = run_free_pages_locked(r, ranges), k = 0;
            assert_true(count < RUN_RANGES_MAX);
            for (size_t page = 0; page < length; page += os_page_bytes) {
                bool is_free = memchr(is_used + page, 1, os_page_bytes) == NULL;
                if (k < count && r->base + page == (char *)ranges[k].start + ranges[k].bytes) k++;
                bool is_found = k < count && (size_t)(r->base + page - (char *)ranges[k].start) < ranges[k].bytes;
                assert_int_equal(is_found, is_free);
            }
            for (size_t i = 0; i < n; i++) {
                if (refs[i].cell == NULL) continue;
                if (i % 2 == 0) mark_set(refs[i].mark, CELL_CACHED);
                give_back(r, refs[i].mark);
            }
            destroy_when_unused(r);
        }
    }
}

static void run_lease_of_fresh_cells_is_in_address_order(void **state) {
    (void)state;
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        struct run *r = new_run(class, class);
        struct cell_ref refs[7];
        size_t expected = r->first, n;
        while ((n = run_lease_locked(r, refs, 7)) != 0) {
            for (size_t i = 0; i < n; i++, expected++) {
                assert_ptr_equal(refs[i].cell, r->base + expected * r->cell_bytes);
                assert_true(refs[i].mark == mark_at(run_marks(r), expected) && mark_index(r, refs[i].mark) == expected);
                assert_true(mark_is(refs[i].mark, CELL_CACHED));
            }
        }
        assert_int_equal(expected, r->cells);
        assert_true(run_is_exhausted(r));
        for (size_t i = r->first; i < r->cells; i++) give_back(r, mark_at(run_marks(r), i));
        destroy_when_unused(r);
    }
}

static void run_lease_prefers_freed_cells_of_low_groups(void **state) {
    (void)state;
    struct run *r = new_run(0, 0);
    struct cell_ref refs[300], again[2];
    assert_int_equal(run_lease_locked(r, refs, 300), 300);
    give_back(r, refs[200].mark);
    give_back(r, refs[10].mark);
    assert_int_equal(run_lease_locked(r, again, 2), 2);
    assert_ptr_equal(again[0].cell, refs[10].cell);
    assert_ptr_equal(again[1].cell, refs[200].cell);
    for (size_t i = 0; i < 300; i++) give_back(r, refs[i].mark);
    destroy_when_unused(r);
}

/* As a thread of the lane does, or one of another lane and then one that takes messages in. */
static void free_cell(mark_t mark, uint64_t *random) {
    if (!mark_is(mark, CELL_LIVE)) return;
    if (random_below(random, 2) != 0) {
        mark_set(mark, CELL_RETURNING);
        assert_true(mark_is(mark, CELL_RETURNING) && !mark_is(mark, CELL_CACHED) && !mark_is(mark, CELL_LIVE));
    }
    mark_set(mark, CELL_CACHED);
    assert_true(mark_is(mark, CELL_CACHED) && !mark_is(mark, CELL_RETURNING) && !mark_is(mark, CELL_LIVE));
}

/* A model of one run: which cells are out. */
static void lease_and_give_back(unsigned class, uint64_t *random) {
    struct run *r = new_run(class, (uint32_t)random_below(random, 32));
    static bool is_out[RUN_CELLS_MAX];
    static struct cell_ref out[RUN_CELLS_MAX];
    size_t count = 0, cells = (size_t)(r->cells - r->first);
    memset(is_out, 0, sizeof is_out);
    for (int step = 0; step < 300; step++) {
        /* Some steps fill the run, some empty it, so that both ends are reached. */
        bool is_filling = step / 50 % 2 == 0;
        if (random_below(random, 100) < (is_filling ? 70u : 30u)) {
            struct cell_ref refs[200];
            size_t wanted = 1 + random_below(random, 200), n = run_lease_locked(r, refs, wanted);
            assert_int_equal(n, min_size(wanted, cells - count));
            for (size_t i = 0; i < n; i++) {
                size_t index = mark_index(r, refs[i].mark);
                assert_true(index >= r->first && index < r->cells);
                assert_ptr_equal(refs[i].cell, r->base + index * r->cell_bytes);
                assert_false(is_out[index]);
                assert_true(mark_is(refs[i].mark, CELL_CACHED));
                is_out[index] = true;
                out[count++] = refs[i];
                if (random_below(random, 2) != 0) mark_set(refs[i].mark, CELL_LIVE);
            }
        } else {
            for (size_t n = min_size(random_below(random, 200), count); n != 0; n--) {
                size_t k = random_below(random, count);
                free_cell(out[k].mark, random);
                is_out[mark_index(r, out[k].mark)] = false;
                give_back(r, out[k].mark);
                out[k] = out[--count];
            }
        }
        assert_int_equal(r->used, count);
        assert_int_equal(run_is_exhausted(r), count == cells);
        run_check_locked(r);
        struct run_count c = run_tally(r);
        assert_int_equal(c.live + c.cached, count);
        assert_int_equal(c.free + c.fresh, cells - count);
    }
    while (count != 0) {
        free_cell(out[--count].mark, random);
        give_back(r, out[count].mark);
    }
    destroy_when_unused(r);
}

static void run_lease_returns_each_cell_once(void **state) {
    (void)state;
    uint64_t random = seed;
    for (unsigned class = 0; class < CLASS_COUNT; class++) lease_and_give_back(class, &random);
}

static void run_is_found_from_every_unit_while_it_exists(void **state) {
    (void)state;
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        struct run *r = new_run(class, 0);
        char *base = r->base;
        for (size_t i = 0; i < r->units; i++) {
            const struct descriptor *d = page_map_find(base + i * UNIT_BYTES + UNIT_BYTES / 2);
            assert_ptr_equal(run_of(d), r);
            assert_int_equal(d->owner, 3 + 1);
            assert_int_equal(d->start, (uint32_t)(uintptr_t)base);
            assert_int_equal(descriptor_cell_bytes(d), size_class_bytes(class));
        }
        size_t units = r->units;
        run_retire_locked(r);
        for (size_t i = 0; i < units; i++)
            assert_int_equal(page_map_find(base + i * UNIT_BYTES)->owner, OWNER_WAS_RUN);
        run_retire_locked(r);
        run_destroy(r);
    }
}

/* ---- what run_check_locked must notice ---- */

enum breakage {
    NOTHING,
    LISTED_CELL_IS_LIVE,
    CELL_IS_LISTED_TWICE,
    LINK_LEADS_TO_A_CELL_IN_USE,
    LINK_LEADS_TO_A_FRESH_CELL,
    HEAD_LEADS_BELOW_THE_FIRST_CELL,
    GROUP_BIT_IS_LOST,
    USED_IS_ONE_MORE,
    USED_IS_ONE_LESS,
    FRESH_CELL_IS_LIVE,
    MARK_BEHIND_THE_LAST_CELL_IS_LIVE,
    FRESH_INDEX_IS_HIGHER,
    BREAKAGES
};

/* A run of 1024-byte cells (so that the second group begins at cell 64, beyond its end) with a list of three. */
static void break_run(void *argument) {
    struct run *r = run_create(size_class_of(1024), 0, 0);
    struct cell_ref refs[20];
    if (r == NULL || run_lease_locked(r, refs, 20) != 20) _exit(3);
    for (size_t i = 2; i < 5; i++) give_back(r, refs[i].mark);
    uint8_t *marks = run_marks(r);
    switch (*(enum breakage *)argument) {
    case LISTED_CELL_IS_LIVE: mark_set(refs[3].mark, CELL_LIVE); break;
    case CELL_IS_LISTED_TWICE:
        mark_set(refs[2].mark, CELL_CACHED);
        encoding_give_back_locked(r, mark_index(r, refs[2].mark));
        r->used--;
        break;
    case LINK_LEADS_TO_A_CELL_IN_USE: encoding_give_back_locked(r, mark_index(r, refs[10].mark)); break;
    case LINK_LEADS_TO_A_FRESH_CELL: encoding_give_back_locked(r, r->fresh + 5); break;
    case HEAD_LEADS_BELOW_THE_FIRST_CELL: r->first = (uint16_t)(r->first + 5); break;
    case GROUP_BIT_IS_LOST: r->groups = 0; break;
    case USED_IS_ONE_MORE: r->used++; break;
    case USED_IS_ONE_LESS: r->used--; break;
    case FRESH_CELL_IS_LIVE: mark_set(mark_at(marks, r->fresh), CELL_LIVE); break;
    case MARK_BEHIND_THE_LAST_CELL_IS_LIVE: mark_set(mark_at(marks, r->cells), CELL_LIVE); break;
    case FRESH_INDEX_IS_HIGHER: r->fresh++; break;
    default: break;
    }
    run_check_locked(r);
}

static void run_check_notices_each_broken_rule(void **state) {
    (void)state;
    enum breakage b = NOTHING;
    assert_true(ends_well(break_run, &b));
    for (b = NOTHING + 1; b < BREAKAGES; b++)
        if (!is_stopped(break_run, &b, "huddle: internal error")) fail_msg("breakage %d was not noticed", (int)b);
}

int main(void) {
    inside_start();
    seed = random_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_reciprocal_is_exact_for_every_class_and_offset),
        cmocka_unit_test(run_cells_fill_the_span_and_no_more),
        cmocka_unit_test(run_stagger_keeps_cells_inside_and_aligned),
        cmocka_unit_test(run_takes_back_what_is_its_own_and_has_the_state),
        cmocka_unit_test(run_free_pages_are_those_that_no_leased_cell_touches),
        cmocka_unit_test(run_stagger_differs_between_runs_of_small_classes),
        cmocka_unit_test(run_lease_of_fresh_cells_is_in_address_order),
        cmocka_unit_test(run_lease_prefers_freed_cells_of_low_groups),
        cmocka_unit_test(run_lease_returns_each_cell_once),
        cmocka_unit_test(run_is_found_from_every_unit_while_it_exists),
        cmocka_unit_test(run_check_notices_each_broken_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
