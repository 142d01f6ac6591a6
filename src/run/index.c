#include "run/index.h"

#include "os/system.h"

struct run_index run_index;

static uint64_t key_of(const void *unit, const struct descriptor *d) {
    return (uintptr_t)unit >> UNIT_SHIFT | (uint64_t)d->owner << INDEX_OWNER_SHIFT;
}

void index_add(const void *unit, const struct descriptor *d) {
    size_t slot = index_slot((uintptr_t)unit >> UNIT_SHIFT);
    /* Two threads may want an empty slot at once: the key claims it with a value that nobody asks for. */
    if (!shared_claim(&run_index.key[slot], (uint64_t)OWNER_FREE << INDEX_OWNER_SHIFT)) return;
    relaxed_store(&run_index.cells[slot], d->cells);
    relaxed_store(&run_index.place[slot].start, d->start);
    relaxed_store(&run_index.place[slot].magazine, d->magazine);
    release_store(&run_index.key[slot], key_of(unit, d));
}

void index_remove(const void *unit, const struct descriptor *d) {
    size_t slot = index_slot((uintptr_t)unit >> UNIT_SHIFT);
    if (relaxed_load(&run_index.key[slot]) == key_of(unit, d)) release_store(&run_index.key[slot], 0);
}
