/* size_class.h - which cell size serves which request.
 *
 * 72 classes. Up to 128 bytes a class every 16; above, eight to a doubling up to 32 KiB, so that a block is never
 * more than 12.5 % larger than what was asked for:
 *
 *   16 32 48 64 80 96 112 128 | 144 160 176 192 208 224 240 256 | 288 320 ... 512 | ... | 18432 20480 ... 32768
 *
 * (Four to a doubling would waste up to 20 % of a block.) A size that is a multiple of a power of two has a class whose size
 * is one too. Nothing here decides how cells are laid out: see run/.
 */
#ifndef HUDDLE_BASE_SIZE_CLASS_H
#define HUDDLE_BASE_SIZE_CLASS_H

#include "base/base.h"

enum {
    CLASS_COUNT = 72,
    CLASS_NONE = 255,
    GRAIN_BYTES = 16, /* every cell size is a multiple, every block is aligned so */
    LINEAR_MAX = 128, /* the last size of the 16-byte steps */
    CELL_MAX = 32768, /* the largest cell; above, blocks are spans */
};

_Static_assert((int)CELL_MAX == 1 << 15, "size_class_of counts eight doublings above LINEAR_MAX");
_Static_assert((int)CLASS_COUNT == 8 + 8 * 8, "eight linear classes and eight to each of eight doublings");

/* The class of the smallest cell that holds n bytes, n <= CELL_MAX. */
static ALWAYS_INLINE unsigned size_class_of(size_t n) {
    if (n <= LINEAR_MAX) return (unsigned)((n - (n != 0)) >> 4);
    size_t m = n - 1;
    unsigned e = log2_floor(m);
    return (e - 7) * 8 + (unsigned)(m >> (e - 3));
}

/* Bytes of a cell of the class. */
static ALWAYS_INLINE size_t size_class_bytes(unsigned class) {
    if (class < 8) return (size_t)(class + 1) * GRAIN_BYTES;
    unsigned e = 7 + (class - 8) / 8;
    return ((size_t)1 << e) + ((size_t)((class - 8) % 8 + 1) << (e - 3));
}

/* The same rounded up to LINEAR_MAX times a power of two, in three instructions. */
static ALWAYS_INLINE uint32_t size_class_bytes_at_most(unsigned class) {
    return (uint32_t)LINEAR_MAX << class / 8;
}

#endif
