#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Real programs from recording to folded lines: offcpu-record, symbolize, kallsyms-resolve, fold.
# shellcheck disable=SC2016,SC2119,SC2154,SC2317 # Perl's variables; $rc and others of tap.sh; functions that ok calls
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf
cd "$TMP" || exit 1

# pipeline NAME: makes NAME.folded from NAME.cap; $rc is 0 only if all tools exit with 0
pipeline() {
	"$BIN/symbolize" "$1.cap" >"$1.txt" 2>"$1.err"
	rc=$?
	"$BIN/kallsyms-resolve" <"$1.txt" >"$1.named" 2>>"$1.err" || rc="$rc kallsyms-resolve $?"
	"$BIN/fold" "$1.named" >"$1.folded" 2>>"$1.err" || rc="$rc fold $?"
}

# program NAME COMM KERNEL USER COMMAND...: records COMMAND and finds its main wait: thread COMM, user
# frame USER, kernel frame KERNEL
program() {
	name=$1 comm=$2 kernel=$3 user=$4
	shift 4
	rec "$name.cap" -- "$@"
	is "$rc" 0 "$name is recorded"
	pipeline "$name"
	is "$rc" 0 "$name: symbolize | kallsyms-resolve | fold exits with status 0"
	if awk -v re="^$comm;.*$user.*;.*$kernel" '$0 ~ re && $NF >= 200000000 { found = 1 } END { exit !found }' "$name.folded"; then
		pass "$name: the folded lines have its wait, $user ... $kernel"
	else
		fail "$name: the folded lines have its wait, $user ... $kernel"
		diag <"$name.folded"
	fi
	is "$(awk '{ n += $NF } END { printf "%.0f\n", n }' "$name.folded")" "$(counter "$name.cap" waits.recorded_ns)" \
		"$name: the folded times add up to the recorded time, to the nanosecond"
	is "$("$BIN/fold" --unit=count "$name.txt" | awk '{ n += $NF } END { print n + 0 }')" "$(counter "$name.cap" waits.recorded)" \
		"$name: the folded counts add up to the recorded waits"
}

program bash bash 'do_wait' 'wait4|waitpid' bash -c 'sleep 0.3; sleep 0.3; :'
program sleep sleep 'hrtimer_nanosleep' 'nanosleep' sleep 0.4
program python python3 'hrtimer_nanosleep|do_nanosleep' 'nanosleep' python3 -c 'import time; time.sleep(0.4)'
program perl perl 'pipe_read' 'read' perl -e 'pipe my $r, my $w; if (!fork) { select undef, undef, undef, 0.4; print $w "x"; exit } sysread $r, my $x, 1; wait'
program epoll python3 'do_epoll_wait|ep_poll' 'epoll_wait' python3 -c '
import select
e = select.epoll(); e.poll(0.4)'
if command -v sqlite3 >/dev/null; then
	mkfifo sql
	sh -c 'exec 3>sql; echo "create table t(a); insert into t values(1);" >&3; sleep 0.4; echo "select count(*) from t;" >&3; sleep 0.1' &
	program sqlite3 sqlite3 'pipe_read|fifo_pipe_read' 'read' sqlite3 "$TMP/db" '.read sql'
	ok "sqlite3: the commit's wait for the disk is in the folded lines, if it waited" sh -c \
		"grep -qE '^sqlite3;.*(sync|io_schedule|jbd2|blk|folio)' sqlite3.folded || ! grep -q 'state=D' sqlite3.txt"
else
	skip "sqlite3 is recorded" "not installed"
fi

# A threaded program: its threads have their names and wait where they should
rec threads.cap -- "$OBJ/t/work/waits"
pipeline threads
is "$rc" 0 "the pipeline handles a threaded C program"
for t in 'w-short .*nanosleep' 'w-long .*nanosleep' 'w-mutex .*futex' 'w-cond .*futex' 'w-pipe .*pipe_read' 'w-ping .*futex' 'w-pong .*nanosleep'; do
	name=${t%% *}
	ok "the folded lines have thread $name with ${t##*\*}" grep -qE "^$name;.*${t#* }" threads.folded
done
is "$(grep -c '\[unknown\]' threads.folded)" "$(grep '\[unknown\]' threads.folded | grep -c ';')" "unknown frames are in a stack with other frames"
ok "fold --threads puts the thread first" sh -c "'$BIN/fold' --threads threads.txt | grep -q '^\[w-long tid=[0-9]*\];w-long;'"

# Other programs read the folded lines, too
flamegraph=$(command -v flamegraph.pl) || flamegraph=/usr/share/perl5/Devel/NYTProf/flamegraph.pl
if [ -e "$flamegraph" ]; then
	run perl "$flamegraph" threads.folded
	is "$rc $(grep -c '^<svg\|w-long' "$out" | sed 's/^[1-9].*/drawn/') $(cat "$err")" "0 drawn " "flamegraph.pl draws the folded lines"
else
	skip "flamegraph.pl draws the folded lines" "libdevel-nytprof-perl is not installed"
fi
ok "kallsyms-resolve names every kernel frame" sh -c "! grep -qE '^\\s+ffff[0-9a-f]{12} \\[unknown\\]' threads.named"
ok "the comment lines of symbolize show the kernel release and the totals" sh -c "grep -q '^# kernel: release=$(uname -r)' threads.txt && grep -q '^# totals: waits=$(counter threads.cap waits.recorded) ' threads.txt"

# A mixed load on the whole system, through pipes, without a file in between
: >over
while [ -e over ]; do "$OBJ/t/work/waits"; done >/dev/null &
timeout 30 "$BIN/offcpu-record" -q -o - -a -d 1.5 2>a.err | "$BIN/symbolize" -q - 2>>a.err | "$BIN/fold" >a.folded 2>>a.err
rm over
wait
ok "-a -o - | symbolize - | fold shows the threads of a running program" sh -c "[ \$(grep -cE '^w-(short|long|pipe|cond|mutex);' a.folded) -ge 5 ]"
is "$(cat a.err)" "" "-a -o - | symbolize - | fold prints nothing on stderr"
tap_done
