#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Go's table of functions: hand-made ones, and those of Go programs, as nm, addr2line
# and libdw's reader of .debug_frame see them.
# shellcheck disable=SC2154 # $out of tap.sh
. "$(dirname "$0")/../lib/tap.sh"
reader=$OBJ/t/unit/gopclntab

ok "hand-made tables" "$reader"
. "$(dirname "$0")/../lib/go.sh"

build_go plain plain.go
build_go cgo waits.go
build_go debug waits.go -gcflags='-N -l'
for name in plain cgo debug; do
	objcopy --strip-all "$TMP/$name" "$TMP/$name-s"
done

# functions NAME: every function has its name and address from the symbol table. Names of generated
# functions are cut by the compiler.
functions() {
	"$reader" functions "$TMP/$1-s" | grep -vF -e '[...]' -e '·' | sort >"$TMP/functions"
	nm "$TMP/$1" | sed -n 's/ [tT] / /p' | sed 's/\.abi0$//; s/\.abiinternal$//' | sort >"$TMP/symbols"
	is "$(comm -23 "$TMP/functions" "$TMP/symbols" | diag; wc -l <"$TMP/functions" | awk '{ print ($1 > 1000) }')" 1 \
		"$1: each of more than 1000 functions is where nm says"
}

# lines NAME: an address has addr2line's line, or none; none if a call was inlined there
lines() {
	"$reader" functions "$TMP/$1" | perl -ne 'printf "%x\n", 17 + hex((split)[0]) if $. % 5 == 0' >"$TMP/addr"
	"$reader" lines "$TMP/$1-s" <"$TMP/addr" >"$TMP/got"
	addr2line -a -i -e "$TMP/$1" <"$TMP/addr" | awk '
		function put() { if (n) print n == 2 ? line : "?" }
		/^0x/ { put(); n = 0 }
		{ n++; line = $0; sub(/ \(.*/, "", line); sub(/^\.\//, "", line) }
		END { put() }' >"$TMP/want"
	paste "$TMP/got" "$TMP/want" | awk '
		$1 != $2 && $1 != "?" { print "# " $0; wrong++ }
		$1 == $2 && $1 != "?" { right++ }
		END { print (right > 200 ? "many" : right), wrong + 0 }' >"$TMP/lines"
	is "$(tail -n 1 "$TMP/lines")" "many 0" "$1: lines are addr2line's"
	grep '^#' "$TMP/lines"
}

# rows NAME: the rows have the CFA and return address of .debug_frame, and stripped they are the same
rows() {
	status 0 "$1: every row agrees with .debug_frame" "$OBJ/t/unit/unwindcmp" "$TMP/$1"
	grep -q '^differences 0' "$out" || diag <"$out"
	like "$(sed -n 's/^compared *//p' "$out")" '^[0-9]{4,}$' "$1: thousands of rows were compared"
	"$BIN/unwindinfo" "$TMP/$1" | sed '/^section/d; /^file/d; /^CIEs/d; /^FDEs/d' >"$TMP/whole"
	"$BIN/unwindinfo" "$TMP/$1-s" | sed '/^section/d; /^file/d; /^CIEs/d; /^FDEs/d' >"$TMP/stripped"
	ok "$1: unwindinfo shows rows" test -s "$TMP/whole"
	same "$TMP/stripped" "$TMP/whole" "$1: stripped, the program has the same rows"
}

for name in plain cgo debug; do
	functions $name
	lines $name
	rows $name
done
# as an external linker leaves it in a position-independent program
objcopy --rename-section .gopclntab=.data.rel.ro "$TMP/cgo-s" "$TMP/merged"
"$reader" functions "$TMP/cgo-s" >"$TMP/want"
"$reader" functions "$TMP/merged" >"$TMP/got"
same "$TMP/got" "$TMP/want" "a table that the linker merged with other data is found"
go=$(go env GOROOT)/bin/go
status 0 "a large stripped program has rows" "$BIN/unwindinfo" -s "$go"
like "$(sed -n 's/^section *//p' "$out")" 'gopclntab' "they are from its table of functions"
for name in plain-s cgo-s; do
	status 0 "$name: a damaged table does no harm" "$reader" hostile "$TMP/$name"
done
tap_done
