#include "span/mapping.h"

#include "os/memory.h"
#include "span/page_map.h"
#include "span/purge.h"
#include "span/span.h"

/* Unmaps what lies outside base .. base + n, where the system lets us. */
static void trim(struct mapping *m, char *base, size_t n) {
    size_t head = (size_t)(base - m->start);
    if (head != 0 && os_unmap(m->start, head)) {
        m->start += head;
        m->bytes -= head;
    }
    size_t tail = (size_t)(m->start + m->bytes - (base + n));
    if (tail != 0 && os_unmap(base + n, tail)) m->bytes -= tail;
    m->base = base;
}

/* When the system refuses, what is mapped and not used at all is given up for it. */
static void *map(size_t n, bool is_reserved) {
    void *p = is_reserved ? os_reserve(n) : os_map(NULL, n);
    if (p == NULL && span_release_unused() != 0) p = is_reserved ? os_reserve(n) : os_map(NULL, n);
    return p;
}

static bool make(struct mapping *m, size_t n, size_t alignment, bool is_reserved) {
    m->start = m->base = map(n, is_reserved);
    m->bytes = n;
    if (m->start != NULL && ((uintptr_t)m->start & (alignment - 1)) == 0) return true;
    if (m->start != NULL) os_unmap(m->start, n);
    size_t with_room = n + alignment - os_page_bytes;
    if (with_room < n) return false;
    m->start = map(with_room, is_reserved);
    m->bytes = with_room;
    if (m->start == NULL) return false;
    trim(m, (char *)round_up((uintptr_t)m->start, alignment), n);
    return true;
}

bool mapping_make(struct mapping *m, size_t n, size_t alignment, bool is_reserved) {
    struct mapping made;
    if (!make(&made, n, alignment, is_reserved)) return false;
    if (!page_map_cover(made.base, 1)) {
        mapping_release(&made);
        return false;
    }
    *m = made;
    return true;
}

static bool move(struct mapping *m, size_t room) {
    struct mapping to;
    if (!mapping_make(&to, room, UNIT_BYTES, true)) return false;
    if (!os_move(m->base, mapping_room(m), to.base, room)) {
        mapping_release(&to);
        return false;
    }
    *m = to;
    return true;
}

bool mapping_grow(struct mapping *m, size_t room, size_t room_if_moved) {
    size_t old = mapping_room(m);
    if (old >= room) return true;
    purge_note_taken((room - old) / UNIT_BYTES);
    if (!os_resize(m->base, old, room)) return move(m, room_if_moved);
    m->bytes += room - old;
    return true;
}

void mapping_shrink(struct mapping *m, size_t room) {
    size_t surplus = mapping_room(m) - room;
    if (surplus > room / 4 && os_unmap(m->base + room, surplus)) m->bytes -= surplus;
}

void mapping_release(const struct mapping *m) {
    if (!os_unmap(m->start, m->bytes)) os_purge(m->start, m->bytes);
}
