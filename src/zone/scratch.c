#include <errno.h>

#include "zone/zone.h"

struct zone *zone_scratch(huddle_zone_t *const *conflicts, size_t n, int *error) {
    struct chunk_pool *p = pool_own();
    *error = ENOMEM;
    if (p == NULL) return NULL;
    for (size_t i = 0; i < SCRATCH_ZONES; i++) {
        bool is_taken = false;
        for (size_t k = 0; k < n; k++) is_taken |= p->scratch[i] != NULL && conflicts[k] == p->scratch[i];
        if (is_taken) continue;
        if (p->scratch[i] == NULL) p->scratch[i] = zone_open(NULL, 0, error);
        return p->scratch[i];
    }
    *error = EINVAL;
    return NULL;
}

void zone_end_scratch(void) {
    struct heap *h = heap_seize();
    struct chunk_pool *p = h->pool;
    heap_release(h);
    for (size_t i = 0; p != NULL && i < SCRATCH_ZONES; i++) {
        struct zone *z = p->scratch[i];
        p->scratch[i] = NULL;
        if (z != NULL && zone_is_usable(z)) zone_close(z);
    }
}
