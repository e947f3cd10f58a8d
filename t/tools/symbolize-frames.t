#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck disable=SC2154,SC2016 # $out, $err and $rc come from tap.sh; sh -c expands its own
# Inlined calls, source lines, and parallel workers.
. "$(dirname "$0")/../lib/tap.sh"

maker=$OBJ/t/unit/resolve
sym=$BIN/symbolize
fold=$BIN/fold
cap=$TMP/a.cap
cc=${CC:-cc}

command -v "$cc" >/dev/null || skip_all "no C compiler for the test program"
cat >"$TMP/calls.c" <<'C'
#include <stdio.h>
static inline __attribute__((always_inline)) int leaf(int x)
{
	return x * x + fgetc(stdin);
}
static inline __attribute__((always_inline)) int middle(int x)
{
	return leaf(x) + fgetc(stdin);
}
int outer(int x)
{
	return middle(x) + fgetc(stdin);
}
int main(int argc, char **argv)
{
	(void)argv;
	return outer(argc);
}
C
"$cc" -O2 -g -Wl,--build-id -o "$TMP/calls" "$TMP/calls.c" || skip_all "the test program does not build"
"$maker" --gen "$cap" "$TMP/calls" 300 300 >"$TMP/addr"

# --- inlined calls and lines, compared with addr2line
# one line for each address: function@file:line of each call, innermost first
flat='BEGIN { printf "" } /^0x/ { if (NR > 1) print s; s = ""; next } f == "" { f = $0; next }
	{ n = split($1, p, "/"); s = s f "@" p[n] " "; f = "" } END { print s }'
addr2line -afi -e "$TMP/calls" <"$TMP/addr" | awk "$flat" >"$TMP/them"
run "$sym" -q --lines "$cap"
perl -ne '
	if (/^\t\s*\w+ (.*?)(\+0x[0-9a-f]+)? \((.*)\)$/) { push @f, [$1, "??:?", $3 eq "inlined"] }
	elsif (/^  (\S+)$/) { ($f[-1][1] = $1) =~ s|.*/|| }
	if (@f > 1 && !$f[-2][2]) { print join(" ", map { "$_->[0]\@$_->[1]" } splice(@f, 0, -1)), " \n" }
	if (/^$/ && @f) { print join(" ", map { "$_->[0]\@$_->[1]" } splice(@f)), " \n" }' "$out" >"$TMP/us"
is "$(wc -l <"$TMP/us")" "$(wc -l <"$TMP/them")" "each address has a chain of calls"
is "$(paste -d '|' "$TMP/us" "$TMP/them" | awk -F '|' '$2 ~ /calls[.]c/ && $1 != $2' | head -n 3)" "" \
	"functions, inlined calls and lines match addr2line -fi where it knows a line"
is "$([ "$(grep -c 'calls[.]c' "$TMP/them")" -gt 20 ] && echo some)" some "addr2line -fi knows more than 20 lines"
like "$(grep -A 1 ' leaf (inlined)$' "$out" | sed -n 2p)" '^  /.*/calls\.c:[0-9]+$' "the source line is below its frame"
"$sym" -q "$cap" >"$TMP/plain"
is "$(grep -v '^  ' "$out" | cmp - "$TMP/plain" && echo same)" same "without --lines only the source lines are missing"
run "$sym" -q --no-inline "$cap"
is "$(grep -c '(inlined)$' "$out")" 0 "--no-inline prints no inlined calls"
is "$(grep '(inlined)$' -v "$TMP/plain" | cmp - "$out" && echo same)" same "--no-inline changes nothing else"

# --- programs that read the output
"$sym" -q --lines "$cap" >"$TMP/lines"
run "$fold" "$TMP/lines"
is "$(cat "$err")" "" "fold accepts source lines without a message"
is "$("$fold" "$TMP/plain" | cmp - "$out" && echo same)" same "fold gives the same stacks with and without source lines"
like "$(cat "$out")" ';outer;middle;leaf' "fold takes inlined calls as frames"
sc=${STACKCOLLAPSE:-$(command -v stackcollapse-perf.pl)}
if [ -r "$sc" ]; then
	like "$(perl "$sc" "$TMP/plain")" ';outer;middle;leaf' "stackcollapse-perf.pl takes inlined calls as frames"
else
	skip "stackcollapse-perf.pl takes inlined calls as frames" "it is not on PATH (STACKCOLLAPSE names it)"
fi
run "$sym" -q --format=json "$cap"
like "$(cat "$out")" '"inlined":\[\{"symbol":"leaf","linkage_name":"leaf","file":"[^"]*/calls\.c","line":[0-9]+,"column":[0-9]+\},\{"symbol":"middle"' \
	"JSON lists inlined calls, innermost first"
like "$(cat "$out")" '"file":"[^"]*/calls\.c","line":[0-9]+,"column":[0-9]+,"source":"dwarf","reason":null' "JSON has source lines"

# --- labels that are not functions
cat >"$TMP/mark.s" <<'EOF'
	.text
	.globl real
	.type real, @function
real:	ret
	.size real, .-real
	.cfi_startproc
.annobin_pad:
	.skip 32, 0x90
	.cfi_endproc
	.cfi_startproc
untyped:
	.skip 8, 0x90
	.cfi_endproc
returns:
EOF
gcc -shared -nostdlib -o "$TMP/mark" "$TMP/mark.s"
pad=$(nm "$TMP/mark" | awk '$3 == ".annobin_pad" { print $1 }')
back=$(nm "$TMP/mark" | awk '$3 == "returns" { print $1 }')
"$maker" --make "$cap" "$TMP/mark" "$TMP/mark" a "" "$pad" "$back"
run "$sym" -q --format=json "$cap"
is "$(grep -o '"symbol":[^,]*,"linkage_name":[^,]*,"offset":[^,]*,"module":"[^"]*mark"' "$out" | cut -d, -f1 | paste -sd ' ')" \
	'"symbol":null "symbol":"untyped"' "a mark of annobin does not name code, but another untyped label does"

# --- functions that only debug information knows
objcopy --strip-all --keep-section='.debug_*' "$TMP/calls" "$TMP/nosyms" 2>/dev/null
strip -o "$TMP/bare" "$TMP/calls"
outer=$(nm "$TMP/calls" | awk '$3 == "outer" { print $1 }')
if readelf -S "$TMP/nosyms" 2>/dev/null | grep -q debug_info; then
	"$maker" --make "$cap" "$TMP/nosyms" "$TMP/nosyms" a "" "$outer"
	run "$sym" -q --format=json "$cap"
	like "$(cat "$out")" '"symbol":"outer","linkage_name":"outer","offset":0,.*"source":"dwarf"' \
		"without a symbol a function gets its name from debug information"
else
	skip "without a symbol a function gets its name from debug information" "objcopy does not keep debug information"
fi
mkdir -p "$TMP/debug/.build-id"
id=$(readelf -n "$TMP/calls" | awk '/Build ID/ { print $3 }')
mkdir -p "$TMP/debug/.build-id/$(printf %.2s "$id")"
objcopy --only-keep-debug "$TMP/calls" "$TMP/debug/.build-id/$(printf %.2s "$id")/${id#??}.debug"
"$maker" --gen "$cap" "$TMP/bare" 100 100 >/dev/null
run "$sym" -q "$cap"
is "$(grep -c inlined "$out")" 0 "a stripped file has no inlined calls"
run "$sym" --lines --debug-dir "$TMP/nowhere" --debug-dir "$TMP/debug" -v "$cap"
like "$(grep -c inlined "$out") $(cat "$err")" "^[1-9].* debug file '$TMP/debug/" "--debug-dir finds the debug file, and -v reports it"

# --- no name by the nearest symbol
"$maker" --gen "$cap" "$(readlink -f /bin/bash)" 500 500 >/dev/null
run "$sym" -q "$cap"
is "$(grep -c '?+0x\|? (' "$out")" 0 "no name has a '?'"
unnamed=$(grep -c '	 *7f[0-9a-f]* \[bash+0x[0-9a-f]*\]' "$out")
run "$sym" --stats "$cap"
like "$(grep ' have no name' "$err")" ", $unnamed have no name\$" "--stats counts the frames without a name"

# --- the kernel: a small program in place of vmlinux
cat >"$TMP/vmlinux.c" <<'C'
static inline __attribute__((always_inline)) int inner(volatile int *p)
{
	return *p * 3;
}
__attribute__((section(".text.first"))) int _stext(void)
{
	return 1;
}
int kernel_function(volatile int *p)
{
	return inner(p) + p[1];
}
C
if "$cc" -O2 -g -static -nostdlib -Wl,--build-id -Wl,-e,kernel_function -o "$TMP/vmlinux" "$TMP/vmlinux.c" 2>/dev/null; then
	stext=$(nm "$TMP/vmlinux" | awk '$3 == "_stext" { print $1 }')
	at=$(nm "$TMP/vmlinux" | awk '$3 == "kernel_function" { print $1 }')
	"$maker" --kernel "$cap" "$TMP/vmlinux" "$stext" "$at"
	run "$sym" -q "$cap"
	is "$(grep -c kernel_function "$out")" 0 "without the kernel's file an unrecorded function has no name"
	run "$sym" -v --lines --vmlinux "$TMP/vmlinux" "$cap"
	like "$(cat "$err")" "kernel's debug information is used: '$TMP/vmlinux'" "--vmlinux sets the kernel's file, and -v reports that it is used"
	like "$(cat "$out")" 'inner \(inlined\)' "kernel frames have inlined calls"
	like "$(grep -A 1 ' kernel_function+0x[0-9a-f]* (\[kernel.kallsyms\])' "$out")" 'vmlinux.c:11$' "kernel frames have source lines"
	# Each byte of the function, compared with addr2line. Lines tell calls of the same name apart.
	end=$(printf '%x' $((0x$at + 0x$(nm -S "$TMP/vmlinux" | awk '$4 == "kernel_function" { print $2 }'))))
	bytes=$(a=$((0x$at)); while [ $a -lt $((0x$end)) ]; do printf '%x ' $a; a=$((a + 1)); done)
	# shellcheck disable=SC2086 # one address a word
	"$maker" --kernel "$TMP/all.cap" "$TMP/vmlinux" "$stext" $bytes
	# shellcheck disable=SC2086
	addr2line -afi -e "$TMP/vmlinux" $bytes | awk "$flat" >"$TMP/them"
	run "$sym" -q --format=json --vmlinux "$TMP/vmlinux" "$TMP/all.cap"
	perl -ne 'while (/"address":"[^"]*",(.*?),"source":/g) {
		my $f = $1; my ($own) = $f =~ /^"symbol":("[^"]*"|null)/; next if $own eq "null" || $own eq "\"nf_hook\"";
		my @c; push @c, "$1\@vmlinux.c:$2" while $f =~ /\{"symbol":"([^"]*)".*?"line":(\d+)/g;
		$f =~ s/"inlined":\[.*?\]//; push @c, substr($own, 1, -1) . "\@vmlinux.c:$1" if $f =~ /"line":(\d+)/;
		print join(" ", @c), " \n" }' "$out" >"$TMP/us"
	same "$TMP/us" "$TMP/them" "each byte of a kernel function has the calls and lines of addr2line -fi"
	like "$(cat "$TMP/them")" '^inner@vmlinux[.]c:[0-9]+ kernel_function@' "the kernel function has inlined calls"
	"$maker" --kernel "$cap" "$TMP/vmlinux" "$stext" "alias_of_it=$at"
	run "$sym" -q --format=json --vmlinux "$TMP/vmlinux" "$cap"
	like "$(cat "$out")" '"symbol":"alias_of_it",.*"line":1[0-9],.*"source":"ksym","reason":null' \
		"a kernel function keeps its recorded name and gets its source line"
	like "$(cat "$out")" '"symbol":"nf_hook",[^}]*"source":"ksym","reason":"no debug information of its module was found that fits"' \
		"JSON says why a function of a module has no source line"
	"$sym" -q --no-inline --format=text "$cap" >"$TMP/plain"
	is "$("$sym" -q "$cap" | cmp - "$TMP/plain" && echo same)" same "without the kernel's file the output is as with --no-inline"
	mkdir -p "$TMP/kdebug/.build-id"
	id=$(readelf -n "$TMP/vmlinux" | awk '/Build ID/ { print $3 }')
	mkdir -p "$TMP/kdebug/.build-id/$(printf %.2s "$id")"
	objcopy --only-keep-debug "$TMP/vmlinux" "$TMP/kdebug/.build-id/$(printf %.2s "$id")/${id#??}.debug"
	run "$sym" -q --format=json --debug-dir "$TMP/kdebug" "$cap"
	like "$(cat "$out")" '"symbol":"alias_of_it",.*"line":1[0-9],' "--debug-dir finds the kernel's debug file by build ID"
	objcopy --strip-debug "$TMP/vmlinux" "$TMP/vmlinux.bare"
	run "$sym" -v --format=json --vmlinux "$TMP/vmlinux.bare" "$cap"
	like "$(cat "$out")" '"symbol":"alias_of_it",[^}]*"line":null' "a vmlinux without debug information gives no source lines"
	like "$(cat "$err")" "the kernel has no lines: '$TMP/vmlinux.bare' has no debug information" "-v reports that vmlinux has no debug information"
	status 2 "--vmlinux with the file of another program is refused" "$sym" --vmlinux "$TMP/calls" "$cap"
else
	skip "the kernel's file is used" "the compiler cannot build one"
fi

# --- parallel workers
set --
for f in "$TMP/calls" "$TMP/bare" "$sym" "$fold" "$maker" /bin/sh /bin/bash /bin/ls /usr/bin/awk /usr/bin/perl \
	/usr/lib/x86_64-linux-gnu/libm.so.6 /usr/lib/x86_64-linux-gnu/libz.so.1; do
	[ -r "$f" ] && set -- "$@" "$f"
done
"$maker" --many "$cap" 60 "$@"
"$sym" -q --lines -j 1 "$cap" >"$TMP/j1"
is "$(grep -c 'offcpu-time: $' "$TMP/j1")" $# "a capture of many files has a record for each"
for j in 2 8 64; do
	is "$("$sym" -q --lines -j "$j" "$cap" | cmp - "$TMP/j1" && echo same)" same "-j $j prints the same bytes as -j 1"
done
is "$("$sym" -q --lines -j 8 --max-memory 128M "$cap" | cmp - "$TMP/j1" && echo same)" same "a low --max-memory is enough for small files"
run "$sym" --stats "$cap"
like "$(cat "$err")" 'symbolize: dwarf +[0-9]+ +[0-9]+ +[0-9]+' "--stats shows how many frames, addresses and files each source named"
like "$(cat "$err")" 'finding .* files took .* reading them' "--stats shows which step took how long"
is "$("$sym" "$cap" 2>/dev/null | cmp - "$out" && echo same)" same "--stats prints on stderr and does not change the result"
status 64 "-j 0 is a usage error" "$sym" -j 0 "$cap"
status 64 "a --max-memory that is too low for any process is a usage error" "$sym" --max-memory 1K "$cap"
ok "a worker that reads symbols ends with its parent" sh -c '
	"$1" -q "$2" >/dev/null & pid=$!
	kill -KILL $pid 2>/dev/null
	wait $pid 2>/dev/null
	for i in 1 2 3 4 5 6 7 8 9 10; do
		pgrep -x -P 1 symbols >/dev/null || exit 0
		sleep 0.5
	done
	exit 1' sh "$sym" "$cap"

tap_done
