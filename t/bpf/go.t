#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Go programs, stripped and not, with cgo and without: their waits are complete, and where a
# goroutine blocks its thread, its stack is the one that Go's runtime reports.
# shellcheck disable=SC2016 # Perl's variables
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
. "$(dirname "$0")/../lib/go.sh"
need_bpf
mkfifo "$TMP/silence"
exec 7<>"$TMP/silence"
export DEBUGINFOD_URLS=

build_go waits waits.go
build_go plain plain.go
for name in waits plain; do
	objcopy --strip-all "$TMP/$name" "$TMP/$name-s"
done
all='waits waits-s plain plain-s'

begun() {
	grep -q '^ready' "$TMP/$1.out" 2>/dev/null
}
pids=
for name in $all; do
	"$TMP/$name" <&7 >"$TMP/$name.out" 7>&- &
	at_exit_kill $!
	echo $! >"$TMP/$name.pid"
	pids="$pids -p $!"
	until_true begun "$name"
done

# GC and preemption are in the recording for certain: each happened a hundred times
# shellcheck disable=SC2086 # words
rec_start "$TMP/go.cap" -q --preempted $pids
sleep 1.5
rec_stop
is "$rc" 0 "four Go programs are recorded"

# share NAME: how much of the time off the CPU is in complete user stacks, in parts of 10,000
share() {
	waits "$TMP/go.cap" '
		return if $w->{pid} != '"$(cat "$TMP/$1.pid")"';
		$h{all} += $w->{total_ns}; $h{complete} += $w->{total_ns} if ($w->{user_stack_verdict} // "") eq "complete"' >"$TMP/share"
	awk '{ n[$1] = $2 } END { printf "%d\n", n["all"] ? 10000 * n["complete"] / n["all"] : 0 }' "$TMP/share"
}

for name in $all; do
	between "$(share "$name")" 9900 10000 "$name: at least 99 % of its time off the CPU is complete"
done

# own NAME: the functions of its complete stacks that begin in goexit, innermost first; only those that
# said() keeps, and each stack once
kept='m{^(main\.|_cgoexp_|crosscall2$|syscall\.(read|Syscall)$|runtime\.(goexit|cgocall|asmcgocall|cgocallback)$)}'
own() {
	waits "$TMP/go.cap" '
		return if $w->{pid} != '"$(cat "$TMP/$1.pid")"' || ($w->{user_stack_verdict} // "") ne "complete";
		my @f = map { s/\.abi0$//r } split /;/, user();
		return if $f[-1] ne "runtime.goexit";
		$h{join ";", grep { '"$kept"' } @f} = $w->{tid}' | sed 's/ [0-9]*$//' | sort -u
}

# said NAME: what the program said about its stacks, which has neither asmcgocall nor crosscall2
said() {
	sed -n 's/^stack [a-z]* //p' "$TMP/${1%-s}.out" | perl -lne '
		my @f = map { $_ eq "runtime.cgocall" ? ("runtime.asmcgocall", $_) : $_ eq "runtime.cgocallback" ?
			($_, "crosscall2") : $_ } split /;/;
		print join ";", grep { '"$kept"' } @f' | sort -u
}

for name in waits waits-s; do
	said $name >"$TMP/said"
	own $name >"$TMP/own"
	comm -23 "$TMP/said" "$TMP/own" >"$TMP/missing"
	is "$(wc -l <"$TMP/said") $(diag <"$TMP/missing")" "5 " \
		"$name: goroutines in system calls and in C have the stacks that the runtime reports"
done

# complete_stacks NAME: one line for each complete stack
complete_stacks() {
	waits "$TMP/go.cap" '
		$h{join ";", map { s/\.abi0$//r } split /;/, user()}++
			if $w->{pid} == '"$(cat "$TMP/$1.pid")"' && ($w->{user_stack_verdict} // "") eq "complete"'
}

for name in waits waits-s; do
	complete_stacks $name >"$TMP/complete"
	like "$(cat "$TMP/complete")" '^runtime\.futex;.*;runtime\.systemstack;runtime\.(gcStart;runtime\.GC;main\.main\.func[0-9]*|gcMark.*;runtime\.gcBgMarkWorker);runtime\.goexit [0-9]+$' \
		"$name: a wait on the thread's own stack goes on to the goroutine that it is for"
	like "$(cat "$TMP/complete")" '^runtime\.futex;.*;runtime\.findRunnable;runtime\.schedule;runtime\.park_m;runtime\.mcall [0-9]+$' \
		"$name: an idle thread ends in mcall"
	like "$(cat "$TMP/complete")" ';runtime\.sysmon;runtime\.mstart1;runtime\.mstart0;runtime\.mstart [0-9]+$' "$name: sysmon ends in mstart"
done
waits "$TMP/go.cap" '
	return if $w->{pid} != '"$(cat "$TMP/plain-s.pid")"';
	$h{$_->{symbol} && $_->{source} =~ /^(gopclntab|stored)$/ ? "by the table" : "$_->{source} $_->{module}"}++
		for grep { $_->{module} ne "[vdso]" } @{$w->{user_stack}}' >"$TMP/sources"
like "$(paste -sd' ' "$TMP/sources")" '^by the table [0-9]+$' "plain-s: every frame has a name, by the table of functions"

# a debugger, where it can: on a goroutine's stack, whose end gdb does not know
tid=$(waits "$TMP/go.cap" 'push @o, $w->{tid} if $w->{pid} == '"$(cat "$TMP/plain.pid")"' && user() =~ /main\.readInSyscall/' | head -n 1)
run env STACKTOOLS_BIN="$BIN" perl "$DATA/unwind/agree" --oracles gdb --top 6 --no-switch --tid "${tid:-1}" "$(cat "$TMP/plain.pid")" "$TMP/go.cap"
is "$rc" 0 "plain: gdb sees the same frames on the goroutine's stack"
cat "$out" "$err" | diag

# without BPF: the thread is stopped for its TLS
rec "$TMP/procfs.cap" --mode procfs --ptrace -d 1 -p "$(cat "$TMP/waits-s.pid")"
cp "$TMP/procfs.cap" "$TMP/go.cap"
own waits-s >"$TMP/own"
said waits-s >"$TMP/said"
comm -23 "$TMP/said" "$TMP/own" >"$TMP/missing"
is "$(diag <"$TMP/missing")" "" "waits-s, mode procfs: the same stacks, over copies"
tap_done
