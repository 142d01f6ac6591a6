// expect-abort: ^huddle: zone 0x[0-9a-f]+ \("request"\): (used after it was closed|used after it was sealed|out of memory|invalid argument)$
// each: secure abort
// each: alloc zalloc strdup mark own close reset sealed limit size alignment stale
#include "faults.h"
#include "huddle/zone.h"

static void expect(const huddle_zone_t *z, const char *problem) {
    say("huddle: zone %p (\"request\"): %s\n", (const void *)z, problem);
}

static void use_closed(huddle_zone_t *z, const char *how) {
    huddle_zone_close(z);
    for (int i = 0; i < 10; i++) huddle_zone_close(huddle_zone_open(NULL)); /* its memory is not used for these */
    expect(z, "used after it was closed");
    if (strcmp(how, "alloc") == 0) huddle_zone_alloc(z, 10);
    else if (strcmp(how, "zalloc") == 0) huddle_zone_zalloc(z, 10);
    else if (strcmp(how, "strdup") == 0) huddle_zone_strdup(z, "x");
    else if (strcmp(how, "mark") == 0) huddle_zone_mark(z);
    else if (strcmp(how, "own") == 0) huddle_zone_own(z, NULL);
    else if (strcmp(how, "close") == 0) huddle_zone_close(z);
    else huddle_zone_reset(z);
}

int main(int argc, char **argv) {
    (void)argc;
    int is_secure = strcmp(argv[1], "secure") == 0;
    huddle_zone_options_t o = {.struct_size = sizeof o, .name = "request", .limit = 10000};
    o.flags = is_secure ? HUDDLE_ZONE_SECURE : HUDDLE_ZONE_ABORT;
    huddle_zone_t *z = huddle_zone_open(&o);
    const char *what = argv[2];
    volatile size_t impossible = SIZE_MAX / 2 + 2;
    if (strstr("alloc zalloc strdup mark own close reset", what) != NULL) {
        if (!is_secure) o.flags |= HUDDLE_ZONE_SECURE; /* only such a zone's memory rests */
        use_closed(is_secure ? z : huddle_zone_open(&o), what);
        return not_stopped();
    }
    if (is_secure) return 77; /* these are no errors of memory */
    if (strcmp(what, "sealed") == 0) {
        huddle_zone_seal(z);
        expect(z, "used after it was sealed");
        huddle_zone_alloc(z, 10);
    } else if (strcmp(what, "limit") == 0) {
        expect(z, "out of memory");
        for (;;) huddle_zone_alloc(z, 1000);
    } else if (strcmp(what, "size") == 0) {
        expect(z, "out of memory");
        huddle_zone_alloc(z, impossible);
    } else if (strcmp(what, "alignment") == 0) {
        expect(z, "invalid argument");
        huddle_zone_aligned(z, 24, 10);
    } else {
        huddle_zone_mark_t m = huddle_zone_mark(z);
        huddle_zone_reset(z);
        expect(z, "invalid argument");
        huddle_zone_rewind(z, m);
    }
    return not_stopped();
}
