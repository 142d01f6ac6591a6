"""What the scripts of bench/ share: which allocators there are, and running a command on one."""
import argparse
import os
import pathlib
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
}


def parser(description, rounds):
    p = argparse.ArgumentParser(description=description)
    p.add_argument("-b", "--build", type=pathlib.Path, default=ROOT / "build/release", help="build tree (%(default)s)")
    p.add_argument("-r", "--rounds", type=int, default=rounds, help="rounds (%(default)s)")
    p.add_argument("-n", "--no-debian", action="store_true", help="leave out the allocators of Debian's packages")
    return p


def choose(named, build, with_debian):
    """{name: library or None for glibc}, glibc first: NAME=PATH arguments, or huddle as built when there are none."""
    chosen = {"glibc": None}
    if with_debian:
        for name, file in DEBIAN.items():
            found = sorted(pathlib.Path("/usr/lib").glob(f"*-linux-gnu/{file}"))
            if found:
                chosen[name] = str(found[0])
    for pair in named or [f"huddle={build}/libhuddle.so"]:
        name, equals, path = pair.partition("=")
        if not equals or not os.path.isfile(path):
            sys.exit(f"{os.path.basename(sys.argv[0])}: {pair}: NAME=PATH of a library is expected")
        chosen[name] = os.path.abspath(path)
    return chosen


def program(build, name):
    path = build / "bench" / name
    if not path.exists():
        sys.exit(f"{path} is missing: cmake --preset release && cmake --build --preset release")
    return str(path)


def need(tool):
    if shutil.which(tool) is None:
        sys.exit(f"{os.path.basename(sys.argv[0])}: {tool} is missing, please install Debian's package of that name")


class Failed(SystemExit):
    """A command's run that is no measurement; ends the script unless it is caught."""


class Run:
    """One run of a command under bench/peak."""

    def __init__(self, build, library, command, env=None, cwd=None):
        peak = [program(build, "peak")] + (["-p", library] if library else [])
        with tempfile.NamedTemporaryFile("r") as result:
            done = subprocess.run(
                peak + ["-o", result.name] + command, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL, cwd=cwd,
                stdout=subprocess.PIPE, check=False, text=True, errors="replace")
            self.used = {name: float(value) for name, value in (f.split("=") for f in result.read().split())}
        self.output = done.stdout
        if done.returncode != 0 or not self.used:
            raise Failed(f"{' '.join(command)}\n  on {library or 'glibc'}: exit status {done.returncode}")
        self.seconds = self.used["seconds"]
        self.rss_kib, self.vm_kib = int(self.used["peak_kib"]), int(self.used["vm_kib"])


def median(values):
    return statistics.median(values)
