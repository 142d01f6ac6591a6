/* pmr.hpp - zones for C++17: an owner, a std::pmr::memory_resource and an STL allocator over a zone,
 * and a resource over malloc.
 *
 *   huddle::zone z;
 *   huddle::zone_resource resource(z.get());
 *   std::pmr::vector<std::pmr::string> lines(&resource);
 *   std::vector<int, huddle::zone_allocator<int>> numbers{huddle::zone_allocator<int>(z.get())};
 *
 * Lifetime. Resources and allocators hold the zone's address and do not own it: the zone outlives them and all
 * containers that use them, and is neither reset nor rewound to before a container's memory while that container
 * lives.
 *
 * Sizes are bytes, or objects where it says so. A zone's min_align option has to be 16 (the default) or more.
 *
 * Errors. std::bad_alloc where the zone has no memory, its limit is reached, or it is closed or sealed; with
 * HUDDLE_ZONE_ABORT the program stops instead.
 *
 * Threads. As the zone itself: one thread at a time, unless the zone is SHARED. */
#ifndef HUDDLE_PMR_HPP
#define HUDDLE_PMR_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory_resource>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "huddle/zone.h"

namespace huddle {

namespace detail {

/* n bytes of the zone, for both kinds of allocators. Never NULL. */
inline void *zone_allocate(huddle_zone_t *z, std::size_t n, std::size_t alignment) {
    void *p = alignment <= 16 ? huddle_zone_alloc(z, n) : huddle_zone_aligned(z, alignment, n);
    if (p == nullptr) throw std::bad_alloc();
    return p;
}

} // namespace detail

/* Owns a zone, and closes it at its end. Move only; what was moved from has none. */
class zone {
public:
    /* Opens a zone. std::bad_alloc without memory, std::invalid_argument for options that huddle_zone_open refuses. */
    zone() : zone_(checked(huddle_zone_open(nullptr))) {}
    explicit zone(const huddle_zone_options_t &options) : zone_(checked(huddle_zone_open(&options))) {}

    /* Takes over a zone that is open, or nullptr. */
    explicit zone(huddle_zone_t *z) noexcept : zone_(z) {}

    zone(zone &&other) noexcept : zone_(other.release()) {}
    zone &operator=(zone &&other) noexcept {
        if (this != &other) {
            close();
            zone_ = other.release();
        }
        return *this;
    }
    zone(const zone &) = delete;
    zone &operator=(const zone &) = delete;
    ~zone() { close(); }

    huddle_zone_t *get() const noexcept { return zone_; }
    explicit operator bool() const noexcept { return zone_ != nullptr; }

    /* The caller closes the zone from now on. */
    huddle_zone_t *release() noexcept { return std::exchange(zone_, nullptr); }

    /* Closes the zone now. */
    void close() noexcept {
        if (zone_ != nullptr) huddle_zone_close(release());
    }

    /* All objects go, as huddle_zone_reset: -1 with errno on error. */
    int reset() noexcept { return huddle_zone_reset(zone_); }

    /* An object, not an array, in the zone. Its destructor, unless it is trivial, runs when the zone is
     * closed or reset, or rewound to before, youngest object first. What the constructor throws is passed on. */
    template <class T, class... Arguments> T *create(Arguments &&...arguments) {
        static_assert(!std::is_array_v<T>);
        void *p = detail::zone_allocate(zone_, sizeof(T), alignof(T));
        T *object = ::new (p) T(std::forward<Arguments>(arguments)...);
        if constexpr (!std::is_trivially_destructible_v<T>) {
            if (huddle_zone_on_close(zone_, destroy<T>, object) == 0) {
                object->~T();
                throw std::bad_alloc();
            }
        }
        return object;
    }

private:
    template <class T> static void destroy(void *object) { static_cast<T *>(object)->~T(); }

    static huddle_zone_t *checked(huddle_zone_t *z) {
        if (z == nullptr && errno == EINVAL) throw std::invalid_argument("huddle::zone");
        if (z == nullptr) throw std::bad_alloc();
        return z;
    }

    huddle_zone_t *zone_;
};

/* A memory resource over a zone. Any power of two is an alignment. deallocate takes a block back when it is the last
 * one of the zone, and does nothing otherwise. Two are equal when they have the same zone. */
class zone_resource : public std::pmr::memory_resource {
public:
    explicit zone_resource(huddle_zone_t *z) noexcept : zone_(z) {}

    huddle_zone_t *get() const noexcept { return zone_; }

private:
    void *do_allocate(std::size_t n, std::size_t alignment) override {
        return detail::zone_allocate(zone_, n, alignment);
    }

    void do_deallocate(void *p, std::size_t n, std::size_t) override { huddle_zone_pop(zone_, p, n); }

    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
        auto *same = dynamic_cast<const zone_resource *>(&other);
        return same != nullptr && same->zone_ == zone_;
    }

    huddle_zone_t *zone_;
};

/* A memory resource over malloc, aligned_alloc and free: whichever allocator the program runs on. Any power of two is
 * an alignment; std::bad_alloc without memory. Any thread may use it at any time, and all of them are equal. */
class malloc_resource : public std::pmr::memory_resource {
private:
    void *do_allocate(std::size_t n, std::size_t alignment) override {
        if (n == 0) n = 1;
        void *p = nullptr;
        if (alignment <= alignof(std::max_align_t)) {
            p = std::malloc(n);
        } else {
            /* C11 wants a multiple of the alignment. */
            std::size_t rounded = (n + alignment - 1) & ~(alignment - 1);
            if (rounded >= n) p = std::aligned_alloc(alignment, rounded);
        }
        if (p == nullptr) throw std::bad_alloc();
        return p;
    }

    void do_deallocate(void *p, std::size_t, std::size_t) override { std::free(p); }

    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
        return dynamic_cast<const malloc_resource *>(&other) != nullptr;
    }
};

/* An allocator over a zone for containers: no virtual calls, and the zone's inline path. Equal when the zone is the
 * same. It goes along when a container is move-assigned or swapped (nothing is copied then); a container that is
 * copy-assigned keeps its own, and one that is copy-constructed has the same. There is no default constructor. */
template <class T> class zone_allocator {
public:
    using value_type = T;
    using propagate_on_container_copy_assignment = std::false_type;
    using propagate_on_container_move_assignment = std::true_type;
    using propagate_on_container_swap = std::true_type;
    using is_always_equal = std::false_type;

    explicit zone_allocator(huddle_zone_t *z) noexcept : zone_(z) {}
    explicit zone_allocator(const zone &z) noexcept : zone_(z.get()) {}
    template <class U> zone_allocator(const zone_allocator<U> &other) noexcept : zone_(other.get()) {}

    huddle_zone_t *get() const noexcept { return zone_; }

    /* n objects, not constructed. std::bad_array_new_length, a std::bad_alloc, above PTRDIFF_MAX bytes. */
    T *allocate(std::size_t n) {
        if (n > static_cast<std::size_t>(PTRDIFF_MAX) / sizeof(T)) throw std::bad_array_new_length();
        return static_cast<T *>(detail::zone_allocate(zone_, n * sizeof(T), alignof(T)));
    }

    /* Takes them back when they are the zone's last block. */
    void deallocate(T *p, std::size_t n) noexcept { huddle_zone_pop(zone_, p, n * sizeof(T)); }

    template <class U> bool operator==(const zone_allocator<U> &other) const noexcept { return zone_ == other.get(); }
    template <class U> bool operator!=(const zone_allocator<U> &other) const noexcept { return zone_ != other.get(); }

private:
    huddle_zone_t *zone_;
};

} // namespace huddle

#endif
