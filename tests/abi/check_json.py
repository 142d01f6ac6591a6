"""huddle_stats_json writes one JSON object and a newline, whose figures are those of huddle_stats.

usage: check_json.py LIBRARY PROBE
"""
import json
import os
import subprocess
import sys

library, probe = sys.argv[1:]


def main():
    emulator = os.environ.get("HUDDLE_TEST_EMULATOR", "").split()
    environment = dict(os.environ) if emulator else dict(os.environ, LD_PRELOAD=library)
    environment.pop("HUDDLE_OPTIONS", None)
    done = subprocess.run([*emulator, probe, "json"], env=environment, capture_output=True, text=True, check=True)
    report, _, rest = done.stdout.partition("\n")
    live_bytes, live_blocks = map(int, rest.split())
    data = json.loads(report)
    errors = []
    if not isinstance(data, dict):
        errors.append("the report is not an object")
    elif (data.get("live_bytes"), data.get("live_blocks")) != (live_bytes, live_blocks):
        errors.append(f"live_bytes and live_blocks are not {live_bytes} and {live_blocks}: {report[:300]}")
    elif not data.get("classes") or not isinstance(data["classes"], list):
        errors.append(f"no list of classes: {report[:300]}")
    if done.stderr:
        errors.append(f"standard error: {done.stderr}")
    for error in errors:
        print(error)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
