/* four_hundred.c - 400 threads, all alive: what each of them costs after one malloc, after a burst of 500 mixed blocks that are
 * all freed, and once they have ended. Their stacks are touched before the first figure is taken. */
#include "rss.h"

enum {
    THREADS = 400,
    BURST = 500,
    FIRST_BYTES_MAX = 8 * 1024,
    IDLE_BYTES_MAX = 30 * 1000,
    TRIMMED_BYTES_MAX = 10 * 1000,
};

static pthread_barrier_t step;

static void touch_stack(void) {
    volatile char room[48 * 1024];
    for (size_t i = 0; i < sizeof room; i += 512) room[i] = 1;
}

static void next(void) {
    pthread_barrier_wait(&step);
}

static void *live(void *number) {
    unsigned n = (unsigned)(uintptr_t)number;
    void *p[BURST];
    touch_stack();
    next();
    next();
    void *volatile first = allocate(100);
    next();
    next();
    release(first);
    for (size_t i = 0; i < BURST; i++) {
        n = n * 1103515245 + 12345;
        size_t bytes = 1 + (n >> 8) % (i % 50 == 0 ? 40000u : i % 5 == 0 ? 4000u : 500u);
        p[i] = allocate(bytes);
        EXPECT(p[i] != NULL);
        memset(p[i], 1, bytes);
    }
    for (size_t i = 0; i < BURST; i++) release(p[i]);
    next();
    next();
    return NULL;
}

static size_t figure(const char *what, size_t before, size_t divisor) {
    size_t now = resident_bytes(), bytes = now > before ? (now - before) / divisor : 0;
    printf("%s: %zu bytes\n", what, bytes);
    fflush(stdout);
    return bytes;
}

int main(void) {
    static pthread_t ids[THREADS];
    allocator_start();
    EXPECT(pthread_barrier_init(&step, NULL, THREADS + 1) == 0);
    printf("400 threads\n");
    fflush(stdout);
    size_t at_start = resident_bytes();
    pthread_attr_t small;
    EXPECT(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, 128 * 1024) == 0);
    for (uintptr_t i = 0; i < THREADS; i++) EXPECT(pthread_create(&ids[i], &small, live, (void *)i) == 0);
    next();
    size_t parked = resident_bytes();
    next();
    next();
    size_t first = figure("a thread after one malloc", parked, THREADS);
    next();
    next();
    size_t idle = figure("a thread after a burst, all freed", parked, THREADS);
    for (int second = 0; second < 12; second++) {
        sleep(1); /* nobody calls the allocator: the helper thread empties what they cache */
        idle = figure("the same, idle", parked, THREADS);
        if (idle <= IDLE_BYTES_MAX) break;
    }
    huddle_trim(0);
    size_t trimmed = figure("the same after a trim", parked, THREADS);
    next();
    for (size_t i = 0; i < THREADS; i++) EXPECT(pthread_join(ids[i], NULL) == 0);
    huddle_trim(0);
    size_t left = figure("all, once they have ended", at_start, 1);
    EXPECT(first <= FIRST_BYTES_MAX);
    EXPECT(idle <= IDLE_BYTES_MAX);
    EXPECT(trimmed <= TRIMMED_BYTES_MAX);
    EXPECT(left <= (size_t)48 << 20); /* libc keeps 40 MB of stacks, as far as they were touched */
    return 0;
}
