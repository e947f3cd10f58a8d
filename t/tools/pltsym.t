#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The names of PLT stubs, compared with objdump and, where that has no names, with nm.
. "$(dirname "$0")/../lib/tap.sh"
list=$OBJ/t/unit/pltsym

command -v objdump >/dev/null || {
	skip "names of PLT stubs match objdump" "no objdump here"
	tap_done
}

# theirs FILE...: "FILE address name" of each stub; drops resolver stubs without a known name
theirs() {
	objdump -d -j .plt -j .plt.sec -j .plt.got -j .iplt "$@" 2>/dev/null |
		sed -n '/^\/.*: *file format /{s/: *file format .*//;h;}
			/^[0-9a-f]* <[^*>]*@plt>:$/{s/^0*\([0-9a-f]*\) <\(.*\)>:$/\1 \2/;G;s/\(.*\)\n\(.*\)/\2 \1/p;}' | sort
}

ours() {
	for o_file in "$@"; do
		"$list" --list "$o_file" | sed "s|^|$o_file |"
	done | sort
}

# wrong FILE...: the stubs of objdump that are missing or have another name in ours
wrong() {
	ours "$@" >"$TMP/ours"
	theirs "$@" >"$TMP/theirs"
	comm -13 "$TMP/ours" "$TMP/theirs"
}

# shellcheck disable=SC2046 # words
wrong $(ls /usr/lib/x86_64-linux-gnu/lib[a-g]*.so.? /usr/lib/x86_64-linux-gnu/libstdc++.so.6 /usr/bin/bash 2>/dev/null) >"$TMP/wrong"
total=$(wc -l <"$TMP/theirs")
if [ "$total" -gt 100 ]; then
	is "$(cat "$TMP/wrong")" "" "every PLT stub of the system's libraries has objdump's name ($total of them)"
else
	skip "every PLT stub of the system's libraries has objdump's name" "no libraries for x86-64 here"
fi

cat >"$TMP/p.c" <<'EOC'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int one(int x) { return x + 1; }
static int two(int x) { return x + 2; }
static void *pick(void) { return getenv("X") ? one : two; }
int chosen(int) __attribute__((ifunc("pick")));
int main(int c, char **v)
{
	int (*volatile p)(const char *) = puts;
	return chosen(c) + (int)strlen(v[0]) + p("x") + printf("%d\n", atoi("3"));
}
EOC

# built COMMAND: compiles p.c; fails if this machine cannot
built() {
	rm -f "$TMP/p"
	"$@" -O1 -w -o "$TMP/p" "$TMP/p.c" >/dev/null 2>&1
}

for ld in bfd gold lld; do
	for z in lazy now; do
		for more in -no-pie -fcf-protection '-fcf-protection -Wl,-z,ibtplt'; do
			# only bfd has this option
			case $ld$more in [!b]*ibtplt) continue ;; esac
			name="$ld, $z, $more: stubs have objdump's names"
			# shellcheck disable=SC2086 # options are words
			if built gcc "-fuse-ld=$ld" -Wl,-z,$z $more; then
				is "$(wrong "$TMP/p")" "" "$name"
				like "$(cut -d' ' -f3 <"$TMP/ours" | tr '\n' ' ')" 'strlen@plt' "$ld, $z, $more: there is a stub of strlen"
			else
				skip "$name" "it cannot be built here"
			fi
		done
	done
done

for how in -static -static-pie; do
	name="$how: every stub is named by an indirect function that nm knows"
	if built gcc $how; then
		"$list" --list "$TMP/p" | sed 's/^[^ ]* //; s/@plt$//' | sort -u >"$TMP/ours"
		nm "$TMP/p" | awk '$2 == "i" {print $3}' | sort -u >"$TMP/theirs"
		is "$(comm -23 "$TMP/ours" "$TMP/theirs")" "" "$name"
		like "$(tr '\n' ' ' <"$TMP/ours")" '(^| )chosen ' "$how: the program's own indirect function has a stub"
	else
		skip "$name" "it cannot be built here"
	fi
done

name="a lazy retpoline of lld is one stub, with the name of its relocation"
if built gcc -fuse-ld=lld -Wl,-z,retpolineplt; then
	"$list" --list "$TMP/p" | sed 's/^[^ ]* //; s/@plt$//' | sort >"$TMP/ours"
	readelf -rW "$TMP/p" | awk '/JUMP_SLO/ {sub("@.*", "", $5); print $5}' | sort >"$TMP/theirs"
	is "$(comm -13 "$TMP/ours" "$TMP/theirs")" "" "$name"
else
	skip "$name" "it cannot be built here"
fi

tap_done
