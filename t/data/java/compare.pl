#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# compare.pl JSTACK: compares the stacks of a recording (symbolize --format=json, on
# stdin) with what jstack printed for the threads that have a name without
# space: methods, files and lines, in order. Prints "THREAD METHODS ok", or what
# differs.
use strict;
use warnings;
use Cpanel::JSON::XS;

my (%name, %want, $tid, $apart);
open my $f, '<', shift or die $!;
while (<$f>) {
	$apart = 1 if /^Full thread dump .* \(11\./;
	if (/^"([a-z]+)" .*nid=(0x)?([0-9a-f]+)/) { # decimal from 19 on
		$tid = $2 ? hex $3 : $3;
		$name{$tid} = $1;
		$want{$tid} = [];
	} elsif (/^$/) {
		undef $tid;
	} elsif (defined $tid && m{^\tat (.*)\((?:[^/)]*/)?(Native Method|Unknown Source|[^:)]*):?(\d*)\)}) {
		my ($method, $file, $line) = ($1, $2, $3);

		# the address of a class without a name of its own is not a part of the name that it has
		$method =~ s{/0x[0-9a-f]{16}(?=\.)}{} if $apart;
		push @{$want{$tid}}, $method . ($line ne '' ? " $file:$line" : '');
	}
}
my %got;
while (<STDIN>) {
	my $w = decode_json($_);
	next if $w->{type} ne 'wait' || !$name{$w->{tid}} || !$w->{user_stack};
	my @java = map { ($_->{function} // '?') . ($_->{line} ? " $_->{file}:$_->{line}" : '') }
		grep { ($_->{runtime} // '') eq 'java' } @{$w->{user_stack}};
	my $native = grep { !$_->{runtime} && ($_->{module} // '') eq '//anon' } @{$w->{user_stack}};
	my $end = $w->{user_stack}[-1]{symbol} // (($w->{user_stack}[-1]{module} // '') =~ m{([^/]+)$})[0] // '?';

	$got{$w->{tid}}{join("\n", "$w->{user_stack_verdict}, $native unnamed, from $end", @java)} = 1;
}
for my $t (sort { $name{$a} cmp $name{$b} } keys %name) {
	my $want = join("\n", @{$want{$t}});
	my @bad;
	my $stacks = keys %{$got{$t} // {}};

	for my $stack (keys %{$got{$t} // {}}) {
		my ($head, $java) = split /\n/, $stack, 2;

		# nameless: the stub by which the virtual machine calls Java, and one that a compiled method calls
		push @bad, "$head\n$java" if $java ne $want || $head !~ /^complete, [12] unnamed, from (?:(?:__)?clone3|_start|libc\.so\.6)/;
	}
	print "$name{$t} ", scalar @{$want{$t}}, !$stacks ? " none\n" : !@bad ? " ok\n" : " differs\n";
	print "want\n$want\ngot $_\n" for @bad;
}
