/* encoding_u8.h - a byte for each cell: 0 while the program has it, else a link (encoding_list.h).
 *
 *   | a byte for each cell, and one more | heads, 2 bytes for each group of 252 cells |
 *
 * A list reaches 252 cells. Bytes are written by whoever holds the cell, plainly. */
enum { ENCODING_CELLS_MAX = RUN_CELLS_MAX, ENCODING_BITS = 8 };
#define ENCODING_NAME "u8"

enum cell_state { CELL_LIVE = 0, CELL_CACHED = 0xff, CELL_RETURNING = CELL_CACHED - 2 };

typedef uint8_t *mark_t;

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
    relaxed_store(mark, (uint8_t)state);
}

static inline unsigned list_link(struct run *r, size_t index) {
    return relaxed_load(mark_at(run_marks(r), index));
}

static inline void list_set_link(struct run *r, size_t index, unsigned link) {
    relaxed_store(mark_at(run_marks(r), index), (uint8_t)link);
}

static inline size_t u8_marks_bytes(size_t cells) {
    return round_up((cells + 1) * sizeof(uint8_t), sizeof(uint16_t));
}

static inline uint16_t *list_heads(struct run *r) {
    return (uint16_t *)(void *)(run_marks(r) + u8_marks_bytes(r->cells));
}

#include "run/encoding_list.h"

static inline size_t encoding_bytes(size_t cells) {
    return u8_marks_bytes(cells) + list_groups(cells) * sizeof(uint16_t);
}

static inline void encoding_init(struct run *r) {
    for (size_t i = 0; i <= r->cells; i++) list_set_link(r, i, CELL_CACHED);
}
