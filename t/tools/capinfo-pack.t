#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Captures that contain the symbols of their files, and the list of these files.
# shellcheck disable=SC2016,SC2154 # sh -c expands its own; $out, $err and $rc come from tap.sh
. "$(dirname "$0")/../lib/tap.sh"

capinfo=$BIN/capinfo
sym=$BIN/symbolize
cap=$TMP/a.cap
pack=$TMP/pack.cap

command -v "${CC:-cc}" >/dev/null || skip_all "no C compiler for the test program"
"${CC:-cc}" -O1 -g -fpie -pie -Wl,--build-id -o "$TMP/prog" "$DATA/symbolize/prog.c" ||
	skip_all "the test program does not build"
"${CC:-cc}" -O1 -fpie -pie -Wl,--build-id=none -o "$TMP/noid" "$DATA/symbolize/prog.c" || exit 1

# addr FILE SYMBOL: prints its address in hex
addr() {
	nm "$1" | awk -v s="$2" '$3 == s { print $1 }'
}

# made FILE SYMBOL...: makes $cap, a capture of FILE with frames in these functions
made() {
	made_file=$1
	made_addrs=
	shift
	for s in "$@"; do
		made_addrs="$made_addrs $(addr "$made_file" "$s")"
	done
	# shellcheck disable=SC2086 # several words
	"$OBJ/t/unit/resolve" --make "$cap" "$made_file" "$made_file" prog "" $made_addrs
}

# named CAPTURE FILE: writes the output of symbolize to FILE
named() {
	"$sym" -q "$1" >"$2" 2>/dev/null
}

# gone FILE: moves FILE away until `back FILE`
gone() {
	mv "$1" "$1.away"
}
back() {
	mv "$1.away" "$1"
}

id_of() {
	readelf -n "$1" | sed -n 's/.*Build ID: //p'
}

# --- the list

made "$TMP/prog" plain _ZN3foo3barEi main
status 0 "--list-build-ids exits with status 0" "$capinfo" --list-build-ids "$cap"
is "$(cat "$out")" "$(id_of "$TMP/prog") $TMP/prog" "--list-build-ids prints build ID and path of each file in user stacks"
made "$TMP/noid" plain main
run "$capinfo" --list-build-ids "$cap"
is "$(cat "$out")" "- $TMP/noid" "--list-build-ids prints a dash for a file without a build ID"
status 64 "--list-build-ids with --json is a usage error" "$capinfo" --list-build-ids --json "$cap"

# --- the pack

made "$TMP/prog" plain _ZN3foo3barEi main chosen
named "$cap" "$TMP/before"
status 0 "--pack exits with status 0" "$capinfo" --pack "$pack" "$cap"
is "$(cat "$out" "$err")" "" "--pack prints nothing"
is "$(stat -c %a "$pack")" 600 "the pack is readable by its owner only"
status 0 "the pack is a complete capture" "$capinfo" --verify "$pack"
gone "$TMP/prog"
named "$cap" "$TMP/without"
ok "without the program the original capture lacks names" sh -c '! cmp -s "$1" "$2"' sh "$TMP/before" "$TMP/without"
named "$pack" "$TMP/after"
same "$TMP/after" "$TMP/before" "without the program the pack gives the same names as the program did"
back "$TMP/prog"
ok "an independent reader finds one image, and otherwise the same records" sh -c '
	perl "$1" "$2" >"$4" && perl "$1" "$3" >"$5" && grep -v "^image" "$5" | diff - "$4" >"$6" &&
	test "$(grep -c "^image" "$5")" = 1' sh "$DATA/capture/decode.pl" "$cap" "$pack" "$TMP/r1" "$TMP/r2" "$TMP/d"
status 0 "--pack accepts a pack" "$capinfo" --pack "$TMP/again.cap" "$pack"
same "$TMP/again.cap" "$pack" "packing a pack gives the same bytes"
ok "--pack - exits with status 0" sh -c '"$1" --pack - "$2" >"$3"' sh "$capinfo" "$cap" "$TMP/stdout.cap"
same "$TMP/stdout.cap" "$pack" "--pack - writes the same bytes to standard output"
ok "--pack accepts a capture on standard input" sh -c '"$1" --pack "$3" - <"$2"' sh "$capinfo" "$cap" "$TMP/stdin.cap"
same "$TMP/stdin.cap" "$pack" "a capture on standard input gives the same pack"

# the image itself, read by readelf
perl -e 'local $/; open my $f, "<:raw", $ARGV[0]; $_ = <$f>; my $at = rindex $_, "\x7fELF"; print substr $_, $at' \
	"$pack" >"$TMP/image"
is "$(id_of "$TMP/image")" "$(id_of "$TMP/prog")" "readelf finds the program's build ID in the packed image"
functions() {
	readelf -Ws "$1" 2>/dev/null | awk '$4 == "FUNC" && $7 != "UND" { print $2, $3, $8 }' | sort -u
}
functions "$TMP/prog" >"$TMP/f1"
functions "$TMP/image" >"$TMP/f2"
same "$TMP/f2" "$TMP/f1" "the packed image has all functions of the program"
is "$(readelf -WS "$TMP/image" 2>/dev/null | grep -c 'debug_info')" 0 "the packed image has no debug information"
loads() {
	readelf -Wl "$1" | awk '$1 == "LOAD" { print $2, $3, $5, $6 }'
}
is "$(loads "$TMP/image")" "$(loads "$TMP/prog")" "the packed image has the segments of the program"

# a stripped file and its debug file
full=$TMP/prog.full
id=$(id_of "$TMP/prog")
made "$TMP/prog" plain choose _ZN12_GLOBAL__N_11fEv main
named "$cap" "$TMP/before"
cp "$TMP/prog" "$full"
objcopy --only-keep-debug "$full" "$TMP/prog.debug"
strip "$TMP/prog"
objcopy --add-gnu-debuglink="$TMP/prog.debug" "$TMP/prog"
status 0 "--pack accepts a stripped program" "$capinfo" --pack "$pack" "$cap"
gone "$TMP/prog"
gone "$TMP/prog.debug"
named "$pack" "$TMP/after"
same "$TMP/after" "$TMP/before" "the pack of a stripped program has the names of its debug file"
back "$TMP/prog"
back "$TMP/prog.debug"

# --- files that cannot be packed

gone "$TMP/prog"
status 1 "--pack skips a missing file with status 1" "$capinfo" --pack "$pack" "$cap"
like "$(cat "$err")" "^capinfo: '$TMP/prog' is not packed: it cannot be opened: No such file" "the message names the missing file, with the reason"
status 0 "the pack without the missing file is a complete capture" "$capinfo" --verify "$pack"
back "$TMP/prog"
cp "$TMP/noid" "$TMP/other"
mv "$TMP/prog" "$TMP/prog.away"
cp "$TMP/noid" "$TMP/prog"
status 1 "--pack skips a file with another build ID, with status 1" "$capinfo" --pack "$pack" "$cap"
like "$(cat "$err")" "another file: build ID $id is recorded" "the message names the recorded build ID"
back "$TMP/prog"

# --- errors

"$capinfo" --pack "$pack" "$cap"
size=$(wc -c <"$cap")
head -c $((size - 30)) "$cap" >"$TMP/cut.cap"
status 1 "--pack of a damaged capture gives status 1" "$capinfo" --pack "$TMP/cut.pack" "$TMP/cut.cap"
like "$(cat "$err")" "what is whole of it is packed" "--pack reports that it packs the intact part of a damaged capture"
run "$capinfo" --verify "$TMP/cut.pack"
is "$rc" 1 "the pack of a damaged capture is incomplete too"
gone "$TMP/prog"
named "$TMP/cut.pack" "$TMP/after"
ok "the pack of a damaged capture has names" grep -q ' plain+0x' "$TMP/after"
back "$TMP/prog"
echo text >"$TMP/text"
status 2 "--pack refuses an input that is not a capture" "$capinfo" --pack "$TMP/none.cap" "$TMP/text"
ok "--pack leaves no file if the input is not a capture" test ! -e "$TMP/none.cap"
status 2 "--pack does not overwrite a file that is not a capture" "$capinfo" --pack "$TMP/text" "$cap"
like "$(cat "$err")" "exists and is not a capture" "the message says that the existing file is not a capture"
is "$(cat "$TMP/text")" text "the existing file is unchanged"
status 0 "--force overwrites a file that is not a capture" "$capinfo" --force --pack "$TMP/text" "$cap"
same "$TMP/text" "$pack" "the file overwritten with --force is the pack"
ln -s "$TMP/text" "$TMP/link"
status 2 "--pack does not follow a symbolic link" "$capinfo" --force --pack "$TMP/link" "$cap"
status 2 "--pack into a missing folder gives status 2" "$capinfo" --pack "$TMP/nowhere/x" "$cap"
status 64 "--force without --pack is a usage error" "$capinfo" --force "$cap"
if [ -c /dev/full ]; then
	status 2 "--pack to a full device gives status 2" "$capinfo" --force --pack /dev/full "$cap"
	like "$(cat "$err")" "No space left on device" "the message names the full device as the reason"
	ok "--pack - to a full device gives status 2" sh -c '"$1" --pack - "$2" >/dev/full 2>"$3"; test $? = 2' sh "$capinfo" "$cap" "$TMP/e"
else
	skip "--pack to a full device gives status 2" "no /dev/full"
fi
cp "$pack" "$TMP/old.cap"
(
	ulimit -f 4
	trap '' XFSZ
	exec "$capinfo" --pack "$TMP/old.cap" "$cap"
) >/dev/null 2>&1
is $? 2 "a failed write gives status 2"
same "$TMP/old.cap" "$pack" "a failed write leaves the older capture unchanged"
is "$(find "$TMP" -name 'old.cap.*' | wc -l)" 0 "a failed write leaves no temporary file"

tap_done
