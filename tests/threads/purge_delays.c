/* purge_delays.c - `purge_delays SCENARIO`: 200 MB go back to the system while two threads allocate and free 64 KiB.
 *
 *   trim      by malloc_trim, called by main
 *   later     at the next ticks, in spans of 4 MB, while main sleeps
 *   frees     by main's own frees, in blocks of 4,000 bytes
 *   large     by main's own frees, in mappings of 20 MB
 *
 * Each worker makes a system call of its own kind, getppid, after every MARK_PAIRS pairs; purge_delays.py, which traces
 * the program, sees by them that the workers go on. The pairs' times are printed and mean nothing under strace. */
#include "rss.h"

#include <malloc.h>
#include <sys/syscall.h>
#include <time.h>

enum { TOTAL = 200 * 1000 * 1000, BLOCK = 4000, WORKERS = 2, MARK_PAIRS = 50 };

static void *blocks[TOTAL / BLOCK];
static bool is_over; /* atomic */
static pthread_barrier_t step;

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Times of pairs, in steps of 10 %; and the longest. */
struct times {
    uint64_t counts[300], pairs, longest;
};

static struct times times[WORKERS];

static void note_time(struct times *t, uint64_t ns) {
    size_t i = 0;
    for (double edge = 10; edge < (double)ns && i < 299; edge *= 1.1) i++;
    t->counts[i]++;
    t->pairs++;
    if (ns > t->longest) t->longest = ns;
}

static double part_below(const struct times *t, double part) {
    double edge = 10;
    uint64_t sum = 0;
    for (size_t i = 0; i < 300; i++, edge *= 1.1)
        if ((double)(sum += t->counts[i]) >= part * (double)t->pairs) return edge;
    return edge;
}

static void *work(void *number) {
    struct times *t = &times[(uintptr_t)number];
    pthread_barrier_wait(&step);
    for (size_t i = 1; !__atomic_load_n(&is_over, __ATOMIC_RELAXED); i++) {
        uint64_t start = now_ns();
        char *p = allocate(65536);
        EXPECT(p != NULL);
        *(volatile char *)p = 1;
        release(p);
        note_time(t, now_ns() - start);
        if (i % MARK_PAIRS == 0) syscall(SYS_getppid);
    }
    return NULL;
}

static void allocate_all(size_t bytes) {
    for (size_t i = 0; i < TOTAL / bytes; i++) {
        blocks[i] = allocate(bytes);
        EXPECT(blocks[i] != NULL);
        memset(blocks[i], 1, bytes);
    }
}

static void free_all(size_t bytes) {
    for (size_t i = 0; i < TOTAL / bytes; i++) release(blocks[i]);
}

int main(int argc, char **argv) {
    const char *scenario = argc > 1 ? argv[1] : "";
    bool is_trimmed = strcmp(scenario, "trim") == 0, is_later = strcmp(scenario, "later") == 0;
    size_t bytes = strcmp(scenario, "large") == 0 ? 20 * 1000 * 1000 : is_later ? 4 * 1000 * 1000 : BLOCK;
    pthread_t ids[WORKERS];
    allocator_start();
    EXPECT(pthread_barrier_init(&step, NULL, WORKERS + 1) == 0);
    for (uintptr_t i = 0; i < WORKERS; i++) EXPECT(pthread_create(&ids[i], NULL, work, (void *)i) == 0);
    /* What is allocated and freed again and again is kept at first. */
    for (size_t round = 0; round < (is_later ? 4 : 1); round++) {
        if (round != 0) free_all(bytes);
        allocate_all(bytes);
    }
    size_t full = resident_bytes();
    if (is_trimmed) {
        EXPECT(huddle_option_set("purge_ms", "4294967295"));
        free_all(bytes);
    }
    pthread_barrier_wait(&step);
    if (is_trimmed) malloc_trim(0);
    else free_all(bytes);
    for (int second = 0; second < 60 && resident_bytes() > full / 4; second++) sleep(1);
    __atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
    for (size_t i = 0; i < WORKERS; i++) EXPECT(pthread_join(ids[i], NULL) == 0);
    printf("%s: resident %zu, then %zu bytes\n", scenario, full, resident_bytes());
    for (size_t i = 0; i < WORKERS; i++)
        printf("worker: %llu pairs; half took up to %.1f us, 99.9 %% %.1f us, the longest %.1f us\n",
               (unsigned long long)times[i].pairs, part_below(&times[i], 0.5) / 1000,
               part_below(&times[i], 0.999) / 1000, (double)times[i].longest / 1000);
    fflush(stdout);
    EXPECT(resident_bytes() <= full / 4);
    return 0;
}
