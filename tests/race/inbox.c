/* inbox.c - messages from several senders to one taker: each pointer arrives once, and what the sender wrote before it
 * pushed is seen by who takes (I1, I2). The messages go round through the pool. */
#include "race.h"

#include "lane/inbox.h"

enum { SENDERS = 3 };

struct item {
    size_t value; /* written by its sender, read by the taker: only the inbox is in between */
    bool is_seen;
};

static struct inbox inbox;
static struct item *items;
static size_t items_each;
static uint32_t senders_left = SENDERS; /* atomic */

static struct message *empty_message(void) {
    uint32_t count;
    struct message *m = message_pool_take(&count);
    EXPECT(m != NULL && count != 0);
    if (m->next != NULL) {
        struct message *last = m->next;
        while (last->next != NULL) last = last->next;
        message_pool_give(m->next, last);
    }
    m->count = m->bytes = 0;
    return m;
}

static void send_items(size_t sender) {
    struct message *m = empty_message();
    for (size_t i = 0; i < items_each; i++) {
        struct item *item = &items[sender * items_each + i];
        item->value = sender * items_each + i + 1;
        m->cell[m->count++] = item;
        m->bytes += 16;
        /* Full messages as in life, and by turns tiny ones, so that pushes meet. */
        if (m->count < (i % 8192 < 4096 ? MESSAGE_CELLS : 1) && i + 1 < items_each) continue;
        inbox_push(&inbox, m);
        if (i + 1 < items_each) m = empty_message();
    }
    __atomic_sub_fetch(&senders_left, 1, __ATOMIC_RELAXED); /* no release: the inbox alone is to order the items */
}

static void take_items(void) {
    for (bool is_last = false; !is_last;) {
        is_last = relaxed_load(&senders_left) == 0;
        struct message *first = inbox_take(&inbox), *last = NULL;
        for (struct message *m = first; m != NULL; m = m->next) {
            EXPECT(m->count >= 1 && m->count <= MESSAGE_CELLS);
            for (uint32_t i = 0; i < m->count; i++) {
                struct item *item = m->cell[i];
                EXPECT(!item->is_seen && item->value == (size_t)(item - items) + 1);
                item->is_seen = true;
            }
            last = m;
        }
        if (first != NULL) message_pool_give(first, last);
        else sched_yield();
    }
}

static void *run(void *number) {
    size_t n = (uintptr_t)number;
    race_wait();
    if (n < SENDERS) send_items(n);
    else take_items();
    return NULL;
}

int main(int argc, char **argv) {
    allocator_start();
    items_each = race_amount(argc, argv, 300000);
    items = calloc(SENDERS * items_each, sizeof *items);
    EXPECT(items != NULL);
    race_run(SENDERS + 1, run);
    EXPECT(inbox_is_empty(&inbox) && inbox_take(&inbox) == NULL);
    for (size_t i = 0; i < SENDERS * items_each; i++) EXPECT(items[i].is_seen);
    free(items);
    return 0;
}
