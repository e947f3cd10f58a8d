#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The build: what is linked, what is compiled again and when, and what it says
# when something is missing.
. "$(dirname "$0")/../lib/tap.sh"

cd "$TOP" || exit 1
unset MAKEFLAGS MFLAGS MAKELEVEL CI

for tool in symbolize kallsyms-resolve fold capinfo; do
	run readelf -d "$BIN/$tool"
	like "$(grep -c NEEDED "$out") $(grep -o libbpf "$out")" '^[1-9][0-9]* $' "$tool links no libbpf"
done
run readelf -d "$BIN/fold"
is "$(grep -oE 'lib(elf|dw|cap|z)\.' "$out")" "" "fold carries no library that it does not call"

for tool in "$BIN"/*; do
	[ -f "$tool" ] || continue
	run readelf -d "$tool"
	like "$(grep -c NEEDED "$out") $(grep -oE 'lib(dw|elf)\.' "$out")" '^[1-9][0-9]* $' "${tool##*/} reads ELF files and DWARF by no library"
done
# Each tool is hardened, as readelf sees it; what the C library checks is in the larger ones.
hardening() { # TOOL: what there is of it, one word each
	readelf -hldnW "$BIN/$1" | awk '
		$1 == "Type:" { type = $2 }
		/FLAGS_1/ { if (/ PIE/ && type == "DYN") print "pie"; if (/ NOW/) print "now" }
		$1 == "GNU_RELRO" { print "relro" }
		$1 == "GNU_STACK" && $7 == "RW" { print "noexecstack" }
		/IBT, SHSTK/ { print "cf" }'
	readelf --dyn-syms -W "$BIN/$1" | grep -oE '__stack_chk_fail|__[a-z]+_chk@' | sed 's/__[a-z]*_chk@/fortify/' | sort -u
}
want='__stack_chk_fail fortify noexecstack now pie relro '
case $BIN in
*/san) want=$(echo "$want" | sed 's/fortify //') ;;
esac
for tool in "$BIN"/*; do
	[ -f "$tool" ] || continue
	is "$(hardening "${tool##*/}" | grep -v cf | sort | tr '\n' ' ')" "$want" \
		"${tool##*/}: position-independent, bound at start, stack and fortified calls checked"
done
case $(uname -m) in
x86_64)
	# The linker drops the mark of a program where one object lacks it, so objects are looked at.
	is "$(find "${STACKTOOLS_OBJ:-$TOP/obj}"/lib "${STACKTOOLS_OBJ:-$TOP/obj}"/tools -name '*.o' -exec readelf -nW {} + |
		awk '/^File:/ { n++ } /IBT, SHSTK/ { n-- } END { print n }')" 0 "every object has the marks of -fcf-protection"
	;;
*) skip "every object has the marks of -fcf-protection" "it is of x86" ;;
esac
is "$(make -n V=1 O="$TMP/x" CFLAGS='-O2 -fcf-protection=none' LDFLAGS=-Wl,-z,lazy "$TMP/x/bin/fold" 2>/dev/null |
	grep -oE -e '-fcf-protection[=a-z]*|-z,(lazy|relro)' | tail -n 4 | tr '\n' ' ')" \
	"-fcf-protection -fcf-protection=none -z,relro -z,lazy " "CFLAGS and LDFLAGS have the last word"

ok "every file names its licence" sh scripts/lint licence
ok "each folder of lib/ includes only lower ones" sh scripts/layers

# What make would do, without touching the tree: -W FILE pretends that FILE is new.
set -- make
case $BIN in
"$TOP/bin") ;;
*/san) set -- make SAN=1 ;;
*) set -- make O="$(dirname "$BIN")" ;;
esac
what_if() {
	"$@" 2>&1 | grep -oE "^printf .* (CC|BPF) .*|^echo .*" | grep -oE '[a-z0-9_-]+\.(bpf\.)?o$' | sort
}
if "$@" -q all >/dev/null 2>&1; then
	pass "a second make has nothing to do"
	what_if "$@" -n -W lib/symbols/kallsyms.h all >"$TMP/again"
	like "$(cat "$TMP/again")" '^kallsyms\.o$' "a changed header compiles its module again"
	like "$(cat "$TMP/again")" '^kallsyms-resolve\.o$' "and the tools that include it"
	is "$(grep -c '^hash.o$' "$TMP/again")" 0 "and nothing that does not"
	what_if "$@" -n -W bpf/offcpu_abi.h all >"$TMP/again"
	like "$(cat "$TMP/again")" '^offcpu\.bpf\.o$' "a header shared with BPF compiles the BPF program again"
	like "$(cat "$TMP/again")" '^bpf\.o$' "and its other side"
	what_if "$@" -n -W bpf/offcpu.bpf.c all >"$TMP/again"
	like "$(cat "$TMP/again")" '^bpf\.o$' "a changed BPF program compiles what holds its skeleton again"
	what_if "$@" -n CFLAGS=-O1 all >"$TMP/again"
	like "$(cat "$TMP/again")" '^hash\.o$' "other flags compile everything again"
else
	skip "make in a built tree" "the tree has changed since it was built"
fi

# Each goal that a make file offers is in make help, and what it says there exists.
"$@" -s help >"$TMP/help"
like "$(cat "$TMP/help")" '^make offline ' "make help prints the goals"
# shellcheck disable=SC2013 # goals are words
for goal in $(sed -n 's/^make \([a-z_.-]*\) .*/\1/p' "$TMP/help"); do
	ok "make $goal is a goal" grep -q "^\(.* \)*$goal\( .*\)*:" Makefile
done
if "$@" -q all >/dev/null 2>&1; then
	status 0 "make compile_commands.json" "$@" compile_commands.json
	# shellcheck disable=SC2016 # Perl's
	perl -MJSON::PP -e '
		my $list = decode_json(join "", <>);
		-e "$_->{directory}/$_->{file}" && $_->{command} =~ / -Ilib / or die $_->{file} for @$list;
		print "$_->{file}\n" for @$list' compile_commands.json >"$TMP/sources"
	is "$(grep -c '^lib/' "$TMP/sources")" "$(find lib -name '*.c' | wc -l)" "which has every file of lib/, each as it is compiled"
	rm -f compile_commands.json
else
	skip "make compile_commands.json" "the tree has changed since it was built"
	skip "which has every file of lib/" "the tree has changed since it was built"
fi
if [ -e .git ] && git rev-parse -q --verify HEAD >/dev/null 2>&1; then
	status 0 "make dist" make -s dist O="$TMP"
	is "$(tar -tzf "$TMP"/stacktools-*.tar.gz | sed 's#^[^/]*/##' | grep -v '/$' | grep . | sort | sha256sum)" \
		"$(git ls-tree -r --name-only HEAD | sort | sha256sum)" "which holds what is committed, in a folder of its own"
else
	skip "make dist" "this is no clone"
	skip "which holds what is committed" "this is no clone"
fi

# Out of tree: the objects that are there already, but for two.
mkdir "$TMP/o"
case $BIN in
*/san)
	skip "make O=DIR" "this tree has sanitizers"
	;;
*)
	cp -a "$OBJ" "$TMP/o/obj"
	rm "$TMP/o/obj/lib/base/text.o" "$TMP/o/obj/liboffline.a" "$TMP/o/obj/tools/fold.o"
	: >"$TMP/before"
	status 0 "make O=DIR builds a tool in another folder" make O="$TMP/o" "$TMP/o/bin/fold"
	is "$("$TMP/o/bin/fold" --version)" "$("$BIN/fold" --version)" "which runs"
	is "$(grep -cE '^  CC .*o/obj/(lib/base/text|tools/fold)\.o$' "$out")" 2 "what was missing was compiled there"
	is "$(find bin obj -newer "$TMP/before" -type f)" "" "and nothing is written in the tree"
	;;
esac

# BPF without the build machine's BTF
is "$(grep -l vmlinux "$OBJ"/bpf/*.d)" "" "no BPF program includes a generated vmlinux.h"
hidden() {
	# shellcheck disable=SC2016 # the inner shell's
	unshare -m sh -c 'mount -t tmpfs none /sys/kernel/btf && [ ! -e /sys/kernel/btf/vmlinux ] && "$@"' sh "$@"
}
if hidden true 2>"$TMP/why"; then
	mkdir "$TMP/b"
	status 0 "a BPF program and its skeleton build without /sys/kernel/btf" \
		hidden make O="$TMP/b" "$TMP/b/obj/bpf/offcpu.skel.h"
else
	skip "a BPF program and its skeleton build without /sys/kernel/btf" \
		"cannot hide it here: $(head -n 1 "$TMP/why")"
fi

# Prerequisites that are missing, each named once, with the package.
run make O="$TMP/m" CLANG="$TMP/no-clang" tools
like "$rc $(head -n 1 "$err")" "^2 .*no-clang.* is missing \(Debian: clang\)" "a missing clang is named with its package"
like "$(cat "$err")" 'hint: .*apt-get install clang$' "and the command that installs it"
is "$(wc -l <"$err")" 3 "in three lines, make's own among them"
run make O="$TMP/m" CC="$TMP/no-cc" tools
like "$(cat "$err")" "no-cc' is missing \(Debian: gcc\)" "so is a missing compiler"
cat >"$TMP/cc" <<-'END'
	#!/bin/sh
	case $(cat) in *libbpf.h* | *gelf.h*) exit 1 ;; esac
END
chmod +x "$TMP/cc"
run env CC="$TMP/cc" sh scripts/prerequisites
is "$rc" 2 "missing libraries are an error"
like "$(cat "$err")" 'libbpf, header <bpf/libbpf.h>, is missing \(Debian: libbpf-dev\)' "each with its header and package"
like "$(tail -n 1 "$err")" 'apt-get install libbpf-dev libelf-dev$' "and one command for all of them"
is "$(sh scripts/prerequisites 2>&1)" "" "with everything there it says nothing"
is "$(CC="${CC:-cc} --sysroot=/" sh scripts/prerequisites 2>&1)" "" "also with a compiler that has an option"
is "$(CC="env ${CC:-cc}" sh scripts/prerequisites 2>&1)" "" "and with one that another program starts"
like "$(CC="env $TMP/no-cc" sh scripts/prerequisites 2>&1)" "compiler 'env .*no-cc' is missing \(Debian: gcc\)" \
	"which is missing all the same when only the other program is there"

# The compiler's target decides, not this machine. What reads files only takes no BPF program.
cat >"$TMP/cc" <<-'END'
	#!/bin/sh
	case $1 in -dumpmachine | -print-multiarch) echo aarch64-linux-gnu ;; *) exec cc "$@" ;; esac
END
what_for() { # TARGET: what make would do for it in an empty folder
	# shellcheck disable=SC2086 # words
	make -n V=1 O="$TMP/x" CC="$TMP/cc" $1 2>/dev/null
}
like "$(what_for tools | grep -oE -e '-D__TARGET_ARCH_[a-z0-9]+' | sort | uniq -c)" '^ *[0-9]+ -D__TARGET_ARCH_arm64$' \
	"BPF programs are compiled for the machine that the compiler compiles for"
what_for offline >"$TMP/offline"
is "$(grep -oE "$TMP/x/bin/[a-z-]+" "$TMP/offline" | sort -u | sed 's/.*\///' | tr '\n' ' ')" \
	"capinfo fold kallsyms-resolve symbolize unwindinfo " "make offline builds the tools that read files"
is "$(grep -v /.flags "$TMP/offline" | grep -cE 'target bpf|gen skeleton|-lbpf')" 0 "without BPF programs, bpftool and libbpf"
is "$(what_for completions | grep -c -e --completion)" 0 "tools for another machine are not run for their completions"
is "$(what_for "completions RUN=qemu-aarch64" | grep -c -e '^qemu-aarch64 .* --completion=[a-z]* >')" \
	"$((3 * $(find tools -name '*.c' | wc -l)))" "but with RUN="

tap_done
