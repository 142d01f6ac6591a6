/* come_and_go.c - threads come and go and leave nothing: THREADS at a time, ROUNDS times, each with a ladder of reallocs; or
 * short ones, one after another. The address space stays as it was after the first tenth.
 *
 * How much is needed at once depends on how the threads meet. So in the first tenth they have the blocks of all steps
 * at the same time, and all together: nothing that comes later needs more. */
#include "rss.h"

enum { STEPS = 12 };

static pthread_barrier_t all_have_theirs;
static bool is_first_tenth;

static void have_all(size_t bytes) {
    char *p[2 * STEPS];
    for (size_t i = 0; i < 2 * STEPS; i++) {
        p[i] = allocate(bytes << (i / 2 + 1));
        EXPECT(p[i] != NULL);
        p[i][0] = 'x';
    }
    pthread_barrier_wait(&all_have_theirs);
    for (size_t i = 0; i < 2 * STEPS; i++) release(p[i]);
}

static void *climb(void *number) {
    size_t bytes = 16 + (uintptr_t)number;
    if (is_first_tenth) have_all(bytes);
    char *p = allocate(bytes);
    for (size_t i = 0; i < STEPS; i++) {
        EXPECT(p != NULL);
        p[0] = p[bytes - 1] = 'x';
        p = reallocate(p, bytes * 2);
        EXPECT(p != NULL && p[0] == 'x' && p[bytes - 1] == 'x');
        bytes *= 2;
    }
    release(p);
    return NULL;
}

int main(int argc, char **argv) {
    enum { THREADS_MAX = 16 };
    size_t threads = argc > 1 ? strtoul(argv[1], NULL, 10) : THREADS_MAX, rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000;
    allocator_start();
    EXPECT(threads >= 1 && threads <= THREADS_MAX && rounds >= 10);
    EXPECT(pthread_barrier_init(&all_have_theirs, NULL, (unsigned)threads) == 0);
    pthread_t ids[THREADS_MAX];
    size_t mapped = 0, resident = 0;
    for (size_t round = 0; round < rounds; round++) {
        is_first_tenth = round < rounds / 10;
        if (round == rounds / 10) {
            mapped = statistics().mapped_bytes;
            resident = resident_bytes();
        }
        for (uintptr_t i = 0; i < threads; i++) EXPECT(pthread_create(&ids[i], NULL, climb, (void *)i) == 0);
        for (size_t i = 0; i < threads; i++) EXPECT(pthread_join(ids[i], NULL) == 0);
    }
    size_t mapped_now = statistics().mapped_bytes, resident_now = resident_bytes();
    printf("%zu threads, %zu rounds: mapped %zu, then %zu; resident %zu, then %zu\n", threads, rounds, mapped, mapped_now,
           resident, resident_now);
    fflush(stdout);
    EXPECT(mapped_now <= mapped);
    EXPECT(resident_now <= resident + ((size_t)4 << 20));
    return 0;
}
