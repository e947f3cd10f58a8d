#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# fold: folds the output of perf script.
. "$(dirname "$0")/../lib/tap.sh"
F=$DATA/fold
fold=$BIN/fold
reference=${STACKCOLLAPSE:-$(command -v stackcollapse-perf.pl)}

# in_file TEXT: writes TEXT, a printf format, to $TMP/in
in_file() {
	# shellcheck disable=SC2059 # the format is the text
	printf "$1" >"$TMP/in"
}

# folds NAME TEXT WANT [OPTION...]: status 0, the output is WANT, nothing on stderr
folds() {
	t_name=$1
	in_file "$2"
	t_want=$3
	shift 3
	run "$fold" "$@" "$TMP/in"
	is "$rc:$(cat "$out" "$err")" "0:$t_want" "$t_name"
}

# damaged NAME TEXT WANT MESSAGE: status 1, the output is WANT, MESSAGE matches stderr
damaged() {
	in_file "$2"
	run "$fold" "$TMP/in"
	is "$rc:$(cat "$out")" "1:$3" "$1: the rest is folded, status 1"
	like "$(cat "$err")" "$4" "$1: the message says what and where"
}

A='ab 1/2 [000] 1.5: 10 ev: \n\t12 f+0x1 (/x)\n\t34 main (/x)\n\n'
C='cd 3/4 [000] 1.6: 5 other: \n\t12 g+0x1 (/x)\n\t34 main (/x)\n\n'
J='ab 1/2 1.5: 10 ev: \n\t12 f (/x)\n\tjunk\n\n'
B='cd 3/4 [000] 1.6: 5 ev: \n\t12 g+0x1 (/x)\n\t34 main (/x)\n\n'

## the same output as stackcollapse-perf.pl

# --all marks more than its own
while read -r opts; do
	ours=$(echo "$opts" | sed 's/--all/--kernel --jit/')
	for in in "$F"/*.in; do
		name=$(basename "$in" .in)
		awk -v o="## $opts" '/^## / { on = $0 == o; next } on' "$F/$name.want" >"$TMP/want"
		# shellcheck disable=SC2086 # an option set is several words
		"$fold" $ours "$in" >"$TMP/got" 2>"$TMP/err"
		same "$TMP/got" "$TMP/want" "$name folds as stackcollapse-perf.pl does with '$opts'"
	done
done <"$F/options"

if [ -n "$reference" ]; then
	ok "random streams fold as the installed stackcollapse-perf.pl does" \
		sh "$F/diff" "$reference" 1 6
else
	skip "random streams fold as the installed stackcollapse-perf.pl does" \
		"no stackcollapse-perf.pl on PATH or in STACKCOLLAPSE"
fi

for seed in 1 2 3; do
	perl "$F/gen" $seed >"$TMP/random"
	"$fold" "$TMP/random" >"$TMP/got" 2>/dev/null
	LC_ALL=C sort "$TMP/got" >"$TMP/sorted"
	same "$TMP/got" "$TMP/sorted" "a hostile stream ($seed) is folded in the order of sort(1)"
	cut -f 1 "$TMP/got" >/dev/null
	"$fold" - <"$TMP/random" >"$TMP/piped" 2>/dev/null
	same "$TMP/piped" "$TMP/got" "a hostile stream ($seed) folds the same from a file and from stdin"
done

# inlined frames of our own binary: the oracle is addr2line
start=$(nm "$fold" 2>/dev/null | awk '$3 == "main" { print $1 }')
addr=$(perl -e 'my $a = hex shift; printf "%x\n", $a + 16 * $_ for 0 .. 4000' "${start:-0}" |
	addr2line -a -i -f -s -C -e "$fold" 2>/dev/null |
	awk '/^0x/ { a = $0; n = 0; next } ++n == 4 && !found { found = 1; sub(/^0x0*/, "", a); print a }')
if [ -n "$addr" ]; then
	addr2line -a -i -f -s -C -e "$fold" "$addr" | sed 1d >"$TMP/a2l"
	want=$(awk 'NR % 2 { s = $0 (s ? ";" s : "") } END { print s }' "$TMP/a2l")
	folds "--inline expands a frame like addr2line" \
		"ab 1/2 1.5: 7 ev: \n\t$addr outer+0x1 ($fold)\n\n" "ab;$want 7" --inline
	want=$(sed 's/ (discriminator [0-9]*)//' "$TMP/a2l" |
		awk 'NR % 2 { f = $0; next } { s = f ":" $0 (s ? ";" s : "") } END { print s }')
	folds "--context adds file and line" \
		"ab 1/2 1.5: 7 ev: \n\t$addr outer+0x1 ($fold)\n\n" "ab;$want 7" --inline --context
else
	skip "--inline expands a frame like addr2line" "no inlined function in $fold, or no addr2line"
fi
folds "--inline looks up the symbol if the run-time address is not in the file" \
	"ab 1/2 1.5: 7 ev: \n\tfff000000000 main+0x0 ($fold)\n\n" "ab;main 7" --inline
in_file "ab 1/2 1.5: 7 ev: \n\t12 f+0x1 (/nonexistent;touch $TMP/pwned;)\n\n"
run "$fold" --inline "$TMP/in"
is "$rc:$(cat "$out")" "0:ab;f 7" "--inline keeps the symbol of perf if the file is missing"
ok "--inline does not run a command in a file name" test ! -e "$TMP/pwned"
in_file "$A"
PATH='' run "$fold" --inline "$TMP/in"
is "$rc:$(cat "$out")" "2:" "--inline without addr2line gives status 2 and nothing on stdout"
like "$(cat "$err")" 'hint: it is part of binutils' "the hint for a missing addr2line names its package"

## beyond stackcollapse-perf.pl

folds "records of the same stack are summed" "$A$A$B" "ab;main;f 20
cd;main;g 5"
folds "sums beyond 64 bits are exact" \
	'ab 1 1.5: 18446744073709551615 e:\n\t1 f (x)\n\nab 1 1.5: 18446744073709551615 e:\n\t1 f (x)\n\n' \
	"ab;f 36893488147419103230"
cp "$F/ours.in" "$TMP/ours"
run "$fold" "$TMP/ours"
is "$rc:$(wc -l <"$out"):$(cat "$err")" "0:4:" "the output of symbolize folds without a message"
run "$fold" --unit=count "$TMP/ours"
is "$(cat "$out")" "client;poll;__schedule;--;try_to_wake_up;main 2
kworker/0:1;__schedule 1
server;main;__vdso_gettimeofday;io_schedule;__schedule 1
server;main;read;do_syscall_64;__schedule 15" "--unit=count sums the counts in the comments"
run "$fold" --unit=us "$TMP/ours"
is "$(cat "$out")" "client;poll;__schedule;--;try_to_wake_up;main 2600
server;main;__vdso_gettimeofday;io_schedule;__schedule 2
server;main;read;do_syscall_64;__schedule 3856" "--unit=us rounds the exact sum to the nearest microsecond"
like "$(cat "$err")" '1 stacks? .*less than half' "a stack that rounds to zero is reported"
is "$rc" 0 "a stack that rounds to zero is not an error"
run "$fold" --unit=ms "$TMP/ours"
is "$(sed 's/.* //' "$out" | tr '\n' ' ')" "3 4 " "--unit=ms rounds the exact sum to the nearest millisecond"
folds "a record without a count counts as one" "$A$A" "ab;main;f 2" --unit=count
folds "a comment applies only to the record directly after it" \
	"# wait: count=7\n# another\n$A# wait: count=5 x=1\n$B" "ab;main;f 1
cd;main;g 5" --unit=count
in_file "# wait: count=x7\n$A$B"
run "$fold" --unit=count "$TMP/in"
is "$rc:$(cat "$out")" "1:cd;main;g 1" "a record whose count is not a number is skipped"
like "$(cat "$err")" "line 2 of .*count that is no" "a count that is not a number is reported"

folds "--reverse reverses the whole line" "$A$B" "f;main;ab 10
g;main;cd 5" --reverse
folds "--all marks inlined functions, of each of perf's forms" \
	'ab 1/2 1.5: 7 e:\n\tffffffff81000000 k ([kernel.kallsyms])\n\t1 std::f<int>(int) (inlined)\n\t1 a->b (x)\n\t2 m_[i] (inlined)\n\t2 inlined (/inlined)\n\n' \
	"ab;inlined;m_[i];a;b_[i];std::f<int>_[i];k_[k] 7" --all
folds "and --kernel --jit those that stackcollapse-perf.pl marks" \
	'ab 1/2 1.5: 7 e:\n\t1 f (inlined)\n\t1 a->b (x)\n\n' "ab;a;b_[i];f 7" --kernel --jit
folds "--reverse reverses inlined frames too" 'ab 1/2 1.5: 7 e:\n\t1 a->b (x)\n\t2 m (x)\n\n' \
	"b_[i];a;m;ab 7" --reverse
folds "--reverse prints a record without frames as its name" 'ab 1/2 1.5: 7 e:\n\n' "ab 7" --reverse
"$fold" --all "$F/perf-two-events.in" 2>/dev/null |
	perl -ne '/^(.*) (\d+)$/; print join(";", reverse split /;/, $1), " $2\n"' | LC_ALL=C sort >"$TMP/want"
"$fold" --all --reverse "$F/perf-two-events.in" 2>/dev/null >"$TMP/got"
same "$TMP/got" "$TMP/want" "--reverse gives the lines of flamegraph.pl --reverse"

run "$fold" --delimit "$TMP/ours"
is "$(cat "$out")" "client;poll;-;__schedule;--;try_to_wake_up;main 2600000
kworker/0:1;__schedule 499
server;main;__vdso_gettimeofday;-;io_schedule;__schedule 1500
server;main;read;-;do_syscall_64;__schedule 3856000" \
	"--delimit puts - between user and kernel; the vdso is user code"
# a wait of cd/4 that ab/2 ended, which zz/6 had woken
W='cd 3/4 1.5: 7 e:\n\tffffffff81000000 k ([kernel.kallsyms])\n\t1 in (inlined)\n\t1 m (x)\n# waker: ab 1/2\n#\tffffffff81000010 kw ([kernel.kallsyms])\n#\t2 win (inlined)\n#\t2 wm (x)\n# waker: z z 5/6\n#\t3 zm (x)\n\n'
T='cd 3/4 1.5: 7 e:\n\t1 m (x)\n# waker: [timer]\n#\tffffffff81000020 irq ([kernel.kallsyms])\n\n'
folds "the frames of wakers are comments" "$W$T" "cd;m 7
cd;m;in;k 7"
folds "--wakers puts the chain behind the stack, each waker innermost first" "$W$T" \
	"cd;m;--;irq;[timer] 7
cd;m;in;k;--;kw;win;wm;ab;--;zm;z_z 7" --wakers
folds "--wakers --tid has the IDs of wakers too" "$W" "cd-3/4;m;in;k;--;kw;win;wm;ab-1/2;--;zm;z_z-5/6 7" --wakers --tid
folds "--wakers --pid has those of their processes" "$W" "cd-3;m;in;k;--;kw;win;wm;ab-1;--;zm;z_z-5 7" --wakers --pid
folds "--wakers --delimit puts - between the halves of both" "$W" \
	"cd;m;in;-;k;--;kw;-;win;wm;ab;--;zm;z_z 7" --wakers --delimit
folds "--wakers --reverse reverses all of it" "$W" "z_z;zm;--;ab;wm;win;kw;--;k;in;m;cd 7" --wakers --reverse
folds "--wakers --kernel marks functions of the kernel there, too" "$T" "cd;m;--;irq_[k];[timer] 7" --wakers --kernel
folds "--wakers sums the same stack apart by its wakers, again and again" "$W$T$W$T" \
	"cd;m;--;irq;[timer] 14
cd;m;in;k;--;kw;win;wm;ab;--;zm;z_z 14" --wakers
folds "a waker without frames has its name" 'cd 3/4 1.5: 7 e:\n\t1 m (x)\n# waker: [hidden]\n\n' "cd;m;--;[hidden] 7" --wakers
folds "a waker of a record without frames" 'cd 3/4 1.5: 7 e:\n# waker: ab 1/2\n#\t2 w (x)\n\n' "cd;--;w;ab 7" --wakers
in_file 'cd 3/4 1.5: 7 e:\n\t1 m (x)\n# waker: ab 1/2\n#\tnot a frame\n#\t2 w (x)\n\n'
run "$fold" --wakers "$TMP/in"
is "$rc:$(cat "$out")" "1:cd;m;--;w;ab 7" "a line of a waker that is not a frame is skipped"
like "$(cat "$err")" "line 4 of .*neither header nor frame" "and reported"
in_file "$A"
run "$fold" --wakers "$TMP/in"
is "$rc:$(cat "$out")" "1:ab;main;f 10" "--wakers without a waker is incomplete"
like "$(cat "$err")" "no wait has a waker" "and reported"
like "$(cat "$err")" "hint: .*offcpu-record --wakers" "with what records them"
status 64 "--wakers and --runnable are refused together" "$fold" --wakers --runnable "$TMP/in"
folds "--delimit does not annotate the marker of a waker" \
	'ab 1/2 1.5: 7 e:\n\t1 w (x)\n\t0 -- ([waker])\n\t2 m (x)\n\n' "ab;m;--;w 7" --delimit --kernel
folds "--delimit recognizes a kernel address without a symbol" \
	'ab 1/2 1.5: 7 e:\n\tffffffff81000000 [unknown] ([unknown])\n\t2 m (x)\n\n' "ab;m;-;[unknown] 7" --delimit
folds "--threads starts with a frame for the thread" "$A$A$B" "[ab tid=2];ab;main;f 20
[cd tid=4];cd;main;g 5" --threads
folds "--threads separates threads of the same name" \
	'w x 1/2 1.5: 7 e:\n\t1 f (x)\n\nw x 1/3 1.5: 7 e:\n\t1 f (x)\n\n' "[w_x tid=2];w_x;f 7
[w_x tid=3];w_x;f 7" --threads
folds "--min drops smaller sums" "$A$A$B" "ab;main;f 20" --min=6
folds "--min keeps an equal sum" "$A$B" "ab;main;f 10
cd;main;g 5" --min=5
run "$fold" --unit=us --min=400us "$TMP/ours"
is "$(cat "$out")" "client;poll;__schedule;--;try_to_wake_up;main 2600
server;main;read;do_syscall_64;__schedule 3856" "--min accepts a time"
run "$fold" --unit=us --min=1500 "$TMP/ours"
is "$(wc -l <"$out")" 2 "--min without a unit is in the printed unit"
folds "--top keeps the greatest sums, in the order of the lines" \
	"${A}zz 1/2 1.5: 50 ev:\n\t1 f (x)\n\n${B}" "ab;main;f 10
zz;f 50" --top=2
folds "--top breaks a tie by the order of the lines" \
	'bb 1/2 1.5: 5 ev:\n\naa 1/2 1.5: 5 ev:\n\ncc 1/2 1.5: 9 ev:\n\n' "aa 5
cc 9" --top=2
folds "different stacks with the same text are one line" \
	'ab 1/2 1.5: 5 ev:\n\t1 a;b (x)\n\nab;c 1/2 1.5: 5 ev:\n\t1 d (x)\n\nab 1/2 1.5: 5 ev:\n\t1 d (x)\n\t2 c (x)\n\n' \
	"ab;a:b 5
ab;c;d 10"

## blocked and runnable time, kinds

K='\tffffffff81000000 schedule+0x1 ([kernel.kallsyms])\n\t34 main (/x)\n\n'
W="# wait: count=2 total_ns=100 runnable_ns=30 kind=fsync\nab 1/2 1.5: 100 ev: \n$K"
W="$W# wait: count=1 total_ns=50 runnable_ns=9 kind=preempted preempted=1\nab 1/2 1.5: 50 ev: \n$K"
W="$W# wait: count=4 total_ns=8 runnable_ns=8 kind=idle\ncd 3/4 1.5: 8 ev: \n\t12 g (/x)\n\n"
W="$W# wait: count=5 total_ns=3 runnable_ns=0 kind=poll\nef 5/6 1.5: 3 ev: \n\n"
OLD="# wait: count=12 total_ns=20 kind=fsync\nab 1/2 1.5: 20 ev: \n$K"

folds "--weight=both is the whole wait" "$W" "ab;main;schedule 150
cd;g 8
ef 3" --weight=both
folds "--weight=blocked is without runnable_ns; a preempted wait has nothing of it, and no line is 0" "$W" \
	"ab;main;schedule 70
ef 3" --weight=blocked
folds "--weight=runnable is runnable_ns, and the whole of a preempted wait" "$W" "ab;main;schedule 80
cd;g 8" --weight=runnable
folds "--runnable divides waits at [runnable] and [preempted]" "$W" "ab;main;schedule 70
ab;main;schedule;[preempted] 50
ab;main;schedule;[runnable] 30
cd;g;[runnable] 8
ef 3" --runnable
folds "--runnable --reverse: they are the innermost frames" "$W" "[preempted];schedule;main;ab 50
[runnable];g;cd 8
[runnable];schedule;main;ab 30
ef 3
schedule;main;ab 70" --runnable --reverse
folds "--runnable --delimit: they are behind the kernel's frames, unmarked" "$W" "ab;main;-;schedule_[k] 70
ab;main;-;schedule_[k];[preempted] 50
ab;main;-;schedule_[k];[runnable] 30
cd;g;[runnable] 8
ef 3" --runnable --delimit --kernel
folds "--runnable: a record without frames has one" "# wait: total_ns=9 runnable_ns=4\nab 1/2 1.5: 9 e: \n\n" "ab 5
ab;[runnable] 4" --runnable
folds "--runnable --reverse: a record without frames has one" \
	"# wait: total_ns=9 runnable_ns=4\nab 1/2 1.5: 9 e: \n\n" "[runnable];ab 4
ab 5" --runnable --reverse
folds "--runnable --unit=count counts each wait once" "$W" "ab;main;schedule 2
ab;main;schedule;[preempted] 1
cd;g 4
ef 5" --runnable --unit=count
folds "--runnable: a frame [runnable] of the text is the same line" \
	"# wait: total_ns=9 runnable_ns=4\nab 1/2 1.5: 9 e: \n\t34 main (/x)\n\n# wait: total_ns=7 runnable_ns=0\nab 1/2 1.5: 7 e: \n\t12 [runnable] (/x)\n\t34 main (/x)\n\n" \
	"ab;main 5
ab;main;[runnable] 11" --runnable
# sums over many records, by another program
perl -e 'srand 5; for (1..3000) { my $t = 1 + int rand 1e6; my $p = rand() < 0.2;
	printf "# wait: count=1 total_ns=%d runnable_ns=%d preempted=%d\nab 1/%d 1.5: %d e: \n\t12 f%d (/x)\n\t34 main (/x)\n\n",
		$t, rand($t + 1), $p, 2 + rand 4, $t, rand 40 }' >"$TMP/many"
perl -ne 'if (/total_ns=(\d+) runnable_ns=(\d+) preempted=(\d)/) { ($t, $r, $p) = ($1, $2, $3) }
	if (/ (f\d+) /) { $s{"ab;main;$1"} += $p ? 0 : $t - $r; $s{"ab;main;$1;[runnable]"} += $p ? 0 : $r; $s{"ab;main;$1;[preempted]"} += $p ? $t : 0 }
	END { print map { "$_ $s{$_}\n" } grep { $s{$_} } keys %s }' "$TMP/many" | LC_ALL=C sort >"$TMP/want"
"$fold" --runnable "$TMP/many" >"$TMP/got"
same "$TMP/got" "$TMP/want" "--runnable: the sums of 3000 waits are Perl's"
is "$("$fold" --runnable "$TMP/many" | awk '{ s += $NF } END { print s }')" \
	"$("$fold" "$TMP/many" | awk '{ s += $NF } END { print s }')" "--runnable does not change the total"

in_file "$W$OLD"
run "$fold" --weight=blocked "$TMP/in"
is "$rc:$(head -n 1 "$out")" "1:ab;main;schedule 70" "--weight leaves out waits without runnable_ns, status 1"
like "$(cat "$err")" '12 waits have no runnable_ns: they are left out' "the waits without runnable_ns are counted"
like "$(cat "$err")" 'hint: .*older recorder, or in a mode that does not measure it' "the hint says why runnable_ns is missing"
run "$fold" --runnable "$TMP/in"
is "$rc:$(head -n 1 "$out")" "0:ab;main;schedule 90" "--runnable keeps waits without runnable_ns whole, status 0"
like "$(cat "$err")" '12 waits have no runnable_ns: .*not shown apart' "--runnable reports waits without runnable_ns"
in_file "$OLD"
run "$fold" --runnable "$TMP/in"
is "$rc:$(cat "$out")" "1:ab;main;schedule 20" "--runnable where no wait has runnable_ns gives status 1"
in_file "$A"
run "$fold" --weight=runnable "$TMP/in"
is "$rc:$(cat "$out")" "1:" "--weight of perf's own text gives no line and status 1"
like "$(tr '\n' ' ' <"$err")" '1 wait has no runnable_ns: it is left out.*hint: only the text of symbolize' \
	"the hint for perf's own text names symbolize"
is "$(grep -c 'no runnable_ns' "$err")" 1 "a report is printed once"
in_file "# wait: total_ns=10 runnable_ns=11\n$A$B"
for option in --weight=blocked --weight=runnable --runnable; do
	run "$fold" $option "$TMP/in"
	like "$(cat "$err")" "line 2 of .*a runnable_ns that is greater than the whole wait" \
		"$option: a runnable_ns beyond the wait is malformed"
	is "$rc" 1 "$option: a runnable_ns beyond the wait gives status 1"
done
for words in "total_ns=99 runnable_ns=11" "total_ns=9 runnable_ns=10" "runnable_ns=11 preempted=1"; do
	in_file "# wait: $words\n$A$B"
	run "$fold" --weight=runnable "$TMP/in"
	like "$rc:$(grep malformed "$err")" "^1:.*line 2 of .*greater than the whole wait" "$words of a period of 10 is malformed"
done
folds "a preempted wait needs no runnable_ns" "# wait: preempted=1\n$A" "ab;main;f 10" --weight=runnable
in_file "# wait: runnable_ns=1x\n$A$B"
run "$fold" --runnable "$TMP/in"
is "$rc:$(cat "$out")" "1:cd;main;g 5" "a record whose runnable_ns is not a number is skipped"
like "$(cat "$err")" "line 2 of .*a number in the comment that is not a 64-bit one" "a runnable_ns that is not a number is reported"
folds "without the options the comment is not looked at" "# wait: total_ns=10 runnable_ns=1x\n$A" "ab;main;f 10"

## wall-clock time

S="# sample: count=3 total_ns=40 kernel=none user=complete\nab 1/2 [000] 1.5: 40 cpu-clock: \n\t34 main (/x)\n\n"
S="$S# sample: count=1 total_ns=13 kernel=complete user=complete\nab 1/2 [000] 1.5: 13 cpu-clock: \n$K"
V=$(printf '%s' "$W" | sed 's/ ev: / offcpu-time: /g')
folds "--wall sums waits and samples, each below the frame of its state" "$V$S" "ab;main;[on-CPU] 40
ab;main;schedule;[blocked] 70
ab;main;schedule;[on-CPU] 13
ab;main;schedule;[preempted] 50
ab;main;schedule;[runnable] 30
cd;g;[runnable] 8
ef;[blocked] 3" --wall
folds "--wall: the order of the events does not matter" "$S$V" "$("$fold" --wall "$TMP/in")" --wall
folds "--side-by-side: the state is the outermost frame" "$V$S" "[blocked];ab;main;schedule 70
[blocked];ef 3
[on-CPU];ab;main 40
[on-CPU];ab;main;schedule 13
[preempted];ab;main;schedule 50
[runnable];ab;main;schedule 30
[runnable];cd;g 8" --side-by-side
folds "--wall --reverse: the state is the innermost frame" "$V$S" "[blocked];ef 3
[blocked];schedule;main;ab 70
[on-CPU];main;ab 40
[on-CPU];schedule;main;ab 13
[preempted];schedule;main;ab 50
[runnable];g;cd 8
[runnable];schedule;main;ab 30" --wall --reverse
folds "--side-by-side --reverse --threads: the state is the last frame" \
	"# wait: total_ns=9 runnable_ns=0\nab 1/3 1.5: 9 offcpu-time: \n\n$S" "ab;[ab tid=3];[blocked] 9
main;ab;[ab tid=2];[on-CPU] 40
schedule;main;ab;[ab tid=2];[on-CPU] 13" --side-by-side --reverse --threads
folds "--wall --no-idle leaves out idle threads' waits, and no sample" "$V$S" "ab;main;[on-CPU] 40
ab;main;schedule;[blocked] 70
ab;main;schedule;[on-CPU] 13
ab;main;schedule;[preempted] 50
ab;main;schedule;[runnable] 30
ef;[blocked] 3" --wall --no-idle
# the total is that of both events, of many records, by another program
perl -pe 's/ e: $/ offcpu-time: /; BEGIN { srand 6 } if (/^# wait/ && rand() < 0.4) { $on = 1; s/.*/# sample: count=1 total_ns=1/ }
	$on = 0 if $on && s/ offcpu-time: $/ cpu-clock: /' "$TMP/many" >"$TMP/both"
total() { # REGULAR-EXPRESSION FILE: the sum of what its first group matches
	perl -sne '$n += $1 if /$of/; END { print $n + 0 }' -- "-of=$1" "$2"
}
all=$(total ' (\d+) (offcpu-time|cpu-clock): $' "$TMP/both")
samples=$(total ' (\d+) cpu-clock: $' "$TMP/both")
for option in --wall --side-by-side; do
	"$fold" $option "$TMP/both" >"$TMP/folded"
	is "$(total ' (\d+)$' "$TMP/folded")" "$all" "$option: the total of 3000 records is that of both events"
	is "$(total '\[on-CPU\].* (\d+)$' "$TMP/folded")" "$samples" "$option: and what is on the CPU that of the samples"
done
in_file "$V"
run "$fold" --wall "$TMP/in"
is "$rc:$(wc -l <"$out")" "1:5" "--wall of waits alone folds them, status 1"
like "$(tr '\n' ' ' <"$err")" 'no record is a sample of the CPU .*hint: offcpu-record --on-cpu records both' "and says what is missing"
in_file "$S"
run "$fold" --side-by-side "$TMP/in"
is "$rc:$(wc -l <"$out")" "1:2" "--side-by-side of samples alone folds them, status 1"
like "$(head -n 1 "$err")" 'no record is of a wait' "and says what is missing"
in_file "$W"
run "$fold" --wall "$TMP/in"
is "$rc:$(cat "$out")" "1:" "--wall folds no other event"
like "$(cat "$err")" "no record is of event 'offcpu-time'; the first one is of 'ev'" "and says which there is"
in_file "$(printf '%s' "$OLD" | sed 's/ ev: / offcpu-time: /')$S"
run "$fold" --wall "$TMP/in"
is "$rc:$(sed -n 2p "$out")" "1:ab;main;schedule;[blocked] 20" "--wall: a wait without runnable_ns is blocked, as far as is known"
like "$(cat "$err")" '12 waits have no runnable_ns: .*not shown apart' "and that is reported"
in_file "# wait: total_ns=10 runnable_ns=11\nab 1/2 1.5: 10 offcpu-time: \n\n$S"
run "$fold" --wall "$TMP/in"
like "$rc:$(grep malformed "$err")" "^1:.*line 2 of .*greater than the whole wait" "--wall: a runnable_ns beyond the wait is malformed"
for other in --unit=count --weight=blocked --runnable --kind=lock --wakers --kind-frames --event-filter=x; do
	status 64 "--wall $other is a usage error" "$fold" --wall "$other" "$TMP/in"
	like "$(head -n 1 "$err")" "--wall and ${other%%=*}(=count)? exclude one another" "$other: the message names both"
done

folds "--kind folds waits of these kinds" "$W" "ab;main;schedule 100
ef 3" --kind=fsync,poll
folds "--kind may be given several times" "$W" "ab;main;schedule 100
cd;g 8" --kind=idle --kind=lock,fsync
folds "--kind compares whole words" "$W# wait: kind=pol\n$B" "ef 3" --kind=poll,po,ll
folds "--no-idle leaves out idle threads, and keeps records without a kind" "$W$B" "ab;main;schedule 150
cd;main;g 5
ef 3" --no-idle
folds "--kind and --no-idle together" "$W" "ef 3" --kind=idle,poll --no-idle
folds "--kind with --weight and --threads" "$W" "[ab tid=2];ab;main;schedule 70" --kind=fsync --weight=blocked --threads
in_file "$W"
run "$fold" --kind=site-cache "$TMP/in"
is "$rc:$(cat "$out")" "1:" "--kind: a kind that does not occur gives status 1"
like "$(cat "$err")" "no wait is of these kinds; the first one is of kind 'fsync'" "--kind: a kind that does not occur is reported"
run "$fold" --kind=fsync --no-idle "$TMP/in"
is "$rc:$(cat "$err")" "0:" "--kind: what it leaves out is not reported if something is left"
in_file "$W$A"
run "$fold" --kind=poll "$TMP/in"
is "$rc:$(cat "$out")" "1:ef 3" "--kind leaves out records without a kind, status 1"
like "$(tr '\n' ' ' <"$err")" '1 wait has no kind: it is left out.*hint: .*older symbolize' "--kind reports records without a kind"
in_file "$A$A"
run "$fold" --kind=poll "$TMP/in"
is "$rc:$(cat "$out")" "1:" "--kind of perf's own text gives no line and status 1"
like "$(tr '\n' ' ' <"$err")" '2 waits have no kind: they are left out.*hint: only the text of symbolize' \
	"--kind: the hint for perf's own text names symbolize"
in_file "\tgarbage\n$W"
run "$fold" --kind=none "$TMP/in"
is "$(grep -c 'reads the text of' "$err")" 0 "text of which an option leaves out all is not called something else"

## names with balanced brackets

for cxx in g++ clang++; do
	if command -v $cxx >/dev/null && $cxx -std=c++17 -w -c -o "$TMP/functions.o" "$F/functions.cc" 2>/dev/null; then
		ok "--balanced leaves of $cxx's names what c++filt -p does, and none becomes another" \
			perl "$F/functions" "$fold" "$TMP/functions.o"
	else
		skip "--balanced leaves of $cxx's names what c++filt -p does, and none becomes another" "no $cxx"
	fi
done
N='\t1 main::{lambda(int)#1}::operator()(int) const+0x1 (/x)\n'
N="$N"'\t2 <fn() -> T as core::ops::FnOnce<Args>>::call_once{{vtable.shim}}+0x2 (/x)\n'
folds "by default names are those of stackcollapse-perf.pl" "ab 1/2 1.5: 7 e:\n$N\n" \
	'ab;<fn; T as core::ops::FnOnce<Args>>::call_once{{vtable.shim}}_[i];main::{lambda 7'
folds "--balanced keeps lambdas and Rust's traits" "ab 1/2 1.5: 7 e:\n$N\n" \
	'ab;<fn() -> T as core::ops::FnOnce<Args>>::call_once{{vtable.shim}};main::{lambda(int)#1}::operator() 7' \
	--balanced
folds "--balanced: an inline chain is divided, a part of a name is not" \
	'ab 1/2 1.5: 7 e:\n\t1 P::operator->()->f<(a->b)>(int)->g+0x2 (/x)\n\n' \
	'ab;P::operator->;f<(a->b)>_[i];g_[i] 7' --balanced
folds "--balanced: ';' becomes ':', quotes stay, marks are added" \
	'ab 1/2 1.5: 7 e:\n\t1 Ljava/lang/Thread;::sleep (/tmp/perf-1.map)\n\t2 operator"" _s(char) (/x)\n\tffffffff81000000 f.isra.0+0x3 ([nfs])\n\n' \
	'ab;f.isra.0_[k];operator"" _s;Ljava/lang/Thread:::sleep_[j] 7' --balanced --all
folds "--balanced: a name in an anonymous namespace is a frame, a process in parentheses is not" \
	'ab 1/2 1.5: 7 e:\n\t1 (anonymous namespace)::f(int)+0x1 (/x)\n\t2 (bash) (/x)\n\t3 net/http.(*Client).Do (/x)\n\n' \
	'ab;net/http.(*Client).Do;(anonymous namespace)::f 7' --balanced
folds "--balanced: a frame without a symbol" \
	'ab 1/2 1.5: 7 e:\n\t1 [unknown] (/lib/a.so)\n\t2 [stopped: no table (x)] ([unknown])\n\n' \
	'ab;[stopped: no table (x)];[a.so] 7' --balanced
for name in '(' '<(' 'a->' '()' ')' 'operator' '[(' ' [clone ' "f(int) const" "'"; do
	NAME=$name perl -e 'print "ab 1/2 1.5: 1 e:\n\t1 f", $ENV{NAME} x (1 << 20) / length $ENV{NAME}, "(int) (/x)\n\n"' >"$TMP/in"
	run timeout 60 "$fold" --balanced "$TMP/in"
	is "$rc:$(wc -l <"$out")" "0:1" "--balanced: 1 MiB of '$name' is a name"
done
for seed in 1 2 3; do
	perl "$F/gen" $seed >"$TMP/random"
	is "$("$fold" --balanced "$TMP/random" 2>/dev/null | awk '{ s += $NF } END { print s }')" \
		"$("$fold" "$TMP/random" 2>/dev/null | awk '{ s += $NF } END { print s }')" \
		"--balanced: a hostile stream ($seed) has the same total"
done

## events

in_file "$A$C$A"
run "$fold" "$TMP/in"
is "$rc:$(cat "$out")" "0:ab;main;f 20" "only the first event is folded"
like "$(cat "$err")" "only event 'ev' is folded; 1 record of another is skipped, the first of 'other'" \
	"the records of other events are reported"
printf '# totals: waits=1 total_ns=7 lost=0 samples=1\n\nab 1/2 1.0: 5 cpu-clock: \n\t1 f (x)\n\nab 1/2 1.5: 7 offcpu-time: \n\t1 g (x)\n\n' >"$TMP/both"
is "$("$fold" "$TMP/both" 2>/dev/null)" "ab;g 7" "waits are folded, also where the first record is a sample"
is "$(sed s/waits=1/waits=0/ "$TMP/both" | "$fold" 2>/dev/null)" "ab;f 5" "unless the totals have no wait"
K1='# wait: count=1 total_ns=10 runnable_ns=4 kind=lock\n'
K2='# wait: count=1 total_ns=10 runnable_ns=0 kind=disk-read\n'
folds "--kind-frames: the kind is the innermost frame, also of equal stacks" "$K1$A$K2$A$A" "ab;main;f 10
ab;main;f;[disk-read] 10
ab;main;f;[lock] 10" --kind-frames
folds "and the outermost one with --reverse" "$K1$A" "[lock];f;main;ab 10" --kind-frames --reverse
folds "below time on the run queue" "$K1$A" "ab;main;f;[lock] 6
ab;main;f;[lock];[runnable] 4" --kind-frames --runnable
folds "with the number of waits" "$K1$A$K1$A" "ab;main;f;[lock] 2" --kind-frames --unit=count
status 64 "--kind-frames and --wakers exclude one another" "$fold" --kind-frames --wakers "$TMP/in"
printf 'ab 1/2 1.5: 10 ev: \n\t12 f+0x1 (/x)\n\t34 main (/x)\n\ncd 1/2 1.6: 5 other: \n\t12 g+0x1 (/x)\n\t34 main (/x)\n\n' >"$TMP/in"
run "$fold" --event-filter=other "$TMP/in"
is "$rc:$(cat "$out" "$err")" "0:cd;main;g 5" "--event-filter selects an event and reports no others"
run "$fold" --event-filter=none "$TMP/in"
is "$rc:$(cat "$out")" "1:" "an event that does not occur gives status 1"
like "$(cat "$err")" "no record is of event 'none'; the first one is of 'ev'" "an event that does not occur is reported"

## damage

damaged "a line that is neither header nor frame" "$A\tgarbage\n$B" "ab;main;f 10
cd;main;g 5" "1 malformed .* line 5 of '.*in': neither header nor frame"
damaged "a malformed line inside a record" 'ab 1/2 1.5: 7 e:\n\t1 f (x)\n\tgarbage\n\t2 m (x)\n\n' "ab;m;f 7" \
	"line 3 of .*neither"
damaged "several records with a malformed line" "$J$J$J" "ab;f 30" \
	"3 malformed .* line 3 of"
damaged "a frame outside a record" "\t12 f (x)\n$A" "ab;main;f 10" "line 1 of .*a frame outside a record"
damaged "a record without its blank line" "${B%??}$A" "ab;main;f 10" "line 1 of .*without a blank line"
damaged "a record that is cut by the end of the file" "$A${B%??}" "ab;main;f 10" "line 5 of .*cut short"
damaged "a header that is cut by the end of the file" "${A}cd 3/4 [000] 1.6: 5 ev:" "ab;main;f 10" "line 5 of .*cut short"
damaged "a period beyond 64 bits" "${A}cd 3/4 1.6: 18446744073709551616 ev: \n\t1 f (x)\n\n" "ab;main;f 10" \
	"line 5 of .*does not fit"
damaged "perf script text without call chains" 'abcd 3/4 1.6: 5 ev: 12 f (x)\nabcd 3/4 1.6: 5 ev: 12 f (x)\n' "" \
	"after perf record -g"
damaged "a count comment after a record without its blank line" "${B%??}# wait: count=4\n$A" "ab;main;f 10" "line 1 of"
folds "events that are not samples need no blank line" \
	"xx 0 0.0: PERF_RECORD_MMAP2 1/1: [0x1]: r-xp /x\nxx 0 0.0: PERF_RECORD_COMM: ab:1/2\n$A" "ab;main;f 10"
folds "a sample without frames is folded to its process name" 'ab 1/2 1.5: 7 e: \n\n' "ab 7"
folds "blank lines and comments are ignored everywhere" "\n\n# x\n$A\n\n\n# y\n\n$B" "ab;main;f 10
cd;main;g 5"
folds "a file that ends with the blank line of a record is complete" "$A" "ab;main;f 10"
folds "bytes that are not text pass unchanged" 'a\001\377b 1/2 1.5: 7 e:\n\t1 \033[1mf (x)\n\n' "$(printf 'a\001\377b;\033[1mf 7')"
: >"$TMP/empty"
run "$fold" "$TMP/empty"
is "$rc:$(cat "$out" "$err")" "0:" "empty input gives empty output"

# each prefix of a stream: no crash, and no frame that is not in the whole stream
in_file "$A$B"
size=$(wc -c <"$TMP/in") i=0 bad=
while [ "$i" -lt "$size" ]; do
	head -c "$i" "$TMP/in" >"$TMP/part"
	run "$fold" "$TMP/part"
	[ "$rc" -le 1 ] || bad="$bad $i:status-$rc"
	grep -qvE '^(ab;main;f 10|cd;main;g 5)$' "$out" && bad="$bad $i:output"
	i=$((i + 1))
done
is "$bad" "" "a stream that is cut at any byte gives only complete stacks"

# a line and a record of 17 MiB, which is beyond the limit
perl -e 'print "ab 1/2 1.5: 7 e:\n\t1 ", "x" x (17 << 20), " (x)\n\n", "cd 1/2 1.5: 5 e:\n\t1 f (x)\n\n"' >"$TMP/in"
run "$fold" "$TMP/in"
is "$rc:$(cat "$out")" "1:cd;f 5" "a line of 17 MiB is skipped, and the next record is folded"
perl -e 'print "ab 1/2 1.5: 7 e:\n", "\t1 ffffffffffffffffffffffffffff (x)\n" x 500000, "\n", "cd 1/2 1.5: 5 e:\n\t1 f (x)\n\n"' >"$TMP/in"
run "$fold" "$TMP/in"
is "$rc:$(cat "$out")" "1:cd;f 5" "a record of 17 MiB is skipped, and the next one is folded"
like "$(cat "$err")" '1 malformed .* line 1 of .*16 MiB' "a record of 17 MiB is counted once"

# memory: the same stacks in 20 times the input
perl -e 'for (1..20000) { print "ab 1/2 $_.5: 10 ev: \n", (map { "\t12 function_$_+0x".($_*7)." (/usr/lib/x)\n" } 1..40), "\n" }' >"$TMP/big"
peak() {
	perl -e 'my $p = fork // die; if (!$p) { open STDOUT, ">", "/dev/null"; exec @ARGV }
		my ($st, $u) = (pack("l", 0), "\0" x 144); syscall(61, $p, $st, 0, $u); print((unpack "q5", $u)[4])' "$@"
}
small=$(head -n 42000 "$TMP/big" | peak "$fold")
large=$(peak "$fold" "$TMP/big")
ok "memory depends on distinct stacks, not on the input ($small and $large KiB)" test "$large" -lt $((small + 4096))

## files

in_file "$A"
printf '%b' "$B" >"$TMP/in2"
run "$fold" "$TMP/in" "$TMP/in2"
is "$(cat "$out")" "ab;main;f 10
cd;main;g 5" "several files are folded as one"
head -n 2 "$TMP/in" >"$TMP/p1"
tail -n +3 "$TMP/in" >"$TMP/p2"
run "$fold" "$TMP/p1" "$TMP/p2"
is "$rc:$(cat "$out")" "0:ab;main;f 10" "a record may begin in one file and end in the next"
printf '\n\njunk\n' >"$TMP/p3"
run "$fold" "$TMP/in" "$TMP/p3" "$TMP/in2"
like "$(cat "$err")" "line 3 of '$TMP/p3'" "damage is reported with file and line"
run sh -c '"$0" - <"$1"' "$fold" "$TMP/p3"
like "$(cat "$err")" "line 3 of 'standard input'" "damage on stdin is reported with its line"
status 2 "a missing file gives status 2" "$fold" "$TMP/in" "$TMP/none"
is "$(cat "$out")" "" "nothing is printed on stdout if a file is missing"
like "$(cat "$err")" "cannot open '$TMP/none': No such file" "the message names a missing file"
status 2 "a directory gives status 2" "$fold" "$TMP"
like "$(cat "$err")" "cannot read '$TMP': Is a directory" "the message names a directory"
printf 'PERFILE2\0\0\0\0' >"$TMP/perf.data"
status 2 "a perf.data file gives status 2" "$fold" "$TMP/perf.data"
like "$(cat "$err")" "hint: .*perf script -i '$TMP/perf.data'" "the hint for a perf.data file is the command that reads it"
printf '\211stkcap\n\0\0' >"$TMP/cap.bin"
status 2 "a capture gives status 2" "$fold" "$TMP/cap.bin"
like "$(cat "$err")" "hint: .*symbolize '$TMP/cap.bin'" "the hint for a capture is the command that reads it"
head -c 100000 "$fold" >"$TMP/elf"
status 1 "a binary file gives status 1, not a crash" "$fold" "$TMP/elf"
chmod 000 "$TMP/in2"
chmod 755 "$TMP"
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	status 2 "a file without read permission gives status 2" setpriv --reuid 65534 --clear-groups "$fold" "$TMP/in2"
	like "$(cat "$err")" 'Permission denied' "a file without read permission is reported"
else
	skip "a file without read permission gives status 2" "needs root"
fi

## functions of interpreters' programs

printf 'ab 1/2 [000] 1.5: 7 e:\n\tffffffff81000000 schedule ([kernel.kallsyms])\n\t0 hidden ([nf_tables.kernel])\n\t1 eval (/bin/p)\n\t0 py::f:a.py ([python])\n\t0 Ljava/lang/Thread;::run ([java])\n\n' >"$TMP/in"
is "$("$fold" --all "$TMP/in")" 'ab;Ljava/lang/Thread:::run_[j];py::f:a.py_[j];eval;hidden_[k];schedule_[k] 7' \
	"--all marks functions of interpreters' programs as such, not as the kernel's"
is "$("$fold" --delimit "$TMP/in" | grep -o 'eval.*')" 'eval;-;hidden;schedule 7' "--delimit: they are on the user's side"

## exit status and command line

run sh -c '"$0" "$1" >/dev/full' "$fold" "$TMP/in"
is "$rc" 2 "a full disk gives status 2"
like "$(cat "$err")" 'cannot write' "a full disk is reported"
run sh -c '"$0" "$1" >&-' "$fold" "$TMP/in"
is "$rc" 2 "a closed stdout gives status 2"
run sh -c '"$0" "$1" >&-' "$fold" "$TMP/empty"
is "$rc" 2 "a closed stdout gives status 2 even if there is nothing to write"
perl -e 'for (1..20000) { print "ab 1/2 1.5: 7 e:\n\t1 function$_ (x)\n\n" }' >"$TMP/in"
is "$("$fold" "$TMP/in" | head -n 1)" "ab;function1 7" "a reader that closes the pipe early gets its line"
for bad in --weight=x --kind= "--kind=a," "--kind=,a" --kind=a_b --kind=A --kind "--kind=a b" --unit=s --unit= --min=x --min=-1 --min=5d --top=0 --top=x --top=-1 --nope --pid=3 --min -p; do
	status 64 "$bad is a usage error" "$fold" "$bad"
	[ -s "$out" ] && fail "$bad writes nothing to stdout"
done
status 64 "--unit=count does not accept a time for --min" "$fold" --unit=count --min=5ms
for bad in "--weight=blocked --unit=count" "--weight=runnable --unit=count" "--weight=blocked --runnable"; do
	# shellcheck disable=SC2086 # two options
	status 64 "$bad is a usage error" "$fold" $bad
	like "$(head -n 1 "$err")" "${bad% *} and ${bad#* } exclude one another" "$bad: the message names both"
done
run "$fold" --kind=a_b
like "$(head -n 1 "$err")" "option '--kind': 'a_b' is not a list of kinds" "a word that cannot be a kind is shown"
run "$fold" --nope
is "$(wc -l <"$err")" 2 "a usage error prints two lines on stderr"
status 0 "--help exits with status 0" "$fold" --help
like "$(head -n 1 "$out")" '^usage: fold ' "--help prints the usage on stdout"
status 0 "--version exits with status 0" "$fold" --version
like "$(cat "$out")" '^fold \(stacktools\) [0-9]' "--version prints the name of the tool"
tap_done
