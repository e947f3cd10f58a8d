#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Samples of what threads execute, against what they measured themselves.
# shellcheck disable=SC2016,SC2154 # Perl's variables; $rc and others of tap.sh
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf

# near GOT WANT NAME: within 3 %, and what ten periods at 999 Hz may do by chance
near() {
	if perl -e 'my ($g, $w) = @ARGV; exit !($g > 0 && abs($g - $w) <= $w * .03 + 3 * sqrt($w * 1e6) + 5e6)' "$1" "$2"; then
		pass "$3"
	else
		fail "$3"
		printf 'got %s, want %s\n' "$1" "$2" | diag
	fi
}

# on CAP ARG...: records in the foreground what threads execute
on() {
	cap=$1
	shift
	run timeout -k 5 60 "$BIN/oncpu-record" -q --force -o "$cap" "$@" 7>&-
}

rec "$TMP/c.cap" --on-cpu=999 --preempted -- "$OBJ/t/work/cpu" 2
is "$rc" 0 "a busy program is recorded, with its samples"
cp "$out" "$TMP/said"
missed=$(counter "$TMP/c.cap" cpu.missed)
while read -r name tid one three kernel cpu wall; do
	near "$(samples "$TMP/c.cap" '$n += $w->{total_ns} if $w->{tid} == '"$tid")" "$cpu" \
		"$name: the samples add up to its CPU time"
	near "$(samples "$TMP/c.cap" '$n += $w->{total_ns} if $w->{tid} == '"$tid"' && user() =~ /(^|;)one_part;busy;/')" \
		"$one" "$name: as long in one_part as it measured"
	near "$(samples "$TMP/c.cap" '$n += $w->{total_ns} if $w->{tid} == '"$tid"' && user() =~ /(^|;)three_parts;busy;/')" \
		"$three" "$name: and in three_parts"
	near "$(samples "$TMP/c.cap" '$n += $w->{total_ns} if $w->{tid} == '"$tid"' && user() =~ /(^|;)in_kernel;busy;/')" \
		"$kernel" "$name: and in in_kernel"
	off=$(waits "$TMP/c.cap" '$n += $w->{total_ns} if $w->{tid} == '"$tid")
	on=$(samples "$TMP/c.cap" '$n += $w->{total_ns} if $w->{tid} == '"$tid")
	near "$((on + off))" "$wall" "$name: on the CPU, runnable and blocked add up to its life"
	"$BIN/capinfo" --threads "$TMP/c.cap" | awk -v t="$tid" '$2 == t { printf "%.0f %.0f\n", $6 * 1e9, $8 * 1e9 }' >"$TMP/sum"
	is "$(awk '{ print $1 }' "$TMP/sum")" "$off" "$name: capinfo --threads has its time off the CPU"
	within "$(awk '{ print $2 }' "$TMP/sum")" "$cpu" 1 "$name: and its CPU time, not by samples"
done <"$TMP/said"
# a thread that begins has not left clone() yet, and one that ends has given its memory up; the dynamic linker's entry has
# no name
is "$(samples "$TMP/c.cap" 'push @o, "$w->{user_stack_verdict} " . user() . " below " . kernel()
	if $w->{user_stack_verdict} ne "complete" && kernel() !~ /ret_from_fork|do_exit/')" 0 \
	"every sample has a complete user stack"
is "$(samples "$TMP/c.cap" 'push @o, "$w->{user_stack_verdict} " . user() . " below " . kernel()
	if user() !~ /(clone3|_start(;\?)?|^\?)$/ && kernel() !~ /do_exit|get_signal/')" 0 \
	"from its function to the thread's start"
like "$(samples "$TMP/c.cap" '$n += $w->{count} if kernel() =~ /read_(iter_)?zero/ && user() =~ /in_kernel/')" '^[1-9]' \
	"a sample in the kernel has both stacks"
is "$(samples "$TMP/c.cap" '$n++ if !@{$w->{kernel_stack}} && $w->{kernel_stack_error} ne "user-mode"')" 0 \
	"one in the program's own code has no kernel stack, and says so"
is "$(samples "$TMP/c.cap" '$n++ if kernel() =~ /bpf_|perf_swevent|hrtimer_interrupt/ && kernel() =~ /^(bpf_prog|perf_)/')" 0 \
	"no stack begins with the recorder's own frames"
is "$(samples "$TMP/c.cap" '$n++ if $w->{total_ns} != $w->{count} * 1001001')" 0 "each sample stands for a period"
ok "missed periods are counted ($missed)" test "$missed" -ge 0

# The text, and what reads it
run "$BIN/symbolize" -q "$TMP/c.cap"
like "$(grep -c '^# sample: count=[0-9]* total_ns=[0-9]* kernel=' "$out")" '^[1-9]' "samples have a comment of their own"
like "$(grep -cE '^busy-[12] .* 0*[0-9.]+: [0-9]+ cpu-clock: $' "$out")" '^[1-9]' "and the event cpu-clock"
cp "$out" "$TMP/text"
"$BIN/fold" --event-filter cpu-clock "$TMP/text" 2>/dev/null | awk '{ n += $NF } END { printf "%.0f\n", n }' >"$TMP/sum"
is "$(cat "$TMP/sum")" "$(samples "$TMP/c.cap" '$n += $w->{total_ns}')" "fold sums them"
"$BIN/fold" --event-filter offcpu-time "$TMP/text" 2>/dev/null | awk '{ n += $NF } END { printf "%.0f\n", n }' >"$TMP/sum"
is "$(cat "$TMP/sum")" "$(waits "$TMP/c.cap" '$n += $w->{total_ns}')" "and waits apart"
run "$BIN/stackreport" --json --all "$TMP/c.cap"
is "$(perl -MCpanel::JSON::XS -0777 -ne 'my $j = decode_json($_); my $n = 0; $n += $_->{total_ns} for @{$j->{rows}};
	print join " ", $n, @$j{qw(on_cpu_ns on_cpu_samples)}' "$out")" \
	"$(waits "$TMP/c.cap" '$n += $w->{total_ns}') $(samples "$TMP/c.cap" '$n += $w->{total_ns}') $(samples "$TMP/c.cap" '$n += $w->{count}')" \
	"stackreport ranks the waits, and has the time on the CPU beside them"
run "$BIN/stackreport" --event cpu-clock --tsv "$TMP/text"
like "$(sed -n 2p "$out")" 'three_parts' "stackreport --event cpu-clock: the greatest is where the time was"
run "$BIN/capinfo" "$TMP/c.cap"
like "$(grep '^on CPU' "$out")" "^on CPU +$(samples "$TMP/c.cap" '$n += $w->{count}') samples, [0-9.]+ s\$" \
	"capinfo counts them"
like "$(grep '^waits' "$out")" "^waits +$(waits "$TMP/c.cap" '$n += $w->{count}'), " "and not among the waits"

# Wall-clock time: a program that executes for as long as it sleeps
cat >"$TMP/half.pl" <<'EOF'
use Time::HiRes qw(sleep clock clock_gettime CLOCK_MONOTONIC);
my ($begun, $slept) = (clock_gettime(CLOCK_MONOTONIC), 0);
for my $n (1 .. 50) {
	1 while clock() < $n * .04;
	my $from = clock_gettime(CLOCK_MONOTONIC);
	sleep .04;
	$slept += clock_gettime(CLOCK_MONOTONIC) - $from;
}
printf "%.0f %.0f %.0f\n", map { $_ * 1e9 } clock(), $slept, clock_gettime(CLOCK_MONOTONIC) - $begun;
EOF
# state FILE NAMES: the sum of the lines with the frame [NAME], one of NAMES, a|b, in ns
state() {
	perl -sne '$n += $1 if /\[($names)\]/ && / (\d+)$/; END { print $n + 0 }' -- "-names=$2" "$1"
}
# half: records the program, and sets what it says. False if the samples are not its CPU time to 4 %: each counts as a
# whole period, also where something else had a part of that, as a hypervisor does
half() {
	rec "$TMP/h.cap" --on-cpu=999 --preempted -- perl "$TMP/half.pl"
	read -r cpu slept wall <"$out"
	"$BIN/symbolize" -q "$TMP/h.cap" >"$TMP/text"
	"$BIN/fold" --wall "$TMP/text" >"$TMP/wall"
	perl -e 'my ($got, $want) = @ARGV; exit !(abs($got - $want) < .04 * $want)' "$(state "$TMP/wall" on-CPU)" "$cpu"
}
POLLS=4 until_true half
is "$rc" 0 "a program that spins and sleeps is recorded"
"$BIN/fold" --side-by-side "$TMP/text" >"$TMP/side"
within "$(state "$TMP/wall" on-CPU)" "$cpu" 5 "fold --wall: one half is on the CPU"
within "$(state "$TMP/wall" 'blocked|runnable')" "$slept" 5 "and one asleep, until it ran again"
within "$(state "$TMP/wall" 'on-CPU|blocked|runnable|preempted')" "$wall" 5 "together they are the thread's life"
for state in on-CPU blocked runnable preempted; do
	is "$(grep -c "^\[$state\];perl" "$TMP/side"):$(state "$TMP/side" $state)" \
		"$(grep -c ";\[$state\] " "$TMP/wall"):$(state "$TMP/wall" $state)" "--side-by-side has the same stacks and sums: $state"
done
"$BIN/flame" "$TMP/wall" >"$TMP/wall.html"
is "$(perl -ne 'print $1 if /"sum":"(\d+)"/' "$TMP/wall.html")" \
	"$(perl -ne '$n += $1 if / (\d+) (?:offcpu-time|cpu-clock): $/; END { print $n }' "$TMP/text")" \
	"the graph is as wide as both events of the text"

# Nothing but samples, at a rate that the clock keeps
on "$TMP/n.cap" -- perl -e 'use Time::HiRes "clock"; 1 while clock() < 1.5; printf "%.0f\n", clock() * 1e9'
is "$rc" 0 "oncpu-record records samples alone"
is "$(waits "$TMP/n.cap" '$n++')" 0 "and no wait"
n=$(samples "$TMP/n.cap" '$n += $w->{count}')
between "$n" 115 182 "99 samples for each second on the CPU, by chance more or less where it is shared"
is "$(samples "$TMP/n.cap" '$n++ if $w->{total_ns} != $w->{count} * 10101010')" 0 "at 99 Hz if no rate is given"

run "$BIN/oncpu-record" --force -o "$TMP/n.cap" -- sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done'
like "$(cat "$err")" '^oncpu-record: [0-9.]+ s, [1-9][0-9]* samples? of [0-9.]+ s in all, ' "its summary counts samples, not waits"
like "$(cat "$err")" '  user stacks: [0-9.]+ % of [1-9][0-9]* samples? complete' "and how their stacks ended"

# Functions of an interpreter
cat >"$TMP/burn.py" <<'EOF'
import time
def inner(n):
    return sum(i * i for i in range(n))
def outer():
    end = time.process_time() + 1
    while time.process_time() < end:
        inner(20000)
outer()
EOF
on "$TMP/p.cap" -F 499 -- python3 "$TMP/burn.py"
all=$(samples "$TMP/p.cap" '$n += $w->{count} if user() =~ /outer/')
named=$(samples "$TMP/p.cap" '$n += $w->{count} if user() =~ /inner.*outer/')
ok "samples of an interpreter have its program's functions ($named of $all)" \
	perl -e 'exit !($ARGV[1] > 300 && $ARGV[0] > .9 * $ARGV[1])' "$named" "$all"

# A process that only waits has no samples.
mkfifo "$TMP/in"
"$OBJ/t/work/idle" 3 <"$TMP/in" >"$TMP/pid" &
exec 7>"$TMP/in"
until_true test -s "$TMP/pid"
rec "$TMP/i.cap" --on-cpu -d 1 -p "$(cat "$TMP/pid")"
is "$rc:$(samples "$TMP/i.cap" '$n++'):$(waits "$TMP/i.cap" '$n++')" 0:0:4 "an idle process has waits and no samples"
run timeout -k 5 60 "$BIN/oncpu-record" --force -o "$TMP/i.cap" -d 1 -p "$(cat "$TMP/pid")" 7>&-
like "$rc:$(cat "$err")" "^0:oncpu-record: 1\.[0-9]+ s, 0 samples of 0\.000 s in all, .*
  no sample: whenever the clock fired, no thread was executing" "oncpu-record says that it has no sample, and why"
tap_done
