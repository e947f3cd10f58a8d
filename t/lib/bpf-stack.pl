#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# bpf-stack.pl LIMIT OBJECT...: what the programs of BPF objects take of the stack with all that they call, as Linux 6.1
# adds it up (kernel/bpf/verifier.c, check_max_stack_depth()): each function's bytes rounded up to 32, dead code included.
# Prints the programs that take more than LIMIT bytes, or have more than eight functions that call each other
# (MAX_CALL_FRAMES), and on the last line the most bytes. Later kernels count fewer bytes.
use strict;
use warnings;

my ($limit, @objects) = @ARGV;
my $most = 0;

# linux/bpf.h: an instruction has 8 bytes: operation, registers, offset, value
use constant { LOAD => 1, STORE_VALUE => 2, STORE => 3, JUMP => 5, JUMP32 => 6 };    # classes
use constant { CALL => 0x85, LOAD_ADDRESS => 0x18, MOVE => 0xbf, ADD => 0x07, FRAME => 10 };
use constant { SHT_SYMTAB => 2, SHT_REL => 9, STT_FUNC => 2 };
use constant MAX_CALL_FRAMES => 8;

# The functions of an object, by name: their section, bytes of stack, and what they call or hand to a helper.
sub functions {
	my ($elf) = @_;
	my ($table, $size, $n) = unpack 'x40 Q x10 S S', $elf;
	my @sections = map { [ unpack 'L L Q Q Q Q L L Q Q', substr $elf, $table + $_ * $size, $size ] } 0 .. $n - 1;
	my $bytes = sub { substr $elf, $_[0][4], $_[0][5] };
	my $text_of = sub { unpack 'Z*', substr $bytes->($_[0]), $_[1] };
	my ($symtab) = grep { $_->[1] == SHT_SYMTAB } @sections;
	my @symbols = map { [ unpack 'L C C S Q Q', $_ ] } unpack '(a24)*', $bytes->($symtab);
	my (%of, %at, %refers);

	for my $s (@symbols) {
		my ($name, $kind, undef, $section, $from, $len) = @$s;
		next if ($kind & 15) != STT_FUNC;
		$name = $text_of->($sections[ $symtab->[6] ], $name);
		my $in = $text_of->($sections[ unpack 'x62 S', $elf ], $sections[$section][0]);
		$of{$name} = { section => $section, program => $in ne '.text', from => $from, bytes => $len, stack => 0, calls => {} };
		$at{$section}{$from} = $name;
	}
	for my $rel (grep { $_->[1] == SHT_REL } @sections) {
		for (unpack '(a16)*', $bytes->($rel)) {
			my ($offset, $info) = unpack 'Q Q';
			$refers{ $rel->[7] }{$offset} = $symbols[ $info >> 32 ];
		}
	}
	for my $f (values %of) {
		# the registers that point into the frame, and where
		my %frame = (FRAME, 0);
		my $code = $bytes->($sections[ $f->{section} ]);

		for (my $i = $f->{from}; $i < $f->{from} + $f->{bytes}; $i += 8) {
			my ($op, $registers, $offset, $value) = unpack 'C C s l', substr $code, $i, 8;
			my ($dst, $src, $class) = ($registers & 15, $registers >> 4, $op & 7);
			my $base = $class == LOAD ? $src : $class == STORE_VALUE || $class == STORE ? $dst : -1;
			my $symbol = $refers{ $f->{section} }{$i};

			deepen($f, $frame{$base} + $offset) if exists $frame{$base};
			if ($op == CALL && $src == 1 && !$symbol) {
				$f->{calls}{ $at{ $f->{section} }{ $i + 8 + $value * 8 } } = 1;
			} elsif ($symbol && ($op == CALL || $op == LOAD_ADDRESS)) {
				# of the function, or of its section and then its place there
				my $from = $symbol->[4];
				$from += $op == CALL ? ($value + 1) * 8 : $value if ($symbol->[1] & 15) != STT_FUNC;
				my $called = ($at{ $symbol->[3] } || {})->{$from};
				die "a call of no function\n" if $op == CALL && !$called;
				$f->{calls}{$called} = 1 if $called;
			}
			$i += 8 if $op == LOAD_ADDRESS;
			if ($op == MOVE && exists $frame{$src}) {
				$frame{$dst} = $frame{$src};
			} elsif ($op == ADD && exists $frame{$dst}) {
				deepen($f, $frame{$dst} += $value);
			} elsif ($op == CALL) {
				delete @frame{ 0 .. 5 };
			} elsif ($class != STORE && $class != STORE_VALUE && $class != JUMP && $class != JUMP32) {
				delete $frame{$dst};
			}
		}
	}
	return \%of;
}

sub deepen {
	my ($f, $offset) = @_;
	$f->{stack} = -$offset if -$offset > $f->{stack};
}

# The most bytes of a function with those that it calls, and who they are
sub chain {
	my ($of, $name) = @_;
	my $f = $of->{$name};
	my ($sum, $path) = (0, '');

	return @{ $f->{chain} } if $f->{chain};
	for my $called (sort keys %{ $f->{calls} }) {
		my ($s, $p) = chain($of, $called);
		($sum, $path) = ($s, $p) if $s > $sum;
	}
	my $own = int((($f->{stack} || 1) + 31) / 32) * 32;
	$f->{chain} = [ $sum + $own, "$name ($f->{stack})" . ($path ? ", $path" : '') ];
	return @{ $f->{chain} };
}

# The most functions that call each other, from this one on
sub calls {
	my ($of, $name) = @_;
	my $f = $of->{$name};
	my @most;

	return @{ $f->{deepest} } if $f->{deepest};
	for my $called (sort keys %{ $f->{calls} }) {
		my @c = calls($of, $called);
		@most = @c if @c > @most;
	}
	$f->{deepest} = [ $name, @most ];
	return ($name, @most);
}

for my $object (@objects) {
	open my $file, '<:raw', $object or die "$object: $!\n";
	my $of = functions(do { local $/; <$file> });
	for my $name (sort grep { $of->{$_}{program} } keys %$of) {
		my ($sum, $path) = chain($of, $name);
		my @calls = calls($of, $name);
		print "$object: $sum bytes: $path\n" if $sum > $limit;
		print "$object: ", scalar @calls, " functions: @calls\n" if @calls > MAX_CALL_FRAMES;
		$most = $sum if $sum > $most;
	}
}
print "$most\n";
