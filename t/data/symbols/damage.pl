#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# damage - symbolize over a file that is damaged in many ways, one after the other
#
#   damage SYMBOLIZE CAPTURE GOOD PLACE HOW RUNS [OPTION...]
#
# PLACE is where symbolize, with CAPTURE and the OPTIONs, reads what GOOD is the
# undamaged form of. HOW: "debug" flips bits and blanks stretches in sections
# whose names have "debug" in them, "any" does so anywhere, "cut" ends the file
# early. Each run has to end by itself with status 0 or 1, in ten seconds and 300 MB, with one frame for
# each address, and each frame without a name says why. With "debug" every
# function keeps the name that the symbol table gives it.
# Prints what happened in figures; exit 1 with the first messages.
use strict;
use warnings;
use Time::HiRes qw(time);

my ($symbolize, $capture, $good, $place, $how, $runs, @options) = @ARGV;
my ($SECONDS, $MEMORY_KB) = (10, 300 << 10);
my $WAIT4 = 61;	# x86_64
srand 1;

sub slurp {
	my ($path) = @_;
	open my $f, '<:raw', $path or die "$path: $!\n";
	local $/;
	return scalar <$f>;
}

my $bytes = slurp($good);
my $out = "$place.out";

# [offset, size] of what may be damaged
sub stretches {
	return [ 0, length $bytes ] if $how ne 'debug';
	my @all;
	for (`readelf -SW '$good'`) {
		push @all, [ hex $1, hex $2 ] if /\] \S*debug_\S+ +PROGBITS +[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+)/ && hex $2;
	}
	return @all;
}

my @stretches = stretches();
@stretches or die "damage: nothing to be damaged in '$good'\n";

sub damaged {
	my $b = $bytes;
	return substr $b, 0, int rand length $b if $how eq 'cut';
	my ($at, $size) = @{ $stretches[ rand @stretches ] };
	if (rand() < 0.3) {
		my $n = 1 + int rand($size < 64 ? $size : 64);
		my $from = $at + int rand($size - $n + 1);
		substr $b, $from, $n, chr(rand() < 0.5 ? 0xff : int rand 256) x $n;
	} else {
		# most of it near the beginning, where the headings are
		for (0 .. int rand 6) {
			my $pos = $at + int(rand() < 0.3 ? rand($size < 40 ? $size : 40) : rand $size);
			substr $b, $pos, 1, chr(ord(substr $b, $pos, 1) ^ 1 << int rand 8);
		}
	}
	return $b;
}

sub run {
	my $from = time;
	my $pid = fork() // die "damage: fork: $!\n";
	if (!$pid) {
		open STDOUT, '>', $out;
		open STDERR, '>', "$out.err";
		open STDIN, '<', '/dev/null';
		exec 'timeout', '-s', 'KILL', $SECONDS, $symbolize, '-q', '--format=json', @options, $capture;
		exit 127;
	}
	my ($status, $usage) = (pack('l', 0), "\0" x 144);
	syscall($WAIT4, $pid, $status, 0, $usage) == $pid or die "damage: wait4: $!\n";
	return (unpack('l', $status), (unpack 'q5', $usage)[4], time - $from);
}

# Each frame: [symbol or '', has a line, has a reason]
sub frames {
	my @all;
	for (split /\n/, slurp($out)) {
		for (split /(?=\{"address":)/) {
			next unless /^\{"address":/;
			my ($symbol) = /"symbol":(?:"((?:[^"\\]|\\.)*)"|null)/;
			push @all, [ $symbol // '', /"line":[1-9]/ ? 1 : 0, /"reason":"/ ? 1 : 0 ];
		}
	}
	return @all;
}

sub put {
	my ($b) = @_;
	open my $f, '>:raw', "$place.new" or die "$place: $!\n";
	print $f $b;
	close $f;
	chmod 0755, "$place.new";
	rename "$place.new", $place;
}

put($bytes);
my ($status) = run();
my @true = frames();
die "damage: the undamaged file has no names: status $status\n" if $status || !grep { $_->[0] ne '' } @true;
my (@messages, %n);
my ($worst_kb, $worst_s) = (0, 0);
for my $i (1 .. $runs) {
	put(damaged());
	my ($st, $kb, $s) = run();
	my @got = frames();
	$worst_kb = $kb if $kb > $worst_kb;
	$worst_s = $s if $s > $worst_s;
	my $message = '';
	$message = "status $st" if $st & 127 || ($st >> 8) > 1;
	$message ||= "$kb KB" if $kb > $MEMORY_KB;
	$message ||= @got . ' frames instead of ' . @true if @got != @true;
	for my $k (0 .. $#got) {
		my ($symbol, $line, $reason) = @{ $got[$k] };
		$n{frames}++;
		$n{named}++ if $symbol ne '';
		$n{lines}++ if $line;
		$n{reasons}++ if $reason;
		my $lost = $true[$k] && $true[$k][1] && !$line;
		$n{'lines lost'}++ if $lost;
		$n{'without a reason'}++ if $lost && !$reason;
		$message ||= "frame $k has neither name nor reason" if $symbol eq '' && !$reason;
		$message ||= "frame $k is $symbol and not $true[$k][0]"
			if $how eq 'debug' && $true[$k][0] ne '' && $symbol ne $true[$k][0];
	}
	next unless $message;
	push @messages, "run $i: $message";
	rename $place, "$place.bad" if @messages == 1;
}
put($bytes);
printf "%d runs, %.1f s and %d MB at most; %s\n", $runs, $worst_s, $worst_kb >> 10,
	join ', ', map { "$_ " . ($n{$_} // 0) } 'frames', 'named', 'lines', 'lines lost', 'without a reason';
print "$_\n" for @messages > 5 ? @messages[ 0 .. 4 ] : @messages;
exit !!@messages;
