#include "scenarios.h"

#include <pthread.h>

#include "allocator.h"

/* ---- the blocks that live ---- */

enum { BLOCKS_MAX = 40000, END_BYTES = 48 };

struct block {
    unsigned char *p;
    size_t bytes;
    unsigned char tag;
};

static struct block blocks[BLOCKS_MAX];
static size_t block_count;
static unsigned char next_tag;

/* A block carries its tag at both ends, and in between every 256 bytes, or once a page when it is large. */
static size_t step_at(const struct block *b, size_t i) {
    size_t step = b->bytes > 65536 ? 4096 : 256;
    if (i < END_BYTES || i + END_BYTES >= b->bytes) return 1;
    return b->bytes - END_BYTES - i < step ? b->bytes - END_BYTES - i : step;
}

static void write_tag(struct block *b) {
    b->tag = ++next_tag;
    for (size_t i = 0; i < b->bytes; i += step_at(b, i)) b->p[i] = b->tag;
}

static void check_tag(const struct block *b, size_t n) {
    for (size_t i = 0; i < b->bytes && i < n; i += step_at(b, i)) EXPECT(b->p[i] == b->tag);
}

/* Notes a block, when there is one. */
static bool keep(void *p, size_t n) {
    if (p == NULL) return false;
    EXPECT(block_count < BLOCKS_MAX && (uintptr_t)p % 16 == 0 && usable(p) >= n);
    struct block *b = &blocks[block_count++];
    *b = (struct block){.p = p, .bytes = n};
    write_tag(b);
    return true;
}

static void free_last(void) {
    struct block *b = &blocks[--block_count];
    check_tag(b, b->bytes);
    release(b->p);
}

static void free_at(size_t i) {
    struct block last = blocks[block_count - 1];
    blocks[block_count - 1] = blocks[i];
    blocks[i] = last;
    free_last();
}

static void free_everything(void) {
    while (block_count != 0) free_last();
}

/* Gives the block n bytes; it is unchanged when that is refused. */
static bool change(struct block *b, size_t n) {
    void *p = reallocate(b->p, n);
    check_tag(&(struct block){.p = p != NULL ? p : b->p, .bytes = b->bytes, .tag = b->tag}, n);
    if (p == NULL) return false;
    EXPECT(usable(p) >= n);
    b->p = p;
    b->bytes = n;
    write_tag(b);
    return true;
}

static bool keep_zeroed(size_t n) {
    const uint64_t *p = allocate_zeroed(n);
    for (size_t i = 0; p != NULL && i < n / sizeof *p; i++) EXPECT(p[i] == 0);
    return keep((void *)(uintptr_t)p, n);
}

/* ---- scenarios ---- */

static void first_call(void) {
    keep(allocate(24), 24);
    keep(allocate(24), 24);
}

static void first_call_is_large(void) {
    keep(allocate(100000), 100000);
    keep(allocate(24), 24);
}

/* All small classes, and more than one region of 4 MiB. */
static void many_runs(void) {
    for (size_t n = 16; n <= 32768; n += n / 4)
        for (size_t i = 0; i < 6 + 65536 / n; i++) keep(allocate(n), n);
    for (size_t i = 0; i < 5000; i++) keep(allocate(1000), 1000);
}

static void large_blocks(void) {
    for (size_t n = 40000; n <= 8 << 20; n += n / 3) keep(allocate(n), n);
    for (size_t i = 0; i < 20 && block_count > 3; i++) free_at(i % 3);
    for (size_t n = 40000; n <= 8 << 20; n += n / 2) keep(allocate(n), n);
}

static void direct_blocks(void) {
    for (size_t i = 0; i < 4; i++) keep(allocate(9 << 20), 9 << 20);
    if (block_count > 1) free_at(0);
    if (block_count > 1) free_at(0);
    keep(allocate(9 << 20), 9 << 20);
    keep(allocate(20 << 20), 20 << 20);
    keep_zeroed(9 << 20);
}

/* Through cells, spans and mappings, up and down. */
static void realloc_through_all_kinds(void) {
    static const size_t sizes[] = {100, 3000, 30000, 40000, 200000, 3 << 20, 8 << 20, 9 << 20, 12 << 20, 30 << 20,
                                   20 << 20, 3 << 20, 100000, 20000, 16};
    if (!keep(allocate(10), 10)) return;
    struct block *b = &blocks[block_count - 1];
    keep(allocate(100000), 100000); /* in the way */
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        change(b, sizes[i]);
        if (i == 8) keep(allocate(10 << 20), 10 << 20);
    }
}

static void aligned_blocks(void) {
    for (size_t alignment = 32; alignment <= (size_t)64 << 20; alignment *= 2) {
        for (size_t n = 50; n <= 500000; n *= 100) {
            void *p = allocate_aligned(n, alignment);
            EXPECT((uintptr_t)p % alignment == 0);
            keep(p, n);
        }
    }
}

/* Memory that was used, given back, perhaps in vain, and must read as zero all the same. */
static void zeroed_blocks(void) {
    static const size_t sizes[] = {16, 504, 20000, 70000, 1000000, 9 << 20};
    for (int round = 0; round < 2; round++) {
        size_t before = block_count;
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            keep(allocate(sizes[i]), sizes[i]);
            keep_zeroed(sizes[i]);
        }
        while (block_count > before) free_last();
        if (round == 0) trim();
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) keep_zeroed(sizes[i]);
}

static void trim_often(void) {
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < 1000; i++) keep(allocate(500), 500);
        for (size_t i = 0; i < 20; i++) keep(allocate(100000), 100000);
        keep(allocate(9 << 20), 9 << 20);
        for (size_t i = 0; i + 3 < block_count; i += 3) free_at(i);
        trim();
    }
}

static void free_all(void) {
    for (size_t n = 16; n <= 32768; n *= 4)
        for (size_t i = 0; i < 3 + 130000 / n; i++) keep(allocate(n), n);
    keep(allocate(9 << 20), 9 << 20);
    keep(allocate(3 << 20), 3 << 20);
    free_everything();
    keep_zeroed(3 << 20);
    trim();
    keep_zeroed(3 << 20);
    free_everything();
}

/* ---- scenarios with threads: one after the other works on the list of blocks ---- */

static void *allocating_thread(void *unused) {
    (void)unused;
    for (size_t n = 16; n < 70000; n *= 3)
        for (size_t i = 0; i < 3; i++) keep(allocate(n), n);
    allocator_thread_ends();
    return NULL;
}

static void *freeing_thread(void *unused) {
    (void)unused;
    for (size_t i = 0; i + 2 < block_count; i += 2) free_at(i);
    keep(allocate(100), 100);
    allocator_thread_ends();
    return NULL;
}

static void run_thread(void *(*f)(void *)) {
    pthread_t id;
    if (pthread_create(&id, NULL, f, NULL) == 0) EXPECT(pthread_join(id, NULL) == 0);
}

static void threads_come_and_go(void) {
    for (int i = 0; i < 5; i++) run_thread(allocating_thread);
}

/* This thread has the first lane: the other one frees what it does not own. */
static void frees_by_others(void) {
    for (size_t n = 16; n < 40000; n *= 2)
        for (size_t i = 0; i < 90; i++) keep(allocate(n), n);
    run_thread(freeing_thread);
    for (size_t i = 0; i < 500; i++) keep(allocate(64), 64);
    run_thread(freeing_thread);
}

const struct scenario scenarios[] = {
    {"first_call", first_call},
    {"first_call_is_large", first_call_is_large},
    {"many_runs", many_runs},
    {"large_blocks", large_blocks},
    {"direct_blocks", direct_blocks},
    {"realloc_through_all_kinds", realloc_through_all_kinds},
    {"aligned_blocks", aligned_blocks},
    {"zeroed_blocks", zeroed_blocks},
    {"trim_often", trim_often},
    {"free_all", free_all},
    {"threads_come_and_go", threads_come_and_go},
    {"frees_by_others", frees_by_others},
};

const unsigned scenario_count = sizeof scenarios / sizeof scenarios[0];

/* Everything is served again. */
static void use_everything(void) {
    EXPECT(keep(allocate(24), 24));
    for (size_t n = 16; n <= 32768; n *= 2) EXPECT(keep(allocate(n), n));
    EXPECT(keep(allocate(100000), 100000));
    EXPECT(keep(allocate(9 << 20), 9 << 20));
    EXPECT(keep_zeroed(300000));
    EXPECT(change(&blocks[block_count - 1], 10 << 20));
    EXPECT(change(&blocks[block_count - 1], 100));
    EXPECT(keep(allocate_aligned(1000, 1 << 20), 1000));
    free_everything();
}

unsigned long scenario_play(const struct scenario *s) {
    s->run();
    unsigned long calls = system_calls();
    set_failing(0, 1);
    for (size_t i = 0; i < block_count; i++) check_tag(&blocks[i], blocks[i].bytes);
    free_everything();
    use_everything();
    trim();
#ifndef TEST_FROM_OUTSIDE
    stats_check_all();
    struct huddle_stats after = statistics();
    EXPECT(after.live_bytes == 0 && after.live_blocks == 0);
    EXPECT(after.cached_bytes == 0 && after.dirty_bytes == 0);
#endif
    return calls;
}
