#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# stackdiff: what waits longer or shorter than before. A real recording is in t/bpf/difference.t.
# shellcheck disable=SC2154,SC2016 # $out, $err and $rc come from tap.sh; Perl's variables
. "$(dirname "$0")/../lib/tap.sh"
diff=$BIN/stackdiff
cd "$TMP" || exit 1

# in_file NAME TEXT: writes TEXT, a printf format, to $TMP/NAME
in_file() {
	# shellcheck disable=SC2059 # the format is the text
	printf "$2" >"$TMP/$1"
}

# rows NAME WANT [ARGUMENT...]: status 0, nothing on stderr, and of --tsv the rows without rank, sums, counts
# and longest waits, separated by |
rows() {
	t_name=$1 t_want=$2
	shift 2
	run "$diff" --tsv "$@"
	is "$rc:$(cat "$err")$(sed 1d "$out" | cut -f 2-7,14- | tr '\t' '|')" "0:$t_want" "$t_name"
}

# answers STATUS NAME MESSAGE ARGUMENT...: that status, nothing on stdout, MESSAGE on stderr
answers() {
	t_status=$1 t_name=$2 t_want=$3
	shift 3
	run "$diff" "$@"
	is "$rc:$(cat "$out")" "$t_status:" "$t_name gives status $t_status and no table"
	like "$(cat "$err")" "$t_want" "$t_name is reported"
}

# incomplete NAME MESSAGE ARGUMENT...: status 1, the rest is compared, MESSAGE on stderr
incomplete() {
	t_name=$1 t_want=$2
	shift 2
	run "$diff" --tsv "$@"
	is "$rc:$(($(wc -l <"$out") > 1))" "1:1" "$t_name: the rest is compared, status 1"
	like "$(cat "$err")" "$t_want" "$t_name is reported"
}

# wait_of TID COUNT TOTAL KIND FUNCTION [MAX]: a record, as a printf format
wait_of() {
	printf '%s' "# wait: count=$2 total_ns=$3 max_ns=${6:-$3} state=S kind=$4\\nab 1/$1 [000] 1.5: $3 offcpu-time: \\n\\t12 $5+0x1 (/x)\\n\\t34 main+0x2 (/x)\\n\\n"
}
of_seconds() {
	printf '%s' "# host: hostname=h duration=$1\\n"
}

## against an independent computation

for seed in 1 2; do
	mkdir "$TMP/$seed"
	perl "$DATA/report/truth.pl" "$seed" "$TMP/$seed" || fail "truth.pl $seed"
	sed -i '/^# lost:/d' "$TMP/$seed/text"
done
sed 's/duration=5\.000/duration=8.000/' "$TMP/2/text" >"$TMP/long"
for by in stack function thread-name process kind; do
	run "$diff" --tsv --by "$by" "$TMP/1/text" "$TMP/long"
	cp "$out" "$TMP/$by.tsv"
	is "$rc:$(cat "$err"):$(perl "$DATA/report/difference.pl" "$TMP/1/text" "$TMP/long" "$by" <"$TMP/$by.tsv")" \
		"0::$(($(wc -l <"$TMP/$by.tsv") - 1)) rows" "random waits: --by $by has the right sums, changes and errors in the right order"
	ok "random waits: --by $by has rows" test "$(wc -l <"$TMP/$by.tsv")" -gt 4
done
"$diff" --tsv --absolute "$TMP/1/text" "$TMP/long" >"$out"
like "$(perl "$DATA/report/difference.pl" "$TMP/1/text" "$TMP/long" stack absolute <"$out")" '^[0-9]{3} rows$' "random waits: --absolute compares the sums as they are"
"$diff" --tsv --idle "$TMP/long" "$TMP/1/text" >"$out"
like "$(perl "$DATA/report/difference.pl" "$TMP/long" "$TMP/1/text" stack idle <"$out")" '^[0-9]{3} rows$' "random waits: --idle compares waits for work, and the sides can be exchanged"
"$diff" --json "$TMP/1/text" "$TMP/long" | perl -MCpanel::JSON::XS -0777 -ne '
	my ($j, $i) = (decode_json($_), 0);
	sub side { my ($key) = @_; map { $_ ? $_->{$key} // "" : "" } @{$_[1]}{qw(before after)} }
	for my $r (@{$j->{rows}}) {
		my ($b, $a) = @$r{qw(before after)};
		print join("\t", ++$i, $b->{amount_ns}, $a->{amount_ns}, $r->{change_ns}, $r->{factor} // "", "",
			!defined $r->{significant} ? "?" : $r->{significant} ? "*" : "", (map { $_->{total_ns} // 0 } $b, $a), (map { $_->{count} // 0 } $b, $a),
			(map { $_->{max_ns} // "" } $b, $a), (map { $_->{threads} // 0 } $b, $a), $r->{kind}, $r->{syscall} // "", join ";", @{$r->{functions}}), "\n"
	}
	print "$j->{by} $j->{normalised} $j->{before}{elapsed_ns} $j->{after}{elapsed_ns} ", scalar @{$j->{rows}}, "\n"' >"$out"
is "$(tail -n 1 "$out")" "stack 1 5000000000 8000000000 $(($(wc -l <"$TMP/stack.tsv") - 1))" "JSON has the summary of both sides"
sed '$d' "$out" >"$TMP/json"
awk -F '\t' -v OFS='\t' 'NR > 1 { $6 = ""; print }' "$TMP/stack.tsv" >"$TMP/want"
same "$TMP/json" "$TMP/want" "JSON and TSV have the same rows"

run "$diff" --tsv "$TMP/1/text" "$TMP/1/text"
is "$rc:$(awk -F '\t' 'NR > 1 && ($4 != 0 || $5 != 1 || ($6 != 0 && $7 != "?") || $7 == "*")' "$out")" "0:" \
	"identical recordings have no change, factor 1 and no mark"
run "$diff" "$TMP/1/text" "$TMP/1/text"
like "$(cat "$out")" 'after: 0 ns, factor 1\.00' "their totals are the same"
run sh -c '"$1" --tsv - "$2" <"$2"' - "$diff" "$TMP/1/text"
is "$rc:$(wc -l <"$out"):$(awk -F '\t' '$7 == "*"' "$out")" "0:$("$diff" --tsv "$TMP/1/text" "$TMP/1/text" | wc -l):" "a side may be standard input"

## significance, by simulation

# simulated NAME MODEL FACTOR OP N: three simulations of 1,000 places; passes if the number of rows with a mark is -OP N
simulated() {
	t_name=$1 t_bad=
	for seed in 1 2 3; do
		perl "$DATA/report/simulate.pl" $seed "$2" "$3" "$TMP" || t_bad=1
		"$diff" --tsv "$TMP/before" "$TMP/after" >"$out" || t_bad=1
		n=$(awk -F '\t' '$7 == "*"' "$out" | wc -l)
		[ "$(wc -l <"$out")" -gt 500 ] && test "$n" "$4" "$5" || t_bad=1
		t_name="$t_name $n"
	done
	ok "$t_name of 1,000" [ -z "$t_bad" ]
}
for model in even heavy rare threads uneven seldom; do
	simulated "nothing changes, $model: less than 1 % of places are marked:" $model 1 -lt 10
done
simulated "200 waits become 400: more than 80 % of places are marked:" many 2 -gt 800
simulated "200 waits become 50: more than 90 % are:" many 0.25 -gt 900

# known numbers of standard errors: 100 waits of 1 us become 200 in as long, (200-100) / sqrt(300)
in_file a "$(of_seconds 1.000)$(wait_of 1 100 100000 lock f 1000)"
in_file b "$(of_seconds 1.000)$(wait_of 1 200 200000 lock f 1000)"
rows "equal waits are counted" "100000|200000|100000|2|5.774|*|1|1|lock||main;f" "$TMP/a" "$TMP/b"
in_file b "$(of_seconds 1.000)$(wait_of 1 200 200000 lock f 50000)"
rows "a long one makes the change uncertain" "100000|200000|100000|2|0.995||1|1|lock||main;f" "$TMP/a" "$TMP/b"
in_file b "$(of_seconds 0.100)"
in_file none "$(of_seconds 0.100)$(wait_of 1 1 1 sleep g)"
in_file a "$(of_seconds 1.000)$(wait_of 1 10 10000 lock f 1000)$(wait_of 1 1 10 sleep g)"
rows "ten waits in ten times the time are not gone" "10000|0|-10000|0|-1.000||1|0|lock||main;f
10|10|0|1||?|1|1|sleep||main;g" "$TMP/a" "$TMP/none"
in_file a "$(of_seconds 1.000)$(wait_of 1 1 1000 lock f)"
in_file b "$(of_seconds 1.000)$(wait_of 1 1 9000 lock f)"
rows "one wait on each side is not judged" "1000|9000|8000|9||?|1|1|lock||main;f" "$TMP/a" "$TMP/b"
# three threads that are each alike on a side agree, so the waits decide; if they differ as much as the sides do, they do
threads() { # SECONDS TOTAL...
	of_seconds "$1"
	shift
	i=0
	for total; do
		i=$((i + 1))
		wait_of $i 1000 "$total" lock f 1000
	done
}
in_file a "$(threads 1.000 100000 100000 100000)"
in_file b "$(threads 1.000 200000 200000 200000)"
rows "threads that are alike do not exceed their waits" "300000|600000|300000|2|10.000|*|3|3|lock||main;f" "$TMP/a" "$TMP/b"
in_file a "$(threads 1.000 10000 100000 190000)"
in_file b "$(threads 1.000 20000 200000 380000)"
like "$("$diff" --tsv "$TMP/a" "$TMP/b" | sed -n 2p | cut -f 6-7)" '^0\.[0-9]{3}	$' "threads that differ make the change uncertain"

## the table

in_file a "# host: hostname=h duration=2.000\n# totals: waits=4\n$(wait_of 1 4 4000000000 lock take_lock 1000000000)$(wait_of 2 2 20000000 disk-read old 10000000)$(wait_of 3 1 50000000 idle next_job)"
in_file b "# host: hostname=h duration=4.000\n$(wait_of 1 4 2000000000 lock take_lock 500000000)$(wait_of 2 90 180000000 pipe new 2000000)$(wait_of 3 1 10000000 idle next_job)"
run "$diff" "$TMP/a" "$TMP/b"
is "$rc:$(cat "$out" "$err")" "0:before     2.000 s of 1 process with 3 threads: 7 waits, 4.070 s
after      4.000 s of 1 process with 3 threads: 95 waits, 2.190 s
compared   2.010 s before, 545.0 ms after: -1.465 s, factor 0.27
numbers    normalised: of each second that was recorded

3 places
   #   before    after    change factor   errors  kind
  1.  2.000 s 500.0 ms  -1.500 s   0.25   -1.5    lock
      main > take_lock
  2.     0 ns 45.00 ms +45.00 ms    new    6.7 *  pipe
      main > new
  3. 10.00 ms     0 ns -10.00 ms   gone   -1.4    disk-read
      main > old

errors: the change in standard errors; * more than 3, ? cannot be judged
idle: 25.00 ms before in 1 place, 2.500 ms after in 1 place; --idle compares them too" "the table is as documented"
run "$diff" --absolute "$TMP/a" "$TMP/b"
like "$(cat "$out")" 'compared   4\.020 s before, 2\.180 s after: -1\.840 s, factor 0\.54
numbers    absolute, whatever the times of the recordings' "--absolute: the head says so"
run "$diff" --top 1 "$TMP/a" "$TMP/b"
like "$(cat "$out")" '^the greatest change of 3 places$' "--top limits the table"
like "$("$diff" --top 2 "$TMP/a" "$TMP/b")" '^the 2 greatest changes of 3 places$' "of more than one it says how many"
in_file idle "$(of_seconds 1.000)$(wait_of 3 1 50000000 idle next_job)"
like "$("$diff" "$TMP/idle" "$TMP/idle")" '^nothing to compare$' "without places to compare it says so"
is "$("$diff" --idle --tsv "$TMP/a" "$TMP/b" | cut -f 16 | tr '\n' ' ')" "kind lock pipe idle disk-read " "--idle compares waits for work"
is "$("$diff" --kind pipe --tsv "$TMP/a" "$TMP/b" | cut -f 2,3,16 | sed 1d)" "0	45000000	pipe" "--kind: a kind of one side alone"
sed 's/duration=/x=/' "$TMP/b" >"$TMP/no-time"
run "$diff" "$TMP/a" "$TMP/no-time"
like "$rc:$(cat "$out")" "numbers    absolute: the time of the recording is not known of '$TMP/no-time'" "the head says which side has no time"
is "$rc" 0 "that is no error"
run "$diff" --tsv "$TMP/a" "$TMP/no-time"
is "$rc:$(cat "$err"):$(sed -n 2p "$out" | cut -f 2,3)" "0:stackdiff: the time of the recording is not known of '$TMP/no-time': the sums are not normalised:4000000000	2000000000" \
	"with --tsv a message does"
run "$diff" --by thread-name "$TMP/a" "$TMP/b"
like "$(cat "$out")" '^  1\. .* -1\.4    ab$' "--by thread-name: threads of one name are one row"
perl -e 'for my $d (1 .. 60) { print "p;", join(";", map { "f$_" . "x" x ($d * $_ % 37) } 1 .. $d), ";entry_SYSCALL_64;__x64_sys_", "c" x ($d % 50), " ", 1000 - $d, "\n" }' >"$TMP/deep"
for width in 40 80 132; do
	"$diff" --top 100 --width $width "$TMP/deep" "$TMP/a" | sed '1,/^   #/d' | grep '^      ' >"$out"
	ok "no stack is wider than --width $width" [ "$(wc -L <"$out")" -le $width ]
done
is "$("$diff" "$TMP/deep" "$TMP/deep" | grep -cE '^ +[0-9]+\. ')" 10 "the table has ten rows"

# a place that is set aside on one side alone
once="# wait: count=1 total_ns=2000000000 max_ns=2000000000 state=S open=1 initial=1 kind=child\nab 1/9 1.5: 2000000000 offcpu-time: \n\t12 wait_all (/x)\n\n"
in_file a "$(of_seconds 2.000)$once$(wait_of 1 4 4000 lock f)"
in_file b "$(of_seconds 2.000)$(wait_of 1 4 4000 lock f)"
rows "a place that waited once, all the time, and is gone, stays aside" "2000|2000|0|1|0.000||1|1|lock||main;f" "$TMP/a" "$TMP/b"
like "$("$diff" "$TMP/a" "$TMP/b")" 'waited once, all the time: 1\.000 s before in 1 place, 0 ns after in 0 places' "the table says so"
in_file b "$(of_seconds 2.000)$(printf '%s' "$once" | sed 's/open=1/open=0/; s/2000000000/1000000000/g')$(wait_of 1 4 4000 lock f)"
rows "one that is ranked on a side is compared with what the other set aside" "1000000000|500000000|-500000000|0.5||?|1|1|child||wait_all
2000|2000|0|1|0.000||1|1|lock||main;f" "$TMP/a" "$TMP/b"

## folded lines and other text

in_file a 'p;a;b 50\np;a;c 7\n'
in_file b 'p;a;b 5000\nq;d 1\n'
run "$diff" --tsv "$TMP/a" "$TMP/b"
is "$rc:$(sed 1d "$out" | cut -f 2-7,18)" "0:50	5000	4950	100		?	a;b
7	0	-7	0		?	a;c
0	1	1			?	d" "folded lines are compared, and not judged"
like "$(cat "$err")" "not known of '$TMP/a'" "they are not normalised"
is "$("$diff" --tsv --unit us "$TMP/a" "$TMP/b" 2>/dev/null | sed -n 2p | cut -f 2,3)" "50000	5000000" "--unit is that of folded lines"
like "$("$diff" --unit count "$TMP/a" "$TMP/b")" '^compared   57 before, 5001 after: \+4944, factor 87\.7$' "--unit=count compares counts"
in_file text "$(of_seconds 1.000)$(wait_of 1 4 4000 lock b)$(wait_of 1 4 4000 idle c)"
in_file a 'p;main;b 50\np;main;c 50\n'
run "$diff" --tsv "$TMP/a" "$TMP/text"
is "$rc:$(sed 1d "$out" | cut -f 2,3,16-)" "0:50	4000			main;b
50	4000			main;c" "folded lines have no kinds, so those of the other side do not count"
like "$("$diff" "$TMP/a" "$TMP/text")" 'kinds      not compared, and idle waits not set aside: one side has none' "the head says so"
in_file a '# host: duration=1.000\nab 1/2 1.5: 10 cycles: \n\t12 f (/x)\n\nab 1/2 1.6: 10 cycles: \n\t12 f (/x)\n\n'
in_file b '# host: duration=2.000\nab 1/2 1.5: 10 cycles: \n\t12 f (/x)\n\n'
rows "periods are compared in each second, with decimals" "20.000|5.000|-15.000|0.25|-1.000||1|1|||f" "$TMP/a" "$TMP/b"
is "$(head -n 1 "$out" | cut -f 2-4)" "before	after	change" "they are not called ns"
in_file b '# host: duration=1.000\nab 1/2 1.5: 7 other: \n\t1 f (x)\n\nab 1/2 1.5: 9 cycles: \n\t12 f (x)\n\n'
run "$diff" --tsv "$TMP/a" "$TMP/b"
is "$rc:$(sed 1d "$out" | cut -f 2,3):$(cat "$err")" \
	"0:20.000	9.000:stackdiff: '$TMP/b': only event 'cycles' is counted; 1 record of another is skipped, the first of 'other'" \
	"both sides are of the event of the first one"

## --folded

sed 's/duration=5\.000/duration=10.000/' "$TMP/2/text" >"$TMP/double"
want_folded() { # SCALE OPTION...
	scale=$1
	shift
	"$BIN/fold" "$@" "$TMP/1/text" >"$TMP/f1"
	"$BIN/fold" "$@" "$TMP/double" >"$TMP/f2"
	perl -e 'my ($scale, %s) = shift; for my $i (0, 1) { open my $f, "<", $ARGV[$i] or die; while (<$f>) { /^(.*) (\d+)$/ or die; $s{$1}[$i] += $2 } }
		print map { "$_ " . ($s{$_}[0] // 0) * $scale . " " . ($s{$_}[1] // 0) . "\n" } sort keys %s' "$scale" "$TMP/f1" "$TMP/f2"
}
run "$diff" --folded "$TMP/1/text" "$TMP/double"
want_folded 2 --no-idle >"$TMP/want"
is "$rc:$(cat "$err")" "0:" "--folded gives status 0"
same "$out" "$TMP/want" "--folded has the stacks of fold, both sums, in the time of AFTER"
run sh -c '"$1" --diff <"$2"' - "$BIN/flame" "$TMP/want"
is "$rc:$(cat "$err")" "0:" "flame --diff takes it"
"$diff" --folded --idle --absolute "$TMP/1/text" "$TMP/double" >"$out"
want_folded 1 >"$TMP/want"
same "$out" "$TMP/want" "--folded --absolute --idle has the sums as they are, of all waits"
"$diff" --folded --kind idle,lock --absolute "$TMP/1/text" "$TMP/double" >"$out"
want_folded 1 --kind idle,lock >"$TMP/want"
same "$out" "$TMP/want" "--folded --kind selects kinds"
in_file a 'p q;a;operator new 5\np q;a 7\np 1\n'
in_file b 'p q;a 70\n[w tid=1];z 3\n'
run "$diff" --folded --unit us "$TMP/a" "$TMP/b"
is "$rc:$(cat "$out")" "0:[w tid=1];z 0 3000
p 1000 0
p q;a 7000 70000
p q;a;operator new 5000 0" "--folded takes folded lines as they are, in ns"
run "$diff" --folded "$TMP/a" "$TMP/1/text"
is "$rc" 0 "--folded takes folded lines and text"
like "$(cat "$err")" "'$TMP/a' has no kinds: its idle waits are compared; with --idle those of '$TMP/1/text' are too" "--folded reports kinds that only one side has"
answers 1 "--folded --kind without kinds" "the waits of '$TMP/a' have no kind, so none can be chosen" --folded --kind lock "$TMP/a" "$TMP/1/text"
answers 1 "--folded --kind of none" "no wait is of the kinds that are compared" --folded --kind swap "$TMP/1/text" "$TMP/1/text"

## captures

main=$(nm "$BIN/fold" 2>/dev/null | awk '$3 == "main" { print $1 }')
if [ -n "$main" ] && "$OBJ/t/unit/resolve" --make "$TMP/a.cap" "$BIN/fold" "$BIN/fold" prog "" "$main"; then
	"$BIN/symbolize" -q "$TMP/a.cap" >"$TMP/a.txt"
	for format in --tsv --folded; do
		run "$diff" $format "$TMP/a.cap" "$TMP/a.txt"
		"$diff" $format "$TMP/a.txt" "$TMP/a.txt" >"$TMP/want"
		same "$out" "$TMP/want" "$format: a capture is read as its text"
	done
	head -c $(($(wc -c <"$TMP/a.cap") - 20)) "$TMP/a.cap" >"$TMP/cut.cap"
	run "$diff" --tsv "$TMP/a.cap" "$TMP/cut.cap"
	is "$rc" 1 "a truncated capture gives status 1"
	like "$(cat "$err")" "^symbolize: " "symbolize reports what is missing"
	run sh -c '"$1" - "$2" <"$2"' - "$diff" "$TMP/a.cap"
	like "$rc:$(cat "$err")" "^2:stackdiff: '-' is a capture, not the text of symbolize" "a capture on stdin gives status 2"
	cp "$diff" "$TMP/alone"
	run env PATH=/nonexistent "$TMP/alone" "$TMP/a.cap" "$TMP/a.cap"
	like "$rc:$(cat "$err")" "^2:.*cannot run 'symbolize', which reads the capture '$TMP/a.cap'" "a capture without symbolize gives status 2"
else
	skip "captures" "fold has no symbols"
fi

## what is missing or damaged

in_file a "$(of_seconds 1.000)$(wait_of 1 4 4000 lock f)"
in_file b "$(of_seconds 1.000)# lost: name=lost.x count=3\n# lost: name=lost.y count=5\n$(wait_of 1 4 4000 lock f)"
incomplete "a recorder that lost something" "the recorder of '$TMP/b' lost something: lost\.x 3, and more" "$TMP/a" "$TMP/b"
like "$("$diff" "$TMP/a" "$TMP/b" 2>/dev/null)" '  lost     lost\.x 3, lost\.y 5' "the head has what was lost"
in_file b "$(of_seconds 1.000)# damaged: at byte 7\n$(wait_of 1 4 4000 lock f)"
incomplete "a damaged recording" "the recording of '$TMP/b' is damaged: at byte 7" "$TMP/b" "$TMP/a"
in_file b "$(of_seconds 1.000)# incomplete: ends at byte 7\n$(wait_of 1 4 4000 lock f)"
incomplete "a recording without its end" "the recording of '$TMP/b' is incomplete: ends at byte 7" "$TMP/b" "$TMP/a"
like "$("$diff" "$TMP/b" "$TMP/a" 2>/dev/null)" '^  incomplete ends at byte 7$' "the head has where it ends"
in_file b "$(of_seconds 1.000)$(wait_of 1 4 4000 lock f)ab 1/2 1.5: 7 offcpu-time: \n\t1 f (x)"
incomplete "a record that is cut" "1 malformed line or record is skipped; the first is line [0-9]+ of '$TMP/b': a record cut short" "$TMP/a" "$TMP/b"
in_file b 'p;a 5\np;b\n'
incomplete "a folded line without a number" "line 2 of '$TMP/b': a folded line without a number" "$TMP/b" "$TMP/b"
: >"$TMP/empty"
answers 1 "an empty file" "no wait in '$TMP/empty'" "$TMP/a" "$TMP/empty"
answers 1 "an empty file before" "no wait in '$TMP/empty'" --folded "$TMP/empty" "$TMP/a"
run sh -c '"$1" - "$2" </dev/null' - "$diff" "$TMP/a"
like "$rc:$(cat "$err")" "^1:stackdiff: no wait in 'standard input'" "empty standard input is reported"
in_file b 'zz 1/2 1.5: 7 other: \n\t1 f (x)\n\n'

for side in c:300:500 d:600:400; do
	IFS=: read -r name on off <<-EOF
		$side
	EOF
	in_file "$name" "# host: hostname=h duration=2.000\n# totals: waits=2 total_ns=$off lost=0 samples=3\n\n# sample: count=3 total_ns=$on\nab 1/2 1.4: $on cpu-clock: \n\t1 g (x)\n\n# wait: count=2 total_ns=$off max_ns=$off kind=lock\nab 1/2 1.5: $off offcpu-time: \n\t1 f (x)\n\n"
done
run "$diff" "$TMP/c" "$TMP/d"
is "$rc:$(sed -n '3,4p;9p' "$out"):$(cat "$err")" "0:compared   250 ns before, 200 ns after: -50 ns, factor 0.80
on CPU     150 ns before, 300 ns after: +150 ns, factor 2.00
  1.   250 ns   200 ns    -50 ns   0.80   -0.2    lock:" "waits are compared, and the time on the CPU in a line of its own"
run "$diff" --tsv --event cpu-clock "$TMP/c" "$TMP/d"
is "$rc:$(sed 1d "$out" | cut -f 2-4,16-)" "0:150	300	150			g" "--event cpu-clock compares the samples"
echo 'mine user=f' >"$TMP/rules"
run "$diff" --kinds "$TMP/rules" "$TMP/c" "$TMP/d"
is "$rc:$(head -n 1 "$err"):$(cat "$out")" "64:stackdiff: --kinds is for captures, and '$TMP/c' has its kinds already: give it to symbolize:" \
	"--kinds is refused for text"
answers 1 "another event" "no record of '$TMP/b' is of event 'offcpu-time'; the first one is of 'other'
.*hint: both sides must be of one event" "$TMP/a" "$TMP/b"
answers 1 "a kind that does not occur" "no wait is of kind 'swap'.*
.*hint: there are waits of lock" --kind swap "$TMP/a" "$TMP/a"
in_file b 'p;a 5\n'
answers 1 "--kind of folded lines" "no wait is of kind 'lock'.*
.*hint: its records have no kind" --kind lock "$TMP/a" "$TMP/b"
answers 2 "times and counts" "'$TMP/a' has times and '$TMP/b' has waits: they cannot be compared
.*hint: --unit" --unit count "$TMP/a" "$TMP/b"
answers 2 "a missing file" "cannot open '$TMP/nothing': No such file" "$TMP/a" "$TMP/nothing"
answers 2 "a directory" "cannot read '$TMP': Is a directory" "$TMP" "$TMP/a"
printf 'PERFILE2\0\0\0\0' >"$TMP/perf.data"
answers 2 "a perf.data file" "hint: .*perf script -i '$TMP/perf.data'" "$TMP/perf.data" "$TMP/a"
head -c 100000 "$BIN/fold" >"$TMP/elf"
status 2 "a binary file gives status 2, not a crash" "$diff" "$TMP/elf" "$TMP/elf"
size=$(wc -c <"$TMP/a") i=0 bad=
while [ "$i" -lt "$size" ]; do
	head -c "$i" "$TMP/a" >"$TMP/part"
	run "$diff" "$TMP/part" "$TMP/a"
	[ "$rc" -le 1 ] || bad="$bad $i"
	i=$((i + 7))
done
is "$bad" "" "a side that is cut anywhere gives status 0 or 1"

## hostile names and numbers

H='# host: duration=1.000\n# lost: name=\033[2J count=1\n# damaged: \033[2J\n# wait: count=1 total_ns=7 kind=\033[2J state=\001\na\033]0;x\007b 1/2 1.5: 7 offcpu-time: \n\tffffffff81000000 __x64_sys_\033c ([kernel.kallsyms])\n\t1 t\tb\033[1m\377\302\233\000n\\\\ (/f\033[31m)\n\n'
in_file hostile "$H"
for args in "" "--by function" "--by thread-name" "--by process" "--by kind" --tsv --json "--tsv --by thread-name"; do
	# shellcheck disable=SC2086 # words
	run "$diff" $args "$TMP/hostile" "$TMP/a"
	is "$rc:$(LC_ALL=C tr -d '\n\t -~' <"$out" | LC_ALL=C sed 's/\xef\xbf\xbd//g' | wc -c):$(LC_ALL=C tr -d '\n -~' <"$err" | wc -c)" "1:0:0" \
		"no control character of a name is printed: ${args:-the table}"
done
is "$("$diff" --tsv "$TMP/hostile" "$TMP/hostile" 2>/dev/null | awk -F '\t' '{ print NF }' | sort -u)" 18 "a tab in a name does not add a field"
ok "hostile names give valid JSON" sh -c '"$1" --json "$2" "$3" 2>/dev/null | perl -MCpanel::JSON::XS -0777 -ne "ref decode_json(\$_)->{rows} eq q(ARRAY) or die"' - "$diff" "$TMP/hostile" "$TMP/a"
max=18446744073709551615
in_file b "# host: duration=0.000000001\n$(wait_of 1 $max $max lock f)$(wait_of 2 $max $max lock f)$(wait_of 3 0 $max lock f 0)"
for args in "" --tsv --json --folded; do
	# shellcheck disable=SC2086 # words
	run "$diff" $args "$TMP/a" "$TMP/b"
	is "$rc:$(grep -ciE 'nan|inf' "$out")" "0:0" "the greatest numbers in the shortest time do no harm: ${args:-the table}"
done
in_file b "# host: duration=18446744073.709551615\n$(wait_of 1 $max $max lock f)"
rows "nor do they in the longest" "1000000000|1000000000|0|1|0.000||1|1|lock||main;f" "$TMP/b" "$TMP/b"

## exit status and command line

in_file a "$(of_seconds 1.000)$(wait_of 1 4 4000 lock f)"
for format in "" --tsv --json --folded; do
	# shellcheck disable=SC2086 # a word, or none
	run sh -c 'out=$1; shift; "$@" >"$out"' - /dev/full "$diff" $format "$TMP/a" "$TMP/a"
	like "$rc:$(cat "$err")" '^2:stackdiff: cannot write' "a full disk gives status 2: ${format:-the table}"
done
run sh -c '"$0" "$1" "$1" >&-' "$diff" "$TMP/a"
is "$rc" 2 "a closed stdout gives status 2"
status 64 "no file is a usage error" "$diff"
like "$(cat "$err")" '^stackdiff: no BEFORE given' "it is reported"
status 64 "one file is a usage error" "$diff" "$TMP/a"
like "$(cat "$err")" '^stackdiff: no AFTER given' "it is reported, too"
status 64 "three files are a usage error" "$diff" "$TMP/a" "$TMP/a" "$TMP/a"
status 64 "standard input twice is a usage error" "$diff" - -
like "$(cat "$err")" '^stackdiff: BEFORE and AFTER cannot both be standard input' "which is reported"
status 64 "--json and --tsv exclude one another" "$diff" --json --tsv "$TMP/a" "$TMP/a"
status 64 "--folded and --by exclude one another" "$diff" --folded --by kind "$TMP/a" "$TMP/a"
like "$(cat "$err")" '^stackdiff: --folded and --by exclude one another' "which is reported, too"
status 64 "--folded and --top exclude one another" "$diff" --folded --top 3 "$TMP/a" "$TMP/a"
for bad in --by=thread --by= --top=0 --width=39 --unit=s --nope --idle=1; do
	status 64 "$bad is a usage error" "$diff" "$bad" "$TMP/a" "$TMP/a"
	[ -s "$out" ] && fail "$bad writes nothing to stdout"
done
tap_done
