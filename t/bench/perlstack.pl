# SPDX-License-Identifier: GPL-2.0-or-later
# perlstack.pl DEPTH: a process that waits as often as possible, DEPTH distinct subroutines deep, for a minute.
use strict;
use warnings;
use Time::HiRes;

my ($depth, $end) = ($ARGV[0], time + 60);
my $last = $depth - 1;
my $text = join '', map { 'sub f' . $_ . ' { my $x = f' . ($_ + 1) . '(); $x }' . "\n" } 1 .. $last - 1;
eval $text . "sub f$last { Time::HiRes::usleep(1) while time < \$end; 1 } 1" or die;
f1();
