#include "os/print.h"

#include "os/system.h"

bool print_flush(struct printer *p) {
    if (p->used != 0 && !os_write(p->descriptor, p->buffer, p->used)) p->failed = true;
    p->used = 0;
    return !p->failed;
}

void print_bytes(struct printer *p, const char *text, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (p->used == sizeof p->buffer) print_flush(p);
        p->buffer[p->used++] = text[i];
    }
}

void print_string(struct printer *p, const char *text) {
    size_t n = 0;
    while (text[n] != '\0') n++;
    print_bytes(p, text, n);
}

static void print_digits(struct printer *p, uint64_t n, unsigned base) {
    char digits[20];
    size_t i = sizeof digits;
    do digits[--i] = "0123456789abcdef"[n % base];
    while ((n /= base) != 0);
    print_bytes(p, digits + i, sizeof digits - i);
}

void print_number(struct printer *p, uint64_t n) {
    print_digits(p, n, 10);
}

void print_hex(struct printer *p, uint64_t n) {
    print_string(p, "0x");
    print_digits(p, n, 16);
}
