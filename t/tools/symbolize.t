#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck disable=SC2154,SC2016 # $out, $err and $rc come from tap.sh; sh -c expands its own
. "$(dirname "$0")/../lib/tap.sh"

make_cap="$OBJ/t/unit/resolve --make"
sym=$BIN/symbolize
cap=$TMP/a.cap
tab=$(printf '\t')

command -v "${CC:-cc}" >/dev/null || skip_all "no C compiler for the test program"
"${CC:-cc}" -O1 -fpie -pie -Wl,--build-id -o "$TMP/prog" "$DATA/symbolize/prog.c" ||
	skip_all "the test program does not build"
"${CC:-cc}" -O1 -fno-pie -no-pie -Wl,--build-id -o "$TMP/nopie" "$DATA/symbolize/prog.c" ||
	skip_all "the test program does not build"

# addr FILE SYMBOL: prints its address in hex
addr() {
	nm "$1" | awk -v s="$2" '$3 == s { print $1 }'
}

# made ARGUMENT...: makes $cap with these arguments of the unit program and runs symbolize on it
made() {
	# shellcheck disable=SC2086 # several words
	$make_cap "$cap" "$@" && run "$sym" -q $options "$cap"
}
options=

# frame N: prints the Nth user frame of the first record (after five kernel frames), without its address
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
is "$rc" 0 "a complete capture gives status 0"
is "$(head -n 1 "$out")" "# stacktools perf-script 1" "the first line names the format"
like "$(sed -n 2p "$out")" '^# kernel: release=6\.18\.0 machine=x86_64 stext=0xffffffff81000000 build-id=- boot-id=another$' \
	"the second line describes the kernel"
like "$(sed -n 3p "$out")" '^# host: hostname=there recorder=resolve start=2023-11-14T22:13:20Z duration=2\.000 monotonic=[0-9]+\.[0-9]{9}$' \
	"the third line describes the host"
is "$(sed -n 4p "$out")" "# totals: waits=24 total_ns=6912 lost=0" "the fourth line has the totals"
is "$(sed -n 6p "$out")" \
	"# wait: count=12 total_ns=3456 max_ns=900 kind=unknown state=S open=0 initial=0 preempted=0 kernel=complete user=unverified" \
	"a comment has the fields that the grammar lacks"
is "$(sed -n 7p "$out")" "prog 4242/4242 [000] 2.000000000: 3456 offcpu-time: " "a record begins as in perf script"
is "$(sed -n 8p "$out")" "${tab}ffffffff810012a7 __schedule+0x2a7 ([kernel.kallsyms])" "a kernel frame has symbol, offset and kernel module"
is "$(sed -n 9p "$out")" "${tab}ffffffffc0001010 nf_hook+0x10 ([nf_tables])" "a frame in a kernel module names the module"
is "$(sed -n 10p "$out")" "${tab}ffffffffc0003020 bpf_prog_6deef7357e7b4530+0x20 ([bpf])" "a frame in a BPF program has the module bpf"
is "$(sed -n 11p "$out")" "${tab}ffffffff81002000 __schedule+0x1000 ([kernel.kallsyms])" \
	"a return address after the last byte of a function belongs to that function"
is "$(sed -n 12p "$out")" "${tab}ffffffff81005000 [unknown] ([kernel.kallsyms])" "a kernel address without a symbol stays raw"
like "$(sed -n 13p "$out")" "^$tab    7f[0-9a-f]{10} plain\+0x0 \($TMP/prog\)\$" "the address of a user frame is sixteen characters wide"
is "$(sed -n 19p "$out")" "" "a blank line ends the record"
is "$(grep -c "offcpu-time: \$" "$out")" 2 "there is one record for each sample"
is "$(grep 'kernel thread' "$out")" "${tab}               0 [no user stack: kernel thread] ([unknown])" \
	"a frame says that a kernel thread has no user stack"

# --- names
is "$(frame 1)" "plain+0x0 ($TMP/prog)" "the leaf is looked up at its own address"
made "$TMP/prog" "$TMP/prog" prog "" "$(printf %x $((0x$plain + 1)))" "$(printf %x $((0x$bar + 1)))" \
	"$(printf %x $((0x$anon + 1)))" "$(printf %x $((0x$rust + 1)))" "$(printf %x $((0x$chosen + 1)))" "$bar"
is "$(frame 2)" "foo::bar(int)+0x1 ($TMP/prog)" "C++ names are demangled with parameters"
is "$(frame 3)" "::(anonymous namespace)::f()+0x1 ($TMP/prog)" "a name that starts with '(' gets a prefix, so that readers keep it"
is "$(frame 4)" "core::fmt::Write::write_fmt+0x1 ($TMP/prog)" "Rust names are demangled without the hash"
is "$(frame 5)" "chosen+0x1 ($TMP/prog)" "local functions have names"
like "$(frame 6)" "^plain\+0x[0-9a-f]+ " "a return address at the start of a function belongs to the one before"
options=--no-demangle
made "$TMP/prog" "$TMP/prog" prog "" "$bar" "$(printf %x $((0x$bar + 1)))"
is "$(frame 1)" "_ZN3foo3barEi+0x0 ($TMP/prog)" "--no-demangle keeps mangled names"
options=
np=$(addr "$TMP/nopie" plain)
made "$TMP/nopie" "$TMP/nopie" prog "" "$np"
is "$(frame 1)" "plain+0x0 ($TMP/nopie)" "a program that is not position-independent has names"
ind=$(addr "$TMP/prog" indirect)
made "$TMP/prog" "$TMP/prog" prog "" "$ind"
is "$(frame 1)" "indirect+0x0 ($TMP/prog)" "an indirect function has its public name, not that of its resolver"
strip -o "$TMP/stripped" "$TMP/prog"
made "$TMP/stripped" "$TMP/stripped" prog "" "$plain"
is "$(frame 1)" "[stripped+0x$(printf %x "0x$plain")]+0x0 ($TMP/stripped)" \
	"a frame without a symbol has the start of its function, by its FDE"
made "$TMP/stripped" "$TMP/stripped" prog "" "$(printf %x $((0x$plain + 2)))" "$(printf %x $((0x$bar + 1)))"
is "$(frame 1) $(frame 2)" "[stripped+0x$(printf %x "0x$plain")]+0x2 ($TMP/stripped) [stripped+0x$(printf %x "0x$bar")]+0x1 ($TMP/stripped)" \
	"each address of a function without a symbol has the same label"
strip -o "$TMP/fixed" "$TMP/nopie"
made "$TMP/fixed" "$TMP/fixed" prog "" "$(printf %x $((0x$np + 1)))"
is "$(frame 1)" "[fixed+0x$(printf %x "0x$np")]+0x1 ($TMP/fixed)" "a label has the address that nm has, not the place in the file"
objcopy --remove-section .eh_frame --remove-section .eh_frame_hdr "$TMP/fixed" "$TMP/bare" 2>/dev/null
made "$TMP/bare" "$TMP/bare" prog "" "$(printf %x $((0x$np + 1)))"
is "$(frame 1)" "[bare+0x$(printf %x $((0x$np + 1)))] ($TMP/bare)" "without an FDE a frame has its own address"
"${CC:-cc}" -O1 -m32 -nostdlib -shared -Wl,--build-id -o "$TMP/lib32.so" -x c - 2>/dev/null <<'C' && have32=1 || have32=
int plain(int x) { return x * 3; }
C
if [ "$have32" ]; then
	made "$TMP/lib32.so" "$TMP/lib32.so" prog "" "$(addr "$TMP/lib32.so" plain)"
	is "$(frame 1)" "plain+0x0 ($TMP/lib32.so)" "a 32-bit file has names"
else
	skip "a 32-bit file has names" "the compiler cannot build one"
fi

# --- every name is compared with addr2line and eu-addr2line, and each difference is explained
# If only a function before the address is known, addr2line gives its name, and eu-addr2line none. Neither names
# stubs.
ours() {
	"$sym" -q --no-demangle --no-inline "$1" |
		perl -ne 'if (/^\t *\w+ (.*) \(/) { $_ = $1; s/\+0x[0-9a-f]+$//; $_ = "??" if /^\[|\@plt$/; s/@.*//; print "$_\n" }'
}
for elf in "$TMP/prog" /bin/bash; do
	"$OBJ/t/unit/resolve" --gen "$TMP/gen.cap" "$elf" 2000 2000 >"$TMP/gen.addr"
	ours "$TMP/gen.cap" >"$TMP/gen.us"
	addr2line -f -e "$elf" <"$TMP/gen.addr" | awk 'NR % 2 { sub(/@.*/, ""); print }' >"$TMP/gen.them"
	ok "${elf##*/}: names match addr2line" perl "$DATA/symbolize/compare.pl" "$elf" "$TMP/gen.addr" "$TMP/gen.us" "$TMP/gen.them"
	if command -v eu-addr2line >/dev/null; then
		eu-addr2line -S -e "$elf" <"$TMP/gen.addr" |
			awk 'NR % 2 { sub(/[+-]0x[0-9a-f]+$/, ""); sub(/@.*/, ""); print $1 ~ /^\(/ ? "??" : $1 }' >"$TMP/gen.them"
		ok "${elf##*/}: names match eu-addr2line" perl "$DATA/symbolize/compare.pl" "$elf" "$TMP/gen.addr" "$TMP/gen.us" "$TMP/gen.them"
	else
		skip "${elf##*/}: names match eu-addr2line" "eu-addr2line is not installed"
	fi
done

# --- only the mapped file is used
made "$TMP/prog" "$TMP/prog" prog b "$plain"
is "$(frame 1)" "[prog+0x$(printf %x "0x$plain")] ($TMP/prog)" "a file with another build ID is not used"
like "$(grep '^# not-used' "$out")" "^# not-used: file=$TMP/prog reason=is another file: build ID" "a comment names the file that is not used"
is "$rc" 0 "a file that is not used does not change the status"
$make_cap "$cap" "$TMP/prog" "$TMP/prog" prog b "$plain"
run "$sym" "$cap"
like "$(cat "$err")" '^symbolize: 1 file could not be used' "a warning counts the files that are not used"
run "$sym" -v "$cap"
like "$(cat "$err")" "^symbolize: '$TMP/prog' is not used: it is another file" "-v says why a file is not used"
made "$TMP/prog" "$TMP/prog" prog z "$plain"
is "$(frame 1)" "plain+0x0 ($TMP/prog)" "without a build ID a file is identified by size and time"
made "$TMP/prog" "$TMP/prog" prog Z "$plain"
like "$(grep '^# not-used' "$out")" 'another size' "a file of another size is not used"
made "$TMP/prog" /nonexistent/prog prog a "$plain"
like "$(grep '^# not-used' "$out")" 'file=/nonexistent/prog reason=was deleted or replaced' "a deleted file is reported"
mkfifo "$TMP/fifo"
made "$TMP/prog" "$TMP/fifo" prog "" "$plain"
like "$(grep '^# not-used' "$out")" 'is not a regular file' "a FIFO in place of the file is refused"
mkdir -p "$TMP/root/there"
cp "$TMP/prog" "$TMP/root/there/prog"
options="--symfs $TMP/root"
made "$TMP/prog" /there/prog prog "" "$plain"
is "$(frame 1)" "plain+0x0 (/there/prog)" "--symfs finds a file of another machine"
rm "$TMP/root/there/prog"
ln -s "$TMP/prog" "$TMP/root/there/prog"
made "$TMP/prog" /there/prog prog "" "$plain"
like "$(grep '^# not-used' "$out")" 'No such file' "a link cannot lead out of --symfs"
mkdir -p "$TMP/root/usr/lib/debug/.build-id"
id=$(readelf -n "$TMP/stripped" | awk '/Build ID/ { print $3 }')
dir=$TMP/root/usr/lib/debug/.build-id/$(printf %.2s "$id")
mkdir -p "$dir"
objcopy --only-keep-debug "$TMP/prog" "$dir/${id#??}.debug"
made "$TMP/stripped" "$TMP/stripped" prog "" "$plain"
is "$(frame 1)" "plain+0x0 ($TMP/stripped)" "a stripped file has the names of its debug file"
options="--symfs $TMP/nowhere"
made "$TMP/prog" /there/prog prog "" "$plain"
is "$rc" 2 "a missing --symfs is an error"
options=

# --- broken files
: >"$TMP/empty"
head -c 200 "$TMP/prog" >"$TMP/cut"
for kind in empty cut; do
	made "$TMP/prog" "$TMP/$kind" prog "" "$plain"
	like "$rc $(grep '^# not-used' "$out")" "^0 # not-used: file=$TMP/$kind reason=" "the fault of a file is reported: $kind"
done

# --- missing stacks are frames
made "$TMP/prog" "$TMP/prog" prog f "$plain"
for want in 'no user stack: EFAULT' 'no user stack: inside execve' 'no user stack: thread was exiting' \
	'stopped: stack memory unreadable' 'stopped: no-mapping' 'stopped: no-row' \
	'stopped: expression' 'stopped: register' 'stopped: not-ready' 'stopped: dropped' \
	'stopped: no-frame-pointer' 'no user stack: lost, the ring buffer was full'; do
	is "$(grep -c "\[$want\] (\[unknown\])\$" "$out")" 1 "a frame says '$want'"
done
for how in 'truncated at 1 frames:truncated' 'stopped: loop:loop'; do
	is "$(grep -c "\[${how%:*}\] (\[unknown\])\$" "$out") $(grep -c "user=unverified:${how##*:}\$" "$out")" "2 1" \
		"a frame says '${how%:*}', of an unverified stack, too, and its comment says that it is unverified"
done
is "$(grep 'no kernel stack' "$out")" "${tab}               0 [no kernel stack: EEXIST] ([kernel.kallsyms])" "a frame says why there is no kernel stack"
is "$(grep -c 'user=not-recorded' "$out")" 1 "a stack that was not to be recorded has no frame"
is "$(grep -c '^#.* user=failed:EFAULT' "$out")" 1 "the comment names the error of a user stack"
is "$(grep -c '^#.* user=stopped:no-row$' "$out")" 1 "the comment names the reason of a truncated walk"
is "$(grep 'no-row\]' "$out")" "${tab}            abcd [stopped: no-row] ([unknown])" "the last frame of a truncated walk has the PC"
is "$(grep -B 1 'no-row\]' "$out" | head -n 1)" "${tab}            1000 [unknown] ([unknown])" \
	"the frames that were found come before the reason of a truncated walk"

# --- frames that a signal interrupted
made "$TMP/prog" "$TMP/prog" prog "" "$plain" "=$bar" "$bar" "=$anon"
is "$(frame 2)" "foo::bar(int)+0x0 ($TMP/prog)" "an exact frame is looked up at its own address"
like "$(frame 3)" '^plain\+0x' "the same address as a return address is looked up one byte before"
like "$(frame 4)" '^::\(anonymous namespace\)::f\(\)\+0x0 ' "a second exact frame of a stack is looked up at its own address"
run "$sym" -q --format=json "$cap"
is "$(grep -o '"user_stack_exact":\[[^]]*\]' "$out")" '"user_stack_exact":[1,3]' \
	"JSON lists the exact frames of a stack if there are any"

# --- hostile names
esc=$(printf '\033')
made "$TMP/prog" "$TMP/a b(c)
evil	1/1 [000] 1.0: 9 offcpu-time: ${esc}[31m" "x 1
y/2 [0]${esc}[0m;a" "" "$plain"
is "$(tr -d '\n\t -~' <"$out" | wc -c)" 0 "the text has no control characters"
is "$(grep -c 'offcpu-time: $' "$out")" 2 "a comm forges no record"
like "$(grep 'offcpu-time: $' "$out" | head -n 1)" '^x_1\\x0ay/2 \[0\]\\x1b\[0m\\x3ba 4242/4242 \[000\] ' "a comm stays in its field"
objcopy --redefine-sym "evil=e
vil${esc}[1m (x)" "$TMP/prog" "$TMP/evil"
made "$TMP/evil" "$TMP/evil" '#a' "" "$(addr "$TMP/prog" evil)"
is "$(frame 1)" "e\\x0avil\\x1b[1m (x)+0x0 ($TMP/evil)" "a symbol stays on its line"
is "$(grep -c '^\\x23a 4242/4242' "$out")" 1 "a comm does not become a comment"
made "$TMP/prog" "$TMP/prog" a "" "$plain"
is "$(grep -c '^a  4242/4242 ' "$out")" 1 "a comm of one byte is followed by two spaces"
made "$TMP/prog" "$TMP/prog" "" "" "$plain"
is "$(grep -c '^\[empty\] 4242/4242 ' "$out")" 1 "an empty comm is printed as [empty]"
run "$sym" -q --format=json "$cap"
is "$(tr -d '\n -~' <"$out" | wc -c)" 0 "JSON has no control characters"

# --- stackcollapse-perf.pl reads the output
sc=${STACKCOLLAPSE:-$(command -v stackcollapse-perf.pl)}
if [ -r "$sc" ]; then
	collapse() {
		"$sym" -q "$cap" | perl "$sc" "$@" 2>"$TMP/sc.err"
		cat "$TMP/sc.err"
	}
	$make_cap "$cap" "$TMP/prog" "$TMP/prog" "V8 Worker 7" "" "$plain" "$(printf %x $((0x$anon + 1)))"
	is "$(collapse | tail -n 1 | tr -d '\n')" \
		"kworker/0:1;[no user stack: kernel thread];[[kernel.kallsyms]];__schedule;bpf_prog_6deef7357e7b4530;nf_hook;__schedule 3456" \
		"stackcollapse-perf.pl keeps a frame that says why there is no stack"
	is "$(collapse --kernel | head -n 1)" \
		"V8_Worker_7;::(anonymous namespace)::f;plain;[[kernel.kallsyms]]_[k];__schedule_[k];bpf_prog_6deef7357e7b4530_[k];nf_hook_[k];__schedule_[k] 3456" \
		"stackcollapse-perf.pl reads names, kernel and user frames"
	$make_cap "$cap" "$TMP/stripped" "$TMP/stripped" a f "$plain"
	is "$(collapse | grep -c 'Unrecognized')" 0 "stackcollapse-perf.pl recognizes every line"
	like "$(collapse)" '^a_;\[stripped\+0x[0-9a-f]+\];\[\[kernel' "stackcollapse-perf.pl keeps module and offset"
else
	skip "stackcollapse-perf.pl reads the text" "it is not on PATH (STACKCOLLAPSE names it)"
fi

# --- order and selection
$make_cap "$cap" "$TMP/prog" "$TMP/prog" prog m "$plain"
run "$sym" -q "$cap"
is "$(grep 'offcpu-time: $' "$out" | awk '{ print $4 }' | sort -c -g && echo sorted)" sorted "records are sorted by time"
run "$sym" -q --pid 99 "$cap"
is "$(grep 'offcpu-time: $' "$out" | cut -d' ' -f1,2)" "kworker/0:1 99/99" "--pid selects a process"
run "$sym" -q -t 4243 "$cap"
is "$(grep 'offcpu-time: $' "$out" | cut -d' ' -f1,2)" "other 4242/4243" "--tid selects a thread, which has its own name"
run "$sym" -q -c other -c kworker/0:1 "$cap"
is "$(grep -c 'offcpu-time: $' "$out")" 2 "--comm selects threads by name and can be repeated"
is "$(sed -n 4p "$out")" "# totals: waits=24 total_ns=6912 lost=0" "the totals are those of the selected waits"
status 1 "a selection without waits gives status 1" "$sym" -p 7 "$cap"
like "$(cat "$err")" 'no wait in the capture is of the given' "the message says that no wait was selected"

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
	is "$(python3 "$TMP/decode.py" <"$out")" 'capture 28 q"\x 4242 4242 42 3456 12 900
None None unverified
plain plain 0 symtab None
foo::bar(int) _ZN3foo3barEi 1 symtab None
['"'ksym', 'ksym', 'ksym', 'ksym', 'raw'"']
'"['32-bit', 'EFAULT', 'between-samples', 'dropped', 'empty', 'exiting', 'expression', 'in-exec', 'kernel-thread', 'loop', 'lost', 'names-only', 'no-frame-pointer', 'no-mapping', 'no-memory', 'no-row', 'not-ready', 'not-recorded', 'not-seen', 'pc-only', 'register', 'truncated', 'user-mode']
[('no-row', '0xabcd')]" \
		"JSON has one object per line, with every field"
else
	skip "JSON has one object per line, with every field" "no python3"
fi

# --- losses and truncated captures
$make_cap "$cap" "$TMP/prog" "$TMP/prog" prog l "$plain"
status 0 "lost events do not change the status" "$sym" "$cap"
like "$(cat "$err")" 'the recording lost 7 \(lost\.ring_full\)$' "lost events are reported, by the name of the counter if nothing else is known"
is "$(grep '^# lost' "$out")" "# lost: name=lost.ring_full count=7
# lost: name=lost.ring_full_ns count=1000" "each counter of losses has its own line"
is "$(sed -n 4p "$out" | grep -o 'lost=.*')" "lost=7" "nanoseconds are not added to events"
$make_cap "$cap" "$TMP/prog" "$TMP/prog" prog t "$plain"
status 1 "a capture without its end gives status 1" "$sym" -q "$cap"
is "$(grep -c 'offcpu-time: $' "$out")" 2 "a capture without its end gives all its records"
like "$(cat "$err")" 'the capture is incomplete' "-q still reports that a capture is incomplete"
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
is "$bad" 0 "a truncated capture gives status 1 or 2, never success or a crash"
status 2 "a file that is not a capture gives status 2" "$sym" "$TOP/t/tools/symbolize.t"
status 2 "a missing file gives status 2" "$sym" "$TMP/nowhere"
status 2 "a directory gives status 2" "$sym" "$TMP"
run sh -c '"$1" -q <"$2"' sh "$sym" "$cap"
is "$rc" 0 "a capture is read from standard input"
run sh -c 'cat "$2" | "$1" -q -' sh "$sym" "$cap"
is "$rc $(grep -c 'offcpu-time: $' "$out")" "0 2" "a capture is read from a pipe"

# --- exit status and command line
status 0 "--help exits with status 0" "$sym" --help
status 0 "--version exits with status 0" "$sym" --version
status 64 "an unknown option is a usage error" "$sym" --nope
is "$(wc -l <"$err") $(wc -c <"$out")" "2 0" "a usage error prints two lines on stderr and nothing on stdout"
status 64 "an unknown format is a usage error" "$sym" --format=xml "$cap"
status 64 "a PID that is not a number is a usage error" "$sym" -p 5x "$cap"
status 64 "two captures are a usage error" "$sym" "$cap" "$cap"
run sh -c '"$1" -q "$2" >/dev/full' sh "$sym" "$cap"
like "$rc $(cat "$err")" '^2 symbolize: .*No space left' "a full device gives status 2"
run sh -c '"$1" -q "$2" >&-' sh "$sym" "$cap"
is "$rc" 2 "a closed stdout gives status 2"
ok "a reader that closes the pipe early gets its line" sh -c '"$1" -q "$2" | head -n 1 | grep -q stacktools' sh "$sym" "$cap"
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	chmod 711 "$TMP"
	chmod 644 "$cap"
	chmod 755 "$TMP/prog"
	run setpriv --reuid=65534 --regid=65534 --clear-groups "$sym" -q "$cap"
	is "$rc $(frame 1)" "0 plain+0x0 ($TMP/prog)" "symbolize needs no privileges"
else
	skip "symbolize needs no privileges" "not root"
fi
tap_done
