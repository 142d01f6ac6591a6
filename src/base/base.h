/* base.h - words that every folder uses: attributes, rounding, bits, relaxed and ordered accesses. Owns no state. */
#ifndef HUDDLE_BASE_BASE_H
#define HUDDLE_BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define NOINLINE __attribute__((noinline))
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define COLD __attribute__((cold, noinline))
#define PRINTF(f, a) __attribute__((format(printf, f, a)))

/* Accesses to words that several threads touch. The comment at each use names the partner. */
#define relaxed_load(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define relaxed_store(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
/* A load that the compiler may fold into the instruction which uses it, as it does not with an atomic one (gcc 12).
 * Only where a mixture could not matter: the word is constant for every correct caller, or read once. ThreadSanitizer
 * wants to be told all the same. */
#if defined(__SANITIZE_THREAD__)
#define foldable_load(p) relaxed_load(p)
#else
#define foldable_load(p) (*(p))
#endif
#define acquire_load(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define release_store(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

static inline size_t round_up(size_t n, size_t power_of_two) {
    return (n + power_of_two - 1) & ~(power_of_two - 1);
}

static inline size_t round_down(size_t n, size_t power_of_two) {
    return n & ~(power_of_two - 1);
}

static inline bool is_power_of_two(size_t n) {
    return n != 0 && (n & (n - 1)) == 0;
}

/* floor(log2(n)), n != 0 */
static inline unsigned log2_floor(size_t n) {
    return 63u - (unsigned)__builtin_clzl(n);
}

static inline size_t min_size(size_t a, size_t b) {
    return a < b ? a : b;
}

static inline size_t max_size(size_t a, size_t b) {
    return a > b ? a : b;
}

#endif
