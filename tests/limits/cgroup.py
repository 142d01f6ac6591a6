"""Runs a program in a control group of its own, below the caller's, with a limit on its memory; of version 1 or 2.

usage: cgroup.py MIB [NAME=VALUE...] COMMAND...

The group is removed afterwards, and nothing else is changed. Skipped (77) where none can be made: that takes rights,
and with version 2 a parent that hands the memory controller on.
"""
import os
import subprocess
import sys


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def read(*parts):
    with open(os.path.join(*parts)) as file:
        return file.read()


def find_parent():
    """The directory of the caller's group that has the memory controller, and its files for limit, peak and swap."""
    groups = dict(line.split(":", 2)[1:] for line in read("/proc/self/cgroup").splitlines())
    mounts = [line.split() for line in read("/proc/self/mounts").splitlines()]
    for _, point, kind, options, *_ in mounts:
        if kind == "cgroup" and "memory" in options.split(","):
            path = next((p for names, p in groups.items() if "memory" in names.split(",")), "/")
            return point + path, ("memory.limit_in_bytes", "memory.max_usage_in_bytes", "memory.memsw.limit_in_bytes")
    for _, point, kind, *_ in mounts:
        if kind == "cgroup2" and "memory" in read(point, "cgroup.controllers").split():
            parent = point + groups.get("", "/")
            if "memory" not in read(parent, "cgroup.subtree_control").split():
                skip("the caller's control group does not hand the memory controller on")
            return parent, ("memory.max", "memory.peak", "memory.swap.max")
    return skip("no memory controller")


mib, *command = sys.argv[1:]
environment = dict(os.environ)
while "=" in command[0]:
    name, _, value = command.pop(0).partition("=")
    environment[name] = value
try:
    parent, (limit, peak, swap) = find_parent()
    group = os.path.join(parent, f"huddle-test-{os.getpid()}")
    os.mkdir(group)
except OSError as error:
    skip(f"no control group can be made: {error}")
try:
    try:
        with open(os.path.join(group, limit), "w") as file:
            file.write(str(int(mib) << 20))
        if os.path.exists(os.path.join(group, swap)):
            with open(os.path.join(group, swap), "w") as file:
                file.write("0" if swap == "memory.swap.max" else str(int(mib) << 20))
        own = os.open(os.path.join(group, "cgroup.procs"), os.O_WRONLY)
    except OSError as error:
        skip(f"no limit can be set: {error}")
    done = subprocess.run(command, env=environment, check=False, preexec_fn=lambda: os.write(own, b"0"))
    if os.path.exists(os.path.join(group, peak)):
        print(f"limit {mib} MiB, the group had {int(read(group, peak)) >> 10} KiB at most; status {done.returncode}")
finally:
    os.rmdir(group)
sys.exit(0 if done.returncode == 0 else 1)
