#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# stackmap-test on the running kernel. This test lists what it may skip: any
# other skip on a machine where BPF works is a failure.
# shellcheck disable=SC2317 # functions are called through ok and status
. "$(dirname "$0")/../lib/tap.sh"

T=$BIN/stackmap-test
"$T" -r 'id: 0' >"$TMP/first" 2>&1
reason=$(sed -n 's/^ok .* # SKIP //p' "$TMP/first")
[ -z "$reason" ] || skip_all "$reason"

mounts=$(cat /proc/mounts)
status 0 "every case passes or has a reason to be skipped" "$T" -v
cp "$out" "$TMP/run"
is "$(cat "$err")" "" "stackmap-test prints nothing to stderr"
is "$(grep -c '^not ok' "$TMP/run")" 0 "no case fails"
n=$("$T" -l | wc -l)
is "$(tail -n 1 "$TMP/run")" "1..$n" "the TAP plan has the number of all cases"
is "$(grep -c '^ok ' "$TMP/run")" "$n" "each case has one line of result"
is "$(cat /proc/mounts)" "$mounts" "no file system stays mounted"

# Allowed skips: kprobes if the kernel has none, build IDs if the linker wrote none.
if [ -e /sys/bus/event_source/devices/kprobe ]; then
	allowed='^$'
else
	allowed='^kprobe: .* # SKIP this kernel has no kprobes'
fi
readelf -n "$T" >"$TMP/notes" 2>/dev/null
build_id=$(sed -n 's/.*Build ID: //p' "$TMP/notes")
[ -n "$build_id" ] || allowed="$allowed|build ID.* # SKIP this program was linked without"
is "$(sed -n 's/^ok [0-9]* - \(.* # SKIP.*\)/\1/p' "$TMP/run" | grep -vE "$allowed")" "" \
	"nothing is skipped that this machine can do"

case_of() { # NAME: prints the detail lines of one case
	awk -v name="$1" '/^ok /{on = index($0, name) > 0} on && /^#   /{print substr($0, 5)}' "$TMP/run"
}

# addr2line and readelf read the tool's file independently. A return address is
# looked up one byte back; frame 0 of a uprobe is exact.
frames_agree() { # NAME: have frames 1 to 4, to the end of the chain, the names that addr2line prints?
	case_of "$1" | sed -n 's/^user frame [1-4]: \([a-z_]*\)+0x[0-9a-f]* \[\(0x[0-9a-f]*\)\]$/\1 \2/p' | sed '/^chain_run /q' >"$TMP/frames"
	# the caller is missing in stacks of uprobes before Linux 6.11
	missing=$(grep -F -A 1 -e "- $1" "$TMP/run" | grep -c 'the caller is missing')
	[ "$(wc -l <"$TMP/frames")" -eq $((4 - missing)) ] || return 1
	while read -r name vaddr; do
		[ "$(addr2line -f -e "$T" "$(printf '0x%x' $((vaddr - 1)))" | head -n 1)" = "$name" ] || return 1
	done <"$TMP/frames"
}

if command -v addr2line >/dev/null; then
	for type in raw_tp/sys_enter tracepoint/raw_syscalls/sys_enter tp_btf/sys_enter tp_btf/sched_switch \
		perf_event uprobe; do
		ok "$type: addr2line gives each frame the same name" frames_agree "$type: the user stack"
	done
	is "$(case_of 'uprobe: the user stack' | sed -n 's/^user frame 0: .*\[0x\(.*\)\]$/\1/p')" \
		"$(nm "$T" | sed -n 's/^0*\([0-9a-f]*\) t chain_probe$/\1/p')" "uprobe: frame 0 is where nm has the function"
else
	skip "frame names" "addr2line is not installed"
fi
libc=$(sed -n 's/^#   user frame 0: syscall+0x[0-9a-f]* \(.*\)\[0x.*/\1/p' "$TMP/run" | head -n 1)
ok "frame 0 of a system call is in a libc file that exists" [ -f "$libc" ]

if [ -n "$build_id" ]; then
	for name in "frames: a map with build IDs" "frames: bpf_get_stack() with BPF_F_USER_BUILD_ID"; do
		case_of "$name" >"$TMP/ids"
		is "$(sed -n 's/^user frame [1-5]: build ID \([0-9a-f]*\) .*/\1/p' "$TMP/ids" | sort -u)" "$build_id" \
			"$name: the tool's frames have the build ID that readelf shows"
		is "$(sed -n 's/^user frame 0: build ID \([0-9a-f]*\) .*/\1/p' "$TMP/ids")" \
			"$(readelf -n "$libc" 2>/dev/null | sed -n 's/.*Build ID: //p')" \
			"$name: the frame in libc has the build ID of libc"
		# file offset to address by the executable segment that readelf shows
		readelf -lW "$T" | awk '$1 == "LOAD" && $0 ~ / R E /{print $2, $3; exit}' >"$TMP/load"
		read -r off vaddr <"$TMP/load"
		names=
		sed -n 's/^user frame [1-4]: .* offset \(0x[0-9a-f]*\)$/\1/p' "$TMP/ids" >"$TMP/offsets"
		while read -r at; do
			at=$(printf '0x%x' $((at - off + vaddr - 1)))
			names="$names $(addr2line -f -e "$T" "$at" | head -n 1)"
		done <"$TMP/offsets"
		is "$names" " north_inner north_middle north_outer chain_run" "$name: the offsets are in the functions of the call chain"
	done
fi

in_kallsyms() { # NAME: are the symbols of all named frames in /proc/kallsyms?
	case_of "$1" | sed -n 's/^kernel frame [0-9]*: \([^+]*\)+0x[0-9a-f]*$/\1/p' >"$TMP/names"
	[ -s "$TMP/names" ] || return 1
	while read -r name; do
		grep -q " [tTwW] $name\$" /proc/kallsyms || return 1
	done <"$TMP/names"
}
ok "the names of a system call's kernel frames are in kallsyms" in_kallsyms 'raw_tp/sys_enter: the kernel stack'
ok "the names of a sleep's kernel frames are in kallsyms" in_kallsyms 'tp_btf/sched_switch: the kernel stack'
like "$(case_of 'user stack of a kernel thread' | grep '^kernel frame' | tail -n 1)" 'ret_from_fork' \
	"a kernel thread's stack ends in ret_from_fork"

# Errors are explained.
for want in 'EFAULT: there is no such stack' 'EEXIST: another stack' 'ENOMEM: every entry' 'EINVAL: only the kernel' \
	'E2BIG: more entries' 'ENOENT: no stack'; do
	like "$(cat "$TMP/run")" "^# .*-[0-9]+ $want" "the run shows $want"
done

if command -v prove >/dev/null; then
	ok "prove runs stackmap-test" prove -e '' "$T"
else
	skip "prove runs stackmap-test" "prove is not installed"
fi

"$T" >"$TMP/a" 2>&1 &
a=$!
"$T" >"$TMP/b" 2>&1
b_rc=$?
wait "$a"
is "$?$b_rc" 00 "two runs at the same time do not disturb each other"

if unshare -p -f --mount-proc true 2>/dev/null; then
	status 0 "stackmap-test finds itself in a PID namespace" unshare -p -f --mount-proc "$T" -r 'raw_tp' -r 'counts'
	is "$(grep -c '# SKIP' "$out")" 0 "stackmap-test skips no case in a PID namespace"
else
	skip "stackmap-test finds itself in a PID namespace" "no PID namespace can be made here"
fi

status 0 "CAP_BPF and CAP_PERFMON alone: no case fails" sh -c 'ulimit -l unlimited 2>/dev/null; exec "$@"' sh setpriv --bounding-set=-all,+bpf,+perfmon \
	--inh-caps=-all,+bpf,+perfmon "$T"
is "$(grep -c '^not ok' "$out")" 0 "CAP_BPF and CAP_PERFMON alone: no line says not ok"
is "$(grep -cE '^ok .* - (map|id|counts): .*# SKIP' "$out")" 0 "CAP_BPF and CAP_PERFMON alone: no case of maps, IDs or counts is skipped"

tap_done
