/* after.c - how much memory does a program keep after a burst, when it calls nothing any more?
 *
 * `after MBYTES SECONDS`: four threads allocate MBYTES MB of blocks of 16 to 2047 bytes (mixed_size), and free all but
 * one in a thousand; then nothing is called for SECONDS seconds. Prints MiB of resident memory after that. */
#include "bench.h"

#include <unistd.h>

enum { THREADS = 4, KEPT = 1000 };

struct block {
    struct block *next;
};

static size_t part_bytes;

static void *burst(void *index) {
    uint64_t state = (size_t)index;
    struct block *list = NULL;
    for (size_t sum = 0; sum < part_bytes;) {
        size_t n = mixed_size(next_random(&state));
        struct block *b = checked(malloc(n));
        memset(b, 1, n);
        b->next = list;
        list = b;
        sum += n;
    }
    size_t i = 0;
    for (struct block *b = list, *next; b != NULL; b = next) {
        next = b->next;
        if (++i % KEPT != 0) free(b);
    }
    return NULL;
}

int main(int count, char **argument) {
    size_t mbytes = number(count, argument, 1, 0), seconds = number(count, argument, 2, 12);
    if (mbytes == 0) usage("after MBYTES SECONDS");
    part_bytes = mbytes * 1000 * 1000 / THREADS;
    run_threads(THREADS, burst);
    sleep((unsigned)seconds);
    char line[256];
    FILE *f = fopen("/proc/self/status", "r");
    if (f == NULL) fail("/proc/self/status");
    while (fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, "VmRSS:", 6) == 0) printf("rss_after %.2f MiB\n", (double)strtoul(line + 6, NULL, 10) / 1024);
    fclose(f);
    return 0;
}
