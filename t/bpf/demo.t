#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# scripts/demo from bpfcheck to the graph, in the tree that is already built.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"

cd "$TOP" || exit 1
unset MAKEFLAGS MFLAGS MAKELEVEL
[ "$(id -u)" -eq 0 ] || skip_all "not root"
run "$BIN/bpfcheck" --tool offcpu-record
[ "$rc" -lt 2 ] || skip_all "bpfcheck: $(grep FAIL "$out" | head -n 1)"
[ "$BIN" = "$TOP/bin" ] || skip_all "the tools are not in bin/, where scripts/demo builds them"
[ -z "$(sh scripts/deps -n demo)" ] || skip_all "packages are missing: $(sh scripts/deps -n demo | tr '\n' ' ')"

status 0 "the demo exits with status 0" sh scripts/demo -d 2 -o "$TMP/off.svg"
for name in packages build bpfcheck record draw; do
	ok "the demo reports its step: $name" grep -q "^$name " "$out"
done
is "$(grep -cE '^  [123]\. +[0-9.]+ s +[0-9.]+ ' "$out")" 3 "the demo names three waits"
like "$(grep '^  1\.' "$out")" ' 4  lock$' "the biggest wait is that of four threads, for a lock"
like "$(grep '^idle: ' "$out")" ' in 2 places of 2 threads' "threads that wait for work are set aside"
like "$(sed -n '/^  1\./{n;p;}' "$out")" '^      table_thread > .*lock_table > .*  in futex$' \
	"the biggest wait is the lock that they want, and is shown with its system call"
run "$BIN/stackreport" --json --all "$TMP/demo-cap.bin"
is "$rc" 0 "stackreport reads the capture of the demo"
is "$(perl -MCpanel::JSON::XS -0777 -ne 'my $j = decode_json($_); my $n = 0; $n += $_->{total_ns} for @{$j->{rows}}; print "$n $j->{total_ns} $j->{count} $j->{threads}"' "$out")" \
	"$("$BIN/symbolize" -q "$TMP/demo-cap.bin" | perl -ne 'if (/^# wait: count=(\d+) total_ns=(\d+)/) { $c += $1; $n += $2 } elsif (m{^\S+ +(\d+/\d+) }) { $t{$1} = 1 } END { print "$n $n $c ", scalar keys %t }')" \
	"its rows add up to the time, waits and threads of the text, to the nanosecond"

ok "the graph is a complete SVG document" perl -0777 -ne 'exit !(/^<\?xml/ && /<svg / && m{</svg>\s*\z})' "$TMP/off.svg"
for frame in sync_journal receive_answer read_log_line wait_for_job pace_producer compute_answer; do
	ok "the graph has the wait in $frame" grep -q "<title>$frame (" "$TMP/off.svg"
done
# the recorded time of eleven threads, which only wait, in ms
most=$("$BIN/capinfo" --json "$TMP/demo-cap.bin" | perl -MCpanel::JSON::XS -0777 -ne 'printf "%d", 11 * decode_json($_)->{duration_ns} / 1e6')
total=$(awk '{ sum += $NF } END { printf "%d", sum / 1000 }' "$TMP/demo-off.folded")
ok "the threads waited most of the recorded time ($total ms of $most)" [ "$total" -gt $((most * 68 / 100)) ]
ok "the threads did not wait longer than the recording ($total ms of $most)" [ "$total" -le $((most * 101 / 100)) ]
ok "the demo removes the journal of its program" [ ! -e "$TMP/demo-journal" ]
is "$(pgrep -f "obj/t/work/demo $TMP" || true)" "" "the demo ends its program"

# Its program without a name for the journal: started at the top of a tree, it leaves nothing there.
mkdir "$TMP/alone"
(cd "$TMP/alone" && exec "$OBJ/t/work/demo" >"$TMP/ready") &
alone=$!
at_exit_kill $alone
# shellcheck disable=SC2016 # the inner shell's
ok "the program syncs a journal without a name" until_true sh -c 'ls -l "/proc/$1/fd" | grep -q "/alone/demo-.* (deleted)"' sh $alone
kill $alone
is "$(ls -A "$TMP/alone")" "" "the program leaves no journal behind"

# If BPF is refused, the demo says which mode is left and what that means.
status 0 "the demo exits with status 0 without BPF" "$OBJ/t/work/refuse" bpf sh scripts/demo -d 2 -o "$TMP/off.svg"
like "$(grep '^bpfcheck ' "$out")" 'records in mode procfs alone: waits are estimated by samples of /proc, without BPF:$' \
	"without BPF the demo says that waits are estimated"
is "$("$BIN/capinfo" "$TMP/demo-cap.bin" | sed -n 's/^.* mode=//p')" procfs "without BPF the demo records in mode procfs"

tap_done
