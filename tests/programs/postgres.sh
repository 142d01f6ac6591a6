# needs: python3 setpriv
# A server under pgbench and queries that sort, hash, aggregate and index; the same data after a restart.
set -eu
bin=$(find /usr/lib/postgresql -maxdepth 2 -name bin 2>/dev/null | sort | tail -n 1)
if [ -z "$bin" ] || [ ! -x "$bin/pgbench" ]; then echo "postgresql is not installed" && exit 77; fi
as=() # the server does not run as root
if [ "$(id -u)" = 0 ]; then
    as=(setpriv --reuid nobody --regid nogroup --clear-groups)
    chown nobody "$PWD" && chmod 755 "$PWD/.."
fi
data=$PWD/data
psql() { "${as[@]}" "$bin/psql" -h "$PWD" -p 54321 -U tester -d postgres -X -q -A -t -v ON_ERROR_STOP=1 "$@"; }
server=
stop() {
    if [ -z "$server" ]; then return; fi
    kill -INT "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    server=
}
trap stop EXIT
start() {
    "${as[@]}" "$bin/postgres" -D "$data" -k "$PWD" -p 54321 -c listen_addresses='' -c fsync=off -c work_mem=1MB \
        -c max_parallel_workers_per_gather=2 -c logging_collector=off >>server.log 2>&1 &
    server=$!
    for i in $(seq 1 500); do
        if psql -c 'select 1' >/dev/null 2>&1; then return; fi
        sleep 0.02
    done
    cat server.log
    exit 1
}

"${as[@]}" "$bin/initdb" -D "$data" --no-sync --locale=C -U tester -A trust >initdb.log 2>&1 || { cat initdb.log; exit 1; }
start
if [ -n "${LD_PRELOAD:-}" ]; then grep -q libhuddle "/proc/$server/maps" || { echo "not preloaded"; exit 1; }; fi
# What it prints are times; what it leaves behind is the same each time.
"${as[@]}" "$bin/pgbench" -h "$PWD" -p 54321 -U tester -i -q -s 2 postgres >pgbench.log 2>&1 || { cat pgbench.log; exit 1; }
"${as[@]}" "$bin/pgbench" -h "$PWD" -p 54321 -U tester -n -c 4 -j 2 -t 200 --random-seed=1 postgres >pgbench.log 2>&1 ||
    { cat pgbench.log; exit 1; }
psql -c 'select count(*) from pgbench_history' -c 'select count(*), sum(bid) from pgbench_accounts'
psql -c 'select sum(abalance) = (select sum(delta) from pgbench_history) from pgbench_accounts'
psql <<'SQL'
create table words as select i, md5((i * 7919 % 100003)::text) w, (i * 31) % 97 g from generate_series(1, 60000) i;
create index on words (w);
create index on words using hash (g);
vacuum analyze words;
select g, count(*), min(w), max(w) from words group by g order by g limit 5;
select md5(string_agg(w, ',' order by w)) from words;
select count(*) from words a join words b on a.w = b.w where a.g < 10;
select jsonb_object_agg(g, n) from (select g, count(*) n from words where g < 8 group by g order by g) t;
select array_agg(distinct substr(w, 1, 2)) from words where g = 5 and i < 4000;
create function fib(n int) returns numeric language plpgsql as $$
declare a numeric := 0; b numeric := 1; begin for i in 1..n loop select b, a + b into a, b; end loop; return a; end $$;
select length(fib(2000)::text), md5(fib(2000)::text);
select count(*) from words where w ~ '^(a|b).*[0-9]{4}.*f$';
SQL
psql -c "copy (select * from words order by i) to stdout" | md5sum
psql -c 'delete from words where g % 3 = 0' -c 'vacuum full words' -c 'select count(*), sum(i) from words'
stop
start
psql -c 'select count(*), sum(i), md5(string_agg(w, $$ $$ order by i)) from words'
grep -i -E 'panic|crash|terminated by signal|huddle: ' server.log || echo "no crash"
