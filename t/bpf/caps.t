#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# bpfcheck --caps compared with what happens: other programs and the tools
# themselves run with exactly the capability sets of its table.
# shellcheck disable=SC2016
. "$(dirname "$0")/../lib/tap.sh"

bpftool=$(command -v bpftool || echo /usr/sbin/bpftool)
run "$BIN/bpfcheck" --tool offcpu-record -q
[ "$rc" -lt 2 ] || skip_all "$(cat "$out")"
[ "$(id -u)" -eq 0 ] || skip_all 'not root, so no capabilities can be granted'

# Record with BPF or not at all, if the recorder has other modes.
mode=
"$BIN/offcpu-record" --help | grep -q -e '--mode' && mode='--mode btf'

# Any user can start the tools in bin, and write in all.
chmod 711 "$TMP"
mkdir "$TMP/bin" "$TMP/all"
install -m 755 "$BIN/bpfcheck" "$BIN/offcpu-record" "$BIN/stackmap-test" "$OBJ/t/work/idle" "$TMP/bin"
chmod 755 "$TMP/bin"
chmod 1777 "$TMP/all"
# a name that no other process has
me=caps$$
cp "$BIN/bpfcheck" "$TMP/bin/$me"
bpfcheck=$TMP/bin/$me

# as USER "CAP..." COMMAND...: runs COMMAND as USER with exactly these capabilities, named as in setpriv(1),
# for at most 120 s, under the command $as_prefix
as_prefix=
as() {
	as_user=$1
	as_caps=-all
	for as_cap in $2; do
		as_caps=$as_caps,+$as_cap
	done
	shift 2
	# shellcheck disable=SC2086 # words, or nothing
	if [ "$as_user" = root ]; then
		timeout 120 $as_prefix setpriv --clear-groups --bounding-set="$as_caps" --inh-caps=-all "$@"
	else
		timeout 120 $as_prefix setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set="$as_caps" \
			--inh-caps="$as_caps" --ambient-caps="$as_caps" "$@"
	fi
}

# query PERL: evaluates PERL, where $d is the decoded JSON of file $json, and prints each value it returns on
# a line
query() {
	perl -MCpanel::JSON::XS -0777 -e 'open my $f, "<", $ARGV[0] or die; $d = decode_json(<$f>);
		sub step { (grep { $_->{id} eq $_[0] } @{$d->{caps}{steps}})[0] }
		sub tool { (grep { $_->{name} eq $_[0] } @{$d->{caps}{tools}})[0] }
		print "$_\n" for eval $ARGV[1]; die $@ if $@' "$json" "$1"
}

# settings: prints what bpfcheck --caps must not change
settings() {
	cat /proc/sys/kernel/perf_event_paranoid /proc/sys/kernel/kptr_restrict \
		/proc/sys/kernel/unprivileged_bpf_disabled /proc/sys/kernel/bpf_stats_enabled 2>/dev/null
	grep -v ' [^ ]*/stacktools-t\.' /proc/self/mounts # other tests that run at the same time mount in their folders
	cat /proc/$$/limits
	find /sys/fs/bpf -name 'caps*' 2>/dev/null
}

# alive: prints the processes of bpfcheck --caps, as paths of comm files
alive() {
	grep -lx "$me" /proc/[0-9]*/comm 2>/dev/null
}
# held: adds the IDs of programs and maps that they hold to $TMP/ids, as "prog_id: 7" and "map_id: 9". Fails
# unless they hold both
held() {
	# shellcheck disable=SC2046 # words
	grep -rhsE '^(prog|map)_id:' /dev/null $(alive | sed 's|comm$|fdinfo|') | sort -u >"$TMP/now"
	sort -u -o "$TMP/ids" "$TMP/ids" "$TMP/now"
	grep -q prog "$TMP/now" && grep -q map "$TMP/now"
}
# gone: none of these processes exists any more, and no program or map in $TMP/ids. But for prog arrays that are
# empty: Linux 6.18 keeps the 320 bytes of some whose last process was killed, although no process or program has
# them any more
gone() {
	[ -z "$(alive)" ] || return 1
	"$bpftool" prog show >"$TMP/progs" && "$bpftool" map show >"$TMP/maps" || return 1
	{
		sed -n 's/^\([0-9]*\): .*/prog_id:\t\1/p' "$TMP/progs"
		sed -n 's/^\([0-9]*\): .*/map_id:\t\1/p' "$TMP/maps"
	} | sort >"$TMP/now"
	for left in $(comm -12 "$TMP/ids" "$TMP/now" | cut -f 2); do
		if ! grep -q "^$left: prog_array " "$TMP/maps" || "$bpftool" map dump id "$left" 2>&1 | grep -q '^key'; then
			echo "$left"
			return 1
		fi
	done
}
soon() {
	soon_left=900 # a busy kernel frees programs and maps late
	until "$@"; do
		soon_left=$((soon_left - 1))
		[ $soon_left -gt 0 ] || return 1
		sleep 0.2
	done
}

# one run with all capabilities
settings >"$TMP/settings"
dmesg >"$TMP/dmesg" 2>/dev/null
json=$TMP/caps.json
: >"$TMP/ids"
timeout 120 "$bpfcheck" --caps --json >"$json" 2>"$err" </dev/null &
job=$!
at_exit_kill $job
while kill -0 $job 2>/dev/null; do
	held
	sleep 0.1
done
wait $job
is "$?" 0 'bpfcheck --caps finds the least set of every tool'
is "$(cat "$err")" '' 'bpfcheck --caps prints nothing on stderr'
ok 'bpfcheck --caps really loads programs and creates maps' test "$(grep -c prog "$TMP/ids")" -gt 5 -a "$(grep -c map "$TMP/ids")" -gt 5
ok 'bpfcheck --caps leaves no process, program or map behind' soon gone
settings | diff "$TMP/settings" - >"$TMP/changed"
is "$(cat "$TMP/changed")" '' 'bpfcheck --caps changes no setting, limit or mount'
if [ -s "$TMP/dmesg" ]; then
	dmesg | diff "$TMP/dmesg" - | grep -i -e "$me" -e lockdown -e 'ptrace attach' >"$TMP/logged"
	is "$(cat "$TMP/logged")" '' 'the kernel logs nothing about bpfcheck --caps'
else
	skip 'the kernel logs nothing about bpfcheck --caps' 'dmesg cannot be read'
fi

# the JSON object
ok '--json prints JSON with a result of each step for each set and user' perl -MCpanel::JSON::XS -0777 -ne '
	$d = decode_json($_); $c = $d->{caps};
	die "schema" unless $d->{schema} == 1 && $d->{status} == 0 && !$c->{late} && @{$c->{sets}} >= 16;
	die "tools" unless 6 == grep { $_->{name} } @{$c->{tools}};
	for $s (@{$c->{steps}}) {
		die $s->{id} if $seen{$s->{id}}++ || join(" ", sort keys %$s) ne "does group id least results why";
		for $u (map { $_->{name} } @{$c->{users}}) {
			die "$s->{id} $u" unless @{$s->{results}{$u}} == @{$c->{sets}};
			/^(ok|E[A-Z0-9]+|not granted|not tried)$/ or die "$s->{id}: $_" for @{$s->{results}{$u}};
		}
	}
	die "steps" unless keys %seen > 40' "$json"
is "$(query 'map { $_->{name} } @{$d->{caps}{users}}' | tr '\n' ' ')" 'root ordinary ' 'bpfcheck --caps tries as root and as an ordinary user'
ok 'the column of a least set says ok, and those of the sets with one less do not' \
	perl -MCpanel::JSON::XS -0777 -ne '
	$c = decode_json($_)->{caps};
	%at = map { join(" ", sort @{$c->{sets}[$_]{caps}}) => $_ } 0 .. $#{$c->{sets}};
	for $s (@{$c->{steps}}) {
		for $u (qw(root ordinary)) {
			$l = $s->{least}{$u} or next;
			$i = $at{join " ", sort @$l};
			if (defined $i) { $n++; die "$s->{id} $u" if $s->{results}{$u}[$i] ne "ok" }
			for $x (@$l) {
				$i = $at{join " ", sort grep { $_ ne $x } @$l};
				if (defined $i) { $m++; die "$s->{id} $u without $x" if $s->{results}{$u}[$i] eq "ok" }
			}
		}
	}
	die "nothing compared" unless $n > 50 && $m > 50' "$json"
shared=$OBJ
[ -d "$OBJ/bpf" ] || shared=$TOP/obj # a build of another kind, as SAN=1, has the BPF programs of the plain one
programs=$("$bpftool" gen skeleton "$shared/bpf/offcpu.bpf.o" 2>/dev/null |
	sed -n '/struct {/,/} progs;/s/.*struct bpf_program \*\(.*\);/\1/p' | sort)
is "$(query 'map { $_->{id} =~ /^record\.(.*)/ } @{$d->{caps}{steps}}' | sort | tr '\n' ' ')" "$(echo "$programs" | tr '\n' ' ')" \
	'there is a step for each program of the recorder'
for kind in $(grep -h -o 'BPF_MAP_TYPE_[A-Z_]*' "$TOP"/bpf/*.bpf.[ch] "$TOP"/bpf/*-take.h | sort -u | sed 's/BPF_MAP_TYPE_//' |
	tr '[:upper:]' '[:lower:]' | sed 's/^ringbuf$/ring_buffer/'); do
	is "$(query "step('map.$kind')->{id}")" "map.$kind" "there is a step for map type $kind, which the tools use"
done

# the table, compared with what other programs may do
sleep_as() { # USER: starts idle as USER and sets $pid to its PID
	setpriv --reuid="$1" --regid="$1" --clear-groups --inh-caps=-all --bounding-set=-all \
		"$TMP/bin/idle" 1 <"$TMP/hold" >"$TMP/pid" 2>/dev/null &
	at_exit_kill $!
	soon test -s "$TMP/pid"
	pid=$(head -n 1 "$TMP/pid")
	rm "$TMP/pid"
}
mkfifo "$TMP/hold"
exec 7<>"$TMP/hold"
sleep_as 65533
other=$pid
sleep_as 65534
own_ordinary=$pid
sleep_as 0
own_root=$pid
lib=$(awk '/libc\.so/ { print $6; exit }' "/proc/$other/maps")
range() {
	awk '/libc\.so/ { print $1; exit }' "/proc/$1/maps" | sed 's/\(^\|-\)0*/\1/g'
}
cat >"$TMP/all/call" <<'EOF'
#!/usr/bin/perl
# call NAME PID [ADDRESS]: one system call, by number
my %nr = (x86_64 => [310, 101, 298], aarch64 => [270, 117, 241]);
my ($memory, $ptrace, $event) = @{$nr{(`uname -m` =~ /(\w+)/)[0]}};
my ($name, $pid, $at) = @ARGV;
my $got = "\0" x 8;
if ($name eq "memory") {
	my ($here, $there) = (pack("P Q", $got, 8), pack("Q Q", hex $at, 8));
	exit(syscall($memory, $pid + 0, $here, 1, $there, 1, 0) != 8);
} elsif ($name eq "trace") {
	exit(syscall($ptrace, 0x4206, $pid + 0, 0, 0) != 0);	# PTRACE_SEIZE
} else {
	# struct perf_event_attr: software, 72 bytes, dummy, exclude_kernel
	my $attr = pack("L L Q x24 Q x24", 1, 72, 9, 1 << 5);
	exit(syscall($event, $attr, $pid + 0, -1, -1, 0) < 0);
}
EOF
chmod 755 "$TMP/all/call"
address=$(awk '/libc\.so/ { sub("-.*", "", $1); print $1; exit }' "/proc/$other/maps")

# agree STEP NAME COMMAND...: has try_all try COMMAND as both users with each set of the table. In COMMAND,
# OWN is a process of that user and RANGE the addresses of a mapping of libc in it.
agree() {
	agree_step=$1
	printf '%s\t%s\n' "$1" "$2" >>"$TMP/agree"
	shift 2
	printf '( %s ) >/dev/null 2>&1 </dev/null && echo %s\n' "$*" "$agree_step" >>"$TMP/commands"
}

# Tries all commands in one shell for each user and set, because starting a shell takes longer than most
# commands. The steps that work are in $TMP/works.USER.SET. Skips the sets that could not be granted, and the
# set of all capabilities.
try_all() {
	for try_user in root ordinary; do
		own=$own_root
		[ $try_user = root ] || own=$own_ordinary
		sed "s/OWN/$own/g; s/RANGE/$(range "$own")/g" "$TMP/commands" >"$TMP/all/commands"
		query 'my $c = $d->{caps}; map { my $i = $_; (grep { $_->{results}{'$try_user'}[$i] !~ /^not / } @{$c->{steps}})
			&& $c->{sets}[$i]{name} ne "all" ? join " ", $i, map { lc s/^CAP_//r } @{$c->{sets}[$i]{caps}} : () } 0 .. $#{$c->{sets}}' >"$TMP/sets"
		while read -r set caps; do
			as $try_user "$caps" sh "$TMP/all/commands" >>"$TMP/works.$try_user.$set" 2>/dev/null </dev/null
		done <"$TMP/sets"
	done
	rm "$TMP/commands"
}

# Tests for each STEP and user that the row of the table says with which sets COMMAND works.
compare_all() {
	while IFS="$tab" read -r step name; do
		for user in root ordinary; do
			query 'my $s = step("'"$step"'"); my $n; my @differ = map { my ($i, $want, $f) = ($_, $s->{results}{'$user'}[$_] eq "ok");
				$s->{results}{'$user'}[$i] =~ /^not / || !open($f, "<", "'"$TMP/works.$user"'.$i") ? () : do { $n++;
				my $got = grep { $_ eq "'"$step"'" } split /\n/, <$f>; $want == $got ? () :
				"{@{$d->{caps}{sets}[$i]{caps}}}: bpfcheck says $s->{results}{'$user'}[$i], but it is " . ($got ? "granted" : "refused") } }
				0 .. $#{$d->{caps}{sets}}; (@differ, $n >= 12 ? "" : "only $n sets")' | grep . >"$TMP/differ"
			is "$(cat "$TMP/differ")" '' "as $user the table is right for each set: $name"
		done
	done <"$TMP/agree"
}
tab=$(printf '\t')

agree kernel.kallsyms 'grep finds addresses in kallsyms' 'grep -q -m 1 "^0*[1-9a-f]" /proc/kallsyms'
agree kernel.btf 'head reads BTF' 'head -c 24 /sys/kernel/btf/vmlinux'
agree proc.own.maps "cat reads the maps of one's own process" 'cat /proc/OWN/maps'
agree proc.own.map_files "head opens a mapped file of one's own process" 'head -c 1 /proc/OWN/map_files/RANGE'
agree proc.own.stack "cat reads the kernel stack of one's own process" 'cat /proc/OWN/stack'
agree proc.other.maps "cat reads the maps of another user's process" "cat /proc/$other/maps"
agree proc.other.root "head opens a file under the root of another user's process" "head -c 1 /proc/$other/root$lib"
agree proc.other.map_files "head opens a mapped file of another user's process" "head -c 1 /proc/$other/map_files/$(range "$other")"
agree proc.other.memory "process_vm_readv reads memory of another user's process" "$TMP/all/call memory $other $address"
agree proc.other.mem_file "the shell opens /proc/PID/mem of another user's process" ": </proc/$other/mem"
agree proc.other.ptrace "ptrace attaches to another user's process" "$TMP/all/call trace $other"
agree proc.other.syscall "cat reads the system call of another user's process" "cat /proc/$other/syscall"
agree proc.other.stack "cat reads the kernel stack of another user's process" "cat /proc/$other/stack"
agree perf.own "a perf event opens on one's own process" "$TMP/all/call event OWN"
agree perf.other "a perf event opens on another user's process" "$TMP/all/call event $other"

for type in raw_tp:raw_tp/sys_enter tracepoint:tracepoint/raw_syscalls/sys_enter tp_btf:tp_btf/sys_enter uprobe:uprobe; do
	agree "stackmap.${type%%:*}" "stackmap-test runs its case ${type#*:}" \
		"$TMP/bin/stackmap-test -r '${type#*:}: the user stack' | grep '^ok' | grep -vq SKIP"
done
agree iterator.task_sleepable 'offcpu-record, which needs an iterator, records' \
	"$TMP/bin/offcpu-record -q $mode --force -o $TMP/all/\$(id -u).cap -- true"

try_all

# a bpffs to pin maps in, which only the command sees and which is gone when it ends
mkdir "$TMP/bpf"
printf '#!/bin/sh\nmount -t bpf none "$1" && chmod 1777 "$1" && shift && exec "$@"\n' >"$TMP/all/with-bpffs"
chmod 755 "$TMP/all/with-bpffs"
while read -r kind type key value entries flags; do
	agree "map.$kind" "bpftool creates a map: $kind" \
		"$bpftool map create $TMP/bpf/$kind type $type key $key value $value entries $entries name m flags $flags"
done <<'EOF'
array array 4 8 1 0
mmapable_array array 4 8 1 1024
hash hash 4 8 16 0
percpu_array percpu_array 4 8 1 0
lru_hash lru_hash 4 8 16 0
ring_buffer ringbuf 0 0 4096 0
prog_array prog_array 4 4 1 0
stack_trace stack_trace 4 64 16 0
EOF
as_prefix="unshare -m $TMP/all/with-bpffs $TMP/bpf"
try_all
as_prefix=
compare_all

# the least set of a tool
names() { # PERL: prints capabilities as setpriv names them, in one line
	query "map { lc s/^CAP_//r } $1" | tr '\n' ' '
}
record() { # USER "CAP..." ARG...
	rec_as=$1
	rec_caps=$2
	shift 2
	# shellcheck disable=SC2086 # words, or nothing
	as "$rec_as" "$rec_caps" "$TMP/bin/offcpu-record" -q $mode --force -o "$TMP/all/$rec_as.cap" "$@" >"$out" 2>"$err"
}
least=$(names '@{tool("offcpu-record")->{required}}')
is "$least" 'perfmon bpf ' 'the recorder needs CAP_BPF and CAP_PERFMON on a kernel like this'
is "$(names '@{tool("offcpu-record")->{as_root}{required}}')" "$least" 'as root the recorder needs the same capabilities'
for user in ordinary root; do
	ok "offcpu-record works with exactly its least set, as $user" record $user "$least" -d 0.2 -- sleep 0.1
	for cap in $least; do
		record $user "$(echo "$least" | sed "s/\b$cap\b//")" -d 0.2 -- sleep 0.1
		rc=$?
		is "$rc $(grep -ic "cap_$cap.* missing" "$err")" '2 1' "offcpu-record fails without $cap of its least set and says so, as $user"
	done
done
is "$(query 'grep { !$_->{why} } map { @{$_->{reasons}}, @{$_->{useful}} } @{$d->{caps}{tools}}')" '' 'every capability has a reason'
is "$(query 'map { $_->{name} } grep { !@{$_->{required}} } @{$d->{caps}{tools}}' | tr '\n' ' ')" \
	'symbolize fold kallsyms-resolve capinfo ' 'tools that read captures need no capabilities'

# the capabilities that the recorder can use besides
is "$(query 'sort map { $_->{cap} } @{tool("offcpu-record")->{useful}}' | tr '\n' ' ')" \
	'CAP_CHECKPOINT_RESTORE CAP_DAC_READ_SEARCH CAP_SYSLOG CAP_SYS_PTRACE ' 'the recorder can use four more capabilities'
kernel_frames() { # counts kernel frames with a name in the last recording
	"$BIN/symbolize" -q --no-inline "$TMP/all/ordinary.cap" 2>/dev/null | grep -c '[a-z_]*+0x.*kernel.kallsyms'
}
user_frames() { # counts frames of idle with a name
	"$BIN/symbolize" -q --no-inline "$TMP/all/ordinary.cap" 2>/dev/null | grep -c 'wait_for_ever+0x'
}
record ordinary "$least" -d 1.2 -p "$own_ordinary"
is "$(kernel_frames)" 0 'without CAP_SYSLOG kernel frames have no names'
record ordinary "$least syslog" -d 1.2 -p "$own_ordinary"
ok 'with CAP_SYSLOG kernel frames have names' test "$(kernel_frames)" -gt 3

# hidden USER MODE [AFTER]: starts idle as USER from a file system of its own, where its file belongs to USER
# and has mode MODE; then runs AFTER there. Sets $pid
hidden() {
	cat >"$TMP/all/hidden" <<EOF
mount -t tmpfs none /mnt && install -m $2 -o $1 -g $1 $TMP/bin/idle /mnt/idle || exit 1
setpriv --reuid=$1 --regid=$1 --clear-groups --inh-caps=-all --bounding-set=-all /mnt/idle 1 <&7 &
until [ -s $TMP/pid ]; do sleep 0.1; done; $3
: >$TMP/all/hidden.done
wait
EOF
	rm -f "$TMP/all/hidden.done"
	unshare -m sh "$TMP/all/hidden" >"$TMP/pid" 2>/dev/null &
	hidden_job=$!
	at_exit_kill $hidden_job
	soon test -e "$TMP/all/hidden.done"
	pid=$(head -n 1 "$TMP/pid")
	at_exit_kill "$pid"
	rm "$TMP/pid"
}
# frames_with "CAP...": counts frames with a name in a recording of $pid with these besides the least set
frames_with() {
	rm -f "$TMP/all/ordinary.cap"
	record ordinary "$least $1" -d 1.2 -p "$pid" || true
	if [ -e "$TMP/all/ordinary.cap" ]; then user_frames; else echo 0; fi
}
end_hidden() {
	kill "$pid"
	wait "$hidden_job"
}
hidden 65533 755
mv "$TMP/bin/idle" "$TMP/bin/gone"	# so that names cannot come from this file
is "$(frames_with '')" 0 "without CAP_SYS_PTRACE another user's process in its own file system has no names"
with=$(frames_with sys_ptrace)
end_hidden
mv "$TMP/bin/gone" "$TMP/bin/idle"
ok "with CAP_SYS_PTRACE another user's process in its own file system has names" test "$with" -gt 0
hidden 65534 755 'rm /mnt/idle'
is "$(frames_with '')" 0 "without CAP_CHECKPOINT_RESTORE one's own process with a deleted file has no names"
with=$(frames_with checkpoint_restore)
end_hidden
ok "with CAP_CHECKPOINT_RESTORE one's own process with a deleted file has names" test "$with" -gt 0
hidden 65533 700
is "$(frames_with 'sys_ptrace checkpoint_restore')" 0 "without CAP_DAC_READ_SEARCH a file that only another user may read gives no names"
with=$(frames_with 'sys_ptrace checkpoint_restore dac_read_search')
end_hidden
ok 'with CAP_DAC_READ_SEARCH a file that only another user may read gives names' test "$with" -gt 0

# with fewer capabilities to grant
json=$TMP/less.json
as root 'bpf perfmon setuid setgid setpcap kill sys_ptrace' "$bpfcheck" --caps --json --tool offcpu-record >"$json" 2>"$err"
is "$?" 1 'without CAP_SYSLOG bpfcheck --caps exits with status 1'
like "$(cat "$err")" '^bpfcheck: ' 'without CAP_SYSLOG bpfcheck --caps prints a message'
is "$(names '@{tool("offcpu-record")->{required}}')" "$least" 'without CAP_SYSLOG the least set is still known'
like "$(query 'tool("offcpu-record")->{lacks}')" 'gives kernel frames their names: every address .* zero' 'what could not be tried is named, with the reason'
is "$(query 'my $c = $d->{caps};
	map { my $i = $_; map { $_->[$i] } map { values %{$_->{results}} } @{$c->{steps}} }
	grep { grep { /SYSLOG|SYS_ADMIN/ } @{$c->{sets}[$_]{caps}} } 0 .. $#{$c->{sets}}' | sort -u)" 'not granted' \
	'sets that cannot be granted have no result but not granted'
as ordinary '' "$bpfcheck" --caps --json >"$json" 2>"$err"
is "$?" 1 'bpfcheck --caps of an ordinary user exits with status 1'
is "$(query 'defined tool("offcpu-record")->{required} ? "known" : "not known"')" 'not known' 'for an ordinary user the least set is not known'
is "$(query 'step("proc.own.maps")->{results}{ordinary}[0]')" ok 'for an ordinary user a step that needs no capability is tried'
is "$(query '@{step("proc.other.maps")->{results}{ordinary}}' | sort -u | tr '\n' ' ')" 'not granted not tried ' \
	"for an ordinary user no step with another user's process is tried"
is "$(query 'map { @{$_->{results}{root}} } @{$d->{caps}{steps}}' | sort -u | tr '\n' ' ')" 'not granted not tried ' \
	'for an ordinary user no step is tried as root'
as ordinary 'bpf perfmon' "$bpfcheck" --caps --json --tool offcpu-record >"$json" 2>"$err"
is "$(names '@{tool("offcpu-record")->{required}}')" "$least" 'an ordinary user with CAP_BPF and CAP_PERFMON learns that they are enough'
if unshare -Ur true 2>/dev/null; then
	timeout 120 unshare -Ur "$bpfcheck" --caps --json >"$json" 2>"$err"
	is "$?" 1 'in a user namespace bpfcheck --caps exits with status 1'
	like "$(query 'map { $_->{not_tried} // () } @{$d->{caps}{users}}')" 'cannot become user 65534' 'in a user namespace the missing user is reported'
	is "$(query 'grep { $_ eq "ok" } map { @{$_->{results}{root}} } grep { $_->{id} =~ /^(map|record)/ } @{$d->{caps}{steps}}')" '' \
		'in a user namespace no capability is enough for BPF'
fi
json=$TMP/ns.json
timeout 120 unshare -pf --mount-proc "$bpfcheck" --caps --json --tool offcpu-record >"$json" 2>"$err"
is "$? $(names '@{tool("offcpu-record")->{required}}')" "0 $least" 'in a PID namespace the least set is the same'
json=$TMP/hidepid.json
timeout 120 unshare -pf --mount-proc sh -c 'mount -o remount,hidepid=2 /proc && exec "$0" --caps --json --tool offcpu-record' \
	"$bpfcheck" >"$json" 2>"$err"
is "$? $(names '@{step("proc.other.maps")->{least}{ordinary}}')" '0 sys_ptrace ' \
	"with hidepid=2 only CAP_SYS_PTRACE gives access to other users' maps"
is "$(query 'step("proc.other.maps")->{results}{ordinary}[0]')" ENOENT "with hidepid=2 and no capabilities other users' maps give ENOENT"
json=$TMP/locked.json
timeout 120 unshare -m sh -c 'mount -t tmpfs none /sys/kernel/security &&
	echo "none integrity [confidentiality]" >/sys/kernel/security/lockdown && exec "$0" --caps --json' "$bpfcheck" >"$json" 2>"$err"
is "$?" 1 'under lockdown=confidentiality bpfcheck --caps exits with status 1'
is "$(query 'map { @{$_->{results}{ordinary}} } grep { $_->{id} =~ /^record/ } @{$d->{caps}{steps}}' | sort -u | tr '\n' ' ')" \
	'not granted not tried ' 'programs that lockdown refuses are not tried, because the kernel would log each'
ok 'these runs of bpfcheck --caps leave nothing behind' gone

# killed while it runs
seen=no
for _ in 1 2 3 4 5 6; do
	: >"$TMP/ids"
	"$bpfcheck" --caps >/dev/null 2>&1 </dev/null &
	job=$!
	at_exit_kill $job
	while kill -0 $job 2>/dev/null; do
		held && [ "$(alive | wc -l)" -gt 10 ] && kill -KILL $job 2>/dev/null && seen=yes && break
		sleep 0.02
	done
	wait $job 2>/dev/null
	[ $seen = no ] || break
done
is "$seen" yes 'bpfcheck --caps has processes, programs and maps while it runs'
ok 'bpfcheck --caps killed with SIGKILL leaves no process, program or map behind' soon gone

# formats
status 0 'bpfcheck --caps exits with status 0' timeout 120 "$bpfcheck" --caps
ok 'the text fits 100 columns' test "$(wc -L <"$out")" -le 100
like "$(cat "$out")" '^Marks: x works' 'the text has a legend'
like "$(cat "$out")" '^  record_switch  *\.{7}[.?]x+' 'the text has a line for each step'
like "$(grep -A 9 '^offcpu-record' "$out")" '^            CAP_BPF  *create BPF maps' 'the text has a reason for each capability'
status 0 '-q --tool exits with status 0' timeout 120 "$bpfcheck" --caps -q --tool stackmap-test
like "$(cat "$out")" '^stackmap-test +needs CAP_PERFMON, CAP_BPF; can use .*CAP_SYSLOG' '-q --tool prints the sets of that tool'
is "$(wc -l <"$out")" 1 '-q --tool prints one line'
status 0 '--tool exits with status 0' timeout 120 "$bpfcheck" --caps --tool kallsyms-resolve
is "$(grep -c -e '^offcpu-record' -e '^  [a-z]' "$out")" 2 '--tool prints only the steps that the tool needs'
status 0 '--tool of a tool that needs no capabilities exits with status 0' timeout 120 "$bpfcheck" --caps -q --tool fold
is "$(cat "$out")" 'fold              needs none' '-q --tool says that a tool needs none'
printf '#!/bin/sh\nexec "%s" --caps --tap\n' "$bpfcheck" >"$TMP/caps.t"
status 0 '--tap passes under prove' timeout 150 prove -v -e /bin/sh "$TMP/caps.t"
like "$(cat "$out")" '^ok [0-9]+ - record.record_switch: with CAP_PERFMON, CAP_BPF$' '--tap has a test for each step, with its least set'
like "$(cat "$out")" '^ok [0-9]+ - limit.memlock # SKIP cannot raise RLIMIT_MEMLOCK|limit.memlock: with CAP_SYS_RESOURCE' \
	'--tap skips a step that no granted set allows and no tool needs, with the reason'
status 64 '--caps with --root is a usage error' "$bpfcheck" --caps --root /
is "$(wc -l <"$err") $(wc -c <"$out")" '2 0' '--caps with --root prints two lines on stderr'
sh -c "timeout 120 '$bpfcheck' --caps --tool fold --json >/dev/full" 2>"$err"
is "$?" 2 'a full disk gives status 2'
like "$(cat "$err")" 'cannot write the result' 'a full disk is reported'

exec 7>&-
tap_done
