/* The statistics against the program's own count, at points where no thread is inside the allocator. */
#include "abi.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>

#include "huddle/huddle.h"

static __typeof__(huddle_stats) *stats;
static struct huddle_stats now;

enum { BLOCKS = 20000 };
static void *blocks[BLOCKS];
static size_t usable[BLOCKS];   /* of each block that the program has */
static size_t bytes, count;     /* what the program has */
static size_t bytes0, count0;   /* what it had at the start, by the statistics */
static size_t large, large0;    /* of bytes, those in blocks above the largest class */
static unsigned random_state = 1;

static unsigned next_random(void) {
    random_state = random_state * 1103515245u + 12345;
    return random_state >> 8;
}

static void ask(void) {
    now.struct_size = sizeof now;
    assert_true(stats(&now));
}

static void start_counting(void) {
    ask();
    bytes0 = now.live_bytes;
    count0 = now.live_blocks;
    large0 = now.large_bytes;
    bytes = count = large = 0;
}

static void check_counts(void) {
    ask();
    assert_int_equal(now.live_bytes - bytes0, bytes);
    assert_int_equal(now.live_blocks - count0, count);
    assert_int_equal(now.large_bytes - large0, large);
}

static void note(unsigned i, void *block) {
    assert_non_null(block);
    blocks[i] = block;
    usable[i] = malloc_usable_size(block);
    bytes += usable[i];
    count++;
    if (usable[i] > 32768) large += usable[i];
}

static void forget(unsigned i) {
    bytes -= usable[i];
    count--;
    if (usable[i] > 32768) large -= usable[i];
    blocks[i] = NULL;
}

static size_t some_size(void) {
    unsigned r = next_random() % 100;
    if (r < 80) return next_random() % 1000;
    if (r < 97) return next_random() % 40000;
    return next_random() % 500000;
}

static void *some_block(void) {
    size_t n = some_size();
    switch (next_random() % 4) {
    case 0: return calloc(1, n);
    case 1: return memalign((size_t)16 << next_random() % 10, n);
    default: return malloc(n);
    }
}

static void one_operation(void) {
    unsigned i = next_random() % BLOCKS;
    if (blocks[i] == NULL) {
        note(i, some_block());
    } else if (next_random() % 3 == 0) {
        void *old = blocks[i];
        forget(i);
        note(i, realloc(old, some_size() + 1));
    } else {
        free(blocks[i]);
        forget(i);
    }
}

static void free_all(void) {
    for (unsigned i = 0; i < BLOCKS; i++) {
        if (blocks[i] == NULL) continue;
        free(blocks[i]);
        forget(i);
    }
}

static void live_bytes_are_the_program_s_own_count(void **state) {
    (void)state;
    start_counting();
    for (int i = 0; i < 60000; i++) {
        one_operation();
        if (i % 6000 == 0) check_counts();
    }
    check_counts();
    free_all();
    check_counts();
}

/* Frees every second block, from a thread that may be in another lane. */
static void *free_half(void *argument) {
    (void)argument;
    for (unsigned i = 0; i < BLOCKS; i += 2) free(blocks[i]);
    return NULL;
}

static void run_thread(void *(*function)(void *)) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, function, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void *do_nothing(void *argument) {
    return argument;
}

static void live_bytes_are_right_after_another_thread_freed(void **state) {
    (void)state;
    run_thread(do_nothing); /* libc keeps something for the first thread */
    start_counting();
    for (int round = 0; round < 5; round++) {
        for (unsigned i = 0; i < BLOCKS; i++)
            if (blocks[i] == NULL) note(i, some_block());
        check_counts();
        run_thread(free_half);
        for (unsigned i = 0; i < BLOCKS; i += 2) forget(i);
        check_counts();
    }
    free_all();
    check_counts();
}

static void *allocate_all(void *argument) {
    (void)argument;
    for (unsigned i = 0; i < BLOCKS; i++) blocks[i] = some_block();
    return NULL;
}

static void live_bytes_count_blocks_of_threads_that_ended(void **state) {
    (void)state;
    run_thread(do_nothing);
    start_counting();
    run_thread(allocate_all);
    for (unsigned i = 0; i < BLOCKS; i++) note(i, blocks[i]);
    check_counts();
    free_all();
    check_counts();
}

static pthread_barrier_t barrier;

/* Frees half of the blocks and stays: its outgoing batches are not full, and not all of them are sent. */
static void *free_half_and_wait(void *argument) {
    free_half(argument);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return NULL;
}

static void live_bytes_are_right_while_the_freeing_thread_lives(void **state) {
    (void)state;
    pthread_t thread;
    run_thread(do_nothing);
    start_counting();
    for (unsigned i = 0; i < BLOCKS; i++) note(i, some_block());
    pthread_barrier_init(&barrier, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, free_half_and_wait, NULL), 0);
    pthread_barrier_wait(&barrier);
    for (unsigned i = 0; i < BLOCKS; i += 2) forget(i);
    check_counts();
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    check_counts();
    free_all();
    check_counts();
}

static void the_parts_of_a_report_add_up(void **state) {
    (void)state;
    for (unsigned i = 0; i < BLOCKS; i++) note(i, some_block());
    ask();
    size_t cells = 0, cell_bytes = 0, cached = 0;
    for (size_t i = 0; i < HUDDLE_CLASSES; i++) {
        const struct huddle_class_stats *c = &now.classes[i];
        assert_true(c->cell_bytes != 0 && c->cell_bytes % 16 == 0);
        if (i != 0) assert_true(c->cell_bytes > now.classes[i - 1].cell_bytes);
        cells += c->live;
        cell_bytes += c->live * c->cell_bytes;
        cached += c->cached * c->cell_bytes;
        if (c->live != 0) assert_true(c->runs != 0);
    }
    assert_int_equal(now.live_blocks, cells + now.large_blocks);
    assert_int_equal(now.live_bytes, cell_bytes + now.large_bytes);
    assert_int_equal(now.cached_bytes, cached);
    size_t lane_bytes = 0;
    for (size_t i = 0; i < now.lanes; i++) lane_bytes += now.lane[i].live_bytes;
    assert_int_equal(lane_bytes, cell_bytes);
    assert_true(now.lanes >= 1 && now.lanes <= HUDDLE_LANES && now.heaps >= 1);
    assert_true(now.run_bytes >= cell_bytes && now.mapped_bytes >= now.live_bytes);
    assert_true(now.peak_mapped_bytes >= now.mapped_bytes && now.metadata_bytes > 0 && now.system_calls > 0);
    free_all();
}

int main(void) {
    stats = FIND(huddle_stats);
    if (stats == NULL) return 77;
    printf("live bytes\n"); /* the stream has its buffer before anything is counted */
    const struct CMUnitTest tests[] = {
        RUNS_ON_HUDDLE,
        cmocka_unit_test(live_bytes_are_the_program_s_own_count),
        cmocka_unit_test(live_bytes_are_right_after_another_thread_freed),
        cmocka_unit_test(live_bytes_count_blocks_of_threads_that_ended),
        cmocka_unit_test(live_bytes_are_right_while_the_freeing_thread_lives),
        cmocka_unit_test(the_parts_of_a_report_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
