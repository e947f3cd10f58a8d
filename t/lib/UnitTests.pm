# SPDX-License-Identifier: GPL-2.0-or-later
# A plugin of prove, loaded by .proverc. A file t/unit/NAME.c is a test: prove
# runs the program that make builds from it, unless there is a t/unit/NAME.t,
# which runs that program. Folders are searched for such files and for scripts.
package UnitTests;

use strict;
use warnings;
use File::Find;
use TAP::Parser::Iterator::Process;
use TAP::Parser::IteratorFactory;

TAP::Parser::IteratorFactory->register_handler(__PACKAGE__);

sub tests_in {
	my @tests;
	find({ no_chdir => 1, wanted => sub {
		push @tests, $_ if /\.t$/ || m{(^|/)unit/[^/]+\.c$} && !-e s/c$/t/r;
	} }, @_);
	return sort @tests;
}

sub program {
	my ($source) = @_;
	my ($name) = $source =~ m{((unit|work)/[^/]+)\.c$};
	return ($ENV{STACKTOOLS_OBJ} // 'obj') . "/t/$name";
}

sub load {
	my $app = $_[1]{app_prove};
	my @args = @{$app->argv};
	@args = 't' if !@args && !@{$app->state};
	my @tests = map { -d $_ ? tests_in($_) : $_ } @args;
	# the scripts of t/unit need no workloads
	my @sources = ((grep { /\.c$/ } @tests), (grep { /\.t$/ && !m{(^|/)unit/} } @tests) ? glob 't/work/*.c' : ());
	for (@sources) {
		die "prove: '" . program($_) . "' is not built: run make first\n" if !-x program($_);
	}
	$app->argv(\@tests);
}

sub can_handle {
	my ($class, $source) = @_;
	return $source->meta->{is_file} && ${$source->raw} =~ /\.c$/;
}

sub make_iterator {
	my ($class, $source) = @_;
	return TAP::Parser::Iterator::Process->new({ command => [program(${$source->raw})], merge => $source->merge });
}

1;
