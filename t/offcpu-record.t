#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The command line, what is refused before anything is recorded, and why.
# shellcheck disable=SC2154 # $rc, $out, $err come from lib.sh
. "$(dirname "$0")/lib.sh"
R=$BIN/offcpu-record
cd "$TMP" || exit 1

# usage NAME REGEX ARG...: status 64, two lines, and nothing on stdout
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

usage "without a target it says what to give" 'what to record.*-p PID.*-a.*-- COMMAND'
usage "-a beside another target is refused" '-a is every process' -a -p 1
usage "--kthreads without -a is refused" '--kthreads goes with -a' -p 1 --kthreads
usage "-U and -K together are refused" 'leave no stack' -a -U -K
usage "--min above --max is refused" 'no wait can be both' -a --min 2ms --max 1ms
usage "a PID that is no number" "'x1'" -p x1
usage "a PID with something behind it" "'5x'" -p 5x
usage "PID 0" "'0'" -p 0
usage "a PID beyond every pid_max" "4194305" -p 4194305
usage "a negative TID" "'-3'" -t -3
usage "a duration without a number" "'soon'" -a -d soon
usage "a duration with an unknown unit" "'5y'" -a -d 5y
usage "--min without a number" "'ms'" -a --min ms
usage "--depth 0" "'0'" -a --depth 0
usage "--depth beyond 512" "'513'" -a --depth 513
usage "--state with a letter that is none" "'Q' is no state letter" -a --state SQ
usage "--state R points to --preempted" 'preempted' -a --state R
usage "--state with nothing" 'no state letter' -a --state ''
usage "a thread name of 16 bytes" 'no thread name' -c 1234567890123456
usage "an empty thread name" 'no thread name' -c ''
usage "a command without --" "unexpected argument 'sleep'.*after --" -a sleep 1
usage "an unknown option" 'no-such-option' --no-such-option
usage "an option without its argument" '' -p
usage "-- without a command" 'what to record' --

run "$R" --help
is "$rc" 0 "--help is status 0"
ok "--help is on stdout alone" test -s "$out" -a ! -s "$err"
for o in pid tid comm all output duration follow force state min max preempted kthreads \
	user-stacks kernel-stacks depth quiet verbose help version; do
	ok "--help names --$o" grep -q -e "--$o" "$out"
done
run "$R" --version
like "$rc $(cat "$out")" '^0 offcpu-record .*[0-9]' "--version is the name and a version"
"$R" --help >/dev/full 2>"$err"
is "$?" 2 "--help to a full device is status 2"
ok "and says so" grep -q 'No space left' "$err"
"$R" --version >&- 2>"$err"
is "$?" 2 "--version to a closed stdout is status 2"
ok "no refusal left a capture behind" test ! -e cap.bin

# Everything from here on needs to get as far as the targets.
[ "$(id -u)" -eq 0 ] || {
	skip "targets and files" "needs root"
	tap_done
}

# refused NAME REGEX ARG...: status 2, nothing on stdout, no file
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
refused "a process that does not exist" "no such process: $p" -p "$p"
p=$(gone)
refused "a thread that does not exist" "no such thread: $p" -t "$p"

# a zombie: its parent sleeps and never waits
perl -e 'my $p = fork; exit 0 if !$p; open my $f, ">", "zombie.tmp"; print $f $p; close $f;
	rename "zombie.tmp", "zombie"; sleep 60' &
at_exit_kill $!
for _ in 1 2 3 4 5 6 7 8 9 10; do
	[ -s zombie ] && grep -q 'State:.Z' "/proc/$(cat zombie)/status" && break
	sleep 0.2
done
refused "a zombie" 'has exited already' -p "$(cat zombie)"
refused "a zombie given as a thread" 'has exited already' -t "$(cat zombie)"

# a second thread of a process
python3 -c '
import threading, time
t = threading.Thread(target=time.sleep, args=(60,), daemon=True)
t.start()
open("tid.tmp", "w").write(str(t.native_id))
import os; os.rename("tid.tmp", "tid")
time.sleep(60)' &
py=$!
at_exit_kill "$py"
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	[ -s tid ] && break
	sleep 0.2
done
refused "a thread given as a process" "$(cat tid) is a thread of process $py" -p "$(cat tid)"
ok "the hint says which option to take" grep -q "give -t $(cat tid) for the thread, -p $py" "$err"

# Output files: nothing is recorded, and nothing is touched.
B="-d 0.1 -p $$"
# shellcheck disable=SC2086 # words
{
	echo precious >text
	run "$R" -q -o text $B
	is "$rc $(cat text)" "2 precious" "a file that is no capture is not written over"
	ok "the hint is --force" grep -q -e --force "$err"
	ln -s text link
	run "$R" -q --force -o link $B
	is "$rc $(cat text)" "2 precious" "a symbolic link is not followed, even with --force"
	ln -s nowhere dangling
	run "$R" -q -o dangling $B
	ok "nor is a dangling one" test "$rc" -eq 2 -a ! -e nowhere
	mkdir dir
	run "$R" -q -o dir $B
	is "$rc" 2 "a directory is refused"
	run "$R" -q -o no/such/dir/cap.bin $B
	like "$rc $(cat "$err")" "^2 .*no/such/dir/cap.bin.*No such file" "a folder that does not exist is named"
	mkfifo fifo
	run timeout 10 "$R" -q -o fifo $B
	is "$rc" 2 "a FIFO is refused without waiting for its reader"
	run "$R" -q -o /dev/full $B
	is "$rc" 2 "a device is refused"
	script -qec "$R -q -o - $B" /dev/null >tty.out 2>&1
	is "$?" 2 "a terminal gets no binary"
	ok "and a sentence instead" grep -q terminal tty.out
	run "$R" -q -o - $B
}
"$R" --follow -q -o cap2 -- /no/such/command >"$out" 2>"$err"
is "$?" 2 "a command that does not exist is status 2"
ok "and is named" grep -q "cannot start '/no/such/command': No such file" "$err"
"$R" -q -o cap3 -- no-such-command-in-path >"$out" 2>"$err"
ok "a command that is not in PATH gets a hint" grep -q 'hint: no such command in PATH' "$err"
printf 'not a program' >noexec
"$R" -q -o cap4 -- ./noexec >"$out" 2>"$err"
like "$? $(cat "$err")" "^2 .*cannot start './noexec': Permission denied" "a file without x permission"
tap_done
