#include "model.h"

#include "allocator.h"
#include "huddle/zone.h"

enum { ZONES = 5, BLOCKS_MAX = 4000, MARKS_MAX = 60, BUFFER_BYTES = 20000, CHECK_ALL = 64 };

struct block {
    unsigned char *start;
    size_t n;     /* bytes that hold `value` */
    size_t asked; /* what resizing is told */
    unsigned char value;
};

struct point {
    huddle_zone_mark_t mark;
    size_t blocks, calls;
};

struct shadow {
    huddle_zone_t *z;
    huddle_zone_options_t options;
    void *memory; /* of the caller's, or NULL */
    struct block block[BLOCKS_MAX];
    struct point point[MARKS_MAX];
    size_t blocks, points;
    size_t calls; /* that are still to be made */
};

static struct shadow shadows[ZONES];

static size_t below(struct source *s, size_t n) {
    return s->below(s, n);
}

static bool has(const struct shadow *w, unsigned flag) {
    return (w->options.flags & flag) != 0;
}

static void count_call(void *calls) {
    --*(size_t *)calls;
}

/* ---- blocks ---- */

static void check_block(const struct block *b) {
    for (size_t i = 0; i < b->n; i++) EXPECT(b->start[i] == b->value);
}

static void check_all(const struct shadow *w) {
    for (size_t i = 0; i < w->blocks; i++) check_block(&w->block[i]);
}

static void add_block(struct source *s, struct shadow *w, void *start, size_t n, size_t asked) {
    struct block *b = &w->block[w->blocks++];
    *b = (struct block){start, n, asked, (unsigned char)below(s, 256)};
    memset(start, b->value, n);
}

static size_t any_size(struct source *s) {
    static const size_t most[] = {1, 20, 300, 300, 300, 300, 5000, 5000, 20000, 20000, 200000};
    size_t kind = below(s, 60);
    if (kind == 59) return below(s, 3000000);
    return below(s, most[kind % 11]);
}

static void allocate_block(struct source *s, struct shadow *w) {
    size_t n = any_size(s), align = 1, got = n;
    bool is_zero = has(w, HUDDLE_ZONE_ZERO);
    void *p;
    switch (below(s, 8)) {
    case 0:
        p = huddle_zone_zalloc(w->z, n);
        is_zero = true;
        break;
    case 1: p = huddle_zone_packed(w->z, n); break;
    case 2:
        align = (size_t)1 << below(s, 14);
        p = huddle_zone_aligned(w->z, align, n);
        break;
    case 3:
        align = (size_t)1 << below(s, 8);
        p = huddle_zone_zarray(w->z, 1, n, align);
        is_zero = true;
        break;
    case 4: p = huddle_zone_at_least(w->z, n, &got); break;
    default: p = huddle_zone_alloc(w->z, n);
    }
    if (p == NULL) {
        EXPECT(w->options.limit != 0 || has(w, HUDDLE_ZONE_FIXED));
        return;
    }
    EXPECT((uintptr_t)p % align == 0 && got >= n);
    EXPECT(!is_zero || is_all_zero(p, n));
    EXPECT(n == 0 || (huddle_zone_contains(w->z, p) && huddle_zone_contains(w->z, (char *)p + n - 1)));
    EXPECT(w->memory != NULL || huddle_zone_of(p) == w->z);
    add_block(s, w, p, n, got);
}

static void extend_block(struct source *s, struct shadow *w) {
    if (w->blocks == 0) return;
    struct block *b = &w->block[below(s, 2) ? w->blocks - 1 : below(s, w->blocks)];
    size_t n = any_size(s);
    if (!huddle_zone_extend(w->z, b->start, b->asked, n)) {
        EXPECT(n > b->asked);
        return;
    }
    b->n = n < b->n ? n : b->n;
    check_block(b);
    b->n = b->asked = n;
    memset(b->start, b->value, n);
}

static void reallocate_block(struct source *s, struct shadow *w) {
    if (w->blocks == 0) return;
    struct block *b = &w->block[below(s, w->blocks)];
    size_t n = any_size(s), kept = n < b->n ? n : b->n;
    unsigned char *p = huddle_zone_realloc(w->z, b->start, b->asked, n);
    if (p == NULL) return;
    check_block(&(struct block){p, kept, n, b->value});
    if (p != b->start) {
        add_block(s, w, p, n, n);
        return;
    }
    b->n = b->asked = n;
    memset(p, b->value, n);
}

static void pop_block(struct shadow *w) {
    size_t oldest = w->points == 0 ? 0 : w->point[w->points - 1].blocks;
    if (w->blocks == oldest) return;
    const struct block *b = &w->block[w->blocks - 1];
    if (huddle_zone_pop(w->z, b->start, b->asked)) w->blocks--;
}

static void grow_object(struct source *s, struct shadow *w) {
    unsigned char value = (unsigned char)below(s, 256);
    size_t parts = below(s, 20), sum = 0, length;
    bool is_whole = true;
    if (has(w, HUDDLE_ZONE_SHARED)) return;
    EXPECT(huddle_zone_buf_begin(w->z) == 0);
    for (size_t i = 0; i < parts && is_whole; i++) {
        size_t n = below(s, 3000);
        void *to = huddle_zone_buf_grow(w->z, n);
        is_whole = to != NULL;
        if (is_whole) memset(to, value, n);
        if (is_whole) sum += n;
        if (below(s, 5) == 0) huddle_zone_alloc(w->z, below(s, 100));
    }
    unsigned char *p = is_whole && below(s, 4) != 0 ? huddle_zone_buf_finish(w->z, &length) : NULL;
    if (p == NULL) {
        EXPECT(huddle_zone_buf_abandon(w->z) == 0);
        return;
    }
    EXPECT(length == sum && p[length] == '\0');
    struct block *b = &w->block[w->blocks++];
    *b = (struct block){p, length, length + 1, value};
    check_block(b);
}

/* ---- zones ---- */

static void open_one(struct source *s, struct shadow *w) {
    static const unsigned flags[] = {0, 0, 0, 0, HUDDLE_ZONE_ZERO, HUDDLE_ZONE_SECURE, HUDDLE_ZONE_NODUMP,
                                     HUDDLE_ZONE_ZERO | HUDDLE_ZONE_SECURE, HUDDLE_ZONE_SHARED,
                                     HUDDLE_ZONE_SHARED | HUDDLE_ZONE_ZERO, HUDDLE_ZONE_FIXED};
    huddle_zone_options_t o = {.struct_size = sizeof o, .name = "model"};
    w->blocks = w->points = w->calls = 0;
    w->memory = NULL;
    w->options = o;
    if (below(s, 3) == 0) {
        w->z = huddle_zone_open(NULL);
        EXPECT(w->z != NULL);
        return;
    }
    o.flags = flags[below(s, sizeof flags / sizeof flags[0])];
    if (below(s, 4) == 0) o.min_align = 1u << below(s, 10);
    if (below(s, 3) == 0) o.chunk_max = (size_t)4096 << below(s, 9);
    if (below(s, 5) == 0) o.large_min = 4096 + below(s, 200000);
    if (below(s, 6) == 0) o.limit = 1 + below(s, 3000000);
    if (below(s, 5) == 0) o.retain = below(s, 1000000);
    bool is_in_place = o.flags == HUDDLE_ZONE_FIXED || (below(s, 5) == 0 && !(o.flags & HUDDLE_ZONE_SHARED));
    bool has_buffer = !is_in_place && below(s, 5) == 0 && !(o.flags & HUDDLE_ZONE_SHARED);
    if (is_in_place || has_buffer) EXPECT((w->memory = allocate(BUFFER_BYTES)) != NULL);
    size_t shift = below(s, 64);
    if (has_buffer) {
        o.buffer = (char *)w->memory + shift;
        o.buffer_bytes = below(s, BUFFER_BYTES - 64);
    }
    w->options = o;
    w->z = is_in_place ? huddle_zone_init((char *)w->memory + shift, 1024 + below(s, BUFFER_BYTES - 1100), &o) : huddle_zone_open(&o);
    EXPECT(w->z != NULL);
}

static void close_one(struct shadow *w) {
    check_all(w);
    EXPECT(huddle_zone_close(w->z) == 0 && w->calls == 0);
    if (w->memory != NULL) release(w->memory);
}

static void reset_one(struct shadow *w) {
    EXPECT(huddle_zone_reset(w->z) == 0 && w->calls == 0);
    w->blocks = w->points = 0;
}

static void mark_one(struct shadow *w) {
    if (w->points == MARKS_MAX || has(w, HUDDLE_ZONE_SHARED)) return;
    huddle_zone_mark_t m = huddle_zone_mark(w->z);
    if (m.id != 0) w->point[w->points++] = (struct point){m, w->blocks, w->calls};
}

static void rewind_one(struct source *s, struct shadow *w) {
    if (w->points == 0) return;
    size_t to = below(s, w->points);
    huddle_zone_mark_t youngest = w->point[w->points - 1].mark;
    EXPECT(huddle_zone_rewind(w->z, w->point[to].mark) == 0);
    EXPECT(youngest.id == w->point[to].mark.id || huddle_zone_rewind(w->z, youngest) == -1);
    EXPECT(w->calls == w->point[to].calls);
    w->blocks = w->point[to].blocks;
    w->points = to + 1;
}

/* Zones in memory of the caller's are not merged, but where the buffer was too small to be used. */
static void end_buffer(struct shadow *w) {
    if (w->memory == NULL) return;
    EXPECT(w->options.buffer != NULL && w->options.buffer_bytes < 2 * 64 + 16);
    release(w->memory);
}

/* The calls of both are counted where they were: so both end now. */
static void merge_two(struct source *s, struct shadow *into, struct shadow *from) {
    if (into == from || huddle_zone_merge(into->z, from->z) != 0) return;
    check_all(into);
    check_all(from);
    for (size_t i = 0; i < from->blocks; i++) EXPECT(huddle_zone_of(from->block[i].start) == into->z);
    EXPECT(has(from, HUDDLE_ZONE_SECURE) || huddle_zone_close(from->z) == -1); /* it would stop the program */
    EXPECT(huddle_zone_close(into->z) == 0);
    EXPECT(into->calls == 0 && from->calls == 0);
    end_buffer(into);
    end_buffer(from);
    open_one(s, into);
    open_one(s, from);
}

static void step(struct source *s, size_t number) {
    struct shadow *w = &shadows[below(s, ZONES)];
    if (w->blocks > BLOCKS_MAX - 2) reset_one(w);
    switch (below(s, 40)) {
    case 0:
        if (below(s, 20) != 0) break;
        close_one(w);
        open_one(s, w);
        break;
    case 1:
        if (below(s, 10) == 0) reset_one(w);
        break;
    case 2:
    case 3: mark_one(w); break;
    case 4: rewind_one(s, w); break;
    case 5:
        if (huddle_zone_on_close(w->z, count_call, &w->calls) != 0) w->calls++;
        break;
    case 6: extend_block(s, w); break;
    case 7: reallocate_block(s, w); break;
    case 8: pop_block(w); break;
    case 9: merge_two(s, w, &shadows[below(s, ZONES)]); break;
    case 10: huddle_zone_trim(w->z, below(s, 100000)); break;
    case 11: grow_object(s, w); break;
    case 12:
        if (below(s, 4) == 0) huddle_zone_child(w->z, NULL);
        break;
    default: allocate_block(s, w);
    }
    if (number % CHECK_ALL == 0) check_all(w);
    else if (w->blocks != 0) check_block(&w->block[below(s, w->blocks)]);
}

void model_run(struct source *s, size_t operations) {
    for (size_t i = 0; i < ZONES; i++) open_one(s, &shadows[i]);
    for (size_t i = 0; i < operations; i++) step(s, i);
    for (size_t i = 0; i < ZONES; i++) close_one(&shadows[i]);
}
