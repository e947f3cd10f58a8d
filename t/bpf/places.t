#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Code that is in no file, and of which nobody told a name: where it is.
# shellcheck disable=SC2016,SC2154 # Perl's variables; $rc and $out of tap.sh
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf
work=$OBJ/t/work/places

for place in heap stack anon; do
	case $place in
	heap)
		want='[heap]'
		# before Linux 6.6 a perf event says so of the whole heap only, not of the part that is code
		case $(uname -r) in 5.* | 6.[0-5][!0-9]*) want=//anon ;; esac
		;;
	stack) want='[stack]' ;;
	*) want=//anon ;;
	esac
	run timeout -k 5 30 "$BIN/offcpu-record" -q --force -o "$TMP/$place.cap" -- "$work" $place
	is "$rc" 0 "a program that waits in its $place is recorded"
	read -r address <"$out"
	is "$(waits "$TMP/$place.cap" 'for (@{$w->{user_stack} || []}) { $h{join " ", $_->{symbol} // "-", $_->{module}, $_->{source}} = 1 if $_->{address} eq "'"$address"'" }')" \
		"- $want module 1" "its frame has no name, and $want for a module"
	like "$("$BIN/symbolize" -q "$TMP/$place.cap")" "	 *${address#0x} \[unknown\] \($(printf %s "$want" | sed 's/[][]/\\&/g')\)" "in text too"
done
tap_done
