#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Rows of call frame information, one a line: address, CFA, rbp, ra, rbx.
#
#   readelf -wF FILE | readelf.pl          as readelf tells them
#   unwindinfo FILE | readelf.pl --ours    as unwindinfo does
#
# Both in one form: sorted by address, gaps as "none", a row that says what the
# one before says left out. readelf calls every expression "exp".
# rbx stands where a row has room for it: a CFA by register, ra at c-8.
use strict;
use warnings;
no warnings 'portable';	# addresses of 64 bits

my $ours = @ARGV && $ARGV[0] eq '--ours';
my (@rows, %range, $pc, $end, @columns);

# rbx in the form of both: unknown where it is anything but kept or saved below the CFA.
sub with_rbx {
	my ($cfa, $rbp, $ra, $rbx) = @_;

	return join ' ', $cfa, $rbp // (), $ra // () if $cfa eq 'exp' || ($ra // '') ne 'c-8';
	return join ' ', $cfa, $rbp, $ra, ($rbx // 'u') =~ /^(u|c-\d+)$/ ? $1 : '?';
}

sub ours {
	while (<STDIN>) {
		next unless /^([0-9a-f]{16}) (.*)/;
		my ($at, @f) = ($1, split ' ', $2);
		@f = 'none' if @f && $f[-1] eq 'in-syscall';	# by the code, not by the section
		s/^(?:\*|plt).*/exp/ for @f;
		push @rows, [hex $at, with_rbx(grep { defined && $_ ne 'signal' } @f[0 .. 3])];
	}
}

# What one line of readelf says, in our columns.
sub row {
	my ($cfa, $others) = @_;
	my %at;

	$others =~ s/r\d+ \((\w+)\)/$1/g;	# "r5 (rdi)"
	@at{@columns} = split ' ', $others;
	return with_rbx($cfa, $at{rbp} // 'u', ($at{ra} // 'u') eq 'u' ? 'end' : $at{ra}, $at{rbx});
}

# An FDE without instructions is printed without rows: it has its CIE's.
sub theirs {
	my (%initial, $cie, $shown);
	my $finish = sub { push @rows, [$pc, $initial{$cie}] if defined $pc && !$shown };

	while (<STDIN>) {
		if (/^[0-9a-f]+ [0-9a-f]+ [0-9a-f]+ FDE cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.([0-9a-f]+)/) {
			$finish->();
			($cie, $pc, $end, $shown) = ($1, hex $2, hex $3, 0);
			$range{$pc} = $end;
		} elsif (/^([0-9a-f]+) [0-9a-f]+ [0-9a-f]+ CIE/) {
			$finish->();
			($cie, $pc) = ($1, undef);
		} elsif (/^\s+LOC\s+CFA\s*(.*)/) {
			@columns = split ' ', $1;
		} elsif (/^([0-9a-f]{16}) +(\S+)\s*(.*)/ && defined $pc) {
			push @rows, [hex $1, row($2, $3)];
			$shown = 1;
		} elsif (/^([0-9a-f]{16}) +(\S+)\s*(.*)/ && defined $cie) {
			$initial{$cie} = row($2, $3);
		}
	}
	$finish->();
	for my $from (keys %range) {
		push @rows, [$range{$from}, 'none'] unless exists $range{ $range{$from} };
	}
}

$ours ? ours() : theirs();
my $last = 'none';
for my $r (sort { $a->[0] <=> $b->[0] } @rows) {
	printf "%x %s\n", @$r if $r->[1] ne $last;
	$last = $r->[1];
}
