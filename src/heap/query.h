/* query.h - questions about addresses. Each may be asked of any 64-bit value. */
#ifndef HUDDLE_HEAP_QUERY_H
#define HUDDLE_HEAP_QUERY_H

#include "base/base.h"

/* Usable bytes of the live block that starts at p; 0 when there is none. */
size_t heap_usable(const void *p);

/* As heap_usable, but stops the program, as a free of it would, when p is not the start of a live block. */
size_t heap_usable_or_fail(void *p);

/* Usable bytes of a block of n bytes; 0 when there can be none. */
size_t heap_good_size(size_t n);

/* Whether the address lies in memory that huddle holds for blocks. */
bool heap_owns(const void *p);

#endif
