#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# stackreport --live: the ranking while it is recorded.
# shellcheck disable=SC2154,SC2016,SC2317 # $out, $err and $rc come from tap.sh; Perl's variables; functions that ok calls
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
report=$BIN/stackreport
cd "$TMP" || exit 1
export TERM=xterm

# wait THREAD NS KIND FUNCTION [COUNT]
wait_of() {
	printf '# wait: count=%d total_ns=%d max_ns=%d runnable_ns=0 kind=%s state=S\n' "${5:-1}" "$2" $(($2 / ${5:-1})) "$3"
	printf 'th-%s 1/%s [000] 1.5: %d offcpu-time: \n\t12 %s+0x1 (/x)\n\t34 main+0x2 (/x)\n\n' "$1" "$1" "$2" "$4"
}

flush() {
	printf '# flush: duration=%s\n\n' "$1"
}

# three pieces, and what the end of a recording adds
piece_1() {
	echo '# stacktools perf-script 1
# host: hostname=h start=x duration=0.500 monotonic=100.000000000'
	wait_of 11 900000000 lock fa 2
	wait_of 12 100000000 pipe fb
	flush 1.000000000
}
piece_2() {
	wait_of 12 300000000 pipe fb 3
	flush 2.000000000
}
piece_3() {
	wait_of 11 50000000 lock fa
	wait_of 13 800000000 poll fc
	flush 3.250000000
}
rest() {
	wait_of 12 700000 pipe fb
}
{
	piece_1
	piece_2
	piece_3
	rest
} >text

## not on a terminal

run "$report" --live text
is "$rc:$(cat "$out" "$err")" "0:recorded   1.000 s of 1 process with 2 threads
waits      3, 1.000 s in all, mean 333.3 ms, 2 distinct stacks
last       1.000 s: 3, 1.000 s in all
of it      idle 0 ns, blocked 1.000 s, runnable 0 ns

2 places; % of 1.000 s, all of it
   #     last   ended     time      %   count  longest  kind
  1. 900.0 ms       2 900.0 ms   90.0       2 450.0 ms  lock
      main > fa
  2. 100.0 ms       1 100.0 ms   10.0       1 100.0 ms  pipe
      main > fb

recorded   2.000 s of 1 process with 2 threads
waits      6, 1.300 s in all, mean 216.7 ms, 2 distinct stacks
last       1.000 s: 3, 300.0 ms in all
of it      idle 0 ns, blocked 1.300 s, runnable 0 ns

2 places; % of 1.300 s, all of it
   #     last   ended     time      %   count  longest  kind
  1.     0 ns       0 900.0 ms   69.2       2 450.0 ms  lock
      main > fa
  2. 300.0 ms       3 400.0 ms   30.8       4 100.0 ms  pipe
      main > fb

recorded   3.250 s of 1 process with 3 threads
waits      8, 2.150 s in all, mean 268.8 ms, 3 distinct stacks
last       1.250 s: 2, 850.0 ms in all
of it      idle 0 ns, blocked 2.150 s, runnable 0 ns

3 places; % of 2.150 s, all of it
   #     last   ended     time      %   count  longest  kind
  1. 50.00 ms       1 950.0 ms   44.2       3 450.0 ms  lock
      main > fa
  2. 800.0 ms       1 800.0 ms   37.2       1 800.0 ms  poll
      main > fc
  3.     0 ns       0 400.0 ms   18.6       4 100.0 ms  pipe
      main > fb

$("$report" text)" "a table after each flush, with what ended since the one before; the last one is that of the whole text"
for args in "" "--by thread" "--by function" "--kind pipe" "-n 1" --tsv "--tsv --by kind"; do
	# shellcheck disable=SC2086 # words
	run "$report" $args text
	# shellcheck disable=SC2086 # words
	is "$("$report" --live $args text | tail -n "$(wc -l <"$out")")" "$(cat "$out")" "the last one is the same as without --live: ${args:-the table}"
done
is "$("$report" --live --json text | perl -MCpanel::JSON::XS -ne 'my $j = decode_json($_); my $r = $j->{rows}[0];
	print join(" ", $j->{elapsed_ns}, $j->{last_elapsed_ns} // "-", $j->{total_ns}, $j->{last_total_ns} // "-", $j->{last_count} // "-",
		$r->{functions}[1], $r->{total_ns}, $r->{last_total_ns} // "-", $r->{last_count} // "-"), "\n"')" \
	"1000000000 1000000000 1000000000 1000000000 3 fa 900000000 900000000 2
2000000000 1000000000 1300000000 300000000 3 fa 900000000 0 0
3250000000 1250000000 2150000000 850000000 2 fa 950000000 50000000 1
3250000000 - 2150700000 - - fa 950000000 - -" "--json: an object a line"
is "$("$report" --json text | perl -MCpanel::JSON::XS -0777 -ne 'print Cpanel::JSON::XS->new->canonical->encode(decode_json($_))')" \
	"$("$report" --live --json text | tail -n 1 | perl -MCpanel::JSON::XS -ne 'print Cpanel::JSON::XS->new->canonical->encode(decode_json($_))')" \
	"the last of which is the same as without --live"
is "$("$report" --live --tsv text | cut -f 1-5,12 | sed -n '5,9p')" "rank	total_ns	last_total_ns	last_count	count	stack
1	900000000	0	0	2	main;fa
2	400000000	300000000	3	4	main;fb

rank	total_ns	last_total_ns	last_count	count	stack" "--tsv: a table after each flush, with a blank line between them"
is "$("$report" --live --last text | grep -A 2 '   #' | sed -n '5,7p')" "   #     last      %   ended     time   count  longest  kind
  1. 300.0 ms  100.0       3 400.0 ms       4 100.0 ms  pipe
      main > fb" "--last ranks by what ended since the table before"
is "$("$report" --live --last text | tail -n 8)" "$("$report" text | tail -n 8)" "but for the last table"
is "$("$report" --live --kind poll --tsv text | tail -n +2)" "
rank	total_ns	last_total_ns	last_count	count	mean_ns	p99_ns	max_ns	threads	kind	syscall	stack

rank	total_ns	last_total_ns	last_count	count	mean_ns	p99_ns	max_ns	threads	kind	syscall	stack
1	800000000	800000000	1	1	800000000	800000000	800000000	1	poll		main;fc

$("$report" --kind poll --tsv text)" "before there is a wait of that kind, a table is empty"
run "$report" --live --kind swap text
like "$rc:$(tail -n 1 "$out"):$(cat "$err")" "^1:.*nothing to rank:.*:stackreport: no wait is of kind 'swap'|no wait is of kind 'swap'" \
	"if there is none at the end, that is said"
is "$rc" 1 "with status 1"
grep -v '^# flush' text >noflush
is "$("$report" --live noflush)" "$("$report" noflush)" "without a flush there is one table"
is "$(echo 'p;a;b 5' | "$report" --live)" "$(echo 'p;a;b 5' | "$report")" "folded lines have none"
run "$report" text
is "$(head -n 1 "$out")" "recorded   3.250 s of 1 process with 3 threads" "without --live, flushes say how long was recorded"
cat text text >twice
is "$("$report" --live twice | grep -c '^recorded  *4\.250 s')" 1 "a second recording behind the first one adds to it"
: >empty
run "$report" --live empty
is "$rc:$(cat "$err")" "1:stackreport: no wait in 'empty'" "an empty text has no wait"
run "$report" --live none
like "$rc:$(cat "$err")" "^2:.*cannot open 'none'" "a missing file is an error"
head -c -1 text >shortened
run "$report" --live shortened
like "$rc:$(cat "$err")" "^1:.*a record cut short by the end of the input" "a text that is cut gives status 1, and a message"
printf '%s\n\n' '# flush: duration=x' '# flush: duration=99999999999999999999.1' '# flush:' '# flush: duration=2' '# flush: duration=1' >odd
rest >>odd
run "$report" --live --json odd
is "$rc:$(perl -MCpanel::JSON::XS -ne 'print decode_json($_)->{last_elapsed_ns} // "-", " "' "$out")" "0:0 0 2000000000 0 - " \
	"whatever times flushes have, none is negative"
for args in --chain --by=1s "--function f" --events "text text"; do
	# shellcheck disable=SC2086 # words
	status 64 "--live $args is a usage error" "$report" --live $args
	[ -s "$out" ] && fail "--live $args writes nothing to stdout"
done
status 64 "--last without --live is one, too" "$report" --last text
run sh -c '"$0" --live text >/dev/full' "$report"
is "$rc" 2 "a full disk gives status 2"
like "$(cat "$err")" 'No space left on device' "and a message"
main=$(nm "$BIN/fold" 2>/dev/null | awk '$3 == "main" { print $1 }')
if [ -n "$main" ] && "$OBJ/t/unit/resolve" --make a.cap "$BIN/fold" "$BIN/fold" prog "" "$main"; then
	run "$report" --live --all a.cap
	is "$rc:$(tail -n 8 "$out")" "0:$("$report" --all a.cap | tail -n 8)" "a capture is read through symbolize --live"
else
	skip "a capture is read through symbolize --live" "no symbol table in $BIN/fold"
fi

## what has come is shown at once

mkfifo in
"$report" --live --tsv -n 1 <in >shown 2>"$err" &
pid=$!
at_exit_kill "$pid"
exec 7>in
tables() {
	test "$(grep -c '^rank' shown)" -eq "$1"
}
piece_1 >&7
ok 'a piece is shown when its flush has come, not later' until_true tables 1
piece_2 | head -c 100 >&7
piece_2 | tail -c +101 >&7
ok 'also if it comes bit by bit' until_true tables 2
wait_of 11 1 lock fa >&7
kill -INT "$pid"
exec 7>&-
wait "$pid"
is "$?:$(cat "$err")" 0: 'after Ctrl-C the input may end'
is "$(tail -n 1 shown | cut -f 2,3)" '900000001	3' 'and is counted to its end'

"$report" --live --tsv -n 1 <in >shown 2>"$err" &
pid=$!
at_exit_kill "$pid"
exec 7>in
piece_1 >&7
until_true tables 1
piece_2 | head -c 100 >&7
kill -INT "$pid"
wait "$pid"
is "$?:$(cat "$err")" 0: 'an input that does not end within a second is not awaited'
is "$(tail -n 1 shown | cut -f 2,3)" '900000000	2' 'what was complete is reported'
exec 7>&-

# the reader has gone
(
	piece_1
	while piece_2; do
		sleep 0.05
	done
) 2>/dev/null | "$report" --live 2>/dev/null | head -n 3 >/dev/null &
gone=$!
ended() {
	! kill -0 "$gone" 2>/dev/null
}
ok 'when the reader is gone, so are the others' until_true ended

# memory: the same stacks, 20 times as long
perl -e 'for my $i (1 .. 20000) { print "# wait: count=1 total_ns=", $i % 100 + 1, " max_ns=", $i % 100 + 1, "\nab 1/2 $i.5: 10 offcpu-time: \n",
	(map { "\t12 function_$_+0x1 (/usr/lib/x)\n" } 1 .. 40), "\n", $i % 100 ? "" : "# flush: duration=$i.0\n\n" }' >big
peak() {
	perl -e 'my $p = fork // die; if (!$p) { open STDOUT, ">", "/dev/null"; exec @ARGV }
		my ($st, $u) = (pack("l", 0), "\0" x 144); syscall(61, $p, $st, 0, $u); print((unpack "q5", $u)[4])' "$@"
}
head -n 43020 big >small
small=$(peak "$report" --live small)
large=$(peak "$report" --live big)
ok "memory depends on distinct stacks, not on the length ($small and $large KiB)" test "$large" -lt $((small + 1024))

## on a terminal

# frames: what each redraw of the screen has in typescript: the number of its lines, and the length of the longest
frames() {
	perl -0777 -ne 'for (split /(?=\e\[\?7l\e\[H)/) { next unless /^\e\[\?7l/; s/\e\[J\e\[\?7h.*//s; s/\e\[\?7l|\e\[[0-9]*[A-Z]//g; s/\r//g;
		my @l = split /\n/; my $w = 0; for (@l) { $w = length if length > $w } print scalar @l, " $w\n" }' "$1"
}
perl -e 'print "# host: hostname=h duration=1.000\n"; for (1 .. 40) { print "# wait: count=1 total_ns=${_}000 max_ns=${_}000 kind=lock\nth 1/2 1.5: 1 offcpu-time: \n",
	"\t1 function_with_a_long_name_$_ (/x)\n\t2 another_one_with_a_long_name (/x)\n\t3 main (/x)\n\n" } print "# flush: duration=1.0\n\n"' >many
if command -v script >/dev/null; then
	script -qec "stty rows 24 cols 80; '$report' --live text" typescript >/dev/null 2>&1 </dev/null
	is "$(frames typescript | wc -l)" 3 'on a terminal, a table after each flush takes the place of the one before'
	is "$(perl -0777 -ne 's/.*\e\[H\e\[J//s; s/\r//g; s/\n+(Script done.*)?\z/\n/s; print' typescript)" "$("$report" text)" \
		'and the last one stays, as without --live'
	is "$(grep -c '[[]?7h' typescript)" "$(grep -c '[[]?7l' typescript)" 'lines are wrapped again each time'
	script -qec "stty rows 10 cols 60; '$report' --live many" typescript >/dev/null 2>&1 </dev/null
	is "$(frames typescript | awk '{ print ($1 <= 9 && $1 >= 8) " " ($2 <= 60) }')" '1 1' 'a table is not higher or wider than the terminal'
	script -qec "stty rows 3 cols 60; '$report' --live many" typescript >/dev/null 2>&1 </dev/null
	is "$(frames typescript | cut -d ' ' -f 1)" 2 'however small that is'
	script -qec "stty rows 50 cols 120; '$report' --live -n 3 many" typescript >/dev/null 2>&1 </dev/null
	is "$(grep -c '^ *[0-9]*\. .*\[K' typescript)" 3 '-n limits its rows'
	cat >resize <<-END
		stty rows 10 cols 60
		{ cat many; until grep -q '7h' typescript; do sleep 0.1; done; stty rows 30 cols 100 </dev/tty
		tries=0; until [ "\$(grep -c '7h' typescript)" -ge 2 ] || [ \$tries -ge 100 ]; do sleep 0.1; tries=\$((tries + 1)); done; } | '$report' --live
	END
	script -fqec "sh resize" typescript >/dev/null 2>&1 </dev/null
	is "$(frames typescript | awk 'NR == 1 { print ($1 <= 9) " " ($2 <= 60) } { n = $1; w = $2 } END { print (n > 9 && n <= 29) " " (w > 60 && w <= 100) }')" '1 1
1 1' \
		'when the size of the terminal changes, the table does, without a flush'
	printf '# wait: count=1 total_ns=7 kind=\033[2J state=\001\na\033]0;x\007b 1/2 1.5: 7 offcpu-time: \n\t1 t\tb\033[1m\377\302\233\000n (/f\033[31m)\n\n' >hostile
	flush 1.0 >>hostile
	for by in stack function thread process kind module; do
		script -qec "stty rows 24 cols 80; '$report' --live --by $by hostile" typescript >/dev/null 2>&1 </dev/null
		is "$(sed '1d;$d' typescript | LC_ALL=C sed 's/\x1b\[?7[lh]//g; s/\x1b\[2\?[HJK]//g; s/\r//g' | LC_ALL=C tr -d '\n -~' | wc -c)" 0 \
			"no control character of a name reaches the terminal: --by $by"
	done
	script -qec "TERM=dumb '$report' --live text" typescript >/dev/null 2>&1 </dev/null
	is "$(grep -c "$(printf '\033')" typescript)" 0 'a terminal that cannot do that gets one table after the other'
	script -qec "stty rows 24 cols 80; '$report' --live --tsv text" typescript >/dev/null 2>&1 </dev/null
	is "$(grep -c "$(printf '\033')" typescript)" 0 'so do lines with tabs'
else
	skip 'on a terminal' 'no script(1)'
fi

## while it is recorded

(need_bpf) >"$TMP/bpf"
if grep -q SKIP "$TMP/bpf"; then
	skip 'a recording is shown while it lasts' 'no BPF'
	tap_done
fi
mkfifo go
"$OBJ/t/work/switch" sleep 1000000 10 20 <go >pid &
exec 7>go
echo >&7
until_true test -s pid
pid=$(head -n 1 pid)
at_exit_kill "$pid"
# each flush, and each table, with the time at which it came
stamp='BEGIN { $| = 1; open $at, ">", shift; $at->autoflush(1) } print $at time, "\n" if /SHOWN/; print'
{ "$BIN/offcpu-record" -q -o - -p "$pid" -d 5 7>&- | "$BIN/symbolize" -q --live - |
	perl -MTime::HiRes=time -MIO::Handle -ne "$(echo "$stamp" | sed 's/SHOWN/^# flush/')" flushed |
	"$report" --live --all | perl -MTime::HiRes=time -MIO::Handle -ne "$(echo "$stamp" | sed 's/SHOWN/^last /')" shown_at >shown; } 2>"$err"
is "$(cat "$err")" '' 'a recording is shown while it lasts'
ok 'a table each second' test "$(wc -l <shown_at)" -ge 4
is "$(paste flushed shown_at | awk '$2 - $1 > 1 || $2 < $1 { n++ } END { print n + 0 }')" 0 \
	"less than a second after the flush ($(paste flushed shown_at | awk '$2 - $1 > max { max = $2 - $1 } END { printf "%.1f ms", max * 1000 }') at most)"

# Ctrl-C goes to all of the pipeline
if command -v script >/dev/null; then
	cat >pipeline <<-END
		trap : INT
		stty rows 24 cols 80
		'$BIN/offcpu-record' -q -o - -p $pid -d 60 | '$BIN/symbolize' -q --live - | '$report' --live --all
		echo "status \$?"
	END
	: >typescript
	{
		until_true sh -c 'test "$(grep -c 7h typescript)" -ge 2'
		printf '\003'
		until_true grep -q '^status' typescript
	} 7>&- | timeout 60 script -fqec 'sh pipeline' typescript >/dev/null 2>&1 7>&-
	perl -0777 -ne 's/.*\e\[H\e\[J//s; s/\r//g; print' typescript >last
	like "$(cat last)" '^status 0$' 'Ctrl-C on a terminal ends the pipeline'
	like "$(head -n 1 last)" '^recorded   [0-9.]* s of 1 process' 'with the table of everything'
	is "$(grep -c 'stackreport:\|symbolize:\|offcpu-record:' last)" 0 'and without a message'
else
	skip 'Ctrl-C on a terminal ends the pipeline' 'no script(1)'
fi
tap_done
