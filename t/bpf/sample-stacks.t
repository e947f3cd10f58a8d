#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# --sample-stacks and --overhead: every wait counts, but not each has its stacks taken (t/work/turns.c).
# shellcheck disable=SC2016,SC2154 # Perl's variables; $rc and others of tap.sh
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf
TURNS=$OBJ/t/work/turns

# counts CAP: sets $often and $seldom to the waits in these functions, $sum to both and the sleeps whose user stack could
# not be walked in time, $kept to those with earlier stacks, and $all to how often the kernel switched there
counts() {
	waits "$1" 'my ($f) = grep { /^(often|seldom)$/ } map { $_->{symbol} // "" } @{$w->{user_stack}};
		$h{sum} += $w->{count} if $f || grep { ($_->{symbol} // "") =~ /nanosleep/ } @{$w->{kernel_stack}};
		$h{$f} += $w->{count} if $f' >"$TMP/counts"
	often=$(sed -n 's/^often //p' "$TMP/counts") seldom=$(sed -n 's/^seldom //p' "$TMP/counts")
	sum=$(sed -n 's/^sum //p' "$TMP/counts") kept=$(counter "$1" stacks.kept) all=$(cat "$out")
	often=${often:-0} seldom=${seldom:-0} kept=${kept:-0}
}

for mode in btf raw; do
	rec "$TMP/s.cap" --mode $mode --sample-stacks=10 -- "$TURNS"
	is "$rc" 0 "$mode: recorded"
	counts "$TMP/s.cap"
	is "$sum" "$all" "$mode: each wait counts"
	ok "$mode: few have stacks of their own ($kept have not)" test "$kept" -ge 3000 -a "$kept" -le 7500
	# one in ten of 8000 have their own, more on a busy machine: a standard deviation of 1.5 %
	ok "$mode: the two ways to one place have their shares ($often, $seldom)" test "$seldom" -ge 1440 -a "$seldom" -le 2560
	is "$(waits "$TMP/s.cap" '$h{$w->{user_stack_verdict}} = "" if
		($w->{user_stack_error} // "") ne "not-ready"' | tr -d ' \n')" complete "$mode: the stacks are complete"
done
like "$("$BIN/capinfo" "$TMP/s.cap")" 'stacks\.kept' 'capinfo has the number'
run "$BIN/offcpu-record" --force --sample-stacks=10 -o "$TMP/s.cap" -- "$TURNS"
like "$(cat "$err")" 'sampled stacks: [89][0-9.]* % of [0-9]* waits have those of an earlier one of their thread' 'the summary says for how many'
rec "$TMP/s.cap" -- "$TURNS"
counts "$TMP/s.cap"
is "$sum $kept" "$all 0" 'without the option each wait has its own stacks'
rec "$TMP/s.cap" --sample-stacks=10 -- "$TURNS" slow
counts "$TMP/s.cap"
is "$sum $kept" "$all 0" 'a thread that waits seldom has its own stacks at each wait'

rec "$TMP/s.cap" --overhead=0.01% -- "$TURNS"
counts "$TMP/s.cap"
is "$sum" "$all" '--overhead: each wait counts'
ok "beyond the budget, stacks are not taken ($kept)" test "$kept" -ge 500
rec "$TMP/s.cap" --overhead 100 -- "$TURNS"
counts "$TMP/s.cap"
is "$sum $kept" "$all 0" 'within the budget, all are'

rec "$TMP/s.cap" --sample-stacks=10 --wakers -- "$OBJ/t/work/wakers"
is "$(waits "$TMP/s.cap" 'my ($f) = grep { /^p[io]ng_wait$/ } map { $_->{symbol} // "" } @{$w->{user_stack}};
	return if !$f || $w->{open} || grep { ($_->{symbol} // "") =~ /page_fault/ } @{$w->{kernel_stack}};
	my $k = $w->{waker}{comm} // "none"; $n += $w->{count} if $k ne ($f eq "ping_wait" ? "pong" : "ping") && $k !~ /^(none|migration)/')" \
	0 'waits without stacks of their own have their own wakers'

for bad in '--sample-stacks=1' '--sample-stacks=1001' '--overhead=0' '--overhead=101%' '--overhead=2x' '--overhead=' '--overhead=nan' '--overhead=1e1'; do
	status 64 "$bad is refused" "$BIN/offcpu-record" "$bad" -o "$TMP/no.cap" -- true
done
like "$(cat "$err")" "is not a share of the CPUs' time: 0.01% to 100%" 'with what it could be'
status 64 'both at once are refused' "$BIN/offcpu-record" --sample-stacks=2 --overhead=2% -- true
status 64 'mode procfs has neither' "$BIN/offcpu-record" --mode procfs --overhead=2% -- true
like "$(cat "$err")" '--overhead takes BPF' 'and says why'
ln -s "$BIN/offcpu-record" "$TMP/oncpu-record"
status 64 'samples have neither' "$TMP/oncpu-record" --sample-stacks=2 -- true
like "$(cat "$err")" '--sample-stacks is of waits' 'and says why'
tap_done
