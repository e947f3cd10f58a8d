# SPDX-License-Identifier: GPL-2.0-or-later
# Processes that block in many ways, again and again. Each writes what Perl itself, by caller(), says about its
# frames to the file $ARGV[0]/NAME before it blocks: its PID (of threads: the thread's ID), then
# "FUNCTION<tab>FILE<tab>LINE" for each frame, the innermost first. The program ends when its standard input does.
use strict;
use warnings;
use threads;
use Socket;
use Time::HiRes ();

my ($out, $included) = @ARGV;
my ($name, %said) = ('');
socketpair my $pipe, my $poke, AF_UNIX, SOCK_STREAM, 0 or die;
$poke->autoflush(1);

# Called on the line that blocks. eval {} is not a function; those of code without a name are {main}.
sub say_where {
	return 0 if $said{$name}++;
	my @at;
	for (my $i = 0; my @c = caller $i; $i++) {
		push @at, [@c[1, 2, 3, 6, 7]];
	}
	my $text = syscall(186) . "\n"; # gettid
	my $inner = shift @at; # of this function
	my ($file, $line) = @$inner;
	for (@at) {
		my ($f, $l, $function, $evaled, $required) = @$_;
		# eval {} has neither
		if ($function eq '(eval)' && !defined $evaled && !defined $required) {
			next;
		}
		$text .= "$function\t$file\t$line\n";
		($file, $line) = ($f, $l);
	}
	$text .= "{main}\t$file\t$line\n" if !threads->tid;
	open my $h, '>', "$out/$name.new" or die;
	print $h $text;
	close $h;
	rename "$out/$name.new", "$out/$name" or die;
	0;
}
sub pause { Time::HiRes::usleep(100000 + say_where()) }
sub deep { my $n = shift; $n ? deep($n - 1) : Time::HiRes::usleep(100000 + say_where()) }
sub outer { my @list = map { inner($_) } 1 .. 2 }
sub inner { select undef, undef, undef, 0.1 + say_where() }

package Over {
	use overload '""' => sub { Time::HiRes::usleep(100000 + main::say_where()); 'x' },
		'+' => \&plus, '<=>' => sub { main::pause(); 0 };
	sub new { bless {}, shift }
	sub plus { Time::HiRes::usleep(100000 + main::say_where()); 1 }
	sub AUTOLOAD { our $AUTOLOAD; return if $AUTOLOAD =~ /DESTROY/; Time::HiRes::usleep(100000 + main::say_where()) }
}
package Tied {
	sub TIESCALAR { bless [], shift }
	sub FETCH { Time::HiRes::usleep(100000 + main::say_where()); 1 }
}
package Gone {
	sub new { bless [], shift }
	sub DESTROY { Time::HiRes::usleep(100000 + main::say_where()) }
}
package Derived {
	our @ISA = 'Base';
	sub run { my $self = shift; $self->SUPER::run(@_) }
}
package Base {
	sub new { bless [], shift }
	sub run { Time::HiRes::usleep(100000 + main::say_where()) }
}
package main;
tie my $tied, 'Tied';
my $anonymous = sub { Time::HiRes::usleep(100000 + say_where()) };
my %ways = (
	sub => sub { pause() },
	deep => sub { deep(80) },
	sleep => sub { select undef, undef, undef, 0.1 + say_where() },
	read => sub { sysread $pipe, my $x, 1 + say_where() },
	line => sub { my $x = <$pipe> . say_where() },
	receive => sub { recv $pipe, my $x, 1 + say_where(), 0 },
	select => sub { vec(my $r = '', fileno $pipe, 1) = 1; select $r, undef, undef, 9 + say_where(); sysread $pipe, my $x, 1 },
	system => sub { system 'sleep', 0.1 + say_where() },
	pipe => sub { open my $h, '-|', 'sleep 0.1; echo'; my $x = readline($h) . say_where() },
	backtick => sub { my $x = `sleep 0.1` . say_where() },
	wait => sub { my $pid = fork; if (!$pid) { Time::HiRes::usleep(100000); kill 9, $$ } waitpid $pid, 0 + say_where() },
	anonymous => sub { $anonymous->() },
	map => sub { outer() },
	method => sub { Derived->new->run(1) },
	sort => sub { my @a = sort { Time::HiRes::usleep(100000 + say_where()); 0 } 1, 2 },
	sortsub => sub { my @a = sort by_pause 1, 2 },
	overload => sub { my $x = 'a' . Over->new },
	plus => sub { my $x = Over->new + 1 },
	autoload => sub { Over->new->missing },
	tie => sub { my $x = "$tied" },
	destroy => sub { my $x = Gone->new; undef $x },
	eval => sub { eval { eval { pause(); 1 }; 1 } },
	string => sub { eval "\n\nTime::HiRes::usleep(100000 + say_where());\n1" or die $@ },
	require => sub { delete $INC{$included}; require $included },
	do => sub { do $included },
	regex => sub { 'a' =~ /a(?{ pause() })/ },
	substitute => sub { (my $x = 'abc') =~ s/b/pause()/e },
	signal => sub { local $SIG{ALRM} = sub { pause() }; kill 'ALRM', $$; 1 },
	warning => sub { local $SIG{__WARN__} = sub { pause() }; warn 'x' },
	nested => sub { my @a = sort { eval { pause(); 1 }; 0 } 1, 2 },
	first => sub { require List::Util; List::Util::first(sub { pause(); 1 }, 1) },
	goto => sub { goto &pause },
	begin => sub { eval 'BEGIN { pause() } 1' or die $@ },
	glob => sub { no warnings; no strict 'refs'; *{'Alias::other'} = \&pause; Alias->can('other')->() },
	threads => sub { threads->create(sub { deep(2) while 1 })->join },
);
sub by_pause { Time::HiRes::usleep(100000 + say_where()); 0 }

open my $ways, '>', "$out.ways" or die "$out.ways: $!\n";
print $ways scalar keys %ways;
close $ways;
my @children;
for (sort keys %ways) {
	$name = $_;
	my $pid = fork // die;
	if ($pid) {
		push @children, $pid;
		next;
	}
	my $way = $ways{$name};
	$way->() while 1;
}
# those that read wait for this
my $input = '';
while (1) {
	vec(my $r = '', 0, 1) = 1;
	last if select($r, undef, undef, 0.02) && !sysread STDIN, $input, 1;
	syswrite $poke, "\n\n\n\n";
}
kill 9, @children;
waitpid $_, 0 for @children;
