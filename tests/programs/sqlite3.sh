# needs: sqlite3
# Fills, indexes, joins, aggregates, updates and vacuums, in memory and in a file.
set -eu
for database in :memory: file.db; do
    sqlite3 "$database" <<'SQL'
PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA cache_size = -20000;
CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER, b TEXT, c REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
INSERT INTO t
SELECT i, i * 7919 % 10007, printf('text %d %s', i * 31 % 997, substr(hex(i * i), 1, i % 40)), i / 7.0 FROM n;
CREATE INDEX ta ON t(a); CREATE INDEX tb ON t(b, c);
SELECT count(*), sum(a), min(b), max(b), round(avg(c), 6) FROM t;
SELECT a % 10, count(*), group_concat(DISTINCT substr(b, 6, 2)) FROM t WHERE a < 500 GROUP BY 1 ORDER BY 1;
SELECT x.id, y.id FROM t x JOIN t y ON x.a = y.a AND x.id < y.id ORDER BY x.a, x.id, y.id LIMIT 5;
SELECT b FROM t WHERE b LIKE '%77%' ORDER BY c DESC LIMIT 5;
UPDATE t SET b = b || ' and more text so that rows move ' || a WHERE id % 3 = 0;
DELETE FROM t WHERE id % 5 = 0;
SELECT count(*), sum(length(b)) FROM t;
WITH w AS (SELECT id, row_number() OVER (PARTITION BY a % 50 ORDER BY id) r FROM t) SELECT sum(id) FROM w WHERE r = 3;
SELECT json_group_array(json_object('id', id, 'b', b)) FROM (SELECT * FROM t ORDER BY id LIMIT 20);
VACUUM;
PRAGMA integrity_check;
SELECT hex(zeroblob(10)), length(zeroblob(5000000));
SQL
done
sqlite3 file.db .dump | cksum
