#include "observe/stats.h"
#include "os/print.h"
#include "os/system.h"

static void field(struct printer *p, const char *name, size_t value, bool is_first) {
    print_string(p, is_first ? "\"" : ",\"");
    print_string(p, name);
    print_string(p, "\":");
    print_number(p, value);
}

static void classes(struct printer *p, const struct huddle_stats *s) {
    bool is_first = true;
    print_string(p, ",\"classes\":[");
    for (size_t i = 0; i < HUDDLE_CLASSES; i++) {
        const struct huddle_class_stats *c = &s->classes[i];
        if (c->runs == 0) continue;
        print_string(p, is_first ? "{" : ",{");
        is_first = false;
        field(p, "cell_bytes", c->cell_bytes, true);
        field(p, "runs", c->runs, false);
        field(p, "live", c->live, false);
        field(p, "cached", c->cached, false);
        field(p, "free", c->free, false);
        field(p, "fresh", c->fresh, false);
        print_string(p, "}");
    }
    print_string(p, "]");
}

static void lanes(struct printer *p, const struct huddle_stats *s) {
    print_string(p, ",\"lanes\":[");
    for (size_t i = 0; i < s->lanes; i++) {
        const struct huddle_lane_stats *l = &s->lane[i];
        print_string(p, i == 0 ? "{" : ",{");
        field(p, "heaps", l->heaps, true);
        field(p, "runs", l->runs, false);
        field(p, "live_bytes", l->live_bytes, false);
        field(p, "inbox_cells", l->inbox_cells, false);
        print_string(p, "}");
    }
    print_string(p, "]");
}

bool json_write(int descriptor, const struct huddle_stats *s) {
    struct printer p = PRINTER(descriptor);
    print_string(&p, "{\"huddle\":\"" HUDDLE_VERSION_STRING "\"");
    field(&p, "pid", (size_t)os_process_id(), false);
    field(&p, "live_bytes", s->live_bytes, false);
    field(&p, "live_blocks", s->live_blocks, false);
    field(&p, "large_bytes", s->large_bytes, false);
    field(&p, "large_blocks", s->large_blocks, false);
    field(&p, "cached_bytes", s->cached_bytes, false);
    field(&p, "run_bytes", s->run_bytes, false);
    field(&p, "zone_bytes", s->zone_bytes, false);
    field(&p, "dirty_bytes", s->dirty_bytes, false);
    field(&p, "metadata_bytes", s->metadata_bytes, false);
    field(&p, "mapped_bytes", s->mapped_bytes, false);
    field(&p, "peak_mapped_bytes", s->peak_mapped_bytes, false);
    field(&p, "purged_bytes", s->purged_bytes, false);
    field(&p, "system_calls", s->system_calls, false);
    field(&p, "heaps", s->heaps, false);
    classes(&p, s);
    lanes(&p, s);
    print_string(&p, "}\n");
    return print_flush(&p);
}
