#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# truth - what symbolize says about a file without local symbols, compared with the symbols it had
#
#   truth SYMBOLS ADDRESSES OUTPUT
#
# SYMBOLS is the file with the whole symbol table, ADDRESSES has one virtual address a line, OUTPUT is
# symbolize's text with a frame for each of them. Only addresses that a function with a size covers count. A name
# must be one of those of the innermost such function, a label [FILE+0xSTART] must have its start, and
# nothing else is right. Prints "names=RIGHT/ALL labels=RIGHT/ALL alone=N", then the first that are wrong; alone:
# those with neither. Exit 1 if any is wrong.
use strict;
use warnings;

my ($elf, $addresses, $output) = @ARGV;
my (%size, %names);
open my $re, '-|', "readelf -sW '$elf' 2>/dev/null" or die;
while (<$re>) {
	my (undef, $value, $size, $type, undef, undef, $ndx, $name) = split;
	next unless defined $name && $name ne 'Name' && $ndx ne 'UND' && $type =~ /FUNC$/;
	$size = hex $size if $size =~ /^0x/;
	$name =~ s/@.*//;
	my $at = hex $value;
	push @{ $names{$at} }, [ $size, $name ];
	$size{$at} = $size if $size > ($size{$at} // 0);
}
close $re;
my @starts = sort { $a <=> $b } keys %size;

# the start of the innermost function that covers AT
sub start_of {
	my ($at) = @_;
	my ($lo, $hi) = (0, scalar @starts);
	while ($lo < $hi) {
		my $mid = int(($lo + $hi) / 2);
		if ($starts[$mid] <= $at) { $lo = $mid + 1 } else { $hi = $mid }
	}
	for my $back (1 .. 8) {
		last if $lo < $back;
		my $s = $starts[ $lo - $back ];
		return $s if $at < $s + $size{$s};
	}
	return undef;
}

my (%n, @wrong);
$n{$_} = 0 for qw(names names_right labels labels_right alone);
open my $in, '<', $addresses or die "$addresses: $!\n";
open my $out, '<', $output or die "$output: $!\n";
my @frames = map { /^\t *[0-9a-f]+ (.*) \(/ ? $1 : () } <$out>;
my @at = map { /([0-9a-f]+)$/ ? hex $1 : () } <$in>;
die "truth: " . @frames . " frames for " . @at . " addresses\n" if @frames != @at;
for my $i (0 .. $#at) {
	my ($at, $frame) = ($at[$i], $frames[$i]);
	my $start = start_of($at);
	next unless defined $start;
	my $right;
	if ($frame =~ /^\[[^\]]*\+0x([0-9a-f]+)\](\+0x[0-9a-f]+)?$/) {
		my ($of, $suffix) = (hex $1, $2);
		if (!defined $suffix) { $n{alone}++; next }
		$n{labels}++;
		$right = $of == $start;
		$n{labels_right} += $right;
	} else {
		(my $name = $frame) =~ s/\+0x[0-9a-f]+$//;
		next if $name =~ /\@plt$/;
		$n{names}++;
		$right = grep { $_->[1] eq $name } @{ $names{$start} };
		$n{names_right} += !!$right;
	}
	push @wrong, sprintf("%x %s, not %s at %x", $at, $frame, $names{$start}[0][1], $start) unless $right;
}
print "names=$n{names_right}/$n{names} labels=$n{labels_right}/$n{labels} alone=$n{alone}\n";
print "$_\n" for @wrong > 10 ? @wrong[ 0 .. 9 ] : @wrong;
exit !!@wrong;
