#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The tools do what bpfcheck says, in every situation that can be created here:
# without capabilities, as other users, in namespaces, under filters of system
# calls, with parts of /proc and /sys hidden. Each situation is real; the table
# at the end shows what bpfcheck says and what the tools do.
# shellcheck disable=SC2016,SC2046,SC2086,SC2317,SC2329
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"

# If the kernel has no mode btf (before Linux 5.11), the expected results do not hold for situations in which
# BPF works. That the tools do what bpfcheck says holds on every kernel.
best=btf
can_record btf || best=raw
need_bpf $best
# copy the tools to a folder in which every user may run them and write
chmod 755 "$TMP"
W=$TMP/open
mkdir -m 777 "$W"
cp "$BIN/bpfcheck" "$BIN/offcpu-record" "$BIN/stackmap-test" "$BIN/kallsyms-resolve" "$W"
chmod 755 "$W"/*
REFUSE=$OBJ/t/work/refuse
cp "$REFUSE" "$W/refuse"
cd "$W" || exit 1
address=0x$(sed -n 's/ T _stext$//p' /proc/kallsyms)

NOBODY='setpriv --reuid=65534 --regid=65534 --clear-groups'
# prints the setpriv command for an ordinary user with these capabilities (ambient ones)
user_with() { # CAPS: "bpf,perfmon"
	caps=-all$(printf '%s' "$1" | sed 's/^/,+/; s/,\([a-z]\)/,+\1/g')
	echo "$NOBODY --inh-caps=$caps --ambient-caps=$caps --bounding-set=$caps"
}
with() { # CAPS COMMAND...
	words=$(user_with "$1")
	shift
	$words "$@"
}
# root with only these capabilities
root_with() {
	caps=-all$(printf '%s' "$1" | sed 's/^/,+/; s/,\([a-z]\)/,+\1/g')
	shift
	setpriv --inh-caps="$caps" --bounding-set="$caps" "$@"
}
# runs COMMAND in a mount namespace, after the shell commands SETUP
mounted() { # SETUP COMMAND...
	setup=$1
	shift
	unshare -m --propagation private sh -c "$setup"' && exec "$@"' sh "$@"
}
hide_btf='mount -t tmpfs none /sys/kernel/btf'

# the same tools with file capabilities, as setup-permissions sets them
mkdir -m 777 file
cp bpfcheck offcpu-record stackmap-test kallsyms-resolve refuse file
setcap cap_bpf,cap_perfmon,cap_syslog,cap_checkpoint_restore+ep file/offcpu-record &&
	setcap cap_bpf,cap_perfmon,cap_syslog+ep file/stackmap-test && setcap cap_syslog+ep file/kallsyms-resolve

# If perf_event_paranoid is above 2, the kernels of Debian and Ubuntu require CAP_SYS_ADMIN for perf events:
# without it no mappings are reported.
full=ready
with perfmon perl -e "$PERF_EVENT" || full=degraded
echo "a user with CAP_PERFMON: perf events are $([ $full = ready ] && echo open || echo refused), perf_event_paranoid=$(cat /proc/sys/kernel/perf_event_paranoid)" | diag

# --- the situations: s_NAME COMMAND... runs COMMAND in situation NAME
s_root() { "$@"; }
s_root_min() { root_with bpf,perfmon "$@"; }
s_root_none() { setpriv --inh-caps=-all --bounding-set=-all "$@"; }
s_root_no_syslog() { setpriv --inh-caps=-all --bounding-set=-syslog "$@"; }
s_root_admin() { root_with sys_admin "$@"; }
s_user_min() { with bpf,perfmon "$@"; }
all=bpf,perfmon,sys_ptrace,syslog,checkpoint_restore,dac_read_search
s_user_full() { with $all "$@"; }
s_user_no_btf() { mounted "$hide_btf && { test -e /sys/kernel/tracing/events || mount -t tracefs none /sys/kernel/tracing; }" \
	$(user_with $all) "$@"; }
s_user_bpf() { with bpf "$@"; }
s_user_perfmon() { with perfmon "$@"; }
s_user_admin() { with sys_admin "$@"; }
s_user_none() { $NOBODY "$@"; }
s_user_ns() { $NOBODY unshare -Ur "$@"; }
s_root_user_ns() { unshare -Ur "$@"; }
s_pid_ns() { unshare -pf --mount-proc "$@"; }
s_pid_ns_twice() { unshare -pf --mount-proc unshare -pf --mount-proc "$@"; }
s_no_btf() { mounted "$hide_btf" "$@"; }
s_no_btf_no_tracefs() { mounted "$hide_btf && mount -t tmpfs none /sys/kernel/tracing" "$@"; }
s_no_sys() { mounted 'mount -t tmpfs none /sys' "$@"; }
s_no_kallsyms() { mounted 'mount --bind /dev/null /proc/kallsyms' "$@"; }
s_no_bpf_call() { ./refuse bpf "$@"; }
s_no_perf_call() { ./refuse perf_event_open "$@"; }
s_no_calls() { ./refuse bpf,perf_event_open "$@"; }
s_hidepid() { mounted 'mount -t proc -o hidepid=2 proc /proc' $NOBODY "$@"; }
s_no_proc() { mounted 'mount -t tmpfs none /proc' "$@"; }
s_no_memlock() { prlimit --memlock=0:0 "$@"; }
s_time_ns() { unshare -T --boottime 100000 --fork "$@"; }
s_user_file() { (cd "$W/file" && $NOBODY "$@"); }
s_no_new_privs() { with bpf,perfmon setpriv --no-new-privs "$@"; }
s_chroot() { mounted 'mkdir -p root && mount -t tmpfs none root && mkdir root/proc root/work root/usr root/dev root/etc root/sys &&
	mount --rbind /proc root/proc && mount --rbind /sys root/sys && mount --rbind /dev root/dev && mount --rbind /usr root/usr &&
	ln -s usr/bin usr/lib usr/lib64 usr/sbin root && mount --bind . root/work' chroot root sh -c 'cd /work && exec "$@"' sh "$@"; }

# What bpfcheck says, then what the tools do:
#   $said  VERDICT and MODE of offcpu-record, as bpfcheck says
#   $did   the same, by what the recorder does
json() { # PERL: over $d, the object that bpfcheck printed
	perl -MCpanel::JSON::XS -0777 -e 'open F, "<", shift or exit 1; $d = eval { decode_json(<F>) } || {};
		%t = map { $_->{name} => $_ } @{$d->{tools} || []}; '"$1" "$W/said.json"
}

# Is the capture complete by the recorder's summary? Every stack of every wait, kernel names, nothing lost.
# A process that waits in its exec or exit has no user stack: sleep may, on a busy machine.
whole() {
	! grep -q '^  degraded:' did.err && { grep -q 'user stacks: 100.00 % of' did.err ||
		grep -Eq 'user stacks: [1-9][0-9.]* % of [2-9] waits complete(; [1-9] (exiting|in-exec))+$' did.err; }
}

recorded() { # STATUS of the recorder: prints VERDICT and MODE by it and the capture
	if [ "$1" -ge 2 ] || [ ! -s did.cap ]; then
		echo impossible none
		return
	fi
	mode=$("$BIN/capinfo" did.cap | sed -n 's/^.* mode=//p')
	if [ "$mode" = btf ] && whole; then echo "ready $mode"; else echo "degraded $mode"; fi
}

# prints the VERDICT of stackmap-test: did it run, without skipping, as many tests as in the first situation
# (root), fewer, or none?
map_ran() { # STATUS
	n=$(grep '^ok ' map.out | grep -vc '# SKIP')
	[ -e map.most ] || echo "$n" >map.most
	if [ "$n" -eq 0 ]; then
		echo impossible
	elif [ "$1" -eq 0 ] && [ "$n" -ge "$(cat map.most)" ]; then
		echo ready
	else
		echo degraded
	fi
}
printf '%-22s %-20s %-20s %s\n' situation 'bpfcheck says' 'offcpu-record does' 'stackmap-test, kallsyms-resolve' >table
# situation NAME WANT TEXT: WANT is the expected VERDICT and MODE, "ready btf"
situation() {
	rm -f did.cap file/did.cap did.err
	"s_$1" timeout 300 ./bpfcheck --json >said.json 2>said.err </dev/null
	said=$(json 'print join " ", $t{"offcpu-record"}{verdict} // "impossible", $t{"offcpu-record"}{mode} // "none"')
	"s_$1" timeout 300 ./offcpu-record -d 2 --force -o did.cap -- sleep 0.3 >did.out 2>did.err </dev/null
	status=$?
	[ ! -e file/did.cap ] || mv file/did.cap did.cap
	did=$(recorded $status)
	case "$best $2" in
	btf\ * | *\ procfs | *\ none) is "$did" "$2" "$3: offcpu-record has the expected verdict and mode" ;;
	esac
	is "$said" "$did" "$3: bpfcheck says what offcpu-record does"
	[ "$said" = "$did" ] || { json 'print $t{"offcpu-record"}{why}, "\n"'; cat did.err; } | diag
	"s_$1" timeout 300 ./stackmap-test >map.out 2>map.err </dev/null
	map_did=$(map_ran $?)
	map_said=$(json 'print $t{"stackmap-test"}{verdict} // ""')
	# if bpfcheck itself fails, there is no verdict to compare
	[ -z "$map_said" ] || is "$map_said" "$map_did" "$3: bpfcheck says what stackmap-test does"
	if "s_$1" timeout 300 ./kallsyms-resolve "$address" >sym.out 2>&1; then sym_did=names; else sym_did='no names'; fi
	is "$(json 'print +($t{"kallsyms-resolve"}{verdict} // "") eq "ready" ? "names" : "no names"')" "$sym_did" \
		"$3: bpfcheck says what kallsyms-resolve does"
	printf '%-22s %-20s %-20s %s, %s\n' "$1" "$said" "$did" "$map_did" "$sym_did" >>table
}

situation root 'ready btf' 'root'
situation root_min 'degraded btf' 'root with CAP_BPF and CAP_PERFMON alone'
situation root_none 'degraded procfs' 'root without any capability'
situation root_no_syslog 'degraded btf' 'root without CAP_SYSLOG'
situation root_admin 'degraded btf' 'root with CAP_SYS_ADMIN alone'
situation user_min 'degraded btf' 'a user with CAP_BPF and CAP_PERFMON'
situation user_full "$full btf" 'a user with all useful capabilities'
situation user_file "$full btf" 'a user, tools with file capabilities'
situation user_bpf 'degraded procfs' 'a user with CAP_BPF'
situation user_perfmon 'degraded procfs' 'a user with CAP_PERFMON'
situation user_admin 'degraded btf' 'a user with CAP_SYS_ADMIN'
situation user_none 'degraded procfs' 'a user without capabilities'
situation user_ns 'degraded procfs' "a user who is root of an own user namespace"
situation root_user_ns 'degraded procfs' 'root in a user namespace'
situation pid_ns 'ready btf' 'root in a PID namespace'
situation pid_ns_twice 'ready btf' 'root in a nested PID namespace'
situation no_btf 'degraded raw' 'BTF is hidden'
situation user_no_btf 'degraded raw' 'a user with all useful capabilities, and BTF is hidden'
situation no_btf_no_tracefs 'degraded raw' 'BTF and tracefs are hidden'
situation no_sys 'degraded raw' 'all of /sys is hidden'
situation no_kallsyms 'degraded btf' '/proc/kallsyms is hidden'
situation no_bpf_call 'degraded procfs' 'a filter refuses bpf(2)'
situation no_perf_call 'degraded btf' 'a filter refuses perf_event_open(2)'
situation no_calls 'degraded procfs' 'a filter refuses bpf(2) and perf_event_open(2)'
situation hidepid 'degraded procfs' "a user, and /proc hides other users' processes"
situation no_proc 'impossible none' '/proc is not mounted'
situation no_memlock 'ready btf' 'no memory can be locked'
situation time_ns 'ready btf' 'a time namespace'
situation no_new_privs 'degraded btf' 'a user with CAP_BPF and CAP_PERFMON, and no_new_privs'
situation chroot 'ready btf' 'a chroot'

diag 99 <table
tap_done
