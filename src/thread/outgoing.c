#include "thread/outgoing.h"

#include "span/meta.h"

struct message *heap_take_message(struct heap *h) {
    if (h->spare == NULL) h->spare = message_pool_take(&h->spare_count);
    struct message *m = h->spare;
    if (m == NULL) return NULL;
    h->spare = m->next;
    h->spare_count--;
    m->count = m->bytes = 0;
    return m;
}

void heap_release_messages(struct heap *h) {
    struct message *first = h->spare, *last = first;
    if (first == NULL) return;
    while (last->next != NULL) last = last->next;
    message_pool_give(first, last);
    h->spare = NULL;
    h->spare_count = 0;
}

void heap_keep_message(struct heap *h, struct message *m) {
    if (h->spare_count >= MESSAGES_KEPT) heap_release_messages(h);
    m->next = h->spare;
    h->spare = m;
    h->spare_count++;
}

static void send(struct lane *l, struct message *m) {
    if (inbox_push(&l->inbox, m)) lane_drain(l);
}

/* Without memory for a message the cell goes back by itself, under the lock of its bin. */
static void add_alone(struct lane *l, void *cell) {
    struct message m = {.count = 1};
    m.cell[0] = cell;
    lane_drain_message(l, &m);
}

static NOINLINE struct message *start_message(struct heap *h, unsigned lane_number) {
    if (h->out == NULL) h->out = meta_alloc(LANE_MAX * sizeof(struct message *));
    if (h->out == NULL) return NULL;
    return h->out[lane_number] = heap_take_message(h);
}

void outgoing_add(struct heap *h, unsigned lane_number, void *cell, size_t cell_bytes) {
    struct message *m = h->out == NULL ? NULL : h->out[lane_number];
    if (unlikely(m == NULL)) {
        m = start_message(h, lane_number);
        if (m == NULL) {
            add_alone(lane_get(lane_number), cell);
            return;
        }
    }
    m->cell[m->count++] = cell;
    m->bytes += (uint32_t)cell_bytes;
    if (m->count < MESSAGE_CELLS) return;
    h->out[lane_number] = NULL;
    send(lane_get(lane_number), m);
}

void outgoing_flush(struct heap *h) {
    for (unsigned i = 0; h->out != NULL && i < LANE_MAX; i++) {
        struct message *m = h->out[i];
        if (m == NULL) continue;
        h->out[i] = NULL;
        send(lane_get(i), m);
    }
}
