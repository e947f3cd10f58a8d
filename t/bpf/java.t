#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The stacks of Java programs are complete and proved without any flag, and have the methods that
# jstack prints, with file and line. RUNTIME=COMMAND: another java than the system's.
# shellcheck disable=SC2016,SC2154 # Perl's variables; $rc and others of tap.sh
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf
program=${RUNTIME:-java}
# of the same version as the program
jstack() { timeout 20 "$program" -m jdk.jcmd/sun.tools.jstack.JStack "$@"; }
javac() { timeout 60 "$program" -m jdk.compiler/com.sun.tools.javac.Main "$@"; }
if [ "$("$program" --list-modules 2>/dev/null | grep -cE "^jdk\.(compiler|jcmd)@")" -ne 2 ]; then
	skip "Java" "no JDK"
	tap_done
	exit
fi
java_version=$("$program" -XshowSettings:properties -version 2>&1 | sed -n 's/.*java\.specification\.version = //p')
case $java_version in
11 | 17 | 21 | 25) ;;
*)
	skip "Java" "it is version $java_version"
	tap_done
	exit
	;;
esac
javac -d "$TMP" "$DATA/java/Ways.java" 2>/dev/null &
javac -g:source -d "$TMP" "$DATA/java/Churn.java" 2>/dev/null
wait
mkfifo "$TMP/silence" "$TMP/go"
exec 8<>"$TMP/silence" 9<>"$TMP/go"

# --- interpreted, compiled by C1 and C2, compiled by C2 alone, and without a flag ---

# start NAME FLAG...: starts the program, its PID is then in $java
start() {
	name=$1
	shift
	"$program" "$@" -cp "$TMP" Ways <&8 >"$TMP/$name.out" 2>/dev/null 9>&- &
	java=$!
	at_exit_kill "$java"
}
threads='deep|enters|fifo|future|main|naps|parks|process|queue|sleeps|socket|stays|waits'
# blocked NAME PID: all threads have reached the place where they block, and jstack's output has it
blocked() {
	grep -q ready "$TMP/$1.out" && jstack "$2" >"$TMP/$1.jstack" 2>/dev/null &&
		[ "$(grep -A 1 -E "^\"($threads)\"" "$TMP/$1.jstack" | grep -cE 'State: (.*WAITING|BLOCKED)')" -eq 11 ] &&
		[ "$(grep -cE 'at (java.io.FileInputStream.readBytes|java.net.SocketInputStream.socketRead0|sun.nio.ch.Net.poll|sun.nio.ch.SocketDispatcher.read0)' "$TMP/$1.jstack")" -ge 2 ]
}
start plain
plain=$java
start interpreted -Xint
interpreted=$java
start compiled -Xcomp
compiled=$java
until_true blocked plain "$plain"
until_true blocked interpreted "$interpreted"
until_true blocked compiled "$compiled"
run timeout -k 5 60 "$BIN/offcpu-record" --force --depth 512 -d 1 -o "$TMP/ways.cap" -p "$plain" -p "$interpreted" -p "$compiled"
like "$(cat "$err")" "runtimes: java $java_version\\.0, 3 processes" "the summary says which virtual machine was recognised"
"$BIN/symbolize" -q --format=json "$TMP/ways.cap" >"$TMP/ways.json"
for how in plain interpreted compiled; do
	got=$(perl "$DATA/java/compare.pl" "$TMP/$how.jstack" <"$TMP/ways.json")
	is "$(echo "$got" | grep -cE ' ok$')/$(echo "$got" | grep -vcE ' ok$')" "13/0" "$how: thirteen threads that wait in different ways: methods, files and lines are those of jstack, stacks complete"
	case $got in *differs* | *none*) echo "$got" | head -60 | diag ;; esac
done
like "$("$BIN/symbolize" -q "$TMP/ways.cap")" '
\s+0 LWays;::deep \(\[java\]\)
\s+0 LWays;::lambda\$start\$0 ' "text: methods are named as perf names those of perf-map-agent"
like "$("$BIN/symbolize" -q --lines "$TMP/ways.cap")" '
\s+0 LWays;::deep \(\[java\]\)
 +Ways\.java:[0-9]+
' "text: files and lines with --lines"
like "$("$BIN/symbolize" -q "$TMP/ways.cap" | "$BIN/fold")" ';LWays:?;?::deep' "fold: methods are in folded stacks"
kill "$plain" "$interpreted" "$compiled" 2>/dev/null

# --- classes that are loaded, unloaded and replaced ---

"$program" -Xmx64m -cp "$TMP" Churn 600 <&9 >"$TMP/churn.out" 2>/dev/null 8>&- &
java=$!
at_exit_kill "$java"
until_true grep -q ready "$TMP/churn.out"
rec_start "$TMP/churn.cap" -q --depth 256 -p "$java"
echo go >&9
until_true grep -qE '^[0-9]' "$TMP/churn.out"
rec_stop
kill "$java" 2>/dev/null
ok "memory of classes was used again" test "$(grep -E '^[0-9]' "$TMP/churn.out")" -gt 100
churn=$(waits "$TMP/churn.cap" 'my @f = map { $_->{function} // "?" } grep { $_->{runtime} } @{$w->{user_stack} || []};
	return if ($f[0] // "") !~ /^java\.lang\.Thread\.sleep/;
	shift @f while ($f[0] // "") =~ /^java\.lang\.Thread\.sleep/;
	return if ($f[0] // "") ne "Churn.nap";
	my ($n) = ($f[1] // "") =~ /^T(\d{5})\.m\1/;
	$n && $f[2] eq "T$n.run" && $f[3] eq "Churn.main" && @f == 4 or return $h{"wrong: @f"} = 1;
	$h{"line: @f"} = 1 if grep { ($_->{function} // "") =~ /^(?:T\d|Churn)/ && $_->{line} } @{$w->{user_stack}};
	push @{$c{times}}, [$n, $w->{first_ns}, $w->{last_ns}];
	return if @{$c{times}} < 300;
	# each class waits once, or twice if it wakes early, and never after the next one
	my @t = sort { $a->[1] <=> $b->[1] } @{$c{times}};
	$t[$_ - 1][0] <= $t[$_][0] && $t[$_ - 1][2] <= $t[$_][1] or $h{"$t[$_][0] after $t[$_ - 1][0]"} = 1 for 1 .. $#t;
	$h{"300 classes"} = 1')
is "$churn" "300 classes 1" "classes that replace each other in memory: each of their waits has the names of its own class, and no line, as they have none"

# --- virtual threads, which keep their carrier while they wait in native code ---

if [ "$java_version" -ge 21 ]; then
	javac -d "$TMP" "$DATA/java/Virtual.java" 2>/dev/null
	"$program" -cp "$TMP" -Djdk.virtualThreadScheduler.parallelism=2 Virtual "$TMP/silence" >/dev/null 2>&1 8>&- 9>&- &
	java=$!
	at_exit_kill "$java"
	reading() {
		timeout 20 "$program" -m jdk.jcmd/sun.tools.jcmd.JCmd "$java" Thread.dump_to_file -overwrite "$TMP/dump" >/dev/null 2>&1 &&
			[ "$(grep -c FileInputStream.read0 "$TMP/dump")" -eq 2 ]
	}
	until_true reading
	jstack "$java" >"$TMP/virtual.jstack" 2>/dev/null
	run timeout -k 5 60 "$BIN/offcpu-record" --force -o "$TMP/virtual.cap" --depth 512 -d 0.5 -p "$java"
	kill "$java" 2>/dev/null
	is "$(sed -n '/^  unverified: /{n;s/:.*//p}' "$err")" "  runtimes" "the summary advises no flag that a virtual machine which is known does not need"
	"$BIN/symbolize" -q --format=json "$TMP/virtual.cap" >"$TMP/virtual.json"
	is "$(perl "$DATA/java/virtual.pl" "$TMP/dump" "$TMP/virtual.jstack" <"$TMP/virtual.json")" \
		"pinned: complete, all frames, its carrier's
resumed: unverified, innermost frames, its carrier's" \
		"virtual threads: the stack goes on to the carrier's frames; it is unverified where frames of the virtual thread are in the heap"
fi
tap_done
