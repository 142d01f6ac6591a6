/* api.h - what the files with public symbols share. Only this folder sets errno, and free keeps it. */
#ifndef HUDDLE_API_API_H
#define HUDDLE_API_API_H

#include <errno.h>

#include "base/base.h"

#define EXPORT __attribute__((visibility("default")))
#define ALIAS(name) __attribute__((visibility("default"), alias(#name)))

/* Sets up what comes before everything else, once (start.c). Part of every program that has malloc, also from the
 * archive. */
void api_start(void);

/* errno = ENOMEM; NULL. */
void *api_no_memory(void) COLD;

/* Gives back what this thread, the lanes and the regions hold free. Returns the bytes. */
size_t api_trim(size_t keep);

#endif
