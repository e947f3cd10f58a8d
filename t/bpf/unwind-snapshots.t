#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Processes that end before anything can read their /proc files: their waits have
# the stacks that a debugger finds in the same program when it waits longer.
# shellcheck disable=SC2016,SC2154 # Perl's variables; $rc and others of tap.sh
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf

export STACKTOOLS_CACHE="$TMP/cache" DEBUGINFOD_URLS=
mkdir "$TMP/w" && cd "$TMP/w" || exit 1
for variant in pie:-pie static:-static; do
	"${CC:-cc}" -D_GNU_SOURCE -O2 "${variant#*:}" -o "brief-${variant%:*}" "$DATA/unwind/brief.c" >cc.log 2>&1 || diag <cc.log
done

# chain PID: prints the symbols of the frames in the program itself, innermost first
chain() {
	timeout 20 eu-stack -p "$1" 2>/dev/null | awk '/^#/ && $3 { sub(/[ -].*/, "", $3); print $3 }' |
		grep -E '^(brief_|main)' | paste -sd' '
}

# series NAME: records a hundred short-lived processes; sets NAME.table
series() {
	rec_start "$TMP/$1.cap" -a -U -q --force
	n=0
	while [ "$n" -lt 100 ]; do
		"./$1"
		n=$((n + 1))
	done
	rec_stop
	waits "$TMP/$1.cap" 'return unless $w->{comm} eq "'"$1"'" && ($w->{user_stack}[0]{symbol} // "") =~ /nanosleep/ && !$w->{open};
		my $v = $w->{user_stack_verdict};
		my $c = join " ", grep { /^(brief_|main)/ } map { $_->{symbol} // "?" } @{$w->{user_stack}};
		$h{$v eq "complete" ? "complete $c" : $v} += $w->{count}' >"$1.table"
}

# same_stack NAME: how many have the stack that is wanted
same_stack() {
	awk -v want="complete $want " 'index($0, want) == 1 { n = $NF } END { print n + 0 }' "$1.table"
}

late=0
# record NAME CASE: a series of NAME
record() {
	"./$1" 30 >/dev/null 2>&1 &
	pid=$!
	at_exit_kill "$pid"
	until_true grep -q nanosleep "/proc/$pid/wchan" 2>/dev/null || sleep 0.2
	want=$(chain "$pid")
	is "$want" "brief_wait brief_calls brief_calls brief_calls brief_calls brief_calls brief_calls brief_calls main" \
		"$1, $2: eu-stack shows the calls in a process that waits longer"
	# on a slow machine some end before it is known what they map, in one series more of them than in another
	for series in 1 2 3; do
		[ "$2" != "empty cache" ] || rm -rf "$STACKTOOLS_CACHE"
		series "$1"
		[ "$(same_stack "$1")" -lt 95 ] || break
		diag "$series" <"$1.table"
	done
	kill "$pid"
	between "$rc" 0 1 "$1, $2: the recording ends with status 0 or 1"
	between "$(same_stack "$1")" 95 100 "$1, $2: at least 95 of 100 processes have the stack that eu-stack shows"
	is "$(grep -c '^complete ' "$1.table")" 1 "$1, $2: all complete stacks have the same calls"
	diag 5 <"$1.table"
	late=$((late + $(counter "$TMP/$1.cap" unwind.snapshots_complete)))
}

# with an empty cache first: that run fills the cache
record brief-pie "empty cache"
record brief-pie cached
record brief-static cached
between "$late" 1 1000000 "some stacks are walked from snapshots after their process has ended"
tap_done
