#!/usr/bin/env python3
"""check_layout.py HUDDLE TABLES: `huddle layout` reproduces the tables of Mozilla bug 1980047 to the digit; the packed
encodings, which are not in them, against a search of all run sizes here; and what is beside huddle's runs adds up."""
import csv
import subprocess
import sys

HUDDLE, TABLES = sys.argv[1:]
ENCODINGS = ["bytemap", "bitmap", "u8", "u16", "p12", "p10"]
COLUMNS = "encoding,size_bytes,regions_per_run,run_kib,overhead_percent,theoretical_best_percent"


def layout(*arguments):
    output = subprocess.run([HUDDLE, "layout", *arguments], check=True, capture_output=True, text=True).stdout
    return output.splitlines()


def rows_of(lines):
    assert lines[0] == COLUMNS, lines[0]
    return list(csv.DictReader(lines))


def check_published():
    with open(TABLES) as f:
        published = [line.rstrip("\n") for line in f if not line.startswith("#")]
    assert len(published) == 1 + 135
    for encoding in ("bitmap", "u8", "u16"):
        wanted = [published[0]] + [row for row in published if row.startswith(encoding + ",")]
        assert len(wanted) == 1 + 45
        assert layout("--placement", "inrun", "--encoding", encoding, "--csv") == wanted, encoding
    everything = layout("--placement=inrun", "--csv")
    assert everything[: len(published)] == published and len(everything) == 1 + 5 * 45


def check_packed(encoding, fields, most):
    for row in rows_of(layout("--placement", "inrun", "--encoding", encoding, "--csv")):
        size, cells, run = int(row["size_bytes"]), int(row["regions_per_run"]), int(row["run_kib"]) * 1024

        def fill(length):
            return max(n for n in range(most + 1) if 40 + -(-n // fields) * 8 + n * size <= length)

        candidates = []
        for length in range(4096, most * (size + 8) + 8192, 4096):
            n = fill(length)
            if n == 0:
                continue
            off = length - n * size
            candidates.append((off / (n * size), length, n))
            if off / length <= 0.016 or (off > size and off / length <= 0.024):
                candidates = [candidates[-1]]
                break
            if n == most:
                break
        overhead, length, n = min(candidates)
        assert (cells, run) == (n, length), (row, n, length)
        assert row["overhead_percent"] == f"{100 * overhead:.2f}", row
        assert row["theoretical_best_percent"] == f"{100 * 8 / fields / size:.2f}", row


def check_side():
    rows = rows_of(layout("--csv"))
    for name in ENCODINGS + ["libpas", "PartitionAlloc"]:
        mine = [row for row in rows if row["encoding"] == name]
        assert len(mine) == 72, name
        for row in mine:
            size, cells, run = int(row["size_bytes"]), int(row["regions_per_run"]), int(row["run_kib"]) * 1024
            left = run - cells * size
            assert left >= 0 and (left < size or (name, cells) == ("p12", 4092)), row
            notes = float(row["overhead_percent"]) / 100 * cells * size - left
            least = float(row["theoretical_best_percent"]) / 100 * cells * size
            assert notes > least * 0.9 - run * 1e-4, row
            # A line for the record, and what rounding makes of it.
            assert notes < max(least, cells / 8) * 3 + 8192, row
        only = rows_of(layout("--encoding", name, "--csv")) if name in ENCODINGS else mine
        assert [row for row in only if row["encoding"] == name] == mine, name
    first = layout("--encoding", "bytemap")
    assert first[0].split() == ["encoding", "bytes", "regions", "KiB", "overhead", "%", "best", "%"], first[0]
    assert first[1].split() == list(rows[0].values()), first[1]


check_published()
check_packed("p12", 5, 4094)
check_packed("p10", 6, 1022)
check_side()
