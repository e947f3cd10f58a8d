#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# What is recorded: targets, states, kinds of stacks, depth.
# shellcheck disable=SC2016,SC2119,SC2154,SC2317 # Perl's variables; $rc and others of tap.sh; functions that ok calls
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf

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

# Children of a command
rec "$TMP/fol.cap" -- sh -c 'sleep 0.2; (sleep 0.2); true'
is "$(waits "$TMP/fol.cap" 'push @o, "$w->{comm} $w->{pid}" if $w->{total_ns} > 1e8' | sort -u | cut -d" " -f1 |
	tr '\n' ' ')" "sh sleep sleep " \
	"children of a command are recorded"
rec "$TMP/nofol.cap" --no-follow -- sh -c 'sleep 0.2; (sleep 0.2); true'
is "$(waits "$TMP/nofol.cap" '$h{$w->{pid}} = 1' | wc -l)" 1 "--no-follow records only the command's own process"
tap_done
