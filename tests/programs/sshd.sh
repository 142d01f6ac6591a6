# needs: /usr/sbin/sshd ssh ssh-keygen ssh-keyscan scp sftp python3 md5sum
# Keys of several types, signatures and certificates; then a server with keys of its own: commands with every kind of
# cipher and key exchange, sessions at the same time, files by scp and sftp.
set -eu
ssh -V
for kind in "rsa 2048" "rsa 3072" "ecdsa 256" "ecdsa 521" "ed25519 256"; do
    read -r type bits <<<"$kind"
    key=$type-$bits
    ssh-keygen -q -t "$type" -b "$bits" -N '' -C "$key" -f "$key"
    ssh-keygen -l -f "$key.pub" | awk '{ print $1, $3, $4 }'
    ssh-keygen -y -f "$key" | cmp - "$key.pub"
    ssh-keygen -q -p -N secret -P '' -a 2 -f "$key" >/dev/null
    ssh-keygen -q -p -N '' -P secret -f "$key" >/dev/null
    echo "a message" | ssh-keygen -q -Y sign -n test -f "$key" >signature
    echo "me $(cat "$key.pub")" >signers
    echo "a message" | ssh-keygen -q -Y verify -n test -f signers -I me -s signature >/dev/null && echo "signed"
    echo "a massage" | ssh-keygen -q -Y verify -n test -f signers -I me -s signature >/dev/null 2>&1 || echo "refused"
done
ssh-keygen -q -s ed25519-256 -I id -n me -V 20200101:20300101 -z 7 rsa-2048.pub
ssh-keygen -L -f rsa-2048-cert.pub | grep -vE 'key:|CA:'
rm rsa-2048-cert.pub

user=$(id -un)
made=
# As root the server wants this directory.
if [ "$(id -u)" = 0 ] && [ ! -d /run/sshd ]; then
    if ! mkdir -m 755 /run/sshd; then
        echo "/run/sshd cannot be made"
        exit 77
    fi
    made=yes
fi
server=
stop() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
        server=
    fi
    if [ -n "$made" ]; then rmdir /run/sshd || true; fi
    made=
}
trap stop EXIT

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat ./*.pub >authorized
cat >server.conf <<CONF
ListenAddress 127.0.0.1
Port $port
HostKey $PWD/rsa-3072
HostKey $PWD/ecdsa-256
HostKey $PWD/ed25519-256
AuthorizedKeysFile $PWD/authorized
PidFile none
StrictModes no
UsePAM no
UseDNS no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitUserRC no
PrintMotd no
MaxStartups 100
Subsystem sftp internal-sftp
CONF
cat >client.conf <<CONF
Host *
    HostName 127.0.0.1
    Port $port
    User $user
    UserKnownHostsFile $PWD/known
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking yes
    IdentitiesOnly yes
    IdentityFile $PWD/ecdsa-521
    BatchMode yes
    LogLevel ERROR
CONF
# The server gives its sessions an environment of their own.
if [ -n "${LD_PRELOAD:-}" ]; then
    echo "SetEnv LD_PRELOAD=$LD_PRELOAD${HUDDLE_OPTIONS:+ HUDDLE_OPTIONS=$HUDDLE_OPTIONS}" >>server.conf
fi
for key in rsa-3072 ecdsa-256 ed25519-256; do echo "[127.0.0.1]:$port $(cat $key.pub)"; done >known

/usr/sbin/sshd -D -e -f "$PWD/server.conf" 2>server.log &
server=$!
remote() { ssh -F client.conf "$@"; }
for i in $(seq 1 200); do
    if remote host true 2>first.log; then break; fi
    if grep -q 'account is locked' server.log; then
        echo "the account $user is locked"
        exit 77
    fi
    if ! grep -q 'Connection refused' first.log; then break; fi
    sleep 0.05
done
remote host 'echo "home of $(id -un): $HOME"' | sed "s|: $HOME\$|: HOME|" || { cat server.log; exit 1; }
if [ -n "${LD_PRELOAD:-}" ]; then
    # shellcheck disable=SC2016
    for of in "/proc/$server/maps" '/proc/$PPID/maps' /proc/self/maps; do
        remote host "grep -q libhuddle $of" || echo "$of: not preloaded"
    done
fi

for key in rsa-2048 rsa-3072 ecdsa-256 ecdsa-521 ed25519-256; do
    ssh -F client.conf -i "$key" -o IdentityFile=none host "echo by $key; exit 3" || echo "exit status $?"
done
seq 1 200000 >large
for option in -Ciphers=chacha20-poly1305@openssh.com -Ciphers=aes128-ctr -Ciphers=aes256-gcm@openssh.com \
    -Compression=yes -KexAlgorithms=sntrup761x25519-sha512@openssh.com -KexAlgorithms=diffie-hellman-group14-sha256 \
    -KexAlgorithms=diffie-hellman-group-exchange-sha256 -HostKeyAlgorithms=rsa-sha2-512 -MACs=hmac-sha2-512 \
    -RekeyLimit=200K; do
    echo "$option: $(remote -o "${option#-}" host 'md5sum; echo "and an error" >&2' 2>&1 <large | sort)"
done
pids=
for n in 1 2 3 4 5 6 7 8; do
    remote host "seq $n 20000 | md5sum" >"session$n" &
    pids="$pids $!"
done
for pid in $pids; do wait "$pid"; done
cat session[1-8]

mkdir copies
scp -q -F client.conf large "host:$PWD/copies/up"
scp -q -F client.conf "host:$PWD/copies/up" copies/down
scp -q -O -F client.conf "host:$PWD/large" copies/old
sftp -q -F client.conf -b - host >/dev/null <<SFTP
cd $PWD/copies
mkdir tree
put -r $PWD/copies/old tree/one
get tree/one $PWD/copies/two
rename tree/one tree/three
ls -l tree
SFTP
find copies -type f | sort | xargs md5sum
ssh-keyscan -p "$port" 127.0.0.1 2>/dev/null | cut -d ' ' -f 2 | sort
grep -iE 'fatal|signal|crash|huddle' server.log || echo "no crash"
