#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The build: what is linked, what is recompiled and when, and which errors are reported
# if something is missing.
. "$(dirname "$0")/../lib/tap.sh"

cd "$TOP" || exit 1
unset MAKEFLAGS MFLAGS MAKELEVEL CI

for tool in symbolize kallsyms-resolve fold flame capinfo; do
	run readelf -d "$BIN/$tool"
	like "$(grep -c NEEDED "$out") $(grep -o libbpf "$out")" '^[1-9][0-9]* $' "$tool does not link libbpf"
done
run readelf -d "$BIN/fold"
is "$(grep -oE 'lib(elf|dw|cap|z)\.' "$out")" "" "fold does not link libraries that it does not call"

for tool in "$BIN"/*; do
	[ -f "$tool" ] || continue
	run readelf -d "$tool"
	like "$(grep -c NEEDED "$out") $(grep -oE 'lib(dw|elf)\.' "$out")" '^[1-9][0-9]* $' "${tool##*/} links neither libdw nor libelf"
done
# Each tool is hardened, as readelf shows.
hardening() { # TOOL: prints its hardening features, one word each
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
		"${tool##*/} is hardened: PIE, RELRO, BIND_NOW, no executable stack, checked calls"
done
case $(uname -m) in
x86_64)
	# The linker drops the mark of a program if one object lacks it, so the objects are checked.
	is "$(find "${STACKTOOLS_OBJ:-$TOP/obj}"/lib "${STACKTOOLS_OBJ:-$TOP/obj}"/tools -name '*.o' -exec readelf -nW {} + |
		awk '/^File:/ { n++ } /IBT, SHSTK/ { n-- } END { print n }')" 0 "every object is marked for IBT and shadow stacks (-fcf-protection)"
	;;
*) skip "every object is marked for IBT and shadow stacks (-fcf-protection)" "x86 only" ;;
esac
is "$(make -n V=1 O="$TMP/x" CFLAGS='-O2 -fcf-protection=none' LDFLAGS=-Wl,-z,lazy "$TMP/x/bin/fold" 2>/dev/null |
	grep -oE -e '-fcf-protection[=a-z]*|-z,(lazy|relro)' | tail -n 4 | tr '\n' ' ')" \
	"-fcf-protection -fcf-protection=none -z,relro -z,lazy " "CFLAGS and LDFLAGS override the default flags"

# A folder's name in a program would make another of the same sources differ. scripts/reproducible compares whole builds.
is "$(grep -lF -e "$TOP/" "$BIN"/* 2>/dev/null)" "" "no tool has the name of the folder where it was built, not even in its debug information"

ok "every file names its licence" sh scripts/lint licence
ok "each folder of lib/ includes only lower layers" sh scripts/layers

# What make would do, without a change of the tree: with -W FILE make assumes that FILE is new.
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
	like "$(cat "$TMP/again")" '^kallsyms\.o$' "a changed header recompiles its module"
	like "$(cat "$TMP/again")" '^kallsyms-resolve\.o$' "a changed header recompiles the tools that include it"
	is "$(grep -c '^hash.o$' "$TMP/again")" 0 "a changed header does not recompile other modules"
	what_if "$@" -n -W bpf/offcpu_abi.h all >"$TMP/again"
	like "$(cat "$TMP/again")" '^offcpu\.bpf\.o$' "a header shared with BPF recompiles the BPF program"
	like "$(cat "$TMP/again")" '^bpf\.o$' "a header shared with BPF recompiles its user-space side"
	what_if "$@" -n -W bpf/offcpu.bpf.c all >"$TMP/again"
	like "$(cat "$TMP/again")" '^bpf\.o$' "a changed BPF program recompiles the module with its skeleton"
	what_if "$@" -n CFLAGS=-O1 all >"$TMP/again"
	like "$(cat "$TMP/again")" '^hash\.o$' "changed CFLAGS recompile everything"
else
	skip "make recompiles what a change affects" "the tree has changed since it was built"
fi

# make help lists goals that exist.
"$@" -s help >"$TMP/help"
like "$(cat "$TMP/help")" '^make offline ' "make help prints the goals"
# shellcheck disable=SC2013 # goals are words
for goal in $(sed -n 's/^make \([a-z_.-]*\) .*/\1/p' "$TMP/help"); do
	ok "the goal make $goal exists" grep -q "^\(.* \)*$goal\( .*\)*:" Makefile
done
if "$@" -q all >/dev/null 2>&1; then
	status 0 "make compile_commands.json succeeds" "$@" compile_commands.json
	# shellcheck disable=SC2016 # Perl's
	perl -MCpanel::JSON::XS -e '
		my $list = decode_json(join "", <>);
		-e "$_->{directory}/$_->{file}" && $_->{command} =~ / -Ilib / or die $_->{file} for @$list;
		print "$_->{file}\n" for @$list' compile_commands.json >"$TMP/sources"
	is "$(grep -c '^lib/' "$TMP/sources")" "$(find lib -name '*.c' | wc -l)" "compile_commands.json has every file of lib/ with its command"
	rm -f compile_commands.json
else
	skip "make compile_commands.json succeeds" "the tree has changed since it was built"
	skip "compile_commands.json has every file of lib/ with its command" "the tree has changed since it was built"
fi
if [ -e .git ] && git rev-parse -q --verify HEAD >/dev/null 2>&1; then
	status 0 "make dist succeeds" make -s dist O="$TMP"
	is "$(tar -tzf "$TMP"/stacktools-*.tar.gz | sed 's#^[^/]*/##' | grep -v '/$' | grep . | sort | sha256sum)" \
		"$(git ls-tree -r --name-only HEAD | sort | sha256sum)" "make dist packs exactly the committed files, in one folder"
else
	skip "make dist succeeds" "not a clone"
	skip "make dist packs exactly the committed files, in one folder" "not a clone"
fi

# A build in another folder: a copy of the objects without two of them and one archive
mkdir "$TMP/o"
case $BIN in
*/san)
	skip "make O=DIR builds a tool in another folder" "this tree is built with sanitizers"
	;;
*)
	cp -a "$OBJ" "$TMP/o/obj"
	rm "$TMP/o/obj/lib/base/text.o" "$TMP/o/obj/liboffline.a" "$TMP/o/obj/tools/fold.o"
	: >"$TMP/before"
	status 0 "make O=DIR builds a tool in another folder" make O="$TMP/o" "$TMP/o/bin/fold"
	is "$("$TMP/o/bin/fold" --version)" "$("$BIN/fold" --version)" "a tool built with O=DIR runs"
	is "$(grep -cE '^  CC .*o/obj/(lib/base/text|tools/fold)\.o$' "$out")" 2 "make O=DIR compiles only the missing objects"
	is "$(find bin obj -newer "$TMP/before" -type f)" "" "make O=DIR writes nothing in the source tree"
	;;
esac

# BPF without the BTF of the build machine
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

# Missing prerequisites: each is named once, with its package.
run make O="$TMP/m" CLANG="$TMP/no-clang" tools
like "$rc $(head -n 1 "$err")" "^2 .*no-clang.* is missing \(Debian: clang\)" "a missing clang is reported with its package"
like "$(cat "$err")" 'hint: .*apt-get install clang$' "the hint is the command that installs clang"
is "$(wc -l <"$err")" 3 "a missing clang gives three lines, including make's own"
run make O="$TMP/m" CC="$TMP/no-cc" tools
like "$(cat "$err")" "no-cc' is missing \(Debian: gcc\)" "a missing C compiler is reported with its package"
cat >"$TMP/cc" <<-'END'
	#!/bin/sh
	case $(cat) in *libbpf.h* | *gelf.h*) exit 1 ;; esac
END
chmod +x "$TMP/cc"
run env CC="$TMP/cc" sh scripts/prerequisites
is "$rc" 2 "missing libraries give status 2"
like "$(cat "$err")" 'libbpf, header <bpf/libbpf.h>, is missing \(Debian: libbpf-dev\)' "a missing library is reported with its header and package"
like "$(tail -n 1 "$err")" 'apt-get install libbpf-dev libelf-dev$' "the hint installs all missing packages with one command"
cat >"$TMP/cc" <<-'END'
	#!/bin/sh
	case $1 in -print-file-name=libelf.a | -print-file-name=libz.a) echo "${1#*=}" ;; *) exec cc "$@" ;; esac
END
is "$(CC="$TMP/cc" sh scripts/prerequisites 2>&1)" "" "without STATIC=1 no archives are needed"
run env CC="$TMP/cc" STATIC=1 sh scripts/prerequisites
like "$rc $(cat "$err")" '^2 stacktools: libelf, archive libelf.a, is missing \(Debian: libelf-dev\)
stacktools: libz, archive libz.a, is missing \(Debian: zlib1g-dev\)' "with STATIC=1 archives that are missing are reported with their packages"
is "$(STATIC=1 sh scripts/prerequisites 2>&1)" "" "with STATIC=1 the packages of the build have all archives"
run make -n STATIC=1 SAN=1
like "$rc $(cat "$err")" '^2 .*STATIC=1 and SAN=1 exclude one another' "STATIC=1 and SAN=1 exclude one another"
is "$(sh scripts/prerequisites 2>&1)" "" "the check of prerequisites prints nothing if none is missing"
is "$(CC="${CC:-cc} --sysroot=/" sh scripts/prerequisites 2>&1)" "" "the check of prerequisites accepts a compiler with an option"
is "$(CC="env ${CC:-cc}" sh scripts/prerequisites 2>&1)" "" "the check of prerequisites accepts a compiler behind a wrapper command"
like "$(CC="env $TMP/no-cc" sh scripts/prerequisites 2>&1)" "compiler 'env .*no-cc' is missing \(Debian: gcc\)" \
	"a missing compiler is reported even if its wrapper command exists"

# The target of the compiler decides, not this machine. Tools that only read files need no BPF program.
cat >"$TMP/cc" <<-'END'
	#!/bin/sh
	case $1 in
	-dumpmachine | -print-multiarch) echo "${MACHINE:-aarch64}-linux-gnu" ;;
	-print-sysroot) echo /there ;;
	*) exec cc "$@" ;;
	esac
END
what_for() { # TARGET: what make would do for TARGET in an empty folder
	# shellcheck disable=SC2086 # words
	make -n V=1 O="$TMP/x" CC="$TMP/cc" $1 2>/dev/null
}
like "$(what_for "$TMP/x/obj/bpf/offcpu.bpf.o" | grep -oE -e '-D__TARGET_ARCH_[a-z0-9]+' | sort | uniq -c)" '^ *[0-9]+ -D__TARGET_ARCH_arm64$' \
	"BPF programs are compiled for the target of the C compiler"
like "$(what_for "$TMP/x/obj/bpf/offcpu.bpf.o")" ' -idirafter /there/usr/include/aarch64-linux-gnu ' \
	"and with the headers of its sysroot"
like "$(what_for tools)" "-o $TMP/x/bin/offcpu-record " "for arm64 make tools builds the recorder"
export MACHINE=riscv64
what_for offline >"$TMP/offline"
is "$(grep -oE "$TMP/x/bin/[a-z-]+" "$TMP/offline" | sort -u | sed 's/.*\///' | tr '\n' ' ')" \
	"capinfo flame fold kallsyms-resolve stackdiff stackexport stackreport symbolize unwindinfo " "make offline builds the tools that read files"
what_for tools >"$TMP/tools"
same "$TMP/tools" "$TMP/offline" "for a machine without an unwinder make tools builds no others"
is "$(what_for install | grep -oE '(offcpu-record|oncpu-record|bpfcheck|stackmap-test|setup-permissions)' | sort -u)" "" "nor does make install install others"
is "$(grep -v /.flags "$TMP/offline" | grep -cE 'target bpf|gen skeleton|-lbpf')" 0 "make offline needs no BPF programs, bpftool or libbpf"
is "$(what_for completions | grep -c -e --completion)" 0 "without RUN= completions of tools for another machine are not made"
is "$(what_for "completions RUN=qemu-aarch64" | grep -c -e '^qemu-aarch64 .* --completion=[a-z]* >')" \
	"$((3 * $(grep -oE "$TMP/x/bin/[a-z-]+" "$TMP/offline" | sort -u | wc -l)))" "with RUN= completions of tools for another machine are made"

tap_done
