#!/bin/sh
# count_futex.sh LIBRARY PROGRAM: the program makes fewer than 1,000 futex calls.
command -v strace >/dev/null || exit 77
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
strace -f -qq -e trace=futex -e signal=none -E "LD_PRELOAD=$1" -o "$log" "$2" || { tail -n 5 "$log"; exit 1; }
calls=$(grep -c 'futex(' "$log")
echo "$calls futex calls"
[ "$calls" -lt 1000 ]
