/* A resolver of an indirect function runs while the program is being relocated, before anything else of it: it may
 * allocate. (A static program's resolvers run before it has thread-local storage; they cannot, nor can they on glibc.)
 * */
#include "abi.h"

#include <malloc.h>

static unsigned char *from_resolver;

static int chosen(int n) {
    return n + 1;
}

int (*resolve(void))(int);

int (*resolve(void))(int) {
    from_resolver = malloc(100);
    unsigned char *scratch = calloc(1, 100000);
    from_resolver = realloc(from_resolver, 3000);
    fill(from_resolver, 3000, 1);
    free(scratch);
    free(NULL);
    return chosen;
}

int indirect(int n) __attribute__((ifunc("resolve")));

static void a_resolver_may_allocate(void **state) {
    (void)state;
    assert_int_equal(indirect(1), 2);
    assert_non_null(from_resolver);
    assert_true(malloc_usable_size(from_resolver) >= 3000);
    assert_true(is_filled(from_resolver, 3000, 1));
    free(from_resolver);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        RUNS_ON_HUDDLE,
        cmocka_unit_test(a_resolver_may_allocate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
