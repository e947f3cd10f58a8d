#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Makes what symbolize --format=tables prints of a recording with events, and what read.pl should find in it:
#
#   perl make.pl SEED N TRUTH >FILE
#
# N waits of five threads of two processes, one after another in each thread, of six stacks with inlined calls, with wakers
# of each sort, and parts on a run queue. The last line of TRUTH is how many of them have a waker.
use strict;
use warnings;

my ($seed, $n, $truth) = @ARGV;
my $state = $seed;
my $start = 5_000_000_000;

# below $_[0]
sub pick {
	use integer;
	$state = $state * 6364136223846793005 + 1442695040888963407;
	return (($state >> 33) & 0x3fffffff) % $_[0];
}

my @lines = (qq({"type":"capture","release":"6.1.0","machine":"x86_64","hostname":"h","boot_id":"b","recorder":"r 1","kernel_build_id":"ab12",)
	. qq("start_real_ns":1700000000000000000,"start_mono_ns":$start,"duration_ns":60000000000,"damage":null,"lost":{}}),
	'{"type":"file","id":4,"path":"/bin/x","build_id":"0123456789abcdef0123456789abcdef01234567"}',
	map { my $p = $_; (qq({"type":"process","id":$p,"pid":@{[10 * $p]},"ns_pid":1,"comm":"p$p","exe":"/bin/x","kthread":false}),
		qq({"type":"mapping","id":$p,"process":$p,"file":4,"start":"0x40000$p","end":"0x50000$p","offset":"0x1000"})) } 1, 2);
my @threads = map { { id => 7 + $_, process => 1 + $_ % 2, tid => 100 + $_, comm => "t$_", at => $start + pick(1000) } } 0 .. 4;
push @lines, qq({"type":"thread","id":$_->{id},"process":$_->{process},"tid":$_->{tid},"ns_tid":1,"comm":"$_->{comm}"}) for @threads;
for my $f (0 .. 9) {
	my $kernel = $f < 3 ? 'true' : 'false';
	my $inlined = $f % 3 == 1 ? qq([{"symbol":"i$f","linkage_name":"i$f","file":"/src/i.c","line":5,"column":1}]) : '[]';
	my $place = $f < 3 ? qq("mapping":null,"address":"0xffffffff8100000$f","module":"kernel")
		: qq("mapping":1,"address":"0x40000$f","module":"/bin/x","module_address":"0x100$f");
	push @lines, qq({"type":"frame","id":$f,"name":"f$f","kernel":$kernel,"exact":false,$place,"linkage_name":"f$f","inlined":$inlined,"file":"/src/f$f.c","line":$f,"column":null});
}
my @stacks = map { my $s = $_; [grep { $_ < 3 || ($_ + $s) % 2 } 0 .. 9] } 0 .. 5;
push @lines, map { qq({"type":"stack","id":$_,"frames":[) . join(',', @{ $stacks[$_] }, $_ % 6 ? $_ : ()) . ']}' } 0 .. 5;
push @{ $stacks[$_] }, $_ for 1 .. 5;
push @lines, '{"type":"waker","id":1,"interrupt":true,"kind":"timer","stack":0}', '{"type":"waker","id":2,"interrupt":false,"stack":1}',
	'{"type":"waker","id":3,"interrupt":false,"thread":9,"stack":2,"waker":1}';

my (@waits, %count, %ns);
my $woken = 0;
for (1 .. $n) {
	my $t = $threads[pick(5)];
	my ($ns, $stack, $waker) = (1 + pick(1_000_000), pick(6), pick(4));
	my @runnable = ('', qq("runnable_ns":0,), qq("runnable_ns":@{[pick($ns)]},), qq("runnable_ns":$ns,));
	my $begin = $t->{at};
	push @waits, [$begin, qq({"type":"wait","thread":$t->{id},"stack":$stack,"count":1,"total_ns":$ns,"first_ns":$begin,"last_ns":$begin,"max_ns":$ns,)
		. $runnable[pick(4)] . qq("kind":"@{[qw(lock poll sleep)[pick(3)]]}","state":"S") . ($waker ? qq(,"waker":$waker) : '') . '}'];
	$woken += $waker != 0;
	$t->{at} += $ns + pick(3) * pick(100_000);
	my $key = join ';', "wait $t->{comm} @{[10 * $t->{process}]}/$t->{tid}",
		map { $_ % 3 == 1 ? ("f$_", "i$_") : "f$_" } reverse @{ $stacks[$stack] };
	$count{$key}++;
	$ns{$key} += $ns;
}
print "$_\n" for @lines, map { $_->[1] } sort { $a->[0] <=> $b->[0] } @waits;
open my $out, '>', $truth or die "$truth: $!";
print $out "$_ $count{$_} $ns{$_}\n" for sort keys %ns;
print $out "$woken\n";
close $out or die;
