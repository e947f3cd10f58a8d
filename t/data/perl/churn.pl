# SPDX-License-Identifier: GPL-2.0-or-later
# Subroutines that are made and freed at a high rate, for $ARGV[0] seconds: f_N of package P_N is in line
# 2 + N mod 61 of file N. It waits there, or calls one that does, or searches for a pattern whose code does. It is
# called by a closure that has the name C_N::c_N. Prints how many were made.
use strict;
use warnings;
use Sub::Util;
use Time::HiRes;

sub nap { Time::HiRes::usleep(1); 1 }
sub closure { my $f = shift; sub { $f->(); 1 } }
our $pattern = qr/a(?{ nap() })/;
my @waits = ('Time::HiRes::usleep(1)', 'main::nap()', '"a" =~ $main::pattern');

my ($made, $end) = (0, Time::HiRes::time() + $ARGV[0]);
while (Time::HiRes::time() < $end) {
	my $n = $made++ * 7 % 1000;
	my $wait = $waits[$made % @waits];
	no strict 'refs';
	no warnings;
	eval "package P_$n; sub f_$n {\n#line " . (2 + $n % 61) . " \"file$n\"\n$wait; 1 }\n1" or die $@;
	Sub::Util::set_subname("C_${n}::c_$n", closure(\&{"P_${n}::f_$n"}))->();
	undef %{"P_${n}::"};
	undef %{"C_${n}::"};
}
print "$made\n";
