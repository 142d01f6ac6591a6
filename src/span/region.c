#include "span/region.h"

#include "os/fail.h"
#include "span/page_map.h"

size_t region_dirty_free_units;

static bool bit(const uint64_t *set, size_t i) {
    return set[i / 64] >> (i % 64) & 1;
}

/* The part of word w that belongs to the n bits from index i. */
static uint64_t mask_of(size_t w, size_t i, size_t n) {
    size_t from = w * 64, end = i + n;
    uint64_t m = ~(uint64_t)0;
    if (i > from) m &= m << (i - from);
    if (end < from + 64) m &= ~(~(uint64_t)0 << (end - from));
    return m;
}

static uint64_t candidates(const struct region *r, size_t w, enum region_wish wish) {
    return wish == REGION_DIRTY ? r->free[w] & r->dirty[w] : r->free[w];
}

/* The first index from `from` whose candidate bit is `value`, or the number of units. */
static size_t next_bit(const struct region *r, size_t from, bool value, enum region_wish wish) {
    for (size_t w = from / 64; w * 64 < r->units; w++) {
        uint64_t bits = candidates(r, w, wish);
        if (!value) bits = ~bits;
        if (w == from / 64) bits &= ~(uint64_t)0 << (from % 64);
        if (bits != 0) return min_size(w * 64 + (size_t)__builtin_ctzl(bits), r->units);
    }
    return r->units;
}

int region_find_locked(struct region *r, size_t n, size_t alignment, enum region_wish wish) {
    if (n > r->longest || n > (wish == REGION_DIRTY ? r->dirty_free_units : r->free_units)) return -1;
    size_t longest = 0, best_length = SIZE_MAX;
    int best = -1;
    for (size_t i = next_bit(r, 0, true, wish); i < r->units;) {
        size_t end = next_bit(r, i, false, wish);
        size_t at = (round_up((uintptr_t)r->base + i * UNIT_BYTES, alignment) - (uintptr_t)r->base) / UNIT_BYTES;
        if (at + n <= end) {
            if (n == 1 || end - i == n) return (int)at;
            if (end - i < best_length) {
                best_length = end - i;
                best = (int)at;
            }
        }
        longest = max_size(longest, end - i);
        i = end == r->units ? end : next_bit(r, end, true, wish);
    }
    if (best >= 0) return best;
    if (wish == REGION_ANY) r->longest = (uint32_t)longest;
    return -1;
}

size_t region_take_locked(struct region *r, size_t i, size_t n) {
    size_t clean = n;
    for (size_t w = i / 64; w * 64 < i + n; w++) {
        uint64_t m = mask_of(w, i, n);
        ASSERT((r->free[w] & m) == m);
        uint32_t dirty = (uint32_t)__builtin_popcountl(r->dirty[w] & m);
        r->dirty_free_units -= dirty;
        clean -= dirty;
        relaxed_store(&region_dirty_free_units, region_dirty_free_units - dirty);
        r->free[w] &= ~m;
        r->aged[w] &= ~m;
        r->dirty[w] |= m;
    }
    r->free_units -= (uint32_t)n;
    return clean;
}

void region_put_locked(struct region *r, size_t i, size_t n, bool is_dirty) {
    for (size_t w = i / 64; w * 64 < i + n; w++) {
        uint64_t m = mask_of(w, i, n);
        ASSERT((r->free[w] & m) == 0);
        r->free[w] |= m;
        if (!is_dirty) r->dirty[w] &= ~m;
    }
    r->free_units += (uint32_t)n;
    if (is_dirty) {
        r->dirty_free_units += (uint32_t)n;
        relaxed_store(&region_dirty_free_units, region_dirty_free_units + n);
    }
    r->longest = r->units;
}

bool region_retire_locked(struct region *r) {
    if (r->units == 0 || r->free_units != r->units) return false;
    relaxed_store(&region_dirty_free_units, region_dirty_free_units - r->dirty_free_units);
    r->units = r->free_units = r->dirty_free_units = r->longest = 0;
    for (size_t w = 0; w < REGION_WORDS; w++) r->free[w] = r->dirty[w] = r->aged[w] = 0;
    return true;
}

bool region_is_free_locked(const struct region *r, size_t i, size_t n) {
    if (i + n > r->units) return false;
    for (size_t w = i / 64; w * 64 < i + n; w++) {
        uint64_t m = mask_of(w, i, n);
        if ((r->free[w] & m) != m) return false;
    }
    return true;
}

size_t region_next_dirty_locked(const struct region *r, size_t from, bool all, size_t *start) {
    for (size_t i = from; i < r->units;) {
        uint64_t bits = all ? r->free[i / 64] & r->dirty[i / 64] : r->aged[i / 64];
        bits >>= i % 64;
        if (bits == 0) {
            i = (i / 64 + 1) * 64;
            continue;
        }
        i += (size_t)__builtin_ctzl(bits);
        size_t end = i;
        while (end < r->units && (all ? bit(r->free, end) && bit(r->dirty, end) : bit(r->aged, end))) end++;
        *start = i;
        return end - i;
    }
    return 0;
}

size_t region_next_untouched_locked(const struct region *r, size_t from, size_t group, size_t *start) {
    for (size_t i = from; i < r->units; i = round_up(i + 1, group)) {
        size_t first = i & ~(group - 1);
        uint64_t mask = mask_of(i / 64, first, group), untouched = r->free[i / 64] & ~r->dirty[i / 64] & mask;
        if (untouched == mask) continue;
        untouched &= mask_of(i / 64, i, first + group - i);
        if (untouched == 0) continue;
        *start = i / 64 * 64 + (size_t)__builtin_ctzl(untouched);
        untouched >>= *start % 64;
        return min_size(~untouched == 0 ? 64 : (size_t)__builtin_ctzl(~untouched), r->units - *start);
    }
    return 0;
}

void region_age_locked(struct region *r) {
    for (size_t w = 0; w < REGION_WORDS; w++) r->aged[w] = r->free[w] & r->dirty[w];
}

void region_check(const struct region *r) {
    size_t n_free = 0, n_dirty_free = 0, stretch = 0;
    for (size_t w = 0; w < REGION_WORDS; w++) {
        REQUIRE((r->aged[w] & ~(r->free[w] & r->dirty[w])) == 0); /* G1 */
        n_free += (size_t)__builtin_popcountl(r->free[w]);
        n_dirty_free += (size_t)__builtin_popcountl(r->free[w] & r->dirty[w]);
    }
    REQUIRE(n_free == r->free_units && n_dirty_free == r->dirty_free_units); /* G2 */
    for (size_t i = 0; i < REGION_UNITS; i++) {
        stretch = bit(r->free, i) ? stretch + 1 : 0;
        REQUIRE(stretch <= r->longest);              /* G3 */
        REQUIRE(i < r->units || !bit(r->free, i)); /* G4 */
    }
}
