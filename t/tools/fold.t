#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# fold: perf script text into folded lines.
. "$(dirname "$0")/../lib/tap.sh"
F=$DATA/fold
fold=$BIN/fold
reference=${STACKCOLLAPSE:-$(command -v stackcollapse-perf.pl)}

# in_file TEXT: the record or records as printf(1) has them, in $TMP/in
in_file() {
	# shellcheck disable=SC2059 # the format is the text
	printf "$1" >"$TMP/in"
}

# folds NAME TEXT WANT [OPTION...]: status 0, this output, nothing on stderr
folds() {
	t_name=$1
	in_file "$2"
	t_want=$3
	shift 3
	run "$fold" "$@" "$TMP/in"
	is "$rc:$(cat "$out" "$err")" "0:$t_want" "$t_name"
}

# damaged NAME TEXT WANT MESSAGE: status 1, this output, and the message
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

## as stackcollapse-perf.pl has it

while read -r opts; do
	for in in "$F"/*.in; do
		name=$(basename "$in" .in)
		awk -v o="## $opts" '/^## / { on = $0 == o; next } on' "$F/$name.want" >"$TMP/want"
		# shellcheck disable=SC2086 # an option set is several words
		"$fold" $opts "$in" >"$TMP/got" 2>"$TMP/err"
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
	same "$TMP/got" "$TMP/sorted" "a hostile stream ($seed) comes out in the order of sort(1)"
	cut -f 1 "$TMP/got" >/dev/null
	"$fold" - <"$TMP/random" >"$TMP/piped" 2>/dev/null
	same "$TMP/piped" "$TMP/got" "a hostile stream ($seed) folds alike from a file and from stdin"
done

# inline frames of our own binary: addr2line is the judge
start=$(nm "$fold" 2>/dev/null | awk '$3 == "main" { print $1 }')
addr=$(perl -e 'my $a = hex shift; printf "%x\n", $a + 16 * $_ for 0 .. 4000' "${start:-0}" |
	addr2line -a -i -f -s -C -e "$fold" 2>/dev/null |
	awk '/^0x/ { a = $0; n = 0; next } ++n == 4 && !found { found = 1; sub(/^0x0*/, "", a); print a }')
if [ -n "$addr" ]; then
	addr2line -a -i -f -s -C -e "$fold" "$addr" | sed 1d >"$TMP/a2l"
	want=$(awk 'NR % 2 { s = $0 (s ? ";" s : "") } END { print s }' "$TMP/a2l")
	folds "--inline expands a frame as addr2line tells it" \
		"ab 1/2 1.5: 7 ev: \n\t$addr outer+0x1 ($fold)\n\n" "ab;$want 7" --inline
	want=$(sed 's/ (discriminator [0-9]*)//' "$TMP/a2l" |
		awk 'NR % 2 { f = $0; next } { s = f ":" $0 (s ? ";" s : "") } END { print s }')
	folds "--context adds file and line" \
		"ab 1/2 1.5: 7 ev: \n\t$addr outer+0x1 ($fold)\n\n" "ab;$want 7" --inline --context
else
	skip "--inline expands a frame as addr2line tells it" "no inlined function in $fold, or no addr2line"
fi
folds "--inline finds the symbol in the file where a run-time address says nothing" \
	"ab 1/2 1.5: 7 ev: \n\tfff000000000 main+0x0 ($fold)\n\n" "ab;main 7" --inline
in_file "ab 1/2 1.5: 7 ev: \n\t12 f+0x1 (/nonexistent;touch $TMP/pwned;)\n\n"
run "$fold" --inline "$TMP/in"
is "$rc:$(cat "$out")" "0:ab;f 7" "--inline takes a file that is not there for what perf says"
ok "--inline runs nothing that a file name spells out" test ! -e "$TMP/pwned"
in_file "$A"
PATH='' run "$fold" --inline "$TMP/in"
is "$rc:$(cat "$out")" "2:" "--inline without addr2line is status 2 with nothing on stdout"
like "$(cat "$err")" 'hint: it is part of binutils' "--inline without addr2line names the package"

## beyond it

folds "records of the same stack are summed" "$A$A$B" "ab;main;f 20
cd;main;g 5"
folds "sums beyond 64 bits are exact" \
	'ab 1 1.5: 18446744073709551615 e:\n\t1 f (x)\n\nab 1 1.5: 18446744073709551615 e:\n\t1 f (x)\n\n' \
	"ab;f 36893488147419103230"
cp "$F/ours.in" "$TMP/ours"
run "$fold" "$TMP/ours"
is "$rc:$(wc -l <"$out"):$(cat "$err")" "0:4:" "our own stream folds without a word"
run "$fold" --unit=count "$TMP/ours"
is "$(cat "$out")" "client;poll;__schedule;--;try_to_wake_up;main 2
kworker/0:1;__schedule 1
server;main;__vdso_gettimeofday;io_schedule;__schedule 1
server;main;read;do_syscall_64;__schedule 15" "--unit=count sums the counts of the comments"
run "$fold" --unit=us "$TMP/ours"
is "$(cat "$out")" "client;poll;__schedule;--;try_to_wake_up;main 2600
server;main;__vdso_gettimeofday;io_schedule;__schedule 2
server;main;read;do_syscall_64;__schedule 3856" "--unit=us rounds the exact sum to the nearest"
like "$(cat "$err")" '1 stacks? .*less than half' "a stack that rounds to nothing is reported"
is "$rc" 0 "a stack that rounds to nothing is no error"
run "$fold" --unit=ms "$TMP/ours"
is "$(sed 's/.* //' "$out" | tr '\n' ' ')" "3 4 " "--unit=ms rounds the exact sum to the nearest"
folds "a record without a count counts as one" "$A$A" "ab;main;f 2" --unit=count
folds "a comment counts for the record right behind it only" \
	"# wait: count=7\n# another\n$A# wait: count=5 x=1\n$B" "ab;main;f 1
cd;main;g 5" --unit=count
in_file "# wait: count=x7\n$A$B"
run "$fold" --unit=count "$TMP/in"
is "$rc:$(cat "$out")" "1:cd;main;g 1" "a count that is no number leaves its record out"
like "$(cat "$err")" "line 2 of .*count that is no" "a count that is no number is reported"

folds "--reverse turns the whole line round" "$A$B" "f;main;ab 10
g;main;cd 5" --reverse
folds "--reverse turns inlined frames round too" 'ab 1/2 1.5: 7 e:\n\t1 a->b (x)\n\t2 m (x)\n\n' \
	"b_[i];a;m;ab 7" --reverse
folds "--reverse of a record without frames is its name" 'ab 1/2 1.5: 7 e:\n\n' "ab 7" --reverse
"$fold" --all "$F/perf-two-events.in" 2>/dev/null |
	perl -ne '/^(.*) (\d+)$/; print join(";", reverse split /;/, $1), " $2\n"' | LC_ALL=C sort >"$TMP/want"
"$fold" --all --reverse "$F/perf-two-events.in" 2>/dev/null >"$TMP/got"
same "$TMP/got" "$TMP/want" "--reverse is what flamegraph.pl --reverse makes of the lines"

run "$fold" --delimit "$TMP/ours"
is "$(cat "$out")" "client;poll;-;__schedule;--;try_to_wake_up;main 2600000
kworker/0:1;__schedule 499
server;main;__vdso_gettimeofday;-;io_schedule;__schedule 1500
server;main;read;-;do_syscall_64;__schedule 3856000" \
	"--delimit puts - between user and kernel, and takes the vdso for user"
folds "--delimit puts -- where a waker's frames begin" \
	'ab 1/2 1.5: 7 e:\n\t1 w (x)\n# waker\n\tffffffff81000000 k ([kernel.kallsyms])\n\t2 m (x)\n\n' \
	"ab;m;-;k;--;w 7" --delimit
folds "--delimit leaves a marker without annotation" \
	'ab 1/2 1.5: 7 e:\n\t1 w (x)\n\t0 -- ([waker])\n\t2 m (x)\n\n' "ab;m;--;w 7" --delimit --kernel
folds "--delimit knows a kernel address without symbol" \
	'ab 1/2 1.5: 7 e:\n\tffffffff81000000 [unknown] ([unknown])\n\t2 m (x)\n\n' "ab;m;-;[unknown] 7" --delimit
folds "--threads begins with a frame for the thread" "$A$A$B" "[ab tid=2];ab;main;f 20
[cd tid=4];cd;main;g 5" --threads
folds "--threads keeps threads of the same name apart" \
	'w x 1/2 1.5: 7 e:\n\t1 f (x)\n\nw x 1/3 1.5: 7 e:\n\t1 f (x)\n\n' "[w_x tid=2];w_x;f 7
[w_x tid=3];w_x;f 7" --threads
folds "--min leaves smaller sums out" "$A$A$B" "ab;main;f 20" --min=6
folds "--min keeps a sum that is equal" "$A$B" "ab;main;f 10
cd;main;g 5" --min=5
run "$fold" --unit=us --min=400us "$TMP/ours"
is "$(cat "$out")" "client;poll;__schedule;--;try_to_wake_up;main 2600
server;main;read;do_syscall_64;__schedule 3856" "--min takes a time"
run "$fold" --unit=us --min=1500 "$TMP/ours"
is "$(wc -l <"$out")" 2 "--min without a unit is of the unit printed"
folds "--top keeps the greatest, in the order of the lines" \
	"${A}zz 1/2 1.5: 50 ev:\n\t1 f (x)\n\n${B}" "ab;main;f 10
zz;f 50" --top=2
folds "--top settles a tie by the order of the lines" \
	'bb 1/2 1.5: 5 ev:\n\naa 1/2 1.5: 5 ev:\n\ncc 1/2 1.5: 9 ev:\n\n' "aa 5
cc 9" --top=2
folds "different stacks that read the same are one line" \
	'ab 1/2 1.5: 5 ev:\n\t1 a;b (x)\n\nab;c 1/2 1.5: 5 ev:\n\t1 d (x)\n\nab 1/2 1.5: 5 ev:\n\t1 d (x)\n\t2 c (x)\n\n' \
	"ab;a:b 5
ab;c;d 10"

## events

in_file "$A$C$A"
run "$fold" "$TMP/in"
is "$rc:$(cat "$out")" "0:ab;main;f 20" "only the first event is folded"
like "$(cat "$err")" "only event 'ev' is folded; 1 record of another is skipped, the first of 'other'" \
	"the records of other events are reported"
run "$fold" --event-filter=other "$TMP/in"
is "$rc:$(cat "$out" "$err")" "0:cd;main;g 5" "--event-filter chooses, and is silent about the others"
run "$fold" --event-filter=none "$TMP/in"
is "$rc:$(cat "$out")" "1:" "an event that does not occur is status 1"
like "$(cat "$err")" "no record is of event 'none'; the first one is of 'ev'" "an event that does not occur is reported"

## damage

damaged "a line that is nothing" "$A\tgarbage\n$B" "ab;main;f 10
cd;main;g 5" "1 malformed .* line 5 of '.*in': neither header nor frame"
damaged "a line that is nothing inside a record" 'ab 1/2 1.5: 7 e:\n\t1 f (x)\n\tgarbage\n\t2 m (x)\n\n' "ab;m;f 7" \
	"line 3 of .*neither"
damaged "each of many such records" "$J$J$J" "ab;f 30" \
	"3 malformed .* line 3 of"
damaged "a frame outside a record" "\t12 f (x)\n$A" "ab;main;f 10" "line 1 of .*a frame outside a record"
damaged "a record without its blank line" "${B%??}$A" "ab;main;f 10" "line 1 of .*without a blank line"
damaged "a record cut by the end" "$A${B%??}" "ab;main;f 10" "line 5 of .*cut short"
damaged "a header cut by the end" "${A}cd 3/4 [000] 1.6: 5 ev:" "ab;main;f 10" "line 5 of .*cut short"
damaged "a period beyond 64 bits" "${A}cd 3/4 1.6: 18446744073709551616 ev: \n\t1 f (x)\n\n" "ab;main;f 10" \
	"line 5 of .*does not fit"
damaged "perf script text without call chains" 'abcd 3/4 1.6: 5 ev: 12 f (x)\nabcd 3/4 1.6: 5 ev: 12 f (x)\n' "" \
	"after perf record -g"
damaged "a count comment before a record that ends another" "${B%??}# wait: count=4\n$A" "ab;main;f 10" "line 1 of"
folds "events that are no samples need no blank line" \
	"xx 0 0.0: PERF_RECORD_MMAP2 1/1: [0x1]: r-xp /x\nxx 0 0.0: PERF_RECORD_COMM: ab:1/2\n$A" "ab;main;f 10"
folds "a sample without frames is its process" 'ab 1/2 1.5: 7 e: \n\n' "ab 7"
folds "blank lines and comments anywhere mean nothing" "\n\n# x\n$A\n\n\n# y\n\n$B" "ab;main;f 10
cd;main;g 5"
folds "the last blank line needs no newline of its own before the end" "$A" "ab;main;f 10"
folds "bytes that are no text pass through" 'a\001\377b 1/2 1.5: 7 e:\n\t1 \033[1mf (x)\n\n' "$(printf 'a\001\377b;\033[1mf 7')"
: >"$TMP/empty"
run "$fold" "$TMP/empty"
is "$rc:$(cat "$out" "$err")" "0:" "an empty input is an empty output"

# each prefix of a stream: never a crash, never a frame that is not in the whole
in_file "$A$B"
size=$(wc -c <"$TMP/in") i=0 bad=
while [ "$i" -lt "$size" ]; do
	head -c "$i" "$TMP/in" >"$TMP/part"
	run "$fold" "$TMP/part"
	[ "$rc" -le 1 ] || bad="$bad $i:status-$rc"
	grep -qvE '^(ab;main;f 10|cd;main;g 5)$' "$out" && bad="$bad $i:output"
	i=$((i + 1))
done
is "$bad" "" "a stream cut at any byte gives whole stacks only"

# a line and a record beyond the limit: 17 MiB
perl -e 'print "ab 1/2 1.5: 7 e:\n\t1 ", "x" x (17 << 20), " (x)\n\n", "cd 1/2 1.5: 5 e:\n\t1 f (x)\n\n"' >"$TMP/in"
run "$fold" "$TMP/in"
is "$rc:$(cat "$out")" "1:cd;f 5" "a line of 17 MiB is left out, the next record folded"
perl -e 'print "ab 1/2 1.5: 7 e:\n", "\t1 ffffffffffffffffffffffffffff (x)\n" x 500000, "\n", "cd 1/2 1.5: 5 e:\n\t1 f (x)\n\n"' >"$TMP/in"
run "$fold" "$TMP/in"
is "$rc:$(cat "$out")" "1:cd;f 5" "a record of 17 MiB is left out, the next one folded"
like "$(cat "$err")" '1 malformed .* line 1 of .*16 MiB' "it counts once"

# memory: ten times the input, the same stacks
perl -e 'for (1..20000) { print "ab 1/2 $_.5: 10 ev: \n", (map { "\t12 function_$_+0x".($_*7)." (/usr/lib/x)\n" } 1..40), "\n" }' >"$TMP/big"
peak() {
	perl -e 'my $p = fork // die; if (!$p) { open STDOUT, ">", "/dev/null"; exec @ARGV }
		my ($st, $u) = (pack("l", 0), "\0" x 144); syscall(61, $p, $st, 0, $u); print((unpack "q5", $u)[4])' "$@"
}
small=$(head -n 42000 "$TMP/big" | peak "$fold")
large=$(peak "$fold" "$TMP/big")
ok "memory follows the distinct stacks, not the input ($small and $large KiB)" test "$large" -lt $((small + 4096))

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
like "$(cat "$err")" "line 3 of '$TMP/p3'" "damage is reported by file and line"
run sh -c '"$0" - <"$1"' "$fold" "$TMP/p3"
like "$(cat "$err")" "line 3 of 'standard input'" "damage on stdin is reported"
status 2 "a missing file is status 2" "$fold" "$TMP/in" "$TMP/none"
is "$(cat "$out")" "" "a missing file leaves nothing on stdout"
like "$(cat "$err")" "cannot open '$TMP/none': No such file" "a missing file is named"
status 2 "a directory is status 2" "$fold" "$TMP"
like "$(cat "$err")" "cannot read '$TMP': Is a directory" "a directory is named"
printf 'PERFILE2\0\0\0\0' >"$TMP/perf.data"
status 2 "a perf.data file is status 2" "$fold" "$TMP/perf.data"
like "$(cat "$err")" "hint: .*perf script -i '$TMP/perf.data'" "a perf.data file gets the command that reads it"
printf '\211stkcap\n\0\0' >"$TMP/cap.bin"
status 2 "a capture is status 2" "$fold" "$TMP/cap.bin"
like "$(cat "$err")" "hint: .*symbolize '$TMP/cap.bin'" "a capture gets the command that reads it"
head -c 100000 "$fold" >"$TMP/elf"
status 1 "a binary is no text, and no crash" "$fold" "$TMP/elf"
chmod 000 "$TMP/in2"
chmod 755 "$TMP"
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	status 2 "a file without permission is status 2" setpriv --reuid 65534 --clear-groups "$fold" "$TMP/in2"
	like "$(cat "$err")" 'Permission denied' "a file without permission is reported"
else
	skip "a file without permission is status 2" "needs root to give it up"
fi

## the contract

run sh -c '"$0" "$1" >/dev/full' "$fold" "$TMP/in"
is "$rc" 2 "a full disk is status 2"
like "$(cat "$err")" 'cannot write' "a full disk is reported"
run sh -c '"$0" "$1" >&-' "$fold" "$TMP/in"
is "$rc" 2 "a closed stdout is status 2"
run sh -c '"$0" "$1" >&-' "$fold" "$TMP/empty"
is "$rc" 2 "a closed stdout is status 2 though there is nothing to write"
perl -e 'for (1..20000) { print "ab 1/2 1.5: 7 e:\n\t1 function$_ (x)\n\n" }' >"$TMP/in"
is "$("$fold" "$TMP/in" | head -n 1)" "ab;function1 7" "a reader that leaves early ends it quietly"
for bad in --unit=s --unit= --min=x --min=-1 --min=5h --top=0 --top=x --top=-1 --nope --pid=3 --min -p; do
	status 64 "$bad is a bad command line" "$fold" "$bad"
	[ -s "$out" ] && fail "$bad writes nothing to stdout"
done
status 64 "--unit=count takes no time for --min" "$fold" --unit=count --min=5ms
run "$fold" --nope
is "$(wc -l <"$err")" 2 "a bad command line is two lines on stderr"
status 0 "--help is status 0" "$fold" --help
like "$(head -n 1 "$out")" '^usage: fold ' "--help is on stdout"
status 0 "--version is status 0" "$fold" --version
like "$(cat "$out")" '^fold \(stacktools\) [0-9]' "--version names the tool"
tap_done
