/* containers.cc - what does an ordinary C++ program cost?
 *
 * `containers ROUNDS`: words are counted in a std::map and a std::unordered_map, their positions kept in vectors, lines
 * joined from strings, and a list sorted. Prints milliseconds per round; ends with status 1 when a count is wrong. */
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

static std::uint64_t state = 1;

static std::uint64_t next_random() {
    std::uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static std::string random_word() {
    std::uint64_t r = next_random();
    return std::string("word-") + std::to_string(r % 20000) + std::string(r >> 60, 'x');
}

static bool round_of_work() {
    constexpr std::size_t words = 100000;
    std::map<std::string, std::vector<std::size_t>> positions;
    std::unordered_map<std::string, std::unique_ptr<std::size_t>> counts;
    std::list<std::string> lines;
    std::string line;
    for (std::size_t i = 0; i < words; i++) {
        std::string word = random_word();
        positions[word].push_back(i);
        auto &count = counts[word];
        if (!count) count = std::make_unique<std::size_t>(0);
        ++*count;
        line += word;
        line += ' ';
        if (i % 12 == 11) {
            lines.push_back(std::move(line));
            line = std::string();
        }
        if (lines.size() > 2000) lines.pop_front();
    }
    lines.sort();
    std::size_t sum = 0;
    for (const auto &[word, at] : positions) {
        if (*counts[word] != at.size()) return false;
        sum += at.size();
    }
    return sum == words;
}

int main(int count, char **argument) {
    int rounds = count > 1 ? std::atoi(argument[1]) : 0;
    if (rounds <= 0) {
        std::fputs("usage: containers ROUNDS\n", stderr);
        return 2;
    }
    auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < rounds; i++)
        if (!round_of_work()) return 1;
    std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    std::printf("containers %.3f ms/round\n", time.count() / rounds);
    return 0;
}
