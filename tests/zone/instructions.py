"""The hot paths of huddle/zone.h, as the compiler makes them: instructions.py COMPILER INCLUDE

An allocation of a constant size is at most 8 instructions up to the return and calls nothing; a zeroed one of up to 64
bytes calls nothing either, and stores the zeros itself.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

ALLOC_MOST = 8
SIZES = [1, 8, 16, 24, 64, 100, 1000, 4096]
ZEROED = [1, 8, 16, 24, 48, 64]
CALL = re.compile(r"^(call|bl|blr)\b")


def disassemble(compiler, include):
    source = '#include "huddle/zone.h"\n'
    source += "".join(f"void *alloc_{n}(huddle_zone_t *z) {{ return huddle_zone_alloc(z, {n}); }}\n" for n in SIZES)
    source += "".join(f"void *zalloc_{n}(huddle_zone_t *z) {{ return huddle_zone_zalloc(z, {n}); }}\n" for n in ZEROED)
    with tempfile.TemporaryDirectory() as directory:
        c, o = pathlib.Path(directory, "zone.c"), pathlib.Path(directory, "zone.o")
        c.write_text(source)
        subprocess.run([compiler, "-O2", f"-I{include}", "-c", c, "-o", o], check=True)
        text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", o], check=True, text=True, capture_output=True).stdout
    functions = {}
    for line in text.splitlines():
        if match := re.match(r"[0-9a-f]+ <(\w+)>:", line):
            functions[match[1]] = []
        elif match := re.match(r"\s+[0-9a-f]+:\s+(.*)", line):
            functions[list(functions)[-1]].append(match[1].strip())
    return functions


def hit_path(instructions):
    """Up to the return; the branches to the slow path are not taken."""
    path = []
    for instruction in instructions:
        path.append(instruction)
        if instruction.startswith("ret"):
            return path
    sys.exit("a function without return: " + "; ".join(instructions))


def main():
    functions = disassemble(*sys.argv[1:])
    wrong = []
    for n in SIZES:
        path = hit_path(functions[f"alloc_{n}"])
        print(f"alloc of {n}: {len(path) - 1} instructions and the return")
        if len(path) - 1 > ALLOC_MOST or any(CALL.match(i) for i in path):
            wrong.append(path)
    for n in ZEROED:
        path = hit_path(functions[f"zalloc_{n}"])
        stores = sum("(%rax)" in i.split(",")[-1] or i.startswith(("stp", "str")) for i in path)
        print(f"zalloc of {n}: {len(path) - 1} instructions and the return")
        if any(CALL.match(i) for i in path) or stores == 0:
            wrong.append(path)
    for path in wrong:
        print("\n".join(path) + "\n", file=sys.stderr)
    sys.exit(len(wrong))


main()
