#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# decode.pl FILE - a reader of captures written from docs/capture.5 alone: one
# line a record, for comparing with what capinfo says. It is the proof that
# the page is complete. Numbers are exact (bigint where they pass 2^63).
use strict;
use warnings;

my @crc = map {
	my $c = $_;
	$c = $c & 1 ? ($c >> 1) ^ 0x82f63b78 : $c >> 1 for 1 .. 8;
	$c;
} 0 .. 255;

sub crc32c {
	my $c = 0xffffffff;
	$c = ($c >> 8) ^ $crc[($c ^ $_) & 255] for unpack 'C*', $_[0];
	return $c ^ 0xffffffff;
}

my ($buf, $pos, $end);	# the record being read

sub byte { $pos < $end or die "a field goes past its record\n"; return ord substr $buf, $pos++, 1 }

# perl's integers have 64 bits: shifts and ors are modulo 2^64 by nature
sub uleb {
	my ($v, $shift) = (0, 0);
	while (1) {
		my $b = byte();
		die "a number of more than 64 bits\n" if $shift > 63 || ($shift == 63 && $b & 0x7e);
		$v |= ($b & 0x7f) << $shift;
		return $v unless $b & 0x80;
		$shift += 7;
	}
}

sub uleb32 { my $v = uleb(); $v < 2**32 or die "a number of more than 32 bits\n"; return $v }

sub raw_sleb {	# modulo 2^64
	my ($v, $shift, $b) = (0, 0);
	do {
		$b = byte();
		$v |= ($b & 0x7f) << $shift if $shift < 64;
		$shift += 7;
	} while $b & 0x80;
	$v |= ~0 << $shift if $b & 0x40 && $shift < 64;
	return $v;
}

sub sleb { return unpack 'q', pack 'Q', raw_sleb() }

sub add64 {	# a + b modulo 2^64
	my ($x, $y) = @_;
	my $low = ($x & 0xffffffff) + ($y & 0xffffffff);
	my $high = (($x >> 32) + ($y >> 32) + ($low >> 32)) & 0xffffffff;
	return $high << 32 | $low & 0xffffffff;
}

sub take { my ($n) = @_; $pos + $n <= $end or die "bytes go past their record\n"; $pos += $n; return substr $buf, $pos - $n, $n }
sub bytes { return unpack 'H*', take(uleb()) }
sub str { my $s = take(uleb()); byte() == 0 or die "a string without NUL\n"; $s =~ s/([^!-\[\]-~])/sprintf '\\x%02x', ord $1/ge; return $s }

my @strings;
sub ref_str { my $n = uleb(); $n <= @strings or die "a string that is not there\n"; return $n ? $strings[$n - 1] : '' }

my $first = 0;
my %fields = (
	1 => ['host', sysname => \&str, release => \&str, version => \&str, machine => \&str, hostname => \&str,
		boot_id => \&str, recorder => \&str, kernel_build_id => \&bytes, stext => \&uleb,
		start_mono_ns => \&uleb, start_boot_ns => \&uleb, start_real_ns => \&uleb,
		max_stack => \&uleb32, cpus => \&uleb32, page_size => \&uleb32],
	2 => ['option', name => \&str, value => \&str],
	3 => ['file', id => \&uleb32, dev_major => \&uleb32, dev_minor => \&uleb32, flags => \&uleb32,
		error => \&sleb, inode => \&uleb, size => \&uleb, mtime_ns => \&uleb, build_id => \&bytes,
		path => \&str],
	4 => ['process', id => \&uleb32, tgid => \&uleb32, ns_tgid => \&uleb32, flags => \&uleb32,
		maps_error => \&sleb, start_boot_ns => \&uleb, image_ns => \&uleb, comm => \&str, exe => \&str],
	5 => ['thread', proc => \&uleb32, tid => \&uleb32, ns_tid => \&uleb32, comm => \&str],
	6 => ['mapping', proc => \&uleb32, file => \&uleb32, prot => \&uleb32, flags => \&uleb32,
		from_ns => \&uleb, start => \&uleb, length => \&uleb, offset => \&uleb],
	7 => ['image', file => \&uleb32, data => \&bytes],
	8 => ['ksym', start => \&uleb, length => \&uleb, name => \&str, module => \&str],
	9 => ['stack', id => \&uleb32, kind => \&uleb, verdict => \&uleb, reason => \&uleb, error => \&sleb,
		stop_pc => \&uleb, frames => sub {
			my ($n, $pc, @f) = (uleb32(), 0);
			push @f, sprintf '%x', $pc = add64($pc, raw_sleb()) for 1 .. $n;
			return join ',', @f;
		}, exact => sub {
			return '' if $pos == $end;	# a file of version 1.0, or a stack that has none
			my ($n, $at, @e) = (uleb32(), 0);
			push @e, $at += uleb32() for 1 .. $n;
			return join ',', @e;
		}, scripts => sub {
			return '' if $pos == $end;	# a file before version 1.3, or a stack that has none
			my ($n, $at, @s) = (uleb32(), 0);
			push @s, ($at += uleb32()) . ':' . uleb32() for 1 .. $n;
			return join ',', @s;
		}],
	10 => ['sample', proc => \&uleb32, tid => \&uleb32, kstack => \&uleb32, ustack => \&uleb32,
		state => \&uleb32, flags => \&uleb32, total_ns => \&uleb, count => \&uleb, max_ns => \&uleb,
		first_ns => sub { $first = add64($first, raw_sleb()) }, last_ns => sub { add64($first, raw_sleb()) }],
	11 => ['counter', name => \&str, value => \&uleb],
	12 => ['flush', time_ns => \&uleb],
	13 => ['trailer', stop_ns => \&uleb, why => \&str],
	14 => ['jit', proc => \&uleb32, kind => \&uleb, from_ns => \&uleb, to_ns => sub { add64(uleb(), -1) },
		start => \&uleb, length => \&uleb, name => \&ref_str, file => \&ref_str, line => \&uleb32,
		offset => \&uleb],
	15 => ['name', file => \&uleb32, offset => \&uleb, symbol_offset => \&uleb, source => \&uleb,
		reason => \&uleb, frames => sub {
			return join ';', map { join '|', ref_str(), ref_str(), ref_str(), uleb32(), uleb32() } 1 .. uleb32();
		}, address => sub { $pos == $end ? '' : raw_sleb() }],	# since version 1.3
	16 => ['string', id => \&uleb32, text => sub { push @strings, str(); return $strings[-1] }],
	17 => ['script', id => \&uleb32, runtime => \&str, function => \&str, file => \&str, line => \&uleb32,
		first_line => \&uleb32],
	22 => ['life', proc => \&uleb32, tid => \&uleb32, from_ns => \&uleb, length_ns => \&uleb,
		on_cpu_ns => \&uleb, runnable_ns => sub { $pos == $end ? 'unknown' : uleb() }],
);

open my $in, '<:raw', $ARGV[0] or die "decode.pl: $ARGV[0]: $!\n";
my $file = do { local $/; <$in> };

substr($file, 0, 8) eq "\211stkcap\n" or die "no magic\n";
my ($mark, $header_len, $major, $minor) = unpack 'V V v v', substr $file, 8, 12;
$mark == 0x01020304 or die "byte order\n";
$header_len >= 24 && $header_len <= 4096 or die "header length\n";
unpack('V', substr $file, $header_len - 4, 4) == crc32c(substr $file, 0, $header_len - 4) or die "header checksum\n";
$major <= 1 or die "version\n";
print "format $major.$minor\n";

my ($at, $due) = ($header_len, 0);
while ($at < length $file) {
	my ($sync, $type, $flags, $len, $seq, $crc) = unpack 'a4 v v V V V', substr $file, $at, 20;
	$sync eq 'Sblk' or die "no block at $at\n";
	my $payload = substr $file, $at + 20, $len;
	crc32c(substr($file, $at, 16) . $payload) == $crc or die "checksum of the block at $at\n";
	$seq == $due++ or die "sequence at $at\n";
	$at += 20 + $len;
	next if $flags || !$fields{$type};
	my ($name, @f) = @{$fields{$type}};
	($buf, $pos, $first) = ($payload, 0, 0);
	while ($pos < length $payload) {
		$end = length $payload;
		my $n = uleb();
		my $next = $pos + $n;
		$next <= $end or die "a record goes past its block\n";
		$end = $next;
		my @out = ($name);
		for (my $i = 0; $i < @f; $i += 2) { push @out, "$f[$i]=" . $f[$i + 1]->() }
		print "@out\n";
		$pos = $next;
	}
}
