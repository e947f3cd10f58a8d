#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Processes whose switches away from a CPU the kernel does not report, as hardened kernels do for some: what becomes of
# their waits is said with the name of the process, and is no loss of a recording of others. Here the
# recorder's own notes about a thread are overwritten (t/work/hide.c), which has the same effect once.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf
cp "$(command -v cat)" "$TMP/unseen cat"
mkfifo "$TMP/in"
"$TMP/unseen cat" <"$TMP/in" >/dev/null 7>&- &
cat=$!
at_exit_kill "$cat"
exec 6>"$TMP/in"

# hidden CAP OPTION...: records, and hides the process during one wait
hidden() {
	rec_start "$@" 6>&-
	until_true grep -q pipe "/proc/$cat/wchan"
	ok "$*: the recorder's notes are overwritten" "$OBJ/t/work/hide" "$cat" "$rec_pid"
	echo >&6
	sleep 0.2
	rec_stop
}

hidden "$TMP/a.cap" -a
# processes of other tests may end before their mappings were read
lost=$("$BIN/capinfo" "$TMP/a.cap" | awk '$2 ~ /^lost\./ && $1 > 0 && $2 != "lost.maps"')
maps=$(counter "$TMP/a.cap" lost.maps)
is "$lost$rc" "$((maps > 0))" "-a: a process that is hidden is no reason to fail, and nothing of it is lost"
# if nothing at all is lost, no such counter is shown
unseen=$(counter "$TMP/a.cap" lost.begin_unseen)
is "$(counter "$TMP/a.cap" filtered.hidden) ${unseen:-0}" "1 0" "-a: its wait is counted, and not as lost"
like "$(cat "$TMP/rec.err")" '^  not recorded: 1 wait: of processes that this kernel hides from BPF programs when they leave a CPU: most recently unseen cat .PID [0-9]+.$' \
	"-a: the summary names the process"
like "$("$BIN/capinfo" "$TMP/a.cap")" 'unseen=most recently unseen cat' "-a: and so does the capture"

hidden "$TMP/p.cap" -p "$cat"
is "$rc" 1 "-p: a process that was asked for is lost"
is "$(counter "$TMP/p.cap" filtered.hidden) $(counter "$TMP/p.cap" lost.begin_unseen)" "0 1" "-p: its wait is counted as lost"
like "$(cat "$TMP/rec.err")" 'lost: 1 wait' "-p: the summary says so"

run "$OBJ/t/work/hide" "$cat" $$
is "$rc" 1 "a process that does not record has nothing to overwrite"
tap_done
