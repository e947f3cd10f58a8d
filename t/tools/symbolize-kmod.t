#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck disable=SC2154 # $out, $err and $rc come from tap.sh
# Lines and inlined calls of kernel modules: small objects take the place of modules.
. "$(dirname "$0")/../lib/tap.sh"

maker=$OBJ/t/unit/kmodfile
sym=$BIN/symbolize
cap=$TMP/a.cap
release=6.1.0-made
dir=$TMP/root/usr/lib/debug/lib/modules/$release/kernel/fs
cc=${CC:-cc}

for tool in "$cc" ld objdump addr2line perl; do
	command -v "$tool" >/dev/null || skip_all "no $tool"
done
case $(uname -m) in x86_64 | aarch64) ;; *) skip_all "relocations of this machine are not supported" ;; esac
mkdir -p "$dir"
cat >"$TMP/a.c" <<'C'
int second(volatile int *p);
static const char info[] __attribute__((section(".modinfo"), used)) = "vermagic=6.1.0-made SMP mod_unload ";
static inline __attribute__((always_inline)) int deepest(volatile int *p, int x)
{
	while (x--)
		*p += x;
	return *p;
}
static inline __attribute__((always_inline)) int deeper(volatile int *p)
{
	if (p[1] > 3)
		return deepest(p, p[2]);
	return p[3];
}
static __attribute__((noinline)) int helper(volatile int *p)
{
	return deeper(p) + p[7];
}
int walk(volatile int *p)
{
	return deeper(p) + second(p + 1) + helper(p);
}
__attribute__((section(".init.text"))) int begin(volatile int *p)
{
	return deeper(p) * 3;
}
__attribute__((section(".exit.text"))) int finish(volatile int *p)
{
	return deeper(p) * 7;
}
C
cat >"$TMP/b.c" <<'C'
#ifdef ALONE /* in a section with no other function, nothing tells two of a name apart */
#define helper helped
#endif
static inline __attribute__((always_inline)) int other(volatile int *p)
{
	return p[4] / p[5];
}
static __attribute__((noinline)) int helper(volatile int *p)
{
	return other(p) * p[9];
}
int second(volatile int *p)
{
	return other(p) + helper(p) + helper(p + 2);
}
C

# build NAME FLAG...: builds NAME.ko, and NAME.linked, which other programs can read without relocations
build() {
	name=$1
	shift
	"$@" -O2 -g -fno-pic -fno-asynchronous-unwind-tables -c -o "$TMP/a.o" "$TMP/a.c" 2>/dev/null &&
		"$@" -O2 -g -fno-pic -fno-asynchronous-unwind-tables -c -o "$TMP/b.o" "$TMP/b.c" 2>/dev/null &&
		ld -r -o "$TMP/$name.ko" "$TMP/a.o" "$TMP/b.o" &&
		ld -o "$TMP/$name.linked" -e walk "$TMP/$name.ko" 2>/dev/null
}

# loaded MODULE FILE: the functions of FILE as a kernel may load them: MODULE NAME START ROOM 1 SIZE+1,
# with each section elsewhere. Module functions are recorded by section; a name may occur twice.
loaded() {
	objdump -t "$2" | perl -ne '
		next unless my ($at, $sec, $size, $name) = /^(\w+) .* F (\S+)\t(\w+) (?:\.hidden )?(\S+)$/;
		$base{$sec} //= 0x100000 + 0x20000 * keys %base;
		push @f, [$sec, hex $at, hex $size, $name];
		END {
			for (@f) {
				my ($sec, $at, $size, $name) = @$_;
				my ($next) = sort { $a <=> $b } map { $_->[1] } grep { $_->[0] eq $sec && $_->[1] > $at } @f;
				printf "%s %s ffffffffc0%06x %x 1 %x\n", "'"$1"'", $name, $base{$sec} + $at, ($next // $at + $size) - $at, $size + 1;
			}
		}'
}

# theirs FILE: for each byte of each function of a linked FILE, the calls, innermost first, with file and line
theirs() {
	objdump -t "$1" | perl -ne '
		print map { sprintf "0x%x\n", hex($1) + $_ } 0 .. hex($2) - 1 if /^(\w+) .* F \S+\t(\w+) (?:\.hidden )?\S+$/' >"$TMP/bytes"
	# shellcheck disable=SC2086 # words
	$other "$1" <"$TMP/bytes" | perl -ne '
		if (/^0x/) { print "$s\n" if $. > 1; $s = "" }
		elsif (/^$/) { next }
		elsif (!defined $f) { chomp($f = $_) }
		else { s/ \(discriminator.*//; m|([^/]*?):([0-9?]+)(:[0-9]+)?$|; $s .= "$f\@$1:" . ($2 eq "?" ? 0 : $2) . " "; undef $f }
		END { print "$s\n" }'
}

# ours FILE: the same from JSON of symbolize
ours() {
	perl -ne 'sub at { my ($own, $f) = @_; my ($file) = $f =~ /"file":"[^"]*?([^"\/]*)"/; my ($line) = $f =~ /"line":(\d+)/;
			"$own\@" . ($file // "??") . ":" . ($line // 0) . " " }
		while (/"address":"[^"]*",(.*?),"source":/g) {
			my $f = $1; my ($own) = $f =~ /^"symbol":"([^"]*)"/; my $s = "";
			$s .= at($1, $2) while $f =~ /\{"symbol":"([^"]*)"(.*?)\}/g;
			$f =~ s/"inlined":\[.*?\]//;
			print $s . at($own, $f), "\n" }' "$1"
}

llvm=
for tool in llvm-symbolizer-19 llvm-symbolizer; do
	[ -n "$llvm" ] || ! command -v $tool >/dev/null || llvm=$tool
done
n=0
for how in "$cc -gdwarf-5" "$cc -gdwarf-4" "$cc -gdwarf-5 -ffunction-sections -DALONE -gz=zlib" "clang -gdwarf-5" "clang -gdwarf-4"; do
	# shellcheck disable=SC2086 # words
	if ! command -v ${how%% *} >/dev/null || ! build "m$n" $how; then
		skip "a module built by $how has the expected calls and lines" "it cannot be built"
		continue
	fi
	other="addr2line -afi -e"
	# addr2line misses some of the calls that clang has inlined
	case $how in clang*) other="$llvm --addresses --functions=linkage -e" ;; esac
	[ "$other" != " --addresses --functions=linkage -e" ] || { skip "a module built by $how has the expected calls and lines" "no llvm-symbolizer" && continue; }
	cp "$TMP/m$n.ko" "$dir/made-mod.ko"
	loaded made_mod "$TMP/m$n.ko" >"$TMP/functions"
	theirs "$TMP/m$n.linked" >"$TMP/them"
	"$maker" --make "$cap" "$release" <"$TMP/functions"
	run "$sym" -q --format=json --symfs "$TMP/root" "$cap"
	ours "$out" >"$TMP/us"
	# the functions may be in another order, but their bytes are the same
	sort "$TMP/us" >"$TMP/us.sorted"
	sort "$TMP/them" >"$TMP/them.sorted"
	same "$TMP/us.sorted" "$TMP/them.sorted" "each byte of a module built by $how has the calls and lines of ${other%% *}"
	like "$(grep -c 'deepest@a.c:[0-9]* deeper@a.c:[0-9]* walk@' "$TMP/us")" '^[1-9]' "the module has functions that are inlined twice"
	n=$((n + 1))
done
[ $n -gt 0 ] || skip_all "no module can be built"

cp "$TMP/m0.ko" "$dir/made-mod.ko"
loaded made_mod "$TMP/m0.ko" >"$TMP/functions"
"$maker" --make "$cap" "$release" <"$TMP/functions"
run "$sym" -v --lines --symfs "$TMP/root" "$cap"
like "$(cat "$err")" "kernel module 'made_mod''s debug information is used: '/usr/lib/debug/lib/modules/.*/made-mod.ko' [(]of the same release; captures have no build ID" \
	"-v reports which file is used, and that captures have no build ID of modules"
like "$(grep -A 1 ' walk+0x[0-9a-f]* (\[made_mod\])' "$out")" 'a.c:2[0-9]$' "a frame has the recorded name and module and its source line"
is "$(grep -c 'as far as it goes' "$err")" 0 "-v reports no fault of the module's file"

# --- other places
mkdir -p "$TMP/dbg/lib/modules/$release"
mv "$dir/made-mod.ko" "$TMP/dbg/lib/modules/$release/made_mod.ko.debug"
run "$sym" -q --format=json --debug-dir "$TMP/dbg" "$cap"
like "$(cat "$out")" '"symbol":"walk",.*"line":2[0-9],' "--debug-dir finds the module's file"
objcopy --only-keep-debug "$TMP/m0.ko" "$TMP/dbg/lib/modules/$release/made_mod.ko.debug"
run "$sym" -q --format=json --debug-dir "$TMP/dbg" "$cap"
ours "$out" | sort >"$TMP/us.sorted"
other="addr2line -afi -e"
theirs "$TMP/m0.linked" | sort >"$TMP/them.sorted"
same "$TMP/us.sorted" "$TMP/them.sorted" "a file with only debug information gives the same calls and lines"
rm "$TMP/dbg/lib/modules/$release/made_mod.ko.debug"

# --- files that must not be used
"$sym" -q --no-inline --format=text "$cap" >"$TMP/plain"
is "$("$sym" -q "$cap" | cmp - "$TMP/plain" && echo same)" same "without the module's file the output is as with --no-inline"
plain() {
	run "$sym" -v --format=json --symfs "$TMP/root" "$cap"
	is "$(grep -c '"line":[0-9]' "$out")" 0 "$1: frames have no source lines"
	like "$(cat "$err")" "kernel module 'made_mod' has no lines: $2" "$1: -v says why"
}
sed 's/6\.1\.0-made/6.1.0-none/' "$TMP/m0.ko" >"$dir/made-mod.ko"
plain "a file of another release" ".*made-mod.ko': is of release 6.1.0-none"
objcopy --strip-debug "$TMP/m0.ko" "$dir/made-mod.ko"
plain "a file without debug information" ".*made-mod.ko': has no debug information"
rm "$dir/made-mod.ko"
xz -c "$TMP/m0.ko" >"$dir/made-mod.ko.xz" 2>/dev/null || : >"$dir/made-mod.ko.xz"
plain "a compressed file" ".*made-mod.ko.xz': is compressed"
rm "$dir/made-mod.ko.xz"
cp "$TMP/m0.ko" "$dir/made-mod.ko"
awk '$2 == "walk" { $3 = substr($3, 1, length($3) - 3) "888" } { print }' "$TMP/functions" >"$TMP/moved"
"$maker" --make "$cap" "$release" <"$TMP/moved"
plain "a file of another build" ".*made-mod.ko': is another build"
grep helper "$TMP/functions" >"$TMP/helpers"
"$maker" --make "$cap" "$release" <"$TMP/helpers"
run "$sym" -q --format=json --symfs "$TMP/root" "$cap"
is "$(grep -c '"line":[0-9]' "$out")" 0 "two functions of the same name have no source lines"
like "$(cat "$out")" "\"symbol\":\"helper\",[^}]*\"reason\":\"the module's file has no function of this name there, or more than one\"" \
	"JSON says why functions of the same name have no source lines"

# --- damage
head -c 2000 "$TMP/m0.ko" >"$dir/made-mod.ko"
loaded made_mod "$TMP/m0.ko" >"$TMP/functions"
"$maker" --make "$cap" "$release" <"$TMP/functions"
plain "a truncated file" ".*made-mod.ko': its section header"
whole=$("$sym" -q --no-inline "$cap" | cksum)
bad=
i=0
while [ $i -lt 60 ]; do
	perl -e 'srand($ARGV[0]); local $/; $_ = <STDIN>; substr($_, rand(length), 1 + rand(4)) = pack "N", rand(2**32) for 1 .. 8; print' \
		$i <"$TMP/m0.ko" >"$dir/made-mod.ko"
	timeout 20 "$sym" -q --lines --symfs "$TMP/root" "$cap" >"$out" 2>"$err" || bad="$bad $i:status"
	[ "$(grep -v '^  \| (inlined)$' "$out" | cksum)" = "$whole" ] || bad="$bad $i:names"
	i=$((i + 1))
done
is "$bad" "" "a damaged module costs source lines, but never the recorded names"
"$cc" -O2 -g -fno-pic -c -o "$TMP/tls.o" -x c - <<'C' 2>/dev/null && cp "$TMP/tls.o" "$dir/made-mod.ko"
__thread int per_thread;
int walk(void)
{
	return per_thread++;
}
C
loaded made_mod "$dir/made-mod.ko" >"$TMP/functions"
"$maker" --make "$cap" "$release" <"$TMP/functions"
run "$sym" -v --format=json --symfs "$TMP/root" "$cap"
like "$(cat "$out")" '"symbol":"walk",[^}]*"line":null,[^}]*"source":"ksym","reason":"cannot be read: [^"]*relocation of type [0-9]+' \
	"unknown relocations cost the source lines, and JSON says so"

tap_done
