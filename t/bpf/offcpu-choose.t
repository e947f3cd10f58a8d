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
is "$(waits "$TMP/p.cap" '$h{$w->{pid}}++' | wc -l)" 1 "-p records that process alone"
rec "$TMP/t.cap" -d 0.5 -t "$tid"
is "$(waits "$TMP/t.cap" '$h{$w->{tid}}++')" "$tid 1" "-t records that thread alone"
is "$(waits "$TMP/t.cap" 'push @o, $w->{comm}')" chain-sleep "with its own name"
sleep 1000 &
other=$!
at_exit_kill "$other"
rec "$TMP/two.cap" -d 0.5 -t "$tid" -p "$other" -p "$other"
is "$rc" 0 "a process may be given twice"
is "$(waits "$TMP/two.cap" '$h{$w->{tid}}++' | wc -l)" 2 "-t and -p add up"

# Half stacks
rec "$TMP/u.cap" -d 0.5 -U -t "$tid"
is "$(waits "$TMP/u.cap" 'push @o, @{$w->{kernel_stack}} . " $w->{kernel_stack_error}"')" "0 not-recorded" \
	"-U records no kernel stack and says that it was not asked for"
like "$(waits "$TMP/u.cap" 'push @o, user()')" '^block_in_nanosleep;' "-U records the user stack"
rec "$TMP/k.cap" -d 0.5 -K -t "$tid"
is "$(waits "$TMP/k.cap" 'push @o, @{$w->{user_stack}} . " $w->{user_stack_error}"')" "0 not-recorded" \
	"-K records no user stack and says that it was not asked for"
like "$(waits "$TMP/k.cap" 'push @o, kernel()')" 'nanosleep' "-K records the kernel stack"

# Depth
rec "$TMP/d.cap" -d 0.5 --depth 5 -p "$chain"
is "$(waits "$TMP/d.cap" '$n++ if @{$w->{kernel_stack}} > 5 || @{$w->{user_stack}} > 5')" 0 "--depth 5 keeps five frames at most"
is "$(waits "$TMP/d.cap" '$n++ if $w->{comm} eq "chain-deep" && $w->{user_stack_verdict} eq "truncated" && @{$w->{user_stack}} == 5')" 1 \
	"a stack that was cut is marked"
ok "and counted" test "$(counter "$TMP/d.cap" stacks.truncated)" -ge 1
is "$(waits "$TMP/p.cap" '$n = @{$w->{user_stack}} if $w->{comm} eq "chain-deep" && $w->{user_stack_verdict} eq "truncated"')" 127 \
	"a stack of 200 is cut at 127 by default, and marked"
if [ "$(cat /proc/sys/kernel/perf_event_max_stack)" -ge 300 ]; then
	rec "$TMP/deep.cap" -d 0.5 --depth 300 -p "$chain"
	between "$(waits "$TMP/deep.cap" '$n = @{$w->{user_stack}} if $w->{comm} eq "chain-deep"')" 202 299 "--depth 300 has all of it"
else
	rec "$TMP/deep.cap" -d 0.5 --depth 300 -p "$chain"
	is "$(waits "$TMP/deep.cap" '$n++ if $w->{comm} eq "chain-deep" && @{$w->{user_stack}} < 202 && $w->{user_stack_verdict} ne "truncated"')" 0 \
		"a depth beyond kernel.perf_event_max_stack leaves no cut stack unmarked"
fi
exec 7>&-

# States: a program stopped by SIGSTOP is T, one that sleeps is S
cat >"$TMP/stopper.pl" <<'PL'
use Time::HiRes "sleep";
my $p = fork;
if (!$p) { kill STOP => $$; sleep 0.3; exit }
waitpid $p, 2; # until it has stopped
sleep 0.4; kill CONT => $p; waitpid $p, 0;
PL
rec "$TMP/T.cap" --state T -- perl "$TMP/stopper.pl"
is "$(waits "$TMP/T.cap" '$n++ if $w->{state} ne "T"')" 0 "--state T records stopped threads alone"
ok "and the stopped one is there" test "$(waits "$TMP/T.cap" '$n += $w->{total_ns}')" -ge 300000000
ok "the others are counted as left out" test "$(counter "$TMP/T.cap" filtered.state_ns)" -ge 300000000
ok "the balance holds with --state" balanced "$TMP/T.cap"
rec "$TMP/ST.cap" --state ST -- perl "$TMP/stopper.pl"
is "$(waits "$TMP/ST.cap" '$h{$w->{state}} = 1')" "S 1
T 1" "--state ST records both"
rec "$TMP/S.cap" --state S -- perl "$TMP/stopper.pl"
is "$(waits "$TMP/S.cap" '$n++ if $w->{state} =~ /[TD]/')" 0 "--state S leaves T and D out"
ok "sleeps have further bits set: S is recognised by its bit" test "$(waits "$TMP/S.cap" '$n += $w->{total_ns} if kernel() =~ /nanosleep/')" -ge 300000000

# --preempted: three spinning processes on one CPU
cat >"$TMP/spin.sh" <<'SH'
for i in 1 2 3; do
	taskset -c 0 perl -MTime::HiRes=time -e 'my $t = time + 1; 1 while time < $t' &
done
wait
SH
rec "$TMP/r.cap" --preempted -- sh "$TMP/spin.sh"
ok "--preempted records threads that lost the CPU" test \
	"$(waits "$TMP/r.cap" '$n += $w->{total_ns} if $w->{preempted} && $w->{comm} eq "perl"')" -ge 1000000000
is "$(waits "$TMP/r.cap" '$n++ if $w->{preempted} && $w->{state} ne "R"')" 0 "they are in state R"
is "$(counter "$TMP/r.cap" filtered.preempted)" 0 "and none of it is left out"
rec "$TMP/nr.cap" -- sh "$TMP/spin.sh"
is "$(waits "$TMP/nr.cap" '$n++ if $w->{preempted}')" 0 "without it they are left out"
ok "and counted" test "$(counter "$TMP/nr.cap" filtered.preempted_ns)" -ge 1000000000

# -a, and kernel threads
rec "$TMP/a.cap" -a -d 1
ok "-a records other processes" test "$(waits "$TMP/a.cap" '$n++ if $w->{pid} == '"$other")" -ge 1
is "$(waits "$TMP/a.cap" '$n++ if $w->{kthread}')" 0 "-a leaves kernel threads out"
is "$(waits "$TMP/a.cap" '$n++ if $w->{comm} eq "offcpu-record" && $w->{exe} eq "'"$BIN/offcpu-record"'"')" 0 \
	"the recorder does not record itself"
rec "$TMP/ak.cap" -a --kthreads -d 1
ok "--kthreads records them" test "$(waits "$TMP/ak.cap" '$n++ if $w->{kthread}')" -ge 5
is "$(waits "$TMP/ak.cap" '$n++ if $w->{kthread} && ($w->{user_stack_error} // "") ne "kernel-thread"')" 0 \
	"a kernel thread has no user stack, and the reason says so"
is "$(waits "$TMP/ak.cap" '$n++ if $w->{kthread} && @{$w->{kernel_stack}} && kernel() !~ /(^|;)kthread$|ret_from_fork/ ')" 0 \
	"and its kernel stack goes down to kthread"
# A CPU has one buffer to walk the stacks of threads in (kernel/events/callchain.c). A kernel for real time can switch
# threads in the middle of the recorder's walk; one that is recorded on that CPU meanwhile has no stack (EFAULT).
missing=$(waits "$TMP/ak.cap" '$n += $w->{count} if $w->{kthread} && !@{$w->{kernel_stack}}')
case $(uname -v) in
*PREEMPT_RT*) allowed=$(waits "$TMP/ak.cap" '$n += $w->{count} if $w->{kthread} && ($w->{kernel_stack_error} // "") eq "EFAULT"') ;;
*) allowed=0 ;;
esac
is "$missing" "$allowed" "or it has none because the kernel's buffer was in use"
ok "which happens to few, and is counted" test "$missing" -le 3 -a "$(counter "$TMP/ak.cap" stacks.kernel_failed)" -ge "$missing"
# it may have been woken for a moment, to make a thread
within "$(waits "$TMP/ak.cap" '$n += $w->{total_ns} / $c{duration_ns} if $w->{comm} eq "kthreadd" && $w->{tid} == 2')" 1 5 \
	"kthreadd waited all the while"
is "$(waits "$TMP/ak.cap" '$h{initial} ||= $w->{initial}, $h{open} ||= $w->{open} if $w->{comm} eq "kthreadd" && $w->{tid} == 2' |
	grep -c ' 1$')" 2 "since before the recording, and on after it"

# -c: by name, existing and to come
named=named-$$ # nothing else's
cp "$(command -v sleep)" "$TMP/$named"
"$TMP/$named" 1000 &
at_exit_kill $!
rec_start "$TMP/c.cap" -q -c "$named"
"$TMP/$named" 0.3
rec_stop
is "$rc" 0 "-c records"
is "$(waits "$TMP/c.cap" '$h{$w->{pid}} = 1' | wc -l)" 2 "-c finds the process that is there, and the one that comes"
is "$(waits "$TMP/c.cap" '$n++ if $w->{process_comm} ne "'$named'"')" 0 "and no other"
ok "the later one from its start" test \
	"$(waits "$TMP/c.cap" '$n += $w->{total_ns} if !$w->{initial} && kernel() =~ /nanosleep/')" -ge 300000000
is "$(waits "$TMP/c.cap" '$n++ if kernel() =~ /nanosleep/ && user() !~ /nanosleep/')" 0 "both with their symbols"

# children of a command
rec "$TMP/fol.cap" -- sh -c 'sleep 0.2; (sleep 0.2); true'
is "$(waits "$TMP/fol.cap" 'push @o, "$w->{comm} $w->{pid}" if $w->{total_ns} > 1e8' | sort -u | cut -d" " -f1 |
	tr '\n' ' ')" "sh sleep sleep " \
	"children of a command are recorded"
rec "$TMP/nofol.cap" --no-follow -- sh -c 'sleep 0.2; (sleep 0.2); true'
is "$(waits "$TMP/nofol.cap" '$h{$w->{pid}} = 1' | wc -l)" 1 "--no-follow leaves them out"
tap_done
