#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# User stacks by ptrace match eu-stack and gdb, for root and for an ordinary
# user, and the programs do not notice.
# shellcheck disable=SC2016,SC2086 # Perl's variables; $user is words
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
for oracle in eu-stack gdb setpriv perl; do
	command -v "$oracle" >/dev/null || skip_all "no $oracle here"
done
[ "$(id -u)" -eq 0 ] || skip_all "needs root: oracles run as root, samplers as an ordinary user"
export DEBUGINFOD_URLS=
chmod 755 "$TMP"
mkdir -m 777 "$TMP/w"
W=$TMP/w
cp "$OBJ/t/unit/user_stacks" "$OBJ/t/work/stops" "$W/"
cp -r "$DATA/unwind" "$W/src"
mkfifo -m 666 "$TMP/silence"
# a pipe that has no data and no end of file
exec 7<>"$TMP/silence"
finish() {
	for f_pid in $tap_pids; do
		kill -KILL "$f_pid" "-$f_pid" 2>/dev/null
	done
}
trap 'finish; tap_cleanup' EXIT

# An ordinary user without capabilities; words, not a function, so that $! is the PID of the command.
user='setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all'
nobody() {
	timeout 60 $user "$@"
}
root() {
	timeout 60 "$@"
}

# build NAME SOURCE [FLAG...]
build() {
	b_name=$1
	b_source=$2
	shift 2
	"${CC:-cc}" -D_GNU_SOURCE -pthread -o "$W/$b_name" "$W/src/$b_source" "$@" >"$W/$b_name.log" 2>&1 && return
	diag <"$W/$b_name.log"
}

# the process runs the requested program, and no longer setpriv, setsid or the shell
started() {
	case $(readlink "/proc/$s_pid/exe") in *'/setpriv' | *'/setsid' | "$sh") return 1 ;; esac
}
sh=$(readlink /proc/$$/exe)

# start NAME COMMAND...: starts it as an ordinary user and waits until it is blocked, except java, which
# has a thread that runs twenty times a second
start() {
	s_name=$1
	shift
	$user setsid "$@" <&7 >"$W/$s_name.out" 2>&1 7>&- &
	s_pid=$!
	echo "$s_pid" >"$W/$s_name.pid"
	at_exit_kill "$s_pid"
	until_true started
	[ "$s_name" = java ] || perl "$W/src/settled" "$s_pid" >"$W/$s_name.settled" 2>&1
}
pid_of() {
	cat "$W/$1.pid"
}

eu() {
	timeout 60 eu-stack -n 0 -p "$1" 2>/dev/null | perl -ne '
		print "thread $1\n" if /^TID (\d+)/;
		print "#$1 $2\n" if /^#(\d+)\s+(0x[0-9a-f]+)/'
}
# gdb without debug information, since our stacks have no inlined calls
by_gdb() {
	timeout 60 gdb -nx -batch -iex "set debug-file-directory $TMP/none" -iex "set auto-load off" \
		-p "$1" -ex "set backtrace past-main on" -ex "set backtrace past-entry on" \
		-ex "set print frame-info location-and-address" -ex "thread apply all backtrace" 2>/dev/null | perl -ne '
		print "thread $2\n" if /^Thread .*\((LWP|process) (\d+)/;
		printf "#%s 0x%016x\n", $1, hex $2 if /^#(\d+)\s+(0x[0-9a-f]+)/'
}

# hold PID ORACLE MIN WHO...: every stack with the verdict complete equals the oracle's, and every other
# one is the beginning of it; MIN percent are complete. Both sample at different times, so the comparison
# is repeated in case a thread has moved in between.
hold() {
	h_pid=$1
	h_oracle=$2
	h_min=$3
	shift 3
	for _ in $(seq 30); do
		"$@" "$W/user_stacks" "$h_pid" 2 >"$TMP/ours"
		"$h_oracle" "$h_pid" >"$TMP/theirs"
		perl -e '
			sub stacks {
				my (%s, $t, %v);
				open my $fh, "<", $_[0] or die;
				while (<$fh>) {
					if (/^thread (\d+)(?: (\S+) (\S+))?/) { $t = $1; $v{$t} = $2 // ""; $s{$t} = [] }
					elsif (/^#(\d+) 0x0*([0-9a-f]+)/) { $s{$t}[$1] = $2 }
				}
				return (\%s, \%v);
			}
			my ($ours, $v) = stacks("$ARGV[0]");
			my ($theirs) = stacks("$ARGV[1]");
			my ($n, $complete, $bad, $frames) = (0, 0, 0, 0);
			for my $t (sort keys %$theirs) {
				my @t = @{$theirs->{$t}};
				my @o = @{$ours->{$t} // []};
				$n++;
				$frames += @o;
				$complete++ if ($v->{$t} // "") eq "complete";
				$t[$_] //= $o[$_] for 0 .. $#t; # gdb prints no address for a signal frame
				my @same = ($v->{$t} // "") eq "complete" ? @t : @t[0 .. $#o];
				next if @o && "@o" eq join " ", map { $_ // "" } @same;
				$bad++;
				print "thread $t: ours @o, theirs @t\n";
			}
			print "$n threads, $complete complete, $bad differ, $frames frames\n";
			exit !($n && !$bad && $complete * 100 >= $n * $ARGV[2]);
		' "$TMP/ours" "$TMP/theirs" "$h_min" >"$TMP/hold" && {
			tail -n 1 "$TMP/hold"
			return 0
		}
		sleep 0.3
	done
	cat "$TMP/hold"
	return 1
}

# agrees NAME MIN TEXT: holds NAME against eu-stack, as its user and as root
agrees() {
	a_pid=$(pid_of "$1")
	ok "$3: stacks match eu-stack, sampled as its user" hold "$a_pid" eu "$2" nobody
	tail -n 1 "$TMP/hold" | diag
	ok "$3: stacks match eu-stack, sampled as root" hold "$a_pid" eu "$2" root
}

build calls calls.c -O2
build signal signal.c -O1
build realign realign.c -O2
build threads threads.c -O1
for kind in calls signal realign; do
	start "$kind" "$W/$kind"
	agrees "$kind" 100 "$kind"
	ok "$kind: stacks match gdb" hold "$(pid_of "$kind")" by_gdb 0 nobody
done
start small "$W/threads" small
agrees small 100 "a stack of the smallest size"
start coroutine "$W/threads" coroutine
agrees coroutine 0 "coroutines"
if command -v c++ >/dev/null && c++ -O2 -pthread -o "$W/except" "$W/src/except.cc" 2>"$TMP/cc.log"; then
	start except "$W/except"
	agrees except 100 "C++ with exceptions"
else
	fail "a C++ program builds"
	diag <"$TMP/cc.log"
fi

start bash bash -c 'f() { if [ "$1" -gt 0 ]; then f $(($1 - 1)); else read -r x; fi; }; f 20'
agrees bash 100 bash
start perl perl -e 'sub f { $_[0] ? f($_[0] - 1) : sleep 1000 } f(20)'
agrees perl 100 perl
python=
for p in /usr/bin/python3 /usr/local/bin/python3; do
	[ -x "$p" ] && python=$p && break
done
if [ "$python" ]; then
	start python "$python" -c '
import threading, time
def f(n):
	f(n - 1) if n else time.sleep(1000)
for i in range(60):
	threading.Thread(target=f, args=(i % 7,)).start()
f(30)'
	agrees python 100 "python with 60 threads"
fi
if command -v sqlite3 >/dev/null; then
	start sqlite3 sqlite3 :memory:
	agrees sqlite3 100 sqlite3
fi
if command -v node >/dev/null; then
	start node node -e 'setTimeout(() => {}, 1e6)'
	agrees node 80 node
fi
if command -v java >/dev/null; then
	cat >"$W/W.java" <<-'END'
		public class W {
			static void f(int n) throws Exception { if (n > 0) f(n - 1); else Thread.sleep(1000000); }
			public static void main(String[] a) throws Exception { System.out.println("ready"); f(10); }
		}
	END
	start java java -Xshare:auto "$W/W.java"
	until_true grep -qs ready "$W/java.out"
	sleep 2
	agrees java 60 "java, whose interpreter has no unwind tables"
fi

# --- files ---
cp "$W/calls" "$W/deleted"
start deleted "$W/deleted"
rm "$W/deleted"
agrees deleted 100 "a program whose file was deleted"
build dl dl.c -O1
build dllib.so dllib.c -O2 -fPIC -shared
start dl "$W/dl" "$W/dllib.so" later
nobody "$W/user_stacks" "$(pid_of dl)" 30 50000 >"$TMP/ours" &
sampler=$!
sleep 0.4
kill -USR1 "$(pid_of dl)"
wait "$sampler"
like "$(cat "$TMP/ours")" '^thread [0-9]+ complete' "code that is mapped during sampling is walked through"
is "$(sed -n 's/^failed \([0-9]*\) .*/\1/p' "$TMP/ours")" 0 "code that is mapped during sampling has an unwind table of its own"
agrees dl 100 "a library that was loaded later"
build_compat "$W/src/compat.S" "$W/compat"
if [ -z "$no_compat" ]; then
	# eu-stack does not get beyond main of i386 programs that gcc has built
	for kind in calls signal; do
		build "$kind-32" $kind.c -m32 -O2
		start "$kind-32" "$W/$kind-32"
		ok "an i386 program ($kind): stacks match gdb, sampled as its user" hold "$(pid_of "$kind-32")" by_gdb 100 nobody
		tail -n 1 "$TMP/hold" | diag
	done
	ok "an i386 program: stacks match gdb, sampled as root" hold "$(pid_of calls-32)" by_gdb 100 root
	start compat "$W/compat"
	nobody "$W/user_stacks" "$(pid_of compat)" >"$TMP/ours"
	is "$(grep -c '^#' "$TMP/ours")" 1 "an i386 program without libraries and CFI has its innermost frame"
else
	skip "stacks of i386 programs match gdb" "$no_compat"
fi
build hostile hostile.c -O2
for kind in garbage nops rows pointers remember claim; do
	perl "$W/src/badelf" "$kind" >"$W/$kind.so"
	start "bad-$kind" "$W/hostile" map "$W/$kind.so"
	timeout 60 "$W/user_stacks" "$(pid_of "bad-$kind")" 3 >"$TMP/bad"
	is "$?" 0 "a file with hostile tables ($kind): the sampler survives"
	grep -E '^(failed|worker_lost|error|refused)' "$TMP/bad" | sort -u | diag 3
	is "$(grep -c '^error' "$TMP/bad") $(grep -c '^thread [0-9]* [a-z]' "$TMP/bad")" \
		"0 $(find "/proc/$(pid_of "bad-$kind")/task" -mindepth 1 -maxdepth 1 | wc -l)" "a file with hostile tables ($kind): each thread has a result"
done
for kind in wild loops; do
	start "$kind" "$W/hostile" "$kind"
	timeout 60 "$W/user_stacks" "$(pid_of "$kind")" 3 >"$TMP/bad"
	is "$?" 0 "threads whose registers lead nowhere ($kind): the sampler survives"
	is "$(grep -c '^thread' "$TMP/bad")" "$(find "/proc/$(pid_of "$kind")/task" -mindepth 1 -maxdepth 1 | wc -l)" \
		"threads whose registers lead nowhere ($kind): each has a result and goes on"
done
perl "$W/src/badelf" good >"$W/cut.so"
start cut "$W/hostile" map "$W/cut.so"
truncate -s 5000 "$W/cut.so"
timeout 60 "$W/user_stacks" "$(pid_of cut)" 3 >"$TMP/bad"
is "$?" 0 "a file that is truncated while it is mapped: the sampler survives"

# --- effects on the programs ---
stops_begin() {
	rm -f "$TMP/in"
	mkfifo "$TMP/in"
	: >"$TMP/stops" # the output of the previous run
	$user "$W/stops" <"$TMP/in" >"$TMP/stops" 2>"$TMP/stops.err" 7>&- &
	stops=$!
	at_exit_kill "$stops"
	exec 8>"$TMP/in"
	until_true grep -q ready "$TMP/stops"
}
stops_end() {
	exec 8>&-
	wait "$stops"
	rc=$?
	perl -ne 'print "$1 " if /^((stops|stopped_us|longest_us|quiet|spared|again) \d+)/; END { print "\n" }' \
		"$TMP/sampled" | diag
}
stops_begin
nobody "$W/user_stacks" "$stops" 200 >"$TMP/sampled" 8>&-
stops_end
is "$rc" 0 "a program with 21 ways to wait exits normally after sampling"
between "$(awk '/^stops/ { print $2 }' "$TMP/sampled")" 500 1000000 "the program is stopped many times"
is "$(awk 'NF == 7 && $2 < 10' "$TMP/stops")" "" "each way to wait goes on during sampling"
is "$(awk 'NF == 7 && $3' "$TMP/stops")" "" "no wait ends with EINTR"
is "$(awk 'NF == 7 && $4' "$TMP/stops")" "" "no wait ends early"
is "$(awk 'NF == 7 && $5 > 2000' "$TMP/stops")" "" "no wait exceeds its time limit by starting again"
is "$(sed -n 's/^signals //p' "$TMP/stops")" 0 "the program receives no signal"

stops_begin
for _ in 1 2 3 4 5 6 7 8 9 10; do
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		kill -s RTMIN "$stops"
	done
	sleep 0.1
done 8>&- &
killer=$!
nobody "$W/user_stacks" "$stops" 60 >"$TMP/sampled" 8>&-
wait "$killer"
stops_end
is "$(sed -n 's/^requested //p' "$TMP/stops")" 100 "signals sent during sampling arrive exactly once"
is "$(sed -n 's/^signals //p' "$TMP/stops")" 0 "no other signal arrives during sampling"
tap_done
