#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# symbols - the cost of an address with inlined calls and lines: symbolize (with a disk cache that the first
# run filled, and without one, like the others), llvm-symbolizer, addr2line
#
#   symbols [-g DEBUG] [-d DIR] [-n RUNS] [-a MAX] [-r REFERENCE] NAME FILE DISTINCT TOTAL
#
# The cost is the CPU time (user and system, with children), minus that of one address of the
# same file, divided by TOTAL. Both times are the lowest of RUNS runs (symbolize: 2 * RUNS).
# Memory is the maximum of one process. DEBUG is the debug file for the other two tools, DIR is
# symbolize's --debug-dir. addr2line is skipped if TOTAL is above MAX.
#
# REFERENCE is "BLAZESYM/LLVM/ADDR2LINE" in us per address, measured together on one machine;
# 0 = not measured. The target is half of blazesym's cost. It is also printed scaled by the cost
# of each of the other two in this run, relative to the reference.
#
# STACKTOOLS_BIN and STACKTOOLS_OBJ choose the build to measure.
use strict;
use warnings;
use File::Temp qw(tempdir);
use Getopt::Std;

my %o = (n => 3, a => 1e9);
getopts('g:d:n:a:r:', \%o) && @ARGV == 4 or die "usage: symbols [OPTION...] NAME FILE DISTINCT TOTAL\n";
my ($name, $file, $distinct, $total) = @ARGV;
my $tmp = tempdir('stacktools-bench.XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $bin = $ENV{STACKTOOLS_BIN} // 'bin';
my $gen = ($ENV{STACKTOOLS_OBJ} // 'obj') . '/t/unit/resolve';
my ($llvm) = grep { -x } map { my $c = $_; map { "$_/$c" } split /:/, $ENV{PATH} } qw(llvm-symbolizer-19 llvm-symbolizer);
my $theirs = $o{g} // $file;
my $WAIT4 = 61;	# x86_64
$ENV{DEBUGINFOD_URLS} = '';

# Returns the CPU time in ms and the maximum memory in MB.
sub once {
	my ($command) = @_;
	my $pid = fork() // die "symbols: fork: $!\n";
	if (!$pid) {
		exec '/bin/sh', '-c', "exec $command";
		exit 127;
	}
	my ($status, $usage) = (pack('l', 0), "\0" x 144);
	syscall($WAIT4, $pid, $status, 0, $usage) == $pid or die "symbols: wait4: $!\n";
	my ($us, $uu, $ss, $su, $rss) = unpack('q5', $usage);
	die "symbols: status ", unpack('l', $status), " of $command\n" if unpack('l', $status);
	return (($us + $ss) * 1e3 + ($uu + $su) / 1e3, $rss / 1024);
}

sub least {
	my ($command, $runs) = @_;
	my ($cpu, $mem) = (9e9, 0);
	for (1 .. $runs) {
		my ($c, $m) = once($command);
		$cpu = $c if $c < $cpu;
		$mem = $m if $m > $mem;
	}
	return ($cpu, $mem);
}

my $symbolize = "$bin/symbolize -q --no-demangle --lines " . ($o{d} ? "--debug-dir '$o{d}' " : '') . '%s.cap >/dev/null';
my %command = (
	symbolize => "env STACKTOOLS_CACHE=$tmp/cache $symbolize",
	uncached => "env STACKTOOLS_CACHE= $symbolize",
	llvm => $llvm && "$llvm --functions=linkage --no-demangle --inlines -e '$theirs' <%s >/dev/null",
	addr2line => "addr2line -f -i -e '$theirs' <%s >/dev/null",
);
system("'$gen' --gen $tmp/one.cap '$file' 1 1 >$tmp/one") == 0 or exit 2;
system("'$gen' --gen $tmp/all.cap '$file' $distinct $total >$tmp/all") == 0 or exit 2;
my (%us, %mb);
for my $who (qw(symbolize uncached llvm addr2line)) {
	next if !$command{$who} || ($who eq 'addr2line' && $total > $o{a});
	my $runs = $who eq 'symbolize' ? 2 * $o{n} : $o{n};	# one fills the cache
	my ($one) = least(sprintf($command{$who}, "$tmp/one"), $runs);
	(my $all, $mb{$who}) = least(sprintf($command{$who}, "$tmp/all"), $runs);
	$us{$who} = ($all - $one) * 1e3 / $total;
	printf "%s, %d of %d: %-9s %9.2f us an address and %.1f ms for the first, %.0f MB\n",
		$name, $total, $distinct, $who, $us{$who}, $one, $mb{$who};
}
exit 0 if !$o{r};
my ($blaze, $llvm_then, $addr2line_then) = split m{/}, $o{r};
for my $who (qw(symbolize uncached)) {
	my $verdict = sub { return $us{$who} <= $_[0] ? 'ok' : 'MISSED' };
	printf "%s, %d of %d: %s: the target is half of blazesym's %.2f us: %.2f %s", $name, $total, $distinct, $who, $blaze,
		$blaze / 2, $verdict->($blaze / 2);
	for ([ 'llvm', $llvm_then ], [ 'addr2line', $addr2line_then ]) {
		my ($peer, $then) = @$_;
		next if !$then || !$us{$peer};
		my $scaled = $blaze / 2 * $us{$peer} / $then;
		printf "; scaled by %s %.2f %s", $peer, $scaled, $verdict->($scaled);
	}
	print "\n";
}
