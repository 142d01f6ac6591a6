# needs: python3
# JSON, cyclic garbage, threads, processes, large buffers, regular expressions and the standard containers.
set -eu
cat >job.py <<'PROGRAM'
import array, collections, gc, hashlib, json, queue, random, re, subprocess, sys, threading, zlib

rng = random.Random(1)
say = lambda *what: print(*what, flush=True)

def tree(depth):
    if depth == 0:
        texts = ["x" * rng.randrange(60), "\u00e4\u4e2d\U0001f600"]
        return rng.choice([None, True, rng.random(), rng.randrange(10**12), *texts])
    if depth % 2:
        return {f"key{rng.randrange(1000)}": tree(depth - 1) for _ in range(5)}
    return [tree(depth - 1) for _ in range(6)]

text = json.dumps([tree(6) for _ in range(5)], sort_keys=True)
say(len(text), hashlib.sha256(text.encode()).hexdigest())
say(json.dumps(json.loads(text), sort_keys=True) == text)

class Node:
    def __init__(self, n):
        self.data, self.other = [n] * (n % 50), None

def garbage(count):
    nodes = [Node(i) for i in range(count)]
    for i, node in enumerate(nodes):
        node.other = nodes[(i * 31 + 7) % count]
    return sum(len(node.data) for node in nodes)

gc.collect()
say([garbage(12000) for _ in range(4)], gc.collect() > 0)

work, done = queue.Queue(), queue.Queue()

def worker():
    while (item := work.get()) is not None:
        data = bytes(item % 251 for _ in range(item * 10))
        done.put((item, zlib.crc32(zlib.decompress(zlib.compress(data, 6)))))

threads = [threading.Thread(target=worker) for _ in range(6)]
for t in threads: t.start()
for i in range(400): work.put(i)
for t in threads: work.put(None)
for t in threads: t.join()
results = sorted(done.get() for _ in range(400))
say(hashlib.sha256(repr(results).encode()).hexdigest())

say([subprocess.run([sys.executable, "-c", f"print(sum(range({i}000)))"], capture_output=True, text=True).stdout.strip()
     for i in range(5)])

buffer = bytearray()
for i in range(3000):
    buffer += bytes([i % 256]) * (i % 1500)
say(len(buffer), hashlib.md5(buffer).hexdigest())
numbers = array.array("d", (rng.random() for _ in range(200000)))
say(f"{sum(sorted(numbers)):.6f}")
counter = collections.Counter(re.findall(r"[a-z]{3}", text))
say(counter.most_common(5))
strings = {str(i) * (i % 9 + 1): i for i in range(60000)}
for i in range(0, 60000, 3): del strings[str(i) * (i % 9 + 1)]
say(len(strings), sum(strings.values()), 7**5000 % 10**20)
PROGRAM
python3 job.py
