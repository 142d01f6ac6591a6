/* busy.c - a busy process forks: threads allocate, free for each other, trim, and ask for statistics, which hold the locks for
 * long; so each lock is held at some fork. The program's fork handlers allocate and free. The child has a complete allocator,
 * with threads, frees the blocks of threads that it does not have, and forks again; some children are execs by vfork. */
#include "allocator.h"

#include <pthread.h>
#include <sys/wait.h>

enum { BUSY = 4, HELD = 64, HANDLERS = 8 };

static bool is_over; /* atomic */
static uint64_t *shared[HELD];
static void *of_handlers[HANDLERS];
static size_t handler_calls;

static size_t some_bytes(unsigned *n) {
    *n = *n * 1103515245 + 12345;
    unsigned kind = *n >> 16 & 63;
    return 16 + (*n >> 8) % (kind == 0 ? 500000u : kind < 8 ? 20000u : 800u);
}

static uint64_t *signed_block(size_t bytes) {
    uint64_t *p = allocate(bytes);
    EXPECT(p != NULL && bytes >= 16);
    p[0] = (uint64_t)(uintptr_t)p;
    p[1] = bytes;
    *((char *)p + bytes - 1) = bytes > 16 ? 'e' : *((char *)p + bytes - 1);
    return p;
}

static void end(uint64_t *p) {
    if (p == NULL) return;
    EXPECT(p[0] == (uint64_t)(uintptr_t)p && (p[1] <= 16 || *((char *)p + p[1] - 1) == 'e'));
    p[0] = 0;
    release(p);
}

static void *be_busy(void *number) {
    unsigned n = (unsigned)(uintptr_t)number + 1;
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        uint64_t *p = signed_block(some_bytes(&n));
        end(__atomic_exchange_n(&shared[(n >> 12) % HELD], p, __ATOMIC_ACQ_REL));
    }
    return NULL;
}

static void *hold_locks(void *unused) {
    struct huddle_stats s = {.struct_size = sizeof s};
    for (size_t i = 0; !__atomic_load_n(&is_over, __ATOMIC_RELAXED); i++) {
        EXPECT(huddle_stats(&s));
        if (i % 16 == 0) huddle_trim(0);
    }
    return unused;
}

static void *begin_and_end(void *unused) {
    release(allocate(1000));
    release(allocate(100000));
    return unused;
}

/* Threads that come and go hold the locks of lists of threads. */
static void *start_threads(void *unused) {
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        pthread_t id;
        EXPECT(pthread_create(&id, NULL, begin_and_end, NULL) == 0 && pthread_join(id, NULL) == 0);
    }
    return unused;
}

/* Fork handlers: what one call allocates the next one frees, in whichever process. */
static void handler(void) {
    handler_calls++;
    for (size_t i = 0; i < HANDLERS; i++) {
        size_t bytes = i == 7 ? 200000 : (size_t)32 << i;
        release(of_handlers[i]);
        of_handlers[i] = i % 2 == 0 ? allocate(bytes) : allocate_zeroed(bytes);
        EXPECT(of_handlers[i] != NULL);
        of_handlers[i] = reallocate(of_handlers[i], bytes + bytes / 3);
        memset(of_handlers[i], 1, bytes);
    }
}

/* Before the library's constructor where the loader has it so; main registers another one after it. */
__attribute__((constructor(101))) static void register_early(void) {
    pthread_atfork(handler, handler, handler);
}

static void *work_in_a_thread(void *number) {
    unsigned n = (unsigned)(uintptr_t)number + 7;
    uint64_t *p[50];
    for (size_t round = 0; round < 4; round++) {
        for (size_t i = 0; i < 50; i++) p[i] = signed_block(some_bytes(&n));
        for (size_t i = 0; i < 50; i++) end(p[i]);
    }
    return NULL;
}

static void expect_one_heap(void) {
    struct huddle_stats s = {.struct_size = sizeof s};
    EXPECT(huddle_stats(&s));
    if (s.heaps != 1) {
        fprintf(stderr, "%zu heaps\n", s.heaps);
        test_failed("one heap", __LINE__);
    }
}

static void work_in_the_child(void) {
    alarm(60);
    expect_one_heap();
    work_in_a_thread(NULL);
    for (size_t i = 0; i < HELD; i++) end(shared[i]);
    pthread_t ids[3];
    for (uintptr_t i = 0; i < 3; i++) EXPECT(pthread_create(&ids[i], NULL, work_in_a_thread, (void *)i) == 0);
    for (size_t i = 0; i < 3; i++) EXPECT(pthread_join(ids[i], NULL) == 0);
    huddle_trim(0);
    pid_t pid = fork();
    EXPECT(pid >= 0);
    if (pid == 0) {
        expect_one_heap();
        work_in_a_thread(NULL);
        _exit(0);
    }
    int status = -1;
    EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
}

static void run_true(void) {
    pid_t pid = vfork();
    if (pid == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    int status = -1;
    EXPECT(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

int main(int argc, char **argv) {
    size_t forks = argc > 1 ? strtoul(argv[1], NULL, 10) : 100;
    allocator_start();
    alarm(280);
    EXPECT(pthread_atfork(handler, handler, handler) == 0);
    pthread_t ids[BUSY + 2];
    for (uintptr_t i = 0; i < BUSY; i++) EXPECT(pthread_create(&ids[i], NULL, be_busy, (void *)i) == 0);
    EXPECT(pthread_create(&ids[BUSY], NULL, hold_locks, NULL) == 0);
    EXPECT(pthread_create(&ids[BUSY + 1], NULL, start_threads, NULL) == 0);
    for (size_t i = 0; i < forks; i++) {
        if (i % 20 == 0) run_true();
        pid_t pid = fork();
        EXPECT(pid >= 0);
        if (pid == 0) {
            work_in_the_child();
            _exit(0);
        }
        int status = -1;
        EXPECT(waitpid(pid, &status, 0) == pid);
        if (status != 0) fprintf(stderr, "fork %zu: the child's status is 0x%x\n", i, (unsigned)status);
        EXPECT(status == 0);
    }
    __atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
    for (size_t i = 0; i < BUSY + 2; i++) EXPECT(pthread_join(ids[i], NULL) == 0);
    for (size_t i = 0; i < HELD; i++) end(shared[i]);
    EXPECT(handler_calls == 4 * forks);
    printf("%zu forks\n", forks);
    return 0;
}
