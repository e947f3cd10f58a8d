#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# waits.pl SECONDS FILE: waits for time, a pipe, a disk and a process.
use strict;
use warnings;
use IO::Handle;
use Time::HiRes qw(time);

sub sleeps { Time::HiRes::sleep(0.002) }

sub syncs {
	open my $f, '>', $ARGV[1] or die "$ARGV[1]: $!\n";
	print $f 'x' x 10000;
	$f->flush;
	$f->sync;
	close $f;
}

sub runs { system 'true' }

sub reads {
	open my $p, '-|', 'sleep 0.002; echo x' or die "a pipe: $!\n";
	my $line = <$p>;
	close $p;
}

my $end = time + $ARGV[0];
while (time < $end) {
	sleeps();
	syncs();
	runs();
	reads() for 1;
}
