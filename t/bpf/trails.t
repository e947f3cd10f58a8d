#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Stacks that are recognised without a walk (bpf/trail.bpf.h) are those that a walk finds, and that the program had.
# shellcheck disable=SC2016,SC2119,SC2154 # Perl's variables; $rc and others of tap.sh
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf
TURNS=$OBJ/t/work/turns

# places CAP: prints how many waits there were in each of the functions of t/work/turns.c
places() {
	waits "$1" 'my ($f) = grep { /^(often|seldom)$/ } map { $_->{symbol} // "" } @{$w->{user_stack}};
		$h{$f} += $w->{count} if $f' | sed 's/ *$//' | sort
}
# many CAP COUNTER: true if the counter is a tenth of the waits at least
many() {
	m_all=$(counter "$1" waits.recorded) m_n=$(counter "$1" "$2")
	test "${m_n:-0}" -ge 100 -a "${m_n:-0}" -ge $((${m_all:-0} / 10))
}

# compared_many CAP N: true if so many user stacks at least were recognised and walked as well
compared_many() {
	c_n=$(counter "$1" stacks.user_compared)
	test "${c_n:-0}" -ge "$2"
}

# Two functions whose frames have the same size wait in turns: same PC, same stack pointer. Then frames of five sizes
for how in each varied; do
	for mode in btf raw; do
		rec "$TMP/t.cap" --mode $mode -- "$TURNS" $how
		is "$rc" 0 "$how, mode $mode: recorded"
		grep -E '^(often|seldom)' "$out" >"$TMP/want"
		places "$TMP/t.cap" >"$TMP/got"
		# of a wait before the tables came the stack may be missing
		ok "$how, mode $mode: each wait has the stack of the function that it was in" perl -e '
			my ($want, $got) = map { my $f = $_; open my $h, "<", $f or die; my %n = map { split } <$h>; \%n } @ARGV[0, 1];
			for (keys %$want) { print "# $_: $want->{$_}, recorded $got->{$_}\n"; exit 1 if $got->{$_} > $want->{$_} || $got->{$_} < $want->{$_} - 10 }
			' "$TMP/want" "$TMP/got"
		ok "$how, mode $mode: many are recognised ($(counter "$TMP/t.cap" stacks.user_recognised))" many "$TMP/t.cap" stacks.user_recognised
		is "$(counter "$TMP/t.cap" stacks.user_differ)" 0 "$how, mode $mode: the first of them are walked as well, to the same stack"
	done
done
compared=$(counter "$TMP/t.cap" stacks.user_compared)
ok "those of each CPU ($compared)" test "$compared" -ge 1 -a "$compared" -le $((16 * $(nproc)))

rec "$TMP/v.cap" --verify-stacks -- "$TURNS" varied
is "$(counter "$TMP/v.cap" stacks.user_compared)" "$(counter "$TMP/v.cap" stacks.user_recognised)" '--verify-stacks: all are'
ok 'and they are many' many "$TMP/v.cap" stacks.user_compared
is "$(counter "$TMP/v.cap" stacks.user_differ) $(counter "$TMP/v.cap" stacks.kernel_differ)" '0 0' 'none differs'

# Threads that are many, deep, and call through several libraries
"$OBJ/t/work/switch" pipe 2000000000 40 </dev/null >/dev/null 7>&- &
at_exit_kill $!
"$OBJ/t/work/switch" sleep 2000000000 </dev/null >/dev/null 7>&- &
at_exit_kill $!
perl -e 'for (;;) { select undef, undef, undef, 0.001 }' 7>&- &
at_exit_kill $!
rec_start "$TMP/a.cap" -a --verify-stacks
# on a busy machine the tables come late
until_true compared_many "$TMP/a.cap" 20000
rec_stop
is "$(counter "$TMP/a.cap" stacks.user_differ) $(counter "$TMP/a.cap" stacks.kernel_differ)" '0 0' 'nor on the whole machine'
ok "of many ($(counter "$TMP/a.cap" stacks.user_compared))" compared_many "$TMP/a.cap" 20000

# What a difference does: trails are made to lead elsewhere
"$OBJ/t/work/switch" futex 2000000000 </dev/null >/dev/null 7>&- &
futex=$!
at_exit_kill "$futex"
for stack in user kernel; do
	[ $stack = user ] && without=-U || without=-K
	rec_start "$TMP/m.cap" "$without" --verify-stacks -p "$futex"
	until_true many "$TMP/m.cap" stacks.${stack}_compared
	ok "$stack: trails are made to lead to another stack" "$OBJ/t/work/misguide" "$rec_pid"
	rec_stop
	ok "$stack: that is found" test "$(counter "$TMP/m.cap" stacks.${stack}_differ)" -ge 1
	is "$(waits "$TMP/m.cap" '$n++ if $w->{'$stack'_stack_verdict} ne "complete" && !$w->{initial} && !$w->{open}')" 0 "$stack: the waits have the stacks of the walk"
	like "$(cat "$TMP/rec.err")" "$stack stacks*: .*none was (recognised|walked) from then on" "$stack: and the summary says so"
done
run "$OBJ/t/work/misguide" $$
is "$rc" 1 'a process that does not record has no trails'
tap_done
