#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# How long each thread ran, was runnable and was blocked in a recording, against the scheduler's own account
# (/proc/PID/task/TID/schedstat).
# shellcheck disable=SC2016,SC2154 # Perl's variables; $rc and others of tap.sh
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf

# lives CAP CODE: runs Perl for each life in a capture, whose parts are added up: $l, with {name}, and {gaps}, the
# time between its parts; $since: what was kept begins; CODE adds to @o
lives() {
	"$BIN/capinfo" --json "$1" | perl -MCpanel::JSON::XS -0777 -e '
		use strict; use warnings;
		our ($c, $l, @o) = decode_json(<STDIN>);
		our ($since) = map { $_->{value} =~ /(\d+)/ } grep { $_->{name} eq "kept" } @{$c->{options}};
		my %name = map { ("$_->{process} $_->{tid}" => $_->{comm}) } @{$c->{threads}};
		my $code = eval "sub { $ARGV[0] }" or die $@;
		my (%of, @all);
		for my $p (sort { $a->{from_ns} <=> $b->{from_ns} } @{$c->{lives}}) {
			my $key = "$p->{process} $p->{tid}";
			if (!$of{$key}) { push @all, $of{$key} = { %$p, gaps => 0, name => $name{$key} // "" }; next }
			$of{$key}{gaps} += abs($p->{from_ns} - $of{$key}{to_ns});
			$of{$key}{to_ns} = $p->{to_ns};
			$of{$key}{$_} += $p->{$_} for qw(on_cpu_ns runnable_ns);
		}
		for (@all) { $l = $_; $code->() }
		print map "$_\n", @o' "$2"
}

# unequal CAP NAMES SLACK: threads whose on-CPU, runnable and blocked time do not add up to their life, to 1 %, SLACK,
# and what was stolen of it. One that has neither waits nor a life left the capture with the waits that were dropped
unequal() {
	"$BIN/capinfo" --threads "$1" | awk -v names="$2" -v slack="$3" -v said="$TMP/said" '
		BEGIN { while ((getline line <said) > 0) { split(line, v, " "); stolen[v[2]] = v[6] / 1e9 } }
		NR == 1 || $NF !~ names || ($5 == 0 && $7 == "-") { next }
		{ d = $11 - $7; d = d < 0 ? -d : d; n++ }
		$7 == "-" || d > $7 / 100 + slack + (stolen[$2] > 0 ? stolen[$2] : 0) { print }
		END { if (!n) print "no thread" }'
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

# compare CAP POLLED: writes to $TMP/agree for each thread whether it ran and was runnable for as long as schedstat
# says, to 1 %
compare() {
	lives "$1" 'push @o, join " ", @$l{qw(name tid from_ns to_ns on_cpu_ns runnable_ns)}' >"$TMP/lives"
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
		}' "$TMP/lives" "$2" >"$TMP/compared"
	diag <"$TMP/compared"
	awk '{ print $1, $2 }' "$TMP/compared" | sort >"$TMP/agree"
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
rec "$TMP/plain.cap" -p $pid -d 3
is "$rc" 0 'threads that share a CPU are recorded'
rec "$TMP/both.cap" -p $pid -d 2 --on-cpu --preempted
is "$rc" 0 'and with samples and preemptions'
rec "$TMP/size.cap" -p $pid -d 3 --events --max-size 10M
is "$rc" 0 'and into a capture that has room for all'
rec "$TMP/keep.cap" -p $pid -d 6 --keep 2s
is "$rc" 0 'and the last two of six seconds'
rec "$TMP/procfs.cap" -p $pid -d 4 --mode procfs --preempted
is "$rc" 0 'and by /proc'
rec_start "$TMP/release.cap" -p "$pid" --keep 10s
sleep 1.5
kill -USR2 "$rec_pid"
sleep 1.5
rec_stop
is "$rc" 0 'and with a part written before the end'
exec 7>&-
wait $pid
wait $poller
for cap in plain both size keep procfs release; do
	compare "$TMP/$cap.cap" "$TMP/polled"
	is "$(grep -v '^lives' "$TMP/agree" | paste -sd,)" \
		'nap agrees:,spin-1 agrees:,spin-2 agrees:' \
		"$cap: threads that live throughout ran and were runnable for as long as schedstat says, to 1 %"
	is "$(lives "$TMP/$cap.cap" 'push @o, "$l->{tid}: $l->{gaps}" if $l->{gaps}')" '' "$cap: the parts of each life follow each other"
	# what a thread does after the last sample of it is not known, and schedstat counts a wait for a CPU at its end
	least=.99 names=. slack=.002
	[ $cap != procfs ] || least=0 names='^(lives|nap)' slack=.1
	lives "$TMP/$cap.cap" 'push @o, join " ", @$l{qw(tid on_cpu_ns runnable_ns)} if $l->{name} eq "born" && $l->{from_ns} > $c->{host}{start_mono_ns} + 2e7 && $l->{from_ns} > ($since // 0) && $l->{to_ns} < $c->{stop_ns}' >"$TMP/got"
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
				if $ran > $w->[0] * 1.01 + 1e6 || $ran < $w->[0] * $ARGV[2] - 1e6 || $queued < $w->[1] * $ARGV[2];
		}
		print $n ? "" : "none was seen\n"' "$TMP/said" "$TMP/got" $least)" '' "$cap: threads that begin and end meanwhile: the same, to 1 %"
	is "$(unequal "$TMP/$cap.cap" "$names" $slack)" '''' "$cap: on-CPU, runnable and blocked time add up to the life of each thread, to 1 %"
done
like "$("$BIN/capinfo" --threads "$TMP/plain.cap" | awk '$NF ~ /^spin/ { print ($7 > 2.9), ($8 > 0.03), ($9 > 0.03) }')" '^1 1 1
1 1 1$' 'without samples and preemptions, too'

is "$(lives "$TMP/keep.cap" 'push @o, $l->{from_ns} - $c->{host}{start_mono_ns} > 1e9 && $l->{to_ns} == $c->{stop_ns} if $l->{name} =~ /^spin/' | paste -sd,)" \
	1,1 '--keep: of what is kept'

# a capture that has room for a part
mkfifo "$TMP/in2"
"$OBJ/t/work/switch" sleep 100000000 20 <"$TMP/in2" >"$TMP/pid" &
pid=$!
at_exit_kill $pid
exec 7>"$TMP/in2"
echo >&7
until_true test -s "$TMP/pid"
polls $pid "$TMP/polled2" &
poller=$!
at_exit_kill $poller
until_true test -s "$TMP/polled2"
rec "$TMP/part.cap" -p $pid -d 12 --events --max-size 1M
exec 7>&-
kill $pid $poller
wait
is "$rc" 0 'waits that --max-size drops are no loss'
ok '--max-size has dropped waits' test "$(counter "$TMP/part.cap" waits.overwritten)" -gt 1000
is "$(lives "$TMP/part.cap" 'push @o, $l->{from_ns} - $c->{host}{start_mono_ns} > 1e9 if $l->{tid} != $c->{processes}[0]{pid}' | sort | uniq -c | sed 's/^ *//')" \
	'20 1' 'and what its threads did then'
compare "$TMP/part.cap" "$TMP/polled2"
is "$(uniq -c "$TMP/agree" | sed 's/^ *//')" '21 switch agrees:' \
	'of what it has they ran and were runnable for as long as schedstat says, to 1 %'
is "$(unequal "$TMP/part.cap" . .002)" '' 'which, with the waits, adds up to their lives, to 1 %'

# another image of a process
rec "$TMP/i.cap" -- "$OBJ/t/work/lives" images
is "$rc" 0 'a process with two images is recorded'
grep '^image' "$out" | awk '{ print $3 }' >"$TMP/want"
lives "$TMP/i.cap" 'push @o, $l->{on_cpu_ns}' >"$TMP/got"
# what the dynamic linker does comes on top
is "$(paste "$TMP/got" "$TMP/want" | awk '$1 < $2 || $1 > $2 * 1.01 + 8e6 { print "bad" } END { print NR }')" 2 \
	'each image ran for as long as it says' || paste "$TMP/got" "$TMP/want" | diag
is "$(lives "$TMP/i.cap" 'push @o, $l->{process}' | sort | paste -sd' ')" '0 1' 'and has a life of its own'
is "$(unequal "$TMP/i.cap" . .002)" '' 'which its times add up to'
rec "$TMP/p.cap" --mode procfs -- "$OBJ/t/work/lives" images
grep '^image' "$out" | awk '{ print $3 }' >"$TMP/want"
lives "$TMP/p.cap" 'push @o, $l->{on_cpu_ns} if $l->{on_cpu_ns} > 1e7' >"$TMP/got"
# a sample sees the other image first, and a last one is before the end
is "$(paste "$TMP/got" "$TMP/want" | awk '$1 < $2 - 5e7 || $1 > $2 + 5e7 { print "bad" } END { print NR }')" 2 \
	'mode procfs: the same, to a few samples' || paste "$TMP/got" "$TMP/want" | diag

# where it is not known
unknown() {
	"$BIN/capinfo" --threads "$1" | awk 'NR > 1 { print $7, $8 != "-", $11 != "-" }' | sort -u
}
if can_record raw; then
	rec "$TMP/r.cap" --mode raw -- "$OBJ/t/work/lives" images
	is "$(unknown "$TMP/r.cap")" '- 0 0' 'mode raw: not known'
else
	skip 'mode raw: not known' 'mode raw does not work here'
fi
run timeout 60 "$BIN/oncpu-record" -q --force -o "$TMP/o.cap" -- "$OBJ/t/work/lives" images
like "$(unknown "$TMP/o.cap")" '^- 1 ' 'samples alone: by these'
tap_done
