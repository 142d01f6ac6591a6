# needs: man nroff tbl lexgrog gzip
# Pages of huddle and of the system, and one with tables and equations, as text in several widths.
set -eu
export MANPAGER=cat MANROFFOPT='' GROFF_NO_SGR=1
pages=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../man" && pwd)
render() { MANWIDTH=$1 man -P cat -l "$2" >text; }

for page in "$pages"/*.[137]; do
    for width in 70 80 132; do
        render "$width" "$page"
        echo "$(basename "$page") $width: $(wc -l <text) lines, $(md5sum <text)"
    done
    lexgrog -m "$page" | sed "s|.*/||"
done

{
    printf '%s\n' "'\\\" te" .TH LARGE 7 2020-01-01 test test .SH NAME 'large \- a page with everything'
    for i in $(seq 1 12); do
        printf '%s\n' ".SH SECTION $i" ".SS Part of $i" .TP ".B \\-$i" 'What it does. \fIItalic\fP, \(lqquoted\(rq, \[u00E9].' \
            .PP "$(printf 'word%d ' $(seq "$i" $((i * 3))))" .RS '.IP \(bu 2' 'a point' '.IP \(bu 2' 'a point' .RE
        printf '%s\n' .TS 'allbox tab(;);' 'c s s' 'l r n.' "Table $i" "T{" "$(printf 'cell%d ' $(seq 1 "$i"))" 'T};b;1.25' \
            "a;$((i * i));$i.$i" .TE .EQ "x sub $i = { a over b } + sqrt { $i }" .EN
    done
} >large.7
for width in 60 200; do
    render "$width" large.7
    echo "large $width: $(wc -l <text) lines, $(md5sum <text)"
done
sed -n 1,40p text
gzip -k large.7
man -P cat -l large.7.gz | md5sum
man -Tutf8 -P cat -E UTF-8 -l large.7 | md5sum
man -Tascii -P cat -l large.7 | md5sum
man -Z -l large.7 | md5sum

# Pages of the system, when they are there.
for page in bash.1 git.1 perlfunc.1 gcc.1 man.1 ssh_config.5 hier.7; do
    name=${page%.*} section=${page##*.}
    man -w "$section" "$name" >where 2>/dev/null || continue
    MANWIDTH=100 man -P cat "$section" "$name" >text 2>/dev/null # at the usual width man keeps what it rendered
    echo "$page: $(wc -l <text) lines, $(md5sum <text)"
done
man -w 1 surely-not-there 2>&1 || echo "exit status $?"
