#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# User stacks of i386 programs on this 64-bit kernel match gdb, frame by frame: as they are found,
# as they block, and from snapshots. eu-stack does not get beyond main of the programs that gcc
# has built, which aligns its stack.
# shellcheck disable=SC2016,SC2034,SC2154 # Perl's variables; what unwind.sh uses; $rc and others of tap.sh
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
. "$(dirname "$0")/../lib/unwind.sh"
need_bpf

build_compat "$DATA/unwind/compat.S" "$W/compat"
[ -z "$no_compat" ] || skip_all "$no_compat"

# variant NAME TEXT [FLAG...]: builds calls.c for i386 with $compiler and starts it
variant() {
	v_name=$1
	v_text=$2
	shift 2
	build "$v_name" calls.c -m32 "$@"
	start "$v_name" "$W/$v_name"
	printf '%s\t%s\n' "$v_name" "$v_text" >>"$TMP/variants"
}

variant O0 "gcc -O0" -O0
variant O2 "gcc -O2" -O2
variant Os "gcc -Os" -Os
variant omit "gcc -fomit-frame-pointer" -O1 -fomit-frame-pointer
variant keep "gcc -fno-omit-frame-pointer" -O2 -fno-omit-frame-pointer
variant static "gcc -static" -O2 -static
variant staticpie "gcc -static-pie" -O2 -static-pie
variant nopie "gcc -no-pie" -O2 -no-pie
variant realign "gcc -mstackrealign" -O2 -mstackrealign
variant debugframe "a program with only .debug_frame" -O2 -g -fno-asynchronous-unwind-tables -fno-unwind-tables
variant nohdr "a program linked without .eh_frame_hdr" -O2 -Wl,--no-eh-frame-hdr
compiler=clang
variant clang2 "clang -O2" -O2
compiler=${CC:-cc}

build signal signal.c -m32 -O2
build lazylib.so lazylib.c -m32 -O2 -fPIC -shared
build plt plt.c -m32 -O2 -fcf-protection=none -Wl,-z,lazy "$W/lazylib.so" -Wl,-rpath,"$W"
build dl dl.c -m32 -O2
build dllib.so dllib.c -m32 -O2 -fPIC -shared
build threads threads.c -m32 -O2
build forks forks.c -m32 -O2

start signal "$W/signal"
start plt "$W/plt"
start constructor "$W/dl" "$W/dllib.so" constructor
start threads "$W/threads" small
start forks "$W/forks"
start compat "$W/compat"
settled
also child "$(sed -n 's/^child //p' "$W/forks.out")" "$W/forks.out"

record_blocked "$TMP/compat.cap"
while read -r name text; do
	agrees "$text" "$name" --oracles gdb
done <"$TMP/variants"
agrees "signal handlers" signal --oracles gdb
agrees "a library function called through .plt, bound lazily" plt --oracles gdb
agrees "a constructor inside dlopen" constructor --oracles gdb
agrees "threads with small stacks and a task made by clone" threads --oracles gdb
agrees "a parent that has forked" forks
agrees "a forked child" child
agreed
is "$(waits "$TMP/compat.cap" '$h{join " ", $w->{user_stack_verdict}, scalar @{$w->{user_stack}}, $w->{user_stack}[0]{symbol} // "?"} = ""
	if $w->{pid} == '"$(pid_of compat)")" "complete 1 _start " "a program without libraries and CFI: its entry, which is complete"
finish

# Mode raw, which has no stacks of waits that began before.
build O2 calls.c -m32 -O2
start O2 "$W/O2"
start signal "$W/signal"
record_blocked "$TMP/raw.cap" --mode raw
waits "$TMP/raw.cap" '$h{join " ", $w->{user_stack_verdict}, $w->{user_stack}[-1]{symbol} // "?"} += 1 unless $w->{initial}' >"$TMP/raw.table"
like "$(cat "$TMP/raw.table")" '^complete _start [2-9]' "mode raw: the main threads' stacks are complete"
is "$(grep -vc '^complete ' "$TMP/raw.table")" 0 "mode raw: so are the other threads'"
diag 5 <"$TMP/raw.table"
finish

# A 64-bit program that calls i386 code is walked by the tables of what it executes, and no further.
build far far.c -O2 -no-pie
build farlib farlib.S -m32 -nostdlib -shared -Wl,-z,noseparate-code
start far "$W/far" "$W/farlib" "$(nm "$W/farlib" | sed -n 's/ T fn_narrow//p')"
record_blocked "$TMP/far.cap"
is "$(waits "$TMP/far.cap" '$h{join " ", $w->{user_stack_verdict}, $w->{user_stack_error}, map { $_->{symbol} // "-" } @{$w->{user_stack}}} = ""')" \
	"stopped 32-bit fn_narrow fn_far " "i386 code in a 64-bit program: the walk stops at code of the other kind, with the reason"
finish

# Processes that end before their mappings can be read.
build brief brief.c -m32 -O2
"$W/brief" 30 >/dev/null 2>&1 &
brief=$!
at_exit_kill "$brief"
until_true grep -q nanosleep "/proc/$brief/wchan" 2>/dev/null || sleep 0.2
want=$(timeout 20 gdb -nx -batch -iex "set auto-load off" -p "$brief" -ex backtrace 2>/dev/null |
	sed -n 's/^#.* in \(brief_[a-z]*\|main\) .*/\1/p' | paste -sd' ')
kill "$brief"
is "${want##* }" main "gdb shows the calls in an i386 process that waits longer"
rec_start "$TMP/brief.cap" -a -U -q --force
n=0
while [ "$n" -lt 100 ]; do
	"$W/brief"
	n=$((n + 1))
done
rec_stop
waits "$TMP/brief.cap" 'return unless $w->{comm} eq "brief" && grep({ ($_->{symbol} // "") =~ /nanosleep/ } @{$w->{user_stack}}) && !$w->{open};
	my $v = $w->{user_stack_verdict};
	my $c = join " ", grep { /^(brief_|main)/ } map { $_->{symbol} // "?" } @{$w->{user_stack}};
	$h{$v eq "complete" ? "complete $c" : $v} += $w->{count}' >"$TMP/brief.table"
between "$(sed -n "s/^complete $want //p" "$TMP/brief.table")" 50 100 "most of 100 short-lived i386 processes have the stack that gdb shows"
is "$(grep -c '^complete ' "$TMP/brief.table")" 1 "all complete stacks of them have the same calls"
between "$(counter "$TMP/brief.cap" unwind.snapshots_complete)" 1 1000000 "some are walked from snapshots"
diag 5 <"$TMP/brief.table"
tap_done
