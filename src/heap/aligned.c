#include "heap/alloc.h"
#include "span/large.h"

void *heap_alloc_aligned(size_t n, size_t alignment) {
    if (alignment <= GRAIN_BYTES) return heap_alloc(n);
    /* A class whose size is a multiple of the alignment, and runs begin at multiples of 64 KiB: the sizes of a doubling are
     * multiples of an eighth of it, and whatever is a multiple of more is a size itself. */
    if (n <= CELL_MAX && alignment <= CELL_MAX) return heap_alloc(round_up(max_size(n, 1), alignment));
    bool is_zero;
    /* Above the cells also an empty block is a span. */
    return heap_alloc_large(n == 0 ? 1 : n, alignment, &is_zero);
}
