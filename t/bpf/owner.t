#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# A recorder with file capabilities records only the processes that its user may
# read anyway; with the caller's own capabilities it records all of them. cat(1)
# and gdb(1) show what a user may read.
# shellcheck disable=SC2016,SC2119,SC2154,SC2317 # Perl's variables; $rc and others of tap.sh; functions that ok calls
case $(grep ' /proc proc ' /proc/mounts) in
*hidepid=*)
	# mount a /proc of the test's own that shows all processes
	[ -z "${OWNER_PROC-}" ] && OWNER_PROC=1 exec unshare -m sh -c 'mount -t proc -o hidepid=off proc /proc && exec sh "$0"' "$0"
	;;
esac
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf
CAPS=cap_bpf,cap_perfmon,cap_sys_ptrace,cap_syslog,cap_dac_read_search,cap_dac_override,cap_checkpoint_restore
USER_ID=65534
OTHER_ID=1234

# as ID COMMAND...: runs it without privileges. env executes it, because setpriv still has privileges when it
# calls exec, and so may read an executable that the user may not.
as() {
	id=$1
	shift
	setpriv --reuid="$id" --regid="$id" --clear-groups --inh-caps=-all env STACKTOOLS_CACHE= "$@"
}

user() {
	as "$USER_ID" "$@"
}

# A directory that every user can enter, whose file system honours file capabilities and set-user-ID bits.
pub=
for dir in "$TMP" "${TMPDIR:-/tmp}" /var/tmp /tmp /dev/shm /root; do
	pub=$(mktemp -d "$dir/owner.XXXXXX" 2>/dev/null) || continue
	chmod 755 "$pub"
	[ "$dir" != "$TMP" ] || chmod 755 "$TMP"
	cp "$BIN/offcpu-record" "$pub/capped" && setcap "$CAPS+ep" "$pub/capped" 2>"$TMP/setcap.err" &&
		user "$pub/capped" -q -o - -- true >"$TMP/first.cap" 2>"$TMP/first.err" </dev/null && break
	rm -rf "$pub"
	pub=
done
clean_pub() {
	[ -z "$pub" ] || rm -rf "$pub"
	tap_cleanup
}
trap clean_pub EXIT
[ -n "$pub" ] || skip_all "no file system here has file capabilities: $(cat "$TMP/setcap.err" "$TMP/first.err")"

mkdir "$pub/home" "$pub/closed"
chown "$USER_ID" "$pub/home"
chmod 700 "$pub/closed"
cp "$BIN/offcpu-record" "$pub/plain"
cp "$BIN/offcpu-record" "$pub/suid"
for n in own root other suid hid und bec turn grp cap ns subid; do
	cp "$OBJ/t/work/owner" "$pub/o-$n"
done
chmod 755 "$pub"/o-* "$pub/plain"
chmod 4755 "$pub/o-suid" "$pub/suid"
chmod 711 "$pub/o-hid"
gate=$pub/gate

# work NAME COMMAND...: starts o-NAME, waits until it is ready, and writes its PID to $TMP/NAME.pid
work() {
	w_name=$1
	shift
	"$@" >"$TMP/$w_name.out" 2>"$TMP/$w_name.err" </dev/null &
	at_exit_kill "$!"
	until_true grep -qs ready "$TMP/$w_name.out"
	pgrep -f "^$pub/o-$w_name " >"$TMP/$w_name.pid"
	at_exit_kill "$(pid "$w_name")"
}

pid() {
	cat "$TMP/$1.pid"
}

work own as "$USER_ID" "$pub/o-own" "$gate"
work root "$pub/o-root" "$gate"
work other as "$OTHER_ID" "$pub/o-other" "$gate"
work suid as "$USER_ID" "$pub/o-suid" "$gate"
work hid as "$USER_ID" "$pub/o-hid" "$gate"
work und as "$USER_ID" "$pub/o-und" "$gate" undump
work bec "$pub/o-bec" "$gate" become "$USER_ID"
work turn as "$USER_ID" "$pub/o-turn" "$gate" turn
work grp "$pub/o-grp" "$gate" group "$USER_ID"
work cap "$pub/o-cap" "$gate" caps "$USER_ID"
names='own root other suid hid und grp cap'
if as "$USER_ID" unshare -Ur true 2>"$TMP/ns.err"; then
	work ns as "$USER_ID" unshare -Ur "$pub/o-ns" "$gate"
	# another user in a namespace that this user created: root maps the IDs, as newuidmap does
	mkfifo "$TMP/mapped"
	as "$USER_ID" unshare -U sh -c "echo \$\$; read -r x; exec setpriv --reuid=1 --regid=1 --clear-groups '$pub/o-subid' '$gate'" \
		<>"$TMP/mapped" >"$TMP/subid.out" 2>"$TMP/subid.err" &
	at_exit_kill "$!"
	until_true test -s "$TMP/subid.out"
	sub=$(head -n 1 "$TMP/subid.out")
	until_true sh -c "echo '0 $USER_ID 1
1 100000 1' >/proc/$sub/uid_map" 2>/dev/null
	echo "0 $USER_ID 1
1 100000 1" >"/proc/$sub/gid_map"
	echo go >"$TMP/mapped"
	until_true grep -qs ready "$TMP/subid.out"
	echo "$sub" >"$TMP/subid.pid"
	at_exit_kill "$sub"
	names="$names ns subid"
fi

# may_read NAME: does the kernel allow the user to read that process?
may_read() {
	user cat "/proc/$(pid "$1")/maps" >/dev/null 2>&1
}

expected=
for n in $names; do
	may_read "$n" && expected="$expected$n "
done
like "$expected" '^own ' "cat: the user may read the user's own process"
like " $expected" '^ own( ns subid)? $' "cat: the user may read no other process, except in the user's own namespaces"
[ "${names#* ns}" = "$names" ] && diag <"$TMP/ns.err"

# recorded CAP: prints the names, without "o-", of the processes that have waits in the capture
recorded() {
	"$BIN/symbolize" -q --format=json "$1" 2>/dev/null | perl -MCpanel::JSON::XS -ne '
		my $w = decode_json($_);
		$h{$1}++ if $w->{type} eq "wait" && $w->{process_comm} =~ /^o-(\w+)/;
		END { print map "$_ ", sort keys %h }'
}

sorted() {
	printf '%s' "$1" | tr ' ' '\n' | grep . | sort | tr '\n' ' '
}

cd "$pub/home" || exit 1
rec_as() { # CAP ID PROGRAM ARG...
	r_cap=$1
	r_id=$2
	r_program=$3
	shift 3
	run timeout -k 5 60 setpriv --reuid="$r_id" --regid="$r_id" --clear-groups --inh-caps=-all \
		env STACKTOOLS_CACHE= "$r_program" --force -o "$r_cap" "$@" 7>&-
}

# -a, before the file $gate exists
rec_as all.cap "$USER_ID" "$pub/capped" -a -d 1
ok "with file capabilities -a records" test "$rc" -le 1 # 1: other processes of that user may come and go, and be lost
is "$(recorded all.cap)" "$(sorted "$expected turn ")" "-a records exactly the processes that the user may read"
like "$(waits all.cap '$n++ if $w->{process_comm} eq "o-own" && $w->{user_stack_verdict} eq "complete" && user() =~ /wait_at_gate/')" '^[1-9]' \
	"-a: waits of the user's process have complete user stacks with names"
is "$(waits all.cap '$n++ if $w->{process_comm} eq "o-own" && !@{$w->{kernel_stack}}')" 0 "-a: each wait of the user's process has a kernel stack"
if user cat /proc/kallsyms | head -n 1000 | grep -qv '^0000000000000000'; then
	want=
else
	want=kernel-addresses=hidden
fi
is "$("$BIN/capinfo" all.cap | grep -o 'kernel-addresses=.*')" "$want" "-a: kernel addresses are hidden if the user may not see them"
is "$(waits all.cap '$n++ if grep { !defined $_->{symbol} } @{$w->{kernel_stack}}')" 0 "-a: each kernel frame has a name, even if addresses are hidden"
for n in root other suid hid und; do
	ok "-a: nothing of o-$n is in the capture, not even its name" sh -c "! grep -q 'o-$n' all.cap"
done
ok "-a: waits of processes that the user may not read are counted" test "$(counter all.cap filtered.owner)" -ge 100
ok "-a: seen = recorded + filtered + lost" balanced all.cap
is "$(grep -c 'may not trace' "$err")" 1 "-a: the summary reports once that processes were not recorded"
like "$(cat "$err")" 'run it as root' "-a: the summary suggests to run it as root"
like "$("$BIN/capinfo" all.cap)" "processes=user $USER_ID's" "-a: the capture says whose processes it has"
is "$(stat -c %u all.cap)" "$USER_ID" "-a: the capture belongs to the user"

# Compare filtered.owner with the kernel's count of voluntary switches of a process that is not recorded.
switches() {
	awk '/^voluntary/ { print $2 }' "/proc/$(pid suid)/status"
}
ms() {
	date +%s%3N
}
t0=$(ms) s0=$(switches)
rec_as suid.cap "$USER_ID" "$pub/capped" -c o-suid -d 1
s1=$(switches) t1=$(ms)
during=$(waits suid.cap '$n = int($c{duration_ns} / 1e6)')
is "$rc $(counter suid.cap waits.recorded)" "0 0" "-c: no wait of a set-user-ID program is recorded"
# the program naps all the time: at least half of the recording's share of the switches must be counted
between "$(counter suid.cap filtered.owner)" $(((s1 - s0) * during / (t1 - t0) / 2)) $((s1 - s0 + 1)) \
	"-c: waits of a set-user-ID program are counted, no more than the kernel counts"

# -p and -t refuse processes that the user may not read before they create a capture.
rec_as p.cap "$USER_ID" "$pub/capped" -p "$(pid own)" -d 0.5
is "$rc $(recorded p.cap)" "0 own " "-p records the user's own process"
rec_as t.cap "$USER_ID" "$pub/capped" -t "$(pid own)" -d 0.5
is "$rc $(recorded t.cap)" "0 own " "-t records the user's own thread"
for n in root other suid hid und grp cap; do
	rec_as no.cap "$USER_ID" "$pub/capped" -p "$(pid "$n")" -d 0.5
	is "$rc $(grep -c "not permitted to record process $(pid "$n")" "$err") $(test -e no.cap && echo made)" "2 1 " "-p of o-$n is refused"
done
like "$(cat "$err")" "hint: .*run it as root" "the error message of a refused -p suggests to run it as root"
rec_as no.cap "$USER_ID" "$pub/capped" -p "$(pid own)" -t "$(pid other)" -d 0.5
is "$rc" 2 "if one of several targets is refused, nothing is recorded"
like "$(cat "$err")" "process $(pid other): it belongs to user $OTHER_ID, not to you, user $USER_ID" "the error message names the refused process and its owner"
rec_as o.cap "$OTHER_ID" "$pub/capped" -p "$(pid other)" -d 0.3 2>/dev/null
chmod 777 "$pub/home"
rec_as o.cap "$OTHER_ID" "$pub/capped" -p "$(pid other)" -d 0.5
is "$rc $(recorded o.cap)" "0 other " "the owner of a refused process may record it"
rm -f o.cap
chmod 755 "$pub/home"
if command -v gdb >/dev/null; then
	for n in own other; do
		user timeout 30 gdb -q -nx -batch -p "$(pid $n)" -ex 'info proc' >"$TMP/gdb.$n" 2>&1 </dev/null
	done
	ok "gdb attaches to the process that -p recorded" grep -q "^process $(pid own)" "$TMP/gdb.own"
	ok "gdb is not permitted to attach to the process that -p refused" grep -qi 'not permitted' "$TMP/gdb.other"
fi

# A /proc that hides other users' processes
if unshare -m true 2>"$TMP/mnt.err"; then
	hidden() {
		run timeout -k 5 60 unshare -m sh -c 'mount -t proc -o hidepid=invisible proc /proc && exec "$@"' sh \
			setpriv --reuid="$USER_ID" --regid="$USER_ID" --clear-groups --inh-caps=-all \
			env STACKTOOLS_CACHE= "$pub/capped" --force -o h.cap "$@" 7>&-
	}
	hidden -- sleep 0.3
	is "$rc $(waits h.cap '$n++ if user() =~ /nanosleep/')" "0 1" "hidepid: a command is recorded"
	hidden -p "$(pid root)" -d 0.3
	is "$rc" 2 "hidepid: -p of a hidden process is refused"
	hidden -a -d 0.5
	is "$(recorded h.cap)" "$(sorted "$expected turn ")" "hidepid: -a records the same processes as without hidepid"
fi

# A command and its children
rec_as c.cap "$USER_ID" "$pub/capped" -- sh -c "'$pub/o-suid' '$pub/nogate' & '$pub/o-own' '$pub/nogate' & sleep 1; kill \$!; exit 3"
pkill -f "^$pub/o-suid $pub/nogate"
is "$rc $(recorded c.cap)" "0 own " "a command is recorded with those of its children that the user may read"
ok "waits of children that the user may not read are counted" test "$(counter c.cap filtered.owner)" -ge 20
ok "a command: seen = recorded + filtered + lost" balanced c.cap

mkfifo "$TMP/exec"
as "$USER_ID" sh -c 'echo $$; read -r x; exec "$0" "$1"' "$pub/o-suid" "$pub/nogate" >"$TMP/exec.out" 2>&1 <>"$TMP/exec" &
at_exit_kill "$!"
until_true test -s "$TMP/exec.out"
turned=$(head -n 1 "$TMP/exec.out")
user "$pub/capped" -q --force -o e.cap -p "$turned" </dev/null >/dev/null 2>&1 7>&- &
job=$!
until_true test -s e.cap
rec=$(pgrep -o -f "^$pub/capped -q --force -o e.cap")
at_exit_kill "$rec"
until_true recording "$rec" e.cap
echo go >"$TMP/exec"
until_true grep -q '^o-suid' "/proc/$turned/comm"
sleep 1
kill -INT "$rec"
wait "$job"
is "$? $(waits e.cap '$h{$w->{process_comm}}++' | sed 's/ .*//')" "0 sh" "a process is recorded until it executes a set-user-ID program"
ok "waits of a process that executed a set-user-ID program are counted" test "$(counter e.cap filtered.owner)" -ge 20
pkill -f "^$pub/o-suid $pub/nogate"

# The recorder drops capabilities that it does not need, and opens files with the user's permissions.
user "$pub/capped" -q --force -o run.cap -p "$(pid own)" -d 5 </dev/null >/dev/null 2>&1 7>&- &
at_exit_kill "$!"
until_true test -e run.cap
rec=$(pgrep -o -f "^$pub/capped -q --force -o run.cap")
awk '/^CapPrm/ { print $2 }' "/proc/$rec/task"/*/status | sort -u >"$TMP/permitted"
awk '/^CapEff/ { print $2 }' "/proc/$rec/task"/*/status | sort -u >"$TMP/in-force"
ok "the capabilities of a running recorder can be read" test -s "$TMP/permitted"
decode() {
	while read -r set; do capsh --decode="$set"; done <"$1"
}
is "$(decode "$TMP/permitted" | grep -c -e ptrace -e dac_ -e sys_admin)" 0 "the recorder keeps no capability that opens other users' files or processes"
is "$(decode "$TMP/in-force" | grep -c -e perfmon)" 0 "the recorder does not have CAP_PERFMON in effect, with which it could read all maps"
kill -INT "$rec"
rec_as "$pub/closed/x.cap" "$USER_ID" "$pub/capped" -p "$(pid own)" -d 0.2
is "$rc $(test -e "$pub/closed/x.cap" && echo made)" "2 " "with file capabilities no capture is made in a directory closed to the user"
cp "$TMP/first.cap" "$pub/closed.cap" && chmod 644 "$pub/closed.cap"
rec_as "$pub/closed.cap" "$USER_ID" "$pub/capped" -p "$(pid own)" -d 0.2
is "$rc" 2 "with file capabilities a capture does not replace a file that belongs to root"

cp "$BIN/kallsyms-resolve" "$pub/kr" && setcap cap_syslog,cap_dac_override,cap_dac_read_search+ep "$pub/kr"
echo 'ffffffff81000000 T _stext' >"$pub/closed/syms"
status 2 "kallsyms-resolve with file capabilities does not write where the user may not" user "$pub/kr" --save "$pub/closed/saved"
like "$(cat "$err")" 'Permission denied' "kallsyms-resolve --save reports that permission is denied"
status 2 "kallsyms-resolve with file capabilities does not read what the user may not" user "$pub/kr" -k "$pub/closed/syms" ffffffff81000000
like "$(cat "$err")" 'Permission denied' "kallsyms-resolve -k reports that permission is denied"
status 0 "kallsyms-resolve with file capabilities resolves a kernel address" user "$pub/kr" "$(grep ' T _stext$' /proc/kallsyms | cut -d' ' -f1)"

# The set-user-ID bit instead of file capabilities
rec_as s.cap "$USER_ID" "$pub/suid" -a -d 1
is "$(recorded s.cap)" "$(sorted "$expected turn ")" "set-user-ID: -a records exactly the processes that the user may read"
is "$(stat -c %u s.cap)" "$USER_ID" "set-user-ID: the capture belongs to the user"
rec_as no.cap "$USER_ID" "$pub/suid" -p "$(pid root)" -d 0.5
is "$rc" 2 "set-user-ID: -p of root's process is refused"

# Processes whose owner or permissions change during the recording
user "$pub/capped" -q --force -o turn.cap -a -d 5 </dev/null >"$TMP/turn.log" 2>&1 7>&- &
rec=$!
until_true test -e turn.cap
: >"$gate"
wait "$rec"
ok "-a records while owners and permissions of processes change" test "$?" -le 1
is "$(waits turn.cap '$h{$1}++ if $w->{process_comm} eq "o-bec" && user() =~ /(?:^|;)(wait_\w+)/' | sed 's/ .*//')" wait_after \
	"a process that becomes the user's is recorded once it may be traced, not before"
is "$(waits turn.cap '$h{$1}++ if $w->{process_comm} eq "o-turn" && user() =~ /(?:^|;)(wait_\w+)/' | sed 's/ .*//' | grep -v gate)" "wait_after" \
	"a wait during which the process became undumpable or dumpable is not recorded"
ok "while permissions change: seen = recorded + filtered + lost" balanced turn.cap

# The caller's own capabilities, and root
AMB=bpf,perfmon,sys_ptrace,syslog
everybody='bec cap grp hid other own root suid turn und '
[ "${names#* ns}" = "$names" ] || everybody='bec cap grp hid ns other own root subid suid turn und '
chmod 777 "$pub/home"
with_ambient() {
	run timeout -k 5 60 setpriv --reuid="$USER_ID" --regid="$USER_ID" --clear-groups \
		--inh-caps="+$(echo $AMB | sed 's/,/,+/g')" --ambient-caps="+$(echo $AMB | sed 's/,/,+/g')" \
		env STACKTOOLS_CACHE= "$pub/plain" --force "$@" 7>&-
}
with_ambient -a -d 1 -o amb.cap
is "$(recorded amb.cap)" "$everybody" "with ambient capabilities -a records all processes"
is "$(counter amb.cap filtered.owner) $(grep -c 'may not trace' "$err")" "0 0" "with ambient capabilities no process is skipped"
with_ambient -p "$(pid root)" -d 0.5 -o amb.cap
is "$rc $(recorded amb.cap)" "0 root " "with ambient capabilities -p records root's process"
run timeout -k 5 60 "$pub/capped" -a -d 1 -o r.cap --force
is "$(recorded r.cap)" "$everybody" "root records all processes with a recorder that has file capabilities"
is "$(counter r.cap filtered.owner) $("$BIN/capinfo" r.cap | grep -c 'kernel-addresses=')" "0 0" "root with file capabilities: no process is skipped, no kernel address is hidden"
run timeout -k 5 60 "$BIN/offcpu-record" -a -d 1 -o r.cap --force
is "$(recorded r.cap)" "$everybody" "root records all processes with a recorder that has no file capabilities"
cd / || exit 1

tap_done
