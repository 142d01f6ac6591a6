#include "thread/magazine.h"

#include "base/options.h"
#include "os/fail.h"
#include "os/system.h"
#include "span/meta.h"
#include "span/purge.h"

enum {
    FIRST_CAPACITY = 3,
    FIRST_CAPACITY_SHUFFLED = 31, /* a batch of 16 is put in random order, one of 2 hardly can be */
    LAST_CAPACITY = 2047, /* with the sentinel, 32 KiB of entries */
    CLASS_BYTES_MAX = 128 * 1024,
    LARGE_CELL_MIN = 512, /* from here a refill costs little beside the use of what it brings: less is kept */
    LARGE_CELL_BYTES_MAX = 32 * 1024,
    THREADS_PER_LANE = 2, /* the bound in total is what so many threads for each lane may have */
};

struct cell_ref magazine_empty_entry[1];

uint32_t magazine_lanes;

void magazine_init(struct magazine *m, unsigned class) {
    *m = (struct magazine)MAGAZINE_EMPTY;
    m->class = (uint8_t)class;
    m->reciprocal = run_reciprocal(size_class_bytes(class));
}

static size_t entries_bytes(size_t capacity) {
    return (capacity + 1) * sizeof(struct cell_ref);
}

static size_t first_capacity(size_t bytes, size_t most) {
    if (!relaxed_load(&options.shuffle)) return bytes < LARGE_CELL_MIN ? FIRST_CAPACITY : 1;
    size_t first = FIRST_CAPACITY_SHUFFLED;
    while (first > most) first /= 2;
    return first;
}

/* The next step of the capacity, so that entries and sentinel fill a power of two of bytes; the same when at the
 * bound. */
static size_t next_capacity(const struct magazine *m) {
    size_t bytes = size_class_bytes(m->class);
    size_t most = min_size(LAST_CAPACITY, (bytes < LARGE_CELL_MIN ? CLASS_BYTES_MAX : LARGE_CELL_BYTES_MAX) / bytes);
    if (m->capacity == 0) return first_capacity(bytes, most);
    return m->capacity * (size_t)2 + 1 <= most ? m->capacity * (size_t)2 + 1 : m->capacity;
}

void magazine_grow(struct magazine *m, size_t *thread_bytes) {
    size_t capacity = next_capacity(m), added = (capacity - m->capacity) * size_class_bytes(m->class);
    if (added == 0) return;
    size_t bound = (size_t)relaxed_load(&options.cache_kib) * KIB;
    bool is_small_start = m->capacity == 0 && size_class_bytes(m->class) < LARGE_CELL_MIN;
    if (!is_small_start &&
        (*thread_bytes + added > bound || relaxed_load(&purge_cached_bytes) + added > bound * THREADS_PER_LANE * max_size(relaxed_load(&magazine_lanes), 2)))
        return;
    struct cell_ref *base = meta_alloc(entries_bytes(capacity));
    if (base == NULL) return;
    size_t n = magazine_count(m);
    for (size_t i = 1; i <= n; i++) base[i] = m->base[i];
    if (m->capacity != 0) meta_free(m->base, entries_bytes(m->capacity));
    m->base = base;
    m->top = base + 1 + n;
    m->limit = base + 1 + capacity;
    m->capacity = (uint16_t)capacity;
    *thread_bytes += added;
    shared_add(&purge_cached_bytes, added);
}

void magazine_release(struct magazine *m, size_t *thread_bytes) {
    if (m->capacity == 0) return;
    ASSERT(magazine_count(m) == 0);
    size_t bytes = m->capacity * size_class_bytes(m->class);
    meta_free(m->base, entries_bytes(m->capacity));
    *thread_bytes -= bytes;
    shared_add(&purge_cached_bytes, -bytes);
    magazine_init(m, m->class);
}

size_t magazine_total_bytes(void) {
    return relaxed_load(&purge_cached_bytes);
}

void magazine_check(const struct magazine *m) {
    REQUIRE(m->base < m->top && m->top <= m->limit && m->base[0].cell == NULL); /* M1 */
    for (const struct cell_ref *e = m->base + 1; e < m->top; e++) REQUIRE(mark_is(e->mark, CELL_CACHED)); /* M2 */
}
