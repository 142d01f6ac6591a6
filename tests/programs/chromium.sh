# needs: chromium md5sum
# Debian's chromium exports a malloc of its own: this shows that huddle does no harm where it is loaded and not called.
# A page whose script sorts, hashes, concatenates and draws, as text and as a picture.
set -eu
cat >page.html <<'PAGE'
<!doctype html><meta charset="utf-8"><title>test</title><canvas id="c" width="300" height="200"></canvas><pre id="out"></pre>
<script>
const lines = [];
let seed = 1;
const random = n => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
const words = Array.from({length: 40000}, () => String.fromCharCode(97 + random(26)).repeat(1 + random(5)) + random(1000));
const counts = new Map();
for (const w of words) counts.set(w, (counts.get(w) || 0) + 1);
lines.push(counts.size, [...counts.entries()].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, 5).join(' '));
const text = JSON.stringify(words.map((w, i) => ({w, i, list: [i, w.length]})));
lines.push(text.length, JSON.parse(text).reduce((s, o) => s + o.list[1], 0));
let hash = 0;
for (let i = 0; i < text.length; i++) hash = (hash * 31 + text.charCodeAt(i)) | 0;
lines.push(hash, text.replace(/"w":"([a-m]+)/g, (m, a) => a.toUpperCase()).length);
for (let i = 0; i < 3000; i++) {
    const e = document.createElement('div');
    e.textContent = words[i];
    document.body.append(e);
    if (i % 3 !== 0) e.remove();
}
lines.push(document.querySelectorAll('div').length);
const g = document.getElementById('c').getContext('2d');
for (let i = 0; i < 500; i++) { g.fillStyle = `rgb(${random(256)},${random(256)},${random(256)})`; g.fillRect(random(300), random(200), 20, 20); }
lines.push(g.getImageData(0, 0, 300, 200).data.reduce((s, b) => (s * 31 + b) % 1000003, 7));
lines.push(new Uint8Array(8000000).fill(3).reduce((s, b) => s + b, 0));
document.getElementById('out').textContent = 'RESULT ' + lines.join(' | ');
</script>
PAGE
flags=(--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
    --disable-component-update --disable-sync --disable-dev-shm-usage --disable-extensions --hide-scrollbars)
browse() {
    timeout 60 chromium "${flags[@]}" --user-data-dir="$PWD/profile" "$@" "file://$PWD/page.html" 2>>errors ||
        { echo "exit status $?" >&2; cat errors >&2; exit 1; }
}
browse --dump-dom >dom
grep -o 'RESULT.*' dom
browse --screenshot="$PWD/picture.png" --window-size=400,600 >/dev/null
if [ "$(wc -c <picture.png)" -gt 2000 ]; then echo "a picture"; fi
grep -E 'huddle: |Received signal' errors || echo "no crash"
