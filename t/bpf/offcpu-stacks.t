#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Recorded stacks match gdb, eu-stack, /proc/PID/stack and what the workload prints.
# shellcheck disable=SC2013,SC2016,SC2119,SC2154,SC2317 # Perl's variables; $rc and others of tap.sh; functions that ok calls
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf

mkfifo "$TMP/in"
"$OBJ/t/work/chain" 60 <"$TMP/in" >"$TMP/chain" &
pid=$!
exec 7>"$TMP/in"
at_exit_kill "$pid"
until_true grep -q ready "$TMP/chain"

rec "$TMP/c.cap" -d 1 -p "$pid"
is "$rc" 0 "a program with known call chains is recorded"

# Kernel stacks: /proc/PID/stack has the same functions, without those of the section .sched.text. Compare
# before a debugger stops the threads: that restarts their sleeps.
bare() {
	tr ';' '\n' | grep -vE '^(__schedule|schedule|do_nanosleep)$' | tr '\n' ';'
}
kernel_same() {
	bad=0
	for tid in $(awk 'NF == 3 { print $1 }' "$TMP/chain") "$pid"; do
		proc=$(sed 's/^\[<[0-9a-f]*>\] //; s/+0x.*//' "/proc/$pid/task/$tid/stack" | tr '\n' ';' | bare)
		ours=$(waits "$1" 'push @o, kernel() if $w->{tid} == '"$tid" | bare)
		echo "$tid: $ours"
		[ "$proc" = "$ours" ] || {
			echo "$tid, /proc: $proc"
			bad=1
		}
	done
	return "$bad"
}
ok "kernel stacks of threads blocked before the recording match /proc/PID/stack" kernel_same "$TMP/c.cap"
is "$(waits "$TMP/c.cap" '$n++ if $w->{kernel_stack_verdict} ne "complete"')" 0 "kernel stacks of threads blocked before the recording are complete"
# own CAP: prints "TID FUNCTION;..." of the recorded frames that belong to the program
own() {
	waits "$1" 'push @o, "$w->{tid} " . join ";", map { $_->{symbol} // "?" }
		grep { ($_->{module} // "") =~ m{/chain$} } @{$w->{user_stack}}' | sort
}
own "$TMP/c.cap" | grep -v "^$pid " >"$TMP/got"
awk 'NF == 3 { print $1, $3 }' "$TMP/chain" | sort >"$TMP/want"
same "$TMP/got" "$TMP/want" "threads blocked before the recording have the call chains that the program printed"

# prints the same from a debugger's output, only frames of the program
debugger_frames() {
	perl -ne '
		if (/LWP (\d+)/ || /^TID (\d+):/) { print "$t ", join(";", @f), "\n" if @f; $t = $1; @f = () }
		next unless /^#\d+/;
		push @f, $1 if /^#\d+\s+(?:0x[0-9a-f]+ (?:in )?)?(?!in )([a-z_]\w*)/ && $1 !~ /^(start_thread|clone3?|__)/;
		END { print "$t ", join(";", @f), "\n" if @f }' | grep -v "^$pid " | sort
}
if command -v gdb >/dev/null; then
	gdb -nx -batch -p "$pid" -ex 'set pagination off' -ex 'thread apply all bt' 2>/dev/null 7>&- | debugger_frames >"$TMP/gdb"
	same "$TMP/got" "$TMP/gdb" "recorded call chains match gdb"
else
	skip "recorded call chains match gdb" "no gdb"
fi
if command -v eu-stack >/dev/null; then
	eu-stack -n 0 -p "$pid" 2>/dev/null 7>&- | debugger_frames >"$TMP/eu"
	same "$TMP/got" "$TMP/eu" "recorded call chains match eu-stack"
else
	skip "recorded call chains match eu-stack" "no eu-stack"
fi

exec 7>&-
wait "$pid" 2>/dev/null

# The same call chains, recorded when the threads block.
mkfifo "$TMP/in2"
"$BIN/offcpu-record" -q --force -o "$TMP/s.cap" -- "$OBJ/t/work/chain" 60 <"$TMP/in2" >"$TMP/chain2" 2>"$err" &
rec_pid=$!
at_exit_kill "$rec_pid"
exec 7>"$TMP/in2"
until_true grep -q ready "$TMP/chain2"
pid=$(head -n 1 "$TMP/chain2")
# shellcheck disable=SC2034
kernel_now=$(for t in $(awk 'NF == 3 { print $1 }' "$TMP/chain2"); do
	echo "$t $(sed 's/^\[<[0-9a-f]*>\] //; s/+0x.*//' "/proc/$pid/task/$t/stack" | tr '\n' ';' | bare)"
done | sort)
exec 7>&-
wait "$rec_pid"
is $? 0 "the same program is recorded from its start"
waits "$TMP/s.cap" 'push @o, "$w->{tid} " . join ";", map { $_->{symbol} // "?" }
	grep { ($_->{module} // "") =~ m{/chain$} } @{$w->{user_stack}} if $w->{total_ns} > 5e7 && $w->{comm} =~ /^chain-/' |
	sort -u >"$TMP/got2"
awk 'NF == 3 { print $1, $3 }' "$TMP/chain2" | sort >"$TMP/want2"
same "$TMP/got2" "$TMP/want2" "threads that block during the recording have the call chains that the program printed"
is "$(waits "$TMP/s.cap" 'push @o, "$w->{tid} " . kernel() if $w->{total_ns} > 5e7 && $w->{comm} =~ /^chain-/' |
	while read -r t k; do echo "$t $(echo "$k" | bare)"; done | sort -u)" "$kernel_now" \
	"kernel stacks of threads that block during the recording match /proc/PID/stack"

# Without CAP_SYSLOG, or without symbols at all, kernel frames have no names, and are the same.
places() { # CAP: the distinct kernel stacks of sleep, by address
	waits "$1" '$h{join ",", map { $_->{address} } @{$w->{kernel_stack}}} = 1 if $w->{comm} eq "sleep" && $w->{total_ns} > 1e8'
}
rec "$TMP/all.cap" -- sleep 0.2
run setpriv --inh-caps=-all --bounding-set=-syslog timeout -k 5 60 "$BIN/offcpu-record" --force -o "$TMP/nolog.cap" -- sleep 0.2
is "$rc" 0 "without CAP_SYSLOG a command is recorded"
is "$(places "$TMP/nolog.cap")" "$(places "$TMP/all.cap")" "without CAP_SYSLOG kernel stacks have no frames of the recorder"
run unshare -m sh -c 'mount --bind /dev/null /proc/kallsyms && exec "$@"' sh \
	timeout -k 5 60 "$BIN/offcpu-record" --force -o "$TMP/nosyms.cap" -- sleep 0.2
like "$(cat "$err")" 'degraded: .*kernel frames have no names' "without /proc/kallsyms kernel frames have no names"
is "$(places "$TMP/nosyms.cap")" "$(places "$TMP/all.cap")" "nor frames of the recorder"

# Offsets belong to the call, not to the next instruction: return addresses are looked up one byte back.
is "$(waits "$TMP/s.cap" '$n++ if grep { defined $_->{offset} && $_->{offset} == 0 } @{$w->{user_stack}}[1 .. $#{$w->{user_stack}}]')" 0 \
	"no return address has the name of a function that begins there"

# One stack has one ID: threads in the same place share it, threads in different places never do.
mkfifo "$TMP/in3"
"$OBJ/t/work/idle" 5 <"$TMP/in3" >"$TMP/pid" &
exec 7>"$TMP/in3"
until_true test -s "$TMP/pid"
rec "$TMP/i.cap" -d 0.5 -p "$(cat "$TMP/pid")"
exec 7>&-
is "$(waits "$TMP/i.cap" '$h{$w->{user_stack_id}}++ if $w->{comm} eq "i-wait"' | wc -l)" 1 "five threads in the same place share one stack"
is "$(waits "$TMP/c.cap" '$h{"$w->{user_stack_id} " . join ",", map { $_->{address} } @{$w->{user_stack}}} = 1' |
	cut -d' ' -f1 | uniq -d)" "" "no two stacks have the same ID"
tap_done
