#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# procshare - how much of the waits of an exact capture another one has that was
# recorded at the same time by looks.
#
#   procshare SYMBOLIZE EXACT LOOKS [PID...]    processes that are left out
#
# Prints shares of the exact capture's time, in per cent: what is there for the same
# thread; the same in the same system call, of all but time for want of a CPU; and the
# sum for all threads, which exceeds 100 where too much was estimated.
# Both are taken by the second of their recording, which need not be the same length.
use strict;
use warnings;
use JSON::PP;

@ARGV >= 3 or die "usage: procshare SYMBOLIZE EXACT LOOKS [PID...]\n";
my ($symbolize, @files) = splice @ARGV, 0, 3;
my %out = map { $_ => 1 } @ARGV;

# Every kernel stack of a wait in a system call has its function, or its name in brackets.
sub call_of {
	my ($wait) = @_;
	for (map { $_->{symbol} // '' } @{$wait->{kernel_stack} || []}) {
		return $1 if /^\[syscall (\w+)\]$/ || /^__[a-z0-9]+_sys_(\w+)$/;
	}
	return '';
}

# By thread; and by thread and call.
sub waits_of {
	my ($file) = @_;
	my ($duration, %thread, %call);
	open my $f, '-|', $symbolize, '-q', '--format=json', $file or die "procshare: $symbolize: $!\n";
	while (<$f>) {
		my $w = decode_json($_);
		$duration = $w->{duration_ns} if $w->{type} eq 'capture';
		next if $w->{type} ne 'wait' || $out{$w->{pid}};
		my $share = $w->{total_ns} / $duration;
		$thread{"$w->{pid}/$w->{tid}"} += $share;
		$call{"$w->{pid}/$w->{tid} " . call_of($w)} += $share unless $w->{preempted};
	}
	close $f or die "procshare: $symbolize cannot read '$file'\n";
	return (\%thread, \%call);
}

sub sum { my $n = 0; $n += $_ for @_; return $n }

sub shared {
	my ($exact, $looks) = @_;
	my $all = sum(values %$exact) or die "procshare: nothing waited\n";
	return 100 * sum(map { my ($e, $l) = ($exact->{$_}, $looks->{$_} // 0); $e < $l ? $e : $l } keys %$exact) / $all;
}

my ($exact, $exact_calls) = waits_of($files[0]);
my ($looks, $looks_calls) = waits_of($files[1]);
printf "%.3f %.3f %.3f\n", shared($exact, $looks), shared($exact_calls, $looks_calls),
	100 * sum(values %$looks) / sum(values %$exact);
