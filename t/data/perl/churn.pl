# SPDX-License-Identifier: GPL-2.0-or-later
# Subroutines that are made and freed at a high rate, for $ARGV[0] seconds: f_N of package P_N waits in line
# 2 + N mod 61 of file N. Prints how many were made.
use strict;
use warnings;
use Time::HiRes;

my ($made, $end) = (0, Time::HiRes::time() + $ARGV[0]);
while (Time::HiRes::time() < $end) {
	my $n = $made++ * 7 % 1000;
	no strict 'refs';
	no warnings;
	eval "package P_$n; sub f_$n {\n#line " . (2 + $n % 61) . " \"file$n\"\nTime::HiRes::usleep(1); }\n1" or die $@;
	&{"P_${n}::f_$n"}();
	undef %{"P_${n}::"};
}
print "$made\n";
