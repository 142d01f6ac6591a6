/* memory.c - how much memory zones hold, and when they give it back; counted in bytes. */
#include "zones.h"

#include <pthread.h>

enum { IDLE_ZONES = 10000, IDLE_BYTES_MAX = 4096 + 96 };

static size_t resident(void) {
    size_t pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%*u %zu", &pages), 1);
    fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void fill(huddle_zone_t *z, size_t bytes, size_t each) {
    for (size_t sum = 0; sum < bytes; sum += each) take(z, each);
}

/* Before the others: nothing lies in a pool yet. */
static void idle_zones_take_a_page_each(void **state) {
    (void)state;
    static huddle_zone_t *z[IDLE_ZONES];
    for (int i = 0; i < IDLE_ZONES; i++) memset(&z[i], 0, sizeof z[i]);
    size_t before = resident();
    for (int i = 0; i < IDLE_ZONES; i++) z[i] = open_zone(NULL);
    size_t after = resident();
    printf("%zu bytes resident for each\n", (after - before) / IDLE_ZONES);
    if (TEST_COUNTS_RESIDENT) assert_true(after - before <= (size_t)IDLE_ZONES * IDLE_BYTES_MAX);
    for (int i = 0; i < IDLE_ZONES; i++) assert_int_equal(stats_of(z[i]).held_bytes, 4096);
    for (int i = 0; i < IDLE_ZONES; i++) close_zone(z[i]);
}

static void one_large_object_does_not_make_growth_explode(void **state) {
    (void)state;
    huddle_zone_t *z = open_zone(OPTIONS(.chunk_min = 4096));
    take(z, 30 << 20);
    for (int i = 0; i < 3; i++) take(z, 20000);
    huddle_zone_stats_t s = stats_of(z);
    assert_true(s.held_bytes - s.large_bytes <= 256 << 10);
    close_zone(z);
}

static void *grow_a_zone(void *unused) {
    huddle_zone_t *z = huddle_zone_open(NULL);
    EXPECT(z != NULL);
    for (size_t sum = 0; sum < (size_t)20 << 20; sum += 112) {
        huddle_zone_stats_t s = {.struct_size = sizeof s};
        EXPECT(huddle_zone_alloc(z, 100) != NULL && huddle_zone_stats(z, &s) == 0);
        EXPECT(s.held_bytes <= 5 * s.used_bytes / 2 + 8192);
    }
    EXPECT(huddle_zone_close(z) == 0);
    allocator_thread_ends();
    return unused;
}

/* In a thread whose zones needed nothing yet. */
static void chunks_at_most_double_what_is_held(void **state) {
    (void)state;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, grow_a_zone, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* What is not used of a new chunk is not touched. */
static void overhead_is_small(void **state) {
    (void)state;
    if (!TEST_COUNTS_RESIDENT) skip();
    for (size_t each = 16; each <= 1024; each *= 4) {
        trim();
        huddle_zone_t *z = open_zone(NULL);
        size_t before = resident(), bytes = (size_t)20 << 20;
        fill(z, bytes, each);
        size_t grown = resident() - before;
        printf("%zu bytes each: %.1f %% above what was asked for\n", each, 100.0 * (double)grown / (double)bytes - 100);
        assert_true(grown <= bytes + bytes / 8);
        close_zone(z);
    }
}

static void objects_cost_nothing_but_themselves(void **state) {
    (void)state;
    huddle_zone_t *z = open_zone(NULL);
    size_t used = stats_of(z).used_bytes, metadata = statistics().metadata_bytes;
    for (int i = 0; i < 100000; i++) take(z, 16);
    assert_int_equal(stats_of(z).used_bytes - used, 1600000);
    assert_true(statistics().metadata_bytes - metadata <= 65536);
    close_zone(z);
}

static void reset_keeps_what_was_needed_lately(void **state) {
    (void)state;
    options.purge_ms = 100;
    huddle_zone_t *z = open_zone(NULL);
    fill(z, 20 << 20, 1000);
    assert_int_equal(huddle_zone_reset(z), 0);
    assert_true(stats_of(z).held_bytes <= 2 * (size_t)(22 << 20));
    size_t calls = system_calls();
    fill(z, 20 << 20, 1000);
    assert_int_equal(system_calls(), calls); /* all of it was kept */
    for (int i = 0; i < 60; i++) {
        assert_int_equal(huddle_zone_reset(z), 0);
        fill(z, 1 << 20, 1000);
        usleep(10000);
    }
    assert_int_equal(huddle_zone_reset(z), 0);
    assert_true(stats_of(z).held_bytes <= 6 << 20);
    fill(z, 3 << 20, 1000);
    assert_int_equal(huddle_zone_reset(z), 0);
    size_t kept = stats_of(z).kept_bytes;
    assert_true(kept >= 2 << 20);
    assert_true(huddle_zone_trim(z, 1 << 20) >= kept - (2 << 20) && stats_of(z).kept_bytes <= 1 << 20);
    huddle_zone_trim(z, 0);
    assert_int_equal(stats_of(z).kept_bytes, 0);
    close_zone(z);
    z = open_zone(OPTIONS(.retain = 4 << 20));
    fill(z, 8 << 20, 1000);
    for (int i = 0; i < 60; i++) {
        assert_int_equal(huddle_zone_reset(z), 0);
        usleep(5000);
    }
    assert_true(stats_of(z).kept_bytes <= 4 << 20 && stats_of(z).kept_bytes >= 3 << 20);
    close_zone(z);
    options.purge_ms = 1000;
}

/* All functions use up the current chunk before they take one that was kept. */
static void the_current_chunk_is_used_up(void **state) {
    (void)state;
    huddle_zone_t *z = open_zone(NULL);
    fill(z, 2 << 20, 1000);
    assert_int_equal(huddle_zone_reset(z), 0);
    size_t kept = stats_of(z).kept_bytes;
    assert_true(kept != 0);
    assert_non_null(huddle_zone_memdup(z, "text", 5));
    assert_non_null(huddle_zone_aligned(z, 16, 100));
    assert_non_null(huddle_zone_realloc(z, NULL, 0, 100));
    assert_int_not_equal(huddle_zone_mark(z).id, 0);
    assert_int_not_equal(huddle_zone_on_close(z, free, NULL), 0);
    assert_int_equal(stats_of(z).kept_bytes, kept);
    close_zone(z);
}

static void closed_zones_memory_goes_back(void **state) {
    (void)state;
    if (!TEST_COUNTS_RESIDENT) skip(); /* nor is there a helper thread */
    options.purge_ms = 400;
    trim();
    size_t before = resident();
    for (int i = 0; i < 3; i++) {
        huddle_zone_t *z = open_zone(NULL);
        fill(z, (size_t)60 << 20, 10000);
        close_zone(z);
    }
    size_t after = 0;
    for (int ms = 0; ms < 12000; ms += 50) {
        usleep(50000);
        after = resident();
        if (after <= before + (4 << 20)) break;
    }
    printf("%zu KiB above the start\n", (after - before) / 1024);
    assert_true(after <= before + (4 << 20));
    assert_true(statistics().zone_bytes <= 1 << 20);
    options.purge_ms = 1000;
}

int main(void) {
    allocator_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_zones_take_a_page_each),
        cmocka_unit_test(one_large_object_does_not_make_growth_explode),
        cmocka_unit_test(chunks_at_most_double_what_is_held),
        cmocka_unit_test(overhead_is_small),
        cmocka_unit_test(objects_cost_nothing_but_themselves),
        cmocka_unit_test(reset_keeps_what_was_needed_lately),
        cmocka_unit_test(the_current_chunk_is_used_up),
        cmocka_unit_test(closed_zones_memory_goes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
