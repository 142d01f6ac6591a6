#include "span/page_map.h"

#include "os/memory.h"

struct page_map page_map;

bool page_map_cover_locked(const void *start, size_t bytes) {
    size_t first = (uintptr_t)start >> LEAF_SHIFT;
    size_t last = ((uintptr_t)start + bytes - 1) >> LEAF_SHIFT;
    if (last >= TOP_ENTRIES) return false;
    for (size_t t = first; t <= last; t++) {
        if (page_map.top[t] != 0) continue;
        char *leaf = os_map(NULL, LEAF_UNITS * sizeof(struct descriptor));
        if (leaf == NULL) return false;
        release_store(&page_map.top[t], (uintptr_t)leaf - (uintptr_t)page_map.zero_leaf);
    }
    return true;
}

void page_map_set_owner(const void *start, size_t units, enum owner owner) {
    for (size_t i = 0; i < units; i++)
        release_store(&page_map_find((const char *)start + i * UNIT_BYTES)->owner, (uint16_t)owner);
}
