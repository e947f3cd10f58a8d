#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Each process of a recorder while it records, by what /proc says about it: user and group, capabilities,
# no_new_privs, filter of system calls, whether others of its user may trace it, and when it is killed for lack
# of memory. In each mode, for root and for a user with file capabilities, and again after each was killed.
# The tables are printed.
# shellcheck disable=SC2034,SC2154,SC2317 # $rec_as is for rec_start; $rc and others of tap.sh; functions that ok calls
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf
USER_ID=1234
none=0000000000000000
chmod 755 "$TMP"
mkfifo "$TMP/hold"
exec 7<>"$TMP/hold"
export STACKTOOLS_CACHE="$TMP/cache"
command -v capsh >/dev/null || skip_all "no capsh"

sleep 1000 7>&- &
idle=$!
at_exit_kill "$idle"

# mask CAP...: the set of these capabilities as /proc shows it
mask() {
	m=0
	for c; do
		m=$((m | 1 << c))
	done
	printf '%016x' $m
}
# numbers of <linux/capability.h>
DAC_READ_SEARCH=2 SYS_PTRACE=19 SYS_ADMIN=21 BPF=39 CHECKPOINT_RESTORE=40

# row PID: name, its four users and four groups, sets of capabilities (permitted, effective, inheritable, bounding,
# ambient), NoNewPrivs, Seccomp, who may trace it (root: not dumpable), oom_score_adj
row() {
	awk '$1 == "Name:" { name = $2 }
		$1 == "Uid:" { uid = $2 "," $3 "," $4 "," $5 }
		$1 == "Gid:" { gid = $2 "," $3 "," $4 "," $5 }
		$1 == "Groups:" { groups = NF - 1 }
		/^Cap/ { caps = caps " " $2 }
		$1 == "NoNewPrivs:" { nnp = $2 }
		$1 == "Seccomp:" { filter = $2 }
		END { printf "%s uid %s gid %s", name, uid, gid
			printf " groups %d caps%s nnp %s seccomp %s", groups, caps, nnp, filter }' "/proc/$1/status"
	printf ' tracer %s oom %s\n' "$(stat -c %u "/proc/$1/environ")" "$(cat "/proc/$1/oom_score_adj")"
}

child() { # NAME: the PID of a child of the recorder
	pgrep -P "$rec_pid" "^$1\$"
}

table() { # prints the rows of the recorder's processes
	for p in $rec_pid $(pgrep -P "$rec_pid"); do
		row "$p"
	done | diag
}

# want NAME UID GID GROUPS PERMITTED BOUNDING OOM: the row of such a process; UID and GID: one, or four
want() {
	case $2 in *,*) w_uid=$2 ;; *) w_uid=$2,$2,$2,$2 ;; esac
	case $3 in *,*) w_gid=$3 ;; *) w_gid=$3,$3,$3,$3 ;; esac
	echo "$1 uid $w_uid gid $w_gid groups $4 caps $none $5 $5 $6 $none nnp 1 seccomp 2 tracer 0 oom $7"
}

oom=$(cat /proc/self/oom_score_adj)
groups=$(awk '$1 == "Groups:" { print NF - 1 }' /proc/self/status)

# private NAME CAPS OOM: NAME has the recorder's private user, and CAPS alone
private() {
	is "$(row "$(child "$1")")" "$(want "$1" "$user" "$user" 0 "$2" $none "$3")" "$mode: $1 is the private user, with the capabilities that it needs"
}

# recorder: the recorder itself
recorder() {
	user=$((0x78000000 + rec_pid))
	is "$(row "$rec_pid")" "$(want offcpu-record "$user" "$user" 0 $none $none "$oom")" "$mode: the recorder is the private user, without capabilities and under a filter"
	is "$(cat /proc/"$rec_pid"/task/*/status | awk '/^(Uid|Gid|Cap|Seccomp:|NoNewPrivs)/ { print }' | sort -u | awk 'END { print NR }')" 9 "$mode: all of its threads are alike"
	is "$(getent passwd $user)$(getent group $user)" '' "$mode: no one else is that user or group"
}

# store: the process that keeps root's files, of one folder
store() {
	is "$(row "$(child unwind-cache)")" "$(want unwind-cache "$user,0,$user,0" 0 0 $none $none 1000)" "$mode: unwind-cache owns root's files, without capabilities, and may be ended by the recorder"
}

# again NAME PID: true if another process has that name, and is in its sandbox
again() {
	g_pid=$(child "$1")
	[ -n "$g_pid" ] && [ "$g_pid" != "$2" ] && grep -q '^Seccomp_filters:.[2-9]' "/proc/$g_pid/status"
}

# new_program: starts a program that no one has read yet
programs=0
new_program() {
	programs=$((programs + 1))
	mkdir "$TMP/$programs"
	cp "$OBJ/t/work/chain" "$TMP/$programs/chain"
	"$TMP/$programs/chain" <"$TMP/hold" >"$TMP/chain.out" 2>&1 7>&- &
	at_exit_kill "$!"
}

# restarted NAME CAPS OOM: kills it; another one, which is started at the latest when it is needed, is as confined
restarted() {
	r_old=$(child "$1")
	kill -9 "$r_old"
	new_program
	ok "$mode: $1 is started again after it was killed" until_true again "$1" "$r_old"
	private "$1" "$2" "$3"
}

# without NAME: kills it; the recorder goes on without it
without() {
	kill -9 "$(child "$1")"
	ok "$mode: the recorder continues after $1 was killed" kill -0 "$rec_pid"
}

ended() { # STATUS...: the recording ends with one of them, and leaves no process
	e_all="$rec_pid $(pgrep -P "$rec_pid" | tr '\n' ' ')"
	rec_stop
	like "$rc" "^[$1]\$" "$mode: the recording ends with status $rc"
	for p in $e_all; do
		ok "$mode: process $p has ended" until_true sh -c "! kill -0 $p 2>/dev/null"
	done
}

kept=$(mask $DAC_READ_SEARCH $SYS_PTRACE $BPF $CHECKPOINT_RESTORE)
for mode in btf raw; do
	can_record $mode || {
		skip "$mode" "does not work here"
		continue
	}
	rec_start "$TMP/$mode.cap" -v --mode $mode -p "$idle"
	table
	recorder
	private file-broker "$kept" "$oom"
	private unwind-tables $none 1000
	store
	restarted unwind-tables $none 1000
	without file-broker
	without unwind-cache
	table
	recorder
	ended 01
	like "$(cat "$TMP/rec.err")" "privileges: no capabilities, none to be had, user $user, few system calls \(seccomp\), Landlock [0-9]+ \(no file is opened for writing\)" \
		"$mode: -v says so"
done

mode=procfs
rec_start "$TMP/$mode.cap" -v --mode procfs --ptrace -c chain
table
recorder
private thread-helper "$(mask $DAC_READ_SEARCH $SYS_PTRACE $SYS_ADMIN)" "$oom"
private file-broker "$(mask $DAC_READ_SEARCH $SYS_PTRACE $CHECKPOINT_RESTORE)" "$oom"
private unwind-tables $none 1000
store
restarted unwind-tables $none 1000
without file-broker
without thread-helper
without unwind-cache
table
recorder
ended 01

# With --, the command keeps what the caller has, and its parent's private user is not there any more.
mode="a command"
cat >"$TMP/show" <<'SH'
#!/bin/sh
grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp:)' /proc/self/status
cat /proc/self/oom_score_adj
SH
chmod 755 "$TMP/show"
"$TMP/show" >"$TMP/show.own"
"$BIN/offcpu-record" -q --force -o "$TMP/cmd.cap" -- "$TMP/show" >"$TMP/show.rec" 2>"$TMP/cmd.err" 7>&-
same "$TMP/show.rec" "$TMP/show.own" "a command is who the caller is"

# Root without the capabilities to become another user stays root; all the rest holds.
mode="root without CAP_SETUID"
rec_as='setpriv --inh-caps=-all --bounding-set=-setuid'
rec_start "$TMP/s.cap" -v -p "$idle"
table
is "$(row "$rec_pid")" "$(want offcpu-record 0 0 "$groups" $none $none "$oom")" "$mode: the recorder stays root, without capabilities and under the filter"
is "$(row "$(child unwind-tables)")" "$(want unwind-tables 0 0 "$groups" $none $none 1000)" "$mode: so does unwind-tables"
restarted_as_root() {
	r_old=$(child unwind-tables)
	kill -9 "$r_old"
	until_true again unwind-tables "$r_old"
}
ok "$mode: unwind-tables is started again" restarted_as_root
is "$(row "$(child unwind-tables)")" "$(want unwind-tables 0 0 "$groups" $none $none 1000)" "$mode: the next one is as confined"
ended 01
like "$(cat "$TMP/rec.err")" "privileges: no capabilities, none to be had, still root's files and processes, few system calls" "$mode: -v says so"

# A user with file capabilities stays who it is.
mkdir -m 777 "$TMP/open"
install -m 755 "$BIN/offcpu-record" "$TMP/open/offcpu-record"
mode="file capabilities"
if setcap cap_bpf,cap_perfmon+ep "$TMP/open/offcpu-record" 2>/dev/null; then
	as_user="setpriv --reuid=$USER_ID --regid=$USER_ID --clear-groups"
	$as_user sleep 1000 7>&- &
	theirs=$!
	at_exit_kill "$theirs"
	until_true grep -q '^sleep$' "/proc/$theirs/comm"
	real_bin=$BIN BIN=$TMP/open
	rec_as="env STACKTOOLS_CACHE=$TMP/open/cache $as_user"
	bounding=$(awk '/^CapBnd/ { print $2 }' /proc/self/status)
	rec_start "$TMP/open/u.cap" -v -p "$theirs"
	BIN=$real_bin
	table
	is "$(row "$rec_pid")" "$(want offcpu-record $USER_ID $USER_ID 0 $none "$bounding" "$oom")" "$mode: the recorder has no capability and a filter, and no process of its user may trace it"
	is "$(row "$(child file-broker)")" "$(want file-broker $USER_ID $USER_ID 0 "$(mask $BPF)" "$bounding" "$oom")" "$mode: file-broker keeps CAP_BPF alone"
	for p in unwind-tables unwind-cache; do
		is "$(row "$(child $p)" | sed 's/ oom .*//')" "$(want $p $USER_ID $USER_ID 0 $none "$bounding" - | sed 's/ oom .*//')" "$mode: $p has no capability and a filter"
	done
	ended 0
else
	skip "file capabilities" "setcap fails here"
fi
rec_as=
tap_done
