/* private_dirty.c - 200 MB of small blocks, a fork, and a child that frees one in a hundred, neighbours: what it has for itself
 * then is about the pages of those, as the rest of the heap stays shared. */
#include "allocator.h"

#include <sys/wait.h>

enum { BLOCK_BYTES = 128, BLOCKS = 200 * 1000 * 1000 / BLOCK_BYTES, FREED = BLOCKS / 100 };

static char *blocks[BLOCKS];

static size_t private_dirty(void) {
    char line[256];
    size_t kib = 0;
    FILE *f = fopen("/proc/self/smaps_rollup", "r");
    if (f == NULL) exit(77);
    while (fgets(line, sizeof line, f) != NULL) sscanf(line, "Private_Dirty: %zu", &kib);
    fclose(f);
    return kib * 1024;
}

int main(void) {
    allocator_start();
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = allocate(BLOCK_BYTES);
        EXPECT(blocks[i] != NULL);
        memset(blocks[i], 1, BLOCK_BYTES);
    }
    fflush(stdout);
    pid_t pid = fork();
    EXPECT(pid >= 0);
    if (pid == 0) {
        size_t before = private_dirty();
        for (size_t i = 0; i < FREED; i++) release(blocks[BLOCKS / 2 + i]);
        size_t after = private_dirty(), freed = (size_t)FREED * BLOCK_BYTES;
        printf("the child's private dirty bytes: %zu after the fork, %zu after it freed %zu\n", before, after, freed);
        fflush(stdout);
        EXPECT(after <= 3 * freed + ((size_t)4 << 20));
        _exit(0);
    }
    int status = -1;
    EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
    return 0;
}
