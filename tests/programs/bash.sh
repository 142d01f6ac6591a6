# needs: bash cat sort tr wc seq
# Arrays, strings that grow, associative arrays, pattern replacement, subshells, here-documents and functions.
set -eu

declare -A seen
words=()
for i in $(seq 1 4000); do
    key=$((i * 7919 % 1009))
    seen[$key]=${seen[$key]:-}x$i
    words+=("word-$key")
done
echo "${#words[@]} ${#seen[@]}"
printf '%s\n' "${words[@]}" | sort | uniq -c | sort -rn | head -5
for key in 1 500 1008; do echo "$key: ${seen[$key]}"; done

text=
for i in $(seq 1 3000); do text+="line $i of the text; "; done
stripped=${text//e/}
echo "${#text} ${#stripped}"
replaced=${text//line/LINE}
echo "${replaced:100:60}"
tr ';' '\n' <<<"$replaced" | wc -l

fibonacci() { (($1 < 2)) && echo "$1" || echo $(($(fibonacci $(($1 - 1))) + $(fibonacci $(($1 - 2))))); }
fibonacci 9

for i in $(seq 1 50); do (words=("${words[@]:0:100}"); echo "${words[i]}"); done | cat | sort | tr '\n' ' '
echo
mapfile -t lines < <(seq 1 20000)
echo "${#lines[@]} ${lines[19999]}"
unset 'lines[5]' words
echo "${#lines[@]}" "$(cat <<<"${lines[*]:0:10}")"
