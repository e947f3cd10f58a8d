#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Without perf events, processes are followed by what BPF reports and by /proc. Debian's
# kernel.perf_event_paranoid=3 refuses perf events to processes without CAP_SYS_ADMIN, and seccomp filters can
# refuse them to every process. Here a filter does (t/work/refuse).
# shellcheck disable=SC2016,SC2086,SC2154 # Perl's variables; words; $rc and others of tap.sh
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf
chmod 755 "$TMP"
mkdir -m 777 "$TMP/u"
cp "$BIN/offcpu-record" "$OBJ/t/work/waits" "$OBJ/t/work/steady" "$TMP/u"
mkdir -m 777 "$TMP/u/file"
cp "$BIN/offcpu-record" "$TMP/u/file"
setcap cap_bpf,cap_perfmon,cap_syslog,cap_checkpoint_restore+ep "$TMP/u/file/offcpu-record"
NOBODY='setpriv --reuid=65534 --regid=65534 --clear-groups'
ALL=+bpf,+perfmon,+sys_ptrace,+syslog,+checkpoint_restore,+dac_read_search

# refused PREFIX RECORDER CAP ARG...: records where perf_event_open is refused; PREFIX is a command, or empty
refused() {
	prefix=$1 recorder=$2 cap=$3
	shift 3
	rm -f "$cap"
	STACKTOOLS_CACHE=$TMP/u/cache run timeout -k 5 60 "$OBJ/t/work/refuse" perf_event_open $prefix "$recorder" \
		--force -o "$cap" "$@" 7>&-
}
# verdicts CAP: prints verdicts and reasons of user stacks, with counts. Without threads that have released
# their address space at their exit, as these have no user stack.
verdicts() {
	waits "$1" '$h{"$w->{user_stack_verdict} " . ($w->{user_stack_error} // "")} += 1 if ($w->{user_stack_error} // "") ne "exiting"'
}
# outermost CAP: prints the names of the outermost frames in threads of the program waits, without the stacks
# that verdicts leaves out, and without those of the dynamic linker, whose own entry has no name
outermost() {
	waits "$1" '$h{$w->{user_stack}[-1]{symbol} // "none:$w->{user_stack_verdict},@{[user()]}"} = "" if
		$w->{comm} =~ /^w(-|aits$)/ && ($w->{user_stack_error} // "") ne "exiting" && user() !~ /\b_dl_start\b/'
}

for mode in btf raw; do
	refused '' "$BIN/offcpu-record" "$TMP/w.cap" --mode $mode -- "$OBJ/t/work/waits"
	is "$rc" 0 "$mode: a command is recorded"
	is "$(verdicts "$TMP/w.cap" | cut -d' ' -f1 | tr '\n' ' ')" 'complete ' "$mode: every stack is complete"
	is "$(outermost "$TMP/w.cap" | tr -s ' \n' ' ')" '_start clone3 ' "$mode: the outermost frames have names"
	is "$(grep -c 'degraded: processes are followed by /proc alone.*perf event' "$err")" 1 \
		"$mode: the degradation is reported once, with the reason"
	like "$("$BIN/capinfo" "$TMP/w.cap")" 'followed by /proc alone' "$mode: capinfo shows the degradation"
done

# Ordinary users.
refused "$NOBODY --inh-caps=-all,$ALL --ambient-caps=-all,$ALL" "$TMP/u/offcpu-record" "$TMP/u/a.cap" -- "$TMP/u/waits"
is "$rc $(verdicts "$TMP/u/a.cap" | cut -d' ' -f1 | tr '\n' ' ')" '0 complete ' 'a user with ambient capabilities: every stack is complete'
is "$(outermost "$TMP/u/a.cap" | tr -s ' \n' ' ')" '_start clone3 ' 'a user with ambient capabilities: the outermost frames have names'
refused "$NOBODY --inh-caps=-all" "$TMP/u/file/offcpu-record" "$TMP/u/f.cap" -- "$TMP/u/waits"
is "$rc $(verdicts "$TMP/u/f.cap" | cut -d' ' -f1 | tr '\n' ' ')" '0 complete ' 'a user with file capabilities: every stack is complete'
is "$(outermost "$TMP/u/f.cap" | tr -s ' \n' ' ')" '_start clone3 ' 'a user with file capabilities: the outermost frames have names'

# A process that already runs, with -p and with -a.
mkfifo "$TMP/life" && exec 7<>"$TMP/life"
$NOBODY "$TMP/u/steady" 1 <"$TMP/life" >"$TMP/ready" 2>&1 7>&- &
steady=$!
at_exit_kill "$steady"
until_true grep -qs ready "$TMP/ready"
for how in "-p $steady" -a; do
	# tries again if a wait ended before its program's table was ready (not-ready): that takes longer on a busy
	# machine
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		refused '' "$BIN/offcpu-record" "$TMP/p.cap" $how -d 1
		steady_ends=$(waits "$TMP/p.cap" '$h{join " ", $w->{user_stack_verdict}, $w->{user_stack_error} // ""} = "" if
			$w->{pid} == '"$steady"' && (!$w->{initial} || $w->{open})' | tr -d '\n')
		case $steady_ends in *not-ready*) ;; *) break ;; esac
	done
	is "$steady_ends" 'complete  ' "${how%% *}: every stack of a process that already runs is complete"
done
kill "$steady"
exec 7>&-

# A child that ends before its maps can be read has the mappings of its parent, which are known while the parent
# waits. Each exec is another image. On a busy machine /proc may be read too late for a wait at the parent's own
# start; that stack then has a reason.
for _ in 1 2 3 4 5; do
	refused '' "$BIN/offcpu-record" "$TMP/k.cap" -- \
		perl -e 'select undef, undef, undef, 0.5; for (1 .. 30) { if (!fork) { select undef, undef, undef, 0.01; exit } } 1 while wait > 0'
	[ "$(verdicts "$TMP/k.cap" | cut -d' ' -f1 | tr '\n' ' ')" = 'complete ' ] && break
	waits "$TMP/k.cap" 'push @o, "$w->{comm}: " . join " ", $w->{user_stack_verdict}, $w->{user_stack_error} // "", user() if
		$w->{user_stack_verdict} ne "complete"' | diag 5
done
is "$rc $(verdicts "$TMP/k.cap" | cut -d' ' -f1 | tr '\n' ' ')" '0 complete ' 'the stacks of short-lived children that never exec are complete'
refused '' "$BIN/offcpu-record" "$TMP/e.cap" -- bash -c 'read -t 0.3 <> <(:); exec sleep 0.3'
is "$(waits "$TMP/e.cap" '$h{$w->{exe}} += 1 if $w->{total_ns} > 2e8' | tr '\n' ' ')" \
	"$(readlink -f "$(command -v bash)") 1 $(readlink -f "$(command -v sleep)") 1 " 'waits before and after an exec have different executables'
is "$(waits "$TMP/e.cap" '$n++ if $w->{total_ns} > 2e8 && ($w->{exe} =~ /sleep/ ? user() !~ /nanosleep/ : user() !~ /select|poll|read/)')" 0 \
	'stacks before and after an exec have the names of their own mappings'

# A library at the address of another one.
for l in a b; do
	cat >"$TMP/$l.c" <<-C
		#include <unistd.h>
		void ${l}_entry(void);
		void ${l}_entry(void) { usleep(700000); __asm__ volatile("" ::: "memory"); }
	C
	${CC:-cc} -O1 -shared -fPIC -o "$TMP/lib$l.so" "$TMP/$l.c" || fail 'cannot compile a library'
done
refused '' "$BIN/offcpu-record" "$TMP/dl.cap" -- "$OBJ/t/work/dl" "$TMP/liba.so" a_entry "$TMP/libb.so" b_entry "$TMP/liba.so" a_entry
is "$(awk '{ print $2 }' "$out" | sort -u | wc -l)" 1 'two libraries are loaded in turn at one address'
is "$(waits "$TMP/dl.cap" '$h{join " ", $w->{user_stack_verdict}, grep { /_entry/ } map { $_->{symbol} } @{$w->{user_stack}}} += $w->{count} if $w->{total_ns} > 5e8')" \
	"complete a_entry 2
complete b_entry 1" 'each wait has the names of the library that was loaded at the time'

# The process tree of a shell with pipelines.
refused '' "$BIN/offcpu-record" "$TMP/s.cap" -- sh -c 'for i in 1 2; do (sleep 1; sleep 1) | cat; done'
is "$(waits "$TMP/s.cap" '$h{$w->{user_stack_verdict}} += 1 if $w->{comm} eq "sleep" && $w->{total_ns} > 5e8')" 'complete 4' \
	'the stacks of the commands of a shell are complete'
tap_done
