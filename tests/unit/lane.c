/* lane.c - bins (B1, B2), inboxes, and what a lane does with cells that others freed. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <sys/mman.h>

#include "inside.h"
#include "lane/lane.h"
#include "span/span.h"

static uint64_t seed;
static struct lane *lane; /* number 0 */

enum { HELD_MAX = 6000 };
static struct cell_ref held[HELD_MAX];

/* The program had the cell, and a thread of another lane freed it. */
static void return_cell(mark_t mark) {
    mark_set(mark, CELL_LIVE);
    mark_set(mark, CELL_RETURNING);
}

static unsigned class_of_bytes(size_t n) {
    return size_class_of(n);
}

static struct bin *bin_of(size_t cell_bytes) {
    return &lane->bins[class_of_bytes(cell_bytes)];
}

/* Leases n cells to `out`, in batches. */
static void lease(struct bin *b, size_t cell_bytes, struct cell_ref *out, size_t n) {
    for (size_t done = 0; done < n;) {
        size_t got = bin_lease(b, class_of_bytes(cell_bytes), 0, out + done, min_size(n - done, 50));
        assert_true(got != 0);
        done += got;
    }
}

static bool is_run(const void *cell) {
    return owner_is_lane(page_map_find(cell)->owner);
}

static int by_address(const void *a, const void *b) {
    const struct cell_ref *x = a, *y = b;
    return (x->cell > y->cell) - (x->cell < y->cell);
}

static void assert_distinct(struct cell_ref *cells, size_t n, size_t cell_bytes) {
    qsort(cells, n, sizeof *cells, by_address);
    for (size_t i = 1; i < n; i++) assert_true((char *)cells[i - 1].cell + cell_bytes <= (char *)cells[i].cell);
}

/* ---- bins ---- */

static void bin_leases_each_cell_once_and_keeps_its_lists(void **state) {
    (void)state;
    uint64_t random = seed;
    static const size_t sizes[] = {16, 48, 1024, 7168, 32768};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        struct bin *b = bin_of(sizes[s]);
        size_t count = 0;
        for (int step = 0; step < 300; step++) {
            bool is_growing = step / 60 % 2 == 0;
            size_t n = 1 + random_below(&random, 60);
            if (random_below(&random, 4) != 0 ? is_growing : !is_growing) {
                if (count + n > HELD_MAX) continue;
                lease(b, sizes[s], held + count, n);
                count += n;
                for (size_t i = count - n; i < count; i++) assert_true(mark_is(held[i].mark, CELL_CACHED));
            } else {
                n = min_size(n, count);
                for (size_t i = 0; i < n; i++) {
                    size_t k = random_below(&random, count - i);
                    struct cell_ref ref = held[k];
                    held[k] = held[count - 1 - i];
                    held[count - 1 - i] = ref;
                }
                bin_give_back(b, held + count - n, n, CELL_CACHED);
                count -= n;
            }
            bin_check(b);
            if (step % 20 == 0) assert_distinct(held, count, sizes[s]);
        }
        bin_give_back(b, held, count, CELL_CACHED);
        bin_check(b);
        bin_trim(b);
        assert_null(b->current);
        assert_null(b->partial);
    }
}

static void bin_destroys_runs_that_nobody_uses(void **state) {
    (void)state;
    struct bin *b = bin_of(4096);
    lease(b, 4096, held, 160);
    assert_true(is_run(held[0].cell));
    bin_give_back(b, held, 64, CELL_CACHED);
    bin_check(b);
    assert_false(is_run(held[0].cell)); /* a whole run of 16 cells, not the current one */
    bin_give_back(b, held + 64, 96, CELL_CACHED);
    bin_check(b);
    assert_null(b->partial);
    assert_non_null(b->current); /* kept for the next lease */
    bin_trim(b);
    for (size_t i = 0; i < 160; i++) assert_false(is_run(held[i].cell));
}

static void bin_takes_back_returning_cells(void **state) {
    (void)state;
    struct bin *b = bin_of(64);
    lease(b, 64, held, 100);
    for (size_t i = 0; i < 100; i++) return_cell(held[i].mark);
    bin_give_back(b, held, 100, CELL_RETURNING);
    bin_check(b);
    bin_trim(b);
    assert_null(b->current);
}

static void *lease_one(void *b) {
    struct cell_ref *ref = &held[0];
    assert_int_equal(bin_lease(b, class_of_bytes(8192), 0, ref, 1), 1);
    return NULL;
}

/* Two threads make a run for one empty bin; the other one has given everything back before this one is done. */
static void bin_keeps_b2_when_two_threads_make_a_run(void **state) {
    (void)state;
    struct bin *b = bin_of(8192);
    assert_true(b->current == NULL && b->partial == NULL);
    struct run *other = run_create(class_of_bytes(8192), 0, 0);
    assert_non_null(other);
    pthread_t id;
    assert_int_equal(pthread_create(&id, NULL, lease_one, b), 0); /* so that locks are taken for threads from here on */
    assert_int_equal(pthread_join(id, NULL), 0);
    bin_give_back(b, held, 1, CELL_CACHED);
    bin_trim(b);
    assert_null(b->current);

    lock_take(&span_lock, RANK_SPAN);
    assert_int_equal(pthread_create(&id, NULL, lease_one, b), 0);
    while (relaxed_load(&span_lock.word) != 2) sched_yield(); /* it makes its run, and waits for a span */
    lock_take_unranked(&b->lock);
    b->current = other; /* as the other thread leaves it: nothing of it is used any more */
    lock_release(&span_lock, RANK_SPAN);
    lock_release_unranked(&b->lock);
    assert_int_equal(pthread_join(id, NULL), 0);
    bin_check(b);
    bin_give_back(b, held, 1, CELL_CACHED);
    bin_check(b);
    bin_trim(b);
    assert_true(b->current == NULL && b->partial == NULL);
}

enum breakage {
    NOTHING,
    B1_CURRENT_IS_LISTED,
    B1_LISTED_RUN_IS_EXHAUSTED,
    B1_LISTED_RUN_SAYS_IT_IS_NOT,
    B2_LISTED_RUN_IS_UNUSED,
    B3_COUNT_OF_LISTED_RUNS,
    LIST_HAS_ANOTHER_END,
    LIST_LEADS_BACK_ELSEWHERE,
    A_RUN_IS_WRONG,
    BREAKAGES
};

/* A bin with a current run and two listed ones. */
static void break_bin(void *argument) {
    struct bin *b = bin_of(4096);
    for (size_t done = 0; done < 80;) done += bin_lease(b, class_of_bytes(4096), 0, held + done, 10);
    bin_give_back(b, held, 2, CELL_CACHED);
    bin_give_back(b, held + 20, 2, CELL_CACHED);
    struct run *r = b->partial;
    if (r == NULL || r->next == NULL || b->current == NULL) _exit(3);
    switch (*(enum breakage *)argument) {
    case B1_CURRENT_IS_LISTED: b->current->is_listed = true; break;
    case B1_LISTED_RUN_IS_EXHAUSTED: r->groups = 0; break;
    case B1_LISTED_RUN_SAYS_IT_IS_NOT: r->is_listed = false; break;
    case B2_LISTED_RUN_IS_UNUSED: r->used = 0; break;
    case B3_COUNT_OF_LISTED_RUNS: b->listed--; break;
    case LIST_HAS_ANOTHER_END: b->partial_last = r; break;
    case LIST_LEADS_BACK_ELSEWHERE: r->next->previous = NULL; break;
    case A_RUN_IS_WRONG: r->used++; break;
    default: break;
    }
    bin_check(b);
}

static void bin_check_notices_each_broken_rule(void **state) {
    (void)state;
    enum breakage b = NOTHING;
    assert_true(ends_well(break_bin, &b));
    for (b = NOTHING + 1; b < BREAKAGES; b++)
        if (!is_stopped(break_bin, &b, "huddle: internal error")) fail_msg("breakage %d was not noticed", (int)b);
}

/* ---- free pages of runs ---- */

static size_t resident_pages(const char *p, size_t bytes) {
    static unsigned char pages[64];
    size_t n = 0;
    assert_true(bytes / 4096 <= sizeof pages);
    assert_int_equal(mincore((void *)p, bytes, pages), 0);
    for (size_t i = 0; i < bytes / 4096; i++) n += pages[i] & 1;
    return n;
}

static bool purge(struct bin *b, bool all) {
    bool is_wanted = false;
    for (size_t left = SIZE_MAX; bin_purge(b, &left, all, &is_wanted);) bin_check(b);
    bin_check(b);
    return is_wanted;
}

/* Three runs, written full; all but the cells in every fourth page of 4 KiB are given back. */
static void bin_purges_free_pages_that_rested_for_a_round(void **state) {
    (void)state;
    enum { COUNT = 3 * 128, BYTES = 512 };
    struct bin *b = bin_of(BYTES);
    lease(b, BYTES, held, COUNT);
    qsort(held, COUNT, sizeof held[0], by_address);
    for (size_t i = 0; i < COUNT; i++) memset(held[i].cell, 1 + (int)(i % 100), BYTES);
    struct run *runs[4] = {NULL};
    size_t count = 0;
    for (size_t i = 0; i < COUNT; i++) {
        struct run *r = run_of(page_map_find(held[i].cell));
        if (count == 0 || runs[count - 1] != r) runs[count++] = r;
    }
    size_t before = 0, after = 0;
    for (size_t i = 0; i < COUNT; i++)
        if ((uintptr_t)held[i].cell / 4096 % 4 != 0) bin_give_back(b, &held[i], 1, CELL_CACHED);
    for (size_t i = 0; i < count; i++) before += resident_pages(runs[i]->base, UNIT_BYTES);
    assert_true(purge(b, false)); /* seen once */
    for (size_t i = 0; i < count; i++) after += resident_pages(runs[i]->base, UNIT_BYTES);
    assert_int_equal(after, before);
    assert_false(purge(b, false));
    after = 0;
    for (size_t i = 0; i < count; i++) after += resident_pages(runs[i]->base, UNIT_BYTES);
    if (os_page_bytes == 4096) assert_true(after <= before / 4 + count);
    else assert_true(after <= before);
    for (size_t i = 0; i < COUNT; i++)
        if ((uintptr_t)held[i].cell / 4096 % 4 == 0)
            for (size_t k = 0; k < BYTES; k++) assert_int_equal(((char *)held[i].cell)[k], 1 + (int)(i % 100));
    /* Nothing was lost: what was given back is leased again, then nothing is new. */
    assert_false(purge(b, false));
    size_t calls = os_memory_counters().calls;
    purge(b, true);
    assert_int_equal(os_memory_counters().calls, calls);
    size_t n = 0;
    for (size_t i = 0; i < COUNT; i++)
        if ((uintptr_t)held[i].cell / 4096 % 4 != 0) lease(b, BYTES, &held[i], 1), n++;
    assert_true(n > COUNT / 2);
    assert_distinct(held, COUNT, BYTES);
    bin_give_back(b, held, COUNT, CELL_CACHED);
    bin_trim(b);
    assert_true(b->current == NULL && b->partial == NULL && b->listed == 0);
}

/* With `all`, and of the current run too; one that nobody uses is given up. */
static void bin_purges_all_at_once(void **state) {
    (void)state;
    struct bin *b = bin_of(64);
    lease(b, 64, held, 900);
    for (size_t i = 0; i < 900; i++) memset(held[i].cell, 7, 64);
    bin_give_back(b, held, 899, CELL_CACHED);
    struct run *r = b->current;
    assert_non_null(r);
    purge(b, true);
    assert_int_equal(r->age, AGE_PURGED);
    if (os_page_bytes == 4096) assert_true(b->current == NULL && b->partial == r);
    for (size_t k = 0; k < 64; k++) assert_int_equal(((char *)held[899].cell)[k], 7);
    if (os_page_bytes == 4096) assert_int_equal(resident_pages(r->base, UNIT_BYTES), 1);
    bin_give_back(b, &held[899], 1, CELL_CACHED);
    bin_trim(b);
    assert_true(b->current == NULL && b->partial == NULL);
    lease(b, 64, held, 10);
    bin_give_back(b, held, 10, CELL_CACHED);
    purge(b, true);
    assert_true(b->current == NULL && b->partial == NULL);
}

/* ---- inbox ---- */

static void inbox_hands_over_every_pointer_once(void **state) {
    (void)state;
    struct inbox in = {NULL, 0};
    enum { MESSAGES = 100 };
    static struct message messages[MESSAGES];
    bool is_long = false;
    uintptr_t next = 1;
    assert_true(inbox_is_empty(&in));
    assert_null(inbox_take(&in));
    for (size_t i = 0; i < MESSAGES; i++) {
        messages[i].count = 1 + (uint32_t)(i % MESSAGE_CELLS);
        for (size_t k = 0; k < messages[i].count; k++) messages[i].cell[k] = (void *)(next++ * 16);
        is_long = inbox_push(&in, &messages[i]);
        assert_int_equal(is_long, i + 1 > 64);
    }
    bool *is_seen = calloc(next, sizeof *is_seen);
    assert_non_null(is_seen);
    size_t seen = 0;
    for (struct message *m = inbox_take(&in); m != NULL; m = m->next)
        for (size_t k = 0; k < m->count; k++, seen++) {
            assert_false(is_seen[(uintptr_t)m->cell[k] / 16]);
            is_seen[(uintptr_t)m->cell[k] / 16] = true;
        }
    assert_int_equal(seen, next - 1);
    assert_true(inbox_is_empty(&in));
    assert_null(inbox_take(&in));
    assert_false(inbox_push(&in, &messages[0])); /* taking makes it short again */
    free(is_seen);
}

static void inbox_is_long_by_bytes_too(void **state) {
    (void)state;
    struct inbox in = {NULL, 0};
    struct message m[2] = {{.count = 1, .bytes = 400 * 1024}, {.count = 1, .bytes = 400 * 1024}};
    assert_false(inbox_push(&in, &m[0]));
    assert_true(inbox_push(&in, &m[1]));
}

static void message_pool_hands_out_each_message_once(void **state) {
    (void)state;
    enum { ROUNDS = 20 };
    struct message *lists[ROUNDS];
    size_t total = 0;
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t count, n = 0;
        lists[i] = message_pool_take(&count);
        for (struct message *m = lists[i]; m != NULL; m = m->next) {
            n++;
            m->count = 1000 + (uint32_t)i;
        }
        assert_true(n == count && n >= 1);
        total += n;
    }
    for (int i = 0; i < ROUNDS; i++) {
        struct message *last = lists[i];
        for (struct message *m = lists[i]; m != NULL; last = m, m = m->next) assert_int_equal(m->count, 1000 + i);
        message_pool_give(lists[i], last);
    }
    size_t again = 0;
    uint32_t count;
    struct message *all = NULL;
    while (again < total) {
        struct message *first = message_pool_take(&count), *last = first;
        while (last->next != NULL) last = last->next;
        last->next = all;
        all = first;
        again += count;
    }
    struct message *last = all;
    while (last->next != NULL) last = last->next;
    message_pool_give(all, last);
}

/* ---- the lane ---- */

/* Cells of several classes, which the program had and another lane freed. */
static void push_freed_cells(struct message *m, size_t n) {
    static const size_t sizes[] = {16, 4096, 48, 1024};
    m->count = m->bytes = 0;
    for (size_t i = 0; i < n; i++) {
        struct cell_ref ref;
        lease(bin_of(sizes[i % 4]), sizes[i % 4], &ref, 1);
        return_cell(ref.mark);
        m->cell[m->count++] = ref.cell;
    }
    inbox_push(&lane->inbox, m);
}

static struct message *one_message(void) {
    uint32_t count;
    struct message *m = message_pool_take(&count);
    assert_non_null(m);
    return m;
}

static void lane_drain_puts_every_cell_into_its_run(void **state) {
    (void)state;
    for (size_t n = 1; n <= MESSAGE_CELLS; n++) push_freed_cells(one_message(), n);
    lane_drain(lane);
    assert_true(inbox_is_empty(&lane->inbox));
    lane_check(lane);
    lane_trim(lane);
    for (unsigned class = 0; class < CLASS_COUNT; class++)
        assert_true(lane->bins[class].current == NULL && lane->bins[class].partial == NULL);
}

static void lane_resolve_finds_every_cell(void **state) {
    (void)state;
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        struct bin *b = &lane->bins[class];
        size_t n = bin_lease(b, class, 0, held, 200);
        for (size_t i = 0; i < n; i++) {
            unsigned said;
            assert_true(lane_resolve(lane, held[i].cell, &said).mark == held[i].mark);
            assert_int_equal(said, class);
        }
        bin_give_back(b, held, n, CELL_CACHED);
    }
    lane_trim(lane);
}

enum wrong {
    INSIDE_A_CELL,
    NOT_OURS,
    OF_A_RUN_THAT_IS_GONE,
    OF_ANOTHER_LANE,
    IN_A_MESSAGE_TWICE,
    IN_TWO_MESSAGES,
    OF_A_FREE_CELL,
};

static void resolve_wrong(void *argument) {
    struct message m = {.count = 2}, again = {.count = 1};
    struct cell_ref *ref = held;
    for (size_t done = 0; done < 5;) done += bin_lease(bin_of(48), class_of_bytes(48), 0, held + done, 5 - done);
    for (size_t i = 0; i < 5; i++) return_cell(ref[i].mark);
    m.cell[0] = ref[0].cell;
    switch (*(enum wrong *)argument) {
    case INSIDE_A_CELL: m.cell[1] = (char *)ref[1].cell + 16; break;
    case NOT_OURS: m.cell[1] = held; break;
    case OF_A_RUN_THAT_IS_GONE: {
        struct run *r = run_create(class_of_bytes(48), 0, 0);
        m.cell[1] = r->base;
        run_retire_locked(r);
        run_retire_locked(r);
        run_destroy(r);
        break;
    }
    case OF_ANOTHER_LANE: m.cell[1] = run_create(class_of_bytes(48), 1, 0)->base; break;
    case IN_A_MESSAGE_TWICE: m.cell[1] = ref[0].cell; break;
    case IN_TWO_MESSAGES:
        m.cell[1] = ref[1].cell;
        again.cell[0] = ref[1].cell;
        break;
    case OF_A_FREE_CELL:
        mark_set(ref[1].mark, CELL_CACHED);
        m.cell[1] = ref[1].cell;
        break;
    }
    inbox_push(&lane->inbox, &m);
    if (again.cell[0] != NULL) inbox_push(&lane->inbox, &again);
    lane_drain(lane);
}

static void lane_drain_stops_at_wrong_pointers(void **state) {
    (void)state;
    static const char *const messages[] = {
        [INSIDE_A_CELL] = ": 16 bytes into a 48-byte cell",
        [NOT_OURS] = "huddle: double free of 0x",
        [OF_A_RUN_THAT_IS_GONE] = "(a 48-byte cell)",
        [OF_ANOTHER_LANE] = "(a 48-byte cell)",
        [IN_A_MESSAGE_TWICE] = "(a 48-byte cell)",
        [IN_TWO_MESSAGES] = "(a 48-byte cell)",
        [OF_A_FREE_CELL] = "(a 48-byte cell)",
    };
    for (enum wrong w = INSIDE_A_CELL; w <= OF_A_FREE_CELL; w++)
        if (!is_stopped(resolve_wrong, &w, messages[w])) fail_msg("case %d was not noticed", (int)w);
}

static void lane_numbers_are_found_once_made(void **state) {
    (void)state;
    assert_ptr_equal(lane_get(0), lane);
    assert_ptr_equal(lane_make_locked(0), lane);
    assert_null(lane_get(LANE_MAX - 1));
    struct lane *last = lane_make_locked(LANE_MAX - 1);
    assert_non_null(last);
    assert_ptr_equal(lane_get(LANE_MAX - 1), last);
    assert_int_equal(last->number, LANE_MAX - 1);
    assert_int_equal((uintptr_t)&last->inbox % 64, 0);
}

int main(void) {
    inside_start();
    seed = random_seed();
    lane = lane_make_locked(0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bin_leases_each_cell_once_and_keeps_its_lists),
        cmocka_unit_test(bin_destroys_runs_that_nobody_uses),
        cmocka_unit_test(bin_takes_back_returning_cells),
        cmocka_unit_test(bin_check_notices_each_broken_rule),
        cmocka_unit_test(bin_purges_free_pages_that_rested_for_a_round),
        cmocka_unit_test(bin_purges_all_at_once),
        cmocka_unit_test(inbox_hands_over_every_pointer_once),
        cmocka_unit_test(inbox_is_long_by_bytes_too),
        cmocka_unit_test(message_pool_hands_out_each_message_once),
        cmocka_unit_test(lane_drain_puts_every_cell_into_its_run),
        cmocka_unit_test(lane_resolve_finds_every_cell),
        cmocka_unit_test(lane_drain_stops_at_wrong_pointers),
        cmocka_unit_test(lane_numbers_are_found_once_made),
        cmocka_unit_test(bin_keeps_b2_when_two_threads_make_a_run),
    };
    return lane == NULL ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
