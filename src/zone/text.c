#include "base/copy.h"
#include "zone/zone.h"

enum { OBJECT_ROOM_MIN = 64 };

char *zone_copy_text(struct zone *z, const char *text, size_t n) {
    char *p = n < PTRDIFF_MAX ? zone_alloc(z, 1, n + 1, FILL_NONE) : zone_alloc(z, 1, SIZE_MAX, FILL_NONE);
    if (p == NULL) return NULL;
    copy_bytes(p, text, n);
    p[n] = '\0';
    return p;
}

char *zone_join(struct zone *z, va_list texts) {
    va_list again;
    va_copy(again, texts);
    size_t n = 0;
    for (const char *s; (s = va_arg(texts, const char *)) != NULL;) n += string_length(s);
    char *joined = zone_alloc(z, 1, n + 1, FILL_NONE), *to = joined;
    if (joined != NULL) {
        for (const char *s; (s = va_arg(again, const char *)) != NULL; to += string_length(s)) copy_bytes(to, s, string_length(s));
        *to = '\0';
    }
    va_end(again);
    return joined;
}

/* ---- the growing object: object_length of object_room bytes, one of them for the zero byte at its end ---- */

/* Room for `room` bytes, where it is or elsewhere. */
static bool make_room(struct zone *z, size_t room) {
    if (z->object != NULL && zone_extend(z, z->object, z->object_room, room)) {
        z->object_room = room;
        return true;
    }
    char *p = zone_alloc(z, ZONE_ALIGN, room, FILL_NONE);
    if (p == NULL) return false;
    copy_bytes(p, z->object, z->object_length);
    z->object = p;
    z->object_room = room;
    return true;
}

char *zone_object_grow(struct zone *z, size_t n) {
    size_t need = z->object_length + n + 1;
    if (n > PTRDIFF_MAX - OBJECT_ROOM_MIN || need > PTRDIFF_MAX) need = SIZE_MAX;
    if (need > z->object_room) {
        size_t generous = max_size(max_size(need, OBJECT_ROOM_MIN), need <= PTRDIFF_MAX ? 2 * z->object_room : 0);
        if (!make_room(z, generous) && !(generous != need && make_room(z, need))) return NULL;
    }
    char *p = z->object + z->object_length;
    z->object_length += n;
    return p;
}

void *zone_object_finish(struct zone *z, size_t *length) {
    if (z->object == NULL && !make_room(z, 1)) return NULL;
    char *p = z->object;
    p[z->object_length] = '\0';
    zone_extend(z, p, z->object_room, z->object_length + 1);
    if (length != NULL) *length = z->object_length;
    z->is_growing = false;
    return p;
}

void zone_object_abandon(struct zone *z) {
    if (z->object != NULL) zone_pop(z, z->object, z->object_room);
    z->is_growing = false;
}
