/* property.c - random operations on zones: property [OPERATIONS]. The seed is printed (HUDDLE_TEST_SEED). */
#include "allocator.h"
#include "model.h"

struct random_source {
    struct source source;
    uint64_t state;
};

static size_t draw(struct source *s, size_t n) {
    return random_below(&((struct random_source *)s)->state, n);
}

int main(int argc, char **argv) {
    allocator_start();
    struct random_source r = {{draw}, random_seed()};
    model_run(&r.source, argc > 1 ? strtoul(argv[1], NULL, 10) : 20000);
    return 0;
}
