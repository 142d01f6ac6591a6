#include "heap/alloc.h"
#include "span/large.h"

void *heap_alloc_aligned(size_t n, size_t alignment) {
    if (alignment <= GRAIN_BYTES) return heap_alloc(n);
    if (n <= CELL_MAX && alignment <= CELL_MAX) return heap_alloc(size_class_bytes(size_class_aligned(n, alignment)));
    bool is_zero;
    /* Above the cells also an empty block is a span. */
    return heap_alloc_large(n == 0 ? 1 : n, alignment, &is_zero);
}
