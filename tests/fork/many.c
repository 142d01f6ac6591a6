/* many.c - thousands of forks of a small busy process. Its threads make every kind of call, so that each lock is held at some
 * fork: with the option hold_rank those of one rank nearly always. The child makes every kind of call too, with a thread of
 * its own, and forks again; so it waits for each lock that was left held, until the alarm. */
#include "forks.h"

#include <pthread.h>

#include "huddle/zone.h"

/* The library is preloaded. */
#pragma weak huddle_zone_open
#pragma weak huddle_zone_close
#pragma weak huddle_zone_alloc_slow

enum { WORKERS = 2, HELD = 64, ROUNDS = 4 };

static char *shared[HELD];
static pthread_key_t late_key;

static void *next_block(unsigned *n) {
    *n = *n * 1103515245 + 12345;
    unsigned kind = *n >> 16 & 63;
    size_t bytes = 16 + (*n >> 8) % (kind == 0 ? 300000u : kind < 8 ? 20000u : 800u);
    char *p = kind % 4 == 0 ? allocate_zeroed(bytes) : allocate(bytes);
    EXPECT(p != NULL);
    if (kind % 4 == 1) {
        p = reallocate(p, bytes += bytes / 2);
        EXPECT(p != NULL);
    }
    p[0] = p[bytes - 1] = 'x';
    return p;
}

static void end(char *p) {
    EXPECT(p == NULL || p[0] == 'x');
    release(p);
}

/* More chunks than a thread keeps, and an object with memory of its own: from the depot and back. */
static void use_zones(void) {
    huddle_zone_t *z = huddle_zone_open(NULL);
    EXPECT(z != NULL);
    for (int i = 0; i < 60; i++) {
        char *p = huddle_zone_alloc(z, 10000);
        EXPECT(p != NULL);
        p[0] = p[9999] = 'z';
    }
    EXPECT(huddle_zone_alloc(z, 300000) != NULL && huddle_zone_close(z) == 0);
}

static void *work(void *number) {
    unsigned n = (unsigned)(uintptr_t)number + 1;
    while (forks_step()) {
        for (int i = 0; i < 20; i++) end(__atomic_exchange_n(&shared[n >> 12 & (HELD - 1)], next_block(&n), __ATOMIC_ACQ_REL));
        use_zones();
    }
    return NULL;
}

static size_t heaps(void) {
    struct huddle_stats s = {.struct_size = sizeof s};
    EXPECT(huddle_stats(&s));
    return s.heaps;
}

static void ask(void) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    EXPECT(f != NULL && malloc_info(0, f) == 0 && fclose(f) == 0);
    EXPECT(bytes > 20 && memcmp(text, "<malloc ", 8) == 0 && strcmp(text + bytes - 10, "</malloc>\n") == 0);
    free(text);
    struct mallinfo2 m = mallinfo2();
    EXPECT(m.arena != 0 && m.uordblks != 0);
    EXPECT(heaps() != 0);
}

static void *keep_asking(void *unused) {
    while (forks_step()) {
        ask();
        huddle_trim(0);
    }
    return unused;
}

/* In the last round, in which the library's destructor comes first: these calls are made after the thread's end. */
static void call_late(void *round) {
    uintptr_t n = (uintptr_t)round;
    if (n < ROUNDS) {
        EXPECT(pthread_setspecific(late_key, (void *)(n + 1)) == 0);
        return;
    }
    for (size_t i = 0; i < 4; i++) release(allocate(i * 9000 + 50));
}

/* What it frees for others goes in a message, which it takes at its first free of that kind and gives back at its end. */
static void *begin_and_end(void *unused) {
    for (size_t i = 0; i < 4; i++) end(__atomic_exchange_n(&shared[i * 16 + 1], NULL, __ATOMIC_ACQ_REL));
    release(allocate(1000));
    release(allocate(100000));
    EXPECT(pthread_setspecific(late_key, (void *)1) == 0);
    return unused;
}

static void run_thread(void *(*f)(void *)) {
    pthread_t id;
    EXPECT(pthread_create(&id, NULL, f, NULL) == 0 && pthread_join(id, NULL) == 0);
}

static void *start_threads(void *unused) {
    while (forks_step()) run_thread(begin_and_end);
    return unused;
}

static void *allocate_once(void *unused) {
    release(allocate(100));
    return unused;
}

static void call_everything(void) {
    unsigned n = 1;
    char *p[50];
    for (size_t i = 0; i < 50; i++) p[i] = next_block(&n);
    for (size_t i = 0; i < 50; i++) end(p[i]);
    use_zones();
    ask();
    EXPECT(huddle_trim(0) != SIZE_MAX);
}

static void work_in_the_child(size_t i) {
    alarm(60);
    huddle_option_set("hold_rank", "0"); /* only the audit build has it */
    EXPECT(heaps() <= 2); /* this thread's, and the one for late calls */
    call_everything();
    for (size_t k = 0; k < HELD; k += 2) end(__atomic_exchange_n(&shared[k], NULL, __ATOMIC_RELAXED));
    run_thread(begin_and_end);
    EXPECT(heaps() <= 2);
    if (i % 8 != 0) return;
    pid_t pid = fork();
    if (pid == 0) {
        EXPECT(heaps() <= 2);
        call_everything();
        _exit(0);
    }
    int status = -1;
    EXPECT(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

int main(int argc, char **argv) {
    size_t forks = argc > 1 ? strtoul(argv[1], NULL, 10) : 100;
    allocator_start();
    alarm(280);
    run_thread(allocate_once); /* the library makes its key for the second thread */
    EXPECT(pthread_key_create(&late_key, call_late) == 0);
    pthread_t ids[WORKERS + 2];
    for (uintptr_t i = 0; i < WORKERS; i++) EXPECT(pthread_create(&ids[i], NULL, work, (void *)i) == 0);
    EXPECT(pthread_create(&ids[WORKERS], NULL, keep_asking, NULL) == 0);
    EXPECT(pthread_create(&ids[WORKERS + 1], NULL, start_threads, NULL) == 0);
    for (size_t i = 0; i < forks; i++) {
        forks_wait(i);
        pid_t pid = fork();
        if (pid == 0) {
            work_in_the_child(i);
            _exit(0);
        }
        forks_expect_success(i, pid);
    }
    forks_end();
    for (size_t i = 0; i < WORKERS + 2; i++) EXPECT(pthread_join(ids[i], NULL) == 0);
    for (size_t i = 0; i < HELD; i++) end(shared[i]);
    printf("%zu forks\n", forks);
    return 0;
}
