#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Kernel stacks by our own walk are those of bpf_get_stack(), frame by frame. For ten million of them, which takes
# minutes: KERNEL_STACKS=10000000 POLLS=20000 prove -v t/bpf/offcpu-kernel-stacks.t
# shellcheck disable=SC2016,SC2154 # Perl's variables; $rc and others of tap.sh
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf
SWITCH=$OBJ/t/work/switch

# load LOAD ARG...: starts t/work/switch, which runs until the test ends; sets $load
load() {
	"$SWITCH" "$@" </dev/null >/dev/null &
	load=$!
	at_exit_kill "$load"
}

# churn: programs that begin and end, files, pipes, memory, a nap: other ways into the scheduler
churn() {
	while :; do
		dd if=/dev/zero of="$TMP/file" bs=64k count=8 conv=fsync 2>/dev/null
		head -c 20000 /proc/kallsyms | sort | wc -l
		perl -e 'my $m = "x" x 4e6; select undef, undef, undef, 0.001; fork; exit 0'
		sh -c 'read -r x </proc/uptime; sleep 0.001 & wait'
	done >/dev/null
}

# Everything on the machine, both ways
least=${KERNEL_STACKS:-20000}
load pipe 2000000000 5
load sleep 2000000000
load futex 2000000000
churn &
churn=$!
at_exit_kill "$churn"
# has CAP COUNTER N: true if the counter is at least N as of the last flush
has() {
	h_n=$(counter "$1" "$2")
	[ "${h_n:-0}" -ge "$3" ]
}
rec_start "$TMP/v.cap" -q --force -a --preempted --kthreads --verify-stacks
until_true has "$TMP/v.cap" stacks.kernel_compared "$least"
rec_stop
kill "$churn"
[ "$rc" -le 1 ]
is "$?" 0 'the whole machine is recorded, with each kernel stack taken both ways'
compared=$(counter "$TMP/v.cap" stacks.kernel_compared)
ok "under a mixed load ($compared stacks)" test "${compared:-0}" -ge "$least"
is "$(counter "$TMP/v.cap" stacks.kernel_differ)" 0 'not one differs'
is "$(counter "$TMP/v.cap" stacks.kernel_walked)" 0 'and those of bpf_get_stack() are recorded'
"$BIN/capinfo" "$TMP/v.cap" | grep 'stacks\.kernel' | diag
rest=0
for why in outside interrupt unproved; do
	rest=$((rest + $(counter "$TMP/v.cap" stacks.kernel_$why)))
done
ok "few stacks are not walked ($rest)" test "$rest" -lt $((compared / 20))

# kernel_stacks CAP: prints those of more than a fifth of the waits
kernel_stacks() {
	waits "$1" '$h{kernel()} += $w->{count}' |
		awk '{ n[NR] = $NF; sum += $NF; $NF = ""; of[NR] = $0 } END { for (i in n) if (n[i] > sum / 5) print of[i] }' | sort
}

rec "$TMP/compared.cap" -d 3 -p "$load" --verify-stacks
is "$rc" 0 'two threads are recorded, each stack taken both ways'
# most: true if many are walked, and more than are not
most() {
	has "$TMP/walked.cap" stacks.kernel_walked 10000 &&
		has "$TMP/walked.cap" stacks.kernel_walked $(($(counter "$TMP/walked.cap" waits.recorded) * 2 / 3))
}
rec_start "$TMP/walked.cap" -q --force -p "$load"
until_true most
rec_stop
is "$rc" 0 'and walked alone'
kernel_stacks "$TMP/walked.cap" >"$TMP/walked"
kernel_stacks "$TMP/compared.cap" >"$TMP/compared"
like "$(cat "$TMP/walked")" '^__schedule;schedule;.*futex.*;do_syscall_64;entry_SYSCALL_64' 'their stacks go from the scheduler to the system call'
same "$TMP/walked" "$TMP/compared" 'and are the same as those of bpf_get_stack()'
waits=$(counter "$TMP/walked.cap" waits.recorded) walked=$(counter "$TMP/walked.cap" stacks.kernel_walked)
ok "they are walked, all after the beginning ($walked of $waits)" test "${walked:-0}" -ge $((waits / 2))
sum=0
for n in walked unready outside interrupt unproved compared; do
	sum=$((sum + $(counter "$TMP/walked.cap" stacks.kernel_$n)))
done
# but for waits from before the recording, and those that were not recorded
ok "each stack is counted once ($sum)" test "$sum" -ge $((waits - 10)) -a "$sum" -le $((waits + 2000))
is "$(counter "$TMP/walked.cap" stacks.kernel_differ)" 0 'the first ones are compared, and do not differ'
tried=$(counter "$TMP/walked.cap" stacks.kernel_compared)
ok "only those ($tried)" test "$tried" -ge 1 -a "$tried" -le $((16 * $(nproc)))

# Those of who ends the waits: at another event, from another function of the kernel
# waker_stacks CAP: prints those of wakers of more than a fifth of the waits, from what called to wake on
waker_stacks() {
	waits "$1" '$h{join ";", map { $_->{symbol} // "?" } @{$w->{waker}{kernel_stack}}} += $w->{count} if $w->{waker}' |
		awk '{ n[NR] = $NF; sum += $NF; $NF = ""; of[NR] = $0 } END { for (i in n) if (n[i] > sum / 5) print of[i] }' | sort
}
# Beside sleeps, that interrupts end, files and fork: other ways to a wake-up
churn &
churn=$!
at_exit_kill "$churn"
rec_start "$TMP/wv.cap" -q --force -a --wakers --verify-stacks
until_true has "$TMP/wv.cap" stacks.kernel_compared 20000
rec_stop
kill "$churn"
is "$(counter "$TMP/wv.cap" stacks.kernel_differ)" 0 'stacks of wakers that are taken both ways do not differ'
rec "$TMP/wc.cap" -d 3 --wakers -p "$load" --verify-stacks
is "$(counter "$TMP/wc.cap" stacks.kernel_differ)" 0 'nor of two threads that wake each other'
ok 'and are taken both ways at both events' test "$(counter "$TMP/wc.cap" stacks.kernel_compared)" -ge \
	$(($(counter "$TMP/wc.cap" waits.recorded) * 3 / 2))
# at_both CAP COUNTER: true if it has so many that stacks of wakers are among them
at_both() {
	has "$1" "$2" 10000 && has "$1" "$2" $(($(counter "$1" waits.recorded) * 3 / 2))
}
rec_start "$TMP/ww.cap" -q --force --wakers -p "$load"
ok 'stacks of wakers are walked, too' until_true at_both "$TMP/ww.cap" stacks.kernel_walked
rec_stop
is "$(counter "$TMP/ww.cap" stacks.kernel_differ)" 0 'the first of them do not differ from those of bpf_get_stack()'
waker_stacks "$TMP/ww.cap" >"$TMP/walked"
waker_stacks "$TMP/wc.cap" >"$TMP/compared"
like "$(cat "$TMP/walked")" '^(wake_up_q;)?.*futex_wake.*;do_syscall_64;entry_SYSCALL_64' 'their stacks go from the wake-up to the system call'
same "$TMP/walked" "$TMP/compared" 'and are the same as those of bpf_get_stack()'

# Those of interrupts, up to where they entered the kernel: timers, which end sleeps on an idle CPU
sleeps() { # CAP COUNTER OPTION...
	s_cap=$1 s_counter=$2
	shift 2
	mkfifo "$TMP/go"
	"$OBJ/t/work/switch" sleep 10000000 <"$TMP/go" >"$TMP/out" &
	s_pid=$!
	at_exit_kill "$s_pid"
	exec 8>"$TMP/go"
	rm "$TMP/go"
	rec_start "$s_cap" -q --force --wakers "$@" -p "$s_pid"
	echo >&8
	exec 8>&-
	until_true at_both "$s_cap" "$s_counter"
	s_rc=$?
	rec_stop
	kill "$s_pid"
	return "$s_rc"
}
ok 'stacks of interrupts are walked, too' sleeps "$TMP/iw.cap" stacks.kernel_walked
ok 'and those walked are compared' sleeps "$TMP/iv.cap" stacks.kernel_compared --verify-stacks
is "$(counter "$TMP/iv.cap" stacks.kernel_differ)" 0 'none differs'
waker_stacks "$TMP/iw.cap" >"$TMP/walked"
waker_stacks "$TMP/iv.cap" >"$TMP/compared"
like "$(cat "$TMP/walked")" '^hrtimer_wakeup;.*;asm_sysvec_apic_timer_interrupt *$' 'they go from the timer to the interrupt'
same "$TMP/walked" "$TMP/compared" 'and are the same as those of bpf_get_stack()'

run "$BIN/offcpu-record" -v --force -o "$TMP/s.cap" -- sleep 0.1
like "$(cat "$err")" 'kernel stacks*: walked by the kernel.s unwind table' '-v reports how many were walked'
rec "$TMP/d.cap" --depth 3 --verify-stacks -d 2 -a
is "$(counter "$TMP/d.cap" stacks.kernel_differ)" 0 'stacks that --depth cuts are those of bpf_get_stack()'
is "$(waits "$TMP/d.cap" '$n++ if @{$w->{kernel_stack}} > 3')" 0 'and are cut'

status 64 'mode procfs takes no stacks at switches' "$BIN/offcpu-record" --mode procfs --verify-stacks -- true
like "$(cat "$err")" '--verify-stacks takes BPF' 'and says so'
rec "$TMP/r.cap" --mode raw -- sleep 0.1
is "$(counter "$TMP/r.cap" stacks.kernel_walked)" 0 'in mode raw, bpf_get_stack() takes them'
tap_done
