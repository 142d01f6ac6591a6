#include "os/fail.h"

#include "os/print.h"
#include "os/system.h"

_Noreturn static void stop(struct printer *p) {
    print_string(p, "\n");
    print_flush(p);
    os_abort();
}

static struct printer start(const char *what, const void *address) {
    struct printer p = PRINTER(2);
    print_string(&p, what);
    print_hex(&p, (uintptr_t)address);
    return p;
}

_Noreturn void fail_assertion(const char *expression, const char *file, int line) {
    struct printer p = PRINTER(2);
    print_string(&p, "huddle: internal error: ");
    print_string(&p, expression);
    print_string(&p, " at ");
    print_string(&p, file);
    print_string(&p, ":");
    print_number(&p, (uint64_t)line);
    stop(&p);
}

static void print_size(struct printer *p, size_t bytes, const char *noun) {
    print_string(p, "a ");
    print_number(p, bytes);
    print_string(p, "-byte ");
    print_string(p, noun);
}

_Noreturn void fail_double_free(const void *address, size_t bytes, const char *noun) {
    struct printer p = start("huddle: double free of ", address);
    print_string(&p, " (");
    print_size(&p, bytes, noun);
    print_string(&p, ")");
    stop(&p);
}

_Noreturn void fail_invalid_free(const void *address, size_t offset, size_t bytes, const char *noun) {
    struct printer p = start("huddle: invalid free of ", address);
    print_string(&p, ": ");
    print_number(&p, offset);
    print_string(&p, " bytes into ");
    print_size(&p, bytes, noun);
    stop(&p);
}

_Noreturn void fail_foreign_free(const void *address) {
    struct printer p = start("huddle: free of ", address);
    print_string(&p, ", which huddle did not allocate");
    stop(&p);
}

_Noreturn void fail_zone_free(const void *address, const char *name) {
    struct printer p = start("huddle: free of ", address);
    print_string(&p, name != NULL ? ", which is memory of the zone \"" : ", which is zone memory");
    if (name != NULL) {
        print_string(&p, name);
        print_string(&p, "\"");
    }
    stop(&p);
}

_Noreturn void fail_zone(const void *zone, const char *name, const char *problem) {
    struct printer p = start("huddle: zone ", zone);
    if (name != NULL) {
        print_string(&p, " (\"");
        print_string(&p, name);
        print_string(&p, "\")");
    }
    print_string(&p, ": ");
    print_string(&p, problem);
    stop(&p);
}
