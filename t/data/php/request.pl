# SPDX-License-Identifier: GPL-2.0-or-later
# request.pl SOCKET SCRIPT: a request to a FastCGI server; prints the answer's text.
use strict;
use warnings;
use IO::Socket::UNIX;

my ($socket, $script) = @ARGV;
my $s = IO::Socket::UNIX->new(Peer => $socket) or die "$socket: $!\n";
my $params = '';
my %p = (SCRIPT_FILENAME => $script, REQUEST_METHOD => 'GET', SCRIPT_NAME => '/x.php');
$params .= pack('CC', length, length $p{$_}) . $_ . $p{$_} for sort keys %p;
sub record { my ($type, $text) = @_; print $s pack('CCnnCC', 1, $type, 1, length $text, 0, 0), $text }
record(1, pack('nCx5', 1, 0));
record(4, $params);
record(4, '');
record(5, '');
$s->flush;
while (read($s, my $head, 8) == 8) {
	my (undef, $type, undef, $len, $pad) = unpack 'CCnnC', $head;
	read($s, my $text, $len + $pad) if $len + $pad;
	print substr($text, 0, $len) if $type == 6;
	last if $type == 3;
}
