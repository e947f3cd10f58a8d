# SPDX-License-Identifier: GPL-2.0-or-later
# Checks the rows of stackdiff --tsv against its own computation from the two texts of symbolize:
#
#   perl difference.pl BEFORE AFTER BY [absolute] [idle] <TSV    BY is stack, function, thread-name, process or kind
#
# Prints "N rows", or what is wrong.
use strict;
use warnings;

my ($before, $after, $by, @words) = @ARGV;
my %word = map { $_ => 1 } @words;
my @side = (read_text($before), read_text($after));
my @time = $word{absolute} ? (0, 0) : map { $_->{elapsed} } @side;

sub read_text {
	my ($path) = @_;
	my (@waits, $w, $elapsed);
	open my $f, '<', $path or die "$path: $!";
	while (<$f>) {
		chomp;
		if (/^# host: .* duration=(\d+)\.(\d{3})/) {
			$elapsed = "$1$2" * 1_000_000;
		} elsif (/^# wait: (.*)/) {
			$w = { map { split /=/, $_, 2 } split / /, $1 };
		} elsif (/^(\S.*) (\d+)\/(\d+) \[/) {
			@$w{qw(comm pid tid)} = ($1, $2, $3);
			push @waits, $w;
		} elsif (/^\s+([0-9a-f]+) (\S+?)\+0x\S+ \(/) {
			unshift @{ $w->{ length $1 == 16 && $1 =~ /^ffffffff/ ? 'kernel_frames' : 'user_frames' } }, $2;
		}
	}
	my %main = map { $_->{pid} => $_->{comm} } grep { $_->{pid} == $_->{tid} } @waits;
	for my $w (@waits) {
		my ($call) = grep { /^__x64_sys_/ } @{ $w->{kernel_frames} // [] };
		$w->{call} = ($call // '') =~ s/^__x64_sys_//r;
		$w->{side} = $w->{user_frames} || $call ? 'u' : 'k';
		$w->{functions} = $w->{side} eq 'u' ? $w->{user_frames} // [] : [grep { !/^(__)?schedule/ } @{ $w->{kernel_frames} // [] }];
		$w->{place} = join("\n", @{ $w->{functions} }, '', $w->{call}, $w->{kind}) . "\n$w->{side}";
		$w->{process} = $main{ $w->{pid} } // $w->{comm};
	}
	return { elapsed => $elapsed, waits => \@waits };
}

# which places wait all the time, once a thread, on one side or both
for my $s (@side) {
	my %place;
	for my $w (@{ $s->{waits} }) {
		my $p = $place{ $w->{place} } //= { count => 0, whole => 0, threads => {}, idle => $w->{kind} eq 'idle' };
		$p->{count} += $w->{count};
		$p->{whole}++ if $w->{open} && $w->{initial} && 100 * $w->{total_ns} >= 99 * $s->{elapsed};
		$p->{threads}{ $w->{tid} } = 1;
	}
	for my $name (keys %place) {
		my $p = $place{$name};
		my $n = keys %{ $p->{threads} };
		$s->{ranked}{$name} = 1 if !($p->{idle} && !$word{idle}) && !($p->{count} == $n && $p->{whole} == $n);
		$s->{idle}{$name} = 1 if $p->{idle} && !$word{idle};
	}
}
my %group;
for my $i (0, 1) {
	for my $w (@{ $side[$i]{waits} }) {
		next if $side[$i]{idle}{ $w->{place} } || !$side[0]{ranked}{ $w->{place} } && !$side[1]{ranked}{ $w->{place} };
		my %names = map { $_ => 1 } $by eq 'stack' ? $w->{place}
			: $by eq 'function' ? (@{ $w->{functions} } ? @{ $w->{functions} } : '')
			: $by eq 'thread-name' ? $w->{comm} : $w->{$by};
		for my $name (keys %names) {
			my $g = $group{$name}[$i] //= { total => 0, count => 0, max => 0, squares => 0, threads => {} };
			my ($mean, $longest) = ($w->{total_ns} / $w->{count}, $w->{max_ns});
			$g->{total} += $w->{total_ns};
			$g->{count} += $w->{count};
			$g->{max} = $longest if $longest > $g->{max};
			$g->{squares} += $w->{total_ns} * ($w->{count} == 1 || $mean > $longest ? $mean : $longest);
			$g->{threads}{"$w->{pid}/$w->{tid}"} += $w->{total_ns};
		}
	}
}

sub amount {
	use integer;
	my ($v, $by) = @_;
	return $by ? $v / $by * 1_000_000_000 + ($v % $by * 1_000_000_000 + $by / 2) / $by : $v;
}

sub errors {
	my @g = @_;
	my @t = map { $_ || 1 } @time;
	my @q = map { $_ ? $_->{squares} : 0 } @g;
	my $change = ($g[1] ? $g[1]{total} : 0) / $t[1] - ($g[0] ? $g[0]{total} : 0) / $t[0];
	my ($apart, $pooled) = ($q[0] / $t[0]**2 + $q[1] / $t[1]**2, ($q[0] + $q[1]) / ($t[0] + $t[1]) * (1 / $t[0] + 1 / $t[1]));
	my $errors = $change / sqrt($apart > $pooled ? $apart : $pooled);
	return $errors if grep { !$_ || keys %{ $_->{threads} } < 3 } @g;
	my ($v, $weights) = (0, 0);
	for my $i (0, 1) {
		my @x = map { $_ / $t[$i] } values %{ $g[$i]{threads} };
		my ($sum, $squares, $n) = (0, 0, scalar @x);
		$sum += $_ for @x;
		$squares += ($_ - $sum / $n)**2 for @x;
		my $variance = $n * $squares / ($n - 1);
		$v += $variance;
		$weights += $variance**2 / ($n - 1);
	}
	return $errors if !$v;
	my ($t, $f) = ($change / sqrt $v, $v**2 / $weights);
	my $z = (8 * $f + 1) / (8 * $f + 3) * sqrt($f * log(1 + $t**2 / $f)) * ($t < 0 ? -1 : 1);
	return abs $z < abs $errors ? $z : $errors;
}

my @rows = map {
	my @g = @{ $group{$_} }[0, 1];
	my @a = map { amount($g[$_] ? $g[$_]{total} : 0, $time[$_]) } 0, 1;
	{ name => $_, groups => \@g, amounts => \@a, change => $a[1] - $a[0] }
} keys %group;
@rows = sort { abs $b->{change} <=> abs $a->{change} || $a->{name} cmp $b->{name} } @rows;

my $head = <STDIN> // '';
my $rank = 0;
for my $r (@rows) {
	my @g = map { $_ // { total => 0, count => 0, max => '', threads => {} } } @{ $r->{groups} };
	my @p = split /\n/, $r->{name}, -1;
	my $name = $r->{name};
	if ($by eq 'stack') {
		my ($side, $kind, $call) = (pop @p, pop @p, pop @p);
		pop @p;
		$name = join "\t", $kind, $call, join ';', @p;
	}
	my $judged = $g[0]{count} > 1 || $g[1]{count} > 1;
	my $errors = $judged ? errors(@{ $r->{groups} }) : '';
	my $want = join "\t", ++$rank, @{ $r->{amounts} }, $r->{change}, '', '', !$judged ? '?' : abs $errors > 3 ? '*' : '',
		(map { $_->{total} } @g), (map { $_->{count} } @g), (map { $_->{max} } @g), (map { scalar keys %{ $_->{threads} } } @g), $name;
	my $line = <STDIN> // "nothing\n";
	chomp $line;
	my @f = split /\t/, $line, -1;
	my ($factor, $z) = ($f[4], $f[5]);
	@f[4, 5] = ('', '');
	if (join("\t", @f) ne $want) {
		print "row $rank\n got $line\nwant $want\n";
		exit;
	}
	my $ratio = $r->{amounts}[0] ? $r->{amounts}[1] / $r->{amounts}[0] : '';
	print "row $rank: factor $factor, not $ratio\n" if $ratio eq '' ? $factor ne '' : abs($factor - $ratio) > 1e-5 * $ratio;
	print "row $rank: $z errors, not $errors\n" if $judged ? abs($z - $errors) > 0.001 : $z ne '';
}
print "more rows than $rank\n" if defined readline STDIN;
print "$rank rows\n";
