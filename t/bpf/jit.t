#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Names that JIT compilers publish for their code are in the capture.
# shellcheck disable=SC2016,SC2119,SC2154,SC2317 # Perl's variables; $rc and others of tap.sh; functions that ok calls
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf
export BIN OBJ TMP

# pieces CAP: prints the pieces of JIT code of a capture, decoded without the tools: "KIND NAME FILE:LINE"
pieces() {
	perl "$DATA/capture/decode.pl" "$1" | perl -ne '
		next unless /^jit proc=(\d+) kind=(\d+) from_ns=(\d+) to_ns=(\d+) start=(\d+) length=(\d+) name=(.*) file=(.*) line=(\d+) offset=(\d+)$/;
		my $l = "$2 $7 $8:$9\n"; $l =~ s/\\x20/ /g; print $l' | LC_ALL=C sort
}

# made_frames CAP: prints the names of the frames that called nap(), the function that waits
made_frames() {
	waits "$1" 'my @f = map { $_->{symbol} // "?" } @{$w->{user_stack} || []};
		for my $i (0 .. $#f - 1) { $h{$f[$i + 1]} = 1 if $f[$i] eq "nap" }' | sed 's/ 1$//'
}

# leave_map PID: the perf map of that process is removed at exit
leave_map() {
	at_exit_files="$at_exit_files /tmp/perf-$1.map"
}
at_exit_files=
clean() {
	# shellcheck disable=SC2086 # a list
	rm -f $at_exit_files
	tap_cleanup
}
trap clean EXIT

# --- a perf map ---

run timeout -k 5 60 "$BIN/offcpu-record" -q --force -o "$TMP/map.cap" -- "$OBJ/t/work/jit" map
is "$rc" 0 "a program with a perf map is recorded"
read -r pid first _ <"$out"
ok "the program has removed its perf map before the recording ended" test ! -e "/tmp/perf-$pid.map"
is "$(pieces "$TMP/map.cap")" "1 made second(int) :0
1 made_first :0" "a perf map: only the names of code that waited are in the capture"
is "$(counter "$TMP/map.cap" jit.bad_lines)" 2 "a perf map: invalid lines are counted"
is "$(counter "$TMP/map.cap" jit.maps_read)" 1 "a perf map: one map was read"
is "$(counter "$TMP/map.cap" jit.entries_kept)" 2 "a perf map: two entries are kept"
is "$(made_frames "$TMP/map.cap")" "made second(int)
made_first" "a perf map: frames have its names; the newest entry wins"

run timeout -k 5 60 "$BIN/offcpu-record" -q --force -o "$TMP/grow.cap" -- "$OBJ/t/work/jit" grow
is "$(pieces "$TMP/grow.cap")" "1 made later :0
1 made_first :0" "a perf map that grows during the recording is read as it was at its end"

run timeout -k 5 60 "$BIN/offcpu-record" -q --force -o "$TMP/none.cap" -- "$OBJ/t/work/jit" quiet 0.3
is "$rc $(pieces "$TMP/none.cap")" "0 " "a program that publishes no names has none in the capture"
is "$(counter "$TMP/none.cap" jit.processes)" 1 "a program that publishes no names is counted in jit.processes"
is "$(counter "$TMP/none.cap" jit.failed)" 0 "a program that publishes no names is not a failure"

# --- a process that runs before and after the recording ---

"$OBJ/t/work/jit" map 60 >"$TMP/live" 2>/dev/null </dev/null &
live=$!
at_exit_kill "$live"
until_true test -s "$TMP/live"
rec "$TMP/live.cap" -d 1 -p "$live"
leave_map "$live"
is "$(pieces "$TMP/live.cap")" "1 made_first :0" "a process that still runs: the entries of its map in which it waited are kept"
kill "$live" 2>/dev/null

# --- files that are believed or refused ---

# record_map FUNCTION: records a process whose perf map FUNCTION creates; the process itself publishes nothing
record_map() {
	rm -f "$TMP/made"
	"$OBJ/t/work/jit" quiet 60 >"$TMP/made" 2>/dev/null </dev/null &
	made=$!
	at_exit_kill "$made"
	until_true test -s "$TMP/made"
	read -r pid first _ size <"$TMP/made"
	leave_map "$pid"
	rm -f "/tmp/perf-$pid.map"
	"$@" "/tmp/perf-$pid.map"
	rec "$TMP/made.cap" -d 1 -p "$made"
	kill "$made" 2>/dev/null
	wait "$made" 2>/dev/null
}
by_root() {
	echo "$first $size made" >"$1"
}
by_nobody() {
	by_root "$1" && chown nobody "$1"
}
by_link() {
	by_root "$TMP/elsewhere" && ln -s "$TMP/elsewhere" "$1"
}
by_fifo() {
	mkfifo "$1"
}
long_ago() {
	by_root "$1" && touch -d '1 hour ago' "$1"
}
by_garbage() {
	head -c 300000 /dev/urandom >"$1"
}
record_map by_root
is "$(pieces "$TMP/made.cap")" "1 made :0" "a perf map that belongs to root is used"
record_map by_nobody
is "$(pieces "$TMP/made.cap")/$(counter "$TMP/made.cap" jit.refused)" "/1" "a perf map that belongs to another user is refused and counted"
like "$("$BIN/capinfo" "$TMP/made.cap")" "jit=the perf map of process $pid: it belongs to user" "the capture says why a perf map was refused"
record_map by_link
is "$(pieces "$TMP/made.cap")/$(counter "$TMP/made.cap" jit.refused)" "/1" "a perf map that is a symbolic link is refused"
record_map by_fifo
is "$rc $(pieces "$TMP/made.cap")/$(counter "$TMP/made.cap" jit.refused)" "0 /1" "a perf map that is a FIFO is refused and does not block the recorder"
record_map long_ago
is "$(pieces "$TMP/made.cap")/$(counter "$TMP/made.cap" jit.stale)" "/1" "a perf map that is older than the process is not used"
record_map by_garbage
is "$rc $(pieces "$TMP/made.cap")/$(counter "$TMP/made.cap" jit.maps_read)" "0 /1" "a perf map of random bytes gives no names"

# --- a program in its own namespaces ---

if unshare --pid --mount --fork true 2>/dev/null; then
	cat >"$TMP/inside.sh" <<-'SH'
		exec 9<"$OBJ_JIT" # it may lie below /tmp
		mount -t tmpfs none /tmp && exec /proc/self/fd/9 map 2
	SH
	run timeout -k 5 60 env OBJ_JIT="$OBJ/t/work/jit" "$BIN/offcpu-record" -q --force --follow -o "$TMP/ns.cap" -- \
		unshare --pid --mount --fork sh "$TMP/inside.sh"
	is "$(awk '{ print $1 }' "$out")" 1 "the program is PID 1 of its namespace"
	is "$(pieces "$TMP/ns.cap")" "1 made second(int) :0
1 made_first :0" "a program in its own namespaces: names come from its own perf map, by its own PID"
else
	skip "a program in its own namespaces" "no namespaces here"
fi

# --- jitdump ---

mkdir "$TMP/dump"
run timeout -k 5 60 sh -c 'cd "$TMP/dump" && exec "$BIN/offcpu-record" -q --force -o "$TMP/dump.cap" -- "$OBJ/t/work/jit" dump'
is "$(pieces "$TMP/dump.cap")" "2 dumped_first made.src:11
2 dumped_second made.src:12" "a jitdump file: names, files and lines are in the capture"
is "$(made_frames "$TMP/dump.cap")" "dumped_first
dumped_second" "a jitdump file: frames have its names"
run timeout -k 5 60 sh -c 'cd "$TMP/dump" && exec "$BIN/offcpu-record" -q --force -o "$TMP/moved.cap" -- "$OBJ/t/work/jit" moved 2.4'
is "$(pieces "$TMP/moved.cap")" "2 dumped_anew made.src:13
2 dumped_first made.src:11
2 dumped_second made.src:12" "a jitdump file: code that replaces other code and the replaced code are both kept"

# --- real runtimes ---

if command -v node >/dev/null; then
	cat >"$TMP/w.js" <<-'JS'
		const cell = new Int32Array(new SharedArrayBuffer(4));
		function waitsInJs(ms) { Atomics.wait(cell, 0, 0, ms); }
		function callsIt() { for (let i = 0; i < 20; i++) waitsInJs(50); }
		console.log(process.pid);
		callsIt();
	JS
	# node leaves a log in the current folder
	run timeout -k 5 60 sh -c 'cd "$TMP" && exec "$BIN/offcpu-record" -q --force --runtimes none -o "$TMP/node.cap" -- \
		node --perf-basic-prof --interpreted-frames-native-stack "$TMP/w.js"'
	leave_map "$(cat "$out")"
	like "$(pieces "$TMP/node.cap")" 'waitsInJs .*w\.js' "node --perf-basic-prof: a JavaScript function that waits has its name"
	like "$(pieces "$TMP/node.cap")" 'callsIt .*w\.js' "node --perf-basic-prof: the caller of a function that waits has its name"
	is "$(waits "$TMP/node.cap" '$n = 1 if user() =~ /waitsInJs .*;.*callsIt /')" 1 "node --perf-basic-prof: a stack has the function that waits and, below it, its caller"
else
	skip "node" "no node"
fi
program=${RUNTIME:-java}
javac() { timeout 60 "$program" -m jdk.compiler/com.sun.tools.javac.Main "$@"; }
jcmd() { timeout 20 "$program" -m jdk.jcmd/sun.tools.jcmd.JCmd "$@"; }
jstack() { timeout 20 "$program" -m jdk.jcmd/sun.tools.jstack.JStack "$@"; }
if [ "$("$program" --list-modules 2>/dev/null | grep -cE "^jdk\.(compiler|jcmd)@")" -eq 2 ]; then
	mkdir "$TMP/java"
	cat >"$TMP/java/W.java" <<-'JAVA'
		public class W {
			static long n;
			static void waitsInJava() throws Exception { Thread.sleep(2); n++; }
			static void callsIt() throws Exception { waitsInJava(); }
			public static void main(String[] a) throws Exception {
				for (int i = 0; i < 30000; i++) callsIt();
			}
		}
	JAVA
	javac -d "$TMP/java" "$TMP/java/W.java" 2>/dev/null
	"$program" -XX:+PreserveFramePointer -Xcomp -XX:CompileCommand=quiet -XX:CompileCommand=compileonly,W.* \
		-XX:CompileCommand=dontinline,W.* -cp "$TMP/java" W >/dev/null 2>&1 </dev/null &
	java=$!
	at_exit_kill "$java"
	leave_map "$java"
	tries=0
	until jcmd "$java" Compiler.codelist 2>/dev/null | grep -q W.waitsInJava || [ $tries -ge 60 ]; do
		tries=$((tries + 1))
		sleep 0.5
	done
	rec_start "$TMP/java.cap" -q -p "$java"
	sleep 1
	ok "jcmd lets Java write a perf map" jcmd "$java" Compiler.perfmap
	rec_stop
	kill "$java" 2>/dev/null
	like "$(pieces "$TMP/java.cap")" 'void W\.waitsInJava\(\)' "Java with a perf map: a method that waits has its name"

	# without any flag, and as a virtual machine of an unknown version: methods are interpreted, and each
	# has one frame. jstack knows how many there are
	cat >"$TMP/java/D.java" <<-'JAVA'
		import java.util.concurrent.locks.LockSupport;
		public class D {
			static final Object lock = new Object();
			interface Wait { void now() throws Exception; }
			static void deep(int n, Wait w) throws Exception { if (n > 0) deep(n - 1, w); else for (;;) w.now(); }
			static void start(String name, int n, Wait w) {
				Thread t = new Thread(() -> { try { deep(n, w); } catch (Exception e) { } }, name);
				t.setDaemon(true);
				t.start();
			}
			public static void main(String[] a) throws Exception {
				start("sleeps", 0, () -> Thread.sleep(100000));
				start("deep", 40, () -> Thread.sleep(100000));
				start("waits", 3, () -> { synchronized (lock) { lock.wait(); } });
				start("parks", 7, () -> LockSupport.park());
				start("reads", 2, () -> System.in.read());
				start("naps", 5, () -> Thread.sleep(30));
				synchronized (D.class) { System.out.println("ready"); Thread.sleep(100000); }
			}
		}
	JAVA
	javac -d "$TMP/java" "$TMP/java/D.java" 2>/dev/null
	mkfifo "$TMP/java/silence"
	exec 8<>"$TMP/java/silence"
	"$program" -cp "$TMP/java" D <&8 >"$TMP/java/out" 2>/dev/null 7>&- &
	java=$!
	at_exit_kill "$java"
	until_true grep -q ready "$TMP/java/out"
	# every wait is below these frames from now on
	blocked() { jstack "$java" >"$TMP/jstack" 2>/dev/null && [ "$(grep -cE '^"(sleeps|deep|waits|parks|reads|naps|main)"' "$TMP/jstack")" -eq 7 ] && [ "$(grep -A 1 -E '^"(sleeps|deep|waits|parks|reads|main)"' "$TMP/jstack" | grep -cE 'State: .*WAITING|State: RUNNABLE')" -eq 6 ]; }
	until_true blocked
	rec_start "$TMP/depth.cap" -q --runtimes none -p "$java"
	sleep 0.5
	rec_stop
	run "$BIN/offcpu-record" --force --runtimes none -o "$TMP/said.cap" -p "$java" -d 0.2
	like "$(cat "$err")" 'user stacks: .*unverified
  unverified: unwound partly by frame pointer, .*
  java: -XX:\+PreserveFramePointer ' "Java by frame pointer: the summary explains what is unverified, and which flags help"
	kill "$java" 2>/dev/null
	want=$(perl -ne 'if (/^"(sleeps|deep|waits|parks|reads|naps|main)" .*nid=(0x)?([0-9a-f]+)/) { $t = $2 ? hex $3 : $3; $n{$t} = 1; $name{$t} = $1 }
		elsif (/^$/) { $t = 0 } elsif (/^\tat / && $t) { $n{$t}++ }
		END { print join(" ", sort map { "$name{$_}=$n{$_}" } keys %n), "\n"; }' "$TMP/jstack")
	got=$(NAMES="$(perl -ne 'print $2 ? hex $3 : $3, "=$1 " if /^"(sleeps|deep|waits|parks|reads|naps|main)" .*nid=(0x)?([0-9a-f]+)/' "$TMP/jstack")" \
		waits "$TMP/depth.cap" 'my %name = map { split /=/ } split / /, $ENV{NAMES};
		return if !$name{$w->{tid}} || $w->{user_stack_verdict} eq "failed";
		my @f = @{$w->{user_stack}};
		my $n = grep { ($_->{module} // "") !~ m{^/[^/]|^\[vdso} } @f;
		$n = "$w->{user_stack_verdict}, $w->{user_stack_error}" if $w->{user_stack_error} || ($f[-1]{symbol} // $f[-1]{module} // "") !~ m{^(__clone3|clone3|_start)|/libc\.so\.6$};
		$h{"$name{$w->{tid}}=$n"} = 1' | sed 's/ 1$//' | sort | paste -sd ' ')
	is "$got" "$want" "Java by frame pointer: every stack is complete, and has as many frames of methods as jstack prints"
	is "$(waits "$TMP/depth.cap" '$n++ if $w->{user_stack_error}')" 0 "Java by frame pointer: no stack is stopped"
else
	skip "Java" "no JDK"
fi
# speaking_python: prints the first Python that publishes names with -X perf
speaking_python() {
	for p in python3.12 python3.13 python3 "$HOME"/.pyenv/versions/*/bin/python3; do
		probe=$("$p" -X perf -c 'import os, sys; print(os.getpid()); sys.exit(not sys.is_stack_trampoline_active())' 2>/dev/null)
		works=$?
		rm -f "/tmp/perf-$probe.map"
		[ $works -eq 0 ] && echo "$p" && return
	done
	return 1
}
if python=$(speaking_python); then
	cat >"$TMP/w.py" <<-'PY'
		import os, time
		print(os.getpid())
		def waits_in_python():
		    time.sleep(0.05)
		def calls_it():
		    for i in range(20): waits_in_python()
		calls_it()
	PY
	run timeout -k 5 60 "$BIN/offcpu-record" -q --force -o "$TMP/py.cap" -- "$python" -X perf "$TMP/w.py"
	leave_map "$(cat "$out")"
	like "$(pieces "$TMP/py.cap")" 'py::waits_in_python:' "python -X perf: a function that waits has its name"
else
	skip "python -X perf" "no Python that does that"
fi
tap_done
