#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# read.pl VIEWER FILE: reads text of perf script as a viewer's importer does, without the viewer, and prints what the
# plug-in t/viewers/VIEWER.mjs prints of the viewer itself, as JSON: how many samples it keeps, its threads, and the
# weight of each stack, outermost frame first. Dies where the viewer refuses the file. The rules are what the viewers
# were seen to do (speedscope 1.25.0, the Firefox Profiler's client 0.10.0, Perfetto 55.3), and scripts/viewers compares.
use strict;
use warnings;
use JSON::PP;

my ($viewer, $file) = @ARGV;
open my $in, '<:encoding(UTF-8)', $file or die "$file: $!\n";
my @lines = split /\n/, do { local $/; <$in> // '' }, -1;
my $space = '[\s\x{feff}]'; # JavaScript's \s
my $any = '[^\n\r\x{2028}\x{2029}]'; # JavaScript's .
my (%weight, %frames_of, @threads, %seen);
my %read = (samples => 0, weight => 0, unit => 'samples');

sub thread {
	push @threads, $_[0] if !$seen{$_[0]}++;
}

sub add {
	my ($thread, $weight, @frames) = @_;
	my $key = join "\0", $thread, @frames;
	$weight{$key} += $weight;
	$frames_of{$key} = [@frames];
	$read{weight} += $weight;
}

# The samples of a file whose first record is sniffed, as blocks of lines between empty ones.
sub blocks {
	my @blocks = [];
	for (@lines) {
		if ($_ eq '') { push @blocks, [] } else { push @{$blocks[-1]}, $_ }
	}
	return grep { @$_ } @blocks;
}

# Weighs each sample of a thread by the time from half-way to the one before to half-way to the one after it. The
# first and the last one reach no further, and one that is alone weighs 1. Only the first event counts.
sub speedscope {
	my (%samples, $event);
	die "taken for another format\n" if $lines[0] =~ /^FLR/ || (grep { /^events:/ } @lines) && grep { /^fn=/ } @lines;
	for my $block (blocks()) {
		my ($head, @rest) = grep { !/^$space*#/ } @$block or next;
		my ($comm, $pid, $tid) = $head =~ m{^([^\s\x{feff}]$any+?)$space+([0-9]+)(?:/?([0-9]+))?$space+} or next;
		my ($time) = $head =~ /$space+([0-9]+\.[0-9]+):$space+/ or next;
		my ($name) = $head =~ /([^\s\x{feff}]+):$space*$/;
		$event //= $name;
		next if $event ne $name;
		my $thread = "$comm pid: $pid tid: $tid";
		my @frames;
		for (@rest) {
			my ($symbol, $module) = /^$space*[A-Za-z0-9_]+$space*($any+) \(([^\s\x{feff}]*)\)/ or next;
			$symbol =~ s/\+0x[0-9a-f]+$//;
			unshift @frames, $symbol eq '[unknown]' ? "??? ($module)" : $symbol;
		}
		thread($thread);
		push @{$samples{$thread}}, [$time, @frames];
	}
	@threads or die "no samples\n";
	$read{unit} = 'seconds';
	for my $thread (@threads) {
		my @s = @{$samples{$thread}};
		my $span = $s[-1][0] - $s[0][0];
		my $before;
		for my $i (0 .. $#s) {
			my ($time, @frames) = @{$s[$i]};
			die "$thread: time goes back to $time\n" if $i && $time < $s[$i - 1][0];
			my $from = $i ? ($s[$i - 1][0] + $time) / 2 : $time;
			my $to = $i < $#s ? ($time + $s[$i + 1][0]) / 2 : $time;
			next if $to <= $from;
			add($thread, $to - $from, @frames);
			# a sample with the frames of the one before is part of it
			my $stack = join "\0", @frames;
			$read{samples}++ if $stack ne ($before // '-');
			$before = $stack;
		}
		next if $span > 0;
		add($thread, 1, @{$s[-1]}[1 .. $#{$s[-1]}]);
		$read{samples}++;
	}
}

# Looks for a sample's first line at the top of the file; each sample weighs 1. Threads are distinguished by their ID, and have
# the name of the last sample.
sub firefox {
	my %name;
	my @samples;
	die "not text of perf script\n" if $lines[0] =~ /^\{/;
	die "not text of perf script\n"
		if $lines[0] ne '# ========' && $lines[0] !~ m{^[^\s\x{feff}]$any*?$space+(?:[0-9]+/)?[0-9]+$space+(?:\[[0-9]+\]$space+)?[0-9.]+:};
	for my $word ('SIMPLEPERF', 'SLOW') {
		die "taken for another format\n" if index($lines[0], $word) == 0;
	}
	for my $block (blocks()) {
		my ($head, @rest) = @$block;
		next if $head =~ /^#/;
		my ($before) = $head =~ /^($any*)$space+[0-9.]+:/ or next;
		my ($comm, $pid, $tid) = $before =~ m{^($any*)$space+(?:([0-9]+)/)?([0-9]+)\b} or next;
		my @frames;
		$comm =~ s/^$space+|$space+$//g;
		for (@rest) {
			my ($symbol, $module) = /^$space*[A-Za-z0-9_]+$space*($any+) \(([^)]*)\)/ or next;
			$symbol =~ s/\+0x[0-9a-f]+$//;
			unshift @frames, $symbol if $symbol !~ /^\(/;
		}
		next if !@frames;
		$name{$tid} = $comm;
		push @samples, ["$pid/$tid", $tid, @frames];
	}
	@samples or die "no samples\n";
	for (@samples) {
		my ($ids, $tid, @frames) = @$_;
		thread("$name{$tid} $ids");
		$read{samples}++;
		add("$name{$tid} $ids", 1, @frames);
	}
}

# Each line must be right; each sample weighs 1, in a tree of all threads together. A symbol ends at its last "+".
sub perfetto {
	my (%name, @ids);
	my $first = $lines[0];
	for my $word ('{', '[{', '<', 'JAVA PROFILE', 'SIMPLEPERF', 'SLOW', 'PERFILE2') {
		die "taken for another format\n" if index($first, $word) == 0;
	}
	pop @lines; # after the last newline
	while (@lines) {
		my $head = shift @lines;
		my ($comm, $pid, $tid) = $head =~ m{^(.*) +(?:([0-9]+)/)?([0-9]+) +(?:\[[0-9]+\] +)?[0-9]+\.[0-9]{6}:} or die "not a sample: $head\n";
		my @frames;
		while (1) {
			@lines or return; # a sample that is cut short is dropped
			my $frame = shift @lines;
			$frame =~ s/^[ \t]+|[ \t]+$//g;
			last if $frame eq '';
			my ($symbol) = $frame =~ /^[^ ]+ (.*)\([^(]*\)$/ or die "not a frame: $frame\n";
			$symbol =~ s/^ +| +$//g;
			$symbol =~ s/\+[^+]*$//;
			unshift @frames, $symbol;
		}
		next if !@frames;
		$comm = join ' ', grep { $_ ne '' } split / +/, $comm;
		$read{samples}++;
		$name{"$pid/$tid"} = $comm;
		push @ids, "$pid/$tid";
		add('', 1, @frames);
	}
	thread("$name{$_} $_") for @ids;
}

{ speedscope => \&speedscope, firefox => \&firefox, perfetto => \&perfetto }->{$viewer}->();
$read{threads} = [sort @threads];
$read{stacks} = [map { my ($thread) = split /\0/, $_, 2; { weight => $weight{$_}, thread => $thread, frames => $frames_of{$_} } }
	sort { $weight{$b} <=> $weight{$a} || $a cmp $b } keys %weight];
print JSON::PP->new->utf8->canonical->encode(\%read), "\n";
