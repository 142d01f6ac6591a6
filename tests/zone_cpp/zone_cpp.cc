/* zone_cpp.cc - huddle/pmr.hpp: containers in zones, alignment, errors, ownership. */
#include "huddle/pmr.hpp"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <list>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

static int passed, failed;
static const char *test_name;
static bool is_right;

static void expect_at(bool right, const char *what, int line) {
    if (right) return;
    std::printf("%s: line %d: %s\n", test_name, line, what);
    is_right = false;
}
#define EXPECT(what) expect_at(what, #what, __LINE__)
#define EXPECT_THROW(type, what)                                                                                       \
    do {                                                                                                               \
        bool is_thrown = false;                                                                                        \
        try {                                                                                                          \
            what;                                                                                                      \
        } catch (const type &) {                                                                                       \
            is_thrown = true;                                                                                          \
        }                                                                                                              \
        expect_at(is_thrown, #what " throws " #type, __LINE__);                                                        \
    } while (0)

static std::size_t used_bytes(huddle_zone_t *z) {
    huddle_zone_stats_t stats = {};
    stats.struct_size = sizeof stats;
    return huddle_zone_stats(z, &stats) == 0 ? stats.used_bytes : SIZE_MAX;
}

static bool is_aligned(const void *p, std::size_t alignment) {
    return reinterpret_cast<std::uintptr_t>(p) % alignment == 0;
}

struct big {
    char bytes[20000];
};

struct alignas(256) wide {
    int value;
};

static const char *const long_text = "a text that is too long to lie inside the string object, number ";

static void pmr_containers_live_in_the_zone() {
    huddle::zone z;
    huddle::zone_resource resource(z.get());
    std::pmr::vector<std::pmr::string> texts(&resource);
    std::pmr::map<int, std::pmr::string> map(&resource);
    std::pmr::unordered_map<std::pmr::string, int> numbers(&resource);
    std::pmr::list<wide> wides(&resource);
    for (int i = 0; i < 3000; i++) {
        std::pmr::string text(long_text, &resource);
        text += std::to_string(i);
        texts.push_back(text);
        map.emplace(i, text);
        numbers.emplace(text, i);
        wides.push_back(wide{i});
    }
    int i = 0;
    for (const wide &w : wides) {
        const std::pmr::string &text = texts[static_cast<std::size_t>(i)];
        EXPECT(is_aligned(&w, alignof(wide)) && w.value == i);
        EXPECT(map.at(i) == text && numbers.at(text) == i);
        EXPECT(huddle_zone_contains(z.get(), text.data()) && huddle_zone_contains(z.get(), &w));
        i++;
    }
    EXPECT(i == 3000);
}

template <class T> using in_zone = huddle::zone_allocator<T>;
using zone_string = std::basic_string<char, std::char_traits<char>, in_zone<char>>;

static void containers_with_the_allocator_live_in_the_zone() {
    huddle::zone z;
    in_zone<char> allocator(z);
    std::vector<zone_string, in_zone<zone_string>> texts(allocator);
    std::map<int, wide, std::less<int>, in_zone<std::pair<const int, wide>>> map(allocator);
    using table = std::unordered_map<int, int, std::hash<int>, std::equal_to<int>, in_zone<std::pair<const int, int>>>;
    table squares(allocator);
    std::list<wide, in_zone<wide>> wides(allocator);
    for (int i = 0; i < 3000; i++) {
        zone_string text(long_text, allocator);
        text += std::to_string(i).c_str();
        texts.push_back(std::move(text));
        map.emplace(i, wide{i});
        squares[i] = i * i;
        wides.push_front(wide{i});
    }
    for (int i = 0; i < 3000; i++) {
        const zone_string &text = texts[static_cast<std::size_t>(i)];
        EXPECT(text == (long_text + std::to_string(i)).c_str() && huddle_zone_contains(z.get(), text.data()));
        EXPECT(map.at(i).value == i && is_aligned(&map.at(i), alignof(wide)));
        EXPECT(squares.at(i) == i * i);
    }
    wides.reverse();
    EXPECT(wides.front().value == 0 && is_aligned(&wides.front(), alignof(wide)));
}

static void allocators_propagate_with_moves_and_swaps_only() {
    huddle::zone a, b;
    using vector = std::vector<int, in_zone<int>>;
    vector x(100, 1, in_zone<int>(a)), y(100, 2, in_zone<int>(b));
    const int *of_y = y.data();
    EXPECT(x.get_allocator() != y.get_allocator());
    EXPECT(in_zone<int>(a) == in_zone<char>(a));
    x = y;
    EXPECT(x.get_allocator().get() == a.get() && x == y);
    swap(x, y);
    EXPECT(x.get_allocator().get() == b.get() && x.data() == of_y && y.get_allocator().get() == a.get());
    y = std::move(x);
    EXPECT(y.get_allocator().get() == b.get() && y.data() == of_y);
    vector copy(y);
    EXPECT(copy.get_allocator() == y.get_allocator());
}

static void deallocate_takes_back_the_last_block_only() {
    huddle::zone z;
    huddle::zone_resource resource(z.get());
    std::size_t before = used_bytes(z.get());
    void *p = resource.allocate(100);
    resource.deallocate(p, 100);
    EXPECT(used_bytes(z.get()) == before);
    EXPECT(resource.allocate(100) == p);
    void *q = resource.allocate(50);
    std::size_t with_both = used_bytes(z.get());
    resource.deallocate(p, 100);
    EXPECT(used_bytes(z.get()) == with_both);
    resource.deallocate(q, 50);
    EXPECT(used_bytes(z.get()) < with_both);
}

static void resources_are_equal_by_zone() {
    huddle::zone a, b;
    huddle::zone_resource x(a.get()), same(a.get()), y(b.get());
    huddle::malloc_resource m, n;
    EXPECT(x == same && x != y && m == n && !(m == x) && !(x == m));
}

template <class Resource> static void allocate_at_every_alignment(Resource &resource) {
    for (std::size_t alignment = 1; alignment <= 1 << 16; alignment *= 2) {
        for (std::size_t n : {std::size_t(0), std::size_t(1), std::size_t(100), std::size_t(300000)}) {
            void *p = resource.allocate(n, alignment);
            EXPECT(p != nullptr && is_aligned(p, alignment));
            if (n != 0) std::memset(p, 1, n);
            resource.deallocate(p, n, alignment);
        }
    }
}

static void every_power_of_two_is_an_alignment() {
    huddle::zone z;
    huddle::zone_resource resource(z.get());
    huddle::malloc_resource heap;
    allocate_at_every_alignment(resource);
    allocate_at_every_alignment(heap);
}

static void no_memory_is_bad_alloc() {
    huddle_zone_options_t options = {};
    options.struct_size = sizeof options;
    options.limit = 10000;
    huddle::zone z(options);
    huddle::zone_resource resource(z.get());
    std::pmr::vector<int> numbers(&resource);
    EXPECT_THROW(std::bad_alloc, for (int i = 0; i < 100000; i++) numbers.push_back(i));
    EXPECT(!numbers.empty() && numbers.back() == static_cast<int>(numbers.size()) - 1);
    EXPECT_THROW(std::bad_alloc, (void)resource.allocate(20000));
    EXPECT_THROW(std::bad_alloc, (void)resource.allocate(20000, 4096));
    EXPECT_THROW(std::bad_alloc, (void)in_zone<int>(z).allocate(20000));
    EXPECT_THROW(std::bad_array_new_length, (void)in_zone<int>(z).allocate(SIZE_MAX / 2));
    EXPECT_THROW(std::bad_alloc, (void)z.create<big>());
    huddle::malloc_resource heap;
    volatile std::size_t huge = SIZE_MAX - 100;
    EXPECT_THROW(std::bad_alloc, (void)heap.allocate(huge));
    EXPECT_THROW(std::bad_alloc, (void)heap.allocate(huge, 4096));
    EXPECT(huddle_zone_seal(z.get()) == 0);
    EXPECT_THROW(std::bad_alloc, (void)resource.allocate(1));
}

static void wrong_options_are_invalid_argument() {
    huddle_zone_options_t options = {};
    options.struct_size = sizeof options;
    options.min_align = 3;
    EXPECT_THROW(std::invalid_argument, huddle::zone z(options));
}

struct noisy {
    explicit noisy(int n) : number(n) {
        if (n < 0) throw std::runtime_error("negative");
    }
    ~noisy() { order += std::to_string(number); }
    int number;
    static inline std::string order;
};

static void create_destroys_youngest_first() {
    noisy::order.clear();
    {
        huddle::zone z;
        for (int i = 1; i <= 3; i++) EXPECT(z.create<noisy>(i)->number == i);
        EXPECT_THROW(std::runtime_error, z.create<noisy>(-1));
        EXPECT(is_aligned(z.create<wide>(), alignof(wide)));
        EXPECT(z.reset() == 0);
        EXPECT(noisy::order == "321");
        z.create<noisy>(4);
    }
    EXPECT(noisy::order == "3214");
}

static void owner_moves_and_closes() {
    huddle::zone a;
    huddle_zone_t *first = a.get();
    huddle::zone b(std::move(a));
    EXPECT(!a && b.get() == first && huddle_zone_is_open(first));
    huddle::zone c;
    noisy::order.clear();
    c.create<noisy>(7);
    c = std::move(b);
    EXPECT(c.get() == first && noisy::order == "7");
    huddle_zone_t *released = c.release();
    EXPECT(!c && huddle_zone_is_open(released));
    huddle::zone again(released);
    again.close();
    again.close();
    EXPECT(!again);
}

static void run(const char *name, void (*test)()) {
    test_name = name;
    is_right = true;
    test();
    ++(is_right ? passed : failed);
}

int main() {
#define RUN(test) run(#test, test)
    RUN(pmr_containers_live_in_the_zone);
    RUN(containers_with_the_allocator_live_in_the_zone);
    RUN(allocators_propagate_with_moves_and_swaps_only);
    RUN(deallocate_takes_back_the_last_block_only);
    RUN(resources_are_equal_by_zone);
    RUN(every_power_of_two_is_an_alignment);
    RUN(no_memory_is_bad_alloc);
    RUN(wrong_options_are_invalid_argument);
    RUN(create_destroys_youngest_first);
    RUN(owner_moves_and_closes);
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed != 0 || passed == 0;
}
