"""The packed encodings change a mark by one atomic OR or AND: no loop, no compare-and-swap, no result.

usage: check_instructions.py SOURCE_TREE p12|p10 x86_64|aarch64 COMPILER OBJDUMP

Compiles marks.c and looks at each of its functions. aarch64 is compiled for machines with LSE (armv8.1-a).
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

tree, encoding, machine, compiler, objdump = sys.argv[1:]
here = os.path.dirname(os.path.abspath(__file__))
for tool in (compiler, objdump):
    if shutil.which(tool) is None:
        print(f"skipped: {tool} is not installed")
        sys.exit(77)

X86 = {"or": r"\block or", "and": r"\block and", "forbidden": r"cmpxchg|xchg|\block (?!or|and)"}
ARM = {"or": r"\b(st|ld)set", "and": r"\b(st|ld)clr", "forbidden": r"\b(ldxr|ldaxr|stxr|stlxr|cas)|\bbl\b"}
patterns = {"x86_64": X86, "aarch64": ARM}[machine]
WANTED = {"make_live": {"and"}, "make_cached": {"or"}, "make_returning": {"or"}, "make_free": {"and", "or"},
          "make_last": {"and"}}

with tempfile.TemporaryDirectory() as directory:
    built = os.path.join(directory, "marks.o")
    flags = ["-O2", "-std=gnu11", f"-I{tree}/src", f"-I{tree}/include", "-D_GNU_SOURCE", "-DHUDDLE_AUDIT=0",
             f'-DHUDDLE_ENCODING_FILE="run/encoding_{encoding}.h"']
    if machine == "aarch64":
        flags.append("-march=armv8.1-a")
    subprocess.run([compiler, *flags, "-c", "-o", built, os.path.join(here, "marks.c")], check=True)
    listing = subprocess.run([objdump, "-d", "--no-show-raw-insn", built], check=True, capture_output=True, text=True).stdout

functions = dict(re.findall(r"^[0-9a-f]+ <(\w+)>:\n((?:.+\n)*)", listing, re.M))
failed = 0
for name, wanted in WANTED.items():
    code = functions.get(name, "")
    found = {kind for kind in ("or", "and") if re.search(patterns[kind], code)}
    bad = re.findall(patterns["forbidden"], code)
    back = [int(to, 16) <= int(at, 16) for at, to in re.findall(r"^ *([0-9a-f]+):\tj?b?\w+ +([0-9a-f]+) <", code, re.M)]
    if found != wanted or bad or any(back):
        failed += 1
        print(f"{name}: {sorted(found)} where {sorted(wanted)} is wanted, forbidden {bad}, jumps back {any(back)}\n{code}")
print(f"{len(WANTED) - failed} passed, {failed} failed")
sys.exit(1 if failed else 0)
