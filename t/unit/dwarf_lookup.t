#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck disable=SC2046,SC2086,SC2154 # flags are several words; $out and $rc come from tap.sh
. "$(dirname "$0")/../lib/tap.sh"

lookup="$OBJ/t/unit/dwarf_lookup"
# other versions have other columns and names
llvm=$(command -v llvm-symbolizer-19)
src=$DATA/dwarf_lookup

command -v gcc >/dev/null || skip_all "no C compiler for the test programs"
cd "$TMP" || exit 1

# addresses FILE STEP: prints every STEP-th address of the file's code, in hex
addresses() {
	readelf -SW "$1" | awk '$2 == ".text" || $3 == ".text" { sub(/.*PROGBITS/, ""); print $1, $3 }' |
		while read -r from size; do
			seq $((0x$from)) "$2" $((0x$from + 0x$size)) | xargs printf '0x%x\n'
		done
}

# llvm-symbolizer takes functions' names from the symbol table if there is one
without_symbols() {
	objcopy --strip-all --keep-section='.debug*' "$1" "$1.bare"
}

# agree NAME FILE [ARGUMENT...]: names, files, lines and columns of all frames are llvm-symbolizer's;
# the ARGUMENTs are for $lookup
agree() {
	t_what=$1 t_file=$2
	shift 2
	if [ -z "$llvm" ]; then
		skip "$t_what" "no llvm-symbolizer-19"
		return
	fi
	without_symbols "$t_file"
	addresses "$t_file" 7 >addr
	"$llvm" --inlines --no-demangle --obj="$t_file.bare" <addr | sed 's/ (approximate)$//' >want
	timeout 60 "$lookup" --lookup "$@" <addr >got 2>errors
	if [ "$(grep -c . want)" -lt 100 ]; then
		fail "$t_what: llvm-symbolizer prints fewer than 100 lines"
	else
		same want got "$t_what"
	fi
}

# built COMMAND...: runs it; if it fails, skips a test and returns false
built() {
	"$@" >build.log 2>&1 && return 0
	skip "$*" "the compiler does not support this"
	return 1
}

c="-w -std=gnu11 -D_GNU_SOURCE -I$TOP/lib $TOP/lib/base/json.c $TOP/lib/base/text.c $TOP/lib/base/base.c -shared -fPIC"

for flags in "-O0 -g" "-O2 -g" "-O3 -gdwarf-4" "-O2 -gdwarf-3" "-O2 -gdwarf-2" "-O2 -g -flto" \
	"-O2 -g -gz" "-O2 -gdwarf-4 -fdebug-types-section" "-O2 -g -ffunction-sections -Wl,--gc-sections" \
	"-O2 -g -gdwarf64"; do
	built gcc $flags $c -o a.so && agree "gcc $flags" a.so a.so
done
for flags in "-O0 -g" "-O2 -g" "-O3 -gdwarf-4" "-O2 -gdwarf-3" "-O2 -gdwarf-2"; do
	if command -v clang >/dev/null; then
		built clang $flags $c -o a.so && agree "clang $flags" a.so a.so
	else
		skip "clang $flags" "no clang"
	fi
done
for flags in "g++ -O0 -g" "g++ -O2 -g" "g++ -O3 -gdwarf-4" "clang++ -O2 -g" "clang++ -O2 -gdwarf-4"; do
	built $flags "$src/many.cc" -o many && agree "C++: $flags" many many
done
for flags in "-O0 -g" "-O2 -g" "-Os -g"; do
	built gcc $flags "$src/nested.c" -o nested && agree "functions inside a function: $flags" nested nested
done

# --- alternate files
if command -v dwz >/dev/null && built gcc -O2 -gdwarf-4 $c -o a.so && cp a.so whole.so &&
	gcc -O2 -gdwarf-4 $c -Wl,-soname,other -o b.so && dwz -m alt a.so b.so 2>build.log && [ -e alt ]; then
	addresses a.so 7 >addr
	"$lookup" --lookup whole.so <addr >want
	"$lookup" --lookup -a alt a.so <addr >got
	same want got "what dwz moved to an alternate file is found there"
	"$lookup" --lookup a.so <addr >got
	like "$(cat got)" '^error ENOENT$' "without the alternate file the missing names are reported"
	"$lookup" --lookup whole.so <addr | grep -c ':[0-9]*:[0-9]*$' >want
	grep -c ':[0-9]*:[0-9]*$' got >lines
	same want lines "without the alternate file every line is still found"
else
	skip "alternate files" "no dwz"
fi

# --- split DWARF
for flags in "gcc -O2 -g" "gcc -O2 -gdwarf-4" "clang -O2 -g -fno-split-dwarf-inlining" \
	"clang -O2 -gdwarf-4 -fno-split-dwarf-inlining"; do
	rm -f ./*.dwo ./*.dwp ./*.o
	built $flags -gsplit-dwarf ${c%-shared*} -fPIC -c || continue
	${flags%% *} -shared ./*.o -o split
	addresses split 7 >addr
	"$lookup" --lookup split <addr 2>&1 >/dev/null | sed -n 's/^want \([^ ]*\) /\1=/p' >wanted
	is "$(wc -l <wanted)" 3 "$flags: each missing .dwo is requested once"
	agree "$flags: .dwo files" split split $(cat wanted)
	case $flags in
	# binutils' dwp reads the ID of a unit where DWARF 4 has it, and mistakes all units of DWARF 5 for one
	"gcc -O2 -g") false ;;
	gcc*) timeout 20 dwp -o split.dwp ./*.dwo >build.log 2>&1 ;;
	*) timeout 20 llvm-dwp-19 ./*.dwo -o split.dwp >build.log 2>&1 ;;
	esac || rm -f split.dwp
	if [ -s split.dwp ] && ! grep -q duplicate build.log; then
		agree "$flags: a .dwp" split -w split.dwp split
	else
		skip "$flags: a .dwp" "no packer for these files"
	fi
done

# --- hostile input
gcc -g -O2 "$src/nested.c" -o small5 2>build.log
gcc -gdwarf-4 -O2 "$src/nested.c" -o small4 2>build.log
for file in small5 small4; do
	for how in truncate flip; do
		status 0 "$how: damaged debug sections of $file do no harm" \
			timeout 300 "$lookup" --hostile $how $file
	done
done
tap_done
