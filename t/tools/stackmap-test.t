#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The command line of stackmap-test, and its output without capabilities.
# shellcheck disable=SC2016,SC2317 # sh -c gets its arguments; functions are called through status
. "$(dirname "$0")/../lib/tap.sh"

T=$BIN/stackmap-test

status 0 "--help exits with status 0" "$T" --help
like "$(head -n 1 "$out")" '^usage: stackmap-test ' "--help prints the usage first"
is "$(cat "$err")" "" "--help prints nothing on stderr"
status 0 "-h exits with status 0" "$T" -h
status 0 "--version exits with status 0" "$T" --version
like "$(cat "$out")" '^stackmap-test \(stacktools\) [0-9]+\.[0-9]+\.[0-9]+$' "--version prints name and version"

status 64 "an unknown option is a usage error" "$T" --wrong
is "$(cat "$out")" "" "a usage error prints nothing on stdout"
is "$(wc -l <"$err")" 2 "a usage error prints two lines on stderr"
like "$(cat "$err")" "unknown option '--wrong'" "the message names the unknown option"
status 64 "an argument is a usage error" "$T" map
like "$(cat "$err")" "unexpected argument 'map'" "the message names the argument"
status 64 "-r without a pattern is a usage error" "$T" -r
like "$(cat "$err")" "option '-r' needs an argument" "the message names the option that lacks its pattern"
set --
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33; do
	set -- "$@" -r "$i"
done
status 64 "too many patterns are a usage error" "$T" "$@"

status 0 "-l exits with status 0" "$T" -l
cp "$out" "$TMP/list"
ok "-l lists at least 50 cases" [ "$(wc -l <"$TMP/list")" -ge 50 ]
is "$(sort "$TMP/list" | uniq -d)" "" "no two cases have the same name"
is "$(grep -cE '^(map|id|frames|counts|raw_tp/sys_enter|tracepoint/raw_syscalls/sys_enter|tp_btf/sys_enter|tp_btf/sched_switch|perf_event|uprobe|kprobe): ' "$TMP/list")" \
	"$(wc -l <"$TMP/list")" "each name starts with its group"
status 0 "-l -r exits with status 0" "$T" -l -r 'value size'
is "$(sort "$out")" "$(grep 'value size' "$TMP/list" | sort)" "-l -r lists exactly the cases that contain the pattern"
status 0 "-r accepts a shell pattern" "$T" --list --run 'map: key *'
is "$(cat "$out")" "$(grep '^map: key ' "$TMP/list")" "a shell pattern must match the whole name"
status 0 "-r can be repeated" "$T" -l -r 'id: 0' -r 'uprobe: the user'
is "$(wc -l <"$out")" 2 "repeated -r options select the cases of each pattern"

status 2 "a pattern that matches no case gives status 2" "$T" -r 'no such case'
is "$(cat "$out")" "" "a pattern that matches no case prints nothing on stdout"
like "$(cat "$err")" "no case matches 'no such case'" "the message names the pattern that matches no case"
like "$(cat "$err")" "hint: stackmap-test --list" "the hint for a pattern that matches no case is --list"
esc=$(printf '\033')
status 2 "a pattern with a control character gives status 2" "$T" -r "${esc}[31m"
is "$(grep -c "$esc" "$err")" 0 "the message has no control characters"

ok "a list to a full disk gives status 2" sh -c '"$1" -l >/dev/full 2>"$2"; [ $? -eq 2 ]' sh "$T" "$err"
like "$(cat "$err")" 'cannot write the result to standard output: No space left' "the message about the list says that no space is left"
ok "results to a full disk give status 2" sh -c '"$1" -r "map: one entry" >/dev/full 2>"$2"; [ $? -eq 2 ]' sh "$T" "$err"
ok "a list to a closed stdout gives status 2" sh -c '"$1" -l >&- 2>"$2"; [ $? -eq 2 ]' sh "$T" "$err"
like "$(cat "$err")" 'cannot write the result' "the message says that the result cannot be written"
ok "results to a closed stdout give status 2" sh -c '"$1" -r "id: 0" >&- 2>"$2"; [ $? -eq 2 ]' sh "$T" "$err"
ok "--help to a full disk gives status 2" sh -c '"$1" --help >/dev/full 2>/dev/null; [ $? -eq 2 ]' sh "$T"
"$T" -l | head -n 1 >"$out" 2>"$err"
is "$(cat "$err")" "" "a reader that closes the pipe early causes no message"

# Without capabilities nothing can be tested, which is not a failure.
if [ "$(id -u)" -eq 0 ]; then
	# user nobody may have no access to the build folder
	cp "$T" "$TMP/stackmap-test" && chmod 755 "$TMP" "$TMP/stackmap-test"
	as_nobody() {
		setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
	}
	T_NOBODY=$TMP/stackmap-test
else
	as_nobody() {
		"$@"
	}
	T_NOBODY=$T
fi
status 0 "unprivileged: every case is skipped, with status 0" as_nobody "$T_NOBODY"
is "$(grep -c '^ok [0-9]* - .* # SKIP ..' "$out")" "$(wc -l <"$TMP/list")" "unprivileged: each skipped case has a reason"
is "$(tail -n 1 "$out")" "1..$(wc -l <"$TMP/list")" "unprivileged: the plan is complete"
is "$(cat "$err")" "" "unprivileged: nothing is printed on stderr"
like "$(grep 'SKIP' "$out" | head -n 1)" 'not permitted to create a stack-trace map: CAP_BPF is missing' \
	"unprivileged: a map needs CAP_BPF"
like "$(grep 'id: 0' "$out")" 'not permitted to load a raw_tp/sys_enter program: CAP_BPF and CAP_PERFMON are missing' \
	"unprivileged: a program needs CAP_BPF and CAP_PERFMON"
like "$(cat "$out")" "^# hint: run as root, or: setcap cap_bpf,cap_perfmon\+ep '.*stackmap-test'$" \
	"unprivileged: the hint is the command that grants the capabilities"
is "$(grep -c '^# hint: ' "$out")" "$(grep '^# hint: ' "$out" | sort -u | wc -l)" "unprivileged: each hint is printed once"
status 0 "unprivileged: -l exits with status 0" as_nobody "$T_NOBODY" -l
same "$out" "$TMP/list" "unprivileged: -l prints the same list"
if [ "$(id -u)" -eq 0 ]; then
	status 0 "CAP_BPF alone: the status is 0" setpriv --reuid=65534 --regid=65534 --clear-groups \
		--inh-caps=+bpf --ambient-caps=+bpf "$T_NOBODY"
	is "$(grep -c '^not ok' "$out")" 0 "CAP_BPF alone: no case fails"
	like "$(grep 'id: 0' "$out")" 'not permitted to load .*: CAP_PERFMON is missing$' \
		"CAP_BPF alone: the programs lack CAP_PERFMON"
else
	skip "CAP_BPF alone: no case fails" "needs root to grant a capability"
fi

tap_done
