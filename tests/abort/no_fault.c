// expect-success
// each: one_thread threads
// options: shuffle=0 | shuffle=1 | lanes=1 | lanes=2,cache_kib=0 | lanes=64,purge_ms=0
#include "faults.h"

#include <pthread.h>

/* A correct program is never stopped: all sizes, by all entries, freed at once, late, in any order and by other
 * threads. */
enum { SLOTS = 3000, THREADS = 4, LARGEST = 70000 };
static void *slots[THREADS][SLOTS];

static void *take_block(unsigned random, size_t n) {
    switch (random % 6) {
    case 0: return calloc(1, n);
    case 1: return realloc(NULL, n);
    case 2: return memalign((size_t)16 << random / 6 % 9, n);
    case 3: return aligned_alloc(64, n);
    default: return malloc(n);
    }
}

static void free_block(unsigned random, void *p, size_t n) {
    static const char *const entries[] = {"free", "cfree", "__libc_free", "realloc_0", "realloc"};
    const char *entry = entries[random % 5];
    if (p == NULL) return;
    if (strcmp(entry, "realloc") == 0) free(realloc(p, n / 2 + 1));
    else free_by(entry, p, n);
}

static void *all_sizes(void *argument) {
    void **mine = argument;
    unsigned random = (unsigned)((void *(*)[SLOTS])argument - slots) + 1;
    for (size_t n = 0; n < LARGEST; n += n < 3000 ? 1 : 31) {
        random = random * 1103515245u + 12345;
        void **slot = &mine[(random >> 8) % SLOTS];
        free_block(random >> 20, *slot, 0);
        *slot = take_block(random >> 12, n);
        if (*slot == NULL) _exit(4);
        memset(*slot, (int)n, malloc_usable_size(*slot));
    }
    for (size_t n = LARGEST; n < 30000000; n = n * 4 / 3) free(realloc(allocate(n), n + n / 5));
    return NULL;
}

static void *free_other_half(void *argument) {
    void **others = argument;
    for (int i = 0; i < SLOTS; i += 2) {
        free(others[i]);
        others[i] = NULL;
    }
    return NULL;
}

static void run(int threads, void *(*function)(void *), int shift) {
    pthread_t thread[THREADS];
    for (int t = 0; t < threads; t++)
        if (pthread_create(&thread[t], NULL, function, slots[(t + shift) % threads]) != 0) _exit(4);
    for (int t = 0; t < threads; t++) pthread_join(thread[t], NULL);
}

int main(int argc, char **argv) {
    (void)argc;
    if (strcmp(argv[1], "one_thread") == 0) {
        all_sizes(slots[0]);
        free_other_half(slots[0]);
        all_sizes(slots[0]);
        return 0;
    }
    for (int round = 0; round < 2; round++) {
        run(THREADS, all_sizes, 0);
        run(THREADS, free_other_half, 1);
    }
    malloc_trim(0);
    run(THREADS, all_sizes, 2);
    return 0;
}
