// operators.cc - all forms of operator new and delete.
//
// The only C++ of the allocator: a nothrow form has to swallow what a new handler throws, which no C frame can. In the
// archive it is a member of its own, which only C++ programs pull in. The shared library (HUDDLE_WEAK_CXX=1) may not
// need libstdc++, because C programs have none: what is wanted of it is looked up by name once memory has run out, so
// that a program which opened it locally is served too; and the catch is libstdc++'s, whose nothrow forms call the
// throwing ones here.
#include <cstddef>
#include <new>

#if HUDDLE_WEAK_CXX
#define RUNTIME __attribute__((weak))
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

#if HUDDLE_WEAK_CXX
typedef void *nothrow_function(size_t n, const std::nothrow_t &);
typedef void *nothrow_aligned_function(size_t n, std::align_val_t, const std::nothrow_t &);

__attribute__((cold, noinline)) void *allocate_or_null(size_t n, size_t alignment) {
    std::nothrow_t tag;
    if (handler() == nullptr) return nullptr;
    if (alignment == 0) {
        nothrow_function *f = reinterpret_cast<nothrow_function *>(find("_ZnwmRKSt9nothrow_t"));
        return f == nullptr ? nullptr : f(n, tag);
    }
    nothrow_aligned_function *f = reinterpret_cast<nothrow_aligned_function *>(find("_ZnwmSt11align_val_tRKSt9nothrow_t"));
    return f == nullptr ? nullptr : f(n, static_cast<std::align_val_t>(alignment), tag);
}
#else
__attribute__((cold, noinline)) void *allocate_or_null(size_t n, size_t alignment) noexcept {
    if (handler() == nullptr) return nullptr;
    try {
        return allocate_or_throw(n, alignment);
    } catch (...) {
        return nullptr;
    }
}
#endif

inline void *throwing(size_t n, size_t alignment) {
    void *p = allocate(n, alignment);
    return __builtin_expect(p != nullptr, 1) ? p : allocate_or_throw(n, alignment);
}

inline void *nothrowing(size_t n, size_t alignment) {
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
