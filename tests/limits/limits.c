/* limits.c - a program that meets the limits of the system: `limits SCENARIO [ARGUMENT]`, preloaded. The figures go to
 * standard output; exit status 0 when they are within bounds, 77 when the system does not let it be tried. */
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { KIB = 1024, MIB = 1024 * 1024 };

#define REQUIRE(condition)                                                                                                \
    do {                                                                                                                  \
        if (!(condition)) {                                                                                               \
            fprintf(stderr, "limits.c:%d: not so: %s (errno %d)\n", __LINE__, #condition, errno);                         \
            exit(1);                                                                                                      \
        }                                                                                                                 \
    } while (0)

static uint64_t seed = 12345;

static size_t random_below(size_t n) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(seed >> 33) % n;
}

/* The value of a line "NAME: N kB" of a file of /proc/self. Reads without the heap. */
static size_t proc_kib(const char *path, const char *name) {
    static char buffer[64 * KIB];
    FILE *f = fopen(path, "r");
    REQUIRE(f != NULL);
    size_t n = fread(buffer, 1, sizeof buffer - 1, f), value = 0;
    fclose(f);
    buffer[n] = '\0';
    const char *line = strstr(buffer, name);
    REQUIRE(line != NULL && sscanf(line + strlen(name), ": %zu", &value) == 1);
    return value;
}

static size_t resident_kib(void) {
    return proc_kib("/proc/self/smaps_rollup", "Rss");
}

static size_t count_mappings(void) {
    FILE *f = fopen("/proc/self/maps", "r");
    REQUIRE(f != NULL);
    size_t lines = 0;
    for (int c; (c = getc(f)) != EOF;) lines += c == '\n';
    fclose(f);
    return lines;
}

/* ---- RLIMIT_AS and RLIMIT_DATA ---- */

struct block {
    struct block *next;
};

/* With larger pages than the system's what a block is rounded up to counts as usable. */
static bool has_large_pages;

/* Blocks of one size until there are no more, in a list. Returns the bytes. */
static size_t fill(size_t size, struct block **list) {
    size_t sum = 0;
    for (;;) {
        errno = 0;
        struct block *b = malloc(size);
        if (b == NULL) break;
        b->next = *list;
        *list = b;
        sum += has_large_pages ? malloc_usable_size(b) : size;
    }
    REQUIRE(errno == ENOMEM);
    return sum;
}

static void drop(struct block **list) {
    for (struct block *b = *list, *next; b != NULL; b = next) {
        next = b->next;
        free(b);
    }
    *list = NULL;
}

static void usable_part(size_t limit, size_t used_before) {
    static const size_t sizes[] = {48, 1000, 20000, 33000, 40000, 70000, 100000, 140000, 1 * MIB};
    int failed = 0;
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            struct block *list = NULL;
            size_t sum = fill(sizes[i], &list);
            /* A small block can be freed and had again while nothing else can. */
            struct block *first = list;
            REQUIRE(first != NULL);
            list = first->next;
            free(first);
            void *again = malloc(sizes[i]);
            REQUIRE(again != NULL);
            free(again);
            drop(&list);
            malloc_trim(0);
            size_t percent = sum * 100 / (limit - used_before);
            printf("limit %zu MiB, round %d, blocks of %zu: %zu %% usable\n", limit / MIB, round, sizes[i], percent);
            if (percent < 85) failed = 1;
        }
    }
    /* A freed block may be kept for a while: not when it is in the way. */
    void *large = malloc(limit / 2);
    REQUIRE(large != NULL);
    free(large);
    struct block *list = NULL;
    size_t percent = fill(1000, &list) * 100 / (limit - used_before);
    drop(&list);
    printf("blocks of 1000 after half of it was freed: %zu %% usable\n", percent);
    REQUIRE(!failed && percent >= 85);
}

static size_t limit_and_use(int resource, const char *mib, const char *field, size_t *used) {
    size_t n = strtoul(mib, NULL, 10) * MIB;
    struct rlimit limit = {n, n};
    *used = proc_kib("/proc/self/status", field) * KIB;
    REQUIRE(setrlimit((__rlimit_resource_t)resource, &limit) == 0);
    return n;
}

static void address_space(const char *mib) {
    size_t used, n = limit_and_use(RLIMIT_AS, mib, "VmSize", &used);
    usable_part(n, used);
}

static void data(const char *mib) {
    size_t used, n = limit_and_use(RLIMIT_DATA, mib, "VmData", &used);
    usable_part(n, used);
}

/* The same with the limit there when the process starts. */
static void before_exec(int resource, const char *again, const char *mib) {
    size_t n = strtoul(mib, NULL, 10) * MIB;
    struct rlimit limit = {n, n};
    REQUIRE(setrlimit((__rlimit_resource_t)resource, &limit) == 0);
    execl("/proc/self/exe", "limits", again, mib, (char *)NULL);
    REQUIRE(false);
}

static void address_space_before_exec(const char *mib) {
    before_exec(RLIMIT_AS, "address_space", mib);
}

static void data_before_exec(const char *mib) {
    before_exec(RLIMIT_DATA, "data", mib);
}

/* ---- mlockall, the map table ---- */

static void locked_memory(const char *unused) {
    (void)unused;
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) exit(77);
    for (int round = 0; round < 3; round++) {
        for (size_t n = 1; n < 8 * MIB; n = n * 5 / 4 + 1) {
            unsigned char *p = calloc(1, n);
            if (p == NULL) exit(round == 0 ? 77 : 1);
            for (size_t i = 0; i < n; i++) REQUIRE(p[i] == 0);
            memset(p, 0xff, n);
            free(p);
        }
        malloc_trim(0);
    }
}

/* The table has 65,530 entries by default, of which the program itself takes about 30. With all of them taken, blocks
 * come from what is mapped already. */
static void full_map_table(const char *wanted) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), most = strtoul(wanted, NULL, 10), made = 0;
    free(malloc(100));
    /* Neighbours with other protections are mappings of their own. */
    while (made < most) {
        if (mmap(NULL, page, made % 2 == 0 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) break;
        made++;
    }
    enum { BLOCKS = 3000 };
    static char *blocks[BLOCKS];
    static size_t sizes[BLOCKS];
    size_t served = 0, refused = 0;
    for (int step = 0; step < 60000; step++) {
        size_t i = random_below(BLOCKS);
        if (blocks[i] != NULL) {
            REQUIRE(blocks[i][0] == (char)i && blocks[i][sizes[i] - 1] == (char)i);
            free(blocks[i]);
        }
        sizes[i] = random_below(50) == 0 ? random_below(20 * MIB) + 1 : random_below(3000) + 1;
        errno = 0;
        blocks[i] = malloc(sizes[i]);
        if (blocks[i] == NULL) {
            REQUIRE(errno == ENOMEM);
            refused++;
        } else {
            served++;
            blocks[i][0] = blocks[i][sizes[i] - 1] = (char)i;
        }
    }
    printf("%zu mappings made first: %zu blocks served, %zu refused\n", made, served, refused);
    REQUIRE(made > 60000 && served > (made < most ? 35000 : 55000));
}

/* Two of three freed: the mappings that are left. */
static void many_mappings(const char *unused) {
    (void)unused;
    enum { SMALL = 30000, LARGE = 600 };
    static char *small[SMALL], *large[LARGE];
    size_t start = count_mappings();
    for (size_t i = 0; i < SMALL; i++) REQUIRE((small[i] = malloc(8 * KIB)) != NULL);
    for (size_t i = 0; i < LARGE; i++) REQUIRE((large[i] = malloc(MIB + random_below(3 * MIB))) != NULL);
    for (size_t i = 0; i < SMALL; i++) {
        small[i][0] = 1;
        if (i % 3 != 0) free(small[i]);
    }
    for (size_t i = 0; i < LARGE; i++) {
        large[i][0] = 1;
        if (i % 3 != 0) free(large[i]);
    }
    size_t before_trim = count_mappings();
    malloc_trim(0);
    size_t after = count_mappings();
    printf("mappings: %zu at start, %zu with two of three freed, %zu after malloc_trim\n", start, before_trim, after);
    REQUIRE(before_trim <= 1000 && after <= 1000);
}

/* ---- memory given back ---- */

static void trimmed(const char *unused) {
    (void)unused;
    enum { BLOCKS = 64 * MIB / 4000 };
    static char *blocks[BLOCKS];
    memset(blocks, 0, sizeof blocks);
    size_t start = resident_kib();
    for (size_t i = 0; i < BLOCKS; i++) memset(blocks[i] = malloc(4000), 1, 4000);
    size_t full = resident_kib();
    for (size_t i = 0; i < BLOCKS; i++) free(blocks[i]);
    malloc_trim(0);
    size_t left = resident_kib();
    size_t lazy = proc_kib("/proc/self/smaps_rollup", "LazyFree");
    double percent = left <= start ? 0 : 100.0 * (double)(left - start) / (double)(full - start);
    printf("RSS %zu, %zu, %zu kB: %.2f %% left; LazyFree %zu\n", start, full, left, percent, lazy);
    REQUIRE(full > start + 60000 && percent <= 5 && lazy == 0);
}

/* 64 MB allocated and freed so many times; then the program does nothing. */
static void left_alone(const char *rounds) {
    enum { BLOCKS = 64 * MIB / 4000 };
    static char *blocks[BLOCKS];
    memset(blocks, 1, sizeof blocks);
    size_t start = resident_kib(), full = 0;
    for (unsigned long round = 0; round < strtoul(rounds, NULL, 10); round++) {
        for (size_t i = 0; i < BLOCKS; i++) memset(blocks[i] = malloc(4000), 1, 4000);
        full = resident_kib();
        for (size_t i = 0; i < BLOCKS; i++) free(blocks[i]);
    }
    size_t freed = resident_kib();
    for (unsigned second = 12; second != 0;) second = sleep(second);
    size_t left = resident_kib();
    printf("RSS %zu kB, %zu with all blocks, %zu after the last free, %zu later\n", start, full, freed, left);
    REQUIRE(full > start + 60000 && left <= start + (full - start) / 5);
}

/* A quarter of the blocks stays, 40,000 bytes of every 160,000: in each run some. */
static void left_beside_others(const char *unused) {
    (void)unused;
    enum { BLOCKS = 64000, BYTES = 1000, STRETCH = 40 };
    static char *blocks[BLOCKS];
    memset(blocks, 1, sizeof blocks);
    size_t start = resident_kib();
    for (size_t i = 0; i < BLOCKS; i++) memset(blocks[i] = malloc(BYTES), (int)(i % 100), BYTES);
    size_t full = resident_kib();
    for (size_t i = 0; i < BLOCKS; i++)
        if (i / STRETCH % 4 != 0) free(blocks[i]);
    for (unsigned second = 12; second != 0;) second = sleep(second);
    size_t left = resident_kib();
    printf("RSS %zu kB, %zu with all blocks, %zu with a quarter of them\n", start, full, left);
    REQUIRE(full > start + 60000 && left <= start + (full - start) * 35 / 100);
    for (size_t i = 0; i < BLOCKS; i++)
        for (size_t k = 0; k < BYTES && i / STRETCH % 4 == 0; k++) REQUIRE(blocks[i][k] == (char)(i % 100));
}

/* Phases of mixed sizes beside a cache that grows slowly. */
static void phases(const char *unused) {
    (void)unused;
    enum { LIVE = 4000, PHASES = 12, CACHE = 4000 };
    static char *live[LIVE], *cache[CACHE];
    size_t cached = 0, cached_bytes = 0, first = 0, last = 0, first_cached = 0;
    for (int phase = 0; phase < PHASES; phase++) {
        size_t most = (size_t)64 << (phase % 6 * 2);
        for (int step = 0; step < 150000; step++) {
            size_t i = random_below(LIVE);
            free(live[i]);
            size_t n = random_below(most) + 1;
            memset(live[i] = malloc(n), 1, n);
            if (step % 600 == 0 && cached < CACHE) {
                n = random_below(2000) + 1;
                memset(cache[cached++] = malloc(n), 1, n);
                cached_bytes += n;
            }
        }
        for (size_t i = 0; i < LIVE; i++) {
            free(live[i]);
            live[i] = NULL;
        }
        malloc_trim(0);
        last = resident_kib() - cached_bytes / KIB;
        printf("phase %d, blocks to %zu bytes: RSS without the cache %zu kB\n", phase, most, last);
        if (phase == 5) {
            first = last;
            first_cached = cached_bytes;
        }
    }
    /* Nothing but the cache is live. It may hold its pages, and three quarters of what it grows by beside it. */
    REQUIRE(last <= (has_large_pages ? 8000 : 6000));
    REQUIRE(last <= first + (cached_bytes - first_cached) / KIB * 3 / 4);
}

/* Phases of one size each, the largest of 1 MiB, with so many MiB live; run by cgroup.py in a group that allows little
 * more. "MIB,BYTES" goes on to larger blocks. */
static void in_group(const char *mib) {
    static const size_t sizes[] = {16, 64, 300, 1000, 4000, 20000, 100000, 300000, 1 * MIB, 5 * MIB, 9 * MIB};
    enum { KINDS = sizeof sizes / sizeof sizes[0], ROUNDS = 3 };
    size_t most = strtoul(mib, NULL, 10) * MIB, start = resident_kib(), total = 0, peak = 0;
    const char *comma = strchr(mib, ',');
    size_t largest = comma != NULL ? strtoul(comma + 1, NULL, 10) : MIB;
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t kind = 0; kind < KINDS && sizes[kind] <= largest; kind++) {
            size_t n = sizes[kind], live = 0;
            struct block *list = NULL;
            for (; live + n <= most; live += n) {
                struct block *b = malloc(n);
                REQUIRE(b != NULL);
                memset(b, 1, n);
                b->next = list;
                list = b;
            }
            if (resident_kib() > peak) peak = resident_kib();
            drop(&list);
            total += live;
        }
    }
    /* What is known of runs stays: a byte for each cell of 16, 64, 300 and so on, which is a twelfth of `most`; or as many
     * bytes as the encoding has that was built. */
    const char *mark_bytes = getenv("HUDDLE_TEST_MARK_BYTES");
    size_t more = most / 12 * (mark_bytes != NULL ? strtoul(mark_bytes, NULL, 10) - 1 : 0);
    size_t left = resident_kib(), bound = start + (most / 8 + more) / KIB;
    for (int tenth = 0; tenth < 120 && left > bound; tenth++) {
        usleep(100000);
        left = resident_kib();
    }
    printf("%zu MiB allocated, %zu MiB live at most; RSS %zu kB at start, %zu at most, %zu left\n", total / MIB, most / MIB,
           start, peak, left);
    REQUIRE(left <= bound);
}

/* So many KiB of blocks to 2,000 bytes, of which every fourth stays; for huge_pages.py, which compares what it prints. */
static void sparse(const char *kib) {
    size_t most = strtoul(kib, NULL, 10) * KIB, bytes = 0, count = 0;
    struct block *live = NULL, *freed = NULL;
    for (; bytes < most; count++) {
        size_t n = sizeof(struct block) + random_below(2000);
        struct block *b = malloc(n), **list = count % 4 == 0 ? &live : &freed;
        REQUIRE(b != NULL);
        memset(b, 1, n);
        b->next = *list;
        *list = b;
        bytes += n;
    }
    size_t full = resident_kib(), full_huge = proc_kib("/proc/self/smaps_rollup", "AnonHugePages");
    drop(&freed);
    malloc_trim(0);
    printf("resident %zu kB, %zu kB of it in huge pages; then %zu kB, %zu kB\n", full, full_huge, resident_kib(),
           proc_kib("/proc/self/smaps_rollup", "AnonHugePages"));
}

static size_t lines_with(const char *file, const char *text) {
    char line[512];
    size_t n = 0;
    FILE *f = fopen(file, "r");
    REQUIRE(f != NULL);
    while (fgets(line, sizeof line, f) != NULL) n += strstr(line, text) != NULL;
    fclose(f);
    return n;
}

/* A heap of small blocks that grows has huge pages, large blocks of which little is used do not, and when it shrinks the
 * system is not asked for them any more. */
static void dense(const char *mib) {
    enum { SPARSE = 200 };
    static char *large[SPARSE];
    bool is_on_request = lines_with("/sys/kernel/mm/transparent_hugepage/enabled", "[never]") == 0;
    struct block *list = NULL;
    size_t start = resident_kib(), bytes = 0, most = strtoul(mib, NULL, 10) * MIB;
    for (size_t n; bytes < most; bytes += n) {
        n = sizeof(struct block) + random_below(500);
        struct block *b = malloc(n);
        REQUIRE(b != NULL);
        memset(b, 1, n);
        b->next = list;
        list = b;
    }
    size_t full = resident_kib(), huge = proc_kib("/proc/self/smaps_rollup", "AnonHugePages");
    printf("%zu kB of blocks: %zu kB resident, %zu kB in huge pages\n", bytes / KIB, full, huge);
    REQUIRE(full - start <= bytes / KIB * 118 / 100);
    REQUIRE(!is_on_request || lines_with("/proc/self/smaps", " hg") != 0);
    for (size_t i = 0; i < SPARSE; i++) {
        large[i] = calloc(1, MIB);
        REQUIRE(large[i] != NULL);
        large[i][MIB / 2] = 1;
    }
    size_t sparse_kib = resident_kib() - full;
    printf("%d blocks of 1 MiB of which a page is used: %zu kB more\n", SPARSE, sparse_kib);
    REQUIRE(sparse_kib <= SPARSE * 16);
    for (size_t i = 0; i < SPARSE; i++) free(large[i]);
    drop(&list);
    malloc_trim(0);
    printf("then %zu kB\n", resident_kib());
    REQUIRE(resident_kib() - start <= 4096 && lines_with("/proc/self/smaps", " hg") == 0);
}

static size_t faults(void) {
    struct rusage usage;
    REQUIRE(getrusage(RUSAGE_SELF, &usage) == 0);
    return (size_t)usage.ru_minflt;
}

/* 50 MiB in mixed blocks, touched and freed, every 50 ms: once that is known, hardly a page is given back and had again.
 * Not none: where blocks come to lie differs from round to round. */
static void saw_tooth(const char *unused) {
    (void)unused;
    enum { BLOCKS_MAX = 60000, ROUNDS = 100, WARM_ROUNDS = 20 };
    static char *blocks[BLOCKS_MAX];
    size_t warm = 0, most = 0, sum = 0, quiet = 0;
    struct timespec next;
    REQUIRE(clock_gettime(CLOCK_MONOTONIC, &next) == 0);
    memset(blocks, 1, sizeof blocks);
    for (int round = 0; round < ROUNDS; round++) {
        size_t before = faults(), count = 0;
        seed = 12345;
        for (size_t bytes = 0; bytes < 50 * MIB; count++) {
            size_t kind = random_below(1000);
            size_t n = 1 + random_below(kind < 900 ? 1000 : kind < 990 ? 10000 : kind < 999 ? 200000 : 4 * MIB);
            REQUIRE(count < BLOCKS_MAX && (blocks[count] = malloc(n)) != NULL);
            for (size_t i = 0; i < n; i += 4096) blocks[count][i] = 1;
            bytes += n;
        }
        while (count != 0) free(blocks[--count]);
        size_t n = faults() - before;
        if (round < WARM_ROUNDS) {
            warm += n;
        } else {
            sum += n;
            quiet += n == 0;
            if (n > most) most = n;
        }
        next.tv_sec += (next.tv_nsec + 50000000) / 1000000000;
        next.tv_nsec = (next.tv_nsec + 50000000) % 1000000000;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
    printf("page faults: %zu in %d rounds, then %zu in %d, %zu at most in one; none in %zu\n", warm, WARM_ROUNDS, sum,
           ROUNDS - WARM_ROUNDS, most, quiet);
    /* A round has 13,000 pages. */
    REQUIRE(sum < 50 * (ROUNDS - WARM_ROUNDS) && quiet >= (ROUNDS - WARM_ROUNDS) * 3 / 4);
}

/* ---- growing by realloc ---- */

static void grow(const char *mode) {
    bool is_doubling = strcmp(mode, "doubling") == 0;
    size_t step = 16 * KIB, end = is_doubling ? 256 * (size_t)MIB : 8 * MIB, start = resident_kib();
    size_t n = is_doubling ? MIB : step, done = 0;
    char *p = NULL;
    for (; n <= end; n = is_doubling ? n * 2 : n + step) {
        REQUIRE((p = realloc(p, n)) != NULL);
        memset(p + done, 1, n - done);
        done = n;
    }
    struct rusage usage;
    REQUIRE(getrusage(RUSAGE_SELF, &usage) == 0);
    size_t peak = (size_t)usage.ru_maxrss - start;
    printf("final %zu kB, peak %zu kB\n", end / KIB, peak);
    REQUIRE(peak <= end / KIB * 12 / 10);
    free(p);
}

int main(int count, char **argument) {
    static const struct {
        const char *name;
        void (*play)(const char *);
    } scenarios[] = {
        {"address_space", address_space},
        {"address_space_before_exec", address_space_before_exec},
        {"data", data},
        {"data_before_exec", data_before_exec},
        {"locked_memory", locked_memory},
        {"full_map_table", full_map_table},
        {"many_mappings", many_mappings},
        {"trimmed", trimmed},
        {"left_alone", left_alone},
        {"phases", phases},
        {"saw_tooth", saw_tooth},
        {"left_beside_others", left_beside_others},
        {"in_group", in_group},
        {"sparse", sparse},
        {"dense", dense},
        {"grow", grow},
    };
    setvbuf(stdout, NULL, _IONBF, 0);
    const char *options = getenv("HUDDLE_OPTIONS");
    has_large_pages = options != NULL && strstr(options, "page_size=") != NULL;
    for (size_t i = 0; count > 1 && i < sizeof scenarios / sizeof scenarios[0]; i++) {
        if (strcmp(scenarios[i].name, argument[1]) != 0) continue;
        scenarios[i].play(count > 2 ? argument[2] : "");
        return 0;
    }
    fprintf(stderr, "usage: limits SCENARIO [ARGUMENT]\n");
    return 2;
}
