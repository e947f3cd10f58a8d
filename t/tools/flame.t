#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# flame: pages and pictures of folded stacks, as parsers see them. scripts/flame-browser runs them in a browser.
. "$(dirname "$0")/../lib/tap.sh"
F=$DATA/flame
flame=$BIN/flame
sum_max=9223372036854775807

# page TEXT [OPTION...]: makes $TMP/page.html of TEXT, a printf format
page() {
	# shellcheck disable=SC2059 # the format is the text
	printf "$1" >"$TMP/in"
	shift
	run "$flame" "$@" "$TMP/in"
	cp "$out" "$TMP/page.html"
}

# nodes: the nodes of that page
nodes() {
	perl "$F/nodes" "$@" "$TMP/page.html"
}

# makes FILE ARGUMENT...: writes a graph to FILE
makes() {
	t_file=$1
	shift
	"$flame" "$@" >"$t_file"
}

# all_of FILE FILE: fails, and prints them, if lines of the second are not in the first, both sorted
all_of() {
	! comm -13 "$1" "$2" | grep .
}

# draws NAME TEXT WANT [OPTION...]: status 0, nothing on stderr, the nodes are WANT
draws() {
	t_name=$1
	t_want=$3
	t_text=$2
	shift 3
	page "$t_text" "$@"
	case " $* " in *" --diff "*) t_diff=--diff ;; *) t_diff= ;; esac
	is "$rc:$(cat "$err")$(nodes $t_diff)" "0:$t_want" "$t_name"
}

# damaged NAME TEXT WANT MESSAGE: status 1, the nodes of the rest are WANT, MESSAGE matches stderr
damaged() {
	page "$2"
	is "$rc:$([ ! -s "$out" ] || nodes)" "1:$3" "$1: the rest is drawn, status 1"
	like "$(cat "$err")" "$4" "$1: the message says what and where"
}

## the tree

for seed in 1 2; do
	perl "$F/gen" 3000 $seed >"$TMP/folded"
	ok "a page is made of random stacks ($seed)" makes "$TMP/page.html" "$TMP/folded"
	nodes >"$TMP/got"
	perl "$F/nodes" --folded "$TMP/folded" >"$TMP/want"
	same "$TMP/got" "$TMP/want" "each frame has the sums that Perl finds in the folded stacks ($seed)"
	sort -R --random-source="$TMP/folded" "$TMP/folded" | "$flame" >"$TMP/shuffled.html"
	same "$TMP/shuffled.html" "$TMP/page.html" "the order of the lines does not change the page ($seed)"
	perl -pe 's/ (\d+)$/" $1 " . int rand 1000/e' "$TMP/folded" >"$TMP/two"
	"$flame" --diff "$TMP/two" >"$TMP/page.html"
	nodes --diff >"$TMP/got"
	perl "$F/nodes" --folded --diff "$TMP/two" >"$TMP/want"
	same "$TMP/got" "$TMP/want" "with --diff each frame has both sums ($seed)"
done
draws "stacks are summed, and one may end where another goes on" 'a;b 1\na;b;c 2\na;b 4\na 8\n' "15 8 a
7 5 a;b
2 2 a;b;c"
draws "siblings are in the order of their names" 'p;z 1\np;a 1\np;a.b 1\np;a 1\np;A 1\n' "5 0 p
1 1 p;A
2 2 p;a
1 1 p;a.b
1 1 p;z"
draws "a node with many children finds each again" "$(seq -f 'p;f%g 1\n' 40)$(seq -f 'p;f%g;x 2\n' 40 -1 1)" "$(
	echo "120 0 p"
	seq 40 | LC_ALL=C sort | sed 's/.*/3 1 p;f&\n2 2 p;f&;x/'
)"
draws "an empty frame is a frame" ';a 1\nb; 2\nb;;c 4\n' "1 0 
1 1 ;a
6 0 b
6 2 b;
4 4 b;;c"
draws "blanks and numbers within a stack are part of its names" 'a b;c 7 1\n' "1 0 a b
1 1 a b;c 7"
draws "a carriage return, an empty line and a missing last newline do not matter" 'a 1\r\n\nb 2' "1 1 a
2 2 b"
draws "a value of 0 keeps its frame" 'a;b 0\na;c 1\n' "1 0 a
0 0 a;b
1 1 a;c"
draws "numbers beyond 2^53 are exact" 'a;b 9007199254740993\na;c 2\n' "9007199254740995 0 a
9007199254740993 9007199254740993 a;b
2 2 a;c"
draws "the greatest sum is 2^63 - 1" "a 1\nb $((sum_max - 1))\n" "1 1 a
$((sum_max - 1)) $((sum_max - 1)) b"
page "a 1\nb $sum_max\n"
is "$rc:$(cat "$out")" "2:" "a greater sum is an error, and nothing is printed"
like "$(cat "$err")" 'the sum of all values is beyond 2\^63
.*hint: fold with a larger --unit' "the message names the unit as the remedy"
draws "--diff: the first value is before, the second after" 'a;b 1 2\na;c 0 3\na;d 4 0\n' "5 0 5 0 a
2 2 1 1 a;b
3 3 0 0 a;c
0 0 4 4 a;d" --diff
printf 'a 1\n' >"$TMP/one"
printf 'a 2' >"$TMP/two"
is "$("$flame" "$TMP/one" - "$TMP/one" <"$TMP/two" >"$TMP/page.html" && nodes)" "4 4 a" "several files and standard input are one input"
"$BIN/fold" --unit us "$DATA/fold/ours.in" >"$TMP/ours" 2>"$TMP/ignored"
run "$flame" "$TMP/ours"
cp "$out" "$TMP/page.html"
is "$rc:$(nodes | grep -v ';')" "0:2600 0 client
3858 0 server" "it draws what fold prints"

## long input

perl -e 'print join(";", map { "f$_" } 1 .. 10000), " 1\n", join(";", map { "f$_" } 1 .. 9999), ";g 1\n"' >"$TMP/deep"
ok "a stack of 10,000 frames is drawn" makes "$TMP/page.html" "$TMP/deep"
is "$(grep '^"nodes"' "$TMP/page.html")" '"nodes":10002,' "it has all of its frames"
ok "as an SVG, too" makes "$TMP/deep.svg" --svg "$TMP/deep"
is "$(python3 "$F/parts" "$TMP/deep.svg" | wc -l)" 10002 "the SVG has them all"
perl -e 'print "a;" x 1000000, "a 1\n"' >"$TMP/in"
status 0 "a stack of a million frames is not a problem" "$flame" "$TMP/in"
perl -e 'print "x" x 5000000, ";y 1\nz 1\n"' >"$TMP/in"
run "$flame" "$TMP/in"
cp "$out" "$TMP/page.html"
is "$rc:$(nodes | tr -s x)" "0:1 0 x
1 1 x;y
1 1 z" "a name of 5 MB is drawn"
perl -e 'print "a 1\n", "x" x 17000000, " 1\nb 1\n"' >"$TMP/in"
run "$flame" "$TMP/in"
cp "$out" "$TMP/page.html"
is "$rc:$(nodes)" "1:1 1 a
1 1 b" "a line of 17 MB is skipped"
like "$(cat "$err")" "1 malformed line is skipped; the first is line 2 of '.*in': a line of more than 16 MiB" "and reported"

## hostile names

cat >"$TMP/names" <<'END'
</script><script>alert(1)</script>
<!--
--><img src=x onerror=alert(1)>
]]><script>alert(1)</script>
"'`><svg onload=alert(1)>
&lt;b&gt;&amp;&#60;
\u003c\n\"\\
${7*7}{{7*7}}
javascript:alert(1)
@script@ @data@ %s%n
__proto__
constructor
überprüfen 関数 🔥
END
printf 'nul\0esc\033[31m del\177 c1\302\233 bad\377\300\257 cut\342\202 surrogate\355\240\200\n' >>"$TMP/names"
printf 'ls\342\200\250ps\342\200\251 rlo\342\200\256 lri\342\201\246 lrm\342\200\216 alm\330\234 bom\357\273\277 nonchar\357\277\277\n' >>"$TMP/names"
perl -ne 'chomp; print "$_;inner 1\nouter;$_ 2\n"' "$TMP/names" >"$TMP/hostile"
printf 'tame 1\n' >"$TMP/tame"
run "$flame" --title "$(head -n 5 "$TMP/names")" --unit '<b>"us' "$TMP/hostile"
is "$rc:$(cat "$err")" "0:" "hostile names are drawn"
cp "$out" "$TMP/page.html"
"$flame" "$TMP/tame" >"$TMP/tame.html"
python3 "$F/parts" "$TMP/page.html" >"$TMP/got"
python3 "$F/parts" "$TMP/tame.html" >"$TMP/want"
same "$TMP/got" "$TMP/want" "a parser of HTML finds in that page the elements of every page, whose policy has the right hashes"
# other bytes as \xNN, each byte of a character that is not shown
perl -CO -MEncode -ne '
	chomp;
	my $hex = sub { join "", map { sprintf "\\x%02x", $_ } unpack "C*", shift };
	my $text = decode("UTF-8", $_, sub { $hex->(pack "C*", @_) });
	$text =~ s/[\x00-\x1f\x7f-\x9f\x{61c}\x{200e}\x{200f}\x{2028}-\x{202e}\x{2066}-\x{2069}\x{feff}\x{fffe}\x{ffff}]/$hex->(encode("UTF-8", $&))/ge;
	print "$text\n"' "$TMP/names" | sort >"$TMP/want"
# each name as often as it is there, but for its semicolons
nodes | sed -n 's/^2 2 outer;//p' | sort >"$TMP/got"
grep -v ';' "$TMP/want" >"$TMP/whole"
ok "every name is in it, what cannot be printed as \\xNN" all_of "$TMP/got" "$TMP/whole"
is "$(LC_ALL=C grep -c "$(printf '[\001-\010\013-\037\177]')" "$TMP/page.html")" 0 "no control character is in it"
is "$(grep -ciE '(src|href|action)=|@import|url\(|https?:' "$TMP/tame.html")" 0 "a page refers to nothing outside"
for opt in "" --icicle --diff; do
	in=$TMP/hostile
	[ "$opt" != --diff ] || sed 's/ \([0-9]\)$/ 3 \1/' "$TMP/hostile" >"$TMP/hostile2"
	[ "$opt" != --diff ] || in=$TMP/hostile2
	run "$flame" --svg $opt --min 0 --title "$(head -n 5 "$TMP/names")" --unit '<b>"us' "$in"
	cp "$out" "$TMP/hostile.svg"
	ok "a parser of XML takes the SVG of hostile names${opt:+ with $opt}" python3 "$F/parts" "$TMP/hostile.svg"
done
python3 "$F/parts" "$TMP/hostile.svg" | sed -n 's/ (before 3, after 2 <b>"us, .*//p' | sort >"$TMP/got"
ok "the SVG has every name, too" all_of "$TMP/got" "$TMP/whole"

## the SVG

printf 'a;b_[k] 600\na;c 399\nd 1\n' >"$TMP/in"
run "$flame" --svg --unit us --min 1 "$TMP/in"
cp "$out" "$TMP/in.svg"
is "$rc:$(python3 "$F/parts" "$TMP/in.svg")" "0:all (1,000 us, 100.00 %)
a (999 us, 99.90 %)
b_[k] (600 us, 60.00 %)
c (399 us, 39.90 %)" "each frame has its name, value and share"
like "$(cat "$out")" '>1 frame narrower than 1 % of all is omitted<' "the picture says what --min omitted"
like "$(cat "$out")" '>b</text>' "a label has no mark of the kind of frame"
run "$flame" --svg --min 0 "$TMP/in"
is "$(grep -c '<g><title>' "$out"):$(grep -c 'narrower' "$out")" "5:0" "--min 0 omits nothing"
"$flame" --svg --width 620 --min 0 "$TMP/in" >"$TMP/in.svg"
# shellcheck disable=SC2016 # Perl's
is "$(perl -ne 'print "$1 $2 $3\n" if /<title>(\S+).* x="([\d.]+)" y="\d+" width="([\d.]+)"/' "$TMP/in.svg")" "all 10.00 600.00
a 10.00 599.40
b_[k] 10.00 360.00
c 370.00 239.40
d 609.40 0.60" "widths are in proportion to the values"
y_of() { # NAME: in $TMP/in.svg
	sed -n "s/.*<title>$1 .* y=\"\([0-9]*\)\" width.*/\1/p" "$TMP/in.svg"
}
ok "the root is below" test "$(y_of all)" -gt "$(y_of a)"
"$flame" --svg --icicle "$TMP/in" >"$TMP/in.svg"
ok "with --icicle it is above" test "$(y_of all)" -lt "$(y_of a)"
printf 'a 1 3\nb 3 1\nc 2 2\n' | "$flame" --svg --diff >"$TMP/in.svg"
# shellcheck disable=SC2016 # Perl's
is "$(perl -ne 'if (/<title>([abc]) .*fill="#(..)..(..)"/) { print "$1 ", $2 gt $3 ? "red" : $2 lt $3 ? "blue" : "grey", "\n" }' \
	"$TMP/in.svg" | sed 's/c blue/c grey/')" "a red
b blue
c grey" "--diff: what grew is red, what shrank blue"

# what a frame is, by the page's own words
printf 'p;f_[k];[blocked] 4\np;g_[j];[on-CPU] 3\np;h_[i];[runnable] 2\np;[preempted] 1\np;-;i 1\np;--;[on-CPU] 1\n' >"$TMP/in"
"$flame" "$TMP/in" >"$TMP/page.html"
# shellcheck disable=SC2016 # Perl's
perl -MJSON::PP -MMIME::Base64 -0777 -ne 'my ($json) = m{id="data">(.*?)</script>}s; my $d = decode_json($json);
	my ($list) = /^const CLASSES = (\[.*\]);/m; my $class = decode_json($list);
	my @looks = unpack "(CC)*", decode_base64($d->{looks});
	print map { "$d->{names}[$_]: $class->[$looks[2 * $_]]\n" } 0 .. $#{$d->{names}}' "$TMP/page.html" | LC_ALL=C sort >"$TMP/got"
is "$(cat "$TMP/got")" "--: waker
-: mark
[blocked]: blocked
[on-CPU]: on the CPU
[preempted]: runnable or preempted
[runnable]: runnable or preempted
f_[k]: kernel
g_[j]: script or JIT
h_[i]: inlined
i: user
p: user" "a frame has the class that its name says"
"$flame" --svg --min 0 "$TMP/in" >"$TMP/in.svg"
# shellcheck disable=SC2016 # Perl's
is "$(perl -ne 'next unless /<title>(\[\S+) .*fill="#(..)(..)(..)"/; my ($name, $r, $g, $b) = ($1, map { hex } $2, $3, $4);
	print "$name ", $b < $r - 80 && $b < $g - 80 ? "yellow" : abs($r - $g) < 25 ? "grey" : $r > $b ? "pink" : "violet", "\n"' \
	"$TMP/in.svg" | LC_ALL=C sort)" "[blocked] grey
[on-CPU] violet
[on-CPU] yellow
[preempted] pink
[runnable] pink" "states have colours of their own, but for what a waker was in"

## malformed input

damaged "a line without a number" 'a;b 1\nc;d\na;b 2\n' "3 0 a
3 3 a;b" "^flame: 1 malformed line is skipped; the first is line 2 of '.*in': no whole number at its end$"
damaged "a number with a fraction, and a number alone" 'a 1\nb 1.5\n5\n 7\n' "1 1 a" "3 malformed lines .* line 2 of .*: no whole number"
damaged "a number without a stack" 'a 1\n 7\n' "1 1 a" "line 2 of .*: no stack before its number"
damaged "a number beyond 2^63" 'a 1\nb 9223372036854775808\nc 99999999999999999999999999\n' "1 1 a" "2 malformed .*line 2 of .*: a number beyond 2\^63"
damaged "text that is not folded" 'ab 1/2 1.5: 10 ev:\n\t12 f (/x)\n\n' "" "2 malformed .*
.*hint: flame reads folded stacks: symbolize cap.bin \| fold"
page 'a 1 2\nb;c 1\n' --diff
is "$rc:$(nodes --diff)" "1:2 2 1 1 a" "--diff: a line with one number is malformed"
like "$(cat "$err")" "line 2 of .*: one number, where --diff takes two" "and the message says so"
page ''
is "$rc:$(cat "$out")" "1:" "empty input gives status 1 and no page"
like "$(cat "$err")" '^flame: the input has no stack$' "and a message"
page 'a 0\n'
is "$rc:$(cat "$out" "$err")" "1:flame: all values are 0: there is nothing to draw" "values that are all 0 give status 1"
printf 'a 1\n' >"$TMP/one"
printf 'x\n' >"$TMP/bad"
run "$flame" "$TMP/one" "$TMP/bad"
like "$(cat "$err")" "line 1 of '.*/bad'" "the file of the malformed line is named"
printf 'PERFILE2xxxx' >"$TMP/in"
status 2 "a perf.data file is refused" "$flame" "$TMP/in"
like "$(cat "$err")" "is a perf.data file.*
.*hint: .*fold --all \| flame" "with the pipeline that is missing"
status 2 "a missing file is an error" "$flame" "$TMP/none"
like "$(cat "$err")" "cannot open '.*/none': No such file" "which is named"

## output

printf 'a 1\n' >"$TMP/in"
for opt in "" --svg; do
	run sh -c '"$1" $2 "$3" >/dev/full' sh "$flame" "$opt" "$TMP/in"
	is "$rc:$(grep -c 'No space left' "$err")" "2:1" "a full disk gives status 2 and a message${opt:+ ($opt)}"
done
run sh -c '{ "$1" "$2"; echo $? >"$3"; } | head -c 1 >/dev/null' sh "$flame" "$TMP/deep" "$TMP/rc"
ok "a reader that goes away ends it by SIGPIPE" test "$(cat "$TMP/rc")" -eq 141
mkdir "$TMP/o"
status 0 "-o makes a file" "$flame" -o "$TMP/o/x.html" "$TMP/in"
"$flame" "$TMP/in" >"$TMP/page.html"
same "$TMP/o/x.html" "$TMP/page.html" "with the page"
is "$(cat "$out")" "" "and nothing on standard output"
status 0 "-o replaces an older page" "$flame" --title new -o "$TMP/o/x.html" "$TMP/in"
like "$(cat "$TMP/o/x.html")" '<title>new</title>' "by the new one"
status 2 "-o does not replace a page by an SVG" "$flame" --svg -o "$TMP/o/x.html" "$TMP/in"
cp "$TMP/in" "$TMP/o/notes"
status 2 "-o does not replace another file" "$flame" -o "$TMP/o/notes" "$TMP/in"
like "$(cat "$err")" "'.*/notes' exists and is not a page of flame
.*hint: choose another name, or --force" "and says so"
same "$TMP/o/notes" "$TMP/in" "which is unchanged"
status 0 "-o --force does" "$flame" --force -o "$TMP/o/notes" "$TMP/in"
same "$TMP/o/notes" "$TMP/page.html" "with the page"
status 2 "-o does not write to a device" "$flame" -o /dev/null "$TMP/in"
like "$(cat "$err")" "'/dev/null' exists and is a device
.*hint: choose another name, or --force" "and says so"
ln -s x.html "$TMP/o/link"
status 2 "-o does not follow a symbolic link" "$flame" -o "$TMP/o/link" "$TMP/in"
status 1 "-o with empty input" "$flame" -o "$TMP/o/empty" /dev/null
is "$(cd "$TMP/o" && echo *)" "link notes x.html" "makes no file, and nothing else is left"
run "$flame" -o - "$TMP/in"
same "$out" "$TMP/page.html" "-o - is standard output"
status 64 "--width is for an SVG" "$flame" --width 500 "$TMP/in"
status 64 "--min is for an SVG" "$flame" --min 1 "$TMP/in"
for min in x 101 -1 1. .5 1e1; do
	status 64 "--min $min is refused" "$flame" --svg --min=$min "$TMP/in"
done
## colours by kind

cat >"$TMP/kinds" <<'END'
p;main;f;[lock] 60
p;main;f;[lock];[runnable] 3
p;main;g;[disk-read] 30
p;main;g;[fsync] 20
p;x 5
p;y;[a-kind-of-ones-own] 7
p;z;[vdso.so] 1
END
run "$flame" --colors=kind "$TMP/kinds"
is "$rc:$(cat "$err")" 0: "--colors=kind draws a page"
# of each frame in preorder, and the root: the family of most of its value
is "$(perl -MMIME::Base64 -MCpanel::JSON::XS -0777 -ne 'my ($j) = /<script[^>]*application\/json[^>]*>(.*?)<\/script>/s; my $d = decode_json($j);
	print join ",", map { $d->{families}[$_][0] } unpack "C*", decode_base64($d->{kinds})' "$out")" \
	"locks,locks,locks,locks,locks,the CPU,disk,disk,disk,no kind,other kinds,other kinds,no kind,no kind" \
	"it has the family of kinds of each frame, by most of its value"
"$flame" --colors=kind --svg --min 0 "$TMP/kinds" >"$TMP/kinds.svg"
hues() { # of rectangles in lines that match, from their red, green and blue
	perl -ne 'next unless /'"$1"'/; my ($r, $g, $b) = map { hex } /fill="#(..)(..)(..)"/ or next; my ($most, $least) = (sort { $b <=> $a } $r, $g, $b)[0, 2];
		my $d = $most - $least or next; my $h = $most == $r ? ($g - $b) / $d : $most == $g ? 2 + ($b - $r) / $d : 4 + ($r - $g) / $d;
		print int(60 * ($h < 0 ? $h + 6 : $h) / 10 + 0.5), " "' "$TMP/kinds.svg"
}
is "$(hues '<title>(main|f|\[lock\]) ')|$(hues '<title>(g|\[fsync\]) ')|$(hues '<title>\[runnable\] ')" "0 0 0 |21 21 |5 " \
	"the picture has a hue of each family, in tens of degrees: what waits for a lock is red, for a disk blue"
is "$(grep -o '<rect class="kind".*' "$TMP/kinds.svg" | sed 's/.*">\(.*\)<.*/\1/' | paste -sd ,)" "no kind,locks,disk,the CPU,other kinds" \
	"and a legend of those that there are"
ok "it is well-formed" python3 -c 'import sys, xml.etree.ElementTree; xml.etree.ElementTree.parse(sys.argv[1])' "$TMP/kinds.svg"
"$flame" "$TMP/kinds" >"$TMP/default.html"
"$flame" --colors=class "$TMP/kinds" >"$TMP/class.html"
same "$TMP/class.html" "$TMP/default.html" "--colors=class is the default"
for args in --colors=x "--colors=kind --diff" "--colors=kind --heat" "--colors=kind --threads"; do
	# shellcheck disable=SC2086 # words
	status 64 "$args is a usage error" "$flame" $args "$TMP/kinds"
done

status 64 "a width that is too small is refused" "$flame" --svg --width 10 "$TMP/in"
run "$flame" --countname us "$TMP/in"
cp "$out" "$TMP/page.html"
run "$flame" --unit us "$TMP/in"
same "$out" "$TMP/page.html" "--countname is --unit"

tap_done
