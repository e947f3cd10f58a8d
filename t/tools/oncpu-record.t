#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# oncpu-record and --on-cpu: what the command line takes. What they record: t/bpf/oncpu.t.
# shellcheck disable=SC2154 # $err and others of tap.sh
. "$(dirname "$0")/../lib/tap.sh"

# refused MESSAGE TOOL ARGUMENT...: as a bad command line
refused() {
	r_want=$1 r_tool=$2
	shift 2
	run "$BIN/$r_tool" "$@"
	is "$rc:$(head -n 1 "$err")" "64:$r_tool: $r_want" "$r_tool $*"
}

refused "what to record? give -p PID, -t TID, -c COMM, -a, --cgroup PATH, --container ID, or -- COMMAND" oncpu-record
refused "option '-F': '10000' is out of range: 1 to 9999" oncpu-record -F 10000 -a
refused "option '--on-cpu': '0' is out of range: 1 to 9999" offcpu-record --on-cpu=0 -a
refused "option '--on-cpu': 'x' is not a whole number" offcpu-record --on-cpu=x -a
refused "option '-F': '1001' is out of range: 1 to 1000" offcpu-record -F 1001 -a
refused "--on-cpu goes with mode btf: --mode btf, or auto" offcpu-record --on-cpu --mode raw -a
refused "--on-cpu goes with mode btf: --mode btf, or auto" offcpu-record --on-cpu=50 --mode procfs -a
refused "what threads execute is sampled in mode btf: --mode btf, or auto" oncpu-record --mode procfs -a
for option in --preempted "--state=D" "--min=1ms" "--max=1s" --on-cpu; do
	refused "${option%=*} is of waits: offcpu-record --on-cpu records both" oncpu-record "$option" -a
done
run "$BIN/oncpu-record" --help
like "$(head -n 1 "$out")" '^usage: oncpu-record ' "it uses its own name"
like "$(cat "$out")" '-F, --frequency HZ +samples a second that a thread executes' "its --help says what its -F is"
is "$(grep -cE -- '--(preempted|state|min|max|trigger|wakers|sample-stacks|overhead|on-cpu|btf|ptrace)([ =,[]|$)' "$out"):$(grep -c 'Which waits' "$out")" 0:0 \
	"and has no option that it refuses"
run "$BIN/offcpu-record" --help
is "$(grep -cE -- '^ {6}--(preempted|state|min|max|trigger|wakers|sample-stacks|overhead|on-cpu|btf|ptrace)([ =,[]|$)' "$out")" 11 \
	"offcpu-record's has them"
for shell in bash zsh fish; do
	is "$("$BIN/oncpu-record" --completion=$shell | grep -c preempted):$("$BIN/offcpu-record" --completion=$shell | grep -c preempted | grep -c '[1-9]')" \
		0:1 "so it is with what $shell completes"
done
run "$BIN/offcpu-record" --help
like "$(cat "$out")" '--on-cpu\[=HZ\]' "an argument that may be missing is shown so"
tap_done
