#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# procshare - how much of the waits of an exact capture another one has that was
# recorded at the same time by looks.
#
#   procshare BIN EXACT LOOKS THERE [PID...]    processes that are left out
#
# THERE has a line /proc/PID/task/TID for each thread that was there all the time: its
# waits are taken by the second of each recording, since they do not begin at the same
# moment. Waits of all others are taken as they are.
#
# Prints shares of the exact capture's time, in per cent: what is there for the same
# thread; the same in the same system call, of all but time for want of a CPU; and the
# sum for all threads, which exceeds 100 where too much was estimated; then how many
# waits the exact one has lost.
use strict;
use warnings;
use JSON::PP;

@ARGV >= 4 or die "usage: procshare BIN EXACT LOOKS THERE [PID...]\n";
my ($bin, $exact_file, $looks_file, $there) = splice @ARGV, 0, 4;
my %out = map { $_ => 1 } @ARGV;
open my $list, '<', $there or die "procshare: $there: $!\n";
my %stays = map { m{^/proc/(\d+)/task/(\d+)$} ? ("$1/$2" => 1) : () } <$list>;
my $exact_ns;

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
	my ($ns, %thread, %call);
	open my $f, '-|', "$bin/symbolize", '-q', '--format=json', $file or die "procshare: $bin/symbolize: $!\n";
	while (<$f>) {
		my $w = decode_json($_);
		$ns = $w->{duration_ns} if $w->{type} eq 'capture';
		$exact_ns //= $ns;
		next if $w->{type} ne 'wait' || $out{$w->{pid}};
		my $who = "$w->{pid}/$w->{tid}";
		my $share = $w->{total_ns} / ($stays{$who} ? $ns : $exact_ns);
		$thread{$who} += $share;
		$call{"$who " . call_of($w)} += $share unless $w->{preempted};
	}
	close $f or die "procshare: symbolize cannot read '$file'\n";
	return (\%thread, \%call);
}

sub sum { my $n = 0; $n += $_ for @_; return $n }

sub shared {
	my ($exact, $looks) = @_;
	my $all = sum(values %$exact) or die "procshare: nothing waited\n";
	return 100 * sum(map { my ($e, $l) = ($exact->{$_}, $looks->{$_} // 0); $e < $l ? $e : $l } keys %$exact) / $all;
}

my ($exact, $exact_calls) = waits_of($exact_file);
my ($looks, $looks_calls) = waits_of($looks_file);
open my $told, '-|', "$bin/capinfo", '--json', $exact_file or die "procshare: $bin/capinfo: $!\n";
my $lost_by = decode_json(do { local $/; <$told> })->{lost};
my $lost = sum(map { $lost_by->{$_} } grep { !/_ns$/ } keys %$lost_by);
printf "%.3f %.3f %.3f %d\n", shared($exact, $looks), shared($exact_calls, $looks_calls),
	100 * sum(values %$looks) / sum(values %$exact), $lost;
