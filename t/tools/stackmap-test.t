#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The command line of stackmap-test, and what it says to those who may not.
# shellcheck disable=SC2016,SC2317 # sh -c gets its arguments; functions are called through status
. "$(dirname "$0")/../lib/tap.sh"

T=$BIN/stackmap-test

status 0 "--help is a success" "$T" --help
like "$(head -n 1 "$out")" '^usage: stackmap-test ' "and shows the usage first"
is "$(cat "$err")" "" "with nothing on stderr"
status 0 "-h is the same" "$T" -h
status 0 "--version is a success" "$T" --version
like "$(cat "$out")" '^stackmap-test \(stacktools\) [0-9]+\.[0-9]+\.[0-9]+$' "and names program and version"

status 64 "an unknown option is a usage error" "$T" --wrong
is "$(cat "$out")" "" "with nothing on stdout"
is "$(wc -l <"$err")" 2 "and two lines on stderr"
like "$(cat "$err")" "unknown option '--wrong'" "which name the option"
status 64 "an argument is a usage error" "$T" map
like "$(cat "$err")" "unexpected argument 'map'" "which names the argument"
status 64 "-r without a pattern is a usage error" "$T" -r
like "$(cat "$err")" "option '-r' needs an argument" "which names the option"
set --
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33; do
	set -- "$@" -r "$i"
done
status 64 "more patterns than it takes are a usage error" "$T" "$@"

status 0 "-l lists the cases" "$T" -l
cp "$out" "$TMP/list"
ok "there are many" [ "$(wc -l <"$TMP/list")" -ge 50 ]
is "$(sort "$TMP/list" | uniq -d)" "" "no two cases have the same name"
is "$(grep -cE '^(map|id|frames|counts|raw_tp/sys_enter|tracepoint/raw_syscalls/sys_enter|tp_btf/sys_enter|tp_btf/sched_switch|perf_event|uprobe|kprobe): ' "$TMP/list")" \
	"$(wc -l <"$TMP/list")" "each name begins with its group"
status 0 "-l -r lists those that contain the pattern" "$T" -l -r 'value size'
is "$(sort "$out")" "$(grep 'value size' "$TMP/list" | sort)" "and no others"
status 0 "-r takes a shell pattern" "$T" --list --run 'map: key *'
is "$(cat "$out")" "$(grep '^map: key ' "$TMP/list")" "which must match the whole name"
status 0 "several -r add up" "$T" -l -r 'id: 0' -r 'uprobe: the user'
is "$(wc -l <"$out")" 2 "to the cases of either"

status 2 "a pattern that matches no case is an error" "$T" -r 'no such case'
is "$(cat "$out")" "" "with nothing on stdout"
like "$(cat "$err")" "no case matches 'no such case'" "named on stderr"
like "$(cat "$err")" "hint: stackmap-test --list" "with a hint"
esc=$(printf '\033')
status 2 "a pattern with a control character" "$T" -r "${esc}[31m"
is "$(grep -c "$esc" "$err")" 0 "never reaches the terminal as such"

ok "a full disk is status 2" sh -c '"$1" -l >/dev/full 2>"$2"; [ $? -eq 2 ]' sh "$T" "$err"
like "$(cat "$err")" 'cannot write the result to standard output: No space left' "and says so"
ok "a full disk is status 2 for results too" sh -c '"$1" -r "map: one entry" >/dev/full 2>"$2"; [ $? -eq 2 ]' sh "$T" "$err"
ok "a closed stdout is status 2" sh -c '"$1" -l >&- 2>"$2"; [ $? -eq 2 ]' sh "$T" "$err"
like "$(cat "$err")" 'cannot write the result' "and says so"
ok "a closed stdout is status 2 for results too" sh -c '"$1" -r "id: 0" >&- 2>"$2"; [ $? -eq 2 ]' sh "$T" "$err"
ok "--help to a full disk is status 2" sh -c '"$1" --help >/dev/full 2>/dev/null; [ $? -eq 2 ]' sh "$T"
"$T" -l | head -n 1 >"$out" 2>"$err"
is "$(cat "$err")" "" "a reader that leaves early is no error message"

# Without capabilities nothing can be tested, and that is no failure.
if [ "$(id -u)" -eq 0 ]; then
	# nobody may not be able to read the build folder
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
status 0 "nobody: every case is skipped, which is a success" as_nobody "$T_NOBODY"
is "$(grep -c '^ok [0-9]* - .* # SKIP ..' "$out")" "$(wc -l <"$TMP/list")" "nobody: each one with a reason"
is "$(tail -n 1 "$out")" "1..$(wc -l <"$TMP/list")" "nobody: the plan is complete"
is "$(cat "$err")" "" "nobody: nothing on stderr"
like "$(grep 'SKIP' "$out" | head -n 1)" 'not permitted to create a stack-trace map: CAP_BPF is missing' \
	"nobody: a map needs CAP_BPF"
like "$(grep 'id: 0' "$out")" 'not permitted to load a raw_tp/sys_enter program: CAP_BPF and CAP_PERFMON are missing' \
	"nobody: a program needs CAP_PERFMON too"
like "$(cat "$out")" "^# hint: run as root, or: setcap cap_bpf,cap_perfmon\+ep '.*stackmap-test'$" \
	"nobody: the hint is the command that grants them"
is "$(grep -c '^# hint: ' "$out")" "$(grep '^# hint: ' "$out" | sort -u | wc -l)" "nobody: each hint once"
status 0 "nobody: -l needs no privilege" as_nobody "$T_NOBODY" -l
same "$out" "$TMP/list" "nobody: the list is the same"
if [ "$(id -u)" -eq 0 ]; then
	status 0 "CAP_BPF alone: no case fails" setpriv --reuid=65534 --regid=65534 --clear-groups \
		--inh-caps=+bpf --ambient-caps=+bpf "$T_NOBODY"
	is "$(grep -c '^not ok' "$out")" 0 "CAP_BPF alone: none is not ok"
	like "$(grep 'id: 0' "$out")" 'not permitted to load .*: CAP_PERFMON is missing$' \
		"CAP_BPF alone: the programs lack CAP_PERFMON"
else
	skip "CAP_BPF alone" "takes root to hand out a capability"
fi

tap_done
