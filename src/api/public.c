/* public.c - huddle.h */
#include "api/api.h"
#include "base/options.h"
#include "heap/nested.h"
#include "heap/query.h"
#include "huddle/huddle.h"
#include "observe/stats.h"
#include "os/memory.h"
#include "span/purge.h"
#include "thread/reclaim.h"
#include "zone/chunk.h"

#pragma GCC visibility push(default)
const char *huddle_version(void);
size_t huddle_usable_size(const void *block);
size_t huddle_good_size(size_t size);
bool huddle_owns(const void *address);
bool huddle_stats(struct huddle_stats *stats);
bool huddle_stats_json(int descriptor);
size_t huddle_trim(size_t keep);
bool huddle_option_get(const char *key, char *value, size_t size);
bool huddle_option_set(const char *key, const char *value);
#pragma GCC visibility pop

const char *huddle_version(void) {
    return HUDDLE_VERSION_STRING;
}

size_t huddle_usable_size(const void *block) {
    return heap_usable(block);
}

size_t huddle_good_size(size_t size) {
    return heap_good_size(size);
}

bool huddle_owns(const void *address) {
    return heap_owns(address);
}

bool huddle_stats(struct huddle_stats *stats) {
    size_t room = stats->struct_size;
    if (room < offsetof(struct huddle_stats, large_bytes)) return false;
    struct huddle_stats all = {.struct_size = sizeof all};
    stats_collect(&all);
    all.struct_size = room;
    const char *from = (const char *)&all;
    for (size_t i = 0; i < min_size(room, sizeof all); i++) ((char *)stats)[i] = from[i];
    return true;
}

bool huddle_stats_json(int descriptor) {
    struct huddle_stats s = {.struct_size = sizeof s};
    stats_collect(&s);
    return json_write(descriptor, &s);
}

size_t api_trim(size_t keep) {
    struct heap_use use = heap_enter();
    size_t released = 0;
    if (!use.is_nested) {
        if (use.heap != NULL) heap_flush(use.heap);
        reclaim(true);
        nested_drain();
        size_t before = os_memory_counters().purged_bytes;
        reclaim_pages(true);
        released = os_memory_counters().purged_bytes - before;
        depot_age(true);
        released += purge_all(keep);
    }
    heap_leave(use);
    return released;
}

size_t huddle_trim(size_t keep) {
    return api_trim(keep);
}

bool huddle_option_get(const char *key, char *value, size_t size) {
    return option_get(key, value, size);
}

bool huddle_option_set(const char *key, const char *value) {
    size_t key_length = 0, value_length = 0;
    while (key[key_length] != '\0') key_length++;
    while (value[value_length] != '\0') value_length++;
    return option_set(key, key_length, value, value_length, OPTION_ANY) == NULL;
}
