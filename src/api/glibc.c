/* glibc.c - glibc's questions and controls: mallinfo, mallinfo2, mallopt, malloc_trim, malloc_stats, malloc_info. */
#include <malloc.h>
#include <stdio.h>

#include "api/api.h"
#include "observe/stats.h"
#include "os/print.h"
#include "os/system.h"

#ifdef __GLIBC__

EXPORT struct mallinfo2 mallinfo2(void);
EXPORT struct mallinfo mallinfo(void);
EXPORT int mallopt(int parameter, int value);
EXPORT int malloc_trim(size_t pad);
EXPORT void malloc_stats(void);
EXPORT int malloc_info(int zero, FILE *to);

/* The fields that mean something here: arena is what runs hold, hblk* are large blocks, uordblks is all that the
 * program has, fordblks what is free in runs and regions, keepcost what malloc_trim could give back at least. */
struct mallinfo2 mallinfo2(void) {
    struct huddle_stats s = {.struct_size = sizeof s};
    struct mallinfo2 m = {0};
    stats_collect(&s);
    size_t free_cells = 0;
    for (size_t i = 0; i < HUDDLE_CLASSES; i++) free_cells += s.classes[i].free + s.classes[i].cached;
    m.arena = s.run_bytes;
    m.ordblks = free_cells;
    m.hblks = s.large_blocks;
    m.hblkhd = s.large_bytes;
    m.uordblks = s.live_bytes;
    m.fordblks = s.run_bytes - (s.live_bytes - s.large_bytes) + s.dirty_bytes;
    m.keepcost = s.dirty_bytes;
    return m;
}

static int clipped(size_t n) {
    return n > INT32_MAX ? INT32_MAX : (int)n;
}

struct mallinfo mallinfo(void) {
    struct mallinfo2 m = mallinfo2();
    return (struct mallinfo){
        .arena = clipped(m.arena),
        .ordblks = clipped(m.ordblks),
        .hblks = clipped(m.hblks),
        .hblkhd = clipped(m.hblkhd),
        .uordblks = clipped(m.uordblks),
        .fordblks = clipped(m.fordblks),
        .keepcost = clipped(m.keepcost),
    };
}

/* The parameters tune an allocator of another design: each is accepted and means nothing. */
int mallopt(int parameter, int value) {
    (void)value;
    return parameter == M_MXFAST || (parameter <= M_TRIM_THRESHOLD && parameter >= M_ARENA_MAX);
}

int malloc_trim(size_t pad) {
    return api_trim(pad) != 0;
}

static void line(struct printer *p, const char *name, size_t value) {
    print_string(p, name);
    print_number(p, value);
    print_string(p, "\n");
}

void malloc_stats(void) {
    struct huddle_stats s = {.struct_size = sizeof s};
    struct printer p = PRINTER(2);
    stats_collect(&s);
    line(&p, "huddle: live bytes     ", s.live_bytes);
    line(&p, "huddle: live blocks    ", s.live_blocks);
    line(&p, "huddle: cached bytes   ", s.cached_bytes);
    line(&p, "huddle: bytes in runs  ", s.run_bytes);
    line(&p, "huddle: dirty bytes    ", s.dirty_bytes);
    line(&p, "huddle: metadata bytes ", s.metadata_bytes);
    line(&p, "huddle: mapped bytes   ", s.mapped_bytes);
    print_flush(&p);
}

int malloc_info(int zero, FILE *to) {
    if (zero != 0) {
        errno = EINVAL;
        return -1;
    }
    struct huddle_stats s = {.struct_size = sizeof s};
    stats_collect(&s);
    fprintf(to, "<malloc version=\"huddle-%s\">\n", HUDDLE_VERSION_STRING);
    for (size_t i = 0; i < HUDDLE_CLASSES; i++) {
        const struct huddle_class_stats *c = &s.classes[i];
        if (c->runs != 0)
            fprintf(to, "<class size=\"%zu\" runs=\"%zu\" live=\"%zu\" cached=\"%zu\" free=\"%zu\"/>\n", c->cell_bytes, c->runs,
                    c->live, c->cached, c->free);
    }
    fprintf(to, "<total type=\"live\" count=\"%zu\" size=\"%zu\"/>\n", s.live_blocks, s.live_bytes);
    fprintf(to, "<total type=\"large\" count=\"%zu\" size=\"%zu\"/>\n", s.large_blocks, s.large_bytes);
    fprintf(to, "<system type=\"current\" size=\"%zu\"/>\n", s.mapped_bytes);
    fprintf(to, "<system type=\"max\" size=\"%zu\"/>\n</malloc>\n", s.peak_mapped_bytes);
    return 0;
}

#endif
