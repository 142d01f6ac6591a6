# needs: php
# Arrays, strings, sorting, regular expressions, objects in cycles, JSON, serialization and the modules that are loaded.
set -eu
cat >job.php <<'PROGRAM'
<?php
mt_srand(1);
$words = [];
for ($i = 0; $i < 60000; $i++) $words[] = substr(md5((string)mt_rand(0, 3000)), 0, 6);
$count = array_count_values($words);
arsort($count);
ksort($words);
echo count($count), ' ', array_sum($count), ' ', md5(implode(' ', $words)), "\n";
$text = implode(' ', $words);
echo md5(preg_replace_callback('/\b([a-f])(\w+)/', fn($m) => strtoupper($m[1]) . strrev($m[2]), $text)), "\n";
for ($i = 0; $i < 20000; $i++) { $node = new stdClass; $node->self = $node; $node->data = range(0, $i % 30); }
echo gc_collect_cycles() >= 0 ? "collected\n" : '';
$data = json_decode(json_encode(array_chunk($words, 7)), true);
echo md5(serialize($data)), ' ', unserialize(serialize($data)) === $data ? 'same' : 'different', "\n";
$string = '';
for ($i = 0; $i < 100000; $i++) $string .= chr(65 + $i % 26);
echo strlen(str_repeat($string, 40)), ' ', crc32($string), "\n";
usort($data, fn($a, $b) => strcmp($a[0], $b[0]));
echo $data[0][0], "\n";
PROGRAM
php -m
php job.php
