/* thread.c - magazines, a thread's heap and its end, frees for other lanes. Each test that allocates runs in a child of
 * its own, so that figures are exact and options can differ. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>

#include "allocator.h"
#include "span/meta.h"
#include "thread/outgoing.h"
#include "thread/registry.h"

static void run_in_thread(void *(*f)(void *), void *argument) {
    pthread_t id;
    EXPECT(pthread_create(&id, NULL, f, argument) == 0 && pthread_join(id, NULL) == 0);
}

/* ---- magazines ---- */

static void magazine_starts_empty_and_full(void **state) {
    (void)state;
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        struct magazine m;
        magazine_init(&m, class);
        assert_int_equal(magazine_count(&m), 0);
        assert_ptr_equal(m.top, m.limit);
        assert_null(m.top[-1].cell);
        assert_int_equal(m.class, class);
        magazine_check(&m);
    }
}

/* Grows it as often as it can be; returns its capacity. Looks at what it counts in `bytes`. */
static size_t grow_to_its_bound(struct magazine *m, unsigned class, size_t *bytes) {
    magazine_init(m, class);
    size_t before = *bytes, capacity = 0;
    for (int i = 0; i < 20; i++) {
        magazine_grow(m, bytes);
        assert_true(m->capacity >= capacity && m->capacity != 0);
        assert_int_equal(m->limit - m->base, m->capacity + 1);
        assert_null(m->base[0].cell);
        assert_int_equal(*bytes - before, m->capacity * size_class_bytes(class));
        magazine_check(m);
        capacity = m->capacity;
    }
    return capacity;
}

static void magazine_grows_within_the_bound_of_its_class(void **state) {
    (void)state;
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        struct magazine m;
        size_t bytes = 0, total = magazine_total_bytes(), capacity = grow_to_its_bound(&m, class, &bytes);
        assert_true(capacity * size_class_bytes(class) <= max_size(128 * KIB, 3 * size_class_bytes(class)));
        assert_true(capacity <= 2047);
        assert_int_equal(magazine_total_bytes(), total + bytes);
        magazine_release(&m, &bytes);
        assert_int_equal(bytes, 0);
        assert_int_equal(magazine_total_bytes(), total);
    }
}

static void magazine_grows_within_cache_kib(void **state) {
    (void)state;
    struct magazine magazines[CLASS_COUNT];
    static const uint32_t bounds[] = {0, 64, 1024};
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        size_t bytes = 0, first = 0;
        options.cache_kib = bounds[i];
        for (unsigned class = 0; class < CLASS_COUNT; class++) {
            magazine_init(&magazines[class], class);
            magazine_grow(&magazines[class], &bytes); /* the first entries are there whatever the bound */
            first = bytes;
        }
        for (int round = 0; round < 12; round++)
            for (unsigned class = 0; class < CLASS_COUNT; class++) magazine_grow(&magazines[class], &bytes);
        assert_true(bytes <= max_size(first, bounds[i] * KIB));
        if (bounds[i] == 0) assert_int_equal(bytes, first);
        for (unsigned class = 0; class < CLASS_COUNT; class++) magazine_release(&magazines[class], &bytes);
        assert_int_equal(bytes, 0);
    }
    options.cache_kib = 1024;
}

static mark_t cached_mark(uint64_t words[2]) {
    words[0] = words[1] = 0;
    mark_t mark = mark_at((uint8_t *)words, 0);
    mark_set(mark, CELL_LIVE);
    mark_set(mark, CELL_CACHED);
    return mark;
}

static void magazine_keeps_its_cells_when_it_grows(void **state) {
    (void)state;
    struct magazine m;
    size_t bytes = 0, n = 0;
    static uint64_t words[2];
    mark_t mark = cached_mark(words);
    magazine_init(&m, 0);
    for (int i = 0; i < 6; i++) {
        magazine_grow(&m, &bytes);
        while (m.top != m.limit) *m.top++ = (struct cell_ref){(void *)(++n * 16), mark};
        assert_int_equal(magazine_count(&m), n);
        for (size_t k = 1; k <= n; k++) assert_ptr_equal(m.base[k].cell, (void *)(k * 16));
    }
    m.top = m.base + 1;
    magazine_release(&m, &bytes);
}

enum breakage { NOTHING, M1_TOP_BELOW_BASE, M1_TOP_ABOVE_LIMIT, M1_NO_SENTINEL, M2_LIVE_CELL, BREAKAGES };

static void break_magazine(void *argument) {
    struct magazine m;
    size_t bytes = 0;
    uint64_t words[2];
    mark_t mark = cached_mark(words);
    magazine_init(&m, 0);
    magazine_grow(&m, &bytes);
    *m.top++ = (struct cell_ref){&m, mark};
    switch (*(enum breakage *)argument) {
    case M1_TOP_BELOW_BASE: m.top = m.base; break;
    case M1_TOP_ABOVE_LIMIT: m.top = m.limit + 1; break;
    case M1_NO_SENTINEL: m.base[0].cell = &m; break;
    case M2_LIVE_CELL: mark_set(mark, CELL_LIVE); break;
    default: break;
    }
    magazine_check(&m);
}

static void magazine_check_notices_each_broken_rule(void **state) {
    (void)state;
    enum breakage b = NOTHING;
    assert_true(ends_well(break_magazine, &b));
    for (b = NOTHING + 1; b < BREAKAGES; b++)
        if (!is_stopped(break_magazine, &b, "huddle: internal error")) fail_msg("breakage %d was not noticed", (int)b);
}

/* ---- the heap ---- */

enum { HELD = 4000 };
static void *held[HELD];

static size_t size_of(size_t i) {
    return i % 7 == 0 ? i * 8 % 32768 : i % 900;
}

static void fill_and_flush(void *unused) {
    (void)unused;
    size_t live = 0;
    for (size_t i = 0; i < HELD; i++) {
        held[i] = allocate(size_of(i));
        EXPECT(held[i] != NULL);
        live += usable(held[i]);
    }
    EXPECT(statistics().live_bytes == live && statistics().live_blocks == HELD);
    heap_check(heap_of_thread());
    for (size_t i = 0; i < HELD; i += 2) {
        live -= usable(held[i]);
        release(held[i]);
    }
    EXPECT(statistics().live_bytes == live && statistics().live_blocks == HELD / 2);
    EXPECT(statistics().cached_bytes != 0);
    heap_check(heap_of_thread());
    heap_flush(heap_of_thread());
    EXPECT(statistics().live_bytes == live && statistics().cached_bytes == 0);
    EXPECT(heap_of_thread()->cache_bytes == 0 && magazine_total_bytes() == 0);
    stats_check_all();
    for (size_t i = 1; i < HELD; i += 2) release(held[i]);
    trim();
    struct huddle_stats s = statistics();
    EXPECT(s.live_bytes == 0 && s.live_blocks == 0);
    EXPECT(s.run_bytes == 0 && s.dirty_bytes == 0);
}

static void heap_flush_gives_everything_back(void **state) {
    (void)state;
    assert_true(ends_well(fill_and_flush, NULL));
}

static void *end_and_go_on(void *unused) {
    (void)unused;
    for (size_t i = 0; i < 100; i++) held[i] = allocate(size_of(i));
    allocator_thread_ends();
    EXPECT(heap_of_thread() == &heap_late);
    allocator_thread_ends(); /* again, as from another destructor */
    for (size_t i = 0; i < 50; i++) release(held[i]);
    for (size_t i = 0; i < 50; i++) {
        held[i] = allocate(size_of(i));
        EXPECT(held[i] != NULL);
        memset(held[i], 1, usable(held[i]));
        held[i] = reallocate(held[i], 2 * size_of(i) + 1);
        EXPECT(held[i] != NULL && heap_of_thread() == &heap_late);
    }
    void *large = allocate(100000);
    EXPECT(large != NULL);
    release(large);
    return NULL;
}

static void end_threads(void *unused) {
    (void)unused;
    options.lanes = 2;
    void *mine = allocate(10);
    for (int i = 0; i < 3; i++) {
        run_in_thread(end_and_go_on, NULL);
        EXPECT(statistics().heaps == 2 && statistics().live_blocks == 101); /* this thread's and the shared one */
        for (size_t k = 0; k < 100; k++) release(held[k]);
        EXPECT(statistics().live_blocks == 1);
    }
    release(mine);
    EXPECT(statistics().live_blocks == 0);
    stats_check_all();
}

static void heap_thread_exit_leaves_late_calls_a_shared_heap(void **state) {
    (void)state;
    assert_true(ends_well(end_threads, NULL));
}

static void *nothing_but_end(void *unused) {
    (void)unused;
    allocator_thread_ends();
    EXPECT(heap_of_thread() == &heap_late);
    return NULL;
}

static void end_without_a_heap(void *unused) {
    (void)unused;
    size_t calls = os_memory_counters().calls;
    run_in_thread(nothing_but_end, NULL);
    EXPECT(os_memory_counters().calls == calls && registry_heaps == NULL);
}

static void heap_thread_exit_of_a_thread_without_a_heap_makes_none(void **state) {
    (void)state;
    assert_true(ends_well(end_without_a_heap, NULL));
}

static int by_value(const void *a, const void *b) {
    const uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;
    return (x > y) - (x < y);
}

static size_t descents(size_t n) {
    size_t count = 0;
    for (size_t i = 1; i < n; i++) count += held[i] < held[i - 1];
    return count;
}

/* Without shuffle the cells come in address order; with it in another one, and still each once. */
static void allocate_in_order(void *shuffle) {
    enum { COUNT = 1000 };
    options.shuffle = shuffle != NULL;
    for (size_t i = 0; i < COUNT; i++) held[i] = allocate(64);
    if (shuffle == NULL) EXPECT(descents(COUNT) < 10); /* a new run may lie lower */
    else EXPECT(descents(COUNT) > COUNT / 4);
    qsort(held, COUNT, sizeof held[0], by_value);
    for (size_t i = 1; i < COUNT; i++) EXPECT((char *)held[i - 1] + 64 <= (char *)held[i]);
    for (size_t i = 0; i < COUNT; i++) release(held[i]);
    trim();
    stats_check_all();
}

static void heap_hands_out_in_address_order_unless_shuffled(void **state) {
    (void)state;
    assert_true(ends_well(allocate_in_order, NULL));
    assert_true(ends_well(allocate_in_order, held));
}

/* ---- frees for other lanes ---- */

static pthread_barrier_t step;
static size_t freed_by_other;

static void *free_for_another_lane(void *unused) {
    (void)unused;
    void *own = allocate(10);
    EXPECT(heap_of_thread()->owner != page_map_find(held[0])->owner);
    for (size_t i = 0; i < freed_by_other; i++) release(held[i]);
    pthread_barrier_wait(&step);
    pthread_barrier_wait(&step); /* the other thread looks */
    outgoing_flush(heap_of_thread());
    pthread_barrier_wait(&step);
    pthread_barrier_wait(&step);
    release(own);
    allocator_thread_ends();
    return NULL;
}

/* How many of the freed blocks this thread gets when it allocates as many. */
static size_t count_again(size_t n) {
    size_t again = 0;
    static void *others[HELD];
    for (size_t i = 0; i < 1200; i++) {
        others[i] = allocate(48);
        for (size_t k = 0; k < n; k++) again += others[i] == held[k];
    }
    for (size_t i = 0; i < 1200; i++) release(others[i]);
    return again;
}

static void free_across(void *unused) {
    (void)unused;
    options.lanes = 2;
    EXPECT(pthread_barrier_init(&step, NULL, 2) == 0);
    for (size_t i = 0; i < 100; i++) held[i] = allocate(48);
    pthread_t id;
    EXPECT(pthread_create(&id, NULL, free_for_another_lane, NULL) == 0);
    pthread_barrier_wait(&step);
    /* Freed is freed, wherever it is on its way; but messages that are not full have not been sent. */
    EXPECT(statistics().live_blocks == 100 - freed_by_other + 1);
    EXPECT(inbox_is_empty(&heap_of_thread()->lane->inbox) == (freed_by_other < MESSAGE_CELLS));
    pthread_barrier_wait(&step);
    pthread_barrier_wait(&step);
    EXPECT(!inbox_is_empty(&heap_of_thread()->lane->inbox));
    EXPECT(count_again(freed_by_other) == freed_by_other);
    EXPECT(inbox_is_empty(&heap_of_thread()->lane->inbox));
    pthread_barrier_wait(&step);
    EXPECT(pthread_join(id, NULL) == 0);
    for (size_t i = freed_by_other; i < 100; i++) release(held[i]);
    EXPECT(statistics().live_blocks == 0);
    stats_check_all();
}

static void outgoing_messages_arrive(void **state) {
    (void)state;
    static const size_t counts[] = {1, MESSAGE_CELLS - 1, MESSAGE_CELLS + 1, 100};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        freed_by_other = counts[i];
        assert_true(ends_well(free_across, NULL));
    }
}

/* The thread's own inbox has a cell twice, as when two threads free it at the same moment; or one that is live. */
static void take_in_wrong_cell(void *is_twice) {
    static struct message m;
    void *p = allocate(48);
    struct lane *lane = heap_of_thread()->lane;
    unsigned class;
    m.cell[m.count++] = p;
    if (*(bool *)is_twice) {
        m.cell[m.count++] = p;
        mark_set(lane_resolve(lane, p, &class).mark, CELL_RETURNING);
    }
    inbox_push(&lane->inbox, &m);
    for (size_t i = 0; i < HELD; i++) held[i] = allocate(48);
}

static void heap_refill_stops_at_wrong_cells_of_the_inbox(void **state) {
    (void)state;
    for (int is_twice = 0; is_twice < 2; is_twice++)
        assert_true(is_stopped(take_in_wrong_cell, &(bool){is_twice != 0}, "(a 48-byte cell)"));
}

/* ---- lanes ---- */

static void *note_lane(void *place) {
    release(allocate(10));
    *(unsigned *)place = heap_of_thread()->lane->number;
    pthread_barrier_wait(&step);
    allocator_thread_ends();
    return NULL;
}

static void spread_threads(void *lanes) {
    enum { THREADS = 6 };
    unsigned numbers[THREADS], counts[LANE_MAX] = {0};
    pthread_t ids[THREADS];
    options.lanes = *(uint32_t *)lanes;
    EXPECT(pthread_barrier_init(&step, NULL, THREADS) == 0);
    for (size_t i = 0; i < THREADS; i++) EXPECT(pthread_create(&ids[i], NULL, note_lane, &numbers[i]) == 0);
    for (size_t i = 0; i < THREADS; i++) EXPECT(pthread_join(ids[i], NULL) == 0);
    for (size_t i = 0; i < THREADS; i++) counts[numbers[i]]++;
    for (size_t i = 0; i < LANE_MAX; i++) EXPECT(counts[i] <= (THREADS + options.lanes - 1) / options.lanes);
    for (unsigned i = 0; i < LANE_MAX && lane_get(i) != NULL; i++) EXPECT(lane_get(i)->heaps == 0 && i < options.lanes);
}

static void registry_spreads_threads_over_lanes(void **state) {
    (void)state;
    uint32_t lanes[] = {1, 2, 3, 64};
    for (size_t i = 0; i < sizeof lanes / sizeof lanes[0]; i++) assert_true(ends_well(spread_threads, &lanes[i]));
}

int main(void) {
    inside_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(magazine_starts_empty_and_full),
        cmocka_unit_test(heap_flush_gives_everything_back),
        cmocka_unit_test(heap_thread_exit_leaves_late_calls_a_shared_heap),
        cmocka_unit_test(heap_thread_exit_of_a_thread_without_a_heap_makes_none),
        cmocka_unit_test(heap_hands_out_in_address_order_unless_shuffled),
        cmocka_unit_test(outgoing_messages_arrive),
        cmocka_unit_test(heap_refill_stops_at_wrong_cells_of_the_inbox),
        cmocka_unit_test(registry_spreads_threads_over_lanes),
        cmocka_unit_test(magazine_grows_within_the_bound_of_its_class),
        cmocka_unit_test(magazine_grows_within_cache_kib),
        cmocka_unit_test(magazine_keeps_its_cells_when_it_grows),
        cmocka_unit_test(magazine_check_notices_each_broken_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
