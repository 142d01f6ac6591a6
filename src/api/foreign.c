/* foreign.c - blocks of libc's own malloc, which reach free and realloc when a library was bound to libc's
 * (RTLD_DEEPBIND, dlsym of a libc handle). They are recognized by where they lie and by the header that glibc puts
 * before every block, and passed on.
 *
 *   main arena     in the mapping that the kernel calls [heap]: huddle never moves the program break
 *   mapped blocks  flag 2 in the header: the block's pages begin and end at page boundaries inside one mapping
 *   other arenas   flag 4: the arena's header stands at the multiple of 64 MiB below, and says how far it reaches
 *
 * The option foreign says whether that is done, and what with blocks that are neither's.
 *
 * Only on the way to an error message, so the mappings are read from /proc/self/maps each time: nothing is touched
 * that might not be there. */
#include <fcntl.h>
#include <dlfcn.h>

#include "api/api.h"
#include "api/foreign.h"
#include "base/options.h"
#include "heap/free.h"
#include "heap/query.h"
#include "os/memory.h"
#include "os/system.h"

void *dlsym(void *handle, const char *name) __attribute__((weak));

enum {
    FLAG_MAPPED = 2,
    FLAG_OTHER_ARENA = 4,
    FLAGS = 7,
    HEADER_BYTES = 16,
    CHUNK_MIN = 32,
    ARENA_BYTES = 64 << 20,
};

struct area {
    uintptr_t start, end;
    bool is_writable, is_break;
};

/* The lines of /proc/self/maps, read in pieces. */
struct reader {
    int descriptor;
    size_t used, at;
    char buffer[1024];
};

/* The next character, or 0 at the end. */
static char next_char(struct reader *r) {
    if (r->at == r->used) {
        long n = system_call(SYS_read, r->descriptor, (long)r->buffer, sizeof r->buffer, 0, 0, 0);
        if (n <= 0) return 0;
        r->used = (size_t)n;
        r->at = 0;
    }
    return r->buffer[r->at++];
}

/* Reads hexadecimal digits; the character after them is consumed. */
static uintptr_t next_hex(struct reader *r) {
    uintptr_t n = 0;
    for (;;) {
        char c = next_char(r);
        if (c >= '0' && c <= '9') n = n << 4 | (uintptr_t)(c - '0');
        else if (c >= 'a' && c <= 'f') n = n << 4 | (uintptr_t)(c - 'a' + 10);
        else return n;
    }
}

/* One line: "start-end rw-p offset device inode    path". Returns false at the end of the file. */
static bool next_area(struct reader *r, struct area *a) {
    a->start = next_hex(r);
    a->end = next_hex(r);
    if (a->end == 0) return false;
    bool is_readable = next_char(r) == 'r';
    a->is_writable = next_char(r) == 'w' && is_readable;
    static const char name[] = "[heap]";
    size_t matched = 0;
    for (char c = next_char(r); c != '\n' && c != 0; c = next_char(r)) {
        if (matched < sizeof name - 1) matched = c == name[matched] ? matched + 1 : c == name[0];
    }
    a->is_break = matched == sizeof name - 1;
    return true;
}

static bool find_area(uintptr_t address, struct area *a) {
    struct reader r = {.descriptor = (int)system_call(SYS_openat, AT_FDCWD, (long)"/proc/self/maps", O_RDONLY | O_CLOEXEC, 0, 0, 0)};
    if (r.descriptor < 0) return false;
    bool is_found = false;
    while (!is_found && next_area(&r, a)) is_found = address - a->start < a->end - a->start;
    os_close(r.descriptor);
    return is_found && a->is_writable;
}

/* The chunk begins in its arena, which the word at the multiple of 64 MiB describes: arena, previous heap, size. */
static bool is_in_other_arena(uintptr_t chunk, size_t bytes) {
    uintptr_t heap = chunk & ~(uintptr_t)(ARENA_BYTES - 1);
    struct area a;
    if (!find_area(heap, &a) || a.start != heap) return false;
    const size_t *header = (const size_t *)heap;
    return header[0] != 0 && header[2] <= ARENA_BYTES && chunk + bytes <= heap + header[2];
}

static bool is_libc_block(const void *p) {
    uintptr_t chunk = (uintptr_t)p - HEADER_BYTES;
    struct area a;
    if ((uintptr_t)p % HEADER_BYTES != 0 || !find_area(chunk, &a)) return false;
    size_t before = ((const size_t *)p)[-2], word = ((const size_t *)p)[-1], bytes = word & ~(size_t)FLAGS;
    if (bytes < CHUNK_MIN || bytes > a.end - chunk || bytes % HEADER_BYTES != 0) return false;
    /* qemu's user mode does not name the mapping; its end is the break. */
    size_t page = os_real_page_bytes, program_break = (size_t)system_call(SYS_brk, 0, 0, 0, 0, 0, 0);
    if (a.is_break || a.end == round_up(program_break, page)) return (word & FLAG_MAPPED) == 0;
    if (word & FLAG_OTHER_ARENA) return is_in_other_arena(chunk, bytes);
    return (word & FLAG_MAPPED) != 0 && before <= chunk - a.start && (chunk - before) % page == 0 && (bytes + before) % page == 0;
}

/* The malloc that comes after ours in the search order; NULL in a static program, which has no other. */
static void *find_libc(const char *name) {
    return dlsym == NULL ? NULL : dlsym(RTLD_NEXT, name);
}

bool heap_take_foreign(void *p) {
    if (!is_libc_block(p)) return false;
    void (*libc_free)(void *) = (void (*)(void *))(uintptr_t)find_libc("free");
    if (libc_free == NULL) return false;
    libc_free(p);
    return true;
}

bool foreign_realloc(void *p, size_t n, void **result) {
    uint32_t policy = relaxed_load(&options.foreign);
    if (policy == FOREIGN_ABORT) return false;
    if (!is_libc_block(p)) {
        if (policy != FOREIGN_IGNORE || heap_owns(p)) return false;
        *result = api_no_memory(); /* what it holds cannot be copied: its size is not known */
        return true;
    }
    void *(*libc_realloc)(void *, size_t) = (void *(*)(void *, size_t))(uintptr_t)find_libc("realloc");
    if (libc_realloc == NULL) return false;
    *result = libc_realloc(p, n);
    return true;
}

bool foreign_usable(void *p, size_t *bytes) {
    if (relaxed_load(&options.foreign) == FOREIGN_ABORT || !is_libc_block(p)) return false;
    size_t (*libc_usable)(void *) = (size_t (*)(void *))(uintptr_t)find_libc("malloc_usable_size");
    if (libc_usable == NULL) return false;
    *bytes = libc_usable(p);
    return true;
}
