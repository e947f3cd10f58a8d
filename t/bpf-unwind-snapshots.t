#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Processes that are over before anybody can look at them: their waits have the
# stacks that a debugger finds in the same program when it waits for longer.
# shellcheck disable=SC2016,SC2154 # Perl's variables; $rc and others of lib.sh
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/rec-lib.sh"
need_bpf

export STACKTOOLS_CACHE="$TMP/cache" DEBUGINFOD_URLS=
mkdir "$TMP/w" && cd "$TMP/w" || exit 1
for variant in pie:-pie static:-static; do
	"${CC:-cc}" -D_GNU_SOURCE -O2 "${variant#*:}" -o "brief-${variant%:*}" "$T_DIR/unwind/brief.c" >cc.log 2>&1 || diag <cc.log
done

# symbols of the frames, innermost first, without what libc calls its own parts
chain() {
	timeout 20 eu-stack -p "$1" 2>/dev/null | awk '/^#/ && $3 { sub(/[ -].*/, "", $3); print $3 }' |
		grep -E '^(brief_|main)' | paste -sd' '
}

# a first time, which makes the tables of what runs here and keeps them
rec "$TMP/first.cap" -a -U -d 1
for name in brief-pie brief-static; do
	"./$name" 30 >/dev/null 2>&1 &
	pid=$!
	at_exit_kill "$pid"
	until_true grep -q nanosleep "/proc/$pid/wchan" 2>/dev/null || sleep 0.2
	want=$(chain "$pid")
	is "$want" "brief_wait brief_calls brief_calls brief_calls brief_calls brief_calls brief_calls brief_calls main" \
		"$name: the debugger sees the calls"
	rec_start "$TMP/$name.cap" -a -U -q --force
	n=0
	while [ "$n" -lt 100 ]; do
		"./$name"
		n=$((n + 1))
	done
	rec_stop
	kill "$pid"
	between "$rc" 0 1 "$name: recorded"
	waits "$TMP/$name.cap" 'return unless $w->{comm} eq "'"$name"'" && ($w->{user_stack}[0]{symbol} // "") =~ /nanosleep/ && !$w->{open};
		my $v = $w->{user_stack_verdict};
		my $c = join " ", grep { /^(brief_|main)/ } map { $_->{symbol} // "?" } @{$w->{user_stack}};
		$h{$v eq "complete" ? "complete $c" : $v} += $w->{count}' >"$name.table"
	between "$(sed -n "s/^complete $want //p" "$name.table")" 95 100 "$name: at least 95 of 100 have that stack"
	is "$(grep -c '^complete ' "$name.table")" 1 "$name: and no complete one is another"
	diag 5 <"$name.table"
	between "$(counter "$TMP/$name.cap" unwind.snapshots_complete)" 1 1000000 "$name: some were walked after they were over"
done
tap_done
