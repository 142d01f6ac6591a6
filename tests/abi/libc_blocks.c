/* Blocks of libc's own malloc, which reach the program's free: from a handle of libc, and from a library that was opened with
 * RTLD_DEEPBIND; and huddle's blocks in such a library. The first argument is the library (deepbind_library.c). */
#include "abi.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>

static const size_t sizes[] = {0, 1, 24, 100, 1000, 5000, 100000, 1000000, 50000000};
enum { SIZES = sizeof sizes / sizeof sizes[0], MANY = 200 };

static const char *library_path;
static void *(*libc_malloc)(size_t n);

static void libc_blocks_have_their_size_and_can_be_freed(void **state) {
    (void)state;
    for (size_t i = 0; i < SIZES; i++) {
        unsigned char *p = libc_malloc(sizes[i]);
        assert_non_null(p);
        assert_true(malloc_usable_size(p) >= sizes[i]);
        fill(p, sizes[i], (unsigned)i);
        assert_true(is_filled(p, sizes[i], (unsigned)i));
        errno = 77;
        free(p);
        assert_int_equal(errno, 77);
    }
}

static void libc_blocks_keep_their_contents_in_realloc(void **state) {
    (void)state;
    for (size_t i = 0; i < SIZES; i++) {
        unsigned char *p = libc_malloc(sizes[i]);
        fill(p, sizes[i], (unsigned)i);
        p = realloc(p, sizes[i] * 2 + 1);
        assert_non_null(p);
        assert_true(is_filled(p, sizes[i], (unsigned)i));
        free(p);
    }
}

static void *allocate_many(void *blocks) {
    for (size_t i = 0; i < MANY; i++) ((void **)blocks)[i] = libc_malloc(50 * i);
    return NULL;
}

static void libc_blocks_of_another_arena_can_be_freed(void **state) {
    (void)state;
    void *blocks[MANY];
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, allocate_many, blocks), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (size_t i = 0; i < MANY; i++) free(blocks[i]);
}

static void blocks_go_both_ways_with_a_deeply_bound_library(void **state) {
    (void)state;
    void *library = dlopen(library_path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    assert_non_null(library);
    void *(*its_malloc)(size_t) = (void *(*)(size_t))dlsym(library, "library_malloc");
    void (*its_free)(void *) = (void (*)(void *))dlsym(library, "library_free");
    assert_true(its_malloc != NULL && its_free != NULL);
    for (size_t i = 0; i < SIZES; i++) {
        unsigned char *p = its_malloc(sizes[i]);
        fill(p, sizes[i], (unsigned)i);
        free(p);
        p = malloc(sizes[i]);
        fill(p, sizes[i], (unsigned)i);
        its_free(p);
    }
    assert_int_equal(dlclose(library), 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        RUNS_ON_HUDDLE,
        cmocka_unit_test(libc_blocks_have_their_size_and_can_be_freed),
        cmocka_unit_test(libc_blocks_keep_their_contents_in_realloc),
        cmocka_unit_test(libc_blocks_of_another_arena_can_be_freed),
        cmocka_unit_test(blocks_go_both_ways_with_a_deeply_bound_library),
    };
    if (argc < 2) return 1;
    library_path = argv[1];
    libc_malloc = (void *(*)(size_t))dlsym(dlopen("libc.so.6", RTLD_NOW), "malloc");
    if (libc_malloc == NULL || libc_malloc == malloc) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
