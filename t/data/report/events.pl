# SPDX-License-Identifier: GPL-2.0-or-later
# A random text of symbolize --events, and what stackreport must make of it, computed from the waits that the text was
# written from:
#
#   perl events.pl SEED DIR    writes DIR/text, DIR/intervals (--by 50ms --all --tsv) and DIR/p99 (lines of a stack and
#                              the 99th percentile of its waits, exact)
use strict;
use warnings;
use integer;

my ($seed, $dir) = @ARGV;
srand $seed;

my ($start, $duration, $interval) = (1_000_000_123, 1_000_000_000, 50_000_000);
my @kinds = qw(lock sleep pipe);
my (@waits, @text);

for my $thread (1 .. 12) {
	my $t = $start;
	while ((my $begin = $t + int rand(rand(4) < 1 ? 90_000_000 : 900_000)) < $start + $duration) {
		my $len = int rand(rand(20) < 1 ? 200_000_000 : 3_000_000);
		$len = $start + $duration - $begin if $begin + $len > $start + $duration;
		my %w = (thread => $thread, begin => $begin, len => $len, f => int rand 5, kind => $kinds[rand @kinds]);
		$w{runnable} = int rand($len + 1) if 4 > int rand 5;
		push @waits, \%w;
		$t = $begin + $len;
	}
}
@waits = sort { $a->{begin} <=> $b->{begin} } @waits;
push @text, '# stacktools perf-script 1', '# host: hostname=x start=y duration=1.000 monotonic=1.000000123';
for my $w (@waits) {
	push @text, "# wait: count=1 total_ns=$w->{len} max_ns=$w->{len} state=S open=0 initial=0 preempted=0 kind=$w->{kind}" .
		(defined $w->{runnable} ? " runnable_ns=$w->{runnable}" : '');
	push @text, sprintf "t%d-x 7/%d [000] %d.%09d: %d offcpu-time: ", $w->{thread}, 100 + $w->{thread},
		$w->{begin} / 1_000_000_000, $w->{begin} % 1_000_000_000, $w->{len} || 1;
	push @text, "\t12 f$w->{f}+0x1 (/x)", "\t34 main+0x1 (/x)", '';
}

sub file {
	my ($name, @lines) = @_;
	open my $f, '>', "$dir/$name" or die "$dir/$name: $!";
	print $f map { "$_\n" } @lines;
	close $f or die;
}
file('text', @text);

# what [FROM, TO) has of interval I
sub part {
	my ($from, $to, $i) = @_;
	my ($a, $b) = ($start + $i * $interval, $start + ($i + 1) * $interval);
	$a = $from if $from > $a;
	$b = $to if $to < $b;
	return $b > $a ? $b - $a : 0;
}

my @rows = (join "\t", qw(from_ns total_ns blocked_ns runnable_ns count mean_ns max_ns greatest_ns kind syscall stack));
for my $i (0 .. $duration / $interval - 1) {
	my ($total, $blocked, $runnable, $count, $sum, $max, %place) = (0, 0, 0, 0, 0, 0);
	for my $w (@waits) {
		my $end = $w->{begin} + $w->{len};
		my $part = part($w->{begin}, $end, $i);
		$total += $part;
		$place{"$w->{kind}\t\tmain;f$w->{f}"} += $part if $part;
		if (defined $w->{runnable}) {
			$blocked += part($w->{begin}, $end - $w->{runnable}, $i);
			$runnable += part($end - $w->{runnable}, $end, $i);
		}
		next if ($w->{begin} - $start) / $interval != $i;
		$count++;
		$sum += $w->{len};
		$max = $w->{len} if $w->{len} > $max;
	}
	my ($greatest) = sort { $place{$b} <=> $place{$a} } keys %place;
	push @rows, join "\t", $i * $interval, $total, $blocked, $runnable, $count, $count ? ($sum / $count, $max) : ('', ''),
		defined $greatest ? ($place{$greatest}, $greatest) : ('', "\t\t");
}
file('intervals', @rows);

my %of;
push @{ $of{"main;f$_->{f}"} }, $_->{len} for @waits;
file('p99', map { my @s = sort { $a <=> $b } @{ $of{$_} }; "$_ " . $s[(99 * @s + 99) / 100 - 1] . ' ' . @s } sort keys %of);
