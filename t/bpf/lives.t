#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# How long each thread ran, was runnable and was blocked in a recording, against the scheduler's own account
# (/proc/PID/task/TID/schedstat).
# shellcheck disable=SC2016,SC2154 # Perl's variables; $rc and others of tap.sh
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf

# lives CAP CODE: runs Perl for each life in a capture: $l, with {name}; CODE adds to @o
lives() {
	"$BIN/capinfo" --json "$1" | perl -MCpanel::JSON::XS -0777 -e '
		use strict; use warnings;
		our ($c, $l, @o) = decode_json(<STDIN>);
		my %name = map { ("$_->{process} $_->{tid}" => $_->{comm}) } @{$c->{threads}};
		my $code = eval "sub { $ARGV[0] }" or die $@;
		for (sort { $a->{from_ns} <=> $b->{from_ns} } @{$c->{lives}}) { $l = $_; $l->{name} = $name{"$l->{process} $l->{tid}"} // ""; $code->() }
		print map "$_\n", @o' "$2"
}

# unequal CAP: threads whose on-CPU, runnable and blocked time do not add up to their life, to 1 % or 2 ms
unequal() {
	"$BIN/capinfo" --threads "$1" | awk 'NR > 1 { d = $11 - $7; d = d < 0 ? -d : d; n++ }
		NR > 1 && ($7 == "-" || d > $7 / 100 + .002) { print } END { if (!n) print "no thread" }'
}

# polls PID TO: writes time, tid, and what schedstat says, of each thread, until the process ends
polls() {
	perl -MTime::HiRes=clock_gettime,CLOCK_MONOTONIC,usleep -e '
		open my $to, ">", $ARGV[1] or die;
		while (my @files = glob "/proc/$ARGV[0]/task/*/schedstat") {
			for (@files) {
				open my $f, "<", $_ or next;
				my $line = <$f> // next;
				my ($ran, $queued) = split " ", $line;
				printf $to "%.0f %s %s %s\n", clock_gettime(CLOCK_MONOTONIC) * 1e9, m{task/(\d+)}, $ran, $queued;
			}
			usleep(4000);
		}' "$1" "$2"
}

mkfifo "$TMP/in"
"$OBJ/t/work/lives" share <"$TMP/in" >"$TMP/said" &
pid=$!
at_exit_kill $pid
polls $pid "$TMP/polled" &
poller=$!
at_exit_kill $poller
exec 7>"$TMP/in"
until_true test -s "$TMP/polled"
rec "$TMP/a.cap" -p $pid -d 3
is "$rc" 0 'threads that share a CPU are recorded'
rec "$TMP/b.cap" -p $pid -d 2 --on-cpu --preempted
is "$rc" 0 'and with samples and preemptions'
exec 7>&-
wait $pid
wait $poller
for cap in a b; do
	lives "$TMP/$cap.cap" 'push @o, join " ", @$l{qw(name tid from_ns to_ns on_cpu_ns runnable_ns)}' >"$TMP/lives"
	# the account at the time of each end, between two polls
	perl -e '
		my %at;
		open my $p, "<", $ARGV[1] or die;
		while (<$p>) { my ($t, $tid, @v) = split; push @{$at{$tid}}, [$t, @v] }
		# at that time: at least, and at most: what a thread waits for the CPU is counted when it gets it
		sub values_at {
			my ($tid, $time, $what) = @_;
			my ($low, $high);
			for (map { [$_->[0], $_->[$what]] } @{$at{$tid}}) {
				$low = $high = $_->[1] if !defined $low || $_->[0] <= $time;
				next if $_->[0] < $time;
				$high = $_->[1];
				last if $high > $low;
			}
			return ($low, $high);
		}
		open my $l, "<", $ARGV[0] or die;
		while (<$l>) {
			my ($name, $tid, $from, $to, $ran, $queued) = split;
			next if $name eq "born";
			my $life = $to - $from;
			my ($fine, @want) = 1;
			for (1, 2) {
				my ($a, $b) = values_at($tid, $from, $_);
				my ($c, $d) = values_at($tid, $to, $_);
				push @want, $c - $b, $d - $a;
				my $got = $_ == 1 ? $ran : $queued;
				$fine &&= $got >= $c - $b - $life / 100 && $got <= $d - $a + $life / 100;
			}
			printf "%s %s: ran %d, by schedstat %d to %d; queued %d, %d to %d; of %d\n", $name,
				$fine ? "agrees" : "differs", $ran, @want[0, 1], $queued, @want[2, 3], $life;
		}' "$TMP/lives" "$TMP/polled" >"$TMP/compared"
	diag <"$TMP/compared"
	is "$(awk '{ print $1, $2 }' "$TMP/compared" | sort | grep -v '^lives' | paste -sd,)" \
		'nap agrees:,spin-1 agrees:,spin-2 agrees:' \
		"$cap: threads that live throughout ran and were runnable for as long as schedstat says, to 1 %"
	lives "$TMP/$cap.cap" 'push @o, join " ", @$l{qw(tid on_cpu_ns runnable_ns)} if $l->{name} eq "born" && $l->{from_ns} > $c->{host}{start_mono_ns} && $l->{to_ns} < $c->{stop_ns}' >"$TMP/got"
	is "$(perl -e '
		my %said;
		open my $s, "<", $ARGV[0] or die;
		while (<$s>) { my ($what, $tid, @v) = split; $said{$tid} = \@v }
		open my $g, "<", $ARGV[1] or die;
		my $n = 0;
		while (<$g>) {
			my ($tid, $ran, $queued) = split;
			my $w = $said{$tid} or next;
			$n++;
			# its end in the kernel comes after what it says, and it may wait for the CPU before that
			print "$tid: $ran $queued instead of @$w\n"
				if abs($ran - $w->[0]) > $w->[0] / 100 + 1e6 || $queued < $w->[1];
		}
		print $n ? "" : "none was seen\n"' "$TMP/said" "$TMP/got")" '' "$cap: threads that begin and end meanwhile: the same, to 1 %"
	is "$(unequal "$TMP/$cap.cap")" '' "$cap: on-CPU, runnable and blocked time add up to the life of each thread, to 1 %"
done
like "$("$BIN/capinfo" --threads "$TMP/a.cap" | awk '$NF ~ /^spin/ { print ($7 > 2.9), ($8 > 0.03), ($9 > 0.03) }')" '^1 1 1
1 1 1$' 'without samples and preemptions, too'

# another image of a process
rec "$TMP/i.cap" -- "$OBJ/t/work/lives" images
is "$rc" 0 'a process with two images is recorded'
grep '^image' "$out" | awk '{ print $3 }' >"$TMP/want"
lives "$TMP/i.cap" 'push @o, $l->{on_cpu_ns}' >"$TMP/got"
# what the dynamic linker does comes on top
is "$(paste "$TMP/got" "$TMP/want" | awk '$1 < $2 || $1 > $2 * 1.01 + 8e6 { print "bad" } END { print NR }')" 2 \
	'each image ran for as long as it says' || paste "$TMP/got" "$TMP/want" | diag
is "$(lives "$TMP/i.cap" 'push @o, $l->{process}' | sort | paste -sd' ')" '0 1' 'and has a life of its own'
is "$(unequal "$TMP/i.cap")" '' 'which its times add up to'

# where it is not known
unknown() {
	"$BIN/capinfo" --threads "$1" | awk 'NR > 1 { print $7, $8 != "-", $11 != "-" }' | sort -u
}
rec "$TMP/k.cap" --keep 10s -- "$OBJ/t/work/lives" images
is "$(unknown "$TMP/k.cap")" '- 0 0' '--keep: not known'
rec "$TMP/p.cap" --mode procfs -- "$OBJ/t/work/lives" images
is "$(unknown "$TMP/p.cap")" '- 0 0' 'mode procfs: not known'
if can_record raw; then
	rec "$TMP/r.cap" --mode raw -- "$OBJ/t/work/lives" images
	is "$(unknown "$TMP/r.cap")" '- 0 0' 'mode raw: not known'
else
	skip 'mode raw: not known' 'mode raw does not work here'
fi
run timeout 60 "$BIN/oncpu-record" -q --force -o "$TMP/o.cap" -- "$OBJ/t/work/lives" images
like "$(unknown "$TMP/o.cap")" '^- 1 ' 'samples alone: by these'
tap_done
