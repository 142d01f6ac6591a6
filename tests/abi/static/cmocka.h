/* cmocka.h - the part of cmocka's interface that these tests use, for programs that are linked statically: cmocka comes
 * as a shared library only. A failing assertion leaves its test with longjmp, as in cmocka. */
#ifndef TESTS_ABI_STATIC_CMOCKA_H
#define TESTS_ABI_STATIC_CMOCKA_H

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct CMUnitTest {
    const char *name;
    void (*function)(void **state);
};

enum check_outcome { CHECK_PASSED, CHECK_FAILED, CHECK_SKIPPED };

static jmp_buf check_leave;

static void __attribute__((noreturn, unused)) check_fail(const char *file, int line, const char *what) {
    printf("%s:%d: %s\n", file, line, what);
    longjmp(check_leave, CHECK_FAILED);
}

static void __attribute__((unused)) check_equal(unsigned long long a, unsigned long long b, int want, const char *text,
                                                const char *file, int line) {
    if ((a == b) == want) return;
    printf("%llu and %llu: ", a, b);
    check_fail(file, line, text);
}

#define CHECK_LEAVE_UNLESS(x, text) ((x) ? (void)0 : check_fail(__FILE__, __LINE__, text))
#define CHECK_NUMBER(x) ((unsigned long long)(x))

#define cmocka_unit_test(f) {#f, f}
#define skip() longjmp(check_leave, CHECK_SKIPPED)
#define fail_msg(...) (printf(__VA_ARGS__), check_fail(__FILE__, __LINE__, ""))
#define assert_true(x) CHECK_LEAVE_UNLESS(x, #x)
#define assert_false(x) CHECK_LEAVE_UNLESS(!(x), "not " #x)
#define assert_null(x) CHECK_LEAVE_UNLESS((x) == NULL, #x " is NULL")
#define assert_non_null(x) CHECK_LEAVE_UNLESS((x) != NULL, #x " is not NULL")
#define assert_int_equal(a, b) check_equal(CHECK_NUMBER(a), CHECK_NUMBER(b), 1, #a " == " #b, __FILE__, __LINE__)
#define assert_int_not_equal(a, b) check_equal(CHECK_NUMBER(a), CHECK_NUMBER(b), 0, #a " != " #b, __FILE__, __LINE__)
#define assert_ptr_equal(a, b) CHECK_LEAVE_UNLESS((const void *)(a) == (const void *)(b), #a " == " #b)
#define assert_ptr_not_equal(a, b) CHECK_LEAVE_UNLESS((const void *)(a) != (const void *)(b), #a " != " #b)
#define assert_memory_equal(a, b, n) CHECK_LEAVE_UNLESS(memcmp(a, b, n) == 0, #a " holds what " #b " holds")
#define assert_string_equal(a, b) CHECK_LEAVE_UNLESS(strcmp(a, b) == 0, #a " is " #b)

static int __attribute__((unused)) check_run(const struct CMUnitTest *tests, size_t count) {
    int volatile failed = 0;
    for (size_t volatile i = 0; i < count; i++) {
        const char *volatile outcome = "ok";
        switch (setjmp(check_leave)) {
        case CHECK_PASSED: tests[i].function(NULL); break;
        case CHECK_FAILED: outcome = "FAILED", failed++; break;
        default: outcome = "skipped";
        }
        printf("%-8s%s\n", outcome, tests[i].name);
        fflush(stdout);
    }
    printf("%zu passed or skipped, %d failed\n", count - (size_t)failed, failed);
    return failed;
}

#define cmocka_run_group_tests(tests, setup, teardown) \
    ((void)(setup), (void)(teardown), check_run(tests, sizeof(tests) / sizeof((tests)[0])))

#endif
