#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# bpfcheck on recorded trees: each is a copy of the Debian machine in t/data/bpfcheck
# with some changes.
# shellcheck disable=SC2016
. "$(dirname "$0")/../lib/tap.sh"

R=6.1.0-18-amd64
bpfcheck=$BIN/bpfcheck

# tree NAME: a fresh copy in $tree
tree() {
	tree=$TMP/tree-$1
	cp -a "$DATA/bpfcheck/debian-6.1" "$tree"
}

# check_tree [OPTION...]: runs bpfcheck on $tree, for at most 20 s (status 124 after that)
check_tree() {
	run timeout 20 "$bpfcheck" --root "$tree" "$@"
}

# item NAME: prints the line of one check or tool in the last --json
item() {
	grep -F -e "\"id\": \"$1\"" -e "\"name\": \"$1\"" "$out"
}

# check ID REGEX NAME: runs --json on $tree and matches the line of a check or tool
check() {
	check_tree --json
	like "$(item "$1")" "$2" "$3"
}

tree fine
check_tree
is "$rc" 0 'a Debian 6.1 machine gives status 0 (ready)'
is "$(grep -c ' ready$' "$out")" 6 'every tool is ready on a Debian 6.1 machine'
is "$(cat "$err")" '' 'nothing is printed on stderr if every tool is ready'
ok 'the report of a ready machine fits in 24 lines' test "$(wc -l <"$out")" -le 24
like "$(cat "$out")" '^live +skip +not run: --root is not this machine' 'the report says that live probes are not run with --root'
check_tree -v
like "$(cat "$out")" '^configuration +ok +CONFIG_BPF_SYSCALL=y$' '-v shows each check'
check_tree -q
is "$(wc -l <"$out")" 6 '-q shows only the verdicts'
check_tree --json
ok '--json prints one JSON object' perl -MCpanel::JSON::XS -0777 -ne 'ref decode_json($_) eq "HASH" or die' "$out"
ok 'every check in the JSON has id, group, status, found and remedy' perl -MCpanel::JSON::XS -0777 -ne '
	$d = decode_json($_); die unless $d->{schema} == 1 && @{$d->{checks}} > 30 && @{$d->{tools}} == 6;
	for $c (@{$d->{checks}}) {
		die $c->{id} if join(" ", sort keys %$c) ne "found group id remedy status";
		die unless grep { $_ eq $c->{group} } @{$d->{groups}};
		die if $c->{status} !~ /^(ok|warn|fail|skip)$/ || $seen{$c->{id}}++;
	}' "$out"
check_tree --tap
cp "$out" "$TMP/tap.out"
printf '#!/bin/sh\ncat "%s"\n' "$TMP/tap.out" >"$TMP/fine.t"
ok 'the --tap output of a ready machine passes under prove' prove -e /bin/sh "$TMP/fine.t"
like "$(cat "$out")" '^ok [0-9]+ - live\.recorder # SKIP not run' 'a check that cannot run is a SKIP in the --tap output'

# Linux 5.4, built without BTF
tree old
mv "$tree/boot/config-$R" "$tree/boot/config-5.4.0-42-generic"
echo 5.4.0-42-generic >"$tree/proc/sys/kernel/osrelease"
sed -i 's/^CONFIG_DEBUG_INFO_BTF=y/# CONFIG_DEBUG_INFO_BTF is not set/' "$tree/boot/config-5.4.0-42-generic"
rm -r "$tree/sys/kernel/btf"
printf 'ID=ubuntu\nVERSION_ID="20.04"\n' >"$tree/etc/os-release"
check_tree
is "$rc" 1 'a 5.4 kernel without BTF degrades the recorder'
like "$(cat "$out")" '^offcpu-record +degraded: procfs mode .*Linux 5\.4\.0-42-generic.*before 5\.10 BPF lacks what the recorder needs' 'the verdict names the remaining mode and the cause'
like "$(cat "$out")" 'FAIL +CONFIG_DEBUG_INFO_BTF is not set' 'missing BTF is reported in addition to the old version'
like "$(cat "$out")" 'fix: apt-get install linux-generic-hwe-20.04 && reboot' 'the remedy is a command of the distribution'
like "$(cat "$out")" '^stackmap-test +degraded' 'missing BTF only degrades stackmap-test'
like "$(cat "$out")" '^symbolize +ready' 'tools that read captures are ready on every kernel'
like "$(cat "$err")" '^bpfcheck: degraded here: offcpu-record, stackmap-test$' 'stderr lists the degraded tools'
check_tree --tool fold
is "$rc" 0 '--tool sets the status by that tool only: fold is ready'
check_tree --tool stackmap-test
is "$rc" 1 '--tool sets the status by that tool only: stackmap-test is degraded'
check_tree --tool offcpu-record -q
is "$rc $(wc -l <"$out")" '1 1' '--tool with -q prints one verdict'
like "$(cat "$out")" '^offcpu-record +degraded: .*; fix: apt-get install' '-q prints cause and remedy on one line'
check memory.accounting '"ok".*may be raised' 'before 5.11 root may raise RLIMIT_MEMLOCK'
sed -i 's/000001ffffffffff/000000c000000000/' "$tree/proc/self/status"
check memory.accounting '"warn".*8192 KiB.*ulimit -l unlimited' 'before 5.11 a low RLIMIT_MEMLOCK is reported'
check_tree --tap
printf '#!/bin/sh\ncat "%s"\n' "$out.copy" >"$TMP/bad.t"
cp "$out" "$out.copy"
status 1 'a FAIL in the --tap output is a failed test under prove' prove -Q -e /bin/sh "$TMP/bad.t"

# kptr_restrict=2
tree kptr
echo 2 >"$tree/proc/sys/kernel/kptr_restrict"
sed -i 's/^[0-9a-f]*/0000000000000000/' "$tree/proc/kallsyms"
check_tree
is "$rc" 1 'hidden kernel addresses give status 1'
like "$(cat "$out")" '^offcpu-record +degraded' 'kptr_restrict=2: the recorder is degraded'
like "$(cat "$out")" '^kallsyms-resolve +degraded' 'kptr_restrict=2: kallsyms-resolve is degraded'
like "$(cat "$out")" '^stackmap-test +degraded' 'kptr_restrict=2: stackmap-test is degraded'
like "$(cat "$out")" 'fix: sysctl -w kernel.kptr_restrict=1$' 'kptr_restrict=2: the remedy is the command that lowers it'
tree percpu
perl -e 'print "0000000000000000 A zero$_\n" for 1..3000; print "ffffffff95200000 T _stext\n"' >"$tree/proc/kallsyms"
check symbols.kallsyms '"ok"' 'per-CPU symbols at address zero are not mistaken for hidden ones'
: >"$tree/proc/kallsyms"
check symbols.kallsyms '"warn".*is empty' 'an empty kallsyms is reported'
rm "$tree/proc/kallsyms"
check symbols.kallsyms '"skip".*no proc/kallsyms in the tree' 'a tree without kallsyms skips the check of kernel symbols'

# lockdown
tree lockdown
echo 'none integrity [confidentiality]' >"$tree/sys/kernel/security/lockdown"
check_tree
is "$rc" 1 'lockdown=confidentiality gives status 1'
like "$(cat "$out")" '^offcpu-record +degraded: procfs mode .*lockdown: confidentiality' 'lockdown=confidentiality: procfs mode is left, and the verdict names lockdown'
like "$(cat "$out")" '^stackmap-test +degraded' 'lockdown=confidentiality degrades stackmap-test'
like "$(cat "$out")" 'fix: reboot without it' 'the remedy for lockdown is a reboot, since it cannot be lowered'
echo 'ro quiet lockdown=confidentiality' >"$tree/proc/cmdline"
check security.lockdown 'sed -i s/lockdown=confidentiality/' 'the remedy for lockdown on the command line edits that command line'
echo 'none [integrity] confidentiality' >"$tree/sys/kernel/security/lockdown"
check security.lockdown '"ok", "found": "lockdown: integrity"' 'lockdown=integrity is ok'
rm -r "$tree/sys/kernel/security"
check security.lockdown '"skip".*mount -t securityfs' 'without securityfs the lockdown check is skipped, with the command that mounts it'

# kernel configuration
tree config
mv "$tree/boot/config-$R" "$TMP/config"
check_tree
is "$rc" 0 'without a kernel configuration the other checks decide the verdict'
check configuration.source '"warn".*none to read.*modprobe configs' 'a missing kernel configuration is reported'
gzip -c "$TMP/config" >"$tree/proc/config.gz"
check configuration.source '"ok", "found": "/proc/config.gz"' '/proc/config.gz is read'
head -c 100 "$tree/proc/config.gz" >"$TMP/cut" && cp "$TMP/cut" "$tree/proc/config.gz"
check configuration.source '"warn".*/proc/config.gz. is damaged or cut.*apt-get install --reinstall' 'a truncated config.gz is reported'
cp "$TMP/config" "$tree/boot/config-$R"
check configuration.source '"ok".*/boot/config-.*damaged or cut' 'after a truncated config.gz the next file is used, and both are named'
rm "$tree/boot/config-$R"
head -c 50000 /dev/urandom >"$tree/proc/config.gz"
check configuration.source '"warn".*is not a kernel configuration' 'random bytes are not accepted as a kernel configuration'
head -c 40000000 /dev/zero | gzip -c >"$tree/proc/config.gz"
check configuration.source '"warn".*larger than a kernel configuration can be' 'a gzip bomb is not accepted as a kernel configuration'
rm "$tree/proc/config.gz"
mkdir -p "$tree/lib/modules/$R" "$tree/usr/src/linux-headers"
ln -s /usr/src/linux-headers "$tree/lib/modules/$R/build"
cp "$TMP/config" "$tree/usr/src/linux-headers/.config"
check configuration.source "\"ok\".*/lib/modules/$R/build/.config" 'an absolute link is resolved inside the tree'
sed -i 's/^CONFIG_KPROBES=y/# CONFIG_KPROBES is not set/' "$tree/usr/src/linux-headers/.config"
check configuration.CONFIG_KPROBES '"ok".*skips its kprobe case' 'missing kprobes are only a note'
sed -i '/UNWINDER_ORC/d' "$tree/usr/src/linux-headers/.config"
check offcpu-record '"degraded".*kernel stacks are guesses' 'a kernel without a reliable unwinder degrades the recorder'

# BTF
tree btf
for cut in 0 1 23 24 100 900 1800; do
	head -c $cut "$DATA/bpfcheck/debian-6.1/sys/kernel/btf/vmlinux" >"$tree/sys/kernel/btf/vmlinux"
	check BTF.vmlinux '"fail".*is damaged' "BTF that is cut after $cut bytes is reported as damaged"
done
head -c 3000000 /dev/urandom >"$tree/sys/kernel/btf/vmlinux"
check BTF.vmlinux '"fail".*is damaged' 'random bytes in place of BTF are reported as damaged'
like "$(item offcpu-record)" '"degraded", "why": "raw mode: .*damaged.*"mode": "raw"' 'damaged BTF leaves the recorder in raw mode'
sed 's/copy_from_user_task/copy_from_user_tusk/' "$DATA/bpfcheck/debian-6.1/sys/kernel/btf/vmlinux" >"$tree/sys/kernel/btf/vmlinux"
check BTF.helpers '"warn".*lacks copy_from_user_task: waits that began before the recording have no user stack' 'a missing helper is named'
sed 's/thread_pid/threat_pid/' "$DATA/bpfcheck/debian-6.1/sys/kernel/btf/vmlinux" >"$tree/sys/kernel/btf/vmlinux"
check BTF.task_struct '"fail".*lacks thread_pid' 'a missing member of task_struct is named'
sed 's/start_stack/start_stuck/' "$DATA/bpfcheck/debian-6.1/sys/kernel/btf/vmlinux" >"$tree/sys/kernel/btf/vmlinux"
check BTF.task_struct '"fail".*lacks start_stack' 'a missing member of another structure is named'
check BTF.orc_entry '"ok".*no orc_entry: .*costs several times more' 'a kernel without an unwind table is reported, which is only a note'
sed 's/ARRAY_OF_MAPS/ARRAY_OF_MUPS/' "$DATA/bpfcheck/debian-6.1/sys/kernel/btf/vmlinux" >"$tree/sys/kernel/btf/vmlinux"
check BTF.maps '"fail".*lacks ARRAY_OF_MAPS' 'a missing map type is named'
sed 's/BPF_F_MMAPABLE/BPF_F_MMUPABLE/' "$DATA/bpfcheck/debian-6.1/sys/kernel/btf/vmlinux" >"$tree/sys/kernel/btf/vmlinux"
check BTF.maps '"fail".*lacks arrays that can be mapped' 'missing support for arrays mapped into memory is reported'
sed 's/btf_trace_sched_switch/btf_trace_sched_swotch/' "$DATA/bpfcheck/debian-6.1/sys/kernel/btf/vmlinux" >"$tree/sys/kernel/btf/vmlinux"
check BTF.sched_switch '"fail".*sched_switch' 'a missing tracepoint prototype is reported'

# sysctls
tree sysctl
echo 40 >"$tree/proc/sys/kernel/perf_event_max_stack"
check sysctls.kernel.perf_event_max_stack '"warn".*sysctl -w kernel.perf_event_max_stack=127' 'a low perf_event_max_stack is reported'
echo 0 >"$tree/proc/sys/net/core/bpf_jit_enable"
check sysctls.net.core.bpf_jit_enable '"warn".*sysctl -w net.core.bpf_jit_enable=1' 'a disabled BPF JIT is reported'
rm -r "$tree/proc/sys/net" "$tree/proc/sys/kernel/yama"
check sysctls.net.core.bpf_jit_enable '"skip".*network namespace' 'a missing sysctl is skipped'
check_tree --json
like "$(item sysctls.kernel.yama.ptrace_scope)" '"skip".*no Yama' 'a kernel without Yama skips the check of ptrace_scope'
for v in 99999999999999999999999 x ''; do
	echo "$v" >"$tree/proc/sys/kernel/perf_event_max_stack"
	check sysctls.kernel.perf_event_max_stack '"skip".*is not a number' "the value '$v' of a sysctl is skipped as not a number"
done

# hidepid
tree hidepid
sed -i '/^proc/s/relatime/relatime,hidepid=invisible/' "$tree/proc/self/mounts"
check mounts.proc '"ok".*no matter with CAP_SYS_PTRACE' 'hidepid does not affect a process with CAP_SYS_PTRACE'
sed -i '/^Cap\(Prm\|Eff\)/s/000001ffffffffff/000000c000000000/' "$tree/proc/self/status"
check mounts.proc '"warn".*hidepid=invisible.*mount -o remount,hidepid=0 /proc' 'hidepid is reported, with the remount command'
like "$(item capabilities.ptrace)" '"warn".*lacks CAP_SYS_PTRACE.*sudo offcpu-record' 'a missing CAP_SYS_PTRACE is reported, with its remedy'
like "$(item offcpu-record)" '"degraded"' 'a missing CAP_SYS_PTRACE degrades the recorder'
sed -i '/tracefs/d; /debugfs/d' "$tree/proc/self/mounts"
check mounts.tracefs '"warn".*mount -t tracefs tracefs /sys/kernel/tracing' 'an unmounted tracefs is reported'
sed -i 's/000000c000000000/000000c000200000/' "$tree/proc/self/status"
check mounts.tracefs '"ok".*mounts it for itself' 'an unmounted tracefs does not affect a process that can mount it'
echo 33554432 >"$TMP/max"
mkdir -p "$tree/sys/fs/cgroup/user.slice/user-0.slice/session-1.scope"
cp "$TMP/max" "$tree/sys/fs/cgroup/user.slice/user-0.slice/session-1.scope/memory.max"
check memory.cgroup '"warn".*32768 KiB' 'a low memory limit of a cgroup is reported'

# an unprivileged container
tree container
sed -i 's/^\(Uid:\).*/\1	1000	1000	1000	1000/; s/000001ffffffffff/0000000000000000/; s/^Seccomp:.*/Seccomp:	2/; s/^NoNewPrivs:.*/NoNewPrivs:	1/' "$tree/proc/self/status"
check capabilities.offcpu-record '"fail".*lacks CAP_BPF and CAP_PERFMON.*--cap-add=BPF' 'missing capabilities are named; outside the bounding set the remedy is --cap-add'
like "$(item security.seccomp)" '"warn".*seccomp=unconfined' 'a seccomp filter is reported'
like "$(item offcpu-record)" '"degraded".*procfs mode.*CAP_BPF.*"mode": "procfs"' 'an unprivileged container leaves the recorder in procfs mode'
sed -i 's/^CapBnd.*/CapBnd:	000001ffffffffff/; s/^NoNewPrivs.*/NoNewPrivs:	0/' "$tree/proc/self/status"
check offcpu-record 'setcap cap_syslog,cap_bpf,cap_perfmon,cap_checkpoint_restore\+ep' 'with a full bounding set the remedy is setcap'
ln -sfn 'user:[4026532700]' "$tree/proc/self/ns/user"
sed -i 's/0000000000000000/000001ffffffffff/' "$tree/proc/self/status"
check capabilities.user_namespace '"fail".*user namespace' 'in a user namespace not even all capabilities are enough'
like "$(item offcpu-record)" '"degraded".*user namespace.*"mode": "procfs"' 'a user namespace leaves the recorder in procfs mode'
ln -sfn 'pid:[4026532701]' "$tree/proc/self/ns/pid"
check kernel.pid_namespace 'in a PID namespace: PIDs are those seen here' 'a PID namespace is reported'
echo nonsense >"$tree/proc/self/status"
check capabilities.process '"skip".*no usable /proc/self/status' 'a malformed status file is reported'

# FIFOs, links and directories in place of files
tree fifo
for f in "boot/config-$R" proc/config.gz proc/kallsyms proc/self/status proc/self/mounts proc/self/cgroup \
	sys/kernel/btf/vmlinux sys/kernel/security/lockdown sys/kernel/security/lsm proc/sys/kernel/kptr_restrict etc/os-release \
	proc/version proc/version_signature proc/cmdline proc/self/timens_offsets proc/self/limits sys/kernel/notes; do
	rm -f "$tree/$f"
	mkdir -p "$(dirname "$tree/$f")"
	mkfifo "$tree/$f"
done
check_tree
is "$rc" 1 'FIFOs in place of the files do not block'
like "$(cat "$out")" "vmlinux' is not a regular file" 'a file that is not regular is reported'
tree astray
ln -sf /proc/config.gz "$tree/proc/config.gz"
check configuration.source '"ok".*/boot/config-.*config.gz' 'a link to itself is reported, and the next file is used'
echo secret >"$TMP/secret"
ln -sf "$TMP/secret" "$tree/sys/kernel/security/lsm"
ln -sf ../../../../../../../../../../../../../../../../../../../../../../etc/passwd "$tree/proc/sys/kernel/kptr_restrict"
check_tree --json
ok 'no link leads out of the tree' test "$(grep -c -e secret -e root: "$out")" -eq 0
rm "$tree/boot/config-$R"
mkdir "$tree/boot/config-$R"
check configuration.source '"warn"' 'a directory in place of the configuration is reported'

# hostile text
tree hostile
printf 'a\033[31mb # SKIP "x\\y\302\233\n' >"$tree/sys/kernel/security/lsm"
printf '6.1.0\033]0;x\007\n' >"$tree/proc/sys/kernel/osrelease"
for format in -v --tap --json; do
	check_tree $format
	ok "control characters of the tree are not printed with $format" sh -c "! LC_ALL=C grep -q '[[:cntrl:]]' '$out'"
done
ok '--json stays valid JSON with hostile text' perl -MCpanel::JSON::XS -0777 -ne 'decode_json($_)' "$out"
check_tree --tap
is "$(grep -c 'security.modules.*# *SKIP' "$out")" 0 'hostile text does not become a TAP directive'

# directories without a recorded machine
mkdir "$TMP/empty"
status 2 '--root with an empty directory gives status 2' "$bpfcheck" --root "$TMP/empty"
like "$(cat "$err")" "hint: give a directory that holds a recorded proc" 'the error for an empty directory has a hint'
is "$(cat "$out")" '' 'nothing is printed on stdout for an empty directory'
status 2 '--root with a missing directory gives status 2' "$bpfcheck" --root "$TMP/none"
like "$(cat "$err")" "cannot open the directory .*none'" 'the message names the missing directory'
status 2 '--root with a file gives status 2' "$bpfcheck" --root "$TMP/secret"

# command line
status 64 'an unknown tool is a usage error' "$bpfcheck" --tool nosuch
like "$(cat "$err")" "option '--tool': 'nosuch' is not one of offcpu-record, symbolize, fold, " 'the message names the unknown tool and lists the known ones'
status 64 'two output formats are a usage error' "$bpfcheck" --tap --json
status 64 'an argument is a usage error' "$bpfcheck" x
status 64 '--root without an argument is a usage error' "$bpfcheck" --root
status 64 'an unknown option is a usage error' "$bpfcheck" --nosuch
is "$(wc -l <"$err") $(wc -c <"$out")" '2 0' 'a usage error prints two lines on stderr and nothing on stdout'
status 0 '--help exits with status 0' "$bpfcheck" --help
like "$(cat "$out")" '^usage: bpfcheck' '--help prints the usage on stdout'
status 0 '--version exits with status 0' "$bpfcheck" --version
tree full
sh -c "'$bpfcheck' --root '$tree' >/dev/full" 2>"$err"
is "$?" 2 'a full disk gives status 2'
like "$(cat "$err")" 'cannot write the result' 'a full disk is reported'
sh -c "'$bpfcheck' --root '$tree' >&-" 2>"$err"
is "$?" 2 'a closed stdout gives status 2'

tap_done
