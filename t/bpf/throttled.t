#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# A thread whose cgroup has a quota of the CPU, 20 ms in each 100 ms: its waits for the next period are throttled. Also in
# guests of scripts/vmtest, with cgroups of version 2 and older schedulers.
# shellcheck disable=SC2016,SC2154 # Perl's variables; $rc and others of tap.sh
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf

mounted() { # TYPE [OPTION]: the folder where cgroups are mounted
	awk -v type="$1" -v option="${2-}" '$3 == type && index("," $4 ",", "," option) { print $2; exit }' /proc/mounts
}
# cgroup_with_quota: makes $group, with the cgroup $group/inner, which has queues of its own and no quota
group=
cgroup_with_quota() {
	group=$(mounted cgroup cpu,)/stacktools-t.$$
	if [ "${group%/*}" ] && mkdir "$group"; then
		echo 100000 >"$group/cpu.cfs_period_us" && echo 20000 >"$group/cpu.cfs_quota_us" && mkdir "$group/inner"
		return
	fi
	group=$(mounted cgroup2)/stacktools-t.$$
	[ "${group%/*}" ] && mkdir "$group" && echo +cpu >"${group%/*}/cgroup.subtree_control" &&
		echo '20000 100000' >"$group/cpu.max" && echo +cpu >"$group/cgroup.subtree_control" && mkdir "$group/inner"
}
throttled_ns() {
	awk '$1 == "throttled_time" { print $2 } $1 == "throttled_usec" { printf "%d000\n", $2 }' "$group/cpu.stat"
}
used_up() { # NS: for longer than that since $before
	[ $(($(throttled_ns) - before)) -gt "$1" ]
}
clean() {
	tap_cleanup
	for c_folder in "$group/inner" "$group"; do
		[ ! -d "$c_folder" ] || until_true rmdir "$c_folder"
	done
}
trap clean EXIT
cgroup_with_quota 2>"$TMP/why" || skip_all "no cgroup with a quota of the CPU: $(head -n 1 "$TMP/why")"

for name in "$group/inner:a cgroup below the one with the quota" "$group:a cgroup with a quota"; do
	folder=${name%%:*} name=${name#*:}
	before=$(throttled_ns)
	run "$BIN/offcpu-record" -q --force -o "$TMP/q.cap" -- sh -c \
		'echo $$ >"$0/cgroup.procs" && exec perl -e "1 while (times)[0] < .3"' "$folder"
	said=$(($(throttled_ns) - before))
	is "$rc" 0 "$name: a program that uses it up again and again is recorded"
	ok "$name: the kernel throttles it" test "$said" -gt 500000000
	# the recorded waits go on until the thread has a CPU again
	throttled=$(waits "$TMP/q.cap" '$n += $w->{total_ns} if $w->{kind} eq "throttled"')
	between "$throttled" "$((said * 95 / 100))" "$((said * 5 / 4))" \
		"$name: it is throttled for as long as the kernel says ($throttled of $said ns)"
	is "$(waits "$TMP/q.cap" '$n++ if $w->{kind} eq "throttled" && ($w->{preempted} || $w->{state} ne "R")')" 0 \
		"$name: it did not just lose the CPU, so the waits are recorded without --preempted"
done

# Two processes of it on one CPU: each is throttled, whichever of them has used up the rest.
before=$(throttled_ns)
run "$BIN/offcpu-record" -q --force -o "$TMP/q.cap" -- sh -c \
	'echo $$ >"$0/cgroup.procs" && exec taskset -c 0 perl -e "\$end = time + 3; fork; 1 while time < \$end; wait"' "$group"
said=$(($(throttled_ns) - before))
throttled=$(waits "$TMP/q.cap" '$n += $w->{total_ns} if $w->{kind} eq "throttled"')
between "$throttled" "$((said * 8 / 5))" "$((said * 5 / 2))" \
	"of two processes on one CPU both are throttled ($throttled ns, each $said)"

# The quota is in force before the recording begins.
before=$(throttled_ns)
sh -c 'echo $$ >"$0/cgroup.procs" && exec perl -e "1 while getppid() == $1"' "$group" "$$" &
pid=$!
at_exit_kill "$pid"
until_true used_up 0
outer=$(throttled_ns)
rec_start "$TMP/q.cap" -q --force -p "$pid"
before=$(throttled_ns)
ok "it is throttled while it is recorded" until_true used_up 2000000000
inner=$(($(throttled_ns) - before))
rec_stop
outer=$(($(throttled_ns) - outer))
is "$rc:$(waits "$TMP/q.cap" 'push @o, "$w->{kind} $w->{total_ns}" if $w->{kind} !~ /^(throttled|page-fault)$/ && $w->{total_ns} > 1e7')" \
	0:0 "it is throttled from the first wait on"
like "$(waits "$TMP/q.cap" '$n += $w->{count} if $w->{kind} eq "throttled"')" '^[1-9]' "and later"
# the kernel counts at the end of each period of 100 ms
throttled=$(waits "$TMP/q.cap" '$n += $w->{total_ns} if $w->{kind} eq "throttled"')
between "$throttled" "$((inner - 100000000))" "$((outer + 100000000))" \
	"for as long as the kernel says ($throttled ns, of $inner to $outer)"
kill "$pid"
wait "$pid" 2>/dev/null
tap_done
