#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Containers, from outside and from inside: root directories of their own,
# nested PID namespaces, cgroups as filters.
#
#   STACKTOOLS_DEBIAN=DIR  a root made by debootstrap, for the chroots; without it
#                          files of a few of this machine's packages are copied
# shellcheck disable=SC2016,SC2119,SC2154,SC2317 # Perl's variables; $rc and others of tap.sh; functions that ok calls
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf
unshare --mount --pid --fork true 2>"$TMP/unshare" || skip_all "$(head -n 1 "$TMP/unshare")"
R=$TMP/root
export BIN OBJ TMP R
chmod 755 "$TMP" # an ordinary user enters it

groups=
tap_inner=
clean() {
	for p in $tap_inner; do
		kill -KILL "$p" 2>/dev/null
	done
	tap_cleanup
	# shellcheck disable=SC2086 # a list
	for g in $groups; do
		for _ in 1 2 3 4 5 6 7 8 9 10; do
			find "$g" -depth -type d -exec rmdir {} + 2>/dev/null
			[ -d "$g" ] || break
			sleep 0.2
		done
	done
}
trap clean EXIT

# --- a Debian root, with a program at the same path as another one on the host ---

# copy_packages PACKAGE...: copies the files of installed packages to the same paths below $R
copy_packages() {
	mkdir -p "$R/usr/bin" "$R/usr/sbin" "$R/usr/lib" "$R/usr/lib64" || return
	for d in bin sbin lib lib64; do
		[ -L "/$d" ] && ln -s "usr/$d" "$R/$d"
	done
	for p in "$@"; do
		dpkg -L "$p" || return
	done | while read -r f; do
		[ ! -d "$f" ] && [ -e "$f" ] && echo "${f#/}"
	done >"$TMP/files"
	tar -C / -c --no-recursion -T "$TMP/files" -f - | tar -C "$R" -x --keep-directory-symlink -f -
}

if [ -n "${STACKTOOLS_DEBIAN:-}" ]; then
	cp -a "$STACKTOOLS_DEBIAN" "$R"
else
	copy_packages libc6 dash coreutils
fi
mkdir -p "$R/proc" "$R/sys" "$R/tmp" "$R/old" "$R/dev"
[ -e "$R/dev/null" ] || : >"$R/dev/null"
chmod 1777 "$R/tmp"
cat >"$TMP/nap.c" <<'C'
#include <time.h>
__attribute__((noinline)) static int inside_the_root(void)
{
	const struct timespec t = { .tv_nsec = 20000000 };
	int n = 0;

	for (int i = 0; i < 30000; i++)
		n += nanosleep(&t, 0);
	return n;
}
int main(void)
{
	int n = inside_the_root();

	__asm__ volatile("" ::: "memory");
	return n;
}
C
# the host has a program /usr/bin/env, too
rm -f "$R/usr/bin/env"
compile() {
	${CC:-cc} -O1 -Wl,--build-id -o "$R/usr/bin/env" "$TMP/nap.c"
}
ok "a program for the root compiles" compile
is "$(chroot "$R" /bin/sh -c 'echo "$((6 * 7))"')" 42 "the shell of the root runs in it"
mkdir "$R/work" && cp "$BIN/offcpu-record" "$BIN/capinfo" "$BIN/symbolize" "$R/work/"
for f in umount setpriv; do
	cp "$(command -v $f)" "$R/usr/bin/$f"
done
for f in "$BIN/offcpu-record" "$BIN/symbolize" "$R/usr/bin/umount" "$R/usr/bin/setpriv"; do
	ldd "$f"
done | grep -o '/[^ ]*' | sort -u | while read -r l; do
	[ -e "$R$l" ] || { mkdir -p "$R${l%/*}" && cp -L "$l" "$R$l"; }
done

# deepest PID: follows the oldest child of each process and prints the PID of the last one
deepest() {
	d_p=$1
	while d_c=$(pgrep -o -P "$d_p"); do
		d_p=$d_c
	done
	echo "$d_p"
}

naps() {
	[ "$(cat "/proc/$(deepest "$1")/comm" 2>/dev/null)" = "${2:-env}" ]
}

# start COMMAND...: starts COMMAND in the background and waits for its process $name. Sets $outer to the PID
# of COMMAND and $inner to that of its deepest process
start() {
	"$@" >"$TMP/start.log" 2>&1 </dev/null 7>&- &
	outer=$!
	at_exit_kill "$outer"
	until_true naps "$outer" "$name" || diag <"$TMP/start.log"
	inner=$(deepest "$outer")
	tap_inner="$tap_inner $inner"
}

finish() {
	kill -KILL "$inner" 2>/dev/null # the first process of a PID namespace ignores other signals
	wait "$outer" 2>/dev/null
}

own_frames='nanosleep;inside_the_root;main;'

# named CAP NAME: tests that all waits of the capture have the frames of the program in the root
named() {
	is "$(waits "$1" '$h{user() =~ /'"$own_frames"'/ ? "own" : user()} = 1')" "own 1" "$2"
}

# from_outside LABEL: records process $inner from here, then ends it; tests its stacks and names
from_outside() {
	rm -f "$TMP/o.cap" "$TMP/bare.cap"
	rec "$TMP/o.cap" -d 0.5 -p "$inner"
	is "$rc" 0 "$1 is recorded from outside"
	named "$TMP/o.cap" "$1 has the names of its own file while it runs"
	is "$(waits "$TMP/o.cap" '$n++ if $w->{user_stack_verdict} ne "complete"')" 0 "$1 has complete user stacks"
	rec "$TMP/bare.cap" -d 0.3 --no-symbols -p "$inner"
	finish
	named "$TMP/o.cap" "$1 has its names from the capture after it has ended"
}
name="env"

start chroot "$R" /usr/bin/env
from_outside "a program in a chroot"

cat >"$TMP/pivot.sh" <<'SH'
mount --bind "$R" "$R" && cd "$R" && mount -t proc proc proc && pivot_root . old && umount -l /old && exec /usr/bin/env
SH
start unshare --mount --pid --fork sh "$TMP/pivot.sh"
from_outside "a program behind pivot_root"
is "$(waits "$TMP/o.cap" '$h{"$w->{pid} $w->{ns_pid} $w->{exe}"} = 1')" "$inner 1 /usr/bin/env 1" \
	"a program behind pivot_root has both PIDs and the path that it sees itself"
# frames_in ARG...: does symbolize name some frames in that program, and leave some unnamed?
frames_in() {
	"$BIN/symbolize" -q "$@" "$TMP/bare.cap" 2>/dev/null | awk '/\(\/usr\/bin\/env\)$/ { $2 ~ /^\[/ ? bad++ : good++ }
		END { print good ? "some" : "no", bad ? "some" : "no" }'
}
is "$(frames_in)" "no some" "a capture without names gets none from the host's program at that path"
is "$(frames_in --symfs "$R")" "some no" "a capture without names gets them with --symfs ROOT"

# a perf map is in the root of its process, and its name has the PID there
cp "$OBJ/t/work/jit" "$R/usr/bin/jit"
sed 's,/usr/bin/env,/usr/bin/jit map 30,' "$TMP/pivot.sh" >"$TMP/jit.sh"
name=jit
start unshare --mount --pid --fork sh "$TMP/jit.sh"
until_true test -s "$R/tmp/perf-1.map"
rec "$TMP/jit.cap" -d 0.5 -p "$inner"
is "$(waits "$TMP/jit.cap" '$n++ if user() =~ /;made_first;/')" "$(waits "$TMP/jit.cap" '$n++')" \
	"frames of JIT code have the names of the perf map in the root"
finish
rm -f "$R/tmp/perf-1.map"
name="env"

mkdir "$TMP/upper" "$TMP/work" "$TMP/merged"
cat >"$TMP/overlay.sh" <<'SH'
mount -t overlay overlay -o "lowerdir=$R,upperdir=$TMP/upper,workdir=$TMP/work" "$TMP/merged" &&
	mount -t proc proc "$TMP/merged/proc" && cd "$TMP/merged" && pivot_root . old && umount -l /old &&
	exec /usr/bin/env
SH
if unshare --mount sh -c 'mount -t overlay overlay -o "lowerdir=$R,upperdir=$TMP/upper,workdir=$TMP/work" "$TMP/merged"' 2>"$TMP/mount"; then
	start unshare --mount --pid --fork sh "$TMP/overlay.sh"
	from_outside "a program on overlayfs"
else
	skip "a program on overlayfs" "mount: $(head -n 1 "$TMP/mount")"
fi

name="sleep"
start unshare --mount sh -c 'mount --bind "$R/usr/bin/env" "$(readlink -f "$(command -v sleep)")" && exec sleep'
from_outside "a program that is mounted over a program of the host"

name="env"
cp -a "$R" "$TMP/gone"
start chroot "$TMP/gone" /usr/bin/env
rm -rf "$TMP/gone"
from_outside "a program whose root was deleted"

start unshare --mount --pid --fork sh "$TMP/pivot.sh"
first=$outer first_inner=$inner
start nsenter --target "$inner" --mount --pid --root --wd=/ /usr/bin/env
from_outside "a program that has entered a container"
kill -KILL "$first_inner"
wait "$first" 2>/dev/null

# --- from inside ---

cat >"$TMP/enter.sh" <<'SH'
mount --bind "$R" "$R" && cd "$R" && mount -t proc proc proc && mount -t sysfs sysfs sys &&
	mount --bind /dev/null dev/null && pivot_root . old && umount -l /old && exec /bin/sh /tmp/inside.sh
SH
cat >"$R/tmp/inside.sh" <<'SH'
/usr/bin/env &
pid=$!
echo "$pid"
limited="setpriv --bounding-set=-all,+bpf,+perfmon,+syslog,+sys_ptrace,+checkpoint_restore,+dac_read_search"
$limited /work/offcpu-record -q --force -o /tmp/all.cap -d 1 -a
echo $?
$limited /work/offcpu-record -q --force -o /tmp/one.cap -d 0.4 -p "$pid"
echo $?
/work/symbolize -q /tmp/one.cap >/tmp/one.txt
kill -9 "$pid"
SH
"$R/usr/bin/env" >/dev/null 2>&1 </dev/null & # so that a thread outside waits in that second
outside=$!
at_exit_kill "$outside"
timeout 60 unshare --mount --pid --fork sh "$TMP/enter.sh" >"$TMP/inside" 2>&1 </dev/null
kill "$outside"
{
	read -r pid
	read -r all_rc
	read -r one_rc
} <"$TMP/inside"
# 1: if others start thousands of processes, the kernel has no task storage for some, and waits are lost
like "$all_rc $one_rc" '^[01] 0$' "-a and -p record in a container with a few capabilities" || diag <"$TMP/inside"
is "$("$BIN/capinfo" "$R/tmp/all.cap" | awk '$2 ~ /^lost\./ && $2 != "lost.no_storage" && $1 > 0')" "" \
	"-a in a container loses no waits except for lack of task storage"
is "$(waits "$R/tmp/all.cap" '$h{$w->{process_comm}} = 1 if $w->{pid} == $w->{ns_pid}')" "env 1
sh 1" "-a in a container records what is visible there, by its PIDs there"
is "$(waits "$R/tmp/all.cap" '$n++ if $w->{pid} != $w->{ns_pid}')" 0 "-a in a container records nothing that is not visible there"
between "$(counter "$R/tmp/all.cap" waits.invisible)" 5 1000000 "-a in a container counts waits that are not visible there"
is "$(waits "$R/tmp/one.cap" '$h{$w->{pid}} = 1')" "$pid 1" "-p in a container takes a PID of the container"
named "$R/tmp/one.cap" "a capture made in a container has the names"
ok "symbolize in a container shows the names" grep -q inside_the_root "$R/tmp/one.txt"

# --- nested PID namespaces ---

cat >"$TMP/nest.sh" <<'SH'
[ "$1" -gt 0 ] && exec unshare --pid --fork --mount-proc sh "$0" $(($1 - 1)) "$2"
sleep 100 &
pid=$!
true
"$BIN/offcpu-record" -q --force -o "$2" -d 0.3 -p "$pid"
echo "$pid $?"
kill "$pid"
SH
for depth in 1 2 3; do
	nested=$(timeout 30 sh "$TMP/nest.sh" $depth "$TMP/nest$depth.cap" 2>"$err" </dev/null | tail -n 1)
	is "${nested#* } $(waits "$TMP/nest$depth.cap" 'push @o, "$w->{pid} $w->{ns_pid} $w->{process_comm} " . user()' | sed 's/ [^ ]*nanosleep.*/ asleep/')" \
		"0 ${nested% *} ${nested% *} sleep asleep" "-p takes a PID of its own PID namespace, $depth deep"
done

# a program of four threads, two PID namespaces below this one; the recorder runs in this one, then in the
# one between
cat >"$TMP/threads.sh" <<'SH'
[ "$1" -gt 0 ] && exec unshare --pid --fork --mount-proc sh "$0" $(($1 - 1))
true
$(command -v true)
exec "$OBJ/t/work/idle" 3 <"$TMP/in" >/dev/null
SH
mkfifo "$TMP/in"
exec 7<>"$TMP/in"
name=idle
start sh "$TMP/threads.sh" 2
rec "$TMP/threads.cap" -d 0.5 -p "$inner"
is "$rc" 0 "a program two namespaces deep is recorded from outside"
for t in "/proc/$inner/task"/*; do
	awk '/^NSpid:/ { print $2, $NF }' "$t/status"
done | sort >"$TMP/want"
"$BIN/capinfo" --threads -p "$inner" "$TMP/threads.cap" >"$TMP/threads"
awk 'NR > 1 { print $2, $4 }' "$TMP/threads" | sort >"$TMP/got"
same "$TMP/got" "$TMP/want" "capinfo --threads shows the TIDs in both namespaces, as /proc/PID/task does"
is "$(awk 'NR > 1 { print $1, $3, NF }' "$TMP/threads" | sort -u)" "$inner $(awk '/^NSpid:/ { print $NF }' "/proc/$inner/status") 12" \
	"capinfo --threads shows the PIDs in both namespaces"
is "$("$BIN/capinfo" --json "$TMP/threads.cap" | perl -MCpanel::JSON::XS -0777 -ne 'print map "$_->{tid} $_->{ns_tid}\n", @{decode_json($_)->{threads}}' | sort)" \
	"$(cat "$TMP/want")" "capinfo --json has the TIDs in both namespaces"
like "$("$BIN/capinfo" "$TMP/threads.cap")" " \(PID $(awk '/^NSpid:/ { print $NF }' "/proc/$inner/status") in its namespace\)" \
	"capinfo shows the PID in the namespace in its list of processes"
middle=$(pgrep -o -P "$outer")
third=$(awk '/^NSpid:/ { print $3 }' "/proc/$inner/status")
run timeout 30 nsenter --target "$middle" --pid unshare --mount-proc "$BIN/offcpu-record" -q --force -o "$TMP/middle.cap" -d 0.3 -p "$third"
is "$rc $(waits "$TMP/middle.cap" '$h{"$w->{pid} $w->{ns_pid}"} = 1')" \
	"0 $third $(awk '/^NSpid:/ { print $NF }' "/proc/$inner/status") 1" "in a PID namespace between both, -p takes a PID of that namespace"
exec 7>&-
finish
status 2 "a /proc of another PID namespace is refused" unshare --pid --fork "$BIN/offcpu-record" -d 0.1 --force -o "$TMP/x.cap" -p 1
like "$(cat "$err")" "/proc' is that of another PID namespace.*" "a /proc of another PID namespace is reported"

# --- cgroups ---

nap() { # NAME: starts the program as process NAME and sets $nap to its PID
	[ -e "$TMP/$1" ] || cp "$R/usr/bin/env" "$TMP/$1"
	"$TMP/$1" >/dev/null 2>&1 </dev/null 7>&- &
	nap=$!
	at_exit_kill "$nap"
}

# move PID CGROUP
move() {
	echo "$1" >"$2/cgroup.procs"
}

ms() {
	date +%s%3N
}

comms() {
	waits "$1" '$h{$w->{process_comm}} = 1' | sed 's/ 1$//' | tr '\n' ' '
}

# enter: starts $leaver in the cgroup $g/sub, which waits there for 2 s
enter() {
	: >"$TMP/leaver"
	entered=$(ms)
	perl "$TMP/leaver.pl" "$g/sub" >"$TMP/leaver" 2>&1 </dev/null 7>&- &
	leaver=$!
	until_true test -s "$TMP/leaver"
	until_true grep -q '^State:.S' "/proc/$leaver/status"
	waits_since=$(ms)
}

# cut_wait CAPTURE WHAT: the wait of $leaver is recorded up to when it was moved, and nothing after
cut_wait() {
	is "$(waits "$1" 'push @o, join " ", $w->{count}, $w->{open} ? "open" : "ended" if $w->{process_comm} eq "perl" && $w->{total_ns} > 2e8')" \
		"1 open" "$2 one wait of a process that is moved out is recorded, as one that is open"
	between "$(waits "$1" '$n = $w->{total_ns} / 1e6 if $w->{process_comm} eq "perl" && $w->{total_ns} > 2e8')" \
		"$stayed" "$stayed_at_most" "$2 up to the time when it was moved"
}

# was_inside CAPTURE NAME MORE WHAT: process NAME is recorded for as long as it was in the cgroup, and MORE ms, and
# nothing is lost
was_inside() {
	between "$(waits "$1" '$n += $w->{total_ns} / 1e6 if $w->{process_comm} eq "'"$2"'"')" \
		$((inside / 2)) $((at_most + $3)) "$4 a process is recorded while it is in the cgroup"
	is "$(counter "$1" lost.begin_unseen) $(counter "$1" lost.end_unknown)" " " "$4 no wait is lost because of a move"
}

# leave_and_visit: moves $leaver out of $g/sub, and $visit into it and out again. $stayed and $inside is how long they
# were in it at least, $stayed_at_most and $at_most how long it can have been, in ms
leave_and_visit() {
	stayed=$(($(ms) - waits_since))
	move "$leaver" "$base/out"
	before=$(ms)
	stayed_at_most=$((before - entered))
	move "$visit" "$g/sub"
	inside=$(ms)
	sleep 0.5
	inside=$(($(ms) - inside))
	move "$visit" "$base/out"
	at_most=$(($(ms) - before))
	wait "$leaver"
}

cgroup_tests() { # KIND BASE
	base=$2
	id=$(printf '%08x%08x%048x' $$ "$(stat -c %i "$base")" 12648430) # no container has this ID
	g=$base/in
	groups="$groups $base"
	mkdir -p "$g/sub/sub" "$base/out" "$base/docker/$id" "$base/system.slice/crio-conmon-$id.scope"
	nap nap-in
	in=$nap
	move "$in" "$g"
	nap nap-sub
	sub=$nap
	move "$sub" "$g/sub/sub"
	nap nap-out
	outside=$nap
	move "$outside" "$base/out"
	rec "$TMP/c.cap" -d 1 --cgroup "$g"
	is "$rc $(comms "$TMP/c.cap")" "0 nap-in nap-sub " "$1: --cgroup records only processes in the cgroup and below it"
	named "$TMP/c.cap" "$1: waits recorded with --cgroup have names"
	within "$(waits "$TMP/c.cap" '$n += $w->{total_ns} / $c{duration_ns} if $w->{pid} == '"$sub")" 1 10 \
		"$1: --cgroup records all the time of a process that only waits"
	ok "$1: --cgroup: seen = recorded + filtered + lost, in waits and in ns" balanced "$TMP/c.cap"
	like "$("$BIN/capinfo" "$TMP/c.cap")" " cgroup=$g\$" "$1: the capture has the path of the cgroup"
	like "$("$BIN/capinfo" "$TMP/c.cap")" " cgroup.id=$(stat -c %i "$g")\$" "$1: the capture has the ID of the cgroup"
	rec "$TMP/p.cap" -d 0.4 --cgroup "$g" -a
	is "$rc $(comms "$TMP/p.cap")" "0 nap-in nap-sub " "$1: --cgroup with -a records the same"
	run sh -c 'echo $$ >"$1/cgroup.procs"; exec timeout 30 "$BIN/offcpu-record" -q --force -d 0.4 -o "$TMP/p.cap" --cgroup "$1"' sh "$g"
	is "$rc $(comms "$TMP/p.cap" | sed 's/timeout //')" "0 nap-in nap-sub " "$1: a recorder in the cgroup does not record itself"
	rec "$TMP/p.cap" -d 0.4 --cgroup "$g" -p "$in" -p "$outside"
	is "$rc $(comms "$TMP/p.cap")" "0 nap-in " "$1: --cgroup narrows -p"
	rec "$TMP/p.cap" -d 0.4 --cgroup "$g" -p "$outside"
	is "$rc $(comms "$TMP/p.cap")" "0 0 " "$1: --cgroup with -p of a process outside records nothing"
	rec "$TMP/p.cap" -d 0.4 --cgroup "$g" -c nap-sub
	is "$rc $(comms "$TMP/p.cap")" "0 nap-sub " "$1: --cgroup narrows -c"
	rec "$TMP/p.cap" --mode procfs -d 0.6 --cgroup "$g"
	is "$rc $(comms "$TMP/p.cap")" "0 nap-in nap-sub " "$1: --cgroup records the same in mode procfs"
	like "$("$BIN/capinfo" "$TMP/p.cap")" " cgroup=$g\$" "$1: the capture has the path of the cgroup in mode procfs"
	rec "$TMP/p.cap" --mode procfs -d 0.6 --cgroup "$g" -p "$in" -p "$outside"
	is "$rc $(comms "$TMP/p.cap")" "0 nap-in " "$1: --cgroup narrows -p in mode procfs"
	move "$in" "$base/docker/$id"
	rec "$TMP/d.cap" -d 0.4 --container "$(printf %.20s "$id")"
	is "$rc $(comms "$TMP/d.cap")" "0 nap-in " "$1: --container finds the cgroup by the beginning of the ID"
	kill "$sub" "$in"

	cat >"$TMP/leaver.pl" <<-'PL'
		open my $f, ">", "$ARGV[0]/cgroup.procs" or die; print $f $$; close $f;
		syswrite STDOUT, "inside\n";
		select undef, undef, undef, 2; select undef, undef, undef, 0.7;
	PL

	# moves into and out of a cgroup that has a process already, so that its address is a constant of the programs
	nap nap-stays
	stays=$nap
	move "$stays" "$g"
	rec_start "$TMP/n.cap" --cgroup "$g"
	nap nap-visit
	visit=$nap
	enter
	sleep 0.4
	leave_and_visit
	rec_stop
	is "$rc" 0 "$1: a cgroup with a process is recorded, others come and go"
	cut_wait "$TMP/n.cap" "$1: there, too,"
	was_inside "$TMP/n.cap" nap-visit 400 "$1: there, too,"
	kill "$visit"

	# out, and killed; and out and in again, more often than the recorder looks for who left
	rec_start "$TMP/h.cap" --cgroup "$g" -c nap-hops -c perl
	enter
	sleep 0.3
	stayed=$(($(ms) - waits_since))
	move "$leaver" "$base/out"
	stayed_at_most=$(($(ms) - entered))
	kill -KILL "$leaver"
	wait "$leaver" 2>/dev/null
	nap nap-hops
	inside=0 at_most=0
	for _ in 1 2 3 4 5 6 7 8; do
		before=$(ms)
		move "$nap" "$g/sub"
		since=$(ms)
		sleep 0.06
		inside=$((inside + $(ms) - since))
		move "$nap" "$base/out"
		at_most=$((at_most + $(ms) - before))
		sleep 0.03
	done
	rec_stop
	is "$rc" 0 "$1: one process is killed outside, another goes out and in"
	cut_wait "$TMP/h.cap" "$1: of a process that is killed at once,"
	was_inside "$TMP/h.cap" nap-hops 60 "$1: out and in:"
	ok "$1: seen = recorded + filtered + lost, with waits that are cut" balanced "$TMP/h.cap"
	kill "$nap" "$stays"
	until_true rmdir "$g/sub/sub" 2>/dev/null

	# moves into and out of a cgroup that is empty at first
	rec_start "$TMP/m.cap" --cgroup "$g"
	enter
	nap nap-visit
	visit=$nap
	sh -c 'echo $$ >"$1/cgroup.procs"; for i in 1 2 3; do sleep 0.2; done' sh "$g" >/dev/null 2>&1 </dev/null 7>&- &
	sleep 0.4
	leave_and_visit
	kill "$visit"
	until_true rmdir "$g/sub" 2>/dev/null
	until_true rmdir "$g" 2>/dev/null
	ok "$1: the recording ends when the cgroup is removed" until_true sh -c "! kill -0 $rec_pid 2>/dev/null"
	wait "$rec_pid"
	is "$?" 0 "$1: a recording that ends because the cgroup is removed exits with status 0"
	like "$("$BIN/capinfo" "$TMP/m.cap")" "stopped by: cgroup removed" "$1: the capture says that the cgroup was removed"
	is "$(waits "$TMP/m.cap" '$h{$w->{pid}} = 1 if $w->{process_comm} eq "sleep" && $w->{total_ns} > 1e8' | wc -l)" 3 \
		"$1: processes forked in a cgroup that was empty at first are recorded"
	cut_wait "$TMP/m.cap" "$1:"
	# except for the wait in which it moved in
	was_inside "$TMP/m.cap" nap-visit 400 "$1:"
	is "$(waits "$TMP/m.cap" '$n++ if $w->{process_comm} eq "nap-visit" && $w->{initial}') $(waits "$TMP/m.cap" '$n++ if $w->{process_comm} eq "nap-visit" && $w->{open}')" "0 1" \
		"$1: no wait of a process that was moved in is initial; that in which it was moved out is open"
	kill "$outside"
}

# the first mount of each version, which should be its root: in a subtree not every name can be created
v2=$(findmnt -n -r -t cgroup2 -o TARGET | head -n 1)
v1=$(findmnt -n -r -t cgroup -o TARGET,OPTIONS | awk '$2 ~ /(^|,)(memory|pids|cpu|freezer)(,|$)/ { print $1; exit }')
# with a name that no earlier run has left there
if [ -n "$v2" ] && base=$(mktemp -d "$v2/stacktools-t.XXXXXX" 2>"$TMP/mkdir"); then
	cgroup_tests v2 "$base"
	# in a cgroup namespace the path to the root is not visible
	mkdir -p "$base/ns/sub" "$TMP/cg"
	cat >"$TMP/cgns.sh" <<-'SH'
		echo $$ >"$1/cgroup.procs"
		exec unshare --mount --cgroup sh -c 'mount -t cgroup2 none "$TMP/cg" && exec "$BIN/offcpu-record" -q --force \
			-d 1 -o "$TMP/cgns.cap" --cgroup "$TMP/cg/sub"'
	SH
	nap nap-in
	sh "$TMP/cgns.sh" "$base/ns" >"$TMP/cgns" 2>&1 </dev/null 7>&- &
	cgns=$!
	until_true test -e "$TMP/cgns.cap"
	move "$nap" "$base/ns/sub"
	wait "$cgns"
	is "$? $(comms "$TMP/cgns.cap")" "0 nap-in " "in a cgroup namespace --cgroup takes a path in that namespace" || diag <"$TMP/cgns"
	kill "$nap"
	# kernel threads are in the root
	rec "$TMP/k.cap" --mode btf -d 1 --cgroup "$v2"
	is "$(waits "$TMP/k.cap" '$n++ if $w->{kthread}')" 0 "--cgroup of the root records no kernel thread"
	ok "--cgroup of the root records processes" test "$(waits "$TMP/k.cap" '$n++')" -ge 1
	rec "$TMP/k.cap" --mode btf -d 1 --cgroup "$v2" --kthreads
	# of which some woke up during the recording
	ok "--cgroup of the root with --kthreads records kernel threads" \
		test "$(waits "$TMP/k.cap" '$n++ if $w->{kthread} && !$w->{open}')" -ge 1
else
	skip "cgroup v2" "no cgroup v2 to write to: $(cat "$TMP/mkdir" 2>/dev/null)"
fi
if [ -n "$v1" ] && base=$(mktemp -d "$v1/stacktools-t.XXXXXX" 2>"$TMP/mkdir"); then
	cgroup_tests v1 "$base"
else
	skip "cgroup v1" "no cgroup v1 to write to: $(cat "$TMP/mkdir" 2>/dev/null)"
fi
status 2 "--cgroup refuses a folder that is not a cgroup" "$BIN/offcpu-record" -q --force -o "$TMP/x.cap" --cgroup "$TMP"
like "$(cat "$err")" "is not a cgroup: it is not in a cgroup file system" "--cgroup reports a folder that is not a cgroup"
status 2 "--container refuses a container that does not exist" "$BIN/offcpu-record" -q --force -o "$TMP/x.cap" --container "not there"
like "$(cat "$err")" "no container 'not there'" "--container reports a container that does not exist"
ok "a refused --cgroup or --container leaves no capture" test ! -e "$TMP/x.cap"

# --- containers of an ordinary user ---

name="env"
as_user="setpriv --reuid=54321 --regid=54321 --clear-groups"
if $as_user unshare --user --map-root-user --mount --pid --fork true 2>"$TMP/user"; then
	# shellcheck disable=SC2086 # a command line
	start $as_user unshare --user --map-root-user --mount --pid --fork chroot "$R" /usr/bin/env
	is "$(stat -c %u "/proc/$inner")" 54321 "a program of an ordinary user runs in its own chroot"
	from_outside "a program in a rootless container"
	chmod 1777 "$R/tmp"
	# $BIN may be in a folder that only its owner can enter, so this uses the copy in $R
	# shellcheck disable=SC2086 # a command line
	run timeout 30 $as_user unshare --user --map-root-user --mount --pid --fork --mount-proc "$R/work/offcpu-record" --mode btf -d 0.1 -o "$R/tmp/u.cap" -a
	is "$rc" 2 "in a rootless container BPF is not allowed"
	like "$(cat "$err")" "in a user namespace, where capabilities do not reach the kernel" "in a rootless container the reason why BPF is not allowed is reported"
else
	skip "a rootless container" "unshare: $(sed 's/^unshare: //;q' "$TMP/user")"
fi
tap_done
