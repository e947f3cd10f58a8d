#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Frames in code that is in no file and has no name: the memory that they are in.
# shellcheck disable=SC2016,SC2154 # Perl's variables; $rc and $out of tap.sh
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf
work=$OBJ/t/work/places

for place in heap stack anon; do
	case $place in
	heap)
		want='[heap]'
		# before Linux 6.6 a perf event names only the whole heap [heap], not its executable part
		case $(uname -r) in 5.* | 6.[0-5][!0-9]*) want=//anon ;; esac
		;;
	stack) want='[stack]' ;;
	*) want=//anon ;;
	esac
	run timeout -k 5 30 "$BIN/offcpu-record" -q --force -o "$TMP/$place.cap" -- "$work" $place
	is "$rc" 0 "a program that waits in code in $place memory is recorded"
	read -r address <"$out"
	is "$(waits "$TMP/$place.cap" 'for (@{$w->{user_stack} || []}) { $h{join " ", $_->{symbol} // "-", $_->{module}, $_->{source}} = 1 if $_->{address} eq "'"$address"'" }')" \
		"- $want module 1" "a frame in $place memory has no name, and the module $want"
	like "$("$BIN/symbolize" -q "$TMP/$place.cap")" "	 *${address#0x} \[unknown\] \($(printf %s "$want" | sed 's/[][]/\\&/g')\)" "a frame in $place memory is [unknown] in text, with the module $want"
done
tap_done
