#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck disable=SC2086,SC2154 # options are words; $out comes from tap.sh
# Every byte of programs that are compiled here: chains of inlined functions
# and lines, compared with llvm-symbolizer, addr2line and eu-addr2line. This file lists the permitted
# classes of differences; docs/symbol-agreement.md describes each class and says who is right.
. "$(dirname "$0")/../lib/tap.sh"

cmp="$TOP/scripts/compare-symbols"
src=$DATA/symbols
export DEBUGINFOD_URLS=

command -v gcc >/dev/null || skip_all "no gcc for the test programs"
command -v llvm-symbolizer-19 >/dev/null || skip_all "no llvm-symbolizer-19"

# llvm-symbolizer may differ in names only, never in a chain or a line.
llvm=llvm:alias,llvm:label,llvm:suffix,llvm:past-end,llvm:plt
# addr2line names padding, takes files of lines from the unit, names from the symbol table, and reads no .dwo
gnu=addr2line:alias,addr2line:label,addr2line:lines:artificial,addr2line:lines:path,addr2line:suffix,addr2line:past-end,addr2line:plt,addr2line:short,addr2line:fewer,addr2line:chain
gnu=$gnu,addr2line:lines:line,addr2line:lines:no-line
# eu-addr2line has no inlined frames for clang, -flto and split DWARF, and has lines and calls for padding
eu=eu:alias,eu:label,eu:lines:path,eu:suffix,eu:plt,eu:short,eu:fewer,eu:more,eu:chain,eu:ours-none,eu:past-end
eu=$eu,eu:lines:line,eu:lines:no-line,eu:lines:ours-no-line

# agrees NAME PROGRAM [OPTION...]: each difference belongs to a permitted class
agrees() {
	a_name=$1 a_file=$2
	shift 2
	ok "$a_name" timeout 300 perl "$cmp" -s 1 -e 400 -a "$llvm,$gnu,$eu" "$@" "$a_file"
}

# built COMPILER OUTPUT FLAGS SOURCE...: fails if the compiler cannot build it
built() {
	b_cc=$1 b_out=$2 b_flags=$3
	shift 3
	$b_cc $b_flags -Wl,--build-id -o "$b_out" "$@" 2>"$TMP/cc.log"
}

for cc in gcc clang; do
	command -v $cc >/dev/null || {
		skip "programs built by $cc agree with other symbolizers" "it is not installed"
		continue
	}
	while IFS='|' read -r name flags; do
		if built $cc "$TMP/$cc-$name" "$flags" "$src/weigh.c" "$src/main.c"; then
			agrees "$cc $flags: every frame and line agrees with other symbolizers" "$TMP/$cc-$name"
		else
			skip "$cc $flags: every frame and line agrees with other symbolizers" "$cc cannot build it"
		fi
	done <<-'L'
		dwarf2|-O2 -gdwarf-2
		dwarf3|-O2 -gdwarf-3
		dwarf4|-O2 -gdwarf-4
		dwarf5|-O2 -gdwarf-5
		O0|-O0 -g
		gc|-O3 -g -ffunction-sections -Wl,--gc-sections
		lto|-O2 -g -flto
		nopie|-O2 -g -fno-pie -no-pie
		zlib|-O2 -g -gz=zlib
		i386|-m32 -O2 -g
		i386-nopie|-m32 -O2 -gdwarf-4 -fno-pie -no-pie
		types|-O2 -g -fdebug-types-section
	L
	if command -v "${cc%cc}++" >/dev/null || command -v g++ >/dev/null; then
		cxx=g++
		[ $cc = gcc ] || cxx=clang++
		if built $cxx "$TMP/$cc-cc" "-O2 -g" "$src/templates.cc"; then
			agrees "$cxx: templates, lambdas and constructors inlined into one another agree" "$TMP/$cc-cc" -s 3
		else
			skip "$cxx: templates, lambdas and constructors inlined into one another agree" "the compiler cannot build it"
		fi
	fi
	for version in 4 5; do
		s_dir=$TMP/split-$cc-$version
		mkdir "$s_dir"
		s_flags="-O2 -gdwarf-$version -gsplit-dwarf"
		if (cd "$s_dir" && for s in weigh main; do
			$cc $s_flags -c -o $s.o "$src/$s.c" || exit 1
		done && $cc -Wl,--build-id -o split weigh.o main.o) 2>"$TMP/cc.log"; then
			agrees "$cc -gsplit-dwarf, DWARF $version: frames of the .dwo files agree" "$s_dir/split"
			# LLVM's packer does not terminate on gcc's files; that of binutils
			# takes all units of DWARF 5 for one
			dwp=$(command -v llvm-dwp-19)
			[ $cc = clang ] || dwp=$(command -v dwp)
			[ $cc = clang ] || [ $version = 4 ] || dwp=
			if [ "$dwp" ] && (cd "$s_dir" && timeout 20 "$dwp" -o split.dwp ./*.dwo) >"$TMP/cc.log" 2>&1 &&
				! grep -q duplicate "$TMP/cc.log"; then
				rm "$s_dir"/*.dwo
				agrees "$cc -gsplit-dwarf, DWARF $version: frames of the .dwp file agree" "$s_dir/split"
			else
				skip "$cc -gsplit-dwarf, DWARF $version: frames of the .dwp file agree" "no packer for these files"
			fi
		else
			skip "$cc -gsplit-dwarf, DWARF $version: frames agree" "$cc cannot build it"
		fi
	done
done

# --- debug files
mkdir -p "$TMP/debug"
id=$(readelf -n "$TMP/gcc-dwarf5" | awk '/Build ID/ { print $3 }')
dir=$TMP/debug/.build-id/$(printf %.2s "$id")
mkdir -p "$dir"
objcopy --only-keep-debug "$TMP/gcc-dwarf5" "$dir/${id#??}.debug"
strip -o "$TMP/stripped" "$TMP/gcc-dwarf5"
agrees "frames of a stripped program with a debug file agree" "$TMP/stripped" -g "$dir/${id#??}.debug" -o "--debug-dir $TMP/debug"
if command -v dwz >/dev/null; then
	cp "$TMP/gcc-dwarf4" "$TMP/dwz-a"
	cp "$TMP/gcc-O0" "$TMP/dwz-b"
	cp "$TMP/gcc-cc" "$TMP/dwz-c"
	if dwz -m "$TMP/dwz-common" -M "$TMP/dwz-common" "$TMP/dwz-a" "$TMP/dwz-b" "$TMP/dwz-c" 2>"$TMP/cc.log" &&
		readelf -SW "$TMP/dwz-a" | grep -q gnu_debugaltlink; then
		# llvm-symbolizer reads no alternate file
		agrees "dwz -m: frames whose information is in the alternate file agree" "$TMP/dwz-a" -p addr2line,eu
	else
		skip "dwz -m: frames whose information is in the alternate file agree" "dwz moved nothing"
	fi
else
	skip "dwz -m: frames whose information is in the alternate file agree" "no dwz"
fi

# --- installed programs; llvm-symbolizer has no names for functions that are not in debug information
llvm=$llvm,llvm:none
while read -r file max; do
	if [ -r "$file" ]; then
		agrees "${file##*/}: $max addresses agree with other symbolizers" "$file" -s 64 -r -m "$max" -e 100
	else
		skip "${file##*/}: $max addresses agree with other symbolizers" "not installed"
	fi
done <<-L
	/usr/bin/python3.11 4000
	/usr/lib/x86_64-linux-gnu/libc.so.6 4000
	/bin/bash 2000
L

# --- the comparison finds differences
mkdir "$TMP/lying"
lies() {
	printf '#!/bin/sh\n"%s/symbolize" "$@" | %s\n' "$BIN" "$2" >"$TMP/lying/symbolize"
	chmod +x "$TMP/lying/symbolize"
	STACKTOOLS_BIN=$TMP/lying status 1 "the comparison notices $1" timeout 300 perl "$cmp" -s 1 -e 400 -a "$llvm,$gnu,$eu" "$TMP/gcc-dwarf5"
}
lies "a wrong line" "perl -pe 's/(weigh\\.c:)(\\d+)\$/\$1 . (\$2 + 1)/e if !\$n && /weigh\\.c:\\d/ && ++\$n'"
lies "a missing inlined frame" "perl -ne 'if (/inlined/ && !\$n++) { <>; next } print'"
lies "a wrong name" "perl -pe 's/ main\\+0x/ niam+0x/ && \$n++ unless \$n'"
tap_done
