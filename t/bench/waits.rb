# SPDX-License-Identifier: GPL-2.0-or-later
# waits.rb SECONDS FILE: threads that wait for time, a lock, a pipe, a disk and a process.
def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

LOCK = Mutex.new
QUEUE = Queue.new
FINISH = now + ARGV[0].to_f

def sleeps = sleep(0.002)

def locks
  LOCK.synchronize { sleep 0.001 }
end

def takes = QUEUE.pop

def puts_one
  sleep 0.001
  QUEUE << 1
end

def syncs
  File.open(ARGV[1], "w") do |f|
    f.write("x" * 10_000)
    f.fsync
  end
  sleep 0.001
end

def runs = system("true")

%i[sleeps locks locks takes puts_one syncs runs].map do |name|
  Thread.new { send(name) while now < FINISH }
end.each { |t| t.join(ARGV[0].to_f + 1) }
