/* foreign.h - blocks of libc's own malloc: each function returns false when p is none, and has done nothing then. */
#ifndef HUDDLE_API_FOREIGN_H
#define HUDDLE_API_FOREIGN_H

#include "base/base.h"

/* realloc by libc; NULL with errno ENOMEM for a block that is neither's, with foreign=ignore. */
bool foreign_realloc(void *p, size_t n, void **result);

/* malloc_usable_size by libc. */
bool foreign_usable(void *p, size_t *bytes);

#endif
