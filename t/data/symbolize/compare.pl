#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# compare - do symbolize and another symbolizer name the same?
#
#   compare ELF ADDRESSES OURS THEIRS
#
# ADDRESSES has one virtual address a line, OURS and THEIRS a name each ("??" =
# none). A difference is explained when readelf's tables show that
#   past-end   they name the nearest symbol below, whose size ends before the address
#   inner      they name the nearest symbol below, which has ended (or has no
#              size), where we name one that started before it and covers
#   alias      both name symbols of the same address that both cover
# Prints one line of counts, and the first unexplained differences. Exit 1
# when there is one.
use strict;
use warnings;

my ($elf, @files) = @ARGV;
my %sym;
open my $re, '-|', 'readelf', '-sW', $elf or die;
while (<$re>) {
	my (undef, $value, $size, $type, undef, undef, $ndx, $name) = split;
	next unless defined $name && $name ne 'Name' && $ndx ne 'UND';
	next unless $type =~ /^(FUNC|IFUNC|NOTYPE|GNU_IFUNC)$/;
	$name =~ s/@.*//;
	push @{ $sym{$name} }, [ hex $value, $size =~ /^0x/ ? hex $size : $size ];
}
close $re;

sub covers { my ($s, $at) = @_; return $s->[0] <= $at && $at < $s->[0] + $s->[1] }

sub explain {
	my ($at, $us, $them) = @_;
	my @theirs = grep { $_->[0] <= $at } @{ $sym{$them} // [] };
	my @ours = grep { $_->[0] <= $at } @{ $sym{$us} // [] };
	my ($covering) = grep { covers($_, $at) } @ours;
	for my $t (@theirs) {
		return 'alias' if $covering && covers($t, $at) && $t->[0] == $covering->[0];
		return 'past-end' if $us eq '??' && !covers($t, $at);
		return 'inner' if $covering && !covers($t, $at) && $t->[0] > $covering->[0];
	}
	return 'unexplained';
}

my @in = map { open my $f, '<', $_ or die "$_: $!\n"; [ <$f> ] } @files;
die "different numbers of lines\n" if @{ $in[0] } != @{ $in[1] } || @{ $in[0] } != @{ $in[2] };
my (%n, @odd);
for my $i (0 .. $#{ $in[0] }) {
	my ($at, $us, $them) = map { my $l = $_->[$i]; chomp $l; $l } @in;
	my $kind = $us eq $them ? 'same' : explain(hex $at, $us, $them);
	$n{$kind}++;
	push @odd, "$at $us $them" if $kind eq 'unexplained';
}
print join(' ', map { "$_=$n{$_}" } sort keys %n), "\n";
print "$_\n" for @odd > 10 ? @odd[ 0 .. 9 ] : @odd;
exit !!@odd;
