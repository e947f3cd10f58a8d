#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Kernel stacks by our own walk are those of bpf_get_stack(), frame by frame.
# shellcheck disable=SC2016,SC2154 # Perl's variables; $rc and others of tap.sh
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf
SWITCH=$OBJ/t/work/switch

# began CAP: true if the recorder has the kernel's symbols, which lead to the unwind table. A flush writes the
# counters, one a second
began() {
	[ "$(counter "$1" stacks.kernel_compared)" -gt 0 ] || [ "$(counter "$1" stacks.kernel_walked)" -gt 0 ]
} 2>/dev/null

# load LOAD ARG...: starts t/work/switch, which waits for its stdin; sets $load
load() {
	rm -f "$TMP/in.$1"
	mkfifo "$TMP/in.$1"
	"$SWITCH" "$@" <"$TMP/in.$1" >"$TMP/said.$1" &
	load=$!
	at_exit_kill "$load"
}

# churn: programs that begin and end, files, pipes, memory, a nap: other ways into the scheduler
churn() {
	i=0
	while [ $i -lt 100 ]; do
		i=$((i + 1))
		dd if=/dev/zero of="$TMP/file" bs=64k count=8 conv=fsync 2>/dev/null
		find /proc/self/ /sys/kernel 2>/dev/null | head -c 20000 | sort | wc -l
		perl -e 'my $m = "x" x 4e6; select undef, undef, undef, 0.001; wait if !fork || 1; exit 0'
		sh -c 'read -r x </proc/uptime; sleep 0.001 & wait'
	done >/dev/null
}

# Everything on the machine, both ways. The loads begin when both are taken.
load futex 50000
futex=$load
exec 7>"$TMP/in.futex"
load pipe 30000 5
pipe=$load
exec 8>"$TMP/in.pipe"
load sleep 60000
sleeps=$load
exec 9>"$TMP/in.sleep"
rec_start "$TMP/v.cap" -a --preempted --kthreads --verify-kernel-stacks 8>&- 9>&-
until_true began "$TMP/v.cap"
echo >&7
echo >&8
echo >&9
exec 7>&- 8>&- 9>&-
churn
wait "$futex" "$pipe" "$sleeps"
rec_stop
[ "$rc" -le 1 ]
is "$?" 0 'the whole machine is recorded, with each kernel stack taken both ways'
compared=$(counter "$TMP/v.cap" stacks.kernel_compared)
ok "under a mixed load ($compared stacks)" test "${compared:-0}" -ge 200000
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

# grown CAP: true if 20000 more stacks have been walked, or compared, since $was
grown() {
	now=$(($(counter "$1" stacks.kernel_walked) + $(counter "$1" stacks.kernel_compared)))
	[ $now -gt $((was + 20000)) ]
} 2>/dev/null

load futex 2000000000
exec 7>"$TMP/in.futex"
echo >&7
exec 7>&-
for how in compared walked; do
	[ $how = walked ] && option='' || option=--verify-kernel-stacks
	# shellcheck disable=SC2086 # no word, or one
	rec_start "$TMP/$how.cap" -p "$load" $option
	until_true began "$TMP/$how.cap"
	walked=$(counter "$TMP/$how.cap" stacks.kernel_walked) waits=$(counter "$TMP/$how.cap" waits.recorded)
	was=$((walked + $(counter "$TMP/$how.cap" stacks.kernel_compared)))
	until_true grown "$TMP/$how.cap"
	rec_stop
	is "$rc" 0 "two threads are recorded ($how)"
done
kill "$load"
kernel_stacks "$TMP/walked.cap" >"$TMP/walked"
kernel_stacks "$TMP/compared.cap" >"$TMP/compared"
like "$(cat "$TMP/walked")" '^__schedule;schedule;.*futex.*;do_syscall_64;entry_SYSCALL_64' 'their stacks go from the scheduler to the system call'
same "$TMP/walked" "$TMP/compared" 'and are the same as those of bpf_get_stack()'
waits=$(($(counter "$TMP/walked.cap" waits.recorded) - waits))
walked=$(($(counter "$TMP/walked.cap" stacks.kernel_walked) - walked))
ok "nearly all are walked ($walked of $waits)" test "$walked" -ge $((waits * 9 / 10))
waits=$(counter "$TMP/walked.cap" waits.recorded)
sum=0
for n in walked unready outside interrupt unproved compared; do
	sum=$((sum + $(counter "$TMP/walked.cap" stacks.kernel_$n)))
done
ok "each stack is counted once ($sum)" test "$sum" -ge "$waits" -a "$sum" -le $((waits + 2000))
is "$(counter "$TMP/walked.cap" stacks.kernel_differ)" 0 'the first ones are compared, and do not differ'
tried=$(counter "$TMP/walked.cap" stacks.kernel_compared)
ok "only those ($tried)" test "$tried" -ge 1 -a "$tried" -le $((16 * $(nproc)))

run "$BIN/offcpu-record" -v --force -o "$TMP/s.cap" -- sleep 0.1
like "$(cat "$err")" 'kernel stacks*: walked by the kernel.s unwind table' '-v reports how many were walked'
rec "$TMP/d.cap" --depth 3 --verify-kernel-stacks -d 2 -a
is "$(counter "$TMP/d.cap" stacks.kernel_differ)" 0 'stacks that --depth cuts are those of bpf_get_stack()'
is "$(waits "$TMP/d.cap" '$n++ if @{$w->{kernel_stack}} > 3')" 0 'and are cut'

status 64 'mode raw does not walk kernel stacks' "$BIN/offcpu-record" --mode raw --verify-kernel-stacks -- true
like "$(cat "$err")" '--verify-kernel-stacks goes with mode btf' 'and says so'
rec "$TMP/r.cap" --mode raw -- sleep 0.1
is "$(counter "$TMP/r.cap" stacks.kernel_walked)" 0 'in mode raw, bpf_get_stack() takes them'
tap_done
