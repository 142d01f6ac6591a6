/* small_stacks.c - threads with the smallest stacks there are make every kind of call; and a process whose CPUs are
 * one, then all. */
#include "rss.h"

#include <limits.h>
#include <malloc.h>
#include <sched.h>

static void *foreign[100];

static void *call_everything(void *unused) {
    for (size_t bytes = 1; bytes < (size_t)20 << 20; bytes = bytes * 3 + 1) {
        char *p = malloc(bytes), *q = calloc(1, bytes), *r = memalign(64, bytes);
        EXPECT(p != NULL && q != NULL && r != NULL && q[0] == 0 && q[bytes - 1] == 0);
        p[0] = 'p';
        p = realloc(p, bytes * 2);
        EXPECT(p != NULL && p[0] == 'p' && malloc_usable_size(p) >= bytes * 2);
        p = realloc(p, bytes);
        EXPECT(p != NULL && p[0] == 'p');
        free(r);
        free(q);
        free(p);
    }
    for (size_t i = 0; i < 100; i++) free(foreign[i]);
    malloc_trim(0);
    return unused;
}

int main(void) {
    allocator_start();
    cpu_set_t all, one;
    EXPECT(sched_getaffinity(0, sizeof all, &all) == 0);
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    pthread_attr_t small;
    size_t least = (size_t)sysconf(_SC_THREAD_STACK_MIN);
    EXPECT(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, least) == 0);
    for (size_t round = 0; round < 20; round++) {
        EXPECT(sched_setaffinity(0, sizeof all, round % 2 == 0 ? &one : &all) == 0);
        pthread_t id;
        for (size_t i = 0; i < 100; i++) foreign[i] = malloc(10 * i);
        EXPECT(pthread_create(&id, &small, call_everything, NULL) == 0 && pthread_join(id, NULL) == 0);
    }
    return 0;
}
