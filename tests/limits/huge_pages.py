"""Transparent huge pages: what a program occupies with the system's setting, and with "always" as against "never".

usage: huge_pages.py as_set|always LIBRARY LIMITS_PROGRAM

as_set: unless the setting is "always", no block of a small program lies in a huge page, and the larger ones take little
more than without them (option huge_mib=0). always: at most 1.3 times what "never" takes. That
changes the system's setting for some seconds, and is done only if HUDDLE_TEST_SYSTEM=1 allows it and the user may; a
process of its own puts it back whatever becomes of this one. Otherwise skipped (77).
"""
import os
import re
import subprocess
import sys

SETTING = "/sys/kernel/mm/transparent_hugepage/enabled"
MOST = 1.3
MOST_BY_OPTION = 1.05
PROGRAMS = {"small": 100, "medium": 60000}
mode, library, program = sys.argv[1:]


def resident(kib, options=""):
    """Resident kB and kB in huge pages, with all blocks and after most were freed."""
    environment = dict(os.environ, LD_PRELOAD=library, HUDDLE_OPTIONS=options)
    done = subprocess.run([program, "sparse", str(kib)], env=environment, capture_output=True, text=True, check=True)
    return [int(n) for n in re.findall(r"(\d+) kB", done.stdout)]


def setting():
    with open(SETTING) as file:
        return re.search(r"\[(\w+)\]", file.read()).group(1)


def change(value):
    with open(SETTING, "w") as file:
        file.write(value)


def guard(before):
    """Starts a process that puts the setting back when this one has ended, or has closed what is returned."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.close(writing)
            os.read(reading, 1)
            change(before)
        os._exit(0)
    os.wait()
    os.close(reading)
    return writing


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def check_as_set():
    before = setting()
    if before == "always":
        skip("the setting is always")
    is_right = True
    for name, kib in PROGRAMS.items():
        without, with_them = resident(kib, "huge_mib=0"), resident(kib)
        print(f"{before}, {name}: without {without}, with {with_them}")
        is_right &= without[1] == without[3] == 0 and (name != "small" or with_them[1] == 0)
        is_right &= all(with_them[i] <= MOST_BY_OPTION * without[i] for i in (0, 2))
    return is_right


def check_always():
    if os.environ.get("HUDDLE_TEST_SYSTEM") != "1" or not os.access(SETTING, os.W_OK):
        skip("HUDDLE_TEST_SYSTEM=1, and root, would allow to change the system's setting")
    before, seen = setting(), {}
    end = guard(before)
    try:
        for value in ("never", "always"):
            change(value)
            seen[value] = {name: resident(kib) for name, kib in PROGRAMS.items()}
    finally:
        change(before)
        os.close(end)
    is_right = True
    for name in PROGRAMS:
        never, always = seen["never"][name], seen["always"][name]
        print(f"{name}: never {never}, always {always}")
        is_right &= always[0] <= MOST * never[0] and always[2] <= MOST * never[2]
    return is_right


if not os.path.exists(SETTING):
    skip("the kernel has no transparent huge pages")
sys.exit(0 if {"as_set": check_as_set, "always": check_always}[mode]() else 1)
