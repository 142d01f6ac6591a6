/* threads.c - what does a thread cost that lives for a short time, and what does one hold that does nothing?
 *
 * `threads churn COUNT`: COUNT threads, four at a time, allocate 200 blocks and free half of them; the main thread frees
 * the rest. Prints microseconds per thread.
 * `threads idle COUNT`: COUNT threads at once allocate 64 KiB of small blocks, free all but one, and sleep. Prints the
 * KiB by which the resident memory grew for each, stack and all. */
#include "bench.h"

#include <unistd.h>

enum { BLOCKS = 200, AT_ONCE = 4, IDLE_BYTES = 64 << 10, STACK = 64 << 10 };

struct block {
    struct block *next;
};

static pthread_attr_t small_stack;
static pthread_barrier_t barrier;

static void *come_and_go(void *index) {
    uint64_t state = (size_t)index;
    struct block *left = NULL;
    for (int i = 0; i < BLOCKS; i++) {
        struct block *b = checked(malloc(mixed_size(next_random(&state))));
        b->next = left;
        left = b;
        if (i % 2 == 0) continue;
        left = b->next;
        free(b);
    }
    return left;
}

static void *idle(void *index) {
    uint64_t state = (size_t)index;
    struct block *list = NULL;
    for (size_t sum = 0; sum < IDLE_BYTES;) {
        size_t n = mixed_size(next_random(&state));
        struct block *b = checked(malloc(n));
        memset(b, 1, n);
        b->next = list;
        list = b;
        sum += n;
    }
    for (struct block *b = list->next, *next; b != NULL; b = next) {
        next = b->next;
        free(b);
    }
    list->next = NULL;
    pthread_barrier_wait(&barrier);
    for (;;) pause();
    return NULL;
}

static void start(pthread_t *thread, void *(*work)(void *), size_t index) {
    if (pthread_create(thread, &small_stack, work, (void *)index) != 0) fail("no thread");
}

static double churn(size_t count) {
    pthread_t thread[AT_ONCE];
    double begin = now();
    for (size_t i = 0; i < count + AT_ONCE; i++) {
        if (i >= AT_ONCE) {
            void *left;
            pthread_join(thread[i % AT_ONCE], &left);
            for (struct block *b = left, *next; b != NULL; b = next) {
                next = b->next;
                free(b);
            }
        }
        if (i < count) start(&thread[i % AT_ONCE], come_and_go, i);
    }
    return (now() - begin) / (double)count * 1e6;
}

static size_t resident_kib(void) {
    char line[256];
    size_t kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    if (f == NULL) fail("/proc/self/status");
    while (fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, "VmRSS:", 6) == 0) kib = strtoul(line + 6, NULL, 10);
    fclose(f);
    return kib;
}

static double sleepers(size_t count) {
    if (pthread_barrier_init(&barrier, NULL, (unsigned)count + 1) != 0) fail("no barrier");
    size_t before = resident_kib();
    for (size_t i = 0; i < count; i++) {
        pthread_t thread;
        start(&thread, idle, i);
    }
    pthread_barrier_wait(&barrier);
    sleep(2);
    return (double)(resident_kib() - before) / (double)count;
}

int main(int count, char **argument) {
    size_t threads = number(count, argument, 2, 0);
    if (threads == 0) usage("threads churn|idle COUNT");
    pthread_attr_init(&small_stack);
    pthread_attr_setstacksize(&small_stack, STACK);
    if (argument[1][0] == 'c') printf("thread_churn %.3f us/thread\n", churn(threads));
    else printf("thread_idle %.2f KiB/thread\n", sleepers(threads));
    return 0;
}
