/* content.c - how much memory does a browser keep?
 *
 * `content [THREADS [MBYTES [IDLE_S]]]`: what a browser's content process with little content does to
 * malloc. THREADS threads (30) have MBYTES (20) of live blocks, which belong to documents. The phases:
 *
 *   load   each thread allocates its part of every document, and four times as much that it soon frees again, an
 *          eighth of that by way of another thread
 *   close  every second document is freed, every second of these by other threads than allocated it
 *   idle   nothing is called for IDLE_S seconds (12)
 *
 * After each one it prints the phase and the bytes that are live, and waits for a line on standard input, so that its
 * memory can be looked at; it ends at the end of the input. Which blocks live is the same in every run. */
#include "bench.h"

#include <unistd.h>

enum { THREADS_MAX = 256, DOCUMENTS = 8, SOON = 256, TURN = 64, SMALLEST = 8 };

/* Live blocks per 1,000 of node 20 that serves pages over 30 connections, less the buffers of the page's own script
 * (chromium has a malloc of its own in the program). An entry's are spread evenly from the one before to `most`. */
static const struct {
    size_t most;
    unsigned weight;
} mix[] = {{16, 112}, {32, 424}, {48, 188}, {64, 124}, {96, 35}, {128, 46}, {256, 30}, {512, 18}, {1024, 7},
           {2048, 5}, {4096, 3}, {8192, 7}, {32768, 1}};

struct object {
    struct object *next;
};

struct list {
    struct object *first;
    size_t bytes;
};

struct worker {
    uint64_t state;
    struct list document[DOCUMENTS]; /* what this thread allocated */
    pthread_mutex_t lock;
    struct object *to_free; /* blocks of other threads; guarded by lock */
};

static struct worker workers[THREADS_MAX];
static size_t threads, part_bytes;
/* All threads meet before and after load and close; the main thread is one of them. */
static pthread_barrier_t barrier;

static size_t random_size(struct worker *w) {
    uint64_t random = next_random(&w->state);
    unsigned rest = (unsigned)(random % 1000);
    size_t i = 0, least = SMALLEST;
    while (rest >= mix[i].weight) {
        rest -= mix[i].weight;
        least = mix[i++].most + 1;
    }
    return least + (size_t)(random >> 32) % (mix[i].most - least + 1);
}

static struct object *new_object(size_t size) {
    struct object *o = checked(malloc(size));
    memset(o, 0x5a, size);
    return o;
}

static void free_list(struct object *o) {
    while (o != NULL) {
        struct object *next = o->next;
        free(o);
        o = next;
    }
}

static void give(struct worker *to, struct object *o) {
    pthread_mutex_lock(&to->lock);
    o->next = to->to_free;
    to->to_free = o;
    pthread_mutex_unlock(&to->lock);
}

static void free_given(struct worker *w) {
    pthread_mutex_lock(&w->lock);
    struct object *o = w->to_free;
    w->to_free = NULL;
    pthread_mutex_unlock(&w->lock);
    free_list(o);
}

static void load(struct worker *w) {
    struct object *soon[SOON] = {NULL};
    size_t kept = 0;
    while (kept < part_bytes) {
        struct list *document = &w->document[next_random(&w->state) % DOCUMENTS];
        for (size_t i = 0; i < TURN; i++) {
            size_t size = random_size(w);
            struct object *o = new_object(size);
            if (i % 5 == 0) {
                o->next = document->first;
                document->first = o;
                document->bytes += size;
                kept += size;
                continue;
            }
            uint64_t random = next_random(&w->state);
            size_t k = random % SOON;
            if (soon[k] != NULL && random >> 61 == 0) give(&workers[(random >> 32) % threads], soon[k]);
            else free(soon[k]);
            soon[k] = o;
        }
        free_given(w);
    }
    for (size_t k = 0; k < SOON; k++) free(soon[k]);
}

static void close_half(size_t index) {
    for (size_t d = 0; d < DOCUMENTS; d += 2) {
        struct list *document = &workers[(index + d / 2 % 2) % threads].document[d];
        free_list(document->first);
        *document = (struct list){NULL, 0};
    }
}

static void *work(void *index) {
    struct worker *w = &workers[(size_t)index];
    pthread_barrier_wait(&barrier);
    load(w);
    pthread_barrier_wait(&barrier);
    free_given(w);
    pthread_barrier_wait(&barrier);
    if (index == 0) return NULL;
    pthread_barrier_wait(&barrier);
    close_half((size_t)index);
    pthread_barrier_wait(&barrier);
    for (;;) pause();
    return NULL;
}

/* Says which phase is over, and waits. */
static void report(const char *phase) {
    size_t bytes = 0;
    for (size_t t = 0; t < threads; t++)
        for (size_t d = 0; d < DOCUMENTS; d++) bytes += workers[t].document[d].bytes;
    printf("%s %zu bytes\n", phase, bytes);
    fflush(stdout);
    int c;
    while ((c = getchar()) != '\n')
        if (c == EOF) exit(0);
}

int main(int count, char **argument) {
    threads = number(count, argument, 1, 30);
    size_t mbytes = number(count, argument, 2, 20);
    unsigned idle_s = (unsigned)number(count, argument, 3, 12);
    if (threads < 1 || threads > THREADS_MAX || mbytes == 0) usage("content [THREADS [MBYTES [IDLE_S]]]");
    part_bytes = mbytes * 1000 * 1000 / threads;
    if (pthread_barrier_init(&barrier, NULL, (unsigned)threads) != 0) return 1;
    for (size_t i = 0; i < threads; i++) {
        workers[i].state = i;
        pthread_mutex_init(&workers[i].lock, NULL);
    }
    pthread_t thread;
    for (size_t i = 1; i < threads; i++)
        if (pthread_create(&thread, NULL, work, (void *)i) != 0) return 1;
    work(0);
    report("load");
    pthread_barrier_wait(&barrier);
    close_half(0);
    pthread_barrier_wait(&barrier);
    report("close");
    sleep(idle_s);
    report("idle");
    return 0;
}
