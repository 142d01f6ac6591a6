#include "os/memory.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>

#include "base/options.h"
#include "os/fail.h"
#include "os/system.h"

#if !defined MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

size_t os_page_bytes = 4096;
size_t os_real_page_bytes = 4096;

/* Atomic, relaxed: sums for reports, and the number that fail_nth counts. */
static struct os_counters counters;

void os_memory_init(size_t real_page_bytes, size_t wanted_page_bytes) {
    if (is_power_of_two(real_page_bytes)) os_page_bytes = os_real_page_bytes = real_page_bytes;
    if (is_power_of_two(wanted_page_bytes) && wanted_page_bytes > os_page_bytes) os_page_bytes = wanted_page_bytes;
}

/* Counts a call, and says whether it is to fail for a test. */
static bool is_refused(void) {
    size_t n = shared_add(&counters.calls, 1);
    uint32_t nth = relaxed_load(&options.fail_nth);
    return unlikely(nth != 0) && n >= nth && n - nth < relaxed_load(&options.fail_count);
}

static void require_pages(const void *p, size_t n) {
    REQUIRE((((uintptr_t)p | n) & (os_page_bytes - 1)) == 0 && n != 0);
}

static void count_mapped(size_t n) {
    size_t now = shared_add(&counters.mapped_bytes, n);
    size_t peak = relaxed_load(&counters.peak_mapped_bytes);
    /* Two threads that map at once may note the smaller of two sums: a figure for reports. */
    if (now > peak) relaxed_store(&counters.peak_mapped_bytes, now);
}

static void count_unmapped(size_t n) {
    shared_add(&counters.mapped_bytes, -n);
}

/* With the option page_size: the aligned part of a mapping, whose ends go back. */
static void *trim(char *p, size_t n, size_t slack) {
    char *aligned = (char *)round_up((uintptr_t)p, os_page_bytes);
    size_t head = (size_t)(aligned - p), tail = slack - head;
    if (head != 0) system_call(SYS_munmap, (long)p, (long)head, 0, 0, 0, 0);
    if (tail != 0) system_call(SYS_munmap, (long)(aligned + n), (long)tail, 0, 0, 0, 0);
    return aligned;
}

static void *map(void *hint, size_t n, int protection) {
    require_pages(hint, n);
    if (is_refused()) return NULL;
    size_t slack = os_page_bytes - os_real_page_bytes;
    long p = system_call(SYS_mmap, (long)hint, (long)(n + slack), protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (is_system_error(p)) return NULL;
    count_mapped(n);
    return slack == 0 ? (void *)p : trim((char *)p, n, slack);
}

void *os_map(void *hint, size_t n) {
    return map(hint, n, PROT_READ | PROT_WRITE);
}

void os_keep_small(const void *p, size_t n) {
    uintptr_t start = round_up((uintptr_t)p, os_real_page_bytes), end = ((uintptr_t)p + n) & ~(os_real_page_bytes - 1);
    system_call(SYS_madvise, (long)start, (long)(end - start), MADV_NOHUGEPAGE, 0, 0, 0);
}

void os_want_huge(void *p, size_t n) {
    require_pages(p, n);
    system_call(SYS_madvise, (long)p, (long)n, MADV_HUGEPAGE, 0, 0, 0);
}

/* Kernels before 5.14 do not know it. */
static bool has_populate = true;

void os_populate(void *p, size_t n) {
    require_pages(p, n);
    if (!relaxed_load(&has_populate)) return;
    if (system_call(SYS_madvise, (long)p, (long)n, MADV_POPULATE_WRITE, 0, 0, 0) == -EINVAL) relaxed_store(&has_populate, false);
}

bool os_keep_out_of_dumps(void *p, size_t n) {
    require_pages(p, n);
    return !is_refused() && system_call(SYS_madvise, (long)p, (long)n, MADV_DONTDUMP, 0, 0, 0) == 0;
}

void *os_reserve(size_t n) {
    return map(NULL, n, PROT_NONE);
}

bool os_commit(void *p, size_t n) {
    require_pages(p, n);
    return !is_refused() && system_call(SYS_mprotect, (long)p, (long)n, PROT_READ | PROT_WRITE, 0, 0, 0) == 0;
}

bool os_unmap(void *p, size_t n) {
    require_pages(p, n);
    if (is_refused() || system_call(SYS_munmap, (long)p, (long)n, 0, 0, 0, 0) != 0) return false;
    count_unmapped(n);
    return true;
}

static bool give_up(void *p, size_t n) {
    return system_call(SYS_madvise, (long)p, (long)n, MADV_DONTNEED, 0, 0, 0) == 0;
}

/* What the system makes of MADV_DONTNEED: qemu's user mode before 7.1 takes it for advice, as POSIX does, and keeps the
 * bytes. Found out with a page at the first purge; relaxed, because threads that ask at once find the same. */
static enum { PURGE_NOT_TRIED, PURGE_ZEROES, PURGE_KEEPS } purge_kind;

static COLD bool try_purge(void) {
    long page = system_call(SYS_mmap, 0, (long)os_real_page_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (is_system_error(page)) return false; /* not known: tried again at the next purge */
    char *byte = (char *)page;
    relaxed_store(byte, 1);
    bool is_done = give_up(byte, os_real_page_bytes), is_zero = relaxed_load(byte) == 0;
    if (is_done) relaxed_store(&purge_kind, is_zero ? PURGE_ZEROES : PURGE_KEEPS);
    system_call(SYS_munmap, page, (long)os_real_page_bytes, 0, 0, 0, 0);
    return is_done && is_zero;
}

static bool does_purge_zero(void) {
    if (unlikely(relaxed_load(&purge_kind) == PURGE_NOT_TRIED)) return try_purge();
    return relaxed_load(&purge_kind) == PURGE_ZEROES;
}

bool os_purge(void *p, size_t n) {
    require_pages(p, n);
    if (is_refused() || !give_up(p, n) || !does_purge_zero()) return false;
    shared_add(&counters.purged_bytes, n);
    return true;
}

/* Kernels before 6.13 refuse MADV_DONTNEED here; then every range is a call of its own, for good. */
static bool has_vector_purge = true;

enum { PIDFD_SELF = -10000 }; /* Linux 6.14; earlier ones know no such descriptor and refuse */

static bool purge_vector(const struct os_range *ranges, size_t count, size_t total) {
    _Static_assert(sizeof(struct os_range) == sizeof(struct iovec), "a range is passed as an iovec");
    if (!relaxed_load(&has_vector_purge) || count < 2) return false;
    if (is_refused()) return false;
    long done = system_call(SYS_process_madvise, PIDFD_SELF, (long)ranges, (long)count, MADV_DONTNEED, 0, 0);
    if (is_system_error(done)) relaxed_store(&has_vector_purge, false);
    if (done != (long)total || !does_purge_zero()) return false;
    shared_add(&counters.purged_bytes, total);
    return true;
}

size_t os_purge_many(const struct os_range *ranges, size_t count) {
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        require_pages(ranges[i].start, ranges[i].bytes);
        total += ranges[i].bytes;
    }
    if (purge_vector(ranges, count, total)) return count;
    size_t done = 0;
    while (done < count && os_purge(ranges[done].start, ranges[done].bytes)) done++;
    return done;
}

bool os_resize(void *p, size_t old_bytes, size_t new_bytes) {
    require_pages(p, old_bytes);
    require_pages(p, new_bytes);
    if (is_refused() || is_system_error(system_call(SYS_mremap, (long)p, (long)old_bytes, (long)new_bytes, 0, 0, 0)))
        return false;
    if (new_bytes > old_bytes) count_mapped(new_bytes - old_bytes);
    else count_unmapped(old_bytes - new_bytes);
    return true;
}

bool os_move(void *p, size_t old_bytes, void *to, size_t new_bytes) {
    require_pages(p, old_bytes);
    require_pages(to, new_bytes);
    if (is_refused()) return false;
    long moved = system_call(SYS_mremap, (long)p, (long)old_bytes, (long)new_bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                             (long)to, 0);
    if (is_system_error(moved)) return false;
    count_unmapped(old_bytes);
    return true;
}

/* After a move qemu's user mode believes that nothing is at the old place: read(2) into it fails, and madvise does
 * nothing, until it is mapped again. Found out with the first page that was moved, which reads as zero again then. */
static enum { MOVE_NOT_TRIED, MOVE_KEEPS, MOVE_FORGETS } move_kind;

static COLD void try_moved(char *p) {
    relaxed_store(p, 1);
    bool is_kept = give_up(p, os_page_bytes) && relaxed_load(p) == 0;
    relaxed_store(&move_kind, is_kept ? MOVE_KEEPS : MOVE_FORGETS);
}

bool os_move_pages(void *p, size_t n, void *to) {
    require_pages(p, n);
    require_pages(to, n);
    if (is_refused()) return false;
    long moved = system_call(SYS_mremap, (long)p, (long)n, (long)n, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP,
                             (long)to, 0);
    if (is_system_error(moved)) return false;
    if (unlikely(relaxed_load(&move_kind) == MOVE_NOT_TRIED)) try_moved(p);
    if (relaxed_load(&move_kind) == MOVE_FORGETS)
        system_call(SYS_mmap, (long)p, (long)n, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return true;
}

struct os_counters os_memory_counters(void) {
    return (struct os_counters){
        .mapped_bytes = relaxed_load(&counters.mapped_bytes),
        .peak_mapped_bytes = relaxed_load(&counters.peak_mapped_bytes),
        .purged_bytes = relaxed_load(&counters.purged_bytes),
        .calls = relaxed_load(&counters.calls),
    };
}

size_t os_memory_limit(void) {
    struct rlimit space = {RLIM_INFINITY, RLIM_INFINITY}, data = space;
    system_call(SYS_prlimit64, 0, RLIMIT_AS, 0, (long)&space, 0, 0);
    system_call(SYS_prlimit64, 0, RLIMIT_DATA, 0, (long)&data, 0, 0);
    return min_size(space.rlim_cur, data.rlim_cur);
}
