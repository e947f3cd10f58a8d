#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# What a recorder has left of its privileges while it records, and that
# nothing is missing in the capture for want of them.
# shellcheck disable=SC2016,SC2154,SC2317 # Perl's variables; $rc and others of tap.sh; functions that ok calls
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf
USER_ID=1234
KEPT=cap_dac_read_search,cap_sys_ptrace,cap_bpf,cap_checkpoint_restore
chmod 755 "$TMP"
mkfifo "$TMP/hold"
exec 7<>"$TMP/hold"
command -v capsh >/dev/null || skip_all "no capsh"

# field PID NAME: of /proc/PID/status
field() {
	awk -v n="$2:" '$1 == n { print $2; exit }' "/proc/$1/status"
}

# caps PID: every set of all its threads, in one word when they are all empty
caps() {
	cat /proc/"$1"/task/*/status | awk '/^Cap/ { print $2 }' | sort -u | tr '\n' ' '
}

# child NAME: of the recorder
child() {
	pgrep -P "$rec_pid" "^$1\$"
}

none=0000000000000000

# confined NAME: the recorder that runs and its processes
confined() {
	is "$(caps "$rec_pid")" "$none " "$1: the recorder has no capability in any set of any thread"
	is "$(field "$rec_pid" NoNewPrivs)" 1 "$1: and gets none"
	broker=$(child file-broker)
	worker=$(child unwind-tables)
	is "$(capsh --decode="$(field "$broker" CapPrm)" | sed 's/.*=//')" "$KEPT" "$1: the process that opens keeps what opening takes"
	is "$(field "$broker" CapEff)" "$(field "$broker" CapPrm)" "$1: which is what it uses"
	is "$(field "$broker" CapInh) $(field "$broker" CapBnd) $(field "$broker" CapAmb)" "$none $none $none" "$1: it can get no other"
	is "$(field "$broker" NoNewPrivs) $(field "$broker" Seccomp)" "1 2" "$1: it is under a filter of system calls"
	is "$(caps "$worker")" "$none " "$1: the process that reads files has no capability"
	is "$(field "$worker" NoNewPrivs) $(field "$worker" Seccomp)" "1 2" "$1: it is under a filter of system calls"
	is "$(ps -o sid= -p "$broker" | tr -d ' ') $(ps -o sid= -p "$worker" | tr -d ' ')" "$broker $worker" "$1: both are out of the terminal's reach"
}

gone() {
	! kill -0 "$broker" 2>/dev/null && ! kill -0 "$worker" 2>/dev/null
}

sleep 1000 7>&- &
idle=$!
at_exit_kill "$idle"
rec_start "$TMP/p.cap" -v -p "$idle"
confined "-p"
rec_stop
is "$rc" 0 "-p: the recording is complete"
ok "-p: nothing of the recorder is left" gone
like "$(grep privileges: "$TMP/rec.err")" 'no capabilities, none to be had.*CAP_DAC_READ_SEARCH.*seccomp' "-v tells what was given up and kept"
like "$("$BIN/capinfo" "$TMP/p.cap")" 'privileges=no capabilities, none to be had.*CAP_SYS_PTRACE' "the capture says it too"

rec_start "$TMP/a.cap" -a
confined "-a"
# another user's programs, in a folder that is that user's alone: one that stays, and many that do not
install -d -m 700 -o $USER_ID -g $USER_ID "$TMP/private"
install -m 700 -o $USER_ID -g $USER_ID "$OBJ/t/work/deep" "$TMP/private/deep-private"
install -m 700 -o $USER_ID -g $USER_ID "$OBJ/t/work/chain" "$TMP/private/chain-private"
setpriv --reuid=$USER_ID --regid=$USER_ID --clear-groups "$TMP/private/chain-private" <"$TMP/hold" >"$TMP/chain.out" 7>&- &
chain=$!
at_exit_kill "$chain"
for _ in 1 2 3 4 5; do
	setpriv --reuid=$USER_ID --regid=$USER_ID --clear-groups "$TMP/private/deep-private" 20 </dev/null >/dev/null 2>&1 7>&-
done
# a program that only its own mount namespace has
mkdir "$TMP/ns"
unshare -m sh -c "mount -t tmpfs none '$TMP/ns' && cp '$OBJ/t/work/chain' '$TMP/ns/chain-in-ns' &&
	exec '$TMP/ns/chain-in-ns'" <"$TMP/hold" >"$TMP/ns.out" 7>&- &
ns=$!
at_exit_kill "$ns"
# they wait anew, before and after their tables are there
for _ in 1 2 3 4 5 6; do
	sleep 0.5
	kill -STOP "$chain" "$ns"
	kill -CONT "$chain" "$ns"
done
sleep 1
rec_stop
kill "$chain" "$ns"
ok "-a: nothing of the recorder is left" gone
like "$rc" '^[01]$' "-a: it ends as ever"
is "$(counter "$TMP/a.cap" broker.lost)" 0 "-a: every request was answered"
# others' files may be gone when they are to be read
id=$(readelf -n "$OBJ/t/work/chain" | awk '/Build ID/ { print $3 }')
is "$("$BIN/capinfo" --list-build-ids "$TMP/a.cap" | sed 's,/.*/,,' | grep chain- | sort)" "$id chain-in-ns
$id chain-private" "-a: the files of both were read"
for comm in chain-private chain-in-ns; do
	is "$(waits "$TMP/a.cap" '$n++ if $w->{process_comm} eq "'$comm'" && user() =~ /block_in_/ && $w->{user_stack_verdict} eq "complete"' | awk '{ print ($1 > 0) }')" 1 \
		"-a: $comm, which began meanwhile: stacks complete, with names"
done
is "$(waits "$TMP/a.cap" '$n++ if $w->{comm} =~ /^(file-broker|unwind-tables|offcpu-record)$/ && $w->{pid} =~ /^('"$rec_pid|$broker|$worker"')$/')" 0 \
	"-a: no process of the recorder's is recorded"

# what it maps later: a library in another user's folder
cat >"$TMP/lib.c" <<-'C'
	#include <sys/syscall.h>
	#include <time.h>
	__attribute__((noinline)) static long later_sleeps(void)
	{
		struct timespec ts = {.tv_nsec = 300000000};
		long ret;
		__asm__ volatile("syscall" : "=a"(ret) : "0"((long)SYS_nanosleep), "D"(&ts), "S"((void *)0)
		                 : "rcx", "r11", "memory");
		return ret;
	}
	void later_entry(void);
	void later_entry(void) { later_sleeps(); __asm__ volatile("" ::: "memory"); }
C
${CC:-cc} -O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls -shared -fPIC -o "$TMP/private/liblater.so" "$TMP/lib.c"
chown $USER_ID "$TMP/private/liblater.so"
install -m 755 "$OBJ/t/work/dl" "$TMP/loads-later"
rec_start "$TMP/c.cap" -c loads-later
confined "-c"
setpriv --reuid=$USER_ID --regid=$USER_ID --clear-groups "$TMP/loads-later" "$TMP/private/liblater.so" later_entry >/dev/null 2>&1 7>&-
rec_stop
is "$(waits "$TMP/c.cap" '$n++ if user() =~ /^later_sleeps;later_entry/ && $w->{total_ns} > 2e8')" 1 \
	"-c: a library that another user loads meanwhile is named"

# a command keeps everything
cat >"$TMP/show" <<'SH'
#!/bin/sh
grep -E '^(Cap|NoNewPrivs|Seccomp:|Uid|Gid|Groups)' /proc/self/status
cat /proc/self/limits
echo made >"$1" && cat "$1"
while [ ! -e "$1.seen" ]; do sleep 0.1; done
SH
chmod 755 "$TMP/show"
: >"$TMP/made.own.seen"
"$TMP/show" "$TMP/made.own" >"$TMP/show.own"
"$BIN/offcpu-record" -o "$TMP/cmd.cap" --force -- "$TMP/show" "$TMP/made.rec" >"$TMP/show.rec" 2>"$err" </dev/null 7>&- &
rec_pid=$!
at_exit_kill "$rec_pid"
until_true test -s "$TMP/made.rec"
until_true recording "$rec_pid" "$TMP/cmd.cap"
confined "a command"
: >"$TMP/made.rec.seen"
wait "$rec_pid"
same "$TMP/show.rec" "$TMP/show.own" "a command has all the rights, limits and files that it has without a recorder"
install -m 4755 "$(command -v id)" "$TMP/suid-id"
run timeout 20 setpriv --reuid=$USER_ID --regid=$USER_ID --clear-groups "$TMP/suid-id" -u
want=$(cat "$out")
run timeout 20 "$BIN/offcpu-record" -q --force -o "$TMP/suid.cap" -- setpriv --reuid=$USER_ID --regid=$USER_ID --clear-groups "$TMP/suid-id" -u
is "$(cat "$out")" "$want" "a program with the set-user-ID bit keeps it, as the command"

# The broker ends: told, counted, and the recording goes on
"$OBJ/t/work/switch" sleep 100000000 1 </dev/null >/dev/null 2>&1 7>&- &
at_exit_kill "$!"
rec_start "$TMP/k.cap" -a
broker=$(child file-broker)
kill -9 "$broker"
killed=$(perl -MTime::HiRes=clock_gettime,CLOCK_MONOTONIC -e 'printf "%d", clock_gettime(CLOCK_MONOTONIC) * 1e9')
setpriv --reuid=$USER_ID --regid=$USER_ID --clear-groups sleep 0.5 7>&-
sleep 1
ok "a recorder whose broker was killed goes on" kill -0 "$rec_pid"
rec_stop
like "$rc" '^[01]$' "and ends as ever"
like "$(cat "$TMP/rec.err")" 'not opened any more: the process that opens files was killed by SIGKILL' "it says what is missing, and why"
like "$("$BIN/capinfo" "$TMP/k.cap")" 'broker=the process that opens files was killed by SIGKILL' "so does the capture"
ok "what was not opened is counted" test "$(counter "$TMP/k.cap" broker.lost)" -gt 0
ok "waits were recorded to the end" test "$(waits "$TMP/k.cap" '$n++ if $w->{comm} eq "switch" && $w->{last_ns} > '"$killed")" -gt 0

# A recorder that is killed takes them with it
rec_start "$TMP/9.cap" -p "$idle"
broker=$(child file-broker)
worker=$(child unwind-tables)
rec_stop KILL
ok "a recorder that is killed leaves no process" until_true gone

# With file capabilities: the user's own, and no more
mkdir -m 777 "$TMP/open"
install -m 755 "$BIN/offcpu-record" "$TMP/open/offcpu-record"
if setcap cap_bpf,cap_perfmon+ep "$TMP/open/offcpu-record" 2>/dev/null; then
	setpriv --reuid=$USER_ID --regid=$USER_ID --clear-groups sleep 1000 7>&- &
	theirs=$!
	at_exit_kill "$theirs"
	until_true grep -q '^sleep$' "/proc/$theirs/comm" # it was setpriv, which is root's
	setpriv --reuid=$USER_ID --regid=$USER_ID --clear-groups "$TMP/open/offcpu-record" -q -o "$TMP/open/u.cap" -p "$theirs" >"$TMP/u.out" 2>&1 7>&- &
	rec_pid=$!
	until_true recording "$rec_pid" "$TMP/open/u.cap"
	broker=$(child file-broker)
	is "$(field "$rec_pid" CapPrm) $(field "$rec_pid" CapEff) $(field "$rec_pid" NoNewPrivs)" "$none $none 1" \
		"file capabilities are given up too"
	is "$(capsh --decode="$(field "$broker" CapPrm)" | sed 's/.*=//')" cap_bpf "and what opens keeps what it may need of them"
	kill -INT "$rec_pid"
	wait "$rec_pid"
	is "$?" 0 "the recording is complete"
	is "$(waits "$TMP/open/u.cap" '$n++ if user() =~ /nanosleep/')" 1 "with its stack"
else
	skip "file capabilities" "setcap fails here"
fi
tap_done
