#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Perf events refused, as Debian's kernel.perf_event_paranoid=3 refuses them to whoever has no CAP_SYS_ADMIN, and
# filters of system calls to all: processes are followed by what BPF reports and by /proc. A filter does it here.
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

# refused PREFIX RECORDER CAP ARG...
refused() {
	prefix=$1 recorder=$2 cap=$3
	shift 3
	rm -f "$cap"
	STACKTOOLS_CACHE=$TMP/u/cache run timeout -k 5 60 "$OBJ/t/work/refuse" perf_event_open $prefix "$recorder" \
		--force -o "$cap" "$@" 7>&-
}
# A thread that has given up its address space at its exit has no user stack to miss.
verdicts() {
	waits "$1" '$h{"$w->{user_stack_verdict} " . ($w->{user_stack_error} // "")} += 1 if ($w->{user_stack_error} // "") ne "exiting"'
}
# what stacks of the threads of waits begin with, by name
outermost() {
	waits "$1" '$h{$w->{user_stack}[-1]{symbol} // "none"} = "" if $w->{comm} =~ /^w(-|aits$)/'
}

for mode in btf raw; do
	refused '' "$BIN/offcpu-record" "$TMP/w.cap" --mode $mode -- "$OBJ/t/work/waits"
	is "$rc" 0 "$mode: a command is recorded"
	is "$(verdicts "$TMP/w.cap" | cut -d' ' -f1 | tr '\n' ' ')" 'complete ' "$mode: every stack is complete"
	is "$(outermost "$TMP/w.cap" | tr -s ' \n' ' ')" '__clone3 _start ' "$mode: and named, to its outermost frame"
	is "$(grep -c 'degraded: processes are followed by /proc alone.*perf event' "$err")" 1 \
		"$mode: what is less is said once, with the reason"
	like "$("$BIN/capinfo" "$TMP/w.cap")" 'followed by /proc alone' "$mode: and kept in the capture"
done

# Ordinary users.
refused "$NOBODY --inh-caps=-all,$ALL --ambient-caps=-all,$ALL" "$TMP/u/offcpu-record" "$TMP/u/a.cap" -- "$TMP/u/waits"
is "$rc $(verdicts "$TMP/u/a.cap" | cut -d' ' -f1 | tr '\n' ' ')" '0 complete ' 'a user with ambient capabilities: complete'
is "$(outermost "$TMP/u/a.cap" | tr -s ' \n' ' ')" '__clone3 _start ' 'and named'
refused "$NOBODY --inh-caps=-all" "$TMP/u/file/offcpu-record" "$TMP/u/f.cap" -- "$TMP/u/waits"
is "$rc $(verdicts "$TMP/u/f.cap" | cut -d' ' -f1 | tr '\n' ' ')" '0 complete ' 'one by capabilities of the file: complete'
is "$(outermost "$TMP/u/f.cap" | tr -s ' \n' ' ')" '__clone3 _start ' 'and named'

# What runs already, alone and among all.
mkfifo "$TMP/life" && exec 7<>"$TMP/life"
$NOBODY "$TMP/u/steady" 1 <"$TMP/life" >"$TMP/ready" 2>&1 7>&- &
steady=$!
at_exit_kill "$steady"
until_true grep -qs ready "$TMP/ready"
for how in "-p $steady" -a; do
	# a wait that ends before the table of its program is there says so: on a busy machine that takes longer
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		refused '' "$BIN/offcpu-record" "$TMP/p.cap" $how -d 1
		steady_ends=$(waits "$TMP/p.cap" '$h{join " ", $w->{user_stack_verdict}, $w->{user_stack_error} // ""} = "" if
			$w->{pid} == '"$steady"' && (!$w->{initial} || $w->{open})' | tr -d '\n')
		case $steady_ends in *not-ready*) ;; *) break ;; esac
	done
	is "$steady_ends" 'complete  ' "${how%% *}: every stack of a process that runs already is complete"
done
kill "$steady"
exec 7>&-

# A child has what its parent had, known while that waited, though it is gone before its maps could be read; each exec is another image.
# On a busy machine /proc may be read too late for a wait of the parent's own beginning, which then says so.
for _ in 1 2 3 4 5; do
	refused '' "$BIN/offcpu-record" "$TMP/k.cap" -- \
		perl -e 'select undef, undef, undef, 0.5; for (1 .. 30) { if (!fork) { select undef, undef, undef, 0.01; exit } } 1 while wait > 0'
	[ "$(verdicts "$TMP/k.cap" | cut -d' ' -f1 | tr '\n' ' ')" = 'complete ' ] && break
	waits "$TMP/k.cap" 'push @o, "$w->{comm}: " . join " ", $w->{user_stack_verdict}, $w->{user_stack_error} // "", user() if
		$w->{user_stack_verdict} ne "complete"' | diag 5
done
is "$rc $(verdicts "$TMP/k.cap" | cut -d' ' -f1 | tr '\n' ' ')" '0 complete ' 'short children that never exec: complete'
refused '' "$BIN/offcpu-record" "$TMP/e.cap" -- bash -c 'read -t 0.3 <> <(:); exec sleep 0.3'
is "$(waits "$TMP/e.cap" '$h{$w->{exe}} += 1 if $w->{total_ns} > 2e8' | tr '\n' ' ')" \
	"$(readlink -f "$(command -v bash)") 1 $(readlink -f "$(command -v sleep)") 1 " 'an exec begins another image'
is "$(waits "$TMP/e.cap" '$n++ if $w->{total_ns} > 2e8 && ($w->{exe} =~ /sleep/ ? user() !~ /nanosleep/ : user() !~ /select|poll|read/)')" 0 \
	'and each is named by its own mappings'

# A library in the place of another.
for l in a b; do
	cat >"$TMP/$l.c" <<-C
		#include <unistd.h>
		void ${l}_entry(void);
		void ${l}_entry(void) { usleep(700000); __asm__ volatile("" ::: "memory"); }
	C
	${CC:-cc} -O1 -shared -fPIC -o "$TMP/lib$l.so" "$TMP/$l.c" || fail 'cannot compile a library'
done
refused '' "$BIN/offcpu-record" "$TMP/dl.cap" -- "$OBJ/t/work/dl" "$TMP/liba.so" a_entry "$TMP/libb.so" b_entry "$TMP/liba.so" a_entry
is "$(awk '{ print $2 }' "$out" | sort -u | wc -l)" 1 'two libraries were loaded at one address'
is "$(waits "$TMP/dl.cap" '$h{join " ", $w->{user_stack_verdict}, grep { /_entry/ } map { $_->{symbol} } @{$w->{user_stack}}} += $w->{count} if $w->{total_ns} > 5e8')" \
	"complete a_entry 2
complete b_entry 1" 'each wait is walked and named by the one that was there'

# The whole tree of a shell's pipelines.
refused '' "$BIN/offcpu-record" "$TMP/s.cap" -- sh -c 'for i in 1 2; do (sleep 1; sleep 1) | cat; done'
is "$(waits "$TMP/s.cap" '$h{$w->{user_stack_verdict}} += 1 if $w->{comm} eq "sleep" && $w->{total_ns} > 5e8')" 'complete 4' \
	'the commands of a shell: complete'
tap_done
