/* zone.h - zones: allocate many objects, free them all at once.
 *
 * A zone is a bump allocator: an allocation moves a pointer, nothing is noted for each object, and closing the zone costs
 * as much as it has chunks. The idea and the first figures are those of Scala Native's zones (pull request 2443).
 *
 *   huddle_zone_t *z = huddle_zone_open(NULL);
 *   struct node *n = huddle_new(z, struct node);
 *   char *name = huddle_zone_strdup(z, "root");
 *   huddle_zone_close(z);                          n and name are gone
 *
 * Sizes are bytes. Memory is aligned to 16 bytes unless said otherwise, and is not zeroed unless said otherwise. An
 * allocation of 0 bytes returns an address that no other allocation has.
 *
 * Errors. What returns a pointer returns NULL, what returns an int returns -1, and errno is
 *   ENOMEM   a size above PTRDIFF_MAX, a product that overflows, the zone's limit, no room in a FIXED zone, or no memory
 *            from the system; the option on_oom is asked first
 *   EBADF    the zone is closed
 *   EPERM    the zone is sealed
 *   EINVAL   an alignment that is no power of two, a mark that is stale or of another zone, an option out of range
 * With HUDDLE_ZONE_ABORT such an error stops the program with a message instead.
 *
 * Threads. A zone belongs to no thread: one thread at a time may use it (and its parent, when a child is opened or
 * closed), and it may be handed to another and closed there. In a SHARED zone several threads may allocate at once.
 * Different zones are independent. errno is changed only on error.
 *
 * Signals. A handler may use zones of its own. Where it interrupted the allocator, a zone that needs a new chunk gets
 * none: NULL and ENOMEM.
 *
 * free and realloc of memory of a zone stop the program with the zone's name; malloc_usable_size says 0 of it.
 *
 * Programs that define HUDDLE_ZONE_NO_INLINE, and those under AddressSanitizer, call the library for each
 * allocation. */
#ifndef HUDDLE_ZONE_H
#define HUDDLE_ZONE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Only for the functions below that are inline: read and written by nobody else. */
typedef struct huddle_zone {
    char *cur;       /* where the next allocation starts */
    char *end;       /* up to where one may be made without a call */
    char *zero_from; /* what lies at or above it is zero already */
} huddle_zone_t;

/* Flags of huddle_zone_options. */
enum {
    HUDDLE_ZONE_ZERO = 1,    /* all memory is zeroed, whatever function it comes from */
    HUDDLE_ZONE_SHARED = 2,  /* several threads may allocate at once: each from a part of its own. No marks, no resizing but
                                by copying, no growing object */
    HUDDLE_ZONE_FIXED = 4,   /* never asks the system: what does not fit into the buffer fails. For huddle_zone_init */
    HUDDLE_ZONE_ABORT = 8,   /* errors stop the program */
    HUDDLE_ZONE_SECURE = 16, /* memory is zeroed at close, reset and rewind; for the next 16 such closes of the thread, use
                                of the closed zone stops the program */
    HUDDLE_ZONE_NODUMP = 32, /* chunks are mappings of their own, left out of core dumps (MADV_DONTDUMP) */
    HUDDLE_ZONE_HUGE = 64,   /* chunks are mappings of their own, of 2 MiB and more, with huge pages (MADV_HUGEPAGE) */
};

/* What a zone should be like; zero everywhere means the default. Copied by huddle_zone_open, but `name`, which must live as
 * long as the zone. */
typedef struct huddle_zone_options {
    size_t struct_size; /* sizeof(huddle_zone_options_t): what the caller knows of */
    unsigned flags;
    unsigned min_align; /* of every allocation, a power of two up to 4096; other than 16 every allocation is a call */
    size_t chunk_min;   /* bytes of the first chunk, 4 KiB to 1 MiB, rounded up to a power of two; default: by what zones of
                           this thread needed lately, at most 64 KiB */
    size_t chunk_max;   /* chunks double up to this, 4 KiB to 1 MiB; default 1 MiB */
    size_t large_min;   /* objects of so many bytes that the current chunk has no room for get memory of their own; 4 KiB
                           to 256 KiB, which is the default */
    size_t limit;       /* bytes that may be handed out, alignment included, rounded up to 16; children count for
                           themselves; of a SHARED zone bytes of chunks. 0: none */
    size_t retain;      /* bytes of chunks that reset always keeps; default: twice what was needed lately, for a while */
    void *buffer;       /* memory of the caller that is used first and outlives the zone, or NULL */
    size_t buffer_bytes;
    const char *name; /* for messages and reports, or NULL */
    huddle_zone_t *parent; /* the zone is closed, if it is still open, when the parent is closed or reset, or rewound to
                              before the opening. NULL: none */
    bool (*on_oom)(huddle_zone_t *z, size_t n, void *arg); /* there is no memory for n bytes: true tries again */
    /* A range of memory that objects may lie in comes (is_added) or goes: for a collector's roots. It must not use the
       zone. */
    void (*on_chunk)(huddle_zone_t *z, void *start, size_t n, bool is_added, void *arg);
    void *arg; /* for both */
} huddle_zone_options_t;

/* ---- lifetime ---- */

/* Opens a zone; NULL options mean the defaults. An empty one takes 4 KiB. NULL with ENOMEM or EINVAL (FIXED
 * is for huddle_zone_init; SHARED goes with neither FIXED nor a buffer). */
huddle_zone_t *huddle_zone_open(const huddle_zone_options_t *options);

/* Makes a zone in `n` bytes of the caller's memory (at least 1024, else EINVAL; any alignment), which outlives it: zone and
 * first objects lie there. When it is full, chunks follow, unless the zone is FIXED. */
huddle_zone_t *huddle_zone_init(void *memory, size_t n, const huddle_zone_options_t *options);

/* Ends the zone: closes its children, youngest first; calls what on_close registered, last registered first; gives the
 * memory back. From any thread. -1 with EBADF when it is closed already, for as long as its memory was not used
 * anew. */
int huddle_zone_close(huddle_zone_t *z);

/* As close and open again, with the same options: all objects are gone, the zone keeps some memory. */
int huddle_zone_reset(huddle_zone_t *z);

/* Gives back chunks that the zone keeps unused, but `keep` bytes of them. Returns the bytes given back. */
size_t huddle_zone_trim(huddle_zone_t *z, size_t keep);

/* From now on the zone allocates no more (EPERM); its objects stay, and chunks kept unused are given back. */
int huddle_zone_seal(huddle_zone_t *z);

/* Whether z is a zone that is open (or sealed), as far as can be told of memory that may have been used anew. */
bool huddle_zone_is_open(const huddle_zone_t *z);

/* ---- allocation ---- */

/* At any power of two `align`ment, by address. */
void *huddle_zone_aligned(huddle_zone_t *z, size_t align, size_t n);

/* k objects of n bytes each, zeroed. */
void *huddle_zone_calloc(huddle_zone_t *z, size_t k, size_t n);

/* k objects of n bytes each, at a multiple of `align`. */
void *huddle_zone_array(huddle_zone_t *z, size_t k, size_t n, size_t align);

/* As huddle_zone_array, zeroed. */
void *huddle_zone_zarray(huddle_zone_t *z, size_t k, size_t n, size_t align);

/* Without any alignment or padding: several in a row lie side by side. */
void *huddle_zone_packed(huddle_zone_t *z, size_t n);

/* At least n bytes; *got says how many may be used. */
void *huddle_zone_at_least(huddle_zone_t *z, size_t n, size_t *got);

/* ---- resizing; `old` is the size that was asked for ---- */

/* Makes the block at p `n` bytes long where it is. True on success; false when it is not the last one, or there is no
 * room: nothing changed, errno neither. Shrinking always succeeds. */
bool huddle_zone_extend(huddle_zone_t *z, void *p, size_t old, size_t n);

/* A block with the first min(old, n) bytes of p: in place, or copied; the old one stays until the zone's end. p may be
 * NULL. NULL with ENOMEM: the old block is unchanged. */
void *huddle_zone_realloc(huddle_zone_t *z, void *p, size_t old, size_t n);

/* Takes back the block at p of n bytes, if it is the last one. */
bool huddle_zone_pop(huddle_zone_t *z, void *p, size_t n);

/* A growing object, one at a time in a zone: its parts are appended to, and it is moved when it must be. Other allocations
 * may be made meanwhile, and make it move. begin: EINVAL when one is open; the others when none is. append: -1 and ENOMEM, the
 * object is as before. grow: as append, of n bytes that the caller writes: returns where (one byte more may be written).
 * finish returns the object's start and, when `length` is not NULL, its bytes; a zero byte follows them. Reset and rewind
 * abandon it. */
int huddle_zone_buf_begin(huddle_zone_t *z);
int huddle_zone_buf_append(huddle_zone_t *z, const void *data, size_t n);
void *huddle_zone_buf_grow(huddle_zone_t *z, size_t n);
void *huddle_zone_buf_finish(huddle_zone_t *z, size_t *length);
int huddle_zone_buf_abandon(huddle_zone_t *z);

/* ---- text, without alignment ---- */

char *huddle_zone_strdup(huddle_zone_t *z, const char *text);

/* At most n bytes of the text, and a zero byte. */
char *huddle_zone_strndup(huddle_zone_t *z, const char *text, size_t n);

/* A copy of n bytes, aligned to 16. */
void *huddle_zone_memdup(huddle_zone_t *z, const void *data, size_t n);

/* The texts one after the other, up to a NULL. */
char *huddle_zone_strcat(huddle_zone_t *z, ...) __attribute__((sentinel));

/* ---- scope ---- */

/* A point of time in a zone. */
typedef struct {
    huddle_zone_t *zone;
    uint64_t id;
} huddle_zone_mark_t;

/* Notes the point of time; takes 16 bytes of the zone, unless nothing happened since the last mark. On error (as an allocation) the mark's id is 0. Marks nest. Not for
 * SHARED zones: EINVAL. */
huddle_zone_mark_t huddle_zone_mark(huddle_zone_t *z);

/* Everything younger than the mark goes: children are closed, callbacks called, memory is the zone's again. The mark may be
 * used again, younger ones are stale: -1 with EINVAL. */
int huddle_zone_rewind(huddle_zone_t *z, huddle_zone_mark_t mark);

/* One of the thread's two scratch zones, one that is not among the n `conflicts` (the zones that results go to). To be used
 * between a mark and a rewind; closed at the thread's end. NULL with EINVAL when both are conflicts, or with ENOMEM. */
huddle_zone_t *huddle_zone_scratch(huddle_zone_t *const *conflicts, size_t n);

/* ---- ownership ---- */

/* Calls fn(arg) at close, reset or rewind. Returns a number for huddle_zone_cancel, 0 with ENOMEM. */
uint64_t huddle_zone_on_close(huddle_zone_t *z, void (*fn)(void *arg), void *arg);

/* The call with that number will not be made. -1 with EINVAL when there is none. */
int huddle_zone_cancel(huddle_zone_t *z, uint64_t number);

/* A block from malloc is freed at close, reset or rewind. Returns p; NULL with ENOMEM: the block is still the
 * caller's. */
void *huddle_zone_own(huddle_zone_t *z, void *p);

/* As huddle_zone_open, with `parent` as the option of that name. */
huddle_zone_t *huddle_zone_child(huddle_zone_t *parent, const huddle_zone_options_t *options);

/* All that `from` has becomes `into`'s, as if allocated now, without copying; `from` is closed. Both are default zones or
 * differ in nothing but name, limit and sizes (else EINVAL; SHARED ones, and those in memory of the caller, never). The
 * limit of `into` is not checked. */
int huddle_zone_merge(huddle_zone_t *into, huddle_zone_t *from);

/* ---- insight ---- */

/* The zone whose chunk or large object `address` lies in, or NULL; any 64-bit value. In constant time. Not for memory of the
 * caller's (init, buffer). */
huddle_zone_t *huddle_zone_of(const void *address);

/* Whether `address` lies in memory that z has handed out (alignment and marks included). */
bool huddle_zone_contains(const huddle_zone_t *z, const void *address);

typedef struct {
    size_t struct_size;  /* set by the caller to sizeof(huddle_zone_stats_t) */
    size_t used_bytes;   /* handed out, alignment and marks included */
    size_t held_bytes;   /* chunks and large objects, used or kept */
    size_t kept_bytes;   /* of held_bytes, chunks that nothing is in */
    size_t chunks;       /* their number, kept ones included */
    size_t large_objects;
    size_t large_bytes;  /* of used_bytes */
    size_t children;
    size_t callbacks;
    size_t limit;        /* 0: none */
    unsigned flags;
    const char *name;
} huddle_zone_stats_t;

/* Fills in `stats` as far as struct_size reaches. Of a SHARED zone: with those of all threads, exact when none allocates. */
int huddle_zone_stats(const huddle_zone_t *z, huddle_zone_stats_t *stats);

/* Calls fn for every open zone of the process that huddle_zone_open made, parts of SHARED ones left out, until it returns
 * false. Other threads' zones are read beside them: what their stats say is approximate, and the caller sees to it that
 * none is closed meanwhile. fn must open and close none. */
void huddle_zone_foreach(bool (*fn)(huddle_zone_t *z, void *arg), void *arg);

/* Calls fn for every range of memory that z has handed out, until it returns false. */
void huddle_zone_walk(const huddle_zone_t *z, bool (*fn)(void *start, size_t n, void *arg), void *arg);

/* ---- inline: nothing below is a call while there is room ---- */

/* What huddle_zone_alloc and huddle_zone_zalloc do when there is no room, for all sizes. */
void *huddle_zone_alloc_slow(huddle_zone_t *z, size_t n) __attribute__((malloc, alloc_size(2), cold));
void *huddle_zone_zalloc_slow(huddle_zone_t *z, size_t n) __attribute__((malloc, alloc_size(2), cold));

#if defined(__SANITIZE_ADDRESS__) && !defined(HUDDLE_ZONE_NO_INLINE)
#define HUDDLE_ZONE_NO_INLINE 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) && !defined(HUDDLE_ZONE_NO_INLINE)
#define HUDDLE_ZONE_NO_INLINE 1
#endif
#endif

#if defined(HUDDLE_ZONE_NO_INLINE)

void *huddle_zone_alloc(huddle_zone_t *z, size_t n) __attribute__((malloc, alloc_size(2)));
void *huddle_zone_zalloc(huddle_zone_t *z, size_t n) __attribute__((malloc, alloc_size(2)));

#else

/* n bytes. One comparison serves for no room, for a size of 0 and for one that wraps. */
__attribute__((malloc, alloc_size(2))) static inline void *huddle_zone_alloc(huddle_zone_t *z, size_t n) {
    size_t k = (n + 15) & ~(size_t)15;
    char *p = z->cur;
    if (__builtin_expect(k - 1 >= (size_t)(z->end - p), 0)) return huddle_zone_alloc_slow(z, n);
    z->cur = p + k;
    return __builtin_assume_aligned(p, 16);
}

/* n bytes, zeroed. */
__attribute__((malloc, alloc_size(2))) static inline void *huddle_zone_zalloc(huddle_zone_t *z, size_t n) {
    size_t k = (n + 15) & ~(size_t)15;
    char *p = z->cur;
    if (__builtin_expect(k - 1 >= (size_t)(z->end - p), 0)) return huddle_zone_zalloc_slow(z, n);
    z->cur = p + k;
    /* Small sizes are a few stores. Without the prefetch, and once a chunk is larger than the first-level cache, they wait for
     * each line in turn, because the store to z->cur lies between them. */
    if (__builtin_constant_p(n) && n <= 64) {
        if (n > 32) __builtin_prefetch(p + 256, 1);
        memset(__builtin_assume_aligned(p, 16), 0, k);
    } else if (p < z->zero_from) memset(__builtin_assume_aligned(p, 16), 0, n);
    return __builtin_assume_aligned(p, 16);
}

#endif

/* Text as vprintf and printf make it. */
__attribute__((format(printf, 2, 0))) static inline char *huddle_zone_vprintf(huddle_zone_t *z, const char *format, va_list list) {
    char small[256];
    va_list again;
    va_copy(again, list);
    int length = vsnprintf(small, sizeof small, format, list);
    char *text = length < 0 ? NULL : (char *)huddle_zone_packed(z, (size_t)length + 1);
    if (text != NULL) {
        if ((size_t)length < sizeof small) memcpy(text, small, (size_t)length + 1);
        else vsnprintf(text, (size_t)length + 1, format, again);
    }
    va_end(again);
    return text;
}

__attribute__((format(printf, 2, 3))) static inline char *huddle_zone_printf(huddle_zone_t *z, const char *format, ...) {
    va_list list;
    va_start(list, format);
    char *text = huddle_zone_vprintf(z, format, list);
    va_end(list);
    return text;
}

/* Appends text to the growing object; as huddle_zone_buf_append. */
__attribute__((format(printf, 2, 3))) static inline int huddle_zone_buf_appendf(huddle_zone_t *z, const char *format, ...) {
    char small[256];
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    int length = vsnprintf(small, sizeof small, format, list), result = -1;
    if (length >= 0 && (size_t)length < sizeof small) {
        result = huddle_zone_buf_append(z, small, (size_t)length);
    } else if (length >= 0) {
        char *to = (char *)huddle_zone_buf_grow(z, (size_t)length);
        if (to != NULL) vsnprintf(to, (size_t)length + 1, format, again);
        result = to != NULL ? 0 : -1;
    }
    va_end(again);
    va_end(list);
    return result;
}

/* A zone that is closed at the end of the block: HUDDLE_ZONE_SCOPE(z); declares huddle_zone_t *z, NULL when there is no
 * memory. */
static inline void huddle_zone_close_scope(huddle_zone_t **z) {
    if (*z != NULL) huddle_zone_close(*z);
}
#define HUDDLE_ZONE_SCOPE(z) __attribute__((cleanup(huddle_zone_close_scope))) huddle_zone_t *z = huddle_zone_open(NULL)

/* An object of type T, or k of them in a row, aligned as T is and zeroed: huddle_new(z, T), huddle_new(z, T, k). */
#define huddle_new(...) HUDDLE_NEW_CHOOSE(__VA_ARGS__, HUDDLE_NEW_ARRAY, HUDDLE_NEW_ONE, )(__VA_ARGS__)
#define HUDDLE_NEW_CHOOSE(z, T, k, macro, ...) macro
#define HUDDLE_NEW_ONE(z, T)                                                                                           \
    ((T *)(__alignof__(T) <= 16 ? huddle_zone_zalloc(z, sizeof(T)) : huddle_zone_zarray(z, 1, sizeof(T), __alignof__(T))))
#define HUDDLE_NEW_ARRAY(z, T, k) ((T *)huddle_zone_zarray(z, k, sizeof(T), __alignof__(T)))

#ifdef __cplusplus
}
#endif

#endif
