#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# flame --heat and --threads: pages of each wait, as parsers see them. scripts/flame-browser runs them in a browser.
. "$(dirname "$0")/../lib/tap.sh"
F=$DATA/flame
flame=$BIN/flame

# makes FILE ARGUMENT...: writes a page to FILE
makes() {
	t_file=$1
	shift
	"$flame" "$@" >"$t_file"
}

# of_text VIEW TEXT NAME: the page of that text has the waits that Perl finds in it
of_text() {
	ok "$3: a page is made" makes "$TMP/page.html" "--$1" "$2"
	perl "$F/times" "$TMP/page.html" >"$TMP/got"
	perl "$F/times" --of "$2" "$TMP/page.html" >"$TMP/want"
	same "$TMP/got" "$TMP/want" "$3: it has the waits that Perl finds in the text"
}

# record BEGIN TOTAL [WORDS [HEADER]]: a record of one wait unless WORDS, which come last, say otherwise
record() {
	printf '# wait: count=1 total_ns=%s max_ns=%s kind=lock%s\n%s [000] %s: %s offcpu-time: \n\t12 futex_wait+0x1 ([kernel.kallsyms])\n\t34 work+0x2 (/x)\n\n' \
		"$2" "$2" "${3:+ $3}" "${4-app 7/8}" "$1" "$2"
}

# value KEY: of the JSON of $TMP/page.html
value() {
	perl -MJSON::PP -0777 -ne 'BEGIN { $k = shift } my ($j) = m{id="data">(.*?)</script>}s; my $v = decode_json($j)->{$k};
		print ref $v ? encode_json($v) : $v' "$1" "$TMP/page.html"
}

# warns VIEW TEXT STATUS MESSAGE NAME: TEXT is a file
warns() {
	run "$flame" "--$1" "$2"
	cp "$out" "$TMP/page.html"
	is "$rc" "$3" "$5: status $3"
	like "$(cat "$err")" "$4" "$5: the message"
}

## what is drawn

for seed in 1 2; do
	perl "$F/events" 3000 $seed >"$TMP/events"
	for view in heat threads; do
		of_text $view "$TMP/events" "--$view of a simulated server ($seed)"
		is "$(value waits)" "$(grep -c '^# wait:' "$TMP/events")" "--$view: the number of all waits ($seed)"
		is "$(value total)" "$(sed -n 's/^# totals: .* total_ns=\([0-9]*\) .*/\1/p' "$TMP/events")" "--$view: their sum ($seed)"
	done
done
"$flame" --threads - <"$TMP/events" >"$TMP/stdin.html"
same "$TMP/stdin.html" "$TMP/page.html" "standard input gives the same page"
perl -e '$/ = ""; my @r = <>; print for @r[0 .. 0], reverse @r[1 .. $#r]' "$TMP/events" >"$TMP/reversed"
of_text threads "$TMP/reversed" "records in another order"
is "$(value idleThreads)" 12 "threads of which all waits are idle are idle ones"
is "$(value threads | perl -MJSON::PP -e 'my $t = decode_json(<>); print join " ", map { $_->[0] } @$t[-12 .. -1]' | tr ' ' '\n' | grep -c '^pool\|^shopd')" 12 "they are the last"

{
	record 5.000000001 500 'runnable_ns=20'
	record 5.000000700 300 'preempted=1'
	record 4.9 100 '' 'a b 7/8'
	record 6 1000 'open=1 initial=1 waker=other'
} >"$TMP/in"
of_text threads "$TMP/in" "known and unknown runnable times, flags, and a waker that is only named"
is "$(value origin) $(value span)" "4.900000000 1100001000" "time begins with the first wait and ends with the last one's end"
is "$(value threads)" '[["app","7","8","app"]]' "a thread has the name that it had last"
{
	record 5.1 2000 '' 'solo 9'
	record 5.2 2000 '' 'first 20/20'
	record 5.3 2000 '' 'other 20/21'
} >"$TMP/in"
of_text heat "$TMP/in" "a thread of which only its own id is known"
is "$("$flame" --threads "$TMP/in" >"$TMP/page.html" && value threads)" '[["first","20","20","first"],["other","20","21","first"],["solo","?","9","solo"]]' \
	"a process has the name of its main thread"
perl -e 'for my $k (0 .. 99) { printf "# wait: count=1 total_ns=%d max_ns=1 kind=k%d\napp 1/1 [000] %d.0: 1 offcpu-time:\n\t12 f (/x)\n\n", 1000 + $k, $k, $k + 1 }' >"$TMP/in"
"$flame" --threads "$TMP/in" >"$TMP/page.html"
is "$(value kinds | tr ',' '\n' | grep -c .):$(value kinds | grep -c '"k58","other"\]')" "60:1" "of more than 60 kinds the last ones are other"
perl -e 'for my $k (0 .. 299) { printf "# wait: count=1 total_ns=%d max_ns=1 kind=lock\napp 1/%d [000] %d.5: 1 offcpu-time:\n\t12 f (/x)\n\n", 1000 + $k, $k + 1, $k + 1 }' >"$TMP/in"
"$flame" --heat "$TMP/in" >"$TMP/page.html"
is "$(value otherThreads):$(value threads | grep -o '"1"' | wc -l):$(perl "$F/times" "$TMP/page.html" | awk '$3 == "other" { n += $(NF - 1) } END { print n }')" "200:100:200" "a heat map has 100 threads, and the others together"

## a bounded page

perl -e 'for my $i (0 .. 399999) { my $ns = 1000 + ($i * 7919) % 1000000; my $t = 1 + $i / 400000;
	printf "# wait: count=1 total_ns=%d max_ns=%d kind=lock\napp 1/%d [000] %.9f: 1 offcpu-time:\n\t12 f%d (/x)\n\n", $ns, $ns, 1 + $i % 3, $t, $i % 99991 }' >"$TMP/many"
ok "400,000 waits in different places are drawn" makes "$TMP/page.html" --heat "$TMP/many"
ok "as at most 300,000 entries" test "$(value entries)" -le 300000
is "$(perl "$F/times" "$TMP/page.html" | awk '{ n += $(NF - 1); ns += $NF } END { printf "%d %d", n, ns }')" \
	"400000 $(awk -F'[ =]' '/^# wait/ { ns += $6 } END { printf "%d", ns }' "$TMP/many")" "their number and time are exact"
ok "places of least time became others" test "$(perl "$F/times" "$TMP/page.html" | grep -c ' lock other ')" -gt 0
is "$(perl "$F/times" "$TMP/page.html" | awk '{ by[$3 $4] += $(NF - 1) } END { for (t in by) print by[t] }' | sort -n | tr '\n' ' ')" \
	"133333 133333 133334 " "each thread has all of its waits"

## edges of times

record 1.5 0 >"$TMP/in"
of_text heat "$TMP/in" "a wait of no time"
of_text threads "$TMP/in" "a wait of no time"
{ record 1 1; record 2 9007198000000000; } >"$TMP/in"
of_text heat "$TMP/in" "waits from 1 ns to 104 days"
of_text threads "$TMP/in" "waits from 1 ns to 104 days"
{ record 1 1; record 9007300 1000; } >"$TMP/in"
run "$flame" --threads "$TMP/in"
is "$rc:$(cat "$out")" "2:" "waits more than 104 days apart are an error"
like "$(cat "$err")" "^flame: the waits are more than 104 days apart
flame: hint: recordings of different boots" "which says what may be wrong"

## what cannot be drawn

printf '# wait: count=3 total_ns=30 max_ns=20 kind=lock\napp 7/8 [000] 1.0: 30 offcpu-time:\n\t12 f (/x)\n\n' >"$TMP/sums"
for view in heat threads; do
	warns $view "$TMP/sums" 2 "^flame: 1 record has 3 waits in sum, which have no place in time: there is nothing to draw
flame: hint: record with offcpu-record --events, and print each wait with symbolize --events$" "--$view: nothing but sums"
	is "$(cat "$out")" "" "--$view: and nothing is printed"
	{ record 1 5000; cat "$TMP/sums" "$TMP/sums"; } >"$TMP/in"
	warns $view "$TMP/in" 1 "^flame: 2 records have 6 waits in sum, which have no place in time: not drawn" "--$view: sums among waits"
	is "$(value waits)" 1 "--$view: the others are drawn"
	warns $view /dev/null 1 "^flame: the input has no wait
flame: hint: the programs" "--$view: empty input"
	is "$(cat "$out")" "" "--$view: makes no page"
	{ printf 'x\n\n'; record 1 5000; } >"$TMP/in"
	warns $view "$TMP/in" 1 "^flame: 1 malformed line or record is skipped; the first is line 1 of '.*in': neither header nor frame$" "--$view: a line that is none"
	is "$(value waits)" 1 "--$view: the wait is drawn"
	printf 'a;b 1\n' >"$TMP/in"
	warns $view "$TMP/in" 1 "malformed .*
flame: hint: --heat and --threads read text: symbolize --events cap.bin \| flame --heat" "--$view: folded lines"
	printf 'PERFILE2xxxx' >"$TMP/in"
	warns $view "$TMP/in" 2 "is a perf.data file.*
.*hint: .*symbolize --events FILE \| flame --$view" "--$view: a perf.data file"
	warns $view "$TMP/none" 2 "cannot open '.*/none': No such file" "--$view: a missing file"
done
malformed() { # NAME WHY ARGUMENT-OF-RECORD...
	m_name=$1
	m_why=$2
	shift 2
	{ record 1 5000; record "$@"; } >"$TMP/in"
	warns threads "$TMP/in" 1 "^flame: 1 malformed line or record is skipped; the first is line 7 of '.*': $m_why$" "$m_name"
	is "$(value waits)" 1 "$m_name: the rest is drawn"
}
malformed "a header whose time is none" "a header without a time" x 1
malformed "a time of ten decimals" "a header without a time" 1.0000000001 1
malformed "a time beyond 64 bits" "a header without a time" 99999999999999 1
malformed "an end beyond 2^63" "an end beyond 2\^63 ns" 9223372036 9000000000
malformed "a runnable time beyond the whole" "a runnable_ns that is greater than the whole wait" 2 10 runnable_ns=11
malformed "a number that is none" "a number in the comment that is not a 64-bit one" 2 10 runnable_ns=99999999999999999999
{ record 1 5000; record 2 5000 | sed '$d'; } >"$TMP/in"
warns threads "$TMP/in" 1 "a record cut short by the end of the input" "a record that is cut short"
printf '# sample: count=1 total_ns=10\napp 1/1 [000] 1.0: 10 cpu-clock:\n\t12 f (/x)\n\n' >"$TMP/in"
warns threads "$TMP/in" 1 "the input has no wait" "nothing but samples"
{ cat "$TMP/in"; record 5 1000; } >"$TMP/in2"
"$flame" --heat "$TMP/in2" >"$TMP/page.html"
is "$(value origin)" 5.000000000 "a heat map is of waits, not of samples"

## hostile names

perl -e 'my @names = ("</script><script>alert(1)</script>", "<!--", "]]><img", "\"\x27`&lt;", "__proto__", "constructor", "\@script\@", "bad\xff\xc0",
	"ls\xe2\x80\xa8", "rlo\xe2\x80\xae", "nul\0esc\e[31m", "--", "-", "\\u003c", "\${7*7}");
	my $t = 1;
	for my $n (@names) { (my $word = $n) =~ s/\s/_/g; $t++;
		printf "# wait: count=1 total_ns=5000 max_ns=5000 kind=%s waker=%s\n%s%s 1/%d [000] %d.5: 5000 offcpu-time:\n\t12 %s (/x)\n\t13 outer (/x)\n# waker: %s%s 1/2\n#\t14 %s (/y)\n\n",
			$word, $word, $n, $n, $t, $t, $n, $n, $n, $n }' >"$TMP/names"
record 1 1 >"$TMP/tame"
for view in heat threads; do
	run "$flame" --$view --title '</title><script>alert(1)</script>' "$TMP/names"
	is "$rc:$(cat "$err")" "0:" "--$view: hostile names are drawn"
	cp "$out" "$TMP/page.html"
	"$flame" --$view "$TMP/tame" >"$TMP/tame.html"
	python3 "$F/parts" "$TMP/page.html" >"$TMP/got"
	python3 "$F/parts" "$TMP/tame.html" >"$TMP/want"
	same "$TMP/got" "$TMP/want" "--$view: a parser of HTML finds in that page the elements of every page, whose policy has the right hashes"
	is "$(value waits)" 15 "--$view: its data is JSON"
	is "$(LC_ALL=C grep -c "$(printf '[\001-\010\013-\037\177]')" "$TMP/page.html")" 0 "--$view: no control character is in it"
	is "$(LC_ALL=C grep -c "$(printf '\342\200[\250-\256]')" "$TMP/page.html")" 0 "--$view: no separator of lines and no control of direction is in it"
	is "$(grep -ciE '(src|href|action)=|@import|url\(|https?:' "$TMP/tame.html")" 0 "--$view: a page refers to nothing outside"
done

## output

record 1 5000 >"$TMP/in"
for view in heat threads; do
	run sh -c '"$1" "$2" "$3" >/dev/full' sh "$flame" --$view "$TMP/in"
	is "$rc:$(grep -c 'No space left' "$err")" "2:1" "--$view: a full disk gives status 2 and a message"
	run sh -c '{ "$1" "$2" "$3"; echo $? >"$4"; } | head -c 1 >/dev/null' sh "$flame" --$view "$TMP/many" "$TMP/rc"
	is "$(cat "$TMP/rc")" 141 "--$view: a reader that goes away ends it by SIGPIPE"
	status 0 "--$view -o makes a file" "$flame" --$view -o "$TMP/$view.html" "$TMP/in"
	"$flame" --$view "$TMP/in" >"$TMP/page.html"
	same "$TMP/$view.html" "$TMP/page.html" "--$view: with the page"
	status 0 "--$view -o replaces a page of flame" "$flame" --$view --title new -o "$TMP/$view.html" "$TMP/in"
	for opt in --svg --unit=us --diff --icicle; do
		status 64 "--$view with $opt is refused" "$flame" --$view $opt "$TMP/in"
		like "$(cat "$err")" "flame: --$view and ${opt%=*} exclude one another" "--$view $opt: the message"
	done
done
status 64 "--heat with --threads is refused" "$flame" --heat --threads "$TMP/in"
like "$(cat "$err")" "--threads and --heat exclude one another|--heat and --threads exclude one another" "and says so"
status 0 "--help has both" "$flame" --help
like "$(cat "$out")" ' --heat  .*
.* --threads  ' "--help: the options"

tap_done
