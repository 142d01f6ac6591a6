/* threads.c - zones and threads: SHARED zones, zones that are handed over, threads that come and go, signal handlers. */
#include "zones.h"

#include <pthread.h>
#include <sys/time.h>

#include "zone/zone.h"

enum { THREADS_MAX = 8, BLOCKS = 3000, ROUNDS = 40 };

struct worker {
    pthread_t thread;
    huddle_zone_t *z;
    unsigned number;
    unsigned char *block[BLOCKS];
};

static struct worker workers[THREADS_MAX];

static size_t size_of(size_t i) {
    return i % 500 == 7 ? 300000 : i % 50 == 3 ? 9000 : 1 + i % 300;
}

static void run_all(unsigned count, void *(*f)(void *)) {
    for (unsigned i = 0; i < count; i++) {
        workers[i].number = i + 1;
        EXPECT(pthread_create(&workers[i].thread, NULL, f, &workers[i]) == 0);
    }
    for (unsigned i = 0; i < count; i++) EXPECT(pthread_join(workers[i].thread, NULL) == 0);
}

/* ---- SHARED ---- */

static size_t ended; /* atomic */

static void count_end(void *unused) {
    (void)unused;
    __atomic_add_fetch(&ended, 1, __ATOMIC_RELAXED);
}

static void *fill(void *argument) {
    struct worker *w = argument;
    for (size_t i = 0; i < BLOCKS; i++) {
        w->block[i] = i % 2 ? huddle_zone_alloc(w->z, size_of(i)) : huddle_zone_zalloc(w->z, size_of(i));
        EXPECT(w->block[i] != NULL && (i % 2 || is_all_zero(w->block[i], size_of(i))));
        memset(w->block[i], (int)w->number, size_of(i));
        if (i % 1000 == 0) EXPECT(huddle_zone_on_close(w->z, count_end, NULL) != 0 && huddle_zone_child(w->z, NULL) != NULL);
    }
    allocator_thread_ends();
    return NULL;
}

static void threads_of_a_shared_zone_get_blocks_of_their_own(void **state) {
    (void)state;
    static const unsigned counts[] = {2, 4, 8};
    for (int k = 0; k < 3; k++) {
        huddle_zone_t *z = open_zone(OPTIONS(.flags = HUDDLE_ZONE_SHARED, .name = "shared"));
        for (int round = 0; round < 3; round++) {
            for (unsigned i = 0; i < counts[k]; i++) workers[i].z = z;
            ended = 0;
            run_all(counts[k], fill);
            size_t sum = 0;
            for (unsigned i = 0; i < counts[k]; i++) {
                for (size_t b = 0; b < BLOCKS; b++) {
                    unsigned char *p = workers[i].block[b];
                    for (size_t at = 0; at < size_of(b); at += 1 + at / 8) assert_int_equal(p[at], i + 1);
                    assert_true(huddle_zone_of(p) == z && huddle_zone_contains(z, p));
                    sum += (size_of(b) + 15) / 16 * 16;
                }
            }
            assert_true(stats_of(z).used_bytes >= sum);
            if (round < 2) assert_int_equal(huddle_zone_reset(z), 0);
            else close_zone(z);
            assert_int_equal(ended, 3 * counts[k]);
        }
    }
}

static void what_makes_no_sense_in_a_shared_zone_is_refused(void **state) {
    (void)state;
    huddle_zone_t *z = open_zone(OPTIONS(.flags = HUDDLE_ZONE_SHARED));
    FAILS(huddle_zone_mark(z).id, EINVAL);
    IS_ERROR(huddle_zone_buf_begin(z), EINVAL);
    char *p = take(z, 100);
    assert_false(huddle_zone_pop(z, p, 100) || huddle_zone_extend(z, p, 100, 101));
    assert_true(huddle_zone_extend(z, p, 100, 50));
    char *copy = huddle_zone_realloc(z, p, 100, 200);
    assert_true(copy != p && memcmp(copy, p, 100) == 0);
    close_zone(z);
}

static void *take_until_the_limit(void *argument) {
    struct worker *w = argument;
    while (huddle_zone_alloc(w->z, 1000) != NULL) continue;
    EXPECT(errno == ENOMEM);
    allocator_thread_ends();
    return NULL;
}

static void the_limit_of_a_shared_zone_is_for_all_threads(void **state) {
    (void)state;
    enum { LIMIT = 4 << 20 };
    huddle_zone_t *z = open_zone(OPTIONS(.flags = HUDDLE_ZONE_SHARED, .limit = LIMIT));
    for (int i = 0; i < 4; i++) workers[i].z = z;
    run_all(4, take_until_the_limit);
    size_t used = stats_of(z).used_bytes;
    assert_true(used <= LIMIT && used >= LIMIT / 4 * 3);
    close_zone(z);
}

/* The memory of a closed zone goes back to the spans, and a zone opened there later counts from where that one ended: the
 * part that the thread remembers is never taken for one of the new zone. */
static void a_part_is_not_found_again_in_a_later_zone(void **state) {
    (void)state;
    enum { TRIES = 200 };
    for (int round = 0; round < 20; round++) {
        huddle_zone_t *z = open_zone(OPTIONS(.flags = HUDDLE_ZONE_SHARED));
        take(z, 100);
        const void *address = z;
        uint64_t opened = ((struct zone *)z)->opened;
        close_zone(z);
        depot_age(true);
        trim();
        assert_int_equal(statistics().zone_bytes, 0);
        for (int i = 0; i < TRIES; i++) {
            z = open_zone(OPTIONS(.flags = HUDDLE_ZONE_SHARED));
            if (z == address && ((struct zone *)z)->opened >= opened) assert_ptr_equal(huddle_zone_of(take(z, 100)), z);
            close_zone(z);
        }
    }
}

/* ---- handed over ---- */

static huddle_zone_t *slot[16]; /* atomic */

static void *exchange(void *argument) {
    struct worker *w = argument;
    uint64_t random = w->number;
    for (int i = 0; i < 20 * ROUNDS; i++) {
        huddle_zone_t *z = huddle_zone_open(NULL);
        EXPECT(z != NULL);
        size_t count = random_below(&random, 200);
        for (size_t k = 0; k < count; k++) memset(huddle_zone_alloc(z, 900), 1, 900);
        z = __atomic_exchange_n(&slot[random_below(&random, 16)], z, __ATOMIC_ACQ_REL);
        if (z == NULL) continue;
        EXPECT(huddle_zone_alloc(z, 50) != NULL && huddle_zone_close(z) == 0);
    }
    allocator_thread_ends();
    return NULL;
}

static void zones_are_used_and_closed_by_other_threads(void **state) {
    (void)state;
    run_all(THREADS_MAX, exchange);
    for (int i = 0; i < 16; i++) {
        if (slot[i] != NULL) close_zone(slot[i]);
        slot[i] = NULL;
    }
}

/* ---- come and go ---- */

static void *scratch_and_end(void *argument) {
    struct worker *w = argument;
    huddle_zone_t *a = huddle_zone_scratch(NULL, 0), *b = huddle_zone_scratch(&a, 1);
    EXPECT(a != NULL && b != NULL && a != b);
    huddle_zone_on_close(b, count_end, NULL);
    for (int i = 0; i < 300; i++) memset(huddle_zone_alloc(w->number % 2 ? a : b, 1000), 1, 1000);
    zone_end_scratch();
    allocator_thread_ends();
    return NULL;
}

static void threads_that_end_leave_nothing(void **state) {
    (void)state;
    size_t first = 0;
    ended = 0;
    for (int round = 0; round < ROUNDS; round++) {
        run_all(THREADS_MAX, scratch_and_end);
        if (round == 0) first = statistics().zone_bytes;
    }
    assert_int_equal(ended, ROUNDS * THREADS_MAX);
    size_t rested = TEST_UNDER_ASAN ? 64 << 20 : 1 << 20; /* there chunks are not used again so soon */
    assert_true(statistics().zone_bytes <= 2 * first + rested);
    depot_age(true);
    trim();
    assert_int_equal(statistics().zone_bytes, 0);
}

/* ---- signals ---- */

static size_t handled, refused;

static void use_a_zone(int number) {
    (void)number;
    int before = errno;
    huddle_zone_t *z = huddle_zone_open(NULL);
    if (z == NULL) {
        refused++;
        errno = before;
        return;
    }
    for (int i = 0; i < 20; i++) {
        char *p = huddle_zone_alloc(z, 700);
        if (p == NULL) refused++;
        else memset(p, 2, 700);
    }
    EXPECT(huddle_zone_close(z) == 0);
    handled++;
    errno = before;
}

static void a_handler_has_zones_of_its_own(void **state) {
    (void)state;
    struct sigaction action = {.sa_handler = use_a_zone, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    EXPECT(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
    time_t end = time(NULL) + 2;
    for (size_t i = 0; time(NULL) <= end; i++) {
        huddle_zone_t *z = huddle_zone_open(i % 3 ? NULL : OPTIONS(.chunk_max = 4096));
        EXPECT(z != NULL);
        for (size_t k = 0; k < 300; k++) {
            unsigned char *p = huddle_zone_alloc(z, size_of(k));
            EXPECT(p != NULL);
            memset(p, 1, size_of(k));
            void *block = allocate(size_of(k));
            release(block);
            EXPECT(p[0] == 1 && p[size_of(k) - 1] == 1);
        }
        EXPECT(huddle_zone_close(z) == 0);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%zu calls of the handler, %zu times no memory\n", handled, refused);
    assert_true(handled > 100);
    trim();
    assert_int_equal(statistics().zone_bytes, 0);
}

/* The handler keeps a zone until its next call, while main does nothing but open and close some: one of the closed zones
 * that lie ready must never be handed out twice. */
static huddle_zone_t *held;
static unsigned char *held_block;

static void hold_a_zone(int number) {
    (void)number;
    int before = errno;
    if (held != NULL) {
        for (int i = 0; i < 100; i++) EXPECT(held_block[i] == 3);
        EXPECT(huddle_zone_close(held) == 0);
    }
    held = huddle_zone_open(NULL);
    held_block = held != NULL ? huddle_zone_alloc(held, 100) : NULL;
    if (held_block != NULL) memset(held_block, 3, 100);
    else held = NULL;
    handled++;
    errno = before;
}

static void a_ready_zone_is_handed_out_once(void **state) {
    (void)state;
    struct sigaction action = {.sa_handler = hold_a_zone, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    handled = 0;
    EXPECT(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
    time_t end = time(NULL) + 2;
    for (size_t i = 0; i % 1000 != 0 || time(NULL) <= end; i++) {
        huddle_zone_t *z[3];
        unsigned char *p[3];
        for (int k = 0; k < 3; k++) {
            z[k] = huddle_zone_open(NULL);
            EXPECT(z[k] != NULL && (p[k] = huddle_zone_alloc(z[k], 100)) != NULL);
            memset(p[k], 4 + k, 100);
        }
        for (int k = 0; k < 3; k++) {
            EXPECT(p[k][0] == 4 + k && p[k][99] == 4 + k);
            EXPECT(huddle_zone_close(z[k]) == 0);
        }
    }
    setitimer(ITIMER_REAL, &never, NULL);
    if (held != NULL) EXPECT(huddle_zone_close(held) == 0);
    held = NULL;
    printf("%zu calls of the handler\n", handled);
    assert_true(handled > 100);
}

int main(void) {
    allocator_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_of_a_shared_zone_get_blocks_of_their_own),
        cmocka_unit_test(what_makes_no_sense_in_a_shared_zone_is_refused),
        cmocka_unit_test(the_limit_of_a_shared_zone_is_for_all_threads),
        cmocka_unit_test(a_part_is_not_found_again_in_a_later_zone),
        cmocka_unit_test(zones_are_used_and_closed_by_other_threads),
        cmocka_unit_test(threads_that_end_leave_nothing),
        cmocka_unit_test(a_handler_has_zones_of_its_own),
        cmocka_unit_test(a_ready_zone_is_handed_out_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
