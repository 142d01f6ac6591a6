// expect-abort: ^huddle: free of 0x[0-9a-f]+, which is (zone memory|memory of the zone "request")$
// each: named unnamed shared closed
// each: first interior packed large large_interior mark
// each: free cfree realloc realloc_smaller realloc_0 reallocarray __libc_free free_sized free_aligned_sized _ZdlPv
#include "faults.h"
#include "huddle/zone.h"

int main(int argc, char **argv) {
    (void)argc;
    huddle_zone_options_t o = {.struct_size = sizeof o, .name = "request"};
    int is_named = strcmp(argv[1], "named") == 0, is_shared = strcmp(argv[1], "shared") == 0, is_closed = strcmp(argv[1], "closed") == 0;
    if (is_shared) o.flags = HUDDLE_ZONE_SHARED;
    huddle_zone_t *z = huddle_zone_open(is_named || is_shared ? &o : NULL);
    char *p = huddle_zone_alloc(z, 100), *large = huddle_zone_alloc(z, 5000000);
    if (strcmp(argv[2], "interior") == 0) p += 50;
    else if (strcmp(argv[2], "packed") == 0) p = huddle_zone_packed(z, 3);
    else if (strcmp(argv[2], "large") == 0) p = large;
    else if (strcmp(argv[2], "large_interior") == 0) p = large + 4999999;
    else if (strcmp(argv[2], "mark") == 0) p = (char *)z + 64;
    if (is_closed && (p == large || p == large + 4999999)) return 77; /* its memory is nobody's then */
    if (is_closed) huddle_zone_close(z);
    if (is_shared && strcmp(argv[2], "mark") == 0) return 77;
    if (is_named || is_shared) say("huddle: free of %p, which is memory of the zone \"request\"\n", (void *)p);
    else say("huddle: free of %p, which is zone memory\n", (void *)p);
    free_by(argv[3], p, 100);
    return not_stopped();
}
