/* copy.h - memcpy and memset of our own: the allocator calls nothing outside itself.
 *
 * The first two are for blocks, so lengths are multiples of 16 and addresses are 16-byte aligned. */
#ifndef HUDDLE_BASE_COPY_H
#define HUDDLE_BASE_COPY_H

#include "base/base.h"

/* Copies n bytes, n a multiple of 16, between blocks that do not overlap. */
void copy_block(void *to, const void *from, size_t n);

/* Zeroes n bytes, n a multiple of 16. */
void zero_block(void *to, size_t n);

/* Of any length, at any address. */
void copy_bytes(void *to, const void *from, size_t n);
void zero_bytes(void *to, size_t n);

static inline size_t string_length(const char *s) {
    size_t n = 0;
    while (s[n] != '\0') n++;
    return n;
}

#endif
