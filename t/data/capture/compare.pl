#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# compare.pl RECORDS JSON - what decode.pl read, and what capinfo --json says:
# every field that both have, and sums made here from the records.
use strict;
use warnings;
use Cpanel::JSON::XS;
use Math::BigInt;

my ($records, $json) = @ARGV;
my $max = Math::BigInt->new('18446744073709551615');
my $bad = 0;
my %got;	# kind => [ {field => value} ... ]

open my $in, '<', $records or die "compare.pl: $records: $!\n";
while (<$in>) {
	chomp;
	my ($kind, @f) = split / /;
	next if $kind eq 'format';
	push @{$got{$kind}}, {map { split /=/, $_, 2 } @f};
}
open my $j, '<:raw', $json or die "compare.pl: $json: $!\n";
my $said = Cpanel::JSON::XS->new->utf8->decode(do { local $/; <$j> });

sub same {
	my ($want, $have, $what) = @_;
	return if "$want" eq "$have";
	print "$what: the file has '$want', capinfo says '$have'\n";
	$bad++;
}

# as text_escape() for JSON leaves it: U+FFFD for each byte that is not UTF-8
sub text {
	my ($s) = @_;
	$s =~ s/\\x(..)/chr hex $1/ge;
	return $s if utf8::decode($s);
	$s =~ s/[\x80-\xff]/\x{fffd}/g;
	return $s;
}

sub hexa { return sprintf '%x', $_[0] }
sub sum { my $s = Math::BigInt->bzero; $s->badd($_) for @_; return $s > $max ? $max : $s }
sub biggest { my $m = Math::BigInt->bzero; for (@_) { my $v = Math::BigInt->new($_); $m = $v if $v > $m } return $m }
sub distinct { my %h = map { $_ => 1 } @_; return scalar keys %h }

my $host = $got{host}[0];
for (qw(sysname release version machine hostname boot_id recorder)) { same(text($host->{$_}), $said->{host}{$_}, "host $_") }
for (qw(start_mono_ns start_boot_ns start_real_ns max_stack cpus page_size kernel_build_id)) { same($host->{$_}, $said->{host}{$_}, "host $_") }
same(hexa($host->{stext}), $said->{host}{stext}, 'stext');

sub each_of {
	my ($kind, $list, $check) = @_;
	my @want = @{$got{$kind} || []};
	same(scalar @want, scalar @$list, "number of $kind records");
	$check->($want[$_], $list->[$_] || {}, "$kind $_") for 0 .. $#want;
}

each_of('option', $said->{options}, sub { my ($w, $h, $n) = @_; same(text($w->{$_}), $h->{$_}, "$n $_") for qw(name value) });
each_of('file', $said->{files}, sub {
	my ($w, $h, $n) = @_;
	same($w->{$_}, $h->{$_}, "$n $_") for qw(build_id dev_major dev_minor inode size mtime_ns);
	same(text($w->{path}), $h->{path}, "$n path");
	same($w->{flags}, ($h->{deleted} ? 1 : 0) + ($h->{unread} ? 2 : 0) + ($h->{pseudo} ? 4 : 0), "$n flags");
});
each_of('mapping', $said->{mappings}, sub {
	my ($w, $h, $n) = @_;
	same($w->{proc}, $h->{process}, "$n process");
	same($w->{file}, defined $h->{file} ? $h->{file} + 1 : 0, "$n file");
	same($w->{$_}, $h->{$_}, "$n $_") for qw(prot flags from_ns);
	same(hexa($w->{$_}), $h->{$_}, "$n $_") for qw(start offset);
	same(hexa(Math::BigInt->new($w->{start})->badd($w->{length})->bstr), $h->{end}, "$n end");
});
each_of('life', $said->{lives}, sub {
	my ($w, $h, $n) = @_;
	same($w->{$_->[0]}, $h->{$_->[1]}, "$n $_->[0]")
	    for ['proc', 'process'], ['tid', 'tid'], ['from_ns', 'from_ns'], ['on_cpu_ns', 'on_cpu_ns'];
	same(Math::BigInt->new($w->{from_ns})->badd($w->{length_ns})->bstr, $h->{to_ns}, "$n to_ns");
	same($w->{runnable_ns}, $h->{runnable_ns} // 'unknown', "$n runnable_ns");
});
each_of('process', $said->{processes}, sub {
	my ($w, $h, $n) = @_;
	same($w->{$_->[0]}, $h->{$_->[1]}, "$n $_->[0]")
	    for ['tgid', 'pid'], ['ns_tgid', 'ns_pid'], ['start_boot_ns', 'start_boot_ns'], ['image_ns', 'image_ns'];
	same(text($w->{$_}), $h->{$_}, "$n $_") for qw(comm exe);
	same($w->{flags}, ($h->{kernel_thread} ? 1 : 0) + ($h->{maps_lost} ? 2 : 0), "$n flags");
	my @s = grep { $_->{proc} == $w->{id} } @{$got{sample}};
	my @t = grep { $_->{proc} == $w->{id} } @{$got{thread}};
	same(sum(map { $_->{count} } @s), $h->{waits}, "$n waits");
	same(sum(map { $_->{count} } grep { $_->{flags} & 1 } @s), $h->{open}, "$n open waits");
	same(sum(map { $_->{total_ns} } @s), $h->{off_cpu_ns}, "$n off-CPU time");
	same(biggest(map { $_->{max_ns} } @s), $h->{longest_ns}, "$n longest");
	same(distinct(map { "$_->{kstack} $_->{ustack}" } @s), $h->{stacks}, "$n stacks");
	same(distinct(map { $_->{tid} } @s, @t), $h->{threads}, "$n threads");
});

my (%count, %names, %group);
$count{$_->{name}} = $_->{value} for @{$got{counter}};
my %have = (%{$said->{counters}}, %{$said->{lost}});
same(join(' ', sort keys %count), join(' ', sort keys %have), 'names of counters');
same($count{$_}, $have{$_}, "counter $_") for keys %count;
same(0, scalar(grep { !/^lost\./ } keys %{$said->{lost}}), 'counters among the losses');

$names{"$_->{proc} $_->{tid}"} = text($_->{comm}) for @{$got{thread}};
same(scalar keys %names, scalar @{$said->{threads}}, 'number of threads');
same($names{"$_->{process} $_->{tid}"}, $_->{comm}, "name of thread $_->{tid}") for @{$said->{threads}};

$group{join ' ', @$_{qw(kind verdict reason error)}}++ for @{$got{stack}};
same(join(',', sort { $a <=> $b } values %group), join(',', sort { $a <=> $b } map { $_->{stacks} } @{$said->{stacks}}), 'stacks by verdict');
same($got{flush}[-1]{time_ns}, $said->{last_flush_ns}, 'last flush');
same($got{trailer}[0]{stop_ns}, $said->{stop_ns}, 'stop');
same(text($got{trailer}[0]{why}), $said->{stopped_by}, 'why');
same($got{trailer}[0]{stop_ns} - $host->{start_mono_ns}, $said->{duration_ns}, 'duration');
my @s = @{$got{sample}};
same(distinct(map { join ' ', @$_{qw(proc tid kstack ustack state flags)} } @s), $said->{totals}{samples}, 'samples');
same(sum(map { $_->{count} } @s), $said->{totals}{waits}, 'waits');
same(scalar @{$got{image}}, $said->{totals}{images}, 'images');
same(distinct(map { "$_->{file} $_->{offset}" } @{$got{name}}), $said->{totals}{names}, 'names');
same(distinct(map { join ' ', @$_{qw(proc start from_ns kind)} } @{$got{jit}}), $said->{totals}{jit}, 'pieces of JIT code');
exit($bad ? 1 : 0);
