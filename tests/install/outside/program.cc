#include <huddle/huddle.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <string>

int main() {
    auto object = std::make_unique<std::string>(1000, 'x');
    bool threw = false;
    std::size_t volatile huge = PTRDIFF_MAX;
    try {
        ::operator delete(::operator new(huge));
    } catch (const std::bad_alloc &) {
        threw = true;
    }
    bool right = std::strcmp(huddle_version(), HUDDLE_VERSION_STRING) == 0 && huddle_owns(object.get()) &&
                 huddle_owns(object->data()) && threw;
    std::puts(right ? "malloc is huddle's" : "malloc is not huddle's");
    return !right;
}
