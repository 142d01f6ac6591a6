/* layout_side.c - what runs are like with the encoding that HUDDLE_ENCODING_FILE names; compiled for each of them. */
#include "layout.h"

#include "run/index.h"
#include "run/run.h"
#include "span/meta.h"

static size_t run_bytes(unsigned class) {
    return run_units(class) * UNIT_BYTES;
}

static size_t cells(unsigned class) {
    return run_cells(class);
}

/* And of its units, in the page map and in the index. */
static size_t record_bytes(unsigned class) {
    size_t unit_bytes = sizeof(struct descriptor) + sizeof(run_index) / INDEX_SLOTS;
    return meta_piece_bytes(run_record_bytes(run_cells(class))) + run_units(class) * unit_bytes;
}

const struct side_encoding LAYOUT_SIDE = {ENCODING_NAME, LAYOUT_BEST_BITS, run_bytes, cells, record_bytes};
