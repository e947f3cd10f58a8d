#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# A capture that is printed while it is written.
# shellcheck disable=SC2016,SC2154,SC2317 # Perl's variables; $rc and others of tap.sh; functions that ok calls
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf

# Four seconds of a program, as it is recorded; the text comes with the time at which it came.
mkfifo "$TMP/in"
"$OBJ/t/work/switch" sleep 1000000 10 20 <"$TMP/in" >"$TMP/pid" &
exec 7>"$TMP/in"
echo >&7
until_true test -s "$TMP/pid"
pid=$(head -n 1 "$TMP/pid")
at_exit_kill "$pid"
"$BIN/offcpu-record" -q -o - --wakers -p "$pid" -d 4 7>&- | tee "$TMP/c.cap" | "$BIN/symbolize" -q --live - 2>"$err" |
	perl -MTime::HiRes=time -ne 'BEGIN { $| = 1; open $out, ">", shift; $t = time } print $out $_;
		printf "%.3f %s\n", time - $t, $1 if /^# flush: duration=(\S+)/' "$TMP/live.txt" >"$TMP/when"
is "$(cat "$err")" '' 'a recording is printed while it lasts'
ok 'the text comes in pieces, with what each second had' test "$(wc -l <"$TMP/when")" -ge 4
# the recording begins at a time of its own: the delay is how much more the clock has moved between two flushes
is "$(awk 'NR == 1 { t = $1 - $2 } NR > 1 && NR < 5 && ($1 - $2 - t > 0.5 || t - ($1 - $2) > 0.5) { n++ } END { print n + 0 }' "$TMP/when")" 0 \
	'each piece comes when its second is over'
"$BIN/symbolize" -q "$TMP/c.cap" >"$TMP/whole.txt"
for by in '--tid' '--wakers' '--no-idle'; do
	"$BIN/fold" $by "$TMP/live.txt" >"$TMP/live"
	"$BIN/fold" $by "$TMP/whole.txt" >"$TMP/whole"
	same "$TMP/whole" "$TMP/live" "all pieces together are the whole: fold $by"
done
is "$(grep -c '^# stacktools perf-script' "$TMP/live.txt")" 1 'there is one head'

# the same of a file that is there already; JSON, single waits, a selection
"$BIN/symbolize" -q --live --format=json "$TMP/c.cap" >"$TMP/live.json"
is "$(perl -MCpanel::JSON::XS -ne 'my $w = decode_json($_); $n += $w->{total_ns} if $w->{type} eq "wait"; $f++ if $w->{type} eq "flush" && $w->{time_ns} > 0;
	END { printf "%d %s", $n, $f >= 4 ? "flushes" : "" }' "$TMP/live.json")" \
	"$(waits "$TMP/c.cap" '$n += $w->{total_ns}') flushes" 'JSON has the same, with an object for each flush'
tid=$(waits "$TMP/c.cap" 'push @o, $w->{tid} if $w->{count} > 9 && !@o')
is "$("$BIN/symbolize" -q --live -t "$tid" "$TMP/c.cap" | "$BIN/fold")" "$("$BIN/symbolize" -q -t "$tid" "$TMP/c.cap" | "$BIN/fold")" \
	'-t selects in each piece'
rec "$TMP/e.cap" --events -p "$pid" -d 2
"$BIN/symbolize" -q --live --events "$TMP/e.cap" | "$BIN/fold" --tid >"$TMP/live"
"$BIN/symbolize" -q --events "$TMP/e.cap" | "$BIN/fold" --tid >"$TMP/whole"
same "$TMP/whole" "$TMP/live" 'with --events each wait is by itself'
is "$("$BIN/symbolize" -q --live --events "$TMP/e.cap" | grep -c '^# wait: count=1 ')" "$(counter "$TMP/e.cap" waits.recorded)" 'all of them'

# what is wrong with it
head -c 10000 "$TMP/c.cap" >"$TMP/cut.cap"
run "$BIN/symbolize" -q --live "$TMP/cut.cap"
is "$rc" 1 'a capture that is cut gives status 1'
like "$(cat "$err")" '^symbolize: the capture is incomplete: ' 'and a message'
"$BIN/symbolize" -q --live "$TMP/cut.cap" 2>/dev/null | "$BIN/fold" >"$TMP/live"
"$BIN/symbolize" -q "$TMP/cut.cap" 2>/dev/null | "$BIN/fold" >"$TMP/whole"
same "$TMP/whole" "$TMP/live" 'what is there is printed'
echo text >"$TMP/text"
run "$BIN/symbolize" --live "$TMP/text"
is "$rc $(head -n 1 "$err")" "2 symbolize: '$TMP/text': not a capture" 'a text is refused'
run "$BIN/symbolize" --live "$TMP/none"
is "$rc" 2 'a missing file is an error'
run "$BIN/symbolize" --live --stats "$TMP/c.cap"
is "$rc" 64 '--live and --stats exclude one another'
for format in perf tables; do
	run "$BIN/symbolize" --live --format=$format "$TMP/c.cap"
	is "$rc $(head -n 1 "$err")" "64 symbolize: --live and --format=$format exclude one another" "--live is not for --format=$format"
done
run "$BIN/symbolize" --live --events "$TMP/c.cap"
is "$rc" 2 '--live --events of a capture of sums is an error'
"$BIN/symbolize" -q --live "$TMP/c.cap" >/dev/full 2>"$err"
is "$?" 2 'a full device gives status 2'
like "$(cat "$err")" 'No space left on device' 'and a message'

# readers that have gone: the recorder ends as well
"$BIN/offcpu-record" -q -o - -p "$pid" -d 60 7>&- 2>/dev/null | "$BIN/symbolize" -q --live - 2>/dev/null | head -n 30 >/dev/null &
gone=$!
ended() {
	! kill -0 "$gone" 2>/dev/null
}
ok 'when the reader is gone, so are the others' until_true ended
tap_done
