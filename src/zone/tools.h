/* tools.h - what AddressSanitizer and Valgrind's memcheck are told of zones.
 *
 * The library itself is not instrumented: if the program runs under one of the two, memory of a zone that is not handed out
 * is forbidden, so that use after reset, rewind or close is reported, and chunks are not kept in pools. Under a tool
 * every allocation is a call. */
#ifndef HUDDLE_ZONE_TOOLS_H
#define HUDDLE_ZONE_TOOLS_H

#include "base/base.h"

enum tool { TOOL_UNKNOWN, TOOL_NONE, TOOL_ASAN, TOOL_VALGRIND };

extern uint8_t tool_state; /* relaxed: every thread finds the same */

/* Finds out which tool there is. */
void tool_init(void);

static inline bool tool_is_active(void) {
    return unlikely(relaxed_load(&tool_state) > TOOL_NONE);
}

void tool_forbid_slow(const void *p, size_t n);
void tool_allow_slow(const void *p, size_t n, bool is_defined);

/* The program may not touch p .. p + n. */
static inline void tool_forbid(const void *p, size_t n) {
    if (tool_is_active() && n != 0) tool_forbid_slow(p, n);
}

/* It may; what it reads there has a value, or has none yet. */
static inline void tool_allow(const void *p, size_t n, bool is_defined) {
    if (tool_is_active() && n != 0) tool_allow_slow(p, n, is_defined);
}

#endif
