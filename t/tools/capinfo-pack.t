#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Captures with the symbols of their files inside, and the list of these files.
# shellcheck disable=SC2016,SC2154 # sh -c expands its own; $out, $err and $rc come from tap.sh
. "$(dirname "$0")/../lib/tap.sh"

capinfo=$BIN/capinfo
sym=$BIN/symbolize
cap=$TMP/a.cap
pack=$TMP/pack.cap

command -v "${CC:-cc}" >/dev/null || skip_all "no C compiler for the program to be packed"
"${CC:-cc}" -O1 -g -fpie -pie -Wl,--build-id -o "$TMP/prog" "$DATA/symbolize/prog.c" ||
	skip_all "the program to be packed does not build"
"${CC:-cc}" -O1 -fpie -pie -Wl,--build-id=none -o "$TMP/noid" "$DATA/symbolize/prog.c" || exit 1

# addr FILE SYMBOL: its address in hex
addr() {
	nm "$1" | awk -v s="$2" '$3 == s { print $1 }'
}

# made FILE SYMBOL...: $cap is a capture of FILE, with frames in these functions
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

# what symbolize says of a capture, to a file; how it found the names may differ
named() {
	"$sym" -q "$1" >"$2" 2>/dev/null
}

# gone FILE: FILE is not there until `back FILE`
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
status 0 "--list-build-ids ends with status 0" "$capinfo" --list-build-ids "$cap"
is "$(cat "$out")" "$(id_of "$TMP/prog") $TMP/prog" "each file that user stacks lie in, by build ID and path"
made "$TMP/noid" plain main
run "$capinfo" --list-build-ids "$cap"
is "$(cat "$out")" "- $TMP/noid" "a file without a build ID has a dash"
status 64 "--list-build-ids with --json is bad usage" "$capinfo" --list-build-ids --json "$cap"

# --- the pack

made "$TMP/prog" plain _ZN3foo3barEi main chosen
named "$cap" "$TMP/before"
status 0 "--pack ends with status 0" "$capinfo" --pack "$pack" "$cap"
is "$(cat "$out" "$err")" "" "and says nothing"
is "$(stat -c %a "$pack")" 600 "others may not read it"
status 0 "the pack is a whole capture" "$capinfo" --verify "$pack"
gone "$TMP/prog"
named "$cap" "$TMP/without"
ok "without the program names are missing" sh -c '! cmp -s "$1" "$2"' sh "$TMP/before" "$TMP/without"
named "$pack" "$TMP/after"
same "$TMP/after" "$TMP/before" "with the pack everything is named as it was with the program"
back "$TMP/prog"
ok "an independent reader finds the image, and else the same records" sh -c '
	perl "$1" "$2" >"$4" && perl "$1" "$3" >"$5" && grep -v "^image" "$5" | diff - "$4" >"$6" &&
	test "$(grep -c "^image" "$5")" = 1' sh "$DATA/capture/decode.pl" "$cap" "$pack" "$TMP/r1" "$TMP/r2" "$TMP/d"
status 0 "a pack can be packed" "$capinfo" --pack "$TMP/again.cap" "$pack"
same "$TMP/again.cap" "$pack" "and nothing comes twice"
ok "--pack - writes to standard output" sh -c '"$1" --pack - "$2" >"$3"' sh "$capinfo" "$cap" "$TMP/stdout.cap"
same "$TMP/stdout.cap" "$pack" "the same bytes"
ok "a capture from standard input is packed" sh -c '"$1" --pack "$3" - <"$2"' sh "$capinfo" "$cap" "$TMP/stdin.cap"
same "$TMP/stdin.cap" "$pack" "the same bytes too"

# the image itself, to those who know ELF
perl -e 'local $/; open my $f, "<:raw", $ARGV[0]; $_ = <$f>; my $at = rindex $_, "\x7fELF"; print substr $_, $at' \
	"$pack" >"$TMP/image"
is "$(id_of "$TMP/image")" "$(id_of "$TMP/prog")" "readelf finds the program's build ID in the image"
functions() {
	readelf -Ws "$1" 2>/dev/null | awk '$4 == "FUNC" && $7 != "UND" { print $2, $3, $8 }' | sort -u
}
functions "$TMP/prog" >"$TMP/f1"
functions "$TMP/image" >"$TMP/f2"
same "$TMP/f2" "$TMP/f1" "and all of its functions"
is "$(readelf -WS "$TMP/image" 2>/dev/null | grep -c 'debug_info')" 0 "but no debug information"
loads() {
	readelf -Wl "$1" | awk '$1 == "LOAD" { print $2, $3, $5, $6 }'
}
is "$(loads "$TMP/image")" "$(loads "$TMP/prog")" "segments are where they were"

# a stripped file and its debug file
full=$TMP/prog.full
id=$(id_of "$TMP/prog")
made "$TMP/prog" plain choose _ZN12_GLOBAL__N_11fEv main
named "$cap" "$TMP/before"
cp "$TMP/prog" "$full"
objcopy --only-keep-debug "$full" "$TMP/prog.debug"
strip "$TMP/prog"
objcopy --add-gnu-debuglink="$TMP/prog.debug" "$TMP/prog"
status 0 "a stripped program is packed" "$capinfo" --pack "$pack" "$cap"
gone "$TMP/prog"
gone "$TMP/prog.debug"
named "$pack" "$TMP/after"
same "$TMP/after" "$TMP/before" "with all names that its debug file has"
back "$TMP/prog"
back "$TMP/prog.debug"

# --- what is missing is reported

gone "$TMP/prog"
status 1 "a file that is gone is left out with status 1" "$capinfo" --pack "$pack" "$cap"
like "$(cat "$err")" "^capinfo: '$TMP/prog' is not packed: it cannot be opened: No such file" "and named, with the reason"
status 0 "the rest is a whole capture" "$capinfo" --verify "$pack"
back "$TMP/prog"
cp "$TMP/noid" "$TMP/other"
mv "$TMP/prog" "$TMP/prog.away"
cp "$TMP/noid" "$TMP/prog"
status 1 "another file under its name is not taken" "$capinfo" --pack "$pack" "$cap"
like "$(cat "$err")" "another file: build ID $id is recorded" "which is reported"
back "$TMP/prog"

# --- errors

"$capinfo" --pack "$pack" "$cap"
size=$(wc -c <"$cap")
head -c $((size - 30)) "$cap" >"$TMP/cut.cap"
status 1 "a damaged capture is packed with status 1" "$capinfo" --pack "$TMP/cut.pack" "$TMP/cut.cap"
like "$(cat "$err")" "what is whole of it is packed" "as far as it is whole, which is reported"
run "$capinfo" --verify "$TMP/cut.pack"
is "$rc" 1 "and the pack is not complete either"
gone "$TMP/prog"
named "$TMP/cut.pack" "$TMP/after"
ok "but has the names" grep -q ' plain+0x' "$TMP/after"
back "$TMP/prog"
echo text >"$TMP/text"
status 2 "what is no capture is not packed" "$capinfo" --pack "$TMP/none.cap" "$TMP/text"
ok "and leaves no file" test ! -e "$TMP/none.cap"
status 2 "a file that is no capture is not written over" "$capinfo" --pack "$TMP/text" "$cap"
like "$(cat "$err")" "exists and is not a capture" "which is reported"
is "$(cat "$TMP/text")" text "and it is as it was"
status 0 "--force writes over it" "$capinfo" --force --pack "$TMP/text" "$cap"
same "$TMP/text" "$pack" "with the pack"
ln -s "$TMP/text" "$TMP/link"
status 2 "a symbolic link is not followed" "$capinfo" --force --pack "$TMP/link" "$cap"
status 2 "a folder that is not there is an error" "$capinfo" --pack "$TMP/nowhere/x" "$cap"
status 64 "--force without --pack is bad usage" "$capinfo" --force "$cap"
if [ -c /dev/full ]; then
	status 2 "a full disk is reported" "$capinfo" --force --pack /dev/full "$cap"
	like "$(cat "$err")" "No space left on device" "as that"
	ok "and on standard output" sh -c '"$1" --pack - "$2" >/dev/full 2>"$3"; test $? = 2' sh "$capinfo" "$cap" "$TMP/e"
else
	skip "a full disk is reported" "no /dev/full"
fi
cp "$pack" "$TMP/old.cap"
(
	ulimit -f 4
	trap '' XFSZ
	exec "$capinfo" --pack "$TMP/old.cap" "$cap"
) >/dev/null 2>&1
is $? 2 "a write that fails is status 2"
same "$TMP/old.cap" "$pack" "and the older capture is still there"
is "$(find "$TMP" -name 'old.cap.*' | wc -l)" 0 "without anything beside it"

tap_done
