#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The situations of docs/tutorial.md: stackreport's first three rows name the cause, and no longer do
# when it is fixed.
# shellcheck disable=SC2154 # $rc and others of tap.sh
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf
tutorial=$TOP/t/tutorial
PATH=/usr/bin:$PATH # Debian's Python

is_ready() { # NAME PID
	grep -qs '^ready: process [0-9]' "$TMP/$1" || [ ! -e "/proc/$2/exe" ]
}

# shellcheck disable=SC2009 # pgrep counts those that only wait to be reaped
has_ended() { # PID...
	! ps -o stat= -s "$*" | grep -q '^[^Z]'
}

# begin NAME ARG...: starts a script and sets $script, and $process to what it wants recorded. The script has a
# session of its own, which must be empty at the end.
begin() {
	b_name=$1
	b_script=$tutorial/$2
	shift 2
	rm -f "$TMP/$b_name"
	setsid sh "$b_script" "$@" >"$TMP/$b_name" 2>&1 </dev/null &
	script=$!
	at_exit_kill $script
	until_true is_ready "$b_name" $script
	process=$(sed -n 's/^ready: process //p' "$TMP/$b_name")
	if [ -z "$process" ]; then
		fail "${b_script##*/} $* is ready"
		diag <"$TMP/$b_name"
		process=$script
	fi
}

# rows PID: the first three rows of the table, as "KIND STACK", those of 40 % and more: causes
# have two thirds or more, and on a busy machine what replaces them takes longer, too
rows() {
	"$BIN/symbolize" -q -p "$1" "$TMP/cap" | "$BIN/stackreport" --width 132 --top 3 >"$TMP/table" || echo "no table"
	awk 'row { sub(/^ */, ""); print kind, $0 } { row = /^ +[0-9]+\. / && $4 >= 40; kind = $NF }' "$TMP/table"
}

# tells SECONDS NAME KIND FUNCTION
tells() {
	begin broken "$2"
	script1=$script process1=$process
	begin fixed "$2" fixed
	rec "$TMP/cap" -d "$1" -p "$process1" -p "$process"
	is "$rc" 0 "$2: it is recorded, broken and fixed"
	kill "$script" "$script1"
	wait "$script" "$script1" 2>/dev/null
	ok "$2: the scripts leave no process behind" until_true has_ended "$script" "$script1"
	like "$(rows "$process1")" "^$3 .*$4 > " "$2: the first rows name $4, kind $3"
	rows=$(rows "$process")
	if matches "$rows" "^no table|^$3 .*$4"; then
		fail "$2, fixed: there are others"
		printf '%s\n' "$rows" | diag
	else
		pass "$2, fixed: there are others"
	fi
}

tells 1 convoy lock price_of
if [ "$(stat -f -c %T /var/tmp)" = tmpfs ]; then
	skip "fsync" "/var/tmp is in memory"
else
	tells 1 fsync fsync flushAppendOnlyFile
fi
tells 1 rows net-receive py::price_of:rows.py
# a report takes half a second, a query one: each recording has the end of one, and another
tells 2 retry sleep py::retry:retry.py
if ! unshare --mount --net true 2>"$TMP/why"; then
	skip "resolver" "$(head -n 1 "$TMP/why")"
else
	before=$(cat /etc/resolv.conf /proc/self/mountinfo)
	tells 2 resolver net-receive py::getaddrinfo:socket.py
	is "$(cat /etc/resolv.conf /proc/self/mountinfo)" "$before" "resolver: the machine's own name servers are as they were"
fi

for name in "$tutorial"/*; do
	[ "${name%.py}" = "$name" ] || continue
	status 64 "${name##*/} refuses other words than fixed" sh "$name" broken
	is "$(wc -l <"$err")" 1 "and says what it takes"
	ok "and is in the tutorial" grep -q "^    .*sh t/tutorial/${name##*/}\$" "$TOP/docs/tutorial.md"
done
tap_done
