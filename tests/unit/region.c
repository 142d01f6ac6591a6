/* region.c - regions against a model of one bool a unit and fact, and what region_check must notice. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "inside.h"
#include "span/page_map.h"
#include "span/region.h"

static uint64_t seed;

/* Never touched: only its address counts. One unit past a multiple of 8 MiB, so that alignment matters. */
static char *const base = (char *)((uintptr_t)0x100000000000 + UNIT_BYTES);

struct model {
    size_t units;
    bool is_free[REGION_UNITS], is_dirty[REGION_UNITS], is_aged[REGION_UNITS];
};

static struct region region;
static struct model model;

static void start(size_t units) {
    region = (struct region){.base = base, .units = (uint32_t)units};
    memset(&model, 0, sizeof model);
    model.units = units;
    region_put_locked(&region, 0, units, false);
    for (size_t i = 0; i < units; i++) model.is_free[i] = true;
}

static void assert_same(void) {
    region_check(&region);
    for (size_t i = 0; i < model.units; i++) {
        assert_int_equal(region.free[i / 64] >> i % 64 & 1, model.is_free[i]);
        assert_int_equal(region.dirty[i / 64] >> i % 64 & 1, model.is_dirty[i]);
        assert_int_equal(region.aged[i / 64] >> i % 64 & 1, model.is_aged[i]);
    }
}

static bool is_stretch(size_t i, size_t n, bool wants_dirty) {
    if (i + n > model.units) return false;
    for (size_t k = i; k < i + n; k++)
        if (!model.is_free[k] || (wants_dirty && !model.is_dirty[k])) return false;
    return true;
}

/* The lowest place in the shortest stretch that has one; for one unit, the lowest of all. */
static int model_find(size_t n, size_t alignment, bool wants_dirty) {
    int best = -1;
    size_t shortest = SIZE_MAX, length;
    for (size_t start = 0; start < model.units; start += length + 1) {
        for (length = 0; is_stretch(start, length + 1, wants_dirty); length++) {
        }
        if (length >= shortest || (n == 1 && best >= 0)) continue;
        for (size_t i = start; i + n <= start + length; i++) {
            if (((uintptr_t)base + i * UNIT_BYTES) % alignment != 0) continue;
            best = (int)i;
            shortest = length;
            break;
        }
    }
    return best;
}

static void take(size_t i, size_t n) {
    size_t clean = 0;
    for (size_t k = i; k < i + n; k++) {
        clean += !model.is_dirty[k];
        model.is_free[k] = model.is_aged[k] = false;
        model.is_dirty[k] = true;
    }
    assert_int_equal(region_take_locked(&region, i, n), clean);
}

/* Puts back a random part of the taken units around i. */
static void put(size_t i, uint64_t *random) {
    size_t n = 0, most = 1 + random_below(random, 40);
    while (n < most && i + n < model.units && !model.is_free[i + n]) n++;
    if (n == 0) return;
    bool is_dirty = random_below(random, 3) != 0;
    for (size_t k = i; k < i + n; k++) {
        model.is_free[k] = true;
        model.is_dirty[k] = is_dirty;
    }
    region_put_locked(&region, i, n, is_dirty);
}

static void age(void) {
    for (size_t k = 0; k < model.units; k++) model.is_aged[k] = model.is_free[k] && model.is_dirty[k];
    region_age_locked(&region);
}

/* The next stretch to purge from `from` on: aged units, or all free dirty ones. */
static void assert_next_dirty(size_t from, bool all) {
    size_t i = from, n = 0, found = SIZE_MAX;
    const bool *wanted = model.is_aged;
    bool dirty_free[REGION_UNITS];
    for (size_t k = 0; k < model.units; k++) dirty_free[k] = model.is_free[k] && model.is_dirty[k];
    if (all) wanted = dirty_free;
    while (i < model.units && !wanted[i]) i++;
    while (i + n < model.units && wanted[i + n]) n++;
    assert_int_equal(region_next_dirty_locked(&region, from, all, &found), n);
    if (n != 0) assert_int_equal(found, i);
}

static bool is_untouched(size_t i) {
    return i < model.units && model.is_free[i] && !model.is_dirty[i];
}

/* The next stretch of clean free units from `from` on that others of its group may have brought memory to. */
static void assert_next_untouched(size_t from, size_t group) {
    size_t i = from, n = 0, found = SIZE_MAX;
    for (; i < model.units; i++) {
        size_t first = i / group * group, untouched = 0;
        for (size_t k = first; k < first + group; k++) untouched += is_untouched(k);
        if (is_untouched(i) && untouched != group) break;
    }
    while (is_untouched(i + n) && (i + n) / group == i / group) n++;
    assert_int_equal(region_next_untouched_locked(&region, from, group, &found), n);
    if (n != 0) assert_int_equal(found, i);
}

static void play(size_t units, uint64_t *random, int steps) {
    start(units);
    size_t dirty_before = region_dirty_free_units;
    for (int step = 0; step < steps; step++) {
        size_t n = 1 + random_below(random, random_below(random, 4) == 0 ? units : 20);
        size_t alignment = (size_t)UNIT_BYTES << (random_below(random, 2) == 0 ? 0 : random_below(random, 8));
        enum region_wish wish = random_below(random, 2) == 0 ? REGION_DIRTY : REGION_ANY;
        int expected = model_find(n, alignment, wish == REGION_DIRTY);
        assert_int_equal(region_find_locked(&region, n, alignment, wish), expected);
        if (expected >= 0) take((size_t)expected, n);
        for (int i = 0; i < 2; i++) put(random_below(random, units), random);
        size_t at = random_below(random, units), length = 1 + random_below(random, 30);
        assert_int_equal(region_is_free_locked(&region, at, length), is_stretch(at, length, false));
        assert_next_dirty(random_below(random, units), random_below(random, 2) == 0);
        assert_next_untouched(random_below(random, units), (size_t)1 << random_below(random, 7));
        if (random_below(random, 10) == 0) age();
        assert_same();
    }
    assert_int_equal(region_dirty_free_units - dirty_before, region.dirty_free_units);
    relaxed_store(&region_dirty_free_units, dirty_before);
}

static void region_does_as_the_model(void **state) {
    (void)state;
    uint64_t random = seed;
    static const size_t units[] = {1, 2, 63, 64, 65, 100, 128, 1000, REGION_UNITS};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) play(units[i], &random, 400);
}

static void region_find_looks_for_the_alignment(void **state) {
    (void)state;
    start(REGION_UNITS);
    for (size_t alignment = UNIT_BYTES; alignment <= 32 * MIB; alignment *= 2) {
        int i = region_find_locked(&region, 3, alignment, REGION_ANY);
        assert_int_equal(i, model_find(3, alignment, false));
        assert_true(i >= 0);
    }
    assert_int_equal(region_find_locked(&region, 1, UNIT_BYTES, REGION_DIRTY), -1);
    assert_int_equal(region_find_locked(&region, REGION_UNITS, UNIT_BYTES, REGION_ANY), 0);
    assert_int_equal(region_find_locked(&region, REGION_UNITS, 2 * UNIT_BYTES, REGION_ANY), -1);
}

/* ---- what region_check must notice ---- */

enum breakage {
    NOTHING,
    G1_AGED_IS_NOT_FREE,
    G1_AGED_IS_NOT_DIRTY,
    G2_FREE_UNITS,
    G2_DIRTY_FREE_UNITS,
    G3_LONGEST,
    G4_FREE_BEYOND_THE_END,
    BREAKAGES
};

static void break_region(void *argument) {
    start(100);
    region_take_locked(&region, 0, 30);
    region_put_locked(&region, 0, 10, true);
    region_age_locked(&region);
    switch (*(enum breakage *)argument) {
    case G1_AGED_IS_NOT_FREE: region.aged[0] |= (uint64_t)1 << 15; break;
    case G1_AGED_IS_NOT_DIRTY: region.aged[0] |= (uint64_t)1 << 40; break;
    case G2_FREE_UNITS: region.free_units++; break;
    case G2_DIRTY_FREE_UNITS: region.dirty_free_units--; break;
    case G3_LONGEST: region.longest = 69; break;
    case G4_FREE_BEYOND_THE_END:
        region.free[3] |= 1;
        region.free_units++;
        break;
    default: break;
    }
    region_check(&region);
}

static void region_check_notices_each_broken_rule(void **state) {
    (void)state;
    enum breakage b = NOTHING;
    assert_true(ends_well(break_region, &b));
    for (b = NOTHING + 1; b < BREAKAGES; b++)
        if (!is_stopped(break_region, &b, "huddle: internal error")) fail_msg("breakage %d was not noticed", (int)b);
}

int main(void) {
    inside_start();
    seed = random_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(region_does_as_the_model),
        cmocka_unit_test(region_find_looks_for_the_alignment),
        cmocka_unit_test(region_check_notices_each_broken_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
