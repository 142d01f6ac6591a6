/* come_and_go.c - threads come and go and leave nothing: THREADS at a time, ROUNDS times, each with a ladder of reallocs; or
 * short ones, one after another. The address space stays as it was after the first tenth. */
#include "rss.h"

enum { REGION_BYTES = (4 << 20) + (64 << 10) };

static void *climb(void *number) {
    size_t bytes = 16 + (uintptr_t)number;
    char *p = allocate(bytes);
    for (size_t i = 0; i < 12; i++) {
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
    pthread_t ids[THREADS_MAX];
    size_t mapped = 0, resident = 0;
    for (size_t round = 0; round < rounds; round++) {
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
    /* One region more may be needed when the threads happen to meet; not one for each of so many rounds. */
    EXPECT(mapped_now <= mapped + REGION_BYTES);
    EXPECT(resident_now <= resident + ((size_t)4 << 20));
    return 0;
}
