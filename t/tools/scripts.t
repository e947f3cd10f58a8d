#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The scripts: do the checks find what they search for?
. "$(dirname "$0")/../lib/tap.sh"

cd "$TOP" || exit 1
unset MAKEFLAGS MFLAGS MAKELEVEL

# --- the command-line contract, with tools that break it
mkdir -p "$TMP/bin" "$TMP/docs" "$TMP/t/tools"
contract() {
	run env STACKTOOLS_BIN="$TMP/bin" STACKTOOLS_DOCS="$TMP/docs" STACKTOOLS_TESTS="$TMP/t" \
		sh scripts/cli-contract "$@"
}
contract
is "$rc $(head -n 1 "$err")" "2 cli-contract: no binary in '$TMP/bin': make first" "cli-contract without binaries is an error, not a success"

cat >"$TMP/bin/good" <<'END'
#!/bin/sh
usage() {
	echo "good: $1" >&2
	echo "usage: good [-n N]" >&2
	exit 64
}
written() { [ $? -eq 0 ] && exit 0; echo "good: cannot write" >&2; exit 2; }
case ${1-} in
-h | --help) printf 'usage: good [-n N]\n  -n, --number N  a number\n  -h, --help      this\n  -V, --version   that\n' 2>/dev/null; written ;;
--completion=bash | --completion=zsh | --completion=fish) echo complete ;;
-V | --version) echo "good (stacktools) 1.0" 2>/dev/null; written ;;
-n | --number) [ $# -gt 1 ] || usage "option needs an argument" ;;
*) usage "unknown option '$1'" ;;
esac
END
cat >"$TMP/docs/good.1" <<'END'
.Bl -tag
.It Fl n , Fl -number Ar N
.It Fl h , Fl -help
.It Fl V , Fl -version
.El
END
: >"$TMP/t/tools/good.t"
chmod +x "$TMP/bin/good"
contract good
is "$rc $(cat "$err")" "0 " "cli-contract accepts a tool that keeps the contract"

# breaks NAME SED-EXPRESSION WANTED [SED-EXPRESSION]: edits the good tool, and its page by the last
# argument; cli-contract must report WANTED
breaks() {
	sed "$2" "$TMP/bin/good" | sed 's/good/bad/g' >"$TMP/bin/bad"
	sed "${4:-}" "$TMP/docs/good.1" >"$TMP/docs/bad.1"
	chmod +x "$TMP/bin/bad"
	: >"$TMP/t/tools/bad.t"
	contract bad
	like "$rc $(grep -F -e "$3" "$err")" '^1 cli-contract: bad: ' "cli-contract finds $1"
}
breaks "a line of --help that is too long" "s/a number/a number $(printf '%080d' 0)/" "--help has lines of more than 80 columns"
breaks "a shell without completions" 's/--completion=zsh/--x/' "--completion=zsh exits 64, not 0"
breaks "--help on standard error" 's/2>.dev.null; written/>\&2; written/' "--help prints nothing on standard output"
breaks "a wrong status for a bad command line" 's/exit 64/exit 1/' "'--no-such-option' exits 1, not 64"
breaks "a message of three lines" 's/exit 64/echo more >\&2; exit 64/' "writes 3 lines"
breaks "an unnoticed full disk" 's/echo .good: cannot write.*exit 2/exit 0/' "--help to /dev/full exits 0, not 2"
breaks "an option that accepts a missing argument" 's/\[ $# -gt 1 \] ||/exit 0;/' "'--number' exits 0, not 64"
breaks "an option that is not in the manual page" 's/  -h, --help/  -x, --extra\\n  -h, --help/' "--extra is in --help and not in"
breaks "an option that is not in --help" '' "--quiet is in" 's/^\.El/.It Fl -quiet\n.El/'
rm "$TMP/docs/bad.1" "$TMP/t/tools/bad.t"
contract bad
like "$(cat "$err")" 'there is no test .*bad\.t' "cli-contract finds a tool without a test"
like "$(cat "$err")" 'there is no manual page .*bad\.1' "cli-contract finds a tool without a manual page"

# --- layers
mkdir -p "$TMP/tree/lib/base" "$TMP/tree/lib/elf" "$TMP/tree/lib/fold" "$TMP/tree/tools" "$TMP/tree/scripts"
cp scripts/layers "$TMP/tree/scripts"
echo '#include "base/low.h"' | tee "$TMP/tree/lib/elf/high.h" >"$TMP/tree/tools/tool.c"
: >"$TMP/tree/lib/base/low.h"
status 0 "layers: tools and folders may include lower layers" sh "$TMP/tree/scripts/layers"
refuses() {
	echo "#include \"$2\"" >"$TMP/tree/$1"
	run sh "$TMP/tree/scripts/layers"
	is "$rc $(cat "$err")" "1 $1 may not include \"$2\"" "layers: $3"
	rm "$TMP/tree/$1"
}
refuses lib/base/low.c elf/high.h "including a higher layer is an error"
refuses lib/fold/beside.c elf/high.h "including another folder of the same layer is an error"
refuses lib/fold/far.c ../elf/high.h "including by a relative path is an error"
mkdir "$TMP/tree/lib/room"
refuses lib/room/file.c base/low.h "a folder that is not a layer is an error"
refuses tools/tool.c other.c "a tool that includes another tool is an error"

# --- check: tests that were skipped although BPF works
sandbox=$TMP/check
mkdir -p "$sandbox/scripts" "$sandbox/bin" "$sandbox/t/bpf"
cp scripts/check "$sandbox/scripts"
echo 'exit 0' >"$sandbox/scripts/deps"
# shellcheck disable=SC2016 # make's
printf 'all:\ncheck:\n\t@prove $(PROVE_FLAGS) -r t/\n' >"$sandbox/Makefile"
printf '# reason\n\n^t/bpf/one\\.t: second # SKIP no kprobes\n' >"$sandbox/t/allowed-skips"
bpfcheck_says() { # STATUS MODE
	printf '#!/bin/sh\necho verdict\necho \047"mode": "%s"\047\nexit %s\n' "$2" "$1" >"$sandbox/bin/bpfcheck"
	chmod +x "$sandbox/bin/bpfcheck"
}
tests() { # LINE...: what t/bpf/one.t prints
	printf '#!/bin/sh\ncat <<END\n' >"$sandbox/t/bpf/one.t"
	printf '%s\n' "$@" END >>"$sandbox/t/bpf/one.t"
}
printf '#!/bin/sh\necho "ok 1 - x"; echo 1..1\n' >"$sandbox/t/plain.t"
bpfcheck_says 0 btf
tests 'ok 1 - first' 'ok 2 - second # SKIP no kprobes' '1..2'
status 0 "check: a skip listed in t/allowed-skips passes" sh "$sandbox/scripts/check"
tests 'ok 1 - first # SKIP no BPF' 'ok 2 - second' '1..2'
status 1 "check: another skip fails if BPF works" sh "$sandbox/scripts/check"
like "$(cat "$err")" '^t/bpf/one.t: first # SKIP no BPF$' "check: the skipped test is named with its reason"
is "$(sed -n '/^check: the slowest tests:$/,$s/^ *[0-9.]* s  //p' "$err" | sort | tr '\n' ' ')" 't/bpf/one.t t/plain.t ' \
	"check: the slowest tests are listed last"
tests 'ok 1 - first' '1..1'
printf '#!/bin/sh\necho "ok 1 - x # SKIP no oracle"; echo 1..1\n' >"$sandbox/t/plain.t"
status 1 "check: another skip fails in a test that does not record, too" sh "$sandbox/scripts/check"
printf '#!/bin/sh\necho "ok 1 - x"; echo 1..1\n' >"$sandbox/t/plain.t"
tests '1..0 # SKIP not root'
status 1 "check: a skipped test file fails too" sh "$sandbox/scripts/check"
bpfcheck_says 1 btf
status 1 "check: another skip also fails if bpfcheck reports limits" sh "$sandbox/scripts/check"
bpfcheck_says 1 procfs
status 0 "check: skips pass if BPF does not work" sh "$sandbox/scripts/check"
like "$(cat "$err")" 'BPF is not allowed here' "check: it says that BPF was not tested"
mkdir "$sandbox/docs"
listed="| $(uname -r | cut -d. -f1,2) | $(uname -r) |"
echo "$listed procfs |" >"$sandbox/docs/kernels.md"
status 0 "check: skips pass on a kernel that docs/kernels.md lists with another mode" sh "$sandbox/scripts/check"
echo "$listed btf |" >"$sandbox/docs/kernels.md"
if unshare --mount true 2>/dev/null && grep -q '^Seccomp:.0$' /proc/self/status; then
	status 1 "check: BPF must work on a kernel that docs/kernels.md lists with mode btf" sh "$sandbox/scripts/check"
	like "$(cat "$err")" 'docs/kernels.md says' "check: it refers to docs/kernels.md"
else
	skip "check: BPF must work on a kernel that docs/kernels.md lists with mode btf" "not privileged"
fi
if command -v setpriv >/dev/null && [ "$(id -u)" -eq 0 ]; then
	status 0 "check: BPF need not work without capabilities" setpriv --inh-caps=-all --bounding-set=-bpf sh "$sandbox/scripts/check"
else
	skip "check: BPF need not work without capabilities" "not root"
fi
rm -r "$sandbox/docs"
tests 'not ok 1 - first' '1..1'
status 1 "check: a failed test fails" sh "$sandbox/scripts/check"
like "$(tail -n 1 "$out")" '^Result: FAIL$' "check: the last line is the result of prove"
is "$(grep -c '^t/bpf/one.t: not ok 1 - first' "$err")" 2 "check: it is run once more, and reports it again"
once_bad() { # FILE: fails the first time
	cat >"$sandbox/t/bpf/$1" <<-'E'
		#!/bin/sh
		[ -e "$0.again" ] || printf 'not '
		echo 'ok 1 - first'
		: >"$0.again"
		echo 1..1
	E
}
once_bad one.t
status 0 "check: a test that passes when it is run by itself passes" sh "$sandbox/scripts/check"
like "$(cat "$err")" '^check: failed, and run again by themselves: t/bpf/one.t$' "check: it says so"
is "$(grep -c '^t/bpf/one.t: not ok 1 - first' "$err")" 1 "check: and what it reported before"
for n in 2 3 4 5 6; do
	once_bad $n.t
done
rm "$sandbox/t/bpf/one.t.again"
status 0 "check: six that fail are run again" sh "$sandbox/scripts/check"
once_bad 7.t
rm "$sandbox/t/bpf/"*.again
status 1 "check: seven that fail are not run again" sh "$sandbox/scripts/check"
rm "$sandbox/t/bpf/"[2-7].t*
printf 'all:\n\tfalse\n' >"$sandbox/Makefile"
status 2 "check: a failed build gives status 2" sh "$sandbox/scripts/check"

# --- prove: unit tests are programs, each with the name of its source
mkdir -p "$TMP/units/t/lib" "$TMP/units/t/unit" "$TMP/units/obj/t/unit"
cp .proverc "$TMP/units"
cp t/lib/UnitTests.pm "$TMP/units/t/lib"
unit() { # NAME COMMAND...: makes a program that prints one test and runs COMMAND, and its source
	unit_name=$1
	shift
	: >"$TMP/units/t/unit/$unit_name.c"
	printf '#!/bin/sh\necho "ok 1 - x"\necho 1..1\n%s\n' "$*" >"$TMP/units/obj/t/unit/$unit_name"
	chmod +x "$TMP/units/obj/t/unit/$unit_name"
}
proves() {
	# shellcheck disable=SC2016 # the inner shell's
	run env -u STACKTOOLS_OBJ sh -c 'cd "$1" && shift && exec prove "$@"' sh "$TMP/units" "$@"
}
unit good
proves t/
is "$rc $(sed -n 's/^\(t[^ ]*\) \.* *\(.*\)/\1 \2/p' "$out")" "0 t/unit/good.c ok" "prove t/ runs the program of each source in t/unit"
unit fails 'exit 1'
# shellcheck disable=SC2016 # for the shell of the program
unit crashes 'kill -SEGV $$'
unit silent
echo '#!/bin/sh' >"$TMP/units/obj/t/unit/silent"
proves t/
is "$rc $(sed -n 's/^\(t[^ ]*\) .*(Wstat: \([0-9]*\).*/\1 \2/p' "$out" | sort | tr '\n' ' ')" \
	"1 t/unit/crashes.c 11 t/unit/fails.c 256 t/unit/silent.c 0 " "prove: a program that fails, crashes or prints nothing is a failed test"
: >"$TMP/units/t/unit/absent.c"
proves t/
is "$rc $(cat "$out" "$err")" "2 prove: 'obj/t/unit/absent' is not built: run make first" "prove: a program that is not built is an error"
printf '#!/bin/sh\necho "ok 1 - x"; echo 1..1\n' >"$TMP/units/t/unit/absent.t"
proves t/unit/absent.t t/unit/good.c
is "$rc $(tail -n 1 "$out")" "0 Result: PASS" "prove: a script beside the source replaces the program"

# --- command lines of the other scripts
for list in build demo deb test lint fuzz bench browser fresh vm; do
	status 0 "deps knows the list '$list'" sh scripts/deps -n "$list"
done
status 64 "deps refuses an unknown list" sh scripts/deps nonsense

# --- vmtest: which guests it runs, and how results are judged
lists() { # OPTION...: the guests, on one line
	sh scripts/vmtest -l "$@" 2>"$err" | grep -v '^vmtest:' | tr '\n' ','
}
is "$(lists -q)" '6.1 default,newest default,' "vmtest -q runs the kernel of Debian 12 and the newest"
like "$(lists)" '^5.10 default,6.1 default,6.1 settings,.*,6.18 lockdown,.*,newest default,$' "vmtest runs every kernel, and two kernels in more situations"
is "$(lists -k 5.10 -s settings)" '5.10 settings,' "vmtest -k and -s select one guest"
mkdir -p "$TMP/vm/6.1-lockdown" "$TMP/vm/6.1-1-cpu" "$TMP/vm/6.1-8-cpus" "$TMP/vm/6.1-default"
printf '%s\n' 'ok one' 'fact seconds 5' | tee "$TMP/vm/6.1-lockdown/results" >"$TMP/vm/6.1-1-cpu/results"
echo 'not ok two' >>"$TMP/vm/6.1-1-cpu/results"
echo 'ok one' >"$TMP/vm/6.1-8-cpus/results"
is "$(lists -r -o "$TMP/vm" -k 6.1 -s lockdown -s 1-cpu -s 8-cpus)" '6.1 1-cpu,6.1 8-cpus,' "vmtest -r skips guests that passed to the end"
printf '%s\n' 'fact arguments quiet VM_SITUATION=default VM_SET=quick' 'ok one' 'fact seconds 5' >"$TMP/vm/6.1-default/results"
is "$(lists -r -o "$TMP/vm" -k 6.1 -s default) $(lists -q -r -o "$TMP/vm" -k 6.1 -s default)" '6.1 default, ' \
	"vmtest -r: a guest that passed with -q is skipped with -q only"
like "$(sh scripts/vmtest -l)" '^vmtest: Debian has no 5.15: nearest are 5.10 and 6.1$' "vmtest reports a kernel that Debian does not have"
for words in '-k 2.6' '-s sunshine' '-j 0' '-x' 'word' '-k'; do
	# shellcheck disable=SC2086 # words
	status 64 "vmtest refuses '$words'" sh scripts/vmtest -l $words
done

judge_says() { # SAID NS...: the judgement of records of NS each, slept, or with R runnable
	echo "$1" >"$TMP/judge.said"
	shift
	for ns; do
		printf '{"type":"wait","comm":"w","pid":1,"tid":7,"count":1,"total_ns":%s,"first_ns":5,"state":"S","initial":false,"preempted":%s,%s}\n' \
			"${ns%R}" "$([ "$ns" = "${ns%R}" ] && echo false || echo true)" \
			'"kernel_stack_verdict":"complete","user_stack_verdict":"stopped","user_stack_error":"not-ready"'
	done | awk -v said="$TMP/judge.said" -f scripts/vm.d/judge.awk >"$TMP/judge.got"
	sed -n 's/^\(error\|sum_error\|too_short\|incomplete\) */\1 /p' "$TMP/judge.got" | tr '\n' ','
}
is "$(judge_says 'w 7 2 900000000 1000000000 1200000000 1200000000' 500000000 490000000 210000000R)" \
	'incomplete stopped/not-ready 2,error 0.00,sum_error 0.00,too_short ,' "vmtest: a sleep recorded as long as measured has no error"
is "$(judge_says 'w 7 2 900000000 1000000000 1000000000 1000000000' 600000000 600000000)" \
	'incomplete stopped/not-ready 2,error 19.60,sum_error 20.00,too_short ,' "vmtest: a sleep recorded longer than measured has an error"
is "$(judge_says 'w 7 1 900000000 1000000000 1000000000 1000000000' 500000000)" \
	'incomplete stopped/not-ready 1,error 0.00,sum_error 100.00,too_short w,' "vmtest: a thread with half of its sleeps missing has an error"

is "$(judge_says 'w 7 1 1000000000 1002000000 1002000000 1002000000' 998000000)" \
	'incomplete stopped/not-ready 1,error 0.00,sum_error 0.40,too_short ,' "vmtest: a thread that left the CPU a little late is not too short"

for why in exiting in-exec no-row; do
	printf '{"type":"wait","comm":"w","pid":1,"tid":7,"count":1,"total_ns":5,"state":"D","preempted":false,"user_stack_verdict":%s}\n' \
		'"complete","user_stack_error":null' "\"stopped\",\"user_stack_error\":\"$why\"" | awk -f scripts/vm.d/judge.awk
done | sed -n 's/^complete //p' | tr '\n' ' ' >"$TMP/judge.got"
is "$(cat "$TMP/judge.got")" '100.00 100.00 50.00 ' "vmtest: a thread that exits or is in exec may lack a user stack"

# deps with fake package tools: nothing is installed, and the package lists are
# out of date until they are updated
mkdir "$TMP/fake"
cat >"$TMP/fake/dpkg-query" <<'END'
#!/bin/sh
cat "$FAKE/installed" 2>/dev/null
END
cat >"$TMP/fake/apt-get" <<'END'
#!/bin/sh
echo "$*" >>"$FAKE/calls"
case $* in
*update) [ ! -e "$FAKE/offline" ] && : >"$FAKE/updated" ;;
*) [ -e "$FAKE/updated" ] || { echo "E: Unable to locate package" >&2; exit 100; } ;;
esac
END
cat >"$TMP/fake/sudo" <<'END'
#!/bin/sh
[ "$1" != -n ] || shift
exec "$@"
END
chmod +x "$TMP/fake/"*
fake_deps() {
	rm -f "$TMP/fake/calls" "$TMP/fake/updated"
	run env FAKE="$TMP/fake" PATH="$TMP/fake:$PATH" sh scripts/deps "$@"
}
echo 'installed make' >"$TMP/fake/installed"
fake_deps -n build
like "$(tr '\n' ' ' <"$out")" '^bpftool clang gcc libbpf-dev ' "deps -n prints the missing packages"
is "$(grep -cx make "$out")" 0 "deps -n does not print installed packages"
ok "deps -n installs nothing" [ ! -e "$TMP/fake/calls" ]
fake_deps build
is "$rc" 0 "deps updates the package lists if a package is not found"
is "$(grep -c 'update$' "$TMP/fake/calls") $(grep -c 'install bpftool' "$TMP/fake/calls")" "1 2" "deps updates the package lists once and then tries again"
: >"$TMP/fake/offline"
fake_deps build
is "$rc" 2 "deps without a network fails"
like "$(cat "$err")" 'Unable to locate package' "deps without a network prints the message of apt-get"
like "$(tail -n 1 "$err")" 'hint: apt-get update && apt-get install bpftool clang ' "deps without a network prints the command to run"
status 64 "lint refuses an unknown check" sh scripts/lint nonsense
for args in '-x' '-d' '-d 1.5' 'extra'; do
	# shellcheck disable=SC2086 # words
	status 64 "demo refuses '$args'" sh scripts/demo $args
	is "$(wc -l <"$err")" 2 "demo reports a usage error in two lines"
done
run sh scripts/demo -o /nonexistent/off.svg
is "$rc $(cat "$err")" "2 demo: cannot write to the folder '/nonexistent'" "demo does not start if it cannot write its result"

# --- fresh without debootstrap: the root has only the programs that the test runs
status 64 "fresh refuses '-x'" sh scripts/fresh -x
is "$(wc -l <"$err")" 2 "fresh reports a usage error in two lines"
if [ "$(id -u)" -ne 0 ]; then
	status 2 "fresh needs root" sh scripts/fresh true
	like "$(cat "$err")" '^fresh: hint: sudo sh scripts/fresh$' "fresh without root prints a hint"
elif ! unshare --mount true 2>"$TMP/why" || ! command -v git >/dev/null || ! git rev-parse HEAD >/dev/null 2>&1; then
	skip "fresh runs a command on a new system" "no mount namespace, or not a clone: $(head -n 1 "$TMP/why")"
else
	status 2 "fresh needs root" setpriv --reuid=65534 --regid=65534 --clear-groups sh -c "$(cat scripts/fresh)"
	like "$(cat "$err")" '^fresh: hint: sudo sh scripts/fresh$' "fresh without root prints a hint"
	new=$TMP/new
	mkdir -p "$new/bin" "$new/etc/apt/apt.conf.d" "$new/etc/dpkg/dpkg.cfg.d" "$new/var/cache/apt/archives" \
		"$new/var/lib/apt/lists" "$new/root" "$new/proc" "$new/sys" "$new/dev" "$new/run" "$new/mnt"
	for program in sh env cat sleep umount; do
		program=$(command -v $program)
		cp "$program" "$new/bin/"
		ldd "$program" | grep -oE '/[^ ]+' | while read -r lib; do
			mkdir -p "$new${lib%/*}" && cp "$lib" "$new$lib"
		done
	done
	mkdir "$TMP/cache"
	tar -C "$new" -cf "$TMP/cache/bookworm-$(dpkg --print-architecture).tar" .
	fresh() {
		run sh scripts/fresh -c "$TMP/cache" "$@"
	}
	left() {
		find "$TMP/cache" -maxdepth 1 -name 'root.*'
		grep -F "$TMP/cache" /proc/self/mountinfo
	}
	# shellcheck disable=SC2016 # the inner shell's
	fresh -- sh -c 'echo "$PWD"; echo "$HOME"; cat README.md; exit 7'
	is "$rc" 7 "fresh: the exit status is that of the command"
	{
		echo /root/stacktools
		echo /root
		git show HEAD:README.md
	} >"$TMP/want"
	same "$out" "$TMP/want" "fresh: the command runs in a clone of HEAD"
	is "$(left)" "" "fresh: no root and no mount is left"
	fresh -- sh -c '[ -e /proc/self/ns/mnt ] && [ -e /dev/null ] && [ -e /sys/kernel/tracing/events ] && [ ! -e /usr/bin/perl ]'
	is "$rc" 0 "fresh: the root has /proc, /dev and tracefs, but no programs of this machine"
	fresh -- sh -c 'sleep 1000 & echo $!'
	ok "fresh: processes that still run are killed" [ ! -e "/proc/$(cat "$out")/exe" ]
	fresh -k -- sh -c 'echo made >/made'
	is "$(cat "$(sed -n 's/^fresh: kept: //p' "$err")/made")" made "fresh -k keeps the root"
	rm -rf "$TMP"/cache/root.*
	sh scripts/fresh -c "$TMP/cache" -- sh -c 'echo begun; sleep 1000' >"$out" 2>"$err" </dev/null &
	fresh_pid=$!
	until grep -q begun "$out" || [ ! -e "/proc/$fresh_pid" ]; do sleep 0.1; done
	kill -TERM $fresh_pid
	wait $fresh_pid
	is "$? $(left)" "143 " "fresh: a signal ends it and leaves no root and no mount"
fi

# --- fuzz, with targets that only look like one
mkdir -p "$TMP/fuzzers"
fuzzer() { # LINE: what the target procmaps does, whose arguments are libFuzzer's
	# shellcheck disable=SC2016
	printf '#!/bin/sh\nfor arg; do eval "last=\\$arg"; case $arg in -artifact_prefix=*) prefix=${arg#*=} ;; esac; done\n%s\n' "$1" >"$TMP/fuzzers/procmaps"
	chmod +x "$TMP/fuzzers/procmaps"
	run sh scripts/fuzz -t 1 -b "$TMP/fuzzers" -k "$TMP/kept" procmaps
}
for words in '-t' '-t 0' '-t 1.5' '-x' 'nonsense'; do
	# shellcheck disable=SC2086 # words
	status 64 "fuzz refuses '$words'" sh scripts/fuzz $words
done
status 2 "fuzz without its programs fails" sh scripts/fuzz -b "$TMP/none" procmaps
like "$(cat "$err")" 'hint: sh scripts/deps fuzz && make fuzz$' "fuzz without its programs prints a hint"
# shellcheck disable=SC2016 # the target's
fuzzer 'echo "stat::number_of_executed_units: $(find "$last" -type f | wc -l)" >&2'
like "$rc $(tail -n 1 "$out")" '^0 procmaps +([1-9][0-9]*) +\1 $' "fuzz starts a target with inputs of this machine, and prints how often it ran"
ok "fuzz keeps nothing of a target that does not fail" [ ! -e "$TMP/kept" ]
# shellcheck disable=SC2016
fuzzer 'printf broken >"${prefix}crash-1"; echo "==1==ERROR: AddressSanitizer: heap-buffer-overflow" >&2; exit 77'
is "$rc $(cat "$TMP/kept/procmaps-crash-1")" "1 broken" "an input that fails is kept, and the status is 1"
like "$(tail -n 1 "$err")" "^fuzz: procmaps failed on $TMP/kept/procmaps-crash-1$" "its name is the last line"
like "$(cat "$err")" 'AddressSanitizer: heap-buffer-overflow' "the sanitizer's report is printed"
is "$(sed -n '/^fuzz: its bytes/{n;p;}' "$err" | base64 -d)" broken "so are the bytes of a short input"
fuzzer 'exit 1'
like "$rc $(tail -n 1 "$err")" '^1 fuzz: procmaps failed without an input' "a target that fails without an input is a failure"

# --- command lines of what takes minutes
for script in faults soak reproducible; do
	status 64 "$script refuses '-x'" sh "scripts/$script" -x
	is "$(wc -l <"$err")" 2 "$script reports a usage error in two lines"
	status 64 "$script refuses what it does not have" sh "scripts/$script" nonsense
done
status 64 "soak refuses no time" sh scripts/soak -d 0

# --- tests in a tree that is not built
for folder in t/unit t/tools; do
	run env STACKTOOLS_OBJ="$TMP/none" prove "$folder/"
	like "$rc $(cat "$out" "$err")" "^[1-9][0-9]* prove: '$TMP/none/t/[a-z]*/[a-z]*' is not built: run make first$" \
		"prove $folder reports in one line what is not built"
done
run env STACKTOOLS_OBJ="$TMP/none" sh t/tools/fold.t
like "$rc $(cat "$out")" "^1 Bail out!  .* is not built: run make first" "a single test reports what is not built"

tap_done
