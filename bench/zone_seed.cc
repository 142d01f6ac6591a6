/* zone_seed.cc - what an allocation costs in a zone, and in what else one would use: zone_seed METHOD SIZE ZONES
 *
 * The question is Scala Native's (pull request 2443): how long does it take to allocate 1000 objects of one size and zero
 * each, and to free them all at once? After 5 zones to warm up, so many zones of {open; 1000 x (allocate, zero, let the
 * pointer escape); close}. Prints the median of a zone in ns for each allocation, its 99th percentile, page faults for each
 * zone, and resident KiB. Built twice: with huddle, and (without HAS_ZONES) with libc's malloc alone. */
#include <obstack.h>
#include <pthread.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory_resource>
#include <vector>

#if HAS_ZONES
#include "huddle/huddle.h"
#include "huddle/zone.h"
/* The library's function, which languages without the header's inline ones call. */
extern "C" void *zone_alloc_by_call(huddle_zone_t *z, size_t n) __asm__("huddle_zone_alloc");
#endif

#define obstack_chunk_alloc malloc
#define obstack_chunk_free free

namespace {

constexpr int OBJECTS = 1000, WARM_UP = 5;

void escape(void *p) {
    __asm__ volatile("" : : "r"(p) : "memory");
}

double now_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

long faults() {
    rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_minflt;
}

long resident_kib() {
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f == nullptr || fscanf(f, "%*d %ld", &pages) != 1) exit(1);
    fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

template <typename F> void measure(F zone, int zones) {
    std::vector<double> times;
    times.reserve(static_cast<size_t>(zones));
    for (int i = 0; i < WARM_UP; i++) zone();
    long before = faults();
    for (int i = 0; i < zones; i++) {
        double start = now_ns();
        zone();
        times.push_back(now_ns() - start);
    }
    long all = faults() - before;
    std::sort(times.begin(), times.end());
    size_t n = times.size();
    printf("%.3f %.3f %.2f %ld\n", times[n / 2] / OBJECTS, times[n * 99 / 100] / OBJECTS, static_cast<double>(all) / zones, resident_kib());
}

/* ---- the methods, each for a size that is known at compile time ---- */

template <size_t S> void in_floor() {
    static char *block = static_cast<char *>(aligned_alloc(4096, (S + 15) / 16 * 16 * OBJECTS + 4096));
    for (size_t i = 0; i < OBJECTS; i++) {
        char *p = block + i * ((S + 15) / 16 * 16);
        memset(p, 0, S);
        escape(p);
    }
}

template <size_t S> void in_malloc() {
    static void *p[OBJECTS];
    for (auto &q : p) {
        q = malloc(S);
        memset(q, 0, S);
        escape(q);
    }
    for (auto &q : p) free(q);
}

template <size_t S> void in_obstack(int chunk) {
    obstack o;
    obstack_begin(&o, chunk);
    for (int i = 0; i < OBJECTS; i++) {
        void *p = obstack_alloc(&o, static_cast<int>(S));
        memset(p, 0, S);
        escape(p);
    }
    obstack_free(&o, nullptr);
}

template <size_t S> void in_monotonic() {
    std::pmr::monotonic_buffer_resource r;
    for (int i = 0; i < OBJECTS; i++) {
        void *p = r.allocate(S, 16);
        memset(p, 0, S);
        escape(p);
    }
}

/* As the pull request describes it: bump in pages below 2 KiB, memory of its own for what is larger; both in a list that
 * close frees. */
class published_zone {
    struct link {
        link *next;
        link *unused;
    };
    link *pages = nullptr, *large = nullptr;
    char *cur = nullptr, *end = nullptr;

    static link *add(link *&list, size_t n) {
        link *l = static_cast<link *>(malloc(sizeof(link) + n));
        if (l == nullptr) exit(1);
        l->next = list;
        return list = l;
    }

  public:
    ~published_zone() {
        for (link *list : {pages, large}) {
            while (list != nullptr) {
                link *next = list->next;
                free(list);
                list = next;
            }
        }
    }

    void *alloc(size_t n) {
        constexpr size_t PAGE = 4096, LARGE = 2048;
        size_t k = (n + 15) & ~size_t{15};
        if (k >= LARGE) return add(large, k) + 1;
        if (static_cast<size_t>(end - cur) < k) {
            cur = reinterpret_cast<char *>(add(pages, PAGE - sizeof(link)) + 1);
            end = cur + PAGE - sizeof(link);
        }
        void *p = cur;
        cur += k;
        return p;
    }
};

template <size_t S> void in_published() {
    published_zone z;
    escape(&z); /* in memory, as one that is passed to functions is */
    for (int i = 0; i < OBJECTS; i++) {
        void *p = z.alloc(S);
        memset(p, 0, S);
        escape(p);
    }
}

void grow_by_realloc() {
    char *s = nullptr;
    size_t n = 0, room = 0;
    for (int i = 0; i < OBJECTS; i++) {
        if (n + 20 > room) s = static_cast<char *>(realloc(s, room = room * 2 + 64));
        memcpy(s + n, "twenty bytes of text", 20);
        n += 20;
        escape(s);
    }
    free(s);
}

#if HAS_ZONES

template <size_t S, typename F> void in_zone(F alloc) {
    huddle_zone_t *z = huddle_zone_open(nullptr);
    for (int i = 0; i < OBJECTS; i++) escape(alloc(z));
    huddle_zone_close(z);
}

template <size_t S> void in_zone_reset() {
    static huddle_zone_t *z = huddle_zone_open(nullptr);
    for (int i = 0; i < OBJECTS; i++) escape(huddle_zone_zalloc(z, S));
    huddle_zone_reset(z);
}

huddle_zone_t *handed_over;
pthread_barrier_t barrier;

void *close_for_another(void *) {
    for (;;) {
        pthread_barrier_wait(&barrier);
        if (handed_over == nullptr) return nullptr;
        huddle_zone_close(handed_over);
        pthread_barrier_wait(&barrier);
    }
}

template <size_t S> void closed_by_another() {
    handed_over = huddle_zone_open(nullptr);
    for (int i = 0; i < OBJECTS; i++) escape(huddle_zone_zalloc(handed_over, S));
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
}

/* Not for one size: 16 KiB and 16 MiB in turn, the first and last page of each touched. */
void alternate() {
    huddle_zone_t *z = huddle_zone_open(nullptr);
    for (int i = 0; i < OBJECTS / 100; i++) {
        size_t n = i % 2 ? size_t{16} << 20 : size_t{16} << 10;
        char *p = static_cast<char *>(huddle_zone_alloc(z, n));
        p[0] = p[n - 1] = 1;
        escape(p);
    }
    huddle_zone_close(z);
}

void grow_in_zone() {
    huddle_zone_t *z = huddle_zone_open(nullptr);
    huddle_zone_buf_begin(z);
    for (int i = 0; i < OBJECTS; i++) huddle_zone_buf_append(z, "twenty bytes of text", 20);
    escape(huddle_zone_buf_finish(z, nullptr));
    huddle_zone_close(z);
}

void open_and_close() {
    for (int i = 0; i < OBJECTS; i++) {
        huddle_zone_t *z = huddle_zone_open(nullptr);
        escape(huddle_zone_alloc(z, 32));
        huddle_zone_close(z);
    }
}

/* ns for each chunk of 64 KiB that close gives back; objects of `size` bytes. */
void close_chunks(size_t size, int zones) {
    std::vector<double> times;
    huddle_zone_options_t o = {};
    o.struct_size = sizeof o;
    o.chunk_min = o.chunk_max = 65536;
    for (int i = 0; i < zones + WARM_UP; i++) {
        huddle_zone_t *z = huddle_zone_open(&o);
        huddle_zone_stats_t s = {};
        s.struct_size = sizeof s;
        for (size_t sum = 0; sum < size_t{64} * 65000; sum += size) escape(huddle_zone_alloc(z, size));
        huddle_zone_stats(z, &s);
        double start = now_ns();
        huddle_zone_close(z);
        if (i >= WARM_UP) times.push_back((now_ns() - start) / static_cast<double>(s.chunks));
    }
    std::sort(times.begin(), times.end());
    printf("%.3f %.3f 0 %ld\n", times[times.size() / 2], times[times.size() * 99 / 100], resident_kib());
}

/* Per cent of resident memory above 64 MiB of objects, in a fresh process. */
void memory(size_t size) {
    size_t bytes = size_t{64} << 20;
    long before = resident_kib();
    huddle_zone_t *z = huddle_zone_open(nullptr);
    for (size_t sum = 0; sum < bytes; sum += size) memset(huddle_zone_alloc(z, size), 1, size);
    double grown = static_cast<double>(resident_kib() - before) * 1024;
    printf("%.3f 0 0 %ld\n", 100 * grown / static_cast<double>(bytes) - 100, resident_kib());
}

/* The first zone of the process: its faults are its price. */
template <size_t S> void first_zone() {
    double start = now_ns();
    in_zone<S>([](huddle_zone_t *z) { return huddle_zone_zalloc(z, S); });
    printf("%.3f 0 %ld %ld\n", (now_ns() - start) / OBJECTS, faults(), resident_kib());
}

template <size_t S> bool run_zone(const char *method, int zones) {
    auto is = [method](const char *name) { return strcmp(method, name) == 0; };
    if (is("zone")) measure([] { in_zone<S>([](huddle_zone_t *z) { return huddle_zone_zalloc(z, S); }); }, zones);
    else if (is("alloc")) measure([] { in_zone<S>([](huddle_zone_t *z) { return huddle_zone_alloc(z, S); }); }, zones);
    else if (is("call")) measure([] { in_zone<S>([](huddle_zone_t *z) { return zone_alloc_by_call(z, S); }); }, zones);
    else if (is("reset")) measure(in_zone_reset<S>, zones);
    else if (is("first")) first_zone<S>();
    else if (is("open")) measure(open_and_close, zones);
    else if (is("close")) close_chunks(S, zones);
    else if (is("memory")) memory(S);
    else if (is("alternate")) measure(alternate, zones);
    else if (is("string")) measure(grow_in_zone, zones);
    else if (is("empty_call")) measure([] { for (int i = 0; i < OBJECTS; i++) huddle_version(); }, zones);
    else if (is("other")) {
        pthread_t thread;
        pthread_barrier_init(&barrier, nullptr, 2);
        if (pthread_create(&thread, nullptr, close_for_another, nullptr) != 0) return false;
        measure(closed_by_another<S>, zones);
        handed_over = nullptr;
        pthread_barrier_wait(&barrier);
        pthread_join(thread, nullptr);
    } else return false;
    return true;
}

#else

template <size_t S> bool run_zone(const char *, int) {
    return false;
}

#endif

template <size_t S> bool run(const char *method, int zones) {
    auto is = [method](const char *name) { return strcmp(method, name) == 0; };
    if (is("floor")) measure(in_floor<S>, zones);
    else if (is("malloc")) measure(in_malloc<S>, zones);
    else if (is("obstack")) measure([] { in_obstack<S>(0); }, zones);
    else if (is("obstack_64k")) measure([] { in_obstack<S>(65536 - 64); }, zones);
    else if (is("monotonic")) measure(in_monotonic<S>, zones);
    else if (is("published")) measure(in_published<S>, zones);
    else if (is("string_realloc")) measure(grow_by_realloc, zones);
    else return run_zone<S>(method, zones);
    return true;
}

struct size {
    size_t bytes;
    bool (*run)(const char *method, int zones);
};

constexpr size sizes[] = {
    {2, run<2>},     {4, run<4>},     {8, run<8>},       {16, run<16>},     {32, run<32>},     {64, run<64>},       {128, run<128>},
    {256, run<256>}, {512, run<512>}, {1024, run<1024>}, {2048, run<2048>}, {4096, run<4096>}, {8192, run<8192>}, {16384, run<16384>},
};

/* Another thread that does the same all the while: zone_seed METHOD SIZE ZONES 2. */
struct job {
    const size *s;
    const char *method;
    int zones;
};

} // namespace

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    size_t bytes = strtoul(argv[2], nullptr, 10);
    int zones = atoi(argv[3]);
    for (const size &s : sizes) {
        if (s.bytes != bytes) continue;
        if (argc == 5) { /* two processes' worth of threads, each prints its line */
            job j = {&s, argv[1], zones};
            pthread_t other;
            auto f = [](void *arg) -> void * {
                const job *k = static_cast<const job *>(arg);
                k->s->run(k->method, k->zones);
                return nullptr;
            };
            if (pthread_create(&other, nullptr, f, &j) != 0) return 1;
            bool is_known = s.run(argv[1], zones);
            pthread_join(other, nullptr);
            return is_known ? 0 : 2;
        }
        return s.run(argv[1], zones) ? 0 : 2;
    }
    return 2;
}
