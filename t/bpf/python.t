#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The functions of Python programs are in the stacks, where CPython itself says they are.
# RUNTIME="python3.12 ..." tries other interpreters than Debian's.
# shellcheck disable=SC2016,SC2154,SC2317 # Perl's variables; $rc and others of tap.sh; functions that ok calls
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
. "$(dirname "$0")/../lib/scripts.sh"
need_bpf
export BIN OBJ TMP

counted_some() {
	c_n=$(counter "$1" stacks.scripts_recognised)
	test "${c_n:-0}" -ge 100
}

# --- what CPython says of threads that block in twenty ways ---

poked() {
	[ -s "$TMP/poked" ]
}

record_ways() { # CAP PYTHON PROGRAM ARG...
	w_cap=$1
	w_python=$2
	w_program=$3
	shift 3
	mkfifo "$TMP/go"
	rm -f "$TMP/oracle"* "$TMP/poked"
	"$w_python" "$DATA/python/$w_program" "$TMP/oracle" "$@" <"$TMP/go" >"$TMP/poked" 2>"$TMP/ways.err" &
	ways=$!
	at_exit_kill "$ways"
	exec 7>"$TMP/go"
	rm "$TMP/go"
	until_true test -e "$TMP/oracle"
	# shellcheck disable=SC2086 # words
	rec_start "$w_cap" $depth -p "$ways"
	echo >&7
	until_true poked
	rec_stop
	exec 7>&-
	wait "$ways"
}

for python in ${RUNTIME:-/usr/bin/python3}; do
	depth='--depth 512' record_ways "$TMP/ways.cap" "$python" ways.py
	is "$rc" 0 "$python: threads that block in many ways are recorded"
	like "$(cat "$TMP/rec.err")" "runtimes: python 3\\.[0-9]*, 1 process" "$python: the summary says what was recognised"
	as_json "$TMP/ways.cap"
	grep -v '^$' "$TMP/oracle" | grep -A1 -x '[0-9]*' | grep -v -x -e '[0-9]*' -e -- | sed '
		s/$/ same/; s/^too_many_lines same/too_many_lines same but for 1 lines/' >"$TMP/want"
	ok "$python: CPython reported twenty threads or more" test "$(wc -l <"$TMP/want")" -ge 20
	for when in before during; do
		python3 "$DATA/python/compare.py" "$TMP/oracle" "$TMP/json" $when >"$TMP/got" 2>"$TMP/got.err"
		same "$TMP/got" "$TMP/want" "$python: waits that began $when the recording: the functions, files and lines are CPython's, each behind its native frame"
	done
done

"$BIN/symbolize" -q "$TMP/ways.cap" >"$TMP/text" 2>/dev/null
# before 3.11 names are not qualified
like "$(grep -E 'py::(Pipe.)?wait' "$TMP/text")" '^	               0 py::(Pipe\.)?wait:/.*/t/data/python/ways\.py \(\[python\]\)$' "text: a function and its file, as CPython names them for perf"
like "$(grep 'py::größe' "$TMP/text")" '^	               0 py::größe:a dir/größe: 1\.py \(\[python\]\)$' "text: names that are not ASCII, and files with spaces and colons"
"$BIN/symbolize" -q --lines "$TMP/ways.cap" >"$TMP/lines" 2>/dev/null
like "$(grep -A1 'py::größe' "$TMP/lines")" '^  a\\x20dir/größe:\\x201\.py:4$' "text: --lines prints the line"
"$BIN/fold" "$TMP/text" >"$TMP/folded" 2>/dev/null
between='_PyEval_EvalFrameDefault;.*builtin_sorted'
[ -z "${RUNTIME:-}" ] || between='(_PyEval_EvalFrameDefault|\[python3[^;]*)' # others may be stripped
like "$(grep 'py::sort:' "$TMP/folded")" ";py::sort:[^;]*ways\.py;$between.*;py::(sort\.<locals>\.)?key:[^;]*;(.*;)?py::(Pipe\.)?wait:" "fold: Python and native frames alternate in the order of the calls"
like "$(grep 'py::.*outer:' "$TMP/folded")" ';py::(Handle\.)?_run:.*outer:[^;]*;(.*;)?py::[^;]*middle:[^;]*;(.*;)?py::[^;]*inner:[^;]*;(.*;)?py::(Pipe\.)?wait:' \
	"asyncio: the coroutines that a task awaits are on the stack of the thread that runs it, as CPython's own call graph has them"
is "$(grep 'py::.*outer:' "$TMP/folded" | grep -c 'py::[^;]*begin:')" 0 "a task that awaits this one is suspended, and is not on it"
like "$("$BIN/capinfo" "$TMP/ways.cap")" '^scripts     python: [1-9][0-9]* frames in [1-9][0-9]* waits, 0 of them not readable$' "capinfo counts script frames by runtime"
like "$("$BIN/capinfo" "$TMP/ways.cap")" 'runtimes=python 3' "capinfo says which runtimes were recognised"

# --- several interpreters in a thread ---

# those that alternate are hidden, and before 3.11 all but a single one
ok "a library that embeds CPython is built" "${CC:-cc}" -shared -fPIC -pthread -o "$TMP/interpreters.so" "$DATA/python/interpreters.c"
for python in ${RUNTIME:-/usr/bin/python3}; do
	if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
		printf '%s\n' 'back misplaced' 'one same' 'deep same' 'two same' 'begun same'
	else
		printf '%s\n' 'one misplaced' 'begun same'
	fi >"$TMP/want"
	for depth in '--depth 512' ''; do
		record_ways "$TMP/several.cap" "$python" interpreters.py "$TMP/interpreters.so"
		is "$rc" 0 "$python: threads that execute code of several interpreters are recorded${depth:+, $depth}"
		as_json "$TMP/several.cap"
		for when in before during; do
			python3 "$DATA/python/compare.py" "$TMP/oracle" "$TMP/json" $when v >"$TMP/got" 2>"$TMP/got.err"
			same "$TMP/got" "$TMP/want" "$python: waits that began $when the recording have the functions of all of them, each behind its native frame, or none"
		done
		ok "what has none is counted" test "$(counter "$TMP/several.cap" scripts.mismatch)" -ge 1
	done
done

# --- functions that come and go ---

for python in ${RUNTIME:-/usr/bin/python3}; do
	run timeout -k 5 60 "$BIN/offcpu-record" --force -o "$TMP/churn.cap" -- "$python" "$DATA/python/churn.py" 1
	# on a busy machine the ring buffer may be full, which is counted
	ok "$python: functions that are made and freed at a high rate are recorded" test "$rc" -le 1
	made=$(cat "$out")
	truth python "$TMP/churn.cap"
	like "$(cat "$TMP/truth")" '^right [1-9][0-9]* wrong 0 ' "of $made functions, none has the name, file or line of another one: $(cat "$TMP/truth")"
	ok "functions that differ in nothing but their names, at the same addresses, are not taken for each other" \
		test "$(sed 's/.*names \([0-9]*\) .*/\1/' "$TMP/truth")" -ge 200
	like "$(cat "$TMP/truth")" ' lines 2 ' "nor are those that differ in nothing but their lines"
	like "$(cat "$TMP/truth")" ' codes 2 ' "nor is the code that one function has in turns"
	ok "many others were seen" test "$(sed 's/.*functions //' "$TMP/truth")" -ge 200
	is "$(counter "$TMP/churn.cap" stacks.user_differ)" 0 "no stack was recognised as another one"
done

# --- stacks that are recognised with their functions (bpf/python_same.bpf.h) ---

for python in ${RUNTIME:-/usr/bin/python3}; do
	# all functions are called again for each wait; or only the innermost ones are
	for again in again ''; do
		# shellcheck disable=SC2086 # nothing, if it is empty
		"$python" t/bench/pystack.py 20 $again 7>&- &
		load=$!
		at_exit_kill "$load"
		functions=" $(seq -s ' ' 17 -1 1 | sed 's/[0-9]*/f&/g') <module>"
		[ -n "$again" ] && functions="wait f18$functions" || functions="wait waits$functions"
		for how in '' --verify-stacks; do
			what="$python${how:+, $how}${again:+, all called again}"
			rec "$TMP/same.cap" -d 1 ${how:+"$how"} -p "$load"
			recorded=$(counter "$TMP/same.cap" waits.recorded) same=$(counter "$TMP/same.cap" stacks.scripts_recognised)
			ok "$what: most waits are recognised ($same of $recorded)" test "$same" -ge $((recorded / 2))
			is "$(counter "$TMP/same.cap" stacks.user_differ)" 0 "$what: and those that are listed as well do not differ"
			is "$(waits "$TMP/same.cap" 'my @f = map { $_->{function} // "?" } grep { $_->{runtime} } @{$w->{user_stack}};
				$h{"@f"} = 1 if !$w->{initial} && !$w->{open}')" "$functions 1" "$what: with all functions"
		done
		[ -z "$again" ] || kill "$load"
	done
	rec_start "$TMP/misled.cap" --verify-stacks -p "$load"
	until_true counted_some "$TMP/misled.cap"
	ok "$python: they are made to lead to another stack" "$OBJ/t/work/misguide" "$rec_pid" python_wholes
	rec_stop
	ok "$python: that is found" test "$(counter "$TMP/misled.cap" stacks.user_differ)" -ge 1
	like "$(cat "$TMP/rec.err")" 'user stacks*: .*none was recognised from then on' "$python: and the summary says so"
	kill "$load"
done

# --- processes that begin, exec and end ---

run timeout -k 5 60 "$BIN/offcpu-record" -q --force -o "$TMP/exec.cap" -- /usr/bin/python3 -c '
import os, time
def before():
    time.sleep(0.3)
before()
os.execvp("sleep", ["sleep", "0.2"])'
is "$rc" 0 "a program that calls exec is recorded"
is "$(waits "$TMP/exec.cap" 'for (@{$w->{user_stack}}) { $h{($w->{comm} =~ /sleep/ ? "sleep" : "python") . " " . ($_->{function} // "-")} = 1 if $_->{runtime} && ($_->{function} // "-") eq "before" || $_->{runtime} && $w->{comm} =~ /sleep/ }')" \
	"python before 1" "after exec, the new program has no functions of the old one"

# --- options ---

run timeout -k 5 60 "$BIN/offcpu-record" -v --force --runtimes none -o "$TMP/none.cap" -- /usr/bin/python3 -c 'import time; time.sleep(0.1)'
is "$rc $(waits "$TMP/none.cap" '$n += grep { $_->{runtime} } @{$w->{user_stack}}')" "0 0" "--runtimes none: native frames only"
run "$BIN/offcpu-record" --force --runtimes python,klingon -o "$TMP/no.cap" -- true
is "$rc" 64 "--runtimes: an unknown name is refused"
like "$(cat "$err")" "unknown runtime 'klingon'" "--runtimes: the message says which"

# --- programs that lie ---

build() { # VERSION OUT
	"${CC:-cc}" -O1 -rdynamic -pthread -fcf-protection=none -DVERSION="$1" -o "$2" "$DATA/python/fake.c"
}
ok "a program that claims to be CPython 3.11 is built" build 0x030b02f0UL "$TMP/fake"
ok "and one of a version that does not exist" build 0x036302f0UL "$TMP/future"
fake "$TMP/fake" none cycle interpreters states calls wild kernel odd code thread huge width control
fake "$TMP/future" future
fakes_begun
# shellcheck disable=SC2086 # words
rec "$TMP/unnamed.cap" -d 0.1 $fakes
like "$("$BIN/capinfo" "$TMP/unnamed.cap" 2>/dev/null)" 'its functions are not shown: no target had an interpreter when the recording began; name it with --runtimes' \
	"an interpreter in a file of another name is reported, and --runtimes shows its functions"
# shellcheck disable=SC2086 # words
rec "$TMP/lie.cap" --runtimes python -d 0.3 $fakes
is "$rc" 0 "programs that lie about their frames are recorded"
lied() { # HOW: its functions, behind a native frame
	seen "$TMP/lie.cap" "$1" '((grep { ($_->{symbol} // "") =~ /^_PyEval_EvalFrameDefault/ } @{$w->{user_stack}}) ? "native" : "-"), map { $_->{function} // "?" } @s'
}
is "$(lied none)" "native forged0 forged1 forged2 forged3" "a forged CPython that is consistent has its frames"
is "$(lied cycle | wc -w)" 126 "a cycle of frames ends at the depth limit of 127, two of which are native"
for how in interpreters states; do
	is "$(lied $how)" "native" "a cycle of $how ends too: no frame is shown"
done
is "$(lied calls)" "native" "more groups of frames than native frames: none is shown"
ok "and that is counted" test "$(counter "$TMP/lie.cap" scripts.mismatch)" -ge 1
for how in wild kernel odd code; do
	is "$(lied $how)" "native" "a pointer that leads nowhere ($how): no frame is shown"
done
ok "and that is counted" test "$(counter "$TMP/lie.cap" scripts.no_memory)" -ge 4
is "$(lied thread)" "native" "the state of another thread is not used"
ok "and that is counted" test "$(counter "$TMP/lie.cap" scripts.no_thread)" -ge 1
is "$(lied huge)" "native ? forged1 forged2 forged3" "a name of 2^62 bytes is not readable"
is "$(lied width)" "native ? ? ? forged3" "strings of an unknown form are not readable"
ok "and that is counted" test "$(counter "$TMP/lie.cap" scripts.unnamed)" -ge 4
"$BIN/symbolize" -q "$TMP/lie.cap" >"$TMP/text" 2>/dev/null
like "$(grep 'not readable' "$TMP/text")" '^	               0 \[python: not readable\] \(\[python\]\)$' "and is printed as such"
like "$(grep 'py::.x0a' "$TMP/text")" '^	               0 py::\\x0a;{\\x09' "control characters in a name are escaped"
is "$(lied future)" "native" "an unknown version: no frames are guessed"
is "$(counter "$TMP/lie.cap" scripts.refused)" 1 "and that is counted"
like "$("$BIN/capinfo" "$TMP/lie.cap")" 'python 3\.99 \(version not known, its functions are not shown\), 1 process' "and the capture says so"
tap_done
