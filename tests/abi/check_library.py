"""Checks libhuddle.so as a file: what it exports and needs, its thread-local storage, its instructions.

usage: check_library.py LIBRARY EXPORTS CHECK

EXPORTS lists the public symbols, one a line. CHECK is one of the functions below.
"""
import os
import re
import subprocess
import sys


def tool(*arguments):
    lines = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout.splitlines()
    if not lines:
        sys.exit(f"{' '.join(arguments)} printed nothing")
    return lines


def exports(library, listed):
    """exactly the listed symbols are exported, and all as functions"""
    with open(listed) as file:
        wanted = set(file.read().split())
    if len(wanted) < 40:
        sys.exit(f"{listed} is not the list of exported symbols")
    found = {}
    for line in tool("nm", "-D", "--defined-only", library):
        kind, name = line.split()[-2:]
        found[re.sub("@.*", "", name)] = kind
    errors = [f"exported, but not public: {name}" for name in sorted(set(found) - wanted)]
    errors += [f"public, but not exported: {name}" for name in sorted(wanted - set(found))]
    errors += [f"exported as {kind}: {name}" for name, kind in found.items() if kind not in "TWi"]
    return errors


def dynamic_section(library, listed):
    """the SONAME is libhuddle.so.0, and nothing but libc is needed"""
    errors, needed, soname = [], [], None
    for line in tool("readelf", "-dW", library):
        if "(NEEDED)" in line:
            needed.append(re.search(r"\[(.*)\]", line).group(1))
        if "(SONAME)" in line:
            soname = re.search(r"\[(.*)\]", line).group(1)
        if "(TEXTREL)" in line:
            errors.append("has text relocations")
        if "(RPATH)" in line or "(RUNPATH)" in line:
            errors.append("has a run path")
    if soname != "libhuddle.so.0":
        errors.append(f"SONAME is {soname}")
    extra = [name for name in needed if not re.match(r"(libc\.so\.6|ld-linux.*\.so\.\d)$", name)]
    return errors + [f"needs {name}" for name in extra]


def undefined_symbols(library, listed):
    """what would be called back into malloc is not used, and what is needed of C++ is weak"""
    errors = []
    for line in tool("nm", "-D", "--undefined-only", library):
        kind, name = line.split()[-2:]
        name = re.sub("@.*", "", name)
        if re.match(r"(_ZS|_ZN|_ZT|__cxa|__gxx|_Unwind)", name) and kind not in "wv":
            errors.append(f"{name} is not weak")
        if name in ("__tls_get_addr", "malloc", "free", "__libc_malloc", "sbrk", "mmap", "printf", "snprintf"):
            errors.append(f"refers to {name}")
    return errors


def thread_local_storage(library, listed):
    """below 64 bytes, initial-exec"""
    errors, segments = [], 0
    for line in tool("readelf", "-lW", library):
        fields = line.split()
        if fields[:1] == ["TLS"]:
            segments += 1
            if int(fields[5], 16) >= 64:
                errors.append(f"{int(fields[5], 16)} bytes of thread-local storage")
        if fields[:1] == ["GNU_STACK"] and "E" in fields[6]:
            errors.append("wants an executable stack")
        if fields[:1] == ["LOAD"] and "RWE" in line.replace(" ", ""):
            errors.append("has a segment that is writable and executable")
    if segments != 1:
        errors.append(f"{segments} TLS segments")
    for line in tool("readelf", "-rW", library):
        if re.search(r"R_X86_64_(DTPMOD|DTPOFF|TLSDESC)|R_AARCH64_TLS(DESC|_DTPMOD|_DTPREL)", line):
            errors.append(f"not initial-exec: {line}")
    return errors


BEYOND_BASELINE = re.compile(
    r"\b(shlx|sarx|shrx|rorx|andn|bextr|mulx|pdep|pext|bzhi|blsr|blsi|blsmsk|lzcnt|popcnt|crc32|movbe|pshufb|pclmul\w*|"
    r"adcx|adox|aes\w+|v[a-z]\w+)\b")
NOT_VECTOR = {"verr", "verw", "vmcall"}


def instructions(library, listed):
    """baseline x86-64 only; tzcnt is allowed, being how binutils shows the `rep bsf` that old processors run as bsf"""
    errors, count = [], 0
    with open(library, "rb") as file:
        if file.read(20)[18:] != bytes([62, 0]):  # EM_X86_64
            sys.exit(77)
    for line in tool("objdump", "-d", "--no-show-raw-insn", library):
        fields = line.split("\t")
        if len(fields) < 2:
            continue
        count += 1
        code = fields[-1].split("#")[0]
        mnemonic = code.split()[0] if code.split() else ""
        if re.search(r"%[yz]mm", code) or BEYOND_BASELINE.match(mnemonic) and mnemonic not in NOT_VECTOR:
            errors.append(f"not baseline x86-64: {line.strip()}")
    if count < 1000:
        errors.append(f"objdump showed only {count} instructions")
    return errors


def main():
    library, listed, check = sys.argv[1:]
    errors = globals()[check](library, listed)
    for error in errors:
        print(error)
    print(f"{check}: {'failed' if errors else 'passed'}")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
