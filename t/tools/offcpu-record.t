#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The command line, and what is refused before a recording starts, with the reason.
# shellcheck disable=SC2154,SC2016 # $rc, $out, $err come from tap.sh; sh -c expands its own
. "$(dirname "$0")/../lib/tap.sh"
R=$BIN/offcpu-record
cd "$TMP" || exit 1

# usage NAME REGEX ARG...: status 64, two lines on stderr that match REGEX, nothing on stdout
usage() {
	u_name=$1 u_re=$2
	shift 2
	run "$R" "$@"
	if [ "$rc" -eq 64 ] && [ ! -s "$out" ] && [ "$(wc -l <"$err")" -eq 2 ] && grep -qE -e "$u_re" "$err"; then
		pass "$u_name"
	else
		fail "$u_name"
		{
			echo "status $rc of: $*"
			cat "$out" "$err"
		} | diag
	fi
}

usage "without a target the message lists the ways to give one" 'what to record.*-p PID.*-a.*-- COMMAND'
usage "-a beside another target is refused" '-a is every process' -a -p 1
usage "--cgroup and --container together are refused" '^offcpu-record: --cgroup and --container exclude one another$' --cgroup / --container x
usage "--cgroup without its argument is refused" "needs an argument" --cgroup
usage "--kthreads without -a is refused" '--kthreads goes with -a' -p 1 --kthreads
usage "-U and -K together are refused" 'leave no stack' -a -U -K
usage "--min above --max is refused" 'no wait can be both' -a --min 2ms --max 1ms
usage "a PID that is not a number is refused" "option '-p': 'x1' is not a whole number" -p x1
usage "a PID followed by other characters is refused" "'5x'" -p 5x
usage "PID 0 is refused" "'0'" -p 0
usage "a PID above the maximum of the kernel is refused" "'4194305' is out of range: 1 to 4194304" -p 4194305
usage "a negative TID is refused" "option '--tid': '-3'" --tid=-3
usage "a list of PIDs with an empty element is refused" "option '-p': '1,,2' has an empty element" -p 1,,2
usage "a list of PIDs that ends in a comma is refused" "option '--pid': '1,' has an empty element" --pid 1,
usage "an empty list of TIDs is refused" "option '-t': it is empty" -t ''
usage "a list with something that is not a number is refused" "option '-t': 'x' is not a whole number" -t 1,x
usage "more than 256 PIDs are refused" "option '-p': more than 256 given" -p "$(seq -s , 257)"
usage "a duration of 0 is refused" "a recording of 0 s records nothing" -a -d 0
usage "a duration of 0 ms is refused" "a recording of 0 s records nothing" -a -d 0ms
usage "a duration below half a nanosecond is refused" "a recording of 0 s records nothing" -a -d .0000000001
usage "an empty duration is refused" "'' is not a time such as 10us, 500ms, 1.5s, 90m or 1h" -a -d ''
usage "a duration with an exponent is refused" "'1e3' is not a time" -a -d 1e3
usage "a negative duration is refused" "'-5' is not a time" -a -d -5
usage "a duration of two units is refused" "'1h30m' is not a time" -a -d 1h30m
usage "a duration beyond 64 bits is refused" "'99999999999h' is out of range: at most 292 years" -a -d 99999999999h
usage "--max 0 is refused" "option '--max': '0' is out of range: 1 ns at least" -a --max 0
for mode in btf raw; do
	usage "-F with --mode $mode is refused" '-F goes with mode procfs: --mode procfs, or auto$' -a --mode $mode -F 50
	usage "--ptrace with --mode $mode is refused" '--ptrace goes with mode procfs' -a --mode $mode --ptrace
done
for mode in btf procfs; do
	usage "--btf with --mode $mode is refused" '--btf goes with mode raw: --mode raw, or auto$' -a --mode $mode --btf x
done
usage "-F and --on-cpu are refused in mode auto, too" '--on-cpu and -F: no mode has both$' -a --on-cpu -F 50
usage "--keep and --ptrace are refused in mode auto, too" '--keep and --ptrace: no mode has both$' -a --keep 10s --ptrace
usage "--wakers and --btf are refused in mode auto, too" '--wakers and --btf: no mode has both$' -a --wakers --btf x
for mode in raw procfs; do
	usage "--runtimes python with --mode $mode is refused" '--runtimes with names goes with mode btf: --mode btf, or auto$' \
		-a --mode $mode --runtimes python
done
usage "--unwind dwarf with --mode procfs is refused" '--unwind dwarf and fp take BPF' -a --mode procfs --unwind dwarf
usage "--unwind-memory with --mode procfs is refused" '--unwind-memory is of tables for BPF' -a --mode procfs --unwind-memory 1M
usage "--unwind-memory with -K is refused" '--unwind-memory is of unwind tables: with -K there are none' -a -K --unwind-memory 1M
usage "--unwind-memory with --unwind fp is refused" 'with --unwind fp there are none' -a --unwind fp --unwind-memory 1M
usage "--runtimes python with --unwind none is refused" '--runtimes takes unwind tables: with --unwind none there are none' \
	-a --unwind none --runtimes python
usage "--ptrace with -K is refused" '--ptrace is for user stacks: with -K there are none' -a -K --ptrace
usage "--preempted with --state is refused" '--preempted records waits in state R, which --state leaves out' -a --preempted --state S
usage "--follow with -a is refused" '--follow goes with -p, -t, -c or a command: every process is recorded already' -a --follow
usage "--no-follow with a cgroup alone is refused" '--no-follow goes with -p' --cgroup / --no-follow
usage "a duration without a number is refused" "'soon'" -a -d soon
usage "a duration with an unknown unit is refused" "'5y'" -a -d 5y
usage "--min without a number is refused" "'ms'" -a --min ms
usage "--depth 0 is refused" "'0'" -a --depth 0
usage "--depth above 512 is refused" "'513'" -a --depth 513
usage "an unknown --unwind method is refused" "option '--unwind': 'cfi' is not one of auto, dwarf, fp, none" -a --unwind cfi
usage "an empty --unwind method is refused" "option '--unwind': '' is not one of" -a --unwind ''
usage "an abbreviated --unwind method is refused" "option '--unwind': 'dwar' is not one of" -a --unwind dwar
usage "--unwind without its argument is refused" "needs an argument" -a --unwind
usage "-U and --unwind none together are refused" 'leave no stack' -a -U --unwind none
usage "--unwind-memory with a value that is not a size is refused" "'much' is not a size such as 512K, 16M or 1G" -a --unwind-memory much
usage "--unwind-memory with an unknown unit is refused" "'5T' is not a size" -a --unwind-memory 5T
usage "--unwind-memory with a fraction is refused" "'1.5G' is not a size" -a --unwind-memory 1.5G
usage "--unwind-memory below its minimum is refused" "'1023K' is out of range: 1048576 to 17179869184 bytes" -a --unwind-memory 1023K
usage "--unwind-memory above its maximum is refused" "'17G' is out of range" -a --unwind-memory 17G
usage "--unwind-memory with a number beyond 64 bits is refused" "'99999999999999999999' is out of range" -a --unwind-memory 99999999999999999999
usage "--unwind-memory without its argument is refused" "needs an argument" -a --unwind-memory
usage "an unknown --state letter is refused" "'Q' is not a state letter" -a --state SQ
usage "--state R is refused, with a reference to --preempted" 'preempted' -a --state R
usage "an empty --state is refused" 'no state letter' -a --state ''
usage "a thread name of 16 bytes is refused, with what the kernel keeps of it" \
	"'1234567890123456' is not a thread name: 1 to 15 bytes; the kernel cuts it to '123456789012345'$" -c 1234567890123456
usage "an empty thread name is refused" "option '-c': it is empty$" -c ''
usage "and one between commas" "option '-c': 'a,,b' has an empty element$" -c a,,b
usage "each of several names is checked" "'1234567890123456' is not a thread name: 1 to 15 bytes" -c short,1234567890123456
usage "more than 16 names are refused, with commas too" "option '-c': more than 16 given$" -c a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q
usage "a command without -- is refused" "unexpected argument 'sleep'.*after --" -a sleep 1
usage "an unknown option is refused" "unknown option '--no-such-option'" --no-such-option
usage "an unknown option with an argument is refused by its name" "unknown option '--no-such-option'$" --no-such-option=5
usage "an ambiguous abbreviation of a long option is refused" "ambiguous option '--m': --max-size, --min, --max, --mode" -a --m 5
usage "an option without its argument is refused" "option '-p' needs an argument" -p
usage "an option without its argument in a group of letters is refused" "option '-d' needs an argument" -aqd
usage "an abbreviated long option without its argument is refused" "option '--depth' needs an argument" -a --dep
usage "an argument for an option that takes none is refused" "option '--follow' takes no argument" -a --follow=yes
usage "an unknown option letter is refused" "unknown option '-z'" -az
usage "an unknown --mode is refused" "'best' is not one of auto, btf, raw, procfs" -a --mode best
usage "more than 16 thread names are refused" "option '-c': more than 16 given" \
	-c a -c b -c c -c d -c e -c f -c g -c h -c i -c j -c k -c l -c m -c n -c o -c p -c q
usage "-- without a command is refused" 'what to record' --

run "$R" --help
is "$rc" 0 "--help exits with status 0"
ok "--help prints only on stdout" test -s "$out" -a ! -s "$err"
for o in pid tid comm all cgroup container output duration follow force state min max preempted kthreads \
	user-stacks kernel-stacks depth unwind unwind-memory quiet verbose help version; do
	ok "--help names --$o" grep -q -e "--$o" "$out"
done
run "$R" --version
like "$rc $(cat "$out")" '^0 offcpu-record .*[0-9]' "--version prints name and version"
"$R" --help >/dev/full 2>"$err"
is "$?" 2 "--help to a full device gives status 2"
ok "--help reports a full device" grep -q 'No space left' "$err"
"$R" --version >&- 2>"$err"
is "$?" 2 "--version to a closed stdout gives status 2"
ok "no refused command line creates a capture" test ! -e cap.bin

# The tests from here on get as far as the targets.
[ "$(id -u)" -eq 0 ] || {
	skip "targets and files are checked" "needs root"
	tap_done
}

# refused NAME REGEX ARG...: status 2, REGEX matches stderr, nothing on stdout, no capture
refused() {
	r_name=$1 r_re=$2
	shift 2
	rm -f no.cap
	run timeout 30 "$R" -o no.cap "$@"
	if [ "$rc" -eq 2 ] && [ ! -s "$out" ] && [ ! -e no.cap ] && grep -qE -e "$r_re" "$err"; then
		pass "$r_name"
	else
		fail "$r_name"
		{
			echo "status $rc of: $*"
			cat "$out" "$err"
		} | diag
	fi
}

gone() {
	sh -c 'echo $$'
}
p=$(gone)
refused "a process that does not exist is refused" "no such process: $p" -p "$p"
p=$(gone)
refused "a thread that does not exist is refused" "no such thread: $p" -t "$p"

# a zombie: its parent sleeps and does not wait for it
perl -e 'my $p = fork; exit 0 if !$p; open my $f, ">", "zombie.tmp"; print $f $p; close $f;
	rename "zombie.tmp", "zombie"; sleep 600' &
at_exit_kill $!
for _ in $(seq 300); do
	[ -s zombie ] && grep -q 'State:.Z' "/proc/$(cat zombie)/status" && break
	sleep 0.2
done
refused "a zombie is refused as a process" 'has exited already' -p "$(cat zombie)"
refused "a zombie is refused as a thread" 'has exited already' -t "$(cat zombie)"

# a process with a second thread
python3 -c '
import threading, time
t = threading.Thread(target=time.sleep, args=(600,), daemon=True)
t.start()
open("tid.tmp", "w").write(str(t.native_id))
import os; os.rename("tid.tmp", "tid")
time.sleep(600)' &
py=$!
at_exit_kill "$py"
for _ in $(seq 300); do
	[ -s tid ] && break
	sleep 0.2
done
refused "a thread is refused as a process" "$(cat tid) is a thread of process $py" -p "$(cat tid)"
ok "the hint says which option to use" grep -q "give -t $(cat tid) for the thread, -p $py" "$err"

# Output files: nothing is recorded, and existing files stay unchanged.
B="-d 0.1 -p $$"
# shellcheck disable=SC2086 # words
{
	echo precious >text
	run "$R" -q -o text $B
	is "$rc $(cat text)" "2 precious" "a file that is not a capture is not overwritten"
	ok "the hint for an existing file is --force" grep -q -e --force "$err"
	ln -s text link
	run "$R" -q --force -o link $B
	is "$rc $(cat text)" "2 precious" "a symbolic link is not followed, even with --force"
	ln -s nowhere dangling
	run "$R" -q -o dangling $B
	ok "a dangling symbolic link is not followed" test "$rc" -eq 2 -a ! -e nowhere
	mkdir dir
	run "$R" -q -o dir $B
	is "$rc" 2 "a directory is refused as output"
	run "$R" -q -o no/such/dir/cap.bin $B
	like "$rc $(cat "$err")" "^2 .*no/such/dir/cap.bin.*No such file" "the message names a missing output folder"
	mkfifo fifo
	run timeout 10 "$R" -q -o fifo $B
	is "$rc" 2 "a FIFO is refused without waiting for its reader"
	run "$R" -q -o /dev/full $B
	is "$rc" 2 "a device is refused as output"
	script -qec "$R -q -o - $B" /dev/null >tty.out 2>&1
	is "$?" 2 "a capture is not written to a terminal"
	ok "the message says that stdout is a terminal" grep -q terminal tty.out
	run "$R" -q -o - $B
}

# Without CAP_SYS_PTRACE, and without the right to start the process that makes unwind tables.
# nobody COMMAND...: runs it as an ordinary user with CAP_BPF and CAP_PERFMON
nobody() {
	setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all,+bpf,+perfmon \
		--ambient-caps=-all,+bpf,+perfmon "$@"
}
mkdir -m 777 open
chmod 755 "$TMP"
cp "$R" open/offcpu-record
chmod 755 open/offcpu-record
if nobody true 2>"$err" && nobody "$TMP/open/offcpu-record" -q -o open/a.cap -- true 2>"$err"; then
	setpriv --reuid=65534 --regid=65534 --clear-groups sleep 600 &
	theirs=$!
	at_exit_kill "$theirs"
	until grep -q sleep "/proc/$theirs/comm"; do
		sleep 0.01
	done
	run nobody "$TMP/open/offcpu-record" -d 0.2 -p "$theirs" -o open/b.cap
	like "$rc $(cat "$err")" '^0 .*' "CAP_BPF and CAP_PERFMON are enough to record own processes"
	like "$(cat "$err")" 'user stacks: 100.00 % of 1 wait complete$' "CAP_BPF and CAP_PERFMON are enough for complete user stacks of own processes"
	run nobody "$TMP/open/offcpu-record" -o open/c.cap -- true
	like "$rc $(cat "$err")" "^0 .*" "without CAP_SYS_PTRACE a command is recorded, but not held"
	run nobody prlimit --nproc=1 "$TMP/open/offcpu-record" -d 0.2 -p "$theirs" -o open/d.cap
	is "$rc $("$BIN/capinfo" open/d.cap | sed -n 's/.* unwind=//p')" "0 fp" \
		"without unwind tables user stacks are walked by frame pointer"
	like "$(cat "$err")" '^  degraded: .*user stacks by frame pointer: cannot start the process' "the summary says why there are no unwind tables"
	like "$("$BIN/capinfo" open/d.cap)" 'degraded=.*user stacks by frame pointer: cannot start' "the capture says why there are no unwind tables"
	run nobody prlimit --nproc=1 "$TMP/open/offcpu-record" --unwind dwarf -d 0.2 -p "$theirs" -o open/e.cap
	is "$rc $(test -e open/e.cap || echo none)" "2 none" "--unwind dwarf fails if there can be no unwind tables"
	like "$(cat "$err")" '^offcpu-record: cannot start the process that compiles unwind tables' "--unwind dwarf says why there can be no unwind tables"
else
	skip "CAP_BPF and CAP_PERFMON are enough to record own processes" "$(head -n 1 "$err")"
fi

# The capture has the method of user stack walks, and the summary has the verdicts.
# unwind_of CAPTURE: prints its option unwind
unwind_of() {
	"$BIN/capinfo" "$1" | sed -n 's/.* unwind=//p'
}
sleep 600 &
at_exit_kill $!
sleep_pid=$!
until grep -q sleep "/proc/$sleep_pid/comm"; do
	sleep 0.01
done
W="-d 0.2 -p $sleep_pid"
# shellcheck disable=SC2086 # words
if run "$R" --unwind dwarf -o dwarf.cap $W && [ "$rc" -eq 0 ]; then
	is "$(unwind_of dwarf.cap)" dwarf "--unwind dwarf walks user stacks by unwind tables"
	like "$(cat "$err")" 'user stacks: 100.00 % of 1 wait complete$' "the summary shows how many user stacks are complete"
	like "$("$BIN/capinfo" dwarf.cap)" '^user stacks 100.00 % of 1 wait complete$' "capinfo shows how many user stacks are complete"
	like "$("$BIN/symbolize" -q dwarf.cap)" ' user=complete$' "symbolize shows that a user stack is complete"
	like "$("$BIN/symbolize" -q dwarf.cap)" ' _start\+0x|__libc_start_main' "a user stack reaches the entry of the program"
	is "$("$BIN/capinfo" --json dwarf.cap | grep -o '"user.complete":[0-9]*')" '"user.complete":1' "a counter shows the complete user stacks"
	ok "a counter shows the unwind tables" sh -c '"$1" --json dwarf.cap | grep -q "\"unwind.tables\":[1-9]"' sh "$BIN/capinfo"
	run "$R" -o auto.cap $W
	is "$rc $(unwind_of auto.cap)" "0 dwarf" "without --unwind user stacks are walked by unwind tables if possible"
	run "$R" -v --unwind-memory 1M -o small.cap $W
	like "$rc $(cat "$err")" '^0 .*' "--unwind-memory 1M is enough for a small program"
	like "$(tr '\n' '|' <"$err")" '\|  [1-9][0-9]* unwind tables?: in use\|  [1-9][0-9]* rows?: .*\|  [0-9]+ bytes: .*\|  [0-9]+ files?: read' \
		"-v shows the unwind tables in the summary"
	run "$R" -o held.cap -- sleep 0.1
	like "$rc $(cat "$err")" '^0 ' "a command is recorded, and held until its unwind tables are ready"
	is "$("$BIN/symbolize" --format=json held.cap | grep -c '"user_stack_error":"not-ready"')" 0 \
		"no wait of a command begins before its unwind tables are ready"
else
	skip "--unwind dwarf walks user stacks by unwind tables" "not possible on this machine: $(head -n 1 "$err")"
fi
# shellcheck disable=SC2086 # words
{
	run "$R" --unwind fp -o fp.cap $W
	is "$rc $(unwind_of fp.cap)" "0 fp" "--unwind fp walks user stacks by frame pointer"
	like "$(cat "$err")" 'user stacks: 0.00 % of 1 wait complete; 1 unverified$' "a user stack walked by frame pointer is unverified"
	ok "an unverified user stack is neither lost nor degraded" sh -c 'grep -q "lost: nothing" "$1" && ! grep -q degraded "$1"' sh "$err"
	run "$R" --unwind none -o none.cap $W
	is "$rc $(unwind_of none.cap)" "0 none" "--unwind none takes no user stacks"
	ok "with --unwind none the summary does not mention user stacks" sh -c '! grep -q "user stacks" "$1"' sh "$err"
}
"$R" --follow -q -o cap2 -- /no/such/command >"$out" 2>"$err"
is "$?" 2 "a command that does not exist gives status 2"
ok "the message names the missing command" grep -q "cannot start '/no/such/command': No such file" "$err"
"$R" -q -o cap3 -- no-such-command-in-path >"$out" 2>"$err"
ok "a command that is not in PATH gets a hint" grep -q 'hint: no such command in PATH' "$err"
printf 'not a program' >noexec
"$R" -q -o cap4 -- ./noexec >"$out" 2>"$err"
like "$? $(cat "$err")" "^2 .*cannot start './noexec': Permission denied" "a command file without execute permission gives status 2"
tap_done
