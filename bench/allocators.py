"""What the scripts of bench/ share: which allocators there are, and running a command on one."""
import argparse
import datetime
import os
import pathlib
import platform
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEBIAN = {
    "jemalloc": "libjemalloc.so.2",
    "mimalloc": "libmimalloc.so.2.0",
    "tcmalloc": "libtcmalloc_minimal.so.4",
    "tbbmalloc": "libtbbmalloc_proxy.so.2",
    "scudo": "libclang_rt.scudo_standalone-*.so",
}
PLACES = ("*-linux-gnu", "llvm-*/lib/clang/*/lib/linux")
PACKAGES = ("libjemalloc2", "libmimalloc2.0", "libtcmalloc-minimal4", "libtbbmalloc2", "libclang-rt-14-dev")


def parser(description, rounds):
    p = argparse.ArgumentParser(description=description)
    p.add_argument("-b", "--build", type=pathlib.Path, default=ROOT / "build/release", help="build tree (%(default)s)")
    p.add_argument("-r", "--rounds", type=int, default=rounds, help="rounds (%(default)s)")
    p.add_argument("-n", "--no-debian", action="store_true", help="leave out the allocators of Debian's packages")
    return p


def check_preload(name, library):
    """A library that cannot be preloaded is passed over by the dynamic linker, and glibc would be measured."""
    done = subprocess.run(["cat", "/proc/self/maps"], env={**os.environ, "LD_PRELOAD": library}, capture_output=True,
                          check=False, text=True)
    if os.path.realpath(library) not in done.stdout:
        sys.exit(f"{name}: {library} is not loaded into programs\n{done.stderr}")


def choose(named, build, with_debian):
    """{name: library or None for glibc}, glibc first: NAME=PATH arguments, or huddle as built when there are none."""
    chosen = {"glibc": None}
    if with_debian:
        for name, file in DEBIAN.items():
            found = [p for place in PLACES for p in sorted(pathlib.Path("/usr/lib").glob(f"{place}/{file}"))
                     if platform.machine() in str(p)]
            if found:
                chosen[name] = str(found[-1])
    for pair in named or [f"huddle={build}/libhuddle.so"]:
        name, equals, path = pair.partition("=")
        if not equals or not os.path.isfile(path):
            sys.exit(f"{os.path.basename(sys.argv[0])}: {pair}: NAME=PATH of a library is expected")
        chosen[name] = os.path.abspath(path)
    for name, library in chosen.items():
        if library:
            check_preload(name, library)
    return chosen


def version(name, library):
    """What a CSV's head says of an allocator: Debian's package and version, or the file's name. Never a directory."""
    if library is None:
        return " ".join(platform.libc_ver())
    found = subprocess.run(["dpkg-query", "-S", os.path.realpath(library)], capture_output=True, check=False, text=True)
    package = found.stdout.partition(": ")[0]
    if package:
        known = subprocess.run(["dpkg-query", "-W", package], capture_output=True, check=True, text=True)
        return known.stdout.replace("\t", " ").strip()
    return os.path.basename(os.path.realpath(library))


def about(script):
    """Where figures come from, for a CSV's head: names of files, never directories."""
    cpu = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    compiler = subprocess.run(["cc", "--version"], capture_output=True, check=True, text=True).stdout.splitlines()[0]
    commit = subprocess.run(["git", "describe", "--always", "--dirty", "--exclude=*"], cwd=ROOT,
                            capture_output=True, check=False, text=True).stdout.strip()
    words = [",".join(re.sub(r"^([^=/]*=)?.*/", r"\1", part) for part in word.split(",")) for word in sys.argv[1:]]
    yield f"command: {shlex.join([script] + words)}"
    yield f"CPU: {cpu[1] if cpu else platform.machine()}, {os.cpu_count()} of them"
    yield f"kernel: {platform.system()} {re.match(r'[0-9.]+', platform.release())[0]}, {' '.join(platform.libc_ver())}"
    yield f"compiler: {compiler}"
    yield f"date: {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}"
    yield f"huddle: {commit or 'unknown'}"


def program(build, name):
    path = build / "bench" / name
    if not path.exists():
        sys.exit(f"{path} is missing: cmake --preset release && cmake --build --preset release")
    return str(path)


def need(tool):
    if shutil.which(tool) is None:
        sys.exit(f"{os.path.basename(sys.argv[0])}: {tool} is missing, please install Debian's package of that name")


def instructions(library, command, functions=(), env=None):
    """Executed by a command on an allocator, in its functions of those names and what they call, or in all; by callgrind."""
    clean = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    assignments = ([f"LD_PRELOAD={library}"] if library else []) + [f"{k}={v}" for k, v in (env or {}).items()]
    words = (["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--trace-children=yes", "--log-fd=2"]
             + [f"--toggle-collect={f}" for f in functions] + ["env"] + assignments + command)
    done = subprocess.run(words, env=clean, capture_output=True, check=False, text=True)
    counts = re.findall(r"Collected\s*:\s*(\d+)", done.stderr)
    if done.returncode != 0 or not counts or int(counts[-1]) == 0:
        raise Failed(f"{shlex.join(words)}\n{done.stderr}")
    return int(counts[-1])


class Failed(SystemExit):
    """A command's run that is no measurement; ends the script unless it is caught."""


class Run:
    """One run of a command under bench/peak."""

    def __init__(self, build, library, command, env=None, cwd=None):
        peak = [program(build, "peak")] + (["-p", library] if library else [])
        with tempfile.NamedTemporaryFile("r") as result:
            done = subprocess.run(
                peak + ["-o", result.name] + command, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL, cwd=cwd,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=300, text=True, errors="replace")
            self.used = {name: float(value) for name, value in (f.split("=") for f in result.read().split())}
        self.output = done.stdout
        if done.returncode != 0 or not self.used:
            raise Failed(f"{shlex.join(command):.120}\n  on {library or 'glibc'}: exit status {done.returncode}")
        self.seconds = self.used["seconds"]
        self.rss_kib, self.vm_kib = int(self.used["peak_kib"]), int(self.used["vm_kib"])


def median(values):
    return statistics.median(values)
