"""HUDDLE_OPTIONS from outside: every option of options.def, and one line for each part that is wrong.

usage: check_options.py LIBRARY PROBE STATIC_PROBE OPTIONS_DEF
"""
import grp
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

library, probe, static_probe, table = sys.argv[1:]
emulator = os.environ.get("HUDDLE_TEST_EMULATOR", "").split()
failures = []


def run(options, *arguments, program=None, preload=True, **user):
    environment = {k: v for k, v in os.environ.items() if k not in ("HUDDLE_OPTIONS", "LD_PRELOAD")}
    if preload and not emulator:
        environment["LD_PRELOAD"] = library
    if options is not None:
        environment["HUDDLE_OPTIONS"] = options
    command = [*emulator, program or probe, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, **user)
    check(done.returncode == 0, f"HUDDLE_OPTIONS={options}: exit status {done.returncode}")
    return done.stdout, done.stderr


def check(right, what):
    if not right:
        failures.append(what)
        print(what)


def expect(options, key, value, wrong_parts=()):
    """With these options the key has the value, and standard error has one line for each wrong part, naming it."""
    out, err = run(options, "option", key)
    check(out == f"{key}={value}\n", f"HUDDLE_OPTIONS={options}: expected {key}={value}, is {out!r}")
    lines = err.splitlines()
    check(len(lines) == len(wrong_parts) and (err == "" or err.endswith("\n")),
          f"HUDDLE_OPTIONS={options}: {len(wrong_parts)} lines expected on standard error, there are {lines}")
    for line, part in zip(lines, wrong_parts):
        check(line.startswith("huddle: ") and part in line,
              f"HUDDLE_OPTIONS={options}: {line!r} does not name {part!r}")


def read_table():
    with open(table) as file:
        text = file.read()
    numbers = re.findall(r"^NUMBER\((\w+), (\d+), (\d+), (\d+),", text, re.M)
    texts = re.findall(r"^TEXT\((\w+), (\d+),", text, re.M)
    choices = re.findall(r'^CHOICE\((\w+), "([a-z|]+)",', text, re.M)
    if len(numbers) + len(choices) + len(texts) != len(re.findall(r"^[A-Z]+\(", text, re.M)) or len(numbers) < 5 or not texts:
        sys.exit(f"{table} cannot be read as a list of options")
    return ([(key, *map(int, rest)) for key, *rest in numbers], [(key, words.split("|")) for key, words in choices],
            [(key, int(size)) for key, size in texts])


def check_numbers(numbers):
    for key, initial, least, most in numbers:
        expect(None, key, initial)
        expect("", key, initial)
        for value in {least, most, initial}:
            expect(f"{key}={value}", key, value)
        outside = {most + 1, 2**32, 2**64 + initial} | ({least - 1} if least > 0 else set())
        for text in ["", "x", "-1", f"{initial}x", f" {initial}", "0x1", "1.5", *map(str, sorted(outside))]:
            expect(f"{key}={text}", key, initial, [f"{key}={text}"])
        expect(key, key, initial, [key])


def check_choices(choices):
    for key, words in choices:
        expect(None, key, words[0])
        for word in words:
            expect(f"{key}={word}", key, word)
        for text in ["", "x", "0", words[1] + "x", words[1][:-1], "|".join(words), words[1].upper()]:
            expect(f"{key}={text}", key, words[0], [f"{key}={text}"])


def check_texts(texts):
    for key, size in texts:
        expect(None, key, "")
        expect(f"{key}=", key, "")
        too_long = "x" * size
        expect(f"{key}={too_long}", key, "", [key])


def check_mixtures():
    expect("nonsense=1", "lanes", 0, ["nonsense=1"])
    expect("nonsense", "lanes", 0, ["nonsense"])
    expect("=1", "lanes", 0, ["=1"])
    expect("lane=1", "lanes", 0, ["lane=1"])
    expect("laness=1", "lanes", 0, ["laness=1"])
    expect("LANES=1", "lanes", 0, ["LANES=1"])
    expect("lanes=2,", "lanes", 2)
    expect(",,lanes=2", "lanes", 2)
    expect("lanes=2,lanes=3", "lanes", 3)
    expect("lanes=2,lanes=x", "lanes", 2, ["lanes=x"])
    expect("shuffle=1,lanes=2,purge_ms=5", "lanes", 2)
    expect("nonsense=1,lanes=2,shuffle=7", "lanes", 2, ["nonsense=1", "shuffle=7"])
    expect("nonsense=1,lanes=2,shuffle=7", "shuffle", 0, ["nonsense=1", "shuffle=7"])
    expect("n" * 5000 + "=1", "lanes", 0, ["n" * 100])


def check_lanes():
    cpus = len(os.sched_getaffinity(0))
    for options, lanes in ((None, min(cpus, 64)), ("lanes=1", 1), ("lanes=2", 2), ("lanes=64", 64)):
        out, err = run(options, "lanes")
        check((out, err) == (f"{lanes}\n", ""), f"HUDDLE_OPTIONS={options}: {lanes} lanes expected, {out!r} {err!r}")


def check_shuffle():
    """Without it each process has the same order, with it each one another: at start-up, or set later."""
    for options, more, differs in (("shuffle=0", (), False), ("shuffle=1", (), True), (None, ("shuffle",), True)):
        orders = [run(options, "order", *more)[0].split() for _ in range(3)]
        check(all(len(order) == len(set(order)) == 64 for order in orders), f"{options} {more}: not 64 blocks: {orders}")
        check(len(set(map(tuple, orders))) == (3 if differs else 1), f"{options} {more}: orders of 3 processes: {orders}")


def check_silence():
    if emulator:
        return # they are this machine's
    for command in (["/bin/true"], ["/bin/sh", "-c", "echo a | cat"], ["/bin/ls", "/"], [sys.executable, "-c", "pass"]):
        err = run(None, *command[1:], program=command[0])[1]
        check(err == "", f"{command}: {err!r} on standard error")


def check_stats_at_exit(directory):
    path = os.path.join(directory, "stats.json")
    for count in (1, 2):
        run(f"stats={path}", "option", "lanes")
        with open(path) as file:
            reports = [json.loads(line) for line in file.read().splitlines()]
        check(len(reports) == count, f"stats=FILE: {len(reports)} reports after {count} runs")
    err = run("stats=-", "option", "lanes")[1]
    check(isinstance(json.loads(err), dict), f"stats=-: {err!r} on standard error")
    run(f"stats={directory}/none/such", "option", "lanes")


def check_ignored(copy, **user):
    """The program at `copy`, which has other rights than its caller, ignores the variable. Says so if it has not."""
    if run(None, "secure", program=copy, preload=False, **user)[0] != "1\n":
        print(f"not tried: {os.path.basename(copy)} does not get other rights here")
        return
    out, err = run("nonsense=1,lanes=7", "option", "lanes", program=copy, preload=False, **user)
    check((out, err) == ("lanes=0\n", ""), f"under AT_SECURE the variable was read: {out!r} {err!r}")


def check_secure(directory):
    """Programs with the rights of another group or user; says why when that cannot be tried."""
    copy = os.path.join(directory, "set-group-id")
    shutil.copy(static_probe, copy)
    groups = [g.gr_gid for g in grp.getgrall()] if os.geteuid() == 0 else os.getgroups()
    others = [g for g in groups if g != os.getegid()]
    if others:
        os.chown(copy, -1, others[0])
        os.chmod(copy, 0o2755)
    check_ignored(copy)
    if os.geteuid() != 0 or emulator:
        print("not tried: set-user-id, by another user than root or in an emulator")
    else:
        copy = os.path.join(directory, "set-user-id")
        shutil.copy(static_probe, copy)
        os.chown(copy, 1, -1)
        os.chmod(copy, 0o4755)
        os.chmod(directory, 0o711)
        try:
            check_ignored(copy, user=65534, group=65534, extra_groups=[])
        except PermissionError:
            print("not tried: set-user-id, in a directory that others may not enter")
    out, err = run("lanes=7", "option", "lanes", program=static_probe, preload=False)
    check((out, err) == ("lanes=7\n", ""), f"a static program does not read the variable: {out!r} {err!r}")


def main():
    numbers, choices, texts = read_table()
    check_numbers(numbers)
    check_choices(choices)
    check_texts(texts)
    check_mixtures()
    check_lanes()
    check_shuffle()
    check_silence()
    with tempfile.TemporaryDirectory(dir=os.path.dirname(probe)) as directory:
        check_stats_at_exit(directory)
        check_secure(directory)
    print(f"{len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
