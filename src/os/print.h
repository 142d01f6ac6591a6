/* print.h - text to a file descriptor through a small buffer on the caller's stack: no allocation, no lock, no
 * errno. */
#ifndef HUDDLE_OS_PRINT_H
#define HUDDLE_OS_PRINT_H

#include "base/base.h"

struct printer {
    int descriptor;
    bool failed;
    size_t used;
    char buffer[480];
};

#define PRINTER(d) ((struct printer){.descriptor = (d)})

void print_string(struct printer *p, const char *text);
void print_bytes(struct printer *p, const char *text, size_t n);
void print_number(struct printer *p, uint64_t n);
void print_hex(struct printer *p, uint64_t n);

/* Writes what is buffered. Returns false when any write so far failed. */
bool print_flush(struct printer *p);

#endif
