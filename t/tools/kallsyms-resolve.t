#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
. "$(dirname "$0")/../lib/tap.sh"
kr=$BIN/kallsyms-resolve
made=$DATA/kallsyms/made

# by ADDR...: the name of an address in the made table
name_of() {
	run "$kr" -k "$made" "$@"
	cat "$out"
}

# ---- addresses ----
is "$(name_of ffffffff81000110)" "alpha+0x0" "an address is named"
is "$(name_of 0xffffffff8100012f)" "alpha+0x1f" "an offset is in hex, 0x is taken"
is "$(name_of FFFFFFFF8100012F)" "alpha+0x1f" "capital digits are taken"
is "$(name_of -m ffffffff81000110)" "alpha+0x0 [kernel]" "-m names the kernel as a module"
is "$(name_of ffffffffc0900101)" "eta_write+0x1 [eta]" "a module is named"
is "$(name_of ffffffffc0b00010)" "bpf_prog_6deef7357e7b4530_sd_devices+0x10 [bpf]" "a BPF program is named"
is "$(name_of ffffffffc0c00010)" "ftrace_trampoline+0x10 [__builtin__ftrace]" "a trampoline is named"
is "$(name_of ffffffff81000200)" "beta+0x0" "of several names the global one without underscores is taken"
is "$(name_of ffffffff81000300)" "__x64_sys_gamma+0x0" "the native system call entry is taken"
is "$(name_of ffffffff81000000)" "startup_64+0x0" "a function is preferred to _stext"
is "$(name_of ffffffff81000490)" "code_eps+0x0" "code is preferred to data"
is "$(name_of -r ffffffff81000200)" "alpha+0xf0" "-r looks one byte back and prints the true offset"
is "$(name_of ffffffff81000110 ffffffff81000501 | tr '\n' ' ')" "alpha+0x0 last_function+0x1 " "several addresses, one a line"

# ---- ends ----
past() {
	status 1 "$2" "$kr" -k "$made" "$1"
	is "$(cat "$out")" "0x$1 [unknown]" "and its address is printed"
}
is "$(name_of ffffffff8100057f)" "last_function+0x7f" "a function goes up to its section's end"
past ffffffff81000581 "an address past _etext is not attributed"
past ffffffff81000485 "nor one past the end of a part of the text"
past ffffffffc0a01000 "nor one past the end of a module's text"
past 7f0000001000 "nor a number that is no kernel address"
past 21000 "nor a per-CPU offset"
past ffffffffc0b01000 "nor one past the page of a BPF program"
like "$(cat "$err")" "1 of 1 kernel addresses belong to no symbol" "and the loss is counted"

# ---- a stream ----
{
	printf '# kernel: stext=0xffffffff81000000\n'
	printf 'bash 12/12 [000] 1.000000: 5000 offcpu-time:\n'
	printf '\tffffffff81000110 [unknown] ([kernel.kallsyms])\n'
	printf '\tffffffff81000200 [unknown] ([unknown])\n'
	printf '\tffffffffc0900104 [unknown] ([kernel])\n'
	printf '\tffffffff81000120 known+0x1 ([kernel.kallsyms])\n'
	printf '\tffffffff81000120 [unknown] (/bin/bash)\n'
	printf '\t    7f0000001000 [unknown] ([unknown])\n'
	printf '\tffffffff81000120 [unknown] ([kernel.kallsyms]) more\n'
	printf '\n  trailing blanks  \nnot hex\n\000\377\n\nno newline'
} >"$TMP/in"
{
	printf '# kernel: stext=0xffffffff81000000\n'
	printf 'bash 12/12 [000] 1.000000: 5000 offcpu-time:\n'
	printf '\tffffffff81000110 alpha+0x0 ([kernel.kallsyms])\n'
	printf '\tffffffff81000200 alpha+0xf0 ([kernel.kallsyms])\n'
	printf '\tffffffffc0900104 eta_write+0x4 ([eta])\n'
	printf '\tffffffff81000120 known+0x1 ([kernel.kallsyms])\n'
	printf '\tffffffff81000120 [unknown] (/bin/bash)\n'
	printf '\t    7f0000001000 [unknown] ([unknown])\n'
	printf '\tffffffff81000120 [unknown] ([kernel.kallsyms]) more\n'
	printf '\n  trailing blanks  \nnot hex\n\000\377\n\nno newline'
} >"$TMP/want"
"$kr" -k "$made" <"$TMP/in" >"$TMP/got"
is $? 0 "a stream whose kernel frames all have names is complete"
same "$TMP/got" "$TMP/want" "raw kernel frames are named, return addresses one byte back, all else passes to the byte"
# the same in pieces of one byte
perl -e 'local $/; $_ = <STDIN>; $| = 1; for (split //) { print; }' <"$TMP/in" | "$kr" -k "$made" >"$TMP/got"
same "$TMP/got" "$TMP/want" "however the stream is cut"
perl -e 'print "x" x 700000, "\n", "ffffffff81000110\n", "y" x 300000' >"$TMP/long"
perl -e 'print "x" x 700000, "\n", "alpha+0x0\n", "y" x 300000' >"$TMP/longwant"
"$kr" -k "$made" <"$TMP/long" >"$TMP/got"
same "$TMP/got" "$TMP/longwant" "lines longer than any buffer pass"
printf 'a 1/1 1: 1 e:\n\tffffffff81000581 [unknown] ([kernel.kallsyms])\n' >"$TMP/in"
"$kr" -k "$made" <"$TMP/in" >"$TMP/got" 2>"$err"
is $? 1 "a frame without a name is incomplete"
same "$TMP/got" "$TMP/in" "and stays as it is"
is "$(printf '' | "$kr" -k "$made" | wc -c)" 0 "nothing in, nothing out"

# ---- refusals ----
status 2 "all-zero addresses fail" "$kr" -k "$DATA/kallsyms/zeroed" ffffffff81000110
like "$(head -n 1 "$err")" "^kallsyms-resolve: no usable address in '.*/zeroed': Permission denied\$" "with the reason"
like "$(sed -n 2p "$err")" "^kallsyms-resolve: hint: kernel.kptr_restrict" "and a hint"
is "$(wc -c <"$out")" 0 "and no name"
status 2 "a missing file fails" "$kr" -k "$TMP/none" 1
like "$(cat "$err")" "cannot open '.*/none': No such file" "and is named"
status 2 "a folder fails" "$kr" -k "$TMP" 1
status 2 "a file that is no copy fails" "$kr" -k "$0" 1
like "$(cat "$err")" "is not a copy of /proc/kallsyms: line 1" "and tells the line"
size=$(wc -c <"$made")
head -c $((size - 3)) "$made" >"$TMP/cut"
status 2 "a copy that is cut in a line fails" "$kr" -k "$TMP/cut" ffffffff81000110
like "$(cat "$err")" "is cut off" "and says so"
printf 'ffffffff81000000 T a\033[2Jb;c\n' >"$TMP/hostile"
status 0 "a name with control characters is taken" "$kr" -k "$TMP/hostile" ffffffff81000001
is "$(cat "$out")" 'a\x1b[2Jb;c+0x1' "and escaped"
status 64 "bad hex is a usage error" "$kr" -k "$made" ffffffff8100011g
is "$(wc -l <"$err")" 2 "of two lines"
for a in "" 0x 12345678123456781 -- -1 ' 1'; do
	[ "$a" = -- ] && continue
	status 64 "'$a' is no address" "$kr" -k "$made" -- "$a"
done
status 64 "--force alone is a usage error" "$kr" --force
status 64 "--save takes no address" "$kr" --save "$TMP/x" 1
status 64 "--stext takes an address" "$kr" --stext zz 1
status 64 "an unknown option is a usage error" "$kr" --nonsense
status 0 "--help succeeds" "$kr" --help
status 0 "--version succeeds" "$kr" --version
(exec "$kr" -k "$made" ffffffff81000110 >/dev/full 2>"$err")
is $? 2 "a full device fails"
like "$(cat "$err")" "No space left" "and says why"
(exec "$kr" -k "$made" ffffffff81000110 >&- 2>"$err")
is $? 2 "a closed stdout fails"
is "$(yes ffffffff81000110 | "$kr" -k "$made" | head -n 1)" "alpha+0x0" "a reader that goes ends it"

# ---- another boot ----
status 0 "--relocate with --stext moves the kernel" "$kr" -k "$made" --relocate --stext ffffffff91000000 ffffffff91000115
is "$(cat "$out")" "alpha+0x5" "and names what is there"
like "$(cat "$err")" "symbols of modules and BPF programs are not used" "and says that modules are not used"
status 1 "modules are not moved along" "$kr" -k "$made" --relocate --stext ffffffff91000000 ffffffffc0900101
status 2 "another boot's symbols are refused" "$kr" -k "$made" --stext ffffffff91000000 ffffffff91000115
like "$(cat "$err")" "hint: .*--relocate" "with a hint"
printf '# kernel: stext=0xffffffff91000000 x=1\n\tffffffff91000115 [unknown] ([kernel.kallsyms])\n' >"$TMP/in"
"$kr" -k "$made" <"$TMP/in" >"$TMP/got" 2>"$err"
is $? 2 "a stream of another boot is refused"
"$kr" -k "$made" --relocate <"$TMP/in" >"$TMP/got" 2>"$err"
is $? 0 "--relocate believes the stream"
like "$(cat "$TMP/got")" "alpha\\+0x5 \\(\\[kernel.kallsyms\\]\\)" "and names its frames"
printf '# kernel: stext=0xffffffff81000000 release=0.0.1-other\n' >"$TMP/in"
if [ "$(head -c 16 /proc/kallsyms 2>/dev/null)" != 0000000000000000 ]; then
	"$kr" <"$TMP/in" >"$TMP/got" 2>"$err"
	is $? 2 "addresses of another kernel release are refused"
	like "$(cat "$err")" "of kernel 0.0.1-other" "by name"
fi

# ---- saving ----
status 0 "--save makes a copy" "$kr" -k "$made" --save "$TMP/copy"
same "$TMP/copy" "$made" "which is one to the byte"
is "$(stat -c %a "$TMP/copy")" 600 "readable by its owner only"
status 0 "a copy is saved over a copy" "$kr" -k "$made" --save "$TMP/copy"
echo precious >"$TMP/other"
status 2 "nothing is saved over another file" "$kr" -k "$made" --save "$TMP/other"
is "$(cat "$TMP/other")" precious "which is left alone"
like "$(cat "$err")" "hint: --force" "with a hint"
ln -s other "$TMP/link"
status 2 "nothing is saved through a symbolic link" "$kr" -k "$made" --save "$TMP/link" --force
is "$(cat "$TMP/other")" precious "whose target is left alone"
status 2 "nothing is saved over a device" "$kr" -k "$made" --save /dev/null --force
status 0 "--force saves over another file" "$kr" -k "$made" --save "$TMP/other" --force
same "$TMP/other" "$made" "completely"
status 2 "zeroed addresses are not saved" "$kr" -k "$DATA/kallsyms/zeroed" --save "$TMP/zero"
is "$(find "$TMP" -name 'zero*' | wc -l)" 0 "and leave no file behind"
status 2 "a missing folder fails" "$kr" -k "$made" --save "$TMP/no/copy"

# ---- the running kernel ----
if [ "$(head -c 16 /proc/kallsyms 2>/dev/null)" = 0000000000000000 ]; then
	skip "the running kernel's symbols" "/proc/kallsyms is hidden"
else
	status 0 "the running kernel is saved" "$kr" --save "$TMP/live"
	grep -v '^00000000000' "$TMP/live" | awk '{print $1}' | sort -u >"$TMP/addrs"
	"$kr" -k "$TMP/live" <"$TMP/addrs" >"$TMP/names"
	is $? 0 "every symbol's address of the running kernel is named"
	paste -d ' ' "$TMP/addrs" "$TMP/names" | sed 's/+0x0\( .*\)\{0,1\}$//' | sort >"$TMP/pairs"
	awk '{print $1, $3}' "$TMP/live" | sort -u >"$TMP/table"
	is "$(comm -23 "$TMP/pairs" "$TMP/table" | head -n 3)" "" "by a name that the table has for it"
	etext=$(awk '$3 == "_etext" {print $1}' "$TMP/live")
	if [ -n "$etext" ]; then
		status 1 "the running kernel's _etext is an end" "$kr" "$(printf '%x' $((0x$etext + 1)))"
	fi
	# build IDs of files with long names crash perf 6.1
	if perf record -q -B -N -e cpu-clock -a -g -o "$TMP/perf.data" sleep 0.3 >/dev/null 2>&1; then
		perf script -i "$TMP/perf.data" -F ip,sym,symoff,dso 2>/dev/null |
			sed -n 's/^[[:space:]]*\(ffffffff[89a-f][0-9a-f]*\) .*+0x\([0-9a-f]*\) (\[kernel.kallsyms\])$/\1 \2/p' |
			sort -u >"$TMP/theirs"
		awk '{print $1}' "$TMP/theirs" | "$kr" | sed 's/.*+0x\([0-9a-f]*\).*/\1/' >"$TMP/offsets"
		awk '{print $1}' "$TMP/theirs" | paste -d ' ' - "$TMP/offsets" >"$TMP/ours"
		same "$TMP/ours" "$TMP/theirs" "kernel frames that perf samples lie in the symbols that perf finds"
	else
		skip "kernel frames that perf samples lie in the symbols that perf finds" "perf cannot record here"
	fi
	if runuser -u nobody -- head -c 16 /proc/kallsyms 2>/dev/null | grep -q '^0000000000000000$'; then
		cp "$kr" "$TMP/kr" && chmod 755 "$TMP" "$TMP/kr"
		status 2 "without privilege the hidden addresses are an error" runuser -u nobody -- "$TMP/kr" ffffffff81000110
		like "$(cat "$err")" "no usable address in '/proc/kallsyms': Permission denied" "with the reason"
		like "$(cat "$err")" "hint: kernel.kptr_restrict hides them; run with CAP_SYSLOG" "and the remedy"
	else
		skip "without privilege the hidden addresses are an error" "nobody sees them here"
	fi
fi
tap_done
