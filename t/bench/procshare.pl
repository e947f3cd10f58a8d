#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# procshare - the share of the waits in an exact capture that a sampled capture of the same
# time has.
#
#   procshare BIN EXACT SAMPLED THERE [PID...]    ignores the processes PID
#
# THERE has a line /proc/PID/task/TID for each thread that existed all the time. Its waits are
# divided by the duration of their own capture, since the captures do not begin at the same
# moment. Waits of all other threads are divided by the duration of the exact capture.
#
# Prints percentages of the exact capture's time: the time that the sampled capture has for
# the same thread; the same for the same thread and system call, without runnable time; and
# the sum for all threads, which exceeds 100 if the sampled capture overestimates; then the
# number of waits that the exact capture has lost.
use strict;
use warnings;
use Cpanel::JSON::XS;

@ARGV >= 4 or die "usage: procshare BIN EXACT SAMPLED THERE [PID...]\n";
my ($bin, $exact_file, $samples_file, $there) = splice @ARGV, 0, 4;
my %out = map { $_ => 1 } @ARGV;
open my $list, '<', $there or die "procshare: $there: $!\n";
my %stays = map { m{^/proc/(\d+)/task/(\d+)$} ? ("$1/$2" => 1) : () } <$list>;
my $exact_ns;

# The system call of a wait: its kernel stack has the call's function, or its name in brackets.
sub call_of {
	my ($wait) = @_;
	for (map { $_->{symbol} // '' } @{$wait->{kernel_stack} || []}) {
		return $1 if /^\[syscall (\w+)\]$/ || /^__[a-z0-9]+_sys_(\w+)$/;
	}
	return '';
}

# Returns the time off the CPU by thread, and the blocked time by thread and system call.
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
	my ($exact, $samples) = @_;
	my $all = sum(values %$exact) or die "procshare: no waits in the exact capture\n";
	return 100 * sum(map { my ($e, $l) = ($exact->{$_}, $samples->{$_} // 0); $e < $l ? $e : $l } keys %$exact) / $all;
}

my ($exact, $exact_calls) = waits_of($exact_file);
my ($samples, $samples_calls) = waits_of($samples_file);
open my $info, '-|', "$bin/capinfo", '--json', $exact_file or die "procshare: $bin/capinfo: $!\n";
my $lost_by = decode_json(do { local $/; <$info> })->{lost};
my $lost = sum(map { $lost_by->{$_} } grep { !/_ns$/ } keys %$lost_by);
printf "%.3f %.3f %.3f %d\n", shared($exact, $samples), shared($exact_calls, $samples_calls),
	100 * sum(values %$samples) / sum(values %$exact), $lost;
