#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# flame --heat and --threads of a real recording: a program whose threads wake one another (t/work/timed.c).
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf
F=$DATA/flame

rec "$TMP/t.cap" --events --wakers -- "$OBJ/t/work/timed"
is "$rc" 0 'a program is recorded with its waits by themselves'
"$BIN/symbolize" -q --events "$TMP/t.cap" >"$TMP/text"
for view in heat threads; do
	run "$BIN/flame" --$view "$TMP/text"
	cp "$out" "$TMP/$view.html"
	is "$rc:$(cat "$err")" 0: "--$view draws it"
	is "$(sed -n 's/^"waits":\([0-9]*\),$/\1/p' "$TMP/$view.html")" "$(counter "$TMP/t.cap" waits.recorded)" "--$view has all waits of the recording"
	is "$(sed -n 's/^"total":"\([0-9]*\)",$/\1/p' "$TMP/$view.html")" "$(sed -n 's/^# totals: .* total_ns=\([0-9]*\) .*/\1/p' "$TMP/text")" \
		"--$view has their time"
done
# how functions are called is for t/tools/fold.t
perl "$F/times" "$TMP/threads.html" | sed 's/>.*/>/' | sort >"$TMP/got"
perl "$F/times" --of "$TMP/text" "$TMP/threads.html" | sed 's/>.*/>/' | sort >"$TMP/want"
same "$TMP/got" "$TMP/want" 'each wait has its times, its thread and its waker'
ok "threads have arrows: $(grep -c '<[a-z].* [0-9]*/[0-9]*>' "$TMP/got") waits were ended by threads" \
	test "$(grep -c '<[a-z].* [0-9]*/[0-9]*>' "$TMP/got")" -ge 100
run sh -c '"$1/symbolize" -q "$2" | "$1/flame" --heat' sh "$BIN" "$TMP/t.cap"
is "$rc:$(grep -c 'have no place in time\|which have no place' "$err")" 1:1 'without symbolize --events there are sums, which are reported'
run "$BIN/flame" --heat "$TMP/t.cap"
is "$rc" 2 'a capture is refused'
like "$(cat "$err")" "is a capture, not the text of symbolize
flame: hint: .*symbolize --events FILE \| flame --heat" 'with the pipeline that is missing'
tap_done
