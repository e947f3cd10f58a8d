# SPDX-License-Identifier: GPL-2.0-or-later
# rubystack.rb DEPTH: a process that waits as often as possible, DEPTH distinct methods deep, for a minute.
last = ARGV[0].to_i - 2
finish = Time.now + 60
(1...last).each { |i| eval "def f#{i}() f#{i + 1} end" }
define_method(:finish) { finish }
eval "def f#{last}()\n sleep 0.000001 while Time.now < finish\nend"
f1
