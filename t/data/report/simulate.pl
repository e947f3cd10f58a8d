# SPDX-License-Identifier: GPL-2.0-or-later
# Two recordings of 1,000 places whose waits come at random, with a known change from one to the other:
#
#   perl simulate.pl SEED MODEL FACTOR DIR    writes DIR/before and DIR/after, text of symbolize
#
# FACTOR is how many times as often each place waits in AFTER. The models:
#   even     2 to 400 waits a place, of exponential length, on 8 threads
#   many     200 waits a place, of exponential length, on 8 threads
#   heavy    as even, of lognormal length: a few waits are most of the time
#   rare     0.2 to 5 waits a place
#   threads  threads differ: each has its own rate, drawn anew for each recording; 3 to 8 threads
#   uneven   as even, and BEFORE is five times as long as AFTER
#   seldom   as rare, and BEFORE is five times as long as AFTER
use strict;
use warnings;

my ($seed, $model, $factor, $dir) = @ARGV;
srand $seed;

sub exponential { return -log(1 - rand) }
sub normal { return sqrt(-2 * log(1 - rand)) * cos(6.283185307179586 * rand) }

sub poisson {
	my ($mean) = @_;
	my ($n, $sum) = (0, exponential());
	while ($sum < $mean) { $n++; $sum += exponential() }
	return $n;
}

my %seconds = $model eq 'uneven' || $model eq 'seldom' ? (before => 10, after => 2) : (before => 5, after => 5);
my @places = map {
	my $rare = $model eq 'rare' || $model eq 'seldom';
	{ rate => ($model eq 'many' ? 200 : $rare ? 0.2 * 25**rand : 2 * 200**rand) / 5, mean => 1e4 * 100**rand,
		threads => $model eq 'threads' ? 3 + int rand 6 : 8 }
} 0 .. 999;

for my $side (qw(before after)) {
	open my $f, '>', "$dir/$side" or die "$dir/$side: $!";
	printf $f "# stacktools perf-script 1\n# host: hostname=x duration=%.3f\n", $seconds{$side};
	for my $i (0 .. $#places) {
		my $p = $places[$i];
		for my $thread (1 .. $p->{threads}) {
			my $rate = $p->{rate} * $seconds{$side} / $p->{threads} * ($side eq 'after' ? $factor : 1);
			# gamma of shape 2, mean 1
			$rate *= (exponential() + exponential()) / 2 if $model eq 'threads';
			my ($n, $total, $max) = (poisson($rate), 0, 0);
			for (1 .. $n) {
				my $wait = 1 + int($p->{mean} * ($model eq 'heavy' ? exp(1.5 * normal()) : exponential()));
				$total += $wait;
				$max = $wait if $wait > $max;
			}
			print $f "# wait: count=$n total_ns=$total max_ns=$max state=S kind=lock\n",
				"ab 1/$thread [000] 1.5: $total offcpu-time: \n\t12 place_$i (/x)\n\n" if $n;
		}
	}
	close $f or die;
}
