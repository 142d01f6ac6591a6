/* os.c - the lock, printing, memory from the system. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>

#include "base/options.h"
#include "inside.h"
#include "os/fail.h"
#include "os/lock.h"
#include "os/print.h"

/* ---- lock ---- */

enum { THREADS = 4, TURNS = 20000 };

static struct lock lock;
static size_t counter; /* guarded by lock, which is what is tested */

static void *count_up(void *unused) {
    (void)unused;
    for (int i = 0; i < TURNS; i++) {
        lock_take(&lock, RANK_BIN);
        counter++;
        lock_release(&lock, RANK_BIN);
    }
    return NULL;
}

static void lock_excludes_other_threads(void **state) {
    (void)state;
    pthread_t ids[THREADS];
    counter = 0;
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&ids[i], NULL, count_up, NULL), 0);
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(ids[i], NULL), 0);
    assert_int_equal(counter, THREADS * TURNS);
    assert_int_equal(lock.word, 0);
}

static void *try_up(void *unused) {
    (void)unused;
    for (int i = 0; i < TURNS;) {
        if (!lock_try(&lock, RANK_BIN)) {
            sched_yield();
            continue;
        }
        counter++;
        i++;
        lock_release(&lock, RANK_BIN);
    }
    return NULL;
}

static void lock_try_excludes_other_threads(void **state) {
    (void)state;
    pthread_t ids[2];
    counter = 0;
    assert_int_equal(pthread_create(&ids[0], NULL, try_up, NULL), 0);
    assert_int_equal(pthread_create(&ids[1], NULL, count_up, NULL), 0);
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_join(ids[i], NULL), 0);
    assert_int_equal(counter, 2 * TURNS);
}

static void lock_try_refuses_a_held_lock(void **state) {
    (void)state;
    lock_take(&lock, RANK_BIN);
    assert_false(lock_try(&lock, RANK_META));
    lock_release(&lock, RANK_BIN);
    assert_true(lock_try(&lock, RANK_BIN));
    lock_release(&lock, RANK_BIN);
}

static void *take_once(void *unused) {
    (void)unused;
    lock_take(&lock, RANK_BIN);
    counter++;
    lock_release(&lock, RANK_BIN);
    return NULL;
}

/* The word says 2 when somebody sleeps; the sleeper is woken. */
static void lock_wakes_who_sleeps(void **state) {
    (void)state;
    pthread_t id;
    counter = 0;
    /* Only a program that has threads takes it with an atomic instruction. */
    assert_int_equal(pthread_create(&id, NULL, take_once, NULL), 0);
    assert_int_equal(pthread_join(id, NULL), 0);
    lock_take(&lock, RANK_BIN);
    assert_int_equal(pthread_create(&id, NULL, take_once, NULL), 0);
    while (relaxed_load(&lock.word) != 2) sched_yield();
    assert_int_equal(counter, 1);
    lock_release(&lock, RANK_BIN);
    assert_int_equal(pthread_join(id, NULL), 0);
    assert_int_equal(counter, 2);
}

#if HUDDLE_AUDIT
static void take_in_the_wrong_order(void *unused) {
    (void)unused;
    struct lock a = {0}, b = {0};
    lock_take(&a, RANK_SPAN);
    lock_take(&b, RANK_BIN);
}

static void lock_ranks_are_checked_in_audit_builds(void **state) {
    (void)state;
    assert_true(is_stopped(take_in_the_wrong_order, NULL, "lock_held_ranks"));
}
#endif

/* ---- printing ---- */

/* What the printer writes when it prints `text`, a number and an address. */
static size_t printed(const char *text, uint64_t number, char *out, size_t size) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    struct printer p = PRINTER(ends[1]);
    print_string(&p, text);
    print_number(&p, number);
    print_string(&p, " ");
    print_hex(&p, number);
    assert_true(print_flush(&p));
    close(ends[1]);
    size_t used = 0;
    ssize_t n;
    while ((n = read(ends[0], out + used, size - used)) > 0) used += (size_t)n;
    close(ends[0]);
    return used;
}

static void print_writes_text_numbers_and_addresses(void **state) {
    (void)state;
    static const uint64_t numbers[] = {0, 9, 10, 15, 16, 255, UINT32_MAX, INT64_MAX, UINT64_MAX};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char out[200], expected[200];
        size_t n = printed("x: ", numbers[i], out, sizeof out);
        out[n] = '\0';
        snprintf(expected, sizeof expected, "x: %llu 0x%llx", (unsigned long long)numbers[i],
                 (unsigned long long)numbers[i]);
        assert_string_equal(out, expected);
    }
}

static void print_writes_more_than_its_buffer(void **state) {
    (void)state;
    char text[2000], out[2100];
    for (size_t length = 470; length < 1990; length += 10) {
        memset(text, 'a', length);
        text[length] = '\0';
        assert_int_equal(printed(text, 7, out, sizeof out), length + strlen("7 0x7"));
        assert_memory_equal(out, text, length);
    }
}

static void print_remembers_a_write_that_failed(void **state) {
    (void)state;
    int full = open("/dev/full", O_WRONLY);
    if (full < 0) skip();
    struct printer p = PRINTER(full);
    print_string(&p, "x");
    assert_false(print_flush(&p));
    assert_false(print_flush(&p));
    close(full);
}

static void say_assertion(void *unused) {
    (void)unused;
    fail_assertion("a == b", "file.c", 42);
}

static void say_double_free(void *unused) {
    (void)unused;
    fail_double_free((void *)0x1230, 48, "cell");
}

static void say_invalid_free(void *unused) {
    (void)unused;
    fail_invalid_free((void *)0x1240, 16, 48, "cell");
}

static void say_foreign_free(void *unused) {
    (void)unused;
    fail_foreign_free((void *)0x10);
}

static void say_zone_free(void *unused) {
    (void)unused;
    fail_zone_free((void *)0x10, NULL);
}

static void fail_stops_with_one_line(void **state) {
    (void)state;
    assert_true(is_stopped(say_assertion, NULL, "huddle: internal error: a == b at file.c:42\n"));
    assert_true(is_stopped(say_double_free, NULL, "huddle: double free of 0x1230 (a 48-byte cell)\n"));
    assert_true(is_stopped(say_invalid_free, NULL, "huddle: invalid free of 0x1240: 16 bytes into a 48-byte cell\n"));
    assert_true(is_stopped(say_foreign_free, NULL, "huddle: free of 0x10, which huddle did not allocate\n"));
    assert_true(is_stopped(say_zone_free, NULL, "huddle: free of 0x10, which is zone memory\n"));
}

/* ---- memory ---- */

static char *map_filled(size_t n) {
    char *p = os_map(NULL, n);
    assert_non_null(p);
    assert_true(is_all_zero(p, n));
    memset(p, 0x5a, n);
    return p;
}

static int stop_failing(void **state) {
    (void)state;
    options.fail_nth = 0;
    options.fail_count = 1;
    return 0;
}

/* The calls from the `first`-th from now on, `count` of them, are refused, and no others. */
static void assert_refused(uint32_t first, uint32_t count) {
    char *p = map_filled(os_page_bytes);
    options.fail_count = count;
    options.fail_nth = (uint32_t)os_memory_counters().calls + first;
    for (uint32_t i = 1; i <= 8; i++) {
        bool is_wanted = i >= first && i - first < count;
        assert_int_equal(os_purge(p, os_page_bytes), !is_wanted);
    }
    stop_failing(NULL);
    assert_true(os_unmap(p, os_page_bytes));
}

static void memory_refuses_exactly_the_wanted_calls(void **state) {
    (void)state;
    for (uint32_t first = 1; first <= 8; first++) {
        assert_refused(first, 1);
        assert_refused(first, 3);
        assert_refused(first, UINT32_MAX);
    }
}

static void refuse_all(void) {
    options.fail_count = UINT32_MAX;
    options.fail_nth = 1;
}

static void memory_counts_only_what_was_done(void **state) {
    (void)state;
    size_t page = os_page_bytes;
    char *p = map_filled(4 * page);
    struct os_counters before = os_memory_counters();
    struct os_range ranges[2] = {{p, page}, {p + 2 * page, page}};
    refuse_all();
    assert_null(os_map(NULL, page));
    assert_null(os_reserve(page));
    assert_false(os_commit(p, page));
    assert_false(os_unmap(p, page));
    assert_false(os_purge(p, page));
    assert_false(os_resize(p, 4 * page, 3 * page));
    assert_false(os_move(p, page, p + page, page));
    assert_int_equal(os_purge_many(ranges, 2), 0);
    stop_failing(NULL);
    struct os_counters after = os_memory_counters();
    assert_int_equal(after.mapped_bytes, before.mapped_bytes);
    assert_int_equal(after.purged_bytes, before.purged_bytes);
    assert_true(after.calls >= before.calls + 8);
    for (size_t i = 0; i < 4 * page; i++) assert_int_equal(p[i], 0x5a);
    assert_true(os_unmap(p, 4 * page));
    assert_int_equal(os_memory_counters().mapped_bytes, before.mapped_bytes - 4 * page);
}

static void memory_purged_reads_as_zero_and_the_rest_stays(void **state) {
    (void)state;
    size_t page = os_page_bytes;
    char *p = map_filled(3 * page);
    assert_true(os_purge(p + page, page));
    assert_true(is_all_zero(p + page, page));
    for (size_t i = 0; i < page; i++) assert_true(p[i] == 0x5a && p[2 * page + i] == 0x5a);
    assert_true(os_unmap(p, 3 * page));
}

/* One range, few, and more than a system call takes at once in purge.c. */
static void memory_purge_many_purges_every_range(void **state) {
    (void)state;
    enum { MOST = 100 };
    size_t page = os_page_bytes;
    for (size_t count = 0; count <= MOST; count += count < 4 ? 1 : 16) {
        char *p = map_filled((2 * MOST + 1) * page);
        struct os_range ranges[MOST];
        for (size_t i = 0; i < count; i++) ranges[i] = (struct os_range){p + (2 * i + 1) * page, page};
        size_t purged = os_memory_counters().purged_bytes;
        assert_int_equal(os_purge_many(ranges, count), count);
        assert_int_equal(os_memory_counters().purged_bytes, purged + count * page);
        for (size_t i = 0; i < count; i++) {
            assert_true(is_all_zero(p + (2 * i + 1) * page, page));
            assert_true(p[2 * i * page] == 0x5a && p[(2 * i + 2) * page] == 0x5a);
        }
        assert_true(os_unmap(p, (2 * MOST + 1) * page));
    }
}

static void memory_reserved_is_unreadable_until_committed(void **state) {
    (void)state;
    size_t page = os_page_bytes;
    char *p = os_reserve(4 * page);
    assert_non_null(p);
    assert_true(is_unreadable(p + page));
    assert_true(os_commit(p + page, page));
    memset(p + page, 1, page);
    assert_true(is_unreadable(p));
    assert_true(is_unreadable(p + 2 * page));
    assert_true(os_unmap(p, 4 * page));
}

static void memory_resize_keeps_place_and_contents(void **state) {
    (void)state;
    size_t page = os_page_bytes;
    char *p = map_filled(8 * page);
    assert_true(os_resize(p, 8 * page, 3 * page));
    assert_true(os_resize(p, 3 * page, 8 * page));
    for (size_t i = 0; i < 3 * page; i++) assert_int_equal(p[i], 0x5a);
    assert_true(is_all_zero(p + 3 * page, 5 * page));
    assert_true(os_unmap(p, 8 * page));
}

static void memory_move_keeps_contents(void **state) {
    (void)state;
    size_t page = os_page_bytes, mapped = os_memory_counters().mapped_bytes;
    char *p = map_filled(4 * page), *to = os_reserve(16 * page);
    assert_non_null(to);
    assert_true(os_move(p, 4 * page, to, 16 * page));
    for (size_t i = 0; i < 4 * page; i++) assert_int_equal(to[i], 0x5a);
    assert_true(is_all_zero(to + 4 * page, 12 * page));
    assert_true(is_unreadable(p));
    assert_true(os_unmap(to, 16 * page));
    assert_int_equal(os_memory_counters().mapped_bytes, mapped);
}

static void map_at_an_odd_address(void *unused) {
    (void)unused;
    os_unmap((void *)(os_page_bytes + 16), os_page_bytes);
}

static void purge_nothing(void *unused) {
    (void)unused;
    os_purge((void *)os_page_bytes, 0);
}

static void memory_wants_whole_pages_in_every_build(void **state) {
    (void)state;
    assert_true(is_stopped(map_at_an_odd_address, NULL, "huddle: internal error"));
    assert_true(is_stopped(purge_nothing, NULL, "huddle: internal error"));
}

static void system_knows_time_entropy_and_cpus(void **state) {
    (void)state;
    assert_true(os_cpu_count() >= 1);
    uint64_t before = os_time_ms();
    assert_true(os_time_ms() >= before);
    assert_int_not_equal(os_entropy(), os_entropy());
    assert_int_equal(os_process_id(), getpid());
}

int main(void) {
    inside_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lock_try_refuses_a_held_lock),
        cmocka_unit_test(lock_excludes_other_threads),
        cmocka_unit_test(lock_try_excludes_other_threads),
        cmocka_unit_test(lock_wakes_who_sleeps),
#if HUDDLE_AUDIT
        cmocka_unit_test(lock_ranks_are_checked_in_audit_builds),
#endif
        cmocka_unit_test(print_writes_text_numbers_and_addresses),
        cmocka_unit_test(print_writes_more_than_its_buffer),
        cmocka_unit_test(print_remembers_a_write_that_failed),
        cmocka_unit_test(fail_stops_with_one_line),
        cmocka_unit_test_teardown(memory_refuses_exactly_the_wanted_calls, stop_failing),
        cmocka_unit_test_teardown(memory_counts_only_what_was_done, stop_failing),
        cmocka_unit_test(memory_purged_reads_as_zero_and_the_rest_stays),
        cmocka_unit_test(memory_purge_many_purges_every_range),
        cmocka_unit_test(memory_reserved_is_unreadable_until_committed),
        cmocka_unit_test(memory_resize_keeps_place_and_contents),
        cmocka_unit_test(memory_move_keeps_contents),
        cmocka_unit_test(memory_wants_whole_pages_in_every_build),
        cmocka_unit_test(system_knows_time_entropy_and_cpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
