# needs: memcached python3
# A server with four threads and four clients that set, get, change and delete values of many sizes, in two rounds with a
# flush between them; all that they get, and what is left.
set -eu
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
server=
stop() {
    if [ -z "$server" ]; then return; fi
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    server=
}
trap stop EXIT

cat >client.py <<'PROGRAM'
import hashlib, random, socket, sys, threading, time
port = int(sys.argv[1])

class Client:
    def __init__(self):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.file = self.socket.makefile("rb", 1 << 16)
    def send(self, *parts):
        self.socket.sendall(b"".join(p if isinstance(p, bytes) else p.encode() for p in parts))
    def line(self):
        return self.file.readline().decode().strip()
    def ask(self, *parts):
        self.send(*parts)
        return self.line()
    def store(self, verb, key, value):
        return self.ask(f"{verb} {key} 0 0 {len(value)}\r\n", value, "\r\n")
    def get(self, *keys):
        self.send("get ", " ".join(keys), "\r\n")
        values = {}
        while (line := self.line()) != "END":
            _, key, _, size = line.split()
            values[key] = self.file.read(int(size) + 2)[:-2]
        return values
    def stats(self):
        self.send("stats\r\n")
        return dict(line.split(" ", 2)[1:] for line in iter(self.line, "END"))

def work(number, lines):
    r, client, digest, answers = random.Random(number), Client(), hashlib.sha256(), {}
    live = {}
    for i in range(2000):
        n = r.randrange(600)
        key = f"c{number}-{n}-{'k' * (n % 150)}"
        size = r.randrange(1, 2 ** r.choice((5, 8, 11, 14, 17)))
        value = bytes([33 + i % 90]) * size
        answer = client.store("set", key, value)
        answers[answer] = answers.get(answer, 0) + 1
        live[key] = value
        some = r.sample(sorted(live), min(len(live), 5))
        if i % 3 == 0:
            got = client.get(*some, "absent")
            assert got == {k: live[k] for k in some}, some
            for k in some:
                digest.update(got[k])
        if i % 4 == 0:
            assert client.ask(f"delete {some[0]}\r\n") == "DELETED"
            del live[some[0]]
        if i % 5 == 0 and some[-1] in live:
            assert client.store("append", some[-1], b"+end") == "STORED"
            live[some[-1]] += b"+end"
        if i % 50 == 0:
            client.store("set", f"n{number}", str(i).encode())
            answers["incr"] = answers.get("incr", 0) + int(client.ask(f"incr n{number} 7\r\n"))
        if i % 100 == 0:
            client.send(f"mg {min(live, default='absent')} v s\r\n" * 20, "mn\r\n")
            while (line := client.line()) != "MN":
                if line.startswith("VA "):
                    digest.update(client.file.read(int(line.split()[1]) + 2))
    left = client.get(*sorted(live))
    assert left == live
    sizes = sum(len(v) for v in live.values())
    lines[number] = f"{number}: {sorted(answers.items())} {len(live)} {sizes} {digest.hexdigest()[:24]}"

for attempt in range(1000):
    try:
        main = Client()
        break
    except ConnectionRefusedError:
        time.sleep(0.02)
names = ("curr_items", "total_items", "cmd_get", "cmd_set", "get_hits", "get_misses", "delete_hits", "evictions")
for turn in range(2):
    lines = {}
    threads = [threading.Thread(target=work, args=(n, lines)) for n in range(4)]
    for t in threads: t.start()
    for t in threads: t.join()
    print("\n".join(lines[n] for n in range(4)))
    big = b"b" * 3000000
    print(main.store("set", "big", big), main.get("big")["big"] == big, main.store("set", "bigger", big * 2))
    stats = main.stats()
    print(stats["threads"], [(n, stats[n]) for n in names])
    # Connections that come and go.
    idle = [Client() for n in range(200)]
    print(len({c.ask("version\r\n") for c in idle}))
    for c in idle: c.socket.close()
    print(main.ask("flush_all\r\n"), main.get("big"), main.ask("verbosity 0\r\n"))
PROGRAM

memcached -l 127.0.0.1 -p "$port" -U 0 -u "$(id -un)" -t 4 -m 512 -I 4m -c 1000 &
server=$!
python3 client.py "$port"
if [ -n "${LD_PRELOAD:-}" ]; then grep -q libhuddle "/proc/$server/maps" || echo "the server is not preloaded"; fi
kill "$server"
status=0
wait "$server" || status=$?
server=
echo "the server ended with $status"
