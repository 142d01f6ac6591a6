"""What the system says of CPUs: none, one, many, nothing. There are as many lanes, from 1 to 64, and programs run.

usage: cpu_count.py LIBRARY PROBE PROGRAM [ARGUMENT...]

PROBE prints the number of lanes. strace answers in the place of sched_getaffinity; skipped (77) where it cannot.
"""
import os
import subprocess
import sys

library, probe, *program = sys.argv[1:]
ANSWERS = {  # name: (what strace does, lanes)
    "no CPU": ("retval=8:poke_exit=@arg3=" + "00" * 8, 1),
    "no bytes": ("retval=0", 1),
    "one CPU": ("retval=8:poke_exit=@arg3=01" + "00" * 7, 1),
    "3 CPUs, far apart": ("retval=16:poke_exit=@arg3=01" + "00" * 6 + "80" + "00" * 7 + "80", 3),
    "64 CPUs": ("retval=8:poke_exit=@arg3=" + "ff" * 8, 64),
    "1024 CPUs": ("retval=128:poke_exit=@arg3=" + "ff" * 128, 64),
    "4096 CPUs, more than asked for": ("error=EINVAL", None),
    "refused": ("error=EPERM", 1),
    "unknown": ("error=ENOSYS", 1),
}
failed = False


def run(before, command):
    environment = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "HUDDLE_OPTIONS")}
    done = subprocess.run(before + command, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def check(name, before, lanes):
    global failed
    first, second = run(before, [probe, "lanes"]), run(before, program)
    is_lanes_right = 1 <= int(first[1] or 0) <= 64 if lanes is None else first[1] == str(lanes)
    is_right = first[0] == 0 and is_lanes_right and second[0] == 0
    failed |= not is_right
    print(f"{name}: {first[1]} lanes; status {second[0]}{'' if is_right else ' - WRONG: ' + str((first, second))}")


try:
    status, _, error = run(["strace", "-f", "-qq", "-e", "trace=sched_getaffinity", "-e", "signal=none", "-e",
                            "inject=sched_getaffinity:" + ANSWERS["no CPU"][0]], ["/bin/true"])
except FileNotFoundError:
    status, error = 1, "strace is not installed"
if status != 0:
    print(f"skipped: strace cannot do it here: {error}")
    sys.exit(77)
for name, (what, lanes) in ANSWERS.items():
    check(name, ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=sched_getaffinity", "-e", "signal=none", "-e",
                 f"inject=sched_getaffinity:{what}", "-E", f"LD_PRELOAD={library}"], lanes)
cpus = sorted(os.sched_getaffinity(0))
for some in {(cpus[0],), tuple(cpus)}:
    os.sched_setaffinity(0, some)
    check(f"allowed on {len(some)}", ["env", f"LD_PRELOAD={library}"], min(len(some), 64))
sys.exit(1 if failed else 0)
