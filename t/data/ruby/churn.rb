# SPDX-License-Identifier: GPL-2.0-or-later
# Methods that are made and freed at a high rate, for ARGV[0] seconds: method f_N of file fileN waits in line
# 2 + N mod 61, behind as many assignments, so that its place is not that of another one. Meanwhile another thread moves objects, if this Ruby can. Prints how many were made.
seconds = ARGV[0].to_f
compact = GC.respond_to?(:compact) && Thread.new { loop { sleep 0.005; GC.compact } }
$VERBOSE = nil
made = 0
finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
  20.times do
    n = made += 1
    eval("def f_#{n}\n#{"x = 1\n" * (n % 61)}[1].each { sleep 0.000001 } end\ndef g_#{n}() #{n} end", TOPLEVEL_BINDING, "file#{n}")
    send("f_#{n}")
    send("g_#{n}")
    Object.send(:remove_method, "f_#{n}", "g_#{n}")
  end
  GC.start(full_mark: made % 100 == 0)
end
puts made
