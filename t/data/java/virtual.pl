#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# virtual.pl DUMP JSTACK: compares the stacks of carriers in a recording (symbolize
# --format=json, on stdin) with what jcmd's Thread.dump_to_file says of the virtual
# threads pinned and resumed, and jstack of their carriers. Prints for each thread its verdict and
# "ok", or what differs. Frames of "resumed" may be missing where its carrier's begin.
use strict;
use warnings;
use Cpanel::JSON::XS;

my (%want, %id, %tid, %carrier, $at);
my $frame = qr{^\s+(?:at )?(?:[\w.]+(?:@[\w.]+)?/)?([\w.\$/<>]+)\((?:[^/)]*/)?(?:Native Method|Unknown Source|([^:)]*):?(\d*))\)};

sub name { $_[2] ? "$_[0] $_[1]:$_[2]" : $_[0] }

open my $f, '<', shift or die $!;
while (<$f>) {
	if (/^#(\d+) "(.*?)"( virtual)?/) {
		$at = $3 ? $2 : undef;
		$id{$1} = $2 if $3;
	} elsif ($at && /$frame/) {
		push @{$want{$at}}, name($1, $2, $3);
	}
}
my $tid;
open $f, '<', shift or die $!;
while (<$f>) {
	$tid = $1 if /^".*?" .*\[(\d+)\]/;
	undef $tid if /^$/ || /Mounted virtual thread/;
	$tid{$tid} = $id{$1} if $tid && /Carrying virtual thread #(\d+)/;
	push @{$carrier{$tid}}, name($1, $2, $3) if $tid && /$frame/;
}
my %got;
while (<STDIN>) {
	my $w = decode_json($_);
	next if $w->{type} ne 'wait' || !$w->{user_stack} || !$tid{$w->{tid}};
	my $name = $tid{$w->{tid}};
	my @java = map { name($_->{function} // '?', $_->{file}, $_->{line}) } grep { ($_->{runtime} // '') eq 'java' } @{$w->{user_stack}};
	my $run = 0;

	$run++ until $run > $#java || $java[$run] =~ /^jdk\.internal\.vm\.Continuation\.run /;
	my @carrier = splice @java, $run;
	# what begins a virtual thread is in no dump, nor are hidden classes and methods
	my @begin = map { s/ .*//r } grep { /^(?:jdk\.internal\.vm\.Continuation\.|java\.lang\.VirtualThread\$VThreadContinuation)/ } @java;
	my @own = grep { !/\$\$Lambda|^java\.lang\.Thread\.runWith |^jdk\.internal\.vm\.Continuation\.|^java\.lang\.VirtualThread\$VThreadContinuation/ } @java;
	my @all = @{$want{$name}};
	my $verdict = "$w->{user_stack_verdict}" . ($w->{user_stack}[-1]{module} =~ /libc/ ? '' : ', without its outermost frame');

	$verdict .= ', ' . ("@own" eq "@all" ? 'all' : @own > 1 && "@own" eq "@all[0 .. $#own]" ? 'innermost' : "other\n@own\nwant\n@all\n") . ' frames';
	$verdict .= ", begun by @begin" if @own == @all && "@begin" ne
		'java.lang.VirtualThread$VThreadContinuation$1.run jdk.internal.vm.Continuation.enter0 jdk.internal.vm.Continuation.enter jdk.internal.vm.Continuation.enterSpecial';
	$verdict .= ', ' . ("@carrier" eq "@{$carrier{$w->{tid}}}" ? "its carrier's" : "other carrier's\n@carrier\nwant\n@{$carrier{$w->{tid}}}\n");
	$got{"$name: $verdict"} = 1;
}
print map { "$_\n" } sort keys %got;
