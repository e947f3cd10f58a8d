#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck disable=SC2154,SC2016 # $out, $err and $rc come from tap.sh; Perl's variables
# Places without a name: files without local symbols, compared with the symbols they had.
. "$(dirname "$0")/../lib/tap.sh"

maker=$OBJ/t/unit/resolve
sym=$BIN/symbolize
cap=$TMP/a.cap
export DEBUGINFOD_URLS=
command -v gcc >/dev/null || skip_all "no gcc for the test programs"

# bare FILE COPY: what strip(1) leaves, with another build ID, so that no debug file is found
bare() {
	objcopy --strip-all -R .gnu_debuglink -R .gnu_debugdata "$1" "$2" 2>/dev/null
	perl -0777 -pi -e 's/(\x03\0\0\0GNU\0)(.)/$1 . chr(ord($2) ^ 1)/se' "$2"
}

# truth NAME SYMBOLS COPY N NAMES LABELS: compares N addresses of COPY with the symbols of SYMBOLS; there must be at
# least so many names and labels
truth() {
	"$maker" --gen "$cap" "$3" "$4" "$4" >"$TMP/addr" 2>/dev/null
	"$sym" -q --no-demangle --no-inline "$cap" >"$TMP/us"
	perl "$DATA/symbolize/truth.pl" "$2" "$TMP/addr" "$TMP/us" >"$TMP/truth" 2>&1
	is "$? $(sed 1d "$TMP/truth")" "0 " "$1: each name is right, and each label has the start of its function"
	head -n 1 "$TMP/truth" | sed "s/^/# $1: /"
	ok "$1: there are at least $5 names and $6 labels" perl -e '
		exit !($ARGV[0] =~ m{^names=\d+/(\d+) labels=\d+/(\d+)} && $1 >= $ARGV[1] && $2 >= $ARGV[2])' \
		"$(head -n 1 "$TMP/truth")" "$5" "$6"
}

# --- names and labels of stripped copies are right

debug_of() {
	d_id=$(readelf -n "$1" 2>/dev/null | awk '/Build ID/ { print $3 }')
	printf '/usr/lib/debug/.build-id/%.2s/%s.debug' "$d_id" "${d_id#??}"
}

for file in /usr/lib/x86_64-linux-gnu/libc.so.6 /usr/bin/python3.11 /usr/lib/x86_64-linux-gnu/libm.so.6; do
	debug=$(debug_of "$file")
	name=${file##*/}
	if [ -r "$file" ] && [ -r "$debug" ]; then
		bare "$(readlink -f "$file")" "$TMP/$name"
		truth "$name" "$debug" "$TMP/$name" 10000 1000 3000
	else
		skip "$name: each name is right, and each label has the start of its function" "it has no debug file"
	fi
done
# with lld an address is not its place in the file
for flags in -pie -no-pie -fuse-ld=lld; do
	if g++ -O2 $flags -o "$TMP/cc" "$DATA/symbols/templates.cc" 2>/dev/null; then
		bare "$TMP/cc" "$TMP/cc.bare"
		truth "g++ $flags" "$TMP/cc" "$TMP/cc.bare" 3000 0 1000
	else
		skip "g++ $flags: each name is right, and each label has the start of its function" "the compiler cannot build it"
	fi
done

# --- symbols without a size

cat >"$TMP/sizes.s" <<'A'
	.text
	.globl proved
	.type proved, @function
proved:	.cfi_startproc
	.skip 16, 0x90
	.cfi_endproc
	.globl bounded
	.type bounded, @function
bounded: .skip 16, 0x90
hidden:	.cfi_startproc
	.skip 16, 0x90
	.cfi_endproc
nothing: .skip 16, 0x90
	.globl trampoline
	.cfi_startproc
	.cfi_signal_frame
	nop
trampoline:
	.skip 16, 0x90
	.cfi_endproc
A
gcc -shared -nostdlib -o "$TMP/sizes.full" "$TMP/sizes.s"
bare "$TMP/sizes.full" "$TMP/sizes"
# said FILE SYMBOL: what symbolize prints for the fifth byte of SYMBOL in FILE
said() {
	s_at=$(printf %x $((0x$(nm "$TMP/sizes.full" | awk -v s="$2" '$3 == s { print $1 }') + 4)))
	"$maker" --make "$cap" "$1" "$1" a "" "$s_at"
	"$sym" -q "$cap" | sed -n "s/^\t *7f[0-9a-f]* \\(.*\\) (.*/\\1/p"
}
hidden=$(nm "$TMP/sizes.full" | awk '$3 == "hidden" { print $1 }')
is "$(said "$TMP/sizes" proved)" "proved+0x4" "a symbol without a size names code whose FDE starts with it"
like "$(said "$TMP/sizes" bounded)" '^\[sizes\+0x[0-9a-f]+\]$' "without an FDE it names nothing"
is "$(said "$TMP/sizes" hidden)" "[sizes+0x$(printf %x "0x$hidden")]+0x4" "nor code of another FDE"
like "$(said "$TMP/sizes" nothing)" '^\[sizes\+0x[0-9a-f]+\]$' "nor code after that"
is "$(said "$TMP/sizes" trampoline)" "trampoline+0x4" "the FDE of a signal trampoline starts one byte before it"
like "$(said "$TMP/sizes.full" nothing)" '^\[sizes.full\+0x[0-9a-f]+\]$' "so it is in a file with all its symbols"
"$sym" -q --format=json "$cap" >"$out"
like "$(cat "$out")" '"symbol":null,"linkage_name":null,"offset":null,[^}]*"source":"module","reason":"no symbol covers this address"' \
	"JSON says that no symbol covers the address"

# --- aliases

if [ -r "$(debug_of /usr/lib/x86_64-linux-gnu/libc.so.6)" ]; then
	libc=$(readlink -f /usr/lib/x86_64-linux-gnu/libc.so.6)
	nm -D --defined-only "$libc" | awk '$2 ~ /^[TWi]$/ { sub(/@.*/, "", $3); print $1, $3 }' >"$TMP/public"
	awk '{ print $1 }' "$TMP/public" | sort -u >"$TMP/addr"
	"$maker" --list "$cap" "$libc" "$libc" <"$TMP/addr" >/dev/null
	"$sym" -q --no-demangle --no-inline "$cap" | perl -ne 'print "$1\n" if /^\t *\w+ (.*)\+0x[01] \(/' >"$TMP/us"
	is "$(wc -l <"$TMP/us")" "$(wc -l <"$TMP/addr")" "each exported function of libc has a name"
	paste -d ' ' "$TMP/addr" "$TMP/us" | sort >"$TMP/named"
	sort "$TMP/public" >"$TMP/sorted"
	is "$(comm -23 "$TMP/named" "$TMP/sorted" | head -n 3)" "" \
		"with the debug file, too, it is a name that is exported, without its version"
	is "$(grep -xE '__libc_start_main|select|nanosleep|read|poll|pthread_mutex_lock' "$TMP/us" | sort | paste -sd ' ')" \
		"__libc_start_main nanosleep poll pthread_mutex_lock read select" "functions with aliases have the name that programs call"
else
	skip "each exported function of libc has a name at its first byte" "libc has no debug file"
fi

# --- through fold and into the picture

"$maker" --gen "$cap" "$TMP/cc.bare" 100 400 >/dev/null
"$sym" -q "$cap" >"$TMP/text"
run "$BIN/fold" "$TMP/text"
grep -o '\[cc\.bare+0x[0-9a-f]*\]' "$TMP/text" | sort -u >"$TMP/labels"
tr ';' '\n' <"$out" | grep -o '^\[cc\.bare+0x[0-9a-f]*\]' | sort -u >"$TMP/folded"
same "$TMP/folded" "$TMP/labels" "fold keeps each label as one frame"
is "$(grep -c ']+0x' "$out")" 0 "and drops the offset in the function"
sc=${STACKCOLLAPSE:-$(command -v stackcollapse-perf.pl)}
if [ -r "$sc" ]; then
	perl "$sc" "$TMP/text" | tr ';' '\n' | grep -o '^\[cc\.bare+0x[0-9a-f]*\]' | sort -u >"$TMP/folded"
	same "$TMP/folded" "$TMP/labels" "so does stackcollapse-perf.pl"
else
	skip "so does stackcollapse-perf.pl" "it is not on PATH (STACKCOLLAPSE names it)"
fi
odd="$TMP/a (b);[c]->\"d'	e"
cp "$TMP/cc.bare" "$odd"
"$maker" --gen "$cap" "$odd" 5 5 >/dev/null
"$sym" -q "$cap" >"$TMP/text"
like "$(cat "$TMP/text")" '\[a\\x20\\x28b\\x29\\x3b\\x5bc\\x5d-\\x3e\\x22d\\x27\\x09e\+0x[0-9a-f]+\]' \
	"what would end or split the name is escaped in the name of the file"
is "$("$BIN/fold" "$TMP/text" | tr ';' '\n' | grep -c '^\[a.*x5d-.*+0x[0-9a-f]*\]')" \
	"$(grep -c '\[a.*+0x[0-9a-f]*\]' "$TMP/text")" "so fold keeps it whole"
run "$sym" -q --format=json "$cap"
like "$(cat "$out")" '"symbol":null,"linkage_name":null,"offset":[0-9]+,[^}]*"module_offset":"0x[0-9a-f]+","module_address":"0x[0-9a-f]+",[^}]*"source":"fde","reason":"[^"]+"' \
	"JSON has the offset in the function, the place in the file, and the source fde"

# --- what would give names is said once

g++ -O2 -Wl,--build-id -o "$TMP/cc" "$DATA/symbols/templates.cc"
strip -o "$TMP/cc.stripped" "$TMP/cc"
root=$TMP/root
mkdir -p "$root/usr/bin" "$root/etc/debuginfod"
cp "$TMP/cc.stripped" "$root/usr/bin/sorts"
printf 'NAME="Other"\nID=other\nID_LIKE="more debian"\n' >"$root/etc/os-release"
# says N PATH FILE [OPTION...]: the messages for a capture with N addresses of FILE, mapped as PATH
says() {
	s_n=$1 s_path=$2 s_file=$3
	shift 3
	"$maker" --gen "$TMP/list.cap" "$s_file" "$s_n" "$s_n" >"$TMP/addr"
	"$maker" --list "$cap" "$s_file" "$s_path" <"$TMP/addr" >/dev/null
	env -u DEBUGINFOD_URLS "$sym" --symfs "$root" "$@" "$cap" >"$TMP/text" 2>"$err"
	cat "$err"
}
said=$(says 300 /usr/bin/sorts "$TMP/cc.stripped")
unnamed=$(grep -c '\[sorts+0x' "$TMP/text")
is "$said" "symbolize: $unnamed of 300 user frames have no name for lack of debug files, most in sorts
symbolize: hint: a server may have them: export DEBUGINFOD_URLS='https://debuginfod.debian.net', and run symbolize again" \
	"frames without a name are counted, and the server of the distribution is named"
printf 'https://one.example\nhttps://two.example/x "$(y)"\n' >"$root/etc/debuginfod/site.urls"
like "$(says 300 /usr/bin/sorts "$TMP/cc.stripped")" "DEBUGINFOD_URLS='https://one.example https://two.example/x'" \
	"or those of the system's configuration"
is "$(says 300 /usr/bin/sorts "$TMP/cc.stripped" -q)" "" "-q says nothing of it"
DEBUGINFOD_URLS='' run "$sym" --symfs "$root" "$cap"
is "$(cat "$err")" "" "nor does anyone who set DEBUGINFOD_URLS hear of it"
is "$(says 9 /usr/bin/sorts "$TMP/cc.stripped")" "" "nor is it said of less than ten frames"
cat >"$TMP/few.c" <<'C'
__attribute__((noinline, noclone)) static int hidden(int x) { __asm__ volatile("nop"); return x; }
int exported(int x) { return hidden(x) + 1; }
int main(int argc, char **argv) { (void)argv; return exported(argc); }
C
gcc -O1 -rdynamic -Wl,--build-id -o "$TMP/few" "$TMP/few.c"
strip -o "$TMP/few.stripped" "$TMP/few"
cp "$TMP/few.stripped" "$root/usr/bin/few"
# few N: the messages for 12 frames without a name among N
few() {
	nm "$TMP/few" | awk -v n="$1" '$3 == "hidden" { while (i++ < 12) print $1 } $3 == "exported" { while (k++ < n - 12) print $1 }' |
		"$maker" --list "$cap" "$TMP/few.stripped" /usr/bin/few >/dev/null
	env -u DEBUGINFOD_URLS "$sym" --symfs "$root" "$cap" 2>&1 >/dev/null | head -n 1
}
is "$(few 241)" "" "nor of less than a twentieth of the frames"
is "$(few 240)" "symbolize: 12 of 240 user frames have no name for lack of debug files, most in few" \
	"but it is said of a twentieth"
cp "$TMP/cc" "$root/usr/bin/sorts"
is "$(says 300 /usr/bin/sorts "$TMP/cc")" "" "nor of a file with its symbols"
mkdir -p "$root/usr/local/bin"
cp "$TMP/cc.stripped" "$root/usr/local/bin/sorts"
is "$(says 300 /usr/local/bin/sorts "$TMP/cc.stripped")" "" "nor of a file that no package has"
cp "$TMP/cc.stripped" "$root/usr/bin/sorts"
id=$(readelf -n "$TMP/cc" | awk '/Build ID/ { print $3 }')
dir=$root/usr/lib/debug/.build-id/$(printf %.2s "$id")
mkdir -p "$dir"
objcopy --only-keep-debug "$TMP/cc" "$dir/${id#??}.debug"
is "$(says 300 /usr/bin/sorts "$TMP/cc.stripped")" "" "nor where the debug file is"
tap_done
