// operators.cc - all forms of operator new and delete.
//
// The only C++ of the allocator: a nothrow form has to swallow what a new handler throws, which no C frame can. In the shared
// library (HUDDLE_WEAK_CXX=1) what it needs of the C++ run-time is weak, because C programs have none: in a program that has one
// but opened it locally, libstdc++ is looked up by name when a throw is due. In the archive the symbols are plain.
#include <cstddef>
#include <new>

#if HUDDLE_WEAK_CXX
#define RUNTIME __attribute__((weak))
// What the compiler refers to for a catch.
__asm__(".weak __gxx_personality_v0\n.weak __cxa_begin_catch\n.weak __cxa_end_catch");
#else
#define RUNTIME
#endif

#define EXPORT __attribute__((visibility("default")))

extern "C" {
void *malloc(size_t n) noexcept;
void free(void *p) noexcept;
void *aligned_alloc(size_t alignment, size_t n) noexcept;
void *dlopen(const char *file, int mode) noexcept __attribute__((weak));
void *dlsym(void *handle, const char *name) noexcept __attribute__((weak));
void abort() noexcept __attribute__((noreturn));
}

namespace std {
RUNTIME new_handler get_new_handler() noexcept;
RUNTIME void __throw_bad_alloc() __attribute__((noreturn));
}

namespace {

typedef std::new_handler get_handler();
typedef void throw_function();

#if HUDDLE_WEAK_CXX
enum { LAZY = 1, NO_LOAD = 4 };

void *find(const char *name) {
    if (dlopen == nullptr || dlsym == nullptr) return nullptr;
    void *library = dlopen("libstdc++.so.6", LAZY | NO_LOAD);
    return library == nullptr ? nullptr : dlsym(library, name);
}

std::new_handler handler() {
    get_handler *f = std::get_new_handler;
    if (f == nullptr) f = reinterpret_cast<get_handler *>(find("_ZSt15get_new_handlerv"));
    return f == nullptr ? nullptr : f();
}

__attribute__((noreturn)) void throw_bad_alloc() {
    throw_function *f = std::__throw_bad_alloc;
    if (f == nullptr) f = reinterpret_cast<throw_function *>(find("_ZSt17__throw_bad_allocv"));
    if (f != nullptr) f();
    abort();
}
#else
std::new_handler handler() {
    return std::get_new_handler();
}

__attribute__((noreturn)) void throw_bad_alloc() {
    std::__throw_bad_alloc();
}
#endif

void *allocate(size_t n, size_t alignment) {
    return alignment == 0 ? malloc(n) : aligned_alloc(alignment, n);
}

// Calls the handler until there is memory; throws what it throws, or bad_alloc when there is none.
__attribute__((cold, noinline)) void *allocate_or_throw(size_t n, size_t alignment) {
    for (;;) {
        std::new_handler h = handler();
        if (h == nullptr) throw_bad_alloc();
        h();
        void *p = allocate(n, alignment);
        if (p != nullptr) return p;
    }
}

__attribute__((cold, noinline)) void *allocate_or_null(size_t n, size_t alignment) noexcept {
    if (handler() == nullptr) return nullptr;
    try {
        return allocate_or_throw(n, alignment);
    } catch (...) {
        return nullptr;
    }
}

inline void *throwing(size_t n, size_t alignment) {
    void *p = allocate(n, alignment);
    return __builtin_expect(p != nullptr, 1) ? p : allocate_or_throw(n, alignment);
}

inline void *nothrowing(size_t n, size_t alignment) noexcept {
    void *p = allocate(n, alignment);
    return __builtin_expect(p != nullptr, 1) ? p : allocate_or_null(n, alignment);
}

} // namespace

typedef std::align_val_t alignment_t;
typedef const std::nothrow_t &nothrow_ref;

EXPORT void *operator new(size_t n) { return throwing(n, 0); }
EXPORT void *operator new[](size_t n) { return throwing(n, 0); }
EXPORT void *operator new(size_t n, nothrow_ref) noexcept { return nothrowing(n, 0); }
EXPORT void *operator new[](size_t n, nothrow_ref) noexcept { return nothrowing(n, 0); }
EXPORT void *operator new(size_t n, alignment_t a) { return throwing(n, static_cast<size_t>(a)); }
EXPORT void *operator new[](size_t n, alignment_t a) { return throwing(n, static_cast<size_t>(a)); }
EXPORT void *operator new(size_t n, alignment_t a, nothrow_ref) noexcept { return nothrowing(n, static_cast<size_t>(a)); }
EXPORT void *operator new[](size_t n, alignment_t a, nothrow_ref) noexcept { return nothrowing(n, static_cast<size_t>(a)); }

EXPORT void operator delete(void *p) noexcept { free(p); }
EXPORT void operator delete[](void *p) noexcept { free(p); }
EXPORT void operator delete(void *p, nothrow_ref) noexcept { free(p); }
EXPORT void operator delete[](void *p, nothrow_ref) noexcept { free(p); }
EXPORT void operator delete(void *p, size_t) noexcept { free(p); }
EXPORT void operator delete[](void *p, size_t) noexcept { free(p); }
EXPORT void operator delete(void *p, alignment_t) noexcept { free(p); }
EXPORT void operator delete[](void *p, alignment_t) noexcept { free(p); }
EXPORT void operator delete(void *p, alignment_t, nothrow_ref) noexcept { free(p); }
EXPORT void operator delete[](void *p, alignment_t, nothrow_ref) noexcept { free(p); }
EXPORT void operator delete(void *p, size_t, alignment_t) noexcept { free(p); }
EXPORT void operator delete[](void *p, size_t, alignment_t) noexcept { free(p); }
