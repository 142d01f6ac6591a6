/* encoding_bitmap.h - three bits for each cell.
 *
 *   | pairs of words, for 64 cells each and one more: marks, returning | a word for 64 cells each: free |
 *
 *   mark       0 while the program has it
 *   returning  1 beside a mark of 1: a thread of another lane freed it
 *   free       1 while it is the run's to lease; guarded by the bin's lock
 *
 * A cell whose mark is 1 and that is neither returning nor free is in a magazine, or was never handed out. Marks of
 * cells that different threads hold lie in one word, so they are changed by an atomic OR or AND, which needs no result.
 * `groups` has a bit for each word of the third map that is not 0. */
enum { ENCODING_CELLS_MAX = RUN_CELLS_MAX, BITMAP_WORD = 64 };
#define ENCODING_NAME "bitmap"

enum cell_state { CELL_LIVE, CELL_CACHED, CELL_RETURNING };

_Static_assert((int)RUN_CELLS_MAX <= 64 * BITMAP_WORD, "a bit for each word");

/* The address of the mark's bit: that of its byte, times 8, and its number in it. */
typedef uintptr_t mark_t;

static ALWAYS_INLINE mark_t mark_at(uint8_t *marks, size_t index) {
    return (uintptr_t)marks * 8 + index / BITMAP_WORD * (2 * BITMAP_WORD) + index % BITMAP_WORD;
}

#include "run/cell_ref.h"

static inline size_t mark_index(struct run *r, mark_t mark) {
    mark -= mark_at(run_marks(r), 0);
    return mark / (2 * BITMAP_WORD) * BITMAP_WORD + mark % BITMAP_WORD;
}

static ALWAYS_INLINE uint64_t *bitmap_word(mark_t mark) {
    return (uint64_t *)(mark / BITMAP_WORD * sizeof(uint64_t));
}

static ALWAYS_INLINE bool bitmap_has(const uint64_t *word, uint64_t bit) {
    return (relaxed_load(word) & bit) != 0;
}

static ALWAYS_INLINE bool mark_is(mark_t mark, enum cell_state state) {
    uint64_t bit = (uint64_t)1 << mark % BITMAP_WORD, *word = bitmap_word(mark);
    if (state == CELL_LIVE) return !bitmap_has(word, bit);
    return bitmap_has(word, bit) && bitmap_has(word + 1, bit) == (state == CELL_RETURNING);
}

static ALWAYS_INLINE void mark_set(mark_t mark, enum cell_state state) {
    uint64_t bit = (uint64_t)1 << mark % BITMAP_WORD, *word = bitmap_word(mark);
    if (state == CELL_LIVE) {
        __atomic_fetch_and(word, ~bit, __ATOMIC_RELAXED);
        return;
    }
    if (state == CELL_RETURNING) __atomic_fetch_or(word + 1, bit, __ATOMIC_RELAXED);
    else if (unlikely(bitmap_has(word + 1, bit))) __atomic_fetch_and(word + 1, ~bit, __ATOMIC_RELAXED);
    __atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
}

static inline size_t bitmap_words(size_t cells) {
    return cells / BITMAP_WORD + 1;
}

static inline uint64_t *bitmap_free(struct run *r) {
    return (uint64_t *)(void *)run_marks(r) + 2 * bitmap_words(r->cells);
}

static inline bool encoding_is_listed_locked(struct run *r, size_t index) {
    return (bitmap_free(r)[index / BITMAP_WORD] >> index % BITMAP_WORD & 1) != 0;
}

static inline bool encoding_is_free_locked(struct run *r, mark_t mark) {
    return encoding_is_listed_locked(r, mark_index(r, mark));
}

static inline size_t encoding_bytes(size_t cells) {
    return 3 * bitmap_words(cells) * sizeof(uint64_t);
}

static inline void encoding_init(struct run *r) {
    uint64_t *marks = (uint64_t *)(void *)run_marks(r);
    for (size_t i = 0; i < bitmap_words(r->cells); i++) marks[2 * i] = UINT64_MAX;
}

static inline size_t encoding_lease_locked(struct run *r, struct cell_ref *out, size_t n) {
    size_t done = 0;
    while (done < n && r->groups != 0) {
        unsigned word = (unsigned)__builtin_ctzl(r->groups);
        uint64_t free = bitmap_free(r)[word];
        for (; free != 0 && done < n; free &= free - 1)
            out[done++] = run_ref(r, word * BITMAP_WORD + (unsigned)__builtin_ctzl(free));
        bitmap_free(r)[word] = free;
        if (free == 0) r->groups &= r->groups - 1;
    }
    return done;
}

static inline void encoding_give_back_locked(struct run *r, size_t index) {
    bitmap_free(r)[index / BITMAP_WORD] |= (uint64_t)1 << index % BITMAP_WORD;
    r->groups |= (uint64_t)1 << index / BITMAP_WORD;
}

static inline size_t encoding_walk_locked(struct run *r) {
    size_t listed = 0;
    for (size_t word = 0; word * BITMAP_WORD < r->cells; word++) {
        uint64_t free = bitmap_free(r)[word];
        REQUIRE((free != 0) == (r->groups >> word & 1));
        for (; free != 0; free &= free - 1, listed++) {
            size_t index = word * BITMAP_WORD + (size_t)__builtin_ctzl(free);
            REQUIRE(index >= r->first && index < r->fresh && mark_is(mark_at(run_marks(r), index), CELL_CACHED));
        }
    }
    return listed;
}

static inline struct run_count encoding_count(struct run *r) {
    struct run_count c = {0, 0, 0, encoding_walk_locked(r), 0};
    for (size_t i = r->first; i < r->fresh; i++) {
        c.live += mark_is(mark_at(run_marks(r), i), CELL_LIVE);
        c.returning += mark_is(mark_at(run_marks(r), i), CELL_RETURNING);
    }
    c.cached = r->fresh - r->first - c.live - c.free;
    return c;
}
