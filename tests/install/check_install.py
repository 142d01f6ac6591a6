"""Installs a build tree to a directory of its own and uses it from outside: CMake, pkg-config, the command, the man
pages.

usage: check_install.py BUILD_TREE C_COMPILER CXX_COMPILER
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

build_tree, c_compiler, cxx_compiler = sys.argv[1:]
here = os.path.dirname(os.path.abspath(__file__))
failures = []


def check(right, what):
    if not right:
        failures.append(what)
        print(what)


def run(*command, status=0, **environment):
    """Runs a command, which must end with that status; returns what it printed on either stream."""
    unwanted = ("LD_PRELOAD", "HUDDLE_OPTIONS", "DESTDIR", "CMAKE_PREFIX_PATH", "LD_LIBRARY_PATH", "MAKEFLAGS")
    clean = {k: v for k, v in os.environ.items() if k not in unwanted}
    done = subprocess.run(command, env=clean | environment, capture_output=True, text=True, check=False)
    check(done.returncode == status,
          f"{' '.join(command)}: status {done.returncode}, expected {status}\n{done.stdout}{done.stderr}")
    return done.stdout, done.stderr


def find(prefix, pattern):
    paths = [os.path.join(top, name) for top, _, names in os.walk(prefix) for name in names]
    found = sorted(path for path in paths if re.search(pattern + "$", path))
    check(found, f"nothing installed like {pattern}")
    return found[0] if found else ""


def check_files(prefix):
    for pattern in ("/bin/huddle", r"/libhuddle\.so", r"/libhuddle\.so\.0", r"/libhuddle\.so\.0\.\d+\.\d+",
                    r"/libhuddle\.a", r"/include/huddle/huddle\.h", r"/include/huddle/zone\.h",
                    r"/include/huddle/pmr\.hpp",
                    r"/man3/huddle_zone\.3(\.gz)?", r"/man3/huddle_zone_open\.3(\.gz)?", r"/pkgconfig/huddle\.pc",
                    r"/cmake/huddle/huddleConfig\.cmake",
                    r"/cmake/huddle/huddleConfigVersion\.cmake", r"/man1/huddle\.1(\.gz)?", r"/man3/huddle\.3(\.gz)?",
                    r"/man7/huddle\.7(\.gz)?"):
        find(prefix, pattern)
    with open(find(prefix, r"/huddle\.pc")) as file:
        check(build_tree not in file.read(), "huddle.pc names the build tree")
    man = shutil.which("man")
    if man is not None:
        for section in "137":
            page = find(prefix, rf"/man{section}/huddle\.{section}(\.gz)?")
            out, err = run(man, "--warnings", "-l", page, MANWIDTH="80", LC_ALL="C.UTF-8", PAGER="cat", MANPAGER="cat")
            check("huddle" in out and err == "", f"huddle({section}): {err}")


def check_program(program, kind, **environment):
    out, err = run(program, **environment)
    check((out, err) == ("malloc is huddle's\n", ""), f"{kind}: {program} printed {out!r} {err!r}")


def check_cmake(prefix, work):
    build = os.path.join(work, "cmake-build")
    run("cmake", "-S", os.path.join(here, "outside"), "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_C_COMPILER={c_compiler}", f"-DCMAKE_CXX_COMPILER={cxx_compiler}")
    run("cmake", "--build", build)
    for name in ("shared", "static", "static_pie", "shared_cxx", "static_cxx", "unaware_shared", "unaware_static"):
        check_program(os.path.join(build, name), f"find_package, {name}")
    # A version that is not there must not be found.
    out, err = run("cmake", "-S", os.path.join(here, "outside"), "-B", os.path.join(work, "cmake-wrong"),
                   f"-DCMAKE_PREFIX_PATH={prefix}", "-DWANTED_VERSION=99.0", status=1)
    check("99.0" in err, f"find_package(huddle 99.0): {err}")


def check_pkg_config(prefix, work):
    pc_path = os.path.dirname(find(prefix, r"/huddle\.pc"))
    library_path = os.path.dirname(find(prefix, r"/libhuddle\.so"))
    source = os.path.join(here, "outside", "program.c")

    def flags(*options):
        out, err = run("pkg-config", *options, "huddle", PKG_CONFIG_PATH=pc_path)
        check(out and not err, f"pkg-config {options}: {out!r} {err!r}")
        return out.split()

    check(flags("--modversion") == [version()], "pkg-config has another version")
    shared, static, pie = (os.path.join(work, name) for name in ("pc_shared", "pc_static", "pc_static_pie"))
    run(c_compiler, source, "-o", shared, *flags("--cflags", "--libs"))
    check_program(shared, "pkg-config", LD_LIBRARY_PATH=library_path)
    run(c_compiler, "-static", source, "-o", static, *flags("--static", "--cflags", "--libs"))
    check_program(static, "pkg-config --static")
    run(c_compiler, "-static-pie", "-fPIE", source, "-o", pie, *flags("--static", "--cflags", "--libs"))
    check_program(pie, "pkg-config --static, PIE")


def version():
    with open(os.path.join(here, "../../include/huddle/huddle.h")) as file:
        return re.search(r'HUDDLE_VERSION_STRING "([^"]+)"', file.read()).group(1)


def check_command(prefix):
    huddle = find(prefix, "/bin/huddle")
    loaded = ["grep", "-c", "-m1", "libhuddle", "/proc/self/maps"]
    check(run(huddle, "run", "--", "true") == ("", ""), "huddle run -- true printed something")
    check(run(huddle, "run", "--", *loaded) == ("1\n", ""), "huddle run does not load the library")
    check(run(huddle, "run", *loaded) == ("1\n", ""), "huddle run needs --")
    check(run(*loaded, status=1)[0] == "0\n", "the library is loaded without huddle run")
    run(huddle, "run", "--", "sh", "-c", "exit 7", status=7)
    run(huddle, "run", "--", "sh", "-c", "kill -TERM $$", status=-15)
    check(run(huddle, "run", "--", "printf", "%s.", "a b", "", "c")[0] == "a b..c.", "huddle run changes arguments")
    out, err = run(huddle, "run", "--", "no-such-command", status=127)
    check(out == "" and len(err.splitlines()) == 1 and "no-such-command" in err, f"a missing command: {out!r} {err!r}")
    out, err = run(huddle, "run", "-o", "lanes=3", "--", "sh", "-c", "echo $HUDDLE_OPTIONS")
    check(out == "lanes=3\n" and err == "", f"huddle run -o: {out!r} {err!r}")
    out, err = run(huddle, "run", "-o", "nonsense=1", "--", "true", status=2)
    check(out == "" and "nonsense" in err, f"huddle run with a wrong option: {out!r} {err!r}")
    out, err = run(huddle, "run", "--stats", "--", "true")
    check(out == "" and err.startswith("{") and '"live_bytes":' in err, f"huddle run --stats: {out!r} {err!r}")
    check(version() in run(huddle, "--version")[0], "huddle --version does not say the version")
    check("run" in run(huddle, "--help")[0], "huddle --help does not help")
    with open(os.path.join(here, "../../src/base/options.def")) as file:
        keys = re.findall(r"^(?:NUMBER|CHOICE|TEXT)\((\w+),", file.read(), re.M)
    listed = run(huddle, "options")[0]
    missing = [key for key in keys if not re.search(rf"\b{key}\b", listed)]
    check(keys and not missing, f"huddle options does not list {missing}: {listed}")


def main():
    with tempfile.TemporaryDirectory(prefix="huddle_install_") as work:
        prefix, moved = os.path.join(work, "prefix"), os.path.join(work, "moved")
        run("cmake", "--install", build_tree, "--prefix", prefix)
        check_files(prefix)
        check_cmake(prefix, work)
        check_pkg_config(prefix, work)
        check_command(prefix)
        os.rename(prefix, moved)  # an installed tree may be moved
        check_pkg_config(moved, work)
        check_command(moved)
    print(f"{len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
