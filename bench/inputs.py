"""The inputs of bench/'s programs, made by rule, the same in every run."""
import json
import random

SQL = """create table t(id integer primary key, name text, value real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < {rows})
insert into t select i, printf('row %d of %d', i, i * 7919 % 400009), i * 0.5 from n;
create index t_name on t(name);
create index t_value on t(value);
select count(*), sum(length(name)), max(value) from t;
"""

C_UNIT = """
struct s{i} {{
    int a[{n}];
    struct s{i} *next;
    double d;
}};
enum e{i} {{ ONE{i} = 1, TWO{i} = {n}, THREE{i} = {p} }};
extern int other{i}(struct s{i} *s, enum e{i} e);
static const struct {{
    const char *name;
    int value;
}} table{i}[] = {{
{table}
}};
static int helper{i}(struct s{i} *s, int k) {{
    int sum = s->a[0] * (k + {i});
    while (s->next != 0 && sum < {p}000) {{
        s = s->next;
        sum += (int)(s->d * {n}) + table{i}[sum & 15].value;
        if (sum % 5 == 0) sum ^= s->a[1];
        else if (sum > k) sum -= other{i}(s, TWO{i});
    }}
    return sum;
}}
int function{i}(int k) {{
    struct s{i} s = {{{{k, {i}}}, 0, 1.5}};
    struct s{i} t = {{{{1}}, &s, 2.5}};
    return helper{i}(&t, k);
}}
"""


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def write_json(path, rows=46_000):
    """A list of records; 46,000 are 7 MB."""
    r = random.Random(1)
    rows = [{"id": i, "name": f"user{r.randrange(10**6)}", "tags": [f"t{r.randrange(500)}" for _ in range(4)],
             "score": r.random(), "address": {"street": f"{r.randrange(999)} Street", "zip": str(r.randrange(10**5))}}
            for i in range(rows)]
    write(path, json.dumps(rows))


def write_c(path, lines=20_000):
    r = random.Random(2)
    text = []
    i = 0
    while len(text) < lines:
        table = "\n".join(f'    {{"name {r.randrange(10**6)}", {r.randrange(1000)}}},' for _ in range(16))
        text += C_UNIT.format(i=i, n=r.randrange(4, 40), p=r.choice([7, 11, 13, 17]), table=table).splitlines()
        i += 1
    write(path, "\n".join(text) + "\n")


def write_sql(path, rows=400_000):
    write(path, SQL.format(rows=rows))


def words(n, seed=3):
    r = random.Random(seed)
    return [f"{r.choice('bcdfglmnprst')}{r.choice('aeiou')}{r.choice('bdlmnrst')}{r.randrange(3000)}" for _ in range(n)]


def write_text(path, count):
    w = words(count)
    write(path, "\n".join(" ".join(w[i:i + 10]) for i in range(0, count, 10)) + "\n")


def write_fast_import(path, commits, files=60):
    """A history for git fast-import: each commit changes some lines of three files."""
    r = random.Random(4)
    content = {f"src/file{i}.c": words(400, i) for i in range(files)}
    with open(path, "w", encoding="utf-8") as f:
        for c in range(commits):
            changed = list(content) if c == 0 else r.sample(sorted(content), 3)
            f.write("commit refs/heads/main\n"
                    f"committer A U Thor <author@example.org> {1_700_000_000 + c} +0000\n"
                    f"data <<END\nCommit {c}\nEND\n")
            for name in changed:
                lines = content[name]
                for _ in range(8):
                    lines[r.randrange(len(lines))] = f"line{r.randrange(10**6)}"
                text = "\n".join(lines) + "\n"
                f.write(f"M 100644 inline {name}\ndata {len(text)}\n{text}\n")


def write_smt(path, problems, variables=45):
    """Problems of linear arithmetic and an uninterpreted function, one after the other, that have solutions: they are made
    from them."""
    out = ["(set-logic QF_UFLIA)", "(declare-fun f (Int) Int)", *(f"(declare-fun x{i} () Int)" for i in range(variables))]
    for problem in range(problems):
        r = random.Random(problem)
        value = [r.randrange(1000) for _ in range(variables)]
        out.append("(push)")
        for _ in range(4 * variables):
            a, b, c = (r.randrange(variables) for _ in range(3))
            total = value[a] + 2 * value[b] - value[c]
            out.append(f"(assert (<= (+ x{a} (* 2 x{b}) (- x{c})) {total + r.randrange(20)}))")
            out.append(f"(assert (or (>= x{a} {value[a] - r.randrange(5)}) (= (f x{b}) x{c})))")
        out += [f"(assert (= (f x{i}) (f x{(i * 7) % variables})))" for i in range(0, variables, 5)]
        out += ["(check-sat)", "(pop)"]
    write(path, "\n".join(out) + "\n")


def write_postscript(path, pages):
    r = random.Random(6)
    out = ["%!PS"]
    for page in range(pages):
        out.append(f"/Helvetica findfont {9 + page % 4} scalefont setfont")
        w = words(600, page)
        for line in range(60):
            out.append(f"40 {780 - 12 * line} moveto ({' '.join(w[line * 10:line * 10 + 10])}) show")
        for _ in range(80):
            x, y, a = r.randrange(500), r.randrange(700), r.randrange(60)
            out.append(f"{r.random():.2f} setgray {x} {y} {a} 0 360 arc fill {x} {y} moveto {a} {a} rlineto stroke")
        out.append("0 setgray showpage")
    write(path, "\n".join(out) + "\n")
