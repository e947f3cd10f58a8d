#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# stackexport of a real recording, each wait by itself and with wakers: every format has what symbolize's text has.
# shellcheck disable=SC2154 # $rc and others of tap.sh
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf

rec "$TMP/e.cap" --events --wakers -- "$OBJ/t/work/timed"
is "$rc" 0 "a program is recorded with its waits by themselves"
"$BIN/symbolize" -q --events "$TMP/e.cap" >"$TMP/text"
perl "$DATA/export/read.pl" text "$TMP/text" >"$TMP/want"
"$BIN/symbolize" -q --format=tables --events "$TMP/e.cap" >"$TMP/always"
"$BIN/symbolize" -q --format=tables --events=auto "$TMP/e.cap" >"$TMP/auto"
same "$TMP/auto" "$TMP/always" "symbolize --events=auto prints single waits where the capture has them"
ok "it waited in several places" test "$(wc -l <"$TMP/want")" -gt 3
for format in pprof speedscope firefox perfetto otlp; do
	case $format in
	pprof) command -v go >/dev/null || continue ;;
	perfetto | otlp) command -v protoc >/dev/null || continue ;;
	esac
	run "$BIN/stackexport" --events --format=$format -o "$TMP/$format" "$TMP/e.cap"
	is "$rc" 0 "$format is written"
	perl "$DATA/export/read.pl" $format "$TMP/$format" >"$TMP/got" 2>&1
	case $format in
	speedscope | firefox) sed 's/ [0-9]* \([0-9]*\)$/ - \1/' "$TMP/want" >"$TMP/want.$format" ;;
	*) cp "$TMP/want" "$TMP/want.$format" ;;
	esac
	same "$TMP/got" "$TMP/want.$format" "$format has each stack of each thread with its exact time"
done
is "$("$BIN/stackreport" --json --all "$TMP/e.cap" 2>/dev/null | sed -n 's/.*"total_ns": \([0-9]*\), "count": \([0-9]*\), "mean.*/\2 \1/p' | head -n 1)" \
	"$(perl "$DATA/export/read.pl" sums text "$TMP/text" | sed -n 's/^wait //p')" "which is stackreport's sum"

tap_done
