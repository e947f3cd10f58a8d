#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# stackexport: what it writes, as other programs read it.
# shellcheck disable=SC2154,SC2016,SC2086 # $out, $err and $rc come from tap.sh; Perl's variables; formats are words
. "$(dirname "$0")/../lib/tap.sh"
export=$BIN/stackexport
read_back=$DATA/export/read.pl
cd "$TMP" || exit 1
formats="pprof speedscope firefox perfetto otlp"

# without the program that takes it apart, a format is not read
lacks() { # FORMAT: prints the reason
	case $1 in
	pprof) command -v go >/dev/null || echo "no go" ;;
	perfetto | otlp) command -v protoc >/dev/null || echo "no protoc" ;;
	esac
}

# without_counts FORMAT: some formats have the time only
without_counts() {
	case $1 in
	speedscope | firefox) sed 's/ [0-9]* \([0-9]*\)$/ - \1/' ;;
	*) cat ;;
	esac
}

# fails NAME MESSAGE ARGUMENT...: status 2, nothing on stdout, MESSAGE on stderr
fails() {
	t_name=$1 t_want=$2
	shift 2
	run "$export" "$@"
	is "$rc:$(wc -c <"$out")" "2:0" "$t_name gives status 2 and no result"
	like "$(cat "$err")" "$t_want" "and the message says so: $t_name"
}

# tables TEXT: writes lines of what symbolize --format=tables prints, behind a head, to $TMP/in
tables() {
	printf '%s\n' '{"type":"capture","hostname":"h","start_mono_ns":0,"duration_ns":9,"lost":{}}' "$1" >"$TMP/in"
}

P='{"type":"process","id":1,"pid":10,"ns_pid":10,"comm":"p","exe":null,"kthread":false}
{"type":"thread","id":1,"process":1,"tid":11,"ns_tid":11,"comm":"t"}
{"type":"frame","id":1,"name":"main","kernel":false}
{"type":"stack","id":1,"frames":[1]}'
W='{"type":"wait","thread":1,"stack":1,"count":1,"total_ns":5,"first_ns":1,"last_ns":1,"max_ns":5,"kind":"poll","state":"S"}'

## every wait, sample and name, from a capture

"$OBJ/t/unit/print" --make plain.cap <"$DATA/viewers/plain.waits"
"$BIN/symbolize" -q plain.cap >plain.text
perl "$read_back" text plain.text >want
for format in $formats; do
	status 0 "$format: a capture is written" "$export" --format=$format plain.cap
	cp "$out" plain.$format
	[ "$format" != perfetto ] || continue # all waits made here are at the same time: see below
	reason=$(lacks $format)
	if [ "$reason" ]; then
		skip "$format: each stack of each thread has its exact sum" "$reason"
		continue
	fi
	perl "$read_back" $format plain.$format >got 2>&1
	without_counts $format <want >want.$format
	same got want.$format "$format: each stack of each thread has its exact sum"
done
ok "gzip finds no fault with a profile for pprof" gzip -tq <plain.pprof
is "$("$BIN/stackreport" --json plain.cap | perl -MCpanel::JSON::XS -0777 -ne 'my $j = decode_json($_); print "wait $j->{count} $j->{total_ns}"')" \
	"$(perl "$read_back" sums text plain.text | grep wait)" "which is the sum of stackreport"

"$OBJ/t/unit/print" --make hostile.cap <"$DATA/viewers/hostile.waits"
"$BIN/symbolize" -q hostile.cap >hostile.text
perl "$read_back" sums text hostile.text >want
for format in $formats; do
	run "$export" --format=$format hostile.cap
	cp "$out" hostile.$format
	[ "$format" != perfetto ] || continue # all waits made here are at the same time: see below
	reason=$(lacks $format)
	if [ "$reason" ]; then
		skip "$format: with hostile names the sums are exact" "$reason"
		continue
	fi
	perl "$read_back" sums $format hostile.$format >got 2>&1
	without_counts $format <want >want.$format
	same got want.$format "$format: with hostile names the sums are exact"
done

## recordings with events

for seed in 1 2 3; do
	perl "$DATA/export/make.pl" $seed 500 truth >in
	woken=$(tail -n 1 truth)
	sed '$d' truth >want
	for format in $formats; do
		if [ "$(lacks $format)" ]; then
			skip "random waits ($seed): $format" "$(lacks $format)"
			continue
		fi
		run "$export" --format=$format in
		cp "$out" events.$format
		perl "$read_back" $format events.$format >got 2>&1
		without_counts $format <want >want.$format
		same got want.$format "random waits ($seed): $format has each stack of each thread, with inlined calls"
	done
	if command -v protoc >/dev/null; then
		decode() { protoc --decode=Trace -I"$DATA/export" perfetto.proto <events.perfetto; }
		decode | grep -o 'flow: .*' | sort >flows
		decode | grep -o 'flow_end: .*' | sed 's/_end//' | sort >ends
		is "$(sort -u flows | wc -l)" "$woken" "random waits ($seed): an arrow begins at the waker of each wait that has one"
		same flows ends "random waits ($seed): and ends at that wait"
		decode | perl -ne '
			$time = $1 if /^  time: (\d+)/;
			die "time goes back" if $time < ($last // 0);
			$last = $time;
			push @now, $1 if /^    counter: (-?\d+)/;
			if (/^  }/ && @now) { ($b, $r) = @now; $max = $b + $r if $b + $r > ($max // 0); $low = 1 if $b < 0 || $r < 0; @now = () }
			END { print $low ? "below 0" : "", "$max $b $r" }' >counters
		is "$(cat counters)" "5 0 0" "random waits ($seed): five threads at most are blocked or runnable, in the end none"
	else
		skip "random waits ($seed): arrows and counters" "no protoc"
	fi
done
perl -MCpanel::JSON::XS -0777 -ne '
	my $j = decode_json($_);
	my ($m) = map { $_->{markers} } grep { $_->{tid} == 100 } @{ $j->{threads} };
	print join " ", scalar @{ $m->{name} }, (grep { $m->{endTime}[$_] <= $m->{startTime}[$_] } 0 .. $#{ $m->{name} }) ? "backwards" : "",
		$m->{data}[0]{type}, $j->{meta}{markerSchema}[0]{name}' events.firefox >got
is "$(cat got)" "$(grep '^wait t0 ' want | awk '{ n += $(NF - 1) } END { print n }')  Wait Wait" "firefox: each wait has a marker"

## details

cat >details <<'EOF'
{"type":"capture","release":"6.1","machine":"x86_64","hostname":"db1","recorder":"offcpu-record 1","kernel_build_id":"aabb","start_real_ns":1700000000123456789,"start_mono_ns":1000,"duration_ns":2000000000,"damage":null,"lost":{"lost.x":3}}
{"type":"process","id":0,"pid":42,"ns_pid":1,"comm":"server","exe":"/bin/server","kthread":false}
{"type":"thread","id":0,"process":0,"tid":43,"ns_tid":2,"comm":"worker"}
{"type":"file","id":0,"path":"/bin/server","build_id":"00112233445566778899aabbccddeeff00112233","deleted":false}
{"type":"mapping","id":5,"process":0,"file":0,"start":"0x400000","end":"0x500000","offset":"0x2000"}
{"type":"frame","id":0,"name":"vfs_read","kernel":true,"exact":false,"mapping":null,"address":"0xffffffff81000010","module":"kernel","linkage_name":"vfs_read"}
{"type":"frame","id":1,"name":"ext4_read","kernel":true,"exact":false,"mapping":null,"address":"0xffffffffc0000010","module":"ext4"}
{"type":"frame","id":2,"name":"ns::f(int)","kernel":false,"exact":false,"mapping":5,"address":"0x401000","module":"/bin/server","module_address":"0x3000","linkage_name":"_ZN2ns1fEi","inlined":[{"symbol":"g","linkage_name":"g","file":"/src/g.c","line":7,"column":3}],"file":"/src/f.cc","line":9,"column":null}
{"type":"frame","id":3,"name":"py::run:/srv/a.py","kernel":false,"exact":false,"mapping":null,"address":"0x0","module":null,"runtime":"python","inlined":[],"file":"/srv/a.py","line":12,"column":null}
{"type":"frame","id":9,"name":"[stopped: no row]","kernel":false}
{"type":"stack","id":0,"frames":[0,1,2,3,9]}
{"type":"stack","id":1,"frames":[]}
{"type":"waker","id":1,"interrupt":true,"kind":"timer","stack":0}
{"type":"wait","thread":0,"stack":0,"count":2,"total_ns":700,"first_ns":1500,"last_ns":1900,"max_ns":600,"runnable_ns":100,"kind":"disk-read","state":"D","open":true,"waker":1}
{"type":"sample","thread":0,"stack":1,"count":3,"total_ns":3000,"first_ns":1500,"last_ns":1900}
EOF
if command -v go >/dev/null; then
	"$export" --format=pprof details >details.pb.gz
	go tool pprof -raw details.pb.gz >raw 2>&1
	like "$(cat raw)" 'Comment: host: db1
(.*\n)*Comment: lost: 3
(.*\n)*PeriodType: cpu nanoseconds
Period: 1000
Time: 2023-11-14 22:13:20.123456789 \+0000 UTC
Duration: 2.*
Samples:
waits/count offcpu/nanoseconds\[dflt\] runnable/nanoseconds samples/count cpu/nanoseconds
 *2 *700 *100 *0 *0: 1 2 3 4 5 
 *kind:\[disk-read\] process:\[server\] state:\[D\] thread:\[worker\] wait:\[open\] waker:\[\[timer\]\]
 *pid:\[42\] tid:\[43\]
 *0 *0 *0 *3 *3000: 6 ' "pprof: values, labels and times"
	like "$(cat raw)" '0xffffffff8100000f M=\d+ vfs_read :0 s=0.*
.*0xffffffffc000000f M=\d+ ext4_read :0 s=0.*
.*0x400fff M=\d+ g /src/g.c:7(:3)? s=0.*
 *ns::f\(int\) /src/f.cc:9(:0)? s=0.*
.* M=\d+ py::run:/srv/a.py /srv/a.py:12(:0)? s=0' "pprof: addresses are in the calls, inlined calls and lines are there"
	like "$(cat raw)" '0x400000/0x500000/0x2000 /bin/server 00112233445566778899aabbccddeeff00112233 .*FN' "pprof: mappings have build IDs"
	like "$(cat raw)" '\[kernel.kallsyms\] aabb' "pprof: so has the kernel"
	like "$(go tool pprof -top -sample_index=offcpu -tagfocus=kind=disk-read details.pb.gz 2>&1)" '700ns +100% .* vfs_read' "pprof: a label selects"
else
	skip "pprof: details" "no go"
fi
"$export" --format=firefox details >details.json
is "$(perl -MCpanel::JSON::XS -0777 -ne 'my $j = decode_json($_); my $l = $j->{libs}[0]; my $f = $j->{shared}{frameTable};
	print join " ", $l->{name}, $l->{breakpadId}, $l->{codeId}, scalar @{ $j->{libs} }, sprintf("%x", $f->{address}[3]), "@{$f->{inlineDepth}}[2, 3]",
		$j->{meta}{startTimeAsClockMonotonicNanosecondsSinceBoot}' details.json)" \
	"server 33221100554477668899AABBCCDDEEFF0 00112233445566778899aabbccddeeff00112233 1 2fff 1 0 1000" "firefox: libraries, addresses in them, and depths of inlined calls"
like "$(cat details.json)" '"startTime":1700000000123.456789,' "firefox: times are exact"
like "$("$export" --format=speedscope details)" '"name":"py::run:/srv/a.py","file":"/srv/a.py"' "speedscope: a function of a script has its file"
if command -v protoc >/dev/null; then
	"$export" --format=otlp details >details.otlp
	protoc --decode=Request -I"$DATA/export" otlp.proto <details.otlp >decoded
	like "$(cat decoded)" 'key: "service.name"
 *value {
 *text: "server"' "otlp: the service is the process"
	like "$(tr -d ' \n' <decoded)" 'mapping{start:18446744071578845184limit:18446744071578849280filename:[0-9]+attribute:[0-9]+}' \
		"otlp: the kernel's mapping has the pages that are known of it"
	# what is the same in two processes, of which one is the other's child, and in stacks that differ in what is not shown
	{
		head -n 1 details
		for i in 1 2; do
			printf '{"type":"process","id":%d,"pid":%d,"ns_pid":1,"comm":"server","exe":null,"kthread":false}\n' $i $((40 + i))
			printf '{"type":"thread","id":%d,"process":%d,"tid":%d,"ns_tid":2,"comm":"worker"}\n' $i $i $((40 + i))
			printf '{"type":"file","id":%d,"path":"/bin/server","build_id":"0011","deleted":false}\n' $i
			printf '{"type":"mapping","id":%d,"process":%d,"file":%d,"start":"0x400000","end":"0x500000","offset":"0x2000"}\n' $i $i $i
			printf '{"type":"frame","id":%d,"name":"f","kernel":false,"exact":false,"mapping":%d,"address":"0x401001","module":"/bin/server","linkage_name":"f"}\n' $i $i
			printf '{"type":"stack","id":%d,"frames":[%d,%d]}\n{"type":"stack","id":%d,"frames":[%d,%d]}\n' $i $i $i $((i + 2)) $i $i
			printf '{"type":"wait","thread":%d,"stack":%d,"count":1,"total_ns":5,"first_ns":1,"last_ns":1,"kind":"poll"}\n' $i $i $i $((i + 2))
		done
		printf '{"type":"process","id":9,"pid":50,"ns_pid":1,"comm":"longest","exe":null,"kthread":false}\n'
		printf '{"type":"thread","id":9,"process":9,"tid":50,"ns_tid":2,"comm":"x"}\n'
		printf '{"type":"wait","thread":9,"stack":1,"count":1,"total_ns":50,"first_ns":1,"last_ns":1,"kind":"poll"}\n'
	} >twice
	"$export" --format=otlp twice >twice.otlp
	is "$(perl "$read_back" tables twice.otlp)" "attribute 14 0 0 0
function 2 0 0 0
link 1 0 0 0
location 2 0 0 0
mapping 2 0 0 0
stack 2 0 0 0
str 14 0 0 0" "otlp: the dictionary has each thing once, and nothing that is not referred to"
	is "$(perl "$read_back" otlp twice.otlp)" "wait worker 41/41;f;f 2 10
wait worker 42/42;f;f 2 10
wait x 50/50;f;f 1 50" "otlp: waits of equal stacks are one sample"
	is "$(protoc --decode=Request -I"$DATA/export" otlp.proto <twice.otlp | grep -A 2 'service.name' | grep -o 'text: .*' | paste -sd ' ')" \
		'text: "longest" text: "server"' "otlp: each service has its resource, that with the longest waits first"
	for file in plain.otlp events.otlp sums.otlp; do
		[ ! -e $file ] || is "$(perl "$read_back" tables $file | awk '$3 + $4 + $5')" "" "otlp: so it is in $file"
	done
else
	skip "otlp: details" "no protoc"
fi
run "$export" --format=perfetto details
is "$rc:$(cat "$err")" "1:stackexport: 5 waits and samples are sums, which have no place on a time line: they are not in the trace
stackexport: hint: record them with offcpu-record --events" "perfetto: sums are not in the trace, status 1"

## a real recording's way

for format in perfetto firefox; do
	sh -c 'printf "#!/bin/sh\necho \"\$*\" >>\"$1/args\"\nexec \"$2\" \"\$@\"\n" >"$1/symbolize"' sh "$TMP" "$BIN/symbolize"
	chmod +x symbolize
	cp "$export" alone
	: >args
	./alone --format=$format plain.cap >/dev/null 2>&1
	is "$(cat args)" "--format=tables --events=auto -- plain.cap" "$format: waits are by themselves where the capture has them so"
done
: >args
./alone --format=pprof plain.cap >/dev/null
./alone --format=pprof --events plain.cap >/dev/null 2>"$err"
is "$(cat args)" "--format=tables --events=never -- plain.cap
--format=tables --events -- plain.cap" "of other formats with --events"
like "$(cat "$err")" "symbolize: 'plain.cap' has sums of waits.*
.*hint: .*
.*symbolize could not read the capture 'plain.cap': it ended with status 2" "which a capture of sums has not"
"$BIN/symbolize" -q --format=tables --events=auto plain.cap >auto
"$BIN/symbolize" -q --format=tables --events=never plain.cap >never
same auto never "symbolize --events=auto prints sums where a capture has nothing else"
printf '#!/bin/sh\nkill -KILL $$\n' >symbolize
run ./alone --format=pprof plain.cap
like "$rc:$(cat "$err")" '^2:.*was killed by SIGKILL' "a symbolize that is killed gives status 2"
printf '#!/bin/sh\nprintf "{\\"type\\":"\nexit 2\n' >symbolize
run ./alone --format=pprof plain.cap
like "$rc:$(cat "$err")" '^2:.*could not read the capture .*status 2' "if symbolize fails in the middle, that is the message"
printf '#!/bin/sh\n"%s" "$@" 2>/dev/null\nexit 1\n' "$BIN/symbolize" >symbolize
run ./alone --format=pprof plain.cap
is "$rc:$(cat "$err"):$(cmp "$out" plain.pprof)" "1::" "a symbolize with status 1 gives status 1 and the result"
run env PATH=/nonexistent ./alone --format=pprof plain.cap
rm symbolize
run env PATH=/nonexistent ./alone --format=pprof plain.cap
like "$rc:$(cat "$err")" "^2:.*cannot run 'symbolize', which reads the capture 'plain.cap'.*
.*hint: it is part of stacktools" "a symbolize that is missing gives status 2 and a hint"
"$export" --format=pprof - <plain.cap >"$out"
same "$out" plain.pprof "a capture may be standard input"
"$BIN/symbolize" --format=tables plain.cap | "$export" --format=pprof >"$out"
same "$out" plain.pprof "and so may what symbolize prints"
run sh -c 'cat plain.cap | "$1" --format=pprof' sh "$export"
like "$rc:$(cat "$err")" "^2:stackexport: 'standard input' is a capture in a pipe.*
.*hint: give the name of the file, or: symbolize --format=tables" "a capture in a pipe is refused with a hint"
"$OBJ/t/unit/print" --make cut.cap cut <"$DATA/viewers/plain.waits"
run "$export" --format=pprof cut.cap
is "$rc:$(grep -c '^symbolize: the capture is incomplete' "$err"):$(grep -c '^stackexport' "$err")" "1:1:0" "an incomplete capture gives status 1, and symbolize says why"
"$BIN/symbolize" -q --format=tables cut.cap >cut.tables
run "$export" --format=pprof cut.tables
like "$rc:$(cat "$err")" "^1:stackexport: the recording is incomplete" "from what symbolize has printed, stackexport does"

## damage

tables "$P
$W"
status 0 "the input of the tests below is good" "$export" --format=pprof in
while IFS='|' read -r name line want; do
	tables "$P
$line"
	fails "$name" "'in' line 6: $want" --format=pprof in
done <<'EOF'
text|junk|an object is expected
a number too large|{"type":"wait","thread":1,"stack":1,"count":1,"total_ns":9223372036854775808}|a number is too large
a number beyond 64 bits|{"type":"wait","thread":1,"stack":1,"count":1,"total_ns":99999999999999999999}|a number is too large
a negative number|{"type":"wait","thread":1,"stack":1,"count":-1,"total_ns":5}|a whole number is expected
a fraction|{"type":"wait","thread":1,"stack":1,"count":1.5,"total_ns":5}|a whole number is expected
a wait of a thread that does not exist|{"type":"wait","thread":2,"stack":1,"count":1,"total_ns":5}|it refers to a thread that no line before it has
a wait without a thread|{"type":"wait","stack":1,"count":1,"total_ns":5}|it refers to a thread that no line before it has
a stack that does not exist|{"type":"wait","thread":1,"stack":2,"count":1,"total_ns":5}|it refers to a stack that no line before it has
a waker that does not exist|{"type":"wait","thread":1,"stack":1,"count":1,"total_ns":5,"waker":1}|it refers to a waker that no line before it has
a frame that does not exist|{"type":"stack","id":2,"frames":[1,4]}|it refers to a frame that no line before it has
a mapping that does not exist|{"type":"frame","id":2,"name":"x","mapping":0}|it refers to a mapping that no line before it has
a file that does not exist|{"type":"mapping","id":2,"file":0}|it refers to a file that no line before it has
a process that does not exist|{"type":"thread","id":2,"process":0}|it refers to a process that no line before it has
a waker of itself|{"type":"waker","id":1,"stack":1,"waker":1}|it refers to a waker that no line before it has
a frame without a name|{"type":"frame","id":2}|a frame has no name
a record without a count|{"type":"wait","thread":1,"stack":1,"total_ns":5}|a record has no count
more time on a run queue than in all|{"type":"wait","thread":1,"stack":1,"count":1,"total_ns":5,"runnable_ns":6}|runnable_ns is more than total_ns
a second thread of a number|{"type":"thread","id":1,"process":1}|it has the number of an earlier object of its type
a second recording|{"type":"capture"}|there is a second object of type capture
an object without a type|{"id":1}|it is an object without a type
an escape of half a character|{"type":"process","id":2,"comm":"\ud800"}|an escape in a string is malformed
a NUL|{"type":"process","id":2,"comm":"a\u0000b"}|a string has a NUL
an unknown escape|{"type":"process","id":2,"comm":"\q"}|an escape in a string is malformed
something behind the object|{"type":"stack","id":2,"frames":[1]} x|something follows the end
an object that does not end|{"type":"stack","id":2,"frames":[1]|it ends too early
an address that is none|{"type":"frame","id":2,"name":"x","address":"0xg"}|an address is expected
JSON of the other format|{"type":"wait","comm":"x","count":1,"total_ns":5,"kernel_stack":[]}|it is JSON of symbolize, but not of --format=tables
EOF
like "$(cat "$err")" 'hint: symbolize --format=tables CAPTURE' "of which the hint is how to make the right one"
printf '{"type":"process","id":2,"comm":"\377"}\n' >line
tables "$P
$(cat line)"
fails "a byte that is no UTF-8" "line 6: a string is not valid UTF-8" --format=pprof in
tables "$P
$W"
truncate -s -5 in
fails "a line that breaks off" "'in' line 6: it breaks off: the input is incomplete" --format=pprof in
printf '%s\n' "$W" >in
fails "a wait without a head" "'in' line 1: no object of type capture comes before it" --format=pprof in
: >in
fails "an empty file" "'in' is empty" --format=pprof in
echo 'a;b 5' >in
fails "folded stacks" "'in' line 1: an object is expected.*
.*hint: stackexport reads captures, and what symbolize --format=tables prints" --format=pprof in
fails "a missing file" "cannot open 'none': No such file" --format=pprof none
fails "a directory" "cannot read '$TMP': Is a directory" --format=pprof "$TMP"
tables "{\"type\":\"new\",\"x\":$(perl -e 'print "[" x 64, "]" x 64')}"
run "$export" --format=pprof in
like "$rc:$(cat "$err")" '^1:stackexport: the recording has no wait' "objects of types to come are skipped; without waits the status is 1"
tables "{\"type\":\"new\",\"x\":$(perl -e 'print "[" x 65, "]" x 65')}"
fails "what is nested too deeply" "line 2: arrays and objects are nested too deeply" --format=pprof in
# each prefix is refused, or is the whole, and nothing crashes
tables "$P
$W"
size=$(wc -c <in)
bad=
for n in $(seq 1 "$size"); do
	head -c "$n" in >prefix
	"$export" --format=otlp prefix >/dev/null 2>"$err"
	prefix_rc=$?
	[ $prefix_rc -le 2 ] || bad="$bad $n:$prefix_rc"
	[ $prefix_rc -ne 0 ] || [ "$n" -eq "$size" ] || bad="$bad $n:accepted"
done
is "$bad" "" "no beginning of a recording is taken for a whole one"

## the command line and the output

status 64 "a format is needed" "$export" plain.cap
like "$(cat "$err")" '^stackexport: no --format given: pprof, speedscope, firefox, perfetto or otlp' "and the message lists them"
status 64 "an unknown format is a usage error" "$export" --format=x plain.cap
for format in $formats; do
	run sh -c '"$1" --format=$2 plain.cap >/dev/full' sh "$export" $format
	is "$rc:$(grep -c 'No space left' "$err")" "2:1" "$format: a full disk gives status 2 and a message"
	run sh -c '{ "$1" --format=$2 hostile.cap; echo $? >rc; } | true' sh "$export" $format
	like "$(cat rc)" '^(141|0|1)$' "$format: a reader that goes away ends it"
	rm -f file
	"$export" --format=$format -o file plain.cap 2>/dev/null
	cp file first
	"$export" --format=$format -o file plain.cap 2>/dev/null
	same file first "$format: -o makes a file, and replaces an older one of this format"
	is "$(stat -c %a file)" 600 "$format: which only its owner can read"
	echo text >file
	fails "$format: -o with a file of another kind" "'file' exists and is not" --format=$format -o file plain.cap
	is "$(cat file)" text "$format: which stays as it was"
	"$export" --format=$format --force -o file plain.cap 2>/dev/null
	same file first "$format: --force replaces it"
	rm -f file
	"$export" --format=$format -o file details2 2>/dev/null
	ok "$format: without an input there is no file" test ! -e file
done
echo 'mine user=x' >rules
run "$export" --format=speedscope --kinds rules in
is "$rc:$(head -n 1 "$err"):$(cat "$out")" "64:stackexport: --kinds is for captures, and 'in' has its kinds already: give it to symbolize:" \
	"--kinds is refused for what symbolize has printed"
if command -v script >/dev/null; then
	for format in pprof perfetto otlp; do
		run script -qec "$export --format=$format plain.cap" /dev/null
		like "$(cat "$out")" 'standard output is a terminal' "$format is not written to a terminal"
	done
	run script -qec "$export --format=pprof" /dev/null
	like "$(cat "$out")" 'no FILE given, and standard input is a terminal' "nothing is read from a terminal"
else
	skip "nothing binary is written to a terminal" "no script(1)"
fi

tap_done
