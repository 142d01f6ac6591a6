/* stats.h - counting what there is, by walking it: the fast paths keep no counters. */
#ifndef HUDDLE_OBSERVE_STATS_H
#define HUDDLE_OBSERVE_STATS_H

#include "huddle/huddle.h"

/* Fills in all of *s but struct_size. */
void stats_collect(struct huddle_stats *s);

/* Writes *s as one JSON object and a newline. Returns false when a write failed. */
bool json_write(int descriptor, const struct huddle_stats *s);

/* Walks every lane, region and the calling thread's heap (audit builds and tests, at quiet points). */
void stats_check_all(void);

#endif
