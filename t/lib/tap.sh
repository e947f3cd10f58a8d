# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
# The TAP harness of the shell tests: source it first, call tap_done last.
#
#   ok NAME COMMAND...        passes if COMMAND exits with 0
#   status N NAME COMMAND...  passes if COMMAND exits with N (never after a crash)
#   is GOT WANT NAME          compares two strings
#   like GOT REGEX NAME       matches with grep -E; one of several lines, with Perl
#   same FILE FILE NAME       compares two files, shows the first differences
#   skip NAME REASON          counts a test that cannot run here
#   run COMMAND...            runs it; sets $out and $err (files) and $rc
#
# $BIN is the folder of the tools, $OBJ/t/work has the workload programs, $DATA is
# t/data; $TMP is a folder that is removed at the end.

t_dir=$(cd "$(dirname "$0")" && pwd)
TOP=${t_dir%/t/*}
DATA=$TOP/t/data
export STACKTOOLS="$TOP" # runtimes of scripts/runtimes see this tree
BIN=${STACKTOOLS_BIN:-$TOP/bin}
OBJ=${STACKTOOLS_OBJ:-$TOP/obj}
# scripts/demo builds less than the tests need; SAN=1 builds only the programs of the unit tests
case $t_dir in
*/unit) set -- "$t_dir/${0##*/}" ;;
*) set -- "$TOP"/t/work/*.c ;;
esac
for t_program in "$@"; do
	t_program=$OBJ/${t_program#"$TOP/"}
	if ! [ -x "${t_program%.*}" ]; then
		echo "Bail out!  '${t_program%.*}' is not built: run make first"
		exit 1
	fi
done
set --
TMP=$(mktemp -d "${TMPDIR:-/tmp}/stacktools-t.XXXXXX") || exit 1
export LC_ALL=C.UTF-8
export STACKTOOLS_CACHE="${STACKTOOLS_CACHE-$TMP/cache}" # not the tables that another version has kept
out=$TMP/out
err=$TMP/err
rc=0
tap_n=0
tap_failed=0
tap_pids=

tap_cleanup() {
	for p in $tap_pids; do
		kill "$p" 2>/dev/null
	done
	rm -rf "$TMP"
}
trap tap_cleanup EXIT
trap 'exit 1' INT TERM HUP

# at_exit_kill PID: kills PID, a workload, when the test ends
at_exit_kill() {
	tap_pids="$tap_pids $1"
}

pass() {
	tap_n=$((tap_n + 1))
	echo "ok $tap_n - $1"
}

fail() {
	tap_n=$((tap_n + 1))
	tap_failed=$((tap_failed + 1))
	echo "not ok $tap_n - $1"
}

diag() {
	sed 's/^/# /' | head -n "${1:-20}"
}

skip() {
	tap_n=$((tap_n + 1))
	echo "ok $tap_n - $1 # SKIP $2"
}

skip_all() {
	echo "1..0 # SKIP $1"
	exit 0
}

run() {
	"$@" >"$out" 2>"$err" </dev/null
	rc=$?
}

ok() {
	t_name=$1
	shift
	if "$@" >"$TMP/ok.log" 2>&1; then
		pass "$t_name"
	else
		t_rc=$?
		fail "$t_name"
		{
			echo "exit status $t_rc of: $*"
			cat "$TMP/ok.log"
		} | diag
	fi
}

status() {
	t_want=$1
	t_name=$2
	shift 2
	run "$@"
	if [ "$rc" -eq "$t_want" ]; then
		pass "$t_name"
	else
		fail "$t_name"
		{
			echo "exit status $rc, want $t_want, of: $*"
			cat "$err"
		} | diag
	fi
}

is() {
	if [ "$1" = "$2" ]; then
		pass "$3"
	else
		fail "$3"
		printf 'got:  %s\nwant: %s\n' "$1" "$2" | diag
	fi
}

# grep(1) takes each line of a pattern for a pattern of its own: several lines are Perl's
matches() {
	case $2 in
	*"
"*) printf '%s\n' "$1" | perl -e '$like = shift; local $/; exit <STDIN> !~ /$like/' "$2" ;;
	*) printf '%s\n' "$1" | grep -qE -e "$2" ;;
	esac
}

like() {
	if matches "$1" "$2"; then
		pass "$3"
	else
		fail "$3"
		printf 'got: %s\nwant a match of: %s\n' "$1" "$2" | diag
	fi
}

same() {
	if cmp -s "$1" "$2"; then
		pass "$3"
	else
		fail "$3"
		diff -u "$1" "$2" | cut -c1-200 | diag 30
	fi
}

tap_done() {
	${tap_last-:} # a last check
	echo "1..$tap_n"
	[ "$tap_failed" -eq 0 ]
	exit
}
