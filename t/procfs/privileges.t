#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The privileges that the recorder keeps while it records in mode procfs. The capture
# must not lack anything because of those it has given up.
# shellcheck disable=SC2016,SC2086,SC2154,SC2317 # Perl, other shells; words; set by tap.sh; called by name
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
[ "$(id -u)" -eq 0 ] || skip_all "needs root"
for p in capsh setpriv eu-stack; do
	command -v $p >/dev/null || skip_all "no $p"
done
export DEBUGINFOD_URLS=
chmod 755 "$TMP"
mkdir -m 755 "$TMP/bin"
cp "$OBJ/t/work/steady" "$TMP/bin/"
mkfifo "$TMP/life" && exec 7<>"$TMP/life"
none=0000000000000000
another='setpriv --reuid=1234 --regid=1234 --clear-groups'

# steady: starts steady as another user; sets $pid
steady() {
	: >"$TMP/ready"
	$another "$TMP/bin/steady" >"$TMP/ready" 2>&1 <"$TMP/life" 7>&- &
	pid=$!
	at_exit_kill "$pid"
	until_true grep -q ready "$TMP/ready" || fail 'the workload starts'
}

# field PID NAME: prints a field of /proc/PID/status
field() {
	awk -v n="$2:" '$1 == n { print $2; exit }' "/proc/$1/status"
}

# caps PID: prints the distinct values of all capability sets of all threads, one word if all are empty
caps() {
	cat /proc/"$1"/task/*/status | awk '/^Cap/ { print $2 }' | sort -u | tr '\n' ' '
}

has_none() {
	[ "$(caps "$rec_pid")" = "$none " ]
}

child() {
	pgrep -P "$rec_pid" "^$1\$"
}

named() {
	capsh --decode="$(field "$1" CapPrm)" | sed 's/.*=//'
}

# hurries WHAT NICE: checks how soon each process of the recorder runs, and that it has the short time slice, in ns
hurries() {
	shown=
	for p in "$rec_pid" $(child thread-helper); do
		is "$(ps -o ni= -p "$p" | tr -d ' ')" "$2" "$1: nice value of $(cat "/proc/$p/comm")"
		slice=$(awk '$1 == "se.slice" { print $3 }' "/proc/$p/sched" 2>/dev/null)
		[ -z "$slice" ] || shown="$shown$slice "
	done
	if [ -z "$shown" ] || [ "$(printf '%s\n' 6.12 "$(uname -r)" | sort -V | head -n 1)" != 6.12 ]; then
		skip "$1: a short time slice" "this kernel has none, or does not show it"
	else
		is "$(printf '%s\n' $shown | sort -u)" 100000 "$1: a short time slice"
	fi
}

gone() {
	! kill -0 "$helper" 2>/dev/null && ! kill -0 "$broker" 2>/dev/null
}

# confined NAME: checks the recorder and sets $helper and $broker
confined() {
	until_true has_none
	is "$(caps "$rec_pid")" "$none " "$1: no thread of the recorder has a capability in any set"
	is "$(field "$rec_pid" NoNewPrivs)" 1 "$1: the recorder cannot gain privileges (NoNewPrivs)"
	helper=$(child thread-helper)
	broker=$(child file-broker)
	for p in "$helper" "$broker"; do
		is "$(field "$p" CapEff)" "$(field "$p" CapPrm)" "$1: all capabilities that $(cat "/proc/$p/comm") keeps are effective"
		is "$(field "$p" CapInh) $(field "$p" CapBnd) $(field "$p" CapAmb)" "$none $none $none" "$1: helper and broker can get no other capability"
		is "$(field "$p" NoNewPrivs) $(field "$p" Seccomp)" '1 2' "$1: helper and broker have a filter of system calls"
		is "$(ps -o sid= -p "$p" | tr -d ' ')" "$p" "$1: helper and broker have sessions of their own, without the terminal"
	done
	is "$(named "$helper")" cap_dac_read_search,cap_sys_ptrace,cap_sys_admin "$1: the helper keeps only the capabilities that reading /proc needs"
	is "$(named "$broker")" cap_dac_read_search,cap_sys_ptrace,cap_checkpoint_restore "$1: the broker keeps only the capabilities that opening files needs"
}

# sees CAP NAME ERROR: the capture has all that the other user's threads show, user stacks with ERROR
sees() {
	is "$(waits "$1" '$h{"$w->{comm} $w->{user_stack_error}"} = 1 if $w->{pid} == '"$pid"' && $w->{comm} =~ /^s-(futex|poll)/')" \
		"s-futex $3 1
s-poll $3 1" "$2: user stacks of another user's threads end as expected with or without --ptrace"
	is "$(waits "$1" '$n++ if $w->{pid} == '"$pid"' && $w->{comm} eq "s-futex" && kernel() =~ /futex.*;__x64_sys_futex;do_syscall_64/ && $w->{kernel_stack}[0]{offset}')" 1 \
		"$2: kernel stacks of another user's threads are complete"
	like "$(waits "$1" '$h{user()} = 1 if $w->{pid} == '"$pid"' && $w->{comm} eq "s-poll"')" '^[_a-z]*poll(;| )' \
		"$2: user frames of another user's threads have names"
	like "$(counter "$1" procfs.no_syscall)$(counter "$1" helper.lost)$(counter "$1" broker.lost)$(counter "$1" maps.refused)" '^0*$' \
		"$2: nothing was refused or lost"
}

steady
rec_start "$TMP/p.cap" -v --mode procfs -p "$pid"
confined -p
# without CAP_SYS_NICE root cannot have it
[ -z "$(nice -n -1 true 2>&1)" ] && early=-10 || early=$(nice)
hurries -p "$early"
sleep 1
rec_stop
is "$rc" 0 '-p: the recording is complete'
ok '-p: no process of the recorder is left' gone
sees "$TMP/p.cap" -p pc-only
like "$(grep privileges: "$TMP/rec.err")" 'no capabilities, none to be had, .*samples threads keeps .*CAP_SYS_PTRACE.*opens files keeps .*seccomp' \
	'-v reports which privileges were given up and kept'
like "$("$BIN/capinfo" "$TMP/p.cap")" 'privileges=no capabilities, none to be had.*samples threads keeps' 'the capture says which privileges were given up and kept'

rec_start "$TMP/a.cap" --mode procfs -a
confined -a
sleep 1
rec_stop
is "$(waits "$TMP/a.cap" '$h{$w->{comm}} = 1 if $w->{pid} == '"$pid"' && kernel() =~ /do_syscall_64/')" \
	"$(waits "$TMP/p.cap" '$h{$w->{comm}} = 1 if kernel() =~ /do_syscall_64/')" "-a records another user's threads with their kernel stacks"
is "$(waits "$TMP/a.cap" '$n++ if $w->{pid} =~ /^('"$rec_pid|$helper|$broker"')$/')" 0 '-a does not record the processes of the recorder'

rec_start "$TMP/x.cap" --mode procfs -F 49 --ptrace -p "$pid"
confined --ptrace
maker=$(child unwind-tables)
is "$(caps "$maker")$(field "$maker" NoNewPrivs) $(field "$maker" Seccomp)" "$none 1 2" '--ptrace: the worker that reads mapped files has no capabilities, but a filter'
sleep 1.5
for t in /proc/"$pid"/task/*; do
	field_tracer=$(awk '/^TracerPid:/ { print $2 }' "$t/status")
	[ "$field_tracer" != 0 ] || continue
	# each stop has a tracer thread of its own, which may have ended
	case $(field "$field_tracer" Tgid 2>/dev/null) in '' | "$helper") ;; *) fail "no process but the helper traces a thread: $field_tracer" ;; esac
done
rec_stop
is "$rc" 0 '--ptrace: the recording is complete'
is "$(waits "$TMP/x.cap" '$h{"$w->{comm} $w->{count} $w->{user_stack_verdict}"} = 1 if $w->{comm} =~ /^s-(futex|poll)/')" \
	's-futex 1 complete 1
s-poll 1 complete 1' "--ptrace: another user's stacks are complete, and its waits are not interrupted"
# theirs TID: prints the return addresses that eu-stack finds
theirs() {
	eu-stack -n 0 -p "$pid" 2>/dev/null | awk -v t="$1" '/^TID/ { on = $2 == t ":" } on && /^#/ { sub("0x0*", "", $2); printf "%s ", $2 }'
}
for name in s-futex s-poll; do
	tid=$(grep -lx "$name" /proc/"$pid"/task/*/comm | sed 's,/comm$,,;s,.*/,,')
	is "$(waits "$TMP/x.cap" 'push @o, join " ", map { $_->{address} =~ s/^0x0*//r } @{$w->{user_stack}} if $w->{comm} eq "'$name'"') " \
		"$(theirs "$tid")" "$name: the stack matches eu-stack as root"
done
is "$(awk '/^TracerPid:/ { print $2 }' "/proc/$pid/status")" 0 'no tracer is left after the recording'

rec_start "$TMP/m.cap" --mode procfs --ptrace -c unwind-tables
until_true has_none
maker=$(child unwind-tables)
sleep 0.5
rec_stop
is "$(waits "$TMP/m.cap" '$n++ if $w->{pid} == '"$maker")" 0 '--ptrace: the worker that makes unwind tables is not recorded'

# --- processes that /proc hides from an unprivileged process ---

in_view() {
	unshare -m --propagation private sh -c 'mount -t proc -o "$1" proc /proc || exit 77
		shift; exec "$@"' sh "$@"
}
for what in "-p $pid" -a "-c steady" "-t $pid"; do
	run in_view hidepid=2 timeout 60 "$BIN/offcpu-record" --mode procfs --force -o "$TMP/h.cap" $what -d 1.5 7>&-
	[ "$what" != -a ] || but_for_others
	is "$rc $(waits "$TMP/h.cap" '$h{$w->{comm}} = 1 if $w->{pid} == '"$pid"' && kernel() =~ /do_syscall_64/' | grep -c .)" \
		"0 $(case $what in -t*) echo 1 ;; *) echo 5 ;; esac)" "hidepid=2: root records hidden processes with ${what%% *}"
done
group=$(findmnt -n -r -t cgroup2 -o TARGET | head -n 1)/stacktools-p.$$
if mkdir "$group" 2>"$TMP/mkdir"; then
	echo "$pid" >"$group/cgroup.procs"
	run in_view hidepid=2 timeout 60 "$BIN/offcpu-record" --mode procfs --force -o "$TMP/h.cap" --cgroup "$group" -d 1 7>&-
	is "$rc $(waits "$TMP/h.cap" '$h{$w->{pid}} = 1')" "0 $pid 1" 'hidepid=2: root records hidden processes in a cgroup'
	echo "$pid" >"${group%/*}/cgroup.procs"
	until_true rmdir "$group"
else
	skip 'hidepid=2: root records hidden processes in a cgroup' "$(head -n 1 "$TMP/mkdir")"
fi

# --- another user's exec is recorded ---

run timeout 60 "$BIN/offcpu-record" --mode procfs --force -o "$TMP/e.cap" -- \
	$another sh -c 'sleep 2; exec sleep 2' 7>&-
is "$(waits "$TMP/e.cap" '$h{"$w->{process_comm} $w->{comm}"} = 1 if $w->{total_ns} > 5e8' | sort)" 'sh sh 1
sleep sleep 1' 'a program that another user executes has its own waits'

run nice -n 3 timeout 60 "$BIN/offcpu-record" --mode procfs --force -o "$TMP/e.cap" -- nice 7>&-
is "$(cat "$out")" "$(nice -n 3 nice)" 'a command keeps the nice value of the caller'

# --- with fewer capabilities ---

run timeout 60 setpriv --bounding-set=-all,+sys_ptrace,+dac_read_search "$BIN/offcpu-record" --mode procfs --force -o "$TMP/l.cap" -p "$pid" -d 1 7>&-
is "$rc $(waits "$TMP/l.cap" '$n++ if $w->{comm} eq "s-futex" && kernel() =~ /futex/')" '0 1' \
	'without CAP_SYS_ADMIN system calls and wait channels are recorded'
like "$(cat "$err")" '[0-9]+ threads?: kernel stacks are names alone: /proc/PID/stack takes CAP_SYS_ADMIN' 'the summary says which capability kernel stacks need'

# --- the helper ends: reported and counted, and the recording continues ---

rec_start "$TMP/k.cap" --mode procfs -p "$pid"
until_true has_none
helper=$(child thread-helper)
sleep 0.5
kill -9 "$helper"
killed=$(perl -MTime::HiRes=clock_gettime,CLOCK_MONOTONIC -e 'printf "%d", clock_gettime(CLOCK_MONOTONIC) * 1e9')
sleep 1
ok 'the recorder continues after its helper was killed' kill -0 "$rec_pid"
rec_stop
is "$rc" 1 'a recording whose helper was killed ends with status 1'
like "$(cat "$TMP/rec.err")" 'limited to your own permissions: the process that samples threads was killed by SIGKILL' 'the summary says what is missing without the helper, and why'
like "$("$BIN/capinfo" "$TMP/k.cap")" 'helper=the process that samples threads was killed by SIGKILL' 'the capture says that the helper was killed'
ok 'samples missing without the helper are counted' test "$(counter "$TMP/k.cap" helper.lost)" -gt 0
is "$(waits "$TMP/k.cap" '$n = 1 if $w->{comm} eq "s-sleep" && $w->{last_ns} > '"$killed")" 1 \
	'waits are recorded to the end without the helper'

# If the recorder is killed, helper and broker end too.
rec_start "$TMP/9.cap" --mode procfs -p "$pid"
until_true has_none
helper=$(child thread-helper)
broker=$(child file-broker)
kill -9 "$rec_pid"
wait "$rec_pid" 2>/dev/null
ok 'no process is left if the recorder is killed' until_true gone

# --- without privileges to give up ---

$another mkdir "$TMP/mine" 2>/dev/null || { mkdir "$TMP/mine" && chown 1234:1234 "$TMP/mine"; }
cp "$BIN/offcpu-record" "$TMP/bin/"
STACKTOOLS_CACHE=$TMP/mine/cache $another --bounding-set=-all "$TMP/bin/offcpu-record" --mode procfs -o "$TMP/mine/u.cap" -p "$pid" >/dev/null 2>"$TMP/rec.err" </dev/null 7>&- &
rec_pid=$!
at_exit_kill "$rec_pid"
until_true test -e "$TMP/mine/u.cap"
sleep 0.5
is "$(child thread-helper)$(child file-broker)" '' 'the recorder of an ordinary user has neither helper nor broker'
hurries 'an ordinary user' "$(nice)"
rec_stop
is "$rc $(waits "$TMP/mine/u.cap" '$n++ if $w->{comm} eq "s-futex"')" '0 1' 'an ordinary user records own processes'
tap_done
