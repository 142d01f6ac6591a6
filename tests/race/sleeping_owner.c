/* sleeping_owner.c - the owner of a lane allocates 60 MB and sleeps; another thread frees all of it and ends; a third
 * one allocates as much. What the sleeper does not take in must be drained by the senders: the third thread gets the
 * same memory again. */
#include "race.h"

enum { BLOCK_BYTES = 1000, BLOCKS = 60 * 1000 * 1000 / BLOCK_BYTES };

static char *blocks[BLOCKS];
static pthread_barrier_t step;

static void allocate_all(void) {
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = allocate(BLOCK_BYTES);
        EXPECT(blocks[i] != NULL);
        blocks[i][0] = (char)i;
    }
}

static void free_all(void) {
    for (size_t i = 0; i < BLOCKS; i++) {
        EXPECT(blocks[i][0] == (char)i);
        release(blocks[i]);
    }
}

static void *own(void *unused) {
    (void)unused;
    allocate_all();
    pthread_barrier_wait(&step);
    pthread_barrier_wait(&step); /* asleep until all is over */
    allocator_thread_ends();
    return NULL;
}

static void *free_for_others(void *unused) {
    (void)unused;
    free_all();
    allocator_thread_ends();
    return NULL;
}

static void *allocate_again(void *unused) {
    (void)unused;
    allocate_all();
    free_all();
    allocator_thread_ends();
    return NULL;
}

static void report(const char *when) {
    struct os_counters c = os_memory_counters();
    printf("%s: %zu bytes mapped, %zu at most\n", when, c.mapped_bytes, c.peak_mapped_bytes);
    fflush(stdout);
}

static void run_thread(void *(*f)(void *), const char *what) {
    pthread_t id;
    EXPECT(pthread_create(&id, NULL, f, NULL) == 0 && pthread_join(id, NULL) == 0);
    report(what);
}

int main(void) {
    allocator_start();
    options.lanes = 3;
    EXPECT(pthread_barrier_init(&step, NULL, 2) == 0);
    pthread_t owner;
    EXPECT(pthread_create(&owner, NULL, own, NULL) == 0);
    pthread_barrier_wait(&step);
    report("all allocated");
    size_t needed = os_memory_counters().mapped_bytes;
    EXPECT(needed <= (size_t)BLOCKS * BLOCK_BYTES / 10 * 14);
    run_thread(free_for_others, "freed by another thread");
    run_thread(allocate_again, "allocated again by a third");
    size_t peak = os_memory_counters().peak_mapped_bytes;
    EXPECT(peak <= needed + needed / 10);
    pthread_barrier_wait(&step);
    EXPECT(pthread_join(owner, NULL) == 0);
    race_finish();
    return 0;
}
