#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
. "$(dirname "$0")/../lib/tap.sh"
kr=$BIN/kallsyms-resolve
made=$DATA/kallsyms/made

# name_of ADDR...: prints the names of addresses in the made table
name_of() {
	run "$kr" -k "$made" "$@"
	cat "$out"
}

# ---- addresses ----
is "$(name_of ffffffff81000110)" "alpha+0x0" "a kernel address gets its symbol"
is "$(name_of 0xffffffff8100012f)" "alpha+0x1f" "offsets are hexadecimal, and a 0x prefix is accepted"
is "$(name_of FFFFFFFF8100012F)" "alpha+0x1f" "capital hex digits are accepted"
is "$(name_of -m ffffffff81000110)" "alpha+0x0 [kernel]" "-m prints the kernel as a module"
is "$(name_of ffffffffc0900101)" "eta_write+0x1 [eta]" "an address in a module gets its symbol and module"
is "$(name_of ffffffffc0b00010)" "bpf_prog_6deef7357e7b4530_sd_devices+0x10 [bpf]" "an address in a BPF program gets its name"
is "$(name_of ffffffffc0c00010)" "ftrace_trampoline+0x10 [__builtin__ftrace]" "an address in a trampoline gets its name"
is "$(name_of ffffffff81000200)" "beta+0x0" "of several names the global one without underscores is used"
is "$(name_of ffffffff81000300)" "__x64_sys_gamma+0x0" "the native name of a system call entry is used"
is "$(name_of ffffffff81000000)" "startup_64+0x0" "a function is preferred to _stext"
is "$(name_of ffffffff81000490)" "code_eps+0x0" "code is preferred to data"
is "$(name_of -r ffffffff81000200)" "alpha+0xf0" "-r looks up one byte before and prints the true offset"
is "$(name_of ffffffff81000110 ffffffff81000501 | tr '\n' ' ')" "alpha+0x0 last_function+0x1 " "several addresses give one line each"

# ---- ends of functions ----
past() {
	status 1 "$2" "$kr" -k "$made" "$1"
	is "$(cat "$out")" "0x$1 [unknown]" "an address without a symbol is printed as unknown"
}
is "$(name_of ffffffff8100057f)" "last_function+0x7f" "a function extends to the end of its section"
past ffffffff81000581 "an address past _etext has no symbol"
past ffffffff81000485 "an address past the end of a part of the text has no symbol"
past ffffffffc0a01000 "an address past the end of the text of a module has no symbol"
past 7f0000001000 "a number that is not a kernel address has no symbol"
past 21000 "a per-CPU offset has no symbol"
past ffffffffc0b01000 "an address past the page of a BPF program has no symbol"
like "$(cat "$err")" "1 of 1 kernel addresses belong to no symbol" "addresses without a symbol are counted"

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
is $? 0 "a stream with names for all kernel frames gives status 0"
same "$TMP/got" "$TMP/want" "raw kernel frames get names, one byte before return addresses; the rest is unchanged"
# the same stream, byte by byte
perl -e 'local $/; $_ = <STDIN>; $| = 1; for (split //) { print; }' <"$TMP/in" | "$kr" -k "$made" >"$TMP/got"
same "$TMP/got" "$TMP/want" "a stream that arrives byte by byte gives the same output"
perl -e 'print "x" x 700000, "\n", "ffffffff81000110\n", "y" x 300000' >"$TMP/long"
perl -e 'print "x" x 700000, "\n", "alpha+0x0\n", "y" x 300000' >"$TMP/longwant"
"$kr" -k "$made" <"$TMP/long" >"$TMP/got"
same "$TMP/got" "$TMP/longwant" "lines longer than any buffer are copied"
printf 'a 1/1 1: 1 e:\n\tffffffff81000581 [unknown] ([kernel.kallsyms])\n' >"$TMP/in"
"$kr" -k "$made" <"$TMP/in" >"$TMP/got" 2>"$err"
is $? 1 "a frame without a name gives status 1"
same "$TMP/got" "$TMP/in" "a frame without a name is unchanged"
is "$(printf '' | "$kr" -k "$made" | wc -c)" 0 "empty input gives empty output"

# ---- refusals ----
status 2 "a table with zero addresses gives status 2" "$kr" -k "$DATA/kallsyms/zeroed" ffffffff81000110
like "$(head -n 1 "$err")" "^kallsyms-resolve: no usable address in '.*/zeroed': Permission denied\$" "the message says why there is no usable address"
like "$(sed -n 2p "$err")" "^kallsyms-resolve: hint: kernel.kptr_restrict" "the hint names kernel.kptr_restrict"
is "$(wc -c <"$out")" 0 "no name is printed from a table with zero addresses"
status 2 "a missing table gives status 2" "$kr" -k "$TMP/none" 1
like "$(cat "$err")" "cannot open '.*/none': No such file" "the message names the missing table"
status 2 "a folder as table gives status 2" "$kr" -k "$TMP" 1
status 2 "a table that is not a copy of kallsyms gives status 2" "$kr" -k "$0" 1
like "$(cat "$err")" "is not a copy of /proc/kallsyms: line 1" "the message names the malformed line"
size=$(wc -c <"$made")
head -c $((size - 3)) "$made" >"$TMP/cut"
status 2 "a table that is cut inside a line gives status 2" "$kr" -k "$TMP/cut" ffffffff81000110
like "$(cat "$err")" "is cut off" "the message says that the table is cut off"
printf 'ffffffff81000000 T a\033[2Jb;c\n' >"$TMP/hostile"
status 0 "a name with control characters is accepted" "$kr" -k "$TMP/hostile" ffffffff81000001
is "$(cat "$out")" 'a\x1b[2Jb;c+0x1' "control characters of a name are escaped"
status 64 "a malformed hex number is a usage error" "$kr" -k "$made" ffffffff8100011g
is "$(wc -l <"$err")" 2 "a usage error prints two lines"
for a in "" 0x 12345678123456781 -- -1 ' 1'; do
	[ "$a" = -- ] && continue
	status 64 "'$a' is a usage error, not an address" "$kr" -k "$made" -- "$a"
done
status 64 "--force alone is a usage error" "$kr" --force
status 64 "--save with an address is a usage error" "$kr" --save "$TMP/x" 1
status 64 "--stext without a valid address is a usage error" "$kr" --stext zz 1
status 64 "an unknown option is a usage error" "$kr" --nonsense
status 0 "--help exits with status 0" "$kr" --help
status 0 "--version exits with status 0" "$kr" --version
(exec "$kr" -k "$made" ffffffff81000110 >/dev/full 2>"$err")
is $? 2 "a full device gives status 2"
like "$(cat "$err")" "No space left" "the message says that no space is left"
(exec "$kr" -k "$made" ffffffff81000110 >&- 2>"$err")
is $? 2 "a closed stdout gives status 2"
is "$(yes ffffffff81000110 | "$kr" -k "$made" | head -n 1)" "alpha+0x0" "a reader that closes the pipe early gets its line"

# ---- another boot ----
status 0 "--relocate with --stext moves the kernel symbols" "$kr" -k "$made" --relocate --stext ffffffff91000000 ffffffff91000115
is "$(cat "$out")" "alpha+0x5" "an address of a moved kernel gets its symbol"
like "$(cat "$err")" "symbols of modules and BPF programs are not used" "--relocate reports that symbols of modules are not used"
status 1 "--relocate does not name addresses in modules" "$kr" -k "$made" --relocate --stext ffffffff91000000 ffffffffc0900101
status 2 "another boot's symbols are refused" "$kr" -k "$made" --stext ffffffff91000000 ffffffff91000115
like "$(cat "$err")" "hint: .*--relocate" "the hint for symbols of another boot is --relocate"
printf '# kernel: stext=0xffffffff91000000 x=1\n\tffffffff91000115 [unknown] ([kernel.kallsyms])\n' >"$TMP/in"
"$kr" -k "$made" <"$TMP/in" >"$TMP/got" 2>"$err"
is $? 2 "a stream of another boot is refused"
"$kr" -k "$made" --relocate <"$TMP/in" >"$TMP/got" 2>"$err"
is $? 0 "--relocate takes the address of the kernel from the stream"
like "$(cat "$TMP/got")" "alpha\\+0x5 \\(\\[kernel.kallsyms\\]\\)" "--relocate names the frames of the stream"
printf '# kernel: stext=0xffffffff81000000 release=0.0.1-other\n' >"$TMP/in"
if [ "$(head -c 16 /proc/kallsyms 2>/dev/null)" != 0000000000000000 ]; then
	"$kr" <"$TMP/in" >"$TMP/got" 2>"$err"
	is $? 2 "a stream of another kernel release is refused"
	like "$(cat "$err")" "of kernel 0.0.1-other" "the message names the other kernel release"
fi

# ---- saving ----
status 0 "--save writes a copy" "$kr" -k "$made" --save "$TMP/copy"
same "$TMP/copy" "$made" "the copy has the same bytes"
is "$(stat -c %a "$TMP/copy")" 600 "the copy is readable by its owner only"
status 0 "--save overwrites an older copy" "$kr" -k "$made" --save "$TMP/copy"
echo precious >"$TMP/other"
status 2 "--save does not overwrite another file" "$kr" -k "$made" --save "$TMP/other"
is "$(cat "$TMP/other")" precious "the other file is unchanged"
like "$(cat "$err")" "hint: --force" "the hint for another file is --force"
ln -s other "$TMP/link"
status 2 "--save --force does not follow a symbolic link" "$kr" -k "$made" --save "$TMP/link" --force
is "$(cat "$TMP/other")" precious "the target of the link is unchanged"
status 2 "--save --force does not write to a device" "$kr" -k "$made" --save /dev/null --force
status 0 "--save --force overwrites another file" "$kr" -k "$made" --save "$TMP/other" --force
same "$TMP/other" "$made" "the overwritten file is a complete copy"
status 2 "--save refuses a table with zero addresses" "$kr" -k "$DATA/kallsyms/zeroed" --save "$TMP/zero"
is "$(find "$TMP" -name 'zero*' | wc -l)" 0 "a refused --save leaves no file"
status 2 "--save into a missing folder gives status 2" "$kr" -k "$made" --save "$TMP/no/copy"

# ---- the running kernel ----
if [ "$(head -c 16 /proc/kallsyms 2>/dev/null)" = 0000000000000000 ]; then
	skip "the symbols of the running kernel are saved" "/proc/kallsyms is hidden"
else
	status 0 "--save writes a copy of the symbols of the running kernel" "$kr" --save "$TMP/live"
	grep -v '^00000000000' "$TMP/live" | awk '{print $1}' | sort -u >"$TMP/addrs"
	"$kr" -k "$TMP/live" <"$TMP/addrs" >"$TMP/names"
	is $? 0 "every symbol address of the running kernel gets a name"
	paste -d ' ' "$TMP/addrs" "$TMP/names" | sed 's/+0x0\( .*\)\{0,1\}$//' | sort >"$TMP/pairs"
	awk '{print $1, $3}' "$TMP/live" | sort -u >"$TMP/table"
	is "$(comm -23 "$TMP/pairs" "$TMP/table" | head -n 3)" "" "each name is one that the table has for the address"
	etext=$(awk '$3 == "_etext" {print $1}' "$TMP/live")
	if [ -n "$etext" ]; then
		status 1 "an address past _etext of the running kernel has no symbol" "$kr" "$(printf '%x' $((0x$etext + 1)))"
	fi
	# build IDs of files with long names crash perf 6.1
	if perf record -q -B -N -e cpu-clock -a -g -o "$TMP/perf.data" sleep 0.3 >/dev/null 2>&1; then
		perf script -i "$TMP/perf.data" -F ip,sym,symoff,dso 2>/dev/null |
			sed -n 's/^[[:space:]]*\(ffffffff[89a-f][0-9a-f]*\) .*+0x\([0-9a-f]*\) (\[kernel.kallsyms\])$/\1 \2/p' |
			sort -u >"$TMP/theirs"
		awk '{print $1}' "$TMP/theirs" | "$kr" | sed 's/.*+0x\([0-9a-f]*\).*/\1/' >"$TMP/offsets"
		awk '{print $1}' "$TMP/theirs" | paste -d ' ' - "$TMP/offsets" >"$TMP/ours"
		same "$TMP/ours" "$TMP/theirs" "kernel frames that perf samples have the symbol offsets of perf script"
	else
		skip "kernel frames that perf samples have the symbol offsets of perf script" "perf cannot record here"
	fi
	if runuser -u nobody -- head -c 16 /proc/kallsyms 2>/dev/null | grep -q '^0000000000000000$'; then
		cp "$kr" "$TMP/kr" && chmod 755 "$TMP" "$TMP/kr"
		status 2 "without privileges hidden addresses give status 2" runuser -u nobody -- "$TMP/kr" ffffffff81000110
		like "$(cat "$err")" "no usable address in '/proc/kallsyms': Permission denied" "the message says that permission is denied"
		like "$(cat "$err")" "hint: kernel.kptr_restrict hides them; run with CAP_SYSLOG" "the hint for hidden addresses is CAP_SYSLOG"
	else
		skip "without privileges hidden addresses give status 2" "the addresses are not hidden from user nobody"
	fi
fi
tap_done
