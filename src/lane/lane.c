#include "lane/lane.h"

#include "os/fail.h"
#include "span/meta.h"

/* Written once each, with release, under the registry's lock; read with acquire. */
static struct lane *lanes[LANE_MAX];

struct lane *lane_get(unsigned number) {
    return acquire_load(&lanes[number]);
}

struct lane *lane_make_locked(unsigned number) {
    struct lane *l = lanes[number];
    if (l != NULL) return l;
    l = meta_alloc(sizeof *l);
    if (l == NULL) return NULL;
    l->number = number;
    release_store(&lanes[number], l);
    return l;
}

struct cell_ref lane_resolve(const struct lane *l, void *cell, unsigned *class) {
    const struct descriptor *d = page_map_find(cell);
    if (d->owner != l->number + 1) fail_double_free(cell, descriptor_cell_bytes(d), "cell");
    uint32_t n = (uint32_t)(uintptr_t)cell - d->start;
    uint32_t bytes = (uint32_t)descriptor_cell_bytes(d);
    if (n % bytes != 0) fail_invalid_free(cell, n % bytes, bytes, "cell");
    *class = (unsigned)d->magazine >> MAGAZINE_SHIFT;
    return (struct cell_ref){cell, mark_at(d->cells, n / bytes)};
}

/* Cells of one class in a message are gathered, so that each bin is locked once. */
void lane_drain_message(struct lane *l, const struct message *m) {
    struct cell_ref all[MESSAGE_CELLS], cells[MESSAGE_CELLS];
    unsigned class[MESSAGE_CELLS];
    for (unsigned i = 0; i < m->count; i++) all[i] = lane_resolve(l, m->cell[i], &class[i]);
    for (uint64_t todo = ((uint64_t)1 << m->count) - 1; todo != 0;) {
        unsigned first = (unsigned)__builtin_ctzl(todo);
        size_t n = 0;
        for (unsigned i = first; i < m->count; i++) {
            if ((todo >> i & 1) == 0 || class[i] != class[first]) continue;
            cells[n++] = all[i];
            todo &= ~((uint64_t)1 << i);
        }
        bin_give_back(&l->bins[class[first]], cells, n, CELL_RETURNING);
    }
}

void lane_drain(struct lane *l) {
    struct message *first = inbox_take(&l->inbox), *last = NULL;
    for (struct message *m = first; m != NULL; m = m->next) {
        lane_drain_message(l, m);
        last = m;
    }
    if (first != NULL) message_pool_give(first, last);
}

void lane_trim(struct lane *l) {
    lane_drain(l);
    for (unsigned class = 0; class < CLASS_COUNT; class++) bin_trim(&l->bins[class]);
}

void lane_check(struct lane *l) {
    for (unsigned class = 0; class < CLASS_COUNT; class++) bin_check(&l->bins[class]);
}
