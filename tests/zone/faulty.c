/* faulty.c - one fault in the use of zone memory, for AddressSanitizer and Valgrind to find: faulty none|FAULT. Linked with
 * the library as it is shipped. */
#include <stdio.h>

#include "huddle/zone.h"

static char use(char *p) {
    *(volatile char *)p = 1;
    return *(volatile char *)p;
}

int main(int argc, char **argv) {
    const char *fault = argc > 1 ? argv[1] : "none";
    huddle_zone_t *z = huddle_zone_open(NULL);
    char *p = huddle_zone_alloc(z, 100), *large = huddle_zone_zalloc(z, 500000);
    huddle_zone_mark_t m = huddle_zone_mark(z);
    char *younger = huddle_zone_packed(z, 10);
    memset(p, 1, 100);
    memset(large, 1, 500000);
    memset(younger, 1, 10);
    for (int i = 0; i < 1000; i++) memset(huddle_zone_alloc(z, 1000), 1, 1000);
    if (strcmp(fault, "overflow") == 0) use(p + 105); /* where the rounding is */
    huddle_zone_rewind(z, m);
    if (strcmp(fault, "rewind") == 0) use(younger);
    use(p);
    huddle_zone_reset(z);
    if (strcmp(fault, "reset") == 0) use(p);
    p = huddle_zone_zalloc(z, 200);
    for (int i = 0; i < 200; i++) printf("%s", p[i] == 0 ? "" : "not zero"); /* and has a value, for Valgrind */
    if (strcmp(fault, "undefined") == 0 && *(volatile char *)huddle_zone_alloc(z, 64) == 'x') puts("x");
    huddle_zone_close(z);
    if (strcmp(fault, "close") == 0) use(p);
    for (int i = 0; i < 100; i++) {
        z = huddle_zone_open(NULL);
        for (int k = 0; k < 100; k++) memset(huddle_zone_alloc(z, 700), 1, 700);
        huddle_zone_close(z);
    }
    puts("done");
    return 0;
}
