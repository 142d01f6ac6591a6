/* fork.c - the process forks while other threads are busy in the allocator. The child has one thread, and everything
 * works in it. */
#include "race.h"

#include <sys/wait.h>

#include "heap/fork.h"

enum { WORKERS = 3, HELD = 50 };

static size_t forks;
static bool is_over; /* atomic */
static uint64_t *shared[HELD];

static void *work(void *number) {
    uint64_t random = (uintptr_t)number + 1;
    race_wait();
    while (!acquire_load(&is_over)) {
        uint64_t *p = allocate(16 + random_below(&random, random_below(&random, 30) == 0 ? 400000 : 4000));
        EXPECT(p != NULL);
        *p = (uint64_t)(uintptr_t)p;
        p = __atomic_exchange_n(&shared[random_below(&random, HELD)], p, __ATOMIC_ACQ_REL);
        EXPECT(p == NULL || *p == (uint64_t)(uintptr_t)p);
        if (p != NULL) release(p);
    }
    allocator_thread_ends();
    return NULL;
}

/* All kinds of blocks; then everything that the parent's threads left, with its contents; then all is walked. */
static void work_in_the_child(void) {
    alarm(60); /* a lock that nobody will release ends in a failure, not in a wait */
    for (int round = 0; round < 3; round++) {
        void *held[100];
        for (size_t i = 0; i < 100; i++) {
            size_t n = i % 10 == 0 ? 20000 * i + 16 : 16 + i * 40;
            held[i] = allocate(n);
            EXPECT(held[i] != NULL);
            memset(held[i], 1, n);
        }
        for (size_t i = 0; i < 100; i++) release(held[i]);
        trim();
    }
    for (size_t i = 0; i < HELD; i++) {
        EXPECT(shared[i] == NULL || *shared[i] == (uint64_t)(uintptr_t)shared[i]);
        release(shared[i]);
    }
    trim();
    stats_check_all();
    EXPECT(statistics().heaps <= 2); /* this thread's, and the one for late calls if there is one */
}

static void *keep_forking(void *unused) {
    (void)unused;
    race_wait();
    release(allocate(100));
    for (size_t i = 0; i < forks; i++) {
        fork_prepare();
        pid_t pid = fork();
        if (pid == 0) {
            fork_child();
            work_in_the_child();
            _exit(0);
        }
        fork_parent();
        int status = -1;
        EXPECT(pid > 0 && waitpid(pid, &status, 0) == pid);
        if (status != 0) fprintf(stderr, "the child's status is 0x%x\n", (unsigned)status);
        EXPECT(status == 0);
    }
    release_store(&is_over, true);
    allocator_thread_ends();
    return NULL;
}

static void *run(void *number) {
    return (uintptr_t)number < WORKERS ? work(number) : keep_forking(number);
}

int main(int argc, char **argv) {
    allocator_start();
    options.lanes = 1; /* so that the child needs every lock that a worker may have held, */
    options.cache_kib = 0; /* and workers take them often */
    forks = race_amount(argc, argv, 50);
    race_run(WORKERS + 1, run);
    for (size_t i = 0; i < HELD; i++) release(shared[i]);
    race_finish();
    return 0;
}
