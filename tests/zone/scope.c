/* scope.c - what ends when: marks, callbacks, children, merged zones, scratch zones, closed and sealed ones. */
#include "zones.h"

enum { CALLS_MAX = 100 };

static int calls[CALLS_MAX], call_count;

static void note_call(void *number) {
    calls[call_count++] = *(int *)number;
}

static int numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};

static int forget_calls(void **state) {
    (void)state;
    call_count = 0;
    return 0;
}

static void expect_calls(int count, ...) {
    va_list list;
    va_start(list, count);
    assert_int_equal(call_count, count);
    for (int i = 0; i < count; i++) assert_int_equal(calls[i], va_arg(list, int));
    va_end(list);
    call_count = 0;
}

/* ---- marks ---- */

static void rewind_frees_what_is_younger(void **state) {
    (void)state;
    huddle_zone_t *z = open_zone(NULL);
    char *kept = take(z, 100);
    huddle_zone_mark_t m = huddle_zone_mark(z);
    assert_int_not_equal(m.id, 0);
    size_t used = stats_of(z).used_bytes;
    char *first = take(z, 50);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 1000; i++) take(z, 1000);
        take(z, 3000000);
        take(z, 300000);
        assert_int_equal(stats_of(z).large_objects, 2);
        assert_int_equal(huddle_zone_rewind(z, m), 0);
        assert_int_equal(stats_of(z).used_bytes, used);
        assert_int_equal(stats_of(z).large_objects, 0);
        assert_ptr_equal(take(z, 50), first);
    }
    for (int i = 0; i < 100; i++) assert_int_equal((unsigned char)kept[i], 0xa5);
    close_zone(z);
}

static void marks_cover_the_empty_zone(void **state) {
    (void)state;
    huddle_zone_t *z = open_zone(NULL);
    huddle_zone_mark_t m = huddle_zone_mark(z);
    size_t used = stats_of(z).used_bytes;
    for (int i = 0; i < 5000; i++) take(z, 100);
    assert_int_equal(huddle_zone_rewind(z, m), 0);
    assert_int_equal(stats_of(z).used_bytes, used);
    assert_int_equal(used, 16);
    close_zone(z);
}

static void mark_and_rewind_in_turn_take_no_memory(void **state) {
    (void)state;
    huddle_zone_t *z = open_zone(NULL);
    take(z, 10);
    huddle_zone_mark_t first = huddle_zone_mark(z);
    size_t used = stats_of(z).used_bytes;
    for (int i = 0; i < 1000; i++) {
        huddle_zone_mark_t m = huddle_zone_mark(z);
        if (i % 3 == 0) take(z, 100);
        if (i % 3 == 1) take(z, 1000000);
        if (i % 3 == 2) huddle_zone_child(z, NULL);
        huddle_zone_mark_t inner = huddle_zone_mark(z);
        assert_int_not_equal(inner.id, m.id);
        assert_int_equal(huddle_zone_rewind(z, m), 0);
        IS_ERROR(huddle_zone_rewind(z, inner), EINVAL);
    }
    assert_int_equal(stats_of(z).used_bytes, used);
    assert_int_equal(huddle_zone_rewind(z, first), 0);
    close_zone(z);
}

static void marks_nest_and_stale_ones_are_refused(void **state) {
    (void)state;
    huddle_zone_t *z = open_zone(NULL), *other = open_zone(NULL);
    huddle_zone_mark_t outer = huddle_zone_mark(z);
    take(z, 100);
    huddle_zone_mark_t inner = huddle_zone_mark(z), sibling = huddle_zone_mark(other);
    take(z, 100);
    assert_int_equal(huddle_zone_rewind(z, inner), 0);
    assert_int_equal(huddle_zone_rewind(z, inner), 0); /* still good */
    IS_ERROR(huddle_zone_rewind(z, sibling), EINVAL);
    IS_ERROR(huddle_zone_rewind(other, inner), EINVAL);
    assert_int_equal(huddle_zone_rewind(z, outer), 0);
    IS_ERROR(huddle_zone_rewind(z, inner), EINVAL);
    take(z, 5000);
    huddle_zone_mark_t new_inner = huddle_zone_mark(z);
    IS_ERROR(huddle_zone_rewind(z, inner), EINVAL);
    assert_int_equal(huddle_zone_rewind(z, new_inner), 0);
    assert_int_equal(huddle_zone_reset(z), 0);
    IS_ERROR(huddle_zone_rewind(z, outer), EINVAL);
    IS_ERROR(huddle_zone_rewind(z, (huddle_zone_mark_t){z, 0}), EINVAL);
    close_zone(z);
    huddle_zone_t *again = open_zone(NULL); /* in the same memory, but under AddressSanitizer */
    huddle_zone_mark(again);
    huddle_zone_mark(again);
    IS_ERROR(huddle_zone_rewind(again, outer), EINVAL);
    IS_ERROR(huddle_zone_rewind(again, inner), EINVAL);
    IS_ERROR(huddle_zone_rewind(again, new_inner), EINVAL);
    assert_true(TEST_UNDER_ASAN || again == z);
    close_zone(again);
    close_zone(other);
}

static void rewind_ends_children_and_calls_that_are_younger(void **state) {
    (void)state;
    huddle_zone_t *z = open_zone(NULL);
    huddle_zone_on_close(z, note_call, &numbers[1]);
    huddle_zone_t *old = huddle_zone_child(z, NULL);
    huddle_zone_mark_t m = huddle_zone_mark(z);
    huddle_zone_on_close(z, note_call, &numbers[2]);
    huddle_zone_t *young = huddle_zone_child(z, NULL);
    huddle_zone_on_close(young, note_call, &numbers[3]);
    huddle_zone_on_close(z, note_call, &numbers[4]);
    assert_int_equal(huddle_zone_rewind(z, m), 0);
    expect_calls(3, 3, 4, 2);
    assert_true(huddle_zone_is_open(old));
    assert_int_equal(stats_of(z).children, 1);
    assert_int_equal(stats_of(z).callbacks, 1);
    close_zone(z);
    expect_calls(1, 1);
}

/* ---- callbacks ---- */

static void calls_are_made_last_registered_first(void **state) {
    (void)state;
    huddle_zone_t *z = open_zone(NULL);
    uint64_t number[5];
    for (int i = 0; i < 5; i++) {
        number[i] = huddle_zone_on_close(z, note_call, &numbers[i]);
        assert_true(number[i] != 0);
        take(z, 100000);
    }
    assert_int_equal(huddle_zone_cancel(z, number[2]), 0);
    IS_ERROR(huddle_zone_cancel(z, number[2]), EINVAL);
    IS_ERROR(huddle_zone_cancel(z, 0), EINVAL);
    IS_ERROR(huddle_zone_cancel(z, UINT64_MAX), EINVAL);
    close_zone(z);
    expect_calls(4, 4, 3, 1, 0);
}

struct caller {
    huddle_zone_t *z;
    char *allocated;
    int result;
};

static void allocate_and_register(void *argument) {
    struct caller *c = argument;
    c->allocated = huddle_zone_strdup(c->z, "from a callback");
    huddle_zone_on_close(c->z, note_call, &numbers[7]);
    int before = errno;
    errno = 0;
    c->result = huddle_zone_close(c->z) == -1 && errno == EBADF; /* it is ending already */
    errno = before;
}

static void calls_may_allocate_and_register(void **state) {
    (void)state;
    huddle_zone_t *z = open_zone(NULL);
    struct caller c = {z, NULL, 0};
    huddle_zone_on_close(z, note_call, &numbers[1]);
    huddle_zone_on_close(z, allocate_and_register, &c);
    close_zone(z);
    assert_true(c.allocated != NULL && c.result == 1);
    expect_calls(2, 7, 1);
}

static void owned_blocks_are_freed(void **state) {
    (void)state;
    huddle_zone_t *z = open_zone(NULL);
    size_t live = statistics().live_blocks;
    char *p = allocate(5000), *q = allocate(100000);
    assert_true(huddle_zone_own(z, p) == p && huddle_zone_own(z, q) == q);
    assert_int_equal(statistics().live_blocks, live + 2);
    assert_int_equal(huddle_zone_reset(z), 0);
    assert_int_equal(statistics().live_blocks, live);
    assert_true(huddle_zone_own(z, allocate(10)) != NULL);
    close_zone(z);
    assert_int_equal(statistics().live_blocks, live);
}

/* ---- children ---- */

static void children_are_closed_youngest_first_then_calls_are_made(void **state) {
    (void)state;
    huddle_zone_t *z = open_zone(NULL), *child[3];
    for (int i = 0; i < 3; i++) {
        child[i] = i == 1 ? open_zone(OPTIONS(.parent = z)) : huddle_zone_child(z, NULL);
        assert_non_null(child[i]);
        huddle_zone_on_close(child[i], note_call, &numbers[i]);
        take(child[i], 100000);
    }
    huddle_zone_on_close(z, note_call, &numbers[9]);
    huddle_zone_t *grandchild = huddle_zone_child(child[2], OPTIONS(.name = "grandchild"));
    huddle_zone_on_close(grandchild, note_call, &numbers[8]);
    close_zone(child[1]);
    expect_calls(1, 1);
    assert_int_equal(stats_of(z).children, 2);
    close_zone(z);
    expect_calls(4, 8, 2, 0, 9);
    FAILS(huddle_zone_child(z, NULL), EBADF);
}

static void reset_closes_children(void **state) {
    (void)state;
    huddle_zone_t *z = open_zone(NULL), *child = huddle_zone_child(z, NULL);
    huddle_zone_on_close(child, note_call, &numbers[1]);
    assert_int_equal(huddle_zone_reset(z), 0);
    expect_calls(1, 1);
    IS_ERROR(huddle_zone_close(child), EBADF);
    close_zone(z);
}

/* ---- merge ---- */

static void merged_zones_are_one(void **state) {
    (void)state;
    huddle_zone_t *into = open_zone(NULL), *from = open_zone(NULL);
    huddle_zone_on_close(into, note_call, &numbers[1]);
    char *kept = take(into, 5000);
    huddle_zone_mark_t before = huddle_zone_mark(into);
    huddle_zone_on_close(from, note_call, &numbers[2]);
    huddle_zone_on_close(from, note_call, &numbers[3]);
    huddle_zone_t *child = huddle_zone_child(from, NULL);
    huddle_zone_on_close(child, note_call, &numbers[4]);
    char *small = take(from, 100), *large = take(from, 700000);
    for (int i = 0; i < 100; i++) take(from, 3000);
    size_t used = stats_of(into).used_bytes + stats_of(from).used_bytes;
    assert_int_equal(huddle_zone_merge(into, from), 0);
    IS_ERROR(huddle_zone_close(from), EBADF);
    FAILS(huddle_zone_alloc(from, 1), EBADF);
    assert_int_equal(stats_of(into).used_bytes, used);
    assert_true(huddle_zone_of(small) == into && huddle_zone_of(large) == into && huddle_zone_of(kept) == into);
    assert_true(huddle_zone_contains(into, small + 99) && huddle_zone_contains(into, large + 699999));
    assert_int_equal(stats_of(into).children, 1);
    take(into, 100000);
    assert_int_equal(huddle_zone_rewind(into, before), 0);
    expect_calls(3, 4, 3, 2);
    for (int i = 0; i < 5000; i++) assert_int_equal((unsigned char)kept[i], 0xa5);
    for (int i = 0; i < 3000; i++) take(into, 300);
    close_zone(into);
    expect_calls(1, 1);
}

static void zones_that_differ_are_not_merged(void **state) {
    (void)state;
    static char memory[4096];
    huddle_zone_t *z = open_zone(NULL), *child = huddle_zone_child(z, NULL);
    huddle_zone_t *others[] = {open_zone(OPTIONS(.flags = HUDDLE_ZONE_ZERO)), open_zone(OPTIONS(.min_align = 64)),
                               open_zone(OPTIONS(.flags = HUDDLE_ZONE_SHARED)), huddle_zone_init(memory, sizeof memory, NULL)};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_non_null(others[i]);
        IS_ERROR(huddle_zone_merge(z, others[i]), EINVAL);
        IS_ERROR(huddle_zone_merge(others[i], z), EINVAL);
        close_zone(others[i]);
    }
    IS_ERROR(huddle_zone_merge(child, z), EINVAL); /* its own parent */
    IS_ERROR(huddle_zone_merge(z, z), EINVAL);
    assert_int_equal(huddle_zone_merge(z, child), 0);
    close_zone(z);
}

/* ---- scratch ---- */

static void scratch_zones_are_two_and_do_not_collide(void **state) {
    (void)state;
    huddle_zone_t *a = huddle_zone_scratch(NULL, 0);
    assert_non_null(a);
    assert_ptr_equal(huddle_zone_scratch(NULL, 0), a);
    huddle_zone_t *b = huddle_zone_scratch(&a, 1);
    assert_true(b != NULL && b != a);
    assert_ptr_equal(huddle_zone_scratch(&b, 1), a);
    huddle_zone_t *both[] = {a, b}, *z = open_zone(NULL);
    FAILS(huddle_zone_scratch(both, 2), EINVAL);
    assert_ptr_equal(huddle_zone_scratch(&z, 1), a);
    huddle_zone_mark_t m = huddle_zone_mark(a);
    take(a, 10000);
    assert_int_equal(huddle_zone_rewind(a, m), 0);
    close_zone(z);
}

/* ---- closed and sealed ---- */

static void a_closed_zone_says_so(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        huddle_zone_t *z = open_zone(i == 0 ? NULL : i == 1 ? OPTIONS(.name = "n") : OPTIONS(.flags = HUDDLE_ZONE_SHARED));
        take(z, 100);
        assert_true(huddle_zone_is_open(z));
        huddle_zone_stats_t s = {.struct_size = sizeof s};
        close_zone(z);
        assert_false(huddle_zone_is_open(z));
        IS_ERROR(huddle_zone_close(z), EBADF);
        IS_ERROR(huddle_zone_reset(z), EBADF);
        IS_ERROR(huddle_zone_seal(z), EBADF);
        IS_ERROR(huddle_zone_stats(z, &s), EBADF);
        IS_ERROR(huddle_zone_buf_begin(z), EBADF);
        IS_ERROR(huddle_zone_rewind(z, (huddle_zone_mark_t){z, 1}), EBADF);
        FAILS(huddle_zone_alloc(z, 1), EBADF);
        FAILS(huddle_zone_zalloc(z, 1), EBADF);
        FAILS(huddle_zone_packed(z, 1), EBADF);
        FAILS(huddle_zone_aligned(z, 3, 1), EBADF);
        FAILS(huddle_zone_strdup(z, "x"), EBADF);
        FAILS(huddle_zone_mark(z).id, EBADF);
        FAILS(huddle_zone_on_close(z, note_call, NULL), EBADF);
        assert_int_equal(huddle_zone_trim(z, 0), 0);
        assert_false(huddle_zone_contains(z, z));
    }
}

static void a_sealed_zone_keeps_its_objects_and_allocates_no_more(void **state) {
    (void)state;
    huddle_zone_t *z = open_zone(NULL);
    char *p = take(z, 100);
    huddle_zone_mark_t m = huddle_zone_mark(z);
    assert_int_equal(huddle_zone_seal(z), 0);
    assert_int_equal(huddle_zone_seal(z), 0);
    assert_true(huddle_zone_is_open(z));
    FAILS(huddle_zone_alloc(z, 1), EPERM);
    FAILS(huddle_zone_alloc(z, 0), EPERM);
    FAILS(huddle_zone_zalloc(z, 1), EPERM);
    FAILS(huddle_zone_strdup(z, "x"), EPERM);
    FAILS(huddle_zone_mark(z).id, EPERM);
    IS_ERROR(huddle_zone_buf_begin(z), EPERM);
    IS_ERROR(huddle_zone_reset(z), EPERM);
    IS_ERROR(huddle_zone_rewind(z, m), EPERM);
    assert_false(huddle_zone_pop(z, p, 100));
    for (int i = 0; i < 100; i++) assert_int_equal((unsigned char)p[i], 0xa5);
    close_zone(z);
}

static void the_scope_macro_closes_the_zone(void **state) {
    (void)state;
    {
        HUDDLE_ZONE_SCOPE(z);
        huddle_zone_on_close(z, note_call, &numbers[5]);
    }
    expect_calls(1, 5);
}

int main(void) {
    allocator_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rewind_frees_what_is_younger),
        cmocka_unit_test(marks_cover_the_empty_zone),
        cmocka_unit_test(mark_and_rewind_in_turn_take_no_memory),
        cmocka_unit_test(marks_nest_and_stale_ones_are_refused),
        cmocka_unit_test_setup(rewind_ends_children_and_calls_that_are_younger, forget_calls),
        cmocka_unit_test_setup(calls_are_made_last_registered_first, forget_calls),
        cmocka_unit_test_setup(calls_may_allocate_and_register, forget_calls),
        cmocka_unit_test(owned_blocks_are_freed),
        cmocka_unit_test_setup(children_are_closed_youngest_first_then_calls_are_made, forget_calls),
        cmocka_unit_test_setup(reset_closes_children, forget_calls),
        cmocka_unit_test_setup(merged_zones_are_one, forget_calls),
        cmocka_unit_test(zones_that_differ_are_not_merged),
        cmocka_unit_test(scratch_zones_are_two_and_do_not_collide),
        cmocka_unit_test(a_closed_zone_says_so),
        cmocka_unit_test(a_sealed_zone_keeps_its_objects_and_allocates_no_more),
        cmocka_unit_test_setup(the_scope_macro_closes_the_zone, forget_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
