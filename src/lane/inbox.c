#include "lane/inbox.h"

#include "span/meta.h"

enum {
    POOL_BATCH = 8,
    LONG_BYTES = 512 * 1024,             /* of cells, */
    MESSAGE_BYTES_MIN = LONG_BYTES / 64, /* or 1,920 of them */
};

struct lock message_pool_lock;

/* Guarded by message_pool_lock. */
static struct message *pool;

bool inbox_push(struct inbox *in, struct message *m) {
    uint32_t added = (uint32_t)max_size(m->bytes, MESSAGE_BYTES_MIN); /* once pushed, the message is the taker's */
    m->next = relaxed_load(&in->head);
    while (!__atomic_compare_exchange_n(&in->head, &m->next, m, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
    return __atomic_add_fetch(&in->bytes, added, __ATOMIC_RELAXED) > LONG_BYTES;
}

struct message *inbox_take(struct inbox *in) {
    if (inbox_is_empty(in)) return NULL;
    relaxed_store(&in->bytes, 0);
    return __atomic_exchange_n(&in->head, NULL, __ATOMIC_ACQUIRE);
}

struct message *message_pool_take(uint32_t *count) {
    lock_take(&message_pool_lock, RANK_POOL);
    struct message *first = pool, *last = pool;
    for (*count = 1; last != NULL && last->next != NULL && *count < POOL_BATCH; last = last->next) ++*count;
    if (last != NULL) {
        pool = last->next;
        last->next = NULL;
    }
    lock_release(&message_pool_lock, RANK_POOL);
    if (first != NULL) return first;
    for (*count = 0; *count < POOL_BATCH; ++*count) {
        struct message *m = meta_alloc(sizeof *m);
        if (m == NULL) break;
        m->next = first;
        first = m;
    }
    return first;
}

void message_pool_give(struct message *first, struct message *last) {
    lock_take(&message_pool_lock, RANK_POOL);
    last->next = pool;
    pool = first;
    lock_release(&message_pool_lock, RANK_POOL);
}
