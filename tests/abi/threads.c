/* Threads that come and go: allocation at the very end of a thread, blocks that outlive theirs, small stacks. */
#include "abi.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "huddle/huddle.h"

enum { KEYS = 5, ROUNDS = 4 };
static pthread_key_t keys[KEYS];
static int destructor_calls;
static bool destructor_damage;

/* Replaces its block by one that it allocates, so that it is called again until the thread's rounds are used up. */
static void destroy(void *value) {
    unsigned char *block = value;
    size_t n = 100 + block[0] % 50u * 700u;
    destructor_calls++;
    if (!is_filled(block, 100, block[0])) destructor_damage = true;
    block = realloc(block, n);
    fill(block, n, 7);
    unsigned char *scratch[40];
    for (size_t i = 0; i < COUNT(scratch); i++) scratch[i] = calloc(1, i * 100);
    for (size_t i = 0; i < COUNT(scratch); i++) free(scratch[i]);
    if (!is_filled(block, n, 7)) destructor_damage = true;
    unsigned char *next = malloc(100);
    fill(next, 100, (unsigned)destructor_calls);
    free(block);
    for (int k = 0; k < KEYS; k++) {
        if (pthread_getspecific(keys[k]) != NULL) continue;
        pthread_setspecific(keys[k], next);
        return;
    }
    free(next);
}

static void *with_keys(void *argument) {
    for (int k = 0; k < KEYS; k += 2) {
        unsigned char *block = malloc(100);
        fill(block, 100, (unsigned)k);
        pthread_setspecific(keys[k], block);
    }
    return argument;
}

static void run_thread(void *(*function)(void *), void *argument) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, function, argument), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void key_destructors_may_allocate_in_all_their_rounds(void **state) {
    (void)state;
    for (int k = 0; k < KEYS; k++) assert_int_equal(pthread_key_create(&keys[k], destroy), 0);
    for (int i = 0; i < 200; i++) {
        destructor_calls = 0;
        run_thread(with_keys, NULL);
        assert_true(destructor_calls >= ROUNDS);
    }
    assert_false(destructor_damage);
    for (int k = 0; k < KEYS; k++) pthread_key_delete(keys[k]);
}

static void *first_call(void *argument) {
    switch ((uintptr_t)argument) {
    case 0: free(NULL); break;
    case 1: free(malloc(1)); break;
    case 2: free(realloc(NULL, 0)); break;
    case 3: free(calloc(3, 1000)); break;
    case 4: free(aligned_alloc(4096, 10)); break;
    case 5: free(malloc(MIB)); break;
    case 6: malloc_trim(0); break;
    case 7: mallinfo2(); break;
    default: malloc_usable_size(NULL);
    }
    return NULL;
}

static void a_thread_may_begin_with_any_call(void **state) {
    (void)state;
    for (int i = 0; i < 20; i++)
        for (uintptr_t call = 0; call < 9; call++) run_thread(first_call, (void *)call);
}

/* A thread's first call frees what another allocated. */
static void *free_it(void *block) {
    free(block);
    return NULL;
}

static void a_thread_may_only_free(void **state) {
    (void)state;
    for (size_t n = 1; n < 3 * MIB; n = n * 2 + 1) run_thread(free_it, malloc(n));
}

static size_t resident_kib(void) {
    size_t kib = 0;
    char line[200];
    FILE *status = fopen("/proc/self/status", "r");
    assert_non_null(status);
    while (fgets(line, sizeof line, status) != NULL) sscanf(line, "VmRSS: %zu", &kib);
    fclose(status);
    return kib;
}

/* Allocates, frees some, leaves one behind for main. */
static void *short_life(void *argument) {
    void *blocks[60];
    for (size_t i = 0; i < COUNT(blocks); i++) {
        blocks[i] = malloc(i * 37);
        memset(blocks[i], 1, i * 37);
    }
    for (size_t i = 1; i < COUNT(blocks); i++) free(blocks[i]);
    *(void **)argument = blocks[0];
    return NULL;
}

static void memory_stays_flat_over_two_thousand_threads(void **state) {
    (void)state;
    __typeof__(huddle_stats) *stats = FIND(huddle_stats);
    static struct huddle_stats now = {.struct_size = sizeof now};
    size_t start = 0, heaps = 0;
    for (int i = 0; i < 2000; i++) {
        void *left = NULL;
        run_thread(short_life, &left);
        free(left);
        if (i != 200) continue;
        start = resident_kib();
        if (stats != NULL && stats(&now)) heaps = now.heaps;
    }
    if (!TEST_IS_EMULATED) assert_true(resident_kib() < start + 1024);
    if (stats == NULL) return;
    assert_true(stats(&now));
    assert_int_equal(now.heaps, heaps);
}

enum { THREADS = 8, HELD = 400 };
static void *held[THREADS][HELD];

static void *leave_blocks(void *argument) {
    void **mine = argument;
    for (size_t i = 0; i < HELD; i++) fill(mine[i] = malloc(i * 5 + 1), i * 5 + 1, (unsigned)i);
    return NULL;
}

static void blocks_outlive_the_threads_that_allocated_them(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++) assert_int_equal(pthread_create(&threads[t], NULL, leave_blocks, held[t]), 0);
    for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
    for (int t = 0; t < THREADS; t++) {
        for (size_t i = 0; i < HELD; i++) {
            assert_true(is_filled(held[t][i], i * 5 + 1, (unsigned)i));
            assert_non_null(held[t][i] = realloc(held[t][i], i * 9 + 1));
            assert_true(is_filled(held[t][i], i * 5 + 1, (unsigned)i));
        }
    }
    for (int t = 0; t < THREADS; t++)
        for (size_t i = 0; i < HELD; i++) free(held[t][i]);
}

static bool small_stack_damage;

static void *on_a_small_stack(void *argument) {
    for (size_t n = 1; n < 2 * MIB; n = n * 3 / 2 + 1) {
        unsigned char *p = malloc(n);
        fill(p, n, 1);
        p = realloc(p, n * 2);
        if (!is_filled(p, n, 1)) small_stack_damage = true;
        free(p);
        free(memalign(256, n));
    }
    void *blocks[200];
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < COUNT(blocks); i++) blocks[i] = malloc(i * 3);
        for (size_t i = 0; i < COUNT(blocks); i++) free(blocks[i]);
    }
    malloc_trim(0);
    return argument;
}

static void threads_with_the_smallest_stacks_may_allocate(void **state) {
    (void)state;
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstacksize(&attributes, (size_t)sysconf(_SC_THREAD_STACK_MIN)), 0);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(pthread_create(&thread, &attributes, on_a_small_stack, NULL), 0);
        pthread_join(thread, NULL);
    }
    pthread_attr_destroy(&attributes);
    assert_false(small_stack_damage);
}

static void *cancelled(void *argument) {
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
    for (;;) {
        free(malloc(100));
        pthread_testcancel();
    }
    return argument;
}

static void cancelled_threads_leave_the_allocator_usable(void **state) {
    (void)state;
    for (int i = 0; i < 100; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, cancelled, NULL), 0);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
    }
    free(malloc(100));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        RUNS_ON_HUDDLE,
        cmocka_unit_test(key_destructors_may_allocate_in_all_their_rounds),
        cmocka_unit_test(a_thread_may_begin_with_any_call),
        cmocka_unit_test(a_thread_may_only_free),
        cmocka_unit_test(memory_stays_flat_over_two_thousand_threads),
        cmocka_unit_test(blocks_outlive_the_threads_that_allocated_them),
        cmocka_unit_test(threads_with_the_smallest_stacks_may_allocate),
        cmocka_unit_test(cancelled_threads_leave_the_allocator_usable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
