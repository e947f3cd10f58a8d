#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# bpfcheck on this machine, with its live probes and with privileges that are
# really dropped.
# shellcheck disable=SC2016
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"

bpfcheck=$BIN/bpfcheck

# nobody COMMAND...: runs COMMAND as a user without privileges
nobody() {
	setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all "$@"
}

item() {
	grep -F -e "\"id\": \"$1\"" -e "\"name\": \"$1\"" "$out"
}

run "$bpfcheck" --tool offcpu-record -q
[ "$rc" -eq 0 ] || skip_all "$(cat "$out")"
[ "$(id -u)" -eq 0 ] || skip_all 'not root, so no privilege can be dropped'

# with all privileges
dmesg >"$TMP/dmesg.before" 2>"$TMP/dmesg.err" || : >"$TMP/dmesg.err"
status 0 'bpfcheck exits with status 0 on this machine' "$bpfcheck"
ok 'the report fits 24 lines' test "$(wc -l <"$out")" -le 24
status 0 '--json exits with status 0 on this machine' "$bpfcheck" --json
for probe in stack_map take_stack recorder unwind_tables raw_recorder process_events verifier; do
	like "$(item live.$probe)" '"status": "ok"' "live probe $probe succeeds"
done
like "$(item BTF.orc_entry)" "\"status\": \"ok\".*walked by its unwind table" 'kernel stacks can be walked by the kernel'"'"'s unwind table'
like "$(item live.take_stack)" 'kernel stack of [1-9][0-9]* frames and a user stack of [1-9]' 'live probe take_stack finds frames in both stacks'
ok '--json prints one JSON object' perl -MCpanel::JSON::XS -0777 -ne 'ref decode_json($_) eq "HASH" or die' "$out"
if [ -s "$TMP/dmesg.err" ]; then
	skip 'nothing is logged by the kernel' "$(head -n 1 "$TMP/dmesg.err")"
else
	# other processes may have logged something meanwhile
	dmesg | diff "$TMP/dmesg.before" - | grep -i -e bpf -e lockdown >"$TMP/dmesg.new"
	is "$(cat "$TMP/dmesg.new")" '' 'nothing is logged by the kernel'
fi
bpftool=$(command -v bpftool || echo /usr/sbin/bpftool)
# the kernel frees a program a grace period after its last user is gone
ok 'bpfcheck leaves no BPF program behind' until_true sh -c "! '$bpftool' prog show name take_stack 2>/dev/null | grep -q ."
"$bpfcheck" -v >"$out" 2>"$err"
ok 'bpfcheck -v shows the release of uname' grep -qF "Linux $(uname -r)" "$out"
"$bpfcheck" --json >"$out"
is "$(grep -v '"id": "live.program[.]' "$out" | grep -c '"group": "live", "status": "ok"')" 22 '--json has a line for every live probe'
# each program of the recorder, with the number of instructions that the verifier processed for it
for mode in btf raw; do
	for program in sched_switch record_switch on_fork on_exec; do
		like "$(item live.program.$mode.$program)" '"status": "ok".*: [1-9][0-9]* of 1000000 instructions' "mode $mode: the verifier's instructions for $program are reported"
	done
done
largest=$(sed -n 's/.*"id": "live.program.*: \([0-9]*\) of 1000000 .*/\1/p' "$out" | sort -n | tail -n 1)
like "$(item live.verifier)" "at most $largest instructions" 'live.verifier reports the largest number of instructions'
if [ -r /proc/config.gz ]; then
	"$bpfcheck" --json >"$out"
	want=$(zcat /proc/config.gz | grep -c -e '^CONFIG_BPF_SYSCALL=y' -e '^CONFIG_KALLSYMS=y')
	is "$(grep -c -F -e '"CONFIG_BPF_SYSCALL=y"' -e '"CONFIG_KALLSYMS=y"' "$out")" "$want" 'the configuration is what zcat shows'
else
	skip 'the configuration is what zcat shows' 'no /proc/config.gz'
fi
id=$("$bpftool" btf dump file /sys/kernel/btf/vmlinux 2>/dev/null | tail -n 2000 | sed -n 's/^\[\([0-9]*\)\].*/\1/p' | tail -n 1)
"$bpfcheck" --json >"$out"
like "$(item BTF.vmlinux)" "$id types" 'BTF.vmlinux reports as many types as bpftool dumps'

# each ID is in the manual, in full or without the prefix "configuration."
sed -n 's/.*"id": "\([^"]*\)".*/\1/p' "$out" | while read -r id; do
	case $id in live.program.*) id=live.program.MODE.NAME ;; esac
	grep -qE "(^| )($id|${id#configuration.})( |$)" "$TOP/docs/bpfcheck.1" || echo "$id"
done >"$TMP/unknown"
is "$(cat "$TMP/unknown")" '' 'the manual lists the ID of every check'

# without privileges
status 1 'without privileges offcpu-record is degraded' nobody "$bpfcheck" --tool offcpu-record
status 2 'without privileges stackmap-test cannot run' nobody "$bpfcheck"
like "$(cat "$out")" '^offcpu-record +degraded: procfs mode .*: offcpu-record lacks CAP_BPF and CAP_PERFMON' 'without privileges the verdict names both missing capabilities'
like "$(cat "$out")" '^symbolize +ready' 'without privileges captures can be read'
status 0 'without privileges symbolize is ready' nobody "$bpfcheck" --tool symbolize
like "$(cat "$out")" '^live +skip +not run.*CAP_BPF' 'without privileges the live probes are skipped, with the reason'
if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -gt 1 ]; then
	like "$(cat "$out")" 'every address in /proc/kallsyms is zero' 'without privileges hidden addresses are reported'
else
	skip 'without privileges hidden addresses are reported' 'perf_event_paranoid shows them to everyone'
fi

# without one capability
without() {
	setpriv --bounding-set="-$1,-sys_admin" "$bpfcheck" --json
}
without perfmon >"$out" 2>"$err"
like "$(item capabilities.offcpu-record)" 'lacks CAP_PERFMON"' 'root without CAP_PERFMON: the missing capability is named'
like "$(item offcpu-record)" '"degraded".*procfs mode.*--cap-add' 'outside the bounding set the fix is an option of the container'
without sys_ptrace >"$out" 2>"$err"
like "$(item offcpu-record)" '"degraded".*CAP_SYS_PTRACE' 'root without CAP_SYS_PTRACE: the recorder is degraded'
without syslog >"$out" 2>"$err"
if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -gt 1 ]; then
	like "$(item symbols.kallsyms)" '"warn".*sysctl -w' 'root without CAP_SYSLOG: hidden addresses are reported, with a command as the fix'
else
	skip 'root without CAP_SYSLOG: hidden addresses are reported, with a command as the fix' 'perf_event_paranoid shows them'
fi
if unshare -Ur true 2>"$err"; then
	status 1 'root of a user namespace cannot use BPF' unshare -Ur "$bpfcheck" --tool offcpu-record
	like "$(cat "$out")" '^offcpu-record +degraded: procfs mode .*: in a user namespace' 'the verdict names the user namespace as the reason'
else
	skip 'root of a user namespace cannot use BPF' "$(head -n 1 "$err")"
fi
if unshare -pf --mount-proc true 2>"$err"; then
	status 0 'in a PID namespace root can record' unshare -pf --mount-proc "$bpfcheck" --json
	like "$(item live.take_stack)" '"status": "ok"' 'live probe take_stack finds its own process in a PID namespace'
	like "$(item kernel.pid_namespace)" 'in a PID namespace' 'the PID namespace is reported'
else
	skip 'in a PID namespace root can record' "$(head -n 1 "$err")"
fi
status 0 'with no_new_privs bpfcheck as root exits with status 0' setpriv --no-new-privs "$bpfcheck"

# real changes of namespaces, file systems and limits
bare() {
	unshare -m sh -c "$1" 2>"$err"
}
if bare 'umount -l /proc && mount -t proc -o subset=pid proc /proc' 2>"$err"; then
	bare "mount -t proc -o subset=pid proc /proc && exec '$bpfcheck' --json" >"$out"
	is "$?" 1 'with subset=pid bpfcheck exits with status 1'
	like "$(item mounts.proc_subset)" '"warn".*mount -t proc proc /proc' 'subset=pid is reported, with a command as the fix'
	ok 'with subset=pid the kernel release is still known' grep -qF "\"release\": \"$(uname -r)\"" "$out"
	bare "mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all '$bpfcheck' --json" >"$out"
	like "$(item mounts.proc)" '"warn".*hidepid=' 'hidepid=2 is reported'
	bare "umount -l /proc; exec '$bpfcheck'" >"$out"
	is "$? $(wc -c <"$out")" '2 0' 'without /proc bpfcheck exits with status 2 and prints no report'
	like "$(cat "$err")" 'hint: mount -t proc proc /proc' 'without /proc the hint is to mount it'
else
	skip 'subset=pid is reported, with a command as the fix' "$(head -n 1 "$err")"
fi
if unshare -T --boottime 100000 --monotonic 5000 true 2>"$err"; then
	unshare -T --boottime 100000 --monotonic 5000 "$bpfcheck" --json >"$out" 2>"$err"
	is "$?" 0 'in a time namespace the recorder is ready'
	like "$(item kernel.time_namespace)" '"ok".*MONOTONIC is \+5000 s and CLOCK_BOOTTIME \+100000 s off' 'the offsets of a time namespace are reported'
else
	skip 'in a time namespace the recorder is ready' "$(head -n 1 "$err")"
fi
if group=$(mktemp -d /sys/fs/cgroup/memory/stacktools-t.XXXXXX 2>"$err"); then
	echo 62914560 >"$group/memory.limit_in_bytes"
	# shellcheck disable=SC2031
	(echo 0 >"$group/tasks" && exec "$bpfcheck" --json) >"$out" 2>/dev/null
	like "$(item memory.cgroup)" '"warn".*limited to 61440 KiB of memory, [0-9]+ KiB used' 'a real limit of memory is reported'
	rmdir "$group"
else
	skip 'a real limit of memory is reported' "no memory cgroup of version 1: $(head -n 1 "$err")"
fi
DEBUGINFOD_URLS=http://127.0.0.1:1 "$bpfcheck" --json >"$out"
like "$(item symbols.debuginfod)" 'http://127.0.0.1:1|libdebuginfod' 'DEBUGINFOD_URLS is reported'
DEBUGINFOD_URLS=' ' "$bpfcheck" --json >"$out"
like "$(item symbols.debuginfod)" '"ok".*not set.*export DEBUGINFOD_URLS=https' 'without DEBUGINFOD_URLS the command that sets it is shown'

# filtered NR VERDICT PRCTL COMMAND...: runs COMMAND under a seccomp filter as containers have it: system
# call NR gets VERDICT (hex); PRCTL is the number of prctl()
filtered() {
	perl -e '
		my ($nr, $verdict, $prctl) = (shift, shift, shift);
		my $code = pack("SCCL" x 4, 0x20, 0, 0, 0, 0x15, 0, 1, $nr, 0x06, 0, 0, hex $verdict, 0x06, 0, 0, 0x7fff0000);
		my $prog = pack("Sx6P", 4, $code);
		syscall($prctl, 38, 1, 0, 0, 0) == 0 && syscall($prctl, 22, 2, $prog) == 0 or die "prctl: $!";
		exec @ARGV;' "$@"
}
case $(uname -m) in
x86_64) bpf_nr=321 perf_nr=298 prctl_nr=157 ;;
aarch64) bpf_nr=280 perf_nr=241 prctl_nr=167 ;;
*) bpf_nr= ;;
esac
if [ -n "$bpf_nr" ]; then
	for verdict in 00050001 00050026 0005000d; do # EPERM, ENOSYS, EACCES
		filtered "$bpf_nr" "$verdict" "$prctl_nr" "$bpfcheck" --json >"$out" 2>"$err"
		like "$(item security.bpf_call)" '"fail".*forbidden by a seccomp filter.*seccomp=unconfined' "a seccomp filter that gives bpf() the verdict $verdict is reported"
		like "$(item offcpu-record)" '"why": "procfs mode .*bpf\(\) is forbidden.*"mode": "procfs"' "a seccomp filter that gives bpf() the verdict $verdict leaves procfs mode"
	done
	filtered "$perf_nr" 00050001 "$prctl_nr" "$bpfcheck" --json >"$out" 2>"$err"
	like "$(item security.perf_call)" '"fail".*perf_event_open\(\) is forbidden by a seccomp filter' 'a seccomp filter of perf_event_open() is reported'
	like "$(item security.bpf_call)" '"ok"' 'a seccomp filter of perf_event_open() is not reported for bpf()'
	like "$(item offcpu-record)" '"degraded".*"mode": "btf"' 'a seccomp filter of perf_event_open() degrades the recorder and leaves mode btf'
	filtered "$perf_nr" 00050001 "$prctl_nr" "$BIN/offcpu-record" -d 0.2 -o "$TMP/filtered.bin" -- sleep 1 >"$out" 2>"$err" </dev/null
	ok 'offcpu-record still records under a seccomp filter of perf_event_open()' test -s "$TMP/filtered.bin"
else
	skip 'a seccomp filter is reported' "the system call number of bpf() on $(uname -m) is not known here"
fi

# the command that bpfcheck prints as the fix works
mkdir "$TMP/bin" && cp "$bpfcheck" "$TMP/bin/bpfcheck" && cp "$bpfcheck" "$TMP/bin/offcpu-record"
chmod 755 "$TMP" "$TMP/bin" "$TMP/bin/"*
nobody "$TMP/bin/bpfcheck" --tool offcpu-record -q >"$out" 2>/dev/null
fix=$(sed -n 's/.*; fix: //p' "$out")
like "$fix" "^setcap .*'$TMP/bin/offcpu-record'\$" 'the fix is setcap on the offcpu-record beside this bpfcheck'
if sh -c "$fix" 2>"$err"; then
	# kernels of Debian and Ubuntu require CAP_SYS_ADMIN for perf events if perf_event_paranoid is
	# above 2
	events=0
	setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all,+perfmon --ambient-caps=-all,+perfmon perl -e "$PERF_EVENT" || events=1
	status $events 'after the fix a user without privileges can record' nobody "$TMP/bin/bpfcheck" -v --tool offcpu-record
	like "$(cat "$out")" 'offcpu-record has CAP_BPF and CAP_PERFMON, granted to its file' 'bpfcheck -v says that the capabilities are granted to the file'
	setcap cap_bpf,cap_perfmon+ep "$TMP/bin/bpfcheck"
	nobody "$TMP/bin/bpfcheck" --json >"$out" 2>"$err"
	for probe in stack_map take_stack recorder unwind_tables raw_recorder tail_call iterator raw_run; do
		like "$(item live.$probe)" '"status": "ok"' "live probe $probe succeeds with only CAP_BPF and CAP_PERFMON"
	done
	like "$(item offcpu-record)" '"mode": "btf"' 'with only CAP_BPF and CAP_PERFMON the recorder uses mode btf'
	if [ "$events" -eq 0 ]; then
		like "$(item live.process_events)" '"status": "ok"' 'CAP_PERFMON is enough to open perf events'
		like "$(item sysctls.kernel.perf_event_paranoid)" '"status": "ok"' 'with CAP_PERFMON perf_event_paranoid does not matter'
	else
		like "$(item live.process_events)" '"fail".*perf_event_paranoid=[0-9]* takes CAP_SYS_ADMIN' 'perf events that require CAP_SYS_ADMIN are reported as refused, with the reason'
		like "$(item sysctls.kernel.perf_event_paranoid)" '"warn".*CAP_PERFMON does not do.*sysctl -w kernel.perf_event_paranoid=2' 'perf_event_paranoid is reported, with a command as the fix'
	fi
	status 1 'with no_new_privs file capabilities have no effect' \
		nobody setpriv --no-new-privs "$TMP/bin/bpfcheck" --tool offcpu-record
	like "$(cat "$out")" 'no-new-privileges=false' 'with no_new_privs the fix is no-new-privileges=false'
else
	skip 'file capabilities' "$(head -n 1 "$err")"
fi

tap_done
