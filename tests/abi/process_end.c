/* Calls after the end of main: atexit handlers, destructors of the program and of a library, threads that still run.
 *
 * Each test forks; what runs late in the child reports itself, one letter each, through a pipe. The argument of the
 * program is a shared library with a destructor (late_library.c); static programs have none. */
#include "abi.h"

#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *library_path;
static int report_to = -1;
static unsigned char *from_main;

static void report(char letter) {
    if (report_to >= 0 && write(report_to, &letter, 1) != 1) _exit(3);
}

/* Frees what main left, and works on. Says `letter`, or '!' when something is wrong. */
static void late_work(char letter) {
    bool intact = from_main != NULL && is_filled(from_main, 1000, 6);
    free(from_main);
    for (size_t n = 1; n < 300 * KIB; n = n * 2 + 1) {
        unsigned char *p = malloc(n);
        fill(p, n, 3);
        p = realloc(p, n + 500);
        intact = intact && is_filled(p, n, 3);
        free(p);
    }
    from_main = malloc(1000);
    fill(from_main, 1000, 6);
    report(intact ? letter : '!');
}

static void at_exit(void) {
    if (report_to >= 0) late_work('a');
}

__attribute__((destructor)) static void usual_destructor(void) {
    if (report_to >= 0) late_work('d');
}

__attribute__((destructor(101))) static void last_destructor(void) {
    if (report_to >= 0) late_work('l');
}

typedef void child(void);

/* Runs the function in a child and compares what it reported. */
static void expect_from_child(child *function, const char *letters) {
    char got[64] = "";
    size_t n = 0;
    int ends[2], status = -1;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        report_to = ends[1];
        close(ends[0]);
        from_main = malloc(1000);
        fill(from_main, 1000, 6);
        function();
        _exit(4);
    }
    close(ends[1]);
    for (ssize_t r; n < sizeof got - 1 && (r = read(ends[0], got + n, sizeof got - 1 - n)) > 0;) n += (size_t)r;
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_string_equal(got, letters);
}

static void leave(void) {
    atexit(at_exit);
    exit(0);
}

static void handlers_and_destructors_may_free_and_allocate(void **state) {
    (void)state;
    expect_from_child(leave, "adl");
}

#ifndef LINKED_STATICALLY
static void leave_with_a_library(void) {
    void *library = dlopen(library_path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) _exit(5);
    *(int *)dlsym(library, "late_report_to") = report_to;
    *(void **)dlsym(library, "late_block") = malloc(100);
    leave();
}

static void destructors_of_libraries_may_free_and_allocate(void **state) {
    (void)state;
    expect_from_child(leave_with_a_library, "adlL");
}
#endif

static void *exit_from_thread(void *argument) {
    leave();
    return argument;
}

static void leave_from_a_thread(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, exit_from_thread, NULL);
    pthread_join(thread, NULL);
}

static void a_thread_may_call_exit(void **state) {
    (void)state;
    expect_from_child(leave_from_a_thread, "adl");
}

static pthread_t main_thread;

static void *outlive_main(void *argument) {
    pthread_join(main_thread, NULL);
    late_work('t');
    return argument;
}

static void pthread_exit_from_main(void) {
    pthread_t thread;
    atexit(at_exit);
    main_thread = pthread_self();
    pthread_create(&thread, NULL, outlive_main, NULL);
    free(malloc(100));
    pthread_exit(NULL);
}

static void main_may_end_before_its_threads(void **state) {
    (void)state;
    expect_from_child(pthread_exit_from_main, "tadl");
}

static bool volatile running;

static void *never_stop(void *argument) {
    void *blocks[100] = {NULL};
    for (size_t i = 0;; i++) {
        free(blocks[i % COUNT(blocks)]);
        blocks[i % COUNT(blocks)] = malloc(i % 3000);
        running = true;
    }
    return argument;
}

static void leave_while_threads_allocate(void) {
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, never_stop, NULL);
    }
    while (!running) sched_yield();
    leave();
}

static void exit_works_while_threads_allocate(void **state) {
    (void)state;
    for (int i = 0; i < 6; i++) expect_from_child(leave_while_threads_allocate, "adl");
}

static void at_quick_exit_work(void) {
    late_work('q');
}

static void leave_quickly(void) {
    at_quick_exit(at_quick_exit_work);
    quick_exit(0);
}

static void quick_exit_handlers_may_allocate(void **state) {
    (void)state;
    expect_from_child(leave_quickly, "q");
}

int main(int argc, char **argv) {
    library_path = argc > 1 ? argv[1] : "";
    const struct CMUnitTest tests[] = {
        RUNS_ON_HUDDLE,
        cmocka_unit_test(handlers_and_destructors_may_free_and_allocate),
#ifndef LINKED_STATICALLY
        cmocka_unit_test(destructors_of_libraries_may_free_and_allocate),
#endif
        cmocka_unit_test(a_thread_may_call_exit),
        cmocka_unit_test(main_may_end_before_its_threads),
        cmocka_unit_test(exit_works_while_threads_allocate),
        cmocka_unit_test(quick_exit_handlers_may_allocate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
