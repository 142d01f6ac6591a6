/* layout.h - `huddle layout`: what each encoding of a run's free cells costs, size class by size class. */
#ifndef HUDDLE_TOOLS_LAYOUT_H
#define HUDDLE_TOOLS_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

/* How huddle lays out runs when it is built with an encoding: tools/layout_side.c, compiled once for each. */
struct side_encoding {
    const char *name;
    double best_bits; /* for each cell at the least, by the principle of the encoding */
    size_t (*run_bytes)(unsigned class);
    size_t (*cells)(unsigned class);        /* of a run */
    size_t (*record_bytes)(unsigned class); /* what is known of a run, beside it */
};

extern const struct side_encoding layout_side_bytemap, layout_side_bitmap, layout_side_u8, layout_side_u16, layout_side_p12,
    layout_side_p10;

/* Whether the placement, "side" or "inrun", has the encoding; NULL stands for all that it has. */
bool layout_exists(const char *encoding, const char *placement);

/* Prints the layouts of one encoding, or of all for NULL: a table, or comma-separated values. */
void layout_print(const char *encoding, const char *placement, bool as_csv);

#endif
