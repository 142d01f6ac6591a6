"""What bench/run measures: patterns of bench/patterns/, and programs of Debian's packages with generated input.

A job is run on one allocator at a time. What it returns is {figure: (value, unit)}, less being better, and what the
process used; a run that ends with another status than 0, or whose output is not as it must be, raises
allocators.Failed."""
import hashlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

import allocators
import inputs

RESOURCES = {"cpu_s": "s", "peak_kib": "KiB", "end_kib": "KiB", "faults": "", "switches": ""}


class Job:
    needs = ()  # commands, and the Debian packages that have them
    is_waiting = False  # sleeps most of the time: may run on all allocators at once

    def prepare(self, folder, build):
        """Makes inputs in a folder of its own, once."""

    def live_kib(self):
        """The most that is live at once, on glibc; None when it cannot be counted."""


class Pattern(Job):
    """A program of bench/patterns/: its output tells the figures."""

    def __init__(self, family, name, words, n, is_waiting=False):
        self.family, self.name, self.words, self.n, self.is_waiting = family, name, words, n, is_waiting

    def prepare(self, folder, build, scale):
        self.build = build
        words = self.words.format(n=max(1, int(self.n * scale))).split()
        self.command = [allocators.program(build, words[0])] + words[1:]

    def run(self, library):
        run = allocators.Run(self.build, library, self.command)
        figures = {name: (float(value), unit) for name, value, unit in
                   re.findall(r"^(\w[\w.]*) ([0-9.]+) (\S+)$", run.output, re.MULTILINE)}
        if not figures:
            raise allocators.Failed(f"{self.name} printed no figure")
        return figures, run.used

    def live_kib(self):
        return counted_live(self.build, self.command, None)


class Program(Job):
    """A program whose time is the figure. Its output is the same on every allocator as on glibc, and has `must` in it."""

    family = "programs"

    def __init__(self, name, needs, command, must, make=None, env=None):
        self.name, self.needs, self.words, self.must, self.make, self.env = name, needs, command, must, make, env

    def prepare(self, folder, build, scale):
        self.build, self.folder = build, folder
        if self.make:
            self.make(folder, scale)
        words = self.words(folder, scale)
        self.command = [shutil.which(words[0]) or words[0]] + words[1:]
        self.expected = None
        self.expected = self.checked(allocators.Run(build, None, self.command, self.env, folder))

    def checked(self, run):
        digest = hashlib.sha256(run.output.encode()).hexdigest()
        if self.must not in run.output or self.expected not in (None, digest):
            raise allocators.Failed(f"{self.name}: wrong output: {run.output[:200]!r}")
        return digest

    def run(self, library):
        run = allocators.Run(self.build, library, self.command, self.env, self.folder)
        self.checked(run)
        return {"seconds": (run.seconds, "s")}, run.used

    def live_kib(self):
        return counted_live(self.build, self.command, self.folder)


def counted_live(build, command, folder):
    file = build / "bench/live.txt"
    file.unlink(missing_ok=True)
    try:
        allocators.Run(build, str(build / "bench/liblive.so"), command, {"HUDDLE_BENCH_LIVE": str(file)}, folder)
        return max(map(int, file.read_text().split())) / 1024
    except (allocators.Failed, OSError, ValueError):
        return None
    finally:
        file.unlink(missing_ok=True)


# ---- servers ----


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def tree(pid):
    """A process and its descendants."""
    result, children = [], {}
    for p in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = p.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(p.parent.name))
    todo = [pid]
    while todo:
        result.append(todo.pop())
        todo += children.get(result[-1], [])
    return result


def used_by(pid):
    """What a server's processes used until now: as bench/peak tells, memory as the sum of their private and shared parts."""
    used = dict.fromkeys(["cpu_s", "peak_kib", "end_kib", "faults", "switches"], 0)
    for p in tree(pid):
        proc = pathlib.Path(f"/proc/{p}")
        try:
            fields = (proc / "stat").read_text().rpartition(")")[2].split()
            status = (proc / "status").read_text()
            rollup = (proc / "smaps_rollup").read_text()
            tasks = [(t / "status").read_text() for t in (proc / "task").iterdir()]
        except OSError:
            continue  # it ended meanwhile
        used["faults"] += int(fields[7])
        used["cpu_s"] += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        used["switches"] += sum(int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", t, re.M)[1]) for t in tasks)
        rss, hwm = (int(re.search(rf"^{key}:\s*(\d+)", status, re.M)[1]) for key in ("VmRSS", "VmHWM"))
        pss = int(re.search(r"^Pss:\s*(\d+)", rollup, re.M)[1])
        used["end_kib"] += pss
        used["peak_kib"] += max(pss, hwm - (rss - pss))
    return used


class Server(Job):
    """A server on one allocator, and a client on glibc that loads it: the figure is the client's time."""

    family = "programs"

    def prepare(self, folder, build, scale):
        self.folder, self.build, self.scale = folder, build, scale

    def start(self, library):
        env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
        command = self.command()
        if library:
            command = ["env", f"LD_PRELOAD={library}"] + command
        if os.getuid() == 0 and self.user:
            command = ["setpriv", "--reuid", self.user, "--regid", self.user, "--clear-groups"] + command
        with open(self.folder / "log", "wb") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, cwd=self.folder)

    user = None
    stop_signal = signal.SIGTERM

    def run(self, library):
        self.port = free_port()
        server = self.start(library)
        try:
            deadline = time.monotonic() + 30
            while not self.is_ready():
                if server.poll() is not None or time.monotonic() > deadline:
                    raise allocators.Failed(f"{self.name} did not start: {(self.folder / 'log').read_text()[-300:]}")
                time.sleep(0.02)
            begin = time.monotonic()
            self.load()
            seconds = time.monotonic() - begin
            if server.poll() is not None:
                raise allocators.Failed(f"{self.name} ended: {(self.folder / 'log').read_text()[-300:]}")
            used = used_by(server.pid)
            server.send_signal(self.stop_signal)
            if server.wait(30) not in self.good_ends:
                raise allocators.Failed(f"{self.name}: exit status {server.returncode}")
            return {"seconds": (self.seconds_of(seconds), "s")}, used
        finally:
            if server.poll() is None:
                server.kill()
                server.wait()

    good_ends = (0,)

    def seconds_of(self, elapsed):
        return elapsed

    def is_ready(self):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def client(self, words, must):
        done = subprocess.run(words, cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False, timeout=300)
        if done.returncode != 0 or not re.search(must, done.stdout + done.stderr):
            raise allocators.Failed(f"{self.name}: {words[0]}: {done.stdout[-300:]}{done.stderr[-300:]}")
        return done.stdout + done.stderr


class Redis(Server):
    name, needs = "redis", ("redis-server:redis-server", "redis-benchmark:redis-tools")

    def command(self):
        return ["redis-server", "--port", str(self.port), "--save", "", "--appendonly", "no", "--dir", str(self.folder)]

    def load(self):
        n = str(max(2000, int(300_000 * self.scale)))
        self.client(["redis-benchmark", "-p", str(self.port), "-n", n, "-c", "50", "-P", "16", "-d", "200", "-r", "100000",
                     "-t", "set,get,lpush,rpop,hset,zadd", "-q"], "ZADD.*requests per second")
        self.client(["redis-cli", "-p", str(self.port), "dbsize"], r"^[1-9]\d*$")


class Memcached(Server):
    name, needs = "memcached", ("memcached:memcached", "memcaslap:libmemcached-tools")

    def command(self):
        return ["memcached", "-U", "0", "-l", "127.0.0.1", "-p", str(self.port), "-t", "2", "-u", "nobody", "-m", "512"]

    def load(self):
        n = str(max(3200, int(200_000 * self.scale) // 32 * 32))
        self.client(["memcaslap", "-s", f"127.0.0.1:{self.port}", "-x", n, "-T", "1", "-c", "32"], rf"Ops: {n}\b")


class Nginx(Server):
    """A page through gzip and a variable; time per 100,000 requests."""

    name, needs = "nginx", ("nginx:nginx-light", "wrk:wrk")
    stop_signal = signal.SIGQUIT

    def prepare(self, folder, build, scale):
        super().prepare(folder, build, scale)
        inputs.write_text(folder / "index.html", 3000)

    def command(self):
        inputs.write(self.folder / "nginx.conf", f"""daemon off; worker_processes 1; pid nginx.pid; error_log stderr;
events {{ worker_connections 256; }}
http {{ access_log off; gzip on; gzip_min_length 1; client_body_temp_path t; proxy_temp_path p; fastcgi_temp_path f;
uwsgi_temp_path u; scgi_temp_path s; server {{ listen 127.0.0.1:{self.port}; root {self.folder};
add_header X-Request $request_id; }} }}
{"user root;" if os.getuid() == 0 else ""}
""")
        return ["nginx", "-p", str(self.folder), "-c", str(self.folder / "nginx.conf")]

    def load(self):
        seconds = max(1, round(2 * self.scale))
        said = self.client(["wrk", "-t1", "-c50", f"-d{seconds}s", "-H", "Accept-Encoding: gzip",
                            f"http://127.0.0.1:{self.port}/index.html"], "Requests/sec")
        if "Non-2xx" in said or "Socket errors" in said:
            raise allocators.Failed(f"nginx: {said}")
        self.rate = float(re.search(r"Requests/sec:\s*([0-9.]+)", said)[1])

    def seconds_of(self, elapsed):
        return 100_000 / self.rate


class Postgres(Server):
    name, user = "postgres", "postgres"
    bin = max(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), default=pathlib.Path("/usr/lib/postgresql/missing"))
    needs = (f"{bin}/postgres:postgresql", "pgbench:postgresql-contrib", "setpriv:util-linux")
    stop_signal = signal.SIGINT

    def as_user(self, words):
        if os.getuid() == 0:
            words = ["setpriv", "--reuid", self.user, "--regid", self.user, "--clear-groups"] + words
        subprocess.run(words, cwd=self.folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def prepare(self, folder, build, scale):
        super().prepare(folder, build, scale)
        if os.getuid() == 0:
            shutil.chown(folder, self.user, self.user)
        self.as_user([f"{self.bin}/initdb", "-D", "data", "-A", "trust", "-U", "postgres"])
        inputs.write(folder / "query.sql", """\\set a random(1, 50000)
select abalance from pgbench_accounts where aid = :a;
select bid, count(*), sum(abalance), md5(string_agg(filler, '' order by aid)) from pgbench_accounts
where aid between :a and :a + 400 group by bid;
select json_agg(t) from (select aid, bid, abalance from pgbench_accounts where aid between :a and :a + 100) t;
""")
        self.port = free_port()
        server = self.start(None)
        while not self.is_ready():
            time.sleep(0.05)
        self.client(["pgbench", *self.at(), "-i", "-q", "postgres"], "done")
        server.send_signal(self.stop_signal)
        server.wait(30)

    def at(self):
        return ["-h", str(self.folder), "-p", str(self.port), "-U", "postgres"]

    def command(self):
        return [f"{self.bin}/postgres", "-D", str(self.folder / "data"), "-p", str(self.port), "-k", str(self.folder),
                "-c", "listen_addresses=", "-c", "fsync=off", "-c", "jit=off", "-c", "autovacuum=off"]

    def is_ready(self):
        return subprocess.run([f"{self.bin}/pg_isready", *self.at()], check=False, capture_output=True).returncode == 0

    def load(self):
        n = max(50, int(1500 * self.scale))
        self.client(["pgbench", *self.at(), "-n", "-f", "query.sql", "-c", "2", "-j", "1", "-t", str(n), "postgres"],
                    rf"actually processed: {2 * n}/{2 * n}")


# ---- programs ----


def in_folder(name, write, count):
    return lambda folder, scale: write(folder / name, max(1, int(count * scale)))


def git_repository(folder, scale):
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder / "repo")], check=True)
    inputs.write_fast_import(folder / "stream", max(20, int(1500 * scale)))
    with open(folder / "stream", "rb") as stream:
        subprocess.run(["git", "-C", str(folder / "repo"), "fast-import", "--quiet"], check=True, stdin=stream)


def pdf(folder, scale):
    inputs.write_postscript(folder / "in.ps", max(2, int(60 * scale)))
    subprocess.run(["gs", "-q", "-dNOPAUSE", "-dBATCH", "-sDEVICE=pdfwrite", f"-sOutputFile={folder / 'in.pdf'}",
                    str(folder / "in.ps")], check=True, stdout=subprocess.DEVNULL)


def compiler_proper():
    done = subprocess.run(["gcc", "-print-prog-name=cc1"], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def scripted(name, command, package, text, count):
    """An interpreter running a text in which N is the count."""
    return Program(name, (f"{command[0]}:{package}",),
                   lambda folder, scale: [*command, re.sub(r"\bN\b", str(max(1, int(count * scale))), text)], "ok")


PYTHON_OBJECTS = """
class Node:
    def __init__(self, k): self.k, self.left, self.right, self.tags = k, None, None, [k, str(k)]
def put(root, k):
    while True:
        if k < root.k:
            if root.left is None: root.left = Node(k); return
            root = root.left
        else:
            if root.right is None: root.right = Node(k); return
            root = root.right
def count(n): return 0 if n is None else 1 + count(n.left) + count(n.right)
root, k = Node(1 << 30), 1
for i in range(N):
    k = k * 1103515245 + 12345 & 0x7fffffff
    put(root, k)
d = {}
for i in range(N): d.setdefault(i * 7919 % 5003, []).append({'i': i, 's': 'x' * (i % 200)})
assert count(root) == N + 1 and sum(map(len, d.values())) == N
print('ok')
"""
PYTHON_REGEX = """
import re
w = ['user%d@host%d.example.org, %d-%d' % (i, i % 97, i % 12, i % 31) for i in range(N)]
t = ' ; '.join(w)
m = re.findall(r'(\\w+)@((?:\\w+\\.)+\\w+), (\\d+)-(\\d+)', t)
assert len(m) == N
s = re.sub(r'host(\\d+)', lambda g: 'h' + g[1] * 2, t)
p = [x.upper().split('@') for x in s.split(' ; ')]
assert len(p) == N
print('ok')
"""
NODE = """
const m = new Map(); let b = [];
for (let i = 0; i < N; i++) {
    m.set('key' + i % 5000, {i, s: 'value'.repeat(i % 50), a: [i, i + 1]});
    if (i % 4 === 0) b.push(Buffer.alloc(100 + i % 20000, i));
    if (b.length > 400) b = b.slice(200);
}
const z = require('zlib'), t = JSON.stringify([...m]);
for (let i = 0; i < N / 20000; i++) if (z.inflateSync(z.deflateSync(t)).toString() !== t) process.exit(1);
if (JSON.parse(t).length !== m.size) process.exit(1);
console.log('ok');
"""
RUBY = """
h = Hash.new { |k, v| k[v] = [] }
N.times { |i| h["key#{i % 5000}"] << "value #{i} #{'x' * (i % 90)}" }
t = h.map { |k, v| "#{k}=#{v.sort.join(',')}" }.join("\\n")
n = t.split("\\n").sum { |l| l.split('=', 2)[1].split(',').size }
u = t.gsub(/value (\\d+)/) { "v#{$1}" }
raise unless n == N && u.size < t.size
puts 'ok'
"""
PERL = """
my %h; for my $i (0 .. N - 1) { push @{$h{"key" . $i % 5000}}, {i => $i, s => "x" x ($i % 90), l => [$i, $i + 1]} }
my $t = join ";", map { my $k = $_; map { "$k=$_->{s}$_->{i}" } @{$h{$k}} } sort keys %h;
my $n = () = $t =~ /key\\d+=x*\\d+/g; $t =~ s/key(\\d+)/k$1/g; my @w = sort split /;/, $t;
die unless $n == N && @w == N; print "ok\\n";
"""
LUA = """
local h = {} for i = 0, N - 1 do local k = 'key' .. i % 5000 h[k] = h[k] or {} table.insert(h[k], {i = i, s = ('x'):rep(i % 90)}) end
local t, n = {}, 0 for k, v in pairs(h) do for _, e in ipairs(v) do t[#t + 1] = k .. '=' .. e.s .. e.i end end
local s = table.concat(t, ';') for w in s:gmatch('key%d+=x*%d+') do n = n + 1 end
s = s:gsub('key(%d+)', 'k%1') assert(n == N) print('ok')
"""
PHP = """
ini_set('memory_limit', '-1'); $h = [];
for ($i = 0; $i < N; $i++) $h['key' . $i % 5000][] = ['i' => $i, 's' => str_repeat('x', $i % 90)];
$t = json_encode($h); $u = json_decode($t, true); $n = 0; foreach ($u as $v) $n += count($v);
$c = preg_match_all('/"s":"x*"/', $t); $z = gzuncompress(gzcompress(serialize($u)));
if ($n != N || $c != N || unserialize($z) != $h) exit(1); echo "ok\\n";
"""


def programs():
    yield Redis()
    yield Memcached()
    yield Nginx()
    yield Postgres()
    yield Program("sqlite3", ("sqlite3:sqlite3",), lambda f, s: ["sqlite3", ":memory:", f".read {f}/in.sql"], "|",
                  in_folder("in.sql", inputs.write_sql, 300_000))
    yield Program("python3, JSON", ("python3:python3",), lambda f, s: [
        "python3", "-c", "import json; x = json.load(open('in.json')); y = json.loads(json.dumps(x)); assert x == y; print('ok')"],
        "ok", in_folder("in.json", inputs.write_json, 30_000))
    yield scripted("python3, objects", ["python3", "-c"], "python3", PYTHON_OBJECTS, 60_000)
    yield scripted("python3, regex", ["python3", "-c"], "python3", PYTHON_REGEX, 120_000)
    yield scripted("node", ["node", "-e"], "nodejs", NODE, 200_000)
    yield scripted("ruby", ["ruby", "-e"], "ruby", RUBY, 250_000)
    yield scripted("perl", ["perl", "-e"], "perl", PERL, 250_000)
    yield scripted("lua", ["lua5.4", "-e"], "lua5.4", LUA, 400_000)
    yield scripted("php", ["php", "-n", "-r"], "php-cli", PHP, 300_000)
    yield Program("gcc -O2", ("gcc:gcc",), lambda f, s: [compiler_proper(), "-quiet", "-O2", "in.c", "-o", "/dev/stdout"],
                  "function1", in_folder("in.c", inputs.write_c, 20_000))
    yield Program("clang -O1", ("clang:clang",), lambda f, s: ["clang", "-O1", "-S", "in.c", "-o", "-"], "function1",
                  in_folder("in.c", inputs.write_c, 20_000))
    yield Program("git log -p", ("git:git",), lambda f, s: ["git", "-C", "repo", "log", "-p", "--stat", "--no-color"],
                  "Commit 1", git_repository)
    yield Program("z3", ("z3:z3",), lambda f, s: ["z3", "in.smt2"], "sat", in_folder("in.smt2", inputs.write_smt, 20))
    yield Program("ghostscript", ("gs:ghostscript",), lambda f, s: [
        "gs", "-q", "-dNOPAUSE", "-dBATCH", "-sDEVICE=bbox", "in.pdf"], "BoundingBox", pdf)
    yield Program("pdftotext", ("pdftotext:poppler-utils", "gs:ghostscript"), lambda f, s: ["pdftotext", "in.pdf", "-"],
                  " ", pdf)
    yield Program("xz -T2", ("xz:xz-utils",), lambda f, s: ["xz", "-T2", "-2", "--block-size=1MiB", "-c", "in.txt"], "7zXZ",
                  in_folder("in.txt", inputs.write_text, 900_000))
    yield Program("zstd -T2", ("zstd:zstd",), lambda f, s: ["zstd", "-q", "-T2", "-9", "-c", "in.txt"], "\ufffd",
                  in_folder("in.txt", inputs.write_text, 900_000))
    yield Pattern("programs", "C++ containers", "containers {n}", 6)


PATTERNS = (
    *(Pattern("small blocks", f"pair of {size} B", f"pair {size} {{n}} real", 40_000_000) for size in (24, 200)),
    *(Pattern("small blocks", f"burst, {order}", f"burst 1600 64 {{n}} {order}", 8000)
      for order in ("fifo", "lifo", "random")),
    *(Pattern("small blocks", f"random, {objects}", f"random {objects} {{n}}", n)
      for objects, n in ((1000, 12_000_000), (100_000, 6_000_000), (1_000_000, 2_000_000))),
    Pattern("small blocks", "1024 slots", "churn 1 {n}", 30_000_000),
    Pattern("small blocks", "calloc", "zeroed {n}", 1_500_000),
    Pattern("small blocks", "aligned", "aligned {n}", 6_000_000),
    Pattern("large blocks", "realloc growth", "growth {n}", 4),
    Pattern("large blocks", "saw-tooth of 0.1 to 25 MiB", "large {n}", 4),
    Pattern("large blocks", "phases", "phases {n}", 8),
    Pattern("threads", "server", "server 4 {n}", 1_500_000),
    *(Pattern("threads", f"handoff {p}:{c}{', touched' if touch else ''}", f"handoff {{n}} 64 {p} {c} {touch}", 8_000_000)
      for p, c, touch in ((1, 1, ""), (1, 1, "touch"), (3, 1, ""), (1, 3, ""), (2, 2, "touch"))),
    Pattern("threads", "cache scratch", "cache scratch 2 {n}", 150_000),
    Pattern("threads", "cache thrash", "cache thrash 2 {n}", 150_000),
    Pattern("threads", "threads that come and go", "threads churn {n}", 8000),
    Pattern("threads", "stress", "stress 2 {n}", 4_000_000),
    Pattern("start", "start of a small program", "start {n}", 300),
    Pattern("latency", "latency", "latency {n}", 2_000_000),
    *(Pattern("scaling", f"1024 slots, {t} threads", f"churn {t} {{n}}", 16_000_000 // t) for t in (1, 2, 4, 8)),
    *(Pattern("scaling", f"server, {t} threads", f"server {t} {{n}}", 4_000_000 // t) for t in (1, 2, 4, 8)),
    *(Pattern("scaling", f"stress, {t} threads", f"stress {t} {{n}}", 4_000_000 // t) for t in (1, 2, 4, 8)),
    Pattern("memory", "idle threads", "threads idle 200", 1, True),
    Pattern("memory", "12 s after a burst", "after 150 12", 1, True),
)


class SmallProcesses(Job):
    """The proportional set size of small processes that live at once."""

    family, name, is_waiting = "memory", "50 small processes", True
    needs = ("perl:perl",)

    def prepare(self, folder, build, scale):
        self.count = 50 if scale >= 0.5 else 10
        self.name = f"{self.count} small processes"

    def run(self, library):
        env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"} | ({"LD_PRELOAD": library} if library else {})
        text = "use POSIX; my %h = map { $_ => [1 .. 5] } 1 .. 500; $| = 1; print \"up\\n\"; <STDIN>"
        processes = []
        try:
            for _ in range(self.count):
                processes.append(subprocess.Popen(["perl", "-e", text], env=env, stdin=subprocess.PIPE,
                                                  stdout=subprocess.PIPE))
            for p in processes:
                if p.stdout.readline() != b"up\n":
                    raise allocators.Failed("a small process did not start")
            kib = sum(used_by(p.pid)["end_kib"] for p in processes)
            for p in processes:
                p.stdin.close()
                if p.wait(30) != 0:
                    raise allocators.Failed(f"a small process: exit status {p.returncode}")
        finally:
            for p in processes:
                p.kill()
                p.wait()
        return {"pss": (kib / self.count, "KiB")}, {}


def all_jobs():
    return [*PATTERNS, *programs(), SmallProcesses()]
