/* inbox.h - cells on their way back to the lane that owns them.
 *
 * A message carries up to 30 pointers in 256 bytes. A sender fills one privately (thread/outgoing.c) and pushes it:
 *
 *   I1  push: message->next = inbox; compare-and-swap of the head with release
 *   I2  take: exchange of the head with NULL, with acquire. Nobody pops a single message: no ABA
 *
 * The release of I1 pairs with the acquire of I2: the taker sees the pointers, and everything the freeing threads did
 * to the cells. `bytes` is a hint how long the inbox is (relaxed): a sender that finds it long drains it itself.
 *
 * Messages come from a pool that never shrinks, under one lock, several at a time. */
#ifndef HUDDLE_LANE_INBOX_H
#define HUDDLE_LANE_INBOX_H

#include "os/lock.h"

enum { MESSAGE_CELLS = 30 };

struct message {
    struct message *next;
    uint32_t count;
    uint32_t bytes; /* of the cells, together, or up to LINEAR_MAX times a power of two for each */
    void *cell[MESSAGE_CELLS];
};

_Static_assert(sizeof(struct message) == 256, "four cache lines");

struct inbox {
    struct message *head; /* I1, I2 */
    uint32_t bytes;       /* of its cells, or a 64th of what is long for each message: relaxed, reset by the taker */
};

/* Pushes a full or final message. Returns whether the inbox is long now: its lane may sleep. */
bool inbox_push(struct inbox *in, struct message *m);

/* Takes everything. NULL when there was nothing. */
struct message *inbox_take(struct inbox *in);

static inline bool inbox_is_empty(const struct inbox *in) {
    return relaxed_load(&in->head) == NULL;
}

extern struct lock message_pool_lock;

/* A few empty messages as a list, or NULL when there is no memory. `count` says how many. */
struct message *message_pool_take(uint32_t *count);

/* Gives a list of messages, `first` to `last`, back. */
void message_pool_give(struct message *first, struct message *last);

#endif
