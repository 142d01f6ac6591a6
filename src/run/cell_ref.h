/* cell_ref.h - a cell and its mark, for an encoding to include once it has defined marks. */
#ifndef HUDDLE_RUN_CELL_REF_H
#define HUDDLE_RUN_CELL_REF_H

/* What a magazine keeps. */
struct cell_ref {
    void *cell;
    mark_t mark;
};

static inline struct cell_ref run_ref(struct run *r, size_t index) {
    return (struct cell_ref){r->base + index * r->cell_bytes, mark_at(run_marks(r), index)};
}

#endif
