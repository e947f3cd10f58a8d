#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Reads what stackexport has written and prints what is in it, the same for each format:
#
#   perl read.pl FORMAT FILE      pprof, speedscope, firefox, perfetto or otlp
#   perl read.pl text FILE        the text of symbolize, to compare with
#   perl read.pl sums FORMAT FILE sums of events only
#   perl read.pl tables FILE      of otlp: each table of the dictionary with the number of its elements, and of those that
#                                 are there twice, to which nothing refers, and that are referred to and not there
#
# A line is "EVENT THREAD PID/TID;OUTERMOST;...;INNERMOST COUNT NS", the event "wait" or "sample". COUNT is - where the
# format has none. pprof's own reader takes the first one apart, protoc the last two.
use strict;
use warnings;
use Cpanel::JSON::XS;
use File::Basename;

my $only_sums = $ARGV[0] eq 'sums' && shift;
my ($format, $file) = $ARGV[0] eq 'tables' ? ('otlp', $ARGV[1]) : @ARGV;
my $data = dirname(__FILE__);
my (%count, %ns);

sub add {
	my ($event, $thread, $frames, $count, $ns) = @_;
	# pprof's text is ambiguous where names have spaces and brackets, so that names may be missing
	my $key = $only_sums ? $event : join(';', "$event $thread", @$frames);

	$count{$key} = $count eq '-' ? '-' : ($count{$key} // 0) + $count;
	$ns{$key} += $ns;
}

sub output_of {
	open my $pipe, '-|', @_ or die "$_[0]: $!";
	my @lines = <$pipe>;
	close $pipe or die "@_: status $?";
	return @lines;
}

sub read_json {
	open my $in, '<', $file or die "$file: $!";
	local $/;
	return decode_json(<$in>);
}

# protoc's text: a message is a hash of lists
sub decoded {
	my ($type) = @_;
	open my $in, '<', $file or die;
	open my $save, '<&', \*STDIN or die;
	open STDIN, '<&', $in or die;
	my @lines = output_of('protoc', "--decode=$type", "-I$data", "$format.proto");
	open STDIN, '<&', $save or die;
	my @open = ({});
	for (@lines) {
		if (/^\s*(\w+) \{$/) {
			my $message = {};
			push @{ $open[-1]{$1} }, $message;
			push @open, $message;
		} elsif (/^\s*\}$/) {
			pop @open;
		} elsif (/^\s*(\w+): "(.*)"$/) {
			(my ($name, $text)) = ($1, $2);
			$text =~ s/\\([0-7]{3}|.)/length $1 == 3 ? chr oct $1 : $1 eq 'n' ? "\n" : $1/ge;
			push @{ $open[-1]{$name} }, $text;
		} elsif (/^\s*([a-z]\w*): (\S+)$/) {
			push @{ $open[-1]{$1} }, $2;
		} else {
			die "protoc knows no field of: $_";
		}
	}
	return $open[0];
}

sub one { return $_[0]{ $_[1] } ? $_[0]{ $_[1] }[0] : $_[2] // 0 }

sub print_tables {
	my $request = decoded('Request');
	my $d = one($request, 'dictionary');
	my %used;
	my $use = sub { my ($table, $from, @fields) = @_; $used{$table}{$_}++ for map { @{ $from->{$_} // [] } } @fields };
	for my $p (map { @{ $_->{profile} // [] } } map { @{ $_->{scope_profiles} } } @{ $request->{resource_profiles} }) {
		$use->('str', $_, 'type', 'unit') for @{ $p->{sample_type} }, @{ $p->{period_type} // [] };
		$use->('stack', $_, 'stack'), $use->('attribute', $_, 'attribute') for @{ $p->{sample} };
	}
	$use->('location', $_, 'location') for @{ $d->{stack} };
	for (@{ $d->{location} }) {
		$use->('mapping', $_, 'mapping');
		$use->('function', $_, 'function') for @{ $_->{line} // [] };
	}
	$use->('attribute', $_, 'attribute') for @{ $d->{location} }, @{ $d->{mapping} };
	$use->('str', $_, 'filename') for @{ $d->{mapping} };
	$use->('str', $_, 'name', 'system_name', 'filename') for @{ $d->{function} };
	$use->('str', $_, 'key') for @{ $d->{attribute} };
	my $json = Cpanel::JSON::XS->new->canonical->allow_nonref;
	for my $table (sort keys %$d) {
		my ($elements, %seen) = $d->{$table};
		$seen{ $json->encode($_) }++ for @$elements;
		printf "%s %d %d %d %d\n", $table, scalar @$elements, @$elements - keys %seen,
			scalar(grep { !$used{$table}{$_} } 1 .. $#$elements), scalar(grep { $_ > $#$elements } keys %{ $used{$table} });
	}
}

my %read = (
	text => sub {
		my ($event, $thread, $count, $ns, @frames);
		open my $in, '<', $file or die "$file: $!";
		while (<$in>) {
			if (/^# (?:wait|sample): count=(\d+) total_ns=(\d+)/) {
				($count, $ns) = ($1, $2);
			} elsif (/^(\S.*?) +(\d+\/\d+) \[000\] \S+: \d+ (\S+): $/) {
				($event, $thread, @frames) = ($3 eq 'cpu-clock' ? 'sample' : 'wait', "$1 $2");
			} elsif (/^\t *[0-9a-f]+ (.*) \([^ ]*\)$/) {
				(my $name = $1) =~ s/\+0x[0-9a-f]+$//;
				unshift @frames, $name;
			} elsif (/^$/ && defined $event) {
				add($event, $thread, @frames ? \@frames : ['[no stack]'], $count, $ns);
				undef $event;
			}
		}
	},
	pprof => sub {
		my ($part, %locations, @samples, @types, $at) = ('');
		for (output_of('go', 'tool', 'pprof', '-raw', $file)) {
			if (/^(Samples|Locations|Mappings)/) {
				$part = $1;
			} elsif ($part eq 'Samples' && /\//&& !@types) {
				@types = map { s/\[dflt\]//r } split;
			} elsif ($part eq 'Samples' && /^ *(\d[\d ]*): ([\d ]+)$/) {
				push @samples, { values => [split ' ', $1], stack => [split ' ', $2] };
			} elsif ($part eq 'Samples' && /^ +\S/) {
				$samples[-1]{$1} = $2 while /(\w+):\[(.*?)\](?= |$)/g;
			} elsif ($part eq 'Locations' && /^ *(\d+): \S+ (?:M=\d+ )?(.*?) \S*:\d+(?::\d+)? s=\d+/) {
				$at = $1;
				$locations{$at} = [$2];
			} elsif ($part eq 'Locations' && /^ {10,}(.*?) \S*:\d+(?::\d+)? s=\d+/) {
				push @{ $locations{$at} }, $1;
			}
		}
		for my $s (@samples) {
			my %value;
			@value{@types} = @{ $s->{values} };
			my $ran = $value{'samples/count'};
			add($ran ? 'sample' : 'wait', join('', map { $_ // '' } $s->{thread}, ' ', $s->{pid}, '/', $s->{tid}), [reverse map { @{ $locations{$_} } } @{ $s->{stack} }],
				$ran ? ($ran, $value{'cpu/nanoseconds'}) : @value{'waits/count', 'offcpu/nanoseconds'});
		}
	},
	speedscope => sub {
		my $json = read_json();
		for my $p (@{ $json->{profiles} }) {
			my $event = $p->{name} =~ s/ on CPU$// ? 'sample' : 'wait';
			my $sum = 0;
			$sum += $_ for @{ $p->{weights} };
			die "endValue of $p->{name}" if $p->{unit} ne 'nanoseconds' || $sum != $p->{endValue};
			die "lengths of $p->{name}" if @{ $p->{weights} } != @{ $p->{samples} };
			add($event, $p->{name}, [map { $json->{shared}{frames}[$_]{name} } @{ $p->{samples}[$_] }], '-', $p->{weights}[$_])
				for 0 .. $#{ $p->{weights} };
		}
	},
	firefox => sub {
		my $json = read_json();
		my ($stacks, $frames, $functions, $strings) = @{ $json->{shared} }{qw(stackTable frameTable funcTable stringArray)};
		for my $table (@{ $json->{shared} }{qw(stackTable frameTable funcTable resourceTable sources)},
			map { $_->{markers} } @{ $json->{threads} }) {
			ref $table->{$_} and @{ $table->{$_} } != $table->{length} and die "length of $_" for keys %$table;
		}
		for my $t (@{ $json->{threads} }) {
			my $event = $t->{name} =~ s/ on CPU$// ? 'sample' : 'wait';
			my $s = $t->{samples};
			die "weights of $t->{name}" if $s->{weightType} ne 'tracing-ms';
			for my $i (0 .. $s->{length} - 1) {
				my @names;
				for (my $at = $s->{stack}[$i]; defined $at; $at = $stacks->{prefix}[$at]) {
					unshift @names, $strings->[$functions->{name}[$frames->{func}[$stacks->{frame}[$at]]]];
				}
				add($event, "$t->{name} $t->{pid}/$t->{tid}", \@names, '-', sprintf '%.0f', $s->{weight}[$i] * 1e6);
			}
		}
	},
	perfetto => sub {
		my (%texts, %threads, %open, %function, %frame, %callstack);
		for my $p (@{ decoded('Trace')->{packet} }) {
			my ($track, $event, $interned, $sample) = map { one($p, $_) } qw(track event interned sample);
			if ($interned) {
				$texts{ one($_, 'iid') } = one($_, 'text', '') for @{ $interned->{value} };
				$function{ one($_, 'iid') } = one($_, 'text', '') for @{ $interned->{function} };
				$texts{"name " . one($_, 'iid')} = one($_, 'text', '') for @{ $interned->{annotation} };
				$frame{ one($_, 'iid') } = one($_, 'function') for @{ $interned->{frame} };
				$callstack{ one($_, 'iid') } = $_->{frame} for @{ $interned->{callstack} };
			}
			if ($track && $track->{thread}) {
				my $t = one($track, 'thread');
				$threads{ one($track, 'uuid') } = one($t, 'name', '') . ' ' . one($t, 'pid') . '/' . one($t, 'tid');
			}
			add('sample', (grep { / @{[one($sample, 'pid')]}\/@{[one($sample, 'tid')]}$/ } sort values %threads)[0],
				[map { $function{ $frame{$_} } } @{ $callstack{ one($sample, 'callstack') } }], 1, 0)
				if $sample;
			next if !$event || !$threads{ one($event, 'track') };
			my $stack = $open{ one($event, 'track') } //= [];
			my ($type, $time) = (one($event, 'type'), one($p, 'time'));
			if ($type == 1) {
				my ($text) = map { one($_, 'text') } grep { $texts{"name " . one($_, 'name')} eq 'stack' } @{ $event->{annotation} };
				my $names = [map { $function{ $frame{$_} } } @{ $callstack{ one($event, 'callstack') } // [] }];
				die "a stack and its text differ" if $text && join(';', @$names) ne $texts{$text};
				push @$stack, [$time, $names];
			} elsif ($type == 2) {
				my $begin = pop @$stack or die "a slice ends that did not begin";
				add('wait', $threads{ one($event, 'track') }, $begin->[1], 1, $time - $begin->[0]) if !@$stack;
			}
		}
		@$_ and die "a slice does not end" for values %open;
	},
	otlp => sub {
		my $request = decoded('Request');
		my $d = one($request, 'dictionary');
		my @strings = @{ $d->{str} };
		my @names = map { $strings[one($_, 'name')] } @{ $d->{function} };
		my @stacks = map {
			[reverse map { map { $names[one($_, 'function')] } @{ $d->{location}[$_]{line} } } @{ $_->{location} // [] }]
		} @{ $d->{stack} };
		my @attributes = map { my $v = one($_, 'value', {}); [$strings[one($_, 'key')], one($v, 'text', one($v, 'number'))] } @{ $d->{attribute} };
		my %rows;
		for my $r (@{ $request->{resource_profiles} }) {
			my %resource = map { ($_->{key}[0] => one(one($_, 'value'), 'text')) } @{ one($r, 'resource')->{attribute} };
			$_->{service} = $resource{'service.name'} for map { @{ $_->{profile} } } @{ $r->{scope_profiles} };
		}
		for my $p (map { @{ $_->{profile} } } map { @{ $_->{scope_profiles} } } @{ $request->{resource_profiles} }) {
			my $type = $strings[one(one($p, 'sample_type'), 'type')];
			for my $s (@{ $p->{sample} }) {
				my %is = map { @{ $attributes[$_] } } @{ $s->{attribute} };
				my $sum = 0;
				die "a sample of $is{'process.executable.name'} of service $p->{service}" if $p->{service} ne $is{'process.executable.name'};
				die "the identity of a sample is there twice" if defined $rows{ join ' ', one($s, 'stack'), @{ $s->{attribute} } }{$type};
				$sum += $_ for @{ $s->{value} };
				die "times of $type" if $s->{time} && @{ $s->{time} } != @{ $s->{value} };
				$rows{ join ' ', one($s, 'stack'), @{ $s->{attribute} } }{$type} = $sum;
				$rows{ join ' ', one($s, 'stack'), @{ $s->{attribute} } }{is} = [\%is, $stacks[one($s, 'stack')]];
			}
		}
		for my $r (values %rows) {
			my ($is, $frames) = @{ $r->{is} };
			add(defined $r->{cpu} ? 'sample' : 'wait', "$is->{'thread.name'} $is->{'process.pid'}/$is->{'thread.id'}", $frames,
				defined $r->{cpu} ? @$r{qw(samples cpu)} : @$r{qw(waits off_cpu)});
		}
	});

if ($ARGV[0] eq 'tables') {
	print_tables();
	exit;
}
$read{$format}->();
binmode STDOUT, ':utf8' if $format eq 'speedscope' || $format eq 'firefox';
print "$_ $count{$_} $ns{$_}\n" for sort keys %ns;
