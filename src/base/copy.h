/* copy.h - memcpy and memset of our own: the allocator calls nothing outside itself.
 *
 * Both are for blocks, so lengths are multiples of 16 and addresses are 16-byte aligned. */
#ifndef HUDDLE_BASE_COPY_H
#define HUDDLE_BASE_COPY_H

#include "base/base.h"

/* Copies n bytes, n a multiple of 16, between blocks that do not overlap. */
void copy_block(void *to, const void *from, size_t n);

/* Zeroes n bytes, n a multiple of 16. */
void zero_block(void *to, size_t n);

#endif
