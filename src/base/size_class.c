#include "base/size_class.h"

_Static_assert(CELL_MAX == 1 << 15, "size_class_of counts eight doublings above LINEAR_MAX");
_Static_assert(CLASS_COUNT == 8 + 8 * 8, "eight linear classes and eight to each of eight doublings");

unsigned size_class_aligned(size_t n, size_t alignment) {
    unsigned class = size_class_of(n);
    /* A power of two comes within eight steps, or, below an alignment, at the alignment itself. */
    while (size_class_bytes(class) % alignment != 0) class++;
    return class;
}
