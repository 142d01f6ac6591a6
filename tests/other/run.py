"""Runs a program under a foreign tool, and wants its exit status and what it says.

usage: run.py STATUS WORDS [NAME=VALUE...] COMMAND...

STATUS is a number, or "fault" for any but 0. WORDS must be in the output. Skipped (77) when the command is missing.
"""
import os
import shutil
import subprocess
import sys

status, words, *command = sys.argv[1:]
environment = dict(os.environ)
while "=" in command[0]:
    name, _, value = command.pop(0).partition("=")
    environment[name] = value
if shutil.which(command[0]) is None:
    print(f"skipped: {command[0]} not installed")
    sys.exit(77)
done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)
output = done.stdout + done.stderr
print(output, f"exit status {done.returncode}")
is_right = done.returncode != 0 if status == "fault" else done.returncode == int(status)
sys.exit(0 if is_right and words in output else 1)
