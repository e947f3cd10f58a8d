#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# A process of the recorder that is stopped, from its first moment or while it records, keeps no one waiting
# for ever: Ctrl-C ends the recorder, and no process is left. And a limit of open files that is too low.
# shellcheck disable=SC2016,SC2154,SC2317 # Perl's variables; $rc and others of tap.sh; functions that ok calls
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf
mkfifo "$TMP/hold"
exec 7<>"$TMP/hold"
export STACKTOOLS_CACHE="$TMP/cache"
sleep 1000 7>&- &
idle=$!
at_exit_kill "$idle"

# how long the recorder may take from Ctrl-C to its end, in seconds; it is less than one on an idle machine
BOUND=30

# STOPS N COMMAND...: starts COMMAND, with SIGINT as in a terminal's foreground, stops its Nth child as soon as
# there is one, waits until it has a capture (OUT) or does not go on for a second, and interrupts it; prints its
# status, how long it took then, which child was stopped, and what was left of it
# shellcheck disable=SC2016 # Perl's variables
STOPS='use strict; use warnings; use POSIX ":sys_wait_h"; use Time::HiRes qw(time sleep);
	my ($n, $out, @command) = @ARGV;
	my $pid = fork // die; if (!$pid) { $SIG{INT} = "DEFAULT"; open STDOUT, ">", "/dev/null"; exec @command or exit 127 }
	my ($stopped, $status, %seen) = (0);
	my $end = time + 60;
	my $began = 0;
	while (!$stopped && time < $end && waitpid($pid, WNOHANG) == 0) {
		if (!$began && ($began = -s $out)) { $end = time + 1 }
		open my $f, "<", "/proc/$pid/task/$pid/children" or last;
		for my $child (split " ", <$f> // "") {
			next if $seen{$child}++;
			next if keys(%seen) != $n;
			kill "STOP", $child;
			$stopped = $child;
		}
	}
	my $comm = "none";
	sleep 1 if $stopped;
	if ($stopped && open my $f, "<", "/proc/$stopped/comm") { chomp($comm = <$f>) }
	my $from = time;
	kill "INT", $pid;
	$end = time + 120;
	until (waitpid($pid, WNOHANG) > 0 || time > $end) { sleep 0.01 }
	$status = time > $end ? "never" : WIFEXITED($?) ? WEXITSTATUS($?) : "signal " . WTERMSIG($?);
	my $took = time - $from;
	kill "KILL", $pid if $status eq "never";
	# one that has ended, and that its new parent has not waited for yet, is gone, too
	sub lives { open my $f, "<", "/proc/$_[0]/stat" or return 0; (<$f> // "") !~ /\) [ZX] / }
	my $until = time + ($comm eq "sleep" ? 1 : 20);
	sleep 0.05 while $stopped && lives($stopped) && time < $until;
	my $left = $stopped && lives($stopped) ? "left" : "gone";
	kill "KILL", $stopped if $left eq "left";
	printf "%s %.3f %s %s\n", $status, $took, $comm, $left;'

# at_start MODE N ARG...: the Nth child that the recorder starts is stopped at once
at_start() {
	s_mode=$1 s_n=$2
	shift 2
	# shellcheck disable=SC2046 # four words
	set -- $(perl -e "$STOPS" "$s_n" "$TMP/s.cap" "$BIN/offcpu-record" -q --mode "$s_mode" --force -o "$TMP/s.cap" "$@" 2>"$TMP/s.err" 7>&-)
	[ "$3" = none ] && return 1
	diag_line="$s_mode: child $s_n ($3) stopped at its start: status $1 after $2 s"
	echo "$diag_line" | diag
	like "$1" '^[012]$' "$s_mode: with child $s_n stopped at once, Ctrl-C ends the recorder ($1: $(head -n 1 "$TMP/s.err"))"
	ok "$s_mode: within $BOUND s" perl -e "exit !($2 < $BOUND)"
	# a command that had been executed by then goes on after Ctrl-C
	is "$4" "$([ "$3" = sleep ] && echo left || echo gone)" "$s_mode: and the stopped process with it"
}

for mode in btf procfs; do
	n=1
	while at_start $mode $n -p "$idle"; do
		n=$((n + 1))
		[ $n -gt 8 ] && break
	done
	ok "$mode: each process that the recorder starts was stopped once" test $n -gt 2
done
# a command that was started goes on after Ctrl-C, and one that was not is killed
at_start btf 1 -- sleep 2

# while_recording MODE NAME ARG...: that process is stopped while the recording goes on
while_recording() {
	w_mode=$1 w_name=$2
	shift 2
	rec_start "$TMP/w.cap" -v --mode "$w_mode" "$@"
	w_pid=$(pgrep -P "$rec_pid" "^$w_name\$")
	ok "$w_mode: there is a $w_name" test -n "$w_pid"
	kill -STOP "$w_pid"
	"$OBJ/t/work/deep" 20 </dev/null >/dev/null 2>&1 7>&- # something new to look at, with -c
	sleep 1
	w_from=$(date +%s)
	rec_stop INT
	w_took=$(($(date +%s) - w_from))
	echo "$w_mode: $w_name stopped while recording: status $rc after $w_took s" | diag
	like "$rc" '^[01]$' "$w_mode: with $w_name stopped while recording, Ctrl-C ends the recorder"
	ok "$w_mode: within $BOUND s ($w_took s)" test "$w_took" -lt $BOUND
	ok "$w_mode: and $w_name with it" until_true sh -c "! kill -0 $w_pid 2>/dev/null"
}

for name in file-broker unwind-tables unwind-cache; do
	while_recording btf $name -c deep
done
for name in thread-helper file-broker unwind-tables unwind-cache; do
	while_recording procfs $name --ptrace -p "$idle"
done

# One that replies, but a second late each time: all that is asked for at the end, here by 60 processes with JIT
# code, has one limit
maps=
for _ in $(seq 60); do
	"$OBJ/t/work/jit" map 600 </dev/null >/dev/null 2>&1 7>&- &
	at_exit_kill $!
	maps="$maps /tmp/perf-$!.map" # killed, it cannot remove it
done
rec_start "$TMP/slow.cap" --mode btf -c jit
sleep 1
w_pid=$(pgrep -P "$rec_pid" '^file-broker$')
perl -e 'my $pid = shift; while (kill "STOP", $pid) { select undef, undef, undef, 1; kill "CONT", $pid; select undef, undef, undef, 0.01 }' \
	"$w_pid" 7>&- &
at_exit_kill $!
w_from=$(date +%s)
rec_stop INT
w_took=$(($(date +%s) - w_from))
ok "a file-broker that is slow keeps the recorder for less than $BOUND s ($w_took s)" test "$w_took" -lt $BOUND
is "$rc" 1 "its status says that something is missing"
like "$(cat "$TMP/rec.err")" 'lost: [1-9][0-9]* files and maps not opened: the process that opens them had ended' "and the summary what"
is "$(waits "$TMP/slow.cap" '$h{$w->{comm}}++ if !$w->{initial} && !$w->{open}' | grep -c '^jit ')" 1 "all else is in the capture"
# shellcheck disable=SC2086 # a list
rm -f $maps

# The limit of open files: the soft one is raised, and the command gets the caller's.
limits() { # SOFT HARD COMMAND...
	l_soft=$1 l_hard=$2
	shift 2
	run prlimit --nofile="$l_soft:$l_hard" timeout -k 5 60 "$@" 7>&-
}
limits 110 20000 "$BIN/offcpu-record" --mode btf --force -o "$TMP/l.cap" -p "$idle" -d 0.3
is "$rc" 0 "ulimit -Sn 110: the recording is complete, for the limit is raised"
is "$(grep -c degraded "$err")" 0 "ulimit -Sn 110: nothing is missing"
limits 110 20000 "$BIN/offcpu-record" -q --force -o "$TMP/l.cap" -- sh -c 'ulimit -Sn; ulimit -Hn'
is "$(cat "$out")" "110
20000" "ulimit -Sn 110: a command has the caller's limits"
limits 60 60 "$BIN/offcpu-record" --mode btf --force -o "$TMP/l.cap" -p "$idle" -d 0.3
is "$rc" 2 "ulimit -Hn 60: mode btf is not possible"
like "$(cat "$err")" 'hint: no more than 60 files may be open \(hard limit\): ulimit -Hn 1024, as root' "ulimit -Hn 60: the message says what to do"
limits 60 60 "$BIN/offcpu-record" --force -o "$TMP/l.cap" -p "$idle" -d 0.3
like "$rc" '^[01]$' "ulimit -Hn 60: mode auto records all the same"
like "$(cat "$err")" 'not btf: .*no more than 60 files may be open' "ulimit -Hn 60: it says why not in mode btf"
like "$(cat "$err")" 'recording in mode (raw|procfs)' "ulimit -Hn 60: and in which mode"
tap_done
