#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Recorded totals against what the recorded threads measured themselves.
# shellcheck disable=SC2016,SC2119,SC2154,SC2317 # Perl's variables; $rc and others of tap.sh; functions that ok calls
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf

# Threads with known waits: nothing of theirs may be missing, and nothing be made up.
stolen=$(steal_ns)
"$BIN/offcpu-record" -v --force --preempted -o "$TMP/w.cap" -- "$OBJ/t/work/waits" >"$TMP/said" 2>"$err"
is $? 0 "a threaded program is recorded to its end"
is "$(wc -l <"$TMP/said")" 8 "all eight threads said what they waited"
stolen=$(($(steal_ns) - stolen + 10000000))
[ "$stolen" -eq 10000000 ] && stolen=0
judged "$TMP/w.cap"

ok "no wait is recorded shorter than the sleep that was asked for" judge asked
ok "what is recorded is what each thread measured, to 1 %" judge measured
ok "blocked and runnable time make wall-clock less schedstat's CPU time, to 1 %" judge off
ok "as many waits are recorded as the threads made" judge count
ok "seen = recorded + filtered + lost, in waits and in ns" balanced "$TMP/w.cap"
is "$(waits "$TMP/w.cap" '$n += $w->{total_ns}')" "$(counter "$TMP/w.cap" waits.recorded_ns)" \
	"the samples' ns are those of waits.recorded_ns"
is "$(waits "$TMP/w.cap" '$n += $w->{count}')" "$(counter "$TMP/w.cap" waits.recorded)" \
	"the samples' counts are those of waits.recorded"
is "$(waits "$TMP/w.cap" '$h{$w->{comm}} = 1 if $w->{comm} =~ /^w-/' | wc -l)" 8 "each thread has its own name"
is "$(waits "$TMP/w.cap" '$n++ if $w->{max_ns} > $w->{total_ns} || $w->{max_ns} * $w->{count} < $w->{total_ns}')" 0 \
	"the longest wait fits total and count everywhere"

# The same without --preempted: what is left out is counted, and the sum is still exact.
rec "$TMP/f.cap" --min 30ms --max 900ms -- "$OBJ/t/work/waits"
is "$rc" 0 "--min and --max record"
ok "with --min and --max too, seen = recorded + filtered + lost" balanced "$TMP/f.cap"
is "$(waits "$TMP/f.cap" '$n++ if $w->{max_ns} < 3e7 || $w->{max_ns} > 9e8')" 0 "no recorded wait is outside --min to --max"
is "$(waits "$TMP/f.cap" '$n += $w->{count} if $w->{comm} eq "w-long" && $w->{total_ns} >= 1e9')" 0 \
	"a wait longer than --max is left out"
ok "and counted as such" test "$(counter "$TMP/f.cap" filtered.max)" -ge 1
ok "shorter ones are counted as such" test "$(counter "$TMP/f.cap" filtered.min)" -ge 40

# An idle server: every thread, with about the whole recording.
mkfifo "$TMP/in"
"$OBJ/t/work/idle" 20 <"$TMP/in" >"$TMP/pid" &
exec 7>"$TMP/in"
until_true test -s "$TMP/pid"
pid=$(cat "$TMP/pid")
at_exit_kill "$pid"
rec "$TMP/idle.cap" -d 2 -p "$pid"
is "$rc" 0 "an idle server is recorded"
dur=$(waits "$TMP/idle.cap" '$n = $c{duration_ns}')
between "$dur" 1990000000 4000000000 "-d 2 records for 2 s"
is "$(waits "$TMP/idle.cap" '$h{$w->{tid}} += $w->{count}' | wc -l)" 21 "all threads of an idle server are there"
is "$(waits "$TMP/idle.cap" '$n++ if abs($w->{total_ns} - $c{duration_ns}) > $c{duration_ns} / 100')" 0 \
	"each with the whole recording, to 1 %"
is "$(waits "$TMP/idle.cap" '$n++ if !$w->{open} || !$w->{initial} || $w->{count} != 1')" 0 \
	"each wait is one, marked as begun before and still open"
is "$(waits "$TMP/idle.cap" '$n++ if kernel() !~ /futex_wait/ && kernel() !~ /pipe_read/')" 0 \
	"a wait that began before has its kernel stack"
is "$(waits "$TMP/idle.cap" '$n++ if $w->{comm} eq "i-wait" && user() !~ /^wait_for_ever;idle(;|$)/')" 0 \
	"and its user stack"
ok "the balance holds for open waits" balanced "$TMP/idle.cap"

# A wait since before the recording that ends in mid-recording, and one that begins there.
rec_start "$TMP/end.cap" -q -p "$pid"
exec 7>&-
wait "$rec_pid"
is $? 0 "the recording ends with its target"
is "$(waits "$TMP/end.cap" '$n += $w->{count} if $w->{tid} == $w->{pid} && $w->{initial} && !$w->{open}')" 1 \
	"a wait that ends in mid-recording is initial and not open"
# on their way out they may wait for each other, where spinlocks sleep (PREEMPT_RT)
is "$(waits "$TMP/end.cap" '$n += $w->{initial} ? 1 : 1000 if $w->{comm} eq "i-wait" && kernel() =~ /futex_wait/')" 20 \
	"threads that wait on to their end are initial"
is "$(waits "$TMP/end.cap" '$n++ if $w->{open}')" 0 "no wait of a process that ended is open"

rec "$TMP/open.cap" -d 1 -- sleep 100
is "$(waits "$TMP/open.cap" '$n += $w->{open} && !$w->{initial} && kernel() =~ /nanosleep/')" 1 \
	"a wait that begins in the recording and goes on is open, not initial"
kill "$(waits "$TMP/open.cap" '$n = $w->{pid}')" 2>/dev/null
tap_done
