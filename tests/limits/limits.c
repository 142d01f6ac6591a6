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

/* Blocks of one size until there are no more, in a list. Returns the bytes. */
static size_t fill(size_t size, struct block **list) {
    size_t sum = 0;
    for (;;) {
        errno = 0;
        struct block *b = malloc(size);
        if (b == NULL) break;
        b->next = *list;
        *list = b;
        sum += size;
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
    static const size_t sizes[] = {48, 1000, 20000, 100000, 1 * MIB};
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
            /* 100,000 bytes are two units of 64 KiB: three quarters of them. */
            size_t least = sizes[i] == 100000 ? 70 : 85;
            if (percent < least) failed = 1;
        }
    }
    void *large = malloc(limit / 2);
    REQUIRE(large != NULL);
    free(large);
    REQUIRE(!failed);
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

static void full_map_table(const char *unused) {
    (void)unused;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), made = 0;
    free(malloc(100));
    /* Neighbours with other protections are mappings of their own. */
    while (made < 65400) {
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
        blocks[i] = malloc(sizes[i]);
        if (blocks[i] == NULL) refused++;
        else {
            served++;
            blocks[i][0] = blocks[i][sizes[i] - 1] = (char)i;
        }
    }
    printf("%zu mappings made first: %zu blocks served, %zu refused\n", made, served, refused);
    REQUIRE(made > 60000 && served > 50000);
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

/* Phases of mixed sizes beside a cache that grows slowly. */
static void phases(const char *unused) {
    (void)unused;
    enum { LIVE = 4000, PHASES = 12, CACHE = 4000 };
    static char *live[LIVE], *cache[CACHE];
    size_t cached = 0, cached_bytes = 0, first = 0, last = 0;
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
        if (phase == 5) first = last;
    }
    REQUIRE(last <= first + first / 10);
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
        {"phases", phases},
        {"grow", grow},
    };
    setvbuf(stdout, NULL, _IONBF, 0);
    for (size_t i = 0; count > 1 && i < sizeof scenarios / sizeof scenarios[0]; i++) {
        if (strcmp(scenarios[i].name, argument[1]) != 0) continue;
        scenarios[i].play(count > 2 ? argument[2] : "");
        return 0;
    }
    fprintf(stderr, "usage: limits SCENARIO [ARGUMENT]\n");
    return 2;
}
