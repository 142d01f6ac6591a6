# needs: redis-server redis-cli redis-benchmark python3
# A server under redis-benchmark and scripts; then its data, by redis's own digest, before and after a restart.
set -eu
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cli() { redis-cli -h 127.0.0.1 -p "$port" "$@"; }
server=
stop() {
    if [ -z "$server" ]; then return; fi
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    server=
}
trap stop EXIT

start() {
    redis-server --bind 127.0.0.1 --port "$port" --dir "$PWD" --save '' --appendonly no --enable-debug-command local \
        --activedefrag no --daemonize no --logfile server.log --hash-max-listpack-entries 16 &
    server=$!
    # Each attempt is a process of its own: some hundred of them are time enough to start.
    for i in $(seq 1 2000); do
        if [ "$(cli ping 2>/dev/null)" = PONG ]; then return; fi
    done
    echo "the server does not answer"
    cat server.log
    exit 1
}

start
# -P: few system calls. What the benchmark prints are times; what it leaves behind is the same each time.
redis-benchmark -h 127.0.0.1 -p "$port" -q -n 10000 -c 20 -P 32 -d 100 \
    -t set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,lrange_100,mset >benchmark.txt 2>&1 ||
    { cat benchmark.txt; exit 1; }
cli flushall
cat >fill.lua <<'LUA'
for i = 1, 5000 do
    local k = (i * 7919 + ARGV[1]) % 3001
    redis.call('set', 's' .. k, string.rep('v', k % 700))
    redis.call('hset', 'h' .. k % 50, 'f' .. i, i)
    redis.call('zadd', 'z' .. k % 20, i, 'm' .. k)
    redis.call('rpush', 'l' .. k % 10, i)
    redis.call('append', 'a' .. k % 100, 'text ' .. i)
    if k % 3 == 0 then redis.call('del', 's' .. (k - 1)) end
end
return redis.call('dbsize')
LUA
for i in 1 2 3 4; do cli --eval fill.lua , "$i"; done
cli debug digest
cli dbsize
cli --raw lrange l3 0 9 | tr '\n' ' '
cli --raw zrevrange z7 0 5 withscores | tr '\n' ' '
cli --raw strlen a42
cli save
cli debug reload
cli debug digest
cli bgrewriteaof >/dev/null
cli shutdown nosave
wait "$server" || true
server=
grep -c -i -E 'crash|bug report|huddle' server.log || true
start
cli debug digest
cli --raw eval 'local n = 0; for _, k in ipairs(redis.call("keys", "*")) do n = n + #k end return n' 0
cli flushall
cli dbsize
