# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
# shellcheck disable=SC2016,SC2154 # Perl's variables; $TMP and others of tap.sh
# Functions for tests of interpreters' functions: source this after record.sh.
#
#   record_ways LANGUAGE VERSION PROGRAM ARG...
#                               records the processes $(way_ids) of the program t/data/LANGUAGE/ways
#                               into $TMP/ways.cap, and $TMP/json: it was given $TMP/said, and wrote
#                               how many ways it has to $TMP/said.ways
#   as_json CAP                 writes symbolize's JSON to $TMP/json
#   same_ways FRAME NAME [SED]  the processes that wrote their frames to files in $TMP/said have
#                               these in $TMP/json, each behind native frames FRAME; the files'
#                               names and verdicts must be those in $TMP/want; SED edits the verdicts
#   truth LANGUAGE CAP          compares the frames of t/data/LANGUAGE/churn: $TMP/truth
#
# A fake is a program of t/data/LANGUAGE/fake.c, whose argument says how its structures lie:
#   fake PROGRAM HOW...         starts one for each HOW
#   fakes_begun                 returns when all of them wait; sets $fakes to "-p PID -p PID ..."
#   seen CAP HOW LIST           the waits of a fake; LIST is Perl: words from @s, the script frames of $w

way_ids() {
	pgrep -P "$ways"
}

ways_said() {
	[ -s "$TMP/said.ways" ] && [ "$(find "$TMP/said" -type f ! -name '*.new' | wc -l)" -eq "$(cat "$TMP/said.ways")" ]
}

record_ways() {
	w_language=$1 w_version=$2
	shift 2
	mkdir "$TMP/said"
	mkfifo "$TMP/go"
	"$@" <"$TMP/go" >"$TMP/ways.out" 2>&1 &
	ways=$!
	at_exit_kill "$ways"
	exec 7>"$TMP/go"
	ok "$w_language reported the frames of each way" until_true ways_said
	# shellcheck disable=SC2046 # a list
	rec_start "$TMP/ways.cap" $(way_ids | sed 's/^/-p /')
	sleep 1
	rec_stop
	exec 7>&-
	wait "$ways"
	is "$rc" 0 "processes that block in many ways are recorded"
	like "$(cat "$TMP/rec.err")" "runtimes: $w_language $(echo "$w_version" | sed 's/\./\\./'), [0-9]* processes" "the summary says what was recognised"
	as_json "$TMP/ways.cap"
}

as_json() {
	"$BIN/symbolize" -q --format=json "$1" >"$TMP/json" 2>"$TMP/json.err"
}

same_ways() {
	for when in before during; do
		python3 "$DATA/compare-scripts.py" "$TMP/said" "$TMP/json" "$1" $when v >"$TMP/got" 2>"$TMP/got.err"
		sed -i "${3-}" "$TMP/got"
		# when the recording began, a process may have been running, or one or two waited elsewhere in their loop
		if [ $when = before ]; then
			ok "at most two of them waited elsewhere" test "$(grep -c different "$TMP/got")" -le 2
			grep -vE 'no wait|different' "$TMP/got" >"$TMP/began"
			mv "$TMP/began" "$TMP/got"
		fi
		ok "most of them waited $when the recording" test "$(wc -l <"$TMP/got")" -ge 25
		sed 's/ .*//' "$TMP/got" | grep -w -f - "$TMP/want" >"$TMP/want.now"
		same "$TMP/got" "$TMP/want.now" "waits that began $when the recording: $2"
		cmp -s "$TMP/got" "$TMP/want.now" || diag <"$TMP/got.err"
	done
}

truth() {
	as_json "$2"
	python3 "$DATA/churn-truth.py" "$1" "$TMP/json" >"$TMP/truth" 2>"$TMP/wrong"
}

fake() {
	f_program=$1
	shift
	for f_how; do
		mkfifo "$TMP/fake.$f_how"
		"$f_program" "$f_how" <"$TMP/fake.$f_how" >"$TMP/fake.$f_how.out" 7>&- 8>&- &
		at_exit_kill $!
		echo "$! $f_how" >>"$TMP/fakes"
	done
}

# none of them waits before its standard input is opened
fakes_begun() {
	fakes=
	while read -r f_pid f_how; do
		sleep 60 >"$TMP/fake.$f_how" &
		at_exit_kill $!
		until_true test -s "$TMP/fake.$f_how.out"
		fakes="$fakes -p $f_pid"
	done <"$TMP/fakes"
}

seen() {
	waits "$1" 'my @s = grep { $_->{runtime} } @{$w->{user_stack}};
		push @o, join " ", '"$3"' if $w->{pid} == '"$(awk -v how="$2" '$2 == how { print $1 }' "$TMP/fakes")"
}
