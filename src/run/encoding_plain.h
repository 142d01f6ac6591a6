/* encoding_plain.h - a mark is a whole word of its own, written plainly by whoever holds the cell; for u8 and u16.
 *
 *   | a plain_t for each cell, and one more | heads, 2 bytes for each group |
 *
 * A mark is 0 while the program has the cell, else a link (encoding_list.h). The file that includes this one defines
 * ENCODING_BITS and plain_t. */
enum cell_state { CELL_LIVE = 0, CELL_CACHED = (1 << ENCODING_BITS) - 1, CELL_RETURNING = CELL_CACHED - 2 };

typedef plain_t *mark_t;

static ALWAYS_INLINE mark_t mark_at(uint8_t *marks, size_t index) {
    return (mark_t)(void *)marks + index;
}

static inline size_t mark_index(struct run *r, mark_t mark) {
    return (size_t)(mark - mark_at(run_marks(r), 0));
}

static ALWAYS_INLINE bool mark_is(mark_t mark, enum cell_state state) {
    return foldable_load(mark) == state;
}

static ALWAYS_INLINE void mark_set(mark_t mark, enum cell_state state) {
    relaxed_store(mark, (plain_t)state);
}

static inline unsigned list_link(struct run *r, size_t index) {
    return relaxed_load(mark_at(run_marks(r), index));
}

static inline void list_set_link(struct run *r, size_t index, unsigned link) {
    relaxed_store(mark_at(run_marks(r), index), (plain_t)link);
}

static inline size_t plain_marks_bytes(size_t cells) {
    return round_up((cells + 1) * sizeof(plain_t), sizeof(uint16_t));
}

static inline uint16_t *list_heads(struct run *r) {
    return (uint16_t *)(void *)(run_marks(r) + plain_marks_bytes(r->cells));
}

#include "run/encoding_list.h"

static inline size_t encoding_bytes(size_t cells) {
    return plain_marks_bytes(cells) + list_groups(cells) * sizeof(uint16_t);
}

static inline void encoding_init(struct run *r) {
    for (size_t i = 0; i <= r->cells; i++) list_set_link(r, i, CELL_CACHED);
}
