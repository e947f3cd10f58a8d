#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# bpfcheck on the trees of t/data/bpfcheck: verdict, reason and remedy for each
# kernel, also after a single change of the tree.
# shellcheck disable=SC2016
. "$(dirname "$0")/../lib/tap.sh"

bpfcheck=$BIN/bpfcheck

# tree NAME: a fresh copy in $tree
tree() {
	tree=$TMP/$1
	rm -rf "$tree"
	cp -a "$DATA/bpfcheck/$1" "$tree"
	timeout 20 "$bpfcheck" --root "$tree" --json >"$out" 2>"$err"
	rc=$?
}

# again: runs bpfcheck again after a change of $tree
again() {
	timeout 20 "$bpfcheck" --root "$tree" --json >"$out" 2>"$err"
	rc=$?
}

item() {
	grep -F -e "\"id\": \"$1\"" -e "\"name\": \"$1\"" "$out"
}

# finds ID REGEX NAME: matches the line of a check or tool in the last output
finds() {
	like "$(item "$1")" "$2" "$3"
}

for t in debian-6.1 debian-5.10 ubuntu-5.15 ubuntu-6.8 el9-5.14 locked-6.8 container-6.8; do
	tree $t
	ok "$t: the output is valid JSON, and each id occurs once" perl -MCpanel::JSON::XS -0777 -ne '
		$d = decode_json($_);
		for $c (@{$d->{checks}}) { die $c->{id} if $seen{$c->{id}}++; }
		for $t (@{$d->{tools}}) { die if ($t->{name} eq "offcpu-record") != exists $t->{mode}; }' "$out"
	ok "$t: each check that warns or fails has a remedy" sh -c \
		"! grep -E '\"status\": \"(warn|fail)\".*\"remedy\": null' '$out'"
	for tool in symbolize fold capinfo; do
		finds $tool '"ready"' "$t: $tool is ready"
	done
done

tree debian-6.1
finds offcpu-record '"ready".*"mode": "btf"' 'Debian 12: the recorder is ready, in mode btf'
finds kernel.bug.stackid_overflow '"warn".*may have it' 'a release that does not show its patch level may have the bug'
echo 'Linux version 6.1.0-18-amd64 (debian-kernel@lists.debian.org) #1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1 (2024-02-01)' >"$tree/proc/version"
again
finds kernel.bug.stackid_overflow '"warn".*may have it .*of 6\.1 none is known' 'a series without a known fix may have the bug'
finds kernel.bug.task_stack '"ok".*fixed in this kernel' 'a bug of 5.9 to 5.11 is fixed in 6.1'

tree debian-5.10
is "$rc" 1 'Debian 11: the status is 1 (degraded)'
finds offcpu-record '"degraded", "why": "raw mode: .*lacks task_storage_get, task_pt_regs, loop.*-t bullseye-backports.*"mode": "raw"' 'Debian 11: without task storage raw mode is left; the remedy is backports'
finds BTF.helpers '"fail".*lacks task_storage_get, task_pt_regs, loop, copy_from_user_task"' 'Debian 11: the missing helpers are named'
finds BTF.maps '"fail".*lacks TASK_STORAGE"' 'Debian 11: the missing map type is named'
finds memory.accounting '"ok".*RLIMIT_MEMLOCK is high enough, or may be raised' 'Debian 11: root may raise RLIMIT_MEMLOCK'
finds kernel.bug.task_stack '"warn".*may have it .*of 5\.10 none' 'Debian 11: a kernel bug of that version is reported'
finds configuration.CONFIG_SECURITY_LANDLOCK '"ok".*not set: .*seccomp alone' 'Debian 11: missing Landlock is only a note'
sed -i 's/000000ffffffffff/000000c000000000/' "$tree/proc/self/status"
again
finds memory.accounting '"warn".*RLIMIT_MEMLOCK of 64 KiB.*ulimit -l unlimited' 'Debian 11 without CAP_SYS_RESOURCE: RLIMIT_MEMLOCK is reported, with its remedy'
rm -r "$tree/sys/kernel/btf"
again
finds offcpu-record '"degraded", "why": "raw mode: no /sys/kernel/btf/vmlinux.*"mode": "raw"' 'Debian 11 without BTF: raw mode is left as well'
echo 5.9.0-1-amd64 >"$tree/proc/sys/kernel/osrelease"
again
finds offcpu-record '"degraded", "why": "procfs mode .*before 5.10 BPF lacks.*"mode": "procfs"' 'Linux 5.9 without BTF: the version rules out raw mode'

tree ubuntu-5.15
is "$rc" 1 'Ubuntu 22.04: the status is 1 (degraded)'
finds offcpu-record '"degraded", "why": "the kernel lacks loop.*linux-generic-hwe-22.04.*"mode": "btf"' 'Ubuntu 22.04: without bpf_loop btf mode is degraded; the remedy is the HWE kernel'
finds BTF.helpers '"warn".*lacks loop, copy_from_user_task: waits that began before the recording have no user stack"' 'Ubuntu 22.04: the missing helpers are named'
finds memory.accounting '"ok".*memory cgroup' 'Ubuntu 22.04: BPF memory is charged to the memory cgroup'
finds kernel.bug.stackid_overflow '"warn".*may have it' 'Ubuntu 22.04: 5.15.131 may have the bug, which was backported'
sed -i 's/5\.15\.131/5.15.32/' "$tree/proc/version_signature"
again
finds kernel.bug.stackid_overflow '"ok".*not in this kernel' 'Ubuntu 22.04: kernels before 5.15.33 do not have the bug'

tree ubuntu-6.8
is "$rc" 0 'Ubuntu 24.04: the status is 0 (ready)'
finds offcpu-record '"ready".*"mode": "btf"' 'Ubuntu 24.04: the recorder uses mode btf'
finds sysctls.kernel.perf_event_paranoid '"ok".*no matter with CAP_SYS_ADMIN' 'perf_event_paranoid=4 does not restrict root'
finds sysctls.kernel.yama.ptrace_scope '"ok".*so it is free"' 'ptrace_scope=1 does not restrict root'
sed -i 's/6\.8\.12/6.18.1/' "$tree/proc/version_signature"
again
finds kernel.bug.stackid_overflow '"warn".*has it \(fixed in 6\.18\.2\)' 'a version before the fix in its series has the bug'
sed -i 's/6\.18\.1/6.18.2/' "$tree/proc/version_signature"
again
finds kernel.bug.stackid_overflow '"ok".*fixed in this kernel' 'the version with the fix does not have the bug'
sed -i 's/000001ffffffffff/0000000000000000/; s/^\(Uid:\).*/\1	1000	1000	1000	1000/' "$tree/proc/self/status"
again
finds offcpu-record '"degraded", "why": "procfs mode .*lacks CAP_BPF and CAP_PERFMON.*--cap-add.*"mode": "procfs"' 'an ordinary user, capabilities outside the bounding set: procfs mode is left'
finds sysctls.kernel.yama.ptrace_scope '"ok".*system calls of its own children alone' 'an ordinary user: ptrace_scope=1 limits procfs mode to own children'
sed -i 's/^CapBnd.*/CapBnd:	000001ffffffffff/' "$tree/proc/self/status"
again
finds offcpu-record 'setcap cap_syslog,cap_bpf,cap_perfmon,cap_checkpoint_restore' 'an ordinary user, full bounding set: the remedy is setcap'

tree el9-5.14
is "$rc" 0 'RHEL 9: the status is 0 (ready), despite the old release'
finds offcpu-record '"ready".*"mode": "btf"' 'RHEL 9: BTF overrides the version, so the recorder uses mode btf'
finds kernel.release '"warn".*BTF shows what is backported.*dnf upgrade kernel' 'RHEL 9: the old release is a warning'
finds kernel.bug.stackid_overflow '"warn".*may have it' 'RHEL 9: the kernel may have the bug, since backports are not known'
finds sysctls.net.core.bpf_jit_harden '"ok".*no names in kernel stacks' 'RHEL 9: the effect of bpf_jit_harden is explained'
rm -r "$tree/sys/kernel/btf"
again
finds offcpu-record '"why": "raw mode: no /sys/kernel/btf/vmlinux.*"mode": "raw"' 'RHEL 9 without BTF: raw mode is left'
sed -i 's/^5[.]14[.]0-/5.17.0-/' "$tree/proc/sys/kernel/osrelease"
again
finds offcpu-record '"why": "raw mode: no ./sys/kernel/btf|"why": "raw mode: no .*BTF.*"mode": "raw"' 'Linux 5.17 without BTF: raw mode is left'
sed -i '/tracefs/d; /debugfs/d' "$tree/proc/self/mounts"
sed -i '/^Cap\(Prm\|Eff\)/s/000001ffffffffff/000000c000200000/' "$tree/proc/self/status"
again
finds offcpu-record '"mode": "raw"' 'raw mode does not need a mounted tracefs if the user may mount it'
sed -i '/^Cap\(Prm\|Eff\)/s/000000c000200000/000000c000000000/' "$tree/proc/self/status"
again
finds offcpu-record '"why": "procfs mode .*no tracefs.*mount -t tracefs tracefs /sys/kernel/tracing.*"mode": "procfs"' 'Linux 5.17 without BTF and tracefs: procfs mode is left; the remedy is to mount tracefs'

tree locked-6.8
is "$rc" 1 'lockdown=confidentiality: the status is 1 (degraded)'
finds offcpu-record '"degraded", "why": "procfs mode .*lockdown: confidentiality.*sed -i s/lockdown=confidentiality/.*"mode": "procfs"' 'lockdown=confidentiality: procfs mode is left; the remedy edits the command line'
finds stackmap-test '"degraded".*lockdown' 'lockdown=confidentiality degrades stackmap-test'
finds sysctls.kernel.kptr_restrict '"warn".*sysctl -w kernel.kptr_restrict=1' 'kptr_restrict=2 is reported in addition to lockdown'
finds sysctls.kernel.yama.ptrace_scope '"ok".*--ptrace cannot work' 'ptrace_scope=3: --ptrace cannot work, not even for root'

tree container-6.8
is "$rc" 2 'a container with Docker defaults: the status is 2, stackmap-test is impossible'
finds offcpu-record '"degraded", "why": "procfs mode .*lacks CAP_BPF and CAP_PERFMON.*docker run --cap-add=BPF.*"mode": "procfs"' 'a container: procfs mode is left; the remedy is --cap-add'
finds security.seccomp '"warn".*seccomp=unconfined' 'a container: the seccomp filter is reported'
finds kernel.pid_namespace 'in a PID namespace' 'a container: its PID namespace is reported'
finds memory.cgroup '"warn".*limited to 524288 KiB.*491520 KiB used.*--memory=1g' 'a container: a nearly full memory cgroup is a warning, whatever its limit'
finds kernel.bug.stackid_overflow 'on the host' 'a container: the remedy installs the kernel on the host'
finds configuration.source 'docker run -v /boot:/boot:ro' 'a container: the remedy mounts the kernel configuration of the host'
echo 16777216 >"$tree/sys/fs/cgroup/memory.current"
again
finds memory.cgroup '"ok"' 'a container: a memory cgroup with enough free memory is ok'
sed -i 's/00000000a80425fb/000000c0a80425fb/' "$tree/proc/self/status"
again
finds offcpu-record '"degraded".*"mode": "btf"' 'a container with --cap-add: the recorder uses mode btf'
finds sysctls.kernel.perf_event_paranoid '"warn".*=4 takes CAP_SYS_ADMIN .*CAP_PERFMON does not do.*sysctl -w kernel.perf_event_paranoid=2' 'a container with CAP_PERFMON: perf_event_paranoid=4 refuses perf events'
finds capabilities.ptrace 'lacks CAP_SYS_PTRACE.*--cap-add=SYS_PTRACE' 'a container: a missing CAP_SYS_PTRACE outside the bounding set needs --cap-add'
finds security.seccomp '"warn"' 'a container with --cap-add: the seccomp filter is still a warning'
ln -sfn 'user:[4026532700]' "$tree/proc/self/ns/user"
again
finds offcpu-record '"why": "procfs mode .*user namespace.*"mode": "procfs"' 'a rootless container: its capabilities do not allow BPF'

# malformed releases
tree ubuntu-6.8
rm "$tree/proc/version_signature"
for release in x '' 6 6.x 99999999999.1.1 -1.2.3; do
	echo "$release" >"$tree/proc/sys/kernel/osrelease"
	again
	finds kernel.bug.stackid_overflow '"(skip|ok|warn)"' "the check for a kernel bug accepts the release '$release'"
done

# memory cgroups: the lowest limit on the path to the root applies
tree ubuntu-6.8
mkdir -p "$tree/sys/fs/cgroup/user.slice/user-0.slice/session-1.scope"
echo max >"$tree/sys/fs/cgroup/user.slice/user-0.slice/session-1.scope/memory.max"
echo 50000000 >"$tree/sys/fs/cgroup/user.slice/memory.max"
again
finds memory.cgroup '"warn".*48828 KiB.*echo max > ./sys/fs/cgroup/user.slice/memory.max' 'a memory limit of a parent cgroup applies'
echo 'BOOT_IMAGE=/vmlinuz cgroup.memory=nosocket,nobpf quiet' >"$tree/proc/cmdline"
again
finds memory.accounting '"ok".*counts against no limit: cgroup.memory=' 'cgroup.memory=nobpf exempts BPF memory from the limit'
finds offcpu-record '"ready"' 'a limit that does not apply to BPF memory does not degrade the recorder'
tree ubuntu-6.8
sed -i 's|^cgroup2.*|cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0|' "$tree/proc/self/mounts"
printf '5:cpu,cpuacct:/\n4:memory:/jobs/a\n' >"$tree/proc/self/cgroup"
mkdir -p "$tree/sys/fs/cgroup/memory/jobs/a"
echo 9223372036854771712 >"$tree/sys/fs/cgroup/memory/memory.limit_in_bytes"
echo 33554432 >"$tree/sys/fs/cgroup/memory/jobs/a/memory.limit_in_bytes"
again
finds memory.cgroup '"warn".*32768 KiB.*echo -1 > ./sys/fs/cgroup/memory/jobs/a/memory.limit_in_bytes' 'a memory limit of cgroup v1 is found'
printf "0::/a'; reboot; '\n" >"$tree/proc/self/cgroup"
sed -i 's|^cgroup .*|cgroup2 /sys/fs/cgroup cgroup2 rw 0 0|' "$tree/proc/self/mounts"
mkdir -p "$tree/sys/fs/cgroup/a'; reboot; '"
echo 33554432 >"$tree/sys/fs/cgroup/a'; reboot; '/memory.max"
again
finds memory.cgroup '"warn".*"remedy": "raise the limit of this cgroup' 'a cgroup name with shell syntax is not put into a remedy'
printf '0::/../../../../etc\n4:memory:relative\n:::\n::\n\n9:memory\n' >"$tree/proc/self/cgroup"
again
finds memory.cgroup '"ok"' 'a malformed cgroup file gives no memory limit'

# time namespaces
tree ubuntu-6.8
finds kernel.time_namespace '"ok".*without offsets' 'clocks without a time namespace offset are ok'
printf 'monotonic        5000         0\nboottime       -100000         0\n' >"$tree/proc/self/timens_offsets"
again
finds kernel.time_namespace '"ok".*MONOTONIC is \+5000 s and CLOCK_BOOTTIME -100000 s off.*as the host does' 'the offsets of a time namespace are reported'
finds offcpu-record '"ready"' 'offsets of a time namespace do not degrade the recorder'
for text in '' boottime 'monotonic x y' 'monotonic 1 1 boottime 99999999999999999999 1'; do
	echo "$text" >"$tree/proc/self/timens_offsets"
	again
	like "$(item kernel.time_namespace)" '"(skip|ok)"' "time namespace offsets of '$text' are no warning"
done

# other settings
tree ubuntu-6.8
echo 1 >"$tree/proc/sys/kernel/bpf_stats_enabled"
again
finds sysctls.kernel.bpf_stats_enabled '"warn".*each switch costs more.*sysctl -w kernel.bpf_stats_enabled=0' 'enabled BPF statistics are a warning, with the command that disables them'
finds offcpu-record '"ready"' 'enabled BPF statistics do not degrade the recorder'
sed -i '/^proc/s/relatime/relatime,subset=pid/' "$tree/proc/self/mounts"
again
finds mounts.proc_subset '"warn".*subset=pid.*mount -t proc' 'a procfs mounted with subset=pid is reported'
finds offcpu-record '"degraded".*subset=pid.*"mode": "btf"' 'a procfs mounted with subset=pid degrades the recorder'
sed -i 's/^CONFIG_SCHED_INFO=y/# CONFIG_SCHED_INFO is not set/; s/^CONFIG_UNWINDER_ORC=y/CONFIG_ARM64=y/' "$tree/boot/"config-*
again
finds configuration.CONFIG_SCHED_INFO '"ok".*procfs mode cannot check' 'without CONFIG_SCHED_INFO procfs mode cannot check its estimates'
finds configuration.CONFIG_UNWINDER_ORC '"ok".*CONFIG_ARM64=y' 'arm64 unwinds by frame pointers, so ORC is not required'

# debug information of the kernel: the oracle for the build ID is readelf
tree ubuntu-6.8
program=$(command -v cat)
mkdir -p "$tree/usr/lib/debug/boot"
note() {
	objcopy -O binary --only-section=.note.gnu.build-id "$1" "$tree/sys/kernel/notes"
}
if id=$(readelf -n "$program" | sed -n 's/.*Build ID: //p') && [ -n "$id" ] && note "$program"; then
	again
	finds symbols.vmlinux "\"ok\".*build ID $id.*ddebs.ubuntu.com noble .*linux-image-6.8.0-45-generic-dbgsym" 'the package with debug information of the kernel is named'
	echo '6.8.0; reboot' >"$tree/proc/sys/kernel/osrelease"
	again
	finds symbols.vmlinux '"remedy": "DEBUGINFOD_URLS=' 'a release with shell syntax is not put into a remedy'
	echo 6.8.0-45-generic >"$tree/proc/sys/kernel/osrelease"
	rm "$tree/proc/version_signature"
	echo 'Linux version 6.8.0-45-generic (me@home) #1 SMP' >"$tree/proc/version"
	again
	finds symbols.vmlinux "DEBUGINFOD_URLS=.*debuginfod-find debuginfo $id" 'the remedy for a custom kernel searches by its build ID'
	cp "$program" "$tree/usr/lib/debug/boot/vmlinux-6.8.0-45-generic"
	again
	finds symbols.vmlinux "has no debug information" 'a vmlinux without debug information is reported'
	cp "$BIN/fold" "$tree/usr/lib/debug/boot/vmlinux-6.8.0-45-generic"
	again
	finds symbols.vmlinux "is another kernel's" 'a vmlinux of another build is reported'
	note "$BIN/fold"
	again
	finds symbols.vmlinux "\"ok\".*'/usr/lib/debug/boot/vmlinux-6.8.0-45-generic' is the running kernel's" 'the vmlinux of the running kernel is found'
	rm "$tree/usr/lib/debug/boot/vmlinux-6.8.0-45-generic"
	mkfifo "$tree/usr/lib/debug/boot/vmlinux-6.8.0-45-generic"
	again
	finds symbols.vmlinux '"ok".*no debug information of this kernel' 'a FIFO in place of vmlinux does not block'
	head -c 700000 /dev/urandom >"$tree/sys/kernel/notes"
	again
	finds symbols.vmlinux '"skip"' 'malformed kernel notes skip the check for vmlinux'
else
	skip 'debug information of the kernel is checked' 'the program cat has no build ID'
fi

tap_done
