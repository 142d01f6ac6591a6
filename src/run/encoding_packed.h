/* encoding_packed.h - several marks in a 64-bit word, changed by one atomic OR or AND each; for p12 and p10.
 *
 *   | words with ENCODING_FIELDS marks each, for all cells and one more | heads, 2 bytes for each group |
 *
 * A mark is 0 while the program has the cell, else a link (encoding_list.h). Threads hold cells whose marks lie in one
 * word, so no mark is stored plainly; but each change is one instruction that needs no result and is never repeated:
 *
 *   live -> cached, returning   OR of the value
 *   free, returning -> cached   OR of all ones
 *   cached -> free              AND of the link, or of "last"
 *   cached -> live              AND of 0
 *
 * The file that includes this one defines ENCODING_BITS and ENCODING_FIELDS. */
enum cell_state { CELL_LIVE = 0, CELL_CACHED = (1 << ENCODING_BITS) - 1, CELL_RETURNING = CELL_CACHED - 2 };

/* The address of the word, and in its low three bits which of its marks. */
typedef uintptr_t mark_t;

_Static_assert((int)ENCODING_FIELDS * (int)ENCODING_BITS <= 64 && (int)ENCODING_FIELDS <= 8, "marks fit, and their numbers too");

static ALWAYS_INLINE mark_t mark_at(uint8_t *marks, size_t index) {
    return (uintptr_t)((uint64_t *)(void *)marks + index / ENCODING_FIELDS) | index % ENCODING_FIELDS;
}

static inline size_t mark_index(struct run *r, mark_t mark) {
    return (mark - (uintptr_t)run_marks(r)) / sizeof(uint64_t) * ENCODING_FIELDS + mark % sizeof(uint64_t);
}

static ALWAYS_INLINE uint64_t *packed_word(mark_t mark) {
    return (uint64_t *)(mark & ~(uintptr_t)7);
}

static ALWAYS_INLINE unsigned packed_shift(mark_t mark) {
    return (unsigned)(mark & 7) * ENCODING_BITS;
}

static ALWAYS_INLINE unsigned packed_get(mark_t mark) {
    return (unsigned)(relaxed_load(packed_word(mark)) >> packed_shift(mark)) & CELL_CACHED;
}

/* To the value from 0, and to all ones from anything. */
static ALWAYS_INLINE void packed_fill(mark_t mark, unsigned value) {
    __atomic_fetch_or(packed_word(mark), (uint64_t)value << packed_shift(mark), __ATOMIC_RELAXED);
}

/* From all ones to the value. */
static ALWAYS_INLINE void packed_keep(mark_t mark, unsigned value) {
    __atomic_fetch_and(packed_word(mark), ~((uint64_t)(CELL_CACHED ^ value) << packed_shift(mark)), __ATOMIC_RELAXED);
}

static ALWAYS_INLINE bool mark_is(mark_t mark, enum cell_state state) {
    return packed_get(mark) == state;
}

static ALWAYS_INLINE void mark_set(mark_t mark, enum cell_state state) {
    if (state == CELL_LIVE) packed_keep(mark, CELL_LIVE);
    else packed_fill(mark, state);
}

static inline unsigned list_link(struct run *r, size_t index) {
    return packed_get(mark_at(run_marks(r), index));
}

static inline void list_set_link(struct run *r, size_t index, unsigned link) {
    mark_t mark = mark_at(run_marks(r), index);
    if (link == CELL_CACHED) packed_fill(mark, CELL_CACHED);
    else packed_keep(mark, link);
}

static inline size_t packed_marks_bytes(size_t cells) {
    return (cells / ENCODING_FIELDS + 1) * sizeof(uint64_t);
}

static inline uint16_t *list_heads(struct run *r) {
    return (uint16_t *)(void *)(run_marks(r) + packed_marks_bytes(r->cells));
}

#include "run/encoding_list.h"

static inline size_t encoding_bytes(size_t cells) {
    return packed_marks_bytes(cells) + list_groups(cells) * sizeof(uint16_t);
}

static inline void encoding_init(struct run *r) {
    uint64_t *words = (uint64_t *)(void *)run_marks(r);
    for (size_t i = 0; i < packed_marks_bytes(r->cells) / sizeof(uint64_t); i++) words[i] = UINT64_MAX;
}
