#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The whole system under a mixed load: nearly every user stack is complete, no
# complete one is wrong, and the others have reasons.
# shellcheck disable=SC2154 # $rc and others of tap.sh
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf

# only tables that this build makes, no older ones
export STACKTOOLS_CACHE="$TMP/cache"
mkdir "$TMP/w" && cd "$TMP/w" || exit 1
cat >main.c <<'END'
#include <stdio.h>
int main(void)
{
	return printf("%d\n", 1) < 0;
}
END
printf 'all: main\nmain: main.c\n\t%s -O2 -o main main.c && ./main >/dev/null\n' "${CC:-cc}" >Makefile
git init -q repo
export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t
for n in 1 2 3 4 5; do
	echo "$n" >repo/file
	git -C repo add file
	git -C repo commit -q -m "$n"
done

cat >load <<'END'
git_log() { git -C repo log --stat | cat; }
python_storm() { /usr/bin/env python3 -c 'import subprocess
for i in range(10): subprocess.run(["true"], stdout=subprocess.PIPE)'; }
perl_pipes() { perl -e 'for (1 .. 10) { open my $f, "-|", "echo x"; my @l = <$f> } select undef, undef, undef, 0.01'; }
compile() { touch main.c && make -s; }
inserts() { for i in 1 2 3 4 5 6 7 8; do echo "insert into t values($i);"; done | sqlite3 -cmd 'create table if not exists t (i int)' db; }
pipeline() { seq 1 2000 | sort -rn | awk '{ s += $1 } END { print s }' | tr 0-9 a-j; }
python_threads() { python3 -c 'import threading, time
t = [threading.Thread(target=lambda: [time.sleep(0.001) for _ in range(20)]) for _ in range(5)]
[x.start() for x in t]; [x.join() for x in t]'; }
for work in git_log python_storm perl_pipes compile inserts pipeline python_threads; do
	while [ -e go ]; do $work; done >/dev/null 2>&1 &
done
wait
END

# The recording includes everything else on the machine, perhaps from other file system roots. The load runs
# in its own PID namespace, by which plausible recognizes it.
load_begins() {
	: >go
	unshare --pid --fork --kill-child sh load &
	load=$!
}
load_ends() {
	rm go
	wait "$load"
}
load_begins
# First fill the cache with the tables of what runs here: record until no table is added.
for _ in $(seq 20); do
	kept=$(find "$STACKTOOLS_CACHE" -type f 2>/dev/null | wc -l)
	rec "$TMP/first.cap" -a -U -d 1
	[ "$(find "$STACKTOOLS_CACHE" -type f | wc -l)" -gt "$kept" ] || break
done
# on a busy machine the same number of waits takes longer, and so do the tables of what begins
for seconds in 5 15 45; do
	[ -e go ] || load_begins
	rec "$TMP/a.cap" -a -U -d $seconds
	loaded=$rc
	load_ends
	cp "$err" "$TMP/loaded.err"
	"$BIN/symbolize" -q --format=json "$TMP/a.cap" 2>/dev/null |
		perl "$DATA/unwind/plausible" --inside --exe "^/(usr|bin|sbin|lib)/|^$TMP" >"$TMP/table" 2>"$TMP/table.err"
	plausible=$?
	waits=$(sed -n 's/ all$//p' "$TMP/table")
	complete=$(sed -n 's/ per million$//p' "$TMP/table")
	[ "${waits:-0}" -lt 3000 ] || [ "${complete:-0}" -lt 990000 ] || break
done
# 1: the mappings of a short-lived process may be lost, and are counted
between "$loaded" 0 1 "a recording of the whole system under load ends with status 0 or 1"
diag <"$TMP/loaded.err"

is "$plausible" 0 "no complete stack is wrong: files, calls and outermost frames are plausible"
between "${waits:-0}" 1000 1000000000 "at least 1000 waits of the distribution's programs are recorded"
between "${complete:-0}" 990000 1000000 "at least 99 % of the stacks under load are complete, even of short-lived processes"
cat "$TMP/table" "$TMP/table.err" | diag 60
between "$(counter "$TMP/a.cap" unwind.snapshots_complete)" 1 1000000000 "stacks that had no table at the time are walked afterwards from snapshots"
is "$(for n in complete cut short by_fp unmapped late no_memory; do counter "$TMP/a.cap" "unwind.snapshots_$n"; done | awk '{ n += $1 } END { print n }')" \
	"$(counter "$TMP/a.cap" unwind.snapshots)" "the counters of snapshots by result add up to all snapshots"
is "$(grep -cE '^[0-9]+ (stopped|failed|truncated) *( in .*)?$' "$TMP/table")" 0 "each stack that is not complete has a reason"
tap_done
