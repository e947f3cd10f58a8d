#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# procsamples - a plain sampler of threads, as a baseline: opens the files of all threads in
# /proc once and reads all of them HZ times a second for SECONDS.
#
#   procsamples [-f FILE,FILE...] HZ SECONDS [PID...]    without a PID: every other process
#
# Prints the CPU time per sample in us, the number of samples, and the number of threads at
# the first one. Unreadable files are skipped.
use strict;
use warnings;
use Getopt::Std;
use Time::HiRes qw(clock_gettime sleep CLOCK_MONOTONIC CLOCK_PROCESS_CPUTIME_ID);

my %o = (f => 'stat,status,syscall,wchan,stack,schedstat');
getopts('f:', \%o) && @ARGV >= 2 or die "usage: procsamples [-f FILE,FILE...] HZ SECONDS [PID...]\n";
my ($hz, $seconds, @pids) = @ARGV;
my @names = split /,/, $o{f};
my $PREAD64 = 17;	# x86_64
my $text = "\0" x 8192;
my (@files, @fds);
my $threads = 0;

@pids = grep { $_ != $$ } map { m{(\d+)$} } glob '/proc/[0-9]*' unless @pids;
for my $task (map { glob "/proc/$_/task/*" } @pids) {
	$threads++;
	for my $name (@names) {
		open my $f, '<', "$task/$name" or next;
		next if syscall($PREAD64, fileno $f, $text, length $text, 0) < 0;
		push @files, $f;
		push @fds, fileno $f;
	}
}
die "procsamples: no readable files\n" unless @fds;

my ($start, $cpu, $samples) = (clock_gettime(CLOCK_MONOTONIC), clock_gettime(CLOCK_PROCESS_CPUTIME_ID), 0);
while (clock_gettime(CLOCK_MONOTONIC) < $start + $seconds) {
	syscall($PREAD64, $_, $text, 8192, 0) for @fds;
	$samples++;
	my $rest = $start + $samples / $hz - clock_gettime(CLOCK_MONOTONIC);
	sleep $rest if $rest > 0;
}
printf "%.3f %d %d\n", (clock_gettime(CLOCK_PROCESS_CPUTIME_ID) - $cpu) * 1e6 / $samples, $samples, $threads;
