#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck disable=SC2154 # $out, $err and $rc come from tap.sh
# Answers that symbolize keeps on disk: they change how long it takes, and nothing else.
. "$(dirname "$0")/../lib/tap.sh"

maker=$OBJ/t/unit/resolve
sym=$BIN/symbolize
cap=$TMP/a.cap
cc=${CC:-cc}
cache=$TMP/kept
export STACKTOOLS_CACHE="$cache"

command -v "$cc" >/dev/null || skip_all "no C compiler for the program to be resolved"
# debug information large enough to be worth keeping
awk 'BEGIN {
	print "extern int puts(const char *);"
	for (i = 0; i < 2500; i++) {
		printf "struct s%d { int first_%d; long second_%d; struct s%d *next_%d; };\n", i, i, i, i, i
		printf "static inline __attribute__((always_inline)) int leaf%d(struct s%d *s)\n{\n\treturn s->first_%d + puts(\"%d\");\n}\n", i, i, i, i
		printf "int outer%d(struct s%d *s)\n{\n\treturn leaf%d(s) + leaf%d(s->next_%d);\n}\n", i, i, i, i, i
	}
	print "int main(void)\n{\n\treturn 0;\n}" }' >"$TMP/much.c"
"$cc" -O1 -g -Wl,--build-id -o "$TMP/much" "$TMP/much.c" || skip_all "the program to be resolved does not build"
touch -d '1 hour ago' "$TMP/much"
"$maker" --gen "$cap" "$TMP/much" 200 200 >/dev/null
"$maker" --gen "$TMP/fewer.cap" "$TMP/much" 50 50 >/dev/null
sleep 0.1 # what changed in this tick of the clock is neither kept nor looked for

entries() {
	find "$cache" -name '*.sym' 2>/dev/null | wc -l
}

"$sym" -q --lines --no-cache "$cap" >"$TMP/want"
is "$(entries)" 0 "--no-cache keeps nothing"
like "$(grep -c inlined "$TMP/want")" '^[1-9][0-9]' "inlined calls and lines are asked for"

run "$sym" -q --lines --stats "$cap"
same "$out" "$TMP/want" "the first run"
is "$(entries)" 1 "keeps its answer"
like "$(cat "$err")" 'answers kept on disk 0 were used, 1 were not there, 0 were unusable; 1 are new' "and --stats says so"
run "$sym" -q --lines --stats "$cap"
same "$out" "$TMP/want" "the second run is the same byte for byte"
like "$(cat "$err")" 'answers kept on disk 1 were used, 0 were not there, 0 were unusable; 0 are new' "by the answer of the first"
like "$(cat "$err")" ' 0\.0 ms of CPUs in all' "and reads no symbols"
run "$sym" -q --lines --stats --no-cache "$cap"
is "$(grep -c 'kept on disk' "$err")" 0 "--no-cache does not use it"

"$sym" -q --lines --no-cache "$TMP/fewer.cap" >"$TMP/fewer"
run "$sym" -q --lines "$TMP/fewer.cap"
same "$out" "$TMP/fewer" "another capture of the same file has its own names"
run "$sym" -q --stats "$cap"
like "$(cat "$err")" '0 were used, 1 were not there' "without --lines it is another question"
"$sym" -q --no-cache "$cap" >"$TMP/nolines"
same "$out" "$TMP/nolines" "with another answer"

# --- entries that nobody should believe
"$sym" -q --lines "$cap" >"$out"
entry=
for f in "$cache"/*.sym; do
	[ -n "$entry" ] && [ "$(wc -c <"$f")" -lt "$(wc -c <"$entry")" ] || entry=$f
done
cp "$entry" "$TMP/good"
size=$(wc -c <"$entry")
broken() { # NAME: $entry is damaged; the entry that is made anew is good again
	run "$sym" -q --lines --stats "$cap"
	same "$out" "$TMP/want" "$1 costs nothing but time"
	like "$(cat "$err")" '0 were used, 0 were not there, 1 were unusable; 1 are new' "and is replaced"
}
head -c $((size / 2)) "$TMP/good" >"$entry"
broken "an entry that is torn"
: >"$entry"
broken "an empty one"
head -c "$size" /dev/zero >"$entry"
broken "one of zeros"
printf 'X' | dd of="$entry" bs=1 seek=$((size - 9)) conv=notrunc 2>/dev/null
broken "one with a changed byte"
for f in "$cache"/*.sym; do
	[ "$f" = "$entry" ] || cp "$f" "$TMP/elses"
done
cp "$TMP/elses" "$entry"
run "$sym" -q --lines --stats "$cap"
same "$out" "$TMP/want" "the answer to another question under its name costs nothing but time"
like "$(cat "$err")" '0 were used, 1 were not there' "and is not used"
chmod 0666 "$entry"
broken "one that others can write to"
cp "$entry" "$TMP/other"
cp "$entry" "$TMP/was"
rm "$entry"
ln -s "$TMP/other" "$entry"
run "$sym" -q --lines --stats "$cap"
same "$out" "$TMP/want" "a symbolic link costs nothing but time"
like "$(cat "$err")" ' 0 were used' "and is not followed"
same "$TMP/other" "$TMP/was" "nor written through"
chmod 0777 "$cache"
run "$sym" -q --lines --stats "$cap"
same "$out" "$TMP/want" "a directory that others can write to costs nothing but time"
is "$(grep -c 'kept on disk' "$err")" 0 "and is not used"
chmod 0700 "$cache"

# --- files that change
cp -p "$TMP/much" "$TMP/again"
"$sym" -q --lines "$cap" >/dev/null
cp "$TMP/again" "$TMP/much" # in place: the same inode, size and build ID
run "$sym" -q --lines --stats "$cap"
same "$out" "$TMP/want" "a file that was written to anew"
is "$(grep -c ' 1 were used' "$err")" 0 "has no answer"
STACKTOOLS_CACHE='' run "$sym" -q --lines --stats "$cap"
is "$(grep -c 'kept on disk' "$err")" 0 "an empty STACKTOOLS_CACHE turns it off"

tap_done
