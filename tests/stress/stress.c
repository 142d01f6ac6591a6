/* stress.c - threads do random things to blocks that they share, beside a model that knows what every block holds.
 *
 *   stress [threads=N] [operations=N] [rounds=N] [seed=N] [KEY=VALUE]...
 *
 * All usable bytes of a live block carry a pattern made of the block's number: a block that overlaps another, or is
 * written by the allocator, or loses its bytes in realloc, is noticed when it is looked at next. Blocks lie in slots,
 * which belong to all threads: whoever exchanges a slot has what was in it, so blocks are freed by others as often as
 * by their owners. Threads end between the rounds, and their blocks stay.
 *
 * Built twice: with the inside of the allocator, where KEY=VALUE sets its options and all is walked at the end, and for
 * a preloaded library. */
#include <pthread.h>
#include <time.h>

#include "allocator.h"

#ifdef TEST_FROM_OUTSIDE
static uint64_t random_next(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static size_t random_below(uint64_t *state, size_t n) {
    return (size_t)(((__uint128_t)random_next(state) * n) >> 64);
}
#endif

enum { THREADS_MAX = 64, SLOTS = 1024, RECORDS = SLOTS + THREADS_MAX * 2 };

struct block {
    void *p;
    size_t bytes; /* usable */
    uint64_t number;
    struct block *next; /* of the unused ones of a thread */
};

struct thread {
    pthread_t id;
    uint64_t random, numbers;
    size_t operations, frees_of_others;
    unsigned index;
};

static struct block *slots[SLOTS];
static struct block records[RECORDS];
static struct block *unused; /* guarded by unused_lock */
static pthread_mutex_t unused_lock = PTHREAD_MUTEX_INITIALIZER;
static struct thread threads[THREADS_MAX];

static struct block *new_record(void) {
    pthread_mutex_lock(&unused_lock);
    struct block *b = unused;
    EXPECT(b != NULL);
    unused = b->next;
    pthread_mutex_unlock(&unused_lock);
    return b;
}

static void drop_record(struct block *b) {
    pthread_mutex_lock(&unused_lock);
    b->next = unused;
    unused = b;
    pthread_mutex_unlock(&unused_lock);
}

static uint64_t word_of(uint64_t number, size_t i) {
    return (number << 20 ^ i) * 0x9e3779b97f4a7c15u;
}

static void fill(struct block *b) {
    uint64_t *w = b->p;
    for (size_t i = 0; i < b->bytes / sizeof *w; i++) w[i] = word_of(b->number, i);
}

static void check_bytes(const struct block *b, size_t n) {
    const uint64_t *w = b->p;
    for (size_t i = 0; i < n / sizeof *w; i++) EXPECT(w[i] == word_of(b->number, i));
}

static void check(const struct block *b) {
    EXPECT(usable(b->p) == b->bytes);
    check_bytes(b, b->bytes);
}

/* Mostly small; of every size there is, up to 2 MiB. */
static size_t random_size(uint64_t *random) {
    size_t kind = random_below(random, 1000);
    if (kind < 600) return random_below(random, 129);
    if (kind < 850) return random_below(random, 1025);
    if (kind < 960) return random_below(random, 8 * 1024);
    if (kind < 988) return random_below(random, 48 * 1024);
    if (kind < 998) return random_below(random, 256 * 1024);
    return random_below(random, 2 * 1024 * 1024);
}

/* What a block of n bytes may have: at most an eighth more, or up to the next 16 bytes, or up to the next page. */
static size_t most_usable(size_t n) {
    size_t more = n / 8 > 16 ? n / 8 : 16;
    return n > 32768 ? (n + 65535) / 65536 * 65536 : n + more;
}

static struct block *make(struct thread *t, void *p, size_t n, size_t most) {
    EXPECT(p != NULL);
    EXPECT((uintptr_t)p % 16 == 0);
    struct block *b = new_record();
    b->p = p;
    b->bytes = usable(p);
    b->number = t->numbers++ << 8 | t->index;
    EXPECT(b->bytes >= n && b->bytes <= most);
    fill(b);
    return b;
}

static struct block *make_plain(struct thread *t) {
    size_t n = random_size(&t->random);
    return make(t, allocate(n), n, most_usable(n));
}

static struct block *make_zeroed(struct thread *t) {
    size_t n = random_size(&t->random);
    unsigned char *p = allocate_zeroed(n);
    EXPECT(p != NULL);
    for (size_t i = 0; i < n; i++) EXPECT(p[i] == 0);
    return make(t, p, n, most_usable(n));
}

static struct block *make_aligned(struct thread *t) {
    size_t n = random_size(&t->random);
    size_t alignment =
        (size_t)1 << (random_below(&t->random, 40) == 0 ? random_below(&t->random, 23) : random_below(&t->random, 13));
    void *p = allocate_aligned(n, alignment);
    EXPECT((uintptr_t)p % alignment == 0);
    return make(t, p, n, SIZE_MAX);
}

static void reallocate_block(struct thread *t, struct block *b) {
    size_t n = random_below(&t->random, 3) == 0 ? b->bytes + random_below(&t->random, b->bytes / 4 + 1)
                                               : random_size(&t->random) + 1;
    void *p = reallocate(b->p, n);
    EXPECT(p != NULL);
    size_t old = b->bytes;
    b->p = p;
    b->bytes = usable(p);
    EXPECT(b->bytes >= n);
    check_bytes(b, n < old ? n : old);
    b->number = t->numbers++ << 8 | t->index;
    fill(b);
}

static void free_block(struct thread *t, struct block *b) {
    check(b);
    if ((b->number & 0xff) != t->index) t->frees_of_others++;
    release(b->p);
    drop_record(b);
}

/* The owner's place for the block, or anybody's. The release and acquire of the exchange hand over the block's bytes
 * too. */
static struct block *exchange(struct thread *t, struct block *b) {
    size_t i = random_below(&t->random, 2) == 0 ? random_below(&t->random, SLOTS)
                                               : t->index * 16 % SLOTS + random_below(&t->random, 16);
    return __atomic_exchange_n(&slots[i], b, __ATOMIC_ACQ_REL);
}

static void operate(struct thread *t) {
    struct block *b = exchange(t, NULL);
    if (b != NULL) {
        if (random_below(&t->random, 4) != 0) {
            free_block(t, b);
            return;
        }
        check(b);
        reallocate_block(t, b);
    } else {
        switch (random_below(&t->random, 4)) {
        case 0: b = make_zeroed(t); break;
        case 1: b = make_aligned(t); break;
        default: b = make_plain(t); break;
        }
    }
    b = exchange(t, b);
    if (b != NULL) free_block(t, b);
}

static void *run(void *argument) {
    struct thread *t = argument;
    for (size_t i = 0; i < t->operations; i++) operate(t);
    allocator_thread_ends();
    return NULL;
}

static void run_round(size_t count) {
    for (size_t i = 1; i < count; i++) EXPECT(pthread_create(&threads[i].id, NULL, run, &threads[i]) == 0);
    for (size_t i = 0; i < threads[0].operations; i++) operate(&threads[0]);
    for (size_t i = 1; i < count; i++) EXPECT(pthread_join(threads[i].id, NULL) == 0);
#ifndef TEST_FROM_OUTSIDE
    stats_check_all();
#endif
}

/* Everything is freed, and the allocator knows it. */
static void finish(size_t bytes_before) {
    for (size_t i = 0; i < SLOTS; i++)
        if (slots[i] != NULL) free_block(&threads[0], slots[i]);
    trim();
#ifdef TEST_FROM_OUTSIDE
    struct huddle_stats s = {.struct_size = sizeof s};
    EXPECT(huddle_stats(&s));
    EXPECT(s.live_bytes <= bytes_before + 64 * 1024); /* libc has some of its own */
#else
    struct huddle_stats s = statistics();
    stats_check_all();
    EXPECT(s.live_bytes == bytes_before && s.live_blocks == 0);
    EXPECT(s.cached_bytes == 0);
    EXPECT(s.large_blocks == 0 && s.dirty_bytes == 0);
#endif
}

static uint64_t value_of(const char *argument, const char *key, uint64_t otherwise) {
    size_t n = strlen(key);
    return strncmp(argument, key, n) == 0 ? strtoull(argument + n, NULL, 0) : otherwise;
}

#ifndef TEST_FROM_OUTSIDE
static void wrong_option(const char *part, size_t length, const char *problem) {
    fprintf(stderr, "%.*s: %s\n", (int)length, part, problem);
    exit(2);
}
#endif

int main(int argc, char **argv) {
    allocator_start();
    uint64_t count = 2, operations = 100000, rounds = 3, seed = (uint64_t)time(NULL) * 1000 + (uint64_t)getpid() % 1000;
    for (int i = 1; i < argc; i++) {
        uint64_t none = UINT64_MAX;
        if (value_of(argv[i], "threads=", none) != none) count = value_of(argv[i], "threads=", 0);
        else if (value_of(argv[i], "operations=", none) != none) operations = value_of(argv[i], "operations=", 0);
        else if (value_of(argv[i], "rounds=", none) != none) rounds = value_of(argv[i], "rounds=", 0);
        else if (value_of(argv[i], "seed=", none) != none) seed = value_of(argv[i], "seed=", 0);
#ifdef TEST_FROM_OUTSIDE
        else return 2;
#else
        else options_parse(argv[i], wrong_option);
#endif
    }
    EXPECT(count >= 1 && count <= THREADS_MAX && rounds >= 1);
    printf("threads=%zu operations=%zu rounds=%zu seed=%llu\n", (size_t)count, (size_t)operations, (size_t)rounds,
           (unsigned long long)seed);
    fflush(stdout);
    size_t bytes_before = 0;
#ifdef TEST_FROM_OUTSIDE
    struct huddle_stats s = {.struct_size = sizeof s};
    EXPECT(huddle_stats(&s));
    bytes_before = s.live_bytes;
#endif
    for (size_t i = 0; i < RECORDS; i++) drop_record(&records[i]);
    for (unsigned i = 0; i < count; i++) {
        threads[i].index = i;
        threads[i].random = seed + i * 0x12345678u;
        threads[i].operations = (size_t)(operations / count / rounds);
    }
    for (size_t r = 0; r < rounds; r++) run_round((size_t)count);
    finish(bytes_before);
    size_t others = 0;
    for (unsigned i = 0; i < count; i++) others += threads[i].frees_of_others;
    EXPECT(count == 1 || others != 0);
    printf("%zu frees of others' blocks\n", others);
    return 0;
}
