#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The privileges that a recorder keeps while it records, and that the capture
# misses nothing for lack of the others.
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

# field PID NAME: prints a field of /proc/PID/status
field() {
	awk -v n="$2:" '$1 == n { print $2; exit }' "/proc/$1/status"
}

# caps PID: prints the distinct values of all capability sets of all threads, one word if all are empty
caps() {
	cat /proc/"$1"/task/*/status | awk '/^Cap/ { print $2 }' | sort -u | tr '\n' ' '
}

# child NAME: prints the PID of a child of the recorder
child() {
	pgrep -P "$rec_pid" "^$1\$"
}

none=0000000000000000

# confined NAME [CAPABILITIES]: checks the running recorder and its processes, and sets $broker and $worker
confined() {
	is "$(caps "$rec_pid")" "$none " "$1: no thread of the recorder has a capability in any set"
	is "$(field "$rec_pid" NoNewPrivs)" 1 "$1: the recorder cannot gain privileges (NoNewPrivs)"
	broker=$(child file-broker)
	worker=$(child unwind-tables)
	is "$(capsh --decode="$(field "$broker" CapPrm)" | sed 's/.*=//')" "${2-$KEPT}" "$1: the broker keeps only the capabilities that it needs"
	is "$(field "$broker" CapEff)" "$(field "$broker" CapPrm)" "$1: all capabilities that the broker keeps are effective"
	is "$(field "$broker" CapInh) $(field "$broker" CapBnd) $(field "$broker" CapAmb)" "$none $none $none" "$1: the broker can get no other capability"
	is "$(field "$broker" NoNewPrivs) $(field "$broker" Seccomp)" "1 2" "$1: the broker has a filter of system calls"
	is "$(caps "$worker")" "$none " "$1: the worker that reads files has no capability"
	is "$(field "$worker" NoNewPrivs) $(field "$worker" Seccomp)" "1 2" "$1: the worker has a filter of system calls"
	is "$(ps -o sid= -p "$broker" | tr -d ' ') $(ps -o sid= -p "$worker" | tr -d ' ')" "$broker $worker" "$1: broker and worker have sessions of their own, without the terminal"
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
ok "-p: no process of the recorder is left" gone
like "$(grep privileges: "$TMP/rec.err")" 'no capabilities, none to be had.*CAP_DAC_READ_SEARCH.*seccomp' "-v reports which privileges were given up and kept"
like "$("$BIN/capinfo" "$TMP/p.cap")" 'privileges=no capabilities, none to be had.*CAP_SYS_PTRACE' "the capture says which privileges were given up and kept"

rec_start "$TMP/a.cap" -a
confined "-a"
# another user's programs, in a folder that only this user may enter: one that keeps running, and short ones
install -d -m 700 -o $USER_ID -g $USER_ID "$TMP/private"
install -m 700 -o $USER_ID -g $USER_ID "$OBJ/t/work/deep" "$TMP/private/deep-private"
install -m 700 -o $USER_ID -g $USER_ID "$OBJ/t/work/chain" "$TMP/private/chain-private"
setpriv --reuid=$USER_ID --regid=$USER_ID --clear-groups "$TMP/private/chain-private" <"$TMP/hold" >"$TMP/chain.out" 7>&- &
chain=$!
at_exit_kill "$chain"
for _ in 1 2 3 4 5; do
	setpriv --reuid=$USER_ID --regid=$USER_ID --clear-groups "$TMP/private/deep-private" 20 </dev/null >/dev/null 2>&1 7>&-
done
# a program whose file exists only in its own mount namespace
mkdir "$TMP/ns"
unshare -m sh -c "mount -t tmpfs none '$TMP/ns' && cp '$OBJ/t/work/chain' '$TMP/ns/chain-in-ns' &&
	exec '$TMP/ns/chain-in-ns'" <"$TMP/hold" >"$TMP/ns.out" 7>&- &
ns=$!
at_exit_kill "$ns"
# both begin new waits, before and after their unwind tables are ready
for _ in 1 2 3 4 5 6; do
	sleep 0.5
	kill -STOP "$chain" "$ns"
	kill -CONT "$chain" "$ns"
done
sleep 1
rec_stop
kill "$chain" "$ns"
ok "-a: no process of the recorder is left" gone
like "$rc" '^[01]$' "-a: the recording ends with status 0 or 1"
like "$(counter "$TMP/a.cap" broker.lost)" '^0?$' "-a: every request was answered"
# only these two: files of other processes may be gone before they are read
id=$(readelf -n "$OBJ/t/work/chain" | awk '/Build ID/ { print $3 }')
is "$("$BIN/capinfo" --list-build-ids "$TMP/a.cap" | sed 's,/.*/,,' | grep chain- | sort)" "$id chain-in-ns
$id chain-private" "-a: the files of both programs were read"
for comm in chain-private chain-in-ns; do
	is "$(waits "$TMP/a.cap" '$n++ if $w->{process_comm} eq "'$comm'" && user() =~ /block_in_/ && $w->{user_stack_verdict} eq "complete"' | awk '{ print ($1 > 0) }')" 1 \
		"-a: $comm, started during the recording, has complete stacks with names"
done
is "$(waits "$TMP/a.cap" '$n++ if $w->{comm} =~ /^(file-broker|unwind-tables|offcpu-record)$/ && $w->{pid} =~ /^('"$rec_pid|$broker|$worker"')$/')" 0 \
	"-a does not record the processes of the recorder"

# a library in another user's folder, which is mapped during the recording
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
confined "-c" "$(echo "$KEPT" | sed 's/,cap_bpf/,cap_perfmon&/')" # for the events of those who become targets
setpriv --reuid=$USER_ID --regid=$USER_ID --clear-groups "$TMP/loads-later" "$TMP/private/liblater.so" later_entry >/dev/null 2>&1 7>&-
rec_stop
is "$(waits "$TMP/c.cap" '$n++ if user() =~ /^later_sleeps;later_entry/ && $w->{total_ns} > 2e8')" 1 \
	"-c: frames in a library that another user loads during the recording have names"

# a command keeps all privileges
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
same "$TMP/show.rec" "$TMP/show.own" "a command has the same privileges, limits and file access as without a recorder"
install -m 4755 "$(command -v id)" "$TMP/suid-id"
run timeout 20 setpriv --reuid=$USER_ID --regid=$USER_ID --clear-groups "$TMP/suid-id" -u
want=$(cat "$out")
run timeout 20 "$BIN/offcpu-record" -q --force -o "$TMP/suid.cap" -- setpriv --reuid=$USER_ID --regid=$USER_ID --clear-groups "$TMP/suid-id" -u
is "$(cat "$out")" "$want" "the set-user-ID bit of a program takes effect in a recorded command"

# The broker ends: reported and counted, and the recording continues.
"$OBJ/t/work/switch" sleep 100000000 1 </dev/null >/dev/null 2>&1 7>&- &
at_exit_kill "$!"
rec_start "$TMP/k.cap" -a
broker=$(child file-broker)
kill -9 "$broker"
killed=$(perl -MTime::HiRes=clock_gettime,CLOCK_MONOTONIC -e 'printf "%d", clock_gettime(CLOCK_MONOTONIC) * 1e9')
setpriv --reuid=$USER_ID --regid=$USER_ID --clear-groups sleep 0.5 7>&-
sleep 1
ok "the recorder continues after its broker was killed" kill -0 "$rec_pid"
rec_stop
like "$rc" '^[01]$' "a recording whose broker was killed ends with status 0 or 1"
like "$(cat "$TMP/rec.err")" 'not opened any more: the process that opens files was killed by SIGKILL' "the recorder reports what is missing without the broker, and why"
like "$("$BIN/capinfo" "$TMP/k.cap")" 'broker=the process that opens files was killed by SIGKILL' "the capture says that the broker was killed"
ok "files not opened without the broker are counted" test "$(counter "$TMP/k.cap" broker.lost)" -gt 0
ok "waits are recorded to the end without the broker" test "$(waits "$TMP/k.cap" '$n++ if $w->{comm} eq "switch" && $w->{last_ns} > '"$killed")" -gt 0

# If the recorder is killed, broker and worker end too.
rec_start "$TMP/9.cap" -p "$idle"
broker=$(child file-broker)
worker=$(child unwind-tables)
rec_stop KILL
ok "no process is left if the recorder is killed" until_true gone

# With file capabilities: the user's own processes
mkdir -m 777 "$TMP/open"
install -m 755 "$BIN/offcpu-record" "$TMP/open/offcpu-record"
if setcap cap_bpf,cap_perfmon+ep "$TMP/open/offcpu-record" 2>/dev/null; then
	setpriv --reuid=$USER_ID --regid=$USER_ID --clear-groups sleep 1000 7>&- &
	theirs=$!
	at_exit_kill "$theirs"
	until_true grep -q '^sleep$' "/proc/$theirs/comm" # until then it is setpriv, which belongs to root
	setpriv --reuid=$USER_ID --regid=$USER_ID --clear-groups "$TMP/open/offcpu-record" -q -o "$TMP/open/u.cap" -p "$theirs" >"$TMP/u.out" 2>&1 7>&- &
	rec_pid=$!
	until_true recording "$rec_pid" "$TMP/open/u.cap"
	broker=$(child file-broker)
	is "$(field "$rec_pid" CapPrm) $(field "$rec_pid" CapEff) $(field "$rec_pid" NoNewPrivs)" "$none $none 1" \
		"the recorder gives up its file capabilities"
	is "$(capsh --decode="$(field "$broker" CapPrm)" | sed 's/.*=//')" cap_bpf "the broker keeps of the file capabilities only what it may need"
	kill -INT "$rec_pid"
	wait "$rec_pid"
	is "$?" 0 "with file capabilities the recording is complete"
	is "$(waits "$TMP/open/u.cap" '$n++ if user() =~ /nanosleep/')" 1 "with file capabilities a wait of the user's process has its stack"
else
	skip "file capabilities" "setcap fails here"
fi
tap_done
