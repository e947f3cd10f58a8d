#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Hostile processes, which control their registers, stacks and files: the
# recording continues, gives reasons for stacks that are not complete, and has
# the right stacks of other processes.
# shellcheck disable=SC2016,SC2154,SC2317 # Perl's variables; $rc and others of tap.sh; functions that are called by name
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
. "$(dirname "$0")/../lib/unwind.sh"
need_bpf
unset ORACLES_ONLY

build hostile hostile.c -O2
build calls calls.c -O2
build dl dl.c -O2
build dllib.so dllib.c -O2 -fPIC -shared

kinds='good garbage nops rows pointers remember claim'
for kind in $kinds; do
	perl "$DATA/unwind/badelf" "$kind" >"$W/$kind.so"
	start "$kind" "$W/hostile" map "$W/$kind.so"
done
start wild "$W/hostile" wild
start loops "$W/hostile" loops
start device "$W/hostile" device
start many "$W/hostile" map "$W/good.so" 5000
ways='fifo device loop directory gone'
for how in $ways; do
	cp "$W/good.so" "$W/$how.so"
	start "is-$how" "$W/hostile" replaced "$W/$how.so" "$how"
done
cp "$W/good.so" "$W/cut.so"
start cut "$W/hostile" map "$W/cut.so"
cp "$W/dllib.so" "$W/changing.so"
start changing "$W/dl" "$W/changing.so" function
start calls "$W/calls"
settled
truncate -s 5000 "$W/cut.so"
: >"$W/go"
while [ -e "$W/go" ]; do
	# does not change the text, only what follows it
	dd if=/dev/urandom of="$W/changing.so" bs=4096 seek=2 count=2 conv=notrunc
done 2>/dev/null &
at_exit_kill $!

# memory: prints the largest peak RSS of the recorder and its children, in MB
memory() {
	for m_pid in $rec_pid $(pgrep -P "$rec_pid"); do
		sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$m_pid/status"
	done | awk '{ if ($1 > m) m = $1 } END { print int(m / 1024) }'
}
before_stop() {
	memory >"$TMP/memory"
}
record_blocked "$TMP/h.cap"
rm "$W/go"
between "$rc" 0 1 "a recording of hostile processes ends with status 0 or 1"
between "$(cat "$TMP/memory")" 1 300 "neither the recorder nor its children need more than 300 MB"
agrees "another process, recorded together with hostile ones" calls --oracles eu
agreed

# All processes in one pass, since reading a capture is slow: "PID THREAD VERDICT REASON FRAMES LARGEST",
# where LARGEST is the largest address
waits "$TMP/h.cap" 'no warnings;
	my ($most) = sort { $b cmp $a } map { sprintf "%016x", hex $_->{address} } @{$w->{user_stack} || []};
	$h{"$w->{pid} $w->{comm} $w->{user_stack_verdict} " . ($w->{user_stack_error} // "none")
		. " " . @{$w->{user_stack} || []} . " $most"} = ""' >"$TMP/all"
# verdicts NAME: prints "THREAD VERDICT REASON" of the process's threads, except the main thread of
# hostile, each line once
verdicts() {
	awk -v p="$(pid_of "$1")" '$1 == p && $2 != "hostile" { print $2, $3, $4 }' "$TMP/all" | sort -u
}

verdicts wild >"$TMP/wild"
is "$(grep -c . "$TMP/wild") $(grep -cE ' (stopped|unverified) ' "$TMP/wild")" "16 16" "wild registers: all 16 stacks are stopped or unverified, not complete"
is "$(grep '^sp-' "$TMP/wild" | grep -v -e '^sp-in-text' | grep -vcE ' stopped (no-memory|loop)$')" 0 "wild stack pointers: the walk stops with the reason no-memory or loop"
diag <"$TMP/wild"
is "$(awk '$6 >= "ffff800000000000"' "$TMP/all")" "" "no user stack has a kernel address"

verdicts loops >"$TMP/loops"
is "$(grep -c . "$TMP/loops") $(grep -c ' complete ' "$TMP/loops")" "6 0" "crafted frames: none of the six stacks is complete"
is "$(grep -E '^loop-(self|two|down) ' "$TMP/loops" | sed 's/^[^ ]* //' | sort -u)" "stopped loop" "crafted frames: a loop or a step backwards ends the walk with the reason loop"
is "$(sed -n 's/^endless //p' "$TMP/loops")" "truncated truncated" "crafted frames: endless return addresses are truncated at the depth"
diag <"$TMP/loops"
is "$(awk '$5 > 127' "$TMP/all")" "" "no stack has more than 127 frames"

is "$(verdicts device | grep -c ' complete ')" 0 "code in devices and memory: no stack is complete"
verdicts device | diag

for kind in good many; do
	is "$(verdicts "$kind")" "mapped complete none" "a correct file ($kind) has a complete stack"
done
for how in $ways; do
	is "$(verdicts "is-$how")" "mapped complete none" "a correct file whose path leads to something else ($how) has a complete stack"
done
for kind in garbage nops rows pointers remember claim cut changing; do
	verdicts "$kind" >"$TMP/v"
	like "$(cat "$TMP/v")" '^[a-z]+ (complete none|(stopped|unverified) [a-z-]+)$' "a hostile file ($kind): the stack has a verdict, and a reason unless complete"
	diag <"$TMP/v"
done
agrees "a file that changes while it is read" changing --oracles eu --no-chain --verdict ".*" --top 1
agreed
tap_done
