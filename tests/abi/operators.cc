/* All forms of operator new and delete: throwing, nothrow, sized, aligned, arrays; the new handler; and C++ programs
 * that rely on them. Built as a program, statically, and as a plugin that a C program opens (plugin_host.c), into which
 * the C++ run-time comes only after huddle. Assertions leave a test with longjmp: no object with a destructor may be
 * alive at one. */
#include "abi.h"

#include <cerrno>
#include <cstring>
#include <malloc.h>
#include <sys/resource.h>

#include <future>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

static const std::nothrow_t &nothrow = std::nothrow;
static const std::align_val_t align64{64};
static const size_t huge_sizes[] = {PTRDIFF_MAX,   (size_t)PTRDIFF_MAX + 1, SIZE_MAX,
                                    SIZE_MAX - 15, SIZE_MAX - 4096,         (size_t)1 << 56};

enum { FORMS = 8, THROWING = 4, DELETES = 12 };

/* One of the eight operators new; the first four throw. */
static void *make(int form, size_t n, std::align_val_t a = align64) {
    n = opaque_size(n);
    switch (form) {
    case 0: return ::operator new(n);
    case 1: return ::operator new[](n);
    case 2: return ::operator new(n, a);
    case 3: return ::operator new[](n, a);
    case 4: return ::operator new(n, nothrow);
    case 5: return ::operator new[](n, nothrow);
    case 6: return ::operator new(n, a, nothrow);
    default: return ::operator new[](n, a, nothrow);
    }
}

static bool is_array(int form) {
    return form % 2 == 1;
}

static bool is_aligned_form(int form) {
    return form % 4 >= 2;
}

/* One of the three deletes that fit the form of new. */
static void drop(int form, int kind, void *p, size_t n) {
    int choice = (is_aligned_form(form) ? 6 : 0) + (is_array(form) ? 3 : 0) + kind;
    p = opaque(p);
    switch (choice) {
    case 0: ::operator delete(p); break;
    case 1: ::operator delete(p, n); break;
    case 2: ::operator delete(p, nothrow); break;
    case 3: ::operator delete[](p); break;
    case 4: ::operator delete[](p, n); break;
    case 5: ::operator delete[](p, nothrow); break;
    case 6: ::operator delete(p, align64); break;
    case 7: ::operator delete(p, n, align64); break;
    case 8: ::operator delete(p, align64, nothrow); break;
    case 9: ::operator delete[](p, align64); break;
    case 10: ::operator delete[](p, n, align64); break;
    default: ::operator delete[](p, align64, nothrow);
    }
}

static void every_new_goes_with_its_three_deletes(void **) {
    for (size_t n = 0; n < 3 * MIB; n = n * 3 / 2 + 1) {
        for (int form = 0; form < FORMS; form++) {
            for (int kind = 0; kind < 3; kind++) {
                void *p = make(form, n), *q = make(form, n);
                assert_non_null(p);
                assert_ptr_not_equal(p, q);
                assert_true(is_aligned(p, is_aligned_form(form) ? 64 : 16));
                assert_true(malloc_usable_size(p) >= n);
                fill(p, n, 1);
                fill(q, n, 2);
                assert_true(is_filled(p, n, 1));
                errno = 77;
                drop(form, kind, p, n);
                assert_int_equal(errno, 77);
                assert_true(is_filled(q, n, 2));
                drop(form, kind, q, n);
            }
        }
    }
}

static void deleting_null_does_nothing(void **) {
    for (int form = 0; form < 4; form++)
        for (int kind = 0; kind < 3; kind++) drop(form, kind, nullptr, 8);
}

static void aligned_new_gives_every_alignment(void **) {
    for (size_t a = 1; a <= 64 * MIB; a *= 2) {
        for (size_t n : {(size_t)0, (size_t)1, a - 1, a + 1, 3 * a}) {
            for (int form : {2, 3, 6, 7}) {
                void *p = make(form, n, std::align_val_t{a});
                assert_non_null(p);
                assert_true(is_aligned(p, a));
                if (is_array(form)) ::operator delete[](p, n, std::align_val_t{a});
                else ::operator delete(p, n, std::align_val_t{a});
            }
        }
    }
}

/* Whether the throwing form throws bad_alloc. */
static bool throws(int form, size_t n) {
    try {
        return make(form, n) == nullptr && false;
    } catch (const std::bad_alloc &e) {
        return std::strstr(e.what(), "bad_alloc") != nullptr;
    } catch (...) {
        return false;
    }
}

static void impossible_sizes_throw_bad_alloc_or_are_null(void **) {
    std::set_new_handler(nullptr);
    for (size_t n : huge_sizes) {
        for (int form = 0; form < THROWING; form++) assert_true(throws(form, n));
        for (int form = THROWING; form < FORMS; form++) assert_null(make(form, n));
    }
}

static int calls, calls_wanted;

static void give_up_at_last() {
    if (++calls == calls_wanted) std::set_new_handler(nullptr);
}

static void the_new_handler_is_called_until_there_is_none(void **) {
    for (calls_wanted = 1; calls_wanted < 5; calls_wanted++) {
        for (int form = 0; form < FORMS; form++) {
            calls = 0;
            std::set_new_handler(give_up_at_last);
            if (form < THROWING) assert_true(throws(form, SIZE_MAX / 2));
            else assert_null(make(form, SIZE_MAX / 2));
            assert_int_equal(calls, calls_wanted);
            assert_true(std::get_new_handler() == nullptr);
        }
    }
}

class refused : public std::bad_alloc {
    const char *what() const noexcept override { return "bad_alloc of the handler's own"; }
};

static void throw_own() {
    calls++;
    throw refused();
}

static void what_the_handler_throws_passes_or_becomes_null(void **) {
    std::set_new_handler(throw_own);
    for (int form = 0; form < FORMS; form++) {
        calls = 0;
        bool own = false;
        if (form < THROWING) {
            try {
                make(form, SIZE_MAX - 100);
            } catch (const refused &) {
                own = true;
            }
            assert_true(own);
        } else {
            assert_null(make(form, SIZE_MAX - 100));
        }
        assert_int_equal(calls, 1);
    }
    std::set_new_handler(nullptr);
}

static void *reserve;

static void free_the_reserve() {
    calls++;
    if (reserve == nullptr) throw std::bad_alloc();
    free(reserve);
    malloc_trim(0);
    reserve = nullptr;
}

/* The address space is limited so that a block fits only when the reserve is gone. */
static void a_handler_that_frees_memory_makes_new_succeed(void **) {
    if (TEST_IS_EMULATED) skip();
    const size_t large = 512 * MIB;
    rlimit old;
    assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
    for (int form = 0; form < FORMS; form++) {
        calls = 0;
        malloc_trim(0);
        assert_non_null(reserve = malloc(large));
        rlimit limit = old;
        limit.rlim_cur = 3 * large / 2;
        assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
        std::set_new_handler(free_the_reserve);
        void *p = nullptr;
        try {
            p = make(form, large);
        } catch (...) {
        }
        std::set_new_handler(nullptr);
        setrlimit(RLIMIT_AS, &old);
        assert_non_null(p);
        assert_int_equal(calls, 1);
        assert_null(reserve);
        drop(form, 1, p, large);
    }
}

struct alignas(256) wide {
    char bytes[256];
};

static bool containers_are_intact() {
    std::map<std::string, std::vector<int>> map;
    const std::string start = "a key that is longer than sixteen bytes ";
    for (int i = 0; i < 5000; i++) map[start + std::to_string(i % 700)].push_back(i);
    std::vector<wide> aligned;
    for (int i = 0; i < 300; i++) aligned.emplace_back().bytes[0] = (char)i;
    std::vector<std::shared_ptr<std::string>> shared;
    for (int i = 0; i < 1000; i++) shared.push_back(std::make_shared<std::string>((size_t)i, 'x'));
    size_t sum = 0;
    for (auto &entry : map) sum += entry.second.size();
    for (auto &s : shared) sum += s->size();
    return sum == 5000 + 999 * 500 && is_aligned(aligned.data(), 256) && aligned[299].bytes[0] == (char)299;
}

static void containers_work(void **) {
    assert_true(containers_are_intact());
}

static bool exceptions_cross_threads() {
    for (int i = 0; i < 50; i++) {
        auto future = std::async(std::launch::async, [i]() -> int {
            std::vector<std::string> much(100, std::string((size_t)i * 10, 'y'));
            if (i % 2 == 0) throw std::bad_alloc();
            return i + (int)much.size();
        });
        try {
            if (future.get() != i + 100 || i % 2 == 0) return false;
        } catch (const std::bad_alloc &) {
            if (i % 2 != 0) return false;
        }
    }
    return true;
}

static void exceptions_of_other_threads_arrive(void **) {
    assert_true(exceptions_cross_threads());
}

static int destroyed;

struct last_words {
    std::vector<std::string> words;
    ~last_words() {
        for (int i = 0; i < 100; i++) words.emplace_back((size_t)i * 3, 'z');
        std::vector<std::string> copy = words;
        destroyed += copy.size() == 101;
    }
};

static thread_local last_words one, other;

static void speak() {
    one.words.emplace_back("first");
    other.words.emplace_back("first, but longer than sixteen bytes");
}

static void thread_local_destructors_may_allocate(void **) {
    destroyed = 0;
    for (int i = 0; i < 100; i++) std::thread(speak).join();
    assert_int_equal(destroyed, 200);
}

extern "C" int run_all(void);

int run_all(void) {
    const struct CMUnitTest tests[] = {
        RUNS_ON_HUDDLE,
        cmocka_unit_test(every_new_goes_with_its_three_deletes),
        cmocka_unit_test(deleting_null_does_nothing),
        cmocka_unit_test(aligned_new_gives_every_alignment),
        cmocka_unit_test(impossible_sizes_throw_bad_alloc_or_are_null),
        cmocka_unit_test(the_new_handler_is_called_until_there_is_none),
        cmocka_unit_test(what_the_handler_throws_passes_or_becomes_null),
        cmocka_unit_test(a_handler_that_frees_memory_makes_new_succeed),
        cmocka_unit_test(containers_work),
        cmocka_unit_test(exceptions_of_other_threads_arrive),
        cmocka_unit_test(thread_local_destructors_may_allocate),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}

#ifndef PLUGIN
int main() {
    return run_all();
}
#endif
