"""No thread waits while another one gives memory back: each such call to the system is made to take 200 ms.

usage: purge_delays.py LIBRARY PROGRAM SCENARIO STEP [OPTIONS]

Only every STEP-th call is slowed down. The trace has a getppid of each worker after every 50 of its pairs of malloc
and free: in each slow call of another thread a worker that is in none itself gets at least 100 pairs done. One that
waits does none, however slow the machine is.
"""
import os
import re
import subprocess
import sys
import tempfile

MARKS_LEAST = 3  # two whole distances of 50 pairs
library, program, scenario, step, *options = sys.argv[1:]
calls = "madvise,process_madvise,munmap,mremap"
with tempfile.TemporaryDirectory() as directory:
    log = os.path.join(directory, "log")
    command = ["strace", "-f", "-qq", "-e", "signal=none", "-e", f"trace={calls},getppid",
               "-e", f"inject={calls}:delay_enter=200000:when=1+{step}",
               "-E", f"LD_PRELOAD={library}", "-E", f"HUDDLE_OPTIONS={','.join(options)}", "-o", log, program, scenario]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        print("skipped: strace is not installed")
        sys.exit(77)
    print(done.stdout + done.stderr)
    if "PTRACE" in done.stderr or "inject" in done.stderr:
        print("skipped: strace cannot trace, or slow down, a program here")
        sys.exit(77)
    if done.returncode != 0:
        sys.exit(1)
    with open(log) as file:
        lines = file.read().splitlines()

marks = {}    # of each worker, the numbers of lines
started = {}  # calls that have not ended: by thread
slow = []     # (thread, first line, last line, text)
for number, line in enumerate(lines):
    thread, text = re.match(r"(\d+) +(.*)", line).groups()
    if text.startswith("getppid"):
        marks.setdefault(thread, []).append(number)
        continue
    if text.endswith("<unfinished ...>"):
        started[thread] = number, text
    elif "(DELAYED)" in text:
        first, begun = started.get(thread, (number, text)) if text.startswith("<...") else (number, text)
        slow.append((thread, first, number, begun))

looked_at, own, least, failures = 0, 0, None, 0
for thread, first, last, text in slow:
    for worker, at in marks.items():
        if worker == thread:
            own += 1
        is_in_one = any(t == worker and a < last and first < b for t, a, b, _ in slow)
        if worker == thread or is_in_one or first < at[0] or last > at[-1]:
            continue
        count = sum(first < mark < last for mark in at)
        looked_at += 1
        least = count if least is None else min(least, count)
        if count < MARKS_LEAST:
            failures += 1
            print(f"thread {worker} did {count} x 50 pairs while {thread} was in {text[:100]}")
print(f"{len(slow)} slow calls, {own} of them by workers; {looked_at} times another worker looked at, "
      f"each did {least} x 50 pairs at least; {failures} waited")
sys.exit(0 if looked_at >= 2 and failures == 0 else 1)
