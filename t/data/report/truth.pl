# SPDX-License-Identifier: GPL-2.0-or-later
# A random text of symbolize, and what stackreport --tsv must make of it, computed from the waits
# that the text was written from:
#
#   perl truth.pl SEED DIR    writes DIR/text and DIR/stack, function, thread, process, kind, module, state, all,
#                             lock, function-NAME and summary (words and numbers of the JSON object)
use strict;
use warnings;
use integer;

my ($seed, $dir) = @ARGV;
srand $seed;

my $duration = 5_000_000_000;
my @kinds = qw(lock sleep disk-read poll idle child);
my @calls = ('', qw(futex read epoll_wait nanosleep));
my @threads = map { { pid => 100 + $_ % 4, tid => $_ < 4 ? 100 + $_ : 1000 + $_, comm => $_ < 4 ? "main-$_" : "worker x$_" } } 0 .. 15;
my @waits;

for my $i (0 .. 399) {
	my $depth = int rand 7;
	my @user = map { 'f' . int rand 9 } 1 .. $depth;
	unshift @user, 'main' if $depth;
	my %w = (%{ $threads[rand @threads] }, user => \@user, call => $calls[rand @calls],
		kind => $kinds[rand @kinds], state => (qw(S D R))[rand 3], count => 1 + int rand 50,
		module => $depth ? '/lib/m' . int(rand 4) . '.so' : '', open => 0, initial => 0);

	$w{total} = 1000 + int rand 900_000_000;
	$w{max} = 1 + int($w{total} / $w{count}) + int rand 100;
	$w{runnable} = int rand $w{total} if 7 > int rand 10;
	push @waits, \%w;
}
# threads that wait once for the others: set aside; two that only seem to; and a deadlock, which is the answer
for my $i (0 .. 3) {
	push @waits, { %{ $threads[$i] }, user => ['main', 'wait_for_all'], call => 'wait4', kind => 'child', state => 'S',
		count => 1, total => $duration - $i, max => $duration - $i, module => '/bin/x', open => 1, initial => 1 };
	push @waits, { %{ $threads[$i] }, user => ['main', 'not_quite'], call => 'read', kind => 'pipe', state => 'S',
		count => 1, total => $duration / 100 * 98 + $i, max => $duration / 100 * 98 + $i, module => '/bin/x', open => 1, initial => 1 };
	push @waits, { %{ $threads[$i] }, user => ['main', 'often'], call => 'poll', kind => 'poll', state => 'S',
		count => 2, total => $duration - $i, max => $duration - $i, module => '/bin/x', open => 1, initial => 1 } if $i == 1;
	push @waits, { %{ $threads[$i] }, user => ['main', 'often'], call => 'poll', kind => 'poll', state => 'S',
		count => 1, total => $duration - $i, max => $duration - $i, module => '/bin/x', open => 1, initial => 1 } if $i == 2;
	push @waits, { %{ $threads[$i] }, user => ['main', 'deadlock'], call => 'futex', kind => 'lock', state => 'S',
		count => 1, total => $duration - $i - 4, max => $duration - $i - 4, module => '/bin/x', open => 1, initial => 1 };
}

sub file {
	my ($name, @lines) = @_;
	open my $f, '>', "$dir/$name" or die "$dir/$name: $!";
	print $f map { "$_\n" } @lines;
	close $f or die;
}

# the text; kernel frames differ below the system call, which must not split places
my @text = ('# stacktools perf-script 1', '# host: hostname=x recorder=y start=2026-01-01T00:00:00Z duration=5.000',
	'# lost: name=lost.ring_full count=7');
for my $w (@waits) {
	my @kernel = ('__schedule', 'schedule', (map { 'k' . int rand 5 } 1 .. rand 3));
	push @kernel, "__x64_sys_$w->{call}", 'do_syscall_64' if $w->{call};
	push @text, join ' ', '# wait:', "count=$w->{count}", "total_ns=$w->{total}", "max_ns=$w->{max}", "state=$w->{state}",
		"open=$w->{open}", "initial=$w->{initial}", 'preempted=0', "kind=$w->{kind}",
		(defined $w->{runnable} ? "runnable_ns=$w->{runnable}" : ()), 'kernel=complete', 'user=complete';
	push @text, "$w->{comm} $w->{pid}/$w->{tid} [000] 1.000000001: $w->{total} offcpu-time: ";
	push @text, map { sprintf "\tffffffff%08x %s+0x%x ([kernel.kallsyms])", 0x81000000 + rand 1000, $_, 1 + rand 99 } @kernel;
	push @text, map { sprintf "\t%16x %s+0x%x (%s)", 0x55000000 + rand 1000, $_, 1 + rand 99, $w->{module} } reverse @{ $w->{user} };
	push @text, '';
	# without user functions and system call it is the kernel's functions that tell places apart
	$w->{functions} = @{ $w->{user} } || $w->{call} ? $w->{user} : [reverse grep { !/schedule/ } @kernel];
}
file('text', @text);

sub place { join "\0", join(';', @{ $_[0]{functions} }), $_[0]{call}, $_[0]{kind} }

my %place;
for my $w (@waits) {
	my $p = $place{ place($w) } //= { count => 0, whole => 0, threads => {} };
	$p->{count} += $w->{count};
	$p->{whole}++ if $w->{open} && $w->{initial} && 100 * $w->{total} >= 99 * $duration;
	$p->{threads}{"$w->{pid}/$w->{tid}"} = 1;
}
sub once {
	return 0 if $_[0]{kind} =~ /^(lock|disk-read)$/;
	my $p = $place{ place($_[0]) };
	my $n = keys %{ $p->{threads} };
	return $p->{count} == $n && $p->{whole} == $n;
}
my @ranked = grep { $_->{kind} ne 'idle' && !once($_) } @waits;

# rows of waits, grouped by the names that NAMES gives for a wait, each once; the greatest first
sub rows {
	my ($names, $self, @of) = @_;
	my %g;
	for my $w (@of) {
		my %once = map { $_ => 1 } $names->($w);
		for my $name (keys %once) {
			my $g = $g{$name} //= { name => $name, total => 0, self => 0, count => 0, single => 0, max => 0, threads => {} };
			$g->{total} += $w->{total};
			$g->{self} += $w->{total} if $self && (@{ $w->{functions} } ? $w->{functions}[-1] : '') eq $name;
			$g->{count} += $w->{count};
			$g->{single} += $w->{count} == 1 && $w->{max} == $w->{total};
			$g->{max} = $w->{max} if $w->{max} > $g->{max};
			$g->{threads}{"$w->{pid}/$w->{tid}"} = 1;
		}
	}
	return sort { $b->{total} <=> $a->{total} || $a->{name} cmp $b->{name} } values %g;
}

# SELF: 1, or 0 for an empty field, or undef for none. Of less than 100 waits the 99th percentile is the longest.
sub numbers {
	my ($g, $self, $no_p99) = @_;
	my $mean = $g->{total} / $g->{count};
	$mean++ if 2 * ($g->{total} % $g->{count}) >= $g->{count};
	return ($g->{total}, (defined $self ? $self ? $g->{self} : '' : ()), $g->{count}, $mean,
		!$no_p99 && $g->{single} == $g->{count} ? $g->{max} : '', $g->{max}, scalar keys %{ $g->{threads} });
}

sub table {
	my ($file, $head, $names, $self, @of) = @_;
	my $rank = 0;
	file($file, join("\t", 'rank', 'total_ns', ($self ? 'self_ns' : ()), qw(count mean_ns p99_ns max_ns threads), @$head),
		map { join "\t", ++$rank, numbers($_, $self || undef), $_->{name} } rows($names, $self, @of));
}

my $stack = sub { my $w = shift; join "\t", $w->{kind}, $w->{call}, join ';', @{ $w->{functions} } };
my %main = map { $_->{pid} => $_->{comm} } grep { $_->{pid} == $_->{tid} } @threads;
table('stack', [qw(kind syscall stack)], $stack, 0, @ranked);
table('all', [qw(kind syscall stack)], $stack, 0, @waits);
table('idle', [qw(kind syscall stack)], $stack, 0, grep { !once($_) } @waits);
table('lock', [qw(kind syscall stack)], $stack, 0, grep { $_->{kind} eq 'lock' || $_->{kind} eq 'poll' } @waits);
table('function', ['function'], sub { my @f = @{ $_[0]{functions} }; @f ? @f : '' }, 1, @ranked);
table('thread', [qw(comm pid tid)], sub { "$_[0]{comm}\t$_[0]{pid}\t$_[0]{tid}" }, 0, @ranked);
table('process', [qw(comm pid)], sub { "$main{$_[0]{pid}}\t$_[0]{pid}" }, 0, @ranked);
table('kind', ['kind'], sub { $_[0]{kind} }, 0, @ranked);
table('module', ['module'], sub { $_[0]{module} }, 0, @ranked);
table('state', ['state'], sub { $_[0]{state} }, 0, @ranked);

# callers and callees of f3
my $name = 'f3';
my @of = grep { grep { $_ eq $name } @{ $_[0] // $_->{functions} } } @waits;
my ($all) = rows(sub { $name }, 1, @of);
my @lines = ("relation\ttotal_ns\tself_ns\tcount\tmean_ns\tp99_ns\tmax_ns\tthreads\tfunction", join "\t", 'function', numbers($all, 1, 1), $name);
my $callers = sub { my @f = ('', @{ $_[0]{functions} }); map { $f[$_ - 1] } grep { $f[$_] eq $name } 1 .. $#f };
my $callees = sub { my @f = @{ $_[0]{functions} };
	map { $_ < $#f ? "callee\t$f[$_ + 1]" : $_[0]{call} ? "syscall\t$_[0]{call}" : () } grep { $f[$_] eq $name } 0 .. $#f };
push @lines, map { join "\t", 'caller', numbers($_, 0), $_->{name} } rows($callers, 0, @of);
push @lines, map { my ($what, $who) = split /\t/, $_->{name}; join "\t", $what, numbers($_, 0), $who } rows($callees, 0, @of);
file('function-f3', @lines);

sub sum { my $n = 0; $n += $_ for @_; return $n }
my @busy = grep { $_->{kind} ne 'idle' } @waits;
my @split = grep { defined $_->{runnable} } @busy;
my %idle_places = map { place($_) => 1 } grep { $_->{kind} eq 'idle' } @waits;
my @once = grep { once($_) && $_->{kind} ne 'idle' } @waits;
file('summary', "elapsed_ns=$duration", 'processes=4', 'threads=16', 'total_ns=' . sum(map { $_->{total} } @waits),
	'count=' . sum(map { $_->{count} } @waits), 'idle_ns=' . sum(map { $_->{total} } grep { $_->{kind} eq 'idle' } @waits),
	'not_idle_blocked_ns=' . sum(map { $_->{total} - $_->{runnable} } @split),
	'not_idle_runnable_ns=' . sum(map { $_->{runnable} } @split), 'lost.ring_full=7',
	'ranked_ns=' . sum(map { $_->{total} } @ranked),
	'idle_places=' . keys %idle_places, 'once_total_ns=' . sum(map { $_->{total} } @once), 'once_threads=4');
