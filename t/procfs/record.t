#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# offcpu-record --mode procfs: without BPF, as an ordinary user and as root.
# shellcheck disable=SC2016 # for Perl and other shells
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"

# A folder that an ordinary user can access, wherever the tree is.
U=$TMP/u
mkdir -m 755 "$U" "$U/bin"
chmod 755 "$TMP"
cp "$BIN/offcpu-record" "$BIN/symbolize" "$BIN/capinfo" "$BIN/fold" \
	"$OBJ/t/work/steady" "$OBJ/t/work/waits" "$U/bin" || exit 1
BIN=$U/bin
# $as_user COMMAND...: runs it as an ordinary user without capabilities
as_user=
root=
if [ "$(id -u)" -eq 0 ]; then
	root=1
	chown 65534:65534 "$U"
	as_user='setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set -all --no-new-privs'
fi
# shellcheck disable=SC2086 # words
user() {
	STACKTOOLS_CACHE=$U/cache $as_user "$@"
}

# Workloads end when their stdin ends: its write end is fd 7.
mkfifo "$TMP/life" && exec 7<>"$TMP/life"

# steady PREFIX ARG...: starts steady with the command PREFIX (or ""); sets $pid
steady() {
	prefix=$1
	shift
	: >"$TMP/ready"
	# shellcheck disable=SC2086 # words
	$prefix "$U/bin/steady" "$@" >"$TMP/ready" 2>&1 <"$TMP/life" 7>&- &
	pid=$!
	at_exit_kill "$pid"
	until_true grep -q ready "$TMP/ready" || fail 'the workload starts'
}

end_steady() {
	kill "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
}

# procfs CAP ARG...: records as the user
procfs() {
	cap=$1
	shift
	run user timeout -k 5 60 "$BIN/offcpu-record" --mode procfs --force -o "$cap" "$@" 7>&-
}

rate() {
	waits "$1" 'if (($w->{comm} eq "'"$2"'") && !$w->{preempted}) { $n += $w->{total_ns} / $c{duration_ns} }'
}

tid_of() {
	for t in /proc/"$1"/task/*; do
		[ "$(cat "$t/comm")" = "$2" ] && echo "${t##*/}"
	done
}

# --- an ordinary user's own processes ---

procfs "$U/a.cap" -- "$U/bin/waits"
is "$rc" 0 'an ordinary user without capabilities can record a command'
cp "$out" "$TMP/truth"
like "$(cat "$err")" 'estimates, not exact waits: [0-9]+ samples at 99 Hz.* off-CPU estimated .* by schedstat' \
	'the summary shows estimates from samples and the deviation from schedstat'
is "$(grep -c 'CAP_SYS_ADMIN' "$err") $(grep -c -- '--ptrace walks' "$err")" '1 1' \
	'what is missing is reported once, with the remedy'
ok 'the capture is complete' "$BIN/capinfo" --verify "$U/a.cap"
like "$("$BIN/capinfo" "$U/a.cap")" '^holds +estimates, not exact waits: [0-9]+ samples at 99 Hz.*, checked against schedstat: off-CPU estimated [0-9.]+ s, by schedstat [0-9.]+ s$' \
	'capinfo shows samples that were checked against schedstat'
like "$("$BIN/capinfo" --json "$U/a.cap")" '"samples": ?\{' 'capinfo --json has the samples as a member'
like "$("$BIN/symbolize" -q "$U/a.cap" | head -n 8)" '^# mode: name=procfs estimates, not exact waits' \
	'the header of the text shows mode procfs'
like "$("$BIN/symbolize" -q --format=json "$U/a.cap" | head -n 1)" '"mode":"procfs","mode_tried":"[^"]*","samples":\{"hz":99,' \
	'the header of the JSON shows mode procfs'
ok 'seen waits equal recorded plus filtered waits, in count and time' balanced "$U/a.cap"
while read -r comm _ _ _ measured off _; do
	case $comm in
	w-long | w-mutex | w-cond | w-pipe)
		got=$(waits "$U/a.cap" '$n += $w->{total_ns} if $w->{comm} eq "'"$comm"'"')
		[ "$measured" -gt "$off" ] && measured=$off
		within "$got" "$measured" 8 "$comm: the time off the CPU matches the program's own clock within 8 %"
		;;
	esac
done <"$TMP/truth"
# a late sample may miss the beginning or the end of the wait
is "$(waits "$U/a.cap" 'push @o, kernel() if $w->{comm} eq "w-long" && $w->{total_ns} > 1e8')" \
	"[wait channel hrtimer_nanosleep];[syscall clock_nanosleep]" 'a sleep is named by its wait channel and system call'
is "$(waits "$U/a.cap" '$n = 1 if $w->{comm} eq "w-pipe" && kernel() =~ /;\[syscall read\]$/ &&
	user() =~ /read/ && $w->{user_stack_error} eq "pc-only"')" 1 \
	'a read has its system call, and as user frame only its program counter'

procfs "$U/a.cap" -- sleep 0.5
between "$(waits "$U/a.cap" '$n += $w->{total_ns} / 1e9 if kernel() =~ /nanosleep/')" 0.4 0.6 \
	'the first wait of a command is recorded'
is "$(waits "$U/a.cap" '$n++ if $w->{initial}')" 0 'no wait of a command began before the recording'
run user timeout 30 "$BIN/offcpu-record" --force -o "$U/a.cap" -- sleep 0.3 7>&-
is "$rc $(grep -c '^offcpu-record: recording in mode procfs$' "$err")" '0 1' \
	'mode auto selects procfs and reports it'
like "$("$BIN/capinfo" "$U/a.cap")" '^ +tried=not btf: .*CAP_BPF' 'the capture says why mode btf was not selected'

# --- compared with other programs ---

steady "$as_user"
procfs "$U/s.cap" -p "$pid" -d 2
is "$rc" 0 'an ordinary user can record an own running process'
for comm in s-futex s-poll; do
	tid=$(tid_of "$pid" $comm)
	want=$(user cat "/proc/$pid/task/$tid/wchan")
	is "$(waits "$U/s.cap" 'push @o, kernel() if $w->{comm} eq "'$comm'"' | sed 's/;.*//')" \
		"[wait channel $want]" "$comm: the wait channel is the one in /proc"
	is "$(waits "$U/s.cap" 'push @o, "$w->{count} $w->{open} $w->{initial}" if $w->{comm} eq "'$comm'"')" \
		'1 1 1' "$comm: one wait is open from the start to the end of the recording"
	within "$(rate "$U/s.cap" $comm)" 1 3 "$comm: the wait lasts as long as the recording"
done
if command -v strace >/dev/null; then
	tid=$(tid_of "$pid" s-futex)
	timeout 1 strace -p "$tid" -o "$TMP/strace" >/dev/null 2>&1
	name=$(sed -n '1s/(.*//p' "$TMP/strace")
	is "$(waits "$U/s.cap" 'push @o, kernel() if $w->{comm} eq "s-futex"' | sed 's/.*\[syscall \(.*\)\]/\1/')" \
		"$name" 'the system call matches strace'
else
	skip 'the system call matches strace' 'no strace'
fi
like "$("$BIN/symbolize" -q "$U/s.cap" | "$BIN/fold")" \
	'^s-futex;.*;\[syscall futex\];\[wait channel [a-z_]+\] [0-9]+$' 'fold prints the names as frames'
is "$("$BIN/symbolize" -q "$U/s.cap" | perl -ne '
	next if /^#/ || /^$/;
	next if /^\S.* \d+\/\d+ \[\d+\] [\d.]+: +\d+ \S+: *$/;
	next if /^\t *[0-9a-f]+ .+ \(\S+\)$/;
	print' | head -n 3)" '' 'the text keeps to the grammar of perf script'
is "$("$BIN/symbolize" -q "$U/s.cap" | grep '\[wait channel' | grep -vc ' (\[procfs\])$')" 0 \
	'names from /proc have the module procfs and no offset'

# schedstat: the time that a thread ran and was delayed, read at both ends of the same interval
read_stat() {
	read -r run delay _ <"/proc/$pid/task/$tid/schedstat"
	switches=$(awk '/^voluntary/ { print $2 }' "/proc/$pid/task/$tid/status")
	now=$(perl -MTime::HiRes=clock_gettime,CLOCK_MONOTONIC -e 'printf "%d", clock_gettime(CLOCK_MONOTONIC) * 1e9')
}
for comm in s-sleep s-work; do
	tid=$(tid_of "$pid" $comm)
	rec_as="env STACKTOOLS_CACHE=$U/cache $as_user" rec_start "$U/t.cap" --mode procfs -t "$tid"
	read_stat
	a_run=$run a_delay=$delay a_now=$now a_switches=$switches
	sleep 3
	read_stat
	rec_stop
	share=$(perl -e "print 1 - ($run - $a_run + $delay - $a_delay) / ($now - $a_now)")
	between "$(rate "$U/t.cap" $comm)" "$(perl -e "print $share - 0.05")" "$(perl -e "print $share + 0.05")" \
		"$comm: the share of time off the CPU matches schedstat ($share) within 0.05"
done
is "$(waits "$U/t.cap" 'push @o, $w->{comm}' | sort -u)" s-work '-t records only that thread'
n=$(waits "$U/t.cap" '$n += $w->{count} / $c{duration_ns} * 1e9 if $w->{comm} eq "s-work" && !$w->{preempted}')
within "$n" "$(perl -e "print(($switches - $a_switches) / ($now - $a_now) * 1e9)")" 15 \
	's-work: the rate of waits matches the rate of voluntary switches'
end_steady

# --- whole user stacks ---

steady "$as_user"
procfs "$U/x.cap" -p "$pid" -d 2 --ptrace
is "$rc $(waits "$U/x.cap" 'push @o, user() if $w->{comm} eq "s-poll"' | grep -c 'poll;in_poll;.*clone')" '0 1' \
	"--ptrace: user stacks of own threads reach the outermost frame"
is "$(waits "$U/x.cap" 'push @o, "$w->{count} $w->{user_stack_verdict}" if $w->{comm} =~ /^s-(futex|poll)/' | sort -u)" \
	'1 complete' '--ptrace: stopping a thread does not count as a wait'
like "$(cat "$err")" 'degraded: .*--ptrace stops a thread for a moment' 'the summary says that --ptrace stops threads'
within "$(rate "$U/x.cap" s-futex)" 1 5 '--ptrace does not change the time off the CPU'
like "$(counter "$U/x.cap" unwind.files) $(counter "$U/x.cap" unwind.files_failed) $(counter "$U/x.cap" unwind.worker_lost)" \
	'^[1-9][0-9]* 0 0$' 'each file in the stacks has an unwind table'
end_steady

procfs "$U/x.cap" --ptrace -- sleep 0.4
is "$rc $(waits "$U/x.cap" 'push @o, user() if $w->{total_ns} > 3e8' | grep -c 'nanosleep.*;__libc_start')" '0 1' \
	'files that a short command maps after its start are known'
procfs "$U/x.cap" -- env sh -c 'sleep 1.5; exec sleep 1.5'
is "$(waits "$U/x.cap" '$h{"$w->{process_comm} $w->{exe}"} = 1 if $w->{total_ns} > 5e8 && $w->{comm} eq $w->{process_comm}' | sed 's, [^ ]*/, ,' | sort)" \
	"$(printf '%s\n' "sh $(basename "$(readlink -f "$(command -v sh)")") 1" 'sleep sleep 1' | sort)" \
	'programs that replace each other soon keep their own waits'
is "$(waits "$U/x.cap" '$n++ if $w->{process_comm} eq ""')" 0 'no wait belongs to an unknown process'

# --- filters and selection ---

steady "$as_user"
# On a busy machine a sample may be late by more than 100 ms, and short waits are estimated longer.
procfs "$U/f.cap" -p "$pid" -d 2 --min 1s
is "$(waits "$U/f.cap" 'push @o, $w->{comm}' | sort -u | tr '\n' ' ')" 's-futex s-poll steady ' \
	'--min drops waits that are shorter by estimate'
ok 'waits dropped by --min are counted' balanced "$U/f.cap"
procfs "$U/f.cap" -p "$pid" -d 1 --state D
is "$(waits "$U/f.cap" '$n++')" 0 '--state D drops sleeps'
procfs "$U/f.cap" -p "$pid" -d 1 -U
is "$(waits "$U/f.cap" '$n++ if kernel() ne ""') $(waits "$U/f.cap" '$n++ if user() ne ""' | sed 's/[1-9][0-9]*/some/')" '0 some' '-U records no kernel frames'
procfs "$U/f.cap" -p "$pid" -d 1 -K
is "$(waits "$U/f.cap" '$n++ if user() ne ""') $(waits "$U/f.cap" '$n++ if kernel() ne ""' | sed 's/[1-9][0-9]*/some/')" '0 some' '-K records no user frames'
procfs "$U/f.cap" -p "$pid" -d 2 --preempted
is "$(waits "$U/f.cap" 'push @o, kernel() if $w->{preempted}' | sort -u)" '[waiting for a CPU]' \
	'--preempted records time spent waiting for a CPU'
status 64 '--ptrace in a mode with BPF is a usage error' "$BIN/offcpu-record" --mode btf --ptrace -p "$pid"
status 64 '-F in a mode with BPF is a usage error' "$BIN/offcpu-record" --mode raw -F 50 -p "$pid"
status 64 '--unwind dwarf in mode procfs is a usage error' "$BIN/offcpu-record" --mode procfs --unwind dwarf -p "$pid"
status 2 'a --cgroup that is not a cgroup is an error' "$BIN/offcpu-record" --mode procfs --cgroup /x -p "$pid"
procfs "$U/f.cap" -c steady -d 1
is "$(waits "$U/f.cap" 'push @o, $w->{pid}' | sort -u)" "$pid" '-c finds a process by name'
procfs "$U/f.cap" -a -d 1
is "$(waits "$U/f.cap" '$n = 1 if $w->{pid} == '"$pid")" 1 '-a records the process too'
procfs /dev/full -p "$pid" -d 1
is "$rc $(grep -c "cannot write to '/dev/full': No space left" "$err")" '2 1' 'a full disk is reported'
{
	user timeout 20 "$BIN/offcpu-record" -q --mode procfs -o - -p "$pid" -d 10 2>"$err" 7>&-
	echo "$?" >"$TMP/status"
} | head -c 10 >/dev/null
is "$(cat "$TMP/status")" 141 'a reader that closes the pipe ends the recording by SIGPIPE'
rm -f "$U/f.cap"
# shellcheck disable=SC2086 # words
$as_user "$BIN/offcpu-record" --mode procfs -o "$U/f.cap" -p "$pid" >"$out" 2>"$err" </dev/null 7>&- &
rec_pid=$!
at_exit_kill "$rec_pid"
until_true test -e "$U/f.cap"
sleep 0.5
end_steady
wait "$rec_pid"
is "$? $("$BIN/capinfo" "$U/f.cap" | grep -c 'stopped by: target exited')" '0 1' \
	'the end of the process ends the recording'

# --- processes and threads that come and go ---

cat >"$U/family" <<'EOF'
#!/bin/sh
echo $$ >"$0.pid"
sleep 0.4
( sleep 0.5 & wait )
exec sleep 0.6
EOF
chmod 755 "$U/family"
procfs "$U/c.cap" -- "$U/family"
# status 1: a process that ended before its mappings were read is counted as lost
like "$rc $(sed -n 's/^ *lost: [0-9]* *//p' "$err")" '^(0 nothing|1 process without mappings: ended, or not readable)$' 'a command with children is recorded'
is "$(waits "$U/c.cap" '$h{$w->{comm}} = 1' | tr '\n' ' ')" 'family 1 sleep 1 ' 'waits of the children and of the executed program are recorded'
is "$(waits "$U/c.cap" 'push @o, "$w->{pid} $w->{process}"' | sort -u | grep -c "^$(cat "$U/family.pid") ")" \
	2 'a process that execs has two images'
steady "$as_user" churn
procfs "$U/c.cap" -p "$pid" -d 2
is "$rc" 0 'a program with thousands of short-lived threads is recorded'
ok 'the capture of short-lived threads is complete' "$BIN/capinfo" --verify "$U/c.cap"
gone=$(counter "$U/c.cap" procfs.threads_ended)
ok "threads that were seen to end are counted: $gone" test "$gone" -gt 200
end_steady

# --- hostile names ---

for comm in 'a) R 1 (' 'x
State: Z' '[35m ;|`$(id)' '1/2 [000] 3.4:'; do
	# shellcheck disable=SC2086 # words
	$as_user perl -e '$0 = $ARGV[0]; open my $f, ">", "/proc/self/comm"; print $f $ARGV[0]; close $f; sleep 20' "$comm" \
		>/dev/null 2>&1 </dev/null 7>&- &
	pid=$!
	at_exit_kill "$pid"
	until_true grep -q sleep "/proc/$pid/wchan"
	procfs "$U/h.cap" -p "$pid" -d 0.5
	got=$(waits "$U/h.cap" 'push @o, unpack("H*", $w->{comm}) if kernel() =~ /sleep/')
	is "$got" "$(printf %s "$comm" | head -c 15 | od -An -tx1 | tr -d ' \n')" 'a hostile thread name is kept unchanged'
	is "$("$BIN/symbolize" -q "$U/h.cap" | grep -c '^\S.*offcpu-time')" "$(waits "$U/h.cap" '$n++')" \
		'a hostile thread name forges no record'
	kill "$pid"
done

# --- cost ---

steady "$as_user" 33
procfs "$U/n.cap" -p "$pid" -d 1 -v
is "$rc" 0 'a process of 101 threads is sampled 99 times a second'
sed -n 's/^  a sample took/101 threads: a sample took/p' "$err" | diag
end_steady
steady "$as_user" 400
procfs "$U/n.cap" -p "$pid" -d 2 -F 1000 -v
left=$(counter "$U/n.cap" procfs.samples_skipped)
ok "samples that take longer than their period lower the rate and are counted ($left)" \
	test "$left" -gt 500
like "$(cat "$err")" '[0-9]+ samples?: not taken for lack of time, so the rate went down' 'the lower rate is reported'
cpu=$(perl -e 'printf "%d", 100 * $ARGV[0] / 2e9' "$(counter "$U/n.cap" procfs.sample_ns)")
ok "sampling takes no more than about half of a CPU: $cpu %" test "$cpu" -le 60
sed -n 's/^  a sample took/1202 threads: a sample took/p' "$err" | diag
is "$(waits "$U/n.cap" '$n++ if $w->{comm} eq "s-futex" && $w->{count} == 1 && $w->{initial} && $w->{open}')" 400 \
	'waits are complete at the lower rate'
within "$(rate "$U/n.cap" s-futex)" 400 1 'the time of waits is right at the lower rate'
end_steady

# --- for root: processes of other users, and hidden information ---

if [ -z "$root" ]; then
	tap_done
fi
in_view() {
	unshare -m --propagation private sh -c 'mount -t proc -o "$1" proc /proc || exit 77
		shift; exec "$@"' sh "$@"
}

steady ''
run timeout 60 "$BIN/offcpu-record" --mode procfs --force -o "$U/r.cap" -p "$pid" -d 2 7>&-
is "$rc $(waits "$U/r.cap" '$n = 1 if $w->{comm} eq "s-futex" && kernel() =~ /futex.*;__x64_sys_futex;do_syscall_64/ && $w->{kernel_stack}[0]{offset}')" \
	'0 1' 'root gets kernel stacks with addresses and offsets'
like "$("$BIN/symbolize" -q --format=json "$U/r.cap" | grep s-futex | head -n 1)" '"kernel_stack_verdict":"complete"' \
	'kernel stacks of root are complete'
cp "$U/r.cap" "$TMP/root.cap"

# shellcheck disable=SC2086 # words
run in_view hidepid=0 $as_user timeout 60 "$BIN/offcpu-record" --mode procfs --force -o "$U/o.cap" -p "$pid" -d 1 7>&-
is "$rc $(waits "$U/o.cap" 'push @o, kernel() if $w->{comm} eq "s-futex"')" '0 [state S]' \
	"another user's process: its states are recorded"
like "$(cat "$err")" 'hidden: another user.* CAP_SYS_PTRACE' 'hidden information is reported, with the remedy'
within "$(rate "$U/o.cap" s-futex)" 1 3 'waits of a process of another user are complete'
# shellcheck disable=SC2086 # words
run in_view hidepid=2 $as_user "$BIN/offcpu-record" --mode procfs --force -o "$U/o.cap" -p "$pid" -d 1 7>&-
is "$rc" 2 'a process that /proc hides cannot be recorded'
like "$(cat "$err")" "proc hides process $pid" 'the message says that /proc hides the process'
# shellcheck disable=SC2086 # words
run in_view hidepid=2 $as_user timeout 20 "$BIN/offcpu-record" --mode procfs --force -o "$U/o.cap" -a -d 1 7>&-
but_for_others
is "$rc $(grep -c 'proc hides the processes of other users' "$err") $(waits "$U/o.cap" '$n++ if $w->{pid} == '"$pid")" '0 1 0' \
	'-a reports that it does not see all processes'

# Threads that run between any two samples: a request of the recorder has many of them, so that the
# number of requests depends on that of the samples, and of the stops that --ptrace makes, alone.
echo | "$OBJ/t/work/switch" sleep 1000000000 100 5 >/dev/null 7>&- &
busy=$!
at_exit_kill "$busy"
has_begun() {
	[ "$(find "/proc/$busy/task" -mindepth 1 -maxdepth 1 | wc -l)" -ge 101 ]
}
until_true has_begun
for how in '' --ptrace; do
	# shellcheck disable=SC2086 # a word, or none
	run timeout 60 "$BIN/offcpu-record" --mode procfs $how --force -o "$U/s.cap" -p "$busy" -d 2 7>&-
	samples=$(counter "$U/s.cap" procfs.samples) stops=$(counter "$U/s.cap" procfs.stops) requests=$(counter "$U/s.cap" helper.requests)
	is "$rc $(waits "$U/s.cap" '$n = 1 if kernel() =~ /nanosleep/ && $w->{user_stack_verdict} eq "'"$([ "$how" ] && echo complete || echo stopped)"'"')" \
		'0 1' "100 busy threads have kernel and user stacks${how:+ with $how}"
	ok "the files of 100 busy threads take few requests${how:+ with $how}: $requests for $samples samples and ${stops:-0} stops" \
		test "$requests" -lt $((samples * 25 + ${stops:-0} * 2 + 500))
done
kill "$busy"

sed 's/^[0-9a-f]*/0000000000000000/' /proc/kallsyms >"$TMP/kallsyms"
run unshare -m --propagation private sh -c 'mount --bind "$1" /proc/kallsyms && shift && exec "$@"' sh "$TMP/kallsyms" \
	timeout 60 "$BIN/offcpu-record" --mode procfs --force -o "$U/k.cap" -p "$pid" -d 1 7>&-
is "$rc $(waits "$U/k.cap" 'push @o, $w->{kernel_stack}[1]{module} if $w->{comm} eq "s-futex"')" '0 procfs' \
	'without addresses in kallsyms kernel stacks are names'
is "$(waits "$U/k.cap" 'push @o, kernel() if $w->{comm} eq "s-futex"')" \
	"$(waits "$TMP/root.cap" 'push @o, kernel() if $w->{comm} eq "s-futex"')" 'without addresses in kallsyms kernel stacks have the same names'
like "$(cat "$err")" 'degraded: .*kernel frames are names without addresses: .*kptr_restrict' 'missing addresses in kallsyms are reported, with the remedy'

: >"$TMP/empty"
# shellcheck disable=SC2016
run unshare -m --propagation private sh -c 'for t in /proc/$2/task/*; do mount --bind "$1" "$t/schedstat" || exit; done
	shift 2; exec "$@"' sh "$TMP/empty" "$pid" \
	timeout 60 "$BIN/offcpu-record" --mode procfs --force -o "$U/w.cap" -p "$pid" -d 2 7>&-
is "$rc $("$BIN/capinfo" "$U/w.cap" | grep -c 'not checked: no schedstat')" '0 1' \
	'without schedstat capinfo shows that nothing was checked'
like "$(cat "$err")" 'degraded: [0-9]+ threads?: no schedstat' 'without schedstat the summary reports the threads'
within "$(rate "$U/w.cap" s-futex)" 1 3 'without schedstat a wait seen in every sample is complete'
within "$(rate "$U/w.cap" s-sleep)" 1 15 'without schedstat short waits are estimated'

# Both modes at the same time, on a steady workload. The comparison is of all time off the CPU, because the
# time between wakeup and CPU is part of the wait in one mode, and time spent waiting for a CPU in the other.
whole() {
	waits "$1" 'if ($w->{comm} eq "'"$2"'") { $n += $w->{total_ns} / $c{duration_ns} }'
}
if "$BIN/offcpu-record" -q --mode btf --force -o "$TMP/probe.cap" -- true >"$TMP/probe.log" 2>&1; then
	# again if the machine let one begin, or sample, long after the other
	for _ in 1 2 3; do
		timeout 60 "$BIN/offcpu-record" -q --mode btf --preempted --force -o "$TMP/b.cap" -p "$pid" -d 4 >/dev/null 2>&1 </dev/null 7>&- &
		rec_pid=$!
		run timeout 60 "$BIN/offcpu-record" -q --mode procfs --preempted --force -o "$U/p.cap" -p "$pid" -d 4 7>&-
		wait "$rec_pid"
		perl -e 'exit !(abs($ARGV[0] / $ARGV[1] - 1) <= 0.05)' "$(whole "$U/p.cap" s-work)" "$(whole "$TMP/b.cap" s-work)" && break
	done
	for comm in s-futex s-poll s-sleep s-work steady; do
		within "$(whole "$U/p.cap" $comm)" "$(whole "$TMP/b.cap" $comm)" 5 \
			"$comm: the share of time off the CPU matches --mode btf within 5 %"
	done
else
	skip 'the share of time off the CPU matches --mode btf' "no BPF here: $(head -n 1 "$TMP/probe.log")"
fi
end_steady

# A shell waits in vfork, then in wait4: a stack walked a moment later must not be combined with the system
# call sampled before.
run user timeout 60 "$BIN/offcpu-record" -q --mode procfs --ptrace -F 500 --force -o "$U/v.cap" -- \
	sh -c 'i=0; while [ $i -lt 40 ]; do sleep 0.01; i=$((i + 1)); done' 7>&-
"$BIN/symbolize" -q "$U/v.cap" 2>/dev/null | "$BIN/fold" >"$TMP/v.folded"
is "$(grep -c 'wait4.*\[syscall vfork\]\|vfork.*\[syscall wait4\]' "$TMP/v.folded")" 0 \
	'no system call has the user stack of another one'

# Late samples, because the recorder did not run: a thread that began meanwhile counts as waiting since its
# start. Its time off the CPU is compared with its lifetime, which the shell measures.
# shellcheck disable=SC2016,SC2086 # for the other shell; words
STACKTOOLS_CACHE=$U/cache $as_user "$BIN/offcpu-record" -q --mode procfs --force -o "$U/late.cap" -- \
	bash -c 'sleep 4; from=$EPOCHREALTIME; sleep 2; echo $from $EPOCHREALTIME; :' >"$TMP/life-of" 2>"$err" 7>&- &
late_rec=$!
at_exit_kill "$late_rec"
late_first() { late_sh=$(pgrep -P "$late_rec" -x bash) && late_was=$(pgrep -P "$late_sh" -x sleep); }
late_next() { late_is=$(pgrep -P "$late_sh" -x sleep) && [ "$late_is" != "$late_was" ]; }
until_true late_first
until_true recording "$late_rec" "$U/late.cap"
kill -STOP "$late_rec"
until_true late_next
kill -CONT "$late_rec"
wait "$late_rec"
late_life=$(awk '{ printf "%d", ($2 - $1) * 1e9 }' "$TMP/life-of")
between "$(waits "$U/late.cap" '$n += $w->{total_ns} if $w->{pid} == '"$late_is")" $((late_life * 8 / 10)) $((late_life * 21 / 20)) \
	'a thread that began while the recorder was stopped is credited from its start'

# A target in its own PID namespace.
steady 'unshare --pid --fork --kill-child'
inner=$(pgrep -P "$pid" steady)
run timeout 60 "$BIN/offcpu-record" -q --mode procfs --force -o "$U/p.cap" -p "$inner" -d 1 7>&-
is "$rc $("$BIN/capinfo" "$U/p.cap" | grep -c '(PID 1 in its namespace)')" '0 1' \
	'a process in another PID namespace is shown with both of its PIDs'
kill -KILL "$inner"
end_steady
tap_done
