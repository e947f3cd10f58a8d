#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# stackdiff: two recordings of one program, of different lengths.
# shellcheck disable=SC2016,SC2154 # Perl's variables; $rc and others of tap.sh
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf

cp "$OBJ/t/work/demo" "$TMP/twice"
"$TMP/twice" "$TMP/journal" >"$TMP/ready" &
pid=$!
at_exit_kill $pid
until_true sh -c '[ "$(ls "/proc/$1/task" | wc -l)" -ge 11 ]' - $pid
for seconds in 1 3; do
	rec "$TMP/$seconds.cap" -p $pid -d $seconds
	is "$rc" 0 "the demo is recorded for $seconds s"
done
run "$BIN/stackdiff" --json --idle "$TMP/1.cap" "$TMP/3.cap"
is "$rc" 0 "two captures are compared"
perl -MCpanel::JSON::XS -0777 -ne '
	my $j = decode_json($_);
	my ($b, $a) = map { $_->{ranked_ns} / $_->{elapsed_ns} } @$j{qw(before after)};
	printf "%s %.4f %.1f %d\n", $j->{normalised} ? "normalised" : "", $a / $b, $j->{after}{elapsed_ns} / $j->{before}{elapsed_ns}, scalar @{$j->{rows}}' "$out" >"$TMP/said"
read -r normalised ratio times rows <"$TMP/said"
is "$normalised" normalised "the sums are of each second"
ok "the second recording is about three times as long ($times)" perl -e 'exit !($ARGV[0] > 2.5 && $ARGV[0] < 3.5)' "$times"
ok "the totals of each second agree within 10 % ($ratio)" perl -e 'exit !(abs($ARGV[0] - 1) < .1)' "$ratio"
ok "there are places ($rows)" [ "$rows" -ge 10 ]
"$BIN/stackdiff" --tsv --idle "$TMP/1.cap" "$TMP/3.cap" | sed 1d >"$TMP/rows"
is "$(awk -F '\t' '$2 > 1e8 && $5 > 0.67 && $5 < 1.5 && $7 == "*"' "$TMP/rows")" "" "no place of the same load is marked"
like "$(cut -f 18 "$TMP/rows")" 'table_thread.*lock_table' "the lock is among them"
"$BIN/stackdiff" --folded "$TMP/1.cap" "$TMP/3.cap" >"$out"
ok "the folded sums agree within 10 %, too" perl -ne '/ (\d+) (\d+)$/ or die; $b += $1; $a += $2; END { exit !(abs($a / $b - 1) < .1) }' "$out"
tap_done
