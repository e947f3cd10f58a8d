#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Change a field of an ELF64 file in place:
#
#   patch.pl FILE machine VALUE            e_machine
#   patch.pl FILE SECTION size|offset|flags VALUE
use strict;
use warnings;
no warnings 'portable';

my ($path, $what, @how) = @ARGV;
open my $f, '+<:raw', $path or die "$path: $!\n";
local $/;
my $elf = <$f>;

sub put {
	my ($at, $format, $value) = @_;
	seek $f, $at, 0;
	print $f pack $format, $value;
	close $f or die "$path: $!\n";
	exit 0;
}

put(18, 'v', oct $how[0]) if $what eq 'machine';
my ($shoff) = unpack 'Q<', substr $elf, 40, 8;
my ($n, $strings) = unpack 'vv', substr $elf, 60, 4;
my $header = sub { unpack 'VVQ<Q<Q<Q<', substr $elf, $shoff + 64 * $_[0], 40 };
my (undef, undef, undef, undef, $names) = $header->($strings);
my %field = (flags => 8, offset => 24, size => 32);
for my $i (0 .. $n - 1) {
	my ($name) = $header->($i);
	put($shoff + 64 * $i + $field{ $how[0] }, 'Q<', hex $how[1])
		if unpack('Z*', substr $elf, $names + $name) eq $what;
}
die "$path has no section $what\n";
