#include "os/lock.h"

#include <time.h>

#include "base/options.h"

/* The kernel's linux/futex.h is not where every libc finds it. */
enum { FUTEX_WAIT_PRIVATE = 0 | 128, FUTEX_WAKE_PRIVATE = 1 | 128 };

#if HUDDLE_AUDIT
__thread uint32_t lock_held_ranks __attribute__((tls_model("initial-exec")));

enum { HOLD_NTH = 2, HOLD_US = 200 };

void lock_hold(enum lock_rank rank) {
    static uint32_t taken; /* relaxed: a lost count is no harm */
    if (relaxed_load(&options.hold_rank) != rank + 1u || !os_is_threaded()) return;
    uint32_t n = relaxed_load(&taken) + 1;
    relaxed_store(&taken, n);
    struct timespec t = {.tv_nsec = HOLD_US * 1000};
    if (n % HOLD_NTH == 0) system_call(SYS_nanosleep, (long)&t, 0, 0, 0, 0, 0);
}
#endif

/* About a microsecond: longer than any lock is held while its holder runs. */
enum { SPINS = 40 };

static inline void cpu_relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    __asm__ volatile("yield");
#endif
}

void lock_wait(struct lock *l) {
    for (int i = 0; i < SPINS; i++) {
        uint32_t expected = 0;
        if (relaxed_load(&l->word) == 0 &&
            __atomic_compare_exchange_n(&l->word, &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return;
        cpu_relax();
    }
    /* Taking it as 2 is right even when nobody else sleeps: it costs one wake-up call too many, once. */
    while (__atomic_exchange_n(&l->word, 2, __ATOMIC_ACQUIRE) != 0)
        system_call(SYS_futex, (long)&l->word, FUTEX_WAIT_PRIVATE, 2, 0, 0, 0);
}

void lock_wake(struct lock *l) {
    system_call(SYS_futex, (long)&l->word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}
