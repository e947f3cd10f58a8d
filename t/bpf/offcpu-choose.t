#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# What is recorded: targets, states, kinds of stacks, depth.
# shellcheck disable=SC2016,SC2119,SC2154,SC2317 # Perl's variables; $rc and others of tap.sh; functions that ok calls
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf

# loud CAP ARG...: as rec, without -q
loud() {
	cap=$1
	shift
	run timeout -k 5 60 "$BIN/offcpu-record" --force -o "$cap" "$@" 7>&-
}

mkfifo "$TMP/in"
"$OBJ/t/work/chain" 200 <"$TMP/in" >"$TMP/chain" &
chain=$!
exec 7>"$TMP/in"
at_exit_kill "$chain"
until_true grep -q ready "$TMP/chain"
tid=$(awk '$2 == "chain-sleep" { print $1 }' "$TMP/chain")

# -p, -t, and both
rec "$TMP/p.cap" -d 1 -p "$chain"
is "$(waits "$TMP/p.cap" '$h{$w->{pid}}++' | wc -l)" 1 "-p records only that process"
rec "$TMP/t.cap" -d 0.5 -t "$tid"
is "$(waits "$TMP/t.cap" '$h{$w->{tid}}++')" "$tid 1" "-t records only that thread"
is "$(waits "$TMP/t.cap" 'push @o, $w->{comm}')" chain-sleep "-t records the thread's own name"
sleep 1000 &
other=$!
at_exit_kill "$other"
rec "$TMP/two.cap" -d 0.5 -t "$tid" -p "$other" -p "$other"
is "$rc" 0 "-p may name a process twice"
is "$(waits "$TMP/two.cap" '$h{$w->{tid}}++' | wc -l)" 2 "-t and -p together record all their targets"

rec "$TMP/list.cap" -d 0.5 -p "$chain,$other"
is "$(waits "$TMP/list.cap" '$h{$w->{pid}}++' | wc -l)" 2 "-p takes several PIDs with commas between them"
tids=$(awk '$2 ~ /^chain-/ { print $1 }' "$TMP/chain" | head -n 2 | sort | paste -sd ,)
rec "$TMP/list.cap" -d 500ms -t "$tids"
is "$(waits "$TMP/list.cap" '$h{$w->{tid}}++' | cut -d' ' -f1 | sort | paste -sd ,)" "$tids" "-t takes several TIDs with commas between them"
is "$("$BIN/symbolize" -q --format=json -t "$tids,1" "$TMP/list.cap" | grep -c '"pid"')" 2 "symbolize -t takes several TIDs with commas between them"
is "$("$BIN/symbolize" -q --format=json -p "1,$chain" "$TMP/two.cap" | grep -c '"pid"')" 1 "symbolize -p takes several PIDs with commas between them"
rec "$TMP/short.cap" -d .2 -p "$other"
between "$(waits "$TMP/short.cap" '$n = $c{duration_ns}')" 200000000 5000000000 "-d .2 records a fifth of a second"

# Half stacks
rec "$TMP/u.cap" -d 0.5 -U -t "$tid"
is "$(waits "$TMP/u.cap" 'push @o, @{$w->{kernel_stack}} . " $w->{kernel_stack_error}"')" "0 not-recorded" \
	"-U records no kernel stack and says that it was not requested"
like "$(waits "$TMP/u.cap" 'push @o, user()')" '^block_in_nanosleep;' "-U records the user stack"
rec "$TMP/k.cap" -d 0.5 -K -t "$tid"
is "$(waits "$TMP/k.cap" 'push @o, @{$w->{user_stack}} . " $w->{user_stack_error}"')" "0 not-recorded" \
	"-K records no user stack and says that it was not requested"
like "$(waits "$TMP/k.cap" 'push @o, kernel()')" 'nanosleep' "-K records the kernel stack"

# Depth
rec "$TMP/d.cap" -d 0.5 --depth 5 -p "$chain"
is "$(waits "$TMP/d.cap" '$n++ if @{$w->{kernel_stack}} > 5 || @{$w->{user_stack}} > 5')" 0 "--depth 5 records at most five frames"
is "$(waits "$TMP/d.cap" '$n++ if $w->{comm} eq "chain-deep" && $w->{user_stack_verdict} eq "truncated" && @{$w->{user_stack}} == 5')" 1 \
	"--depth 5: a longer stack is marked as truncated"
ok "--depth 5: truncated stacks are counted" test "$(counter "$TMP/d.cap" stacks.truncated)" -ge 1
is "$(waits "$TMP/p.cap" '$n = @{$w->{user_stack}} if $w->{comm} eq "chain-deep" && $w->{user_stack_verdict} eq "truncated"')" 127 \
	"a stack of 200 frames is truncated to 127 by default, and marked"
if [ "$(cat /proc/sys/kernel/perf_event_max_stack)" -ge 300 ]; then
	rec "$TMP/deep.cap" -d 0.5 --depth 300 -p "$chain"
	between "$(waits "$TMP/deep.cap" '$n = @{$w->{user_stack}} if $w->{comm} eq "chain-deep"')" 202 299 "--depth 300 records all of a stack of 200 frames"
else
	rec "$TMP/deep.cap" -d 0.5 --depth 300 -p "$chain"
	is "$(waits "$TMP/deep.cap" '$n++ if $w->{comm} eq "chain-deep" && @{$w->{user_stack}} < 202 && $w->{user_stack_verdict} ne "truncated"')" 0 \
		"--depth above kernel.perf_event_max_stack: each truncated stack is marked"
fi
exec 7>&-

# States: a program stopped by SIGSTOP is in state T, a sleeping one in state S
cat >"$TMP/stopper.pl" <<'PL'
use Time::HiRes "sleep";
my $p = fork;
if (!$p) { kill STOP => $$; sleep 0.3; exit }
waitpid $p, 2; # until it has stopped
sleep 0.4; kill CONT => $p; waitpid $p, 0;
PL
rec "$TMP/T.cap" --state T -- perl "$TMP/stopper.pl"
is "$(waits "$TMP/T.cap" '$n++ if $w->{state} ne "T"')" 0 "--state T records only stopped threads"
ok "--state T records the whole wait of the stopped thread" test "$(waits "$TMP/T.cap" '$n += $w->{total_ns}')" -ge 300000000
ok "--state T: the time of other waits is counted" test "$(counter "$TMP/T.cap" filtered.state_ns)" -ge 300000000
ok "--state T: seen = recorded + filtered + lost" balanced "$TMP/T.cap"
rec "$TMP/ST.cap" --state ST -- perl "$TMP/stopper.pl"
is "$(waits "$TMP/ST.cap" '$h{$w->{state}} = 1')" "S 1
T 1" "--state ST records both"
rec "$TMP/S.cap" --state S -- perl "$TMP/stopper.pl"
is "$(waits "$TMP/S.cap" '$n++ if $w->{state} =~ /[TD]/')" 0 "--state S records no wait in state T or D"
ok "--state S records sleeps, whose state has further bits set" test "$(waits "$TMP/S.cap" '$n += $w->{total_ns} if kernel() =~ /nanosleep/')" -ge 300000000

# --preempted: three busy processes on one CPU
cat >"$TMP/spin.sh" <<'SH'
for i in 1 2 3; do
	taskset -c 0 perl -MTime::HiRes=time -e 'my $t = time + 1; 1 while time < $t' &
done
wait
SH
rec "$TMP/r.cap" --preempted -- sh "$TMP/spin.sh"
ok "--preempted records threads that lost the CPU" test \
	"$(waits "$TMP/r.cap" '$n += $w->{total_ns} if $w->{preempted} && $w->{comm} eq "perl"')" -ge 1000000000
is "$(waits "$TMP/r.cap" '$n++ if $w->{preempted} && $w->{state} ne "R"')" 0 "--preempted: preempted threads are in state R"
is "$(counter "$TMP/r.cap" filtered.preempted)" 0 "--preempted: no preempted wait is filtered"
rec "$TMP/nr.cap" -- sh "$TMP/spin.sh"
is "$(waits "$TMP/nr.cap" '$n++ if $w->{preempted}')" 0 "without --preempted no preempted wait is recorded"
ok "without --preempted the time of preempted waits is counted" test "$(counter "$TMP/nr.cap" filtered.preempted_ns)" -ge 1000000000

# -a, and kernel threads
own_rec "$TMP/a.cap" -a -d 1
ok "-a records other processes" test "$(waits "$TMP/a.cap" '$n++ if $w->{pid} == '"$other")" -ge 1
is "$(waits "$TMP/a.cap" '$n++ if $w->{kthread}')" 0 "-a records no kernel threads"
is "$(waits "$TMP/a.cap" '$n++ if $w->{comm} eq "offcpu-record" && $w->{exe} eq "'"$TMP/own/offcpu-record"'"')" 0 \
	"the recorder does not record itself"
rec "$TMP/ak.cap" -a --kthreads -d 1
ok "--kthreads records kernel threads" test "$(waits "$TMP/ak.cap" '$n++ if $w->{kthread}')" -ge 5
is "$(waits "$TMP/ak.cap" '$n++ if $w->{kthread} && ($w->{user_stack_error} // "") ne "kernel-thread"')" 0 \
	"a kernel thread has no user stack, and the reason says so"
is "$(waits "$TMP/ak.cap" '$n++ if $w->{kthread} && @{$w->{kernel_stack}} && kernel() !~ /(^|;)kthread$|ret_from_fork/ ')" 0 \
	"the kernel stack of a kernel thread reaches kthread or ret_from_fork"
# Each CPU has one buffer for walking stacks of threads (kernel/events/callchain.c). A real-time kernel can
# switch threads during the walk; a thread that is recorded on that CPU meanwhile has no stack (EFAULT).
missing=$(waits "$TMP/ak.cap" '$n += $w->{count} if $w->{kthread} && !@{$w->{kernel_stack}}')
case $(uname -v) in
*PREEMPT_RT*) allowed=$(waits "$TMP/ak.cap" '$n += $w->{count} if $w->{kthread} && ($w->{kernel_stack_error} // "") eq "EFAULT"') ;;
*) allowed=0 ;;
esac
is "$missing" "$allowed" "a kernel thread lacks its stack only if the kernel's buffer was in use (EFAULT)"
ok "at most three kernel stacks are missing, and all are counted" test "$missing" -le 3 -a "$(counter "$TMP/ak.cap" stacks.kernel_failed)" -ge "$missing"
# kthreadd may have run for a moment to create a thread
within "$(waits "$TMP/ak.cap" '$n += $w->{total_ns} / $c{duration_ns} if $w->{comm} eq "kthreadd" && $w->{tid} == 2')" 1 5 \
	"kthreadd waits for the whole recording, to 5 %"
is "$(waits "$TMP/ak.cap" '$h{initial} ||= $w->{initial}, $h{open} ||= $w->{open} if $w->{comm} eq "kthreadd" && $w->{tid} == 2' |
	grep -c ' 1$')" 2 "kthreadd waits since before the recording and still at its end"

# -c: by name, processes that exist and new ones
named=named-$$ # no other process has this name
cp "$(command -v sleep)" "$TMP/$named"
"$TMP/$named" 1000 &
at_exit_kill $!
rec_start "$TMP/c.cap" -q -c "$named"
"$TMP/$named" 0.3
rec_stop
is "$rc" 0 "-c records"
is "$(waits "$TMP/c.cap" '$h{$w->{pid}} = 1' | wc -l)" 2 "-c records the existing process and the new one"
is "$(waits "$TMP/c.cap" '$n++ if $w->{process_comm} ne "'$named'"')" 0 "-c records no process with another name"
ok "-c records the new process from its start" test \
	"$(waits "$TMP/c.cap" '$n += $w->{total_ns} if !$w->{initial} && kernel() =~ /nanosleep/')" -ge 300000000
is "$(waits "$TMP/c.cap" '$n++ if kernel() =~ /nanosleep/ && user() !~ /nanosleep/')" 0 "-c: frames of both processes have names"

# several names, one of them with a comma
cp "$(command -v sleep)" "$TMP/co,m-$$"
"$TMP/co,m-$$" 1000 &
at_exit_kill $!
run timeout -k 5 60 "$BIN/offcpu-record" -q --force -o "$TMP/c.cap" -d 0.5 -c "$named,co\\,m-$$"
is "$rc:$(waits "$TMP/c.cap" '$h{$w->{process_comm}} = 1')" "0:co,m-$$ 1
$named 1" "-c takes several names with commas between them, and a comma in a name as \\,"
is "$("$BIN/symbolize" -q --format=json -c "x,co\\,m-$$" "$TMP/c.cap" | grep -c '"process_comm"')" 1 "so does symbolize -c"

# -c NAME that no process had. The name of a thread that is not the main one does not count.
rec "$TMP/c.cap" -d 0.2 -c "$named" -c no-such-name
is "$rc" 1 "-c: a name that no process had gives status 1"
is "$(grep -c 'no process was named' "$err") $(grep -A 1 'no process was named' "$err" | tr '\n' '|')" \
	"1 offcpu-record: no process was named 'no-such-name'|offcpu-record: hint: a name has at most 15 bytes and is that of the main thread, as 'ps -eo pid,comm' shows it|" \
	"-c: only the name that no process had is reported, with a hint"
ok "-c: the other name is recorded all the same" test "$(waits "$TMP/c.cap" '$n++')" -ge 1
upper=$(echo "$named" | tr '[:lower:]' '[:upper:]')
rec "$TMP/c.cap" -d 0.2 -c "${upper%??}"
like "$rc $(cat "$err")" "^1 .*no process was named '${upper%??}'" "-c: -q does not silence that no process had the name"
like "$(cat "$err")" "hint: process [0-9]+ is named '$named'; -c takes the whole name" "-c: the hint has a name that contains it, in other case"
rec "$TMP/c.cap" -d 0.2 -c chain-sleep
like "$rc $(cat "$err")" "hint: that is thread $tid of process $chain, and -c takes the name of the main thread: -t $tid, or -p $chain" \
	"-c: the hint has the thread that is called so"
rec_start "$TMP/c.cap" -q -c late-$$
perl -e '$0 = "late-'$$'"; select undef, undef, undef, 0.1'
rec_stop
is "$rc" 0 "-c: a name that a process took during the recording is not missing"
rec "$TMP/c.cap" --mode raw -d 0.2 -c "$named" -c no-such-name
is "$rc $(grep -c 'no process was named' "$err")" "1 1" "-c in mode raw: the same"

# Options that the mode which auto chose does not have
for option in "-F 50" --ptrace "--btf /no/such"; do
	rm -f "$TMP/auto.cap"
	# shellcheck disable=SC2086 # two words
	run timeout 60 "$BIN/offcpu-record" -q -o "$TMP/auto.cap" -d 0.2 $option -p "$other"
	like "$rc $(head -n 1 "$err")" "^64 offcpu-record: ${option%% *} means nothing in mode btf, which works here\$" \
		"$option, and auto chooses mode btf: refused"
	ok "$option: no file is made" test ! -e "$TMP/auto.cap"
done
run timeout 60 "$BIN/offcpu-record" -q -o "$TMP/auto.cap" -d 0.2 -F 50 -- touch "$TMP/touched"
is "$rc $(ls "$TMP/touched" 2>/dev/null)" "64 " "a command is not run then"

# Children that run already. A tree of processes, and a chain in which each process makes the next one.
cat >"$TMP/tree.pl" <<'PL'
setpgrp;
sub tree { my $n = shift; for (1 .. 3) { next if fork; tree($n - 1) if $n; sleep 1000; exit } }
tree(1);
open my $f, ">", $ARGV[0]; close $f;
sleep 1000;
PL
cat >"$TMP/chain.pl" <<'PL'
setpgrp;
for my $i (1 .. 400) {
	last if fork;
	select undef, undef, undef, 0.005;
	if ($i == 20) { open my $f, ">", $ARGV[0]; close $f }
}
sleep 1000;
PL
# descendants PID: prints the IDs of PID and of the processes that descend from it, by ps(1), parents first
descendants() {
	ps -eo pid=,ppid= | perl -ne 'push @{$c{$2}}, $1 if /(\d+) +(\d+)/;
		END { @q = ('"$1"'); while (@q) { my $p = shift @q; push @all, $p; push @q, @{$c{$p} // []} }
			print "$_\n" for @all }'
}
# recorded CAPTURE: prints the IDs of the processes that have waits
recorded() {
	"$BIN/symbolize" -q --format=json "$1" | sed -n 's/.*"pid":\([0-9]*\).*/\1/p' | sort -u
}
perl "$TMP/tree.pl" "$TMP/tree" &
tree=$!
until_true test -e "$TMP/tree"
until_true test "$(descendants "$tree" | wc -l)" -eq 13
descendants "$tree" | sort >"$TMP/tree.pids"
loud "$TMP/tree.cap" -d 0.3 -p "$tree"
is "$(recorded "$TMP/tree.cap")" "$tree" "without --follow children are not recorded"
like "$(cat "$err")" '^  12 children not recorded: add --follow$' "the summary says how many children are not recorded"
is "$rc $(counter "$TMP/tree.cap" processes.children)" "0 12" "the capture says it too, and the status is 0"
rec "$TMP/tree.cap" -d 0.3 -p "$tree"
is "$rc $(cat "$err")" "0 " "-q silences the children"
loud "$TMP/tree.cap" -d 0.3 --no-follow -p "$tree"
ok "--no-follow asks for it: nothing is said" sh -c '! grep -q "children not" "$1"' sh "$err"
for mode in btf raw procfs; do
	loud "$TMP/tree.cap" -d 0.3 --mode $mode -p "$tree" --follow
	is "$(recorded "$TMP/tree.cap")" "$(cat "$TMP/tree.pids")" "--follow in mode $mode: children and grandchildren that run already are recorded"
	ok "--follow in mode $mode: no children are reported as missing" sh -c '! grep -q "children not" "$1"' sh "$err"
done
rec "$TMP/tree.cap" -d 0.3 -p "$tree" --follow
is "$(waits "$TMP/tree.cap" '$n++ if $w->{user_stack_verdict} ne "complete"')" 0 "--follow: children that run already have complete user stacks"
if [ -e "/proc/$$/task/$$/children" ]; then
	rec "$TMP/tree.cap" -d 0.3 -t "$tree" --follow
	is "$(recorded "$TMP/tree.cap")" "$(cat "$TMP/tree.pids")" "--follow with -t: the children of that thread are recorded"
else
	skip "--follow with -t: the children of that thread are recorded" "no CONFIG_PROC_CHILDREN"
fi
own=tree-$$
cp "$(command -v perl)" "$TMP/$own"
rm "$TMP/tree"
"$TMP/$own" "$TMP/tree.pl" "$TMP/tree" &
other_tree=$!
until_true test -e "$TMP/tree"
rec "$TMP/tree.cap" -d 0.3 -c "$own" --follow
is "$(recorded "$TMP/tree.cap")" "$(descendants "$other_tree" | sort)" "--follow with -c: children of the named process are recorded"
kill -- "-$tree" "-$other_tree"
# In a PID namespace ids are translated: children that run already are found too
cat >"$TMP/ns.sh" <<'SH'
perl "$2/tree.pl" "$2/ns" &
until [ -e "$2/ns" ]; do sleep 0.05; done
"$1/offcpu-record" -q --force -o "$2/ns.cap" -d 0.3 -p $! --follow
SH
run timeout -k 5 60 unshare --pid --fork --mount-proc --kill-child sh "$TMP/ns.sh" "$BIN" "$TMP"
is "$rc $(recorded "$TMP/ns.cap" | wc -l)" "0 13" "--follow in a PID namespace: children and grandchildren that run already are recorded"
# A chain that grows while the recorder starts: none may be missing
perl "$TMP/chain.pl" "$TMP/grows" &
root=$!
until_true test -e "$TMP/grows"
rec "$TMP/grow.cap" -d 0.5 -p "$root" --follow
descendants "$root" >"$TMP/grown"
recorded "$TMP/grow.cap" >"$TMP/grow.pids"
# those that were forked after the end are the last ones of the chain
is "$(head -n "$(wc -l <"$TMP/grow.pids")" "$TMP/grown" | sort)" "$(cat "$TMP/grow.pids")" \
	"--follow: a process that is forked while the recorder starts is not missing"
ok "--follow: the chain had grown while the recorder started" test "$(wc -l <"$TMP/grow.pids")" -ge 40
kill -- "-$root"

# Children of a command
rec "$TMP/fol.cap" -- sh -c 'sleep 0.2; (sleep 0.2); true'
is "$(waits "$TMP/fol.cap" 'push @o, "$w->{comm} $w->{pid}" if $w->{total_ns} > 1e8' | sort -u | cut -d" " -f1 |
	tr '\n' ' ')" "sh sleep sleep " \
	"children of a command are recorded"
rec "$TMP/nofol.cap" --no-follow -- sh -c 'sleep 0.2; (sleep 0.2); true'
is "$(waits "$TMP/nofol.cap" '$h{$w->{pid}} = 1' | wc -l)" 1 "--no-follow records only the command's own process"
tap_done
