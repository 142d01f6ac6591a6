/* model.h - zones under random operations, against a shadow of what each of their blocks should hold.
 *
 * The operations come from a source of numbers: a generator (property.c), or a fuzzer's input (fuzz.c). */
#ifndef TESTS_ZONE_MODEL_H
#define TESTS_ZONE_MODEL_H

#include <stddef.h>

struct source {
    /* A number below n, n above 0. */
    size_t (*below)(struct source *s, size_t n);
};

/* Opens zones, makes that many operations on them, and closes them; exits when something is wrong. */
void model_run(struct source *s, size_t operations);

#endif
