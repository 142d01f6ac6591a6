/* sleeping_owner.c - a thread allocates 60 MB and sleeps; a second one frees all and ends; a third allocates as much. The
 * process has room for it once, not twice, and gives it back after the last free. */
#include "rss.h"

enum { BLOCK_BYTES = 1000, BLOCKS = 60 * 1000 * 1000 / BLOCK_BYTES };

static char *blocks[BLOCKS];
static pthread_barrier_t step;

static void *allocate_all(void *unused) {
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = allocate(BLOCK_BYTES);
        EXPECT(blocks[i] != NULL);
        memset(blocks[i], (char)i, BLOCK_BYTES);
    }
    return unused;
}

static void *free_all(void *unused) {
    for (size_t i = 0; i < BLOCKS; i++) {
        EXPECT(blocks[i][BLOCK_BYTES - 1] == (char)i);
        release(blocks[i]);
    }
    return unused;
}

static void *own(void *unused) {
    allocate_all(unused);
    pthread_barrier_wait(&step);
    pthread_barrier_wait(&step);
    return unused;
}

static size_t start;

static size_t figure(const char *what) {
    size_t bytes = resident_bytes() - start;
    printf("%s: %zu bytes\n", what, bytes);
    fflush(stdout);
    return bytes;
}

int main(void) {
    allocator_start();
    memset(blocks, 1, sizeof blocks);
    printf("60 MB\n");
    fflush(stdout);
    EXPECT(pthread_barrier_init(&step, NULL, 2) == 0);
    start = resident_bytes();
    pthread_t owner;
    EXPECT(pthread_create(&owner, NULL, own, NULL) == 0);
    pthread_barrier_wait(&step);
    figure("allocated by the owner");
    run_thread(free_all, NULL);
    figure("freed by a second thread");
    run_thread(allocate_all, NULL);
    size_t again = figure("allocated again by a third");
    run_thread(free_all, NULL);
    size_t freed = figure("freed by a fourth");
    for (int second = 0; second < 12 && freed > again / 5; second++) {
        sleep(1);
        freed = resident_bytes() - start;
    }
    figure("a while later");
    pthread_barrier_wait(&step);
    EXPECT(pthread_join(owner, NULL) == 0);
    EXPECT(again <= (size_t)BLOCKS * BLOCK_BYTES / 10 * 11);
    EXPECT(freed <= again / 5);
    return 0;
}
