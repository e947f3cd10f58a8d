#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Mode raw records what mode btf records: at raw tracepoints, and at classic ones.
# shellcheck disable=SC2013,SC2016,SC2119,SC2154,SC2317 # Perl's variables; $rc and others of tap.sh; functions that ok calls
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf

# A recorder whose raw tracepoints are refused (BPF_RAW_TRACEPOINT_OPEN).
cat >"$TMP/classic" <<-SH
	#!/bin/sh
	exec "$OBJ/t/work/refuse" bpf=17 "$BIN/offcpu-record" "\$@"
SH
chmod +x "$TMP/classic"

# raw WAY CAP ARG...: records at raw or classic tracepoints; WAY is raw or classic
raw() {
	raw_way=$1 raw_cap=$2
	shift 2
	[ "$raw_way" = raw ] && raw_bin=$BIN/offcpu-record || raw_bin=$TMP/classic
	run timeout -k 5 60 "$raw_bin" -q --mode raw --force -o "$raw_cap" "$@" 7>&-
}

# recorded WAY: is $rc the status of a good recording? Switches that a classic tracepoint does not report are
# counted as lost: the kernel skips the program if it interrupts the update of a map on the same CPU.
recorded() {
	[ "$rc" -eq 0 ] || { [ "$1" = classic ] && [ "$rc" -eq 1 ]; }
}

for way in raw classic; do
	# Totals, compared with the threads' own clocks.
	stolen=$(steal_ns)
	raw $way "$TMP/w.cap" --preempted -- "$OBJ/t/work/waits"
	cp "$out" "$TMP/said"
	ok "$way: a threaded program is recorded to its end" recorded $way
	is "$(wc -l <"$TMP/said")" 8 "$way: all eight threads printed how long they waited"
	stolen=$(($(steal_ns) - stolen + 10000000))
	[ "$stolen" -eq 10000000 ] && stolen=0
	judged "$TMP/w.cap"
	if [ "$(counter "$TMP/w.cap" lost.begin_unseen)" -eq 0 ] 2>/dev/null || [ $way = raw ]; then
		ok "$way: each thread's recorded time is at least its requested time" judge requested
		ok "$way: the recorded time is what each thread measured, to 1 %" judge measured
		ok "$way: blocked plus runnable time is wall-clock time minus schedstat's CPU time, to 1 %" judge off
	fi
	ok "$way: the number of recorded waits is what the threads counted" judge count
	ok "$way: seen = recorded + filtered + lost, in waits and in ns" balanced "$TMP/w.cap"
	is "$(waits "$TMP/w.cap" '$n++ if $w->{kernel_stack_verdict} ne "complete"')" 0 "$way: every kernel stack is complete"
	is "$(waits "$TMP/w.cap" '$n++ if !$w->{preempted} && $w->{user_stack_verdict} ne "complete" && ($w->{user_stack_error} // "") !~ /^(exiting|in-exec)$/')" 0 \
		"$way: every user stack of a wait is complete, except at an exit or exec"
	is "$("$BIN/capinfo" "$TMP/w.cap" | grep -c 'mode=raw')" 1 "$way: the capture says that it was recorded in mode raw"

	# Stacks, compared with those that the program prints, with /proc and with eu-stack. A debugger makes
	# the kernel restart sleeps.
	mkfifo "$TMP/in.$way"
	: >"$TMP/chain"
	if [ $way = raw ]; then
		"$BIN/offcpu-record" -q --mode raw --force -o "$TMP/s.cap" -- "$OBJ/t/work/chain" 60 <"$TMP/in.$way" >"$TMP/chain" 2>"$err" &
	else
		"$TMP/classic" -q --mode raw --force -o "$TMP/s.cap" -- "$OBJ/t/work/chain" 60 <"$TMP/in.$way" >"$TMP/chain" 2>"$err" &
	fi
	rec_pid=$!
	at_exit_kill "$rec_pid"
	exec 7>"$TMP/in.$way"
	until_true grep -q ready "$TMP/chain"
	pid=$(head -n 1 "$TMP/chain")
	kernel=$(for t in $(awk 'NF == 3 { print $1 }' "$TMP/chain"); do
		echo "$t $(sed 's/^\[<[0-9a-f]*>\] //; s/+0x.*//' "/proc/$pid/task/$t/stack" |
			grep -vE '^(__schedule|schedule|do_nanosleep)$' | tr '\n' ';')"
	done | sort)
	eu-stack -n 0 -p "$pid" 2>/dev/null 7>&- | perl -ne '
		if (/^TID (\d+):/) { print "$t ", join(";", @f), "\n" if @f; $t = $1; @f = () }
		push @f, $1 if /^#\d+\s+(?:0x[0-9a-f]+ )?([a-z_]\w*)/ && $1 !~ /^(start_thread|clone3?|__)/;
		END { print "$t ", join(";", @f), "\n" if @f }' | grep -v "^$pid " | sort >"$TMP/eu"
	exec 7>&-
	wait "$rec_pid"
	rc=$?
	ok "$way: a program of known call chains is recorded" recorded $way
	waits "$TMP/s.cap" 'push @o, "$w->{tid} " . join ";", map { $_->{symbol} // "?" }
		grep { ($_->{module} // "") =~ m{/chain$} } @{$w->{user_stack}} if $w->{total_ns} > 5e7 && $w->{comm} =~ /^chain-/' |
		sort -u >"$TMP/got"
	awk 'NF == 3 { print $1, $3 }' "$TMP/chain" | sort >"$TMP/want"
	same "$TMP/got" "$TMP/want" "$way: user stacks by unwind tables match the chains that the program printed"
	same "$TMP/got" "$TMP/eu" "$way: user stacks by unwind tables match eu-stack"
	is "$(waits "$TMP/s.cap" 'push @o, "$w->{tid} " . join "", map { "$_;" } grep { !/^(__schedule|schedule|do_nanosleep)$/ }
		split /;/, kernel() if $w->{total_ns} > 5e7 && $w->{comm} =~ /^chain-/' | grep -v _restart | sort -u)" "$kernel" \
		"$way: kernel stacks match /proc/PID/stack"
	raw $way "$TMP/fp.cap" --unwind fp -- "$OBJ/t/work/waits"
	ok "$way: --unwind fp records user stacks that are unverified" test \
		"$(waits "$TMP/fp.cap" '$n++ if $w->{user_stack_verdict} eq "unverified"')" -ge 1

	# Each process has its own stacks and names, across fork and exec.
	cat >"$TMP/execs.pl" <<-'PL'
		select undef, undef, undef, 0.15;
		exec "sleep", "0.15" if !fork;
		wait;
		exec "perl", "-e", "select undef, undef, undef, 0.15";
	PL
	raw $way "$TMP/x.cap" -- perl "$TMP/execs.pl"
	is "$(waits "$TMP/x.cap" 'push @o, ($w->{exe} =~ m{([^/]*)$})[0] . " " . (user() =~ /(select|nanosleep|wait4)/)[0] if
		$w->{total_ns} > 1e8' | sed 's/perl5.*select/perl select/' | sort | uniq -c | tr -s ' ')" " 2 perl select
 1 perl wait4
 1 sleep nanosleep" "$way: each wait has the names of its own image, before and after an exec"
	raw $way "$TMP/many.cap" -- sh -c 'i=0; while [ $i -lt 100 ]; do /bin/true; i=$((i + 1)); done; sleep 0.2'
	ok "$way: a hundred processes are recorded" recorded $way
	is "$(waits "$TMP/many.cap" '$n++ if $w->{exe} =~ /true$/ && user() =~ /waitpid|wait4/ || $w->{comm} eq "true" && $w->{exe} =~ /sh$/')" 0 \
		"$way: none of a hundred processes has the stack or name of another image"
	raw $way "$TMP/nofol.cap" --no-follow -- sh -c 'sleep 0.2; (sleep 0.2); true'
	is "$(waits "$TMP/nofol.cap" '$h{$w->{pid}} = 1' | wc -l)" 1 "$way: --no-follow does not record children"
done

# Options that choose what is recorded, as in t/bpf/offcpu-choose.t.
mkfifo "$TMP/in"
: >"$TMP/chain"
"$OBJ/t/work/chain" 60 <"$TMP/in" >"$TMP/chain" &
chain=$!
exec 7>"$TMP/in"
at_exit_kill "$chain"
until_true grep -q ready "$TMP/chain"
tid=$(awk '$2 == "chain-sleep" { print $1 }' "$TMP/chain")
name=named-$$ # no other process has this name
cp "$(command -v sleep)" "$TMP/$name"
"$TMP/$name" 1000 &
named=$!
at_exit_kill "$named"
for mode in btf raw; do
	rec "$TMP/p.$mode" --mode $mode -d 0.5 -p "$chain"
	rec "$TMP/t.$mode" --mode $mode -d 0.5 -t "$tid" -p "$named"
	own_rec "$TMP/a.$mode" --mode $mode -d 0.5 -a --kthreads
	waits "$TMP/p.$mode" 'push @o, "$w->{tid} $w->{comm} $w->{process_comm} $w->{state} $w->{initial}$w->{open} $w->{count}"' |
		sort >"$TMP/p.$mode.txt"
	waits "$TMP/t.$mode" 'push @o, "$w->{tid} $w->{comm} $w->{state}"' | sort >"$TMP/t.$mode.txt"
done
same "$TMP/p.raw.txt" "$TMP/p.btf.txt" "-p records the same threads, names, states and waits as mode btf"
same "$TMP/t.raw.txt" "$TMP/t.btf.txt" "-t and -p together record the same threads, names and states as mode btf"
is "$(waits "$TMP/p.raw" '$n++ if abs($w->{total_ns} - $c{duration_ns}) > 2e6')" 0 \
	"waits that last for the whole recording have its duration"
is "$(waits "$TMP/p.raw" '$n++ if $w->{initial} && $w->{open} && ($w->{kernel_stack_error} ne "not-seen" || $w->{user_stack_error} ne "not-seen")')" 0 \
	"waits that last for the whole recording have no stacks, with the reason"
like "$("$BIN/capinfo" "$TMP/p.raw")" 'degraded=.*waits that began before the recording have no stacks' "the capture says that waits begun before the recording have no stacks"
ok "-p: seen = recorded + filtered + lost, in waits and in ns" balanced "$TMP/p.raw"
ok "-a: seen = recorded + filtered + lost, in waits and in ns" balanced "$TMP/a.raw"
# kthreadd may have been woken for a moment, to create a thread
within "$(waits "$TMP/a.raw" '$n += $w->{total_ns} / $c{duration_ns} if $w->{comm} eq "kthreadd" && $w->{tid} == 2 && $w->{kthread}')" 1 5 \
	"-a --kthreads: kthreadd waits for the whole recording, to 5 %"
is "$(waits "$TMP/a.raw" '$h{initial} ||= $w->{initial}, $h{open} ||= $w->{open} if $w->{comm} eq "kthreadd" && $w->{tid} == 2' |
	grep -c ' 1$')" 2 "-a --kthreads: kthreadd waits since before the recording, and still at its end"
is "$(waits "$TMP/a.raw" '$n++ if $w->{kthread} && ($w->{user_stack_error} // "") !~ /kernel-thread|not-seen/')" 0 \
	"-a --kthreads: kernel threads have no user stack, with the reason"
is "$(waits "$TMP/a.raw" '$n++ if $w->{comm} eq "offcpu-record" && $w->{exe} eq "'"$TMP/own/offcpu-record"'"')" 0 \
	"-a: the recorder does not record itself"
rec "$TMP/na.cap" --mode raw -d 0.5 -a
is "$(waits "$TMP/na.cap" '$n++ if $w->{kthread}')" 0 "-a without --kthreads does not record kernel threads"
ok "-a records a process that the recorder did not start" test "$(waits "$TMP/na.cap" '$n++ if $w->{pid} == '"$named")" -ge 1
exec 7>&-

rec_start "$TMP/c.cap" -q --mode raw -c "$name"
"$TMP/$name" 0.3
rec_stop
is "$(waits "$TMP/c.cap" '$h{$w->{pid}} = 1' | wc -l)" 2 "-c records the running process of that name, and one that starts later"
is "$(waits "$TMP/c.cap" '$n++ if $w->{process_comm} ne "'$name'"')" 0 "-c does not record processes of other names"

cat >"$TMP/stopper.pl" <<'PL'
use Time::HiRes "sleep";
my $p = fork;
if (!$p) { kill STOP => $$; sleep 0.3; exit }
waitpid $p, 2; # until it has stopped
sleep 0.4; kill CONT => $p; waitpid $p, 0;
PL
for way in raw classic; do
	raw $way "$TMP/T.cap" --state T -- perl "$TMP/stopper.pl"
	is "$(waits "$TMP/T.cap" '$h{$w->{state}} = 1')" "T 1" "$way: --state T records only stopped threads"
	raw $way "$TMP/S.cap" --state S -- perl "$TMP/stopper.pl"
	is "$(waits "$TMP/S.cap" '$n++ if $w->{state} ne "S"')" 0 "$way: --state S records only sleeping threads"
done
raw raw "$TMP/K.cap" -K --depth 5 -- "$OBJ/t/work/waits"
is "$(waits "$TMP/K.cap" '$n++ if @{$w->{kernel_stack}} > 5 || $w->{user_stack_error} ne "not-recorded"')" 0 "-K records no user stacks, and --depth 5 no more than 5 kernel frames"
tap_done
