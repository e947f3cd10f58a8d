#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck disable=SC2016 # $1 and the like are for an inner shell
. "$(dirname "$0")/../lib/tap.sh"

info=$BIN/unwindinfo
cmp=$OBJ/t/unit/unwindcmp
cfi=$DATA/cfi
CC=${CC:-cc}
libc=$(ldd /bin/sh | awk '$1 ~ /^libc\.so/ { print $3 }')

# value LABEL: prints a value of the report in $out
value() {
	sed -n "s/^$1  *//p" "$out" | head -n 1
}

# build FILE ARGUMENT...: builds a program without libraries
build() {
	t_to=$1
	shift
	"$CC" -O2 -nostdlib -static -fno-stack-protector "$@" -o "$t_to" 2>"$TMP/cc.log" || {
		diag <"$TMP/cc.log"
		exit 1
	}
}

# --- against readelf ---

# as_readelf FILE: the rows are the same as those of readelf -wF
as_readelf() {
	readelf -wF "$1" 2>/dev/null | perl "$cfi/readelf.pl" >"$TMP/readelf"
	"$info" "$1" | perl "$cfi/readelf.pl" --ours >"$TMP/ours"
	[ -s "$TMP/ours" ] && diff "$TMP/readelf" "$TMP/ours" | head -n 20 >"$TMP/diff"
	cat "$TMP/diff"
	[ ! -s "$TMP/diff" ]
}

for f in /bin/sh /bin/bash /usr/bin/perl; do
	ok "the rows of $f match readelf -wF" as_readelf "$f"
done
as_readelf "$libc" >/dev/null
diff "$TMP/readelf" "$TMP/ours" | grep '^>' >"$TMP/diff"
is "$(grep -vc ' unsupported$' "$TMP/diff")" 0 "the rows of libc match readelf -wF, except for unsupported ones"
run "$info" -s "$libc"
is "$(grep -c ' unsupported$' "$TMP/diff")" \
	"$(sed -n 's/^left out  *\([0-9]*\) rows whose.*/\1/p' "$out")" "--summary counts the unsupported rows of libc"

# --- against libdw ---

# agrees NAME FILE: the comparison finds rows and no differences
agrees() {
	status 0 "$1: libdw agrees at every row boundary" sh -c '"$1" -s "$3" && "$2" "$3"' sh "$info" "$cmp" "$2"
	if [ "$(value compared)" -gt 0 ] && [ "$(value differences)" = 0 ]; then
		pass "$1: rows were compared ($(value compared))"
	else
		fail "$1: rows were compared"
		diag <"$out"
	fi
}

build "$TMP/ops" "$cfi/ops.S"
agrees "all instructions and expressions" "$TMP/ops"
is "$(value 'not held')" 1 "one row of the test program cannot be expressed as a rule"
is "$(sed -n '/^left out/,/^compared/p' "$out" | grep -c ' rows ')" 2 "dropped rows are reported in two lines"
agrees libc "$libc"
agrees bash /bin/bash
agrees perl "$(command -v perl)"
for lib in ld-linux-x86-64.so.2 libstdc++.so.6 libm.so.6; do
	path=$(ldconfig -p 2>/dev/null | awk -v l="$lib" '$1 == l && /x86-64/ { print $NF; exit }')
	[ -n "$path" ] || path=$(find /usr/lib /lib -name "$lib" 2>/dev/null | head -n 1)
	if [ -n "$path" ]; then
		agrees "$lib" "$path"
	else
		skip "$lib: libdw agrees at every row boundary" "not installed"
	fi
done
for lib in libc.so.6 ld-linux.so.2 libgcc_s.so.1 libstdc++.so.6; do
	path=$(cd / && gcc -m32 -print-file-name="$lib" 2>/dev/null)
	if [ -e "$path" ] && [ "$path" != "$lib" ]; then
		agrees "$lib of i386" "$path"
	elif [ -e "/lib32/$lib" ]; then
		agrees "$lib of i386" "/lib32/$lib"
	else
		skip "$lib of i386: libdw agrees at every row boundary" "not installed"
	fi
done
perl -e '
	open my $maps, "<", "/proc/self/maps" or die;
	my ($line) = grep /\[vdso\]/, <$maps>;
	my ($from, $to) = map { hex } $line =~ /^([0-9a-f]+)-([0-9a-f]+)/;
	open my $mem, "<:raw", "/proc/self/mem" or die;
	sysseek $mem, $from, 0;
	sysread $mem, my $image, $to - $from;
	print $image;' >"$TMP/vdso"
agrees "the vdso" "$TMP/vdso"

build "$TMP/debug" -g -fno-asynchronous-unwind-tables -fno-exceptions "$cfi/prog.c"
agrees "a program with .debug_frame alone" "$TMP/debug"
is "$(value section)" .debug_frame "the report names the section that the rows come from"
"$info" "$TMP/debug" | sed -n '/LOC/,$p' >"$TMP/rows"
for how in zlib zlib-gnu; do
	objcopy --compress-debug-sections=$how "$TMP/debug" "$TMP/compressed"
	ok "objcopy compressed the section ($how)" sh -c 'readelf -SW "$1" | grep -qE "\.zdebug_frame|\.debug_frame.* C "' \
		sh "$TMP/compressed"
	"$info" "$TMP/compressed" | sed -n '/LOC/,$p' >"$TMP/rows.z"
	same "$TMP/rows.z" "$TMP/rows" "a section compressed by $how gives the same rows"
done
"$CC" -O2 -fno-stack-protector -g -fno-asynchronous-unwind-tables -c "$cfi/prog.c" -o "$TMP/prog.o"
sed 's/\b_start\b/other/' "$cfi/ops.S" >"$TMP/other.S"
build "$TMP/both" "$TMP/prog.o" "$TMP/other.S"
agrees "a program with both sections" "$TMP/both"
is "$(value section)" ".eh_frame, .debug_frame" "the report names both sections"
build "$TMP/eh" -Wl,--eh-frame-hdr "$cfi/prog.c"
agrees "a program with .eh_frame" "$TMP/eh"
"$info" "$TMP/eh" | sed -n '/LOC/,$p' >"$TMP/rows"
cp "$TMP/eh" "$TMP/headless"
perl -e 'open my $f, "+<:raw", $ARGV[0]; seek $f, 40, 0; print $f "\0" x 8; seek $f, 58, 0; print $f "\0" x 6' \
	"$TMP/headless"
"$info" "$TMP/headless" | sed -n '/LOC/,$p' >"$TMP/rows.headless"
same "$TMP/rows.headless" "$TMP/rows" "without section headers PT_GNU_EH_FRAME gives the same rows"

# --- the report ---

status 0 "--summary exits with status 0" "$info" --summary "$TMP/ops"
is "$(cat "$err")" "" "--summary prints nothing on stderr"
is "$(value 'build ID')" "$(readelf -n "$TMP/ops" | sed -n 's/.*Build ID: //p')" "the build ID matches readelf"
is "$(value FDEs)" "$(readelf --debug-dump=frames "$TMP/ops" 2>/dev/null | grep -c ' FDE ')" "the number of FDEs matches readelf"
is "$(value CIEs)" "$(readelf --debug-dump=frames "$TMP/ops" 2>/dev/null | grep -c ' CIE$')" "the number of CIEs matches readelf"
is "$(grep -c LOC "$out")" 0 "--summary prints no rows"
run "$info" "$TMP/ops"
is "$(sed '1,/^LOC/d' "$out" | wc -l)" "$(value rows)" "without --summary all rows are printed"
like "$(cat "$out")" '^[0-9a-f]{16} \*\(rsp\+160\) +\*\(rsp\+120\) +\*\(rsp\+168\) signal$' "a signal frame is marked"
is "$(value 'left out')" "1 rows whose frame or return address no rule can hold" "dropped rows are reported"

# --- addresses ---

at=$(nm "$TMP/ops" | awk '$3 == "frame" { print $1 }')
status 0 "an address with a row gives status 0" "$info" "$TMP/ops" "0x$at"
like "$(cat "$out")" "^$at rsp\+8 +u +c-8$" "the row of an address is printed"
status 0 "several addresses are accepted, with and without 0x, in either case" "$info" "$TMP/ops" "$at" "0X$(echo "$at" | tr a-f A-F)"
is "$(sed 1d "$out" | sort -u | wc -l)" 1 "the same address in different notations gives the same row"
inside=$(printf '%x' $((0x$at + 2)))
run "$info" "$TMP/ops" "$inside"
like "$(cat "$out")" "^$(printf '%016x' $((0x$at + 1))) rsp\+16 " "an address inside a row gets that row"
behind=$(nm "$TMP/ops" | awk '$3 == "behind" { print $1 }')
status 0 "an address after a system call without a row gets the row before the call" "$info" "$TMP/ops" "$behind"
like "$(cat "$out")" "^$behind rsp\\+16 +u +c-8 in-syscall$" "a row that applies after a system call is marked in-syscall"
status 1 "the system call itself has no row" "$info" "$TMP/ops" "$(printf '%x' $((0x$behind - 1)))"
status 1 "the second byte after the system call has no row" "$info" "$TMP/ops" "$(printf '%x' $((0x$behind + 1)))"
status 1 "a system call before another function does not extend a row" "$info" "$TMP/ops" \
	"$(nm "$TMP/ops" | awk '$3 == "padded" { print $1 }')"
status 1 "an address without a row gives status 1" "$info" "$TMP/ops" "$at" 0 ffffffffffffffff
is "$(sed -n 3,4p "$out")" "0000000000000000 no row
ffffffffffffffff no row" "an address without a row is reported in its place"
is "$(cat "$err")" "unwindinfo: no row for 2 of 3 addresses" "addresses without a row are counted"
for bad in 12g 0x '' ' 1' -- -1 11112222333344445; do
	[ "$bad" = -- ] && continue
	status 64 "'$bad' is a usage error, not an address" "$info" -- "$TMP/ops" "$bad"
done
status 64 "--summary with an address is a usage error" "$info" -s "$TMP/ops" "$at"
status 64 "a missing FILE is a usage error" "$info"

# --- files without unwind information, and files that are refused ---

# refuses STATUS REGEX NAME ARG...: REGEX matches the message on stderr
refuses() {
	t_st=$1 t_re=$2 t_is=$3
	shift 3
	status "$t_st" "$t_is" "$info" "$@"
	like "$(cat "$err")" "^unwindinfo: .*$t_re" "the message says why: $(head -n 1 "$err" | cut -c1-60)"
}

build "$TMP/none" -fno-asynchronous-unwind-tables -fno-exceptions "$cfi/prog.c"
objcopy -R .eh_frame -R .eh_frame_hdr "$TMP/none" 2>/dev/null
refuses 1 "'.*/none' has no unwind information" "a file without unwind information gives status 1" "$TMP/none"
refuses 2 "No such file" "a missing file is refused" "$TMP/missing"
mkfifo "$TMP/fifo"
refuses 2 "not a regular file" "a FIFO is refused and does not block" "$TMP/fifo"
refuses 2 "not a regular file" "a directory is refused" "$TMP"
refuses 2 "not a regular file" "a device is refused" /dev/zero
: >"$TMP/empty"
refuses 2 "not an ELF file" "an empty file is refused" "$TMP/empty"
refuses 2 "not an ELF file" "a text file is refused" "$0"
head -c 100 "$TMP/eh" >"$TMP/cut"
refuses 2 "outside the file" "a file that is cut in its headers is refused" "$TMP/cut"
head -c $(($(wc -c <"$TMP/eh") - 200)) "$TMP/eh" >"$TMP/cut"
refuses 2 "outside the file" "a file that is cut in its section headers is refused" "$TMP/cut"
cp "$TMP/eh" "$TMP/riscv" && perl "$cfi/patch.pl" "$TMP/riscv" machine 0xf3
refuses 2 "another machine than x86-64, i386 and arm64" "a file for another machine is refused" "$TMP/riscv"
perl -e 'open my $f, "<:raw", $ARGV[0]; local $/; $_ = <$f>; substr($_, 4, 1) = "\1"; print substr($_, 0, 52)' \
	"$TMP/eh" | perl -pe 's/./\0/gs if 0; substr($_, 28, 24) = "\0" x 24 if $. == 1' >"$TMP/32"
refuses 2 "another machine|not an ELF" "an x32 file is refused" "$TMP/32"
refuses 2 "not linked" "an object file is refused" "$TMP/prog.o"
for field in size offset; do
	cp "$TMP/eh" "$TMP/wild" && perl "$cfi/patch.pl" "$TMP/wild" .eh_frame $field 7fffffffffffffff
	refuses 2 "its .eh_frame" "an invalid $field of .eh_frame is refused" "$TMP/wild"
done
cp "$TMP/eh" "$TMP/huge" && perl "$cfi/patch.pl" "$TMP/huge" .eh_frame size 30000000
truncate -s 2G "$TMP/huge"
refuses 2 "its .eh_frame: takes 805306368 bytes" "a section of 768 MB is refused" "$TMP/huge"
cp "$TMP/compressed" "$TMP/broken" && perl "$cfi/patch.pl" "$TMP/broken" .zdebug_frame size 20
refuses 2 "its .debug_frame" "a truncated compressed section is refused" "$TMP/broken"
cp "$TMP/eh" "$TMP/esc$(printf '\033')[31m" && printf x >"$TMP/esc$(printf '\033')[31m"
run "$info" "$TMP/esc$(printf '\033')[31m"
ok "control characters of a file name are not printed" sh -c '! tr -d "\n" <"$1" | grep -q "[[:cntrl:]]"' sh "$err"
cp "$TMP/eh" "$TMP/secret" && chmod 600 "$TMP/secret"
chmod 711 "$TMP"
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	cp "$info" "$TMP/unwindinfo" && chmod 755 "$TMP/unwindinfo"
	status 2 "a file without read permission gives status 2" setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$TMP/unwindinfo" "$TMP/secret"
	like "$(cat "$err")" "Permission denied" "the message says that permission is denied"
	status 0 "unwindinfo needs no privileges" setpriv --reuid=65534 --regid=65534 --clear-groups \
		--bounding-set=-all --inh-caps=-all "$TMP/unwindinfo" -s "$TMP/eh"
else
	skip "a file without read permission gives status 2" "needs root"
fi

# --- output errors ---

status 2 "a full disk gives status 2" sh -c '"$1" "$2" >/dev/full' sh "$info" "$libc"
like "$(cat "$err")" "No space left" "a full disk is reported"
status 2 "a closed stdout gives status 2" sh -c '"$1" "$2" >&-' sh "$info" "$TMP/eh"
status 141 "a reader that closes the pipe early ends unwindinfo by SIGPIPE" bash -c 'set -o pipefail; "$1" "$2" | head -n 1' bash "$info" "$libc"
is "$(cat "$err")" "" "a reader that closes the pipe early causes no message"
ok "unwindinfo does not link libbpf" sh -c '! ldd "$1" | grep -q libbpf' sh "$info"

tap_done
