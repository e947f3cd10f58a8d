#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# How recordings end, where captures are written, and the privileges they need. A capture is complete, or
# says what is missing.
# shellcheck disable=SC2016,SC2119,SC2154,SC2317 # Perl's variables; $rc and others of tap.sh; functions that ok calls
# under nohup, SIGHUP would be ignored: restore the default actions of the signals that end a recording
[ -n "${T_SIGNALS-}" ] || T_SIGNALS=default exec env --default-signal=HUP,INT,TERM sh "$0"
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf
R=$BIN/offcpu-record
cd "$TMP" || exit 1

sleep 1000 &
idle=$!
at_exit_kill "$idle"

# whole NAME CAP WHY: CAP is complete and says that WHY ended the recording
whole() {
	run "$BIN/capinfo" --verify "$2"
	is "$rc" 0 "$1: the capture is complete"
	ok "$1: the capture says why the recording ended" sh -c "'$BIN/capinfo' '$2' | grep -q 'stopped by: $3'"
}
for s in INT TERM HUP; do
	rec_start "$s.cap" -p "$idle"
	rec_stop "$s"
	is "$rc" 0 "SIG$s ends the recording with status 0"
	whole "SIG$s" "$s.cap" "SIG$s"
done
ok "the summary has the duration, the number of waits and the capture's name" grep -qE '^offcpu-record: [0-9.]+ s, 1 wait of .* in .HUP.cap.$' rec.err
ok "the summary says that nothing was lost" grep -q 'lost: nothing' rec.err
rec d.cap -d 300ms -p "$idle"
is "$(cat "$err")$(cat "$out")" "" "-q prints nothing"
whole "-d" d.cap duration
is "$(stat -c %a d.cap)" 600 "only its owner may read and write a capture (mode 600)"
sleep 1000 &
target=$!
rec_start e.cap -q -p $target
kill $target
wait "$rec_pid"
is "$?" 0 "a recording ends with status 0 when its target exits"
whole "the target's end" e.cap "target exited"

# The command's exit status
run timeout 20 "$R" --force -o c.cap -- sh -c 'exit 7'
is "$rc" 0 "the recording ends with status 0 if the command fails"
ok "the summary has the command's exit status" grep -q "the command's exit status: 7" "$err"
whole "the command's end" c.cap "command exited"
run timeout 20 "$R" --force -o c.cap -- sh -c 'kill -9 $$'
ok "the summary names the signal that ended the command" grep -q 'ended by signal 9 (Killed)' "$err"
run timeout 20 "$R" --force -o c.cap -d 0.3 -- sleep 2
ok "the summary says that the command still runs, with its PID" grep -q 'the command still runs, as process' "$err"
is "$(timeout 20 "$R" -q --force -o c.cap -- sh -c 'cat; echo err >&2' 2>err.txt <<-IN
	through
IN
)$(cat err.txt)" "througherr" "the command has the recorder's stdin, stdout and stderr"
ok "no signal is blocked in the command" sh -c \
	"timeout 20 '$R' -q --force -o c.cap -- grep SigBlk /proc/self/status | grep -q 0000000000000000"

# SIGKILL: the recorder flushes about every second; kill it when the second flush is in the file.
# latest CAP: prints when the last wait ended, in ns since the start. waits() would take a minute if thousands
# of processes run.
latest() {
	"$BIN/symbolize" -q --format=json "$1" 2>/dev/null | perl -ne '
		$start = $1 if /^\{"type":"capture",.*?"start_mono_ns":(\d+)/;
		$n = $1 - $start if /^\{"type":"wait",.*?"last_ns":(\d+)/ && $1 - $start > $n;
		END { print $n + 0, "\n" }'
}
flushed_twice() {
	[ "$(latest kill.cap)" -gt 1000000000 ]
}
rec_start kill.cap -q -a
until_true flushed_twice
kill -KILL "$rec_pid"
wait "$rec_pid" 2>/dev/null
run "$BIN/capinfo" kill.cap
is "$rc" 1 "after SIGKILL capinfo reads the capture and exits with 1"
like "$(grep '^state' "$out")" 'incomplete|not complete|killed|cut|trailer' "after SIGKILL capinfo says that the capture is incomplete"
ok "after SIGKILL the capture has waits" test "$(counter kill.cap waits.recorded)" -gt 0
ok "after SIGKILL symbolize reads the capture, exits with 1 and prints a warning" sh -c \
	"'$BIN/symbolize' kill.cap >k.txt 2>k.err; [ \$? -eq 1 ] && [ -s k.txt ] && [ -s k.err ]"
between "$(latest kill.cap)" 1000000000 100000000000 \
	"after SIGKILL the last waits in the capture ended after the first second"

# Disk full: what was written is kept. A loop of short processes causes waits even on a quiet machine.
: >going
while [ -e going ]; do true | cat; done >/dev/null 2>&1 &
mkdir small
if mount -t tmpfs -o size=8k none small 2>/dev/null; then
	run timeout 30 "$R" -q -o small/cap.bin -d 3 -a
	is "$rc" 1 "a full disk ends the recording with status 1"
	ok "the error message of a full disk has the file's name" grep -q "small/cap.bin.*No space left" "$err"
	run "$BIN/capinfo" small/cap.bin
	is "$rc" 1 "capinfo reads a capture from a full disk and exits with 1"
	umount small
else
	skip "disk full" "tmpfs cannot be mounted here"
fi
run timeout 30 sh -c "ulimit -f 8; exec '$R' -q --force -o limit.cap -d 3 -a"
is "$rc" 1 "a file size limit ends the recording with status 1, not by SIGXFSZ"
ok "the error message of a file size limit has the file's name" grep -qE 'limit.cap.*File too large' "$err"

# A disk that becomes full later: what is there agrees with its counters
if mount -t tmpfs -o size=1m none small 2>/dev/null; then
	rec_start small/cap.bin -a --events
	flushed() { [ "$(stat -c %s small/cap.bin)" -gt 10000 ]; }
	until_true flushed
	head -c 2000000 /dev/zero >small/rest 2>/dev/null # now it is full
	wait "$rec_pid"
	is "$?" 1 "a disk that becomes full ends the recording with status 1"
	ok "its waits balance" balanced small/cap.bin
	is "$(counter small/cap.bin waits.recorded)" "$(waits small/cap.bin '$n += $w->{count}')" "and are as many as its counters say"
	umount small
else
	skip "a disk that becomes full" "tmpfs cannot be mounted here"
fi

# A pipe
timeout 20 "$R" -q -o - -d 0.3 -p "$idle" 2>"$err" | "$BIN/capinfo" --verify - >"$out"
like "$(cat "$out")" '^.*ok' "-o - writes a complete capture to a pipe"
{
	timeout 20 "$R" -q -o - -d 3 -a 2>"$err"
	echo "$?" >pipe.rc
} | head -c 100 >/dev/null
like "$(cat pipe.rc) $(cat "$err")" '^(141|1 .*[Bb]roken pipe)' "the recording ends when the reader of the pipe is gone"
rm going

# A capture may be replaced; two recorders may run at the same time
rec d.cap -d 0.2 -p "$idle"
run timeout 20 "$R" -q -o d.cap -d 0.2 -p "$idle"
is "$rc" 0 "a capture is replaced without --force"
whole "the capture that replaced another" d.cap duration
rec_start one.cap -q -d 2 -p "$idle"
rec two.cap -d 1 -p "$idle"
is "$rc" 0 "two recorders at once: the second ends with status 0"
wait "$rec_pid"
is "$?" 0 "two recorders at once: the first ends with status 0"
is "$(waits two.cap '$n++ if abs($w->{total_ns} - $c{duration_ns}) < 1e7')$(waits one.cap '$n++ if abs($w->{total_ns} - $c{duration_ns}) < 2e7')" 11 \
	"two recorders at once: each records its whole duration"

# The output: another recorder has it, or something happens to it meanwhile
rec_start held.cap -q -p "$idle"
ino=$(stat -c %i held.cap)
run timeout 20 "$R" -q --force -o held.cap -d 0.2 -p "$idle"
like "$rc $(cat "$err")" "^2 offcpu-record: process $rec_pid writes to 'held.cap'" "a second recorder into the same file is refused with the PID of the first"
is "$(stat -c %i held.cap)" "$ino" "and leaves that file alone"
run timeout 20 "$R" -q --mode procfs -o held.cap -d 0.2 -p "$idle"
like "$rc $(cat "$err")" "^2 offcpu-record: process $rec_pid writes to 'held.cap'" "so does mode procfs"
rec_stop
is "$rc" 0 "the first is not disturbed"
whole "the first recorder" held.cap SIGINT

for mode in btf procfs; do
	rec_start renamed.cap --mode $mode -p "$idle"
	mv renamed.cap moved.cap
	echo other >renamed.cap
	rec_stop
	is "$rc" 1 "mode $mode: a capture that was renamed meanwhile gives status 1"
	ok "mode $mode: the message has its new name" grep -q "'renamed.cap' was renamed during the recording: it is '$TMP/moved.cap' now" rec.err
	ok "mode $mode: the summary has it, too" grep -q " bytes in '$TMP/moved.cap'" rec.err
	whole "mode $mode, renamed" moved.cap SIGINT
	rm renamed.cap moved.cap
	rec_start gone.cap --mode $mode -p "$idle"
	rm gone.cap
	wait "$rec_pid"
	is "$?" 1 "mode $mode: deleting the capture ends the recording with status 1"
	ok "mode $mode: the message says that it is lost" grep -q "'gone.cap' was deleted or replaced during the recording: what was written to it is lost" rec.err
	ok "mode $mode: and the summary does not claim to have written it" grep -qE ' bytes are lost$' rec.err
done
mkdir folder
rec_start folder/c.cap -p "$idle"
rm -r folder
wait "$rec_pid"
is "$?" 1 "so does removing its folder"
ok "which is reported likewise" grep -q "'folder/c.cap' was deleted or replaced" rec.err

# A pipe that is not read: the shell has its other end
mkfifo stalled unread
full() {
	perl -e 'open my $f, "<&=8" or die; my $n = pack "i", 0; ioctl $f, 0x541b, $n or die; exit(unpack("i", $n) < 4096)' # FIONREAD
}
for end in INT TERM HUP duration; do
	exec 8<>stalled
	perl -e 'open my $f, "<&=8" or die; exit !fcntl $f, 1031, 8192' # F_SETPIPE_SZ
	began=$(date +%s%N)
	# shellcheck disable=SC2046 # words
	"$R" -o - -a --events $([ $end != duration ] || echo -d 2) >stalled 2>stalled.err 7>&- 8>&- &
	stalled=$!
	at_exit_kill "$stalled"
	until_true full
	[ $end = duration ] || kill -$end "$stalled"
	wait "$stalled"
	is "$?" 1 "-o - with a reader that stalls: $end ends the recording, with status 1"
	ok "$end: the message says how much was not read" grep -qE "cannot write to 'standard output': its reader took [0-9]+ bytes, and has not read the other [0-9]+" stalled.err
	exec 8>&-
done
echo "with a reader that stalls -d 2 took $((($(date +%s%N) - began) / 1000000)) ms" | diag
"$R" --force -o unread -p "$idle" 2>unread.err &
unread=$!
at_exit_kill "$unread"
# the output's process is at the FIFO, and the recorder, which drops its privileges last, has nothing else to do
opening() {
	grep -q '^Uid:	0	' "/proc/$unread/status" && return 1
	# shellcheck disable=SC2013 # one line of several PIDs
	for o in $(cat "/proc/$unread/task/$unread/children"); do
		grep -q wait_for_partner "/proc/$o/wchan" && return
	done 2>/dev/null
	return 1
}
until_true opening
kill -INT "$unread"
wait "$unread"
is "$?" 2 "SIGINT ends a recorder whose FIFO has no reader yet"
like "$(cat unread.err)" "interrupted while 'unread' waited for a reader" "the message says what it waited for"

# By sudo the capture belongs to the user who called it
run env SUDO_UID=65534 SUDO_GID=65534 timeout 20 "$R" -q -o sudo.cap -d 0.2 -p "$idle"
is "$rc $(stat -c '%u %g %a' sudo.cap)" '0 65534 65534 600' "a capture made by sudo belongs to the user who called it"
chmod 711 "$TMP"
mkdir -p reader
cp "$BIN/symbolize" reader/
chmod 755 reader reader/symbolize
ok "who can read it" setpriv --reuid=65534 --regid=65534 --clear-groups reader/symbolize -q sudo.cap
rec own.cap -d 0.2 -p "$idle"
run setpriv --reuid=65534 --regid=65534 --clear-groups reader/symbolize -q own.cap
like "$rc $(cat "$err")" "^2 .*'own.cap'.*Permission denied" "another user's capture is refused"
like "$(cat "$err")" "hint: it belongs to user 0: run this as that user or as root, or let root give it to you: chown 65534" "with a hint"

# Privileges: the error message names each missing one.
if command -v capsh >/dev/null; then
	chmod 755 "$TMP"
	mkdir -m 777 open
	for c in bpf perfmon; do
		run timeout 20 capsh --drop="cap_sys_admin,cap_$c" -- -c "exec '$R' --mode btf -q --force -o open/p.cap -d 0.2 -p $idle"
		is "$rc" 2 "without CAP_$(echo "$c" | tr '[:lower:]' '[:upper:]') offcpu-record exits with 2"
		ok "the error message names the missing cap_$c" grep -q "CAP_$(echo "$c" | tr '[:lower:]' '[:upper:]')" "$err"
		ok "a hint says how to grant cap_$c" grep -qE 'hint: .*(setcap|--cap-add=)' "$err"
		ok "no capture is created without cap_$c" test ! -e open/p.cap
	done
else
	skip "capabilities" "no capsh"
fi
cp "$R" open/offcpu-record && chmod 755 open/offcpu-record
run timeout 20 setpriv --reuid=65534 --regid=65534 --clear-groups open/offcpu-record --mode btf -q -o open/n.cap -d 0.2 -p "$idle"
is "$rc" 2 "--mode btf of an ordinary user exits with 2"
like "$(cat "$err")" 'CAP_BPF' "the error message names what an ordinary user lacks"
ok "no capture is created for an ordinary user without privileges" test ! -e open/n.cap

like "$(cat "$err")" 'setcap cap_bpf,cap_perfmon' "the error message has the setcap command that grants the capabilities"
if setcap cap_bpf,cap_perfmon+ep open/offcpu-record 2>/dev/null; then
	run timeout 20 setpriv --reuid=65534 --regid=65534 --clear-groups open/offcpu-record -q -o open/n.cap \
		--preempted -- sleep 0.3
	is "$rc" 0 "after that setcap command an ordinary user can record"
	# the timer may run for a while before a slow machine has taken the thread off its CPU
	ok "the capture of an ordinary user has the command's wait" test "$(waits open/n.cap '$n += $w->{total_ns}')" -ge 200000000
else
	skip "file capabilities" "setcap fails here"
fi

# A terminal: a progress line and one summary
if command -v script >/dev/null; then
	script -qec "timeout 20 '$R' --force -o tty.cap -d 1.2 -p $idle" /dev/null >tty.out 2>&1 </dev/null
	ok "on a terminal there is a progress line" grep -qE '[0-9.]+ s  [0-9]+ waits?  [0-9]+ stacks?  [0-9]+ process(es)?  [0-9]+ lost' tty.out
	is "$(grep -c 'offcpu-record: ' tty.out)" 1 "on a terminal there is one summary"
fi
tap_done
