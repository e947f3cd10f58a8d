#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# What the recorder hears of: process events of the targets alone, where these are named, and nothing of the
# processes that map, load and execute beside them. What targets map is complete; a flush is once a second.
# shellcheck disable=SC2016,SC2154,SC2317 # Perl's variables; $rc and others of tap.sh; functions that ok calls
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf
group=
clean() {
	tap_cleanup
	[ -z "$group" ] || rmdir "$group/sub" "$group"
}
trap clean EXIT
mkfifo "$TMP/hold"
exec 7<>"$TMP/hold"
CPUS=$(getconf _NPROCESSORS_ONLN)

# events CAP ARG...: records for a moment under strace. Prints the threads whose events are enabled, in order and
# each once, -1 for those of the whole machine
events() {
	e_cap=$1
	shift
	strace -f -qq -s 0 -e trace=perf_event_open,ioctl -o "$TMP/strace" "$BIN/offcpu-record" -q --force -o "$e_cap" "$@" \
		>"$TMP/strace.out" 2>&1 </dev/null 7>&-
	perl -ne '$of{$2} = $1 if /PERF_COUNT_SW_DUMMY.*mmap=1.*\}, (-?\d+), \d+, -1, PERF_FLAG_FD_CLOEXEC\) = (\d+)/;
		$on{$of{$1}} = 1 if /ioctl\((\d+), PERF_EVENT_IOC_ENABLE/ && defined $of{$1};
		END { print map { "$_ " } sort { $a <=> $b } keys %on }' "$TMP/strace"
}

# threads PID: its threads, in order
threads() {
	find "/proc/$1/task" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort -n | tr '\n' ' '
}

# perf_files: how many perf events the recorder has open
perf_files() {
	find "/proc/$rec_pid/fd" -lname '*perf_event*' | wc -l
}

mkfifo "$TMP/in"
"$OBJ/t/work/idle" 10 <"$TMP/in" >"$TMP/pid" 7>&- &
exec 8>"$TMP/in"
until_true test -s "$TMP/pid"
idle=$(cat "$TMP/pid")
sh -c '"$0" 1000 & echo $! >"$1"; wait' "$(command -v sleep)" "$TMP/child" 7>&- 8>&- &
parent=$!
at_exit_kill "$parent"
until_true test -s "$TMP/child"
child=$(cat "$TMP/child")
at_exit_kill "$child"
until_true grep -q '^sleep$' "/proc/$child/comm"

# which events are open
is "$(events "$TMP/p.cap" -d 0.1 -p "$idle")" "$(threads "$idle")" "-p: events of the threads of that process alone"
is "$(events "$TMP/t.cap" -d 0.1 -t "$(threads "$idle" | cut -d ' ' -f 3)")" "$(threads "$idle")" "-t: events of the threads of its process, which share the mappings"
is "$(events "$TMP/n.cap" -d 0.1 -p "$parent")" "$parent " "-p without --follow: no events of a child"
is "$(events "$TMP/f.cap" -d 0.1 --follow -p "$parent")" "$(printf '%s\n' "$parent" "$child" | sort -n | tr '\n' ' ')" "--follow: events of a child that runs already, too"
is "$(events "$TMP/c.cap" -- true | wc -w)" 1 "a command: events of one thread, which its children inherit"
like "$(events "$TMP/c.cap" -- true)" '^[1-9][0-9]* $' "a command: no event of the whole machine"
is "$(events "$TMP/a.cap" -d 0.1 -a)" "-1 " "-a: events of the whole machine"
is "$(events "$TMP/w.cap" -d 0.1 --wakers -p "$idle")" "-1 " "--wakers: events of the whole machine, as who wakes the targets is not known before"
cp "$OBJ/t/work/idle" "$TMP/named-idle"
mkfifo "$TMP/in3"
"$TMP/named-idle" 10 <"$TMP/in3" >"$TMP/pid3" 7>&- 8>&- &
exec 5>"$TMP/in3"
until_true test -s "$TMP/pid3"
is "$(events "$TMP/n.cap" -d 0.1 -c named-idle)" "$(threads "$(cat "$TMP/pid3")")" "-c: events of the processes with that name"
is "$(events "$TMP/n.cap" -d 0.1 -c no-such-name)" "-1 " "-c: events of the whole machine if no process has that name, as the first one may end soon"
for dir in /sys/fs/cgroup/unified /sys/fs/cgroup/memory /sys/fs/cgroup; do
	[ -w "$dir/cgroup.procs" ] && mkdir -p "$dir/stacktools-others-$$/sub" 2>/dev/null && group=$dir/stacktools-others-$$ && break
done
ok "there is a cgroup of our own" test -n "$group"
is "$(events "$TMP/g.cap" -d 0.1 --cgroup "$group")" "-1 " "--cgroup: events of the whole machine if it is empty"
cat "$TMP/pid3" >"$group/sub/cgroup.procs"
is "$(events "$TMP/g.cap" -d 0.1 --cgroup "$group")" "$(threads "$(cat "$TMP/pid3")")" "--cgroup: events of the processes in it and below it"
is "$(events "$TMP/g.cap" -d 0.1 --wakers --cgroup "$group")" "-1 " "--cgroup --wakers: events of the whole machine"
exec 5>&-
is "$(grep -c 'build_id=1' "$TMP/strace")" 0 "no event makes the kernel read build IDs"
rec_start "$TMP/i.cap" -p "$idle"
is "$(perf_files)" $((CPUS + 11 * CPUS)) "the recorder has an event for each thread and CPU open, and the one of the whole machine for each CPU, not enabled"
rec_stop
is "$rc" 0 "a process with threads is recorded"

# at a switch of others the programs compare with a number in their code, and read no variable of theirs
bpftool=$(command -v bpftool || echo /usr/sbin/bpftool)
# code: the code of all programs at each switch, of other recorders, too
code() {
	"$bpftool" prog show 2>/dev/null | sed -n 's/^\([0-9]*\): .* name sched_switch .*/\1/p' |
		while read -r c_id; do "$bpftool" prog dump xlated id "$c_id" 2>/dev/null; done
}
# has_number N: is it in some such program?
has_number() {
	code | grep -q "= 0x$(printf %x "$1")\$"
}
for mode in btf raw; do
	rec_start "$TMP/code.cap" --mode $mode -p "$child"
	ok "--mode $mode -p: the process is a number in the program at each switch" until_true has_number "$child"
	rec_stop
done

# more threads than descriptors
mkfifo "$TMP/in2"
"$OBJ/t/work/idle" 1000 <"$TMP/in2" >"$TMP/pid2" 7>&- 8>&- &
exec 6>"$TMP/in2"
until_true test -s "$TMP/pid2"
# shellcheck disable=SC2034 # of record.sh
rec_as='prlimit --nofile=400:400'
rec_start "$TMP/m.cap" -p "$(cat "$TMP/pid2")" 6>&-
# shellcheck disable=SC2034
rec_as=
is "$(perf_files)" "$CPUS" "for more threads than descriptors, events are those of the whole machine"
rec_stop
exec 6>&-
is "$rc $(grep -c degraded "$TMP/rec.err")" "0 0" "... and nothing is missing"

# others map, load and execute in endless loops
mkfifo "$TMP/others"
for kind in map dlopen exec; do
	"$OBJ/t/work/remaps" "$kind" <"$TMP/others" >"$TMP/$kind.n" 7>&- 8>&- &
done
exec 9>"$TMP/others"

# switches: how often the recorder has slept
switches() {
	awk '/^voluntary/ { print $2 }' "/proc/$rec_pid/status"
}

rec_start "$TMP/q.cap" -p "$idle" 9>&-
before=$(switches)
sleep 2
slept=$(($(switches) - before))
rec_stop
is "$rc" 0 "-p of an idle process while others map: status 0"
like "$(cat "$TMP/rec.err")" 'lost: nothing' "... and nothing is lost"
ok "... and the recorder is not woken by what they do: $slept times in 2 s" test "$slept" -lt 200

# targets map meanwhile: a thread that loads a library, a child that loads another one and executes a program
sleeping_libraries 200000000 || fail "cannot compile a library"
cat >"$TMP/target.c" <<-'C'
	#include <dlfcn.h>
	#include <pthread.h>
	#include <stdio.h>
	#include <sys/wait.h>
	#include <unistd.h>
	static const char *const *lib;
	static void *load(void *name)
	{
		void *l = dlopen(lib[*(const char *)name - 'a'], RTLD_NOW);
		char entry[] = "a_entry";
		entry[0] = *(const char *)name;
		void (*fn)(void) = l ? (void (*)(void))dlsym(l, entry) : NULL;
		if (fn)
			fn();
		return NULL;
	}
	int main(int argc, char **argv)
	{
		pthread_t t;
		lib = (const char *const *)argv + 1;
		puts("ready"), fflush(stdout);
		if (argc < 3 || getchar() == EOF)
			return 1;
		pthread_create(&t, NULL, load, "a");
		pthread_join(t, NULL);
		if (fork() == 0) {
			pthread_create(&t, NULL, load, "b");
			pthread_join(t, NULL);
			execlp("sleep", "sleep", "0.2", NULL);
		}
		wait(NULL);
		return 0;
	}
C
${CC:-cc} -O1 -fno-omit-frame-pointer -o "$TMP/target" "$TMP/target.c" -pthread -ldl || fail "cannot compile a target"
# each wait that is as long as these sleep: who, where
WHERE='$h{"$w->{process_comm} " . (split ";", user())[0] . " " . $w->{user_stack_verdict}} += $w->{count} if $w->{total_ns} > 1.9e8 && kernel() =~ /nanosleep/'
mkfifo "$TMP/start"
for round in 1 2 3; do
	"$TMP/target" "$TMP/liba.so" "$TMP/libb.so" <"$TMP/start" >"$TMP/ready" 7>&- 8>&- 9>&- &
	target=$!
	exec 6>"$TMP/start"
	until_true grep -q ready "$TMP/ready"
	rec_start "$TMP/s.cap" --follow -p "$target" 6>&- 9>&-
	echo >&6
	exec 6>&-
	wait "$rec_pid"
	is "$?" 0 "a target that loads, forks and executes beside them, $round: status 0"
	is "$(waits "$TMP/s.cap" "$WHERE")" "sleep clock_nanosleep complete 1
target a_sleeps complete 1
target b_sleeps complete 1" "... what its threads and children mapped is known, $round"
	like "$(cat "$TMP/rec.err")" 'lost: nothing' "... nothing is lost, $round"
done

# Who becomes a target by itself has events of its own from then on. A process enters the cgroup, or gets the name,
# executes the program, which loads, forks and executes; the second one does so after it. One that ends before it could
# be watched brings the events of the whole machine: the next one may be as brief.
cat >"$TMP/join.c" <<-'C'
	#define _GNU_SOURCE
	#include <fcntl.h>
	#include <linux/sched.h>
	#include <signal.h>
	#include <stdio.h>
	#include <string.h>
	#include <sys/syscall.h>
	#include <sys/wait.h>
	#include <unistd.h>
	/* a child is made in the cgroup whose folder that is, or this process enters it; without a program it only runs */
	static int enters(const char *cgroup)
	{
		struct clone_args c = { .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD };
		FILE *f;
		if (!*cgroup)
			return 0;
		if (!strstr(cgroup, "cgroup.procs")) {
			c.cgroup = open(cgroup, O_PATH | O_DIRECTORY);
			return syscall(SYS_clone3, &c, sizeof(c)) == 0 ? 0 : (wait(NULL), 1);
		}
		f = fopen(cgroup, "w");
		if (f)
			fprintf(f, "%d", (int)getpid()), fclose(f);
		return 0;
	}
	int main(int argc, char **argv)
	{
		if (argc < 2 || enters(argv[1]))
			return 1;
		while (argc == 2)
			;
		return execv(argv[2], argv + 2);
	}
C
${CC:-cc} -O1 -o "$TMP/join" "$TMP/join.c" || fail "cannot compile a program"
mkfifo "$TMP/member"
"$TMP/target" none none <"$TMP/member" >"$TMP/ready" 7>&- 8>&- 9>&- &
exec 6>"$TMP/member"
echo $! >"$group/sub/cgroup.procs"
until_true grep -q '^target$' "/proc/$!/comm"
mkdir "$TMP/short"
cp /bin/true "$TMP/short/target"
whole_machine() {
	[ "$(perf_files)" -eq "$CPUS" ]
}
for how in '-c target' "--cgroup $group"; do
	procs=
	[ "${how#--cgroup}" = "$how" ] || procs=$group/sub/cgroup.procs
	# shellcheck disable=SC2086 # options
	rec_start "$TMP/j.cap" $how 6>&- 9>&-
	is "$(perf_files)" $((2 * CPUS)) "${how%% *}: events of the one that is there are open"
	for round in 1 2; do
		echo >"$TMP/go"
		"$TMP/join" "$procs" "$TMP/target" "$TMP/liba.so" "$TMP/libb.so" <"$TMP/go" >"$TMP/ready" 6>&- 7>&- 8>&- 9>&-
	done
	ok "... and more when others have become targets ($(perf_files))" test "$(perf_files)" -gt $((2 * CPUS))
	rec_stop
	is "$rc" 0 "${how%% *}: two that become targets while others map and execute: status 0"
	is "$(waits "$TMP/j.cap" "$WHERE")" "sleep clock_nanosleep complete 2
target a_sleeps complete 2
target b_sleeps complete 2" "... what they and their children mapped is known"
	like "$(cat "$TMP/rec.err")" 'lost: nothing' "... and nothing is lost"
	# shellcheck disable=SC2086 # options
	rec_start "$TMP/j.cap" $how 6>&- 9>&-
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		"$TMP/join" "$procs" /bin/true 6>&- 7>&- 8>&- 9>&-
		"$TMP/short/target" 6>&- 7>&- 8>&- 9>&-
	done
	ok "${how%% *}: one that has ended before it could be watched brings those of the whole machine" until_true whole_machine
	rec_stop
done
# A process is watched from when it enters the cgroup, though it does not wait, or is made there
for how in procs ''; do
	rec_start "$TMP/e.cap" --cgroup "$group" 6>&- 9>&-
	n=$(perf_files)
	"$TMP/join" "$group/sub${how:+/cgroup.procs}" 6>&- 7>&- 8>&- 9>&- &
	runs=$!
	at_exit_kill "$runs"
	is "$n" $((2 * CPUS)) "--cgroup: events of the one that is there"
	ok "--cgroup: and of one that $([ -n "$how" ] && echo enters it || echo is made in it), and only runs" until_true sh -c "[ \"\$(find '/proc/$rec_pid/fd' -lname '*perf_event*' | wc -l)\" -eq $((3 * CPUS)) ]"
	pkill -KILL -P "$runs"
	kill -KILL "$runs"
	wait "$runs" 2>/dev/null
	rec_stop
done
# nobody may open events of those who come later
rec_start "$TMP/k.cap" --cgroup "$group" 6>&- 9>&-
kill -KILL "$(pgrep -P "$rec_pid" '^file-broker$')"
"$TMP/join" "$group/sub/cgroup.procs" "$(command -v sleep)" 0.5 6>&- 7>&- 8>&- 9>&-
ok "--cgroup: without the process that opens them, events of the whole machine follow who enters" until_true whole_machine
rec_stop
# events that keep coming do not wake the recorder up one by one
rec_start "$TMP/f.cap" -a 6>&- 9>&-
"$OBJ/t/work/remaps" map 1000000 </dev/null >"$TMP/flood" 7>&- 8>&- 9>&- &
at_exit_kill $!
flood=$!
sleep 0.5
switches=$(awk '/^voluntary/ { print $2 }' "/proc/$rec_pid/status")
sleep 2
switches=$(($(awk '/^voluntary/ { print $2 }' "/proc/$rec_pid/status") - switches))
kill "$flood"
rec_stop
ok "-a: while others map all the time, the recorder wakes up at most 3000 times a second ($((switches / 2)))" test "$switches" -lt 6000
# a short one that is the first with its name
cat >"$TMP/brief.c" <<-'C'
	#include <unistd.h>
	int main(void) { return usleep(300); }
C
${CC:-cc} -O1 -o "$TMP/brief" "$TMP/brief.c" || fail "cannot compile a program"
rec_start "$TMP/b.cap" -c brief 6>&- 9>&-
"$TMP/brief"
rec_stop
is "$rc $(waits "$TMP/b.cap" '$h{"$w->{process_comm} " . (split ";", user())[0] . " " . $w->{user_stack_verdict}} += $w->{count} if kernel() =~ /nanosleep/')" \
	"0 brief clock_nanosleep complete 1" "-c: the first process with that name has a whole stack, although it ends after 0.3 ms"
exec 6>&-

# The kernel ends the events of a program with other privileges: those of the whole machine take their place.
USER_ID=1234
chmod 755 "$TMP" "$TMP"/lib?.so
install -m 4755 -o $USER_ID "$OBJ/t/work/dl" "$TMP/dl-suid"
rec "$TMP/u.cap" -- "$TMP/dl-suid" "$TMP/liba.so" a_entry "$TMP/libb.so" b_entry 9>&-
is "$rc" 0 "a set-user-ID program beside them: status 0"
is "$(waits "$TMP/u.cap" "$WHERE")" "dl-suid a_sleeps complete 1
dl-suid b_sleeps complete 1" "... the libraries that it loads have names"
like "$(events "$TMP/u.cap" -- "$TMP/dl-suid" "$TMP/liba.so" a_entry)" '^-1 ' "... by events of the whole machine"
exec 9>&-
wait_for_others() {
	! pgrep -f "^$OBJ/t/work/remaps " >/dev/null
}
until_true wait_for_others
for kind in map dlopen exec; do
	ok "the others did what they do all the time ($kind: $(cut -d ' ' -f 1 "$TMP/$kind.n") times)" test "$(cut -d ' ' -f 1 "$TMP/$kind.n")" -gt 50
done
exec 8>&-

# Libraries that take turns at one address: their waits stay apart, and a flush is once a second all the same.
for l in a b; do
	cat >"$TMP/n$l.c" <<-C
		#include <unistd.h>
		void ${l}_entry(int n);
		void ${l}_entry(int n) { while (n-- > 0) usleep(1000); __asm__ volatile("" ::: "memory"); }
	C
	${CC:-cc} -O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls -shared -fPIC -o "$TMP/n$l.so" "$TMP/n$l.c" || fail "cannot compile a library"
done
cat >"$TMP/turns.c" <<-'C'
	#include <dlfcn.h>
	#include <stdio.h>
	#include <unistd.h>
	static void turn(const char *lib, const char *entry, int n)
	{
		void *l = dlopen(lib, RTLD_NOW);
		void (*fn)(int) = (void (*)(int))dlsym(l, entry);
		printf("%p\n", (void *)fn), fflush(stdout);
		usleep(100000);
		fn(n);
		dlclose(l);
	}
	int main(int argc, char **argv)
	{
		for (int i = 0; argc > 2 && i < 12; i++) {
			turn(argv[1], "a_entry", 10);
			turn(argv[2], "b_entry", 5);
		}
		return 0;
	}
C
${CC:-cc} -O1 -fno-omit-frame-pointer -o "$TMP/turns" "$TMP/turns.c" -ldl || fail "cannot compile a program"
rec "$TMP/l.cap" -- "$TMP/turns" "$TMP/na.so" "$TMP/nb.so"
is "$rc" 0 "libraries that take turns are recorded"
is "$(sort -u "$out" | wc -l)" 1 "... at one address"
seconds=$("$BIN/capinfo" --json "$TMP/l.cap" | perl -MCpanel::JSON::XS -0777 -ne 'printf "%d", decode_json($_)->{duration_ns} / 1e9')
flushes=$(perl "$DATA/capture/decode.pl" "$TMP/l.cap" | grep -c '^flush ')
ok "a recording of $seconds s has at most one flush a second, the first and the last: $flushes" test "$flushes" -le $((seconds + 2))
# on a slow machine the map is not swapped before a library waits: its waits may then be another's, and have no name
waits "$TMP/l.cap" '$h{(grep { /^[ab]_entry$/ } split ";", user())[0] // "neither"} += $w->{count} if kernel() =~ /nanosleep/' >"$TMP/naps"
a=$(awk '$1 == "a_entry" { print $2 }' "$TMP/naps")
b=$(awk '$1 == "b_entry" { print $2 }' "$TMP/naps")
ok "waits in the first library have its name: ${a:-0} of 120" test "${a:-0}" -ge 10 -a "${a:-0}" -le 120
ok "waits in the second library have its name: ${b:-0} of 60" test "${b:-0}" -ge 5 -a "${b:-0}" -le 60
tap_done
