/* start.c - the beginning and end of processes and threads: options, fork handlers, the report at exit.
 *
 * The first call to malloc can come before libc has set itself up (the dynamic linker, IFUNC resolvers, early
 * constructors): then the options are read later, by the constructor, and hold from there on. This file is the only
 * one in which the allocator asks libc for anything, and nothing of it is on the path of an allocation but a thread's
 * first. */
#include <pthread.h>
#include <sys/auxv.h>

#include "api/api.h"
#include "base/options.h"
#include "heap/fork.h"
#include "observe/stats.h"
#include "os/memory.h"
#include "os/print.h"
#include "os/system.h"
#include "run/index.h"
#include "thread/heap.h"
#include "zone/zone.h"

extern char **environ __attribute__((weak));

/* glibc's, under stdio's list lock, which fork takes after the prepare handlers: so must we, or a thread that holds it
 * and allocates waits for us while we wait for it (glibc BZ 19431). */
void _IO_list_lock(void) __attribute__((weak));
void _IO_list_unlock(void) __attribute__((weak));
#ifdef __GLIBC__
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *dso) __attribute__((weak));
#endif

enum start_state { START_NONE, START_SYSTEM, START_OPTIONS };
static enum start_state state; /* the first call is made before there is a second thread */

static void report(const char *part, size_t length, const char *problem) {
    struct printer p = PRINTER(2);
    print_string(&p, "huddle: HUDDLE_OPTIONS: ");
    print_bytes(&p, part, length);
    print_string(&p, ": ");
    print_string(&p, problem);
    print_string(&p, "\n");
    print_flush(&p);
}

/* The value of HUDDLE_OPTIONS, or NULL. */
static const char *variable(void) {
    static const char name[] = "HUDDLE_OPTIONS=";
    for (char **e = environ; *e != NULL; e++) {
        size_t i = 0;
        while (name[i] != '\0' && (*e)[i] == name[i]) i++;
        if (name[i] == '\0') return *e + i;
    }
    return NULL;
}

void api_start(void) {
    if (state == START_NONE) {
        os_system_init();
        state = START_SYSTEM;
    }
    if (state == START_OPTIONS || &environ == NULL || environ == NULL) return;
    state = START_OPTIONS;
    const char *text = getauxval(AT_SECURE) ? NULL : variable();
    if (text != NULL) options_parse(text, report);
    os_memory_init(getauxval(AT_PAGESZ), options.page_size);
    os_keep_small(&run_index, sizeof run_index);
}

void *api_no_memory(void) {
    errno = ENOMEM;
    return NULL;
}

void heap_before_first(void) {
    api_start();
}

/* ---- threads ---- */

static pthread_key_t key;
static enum { KEY_NONE, KEY_MAKING, KEY_MADE, KEY_REFUSED } key_state; /* atomic */

/* Destructors run in up to four rounds; ours waits for the last one, so that it is rarely followed by others. */
enum { ROUNDS = 4 };

static void at_thread_exit(void *round) {
    uintptr_t n = (uintptr_t)round;
    if (n < ROUNDS && pthread_setspecific(key, (void *)(n + 1)) == 0) return;
    zone_end_scratch();
    heap_thread_exit();
}

/* A thread has got a heap. The first one needs no destructor: it ends with the process, or leaves a heap to a process
 * whose main thread ended early. */
bool heap_created(void) {
    static bool has_first; /* relaxed: in a process's first heap there is one thread */
    if (!relaxed_load(&has_first)) {
        relaxed_store(&has_first, true);
        return true;
    }
    int expected = KEY_NONE;
    if (__atomic_compare_exchange_n((int *)&key_state, &expected, KEY_MAKING, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        release_store(&key_state, pthread_key_create(&key, at_thread_exit) == 0 ? KEY_MADE : KEY_REFUSED);
    while (acquire_load(&key_state) == KEY_MAKING) system_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    /* Without a key the thread's cells stay in its magazines when it ends. */
    return acquire_load(&key_state) == KEY_MADE && pthread_setspecific(key, (void *)1) == 0;
}

/* ---- the process ---- */

static void prepare(void) {
    if (_IO_list_lock != NULL) _IO_list_lock();
    fork_prepare();
}

static void parent(void) {
    fork_parent();
    if (_IO_list_unlock != NULL) _IO_list_unlock();
}

static void child(void) {
    if (key_state == KEY_MAKING) key_state = KEY_NONE; /* by a thread that is not here */
    fork_child();
    if (_IO_list_unlock != NULL) _IO_list_unlock();
}

__attribute__((constructor(101))) static void construct(void) {
    api_start();
#ifdef __GLIBC__
    if (__register_atfork != NULL) __register_atfork(prepare, parent, child, NULL);
#else
    pthread_atfork(prepare, parent, child);
#endif
}

__attribute__((destructor(101))) static void finish(void) {
    if (options.stats[0] == '\0') return;
    struct huddle_stats s = {.struct_size = sizeof s};
    stats_collect(&s);
    if (options.stats[0] == '-' && options.stats[1] == '\0') {
        json_write(2, &s);
        return;
    }
    int d = os_open_append(options.stats);
    if (d < 0) return;
    json_write(d, &s);
    os_close(d);
}
