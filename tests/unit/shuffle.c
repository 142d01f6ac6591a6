/* shuffle.c - option shuffle=1: the order in which the cells of a batch are handed out is any with equal probability,
 * and every cell is handed out once. With fixed seeds, so each figure is the same in every run. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "allocator.h"

enum {
    BATCH = 16, /* half of what a magazine begins with */
    BATCHES = 20000,
    BYTES = 64,
    FIRST = 4, /* the order among the first four: 24 */
    ORDERS = 24,
};

/* Of the chi-square distribution: 0.1 % of uniform samples lie below, 0.1 % above. Degrees of freedom: with a table of
 * positions and cells whose rows and columns each have the same sum, 15 * 15; with the orders 23. */
static const double places_least = 163.1, places_most = 297.0, orders_least = 7.5, orders_most = 49.7;

static char *batch[BATCH];

/* Allocates one batch, in the order in which its refill puts the cells. */
static void draw(void) {
    for (int i = 0; i < BATCH; i++) batch[i] = allocate(BYTES);
    EXPECT(magazine_count(heap_of_thread()->by_size[BYTES / GRAIN_BYTES]) == 0);
}

static int rank(int i, int n) {
    int below = 0;
    for (int k = 0; k < n; k++) below += batch[k] < batch[i];
    return below;
}

/* Back to their run, each time in the same order: the next batch must not owe its order to this one's. */
static void give_back(void) {
    char *sorted[BATCH];
    for (int i = 0; i < BATCH; i++) sorted[rank(i, BATCH)] = batch[i];
    for (int i = 0; i < BATCH; i++) release(sorted[i]);
    heap_flush(heap_of_thread());
}

static double chi_square(const unsigned *counts, size_t n, double expected) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (counts[i] - expected) * (counts[i] - expected) / expected;
    return sum;
}

static void order_is_uniform_for(void *seed) {
    static unsigned places[BATCH * BATCH], orders[ORDERS];
    options.shuffle = 1;
    release(allocate(BYTES));
    heap_flush(heap_of_thread());
    heap_of_thread()->random = *(uint64_t *)seed;
    for (int k = 0; k < BATCHES; k++) {
        draw();
        for (int i = 0; i < BATCH; i++) {
            for (int j = 0; j < i; j++) EXPECT(batch[i] != batch[j]);
            places[i * BATCH + rank(i, BATCH)]++;
        }
        int order = 0;
        for (int i = 0; i < FIRST; i++) order = order * (i + 1) + rank(i, i + 1);
        orders[order]++;
        give_back();
    }
    /* A batch puts one cell in each place and one place to each cell, so counts spread a little less than freely. */
    double p = chi_square(places, BATCH * BATCH, (double)BATCHES / BATCH) * (BATCH - 1) / BATCH;
    double o = chi_square(orders, ORDERS, (double)BATCHES / ORDERS);
    printf("seed %llu: chi-square %.1f of places, %.1f of orders\n", *(unsigned long long *)seed, p, o);
    fflush(stdout);
    EXPECT(p > places_least && p < places_most);
    EXPECT(o > orders_least && o < orders_most);
}

static void order_is_uniform(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) assert_true(ends_well(order_is_uniform_for, &seed));
}

/* A batch is smaller where cells are large; never one of a single cell while a magazine may hold more. */
static void each_class_is_shuffled(void *unused) {
    (void)unused;
    options.shuffle = 1;
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        size_t bytes = size_class_bytes(class), descents = 0;
        char *last = NULL, *p[64];
        release(allocate(1));
        heap_flush(heap_of_thread());
        heap_of_thread()->random = class + 1;
        for (int i = 0; i < 64; last = p[i++]) {
            p[i] = allocate(bytes);
            descents += p[i] < last;
        }
        EXPECT(bytes * 4 > 32 * KIB || descents > 8); /* of half of 32 KiB, 2 or more */
        for (int i = 0; i < 64; i++) release(p[i]);
    }
}

static void cells_of_each_class_are_shuffled(void **state) {
    (void)state;
    assert_true(ends_well(each_class_is_shuffled, NULL));
}

/* All cells of several runs, while some are freed and come again. */
static void no_cell_is_lost_or_doubled_in(void *unused) {
    (void)unused;
    enum { COUNT = 30000 };
    static char *held[COUNT];
    static uint8_t seen[2 * COUNT];
    uint64_t random = 7;
    options.shuffle = 1;
    size_t before = statistics().live_blocks, distinct = 0;
    for (int i = 0; i < COUNT; i++) memset(held[i] = allocate(48), i & 255, 48);
    for (int k = 0; k < 4 * COUNT; k++) {
        int i = (int)random_below(&random, COUNT);
        for (int b = 0; b < 48; b++) EXPECT(held[i][b] == (char)(i & 255));
        release(held[i]);
        memset(held[i] = allocate(48), i & 255, 48);
    }
    struct huddle_stats s = statistics();
    EXPECT(s.live_blocks - before == COUNT);
    stats_check_all();
    /* Every cell of the runs is live, cached, free or fresh, and nothing besides. */
    const struct huddle_class_stats *c = &s.classes[2];
    EXPECT(c->cell_bytes == 48 && c->live >= COUNT);
    for (int i = 0; i < COUNT; i++) release(held[i]);
    trim();
    EXPECT(statistics().classes[2].live == c->live - COUNT);
    /* And each one comes once more. */
    uintptr_t least = UINTPTR_MAX;
    for (int i = 0; i < COUNT; i++) least = min_size(least, (uintptr_t)(held[i] = allocate(48)));
    for (int i = 0; i < COUNT; i++) {
        size_t at = ((uintptr_t)held[i] - least) / 16;
        if (at < sizeof seen * 8 && (seen[at / 8] >> at % 8 & 1) == 0) distinct++;
        if (at < sizeof seen * 8) seen[at / 8] |= (uint8_t)(1 << at % 8);
    }
    EXPECT(distinct == COUNT);
}

static void no_cell_is_lost_or_doubled(void **state) {
    (void)state;
    assert_true(ends_well(no_cell_is_lost_or_doubled_in, NULL));
}

/* Set when the heap is there already; the seed is the system's. */
static void is_seeded_when_first_needed_in(void *unused) {
    (void)unused;
    release(allocate(BYTES));
    heap_flush(heap_of_thread());
    EXPECT(heap_of_thread()->random == 0);
    options.shuffle = 1;
    release(allocate(BYTES));
    EXPECT(heap_of_thread()->random != 0);
}

static void is_seeded_when_first_needed(void **state) {
    (void)state;
    assert_true(ends_well(is_seeded_when_first_needed_in, NULL));
}

int main(void) {
    allocator_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_is_uniform),
        cmocka_unit_test(cells_of_each_class_are_shuffled),
        cmocka_unit_test(no_cell_is_lost_or_doubled),
        cmocka_unit_test(is_seeded_when_first_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
