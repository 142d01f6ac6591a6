/* step.c - a signal at every instruction of a call of the allocator.
 *
 *   step LIBRARY SCENARIO [stride=N] [at_least=N] [at_once]
 *
 * The parent runs this program again with the library preloaded, and traces it. The child repeats one scenario: prepare, a
 * breakpoint, the call, a breakpoint, verify. In round k the parent steps k instructions into the call, delivers SIGUSR1, whose
 * handler allocates, grows and frees, and lets the call end; with stride=N only each N-th instruction has its round. With
 * at_once there is one round, in which the signal comes after each instruction: paths of many thousands are walked so.
 *
 * The child checks in each round that its blocks have their contents, that no two of them overlap, and that the bytes that
 * are live are exactly those that it has. */
#include "allocator.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/wait.h>

#if defined(__x86_64__)

#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>

/* Handlers keep what they get: a cell that the interrupted call has too is seen at the end, when both are full. */
enum { BLOCKS_MAX = 4096, KEPT_MAX = 16384, GIVEN_MAX = 64, CALL_BYTES_MAX = 1024 };

/* ---- the child ---- */

/* What the program has: `bytes` were asked for, and all have the value `fill`. */
struct block {
    unsigned char *at;
    size_t bytes;
    unsigned char fill;
};

static struct block blocks[BLOCKS_MAX]; /* of the scenario */
static size_t block_count;
static struct block kept[KEPT_MAX]; /* by handlers */
static size_t kept_count;
static struct block given[GIVEN_MAX]; /* to handlers, to free */
static size_t given_count;
static volatile sig_atomic_t handled;
static volatile bool is_at_once;
static unsigned char next_fill;

static struct block filled(void *p, size_t bytes) {
    EXPECT(p != NULL && (uintptr_t)p % 16 == 0);
    struct block b = {p, bytes, ++next_fill};
    memset(p, b.fill, bytes);
    return b;
}

static void expect_filled(struct block b) {
    if (b.bytes == 0) return;
    EXPECT(b.at[0] == b.fill && memcmp(b.at, b.at + 1, b.bytes - 1) == 0);
}

static void expect_zero(const unsigned char *p, size_t bytes) {
    EXPECT(p != NULL && p[0] == 0 && memcmp(p, p + 1, bytes - 1) == 0);
}

static void keep(void *p, size_t bytes) {
    EXPECT(block_count < BLOCKS_MAX);
    blocks[block_count++] = filled(p, bytes);
}

/* Stops for the parent, which may answer with another value. */
static inline long breakpoint(long value) {
    __asm__ volatile("int3" : "+a"(value) : : "memory");
    return value;
}

/* Everything that a handler may do, in the sizes of all paths. */
static void on_signal(int number) {
    (void)number;
    int error = errno;
    struct block a = filled(malloc(64), 64);
    unsigned char *zeroed = calloc(5, 1000);
    expect_zero(zeroed, 5000);
    struct block c = filled(zeroed, 5000);
    unsigned char *large = handled % 16 == 0 ? calloc(1, 100000) : NULL;
    if (large != NULL) {
        expect_zero(large, 100000);
        struct block l = filled(large, 100000);
        l.at = realloc(l.at, 150000);
        l.bytes = 100000;
        expect_filled(l);
        free(l.at);
    }
    expect_filled(a);
    a.at = realloc(a.at, 900);
    EXPECT(a.at != NULL);
    expect_filled(a);
    expect_filled(c);
    free(c.at);
    if (given_count != 0) {
        expect_filled(given[--given_count]);
        free(given[given_count].at);
    }
    if (kept_count < KEPT_MAX) kept[kept_count++] = a;
    else free(a.at);
    handled++;
    errno = error;
    if (is_at_once) breakpoint(2);
}

static size_t live_bytes(void) {
    struct huddle_stats s = {.struct_size = sizeof s};
    EXPECT(huddle_stats(&s));
    return s.live_bytes;
}

static int by_address(const void *a, const void *b) {
    const struct block *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

static void expect_no_overlap(void) {
    static struct block all[BLOCKS_MAX + KEPT_MAX + GIVEN_MAX];
    size_t n = 0;
    for (size_t i = 0; i < block_count; i++) all[n++] = blocks[i];
    for (size_t i = 0; i < kept_count; i++) all[n++] = kept[i];
    for (size_t i = 0; i < given_count; i++) all[n++] = given[i];
    for (size_t i = 0; i < n; i++) {
        size_t room = huddle_usable_size(all[i].at);
        EXPECT(room >= all[i].bytes);
        all[i].bytes = room;
    }
    qsort(all, n, sizeof *all, by_address); /* so few are sorted without memory, or with memory that is given back */
    for (size_t i = 1; i < n; i++) EXPECT(all[i - 1].at + all[i - 1].bytes <= all[i].at);
}

static size_t usable_of(const struct block *b, size_t n) {
    size_t sum = 0;
    for (size_t i = 0; i < n; i++) sum += huddle_usable_size(b[i].at);
    return sum;
}

static void free_blocks(struct block *b, size_t *n) {
    while (*n != 0) {
        expect_filled(b[--*n]);
        free(b[*n].at);
    }
}

/* Nobody's but the round's: what libc allocates for the threads that a scenario makes is made in the rounds before. */
static size_t others_bytes;

static void verify(bool is_first) {
    expect_no_overlap();
    for (size_t i = 0; i < block_count; i++) expect_filled(blocks[i]);
    for (size_t i = 0; i < kept_count; i++) expect_filled(kept[i]);
    for (size_t i = 0; i < given_count; i++) expect_filled(given[i]);
    size_t own = usable_of(blocks, block_count) + usable_of(kept, kept_count) + usable_of(given, given_count);
    size_t live = live_bytes();
    if (is_first) others_bytes = live - own;
    if (live != others_bytes + own) {
        fprintf(stderr, "%zu bytes are live, %zu of them the test's, %zu others'\n", live, own, others_bytes);
        test_failed("live bytes", __LINE__);
    }
    free_blocks(blocks, &block_count);
    free_blocks(kept, &kept_count);
    free_blocks(given, &given_count);
    EXPECT(live_bytes() == others_bytes);
}

/* ---- what is called ---- */

static long go_on; /* the parent's answer at the first breakpoint: 0 ends the child */

#define CALL(statement)          \
    do {                         \
        go_on = breakpoint(1);   \
        statement;               \
        breakpoint(0);           \
    } while (0)

static void hit(void) {
    void *volatile p = NULL, *volatile q = NULL;
    CALL(p = malloc(64); q = malloc(100); free(p));
    keep(q, 100);
}

static void miss(void) {
    void *volatile p = NULL;
    huddle_trim(0);
    CALL(p = malloc(80));
    keep(p, 80);
}

static void miss_without_entry(void) {
    void *volatile p = NULL;
    huddle_trim(0);
    CALL(p = malloc(20000));
    keep(p, 20000);
}

static void zeroed(void) {
    unsigned char *volatile p = NULL;
    CALL(p = calloc(4, 40));
    expect_zero(p, 160);
    keep(p, 160);
}

static void zeroed_large(void) {
    unsigned char *volatile p = NULL;
    CALL(p = calloc(1, 70000));
    expect_zero(p, 70000);
    keep(p, 70000);
}

/* A signal may come between the end of realloc and the store of its result: the old block is nobody's then. */
static void resize(size_t from, size_t to) {
    struct block b = filled(malloc(from), from);
    void *volatile p = NULL;
    CALL(p = realloc(b.at, to));
    b.at = p;
    b.bytes = from < to ? from : to;
    expect_filled(b);
    keep(p, to);
}

static void resize_moves(void) {
    resize(100, 700);
}

static void resize_in_place(void) {
    resize(100, 104);
}

static void resize_becomes_large(void) {
    resize(900, 60000);
}

static void resize_large_grows(void) {
    resize(70000, 300000);
}

static void resize_large_shrinks(void) {
    resize(400000, 80000);
}

static void large(void) {
    void *volatile p = NULL, *volatile q = NULL;
    CALL(p = malloc(300000); q = malloc(300000); free(p));
    keep(q, 300000);
}

static void huge(void) {
    void *volatile p = NULL;
    huddle_trim(0);
    CALL(p = malloc((size_t)9 << 20); free(p));
}

static void aligned(void) {
    void *volatile p = NULL, *volatile q = NULL;
    CALL(p = memalign(256, 300); q = memalign((size_t)1 << 18, 1000); free(p); free(q));
}

/* More frees than a magazine holds. */
static void frees_in_a_row(void) {
    static void *p[200];
    huddle_trim(0);
    for (size_t i = 0; i < 200; i++) p[i] = filled(malloc(200), 200).at;
    CALL(for (size_t i = 0; i < 200; i++) free(p[i]));
}

static void statistics(void) {
    struct huddle_stats s = {.struct_size = sizeof s};
    keep(malloc(100), 100);
    CALL(huddle_stats(&s));
    EXPECT(s.live_bytes != 0);
}

static void trimming(void) {
    void *volatile p = malloc(500000);
    for (size_t i = 0; i < 50; i++) keep(malloc(100 * i + 1), 100 * i + 1);
    free(p);
    CALL(huddle_trim(0));
}

/* ---- calls that need a second thread ---- */

static sem_t asked, answered;
static void *foreign[40]; /* that thread's blocks */

static void *provide(void *unused) {
    (void)unused;
    for (;;) {
        while (sem_wait(&asked) != 0) {
        }
        for (size_t i = 0; i < 40; i++) foreign[i] = filled(malloc(120), 120).at;
        sem_post(&answered);
    }
    return NULL;
}

static void get_foreign_blocks(void) {
    static bool is_running;
    pthread_t id;
    if (!is_running) {
        EXPECT(sem_init(&asked, 0, 0) == 0 && sem_init(&answered, 0, 0) == 0);
        EXPECT(pthread_create(&id, NULL, provide, NULL) == 0);
        is_running = true;
    }
    sem_post(&asked);
    while (sem_wait(&answered) != 0) {
    }
}

static void free_for_another_lane(void) {
    get_foreign_blocks();
    CALL(for (size_t i = 0; i < 40; i++) free(foreign[i]));
}

static void *first_call(void *unused) {
    (void)unused;
    void *volatile p = NULL;
    CALL(p = malloc(64); free(p); p = malloc(200));
    return p;
}

static void run_thread(void *(*f)(void *), void **result) {
    pthread_t id;
    EXPECT(pthread_create(&id, NULL, f, NULL) == 0 && pthread_join(id, result) == 0);
}

static void thread_begins(void) {
    void *p;
    run_thread(first_call, &p);
    keep(p, 200);
}

/* Keys are gone through in the order of their making, in up to four rounds, and the allocator makes its key with the
 * process's second thread. In the last round the call lies between the destructors of the first and the last key. */
static pthread_key_t first_key, last_key;
static __thread int first_rounds, last_rounds;

static void first_destructor(void *value) {
    pthread_setspecific(first_key, value);
    if (++first_rounds == 4) go_on = breakpoint(1);
}

static void last_destructor(void *value) {
    pthread_setspecific(last_key, value);
    if (++last_rounds == 4) breakpoint(0);
}

static void *use_and_end(void *unused) {
    (void)unused;
    for (size_t i = 1; i < 6; i++) free(malloc(i * 150));
    void *p = malloc(300);
    pthread_setspecific(first_key, p);
    pthread_setspecific(last_key, p);
    return p;
}

static void *use(void *unused) {
    (void)unused;
    free(malloc(10));
    return NULL;
}

static void thread_ends(void) {
    static bool has_keys;
    void *p;
    if (!has_keys) {
        EXPECT(pthread_key_create(&first_key, first_destructor) == 0);
        free(malloc(10));
        run_thread(use, &p);
        EXPECT(pthread_key_create(&last_key, last_destructor) == 0);
        has_keys = true;
    }
    run_thread(use_and_end, &p);
    keep(p, 300);
}

static void process_forks(void) {
    volatile pid_t pid = -1;
    keep(malloc(150), 150);
    CALL(pid = fork(); if (pid == 0) {
        expect_filled(blocks[0]);
        for (size_t i = 1; i < 100000; i *= 3) free(filled(malloc(i), i).at);
        _exit(0);
    });
    int status = -1;
    while (waitpid(pid, &status, 0) != pid) EXPECT(errno == EINTR);
    EXPECT(status == 0);
}

static const struct scenario {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    {"hit", hit},
    {"miss", miss},
    {"miss_without_entry", miss_without_entry},
    {"zeroed", zeroed},
    {"zeroed_large", zeroed_large},
    {"resize_moves", resize_moves},
    {"resize_in_place", resize_in_place},
    {"resize_becomes_large", resize_becomes_large},
    {"resize_large_grows", resize_large_grows},
    {"resize_large_shrinks", resize_large_shrinks},
    {"large", large},
    {"huge", huge},
    {"aligned", aligned},
    {"frees_in_a_row", frees_in_a_row},
    {"statistics", statistics},
    {"trimming", trimming},
    {"free_for_another_lane", free_for_another_lane},
    {"thread_begins", thread_begins},
    {"thread_ends", thread_ends},
    {"process_forks", process_forks},
};

enum { WARM_ROUNDS = 3 }; /* nothing is delivered in them; the figures of the last one are what later ones are compared with */

_Noreturn static void run_child(const char *name) {
    const struct scenario *s = NULL;
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        if (strcmp(scenarios[i].name, name) == 0) s = &scenarios[i];
    EXPECT(s != NULL && huddle_stats != NULL);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    EXPECT(sigaction(SIGUSR1, &action, NULL) == 0);
    for (int round = 0;; round++) {
        for (size_t i = 0; round >= WARM_ROUNDS && i < 8; i++) {
            size_t bytes = i % 4 == 3 ? 80000 : i % 4 == 2 ? 9000 : 64 + i;
            given[i] = filled(malloc(bytes), bytes);
            given_count = i + 1;
        }
        s->run();
        is_at_once = go_on == 2;
        verify(round < WARM_ROUNDS);
        if (go_on == 0) break;
    }
    _exit(0);
}

/* ---- the parent ---- */

struct stop {
    pid_t thread;
    struct user_regs_struct registers;
};

static const char *name;

_Noreturn static void give_up(const char *what, size_t round, size_t instruction, long value) {
    printf("%s: round %zu, instruction %zu: %s %ld\n", name, round, instruction, what, value);
    exit(1);
}

static size_t round_now, instruction_now;

/* How the thread that is being traced was last let go: other signals, such as SIGCHLD, may not end its stepping. */
static pid_t resumed_thread;
static int resumed_how;

/* The next time that a thread of the child stops by SIGTRAP. New threads, and other signals, go on. */
static struct stop next_stop(void) {
    for (;;) {
        int status;
        pid_t thread = waitpid(-1, &status, __WALL);
        if (thread < 0) give_up("waitpid: errno", round_now, instruction_now, errno);
        if (WIFSTOPPED(status)) {
            int number = WSTOPSIG(status);
            struct stop s = {.thread = thread};
            if (number == SIGTRAP && status >> 16 == 0) {
                if (ptrace(PTRACE_GETREGS, thread, NULL, &s.registers) == 0) return s;
                give_up("PTRACE_GETREGS: errno", round_now, instruction_now, errno);
            }
            if (number == SIGSEGV || number == SIGABRT || number == SIGILL) {
                struct user_regs_struct r;
                ptrace(PTRACE_GETREGS, thread, NULL, &r);
                printf("%s: signal %d at 0x%llx\n", name, number, r.rip);
            }
            int how = thread == resumed_thread ? resumed_how : PTRACE_CONT;
            ptrace((enum __ptrace_request)how, thread, NULL, number == SIGSTOP || number == SIGTRAP ? 0L : (long)number);
        } else if (WIFSIGNALED(status)) {
            give_up("ended by signal", round_now, instruction_now, WTERMSIG(status));
        } else if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
            give_up("ended with status", round_now, instruction_now, WEXITSTATUS(status));
        }
    }
}

/* A repeated string instruction stops after each repetition, which may be a million: from the third on it is left in one go,
 * by a breakpoint behind it. */
static bool is_string_instruction(pid_t thread, unsigned long long at, unsigned *bytes) {
    unsigned long code = (unsigned long)ptrace(PTRACE_PEEKTEXT, thread, at, NULL);
    *bytes = (code >> 8 & 0xff) == 0x48 ? 3 : 2;
    unsigned operation = (unsigned)(code >> (*bytes - 1) * 8 & 0xff);
    return (code & 0xff) == 0xf3 && (operation == 0xa4 || operation == 0xa5 || operation == 0xaa || operation == 0xab);
}

static struct stop go(pid_t thread, int request, long signal_number) {
    resumed_thread = thread;
    resumed_how = request;
    if (ptrace((enum __ptrace_request)request, thread, NULL, signal_number) != 0)
        give_up("ptrace: errno", round_now, instruction_now, errno);
    return next_stop();
}

static struct stop step(struct stop s) {
    enum { REPETITIONS = 3 };
    static unsigned repeated;
    unsigned long long from = s.registers.rip;
    unsigned bytes;
    pid_t thread = s.thread;
    s = go(thread, PTRACE_SINGLESTEP, 0);
    if (s.thread != thread) give_up("another thread stops", round_now, instruction_now, s.thread);
    repeated = s.registers.rip == from ? repeated + 1 : 0;
    if (repeated < REPETITIONS || !is_string_instruction(thread, from, &bytes)) return s;
    unsigned long long behind = from + bytes;
    unsigned long code = (unsigned long)ptrace(PTRACE_PEEKTEXT, thread, behind, NULL);
    ptrace(PTRACE_POKETEXT, thread, behind, (code & ~0xfful) | 0xcc);
    s = go(thread, PTRACE_CONT, 0);
    ptrace(PTRACE_POKETEXT, thread, behind, code);
    if (s.registers.rip != behind + 1) give_up("stops elsewhere", round_now, instruction_now, (long)s.registers.rip);
    s.registers.rip = behind;
    ptrace(PTRACE_SETREGS, thread, NULL, &s.registers);
    repeated = 0;
    return s;
}

static void answer(struct stop *s, long value) {
    s->registers.rax = (unsigned long long)value;
    if (ptrace(PTRACE_SETREGS, s->thread, NULL, &s->registers) != 0) give_up("PTRACE_SETREGS: errno", 0, 0, errno);
}

/* From the end of one round to the breakpoint before the next call. */
static struct stop to_the_call(pid_t thread, long what_then) {
    struct stop s = go(thread, PTRACE_CONT, 0);
    if (s.registers.rax != 1) give_up("no breakpoint before the call", round_now, 0, (long)s.registers.rax);
    answer(&s, what_then);
    return s;
}

static void finish(pid_t child, pid_t thread) {
    struct stop s = to_the_call(thread, 0);
    s = go(s.thread, PTRACE_CONT, 0);
    ptrace(PTRACE_CONT, s.thread, NULL, 0L);
    int status = -1;
    for (pid_t ended; (ended = waitpid(-1, &status, __WALL)) > 0;) {
        if (WIFSTOPPED(status)) ptrace(PTRACE_CONT, ended, NULL, 0L);
        else if (ended == child) break;
    }
    if (status != 0) give_up("the child's status at the end", round_now, 0, status);
}

/* A round for each instruction. Returns how many there were in the last call. */
static size_t one_by_one(struct stop *s, unsigned long long end, size_t stride, size_t *delivered) {
    for (size_t k = 0;; k += stride) {
        round_now++;
        *s = to_the_call(s->thread, 1);
        size_t i = 0;
        while (i < k && s->registers.rip != end) {
            instruction_now = ++i;
            *s = step(*s);
        }
        if (s->registers.rip == end) return i;
        *s = go(s->thread, PTRACE_CONT, SIGUSR1);
        if (s->registers.rip != end) give_up("stops elsewhere", round_now, i, (long)s->registers.rip);
        ++*delivered;
    }
}

static bool is_blocked(pid_t thread) {
    uint64_t mask = 0;
    ptrace(PTRACE_GETSIGMASK, thread, sizeof mask, &mask);
    return (mask >> (SIGUSR1 - 1) & 1) != 0;
}

/* One round, with a signal after each instruction: to the handler's breakpoint at its end, and from there by steps to where it
 * came from. Where signals are blocked, as in parts of libc, none is sent. */
static size_t at_once(struct stop *s, unsigned long long end, size_t *delivered) {
    *s = to_the_call(s->thread, 2);
    *s = go(s->thread, PTRACE_CONT, 0); /* the round in which the handler learns that it has to stop */
    round_now++;
    *s = to_the_call(s->thread, 2);
    size_t i = 0;
    for (*s = step(*s); s->registers.rip != end; *s = step(*s)) {
        instruction_now = ++i;
        struct user_regs_struct from = s->registers;
        if (is_blocked(s->thread)) continue;
        *s = go(s->thread, PTRACE_CONT, SIGUSR1);
        if (s->registers.rax != 2) give_up("no breakpoint at the handler's end", round_now, i, (long)s->registers.rax);
        do {
            *s = go(s->thread, PTRACE_SINGLESTEP, 0);
        } while (s->registers.rip != from.rip || s->registers.rsp != from.rsp);
        ++*delivered;
    }
    return i;
}

static size_t argument(int argc, char **argv, const char *key, size_t otherwise) {
    for (int i = 3; i < argc; i++) {
        size_t n = strlen(key);
        if (strncmp(argv[i], key, n) == 0) return argv[i][n] == '=' ? strtoul(argv[i] + n + 1, NULL, 10) : 1;
    }
    return otherwise;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--child") == 0) run_child(argv[2]);
    if (argc < 3) return 2;
    name = argv[2];
    /* Steps go to and fro between the two: on one CPU that takes a fraction of the time. */
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET((size_t)sched_getcpu(), &cpus);
    sched_setaffinity(0, sizeof cpus, &cpus);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setenv("LD_PRELOAD", argv[1], 1);
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        execl("/proc/self/exe", argv[0], "--child", argv[2], (char *)NULL);
        _exit(97);
    }
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) {
        printf("no process can be traced here\n");
        return 77;
    }
    if (ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL) != 0) return 1;
    struct stop s = {.thread = child};
    unsigned long long end = 0;
    for (int i = 0; i < WARM_ROUNDS + 1; i++) {
        s = to_the_call(s.thread, 1);
        s = go(s.thread, PTRACE_CONT, 0);
        if (s.registers.rax != 0) give_up("no breakpoint after the call", 0, 0, (long)s.registers.rax);
        end = s.registers.rip;
    }
    size_t delivered = 0, stride = argument(argc, argv, "stride", 1);
    bool once = argument(argc, argv, "at_once", 0) != 0;
    size_t instructions = once ? at_once(&s, end, &delivered) : one_by_one(&s, end, stride, &delivered);
    printf("%s: %zu instructions, a signal after %zu of them%s\n", name, instructions, delivered,
           once ? ", in one call" : ", in a call for each");
    finish(child, s.thread);
    return instructions >= argument(argc, argv, "at_least", 20) && delivered * stride + stride >= instructions / 2 ? 0 : 1;
}

#else

int main(void) {
    return 77; /* the steps are of x86-64 */
}

#endif
