#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck disable=SC2154 # $out, $err and $rc come from tap.sh
# The cache of symbolize: it changes the time of a run, but not the output.
. "$(dirname "$0")/../lib/tap.sh"

maker=$OBJ/t/unit/resolve
sym=$BIN/symbolize
cap=$TMP/a.cap
cc=${CC:-cc}
cache=$TMP/kept
export STACKTOOLS_CACHE="$cache"

command -v "$cc" >/dev/null || skip_all "no C compiler for the test program"
# debug information that is large enough to be cached
awk 'BEGIN {
	print "extern int puts(const char *);"
	for (i = 0; i < 2500; i++) {
		printf "struct s%d { int first_%d; long second_%d; struct s%d *next_%d; };\n", i, i, i, i, i
		printf "static inline __attribute__((always_inline)) int leaf%d(struct s%d *s)\n{\n\treturn s->first_%d + puts(\"%d\");\n}\n", i, i, i, i
		printf "int outer%d(struct s%d *s)\n{\n\treturn leaf%d(s) + leaf%d(s->next_%d);\n}\n", i, i, i, i, i
	}
	print "int main(void)\n{\n\treturn 0;\n}" }' >"$TMP/much.c"
"$cc" -O1 -g -Wl,--build-id -o "$TMP/much" "$TMP/much.c" || skip_all "the test program does not build"
touch -d '1 hour ago' "$TMP/much"
"$maker" --gen "$cap" "$TMP/much" 200 200 >/dev/null
"$maker" --gen "$TMP/fewer.cap" "$TMP/much" 50 50 >/dev/null
sleep 0.1 # a file that changed in the current clock tick is not cached

entries() {
	find "$cache" -name '*.sym' 2>/dev/null | wc -l
}

"$sym" -q --lines --no-cache "$cap" >"$TMP/want"
is "$(entries)" 0 "--no-cache writes no cache entry"
like "$(grep -c inlined "$TMP/want")" '^[1-9][0-9]' "the output has inlined calls"

run "$sym" -q --lines --stats "$cap"
same "$out" "$TMP/want" "the first run prints the same as a run without the cache"
is "$(entries)" 1 "the first run writes a cache entry"
like "$(cat "$err")" 'answers kept on disk 0 were used, 1 were not there, 0 were unusable; 1 are new' "--stats shows the new cache entry"
run "$sym" -q --lines --stats "$cap"
same "$out" "$TMP/want" "the second run prints the same bytes"
like "$(cat "$err")" 'answers kept on disk 1 were used, 0 were not there, 0 were unusable; 0 are new' "the second run uses the cache entry"
like "$(cat "$err")" ' 0\.0 ms of CPUs in all' "the second run reads no symbols"
run "$sym" -q --lines --stats --no-cache "$cap"
is "$(grep -c 'kept on disk' "$err")" 0 "--no-cache does not use the cache entry"

"$sym" -q --lines --no-cache "$TMP/fewer.cap" >"$TMP/fewer"
run "$sym" -q --lines "$TMP/fewer.cap"
same "$out" "$TMP/fewer" "another capture of the same file gets its own names"
run "$sym" -q --stats "$cap"
like "$(cat "$err")" '0 were used, 1 were not there' "a run without --lines does not use the cache entry of one with --lines"
"$sym" -q --no-cache "$cap" >"$TMP/nolines"
same "$out" "$TMP/nolines" "a run without --lines prints the same as without the cache"

# --- cache entries that must not be used
"$sym" -q --lines "$cap" >"$out"
entry=
for f in "$cache"/*.sym; do
	[ -n "$entry" ] && [ "$(wc -c <"$f")" -lt "$(wc -c <"$entry")" ] || entry=$f
done
cp "$entry" "$TMP/good"
size=$(wc -c <"$entry")
broken() { # NAME: $entry is damaged; symbolize replaces it by a valid entry
	run "$sym" -q --lines --stats "$cap"
	same "$out" "$TMP/want" "$1 does not change the output"
	like "$(cat "$err")" '0 were used, 0 were not there, 1 were unusable; 1 are new' "$1 is replaced"
}
head -c $((size / 2)) "$TMP/good" >"$entry"
broken "a truncated cache entry"
: >"$entry"
broken "an empty cache entry"
head -c "$size" /dev/zero >"$entry"
broken "a cache entry of zeros"
printf 'X' | dd of="$entry" bs=1 seek=$((size - 9)) conv=notrunc 2>/dev/null
broken "a cache entry with a changed byte"
for f in "$cache"/*.sym; do
	[ "$f" = "$entry" ] || cp "$f" "$TMP/elses"
done
cp "$TMP/elses" "$entry"
run "$sym" -q --lines --stats "$cap"
same "$out" "$TMP/want" "a renamed cache entry of another query does not change the output"
like "$(cat "$err")" '0 were used, 1 were not there' "a renamed cache entry of another query is not used"
chmod 0666 "$entry"
broken "a cache entry that others can write to"
cp "$entry" "$TMP/other"
cp "$entry" "$TMP/was"
rm "$entry"
ln -s "$TMP/other" "$entry"
run "$sym" -q --lines --stats "$cap"
same "$out" "$TMP/want" "a symbolic link in place of a cache entry does not change the output"
like "$(cat "$err")" ' 0 were used' "a symbolic link in place of a cache entry is not followed"
same "$TMP/other" "$TMP/was" "a symbolic link in place of a cache entry is not written through"
chmod 0777 "$cache"
run "$sym" -q --lines --stats "$cap"
same "$out" "$TMP/want" "a cache directory that others can write to does not change the output"
is "$(grep -c 'kept on disk' "$err")" 0 "a cache directory that others can write to is not used"
chmod 0700 "$cache"

# --- program files that change
cp -p "$TMP/much" "$TMP/again"
"$sym" -q --lines "$cap" >/dev/null
cp "$TMP/again" "$TMP/much" # in place: the same inode, size and build ID
run "$sym" -q --lines --stats "$cap"
same "$out" "$TMP/want" "a program file that is rewritten in place gives the same output"
is "$(grep -c ' 1 were used' "$err")" 0 "a program file that is rewritten in place uses no cache entry"
STACKTOOLS_CACHE='' run "$sym" -q --lines --stats "$cap"
is "$(grep -c 'kept on disk' "$err")" 0 "an empty STACKTOOLS_CACHE disables the cache"

tap_done
