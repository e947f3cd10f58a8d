#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Compares what a viewer read (the JSON of read.pl, or of a plug-in in t/viewers) with other text.
#
#   compare.pl same READ READ		both read the same threads, samples, stacks and weights
#   compare.pl folded READ FOLDED	READ has the stacks and the weights of the folded lines
#   compare.pl truth READ TEXT EVENT LIMIT
#					READ has the stacks of TEXT, which symbolize printed in its usual format, of EVENT or
#					of all events, each with its share of the time. Prints how much of the whole is given
#					to other stacks, in percent: at most LIMIT. Where READ has times, they must be right.
#   compare.pl exact READ TRUTH	READ has the stacks and times of TRUTH, as t/data/export/make.pl and read.pl print them, and
#					as many arrows as its last line says, if both have any
#
# Exit status: 0 if they agree, 1 if not, with the reasons.
use strict;
use warnings;
use Encode ();
use JSON::PP;

my $failed = 0;

sub wrong {
	print "@_\n";
	$failed = 1;
}

sub slurp {
	my ($path) = @_;
	open my $in, '<:raw', $path or die "$path: $!\n";
	local $/;
	return <$in> // '';
}

sub read_json {
	my $read = eval { decode_json(slurp($_[0])) } or die "$_[0] is not JSON: $@\n";
	# each viewer writes a thread in a way of its own
	for (@{$read->{threads}}, map { $_->{thread} //= ''; \$_->{thread} } @{$read->{stacks}}) {
		my $name = ref $_ ? $_ : \$_;
		$$name =~ s{ *( pid: (\d+) tid: (\d+))$}{ $2/$3};
	}
	return $read;
}

sub stacks_of {
	my ($read) = @_;
	my %weight;
	$weight{join ';', $_->{thread}, @{$_->{frames}}} += $_->{weight} for @{$read->{stacks}};
	return \%weight;
}

# The same of symbolize's text: seconds, by IDs and frames. Viewers differ in what name a thread has that had two.
sub truth {
	my ($path, $wanted, $by_thread) = @_;
	my (%weight, $thread, $period, @frames);
	for (split /\n/, Encode::decode('UTF-8', slurp($path)), -1) {
		if (m{^([^\s#].*) (\d+)/(\d+) \[000\] \d+\.\d{9}: (\d+) (\S+): $}) {
			($thread, $period) = ("$2/$3", $4);
			undef $thread if $wanted ne 'all' && $wanted ne $5;
			@frames = ();
		} elsif (/^\t *[0-9a-f]+ (.*) \(\S+\)$/) {
			my $symbol = $1;
			$symbol =~ s/\+0x[0-9a-f]+$//;
			unshift @frames, $symbol;
		} elsif ($_ eq '' && defined $thread) {
			@frames = '[no stack]' if !@frames;
			$weight{join ';', $by_thread ? $thread : '', @frames} += $period / 1e9;
			undef $thread;
		}
	}
	return \%weight;
}

sub total {
	my $sum = 0;
	$sum += $_ for values %{$_[0]};
	return $sum;
}

my ($what, $read, $other, @rest) = @ARGV;
my $got = read_json($read);
my $weights = stacks_of($got);
if ($what eq 'same') {
	my $want = read_json($other);
	my $them = stacks_of($want);
	for (qw(samples unit)) {
		wrong("$_: $got->{$_} and $want->{$_}") if $got->{$_} ne $want->{$_};
	}
	my @threads = map { join ', ', sort @{$_->{threads}} } $got, $want;
	wrong("threads: $threads[0] and $threads[1]") if $threads[0] ne $threads[1];
	for (sort keys %{{ %$weights, %$them }}) {
		my ($x, $y) = ($weights->{$_} // 0, $them->{$_} // 0);
		wrong("$_: $x and $y") if abs($x - $y) > 1.5e-6;
	}
} elsif ($what eq 'folded') {
	my %named;
	$named{join ';', @{$_->{frames}}} += $_->{weight} for @{$got->{stacks}};
	for (split /\n/, Encode::decode('UTF-8', slurp($other))) {
		my ($stack, $sum) = /^(.*) (\d+)$/;
		my $weight = delete $named{$stack} // 0;
		wrong("$stack: $weight, not $sum") if $weight != $sum;
	}
	wrong("not in the lines: $_") for sort keys %named;
} elsif ($what eq 'exact') {
	my $ns = $got->{unit} eq 'tracing-ms' ? 1e6 : 1;
	for (split /\n/, Encode::decode('UTF-8', slurp($other))) {
		if (/^\d+$/) {
			wrong("$got->{flows} arrows, not $_") if defined $got->{flows} && $got->{flows} != $_;
			next;
		}
		my ($event, $stack, $sum) = /^(\w+) (.*) \S+ (\d+)$/;
		$stack =~ s/;/ on CPU;/ if $event eq 'sample' && $got->{unit} ne 'tracing-ms';
		$stack =~ s{ (\d+/\d+;)}{ on CPU $1} if $event eq 'sample' && $got->{unit} eq 'tracing-ms';
		my $weight = (delete $weights->{$stack} // 0) * $ns;
		wrong("$stack: $weight ns, not $sum") if abs($weight - $sum) > 1e-9 * $sum;
	}
	wrong("not in the recording: $_") for sort keys %$weights;
} elsif ($what eq 'truth') {
	my ($event, $limit) = @rest;
	my %named;
	for (keys %$weights) {
		my $name = s{^[^;]* (?=\d+/\d+;)}{}r;
		$name =~ s/(^|;)\?\?\? \([^;]*\)(?=;|$)/$1\[unknown]/g;
		$named{$name} += $weights->{$_};
	}
	my $true = truth($other, $event, grep { $_->{thread} ne '' } @{$got->{stacks}});
	my ($sum, $true_sum, $misplaced) = (total(\%named), total($true), 0);
	for (sort keys %{{ %named, %$true }}) {
		my ($x, $y) = ($named{$_} // 0, $true->{$_} // 0);
		wrong("not shown: $_") if !$x && ($y > 2e-6 || $got->{unit} ne 'seconds');
		wrong("not in the capture: $_") if !$y;
		wrong("$_: $x s, not $y s") if $got->{unit} eq 'seconds' && abs($x - $y) > 2e-6 + 1e-9 * $y;
		$misplaced += abs($x / $sum - $y / $true_sum) / 2;
	}
	printf "misplaced: %.3f %%\n", 100 * $misplaced;
	wrong("more than $limit %") if 100 * $misplaced > $limit;
}
exit $failed;
