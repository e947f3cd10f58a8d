#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck disable=SC2154,SC2016 # $out, $err and $rc come from tap.sh; awk's and Perl's variables
# symbolize --format=perf: what viewers read, by rules that are written down in t/data/viewers/read.pl. With
# STACKTOOLS_VIEWERS, a folder of scripts/viewers, the viewers' own importers read it, too.
. "$(dirname "$0")/../lib/tap.sh"
V=$DATA/viewers
sym=$BIN/symbolize
cap=$TMP/a.cap
text=$TMP/text
plain=$TMP/plain
tab=$(printf '\t')

# made FILE...: makes $cap of the waits in FILE, and prints it in both formats
made() {
	cat "$@" | "$OBJ/t/unit/print" --make "$cap" && "$sym" -q "$cap" >"$plain" && "$sym" -q --format=perf "$cap" >"$text"
}

# waits TEXT: the same, of waits as a printf format
waits() {
	# shellcheck disable=SC2059 # the format is the text
	printf "$1" >"$TMP/waits"
	made "$TMP/waits"
}

# viewed NAME EVENT...: each importer accepts $text, and finds the time where the capture has it
viewed() {
	v_name=$1
	for viewer in speedscope firefox perfetto; do
		v_event=all
		[ $viewer != speedscope ] || v_event=$2
		ok "$v_name: $viewer accepts it" sh -c 'perl "$1" "$2" "$3" >"$4"' sh "$V/read.pl" $viewer "$text" "$TMP/$viewer"
		ok "$v_name: $viewer shows each stack, in its share" perl "$V/compare.pl" truth "$TMP/$viewer" "$plain" "$v_event" "${3:-1}"
	done
}

# the grammar, more strictly than any of them: no line but these
strange_lines() {
	perl -ne 'BEGIN { $/ = "" }
		chomp;
		my ($head, @frames) = split /\n/;
		print "$head\n" if $head !~ /^[^\s#].* \d+\/\d+ \[000\] \d+\.\d{6}: [1-9]\d* (offcpu-time|cpu-clock): $/;
		print "no frames: $head\n" if !@frames;
		for (@frames) {
			print "$_\n" if !/^\t[ 0-9a-f]{15}[0-9a-f] \S.* \([^\s()]+\)$/ || / [^ ]*\+[^ ]* \(/ && !/\+0x[0-9a-f]+ \(/;
		}' "$text"
}

# sums of periods by event; the same of JSON
sums() {
	perl -ne '$sum{$2} += $1 if /^[^\t].*: (\d+) (\S+): $/; END { print "$_ $sum{$_}\n" for sort keys %sum }' "$1"
}

json_sums() {
	"$sym" -q --format=json "$cap" | perl -MJSON::PP -ne 'my $w = decode_json($_);
		$sum{$w->{event} // "offcpu-time"} += $w->{total_ns} if $w->{type} =~ /^(wait|sample)$/;
		END { print "$_ $sum{$_}\n" for sort keys %sum }'
}

for list in plain hostile; do
	made "$V/$list.waits"
	viewed "$list names" offcpu-time
	is "$(strange_lines)" "" "$list names: each record is one first line, frames and an empty line, and there is nothing else"
	is "$(tail -c 2 "$text" | od -An -c | tr -d ' ')" '\n\n' "$list names: the last record ends with an empty line"
	is "$(sums "$text")" "$(json_sums)" "$list names: periods add up to the capture's sums"
	for event in offcpu-time cpu-clock; do
		for options in "" --tid --balanced --threads "--unit us" --addrs; do
			# shellcheck disable=SC2086 # words
			"$BIN/fold" --event-filter $event $options "$plain" >"$TMP/want" 2>"$err"
			# shellcheck disable=SC2086 # words
			"$BIN/fold" --event-filter $event $options "$text" 2>"$err" | sed 's/;\[no stack\] / /' >"$TMP/got"
			same "$TMP/got" "$TMP/want" "$list names: fold $options has the same of $event as of the usual text"
		done
	done
done
like "$("$BIN/fold" "$text" 2>"$err" | grep '^long;')" '^long;f 5000000000
long;g 4294967296$' "sums of more than 32 bits are whole"
is "$(tr -d '\n\t -~\200-\377' <"$text" | wc -c)" 0 "there are no control characters"
is "$(grep -c "$(printf '\342\200\250')" "$text")" 0 "nor separators of lines, at which JavaScript ends one"
is "$(grep "$(printf '\302\240')" "$text" | sed 's/^.* n/n/' | sort -u)" "$(printf 'n\302\240b (in x)+0x10 (/lib/nb\\xc2\\xa0sp.so)')" \
	"white space of Unicode is in names of functions alone"

# --- time
made "$V/hostile.waits"
back() {
	perl -ne 'if (m{ (\d+/\d+) \[000\] ([0-9.]+): \d+ \S+: $}) { print if $2 < ($last{$1} // 0); $last{$1} = $2 }' "$text"
}
is "$(back)" "" "the times of a thread never go back, whatever events, names and images it has"
is "$(perl -ne 'if (/ \[000\] ([0-9.]+): \d+ (\S+): $/) { $seen = 1 if $2 eq "cpu-clock"; print if $seen && $2 ne "cpu-clock" }' "$text")" "" \
	"all waits come before what threads execute, so that speedscope takes them for the event"
is "$(awk '/^[^\t].*: $/ { print $(NF - 2) }' "$text" | sort -n | head -n 1)" "1.123456:" "times begin where the recording does"
is "$(perl -ne 'if (m{ (\d+/\d+) \[000\] ([0-9.]+): \d+ offcpu-time: $}) { print "$1 $2\n" if !$seen{$1}++ && $2 != 1.123456 }' "$text")" "" \
	"each thread's do"
waits '1\t5\ta\t-\t1000\t|f\t-\n2\t5\ta\t-\t1000\t|f\t-\n'
is "$(sed -n 's/^a  \([0-9/]*\) \[000\] \([0-9.]*\): .*/\1 \2/p' "$text" | sort -u -t' ' -k1,1 | tr '\n' ' ')" "1/5 1.123456 2/5 1.123456 " \
	"also if two processes had the same number for one"
waits '1\t1\ta\t-\t1000\t|f\t-\n1\t1\ta\t-\t3000\t|g\t-\n1\t1\ta\t-\t10000000\t|h\t-\n'
is "$(awk '/^[^\t].*: $/ { t = $4; getline; if (n[$2]++ < 1) print t, $2 }' "$text")" "1.123456: f+0x11
1.123458: g+0x11
1.123460: h+0x11" "short waits come first, each so far from the next that half-way is its end"

# --- samples
is "$(grep -c ': $' "$text")" 10000 "a capture has 10,000 samples"
waits '1\t1\ta\t-\t1\t|f\t-\n'
is "$(grep ': $' "$text")" "a  1/1 [000] 1.123456: 1 offcpu-time: " "a nanosecond is one sample"
waits '1\t1\ta\t-\t0\t|f\t-\n'
is "$(grep ': $' "$text")" "a  1/1 [000] 1.123456: 1 offcpu-time: " "so is nothing, for readers take a period of 0 for 1"
waits '1\t1\tab\t-\t30\t|f\t-\n1\t2\tab\t-\t1\t|f\t-\n'
is "$(grep -c '^ab 1/1 .*: 1 offcpu-time: $' "$text") $(grep -c ': $' "$text")" "30 31" "a wait has no more samples than nanoseconds"
perl -e 'srand 1; for my $t (1 .. 300) {
	printf "%d\t%d\tthread\t-\t%d\t|f%d\t-\n", 1 + $t % 7, 100 + $t, 1000 * exp(rand 14), $_ for 1 .. 10 }' >"$TMP/waits"
made "$TMP/waits"
n=$(grep -c ': $' "$text")
ok "3,000 records have ten samples each, and one more where one is short: $n" test "$n" -ge 30000 -a "$n" -le 33000
viewed "many records" offcpu-time 6
is "$(strange_lines)" "" "many records: each is in the grammar"
is "$(sums "$text")" "$(json_sums)" "many records: periods add up"

perl -e 'printf "1\t%d\tthread\t-\t%d\t|f\t-\n", $_ / 10, 1000 * $_ for 1 .. 12000' >"$TMP/waits"
made "$TMP/waits"
n=$(grep -c ': $' "$text")
ok "12,000 records have 100,000 samples, which is the most: $n" test "$n" -ge 99000 -a "$n" -le 102000

# --- names that make a file another one
while read -r comm; do
	printf '1\t1\t%s\t-\t50\t|f\t-\n2\t2\tfn=x\t-\t50\t|f\t-\n' "$comm" >"$TMP/waits"
	made "$TMP/waits"
	for viewer in speedscope firefox perfetto; do
		ok "$viewer accepts text that begins with '$comm'" perl "$V/read.pl" $viewer "$text"
	done
	ok "the usual text has that name as it is, but for spaces" grep -qF "$(printf '%s' "$comm" | sed 's/^#/\\x23/; s/ \([0-9]\)/_\1/') 1/1 [000] " "$plain"
done <"$V/first-names"

# --- frames
waits '1\t1\ta\t-\t5\t|f\t/b(in)/x y|op+|outer;/b(in)/x|main;/lib/a+b.so\n1\t1\ta\t-\t5\t-\t-\n'
is "$(grep "^$tab" "$text" | sort -u)" "$tab               0 [no stack] ([unknown])
$tab    7f0000001110 op++0x0 (/b\\x28in\\x29/x\\x20y)
$tab    7f0000001110 outer+0x10 (/b\\x28in\\x29/x\\x20y)
$tab    7f0100001211 main+0x11 (/b\\x28in\\x29/x)
$tab    7f0200001311 [a+b.so+0x1311]+0x0 (/lib/a+b.so)
${tab}ffffffff81001011 f+0x11 ([kernel.kallsyms])" \
	"an inlined call has the module of its code, \"+\" an offset behind it, and no file has parentheses"
waits '1\t1\ta\t-\t1\t|schedule;|f\t-\n'
is "$(grep -c schedule "$text") $("$sym" -q --format=perf --scheduler "$cap" | grep -c 'schedule+')" "0 1" \
	"the scheduler's frames are printed with --scheduler alone"

# --- selection, and what is missing
made "$V/hostile.waits"
"$sym" -q --format=perf -p 700 "$cap" >"$text"
is "$(sums "$text")" "offcpu-time 9294967296" "-p selects a process, and its samples are shares of what is selected"
status 1 "a selection without waits gives status 1" "$sym" --format=perf -p 7 "$cap"
is "$(cat "$out")" "" "and prints nothing"
"$OBJ/t/unit/print" --make "$cap" cut <"$V/plain.waits"
"$sym" -q --format=perf "$cap" >"$text" 2>"$err"
is "$?" 1 "a truncated capture gives status 1"
like "$(cat "$err")" '^symbolize: the capture is incomplete: ' "and a message"
is "$(strange_lines)" "" "what is printed of it has the grammar"
"$sym" -q "$cap" >"$plain" 2>"$err"
viewed "a truncated capture" offcpu-time
: | "$OBJ/t/unit/print" --make "$cap"
status 0 "a capture without waits gives status 0" "$sym" --format=perf "$cap"
is "$(cat "$out" "$err")" "" "and nothing"

# --- command line
status 64 "--lines is not an option of this format" "$sym" --format=perf --lines "$cap"
like "$(cat "$err")" '^symbolize: --lines and --format=perf exclude one another$' "the message says so"
made "$V/plain.waits"
run sh -c '"$1" -q --format=perf "$2" >/dev/full' sh "$sym" "$cap"
like "$rc $(cat "$err")" '^2 symbolize: .*No space left' "a full device gives status 2"
ok "a reader that closes the pipe early gets its line" sh -c '"$1" -q --format=perf "$2" | head -n 1 | grep -q offcpu-time' sh "$sym" "$cap"

[ -z "${STACKTOOLS_VIEWERS-}" ] || ok "the viewers read what t/data/viewers/read.pl reads" sh "$TOP/scripts/viewers"
tap_done
