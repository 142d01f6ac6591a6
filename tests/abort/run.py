"""Runs one faulty program in every way its source asks for, and wants it stopped exactly as it says.

usage: run.py LIBRARY SOURCE PROGRAM

The source begins with comment lines:

    // expect-abort: REGEX      first line: SIGABRT, and one line on standard error that the expression matches
    // expect-success           or instead: exit status 0 and nothing on standard error
    // each: WORD...            one run for each word, which is an argument; several such lines: for each combination.
                                The word `class` stands for the size of every size class
    // also: WORD...            more words of the line above
    // options: TEXT | TEXT     one run with each text as HUDDLE_OPTIONS; without this line, with none
    // expect-output: TEXT      a line that the program itself prints

Before its fault the program prints the line that it expects on standard output (faults.h), address and all. Standard
error must be that line and nothing else. Exit status 77 of the program: there is no such combination of arguments.
"""
import itertools
import os
import re
import resource
import signal
import subprocess
import sys


def class_sizes():
    """16-byte steps to 128, then eight to a doubling up to 32 KiB."""
    sizes = list(range(16, 129, 16))
    for base in (128 << i for i in range(8)):
        sizes += [base + base // 8 * i for i in range(1, 9)]
    return [str(size) for size in sizes]


class Source:
    def __init__(self, path):
        with open(path) as file:
            lines = [line[3:].rstrip("\n") for line in itertools.takewhile(lambda line: line.startswith("// "), file)]
        if not lines or not re.match("expect-(abort: .+|success$)", lines[0]):
            sys.exit(f"{path}: the first line does not say what is expected")
        self.pattern = lines[0].partition(": ")[2] if lines[0].startswith("expect-abort") else None
        self.arguments, self.options, self.output = [], [None], []
        for line in lines[1:]:
            key, _, rest = line.partition(": ")
            if key == "each":
                words = rest.split()
                self.arguments.append([w for word in words for w in (class_sizes() if word == "class" else [word])])
            elif key == "also":
                self.arguments[-1] += rest.split()
            elif key == "options":
                self.options = [text.strip() for text in rest.split("|")]
            elif key == "expect-output":
                self.output.append(rest)

    def runs(self):
        return itertools.product(self.options, itertools.product(*self.arguments))


def run(library, program, options, arguments):
    environment = {k: v for k, v in os.environ.items() if k != "HUDDLE_OPTIONS"}
    emulator = os.environ.get("HUDDLE_TEST_EMULATOR", "").split()
    if not emulator:
        environment["LD_PRELOAD"] = library
    if options is not None:
        environment["HUDDLE_OPTIONS"] = options
    command = [*emulator, program, *arguments]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired as late:
        return subprocess.CompletedProcess(late.cmd, "hangs", "", "")
    if emulator:  # which says that its program was aborted
        done.stderr = re.sub(r"^qemu: .*\n", "", done.stderr, flags=re.M)
    return done


def complaints(source, done):
    """What is wrong with how the program ended, as a list of texts."""
    said = done.stdout.splitlines()
    wanted = [line for line in said if line.startswith("huddle: ")]
    own = [line for line in said if not line.startswith("huddle: ")]
    errors = []
    if source.pattern is None:
        if done.returncode != 0 or done.stderr or own != source.output:
            errors.append(f"status {done.returncode}, output {own}, standard error {done.stderr[:500]!r}")
        return errors
    if done.returncode != -signal.SIGABRT:
        errors.append(f"expected SIGABRT, status is {done.returncode}")
    if len(wanted) != 1:
        errors.append(f"the program did not say what to expect: {done.stdout[:500]!r}")
    elif done.stderr != wanted[0] + "\n":
        errors.append(f"expected {wanted[0]!r}, standard error is {done.stderr[:500]!r}")
    elif not re.search(source.pattern, done.stderr):
        errors.append(f"expected a line with {source.pattern!r}: {done.stderr!r}")
    if own != source.output:
        errors.append(f"expected output {source.output}, is {own}")
    return errors


def main():
    library, path, program = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    source = Source(path)
    count = failed = 0
    for options, arguments in source.runs():
        done = run(library, program, options, arguments)
        if done.returncode == 77:
            continue
        count += 1
        errors = complaints(source, done)
        failed += bool(errors)
        if errors and failed <= 20:
            name = " ".join([os.path.basename(program), *arguments])
            print(f"{name}, HUDDLE_OPTIONS={options}: {'; '.join(errors)}")
    print(f"{count - failed} passed, {failed} failed")
    return 1 if failed or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
