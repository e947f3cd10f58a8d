# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154 # for the tests; $rc of tap.sh
# Functions for tests that compare recorded user stacks with those of the debuggers eu-stack
# and gdb: source this after tap.sh and record.sh.
#
#   build NAME SOURCE [FLAG...]   compiles t/data/unwind/SOURCE with $compiler to $W/NAME
#   start NAME COMMAND...         starts it with a stdin that never has input
#   start_busy NAME COMMAND...    the same for a program that wakes up now and then
#   also NAME PID OUTPUT          adds a process that one of them started
#   pid_of NAME                   prints its PID
#   record_blocked CAP [ARG...]   records all these programs while they are blocked:
#                                 each thread both as it is found and as it blocks
#                                 again, after SIGSTOP and SIGCONT
#   agrees TEXT NAME [OPTION...]  test "TEXT: stacks match the debuggers'": runs
#                                 t/data/unwind/agree on NAME's process and the last
#                                 capture, with the program's chains
#   agreed                        reports these tests; call it before anything ends or changes
#   finish                        kills all these programs
#
# ORACLES_ONLY=1 in the environment compares the two debuggers with each other and
# records nothing: if they disagree, no recorded stack can match both.

W=$TMP/w
mkdir "$W"
mkfifo "$TMP/silence"
# a pipe that nothing writes to and that never reaches its end
exec 7<>"$TMP/silence"
work_names=
busy_names=
compiler=${CC:-cc}
a_jobs=
a_n=0
blocked_cap=
export DEBUGINFOD_URLS=
# only tables that this build makes, no older ones
export STACKTOOLS_CACHE="$TMP/cache"

finish() {
	for f_name in $work_names; do
		f_pid=$(cat "$W/$f_name.pid")
		# its process group too: it may have children
		[ "${f_pid:-0}" -le 1 ] || kill -KILL "$f_pid" "-$f_pid" 2>/dev/null
	done
	work_names=
}
trap 'finish; tap_cleanup' EXIT

build() {
	b_name=$1
	b_source=$DATA/unwind/$2
	shift 2
	"$compiler" -D_GNU_SOURCE -pthread -o "$W/$b_name" "$b_source" "$@" >"$W/$b_name.log" 2>&1 && return
	diag <"$W/$b_name.log"
	return 1
}

start() {
	s_name=$1
	shift
	work_names="$work_names $s_name"
	setsid "$@" <&7 >"$W/$s_name.out" 2>"$W/$s_name.err" 7>&- &
	echo $! >"$W/$s_name.pid"
}

start_busy() {
	start "$@"
	busy_names="$busy_names $1"
}

also() {
	work_names="$work_names $1"
	echo "$2" >"$W/$1.pid"
	cp "$3" "$W/$1.out"
}

# hook: runs while record_blocked records
meanwhile() { :; }
# hook: runs right before the recording ends
before_stop() { :; }

pid_of() {
	cat "$W/$1.pid"
}

settled() {
	e_pids=
	for e_name in $work_names; do
		case " $busy_names " in
		*" $e_name "*) ;;
		*) e_pids="$e_pids $(pid_of "$e_name")" ;;
		esac
	done
	# shellcheck disable=SC2086 # words
	[ -z "$e_pids" ] || perl "$DATA/unwind/settled" $e_pids | diag
}

record_blocked() {
	blocked_cap=$1
	shift
	r_pids=
	r_busy=
	for r_name in $work_names; do
		r_pids="$r_pids $(pid_of "$r_name")"
		case " $busy_names " in
		*" $r_name "*) r_busy="$r_busy $(pid_of "$r_name")" ;;
		esac
	done
	# shellcheck disable=SC2086 # words
	[ -z "$r_busy" ] || perl "$DATA/unwind/busy" calm $r_busy | diag
	settled
	[ -z "${ORACLES_ONLY-}" ] || return
	# shellcheck disable=SC2046,SC2086 # words
	rec_start "$blocked_cap" -q --force $(printf ' -p %s' $r_pids) "$@"
	if [ ! -e "$blocked_cap" ]; then
		diag <"$TMP/rec.err"
		return 1
	fi
	# shellcheck disable=SC2086
	[ -z "$r_busy" ] || perl "$DATA/unwind/busy" switches $r_busy >"$W/switches"
	# shellcheck disable=SC2086
	kill -STOP $r_pids
	# a thread that has not stopped when it is to continue has not left its wait; one may be unable to stop
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
		sleep 0.1
		# shellcheck disable=SC2046,SC2086
		grep -h '^State:' $(printf '/proc/%s/task/*/status ' $r_pids) 2>/dev/null | grep -qv 'T (stopped)' || break
	done
	# shellcheck disable=SC2086
	kill -CONT $r_pids
	meanwhile
	settled
	[ -z "$r_busy" ] || perl "$DATA/unwind/busy" resumed "$W/switches" | diag
	before_stop
	rec_stop
	[ "$rc" -eq 0 ] || { cat "$TMP/rec.err" && "$BIN/capinfo" "$blocked_cap" | grep '[^_]lost'; } | diag
}

agrees() {
	a_text=$1
	a_name=$2
	shift 2
	[ -z "${ORACLES_ONLY-}" ] || set -- --only-oracles "$@"
	grep -q '^chain ' "$W/$a_name.out" && set -- --chain "$W/$a_name.out" "$@"
	a_n=$((a_n + 1))
	STACKTOOLS_BIN=$BIN perl "$DATA/unwind/agree" "$@" "$(pid_of "$a_name")" "$blocked_cap" >"$W/agree-$a_n" 2>&1 7>&- &
	a_jobs="$a_jobs $!,$a_n"
	printf '%s\n' "$a_text" >"$W/text-$a_n"
	# two at a time
	case $a_jobs in
	*' '*' '*) agreed 1 ;;
	esac
}

# agreed [N]: reports the started tests, or the first N of them
agreed() {
	g_left=${1:-1000}
	for g_job in $a_jobs; do
		[ "$g_left" -gt 0 ] || return 0
		g_left=$((g_left - 1))
		a_jobs=${a_jobs#" $g_job"}
		if wait "${g_job%,*}"; then
			pass "$(cat "$W/text-${g_job#*,}"): stacks match the debuggers'"
		else
			fail "$(cat "$W/text-${g_job#*,}"): stacks match the debuggers'"
			diag "${DIAG:-50}" <"$W/agree-${g_job#*,}"
		fi
	done
}
