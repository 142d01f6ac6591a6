/* bombard.c - a timer at 30 kHz whose handler allocates, grows and frees, and frees blocks of the thread that it
 * interrupted, while that thread does the same. At the end nothing is live, and every block has had its contents.
 *
 *   bombard [THREADS [OPERATIONS]]       each thread has its timer, and does so many operations
 *
 * One signal can be pending: those that come while the handler runs are lost, and a thread that has no CPU gets one for
 * all of that time. So the timers are faster than what is wanted: 20,000 handlers in a second of a thread's CPU time. */
#include "allocator.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

#ifdef TEST_FROM_OUTSIDE
static uint64_t random_next(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}
static size_t random_below(uint64_t *state, size_t n) {
    return (size_t)(((__uint128_t)random_next(state) * n) >> 64);
}
static struct huddle_stats statistics(void) {
    struct huddle_stats s = {.struct_size = sizeof s};
    EXPECT(huddle_stats(&s));
    return s;
}
#endif

enum { HELD = 200, GIVEN = 8, KEPT = 40, THREADS_MAX = 16 };
#ifdef __SANITIZE_THREAD__
enum { RATE_HZ = 10000 }; /* a handler takes long there, and the thread has to get on in between */
#else
enum { RATE_HZ = 30000 };
#endif

struct block {
    unsigned char *at;
    size_t bytes;
    unsigned char fill;
};

/* A slot belongs to whoever took the pointer out of it by exchange: the thread, or its handler. */
struct worker {
    uint64_t random, handler_random;
    struct block held[HELD];       /* the thread's own */
    struct block *given[GIVEN];    /* to the handler to free, atomic */
    struct block *taken[KEPT];     /* by the handler, for the thread to free, atomic */
    struct block kept[KEPT];       /* what the handler has for long */
    uint64_t handled;              /* by the handler */
    uint64_t cpu_ns;               /* of the thread, handlers included */
    unsigned long is_working;      /* by the thread */
};

static struct worker workers[THREADS_MAX];
static __thread struct worker *self __attribute__((tls_model("initial-exec")));
static size_t operations;
static uint64_t seed;

static size_t some_bytes(uint64_t *random) {
    size_t kind = random_below(random, 10000);
    if (kind < 8000) return 1 + random_below(random, 1000);
    if (kind < 9900) return 1 + random_below(random, 20000);
    if (kind < 9998) return 1 + random_below(random, 200000);
    return ((size_t)9 << 20) + random_below(random, 5000);
}

/* All of a small block is written and compared, and the ends of a large one: time is for calls. */
enum { ENDS = 512 };

static void fill(struct block b) {
    size_t n = b.bytes < ENDS ? b.bytes : ENDS;
    memset(b.at, b.fill, n);
    memset(b.at + b.bytes - n, b.fill, n);
}

static void expect_value(const unsigned char *p, size_t n, unsigned char value) {
    EXPECT(n == 0 || (p[0] == value && memcmp(p, p + 1, n - 1) == 0));
}

static void expect_filled(struct block b) {
    size_t n = b.bytes < ENDS ? b.bytes : ENDS;
    expect_value(b.at, n, b.fill);
    expect_value(b.at + b.bytes - n, n, b.fill);
}

static struct block make(uint64_t *random) {
    struct block b = {.bytes = some_bytes(random), .fill = (unsigned char)(1 + random_below(random, 255))};
    bool is_zeroed = random_below(random, 4) == 0;
    b.at = is_zeroed ? allocate_zeroed(b.bytes) : allocate(b.bytes);
    EXPECT(b.at != NULL && (uintptr_t)b.at % 16 == 0);
    if (is_zeroed) expect_value(b.at, b.bytes, 0);
    fill(b);
    return b;
}

static void end(struct block *b) {
    if (b->at == NULL) return;
    expect_filled(*b);
    release(b->at);
    b->at = NULL;
}

static void change(struct block *b, uint64_t *random) {
    size_t bytes = some_bytes(random), both = bytes < b->bytes ? bytes : b->bytes;
    expect_filled(*b);
    b->at = reallocate(b->at, bytes);
    EXPECT(b->at != NULL);
    expect_value(b->at, both < ENDS ? both : ENDS, b->fill);
    b->bytes = bytes;
    fill(*b);
}

/* A block with its description in front of its contents. */
static struct block *make_boxed(uint64_t *random) {
    size_t bytes = some_bytes(random);
    struct block *b = allocate(sizeof *b + bytes);
    EXPECT(b != NULL);
    *b = (struct block){(unsigned char *)(b + 1), bytes, (unsigned char)random_below(random, 256)};
    fill(*b);
    return b;
}

static void end_boxed(struct block *b) {
    if (b == NULL) return;
    EXPECT(b->at == (unsigned char *)(b + 1));
    expect_filled(*b);
    release(b);
}

static void on_timer(int number) {
    (void)number;
    int error = errno;
    struct worker *w = self;
    if (w != NULL && __atomic_load_n(&w->is_working, __ATOMIC_RELAXED)) {
        uint64_t *random = &w->handler_random;
        w->handled++;
        struct block b = make(random);
        if (random_below(random, 2) == 0) change(&b, random);
        end_boxed(__atomic_exchange_n(&w->given[random_below(random, GIVEN)], NULL, __ATOMIC_ACQ_REL));
        end_boxed(__atomic_exchange_n(&w->taken[random_below(random, KEPT)], make_boxed(random), __ATOMIC_ACQ_REL));
        struct block *k = &w->kept[random_below(random, KEPT)];
        end(k);
        *k = b;
    }
    errno = error;
}

static void work(struct worker *w) {
    for (size_t i = 0; i < operations; i++) {
        struct block *b = &w->held[random_below(&w->random, HELD)];
        size_t what = random_below(&w->random, 10);
        if (what == 0) {
            end_boxed(__atomic_exchange_n(&w->given[random_below(&w->random, GIVEN)], make_boxed(&w->random), __ATOMIC_ACQ_REL));
        } else if (what == 1) {
            end_boxed(__atomic_exchange_n(&w->taken[random_below(&w->random, KEPT)], NULL, __ATOMIC_ACQ_REL));
        } else if (b->at == NULL) {
            *b = make(&w->random);
        } else if (what == 2) {
            change(b, &w->random);
        } else {
            end(b);
        }
    }
}

static uint64_t cpu_time_ns(void) {
    struct timespec t;
    EXPECT(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void *run(void *number) {
    struct worker *w = &workers[(uintptr_t)number];
    w->random = seed + 2 * (uintptr_t)number;
    w->handler_random = ~w->random;
    self = w;
    /* Not by libc's names for it: the kernel's timer, to this thread. */
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    event._sigev_un._tid = (int)syscall(SYS_gettid);
    int timer = -1;
    EXPECT(syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer) == 0);
    struct itimerspec often = {{0, 1000000000 / RATE_HZ}, {0, 1000000000 / RATE_HZ}};
    __atomic_store_n(&w->is_working, 1, __ATOMIC_RELAXED);
    EXPECT(syscall(SYS_timer_settime, timer, 0, &often, NULL) == 0);
    uint64_t start = cpu_time_ns();
    work(w);
    w->cpu_ns = cpu_time_ns() - start;
    __atomic_store_n(&w->is_working, 0, __ATOMIC_RELAXED);
    EXPECT(syscall(SYS_timer_delete, timer) == 0);
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    for (size_t i = 0; i < HELD; i++) end(&w->held[i]);
    for (size_t i = 0; i < GIVEN; i++) end_boxed(w->given[i]);
    for (size_t i = 0; i < KEPT; i++) end_boxed(w->taken[i]);
    for (size_t i = 0; i < KEPT; i++) end(&w->kept[i]);
    return NULL;
}

static void *run_thread(void *number) {
    run(number);
    allocator_thread_ends();
    return NULL;
}

static void *nothing(void *unused) {
    return unused;
}

/* What libc keeps for threads, it has after as many as there will be. */
static void run_threads(unsigned count, void *(*f)(void *)) {
    pthread_t ids[THREADS_MAX];
    for (unsigned i = 0; i < count; i++) EXPECT(pthread_create(&ids[i], NULL, f, (void *)(uintptr_t)i) == 0);
    for (unsigned i = 0; i < count; i++) EXPECT(pthread_join(ids[i], NULL) == 0);
}

int main(int argc, char **argv) {
    unsigned threads = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1;
    operations = argc > 2 ? strtoul(argv[2], NULL, 10) : 1500000;
    EXPECT(threads >= 1 && threads <= THREADS_MAX);
    const char *text = getenv("HUDDLE_TEST_SEED");
    seed = text != NULL ? strtoull(text, NULL, 0) : (uint64_t)time(NULL);
    printf("HUDDLE_TEST_SEED=%llu\n", (unsigned long long)seed);
    fflush(stdout);
    alarm(280);
    allocator_start();
    struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
    EXPECT(sigaction(SIGUSR1, &action, NULL) == 0);
    release(allocate(1));
    if (threads > 1) run_threads(threads, nothing);
    struct huddle_stats before = statistics();
    if (threads > 1) run_threads(threads, run_thread);
    else run((void *)0);
    trim();
    struct huddle_stats after = statistics();
    uint64_t handled = 0, cpu_ns = 0;
    for (unsigned i = 0; i < threads; i++) {
        handled += workers[i].handled;
        cpu_ns += workers[i].cpu_ns;
    }
    printf("%u threads, %zu operations each; %llu signals, %.0f in a second of CPU time; live: %zu bytes, then %zu\n",
           threads, operations, (unsigned long long)handled, (double)handled * 1e9 / (double)cpu_ns, before.live_bytes,
           after.live_bytes);
    EXPECT(after.live_bytes == before.live_bytes && after.live_blocks == before.live_blocks);
    EXPECT(handled >= operations / 300);
#ifndef TEST_FROM_OUTSIDE
    stats_check_all();
#endif
    return 0;
}
