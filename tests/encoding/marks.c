/* marks.c - every change of a mark, each a function of its own, to be disassembled. */
#include "run/encoding.h"

void make_live(mark_t mark);
void make_cached(mark_t mark);
void make_returning(mark_t mark);
void make_free(struct run *r, size_t index, unsigned link);
void make_last(struct run *r, size_t index);

void make_live(mark_t mark) {
    mark_set(mark, CELL_LIVE);
}

void make_cached(mark_t mark) {
    mark_set(mark, CELL_CACHED);
}

void make_returning(mark_t mark) {
    mark_set(mark, CELL_RETURNING);
}

void make_free(struct run *r, size_t index, unsigned link) {
    list_set_link(r, index, link);
}

void make_last(struct run *r, size_t index) {
    list_set_link(r, index, LIST_END);
}
