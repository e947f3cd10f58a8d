<?php
/* SPDX-License-Identifier: GPL-2.0-or-later
 * Processes that block in many ways, again and again. Each writes what PHP itself says about its frames to
 * the file $argv[1]/NAME before it blocks: its PID, then "FUNCTION<tab>FILE<tab>LINE" for each frame, the
 * innermost first. The number of ways, which depends on the version, is in $argv[1].ways. The program ends
 * when its standard input does. */
namespace Ways\Of;

[$pipe, $poke] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
$out = $argv[1];
$said = false;

/* Called on the line that blocks, in the C function $by. */
function say(?string $by = null)
{
	global $out, $said, $name;
	if ($said)
		return;
	$said = true;
	$trace = debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS);
	$text = getmypid() . "\n" . ($by !== null ? "$by\t\t\n" : "");
	foreach ($trace as $i => $at) {
		$in = $trace[$i + 1] ?? ['function' => '{main}'];
		if (($in['class'] ?? '') === 'Fiber')
			break;
		$function = (isset($in['class']) ? $in['class'] . '::' : '') . $in['function'];
		if (in_array($function, ['include', 'require', 'eval']))
			$function = '{main}';
		/* of an anonymous class there is more behind a NUL */
		$function = preg_replace('/\0[^:]*:[^:]*/', '', $function);
		if ($i + 1 < count($trace) || isset($at['file']))
			$text .= $function . "\t" . ($at['file'] ?? '') . "\t" . ($at['line'] ?? '') . "\n";
	}
	file_put_contents("$out/$name.new", $text);
	rename("$out/$name.new", "$out/$name");
}

class Base
{
	static function pause() { usleep(100000 + (int)say('usleep')); }
	function recursive($n) { return $n ? $this->recursive($n - 1) : self::pause(); }
	function __call($name, $args) { usleep(100000 + (int)say('usleep')); }
	static function __callStatic($name, $args) { usleep(100000 + (int)say('usleep')); }
	function __toString() { usleep(100000 + (int)say('usleep')); return ''; }
	function __get($name) { usleep(100000 + (int)say('usleep')); return 1; }
}
class Derived extends Base
{
	function run() { return parent::recursive(3); }
}
class Destroyed
{
	function __destruct() { usleep(100000 + (int)say('usleep')); }
}
class Walk implements \Iterator, \ArrayAccess, \Countable
{
	private $n = 0;
	#[\ReturnTypeWillChange]
	function current() { usleep(100000 + (int)say('usleep')); return 1; }
	#[\ReturnTypeWillChange]
	function key() { return $this->n; }
	function next(): void { $this->n++; }
	function rewind(): void { $this->n = 0; }
	function valid(): bool { return $this->n < 2; }
	function offsetExists($i): bool { return true; }
	#[\ReturnTypeWillChange]
	function offsetGet($i) { usleep(100000 + (int)say('usleep')); return 1; }
	function offsetSet($i, $v): void { }
	function offsetUnset($i): void { }
	function count(): int { usleep(100000 + (int)say('usleep')); return 1; }
}
trait Waits
{
	function waitInTrait() { usleep(100000 + (int)say('usleep')); }
}
class WithTrait
{
	use Waits;
}
function generate()
{
	while (true) {
		usleep(100000 + (int)say('usleep'));
		yield 1;
	}
}
function delegate()
{
	yield from generate();
}
function read($f)
{
	return fread($f, 1 + (int)say('fread'));
}
function deep($n)
{
	return $n ? deep($n - 1) : usleep(100000 + (int)say('usleep'));
}

$ways = [
	'function' => function () { (function () { usleep(100000 + (int)say('usleep')); })(); },
	'method' => fn() => (new Derived)->run(),
	'deep' => fn() => deep(90),
	'nanosleep' => fn() => time_nanosleep(0, 100000000 + (int)say('time_nanosleep')),
	'read' => fn() => read($pipe),
	'line' => fn() => fgets($pipe, 9 + (int)say('fgets')),
	'select' => function () use ($pipe) {
		$r = [$pipe];
		$w = $e = [];
		stream_select($r, $w, $e, 9 + (int)say('stream_select'));
		fread($pipe, 1);
	},
	'receive' => fn() => stream_socket_recvfrom($pipe, 1 + (int)say('stream_socket_recvfrom')),
	'child' => function () { exec('sleep 0.1' . say('exec')); },
	'process' => function () {
		$p = proc_open(['sleep', '0.1'], [], $pipes);
		proc_close((say('proc_close') ?: $p));
	},
	'wait' => function () {
		if (!($pid = pcntl_fork())) {
			usleep(100000);
			pcntl_exec('/bin/true');
		}
		pcntl_waitpid($pid + (int)say('pcntl_waitpid'), $status);
	},
	'signal' => fn() => pcntl_sigtimedwait([SIGUSR1], $info, 0, 100000000 + (int)say('pcntl_sigtimedwait')),
	'map' => fn() => array_map(fn($x) => Base::pause(), [1, 2]),
	'sort' => function () {
		$a = [3, 1];
		usort($a, function ($x, $y) { usleep(100000 + (int)say('usleep')); return $x <=> $y; });
	},
	'twice' => fn() => array_map(fn($f) => call_user_func_array($f, []), [[new Derived, 'run']]),
	'direct' => fn() => call_user_func('usleep', 100000 + (int)say("usleep\t\t\ncall_user_func")),
	'generator' => function () { foreach (generate() as $x) break; },
	'delegating' => function () { foreach (delegate() as $x) break; },
	'string' => function () { $s = 'a' . new Base; },
	'property' => function () { $s = (new Base)->missing; },
	'call' => fn() => (new Base)->anything(1, 2),
	'static' => fn() => Base::anything(1, 2),
	'destructor' => function () { $x = new Destroyed; $x = null; },
	'iterator' => function () { foreach (new Walk as $x); },
	'index' => fn() => (new Walk)[3],
	'count' => fn() => count(new Walk),
	'include' => fn() => include __DIR__ . '/included.php',
	'eval' => fn() => eval("\n\nusleep(100000 + (int)\\Ways\\Of\\say('usleep'));"),
	'regex' => fn() => preg_replace_callback('/b/', function ($m) { Base::pause(); return ''; }, 'abc'),
	'trait' => fn() => (new WithTrait)->waitInTrait(),
	'anonymous' => fn() => (new class { function inside() { usleep(100000 + (int)say('usleep')); } })->inside(),
	'buffer' => function () {
		ob_start(function ($s) { Base::pause(); return ''; });
		echo 'x';
		ob_end_flush();
	},
	'autoload' => fn() => array_map('class_exists', ['Missing' . mt_rand()]),
	'error' => function () { $x = [] . ''; },
	'reflection' => fn() => (new \ReflectionMethod(Base::class, 'pause'))->invoke(null),
];
if (PHP_VERSION_ID >= 80100)
	$ways += include __DIR__ . '/ways-8.1.php';
if (PHP_VERSION_ID >= 80400)
	$ways['frameless'] = fn() => class_exists('Missing' . mt_rand());
file_put_contents("$out.ways", count($ways));
spl_autoload_register(function ($c) { Base::pause(); });
set_error_handler(function ($no, $text) { Base::pause(); return true; });

$children = [];
foreach ($ways as $name => $way) {
	if ($children[] = pcntl_fork())
		continue;
	pcntl_signal(SIGUSR1, fn() => 0);
	while (true)
		$way();
}
/* those that read wait for this */
stream_set_blocking(STDIN, false);
while (!feof(STDIN)) {
	fread(STDIN, 1);
	fwrite($poke, "\n\n\n\n");
	usleep(20000);
}
pcntl_exec('/bin/sh', ['-c', 'kill -9 ' . implode(' ', $children)]);
