#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck disable=SC2154,SC2016 # $out, $err and $rc come from tap.sh; sh -c expands its own
. "$(dirname "$0")/../lib/tap.sh"

make_cap="$OBJ/t/unit/resolve --make"
sym=$BIN/symbolize
cap=$TMP/a.cap
tab=$(printf '\t')

command -v "${CC:-cc}" >/dev/null || skip_all "no C compiler for the program to be resolved"
"${CC:-cc}" -O1 -fpie -pie -Wl,--build-id -o "$TMP/prog" "$DATA/symbolize/prog.c" ||
	skip_all "the program to be resolved does not build"
"${CC:-cc}" -O1 -fno-pie -no-pie -Wl,--build-id -o "$TMP/nopie" "$DATA/symbolize/prog.c" ||
	skip_all "the program to be resolved does not build"

# addr FILE SYMBOL: its address in hex
addr() {
	nm "$1" | awk -v s="$2" '$3 == s { print $1 }'
}

# made CAPTURE-ARGUMENTS...: makes $cap, runs symbolize on it
made() {
	# shellcheck disable=SC2086 # several words
	$make_cap "$cap" "$@" && run "$sym" -q $options "$cap"
}
options=

# frame N: the Nth user frame of the first record (after five kernel ones), without its address
frame() {
	awk -v n="$1" '/^\t/ && ++i == n + 5 { sub(/^\t *[0-9a-f]+ /, ""); print; exit }' "$out"
}

plain=$(addr "$TMP/prog" plain)
bar=$(addr "$TMP/prog" _ZN3foo3barEi)
anon=$(addr "$TMP/prog" _ZN12_GLOBAL__N_11fEv)
rust=$(addr "$TMP/prog" _ZN4core3fmt5Write9write_fmt17h1234567890abcdefE)
chosen=$(addr "$TMP/prog" chosen)
main=$(addr "$TMP/prog" main)

# --- the grammar
made "$TMP/prog" "$TMP/prog" prog "" "$plain" "$bar" "$anon" "$rust" "$chosen" "$main"
is "$rc" 0 "a whole capture gives status 0"
is "$(head -n 1 "$out")" "# stacktools perf-script 1" "the first line names the format"
like "$(sed -n 2p "$out")" '^# kernel: release=6\.18\.0 machine=x86_64 stext=0xffffffff81000000 build-id=- boot-id=another$' \
	"the kernel is on the second"
like "$(sed -n 3p "$out")" '^# host: hostname=there recorder=resolve start=2023-11-14T22:13:20Z duration=2\.000$' \
	"the host on the third"
is "$(sed -n 4p "$out")" "# totals: waits=24 total_ns=6912 lost=0" "the totals on the fourth"
is "$(sed -n 6p "$out")" \
	"# wait: count=12 total_ns=3456 max_ns=900 state=S open=0 initial=0 preempted=0 kernel=complete user=unverified" \
	"a comment carries what the grammar has no place for"
is "$(sed -n 7p "$out")" "prog 4242/4242 [000] 2.000000000: 3456 offcpu-time: " "a record begins as in perf script"
is "$(sed -n 8p "$out")" "${tab}ffffffff810012a7 __schedule+0x2a7 ([kernel.kallsyms])" "a kernel frame"
is "$(sed -n 9p "$out")" "${tab}ffffffffc0001010 nf_hook+0x10 ([nf_tables])" "a kernel module's"
is "$(sed -n 10p "$out")" "${tab}ffffffffc0003020 bpf_prog_6deef7357e7b4530+0x20 ([bpf])" "a BPF program's"
is "$(sed -n 11p "$out")" "${tab}ffffffff81002000 __schedule+0x1000 ([kernel.kallsyms])" \
	"a return address behind the last byte belongs to the call before it"
is "$(sed -n 12p "$out")" "${tab}ffffffff81005000 [unknown] ([kernel.kallsyms])" "a kernel address without symbol stays raw"
like "$(sed -n 13p "$out")" "^$tab    7f[0-9a-f]{10} plain\+0x0 \($TMP/prog\)\$" "a user frame, sixteen wide"
is "$(sed -n 19p "$out")" "" "a blank line ends the record"
is "$(grep -c "offcpu-time: \$" "$out")" 2 "one record for each sample"
is "$(grep 'kernel thread' "$out")" "${tab}               0 [no user stack: kernel thread] ([unknown])" \
	"a kernel thread's missing user stack is a frame that says so"

# --- names
is "$(frame 1)" "plain+0x0 ($TMP/prog)" "the leaf is looked up where it is"
made "$TMP/prog" "$TMP/prog" prog "" "$(printf %x $((0x$plain + 1)))" "$(printf %x $((0x$bar + 1)))" \
	"$(printf %x $((0x$anon + 1)))" "$(printf %x $((0x$rust + 1)))" "$(printf %x $((0x$chosen + 1)))" "$bar"
is "$(frame 2)" "foo::bar(int)+0x1 ($TMP/prog)" "C++ names are demangled with their parameters"
is "$(frame 3)" "::(anonymous namespace)::f()+0x1 ($TMP/prog)" "a name that begins with '(' is kept from being dropped"
is "$(frame 4)" "core::fmt::Write::write_fmt+0x1 ($TMP/prog)" "Rust names are demangled without their hash"
is "$(frame 5)" "chosen+0x1 ($TMP/prog)" "local functions are named"
like "$(frame 6)" "^plain\+0x[0-9a-f]+ " "a return address at a function's start belongs to the one before"
options=--no-demangle
made "$TMP/prog" "$TMP/prog" prog "" "$bar" "$(printf %x $((0x$bar + 1)))"
is "$(frame 1)" "_ZN3foo3barEi+0x0 ($TMP/prog)" "--no-demangle leaves them"
options=
np=$(addr "$TMP/nopie" plain)
made "$TMP/nopie" "$TMP/nopie" prog "" "$np"
is "$(frame 1)" "plain+0x0 ($TMP/nopie)" "a program that is not position-independent"
ind=$(addr "$TMP/prog" indirect)
made "$TMP/prog" "$TMP/prog" prog "" "$ind"
want=$(addr2line -f -e "$TMP/prog" "0x$ind" | head -n 1)
is "$(frame 1)" "$want+0x0 ($TMP/prog)" "an indirect function is named as by addr2line"
strip -o "$TMP/stripped" "$TMP/prog"
made "$TMP/stripped" "$TMP/stripped" prog "" "$plain"
is "$(frame 1)" "[stripped+0x$(printf %x "0x$plain")] ($TMP/stripped)" "without a symbol: module and offset"
"${CC:-cc}" -O1 -m32 -nostdlib -shared -Wl,--build-id -o "$TMP/lib32.so" -x c - 2>/dev/null <<'C' && have32=1 || have32=
int plain(int x) { return x * 3; }
C
if [ "$have32" ]; then
	made "$TMP/lib32.so" "$TMP/lib32.so" prog "" "$(addr "$TMP/lib32.so" plain)"
	is "$(frame 1)" "plain+0x0 ($TMP/lib32.so)" "a 32-bit file"
else
	skip "a 32-bit file" "the compiler makes none"
fi

# --- every name against addr2line's and eu-addr2line's, each difference explained
# of a function before the address addr2line makes no difference, eu-addr2line does not speak; neither knows stubs
ours() {
	"$sym" -q --no-demangle --no-inline "$1" |
		perl -ne 'if (/^\t *\w+ (.*) \(/) { $_ = $1; s/\+0x[0-9a-f]+$//; $_ = "??" if /^\[|\@plt$/; s/@.*//; print "$_\n" }'
}
for elf in "$TMP/prog" /bin/bash; do
	"$OBJ/t/unit/resolve" --gen "$TMP/gen.cap" "$elf" 2000 2000 >"$TMP/gen.addr"
	ours "$TMP/gen.cap" >"$TMP/gen.all"
	sed 's/?$//; s/^?$/??/' "$TMP/gen.all" >"$TMP/gen.us"
	addr2line -f -e "$elf" <"$TMP/gen.addr" | awk 'NR % 2 { sub(/@.*/, ""); print }' >"$TMP/gen.them"
	ok "${elf##*/}: the names of addr2line" perl "$DATA/symbolize/compare.pl" "$elf" "$TMP/gen.addr" "$TMP/gen.us" "$TMP/gen.them"
	if command -v eu-addr2line >/dev/null; then
		eu-addr2line -S -e "$elf" <"$TMP/gen.addr" |
			awk 'NR % 2 { sub(/[+-]0x[0-9a-f]+$/, ""); sub(/@.*/, ""); print $1 ~ /^\(/ ? "??" : $1 }' >"$TMP/gen.them"
		sed 's/.*?$/??/' "$TMP/gen.all" >"$TMP/gen.us"
		ok "${elf##*/}: the names of eu-addr2line" perl "$DATA/symbolize/compare.pl" "$elf" "$TMP/gen.addr" "$TMP/gen.us" "$TMP/gen.them"
	else
		skip "${elf##*/}: the names of eu-addr2line" "it is not installed"
	fi
done

# --- only the file that was mapped
made "$TMP/prog" "$TMP/prog" prog b "$plain"
is "$(frame 1)" "[prog+0x$(printf %x "0x$plain")] ($TMP/prog)" "a file with another build ID is not used"
like "$(grep '^# not-used' "$out")" "^# not-used: file=$TMP/prog reason=is another file: build ID" "and a comment says so"
is "$rc" 0 "which is no failure"
$make_cap "$cap" "$TMP/prog" "$TMP/prog" prog b "$plain"
run "$sym" "$cap"
like "$(cat "$err")" '^symbolize: 1 file could not be used' "a warning says it too"
run "$sym" -v "$cap"
like "$(cat "$err")" "^symbolize: '$TMP/prog' is not used: it is another file" "-v says why"
made "$TMP/prog" "$TMP/prog" prog z "$plain"
is "$(frame 1)" "plain+0x0 ($TMP/prog)" "without a build ID, size and time prove a file"
made "$TMP/prog" "$TMP/prog" prog Z "$plain"
like "$(grep '^# not-used' "$out")" 'another size' "another size disproves it"
made "$TMP/prog" /nonexistent/prog prog a "$plain"
like "$(grep '^# not-used' "$out")" 'file=/nonexistent/prog reason=was deleted or replaced' "a deleted file is said to be"
mkfifo "$TMP/fifo"
made "$TMP/prog" "$TMP/fifo" prog "" "$plain"
like "$(grep '^# not-used' "$out")" 'is not a regular file' "a FIFO in the file's place is refused"
mkdir -p "$TMP/root/there"
cp "$TMP/prog" "$TMP/root/there/prog"
options="--symfs $TMP/root"
made "$TMP/prog" /there/prog prog "" "$plain"
is "$(frame 1)" "plain+0x0 (/there/prog)" "--symfs finds a file of another machine"
rm "$TMP/root/there/prog"
ln -s "$TMP/prog" "$TMP/root/there/prog"
made "$TMP/prog" /there/prog prog "" "$plain"
like "$(grep '^# not-used' "$out")" 'No such file' "a link cannot lead out of it"
mkdir -p "$TMP/root/usr/lib/debug/.build-id"
id=$(readelf -n "$TMP/stripped" | awk '/Build ID/ { print $3 }')
dir=$TMP/root/usr/lib/debug/.build-id/$(printf %.2s "$id")
mkdir -p "$dir"
objcopy --only-keep-debug "$TMP/prog" "$dir/${id#??}.debug"
made "$TMP/stripped" "$TMP/stripped" prog "" "$plain"
is "$(frame 1)" "plain+0x0 ($TMP/stripped)" "a stripped file's names come from its debug file"
options="--symfs $TMP/nowhere"
made "$TMP/prog" /there/prog prog "" "$plain"
is "$rc" 2 "a --symfs that is not there is an error"
options=

# --- broken files
: >"$TMP/empty"
head -c 200 "$TMP/prog" >"$TMP/cut"
for kind in empty cut; do
	made "$TMP/prog" "$TMP/$kind" prog "" "$plain"
	like "$rc $(grep '^# not-used' "$out")" "^0 # not-used: file=$TMP/$kind reason=" "a file that is $kind is named with its fault"
done

# --- failures are frames
made "$TMP/prog" "$TMP/prog" prog f "$plain"
for want in 'no user stack: EFAULT' 'no user stack: inside execve' 'no user stack: thread was exiting' \
	'truncated at 1 frames' 'stopped: stack memory unreadable' 'stopped: no-mapping' 'stopped: no-row' \
	'stopped: expression' 'stopped: register' 'stopped: loop' 'stopped: not-ready' 'stopped: dropped' \
	'stopped: no-frame-pointer' 'no user stack: lost, the ring buffer was full'; do
	is "$(grep -c "\[$want\] (\[unknown\])\$" "$out")" 1 "a frame says '$want'"
done
is "$(grep 'no kernel stack' "$out")" "${tab}               0 [no kernel stack: EEXIST] ([kernel.kallsyms])" "so for the kernel's half"
is "$(grep -c 'user=not-recorded' "$out")" 1 "a half that was not to be recorded has no frame"
is "$(grep -c '^#.* user=failed:EFAULT' "$out")" 1 "the comment names the error"
is "$(grep -c '^#.* user=stopped:no-row$' "$out")" 1 "and the reason for which a walk stopped"
is "$(grep 'no-row\]' "$out")" "${tab}            abcd [stopped: no-row] ([unknown])" "the frame that says so has the PC"
is "$(grep -B 1 'no-row\]' "$out" | head -n 1)" "${tab}            1000 [unknown] ([unknown])" \
	"and stands behind those that were found"

# --- frames that a signal interrupted
made "$TMP/prog" "$TMP/prog" prog "" "$plain" "=$bar" "$bar" "=$anon"
is "$(frame 2)" "foo::bar(int)+0x0 ($TMP/prog)" "an exact frame is looked up where it is"
like "$(frame 3)" '^plain\+0x' "the same address as a return address one byte before"
like "$(frame 4)" '^::\(anonymous namespace\)::f\(\)\+0x0 ' "a second exact frame in the stack"
run "$sym" -q --format=json "$cap"
is "$(grep -o '"user_stack_exact":\[[^]]*\]' "$out")" '"user_stack_exact":[1,3]' \
	"JSON tells the numbers of exact frames, where a stack has any"

# --- nothing forged
esc=$(printf '\033')
made "$TMP/prog" "$TMP/a b(c)
evil	1/1 [000] 1.0: 9 offcpu-time: ${esc}[31m" "x 1
y/2 [0]${esc}[0m;a" "" "$plain"
is "$(tr -d '\n\t -~' <"$out" | wc -c)" 0 "no control character comes through"
is "$(grep -c 'offcpu-time: $' "$out")" 2 "no record is forged"
like "$(grep 'offcpu-time: $' "$out" | head -n 1)" '^x_1\\x0ay/2 \[0\]\\x1b\[0m\\x3ba 4242/4242 \[000\] ' "a comm keeps to its field"
objcopy --redefine-sym "evil=e
vil${esc}[1m (x)" "$TMP/prog" "$TMP/evil"
made "$TMP/evil" "$TMP/evil" '#a' "" "$(addr "$TMP/prog" evil)"
is "$(frame 1)" "e\\x0avil\\x1b[1m (x)+0x0 ($TMP/evil)" "a symbol keeps to its line"
is "$(grep -c '^\\x23a 4242/4242' "$out")" 1 "a comm does not become a comment"
made "$TMP/prog" "$TMP/prog" a "" "$plain"
is "$(grep -c '^a  4242/4242 ' "$out")" 1 "a comm of one byte is followed by two spaces"
made "$TMP/prog" "$TMP/prog" "" "" "$plain"
is "$(grep -c '^\[empty\] 4242/4242 ' "$out")" 1 "an empty comm has a name"
run "$sym" -q --format=json "$cap"
is "$(tr -d '\n -~' <"$out" | wc -c)" 0 "JSON has no control character either"

# --- what other readers make of it
sc=${STACKCOLLAPSE:-$(command -v stackcollapse-perf.pl)}
if [ -r "$sc" ]; then
	collapse() {
		"$sym" -q "$cap" | perl "$sc" "$@" 2>"$TMP/sc.err"
		cat "$TMP/sc.err"
	}
	$make_cap "$cap" "$TMP/prog" "$TMP/prog" "V8 Worker 7" "" "$plain" "$(printf %x $((0x$anon + 1)))"
	is "$(collapse | tail -n 1 | tr -d '\n')" \
		"kworker/0:1;[no user stack: kernel thread];[[kernel.kallsyms]];__schedule;bpf_prog_6deef7357e7b4530;nf_hook;__schedule 3456" \
		"stackcollapse-perf.pl keeps a frame that says why"
	is "$(collapse --kernel | head -n 1)" \
		"V8_Worker_7;::(anonymous namespace)::f;plain;[[kernel.kallsyms]]_[k];__schedule_[k];bpf_prog_6deef7357e7b4530_[k];nf_hook_[k];__schedule_[k] 3456" \
		"and reads names, kernel and user halves"
	$make_cap "$cap" "$TMP/stripped" "$TMP/stripped" a f "$plain"
	is "$(collapse | grep -c 'Unrecognized')" 0 "no line is unknown to it"
	like "$(collapse)" '^a_;\[stripped\+0x[0-9a-f]+\];\[\[kernel' "module and offset survive"
else
	skip "stackcollapse-perf.pl" "it is not on PATH (STACKCOLLAPSE names it)"
fi

# --- order and choice
$make_cap "$cap" "$TMP/prog" "$TMP/prog" prog m "$plain"
run "$sym" -q "$cap"
is "$(grep 'offcpu-time: $' "$out" | awk '{ print $4 }' | sort -c -g && echo sorted)" sorted "records are in order of time"
run "$sym" -q --pid 99 "$cap"
is "$(grep 'offcpu-time: $' "$out" | cut -d' ' -f1,2)" "kworker/0:1 99/99" "--pid chooses a process"
run "$sym" -q -t 4243 "$cap"
is "$(grep 'offcpu-time: $' "$out" | cut -d' ' -f1,2)" "other 4242/4243" "--tid a thread, by its own name"
run "$sym" -q -c other -c kworker/0:1 "$cap"
is "$(grep -c 'offcpu-time: $' "$out")" 2 "--comm threads of a name, more than one"
is "$(sed -n 4p "$out")" "# totals: waits=24 total_ns=6912 lost=0" "the totals are of what was chosen"
status 1 "a choice that meets nothing is answered with 1" "$sym" -p 7 "$cap"
like "$(cat "$err")" 'no wait in the capture is of the given' "and a reason"

# --- JSON
$make_cap "$cap" "$TMP/prog" "$TMP/prog" 'q"\x' f "$plain" "$(printf %x $((0x$bar + 1)))"
run "$sym" -q --format=json "$cap"
if command -v python3 >/dev/null; then
	cat >"$TMP/decode.py" <<'PY'
import json, sys
lines = [json.loads(l) for l in sys.stdin]
waits = [l for l in lines if l["type"] == "wait"]
w = waits[0]
print(lines[0]["type"], len(waits), w["comm"], w["pid"], w["tid"], w["ns_pid"], w["total_ns"], w["count"], w["max_ns"])
print(w["user_stack_error"], w["kernel_stack_error"], w["user_stack_verdict"])
for f in w["user_stack"]:
    print(f["symbol"], f["linkage_name"], f["offset"], f["source"], f["reason"])
print([f["source"] for f in w["kernel_stack"]])
print(sorted({str(w["user_stack_error"]) for w in waits if w["user_stack_error"]}))
print([(w["user_stack_error"], w["user_stop_pc"]) for w in waits
    if w["user_stack_verdict"] == "stopped" and w["user_stack_error"] == "no-row"])
PY
	is "$(python3 "$TMP/decode.py" <"$out")" 'capture 25 q"\x 4242 4242 42 3456 12 900
None None unverified
plain plain 0 symtab None
foo::bar(int) _ZN3foo3barEi 1 symtab None
['"'ksym', 'ksym', 'ksym', 'ksym', 'raw'"']
'"['32-bit', 'EFAULT', 'between-samples', 'dropped', 'empty', 'exiting', 'expression', 'in-exec', 'kernel-thread', 'loop', 'lost', 'names-only', 'no-frame-pointer', 'no-mapping', 'no-memory', 'no-row', 'not-ready', 'not-recorded', 'not-seen', 'pc-only', 'register', 'truncated']
[('no-row', '0xabcd')]" \
		"JSON has every field, one object a line"
else
	skip "JSON has every field" "no python3"
fi

# --- what is missing
$make_cap "$cap" "$TMP/prog" "$TMP/prog" prog l "$plain"
status 0 "lost events are no failure of symbolize" "$sym" "$cap"
like "$(cat "$err")" 'the recording lost 7 \(lost\.ring_full\)$' "but are reported, by name where that is all that is known"
is "$(grep '^# lost' "$out")" "# lost: name=lost.ring_full count=7
# lost: name=lost.ring_full_ns count=1000" "each counter has its line"
is "$(sed -n 4p "$out" | grep -o 'lost=.*')" "lost=7" "nanoseconds are not added to events"
$make_cap "$cap" "$TMP/prog" "$TMP/prog" prog t "$plain"
status 1 "a recording without its end gives 1" "$sym" -q "$cap"
is "$(grep -c 'offcpu-time: $' "$out")" 2 "with all that is there"
like "$(cat "$err")" 'the capture is incomplete' "and says so even when quiet"
$make_cap "$cap" "$TMP/prog" "$TMP/prog" prog "" "$plain"
size=$(wc -c <"$cap")
bad=0
cut=1
while [ "$cut" -lt "$size" ]; do
	head -c "$cut" "$cap" >"$TMP/cut.cap"
	"$sym" -q "$TMP/cut.cap" >/dev/null 2>&1
	case $? in 1 | 2) ;; *) bad=$((bad + 1)) ;; esac
	cut=$((cut + 13))
done
is "$bad" 0 "a capture cut anywhere gives 1 or 2, never success or a crash"
status 2 "what is no capture gives 2" "$sym" "$TOP/t/tools/symbolize.t"
status 2 "so does a file that is not there" "$sym" "$TMP/nowhere"
status 2 "and a directory" "$sym" "$TMP"
run sh -c '"$1" -q <"$2"' sh "$sym" "$cap"
is "$rc" 0 "a capture is read from standard input"
run sh -c 'cat "$2" | "$1" -q -' sh "$sym" "$cap"
is "$rc $(grep -c 'offcpu-time: $' "$out")" "0 2" "and from a pipe"

# --- the contract
status 0 "--help" "$sym" --help
status 0 "--version" "$sym" --version
status 64 "an unknown option" "$sym" --nope
is "$(wc -l <"$err") $(wc -c <"$out")" "2 0" "two lines on stderr, none on stdout"
status 64 "an unknown format" "$sym" --format=xml "$cap"
status 64 "a PID that is no number" "$sym" -p 5x "$cap"
status 64 "two captures" "$sym" "$cap" "$cap"
run sh -c '"$1" -q "$2" >/dev/full' sh "$sym" "$cap"
like "$rc $(cat "$err")" '^2 symbolize: .*No space left' "/dev/full is a failure"
run sh -c '"$1" -q "$2" >&-' sh "$sym" "$cap"
is "$rc" 2 "a closed stdout is a failure"
ok "a reader that goes away ends it quietly" sh -c '"$1" -q "$2" | head -n 1 | grep -q stacktools' sh "$sym" "$cap"
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	chmod 711 "$TMP"
	chmod 644 "$cap"
	chmod 755 "$TMP/prog"
	run setpriv --reuid=65534 --regid=65534 --clear-groups "$sym" -q "$cap"
	is "$rc $(frame 1)" "0 plain+0x0 ($TMP/prog)" "no privilege is needed"
else
	skip "no privilege is needed" "not root"
fi
tap_done
