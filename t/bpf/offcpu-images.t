#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Processes that exec, load and unload code, fork, exit, and reuse PIDs.
# shellcheck disable=SC2016,SC2119,SC2154,SC2317 # Perl's variables; $rc and others of tap.sh; functions that ok calls
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf

export BIN TMP TOP # for the scripts inside PID namespaces

# exec during the recording: one PID, two process images
rec "$TMP/e.cap" -- bash -c 'read -t 0.3 <> <(:); exec sleep 0.3'
is "$rc" 0 "a command that execs another is recorded"
is "$(waits "$TMP/e.cap" '$h{$w->{process}} = "$w->{pid} $w->{exe}" if $w->{total_ns} > 2e8' | awk '{ print $2 }' | uniq | wc -l)" 1 \
	"exec: both images have the same PID"
is "$(waits "$TMP/e.cap" '$h{$w->{exe}} += 1 if $w->{total_ns} > 2e8' | tr '\n' ' ')" \
	"$(readlink -f "$(command -v bash)") 1 $(readlink -f "$(command -v sleep)") 1 " "exec: each image has its own executable"
is "$(waits "$TMP/e.cap" '$h{$w->{process_comm}} += 1 if $w->{total_ns} > 2e8' | tr '\n' ' ')" "bash 1 sleep 1 " "exec: each image has its own name"
is "$(waits "$TMP/e.cap" '$n++ if $w->{total_ns} > 2e8 && $w->{exe} =~ /sleep/ && user() !~ /nanosleep/')" 0 \
	"exec: addresses of the second image are resolved with its own mappings"
is "$(waits "$TMP/e.cap" '$n++ if $w->{exe} =~ /bash/ && $w->{total_ns} > 2e8 && user() !~ /select|poll|read/')" 0 \
	"exec: addresses of the first image are resolved with the mappings that it had"

# two libraries, loaded at the same address one after the other
sleeping_libraries 300000000 || fail "cannot compile a library"
"$BIN/offcpu-record" -q --force -o "$TMP/dl.cap" -- "$OBJ/t/work/dl" "$TMP/liba.so" a_entry "$TMP/libb.so" b_entry \
	"$TMP/liba.so" a_entry >"$TMP/dl" 2>"$err"
is $? 0 "a program that loads and unloads libraries is recorded"
is "$(awk '{ print $2 }' "$TMP/dl" | sort -u | wc -l)" 1 "the libraries are loaded at the same address"
is "$(waits "$TMP/dl.cap" '$h{(split ";main", user())[0]} += $w->{count} if $w->{total_ns} > 2e8')" \
	"a_sleeps;a_entry 2
b_sleeps;b_entry 1" "frames have names from the library that was loaded at the time of the wait"

# a program that ends: the capture has the mappings that /proc/PID/maps showed
cat >"$TMP/maps.pl" <<'PL'
require POSIX; require Socket;
open my $f, "<", "/proc/$$/maps"; my @l = grep { / r-xp /} <$f>;
open my $o, ">", $ARGV[0]; print $o @l; close $o;
select undef, undef, undef, 0.3;
PL
rec "$TMP/m.cap" -- perl "$TMP/maps.pl" "$TMP/maps"
is "$rc" 0 "a program that ends is recorded"
# squeeze FILE: prints mappings without comments and [vsyscall], with single spaces, sorted
squeeze() {
	awk '!/^#/ && $6 != "[vsyscall]" { print $1, $2, $3, $4, $5, $6 }' "$1" | sort
}
squeeze "$TMP/maps" >"$TMP/maps.want"
"$BIN/capinfo" --maps -p "$(waits "$TMP/m.cap" '$n = $w->{pid}')" "$TMP/m.cap" >"$TMP/m.maps"
squeeze "$TMP/m.maps" >"$TMP/maps.got"
same "$TMP/maps.got" "$TMP/maps.want" "the capture has the mappings of a program's /proc/PID/maps"
is "$(waits "$TMP/m.cap" '$n++ if kernel() =~ /select/ && $w->{user_stack}[0]{symbol} eq "?"')" 0 \
	"the frames of a process that has ended have names"

# the same with a process that existed before the recording
mkfifo "$TMP/end"
exec 6<>"$TMP/end"
python3 -c 'import sys, ctypes, ssl
print("ready", flush=True)
sys.stdin.readline()' <"$TMP/end" >"$TMP/py" 6>&- &
py=$!
at_exit_kill "$py"
until_true grep -q ready "$TMP/py"
grep ' r-xp ' "/proc/$py/maps" >"$TMP/maps2"
rec_start "$TMP/m2.cap" -q -p "$py" 6>&-
echo >&6
wait "$rec_pid"
is "$?" 0 "the recording ends with status 0 when its target exits"
exec 6>&-
"$BIN/capinfo" --maps "$TMP/m2.cap" >"$TMP/m2.maps"
squeeze "$TMP/maps2" >"$TMP/maps.want"
squeeze "$TMP/m2.maps" >"$TMP/maps.got"
is "$(comm -13 "$TMP/maps.got" "$TMP/maps.want")" "" "the capture has all mappings of a process that existed before"
ok "the capture says that the target exited" sh -c "\"$BIN/capinfo\" \"$TMP/m2.cap\" | grep -q 'target exited'"

# Many short processes: none is missing. A sleep is not a wait if its timer expires before the thread has left
# the CPU, so the sleep is longer than a busy CPU takes to return to a thread.
rec "$TMP/x.cap" -- sh -c 'for i in $(seq 10); do for j in $(seq 30); do sleep 0.03 & done; wait; done'
is "$rc" 0 "300 short processes: nothing is lost"
sleep_exe=$(readlink -f "$(command -v sleep)")
# a fork of the shell that waits before its exec is an image of its own: count only images of the program
is "$(waits "$TMP/x.cap" '$h{$w->{process}} = 1 if $w->{exe} eq "'"$sleep_exe"'"' | wc -l)" 300 "300 short processes: each has its process image"
is "$(waits "$TMP/x.cap" '$h{$w->{pid}} = 1 if $w->{exe} eq "'"$sleep_exe"'"' | wc -l)" 300 "300 short processes: each has its PID"
is "$(waits "$TMP/x.cap" '$h{$w->{process}} = $w->{exe} if $w->{count} && $w->{exe} eq "'"$sleep_exe"'"' | wc -l)" \
	"$(waits "$TMP/x.cap" '$h{$w->{process}} = 1 if $w->{process_comm} eq "sleep"' | wc -l)" "300 short processes: images with the name sleep have the executable sleep"
is "$(counter "$TMP/x.cap" lost.maps)" "" "300 short processes: none lacks its mappings"
is "$(counter "$TMP/x.cap" lost.process_events)" "" "300 short processes: no process event is lost"
ok "300 short processes: seen = recorded + filtered + lost" balanced "$TMP/x.cap"

# The recorder gets no CPU meanwhile: first it hears of their waits, then of their beginnings.
rec "$TMP/late.cap" -- sh -c 'kill -STOP $PPID; for i in $(seq 60); do sleep 0.03 & done; wait; kill -CONT $PPID'
is "$rc" 0 "60 processes while the recorder is stopped: nothing is lost"
is "$(waits "$TMP/late.cap" '$h{$w->{process}} = 1 if $w->{exe} eq "'"$sleep_exe"'"' | wc -l)" 60 \
	"60 processes while the recorder is stopped: each has its process image"

# forks without exec: children that wait
rec "$TMP/forks.cap" --preempted -- perl -e 'for (1 .. 200) { next if fork; select undef, undef, undef, 0.05; exit } 1 while wait > 0'
is "$rc" 0 "200 forks: nothing is lost"
is "$(waits "$TMP/forks.cap" '$h{$w->{pid}} = 1 if kernel() =~ /select|poll/' | wc -l)" 200 "200 forks: the wait of each child is recorded"
is "$(waits "$TMP/forks.cap" '$n++ if kernel() =~ /select|poll/ && $w->{user_stack}[0]{source} eq "none"')" 0 \
	"200 forks: a child without exec has its parent's mappings"

# a thousand threads
mkfifo "$TMP/in"
"$OBJ/t/work/idle" 1000 <"$TMP/in" >"$TMP/pid" &
exec 7>"$TMP/in"
until_true test -s "$TMP/pid"
rec "$TMP/k.cap" -d 1 -p "$(cat "$TMP/pid")"
exec 7>&-
is "$rc" 0 "1,000 threads are recorded"
is "$(waits "$TMP/k.cap" '$h{$w->{tid}} = 1 if abs($w->{total_ns} - $c{duration_ns}) < $c{duration_ns} / 100' | wc -l)" 1001 \
	"1,000 threads: each waits for the whole recording, to 1 %"

# has_blocks CAP: true if CAP is longer than its header
has_blocks() {
	[ "$(stat -c %s "$1" 2>/dev/null || echo 0)" -gt 24 ]
}

# the same PID twice, in a new PID namespace
if unshare --pid --fork --mount-proc true 2>/dev/null; then
	cat >"$TMP/reuse.sh" <<-'SH'
		"$BIN/offcpu-record" --force -o "$TMP/r.cap" -a 2>"$TMP/reuse.err" &
		rec=$!
		read -r _ <"$TMP/go"
		echo 299 >/proc/sys/kernel/ns_last_pid
		sleep 0.3 &
		echo "first $!"
		wait $!
		echo 299 >/proc/sys/kernel/ns_last_pid
		perl -e 'select undef, undef, undef, 0.4' &
		echo "second $!"
		wait $!
		kill -INT $rec
		wait $rec
		echo "status $?"
		grep 'lost: [0-9]' "$TMP/reuse.err"
	SH
	mkfifo "$TMP/go"
	timeout 30 unshare --pid --fork --mount-proc sh "$TMP/reuse.sh" >"$TMP/reuse" 2>&1 &
	reuse=$!
	# waits outside: a process that ends while the recording begins is one whose mappings are lost
	until_true has_blocks "$TMP/r.cap"
	echo >"$TMP/go"
	wait $reuse
	is "$(tr '\n' ' ' <"$TMP/reuse")" "first 300 second 300 status 0 " "a PID is used twice during the recording"
	is "$(waits "$TMP/r.cap" '$h{$w->{process}} = $w->{process_comm} if $w->{pid} == 300 && $w->{total_ns} > 2e8' | awk '{ print $2 }' | sort | tr '\n' ' ')" \
		"perl sleep " "a PID used twice: the capture has two processes"
	is "$(waits "$TMP/r.cap" '$h{$w->{exe}} = 1 if $w->{pid} == 300 && $w->{total_ns} > 2e8 && user() =~ /nanosleep|select/' | wc -l)" 2 \
		"a PID used twice: each process has its own executable and symbols"

	cat >"$TMP/inside.sh" <<-'SH'
		sleep 100 &
		pid=$!
		echo "$pid"
		"$BIN/offcpu-record" -q --force -o "$TMP/ns.cap" -d 0.5 -p "$pid"
		echo "$?"
		kill "$pid"
	SH
	timeout 30 unshare --pid --fork --mount-proc sh "$TMP/inside.sh" >"$TMP/inside" 2>&1
	is "$(tail -n 1 "$TMP/inside")" 0 "-p inside a PID namespace takes a PID of this namespace"
	is "$(waits "$TMP/ns.cap" 'push @o, "$w->{pid} $w->{process_comm}"')" "$(head -n 1 "$TMP/inside") sleep" \
		"a capture made inside a PID namespace has PIDs of this namespace"
	# and from outside: the PID here and the PID in the namespace
	# unshare(1) ignores every signal but SIGKILL while it waits for its child
	timeout -s KILL 60 unshare --pid --fork --kill-child --mount-proc sleep 100 2>/dev/null &
	outer=$!
	at_exit_kill "$outer"
	# sets $inner to the PID of the child of unshare, which is timeout's child
	inner_there() {
		inner=$(pgrep -x sleep -P "$(pgrep -P "$outer")")
	}
	until_true inner_there 2>/dev/null
	rec "$TMP/out.cap" -d 0.5 -p "$inner"
	is "$(waits "$TMP/out.cap" 'push @o, "$w->{pid} $w->{ns_pid}"')" "$inner 1" "from outside a PID namespace: the capture has the PID here and the PID there"
	kill -KILL "$inner"
else
	skip "PID namespaces" "unshare --pid is not allowed here"
fi
tap_done
