#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# How recordings end, where they go, and what they need: the capture is complete, or says what is missing.
# shellcheck disable=SC2016,SC2119,SC2154,SC2317 # Perl's variables; $rc and others of tap.sh; functions that ok calls
# nohup's children ignore the signals that end a recording here
[ -n "${T_SIGNALS-}" ] || T_SIGNALS=default exec env --default-signal=HUP,INT,TERM sh "$0"
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf
R=$BIN/offcpu-record
cd "$TMP" || exit 1

sleep 1000 &
idle=$!
at_exit_kill "$idle"

# whole NAME CAP WHY: complete, and it says why it ended
whole() {
	run "$BIN/capinfo" --verify "$2"
	is "$rc" 0 "$1: the capture is complete"
	ok "$1: it says why it ended" sh -c "'$BIN/capinfo' '$2' | grep -q 'stopped by: $3'"
}
for s in INT TERM HUP; do
	rec_start "$s.cap" -p "$idle"
	rec_stop "$s"
	is "$rc" 0 "SIG$s is status 0"
	whole "SIG$s" "$s.cap" "SIG$s"
done
ok "the summary says how long, how many and where" grep -qE '^offcpu-record: [0-9.]+ s, 1 wait of .* in .HUP.cap.$' rec.err
ok "and that nothing was lost" grep -q 'lost: nothing' rec.err
rec d.cap -d 300ms -p "$idle"
is "$(cat "$err")$(cat "$out")" "" "-q is silent"
whole "-d" d.cap duration
is "$(stat -c %a d.cap)" 600 "a capture is for its owner alone"
sleep 1000 &
target=$!
rec_start e.cap -q -p $target
kill $target
wait "$rec_pid"
is "$?" 0 "a recording whose target ends, ends with status 0"
whole "the target's end" e.cap "target exited"

# the command's status
run timeout 20 "$R" --force -o c.cap -- sh -c 'exit 7'
is "$rc" 0 "a failing command is no failure of the recording"
ok "its exit status is in the summary" grep -q "the command's exit status: 7" "$err"
whole "the command's end" c.cap "command exited"
run timeout 20 "$R" --force -o c.cap -- sh -c 'kill -9 $$'
ok "a command ended by a signal is reported" grep -q 'ended by signal 9 (Killed)' "$err"
run timeout 20 "$R" --force -o c.cap -d 0.3 -- sleep 2
ok "a command that still runs is reported" grep -q 'the command still runs, as process' "$err"
is "$(timeout 20 "$R" -q --force -o c.cap -- sh -c 'cat; echo err >&2' 2>err.txt <<-IN
	through
IN
)$(cat err.txt)" "througherr" "the command has our stdin, stdout and stderr"
ok "an interrupt of the terminal's kind is not blocked in the command" sh -c \
	"timeout 20 '$R' -q --force -o c.cap -- grep SigBlk /proc/self/status | grep -q 0000000000000000"

# SIGKILL
# a flush every second, whenever the machine gets to it: killed when the second one is in the file
# not by waits(), which takes a minute where thousands of processes run
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
is "$rc" 1 "after SIGKILL the capture is readable and incomplete"
like "$(grep '^state' "$out")" 'incomplete|not complete|killed|cut|trailer' "capinfo says so"
ok "waits up to the last second are in it" test "$(counter kill.cap waits.recorded)" -gt 0
ok "symbolize reads it, and says that it is incomplete" sh -c \
	"'$BIN/symbolize' kill.cap >k.txt 2>k.err; [ \$? -eq 1 ] && [ -s k.txt ] && [ -s k.err ]"
between "$(latest kill.cap)" 1000000000 100000000000 \
	"the last waits are from after the first second"

# Disk full: what is written is kept. Something happens meanwhile, however quiet the machine is.
: >going
while [ -e going ]; do true | cat; done >/dev/null 2>&1 &
mkdir small
if mount -t tmpfs -o size=8k none small 2>/dev/null; then
	run timeout 30 "$R" -q -o small/cap.bin -d 3 -a
	is "$rc" 1 "a full disk is status 1"
	ok "and says so, with the file's name" grep -q "small/cap.bin.*No space left" "$err"
	run "$BIN/capinfo" small/cap.bin
	is "$rc" 1 "what was written is readable, and known to be incomplete"
	umount small
else
	skip "disk full" "tmpfs cannot be mounted here"
fi
run timeout 30 sh -c "ulimit -f 8; exec '$R' -q --force -o limit.cap -d 3 -a"
is "$rc" 1 "a file size limit is status 1, not SIGXFSZ"
ok "and says so" grep -qE 'limit.cap.*File too large' "$err"

# A pipe
timeout 20 "$R" -q -o - -d 0.3 -p "$idle" 2>"$err" | "$BIN/capinfo" --verify - >"$out"
like "$(cat "$out")" '^.*ok' "-o - is a complete capture through a pipe"
{
	timeout 20 "$R" -q -o - -d 3 -a 2>"$err"
	echo "$?" >pipe.rc
} | head -c 100 >/dev/null
like "$(cat pipe.rc) $(cat "$err")" '^(141|1 .*[Bb]roken pipe)' "a reader that goes away ends the recording"
rm going

# A capture may be replaced, a damaged one too; both recorders at once
rec d.cap -d 0.2 -p "$idle"
run timeout 20 "$R" -q -o d.cap -d 0.2 -p "$idle"
is "$rc" 0 "a capture is replaced without --force"
whole "the one that replaced it" d.cap duration
rec_start one.cap -q -d 2 -p "$idle"
rec two.cap -d 1 -p "$idle"
is "$rc" 0 "two recorders at once: the second"
wait "$rec_pid"
is "$?" 0 "and the first"
is "$(waits two.cap '$n++ if abs($w->{total_ns} - $c{duration_ns}) < 1e7')$(waits one.cap '$n++ if abs($w->{total_ns} - $c{duration_ns}) < 2e7')" 11 \
	"each has the whole of its own time"

# Privileges: each missing one is named
if command -v capsh >/dev/null; then
	chmod 755 "$TMP"
	mkdir -m 777 open
	for c in bpf perfmon; do
		run timeout 20 capsh --drop="cap_sys_admin,cap_$c" -- -c "exec '$R' --mode btf -q --force -o open/p.cap -d 0.2 -p $idle"
		is "$rc" 2 "without CAP_$(echo "$c" | tr '[:lower:]' '[:upper:]') it is status 2"
		ok "and the message names it" grep -q "CAP_$(echo "$c" | tr '[:lower:]' '[:upper:]')" "$err"
		ok "with what grants it" grep -qE 'hint: .*(setcap|--cap-add=)' "$err"
		ok "no capture was begun" test ! -e open/p.cap
	done
else
	skip "capabilities" "no capsh"
fi
cp "$R" open/offcpu-record && chmod 755 open/offcpu-record
run timeout 20 setpriv --reuid=65534 --regid=65534 --clear-groups open/offcpu-record --mode btf -q -o open/n.cap -d 0.2 -p "$idle"
is "$rc" 2 "an ordinary user is refused BPF"
like "$(cat "$err")" 'CAP_BPF' "with what is missing"
ok "and without a file" test ! -e open/n.cap

like "$(cat "$err")" 'setcap cap_bpf,cap_perfmon' "and the command that grants it"
if setcap cap_bpf,cap_perfmon+ep open/offcpu-record 2>/dev/null; then
	run timeout 20 setpriv --reuid=65534 --regid=65534 --clear-groups open/offcpu-record -q -o open/n.cap \
		--preempted -- sleep 0.3
	is "$rc" 0 "that command does grant it: an ordinary user records"
	# the timer may run for a while before a slow machine has taken the thread off its CPU
	ok "what it waited for" test "$(waits open/n.cap '$n += $w->{total_ns}')" -ge 200000000
else
	skip "file capabilities" "setcap fails here"
fi

# A terminal: one progress line, and the summary
if command -v script >/dev/null; then
	script -qec "timeout 20 '$R' --force -o tty.cap -d 1.2 -p $idle" /dev/null >tty.out 2>&1 </dev/null
	ok "on a terminal there is a progress line" grep -qE '[0-9.]+ s  [0-9]+ waits?  [0-9]+ stacks?  [0-9]+ process(es)?  [0-9]+ lost' tty.out
	is "$(grep -c 'offcpu-record: ' tty.out)" 1 "and one summary"
fi
tap_done
