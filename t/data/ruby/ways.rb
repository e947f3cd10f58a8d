# SPDX-License-Identifier: GPL-2.0-or-later
# Processes that block in many ways, again and again. Each writes what Ruby itself, by caller_locations(), says
# about its frames to the file ARGV[0]/NAME before it blocks: its PID (of threads: the thread's ID), then
# "FUNCTION<tab>FILE<tab>LINE" for each frame, the innermost first. The program ends when its standard input does.
require 'socket'
require 'monitor'
require 'timeout'

$out, $included = ARGV
$pipe, $poke = UNIXSocket.pair
$said = {}

def write(id, frames)
  return if $said[$name]
  $said[$name] = true
  # without a caller in Ruby, a function in C has no line
  lines = frames.map { |l| "#{l.label}\t#{l.path}\t#{l.lineno if l.lineno > 0}\n" }
  File.write("#{$out}/#{$name}.new", "#{id}\n" + lines.join)
  File.rename("#{$out}/#{$name}.new", "#{$out}/#{$name}")
end
Place = Struct.new(:label, :path, :lineno)
# Called on the line that blocks, in the functions BY, innermost first, which are in C.
def say(*by)
  at = caller_locations(1)
  write(syscall(186), by.map { |f| Place.new(f, at[0].path, at[0].lineno) } + at) # gettid
  0
end
# What the thread is at that calls this, when it blocks on its next line; then DONE.
def ask(&done)
  main = Thread.current
  Thread.new { sleep 0.1; write($$, main.backtrace_locations); done.call }
end

def pause; sleep 0.1 + say('sleep'); end
def deep(n) n > 0 ? deep(n - 1) : sleep(0.1 + say('sleep')) end
def yields; yield; end

class Base
  def run(n) n > 0 ? run(n - 1) : pause end
  def method_missing(name, *args) sleep 0.1 + say('sleep') end
  def respond_to_missing?(name, all = false) true end
  def self.singleton; sleep 0.1 + say('sleep'); end
  define_method(:defined) { |x| sleep 0.1 + say('sleep') }
  def <=>(other) pause; 0 end
  include Comparable
  def each; pause; yield 1; end
  include Enumerable
  def to_s; sleep 0.1 + say('sleep'); 'x'; end
  def coerce(x) pause; [1, 1] end
  def hash; pause; 1; end
  def eql?(o) true end
  def to_proc; proc { |x| pause } end
  def +(x) pause; 1 end
  def [](i) pause end
  def value=(x) pause; end
  def self.const_missing(x) pause; 1 end
  protected def hidden; pause; end
end
class Parent
  def self.inherited(c) pause; end
end
class Derived < Base
  def run(n) super end
end
module Prepended
  def run(n) yields { super } end
end
class WithPrepended < Base
  prepend Prepended
end
module Refined
  refine String do
    def refined; sleep 0.1 + say('sleep'); end
  end
end
using Refined
object = Object.new
class << object
  def own; sleep 0.1 + say('sleep'); end
end
def rescues
  raise 'x'
rescue StandardError
  sleep 0.1 + say('sleep')
end
def ensures
  yield
ensure
  sleep 0.1 + say('sleep')
end
def keywords(a, b = 1, *c, d: 2, **e, &f) sleep 0.1 + say('sleep') end
Pair = Struct.new(:a, :b)
mutex, queue, condition, monitor = Mutex.new, Queue.new, ConditionVariable.new, Monitor.new
anonymous = lambda { |x| sleep 0.1 + say('sleep') }
symbols = [:pause]

ways = {
  method: -> { pause },
  deep: -> { deep(90) },
  super: -> { Derived.new.run(2) },
  prepend: -> { WithPrepended.new.run(1) },
  singleton: -> { Base.singleton },
  object: -> { object.own },
  defined: -> { Base.new.defined(1) },
  missing: -> { Base.new.anything(1, 2) },
  keywords: -> { keywords(1, 2, 3, d: 4, z: 5) {} },
  block: -> { yields { yields { pause } } },
  lambda: -> { anonymous.call(1) },
  yielded: -> { yields { |x = 1| sleep 0.1 + say('sleep') } },
  proc: -> { proc { |x| anonymous.(x) }.call(1) },
  each: -> { [1, 2].each { |x| pause } },
  map: -> { [1].map { |x| [x].each_with_index { |y, i| pause } } },
  sort: -> { [Base.new, Base.new].sort },
  sort_by: -> { [3, 1].sort_by { |x| sleep 0.1 + say('sleep'); x } },
  compare: -> { Base.new < Base.new },
  enumerable: -> { Base.new.map { |x| x } },
  inject: -> { [1, 2, 3].inject { |a, b| pause; a } },
  hash: -> { Hash.new { |h, k| pause }[1] },
  key: -> { { Base.new => 1 } },
  times: -> { 2.times { |i| 1.upto(2) { |j| pause } } },
  loop: -> { loop { pause; break } },
  gsub: -> { 'abc'.gsub(/b/) { |x| pause; x } },
  struct: -> { Pair.new(1, 2).each { |x| pause } },
  string: -> { "a#{Base.new}" },
  coerce: -> { 1 + Base.new },
  operator: -> { Base.new + 1 },
  index: -> { Base.new[1] },
  setter: -> { Base.new.value = 1 },
  send: -> { Base.new.__send__(:hidden) },
  symbol: -> { [Base.new].each(&:hash) },
  symbol_send: -> { symbols.each { |s| send(s) } },
  to_proc: -> { [1].each(&Base.new) },
  method_object: -> { [0].each(&Base.new.method(:run)) },
  fiber: -> { f = Fiber.new { deep(2) }; f.resume },
  enumerator: -> { e = Enumerator.new { |y| pause; y << 1 }; e.next },
  lazy: -> { (1..3).lazy.map { |x| pause; x }.first(1) },
  thread: -> { Thread.new { deep(2) while true }.join },
  join: -> { Thread.new { sleep 1 }.join(0.1 + say('join')) },
  rescue: -> { rescues },
  ensure: -> { ensures { 1 } },
  ensure_raised: -> { begin; ensures { raise 'x' }; rescue StandardError; end },
  retry: -> { n = 0; begin; n += 1; raise 'x' if n < 2; pause; rescue StandardError; retry; end },
  catch: -> { catch(:done) { pause; throw :done } },
  eval: -> { eval("\n\nsleep 0.1 + say('sleep')", binding, 'evaluated.rb', 7) },
  instance_eval: -> { Base.new.instance_eval { pause } },
  class_eval: -> { Base.class_eval('def evaluated; sleep 0.1 + say("sleep"); end', 'class.rb', 3); Base.new.evaluated },
  class_body: -> { Class.new { pause } },
  class_in_eval: -> { eval("class InEval\n def self.x; pause; end\n x\nend") },
  inherited: -> { Class.new(Parent) },
  constant: -> { Base::MISSING },
  require: -> { $LOADED_FEATURES.delete(File.realpath($included)); require $included },
  load: -> { load $included },
  mutex: -> { mutex.synchronize { Thread.new { mutex.lock }; pause } },
  lock: -> { m = Mutex.new; Thread.new { m.lock; sleep 0.1 }; Thread.pass until m.locked?; m.lock if say('lock') },
  queue: -> { ask { queue << 1 }; queue.pop },
  stop: -> { t = Thread.current; ask { t.run }; Thread.stop },
  condition: -> { mutex.synchronize { condition.wait(mutex, 0.1 + say('sleep', 'wait')) } },
  monitor: -> { monitor.synchronize { pause } },
  timeout: -> { Timeout.timeout(5) { pause } },
  refined: -> { 'x'.refined },
  select: -> { IO.select([$pipe], nil, nil, 9 + say('select')); $pipe.readpartial(1) },
  read: -> { $pipe.sysread(1 + say('sysread')) },
  gets: -> { $pipe.gets('x', 3 + say('gets')) },
  wait: -> { pid = fork { sleep 0.1; exit! }; Process.wait(pid + say('wait')) },
  backtick: -> { `sleep 0.1#{say('`') && nil}` },
  system: -> { system('sleep', "0.1#{say('system') && nil}") },
  popen: -> { IO.popen('sleep 0.1') { |io| io.read(1 + say('read')) } },
  signal: -> { trap('USR1') { pause }; Process.kill('USR1', $$); sleep 0.01 },
  tap: -> { 1.tap { |x| 2.then { |y| pause } } },
  at_exit: -> { at_exit { pause while true }; exit },
  finalizer: -> { ObjectSpace.define_finalizer(Object.new, proc { pause while true }); 10_000.times { Object.new }; GC.start },
  trace: -> { t = TracePoint.new(:call) { |x| t.disable; pause }; t.enable; yields { 1 } },
  instance_exec: -> { Base.new.instance_exec(1) { |x| define_singleton_method(:made) { pause }; made } },
  flip: -> { [1].each_slice(1).with_index.map { |x, i| pause } },
}

File.write("#{$out}.ways", ways.size)
children = []
ways.sort.each do |name, way|
  $name = name
  pid = fork
  if pid
    children << pid
    next
  end
  way.call while true
end
# those that read wait for this
loop do
  ready, = IO.select([$stdin], nil, nil, 0.02)
  break if ready && $stdin.read_nonblock(1, exception: false).nil?
  $poke.write_nonblock("\n\n\n\n", exception: false)
end
children.each { |pid| Process.kill(:KILL, pid) }
children.each { |pid| Process.wait(pid) }
