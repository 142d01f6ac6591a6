# needs: gcc g++ awk sha256sum
# Compiles a generated C file and a C++ file with templates, and compares objects and programs byte for byte.
set -eu
awk 'BEGIN {
    print "#include <stdio.h>\n#include <string.h>\nstruct s { int a[8]; double d; char name[24]; };"
    for (i = 0; i < 220; i++) {
        printf "static double f%d(struct s *p, int n) {\n    double x = p->d;\n", i
        printf "    for (int i = 0; i < n; i++) {\n        p->a[i & 7] += i * %d;\n", i + 1
        printf "        x += p->a[(i + %d) & 7] / %d.0;\n", i % 8, i + 3
        printf "        switch (i %% %d) {\n", i % 7 + 2
        for (c = 0; c < i % 7 + 2; c++) printf "        case %d: x *= %d.5; break;\n", c, c + 1
        printf "        }\n    }\n    snprintf(p->name, sizeof p->name, \"%%d\", n + %d);\n", i
        call = i ? sprintf(" + (n > 2 ? f%d(p, n - 3) : 0)", i - 1) : ""
        printf "    return x + (double)strlen(p->name)%s;\n}\n", call
    }
    print "int main(void) {\n    struct s s = {.d = 1};\n    printf(\"%.6g %s\\n\", f219(&s, 30), s.name);\n}"
}' >generated.c
cat >templates.cc <<'PROGRAM'
#include <algorithm>
#include <iostream>
#include <map>
#include <string>
#include <vector>
template <int N> struct tower { static constexpr unsigned value = tower<N - 1>::value * 31 + N; };
template <> struct tower<0> { static constexpr unsigned value = 1; };
int main() {
    std::map<std::string, std::vector<unsigned>> m;
    for (unsigned i = 0; i < 100; i++) m[std::to_string(i % 10)].push_back(i * tower<300>::value);
    for (auto &e : m) std::sort(e.second.begin(), e.second.end(), [](auto a, auto b) { return a > b; });
    for (auto &e : m) std::cout << e.first << ' ' << e.second.front() << '\n';
}
PROGRAM
gcc -O2 -g "-fdebug-prefix-map=$PWD=." -c generated.c -o generated.o
gcc -O0 -c generated.c -o plain.o
g++ -O1 -c templates.cc -o templates.o
gcc generated.o -o generated
g++ templates.o -o templates
sha256sum generated.o plain.o templates.o generated templates
./generated
./templates
! gcc -c -Wall missing.c 2>&1
