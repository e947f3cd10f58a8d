#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck disable=SC2154,SC2086,SC2046 # $out and $rc come from tap.sh; options and figures are words
# Truncated, damaged and hostile files in place of the files that a capture names: symbolize ends within
# limits of time and memory, prints every frame, and says why names are missing.
. "$(dirname "$0")/../lib/tap.sh"

src=$DATA/symbols
list="$OBJ/t/unit/resolve --list"
sym=$BIN/symbolize
runs=${HOSTILE_RUNS:-50}
export DEBUGINFOD_URLS=

command -v gcc >/dev/null || skip_all "no gcc for the test programs"

# program NAME COMPILER FLAGS: builds it, and makes a capture of addresses in all of its functions
program() {
	p_name=$1 p_cc=$2 p_flags=$3
	command -v "$p_cc" >/dev/null || return 1
	(cd "$TMP" && $p_cc $p_flags -Wl,--build-id -o "$p_name.good" "$src/weigh.c" "$src/main.c") 2>"$TMP/cc.log" || return 1
	cp "$TMP/$p_name.good" "$TMP/$p_name"
	capture_of "$p_name"
}

capture_of() {
	nm -S "$TMP/$1.good" | awk '$3 ~ /[tT]/ && NF == 4 { print $1, $2 }' |
		perl -ane '$a = hex $F[0]; $n = hex $F[1]; printf "%x\n", $a + $_ * 3 for 0 .. ($n - 1) / 3' |
		$list "$TMP/$1.cap" "$TMP/$1.good" "$TMP/$1" >/dev/null
}

damage() {
	d_name=$1
	shift
	if timeout 500 perl "$src/damage.pl" "$sym" "$@" >"$TMP/damage.log" 2>&1; then
		pass "$d_name"
	else
		fail "$d_name"
	fi
	diag 8 <"$TMP/damage.log"
}

while IFS='|' read -r name cc flags; do
	program "$name" "$cc" "$flags" || {
		skip "$cc $flags: damaged files are read within limits" "$cc cannot build it"
		continue
	}
	damage "$cc $flags: functions keep their names if debug information is damaged" \
		"$TMP/$name.cap" "$TMP/$name.good" "$TMP/$name" debug "$runs"
	damage "$cc $flags: files damaged anywhere are read within limits" "$TMP/$name.cap" "$TMP/$name.good" "$TMP/$name" any "$runs"
	damage "$cc $flags: truncated files are read within limits" "$TMP/$name.cap" "$TMP/$name.good" "$TMP/$name" cut "$runs"
done <<-L
	v5|gcc|-O2 -gdwarf-5
	v4|clang|-O2 -gdwarf-4
	z|gcc|-O2 -g -gz=zlib
L

# --- other files than the mapped one
program split gcc "-O2 -g -gsplit-dwarf" || skip_all "gcc has no split DWARF"
for f in "$TMP"/*weigh.dwo; do
	cp "$f" "$TMP/weigh.good"
	damage "a damaged .dwo is read within limits" "$TMP/split.cap" "$TMP/weigh.good" "$f" any "$runs"
	damage "a truncated .dwo is read within limits" "$TMP/split.cap" "$TMP/weigh.good" "$f" cut "$runs"
	rm "$f"
	run "$sym" --format=json "$TMP/split.cap"
	like "$rc $(grep -c '"reason":"[^"]*not found' "$out")" '^0 [1-9]' "a missing .dwo is reported as the reason"
	mkfifo "$f"
	run timeout 10 "$sym" --format=json "$TMP/split.cap"
	is "$rc" 0 "a FIFO in place of a .dwo does not block"
done
id=$(readelf -n "$TMP/v5.good" | awk '/Build ID/ { print $3 }')
dir=$TMP/debug/.build-id/$(printf %.2s "$id")
mkdir -p "$dir"
objcopy --only-keep-debug "$TMP/v5.good" "$TMP/v5.debug"
strip -o "$TMP/v5" "$TMP/v5.good"
damage "a damaged debug file is read within limits" "$TMP/v5.cap" "$TMP/v5.debug" "$dir/${id#??}.debug" any "$runs" --debug-dir "$TMP/debug"
damage "a truncated debug file is read within limits" "$TMP/v5.cap" "$TMP/v5.debug" "$dir/${id#??}.debug" cut "$runs" --debug-dir "$TMP/debug"

# --- a section that unpacks to hundreds of megabytes
# A deflated megabyte of zeros, 700 times: objcopy would need 15 s and a gigabyte to compress it all.
perl -MCompress::Zlib -e '
	my $z = deflateInit(-Level => 1, -WindowBits => -MAX_WBITS) or die;
	my $n = 700 << 20;
	my ($chunk) = $z->deflate("\0" x (1 << 20));
	($_) = $z->flush(Z_FULL_FLUSH);
	$chunk .= $_;
	print pack("L< L< Q< Q<", 1, 0, $n, 1), "\x78\x01", $chunk x 700, "\x03\x00", pack("L>", $n % 65521 << 16 | 1);' >"$TMP/zeros" ||
	skip_all "perl has no Compress::Zlib"
bomb() { # SECTION
	objcopy --update-section ".debug_$1=$TMP/zeros" "$TMP/v5.good" "$TMP/bomb" || return 1
	# set the flag of a compressed section, which objcopy cannot do
	readelf -SW "$TMP/bomb" | sed -n "s/^ *\[ *\([0-9]*\)\] \.debug_$1 .*/\1/p" | perl -e '
		open my $f, "+<:raw", $ARGV[0] or die;
		read $f, my $head, 64;
		seek $f, unpack("x40 Q<", $head) + 64 * <STDIN> + 8, 0;
		print $f pack "Q<", 0x800;
		close $f or die;' "$TMP/bomb"
	readelf -tW "$TMP/bomb" | grep -A 3 "\.debug_$1\$" | grep -q 'ZLIB, 000000002bc00000'
}
peak() {
	perl -e '
		my $pid = fork();
		if (!$pid) { open STDOUT, ">", shift; exec @ARGV; exit 127 }
		my ($status, $usage) = (pack("l", 0), "\0" x 144);
		syscall(61, $pid, $status, 0, $usage);
		print((unpack "l", $status), " ", (unpack "q5", $usage)[4] >> 10, "\n");' "$@"
}
for section in info str line; do
	if bomb $section 2>"$TMP/cc.log"; then
		nm -S "$TMP/v5.good" | awk '$4 == "weigh" || $4 == "main" { print $1 }' |
			$list "$TMP/bomb.cap" "$TMP/bomb" "$TMP/bomb" >/dev/null
		peak "$out" timeout 60 "$sym" -q --format=json --max-memory 64M "$TMP/bomb.cap" >"$TMP/peak"
		read -r rc peak <"$TMP/peak"
		is "$rc" 0 "a .debug_$section that unpacks to 700 MB does not end symbolize"
		like "$([ "$peak" -lt 200 ] && echo small) $peak MB" '^small' "memory stays below 200 MB with --max-memory 64M"
		is "$(grep -o '"symbol":"\(main\|weigh\)"' "$out" | sort -u | wc -l)" 2 "functions have the names of the symbol table"
	else
		skip "a .debug_$section that unpacks to 700 MB does not end symbolize" "objcopy cannot make one"
	fi
done
tap_done
