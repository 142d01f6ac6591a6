"""The results of bench/run: reading results.csv, and what is concluded from it."""
import csv
import math
import random
import statistics

RESOURCES = ("cpu_s", "peak_kib", "end_kib", "faults", "switches")
RESAMPLES = 500


class Results:
    """Values by (test, figure) and allocator, in the order of rounds. Test is (family, name)."""

    def __init__(self, file):
        self.head, self.values, self.units, self.live, self.failures = [], {}, {}, {}, []
        with open(file, newline="", encoding="utf-8") as f:
            lines = list(f)
        self.head = [line[2:].rstrip("\n") for line in lines if line.startswith("# ")]
        self.subject = next((line.partition(": ")[2] for line in self.head if line.startswith("subject: ")), "huddle")
        for row in csv.DictReader(line for line in lines if not line.startswith("# ")):
            test, value = (row["family"], row["test"]), float(row["value"])
            if row["figure"] == "failed":
                self.failures.append((test, row["allocator"]))
            elif row["figure"] == "live_kib":
                self.live[test] = value
            else:
                self.values.setdefault((test, row["figure"]), {}).setdefault(row["allocator"], []).append(value)
                self.units[test, row["figure"]] = row["unit"]
        self.allocators = list(dict.fromkeys(a for of in self.values.values() for a in of))

    def tests(self):
        return list(dict.fromkeys(test for test, _ in self.values))

    def figures(self, test):
        """What a test is about: not what it used."""
        return [figure for t, figure in self.values if t == test and figure not in RESOURCES]

    def median(self, test, figure, allocator):
        values = self.values.get((test, figure), {}).get(allocator)
        return statistics.median(values) if values else None

    def quartiles(self, test, figure, allocator):
        v = self.values[test, figure][allocator]
        return statistics.quantiles(v, n=4, method="inclusive") if len(v) > 1 else v * 3

    def peers(self):
        return [a for a in self.allocators if a != self.subject]

    def best(self, test, figure, among):
        """The allocator with the least median, and that."""
        known = [(m, a) for a in among if (m := self.median(test, figure, a)) is not None]
        return min(known)[::-1] if known else (None, None)

    def ratio(self, test, figure, a, b):
        """The ratio of the medians of a and b, with a 95 % bootstrap interval over rounds: (ratio, low, high)."""
        x, y = self.values[test, figure][a], self.values[test, figure][b]
        middle = quotient(statistics.median(x), statistics.median(y))
        if len(x) < 3 or len(y) < 3:
            every = sorted(quotient(p, q) for p in x for q in y)
            return middle, every[0], every[-1]
        r = random.Random(1)
        some = sorted(quotient(statistics.median(r.choices(x, k=len(x))), statistics.median(r.choices(y, k=len(y))))
                      for _ in range(RESAMPLES))
        return middle, some[int(0.025 * RESAMPLES)], some[int(0.975 * RESAMPLES) - 1]

    def verdict(self, test, figure, a, b):
        """"less", "more" or "same": a difference is one when 1 is outside of the interval."""
        _, low, high = self.ratio(test, figure, a, b)
        return "less" if high < 1 else "more" if low > 1 else "same"

    def means(self, allocator, figure=None, families=None):
        """Geometric mean over the tests of the ratio to the best allocator: of their own figures, or of one such as
        peak_kib."""
        logs = []
        for test in self.tests():
            if families and test[0] not in families:
                continue
            mine = []
            for f in [figure] if figure else self.figures(test):
                _, best = self.best(test, f, self.allocators)
                value = self.median(test, f, allocator)
                if best and value:
                    mine.append(math.log(value / best))
            if mine:
                logs.append(sum(mine) / len(mine))
        return math.exp(sum(logs) / len(logs)) if logs else None


def quotient(a, b):
    return a / b if b else 1.0 if a == b else math.inf
