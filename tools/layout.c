/* layout.c - the overhead of runs: as huddle places what it notes (beside the run), and as Mozilla bug 1980047 does
 * (inside it), whose tables this reproduces.
 *
 * Overhead is what a run takes beyond its cells, relative to them, in per cent. `side` counts a run without the cells
 * that it may leave out at its front (run/run.h). */
#include "layout.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/size_class.h"
#include "span/page_map.h"

enum { PAGE = 4096, RUN_MAX = 64 * KIB, LAST_RUN = 60 * KIB };

struct layout {
    size_t cells, run_bytes, other_bytes; /* other: notes, wherever they are, and what is left over */
};

static double percent(size_t part, size_t whole) {
    return 100.0 * (double)part / (double)whole;
}

/* ---- inside the run: the rules of the bug, comment 6, as its tables imply them ---- */

enum inrun_end {
    END_NOTES, /* no run is made longer whose notes exceed the header */
    END_RUN,   /* nor above 64 KiB: then it has 60 */
    END_CELLS, /* nor when it has as many cells as links reach */
};

/* `header` bytes, and `word` bytes for each `fields` cells. */
struct inrun_encoding {
    const char *name;
    size_t header, word, fields;
    double best_bits;
    enum inrun_end end;
    size_t cells_max;
};

static const struct inrun_encoding inrun_encodings[] = {
    {"bitmap", 36, 4, 32, 1, END_NOTES, SIZE_MAX},
    {"u8", 33, 1, 1, 8, END_NOTES, SIZE_MAX},
    {"u16", 34, 2, 1, 16, END_RUN, SIZE_MAX},
    {"p12", 40, 8, 5, 64.0 / 5, END_CELLS, 4094}, /* not in the bug's tables, by its rules */
    {"p10", 40, 8, 6, 64.0 / 6, END_CELLS, 1022},
};

/* The size classes of mozjemalloc up to 3840 bytes. */
static size_t inrun_size(size_t i) {
    return i < 32 ? (i + 1) * 16 : (i - 29) * 256;
}

enum { INRUN_SIZES = 45 };

static size_t inrun_notes(const struct inrun_encoding *e, size_t cells) {
    return (cells + e->fields - 1) / e->fields * e->word;
}

/* As many cells as fit beside their notes. */
static struct layout inrun_fill(const struct inrun_encoding *e, size_t size, size_t run_bytes) {
    size_t cells = min_size(run_bytes / size, e->cells_max);
    while (e->header + inrun_notes(e, cells) > run_bytes - cells * size) cells--;
    return (struct layout){cells, run_bytes, run_bytes - cells * size};
}

static bool is_accepted(const struct layout *l, size_t size) {
    return l->other_bytes * 1000 <= l->run_bytes * 16 ||
           (l->other_bytes > size && l->other_bytes * 1000 <= l->run_bytes * 24);
}

/* The shortest run that wastes little. Where none does, that at the encoding's end, or the best on the way there. */
static struct layout inrun_layout(const struct inrun_encoding *e, size_t size) {
    struct layout best = {1, 0, SIZE_MAX};
    for (size_t run_bytes = PAGE;; run_bytes += PAGE) {
        struct layout l = inrun_fill(e, size, run_bytes);
        if (is_accepted(&l, size)) return l;
        if (e->end == END_RUN && run_bytes == RUN_MAX) return inrun_fill(e, size, LAST_RUN);
        if (e->end == END_NOTES && inrun_notes(e, l.cells) >= e->header) return l;
        if (percent(l.other_bytes, l.cells * size) < percent(best.other_bytes, best.cells * size)) best = l;
        if (l.cells == e->cells_max) return best;
    }
}

/* ---- beside the run: huddle ---- */

static const struct side_encoding *const side_encodings[] = {
    &layout_side_bytemap, &layout_side_bitmap, &layout_side_u8, &layout_side_u16, &layout_side_p12, &layout_side_p10,
};

static struct layout side_layout(const struct side_encoding *e, unsigned class) {
    size_t run_bytes = e->run_bytes(class), cells = e->cells(class);
    return (struct layout){cells, run_bytes, run_bytes - cells * size_class_bytes(class) + e->record_bytes(class)};
}

/* What others would note of the same run: libpas a bit for each 16 bytes, PartitionAlloc 32 bytes for each 16 KiB. */
static size_t libpas_notes(size_t run_bytes) {
    return run_bytes / 16 / 8;
}

static size_t partition_alloc_notes(size_t run_bytes) {
    return run_bytes / (16 * KIB) * 32;
}

static const struct {
    const char *name;
    size_t (*notes)(size_t run_bytes);
} others[] = {{"libpas", libpas_notes}, {"PartitionAlloc", partition_alloc_notes}};

/* As if it had huddle's runs. */
static struct layout other_layout(size_t i, unsigned class) {
    size_t run_bytes = side_encodings[0]->run_bytes(class), cells = run_bytes / size_class_bytes(class);
    return (struct layout){cells, run_bytes, run_bytes - cells * size_class_bytes(class) + others[i].notes(run_bytes)};
}

/* ---- output ---- */

static double best_percent(double bits, size_t size) {
    return 100 * bits / 8 / (double)size;
}

static bool is_named(const char *encoding, const char *name) {
    return encoding == NULL || strcmp(encoding, name) == 0;
}

static void print_row(const char *name, size_t size, struct layout l, double best, bool as_csv) {
    printf(as_csv ? "%s,%zu,%zu,%zu,%.2f,%.2f\n" : "%-15s%7zu%10zu%9zu%11.2f%9.2f\n", name, size, l.cells, l.run_bytes / KIB,
           percent(l.other_bytes, l.cells * size), best);
}

bool layout_exists(const char *encoding, const char *placement) {
    bool is_inrun = strcmp(placement, "inrun") == 0;
    if (!is_inrun && strcmp(placement, "side") != 0) return false;
    if (encoding == NULL) return true;
    for (size_t i = 0; is_inrun && i < sizeof inrun_encodings / sizeof inrun_encodings[0]; i++)
        if (strcmp(encoding, inrun_encodings[i].name) == 0) return true;
    for (size_t i = 0; !is_inrun && i < sizeof side_encodings / sizeof side_encodings[0]; i++)
        if (strcmp(encoding, side_encodings[i]->name) == 0) return true;
    return false;
}

void layout_print(const char *encoding, const char *placement, bool as_csv) {
    if (as_csv) puts("encoding,size_bytes,regions_per_run,run_kib,overhead_percent,theoretical_best_percent");
    else printf("%-15s%7s%10s%9s%11s%9s\n", "encoding", "bytes", "regions", "KiB", "overhead %", "best %");
    if (strcmp(placement, "inrun") == 0) {
        for (size_t k = 0; k < sizeof inrun_encodings / sizeof inrun_encodings[0]; k++) {
            const struct inrun_encoding *e = &inrun_encodings[k];
            for (size_t i = 0; is_named(encoding, e->name) && i < INRUN_SIZES; i++)
                print_row(e->name, inrun_size(i), inrun_layout(e, inrun_size(i)),
                          best_percent(e->best_bits, inrun_size(i)), as_csv);
        }
        return;
    }
    for (size_t k = 0; k < sizeof side_encodings / sizeof side_encodings[0]; k++) {
        const struct side_encoding *e = side_encodings[k];
        for (unsigned class = 0; is_named(encoding, e->name) && class < CLASS_COUNT; class++)
            print_row(e->name, size_class_bytes(class), side_layout(e, class),
                      best_percent(e->best_bits, size_class_bytes(class)), as_csv);
    }
    for (size_t k = 0; k < sizeof others / sizeof others[0]; k++)
        for (unsigned class = 0; class < CLASS_COUNT; class++)
            print_row(others[k].name, size_class_bytes(class), other_layout(k, class),
                      percent(others[k].notes(UNIT_BYTES), UNIT_BYTES), as_csv);
}
