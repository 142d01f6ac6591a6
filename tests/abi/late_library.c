/* A shared library whose destructor frees a block of the program's and allocates. See process_end.c. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern int late_report_to;
extern void *late_block;

int late_report_to = -1;
void *late_block;
static void *own_block;

__attribute__((constructor)) static void start(void) {
    own_block = malloc(40000);
}

__attribute__((destructor)) static void end(void) {
    free(late_block);
    own_block = realloc(own_block, 100);
    void *p = calloc(1, 5000);
    if (p == NULL || own_block == NULL) return;
    memset(p, 1, 5000);
    free(p);
    free(own_block);
    if (late_report_to >= 0 && write(late_report_to, "L", 1) != 1) _exit(3);
}
