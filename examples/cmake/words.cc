// words.cc - counts the words on standard input. It is written as if there were no allocator to choose; linking is all.
#include <huddle/huddle.h>

#include <iostream>
#include <map>
#include <memory>
#include <string>

int main() {
    std::map<std::string, size_t> counts;
    std::string word;
    while (std::cin >> word) counts[word]++;
    for (const auto &[name, count] : counts) std::cout << count << ' ' << name << '\n';

    auto probe = std::make_unique<int>(0);
    std::cerr << "on huddle " << huddle_version() << ": " << (huddle_owns(probe.get()) ? "yes" : "no") << '\n';
    return huddle_owns(probe.get()) ? 0 : 1;
}
