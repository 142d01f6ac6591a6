/* stats.c - what a program can ask huddle: how much memory it has, where the rest is, and to give it back.
 *
 *     cc stats.c $(pkg-config --cflags --libs huddle) && ./a.out */
#include <huddle/huddle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_stats(const char *when) {
    struct huddle_stats stats = {.struct_size = sizeof stats};
    if (!huddle_stats(&stats)) exit(EXIT_FAILURE);
    printf("%-12s live %8zu KiB in %6zu blocks, cached %4zu, runs %6zu, free and dirty %6zu, metadata %4zu KiB\n", when,
           stats.live_bytes / 1024, stats.live_blocks, stats.cached_bytes / 1024, stats.run_bytes / 1024,
           stats.dirty_bytes / 1024, stats.metadata_bytes / 1024);
}

int main(void) {
    enum { BLOCKS = 100000 };
    static char *blocks[BLOCKS];

    printf("huddle %s\n", huddle_version());
    printf("a block of 100 bytes has %zu\n", huddle_good_size(100));
    print_stats("at start");
    for (size_t i = 0; i < BLOCKS; i++) {
        size_t size = 16 + i % 500;
        blocks[i] = malloc(size);
        if (blocks[i] == NULL) return EXIT_FAILURE;
        memset(blocks[i], 1, huddle_usable_size(blocks[i]));
    }
    print_stats("allocated");
    for (size_t i = 0; i < BLOCKS; i++) free(blocks[i]);
    print_stats("freed");
    printf("given back: %zu KiB\n", huddle_trim(0) / 1024);
    print_stats("trimmed");
    return EXIT_SUCCESS;
}
