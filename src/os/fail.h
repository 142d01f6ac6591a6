/* fail.h - how the allocator stops a program, and how it stops itself.
 *
 * CHECK-like failures (the caller is wrong) are the functions fail_*: one fixed line on standard error, then SIGABRT,
 * in every build. ASSERT (we are wrong) is compiled everywhere and active in audit builds; `if (HUDDLE_AUDIT)
 * x_check(x)` walks whole structures there. None of them allocates, takes a lock or changes errno. */
#ifndef HUDDLE_OS_FAIL_H
#define HUDDLE_OS_FAIL_H

#include "base/base.h"

#define ASSERT(x) ((void)(!HUDDLE_AUDIT || likely(x) || (fail_assertion(#x, __FILE__, __LINE__), 0)))

/* What is always checked, also in release: our own state, where going on would corrupt memory. */
#define REQUIRE(x) ((void)(likely(x) || (fail_assertion(#x, __FILE__, __LINE__), 0)))

_Noreturn COLD void fail_assertion(const char *expression, const char *file, int line);

/* huddle: double free of ADDRESS (a BYTES-byte NOUN) */
_Noreturn COLD void fail_double_free(const void *address, size_t bytes, const char *noun);

/* huddle: invalid free of ADDRESS: OFFSET bytes into a BYTES-byte NOUN */
_Noreturn COLD void fail_invalid_free(const void *address, size_t offset, size_t bytes, const char *noun);

/* huddle: free of ADDRESS, which huddle did not allocate */
_Noreturn COLD void fail_foreign_free(const void *address);

/* huddle: free of ADDRESS, which is memory of the zone "NAME"; without a name: which is zone memory */
_Noreturn COLD void fail_zone_free(const void *address, const char *name);

/* huddle: zone ADDRESS ("NAME"): PROBLEM */
_Noreturn COLD void fail_zone(const void *zone, const char *name, const char *problem);

#endif
