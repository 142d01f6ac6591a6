/* forks.h - forks of a process whose threads are busy: they run until the fork, and rest while the child runs, so that it has
 * the CPUs and thousands of forks take seconds. */
#ifndef TESTS_FORK_FORKS_H
#define TESTS_FORK_FORKS_H

#include <sched.h>
#include <sys/wait.h>

#include "allocator.h"

static bool forks_is_over, forks_is_resting; /* atomic */
static size_t forks_steps;                   /* atomic: what the threads have done, together */

/* For each busy thread, between any two things that it does: whether to go on. */
static inline bool forks_step(void) {
    __atomic_add_fetch(&forks_steps, 1, __ATOMIC_RELAXED);
    while (__atomic_load_n(&forks_is_resting, __ATOMIC_RELAXED)) usleep(100);
    return !__atomic_load_n(&forks_is_over, __ATOMIC_RELAXED);
}

/* Before fork number i: the threads do a few things, a different number each time. */
static inline void forks_wait(size_t i) {
    size_t first = __atomic_load_n(&forks_steps, __ATOMIC_RELAXED);
    while (__atomic_load_n(&forks_steps, __ATOMIC_RELAXED) - first < 2 + i % 13) sched_yield();
}

/* In the parent, with what fork returned: the child ends with status 0. */
static inline void forks_expect_success(size_t i, pid_t pid) {
    int status = -1;
    __atomic_store_n(&forks_is_resting, true, __ATOMIC_RELAXED);
    EXPECT(pid > 0 && waitpid(pid, &status, 0) == pid);
    if (status != 0) fprintf(stderr, "fork %zu: the child's status is 0x%x\n", i, (unsigned)status);
    EXPECT(status == 0);
    __atomic_store_n(&forks_is_resting, false, __ATOMIC_RELAXED);
}

static inline void forks_end(void) {
    __atomic_store_n(&forks_is_over, true, __ATOMIC_RELAXED);
}

#endif
