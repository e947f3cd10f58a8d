# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh disable=SC2034 # the rows use these variables
# Functions for the rows of scripts/bench.d, which source this in the project's folder.
#
#   $BIN $OBJ        the folders of the binaries
#   $TMP             a folder that is removed at the end
#   at_end PID       kills PID when the row ends
#   need_root NAME   ends the row with a message unless it runs as root
#   quick A B        prints A with QUICK=1, else B
#   programs         prints the BPF programs at sched_switch: ID, ns of all runs, number of runs
#   stop PID         sends SIGINT until PID has ended

export STACKTOOLS="$PWD" # runtimes of scripts/runtimes see this tree
BIN=${STACKTOOLS_BIN:-$PWD/bin}
OBJ=${STACKTOOLS_OBJ:-$PWD/obj}
PATH=$PATH:/usr/sbin:/sbin
TMP=$(mktemp -d "${TMPDIR:-/tmp}/stacktools-bench.XXXXXX") || exit 2
bench_pids=
bench_stats=$(cat /proc/sys/kernel/bpf_stats_enabled 2>/dev/null)

bench_clean() {
	for p in $bench_pids; do
		kill -KILL "$p" 2>/dev/null
	done
	[ -n "$bench_stats" ] && echo "$bench_stats" 2>/dev/null >/proc/sys/kernel/bpf_stats_enabled
	rm -rf "$TMP"
}
trap bench_clean EXIT
trap 'exit 130' INT TERM

at_end() {
	bench_pids="$bench_pids $1"
}

need_root() {
	[ "$(id -u)" -eq 0 ] && return
	echo "$1: needs root"
	exit 1
}

quick() {
	if [ -n "${QUICK:-}" ]; then echo "$1"; else echo "$2"; fi
}

# retries: bpftool prints nothing if a program is removed while it lists them
programs() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		bpftool -j prog show 2>/dev/null | perl -MCpanel::JSON::XS -0777 -e '
			my $all = eval { decode_json(<STDIN>) };
			exit 1 if ref $all ne "ARRAY";
			for (@$all) {
				next unless ($_->{name} // "") =~ /^(sched_switch|sched_waking|empty_switch)/;
				# a wake-up is part of the price of a switch: its time counts, its run does not
				print join(" ", $_->{id}, $_->{run_time_ns} // 0, $1 eq "sched_waking" ? 0 : $_->{run_cnt} // 0), "\n";
			}' && return
	done
	echo "bpftool cannot list the programs" >&2
}

# repeats the signal: a tool may miss one that arrives while it does not sleep
stop() {
	while kill -INT "$1" 2>/dev/null; do
		sleep 0.1
	done
	wait "$1" 2>/dev/null
}
