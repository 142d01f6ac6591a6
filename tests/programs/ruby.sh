# needs: ruby
# Strings, arrays, hashes, symbols, regular expressions, threads, fork, finalizers and compaction of Ruby's own heap.
set -eu
cat >job.rb <<'PROGRAM'
require 'digest'
require 'json'
require 'zlib'
$stdout.sync = true
random = Random.new(1)
words = Array.new(40000) { (97 + random.rand(6)).chr * (1 + random.rand(3)) + random.rand(500).to_s }
count = words.tally
puts count.size, count.sort_by { |k, v| [-v, k] }.first(5).inspect
text = words.join(' ')
puts text.size, Digest::MD5.hexdigest(text.gsub(/\b([a-c])(\w+)/) { "#{$1.upcase}-#{$2}" })
json = JSON.generate(words.each_slice(7).map { |a| { a[0] => a[1..] } })
puts json.size, JSON.parse(json).sum { |h| h.values.flatten.size }
puts Zlib::Inflate.inflate(Zlib::Deflate.deflate(text)) == text
list = []
60000.times { |i| list << 'x' * random.rand(2000); list.shift if list.size > 300; list.concat([]) if i % 7 == 0 }
puts list.size, list.sum(&:size)
puts (1..8).map { |n| Thread.new { Digest::SHA256.hexdigest((1..3000).map { |i| (i * n).to_s * 3 }.join)[0, 16] } }.map(&:value)
GC.start
GC.compact if GC.respond_to?(:compact)
puts words.map(&:to_sym).uniq.size
pids = Array.new(4) { |n| fork { a = Array.new(20000) { |i| (i * n).to_s }; GC.start; exit!(a.size == 20000 ? n : 99) } }
puts pids.map { |pid| Process.wait2(pid)[1].exitstatus }.inspect
big = (1..400).inject(:*)
puts big.to_s.size, (big**3 % 1000003)
PROGRAM
ruby job.rb
