#include "span/page_map.h"

#include "os/memory.h"

struct page_map page_map;

bool page_map_cover(const void *start, size_t bytes) {
    size_t first = (uintptr_t)start >> LEAF_SHIFT;
    size_t last = ((uintptr_t)start + bytes - 1) >> LEAF_SHIFT;
    if (last >= TOP_ENTRIES) return false;
    for (size_t t = first; t <= last; t++) {
        if (acquire_load(&page_map.top[t]) != 0) continue;
        size_t leaf_bytes = LEAF_UNITS * sizeof(struct descriptor);
        char *leaf = os_map(NULL, leaf_bytes);
        if (leaf == NULL) return false;
        uintptr_t none = 0, distance = (uintptr_t)leaf - (uintptr_t)page_map.zero_leaf;
        if (!__atomic_compare_exchange_n(&page_map.top[t], &none, distance, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
            os_unmap(leaf, leaf_bytes);
    }
    return true;
}

void page_map_set_owner(const void *start, size_t units, enum owner owner) {
    for (size_t i = 0; i < units; i++)
        release_store(&page_map_find((const char *)start + i * UNIT_BYTES)->owner, (uint16_t)owner);
}
