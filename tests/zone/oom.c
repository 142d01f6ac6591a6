/* oom.c - the system refuses memory to zones: oom SCENARIO. Again and again, with its first call refused, the second, ...
 * until there are no more; and with all from that one on. What was got is whole, what was not is NULL and ENOMEM; when the
 * refusing ends all is served again, and all memory comes back. Each time is a child of its own. */
#include <errno.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "allocator.h"
#include "huddle/zone.h"

enum { NTH_MAX = 2000, BLOCKS_MAX = 4000 };

static struct {
    unsigned char *p;
    size_t n;
} blocks[BLOCKS_MAX];
static size_t block_count;
static int ended, registered;

static void *checked(void *p) {
    EXPECT(p != NULL || errno == ENOMEM);
    return p;
}

static void keep(void *p, size_t n) {
    if (checked(p) == NULL) return;
    memset(p, (int)block_count, n);
    blocks[block_count].p = p;
    blocks[block_count++].n = n;
}

static void check(void) {
    for (size_t i = 0; i < block_count; i++)
        for (size_t k = 0; k < blocks[i].n; k += 1 + k / 64) EXPECT(blocks[i].p[k] == (unsigned char)i);
}

static void count_end(void *unused) {
    (void)unused;
    ended++;
}

static void work_in(huddle_zone_t *z) {
    for (size_t i = 0; i < 200; i++) {
        keep(huddle_zone_alloc(z, 1000), 1000);
        if (i % 50 == 0) keep(huddle_zone_zalloc(z, 400000), 400000);
        if (i % 20 == 0 && huddle_zone_on_close(z, count_end, NULL) != 0) registered++;
        if (i % 40 == 0) keep(huddle_zone_aligned(z, 1 << 18, 100), 100);
    }
}

static void small(void) {
    huddle_zone_t *z = checked(huddle_zone_open(NULL));
    if (z == NULL) return;
    work_in(z);
    check();
    EXPECT(huddle_zone_close(z) == 0);
    block_count = 0;
}

static void with_options(unsigned flags) {
    huddle_zone_options_t o = {.struct_size = sizeof o, .flags = flags, .chunk_max = 65536};
    huddle_zone_t *z = checked(huddle_zone_open(&o));
    if (z == NULL) return;
    work_in(z);
    check();
    EXPECT(huddle_zone_reset(z) == 0);
    block_count = 0;
    work_in(z);
    check();
    EXPECT(huddle_zone_close(z) == 0);
    block_count = 0;
}

static void mapped(void) {
    with_options(HUDDLE_ZONE_NODUMP);
}

static void zeroed(void) {
    with_options(HUDDLE_ZONE_ZERO);
}

static void shared(void) {
    with_options(HUDDLE_ZONE_SHARED);
}

static void marks_and_children(void) {
    huddle_zone_t *z = checked(huddle_zone_open(NULL));
    if (z == NULL) return;
    for (int i = 0; i < 4; i++) {
        huddle_zone_mark_t m = huddle_zone_mark(z);
        size_t before = block_count;
        work_in(z);
        huddle_zone_t *child = checked(huddle_zone_child(z, NULL));
        if (child != NULL) work_in(child);
        check();
        EXPECT(m.id != 0 || errno == ENOMEM);
        if (m.id == 0) break;
        EXPECT(huddle_zone_rewind(z, m) == 0);
        block_count = before;
        check();
    }
    EXPECT(huddle_zone_close(z) == 0);
    block_count = 0;
}

static void merged_and_owned(void) {
    for (int i = 0; i < 5; i++) {
        huddle_zone_t *into = checked(huddle_zone_open(NULL)), *from = checked(huddle_zone_open(NULL));
        if (into != NULL && from != NULL) {
            work_in(into);
            work_in(from);
            void *p = allocate(1000);
            if (p != NULL && huddle_zone_own(from, p) == NULL) release(p);
            EXPECT(huddle_zone_merge(into, from) == 0);
            from = NULL;
            check();
        }
        EXPECT(into == NULL || huddle_zone_close(into) == 0);
        EXPECT(from == NULL || huddle_zone_close(from) == 0);
        block_count = 0;
    }
}

static void growing(void) {
    huddle_zone_t *z = checked(huddle_zone_open(NULL));
    if (z == NULL) return;
    EXPECT(huddle_zone_buf_begin(z) == 0);
    size_t n = 0, length;
    for (int i = 0; i < 500; i++)
        if (huddle_zone_buf_append(z, "0123456789abcdef0123456789abcdef", 32) == 0) n += 32;
        else EXPECT(errno == ENOMEM);
    char *text = checked(huddle_zone_buf_finish(z, &length));
    EXPECT(text == NULL || length == n);
    for (size_t i = 0; text != NULL && i < n; i++) EXPECT(text[i] == "0123456789abcdef"[i % 16]);
    EXPECT(huddle_zone_close(z) == 0);
}

static const struct {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    {"small", small}, {"mapped", mapped}, {"zeroed", zeroed}, {"shared", shared}, {"marks_and_children", marks_and_children},
    {"merged_and_owned", merged_and_owned}, {"growing", growing},
};

static void (*find(const char *name))(void) {
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++)
        if (strcmp(scenarios[i].name, name) == 0) return scenarios[i].run;
    exit(2);
}

static void child(void (*run)(void), uint32_t nth, uint32_t count, int result) {
    options.lanes = 2;
    options.purge_ms = 0;
    set_failing(nth, count);
    run();
    unsigned long calls = system_calls();
    set_failing(0, 1);
    EXPECT(ended == registered);
    small();
    mapped();
    EXPECT(ended == registered);
    trim();
    stats_check_all();
    struct huddle_stats s = statistics();
    EXPECT(s.live_blocks == 0 && s.zone_bytes == 0 && s.dirty_bytes == 0);
    _exit(write(result, &calls, sizeof calls) == sizeof calls ? 0 : 4);
}

static unsigned long play(const char *name, uint32_t nth, uint32_t count) {
    int ends[2], status = -1;
    unsigned long calls = 0;
    EXPECT(pipe(ends) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        child(find(name), nth, count, ends[1]);
    }
    close(ends[1]);
    ssize_t n = read(ends[0], &calls, sizeof calls);
    close(ends[0]);
    if (waitpid(pid, &status, 0) == pid && status == 0 && n == sizeof calls) return calls;
    fprintf(stderr, "%s: fail_nth=%u fail_count=%u: status 0x%x\n", name, nth, count, (unsigned)status);
    exit(1);
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    allocator_start();
    uint32_t nth = 1;
    unsigned long one, all;
    do {
        one = play(argv[1], nth, 1);
        all = play(argv[1], nth, UINT32_MAX);
        nth++;
    } while ((one >= nth - 1 || all >= nth - 1) && nth < NTH_MAX);
    printf("%s: %u system calls refused, one or all from there on\n", argv[1], nth - 2);
    return nth > 2 && nth < NTH_MAX ? 0 : 1;
}
