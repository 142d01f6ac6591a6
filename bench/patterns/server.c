/* server.c - what does a pair cost in a server whose threads come and go and free what others allocated?
 *
 * `server THREADS OPERATIONS`: each of THREADS threads has 1000 slots, of which it replaces one at random at a time by a
 * block of 16 to 1000 bytes. After 20,000 of its OPERATIONS it starts a thread that goes on with its slots, and ends
 * (the scheme of the benchmark "larson", which is Larson and Krishnan's, 1998). Prints nanoseconds per operation. */
#include "bench.h"

#include <stdatomic.h>

enum { OBJECTS = 1000, TURN = 20 * 1000, LEAST = 16, MOST = 1000, STACK = 64 << 10 };

struct slots {
    uint64_t state;
    size_t left;
    struct {
        void *p;
        size_t n;
    } object[OBJECTS];
};

static _Atomic size_t running;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t finished = PTHREAD_COND_INITIALIZER;
static pthread_attr_t detached;

static void put(struct slots *s, size_t k) {
    uint64_t random = next_random(&s->state);
    size_t n = LEAST + random % (MOST - LEAST);
    s->object[k].p = checked(malloc(n));
    s->object[k].n = n;
    mark(s->object[k].p, n, 1);
}

static void drop(struct slots *s, size_t k) {
    check_mark(s->object[k].p, s->object[k].n, 1);
    free(s->object[k].p);
}

static void *serve(void *arg) {
    struct slots *s = arg;
    for (size_t i = 0; i < TURN && s->left > 0; i++, s->left--) {
        size_t k = below(next_random(&s->state), OBJECTS);
        drop(s, k);
        put(s, k);
    }
    if (s->left > 0) {
        pthread_t next;
        if (pthread_create(&next, &detached, serve, s) != 0) fail("no thread");
        return NULL;
    }
    for (size_t k = 0; k < OBJECTS; k++) drop(s, k);
    pthread_mutex_lock(&lock);
    if (atomic_fetch_sub(&running, 1) == 1) pthread_cond_signal(&finished);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(int count, char **argument) {
    size_t threads = number(count, argument, 1, 0), operations = number(count, argument, 2, 0);
    if (threads == 0 || threads > BENCH_THREADS_MAX || operations == 0) usage("server THREADS OPERATIONS");
    static struct slots slots[BENCH_THREADS_MAX];
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&detached, STACK);
    running = threads;
    for (size_t t = 0; t < threads; t++) {
        slots[t].state = t;
        slots[t].left = operations;
        for (size_t k = 0; k < OBJECTS; k++) put(&slots[t], k); /* as in larson the first ones are of this thread */
    }
    double begin = now();
    for (size_t t = 0; t < threads; t++) {
        pthread_t thread;
        if (pthread_create(&thread, &detached, serve, &slots[t]) != 0) fail("no thread");
    }
    pthread_mutex_lock(&lock);
    while (running > 0) pthread_cond_wait(&finished, &lock);
    pthread_mutex_unlock(&lock);
    printf("server %.2f ns/operation\n", (now() - begin) / (double)(threads * operations) * 1e9);
    return 0;
}
