#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# User stacks while something changes: at every instruction of a call, under
# preemption, vfork, exec, dlopen, in new processes; and walks that must not
# be reported as complete.
# shellcheck disable=SC2016,SC2034,SC2154,SC2317 # Perl's variables; what unwind.sh uses; $rc and others of tap.sh; meanwhile() is called by record_blocked
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
. "$(dirname "$0")/../lib/unwind.sh"
need_bpf

build calls calls.c -O2
build nocfi calls.c -O1 -fno-omit-frame-pointer -fno-asynchronous-unwind-tables -fno-unwind-tables
build asm asm.c -O2 "$DATA/unwind/asmfn.S"
build asmfp asm.c -O1 -fno-omit-frame-pointer "$DATA/unwind/asmfn.S"

# Depth.
start deep "$W/calls" 500
record_blocked "$TMP/512.cap" --depth 512
agrees "a stack 500 calls deep, --depth 512" deep
agreed
record_blocked "$TMP/127.cap"
agrees "a stack 500 calls deep, truncated at 127 frames" deep --top 127 --no-chain --verdict 'complete|truncated'
agreed
is "$(waits "$TMP/127.cap" '$h{"$w->{user_stack_verdict} " . @{$w->{user_stack}}}++ if grep { $_->{symbol} eq "fn_recurse" } @{$w->{user_stack}}' |
	sed 's/ [0-9]*$//')" "truncated 127" "a stack cut at the depth of 127 has the verdict truncated"
finish

# A walk through code that no table covers is not reported as complete.
start nocfi "$W/nocfi"
start neither "$W/asmfp" neither
start product "$W/asm" product
record_blocked "$TMP/unsure.cap"
# eu-stack alone: behind a call that does not return, gdb searches for the prologue of the next function
agrees "a program without CFI, walked by frame pointers and unverified" nocfi --oracles eu --verdict unverified
agrees "assembly without CFI and frame pointer, where the walk stops with a reason" neither --top 3 \
	--verdict stopped --reason 'no-row|no-frame-pointer|register'
agrees "a CFI expression that no table can hold, where the walk stops with a reason" product --no-chain --top 3 \
	--verdict stopped --reason expression
agreed
for name in neither product; do
	is "$(waits "$TMP/unsure.cap" '$h{scalar @{$w->{user_stack}}} = "" if $w->{pid} == '"$(pid_of "$name")")" "3 " \
		"$name: the stack has three frames"
done
finish

# A parent inside vfork cannot be stopped: the debugger gets it when the child releases it.
build spawn spawn.c -O2
mkfifo "$W/go-vfork" "$W/go-posix"
start vfork "$W/spawn" vfork "$W/go-vfork"
start posix "$W/spawn" posix "$W/go-posix"
meanwhile() {
	printf x >"$W/go-vfork"
	: >"$W/go-posix"
}
record_blocked "$TMP/spawn.cap"
meanwhile() { :; }
agrees "a parent inside vfork" vfork --busy --hook "printf x >$W/go-vfork"
# gdb alone: libc's clone3 has no CFI after its system call, and eu-stack takes RBP for a frame pointer there
agrees "a parent inside posix_spawn" posix --busy --oracles gdb --hook ": >$W/go-posix"
agreed
finish

# exec, dlopen and new processes during the recording.
build dl dl.c -O2
build dllib.so dllib.c -O2 -fPIC -shared
build forks forks.c -O2
mkfifo "$W/go-exec"
# shellcheck disable=SC2016 # the inner shell's
start exec sh -c 'read -r x <"$1"; exec "$2"' - "$W/go-exec" "$W/calls"
start later "$W/dl" "$W/dllib.so" later
meanwhile() {
	echo go >"$W/go-exec"
	kill -USR1 "$(pid_of later)"
}
record_blocked "$TMP/change.cap"
meanwhile() { :; }
if [ -z "${ORACLES_ONLY-}" ]; then
	agrees "a program executed during the recording" exec --no-initial --late --busy --exe calls
	agrees "a library loaded during the recording" later --no-initial --late --busy
	agreed
fi
finish

"$BIN/offcpu-record" -q --force -o "$TMP/new.cap" -- "$W/forks" <&7 >"$W/forks.out" 2>"$err" 7>&- &
rec_pid=$!
at_exit_kill "$rec_pid"
until_true grep -qs '^child' "$W/forks.out"
also child "$(sed -n 's/^child //p' "$W/forks.out")" "$W/forks.out"
also parent "$(sed -n 's/^chain \([0-9]*\) fn_parent.*/\1/p' "$W/forks.out")" "$W/forks.out"
settled
kill -STOP "$(pid_of parent)" "$(pid_of child)"
sleep 0.1
kill -CONT "$(pid_of parent)" "$(pid_of child)"
settled
rec_stop
blocked_cap=$TMP/new.cap
agrees "a command recorded from its start" parent --no-initial --late --busy
agrees "a child of a recorded command" child --no-initial --late --busy
agreed
finish

# Preempted anywhere: in the vdso, and between any two instructions.
build busy busy.c -O2
start busy "$W/busy"
rec "$TMP/busy.cap" --preempted -d 0.6 -p "$(pid_of busy)"
finish
waits "$TMP/busy.cap" 'if ($w->{preempted}) {
	my @f = @{$w->{user_stack}};
	my $own = join ";", grep /^(fn_|main)/, map { $_->{symbol} // "" } @f;
	$h{$w->{user_stack_verdict} . " " . ($own =~ s/^fn_clock;//r)} += $w->{count};
	$h{vdso} += $w->{count} if ($f[0]{module} // "") =~ /vdso/;
}' >"$TMP/busy"
is "$(grep -v ^vdso "$TMP/busy" | sed 's/ [0-9]*$//')" "complete fn_clocks;fn_thread
complete fn_clocks;main" "threads preempted anywhere have complete stacks with their callers"
like "$(grep ^vdso "$TMP/busy")" '^vdso [1-9]' "some threads are preempted inside the vdso"

# The same PC in the same process, but with another frame: the table of the previous library is not used.
build swap swap.c -O2
build swap8.so swaplib.S -DSIZE=8 -DSLOT=0 -shared
build swap1k.so swaplib.S -DSIZE=1032 -DSLOT=8 -shared
swapped="complete swap1k.so fn_naps;fn_swapped;main 100
complete swap8.so fn_naps;fn_swapped;main 200"
: >"$TMP/swap.wrong"
# A recorder that gets no CPU time counts waits in two libraries as one: their frames then have a reason in
# place of a name. Whose table a stack was walked by before the recorder had heard of the library is not certain:
# it ends there.
true='complete (swap(0|1k|8)\.so fn_naps;fn_swapped;main|\? fn_naps;\?;main)|stopped (swap(0|1k|8)\.so fn_naps;fn_swapped|\? fn_naps;\?)'
swaps() { # CAP
	waits "$1" 'my @f = @{$w->{user_stack} || []};
		my $own = join ";", map { $_->{symbol} // ($_->{reason} =~ /^another file was mapped here/ ? "?" : "none") } @f;
		my ($lib) = map { $_->{module} =~ m,([^/]*)$, } grep { ($_->{symbol} // "") eq "fn_swapped" } @f;
		$own =~ s/^.*?fn_naps/fn_naps/ && ($h{"$w->{user_stack_verdict} " . ($lib // "?") . " " . ($own =~ s/;__libc.*//r)} += $w->{count});'
}
for _ in 1 2 3 4 5 6 7 8 9 10; do
	"$BIN/offcpu-record" -q --force -o "$TMP/swap.cap" -- "$W/swap" "$W/swap8.so" "$W/swap1k.so" "$W/swap8.so" \
		>"$W/swap.out" 2>"$err" 7>&-
	swaps "$TMP/swap.cap" >"$TMP/swap"
	sed 's/ [0-9]*$//' "$TMP/swap" | grep -vxE "$true" >>"$TMP/swap.wrong"
	[ "$(cat "$TMP/swap")" != "$swapped" ] || break
done
is "$(sort -u "$W/swap.out" | wc -l)" 1 "three libraries are mapped in turn at one address"
is "$(cat "$TMP/swap")" "$swapped" "the frames of each library are walked with its own table"
is "$(cat "$TMP/swap.wrong")" "" "no stack uses the table of another library; a frame without a name has the reason"
diag <"$TMP/swap"

build step step.c -O2 -Wl,-z,lazy
start step "$W/step"
until_true grep -q chain "$W/step.out"
rec_start "$TMP/step.cap" -q --force -p "$(pid_of step)"
kill -USR1 "$(pid_of step)"
until_true grep -q '^steps' "$W/step.out"
rec_stop
"$BIN/symbolize" -q --no-inline "$TMP/step.cap" | perl "$DATA/unwind/steps" "$(pid_of step)" >"$TMP/steps" 2>&1
is $? 0 "stacks at every instruction of a call have the same callers; all but longjmp's are complete"
diag <"$TMP/steps"
finish
steps=$(sed -n 's/^steps //p' "$W/step.out")
# shellcheck disable=SC2046 # words
set -- $(tail -n 1 "$TMP/steps")
between "${1:-0}" $((steps * 9 / 10)) "$steps" "stacks are recorded at nearly every one of $steps instructions"
between "${3:-0}" 3 1000 "some of the instructions are in PLT entries"
between "${4:-0}" 100 100000 "many of the instructions are in the dynamic linker"

for n in 2 6 12 40 150 400 1200 2500; do
	start "step-$n" "$W/step" "$n"
done
record_blocked "$TMP/steps.cap"
for n in 2 6 12 40 150 400 1200 2500; do
	agrees "a call interrupted at instruction $n" "step-$n"
done
agreed

# The same if the recorder hears of nothing while the library in the middle is there, in whose frames the table of the
# one before it finds the end of the stack.
build swap0.so swaplib.S -DSIZE=1032 -DSLOT=8 -DWORD=0 -shared
: >"$W/swap.out"
"$BIN/offcpu-record" -q --force -o "$TMP/stopped.cap" -- "$W/swap" "$W/swap8.so" "$W/swap0.so" "$W/swap8.so" \
	>"$W/swap.out" 2>"$err" 7>&- &
rec_pid=$!
at_exit_kill "$rec_pid"
said() { [ "$(wc -l <"$W/swap.out")" -ge "$1" ]; }
until_true said 1
kill -STOP "$rec_pid"
until_true said 3
kill -CONT "$rec_pid"
wait "$rec_pid"
swaps "$TMP/stopped.cap" >"$TMP/swap"
is "$(sort -u "$W/swap.out" | wc -l)" 1 "three libraries are mapped in turn at one address, while the recorder is stopped"
is "$(sed 's/ [0-9]*$//' "$TMP/swap" | grep -vxE "$true")" "" "no stack is complete that was walked by the table of another library"
is "$(grep swap0 "$TMP/swap")" "stopped swap0.so fn_naps;fn_swapped 100" "those of the library that it had not heard of end there"
is "$(waits "$TMP/stopped.cap" '$h{$w->{user_stack_error}} = "" if $w->{user_stack_verdict} eq "stopped"')" \
	"not-ready " "and say why"
tap_done
