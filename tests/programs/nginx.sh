# needs: /usr/sbin/nginx curl python3 cmp seq
# Files of many sizes, plain, compressed, in ranges, through a proxy and put together from parts, fetched from four
# workers; load by wrk or ab while the configuration changes; the same files from the new workers; no crash in the log.
set -eu
read -r port second <<<"$(python3 -c 'import socket
s = [socket.socket() for i in range(2)]
for i in s: i.bind(("127.0.0.1", 0))
print(*[i.getsockname()[1] for i in s])')"
url=http://127.0.0.1:$port
server=
load=
stop() {
    if [ -n "$load" ]; then kill "$load" 2>/dev/null || true; fi
    if [ -z "$server" ]; then return; fi
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    server=
}
trap stop EXIT
fail() {
    echo "$1"
    cat error.log
    exit 1
}

python3 - <<'PROGRAM'
import os, random
r = random.Random(1)
os.makedirs("files")
sizes = [0, 1, 10, 100, 1000, 1023, 1024, 4095, 4096, 4097, 8192, 10000, 32768, 65536, 100000, 300000, 1000000, 5000000]
for n in sizes:
    text = " ".join(r.choices(["alpha", "beta", "gamma", "delta", "<p>", "</p>", "0123456789"], k=n // 5 + 1))
    open(f"files/{n}.txt", "w").write(text[:n])
    open(f"files/{n}.bin", "wb").write(r.randbytes(n))
parts = "".join(f'<!--#set var="v{n}" value="{n * n}" --><!--#echo var="v{n}" --><!--#include file="{n}.txt" -->\n'
                for n in sizes[:12])
open("files/parts.shtml", "w").write(parts)
PROGRAM

# configure NAME: the header X-Name tells which of the configurations answers.
configure() {
    cat >nginx.conf <<CONF
daemon off;
$([ "$(id -u)" != 0 ] || echo "user $(id -un);")
worker_processes 4;
pid nginx.pid;
error_log error.log notice;
events { worker_connections 200; }
http {
    types { text/plain txt; text/html shtml; application/octet-stream bin; }
    access_log access.log combined buffer=16k;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    gzip on;
    gzip_types text/plain;
    gzip_min_length 100;
    open_file_cache max=20;
    upstream self { server 127.0.0.1:$second; keepalive 4; }
    server {
        listen 127.0.0.1:$port;
        root $PWD/files;
        add_header X-Name $1;
        location = /parts.shtml { ssi on; }
        location /list/ { alias $PWD/files/; autoindex on; autoindex_format json; }
        location ~ ^/old/(?<name>.*)\$ { return 302 /\$name; }
        location /proxy/ {
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_pass http://self/;
        }
    }
    server { listen 127.0.0.1:$second; root $PWD/files; }
}
CONF
}

# fetch DIRECTORY: everything in each way, in the order of the names.
fetch() {
    mkdir "$1"
    for name in files/*; do
        name=${name#files/}
        for way in plain gzip part proxy old; do
            echo next
            printf 'output = "%s/%s.%s"\nlocation\n' "$1" "$name" "$way"
            case $way in
            plain) echo "url = $url/$name" ;;
            gzip) printf 'url = %s\ncompressed\n' "$url/$name" ;;
            part) printf 'url = %s\nrange = 3-2000\n' "$url/$name" ;;
            proxy) echo "url = $url/proxy/$name" ;;
            old) echo "url = $url/old/$name" ;;
            esac
        done
    done | sed 1d >urls
    curl -q -s --parallel --parallel-max 10 -K urls 2>/dev/null || fail "curl: $?"
    for name in files/*.txt files/*.bin; do
        for way in plain gzip proxy old; do
            cmp "$name" "$1/${name#files/}.$way" || [ ! -s "$name" ] || fail "$name differs"
        done
    done
    curl -q -s "$url/list/" | python3 -c 'import json, sys; print(sorted((i["name"], i["size"]) for i in json.load(sys.stdin)))'
    curl -q -s -H 'Accept-Encoding: gzip' "$url/1000000.txt" | md5sum
    curl -q -s "$url/missing" | head -n 3
    curl -q -s -D - -o /dev/null "$url/1000.txt" | tr -d '\r' | grep -E '^(HTTP|X-Name|Content-Length)'
    (cd "$1" && md5sum -- *) >sums
    md5sum <sums
}

configure first
/usr/sbin/nginx -e error.log -p "$PWD" -c "$PWD/nginx.conf" &
server=$!
for i in $(seq 1 500); do
    if curl -q -s -o /dev/null "$url/1.txt"; then break; fi
    sleep 0.02
done
if [ -n "${LD_PRELOAD:-}" ]; then grep -q libhuddle "/proc/$server/maps" || fail "the server is not preloaded"; fi
fetch one
cat sums

# What they print are times.
if command -v wrk >/dev/null; then
    wrk -t 2 -c 40 -d 2 -H 'Accept-Encoding: gzip' "$url/proxy/32768.txt" >load.txt 2>&1 &
    load=$!
elif command -v ab >/dev/null; then
    ab -q -k -c 40 -n 4000 -H 'Accept-Encoding: gzip' "$url/proxy/32768.txt" >load.txt 2>&1 &
    load=$!
fi
for name in second third; do
    sleep 0.5
    configure "$name"
    kill -HUP "$server"
    for i in $(seq 1 500); do
        if curl -q -s -I "$url/1.txt" | grep -q "^X-Name: $name"; then break; fi
        sleep 0.02
    done
done
if [ -n "$load" ]; then wait "$load" || fail "load: $(cat load.txt)"; fi
load=
fetch two
cmp <(cd one && md5sum -- *) sums && echo "the same files"
kill -QUIT "$server"
status=0
wait "$server" || status=$?
server=
echo "the server ended with $status"
grep -E '\[(alert|crit|emerg)\]|exited on signal|huddle:' error.log || echo "no crash"
