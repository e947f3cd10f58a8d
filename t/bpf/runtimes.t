#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Before a recording, bpfcheck and offcpu-record say which runtimes the targets have, and why the functions
# of one are not shown.
# shellcheck disable=SC2154 # $rc and others of tap.sh
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf

waiting() { # NAME COMMAND...: starts it and sets $NAME to its PID
	w_name=$1
	shift
	"$@" 7>&- &
	at_exit_kill $!
	eval "$w_name=$!"
	until_true grep -q "^State:	S" "/proc/$!/status"
}

# a program that exports functions of a runtime, and states a version
stated() { # FILE SOURCE
	echo "$2
#include <unistd.h>
int main(void) { for (;;) pause(); }" >"$1.c"
	"${CC:-cc}" -O1 -rdynamic -o "$1" "$1.c"
}

cp "$(command -v sleep)" "$TMP/perl-like"
ok "a PHP with thread safety is made" stated "$TMP/zts" 'int execute_ex(int a) { return a + 1; }
__attribute__((used)) static const char header[] = "\0X-Powered-By: PHP/8.2.7";'
ok "a Perl without ithreads is made" stated "$TMP/single" 'int Perl_runops_standard(int a) { return a + 1; }
const unsigned char PL_revision = 5, PL_version = 36, PL_subversion = 0;
const char PL_bincompat_options[] = " HAS_TIMES";'
waiting native sleep 60
waiting python /usr/bin/python3 -c 'import signal; signal.pause()'
waiting named "$TMP/perl-like" 60
waiting zts "$TMP/zts"
waiting single "$TMP/single"

python_text=$(/usr/bin/python3 -c 'import sys; print("python %d.%d, 1 process" % sys.version_info[:2])')
zts_text='php 8.2 (built with thread safety, its functions are not shown), 1 process'
single_text='perl 5.36 (built without ithreads, its functions are not shown), 1 process'
named_text='perl (not recognised: no file that could be read exports PL_thr_key and Perl_runops_standard; its functions are not shown)'

said() { # PID: what offcpu-record says before it records
	"$BIN/offcpu-record" --force -d 100ms -o "$TMP/cap" -p "$1" 2>&1 | sed '/ s, .* in all/,$d'
}
is "$(said "$native")" "" "offcpu-record says nothing of a native program"
is "$(said "$python")" "offcpu-record: runtimes: $python_text" "offcpu-record names the runtime before it records"
is "$(said "$zts")" "offcpu-record: runtimes: $zts_text" "and a build whose functions it cannot show"
is "$(said "$single")" "offcpu-record: runtimes: $single_text" "and another one"
is "$(said "$named")" "offcpu-record: runtimes: $named_text" "and a file that is only called like a runtime"
run "$BIN/offcpu-record" --force -d 100ms -o "$TMP/cap" -p "$zts"
is "$(grep "^ *runtimes:" "$err")" "  runtimes: $zts_text" "the summary says so again"
is "$("$BIN/symbolize" -q "$TMP/cap" 2>&1 | grep -c 'php')" 0 "and no functions are guessed"
run "$BIN/offcpu-record" -q --force -d 100ms -o "$TMP/cap" -p "$python"
is "$(cat "$err")" "" "with -q nothing is said"
for how in '--mode raw' '--mode procfs' '--unwind fp'; do
	# shellcheck disable=SC2086 # words
	run "$BIN/offcpu-record" $how --force -d 100ms -o "$TMP/cap" -p "$python"
	is "$rc $(grep runtimes "$err")" "0 offcpu-record: runtimes: python (functions are shown in mode btf with unwind tables only)" "$how: says that functions are not shown"
done

checked() { # OPTION...: the status, and what it found
	run "$BIN/bpfcheck" --json --tool offcpu-record "$@"
	echo "$rc" | tr '\n' ' '
	sed -n 's/.*"id": "\(target\.[a-z0-9]*\)".*"status": "\([a-z]*\)", "found": "\(.*\)", "remedy.*/\1 \2 \3/p' "$out"
}
is "$(checked -p "$native")" "0 target.runtimes ok runtimes: none, native code only" "bpfcheck -p: a native program"
is "$(checked -p "$python" -p "$native")" "0 target.runtimes ok runtimes: $python_text" "bpfcheck -p: a runtime that is known"
is "$(checked -p "$zts")" "1 target.runtimes warn runtimes: $zts_text" "bpfcheck -p: a build whose functions cannot be shown: degraded"
is "$(checked -p "$named")" "1 target.runtimes warn runtimes: $named_text" "bpfcheck -p: a file that is only called like a runtime"
sleep 0 &
gone=$!
wait "$gone"
is "$(checked -p "$gone")" "2 target.$gone fail there is no process $gone" "bpfcheck -p: a process that is gone: impossible"
like "$(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all "$BIN/bpfcheck" --json -p "$python" 2>/dev/null)" \
	"what python3 \\($python\\) maps may not be read by this user" "bpfcheck -p: the process of another user"
run "$BIN/bpfcheck" --root / -p 1
like "$rc $(cat "$err")" '^64 bpfcheck: --pid and --root do not go together: a process is one of this machine' "bpfcheck -p with --root is refused"
run "$BIN/bpfcheck" --caps -p 1
like "$rc $(cat "$err")" '^64 bpfcheck: --pid and --caps do not go together' "bpfcheck -p with --caps is refused"
run "$BIN/bpfcheck" -p 0
like "$rc $(cat "$err")" "^64 bpfcheck: option '-p': '0'" "bpfcheck -p 0 is refused"
tap_done
