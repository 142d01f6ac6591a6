/* only_frees.c - 16 threads allocate and hand on through bounded queues; the one that takes never allocates. The set of live
 * blocks has a fixed size, and the process needs little more than that. */
#include "rss.h"

#include <sched.h>

enum { PRODUCERS = 16, QUEUE = 4096, BLOCK_BYTES_MAX = 900 };

static char *queue[PRODUCERS][QUEUE]; /* atomic */
static size_t each;

static size_t bytes_of(size_t producer, size_t i) {
    return 100 + (producer * 131 + i * 17) % (BLOCK_BYTES_MAX - 100);
}

static void *produce(void *number) {
    size_t producer = (uintptr_t)number;
    for (size_t i = 0; i < each; i++) {
        char **slot = &queue[producer][i % QUEUE];
        char *p = allocate(bytes_of(producer, i));
        EXPECT(p != NULL);
        memset(p, (char)i, bytes_of(producer, i));
        while (__atomic_load_n(slot, __ATOMIC_RELAXED) != NULL) sched_yield();
        __atomic_store_n(slot, p, __ATOMIC_RELEASE);
    }
    return NULL;
}

int main(int argc, char **argv) {
    each = argc > 1 ? strtoul(argv[1], NULL, 10) : 100000;
    allocator_start();
    memset(queue, 1, sizeof queue);
    memset(queue, 0, sizeof queue);
    printf("16 producers\n");
    fflush(stdout);
    pthread_t ids[PRODUCERS];
    size_t start = resident_bytes(), most = 0;
    for (uintptr_t i = 0; i < PRODUCERS; i++) EXPECT(pthread_create(&ids[i], NULL, produce, (void *)i) == 0);
    for (size_t i = 0; i < each; i++) {
        /* Queues are kept full, so that the live set is the same all the time. */
        for (size_t k = 0; k < PRODUCERS; k++) {
            char **slot = &queue[k][i % QUEUE], **last = &queue[k][(i + QUEUE - 1) % QUEUE], *p;
            while (i + QUEUE <= each && __atomic_load_n(last, __ATOMIC_ACQUIRE) == NULL) sched_yield();
            while ((p = __atomic_load_n(slot, __ATOMIC_ACQUIRE)) == NULL) sched_yield();
            EXPECT(p[0] == (char)i && p[bytes_of(k, i) - 1] == (char)i);
            __atomic_store_n(slot, NULL, __ATOMIC_RELEASE);
            release(p);
        }
        if (i % 1000 == 0) {
            size_t now = resident_bytes();
            if (now > most) most = now;
        }
    }
    for (size_t i = 0; i < PRODUCERS; i++) EXPECT(pthread_join(ids[i], NULL) == 0);
    size_t live = 0;
    for (size_t k = 0; k < PRODUCERS; k++)
        for (size_t i = 0; i < QUEUE; i++) live += bytes_of(k, i);
    printf("%zu bytes live, %zu resident at most, %zu thousandths\n", live, most - start, (most - start) * 1000 / live);
    fflush(stdout);
    EXPECT(most - start <= live / 10 * 13);
    return 0;
}
