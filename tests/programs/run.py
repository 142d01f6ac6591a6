"""Runs a job on glibc's malloc and then on huddle, and wants the same output, byte for byte.

usage: run.py LIBRARY JOB

JOB is a bash script in this directory. Lines `# needs: PROGRAM...` at its top name what it runs; when one is missing
the test is skipped (exit status 77), and says so. It is skipped too when the job ends with exit status 77 on glibc; the
last line of its output is the reason. The job runs in an empty directory of its own, with standard output and standard
error compared, and its exit status, which must be 0. Everything that it starts is preloaded too. On huddle it runs with
the default options, with one lane for all threads, and with as many lanes as there can be.
"""
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile

library, job = sys.argv[1:]
LIMIT_S = 100
SKIPPED = 77
OPTIONS = (None, "lanes=1", "lanes=64")


def needs():
    with open(job) as file:
        head = list(itertools.takewhile(lambda line: line.startswith("#"), file))
    words = [line.partition("needs:")[2].split() for line in head if "needs:" in line]
    if not words:
        sys.exit(f"{job} does not say what it needs")
    return [word for line in words for word in line]


def environment_for(library, options, directory):
    keep = ("PATH", "HOME", "LANG", "TERM", "USER")
    environment = {k: v for k, v in os.environ.items() if k in keep}
    environment |= {"LC_ALL": "C.UTF-8", "TZ": "UTC", "TMPDIR": directory, "PYTHONHASHSEED": "0", "PERL_HASH_SEED": "0"}
    if library:
        environment["LD_PRELOAD"] = library
    if options:
        environment["HUDDLE_OPTIONS"] = options
    return environment


def check_preload(environment):
    """Comparing glibc with glibc would pass: the library must be in the processes."""
    command = ["cat", "/proc/self/maps"]
    maps = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    if os.path.realpath(environment["LD_PRELOAD"]) not in maps:
        sys.exit(f"{library} is not loaded into programs")


def run(preloaded, options):
    with tempfile.TemporaryDirectory(prefix="huddle_programs_") as top:
        # A job can run programs as another user, who must get to the directory and to the library.
        os.chmod(top, 0o711)
        directory = os.path.join(top, "job")
        os.mkdir(directory)
        copy = shutil.copy(library, os.path.join(top, "libhuddle.so.0")) if preloaded else None
        environment = environment_for(copy, options, directory)
        if preloaded:
            os.chmod(copy, 0o755)
            check_preload(environment)
        child = subprocess.Popen(["bash", job], cwd=directory, env=environment, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        try:
            out, err = child.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            out, err = child.communicate()
            err += f"not done after {LIMIT_S} s\n".encode()
    # The directory has another name each time; nothing else may differ.
    return child.returncode, out.replace(top.encode(), b"DIR"), err.replace(top.encode(), b"DIR")


def first_difference(a, b):
    for number, (x, y) in enumerate(itertools.zip_longest(a.splitlines(), b.splitlines()), 1):
        if x != y:
            return f"line {number}: {x!r} on glibc, {y!r} on huddle"
    return "line ends differ"


def main():
    missing = [word for word in needs() if shutil.which(word) is None]
    if missing:
        print(f"skipped: {', '.join(missing)} not installed")
        return SKIPPED
    expected = run(False, None)
    if expected[0] == SKIPPED:
        lines = expected[1].decode(errors="replace").splitlines()
        print(f"skipped: {lines[-1] if lines else 'the job does not say why'}")
        return SKIPPED
    if expected[0] != 0 or not expected[1]:
        print(f"on glibc: exit status {expected[0]}, {len(expected[1])} bytes of output")
        print(expected[2].decode(errors="replace"))
        return 1
    failed = 0
    for options in OPTIONS:
        got = run(True, options)
        name = options or "default options"
        if got == expected:
            print(f"{name}: the same {len(got[1])} bytes of output")
            continue
        failed += 1
        print(f"{name}: exit status {got[0]}")
        for what, a, b in (("standard output", expected[1], got[1]), ("standard error", expected[2], got[2])):
            if a != b:
                print(f"{name}: {what} differs, {first_difference(a, b)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
