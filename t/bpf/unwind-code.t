#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# User stacks of programs built in many ways and blocked in many places match
# eu-stack and gdb, frame by frame.
# shellcheck disable=SC2016,SC2034,SC2154,SC2317 # Perl's variables; what unwind.sh uses; $rc and others of tap.sh; meanwhile() is called by record_blocked
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
. "$(dirname "$0")/../lib/unwind.sh"
need_bpf

# variant NAME TEXT [FLAG...]: builds calls.c with $compiler and starts it
variant() {
	v_name=$1
	v_text=$2
	shift 2
	build "$v_name" calls.c "$@"
	# shellcheck disable=SC2086 # words
	start "$v_name" "$W/$v_name" ${v_args-}
	printf '%s\t%s\n' "$v_name" "$v_text" >>"$TMP/variants"
}

compiler=gcc
variant O0 "gcc -O0" -O0
variant O1 "gcc -O1" -O1
variant O2 "gcc -O2" -O2
variant O3 "gcc -O3" -O3
variant Os "gcc -Os" -Os
variant omit "gcc -fomit-frame-pointer" -O1 -fomit-frame-pointer
variant keep "gcc -fno-omit-frame-pointer" -O2 -fno-omit-frame-pointer
variant cet "gcc -fcf-protection=full" -O2 -fcf-protection=full
variant nocet "gcc -fcf-protection=none" -O2 -fcf-protection=none
variant lto "gcc -flto" -O2 -flto
variant hard "gcc with stack protector and clash protection" -O2 -fstack-protector-all -fstack-clash-protection -fno-plt
variant large "gcc -mcmodel=large -ffunction-sections" -O2 -mcmodel=large -ffunction-sections -Wl,--gc-sections
variant accumulate "gcc -mno-accumulate-outgoing-args -mno-red-zone" -Os -mno-accumulate-outgoing-args -mno-red-zone
variant instrument "gcc -pg" -O2 -pg
variant static "gcc -static" -O2 -static
variant staticpie "gcc -static-pie" -O2 -static-pie
variant nopie "gcc -no-pie" -O2 -no-pie
variant gold "a program linked by gold" -O2 -fuse-ld=gold
# a stack that grows in segments; the first one is smaller than the program needs
v_args='30 16384' variant split "gcc -fsplit-stack" -O2 -fsplit-stack -fuse-ld=gold
variant nohdr "a program linked without .eh_frame_hdr" -O2 -Wl,--no-eh-frame-hdr
variant oneseg "a program with text and rodata in one segment" -O2 -Wl,-z,noseparate-code
variant debugframe "a program with only .debug_frame" -O2 -g -fno-asynchronous-unwind-tables -fno-unwind-tables
variant zframe "a program with only a compressed .debug_frame" -O2 -g -gz=zlib -fno-asynchronous-unwind-tables -fno-unwind-tables
compiler=clang
variant clang0 "clang -O0" -O0
variant clang2 "clang -O2" -O2
variant clang3 "clang -O3 -fomit-frame-pointer" -O3 -fomit-frame-pointer
variant clangs "clang -Oz" -Oz
variant clangcet "clang -fcf-protection=full" -O2 -fcf-protection=full
variant clangstatic "clang -static" -O2 -static
variant clangkeep "clang -fno-omit-frame-pointer" -O2 -fno-omit-frame-pointer
compiler=${CC:-cc}

record_blocked "$TMP/flags.cap"
while read -r name text; do
	agrees "$text" "$name"
done <"$TMP/variants"
agreed
finish

# calls_through SECTION PROGRAM: main calls fn_in_library through a stub in SECTION
calls_through() {
	objdump -d --disassemble=main "$2" | grep -q 'call .*<fn_in_library@plt>' &&
		objdump -d -j "$1" "$2" | grep -q '<fn_in_library@plt>:'
}

# Kinds of frames, and places to block in.
build realign0 realign.c -O0 -mavx
build realign2 realign.c -O2 -mavx
build realign3 realign.c -O3 -mavx -mstackrealign -fomit-frame-pointer
build except except.cc -O2 -x none -lstdc++
build except0 except.cc -O0 -x none -lstdc++
build signal signal.c -O2
build lazylib.so lazylib.c -O2 -fPIC -shared
build audit.so audit.c -O2 -fPIC -shared
build lazy lazy.c -O2 -Wl,-z,lazy "$W/lazylib.so" -Wl,-rpath,"$W"
build plt plt.c -O2 -fcf-protection=none -Wl,-z,lazy "$W/lazylib.so" -Wl,-rpath,"$W"
build pltnow plt.c -O2 -Wl,-z,now "$W/lazylib.so" -Wl,-rpath,"$W"
build pltsec plt.c -O2 -fcf-protection=full -Wl,-z,ibtplt "$W/lazylib.so" -Wl,-rpath,"$W"
build dl dl.c -O2
build dllib.so dllib.c -O2 -fPIC -shared
build threads threads.c -O2
build asm asm.c -O2 "$DATA/unwind/asmfn.S"
build asmfp asm.c -O1 -fno-omit-frame-pointer "$DATA/unwind/asmfn.S"
build nolibc nolibc.c -O2 -nostdlib -static -fno-stack-protector
build proofs proofs.c -O2 -fomit-frame-pointer
build uretprobes uretprobes.c -O2
build forks forks.c -O2
build deep calls.c -O2

for section in plt=.plt pltnow=.plt pltsec=.plt.sec; do
	ok "$section: main calls the library through this section" calls_through "${section#*=}" "$W/${section%=*}"
done

start realign0 "$W/realign0"
start realign2 "$W/realign2"
start realign3 "$W/realign3"
start except "$W/except"
start except0 "$W/except0"
EXCEPT_EARLY=1 start early "$W/except"
start signal "$W/signal"
start resolver "$W/lazy"
start plt "$W/plt"
start pltnow "$W/pltnow"
start pltsec "$W/pltsec"
LD_AUDIT="$W/audit.so" start auditor "$W/lazy"
start constructor "$W/dl" "$W/dllib.so" constructor
start function "$W/dl" "$W/dllib.so" function
start threads "$W/threads" small
start coroutine "$W/threads" coroutine
start asm "$W/asm"
start asmfp "$W/asmfp" frame-pointer
start neither "$W/asmfp" neither
start product "$W/asm" product
start nolibc "$W/nolibc"
start proofs "$W/proofs"
[ ! -e /sys/bus/event_source/devices/uprobe ] || start uretprobes "$W/uretprobes"
start forks "$W/forks"
start deep "$W/deep" 100
cp "$W/deep" "$W/short-lived"
start gone "$W/short-lived"
cp "$W/deep" "$W/replaced"
start replaced "$W/replaced"
# shellcheck disable=SC2016 # the inner shell's
! unshare -m true 2>"$TMP/unshare" || start elsewhere unshare -m sh -c 'mount -t tmpfs none /mnt && cp "$1" /mnt/calls && exec /mnt/calls' - "$W/deep"
settled
also child "$(sed -n 's/^child //p' "$W/forks.out")" "$W/forks.out"
rm "$W/short-lived"
cp "$W/threads" "$W/new" && mv "$W/new" "$W/replaced"

record_blocked "$TMP/places.cap"
agrees "realigned frames, -O0" realign0
agrees "realigned frames, -O2" realign2
agrees "realigned frames, -mstackrealign" realign3
agrees "C++: catch, destructor, terminate handler and condition variable, -O2" except
agrees "C++: catch, destructor, terminate handler and condition variable, -O0" except0
agrees "C++: a constructor that runs before main" early
agrees "signal handlers: normal and alternate stack, nested, above a leaf, above a first instruction" signal
agrees "a library function called through .plt, bound lazily" plt
agrees "a library function called through .plt, bound at the start" pltnow
agrees "a library function called through .plt.sec" pltsec
agrees "the resolver of a lazily bound function" resolver
# eu-stack knows only the libraries in the program's link map, not the auditor's libc
agrees "an auditor of the dynamic linker (LD_AUDIT)" auditor --oracles gdb
agrees "a constructor inside dlopen" constructor
agrees "a function of a library loaded with dlopen" function
agrees "threads with small stacks and a task made by clone" threads
# gdb, and eu-stack if RBP happens to look like a frame pointer, take the word behind a coroutine's
# first frame for a return address
agrees "a coroutine" coroutine --top 3 --verdict 'complete|stopped'
is "$(waits "$blocked_cap" '$h{scalar @{$w->{user_stack}}} = "" if $w->{pid} == '"$(pid_of coroutine)")" "3 " "a coroutine's stack has three frames"
agrees "assembly whose CFI uses RBX, remembered states and expressions" asm
agrees "assembly without CFI that keeps the frame pointer, and takes its frame down at once" asmfp
# no CFI covers _start: gdb guesses a caller and shows argc
agrees "a program without libc" nolibc --oracles eu --verdict 'complete|unverified|stopped'
# the debuggers do not look at the code; the program knows its own chains
agrees "code without CFI that proves its frames, a call through a null pointer" proofs --oracles ""
if [ -e "$W/uretprobes.pid" ]; then
	# the debuggers see the kernel's trampoline
	agrees "functions with a uretprobe" uretprobes --oracles ""
fi
agrees "a parent that has forked" forks
agrees "a forked child, which shares its parent's tables" child
agrees "a stack 100 calls deep" deep
# eu-stack reads .eh_frame from the process's memory; gdb needs the file
agrees "a program whose file was deleted" gone --oracles eu --nameless eu --no-chain
agrees "a program whose file was replaced by another" replaced --oracles eu --nameless eu --no-chain
# gdb alone: eu-stack opens the path in its own mount namespace
elsewhere="a program in its own mount namespace"
if [ -e "$W/elsewhere.pid" ]; then
	agrees "$elsewhere" elsewhere --oracles gdb
fi
agreed
[ -e "$W/uretprobes.pid" ] || skip "functions with a uretprobe" "no uprobes"
[ -e "$W/elsewhere.pid" ] || skip "$elsewhere" "$(cat "$TMP/unshare")"
finish
start leaderless "$W/threads" gone
record_blocked "$TMP/leaderless.cap"
agrees "a process whose main thread has ended" leaderless
agreed
tap_done
