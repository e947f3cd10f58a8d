#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# stackreport --chain, against a program that knows what made up the time of its requests (t/work/request.c).
# shellcheck disable=SC2154 # $rc and others of tap.sh
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf

# said NAME: ns of that part, by the program
said() {
	sed -n "s/^$1 //p" "$TMP/said"
}

# part COMM WHAT: ns of that part of the path
part() {
	awk -F '\t' -v comm="$1" -v what="$2" 'NR > 1 && $5 == comm && $8 == what { n += $2 } END { printf "%.0f", n }' "$TMP/path"
}

# Records requests, and prints what of their path is not what the program says, to 5 % and 20 ms.
judge() {
	rec "$TMP/r.cap" --events --wakers -- "$OBJ/t/work/request"
	cp "$out" "$TMP/said"
	client=$("$BIN/symbolize" -q --events "$TMP/r.cap" | sed -n 's|^client [0-9]*/\([0-9]*\) .*|\1|p' | head -n 1)
	run "$BIN/stackreport" --chain -t "$client" --mark next_request --tsv "$TMP/r.cap"
	[ "$rc" = 0 ] || echo "status $rc"
	cp "$out" "$TMP/path"
	{
		echo "elapsed $(awk -F '\t' 'NR > 1 { n += $2 } END { printf "%.0f", n }' "$TMP/path") $(said elapsed)"
		echo "client $(part client running) $(said client)"
		echo "server $(part server running) $(said server)"
		echo "storage $(part storage running) $(said storage)"
		echo "sleep $(part storage blocked) 160000000"
		echo "keeper $(part keeper running) $(said keeper)"
		echo "other $(awk -F '\t' 'NR > 1 && $8 == "blocked" && $9 != "[timer]" { n += $2 } END { printf "%.0f", n }' \
			"$TMP/path") 0"
	} | awk '{ d = $2 - $3; if ((d < 0 ? -d : d) > $3 * 0.05 + 20e6) print $1 ": " $2 ", by its own clock " $3 }'
}

# A busy machine takes the CPU away between a look at the clock and the wake-up, and notes some wake-ups too early.
tries=0 differs=-
while [ -n "$differs" ] && [ "$tries" -lt 5 ]; do
	tries=$((tries + 1))
	judge >"$TMP/differs"
	differs=$(cat "$TMP/differs")
done
is "$differs" '' 'the path of all requests is what made up their time: work of four threads, and a sleep'
is "$("$BIN/stackreport" --chain -t "$client" --mark next_request --json "$TMP/r.cap" |
	perl -MCpanel::JSON::XS -0777 -ne 'my $j = decode_json($_); print $j->{requests}')" 40 'each request is counted'

run "$BIN/stackreport" --chain -t "$client" --tsv "$TMP/r.cap"
ok 'the path of the whole recording is at least as long' test \
	"$(awk -F '\t' 'NR > 1 { n += $2 } END { printf "%.0f", n }' "$out")" -ge "$(said elapsed)"

# in intervals: each wait once, all of their time
run "$BIN/stackreport" --by 100ms --all --tsv "$TMP/r.cap"
is "$rc:$(awk -F '\t' 'NR > 1 { n += $2; c += $5 } END { printf "%.0f %d", n, c }' "$out")" \
	"0:$("$BIN/symbolize" -q "$TMP/r.cap" | sed -n 's/^# totals: waits=\([0-9]*\) total_ns=\([0-9]*\) .*/\2 \1/p')" \
	'--by 100ms has all the time of all waits'

# without wakers, and without events
rec "$TMP/n.cap" --events -- "$OBJ/t/work/request"
client=$("$BIN/symbolize" -q --events "$TMP/n.cap" | sed -n 's|^client [0-9]*/\([0-9]*\) .*|\1|p' | head -n 1)
run "$BIN/stackreport" --chain -t "$client" "$TMP/n.cap"
is "$rc" 0 'a recording without wakers has a path'
like "$(cat "$out")" 'wakers +none recorded.*--wakers' 'which says why no wait is followed'
rec "$TMP/s.cap" -- "$OBJ/t/work/request"
run "$BIN/stackreport" --chain -t 1 "$TMP/s.cap"
is "$rc" 2 'a recording of sums has none'
like "$(cat "$err")" 'hint: record with offcpu-record --events' 'and the message says how to record one'

# what was executed, by samples: two functions that loop, and one in the kernel
differs=-
tries=0
while [ -n "$differs" ] && [ "$tries" -lt 5 ]; do
	tries=$((tries + 1))
	rec "$TMP/c.cap" --events --wakers --preempted --on-cpu=999 -- "$OBJ/t/work/cpu" 2
	cp "$out" "$TMP/said"
	while read -r name tid one three kernel cpu _; do
		"$BIN/stackreport" --chain -t "$tid" --tsv "$TMP/c.cap" >"$TMP/path" 2>"$err" || cat "$err"
		awk -F '\t' -v name="$name" -v one="$one" -v three="$three" -v kernel="$kernel" -v cpu="$cpu" '
			# on a busy CPU some runs are too short to have a sample
			$8 == "running" && $13 { n += $2 }
			$8 == "running" && $13 ~ /;one_part(;|$)/ { got["one_part"] += $2 }
			$8 == "running" && $13 ~ /;three_parts(;|$)/ { got["three_parts"] += $2 }
			$8 == "running" && $13 ~ /;in_kernel(;|$)/ { got["in_kernel"] += $2 }
			END {
				want["one_part"] = one; want["three_parts"] = three; want["in_kernel"] = kernel
				for (f in want) {
					g = n ? got[f] / n : 0; w = want[f] / cpu
					if (g - w > 0.1 || w - g > 0.1) printf "%s: %s %.3f, by its own clock %.3f\n", name, f, g, w
				}
			}' "$TMP/path"
	done <"$TMP/said" >"$TMP/differs"
	differs=$(cat "$TMP/differs")
done
is "$differs" '' 'the shares of three functions in what is running, as far as it has samples, are what the program measured, to 10 %'
is "$(wc -l <"$TMP/said")" 2 'of both threads'
tap_done
