#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Each wait has the name that its thread had at that time, against a program that counts (t/work/names.c).
# shellcheck disable=SC2016,SC2154 # Perl's variables; $rc and others of tap.sh
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf

# how often each name slept, sorted; a sleep that was over before the thread slept is not a wait
slept() {
	waits "$1" '$h{$w->{comm}} += $w->{count} if kernel() =~ /nanosleep/' | LC_ALL=C sort
}

for how in '' --events --wakers --sample-stacks=10; do
	# shellcheck disable=SC2086 # none or one word
	rec "$TMP/n.cap" $how -- "$OBJ/t/work/names"
	is "$rc" 0 "a program that renames itself is recorded ${how:-without options}"
	LC_ALL=C sort "$out" >"$TMP/said"
	slept "$TMP/n.cap" >"$TMP/got"
	is "$(join "$TMP/said" "$TMP/got" | awk '$3 > $2 { n++ } END { print NR, n + 0 }')" '20 0' \
		'all of its names are there, and none has more waits than there were'
	ok 'the waits are all there' test "$(awk '{ n += $2 } END { print n }' "$TMP/got")" -ge 600
done
# of each name: what symbolize's JSON has
waits "$TMP/n.cap" '$h{$w->{comm}} += $w->{count}' | LC_ALL=C sort >"$TMP/names"
"$BIN/stackreport" --tsv --all --by thread "$TMP/n.cap" | awk -F '\t' 'NR > 1 { print $8, $3 }' | LC_ALL=C sort >"$TMP/got"
same "$TMP/got" "$TMP/names" 'stackreport --by thread has a row of each name'
is "$("$BIN/stackreport" --json "$TMP/n.cap" | grep -o '"threads": [0-9]*' | head -n 1)" '"threads": 1' 'of one thread'
"$BIN/stackdiff" --tsv --idle --by thread-name "$TMP/n.cap" "$TMP/n.cap" | awk -F '\t' '$NF ~ /^name-/ { print $NF, $10 }' | LC_ALL=C sort >"$TMP/got"
grep '^name-' "$TMP/names" >"$TMP/want"
same "$TMP/got" "$TMP/want" 'stackdiff --by thread-name, too'
"$BIN/symbolize" -q "$TMP/n.cap" >"$TMP/text"
perl "$DATA/export/read.pl" text "$TMP/text" >"$TMP/want"
for format in pprof otlp; do
	if command -v "$([ $format = pprof ] && echo go || echo protoc)" >/dev/null; then
		"$BIN/stackexport" --format=$format -o "$TMP/$format" "$TMP/n.cap"
		perl "$DATA/export/read.pl" $format "$TMP/$format" >"$TMP/got" 2>&1
		same "$TMP/got" "$TMP/want" "$format has each wait under the name of its time"
	else
		skip "$format has each wait under the name of its time" "no reader of $format"
	fi
done
is "$(waits "$TMP/n.cap" '$h{$w->{tid}} = ""' | wc -l)" 1 'it is one thread all the same'
like "$("$BIN/capinfo" --threads "$TMP/n.cap")" ' name-19' 'capinfo names it as it was called last'
is "$("$BIN/symbolize" -q -c name-7 "$TMP/n.cap" | grep -c '^name-7 ')" "$("$BIN/symbolize" -q "$TMP/n.cap" | grep -c '^name-7 ')" \
	'-c selects the waits of one name'

# without BTF nothing counts names
if can_record raw; then
	rec "$TMP/r.cap" --mode raw -- "$OBJ/t/work/names"
	is "$(slept "$TMP/r.cap" | cut -d ' ' -f 1)" name-19 'in mode raw a thread has the last of its names'
else
	skip 'in mode raw a thread has the last of its names' 'no mode raw here'
fi
tap_done
