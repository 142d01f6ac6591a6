/* What happens before main: the first call ever, constructors that run before all others, and errno.
 *
 * The argument names the first call into the allocator; it is made by an initializer that runs before the constructors
 * of all libraries, huddle's included. */
#include "abi.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>

static int errno_in_main;
static bool was_called;
static void *first;

static void make_first_call(int argc, char **argv, char **environment) {
    const char *call = argc > 1 ? argv[1] : "none";
    (void)environment;
    was_called = true;
    if (strcmp(call, "free") == 0) free(opaque(NULL));
    else if (strcmp(call, "malloc_usable_size") == 0) was_called = malloc_usable_size(opaque(NULL)) == 0;
    else if (strcmp(call, "realloc_0") == 0) first = realloc(opaque(NULL), opaque_size(0));
    else if (strcmp(call, "realloc") == 0) first = realloc(opaque(NULL), 1000);
    else if (strcmp(call, "calloc") == 0) first = calloc(10, 100);
    else if (strcmp(call, "malloc") == 0) first = malloc(100);
    else if (strcmp(call, "malloc_large") == 0) first = malloc(5 * MIB);
    else if (strcmp(call, "malloc_impossible") == 0) was_called = malloc(opaque_size(SIZE_MAX)) == NULL;
    else if (strcmp(call, "memalign") == 0) first = memalign(MIB, 100);
    else if (strcmp(call, "posix_memalign") == 0) was_called = posix_memalign(&first, 64, 100) == 0;
    else if (strcmp(call, "malloc_trim") == 0) malloc_trim(0);
    else if (strcmp(call, "mallinfo2") == 0) mallinfo2();
    else if (strcmp(call, "mallopt") == 0) mallopt(M_ARENA_MAX, 1);
    else if (strcmp(call, "none") != 0) was_called = false;
    if (strcmp(call, "malloc_impossible") == 0) errno = 0; /* this one is our own doing */
}

static void (*const before_all_constructors)(int, char **, char **)
    __attribute__((section(".preinit_array"), used)) = make_first_call;

static unsigned char *from_constructor, *from_late_constructor;

__attribute__((constructor(101))) static void earliest_constructor(void) {
    from_constructor = malloc(1000);
    fill(from_constructor, 1000, 1);
    for (size_t n = 0; n < 70000; n = n * 2 + 1) free(malloc(n));
}

__attribute__((constructor)) static void usual_constructor(void) {
    from_late_constructor = realloc(from_constructor, 50000);
    from_constructor = NULL;
}

static void the_first_call_works(void **state) {
    (void)state;
    assert_true(was_called);
    size_t usable = malloc_usable_size(first);
    if (first != NULL) fill(first, usable, 2);
    void *other = malloc(usable);
    assert_non_null(other);
    assert_ptr_not_equal(other, first);
    if (first != NULL) assert_true(is_filled(first, usable, 2));
    free(first);
    free(other);
}

static void constructors_may_allocate(void **state) {
    (void)state;
    assert_null(from_constructor);
    assert_non_null(from_late_constructor);
    assert_true(is_filled(from_late_constructor, 1000, 1));
    free(from_late_constructor);
}

static void errno_is_0_when_main_starts(void **state) {
    (void)state;
    assert_int_equal(errno_in_main, 0);
}

int main(int argc, char **argv) {
    errno_in_main = errno;
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {
        RUNS_ON_HUDDLE,
        cmocka_unit_test(errno_is_0_when_main_starts),
        cmocka_unit_test(the_first_call_works),
        cmocka_unit_test(constructors_may_allocate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
