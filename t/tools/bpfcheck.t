#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# bpfcheck on recorded trees of other machines: all of them are the Debian
# machine in t/data/bpfcheck with something taken away.
# shellcheck disable=SC2016
. "$(dirname "$0")/../lib/tap.sh"

R=6.1.0-18-amd64
bpfcheck=$BIN/bpfcheck

# tree NAME: a fresh copy in $tree
tree() {
	tree=$TMP/tree-$1
	cp -a "$DATA/bpfcheck/debian-6.1" "$tree"
}

# look [OPTION...]: bpfcheck at $tree; never longer than 20 s, which would be 124
look() {
	run timeout 20 "$bpfcheck" --root "$tree" "$@"
}

# the line of one check or tool in the last --json
item() {
	grep -F -e "\"id\": \"$1\"" -e "\"name\": \"$1\"" "$out"
}

# check ID REGEX NAME: what the JSON of $tree says about a check or tool
check() {
	look --json
	like "$(item "$1")" "$2" "$3"
}

tree fine
look
is "$rc" 0 'a Debian 6.1 machine is ready'
is "$(grep -c ' ready$' "$out")" 6 'every tool is ready there'
is "$(cat "$err")" '' 'nothing is said on stderr when all is ready'
ok 'a machine in order fits 24 lines' test "$(wc -l <"$out")" -le 24
like "$(cat "$out")" '^live +skip +not run: --root is not this machine' 'live probes are not run on a recorded tree, and it is said'
look -v
like "$(cat "$out")" '^configuration +ok +CONFIG_BPF_SYSCALL=y$' '-v shows each check'
look -q
is "$(wc -l <"$out")" 6 '-q shows the verdicts only'
look --json
ok '--json is one JSON object' perl -MJSON::PP -0777 -ne 'ref decode_json($_) eq "HASH" or die' "$out"
ok 'every check has id, group, status, found and remedy' perl -MJSON::PP -0777 -ne '
	$d = decode_json($_); die unless $d->{schema} == 1 && @{$d->{checks}} > 30 && @{$d->{tools}} == 6;
	for $c (@{$d->{checks}}) {
		die $c->{id} if join(" ", sort keys %$c) ne "found group id remedy status";
		die unless grep { $_ eq $c->{group} } @{$d->{groups}};
		die if $c->{status} !~ /^(ok|warn|fail|skip)$/ || $seen{$c->{id}}++;
	}' "$out"
look --tap
cp "$out" "$TMP/tap.out"
printf '#!/bin/sh\ncat "%s"\n' "$TMP/tap.out" >"$TMP/fine.t"
ok '--tap of a ready machine passes under prove' prove -e /bin/sh "$TMP/fine.t"
like "$(cat "$out")" '^ok [0-9]+ - live\.recorder # SKIP not run' 'a check that cannot run is a SKIP'

# Linux 5.4, built without BTF
tree old
mv "$tree/boot/config-$R" "$tree/boot/config-5.4.0-42-generic"
echo 5.4.0-42-generic >"$tree/proc/sys/kernel/osrelease"
sed -i 's/^CONFIG_DEBUG_INFO_BTF=y/# CONFIG_DEBUG_INFO_BTF is not set/' "$tree/boot/config-5.4.0-42-generic"
rm -r "$tree/sys/kernel/btf"
printf 'ID=ubuntu\nVERSION_ID="20.04"\n' >"$tree/etc/os-release"
look
is "$rc" 1 'a 5.4 kernel without BTF degrades the recorder'
like "$(cat "$out")" '^offcpu-record +degraded: procfs mode .*Linux 5\.4\.0-42-generic.*before 5\.10 BPF lacks what the recorder needs' 'the verdict names the mode that is left, and the cause'
like "$(cat "$out")" 'FAIL +CONFIG_DEBUG_INFO_BTF is not set' 'that BTF is missing is reported too'
like "$(cat "$out")" 'fix: apt-get install linux-generic-hwe-20.04 && reboot' 'the remedy is the command of that distribution'
like "$(cat "$out")" '^stackmap-test +degraded' 'without BTF stackmap-test is degraded only'
like "$(cat "$out")" '^symbolize +ready' 'what works on captures is ready everywhere'
like "$(cat "$err")" '^bpfcheck: degraded here: offcpu-record, stackmap-test$' 'stderr names what is degraded'
look --tool fold
is "$rc" 0 'with --tool only that one counts: fold is ready'
look --tool stackmap-test
is "$rc" 1 'with --tool only that one counts: stackmap-test is degraded'
look --tool offcpu-record -q
is "$rc $(wc -l <"$out")" '1 1' '--tool with -q gives that verdict alone'
like "$(cat "$out")" '^offcpu-record +degraded: .*; fix: apt-get install' '-q has cause and remedy in one line'
check memory.accounting '"ok".*may be raised' 'before 5.11 root may raise RLIMIT_MEMLOCK'
sed -i 's/000001ffffffffff/000000c000000000/' "$tree/proc/self/status"
check memory.accounting '"warn".*8192 KiB.*ulimit -l unlimited' 'before 5.11 a low RLIMIT_MEMLOCK is reported'
look --tap
printf '#!/bin/sh\ncat "%s"\n' "$out.copy" >"$TMP/bad.t"
cp "$out" "$out.copy"
status 1 'a FAIL is a failed test under prove' prove -Q -e /bin/sh "$TMP/bad.t"

# kptr_restrict=2
tree kptr
echo 2 >"$tree/proc/sys/kernel/kptr_restrict"
sed -i 's/^[0-9a-f]*/0000000000000000/' "$tree/proc/kallsyms"
look
is "$rc" 1 'hidden kernel addresses degrade'
like "$(cat "$out")" '^offcpu-record +degraded' 'kptr_restrict=2: the recorder is degraded'
like "$(cat "$out")" '^kallsyms-resolve +degraded' 'kptr_restrict=2: kallsyms-resolve is degraded'
like "$(cat "$out")" '^stackmap-test +degraded' 'kptr_restrict=2: stackmap-test is degraded'
like "$(cat "$out")" 'fix: sysctl -w kernel.kptr_restrict=1$' 'kptr_restrict=2: the command lowers it'
tree percpu
perl -e 'print "0000000000000000 A zero$_\n" for 1..3000; print "ffffffff95200000 T _stext\n"' >"$tree/proc/kallsyms"
check symbols.kallsyms '"ok"' 'per-CPU symbols at zero are not taken for hidden ones'
: >"$tree/proc/kallsyms"
check symbols.kallsyms '"warn".*is empty' 'an empty kallsyms is reported'
rm "$tree/proc/kallsyms"
check symbols.kallsyms '"skip".*no proc/kallsyms in the tree' 'a tree without kallsyms is not judged by it'

# lockdown
tree lockdown
echo 'none integrity [confidentiality]' >"$tree/sys/kernel/security/lockdown"
look
is "$rc" 1 'lockdown=confidentiality leaves procfs mode'
like "$(cat "$out")" '^offcpu-record +degraded: procfs mode .*lockdown: confidentiality' 'and the verdict names it'
like "$(cat "$out")" '^stackmap-test +degraded' 'lockdown=confidentiality degrades stackmap-test'
like "$(cat "$out")" 'fix: reboot without it' 'lockdown cannot be lowered, and it is said'
echo 'ro quiet lockdown=confidentiality' >"$tree/proc/cmdline"
check security.lockdown 'sed -i s/lockdown=confidentiality/' 'lockdown from the command line: its remedy edits that'
echo 'none [integrity] confidentiality' >"$tree/sys/kernel/security/lockdown"
check security.lockdown '"ok", "found": "lockdown: integrity"' 'lockdown=integrity does no harm'
rm -r "$tree/sys/kernel/security"
check security.lockdown '"skip".*mount -t securityfs' 'without securityfs lockdown is not checked, and the mount is reported'

# the configuration
tree config
mv "$tree/boot/config-$R" "$TMP/config"
look
is "$rc" 0 'without a configuration the verdicts stand on the rest'
check configuration.source '"warn".*none to read.*modprobe configs' 'a configuration that is nowhere is reported'
gzip -c "$TMP/config" >"$tree/proc/config.gz"
check configuration.source '"ok", "found": "/proc/config.gz"' '/proc/config.gz is read'
head -c 100 "$tree/proc/config.gz" >"$TMP/cut" && cp "$TMP/cut" "$tree/proc/config.gz"
check configuration.source '"warn".*/proc/config.gz. is damaged or cut.*apt-get install --reinstall' 'a cut config.gz is reported'
cp "$TMP/config" "$tree/boot/config-$R"
check configuration.source '"ok".*/boot/config-.*damaged or cut' 'after a cut config.gz the next one is used, and both are named'
rm "$tree/boot/config-$R"
head -c 50000 /dev/urandom >"$tree/proc/config.gz"
check configuration.source '"warn".*is not a kernel configuration' 'garbage is no configuration'
head -c 40000000 /dev/zero | gzip -c >"$tree/proc/config.gz"
check configuration.source '"warn".*larger than a kernel configuration can be' 'a gzip bomb is refused'
rm "$tree/proc/config.gz"
mkdir -p "$tree/lib/modules/$R" "$tree/usr/src/linux-headers"
ln -s /usr/src/linux-headers "$tree/lib/modules/$R/build"
cp "$TMP/config" "$tree/usr/src/linux-headers/.config"
check configuration.source "\"ok\".*/lib/modules/$R/build/.config" 'an absolute link is followed inside of the tree'
sed -i 's/^CONFIG_KPROBES=y/# CONFIG_KPROBES is not set/' "$tree/usr/src/linux-headers/.config"
check configuration.CONFIG_KPROBES '"ok".*skips its kprobe case' 'no kprobes is a note: nothing else needs them'
sed -i '/UNWINDER_ORC/d' "$tree/usr/src/linux-headers/.config"
check offcpu-record '"degraded".*kernel stacks are guesses' 'a kernel without a reliable unwinder degrades'

# BTF
tree btf
for cut in 0 1 23 24 100 900 1800; do
	head -c $cut "$DATA/bpfcheck/debian-6.1/sys/kernel/btf/vmlinux" >"$tree/sys/kernel/btf/vmlinux"
	check BTF.vmlinux '"fail".*is damaged' "BTF cut after $cut bytes is damaged"
done
head -c 3000000 /dev/urandom >"$tree/sys/kernel/btf/vmlinux"
check BTF.vmlinux '"fail".*is damaged' 'garbage is no BTF'
like "$(item offcpu-record)" '"degraded", "why": "raw mode: .*damaged.*"mode": "raw"' 'damaged BTF leaves raw mode'
sed 's/copy_from_user_task/copy_from_user_tusk/' "$DATA/bpfcheck/debian-6.1/sys/kernel/btf/vmlinux" >"$tree/sys/kernel/btf/vmlinux"
check BTF.helpers '"warn".*lacks copy_from_user_task: waits that began before the recording have no user stack' 'a helper that the kernel lacks is named'
sed 's/thread_pid/threat_pid/' "$DATA/bpfcheck/debian-6.1/sys/kernel/btf/vmlinux" >"$tree/sys/kernel/btf/vmlinux"
check BTF.task_struct '"fail".*lacks thread_pid' 'a structure member that the kernel lacks is named'
sed 's/start_stack/start_stuck/' "$DATA/bpfcheck/debian-6.1/sys/kernel/btf/vmlinux" >"$tree/sys/kernel/btf/vmlinux"
check BTF.task_struct '"fail".*lacks start_stack' 'so is one of another structure'
sed 's/ARRAY_OF_MAPS/ARRAY_OF_MUPS/' "$DATA/bpfcheck/debian-6.1/sys/kernel/btf/vmlinux" >"$tree/sys/kernel/btf/vmlinux"
check BTF.maps '"fail".*lacks ARRAY_OF_MAPS' 'a kind of map that the kernel lacks is named'
sed 's/BPF_F_MMAPABLE/BPF_F_MMUPABLE/' "$DATA/bpfcheck/debian-6.1/sys/kernel/btf/vmlinux" >"$tree/sys/kernel/btf/vmlinux"
check BTF.maps '"fail".*lacks arrays that can be mapped' 'so is that an array can be mapped into memory'
sed 's/btf_trace_sched_switch/btf_trace_sched_swotch/' "$DATA/bpfcheck/debian-6.1/sys/kernel/btf/vmlinux" >"$tree/sys/kernel/btf/vmlinux"
check BTF.sched_switch '"fail".*sched_switch' 'a tracepoint without prototype is reported'

# settings
tree sysctl
echo 40 >"$tree/proc/sys/kernel/perf_event_max_stack"
check sysctls.kernel.perf_event_max_stack '"warn".*sysctl -w kernel.perf_event_max_stack=127' 'a low perf_event_max_stack is reported'
echo 0 >"$tree/proc/sys/net/core/bpf_jit_enable"
check sysctls.net.core.bpf_jit_enable '"warn".*sysctl -w net.core.bpf_jit_enable=1' 'BPF without JIT is reported'
rm -r "$tree/proc/sys/net" "$tree/proc/sys/kernel/yama"
check sysctls.net.core.bpf_jit_enable '"skip".*network namespace' 'a setting that is not there is not checked'
look --json
like "$(item sysctls.kernel.yama.ptrace_scope)" '"skip".*no Yama' 'a kernel without Yama is fine'
for v in 99999999999999999999999 x ''; do
	echo "$v" >"$tree/proc/sys/kernel/perf_event_max_stack"
	check sysctls.kernel.perf_event_max_stack '"skip".*is not a number' "a setting of '$v' is no number"
done

# hidepid
tree hidepid
sed -i '/^proc/s/relatime/relatime,hidepid=invisible/' "$tree/proc/self/mounts"
check mounts.proc '"ok".*no matter with CAP_SYS_PTRACE' 'hidepid does not matter to CAP_SYS_PTRACE'
sed -i '/^Cap\(Prm\|Eff\)/s/000001ffffffffff/000000c000000000/' "$tree/proc/self/status"
check mounts.proc '"warn".*hidepid=invisible.*mount -o remount,hidepid=0 /proc' 'hidepid is reported, with the remount'
like "$(item capabilities.ptrace)" '"warn".*lacks CAP_SYS_PTRACE.*sudo offcpu-record' 'a missing CAP_SYS_PTRACE is reported, with what gives it'
like "$(item offcpu-record)" '"degraded"' 'the recorder is degraded, not impossible'
sed -i '/tracefs/d; /debugfs/d' "$tree/proc/self/mounts"
check mounts.tracefs '"warn".*mount -t tracefs tracefs /sys/kernel/tracing' 'tracefs that is not mounted is reported'
sed -i 's/000000c000000000/000000c000200000/' "$tree/proc/self/status"
check mounts.tracefs '"ok".*mounts it for itself' 'tracefs that is not mounted does not matter to who can mount it'
echo 33554432 >"$TMP/max"
mkdir -p "$tree/sys/fs/cgroup/user.slice/user-0.slice/session-1.scope"
cp "$TMP/max" "$tree/sys/fs/cgroup/user.slice/user-0.slice/session-1.scope/memory.max"
check memory.cgroup '"warn".*32768 KiB' 'a tight memory cgroup is reported'

# an unprivileged container
tree container
sed -i 's/^\(Uid:\).*/\1	1000	1000	1000	1000/; s/000001ffffffffff/0000000000000000/; s/^Seccomp:.*/Seccomp:	2/; s/^NoNewPrivs:.*/NoNewPrivs:	1/' "$tree/proc/self/status"
check capabilities.offcpu-record '"fail".*lacks CAP_BPF and CAP_PERFMON.*--cap-add=BPF' 'without capabilities the missing ones are named; outside the bounding set the remedy is the container'
like "$(item security.seccomp)" '"warn".*seccomp=unconfined' 'a seccomp filter is reported'
like "$(item offcpu-record)" '"degraded".*procfs mode.*CAP_BPF.*"mode": "procfs"' 'an unprivileged container leaves procfs mode'
sed -i 's/^CapBnd.*/CapBnd:	000001ffffffffff/; s/^NoNewPrivs.*/NoNewPrivs:	0/' "$tree/proc/self/status"
check offcpu-record 'setcap cap_syslog,cap_bpf,cap_perfmon,cap_checkpoint_restore\+ep' 'with a full bounding set the remedy is setcap'
ln -sfn 'user:[4026532700]' "$tree/proc/self/ns/user"
sed -i 's/0000000000000000/000001ffffffffff/' "$tree/proc/self/status"
check capabilities.user_namespace '"fail".*user namespace' 'in a user namespace all capabilities do not help'
like "$(item offcpu-record)" '"degraded".*user namespace.*"mode": "procfs"' 'a user namespace leaves procfs mode'
ln -sfn 'pid:[4026532701]' "$tree/proc/self/ns/pid"
check kernel.pid_namespace 'in a PID namespace: PIDs are those seen here' 'a PID namespace is reported'
echo nonsense >"$tree/proc/self/status"
check capabilities.process '"skip".*no usable /proc/self/status' 'a status file that is none is reported'

# what blocks, and what leads astray
tree fifo
for f in "boot/config-$R" proc/config.gz proc/kallsyms proc/self/status proc/self/mounts proc/self/cgroup \
	sys/kernel/btf/vmlinux sys/kernel/security/lockdown sys/kernel/security/lsm proc/sys/kernel/kptr_restrict etc/os-release \
	proc/version proc/version_signature proc/cmdline proc/self/timens_offsets proc/self/limits sys/kernel/notes; do
	rm -f "$tree/$f"
	mkdir -p "$(dirname "$tree/$f")"
	mkfifo "$tree/$f"
done
look
is "$rc" 1 'FIFOs all over the tree block nothing'
like "$(cat "$out")" "vmlinux' is not a regular file" 'what is not a regular file is reported'
tree astray
ln -sf /proc/config.gz "$tree/proc/config.gz"
check configuration.source '"ok".*/boot/config-.*config.gz' 'a link to itself is reported, and the next file used'
echo secret >"$TMP/secret"
ln -sf "$TMP/secret" "$tree/sys/kernel/security/lsm"
ln -sf ../../../../../../../../../../../../../../../../../../../../../../etc/passwd "$tree/proc/sys/kernel/kptr_restrict"
look --json
ok 'no link leads out of the tree' test "$(grep -c -e secret -e root: "$out")" -eq 0
rm "$tree/boot/config-$R"
mkdir "$tree/boot/config-$R"
check configuration.source '"warn"' 'a directory where a file is expected is reported'

# foreign text
tree hostile
printf 'a\033[31mb # SKIP "x\\y\302\233\n' >"$tree/sys/kernel/security/lsm"
printf '6.1.0\033]0;x\007\n' >"$tree/proc/sys/kernel/osrelease"
for format in -v --tap --json; do
	look $format
	ok "control characters of the tree do not pass into $format" sh -c "! LC_ALL=C grep -q '[[:cntrl:]]' '$out'"
done
ok 'hostile text stays JSON' perl -MJSON::PP -0777 -ne 'decode_json($_)' "$out"
look --tap
is "$(grep -c 'security.modules.*# *SKIP' "$out")" 0 'foreign text is no TAP directive'

# no machine
mkdir "$TMP/empty"
status 2 'an empty directory is no machine' "$bpfcheck" --root "$TMP/empty"
like "$(cat "$err")" "hint: give a directory that holds a recorded proc" 'an empty directory gets a hint'
is "$(cat "$out")" '' 'where nothing can be diagnosed stdout stays empty'
status 2 'a missing directory is status 2' "$bpfcheck" --root "$TMP/none"
like "$(cat "$err")" "cannot open the directory .*none'" 'a missing directory is named'
status 2 'a file is no directory' "$bpfcheck" --root "$TMP/secret"

# the command line
status 64 'an unknown tool is a bad command line' "$bpfcheck" --tool nosuch
like "$(cat "$err")" "option '--tool': 'nosuch' is not one of offcpu-record, symbolize, fold, " 'an unknown tool is named, and those that are'
status 64 'two formats are a bad command line' "$bpfcheck" --tap --json
status 64 'an argument is a bad command line' "$bpfcheck" x
status 64 '--root without argument is a bad command line' "$bpfcheck" --root
status 64 'an unknown option is a bad command line' "$bpfcheck" --nosuch
is "$(wc -l <"$err") $(wc -c <"$out")" '2 0' 'a bad command line is two lines on stderr'
status 0 '--help is on stdout' "$bpfcheck" --help
like "$(cat "$out")" '^usage: bpfcheck' '--help begins with the usage'
status 0 '--version is on stdout' "$bpfcheck" --version
tree full
sh -c "'$bpfcheck' --root '$tree' >/dev/full" 2>"$err"
is "$?" 2 'a full disk is status 2'
like "$(cat "$err")" 'cannot write the result' 'a full disk is reported'
sh -c "'$bpfcheck' --root '$tree' >&-" 2>"$err"
is "$?" 2 'a closed stdout is status 2'

tap_done
