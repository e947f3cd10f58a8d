#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The stacks of Node programs are complete without any flag, and have the functions of JavaScript that V8
# itself prints, with file and line. RUNTIME: the node to be used.
# shellcheck disable=SC2016,SC2154 # Perl's variables; $rc and others of tap.sh
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
. "$(dirname "$0")/../lib/scripts.sh"
need_bpf
node=${RUNTIME:-node}
command -v "$node" >/dev/null || skip_all "no node"
v8=$("$node" -p 'process.versions.v8.split(".").slice(0, 2).join(".")' 2>/dev/null)
case $v8 in
10.2 | 11.3 | 12.4) ;;
*) skip_all "V8 $v8 is not known" ;;
esac
mkfifo "$TMP/go"

# --- what V8 says of threads that wait in many ways ---

# ways NAME FLAG WAY...: starts the program, with these ways or all; its PID is then in $ways
ways() {
	w_name=$1 w_flag=$2
	shift 2
	mkdir -p "$TMP/$w_name/said"
	mkfifo "$TMP/$w_name/fifo"
	"$node" ${w_flag:+"$w_flag"} "$DATA/node/ways.js" "$TMP/$w_name/said" "$TMP/$w_name/fifo" "$@" >"$TMP/$w_name/out" 2>&1 7>&- &
	at_exit_kill $!
	exec 7<>"$TMP/$w_name/fifo"
	until_true said "$w_name"
	read -r ways <"$TMP/$w_name/said/main"
	at_exit_kill "$ways"
}
said() {
	[ "$(find "$TMP/$1/said" -type f ! -name '*.new' | wc -l)" -eq "$(($(sed -n "s/^\([0-9]*\)$/\1/p" "$TMP/$1/out" 2>/dev/null) + 1))" ]
}
same_ways() { # NAME SEEN
	"$BIN/symbolize" -q --format=json "$TMP/$1.cap" >"$TMP/json"
	python3 "$DATA/node/compare.py" "$TMP/$1/said" "$TMP/json" v >"$TMP/got" 2>"$TMP/got.err"
	is "$(grep -vE ' (same|no wait)$' "$TMP/got")" "" "$1: functions, files and lines are V8's, and the stacks complete"
	ok "$1: of $(wc -l <"$TMP/got") ways, $2 and more were seen" test "$(grep -c ' same$' "$TMP/got")" -ge "$2"
	head -60 "$TMP/got.err" | diag
}
ways plain ''
run timeout -k 5 60 "$BIN/offcpu-record" --force --depth 512 -d 1 -o "$TMP/plain.cap" -p "$ways"
kill "$ways"
is "$rc" 0 "threads that wait in many ways are recorded"
like "$(cat "$err")" "runtimes: v8 $v8, 1 process \\(while its event loop waits, no function is being called\\)" "the summary says what was recognised, and of what waits there is no function"
same_ways plain 40
"$BIN/symbolize" -q "$TMP/plain.cap" >"$TMP/text"
like "$(cat "$TMP/text")" '
	               0 JS:pause /[^ ]*/ways\.js \(\[v8\]\)
	               0 JS:{anonymous} /[^ ]*/ways\.js \(\[v8\]\)
	               0 JS:map \(\[v8\]\)
' "text: functions are named as V8 names them for perf"
like "$("$BIN/symbolize" -q --lines "$TMP/plain.cap")" '
	               0 JS:deep /[^ ]*/ways\.js \(\[v8\]\)
  /[^ ]*/ways\.js:[0-9]+
' "text: files and lines with --lines"
like "$("$BIN/fold" "$TMP/text")" ';JS:main [^;]*ways\.js;JS:pause [^;]*ways\.js;JS:wait;' "fold: functions are in folded stacks"
like "$("$BIN/capinfo" "$TMP/plain.cap")" '^scripts     v8: [1-9][0-9]* frames in [1-9][0-9]* waits' "capinfo counts script frames by runtime"

# Sparkplug compiles everything, or nothing is compiled
ways baseline --always-sparkplug wait map deep generator async read timer
baseline=$ways
ways interpreted --jitless wait sort deep generator eval spawn tick
run timeout -k 5 60 "$BIN/offcpu-record" --force --depth 512 -d 1 -o "$TMP/baseline.cap" -p "$baseline" -p "$ways"
kill "$baseline" "$ways"
cp "$TMP/baseline.cap" "$TMP/interpreted.cap"
same_ways baseline 7
same_ways interpreted 7

# --- isolates that differ by what their texts say alone ---

"$node" "$DATA/node/isolates.js" 7>&- &
isolates=$!
at_exit_kill "$isolates"
alike() {
	run timeout -k 5 60 "$BIN/offcpu-record" --force -d 0.5 -o "$TMP/isolates.cap" -p "$isolates"
	"$BIN/symbolize" -q --lines "$TMP/isolates.cap" | sed -n '/ JS:alike /{n;s/.*:\([0-9]*\)$/\1/p;}' | sort -nu | xargs >"$TMP/alike"
	[ "$(wc -w <"$TMP/alike")" -eq 2 ]
}
until_true alike
kill "$isolates"
is "$(cat "$TMP/alike")" "2 22" "functions of the same name, file and length in two isolates have the lines of their own text"

# --- functions that come and go, and objects that move ---

"$node" --expose-gc "$DATA/node/churn.js" 800 <"$TMP/go" >"$TMP/churn.out" 2>&1 7>&- &
churn=$!
at_exit_kill "$churn"
exec 7>"$TMP/go"
until_true grep -q ready "$TMP/churn.out"
rec_start "$TMP/churn.cap" -q -p "$churn"
echo go >&7
until_true grep -q made "$TMP/churn.out"
rec_stop
kill "$churn" 2>/dev/null
seen=$(waits "$TMP/churn.cap" 'my @f = grep { $_->{runtime} } @{$w->{user_stack} || []};
	return if ($f[0]{function} // "") ne "wait";
	return $h{unreadable}++ if !defined $f[1]{function};
	my ($n) = $f[1]{function} =~ /^f(\d+)$/ or return $h{"wrong: $f[1]{function}"} = 1;
	return $h{"wrong: $f[1]{function} of $f[1]{file}:$f[1]{line}"} = 1
		if $f[1]{file} ne "f$n.js" || ($f[1]{line} // 0) != $n % 50 + 1;
	push @{$c{times}}, [$n, $w->{first_ns}, $w->{last_ns}];
	return if @{$c{times}} < 500;
	my @t = sort { $a->[1] <=> $b->[1] } @{$c{times}};
	$t[$_ - 1][0] < $t[$_][0] or $h{"$t[$_][0] after $t[$_ - 1][0]"} = 1 for 1 .. $#t;
	$h{"500 functions"} = 1')
like "$seen" '^(unreadable \d+\n)?500 functions 1(\nunreadable \d+)?$' "functions that replace each other: none has the name, file or line of another one"
exec 7>&-

# --- programs that lie ---

ok "a program that says it is V8 10.2 is built" "${CC:-cc}" -O1 -rdynamic -no-pie -fcf-protection=none -o "$TMP/fake" "$DATA/node/fake.c"
ok "and one of a version that does not exist" "${CC:-cc}" -O1 -rdynamic -no-pie -fcf-protection=none -DMINOR=9 -o "$TMP/future" "$DATA/node/fake.c"
fake "$TMP/fake" none cycle parts wild script name kernel huge locals ends table source
fake "$TMP/future" future
fakes_begun
# shellcheck disable=SC2086 # a list
rec "$TMP/lie.cap" --runtimes v8 -d 0.3 $fakes
is "$rc" 0 "programs that lie about their frames are recorded"
lied() { # HOW: its functions, with file and line
	seen "$TMP/lie.cap" "$1" 'map { ($_->{function} // "?") . " " . ($_->{file} // "") . ":" . ($_->{line} // "") } @s' | sort -u
}
is "$(lied none)" "forged forged.js:3" "a forged V8 that is consistent has its function"
for how in cycle parts wild script name kernel huge locals; do
	is "$(lied $how)" "? :" "a pointer or length that leads nowhere ($how): the name is not readable"
done
is "$(lied table)" "forged forged.js:3" "of a table that is longer than it can be, the beginning is used"
for how in ends source; do
	is "$(lied $how)" "forged forged.js:" "a list or a source that is longer than it can be ($how): there is no line"
done
is "$(lied future)" "" "another version has no functions"
tap_done
