#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# What a recorder by /proc has left of its privileges while it records, and
# that nothing is missing in the capture for want of them.
# shellcheck disable=SC2016,SC2086,SC2154,SC2317 # Perl and shell for others; words; $rc and others of tap.sh; functions that others call
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
[ "$(id -u)" -eq 0 ] || skip_all "not root"
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

# steady: steady of another user; $pid is its process
steady() {
	: >"$TMP/ready"
	$another "$TMP/bin/steady" >"$TMP/ready" 2>&1 <"$TMP/life" 7>&- &
	pid=$!
	at_exit_kill "$pid"
	until_true grep -q ready "$TMP/ready" || fail 'the workload is there'
}

# field PID NAME: of /proc/PID/status
field() {
	awk -v n="$2:" '$1 == n { print $2; exit }' "/proc/$1/status"
}

# caps PID: every set of all its threads, in one word when they are all empty
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

gone() {
	! kill -0 "$helper" 2>/dev/null && ! kill -0 "$broker" 2>/dev/null
}

# keeps NAME: $helper and $broker
confined() {
	until_true has_none
	is "$(caps "$rec_pid")" "$none " "$1: the recorder has no capability in any set of any thread"
	is "$(field "$rec_pid" NoNewPrivs)" 1 "$1: and gets none"
	helper=$(child thread-helper)
	broker=$(child file-broker)
	for p in "$helper" "$broker"; do
		is "$(field "$p" CapEff)" "$(field "$p" CapPrm)" "$1: what $(cat "/proc/$p/comm") keeps is what it uses"
		is "$(field "$p" CapInh) $(field "$p" CapBnd) $(field "$p" CapAmb)" "$none $none $none" "$1: it can get no other"
		is "$(field "$p" NoNewPrivs) $(field "$p" Seccomp)" '1 2' "$1: it is under a filter of system calls"
		is "$(ps -o sid= -p "$p" | tr -d ' ')" "$p" "$1: it is out of the terminal's reach"
	done
	is "$(named "$helper")" cap_dac_read_search,cap_sys_ptrace,cap_sys_admin "$1: what looks keeps what looking takes"
	is "$(named "$broker")" cap_dac_read_search,cap_sys_ptrace,cap_checkpoint_restore "$1: what opens keeps what opening takes"
}

# sees CAP NAME: all of what the other user's threads show
sees() {
	is "$(waits "$1" '$h{"$w->{comm} $w->{user_stack_error}"} = 1 if $w->{pid} == '"$pid"' && $w->{comm} =~ /^s-(futex|poll)/')" \
		"s-futex $3 1
s-poll $3 1" "$2: user stacks are what --ptrace, or its absence, makes of them"
	is "$(waits "$1" '$n++ if $w->{pid} == '"$pid"' && $w->{comm} eq "s-futex" && kernel() =~ /futex.*;__x64_sys_futex;do_syscall_64/ && $w->{kernel_stack}[0]{offset}')" 1 \
		"$2: kernel stacks are whole"
	like "$(waits "$1" '$h{user()} = 1 if $w->{pid} == '"$pid"' && $w->{comm} eq "s-poll"')" '^[_a-z]*poll(;| )' \
		"$2: user frames have names"
	is "$(counter "$1" procfs.no_syscall) $(counter "$1" helper.lost) $(counter "$1" broker.lost) $(counter "$1" maps.refused)" '0 0 0 0' \
		"$2: nothing was refused or lost"
}

steady
rec_start "$TMP/p.cap" -v --mode procfs -p "$pid"
confined -p
sleep 1
rec_stop
is "$rc" 0 '-p: the recording is complete'
ok '-p: nothing of the recorder is left' gone
sees "$TMP/p.cap" -p pc-only
like "$(grep privileges: "$TMP/rec.err")" 'no capabilities, none to be had, .*samples threads keeps .*CAP_SYS_PTRACE.*opens files keeps .*seccomp' \
	'-v tells what was given up and kept'
like "$("$BIN/capinfo" "$TMP/p.cap")" 'privileges=no capabilities, none to be had.*samples threads keeps' 'the capture says it too'

rec_start "$TMP/a.cap" --mode procfs -a
confined -a
sleep 1
rec_stop
is "$(waits "$TMP/a.cap" '$h{$w->{comm}} = 1 if $w->{pid} == '"$pid"' && kernel() =~ /do_syscall_64/')" \
	"$(waits "$TMP/p.cap" '$h{$w->{comm}} = 1 if kernel() =~ /do_syscall_64/')" "-a has another user's threads, with their kernel stacks"
is "$(waits "$TMP/a.cap" '$n++ if $w->{pid} =~ /^('"$rec_pid|$helper|$broker"')$/')" 0 'and none of the recorder'

rec_start "$TMP/x.cap" --mode procfs -F 49 --ptrace -p "$pid"
confined --ptrace
maker=$(child unwind-tables)
is "$(caps "$maker")$(field "$maker" NoNewPrivs) $(field "$maker" Seccomp)" "$none 1 2" '--ptrace: what reads mapped files has nothing, under a filter of system calls'
sleep 1.5
for t in /proc/"$pid"/task/*; do
	field_tracer=$(awk '/^TracerPid:/ { print $2 }' "$t/status")
	[ "$field_tracer" != 0 ] || continue
	# a thread of it for each stop, which may be over already
	case $(field "$field_tracer" Tgid 2>/dev/null) in '' | "$helper") ;; *) fail "traced by $field_tracer" ;; esac
done
rec_stop
is "$rc" 0 '--ptrace: the recording is complete'
is "$(waits "$TMP/x.cap" '$h{"$w->{comm} $w->{count} $w->{user_stack_verdict}"} = 1 if $w->{comm} =~ /^s-(futex|poll)/')" \
	's-futex 1 complete 1
s-poll 1 complete 1' "--ptrace: another user's stacks are whole, and the threads wait as if nobody had looked"
# the oracle of a thread: its return addresses
theirs() {
	eu-stack -n 0 -p "$pid" 2>/dev/null | awk -v t="$1" '/^TID/ { on = $2 == t ":" } on && /^#/ { sub("0x0*", "", $2); printf "%s ", $2 }'
}
for name in s-futex s-poll; do
	tid=$(grep -lx "$name" /proc/"$pid"/task/*/comm | sed 's,/comm$,,;s,.*/,,')
	is "$(waits "$TMP/x.cap" 'push @o, join " ", map { $_->{address} =~ s/^0x0*//r } @{$w->{user_stack}} if $w->{comm} eq "'$name'"') " \
		"$(theirs "$tid")" "$name: its stack is what eu-stack sees as root"
done
is "$(awk '/^TracerPid:/ { print $2 }' "/proc/$pid/status")" 0 'nothing stays traced'

rec_start "$TMP/m.cap" --mode procfs --ptrace -c unwind-tables
until_true has_none
maker=$(child unwind-tables)
sleep 0.5
rec_stop
is "$(waits "$TMP/m.cap" '$n++ if $w->{pid} == '"$maker")" 0 '--ptrace: nor is that one of what is recorded'

# --- what /proc hides from a process without privileges ---

in_view() {
	unshare -m --propagation private sh -c 'mount -t proc -o "$1" proc /proc || exit 77
		shift; exec "$@"' sh "$@"
}
for what in "-p $pid" -a "-c steady" "-t $pid"; do
	run in_view hidepid=2 timeout 60 "$BIN/offcpu-record" --mode procfs --force -o "$TMP/h.cap" $what -d 1.5 7>&-
	[ "$what" != -a ] || but_for_others
	is "$rc $(waits "$TMP/h.cap" '$h{$w->{comm}} = 1 if $w->{pid} == '"$pid"' && kernel() =~ /do_syscall_64/' | grep -c .)" \
		"0 $(case $what in -t*) echo 1 ;; *) echo 5 ;; esac)" "hidepid=2: root records with ${what%% *} what is hidden"
done
group=$(findmnt -n -r -t cgroup2 -o TARGET | head -n 1)/stacktools-p.$$
if mkdir "$group" 2>"$TMP/mkdir"; then
	echo "$pid" >"$group/cgroup.procs"
	run in_view hidepid=2 timeout 60 "$BIN/offcpu-record" --mode procfs --force -o "$TMP/h.cap" --cgroup "$group" -d 1 7>&-
	is "$rc $(waits "$TMP/h.cap" '$h{$w->{pid}} = 1')" "0 $pid 1" 'and what is in a cgroup'
	echo "$pid" >"${group%/*}/cgroup.procs"
	until_true rmdir "$group"
else
	skip 'and what is in a cgroup' "$(head -n 1 "$TMP/mkdir")"
fi

# --- an exec of another user's is seen as one ---

run timeout 60 "$BIN/offcpu-record" --mode procfs --force -o "$TMP/e.cap" -- \
	$another sh -c 'sleep 2; exec sleep 2' 7>&-
is "$(waits "$TMP/e.cap" '$h{"$w->{process_comm} $w->{comm}"} = 1 if $w->{total_ns} > 5e8' | sort)" 'sh sh 1
sleep sleep 1' 'a program that another user becomes has waits of its own'

# --- with less ---

run timeout 60 setpriv --bounding-set=-all,+sys_ptrace,+dac_read_search "$BIN/offcpu-record" --mode procfs --force -o "$TMP/l.cap" -p "$pid" -d 1 7>&-
is "$rc $(waits "$TMP/l.cap" '$n++ if $w->{comm} eq "s-futex" && kernel() =~ /futex/')" '0 1' \
	'without CAP_SYS_ADMIN there are system calls and wait channels'
like "$(cat "$err")" '[0-9]+ threads?: kernel stacks are names alone: /proc/PID/stack takes CAP_SYS_ADMIN' 'and what stacks need is reported'

# --- the process that looks ends: told, counted, and the recording goes on ---

rec_start "$TMP/k.cap" --mode procfs -p "$pid"
until_true has_none
helper=$(child thread-helper)
sleep 0.5
kill -9 "$helper"
killed=$(perl -MTime::HiRes=clock_gettime,CLOCK_MONOTONIC -e 'printf "%d", clock_gettime(CLOCK_MONOTONIC) * 1e9')
sleep 1
ok 'a recorder whose helper was killed goes on' kill -0 "$rec_pid"
rec_stop
is "$rc" 1 'and ends with what is lost'
like "$(cat "$TMP/rec.err")" 'limited to your own permissions: the process that samples threads was killed by SIGKILL' 'it says what is missing, and why'
like "$("$BIN/capinfo" "$TMP/k.cap")" 'helper=the process that samples threads was killed by SIGKILL' 'so does the capture'
ok 'the looks that were not made are counted' test "$(counter "$TMP/k.cap" helper.lost)" -gt 0
is "$(waits "$TMP/k.cap" '$n = 1 if $w->{comm} eq "s-sleep" && $w->{last_ns} > '"$killed")" 1 \
	'waits were recorded to the end'

# A recorder that is killed takes both with it
rec_start "$TMP/9.cap" --mode procfs -p "$pid"
until_true has_none
helper=$(child thread-helper)
broker=$(child file-broker)
kill -9 "$rec_pid"
wait "$rec_pid" 2>/dev/null
ok 'a recorder that is killed leaves nothing' until_true gone

# --- without anything to give up nothing is kept ---

$another mkdir "$TMP/mine" 2>/dev/null || { mkdir "$TMP/mine" && chown 1234:1234 "$TMP/mine"; }
cp "$BIN/offcpu-record" "$TMP/bin/"
STACKTOOLS_CACHE=$TMP/mine/cache $another --bounding-set=-all "$TMP/bin/offcpu-record" --mode procfs -o "$TMP/mine/u.cap" -p "$pid" >/dev/null 2>"$TMP/rec.err" </dev/null 7>&- &
rec_pid=$!
at_exit_kill "$rec_pid"
until_true test -e "$TMP/mine/u.cap"
sleep 0.5
is "$(child thread-helper)$(child file-broker)" '' 'an ordinary user needs neither of them'
rec_stop
is "$rc $(waits "$TMP/mine/u.cap" '$n++ if $w->{comm} eq "s-futex"')" '0 1' 'and records his own'
tap_done
