# needs: perl
# Hashes, strings that grow, regular expressions, sorting, closures, references in cycles, fork and pipes.
set -eu
cat >job.pl <<'PROGRAM'
use strict; use warnings; use List::Util qw(sum max); use Digest::MD5 qw(md5_hex);
$| = 1;
my $seed = 1;
sub rnd { $seed = ($seed * 1103515245 + 12345) & 0x7fffffff; return ($seed >> 8) % $_[0] }

my (%count, @words);
push @words, join '', map { chr(97 + rnd(6)) } 1 .. 3 + rnd(3) for 1 .. 30000;
$count{$_}++ for @words;
my @top = (sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count)[0 .. 9];
print join(' ', map {"$_=$count{$_}"} @top), "\n";

my $text = join ' ', @words;
print length $text, ' ', md5_hex($text), "\n";
(my $changed = $text) =~ s/\b([a-c])(\w+)/\u$1$2-/g;
print md5_hex($changed), ' ', scalar(() = $changed =~ /[A-C]\w*f-/g), "\n";
my @parts = split /[aeiou]+/, $text;
print scalar @parts, ' ', max(map {length} @parts), "\n";

my $string = '';
$string .= chr(65 + $_ % 26) x ($_ % 97) for 1 .. 20000;
substr($string, rnd(100000), 10) = 'y' x rnd(30) for 1 .. 3000;
print length $string, ' ', md5_hex($string), "\n";

my @subs = map { my $n = $_; sub { $n += $_[0]; [($n) x 5] } } 1 .. 20000;
print sum(map { $_->(2)->[3] } @subs), "\n";
for (1 .. 20000) { my $node = {n => $_}; $node->{self} = $node; delete $node->{self} if $_ % 2 }
my @matrix = map { my $r = $_; [map { $r * $_ % 101 } 1 .. 150] } 1 .. 150;
print sum(map { sum(@$_) } @matrix), "\n";

for my $i (1 .. 5) {
    pipe(my $in, my $out);
    my $pid = fork;
    if (!$pid) { print $out join(',', sort { $a <=> $b } map { rnd(1000) } 1 .. 100 * $i), "\n"; close $out; exit 0 }
    close $out;
    print md5_hex(<$in>), "\n";
    waitpid $pid, 0;
    print $? >> 8, "\n";
}
print sprintf('%s', eval { die {code => 42} } // $@->{code}), "\n";
PROGRAM
perl job.pl
