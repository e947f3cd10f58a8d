#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# A recorder that runs for long forgets the stacks that are not used any more, and its memory has a bound. As many
# stacks as a machine has in an hour, 100 new ones a second, are recorded within seconds.
# shellcheck disable=SC2016,SC2154 # Perl's variables; $rc and others of tap.sh
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf

HELD=32
mkfifo "$TMP/in" "$TMP/said"

# begin N: the workload, whose threads wait; next: it goes on, until it says a word
begin() {
	count=$1
	"$OBJ/t/work/paths" "$1" $HELD <"$TMP/in" >"$TMP/said" &
	pid=$!
	exec 7>"$TMP/in" 8<"$TMP/said"
	at_exit_kill $pid
	read -r _ <&8
}
next() {
	echo >&7
	read -r _ <&8
}
end() { # the odd of those that wait all the time wait again, for a while
	next
	sleep 1.2
	echo >&7
	wait $pid
	exec 7>&- 8<&-
}

anonymous() { # kB of the recorder
	awk '/^RssAnon/ { print $2 }' "/proc/$rec_pid/status"
}

# Of the waits of a capture, by the number that the calls of a stack spell: "numbers", how many there are; "waits" of
# these; "twice", numbers with more waits than were made; "again", those with two; "held", numbers and waits of the
# threads that wait all the time; "unread", waits in calls that spell no number, or without a stack.
spell() { # CAP
	"$BIN/symbolize" -q --format=tables "$1" | perl -e 'use strict; use warnings;
		my ($one, $zero, $n) = @ARGV;
		my (%bit, %other, %besides, %wait_once, %stack, %thread, %n, %held, %r);
		while (<STDIN>) {
			if (/^\{"type":"frame","id":(\d+),"name":"path".*"line":(\d+),/) {
				$bit{$1} = $2 == $one ? 1 : $2 == $zero ? 0 : undef;
			} elsif (/^\{"type":"frame","id":(\d+),"name":"wait_once"/) {
				$wait_once{$1} = 1;
			} elsif (/^\{"type":"frame","id":(\d+),"name":"main"/) {
				$other{$1} = 1;
			} elsif (/^\{"type":"frame","id":(\d+),"name":"[^"]*(mutex|page_fault|madvise|do_exit)/) {
				$besides{$1} = 1;
			} elsif (/^\{"type":"thread","id":(\d+).*"comm":"([^"]*)"/) {
				$thread{$1} = $2;
			} elsif (/^\{"type":"stack","id":(\d+),"frames":\[([\d,]*)\]/) {
				my $id = $1;
				my @b = map { $bit{$_} } grep { defined $bit{$_} } my @f = split /,/, $2;
				# or where a thread waits elsewhere: for a page of its stack, a lock of the pipe, or of the
				# mappings when it ends
				$stack{$id} = (grep { $besides{$_} } @f) ? -1 : @b == 24 ? oct "0b" . join "", @b
					: (grep { $wait_once{$_} } @f) ? undef : (grep { $other{$_} } @f) ? -1 : undef;
			} elsif (/^\{"type":"wait","thread":(\d+),"stack":(\d+|null),"count":(\d+)/) {
				my ($comm, $number, $count) = ($thread{$1}, $2 eq "null" ? undef : $stack{$2}, $3);
				if ($comm eq "held" && defined $number) { $held{$number - 0xf00000} += $count }
				elsif ($comm eq "paths" && defined $number) { $n{$number} += $count if $number >= 0 }
				elsif ($comm ne "answer") { $r{unread} += $count }
			}
		}
		$r{numbers} = keys %n;
		$r{waits} += $_ for values %n;
		$r{twice} = grep { $n{$_} > ($_ < 100 || ($_ >= $n - 100 && $_ < $n) ? 2 : 1) } keys %n;
		$r{again} = grep { $n{$_} > 1 } keys %n;
		$r{held} = grep { $held{$_} == 1 + ($_ & 1) } keys %held;
		$r{odd} = grep { $held{$_} == 1 && ($_ & 1) } keys %held;
		printf "%s=%d\n", $_, $r{$_} // 0 for qw(numbers waits twice again held odd unread)' \
		"$(grep -n 'done = path' "$TOP/t/work/paths.c" | cut -d: -f1)" \
		"$(grep -n 'done = 1 - path' "$TOP/t/work/paths.c" | cut -d: -f1)" "$count"
}

unseen=0
judge() { # CAP WHAT
	eval "$(spell "$1")"
	# what the ring buffer had no room for is sent again, and its wait has no stack
	lost=$(counter "$1" lost.stacks)
	lost=${lost:-0}
	ok "$2: no stack is missing, but for $lost that the ring buffer had no room for" \
		test "$lost" -le "$(counter "$1" stacks.resent)"
	ok "$2: all others are whole: $unread are not" test "$unread" -le $((lost + unseen))
	is "$twice" 0 "$2: no wait has the stack of another one"
	ok "$2: $again of 200 that waited before have their stacks again" test "$again" -ge 190
}

begin 600000
rec_start "$TMP/m.cap" -p "$pid"
next
third=$(anonymous)
next
all=$(anonymous)
end
rec_stop
judge "$TMP/m.cap" 'an hour'
is "$held" "$HELD" 'waits as long as the recording have their stacks, and those after them'
ok "$numbers stacks of the program's were recorded" test "$numbers" -gt 250000
ok "the recorder's memory, $third kB after a third of them, does not grow with them: $all kB" test "$all" -lt $((third * 2))

begin 120000
rec_start "$TMP/r.cap" --mode raw -p "$pid"
next
next
end
rec_stop
# this mode has no stacks of waits that began before it, of which two are of main
unseen=$((HELD + 2)) judge "$TMP/r.cap" 'mode raw'
is "$odd" $((HELD / 2)) 'mode raw: threads that wait again with the stack of a long wait have it'
unseen=0

# each wait of the other thread has a waker of its own
begin 80000
rec_start "$TMP/w.cap" --wakers -p "$pid"
next
next
end
rec_stop
judge "$TMP/w.cap" 'wakers'
is "$held" "$HELD" 'wakers: waits as long as the recording have their stacks'
ok "wakers: none is missing, but for those that the ring buffer had no room for" \
	test "$(counter "$TMP/w.cap" wakers.missing)" -le "$(counter "$TMP/w.cap" wakers.resent)"
tap_done
