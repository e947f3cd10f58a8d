#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# stackreport: where the time is.
# shellcheck disable=SC2154,SC2016 # $out, $err and $rc come from tap.sh; Perl's variables
. "$(dirname "$0")/../lib/tap.sh"
report=$BIN/stackreport
cd "$TMP" || exit 1

# in_file TEXT: writes TEXT, a printf format, to $TMP/in
in_file() {
	# shellcheck disable=SC2059 # the format is the text
	printf "$1" >"$TMP/in"
}

# tsv NAME TEXT WANT [OPTION...]: status 0, nothing on stderr, and these fields of --tsv without rank, mean
# and the first line, separated by |
tsv() {
	t_name=$1
	in_file "$2"
	t_want=$3
	shift 3
	run "$report" --tsv "$@" "$TMP/in"
	is "$rc:$(cat "$err")$(awk -F '\t' 'NR == 1 { for (i = 1; i <= NF; i++) skip[i] = $i ~ /^(rank|total|mean|p99)/ }
			NR > 1 { s = $2; for (i = 1; i <= NF; i++) if (!skip[i]) s = s "|" $i; print s }' "$out")" \
		"0:$t_want" "$t_name"
}

# damaged NAME TEXT WANT MESSAGE: status 1, the rest is ranked (WANT: its totals), MESSAGE on stderr
damaged() {
	in_file "$2"
	run "$report" --tsv --all "$TMP/in"
	is "$rc:$(awk 'NR > 1 { printf "%s ", $2 }' "$out")" "1:$3" "$1: the rest is ranked, status 1"
	like "$(cat "$err")" "$4" "$1: the message says what and where"
}

# answers_no NAME MESSAGE ARGUMENT...: status 1, nothing on stdout, MESSAGE on stderr
answers_no() {
	t_name=$1 t_want=$2
	shift 2
	run "$report" "$@"
	is "$rc:$(cat "$out")" "1:" "$t_name gives status 1 and no table"
	like "$(cat "$err")" "$t_want" "$t_name is reported"
}

# fails NAME MESSAGE ARGUMENT...: status 2, nothing on stdout, MESSAGE on stderr
fails() {
	t_name=$1 t_want=$2
	shift 2
	run "$report" "$@"
	is "$rc:$(cat "$out")" "2:" "$t_name gives status 2 and no table"
	like "$(cat "$err")" "$t_want" "$t_name is reported"
}

K='\tffffffff81000000 __schedule+0x1 ([kernel.kallsyms])\n'
READ=$K'\tffffffff81000010 vfs_read+0x1 ([kernel.kallsyms])\n\tffffffff81000020 __x64_sys_read+0x1 ([kernel.kallsyms])\n\tffffffff81000030 do_syscall_64+0x1 ([kernel.kallsyms])\n'
W='# wait: count=4 total_ns=4000 max_ns=2000 state=S open=0 initial=0 preempted=0 kind=disk-read runnable_ns=500 kernel=complete user=complete\n'
A=$W'ab 1/2 [000] 1.5: 4000 offcpu-time: \n'$READ'\t12 read+0x1 (/lib/libc.so)\n\t34 main+0x2 (/bin/x)\n\n'
B='# wait: count=1 total_ns=900 max_ns=900 state=D open=0 initial=0 preempted=0 kind=lock\nab 1/3 [000] 1.5: 900 offcpu-time: \n'$K'\t12 f+0x1 (/bin/x)\n\t34 main+0x2 (/bin/x)\n\n'

## against an independent computation

for seed in 1 2 3; do
	mkdir "$TMP/$seed"
	perl "$DATA/report/truth.pl" "$seed" "$TMP/$seed" || fail "truth.pl $seed"
	for by in stack function thread process kind module state; do
		run "$report" --tsv --by "$by" "$TMP/$seed/text"
		same "$out" "$TMP/$seed/$by" "random waits ($seed): --by $by has the right rows in the right order"
	done
	"$report" --tsv --all "$TMP/$seed/text" >"$out"
	same "$out" "$TMP/$seed/all" "random waits ($seed): --all ranks what is set aside"
	"$report" --tsv --idle "$TMP/$seed/text" >"$out"
	same "$out" "$TMP/$seed/idle" "random waits ($seed): --idle ranks waits for work"
	"$report" --tsv --kind lock,poll "$TMP/$seed/text" >"$out"
	same "$out" "$TMP/$seed/lock" "random waits ($seed): --kind selects kinds"
	"$report" --tsv --function f3 "$TMP/$seed/text" >"$out"
	same "$out" "$TMP/$seed/function-f3" "random waits ($seed): --function has callers and callees"
	"$report" --json "$TMP/$seed/text" | perl -MCpanel::JSON::XS -0777 -ne '
		my $j = decode_json($_);
		print "$_=$j->{$_}\n" for qw(elapsed_ns processes threads total_ns count idle_ns not_idle_blocked_ns not_idle_runnable_ns);
		print "lost.ring_full=$j->{lost}{q(lost.ring_full)}\nranked_ns=$j->{ranked_ns}\nidle_places=$j->{idle_set_aside}{places}\n";
		print "once_total_ns=$j->{once_set_aside}{total_ns}\nonce_threads=$j->{once_set_aside}{threads}\n"' >"$out"
	same "$out" "$TMP/$seed/summary" "random waits ($seed): the summary is right"
	"$report" --json "$TMP/$seed/text" | perl -MCpanel::JSON::XS -0777 -ne '
		my ($j, $i) = (decode_json($_), 0);
		print join("\t", ++$i, map { $_ // "" } @$_{qw(total_ns count mean_ns p99_ns max_ns threads kind)}, $_->{syscall} // "", join ";", @{$_->{functions}}), "\n" for @{$j->{rows}}' >"$out"
	sed 1d "$TMP/$seed/stack" >"$TMP/want"
	same "$out" "$TMP/want" "random waits ($seed): JSON and TSV have the same rows"
done

## the table

in_file "# host: hostname=h recorder=r start=2026-01-01T00:00:00Z duration=2.000\n# lost: name=lost.x count=3\n# lost: name=lost.y_ns count=5\n$A$B\
# wait: count=1 total_ns=2000000000 max_ns=2000000000 state=S open=1 initial=1 kind=child\nab 1/1 [000] 1.5: 2000000000 offcpu-time: \n\t12 wait4 (/lib/libc.so)\n\t34 main (/bin/x)\n\n\
# wait: count=2 total_ns=12345678 max_ns=9999999 state=S kind=idle\nab 1/2 [000] 1.5: 12345678 offcpu-time: \n\t12 next_job (/bin/x)\n\n"
run "$report" "$TMP/in"
is "$rc:$(cat "$out" "$err")" "0:recorded   2.000 s of 1 process with 3 threads
waits      8, 2.012 s in all, mean 251.5 ms, 4 distinct stacks
of it      idle 12.35 ms, blocked 3.500 us, runnable 500 ns, not known 2.000 s
lost       lost.x 3, lost.y_ns 5

2 places; % of 4.900 us, without what is set aside below
   #     time      %   count     mean  longest threads  kind
  1. 4.000 us   81.6       4 1.000 us 2.000 us       1  disk-read
      main > read  in read
  2.   900 ns   18.4       1   900 ns   900 ns       1  lock
      main > f

idle: 12.35 ms in 1 place of 1 thread; --idle ranks them too
waited once, all the time: 2.000 s in 1 place of 1 thread; --all ranks them too" "the table is as documented"
run "$report" --by process "$TMP/in"
like "$(tail -n 4 "$out")" '^  1\. 4\.900 us  100\.0       5   980 ns 2\.000 us       2  ab 1$' "--by process names a process"
run "$report" --top 1 "$TMP/in"
like "$(cat "$out")" '^the greatest of 2 places; % of 4.900 us' "--top limits the table, and percentages are of all that is ranked"
run "$report" --function main "$TMP/in"
is "$rc:$(cat "$out" "$err")" "0:function   main
total      2.000 s in 6 waits of 3 threads
self       0 ns (0.0 %): it is the innermost user function

   #     time      %   count     mean  longest threads  called by
  1.  2.000 s  100.0       6 333.3 ms  2.000 s       3  (outermost)

   #     time      %   count     mean  longest threads  calls
  1.  2.000 s  100.0       1  2.000 s  2.000 s       1  wait4
  2. 4.000 us    0.0       4 1.000 us 2.000 us       1  read
  3.   900 ns    0.0       1   900 ns   900 ns       1  f" "--function shows callers and callees"
in_file '# wait: count=1 total_ns=5 kind=idle\nab 1/2 1.5: 5 offcpu-time: \n\t1 f (x)\n\n'
run "$report" "$TMP/in"
like "$(cat "$out")" 'nothing to rank:
idle: 5 ns in 1 place of 1 thread; --idle ranks them too' "if everything is set aside, the table says so"
is "$rc" 0 "if everything is set aside, the status is 0"
for pair in '999:999 ns' '1000:1.000 us' '9999499:9.999 ms' '9999500:10.00 ms' '999949999:999.9 ms' '999950000:1000 ms' \
	'12345678901234:12346 s'; do
	is "$(echo "a;b ${pair%%:*}" | "$report" | sed -n 's/^sum *\(.*\) in all.*/\1/p')" "${pair#*:}" "${pair%%:*} ns is printed as ${pair#*:}"
done

# the width, with stacks of every depth and long names
perl -e 'for my $d (1 .. 60) { print "p;", join(";", map { "f$_" . "x" x ($d * $_ % 37) } 1 .. $d), ";entry_SYSCALL_64;__x64_sys_", "c" x ($d % 50), " ", 1000 - $d, "\n" }' >"$TMP/deep"
for width in 40 80 132; do
	"$report" --top 100 --width $width "$TMP/deep" | sed 1,4d >"$out"
	ok "no row is wider than --width $width" [ "$(wc -L <"$out")" -le $width ]
	is "$(grep -c '^  *f1x*  *\(>\|in\)\|^  *\.\.\. > \|^  *f1x*\.\.\.' "$out")" 60 "each stack begins with its outermost function, or its cut ($width)"
done
is "$("$report" --top 100 --width 80 "$TMP/deep" | wc -L)" "$("$report" --top 100 "$TMP/deep" | wc -L)" "the width is 80 if stdout is no terminal"
if command -v script >/dev/null; then
	is "$(script -qec "stty cols 100; '$report' --top 100 '$TMP/deep'" /dev/null </dev/null | tr -d '\r' | sed 1,4d | wc -L)" \
		"$("$report" --top 100 --width 100 "$TMP/deep" | sed 1,4d | wc -L)" "on a terminal, the width is the terminal's"
else
	skip "on a terminal, the width is the terminal's" "no script(1)"
fi
echo "p;_start;main;$(seq -f 'function%g' -s ';' 1 20) 5" >"$TMP/in"
is "$("$report" "$TMP/in" | tail -n 1)" "      main > ... > function17 > function18 > function19 > function20" \
	"a long stack keeps its innermost functions and main"
runtime=$(seq -f 'interpreter_%g' -s ';' 1 5)
for names in 'py::f:/usr/lib/app.py py::f:app.py' 'php::C::f:/srv/x.php php::C::f:x.php' 'ruby::Integer#/:calc.rb ruby::Integer#/:calc.rb' \
	'perl::P::f:lib/P.pm perl::P::f:P.pm' 'JS:f_/srv/app.js JS:f_/srv/app.js'; do
	echo "p;_start;main;$runtime;${names% *};$runtime;${names% *};$runtime;poll 5" >"$TMP/in"
	is "$("$report" "$TMP/in" | tail -n 1)" "      ${names#* } > ${names#* } > ... > poll" \
		"a long stack keeps the functions of an interpreter's program: ${names#* }"
done
echo "p;main;$runtime;JS:f /srv/lib/app.js;$runtime;write 5" >"$TMP/in"
is "$("$report" "$TMP/in" | tail -n 1)" "      JS:f app.js > ... > write" "and the file's name, without directories, of JavaScript"
echo "p;main;$runtime;$(seq -f 'py::function_%g:/srv/app.py' -s ';' 1 9) 5" >"$TMP/in"
is "$("$report" "$TMP/in" | tail -n 1)" "      ... > py::function_8:app.py > py::function_9:app.py" \
	"of these, the innermost"
is "$("$report" --width 40 "$TMP/in" | tail -n 1)" "      ... > py::fu...:app.py" "in a narrow table, one of them, cut"
in_file "ab 1/2 1.5: 5 offcpu-time: \n\t1 poll (/bin/x)\n$(seq -f '\t1 native_function_%g (/bin/x)\n' -s '' 1 9)\t0 Lcom/example/App;::f ([java])\n\t1 main (/bin/x)\n\n"
is "$("$report" "$TMP/in" | tail -n 1)" "      Lcom/example/App:::f > ... > poll" "and methods of Java"
echo "p;naïve_größe_$(printf '%0200d' 0)_größe_end 5" >"$TMP/in"
run "$report" "$TMP/in"
is "$(tail -n 1 "$out" | perl -CS -ne 'chomp; print length')" 80 "a name of several bytes a character is cut to the width"
like "$(tail -n 1 "$out")" 'naïve_größe_0*\.\.\.0*_größe_end$' "a long name is cut in its middle"

## what a place is

tsv "kernel functions below the system call do not split a place" \
	"$A${W}ab 1/2 [000] 1.5: 4000 offcpu-time: \n${K}\tffffffff81000050 other+0x1 ([kernel.kallsyms])\n\tffffffff81000020 __x64_sys_read+0x1 ([kernel.kallsyms])\n\t12 read+0x7 (/lib/libc.so)\n\t34 main+0x9 (/bin/x)\n\n" \
	"8000|8|2000|1|disk-read|read|main;read"
tsv "the kind splits a place" "$A$(printf '%s' "$A" | sed 's/disk-read/poll/; s/4000/5000/g')" \
	"5000|4|2000|1|poll|read|main;read
4000|4|2000|1|disk-read|read|main;read"
tsv "the system call splits a place" "$A$(printf '%s' "$A" | sed 's/__x64_sys_read/__arm64_sys_pread64/; s/4000/5000/g')" \
	"5000|4|2000|1|disk-read|pread64|main;read
4000|4|2000|1|disk-read|read|main;read"
for entry in __x64_sys_poll __ia32_sys_poll __ia32_compat_sys_poll __arm64_sys_poll '[syscall poll]' __se_sys_poll.isra.0 ksys_poll; do
	tsv "the system call of $entry is poll" "ab 1/2 1.5: 7 offcpu-time: \n$K\tffffffff81000020 $entry ([kernel.kallsyms])\n\tffffffff81000020 x64_sys_call ([kernel.kallsyms])\n\t1 f (x)\n\n" "7|1||1||poll|f"
done
tsv "a kernel thread is distinguished by the kernel's functions, without the scheduler's" \
	"kworker/1 60/60 1.5: 7 offcpu-time: \n$K\tffffffff81000020 schedule ([kernel.kallsyms])\n\tffffffff81000020 worker_thread ([kernel.kallsyms])\n\tffffffff81000020 kthread ([kernel.kallsyms])\n\n" \
	"7|1||1|||kthread;worker_thread"
tsv "inlined functions are functions" 'ab 1/2 1.5: 7 offcpu-time: \n\t1 outer->inner (x)\n\t2 m (x)\n\n' "7|1||1|||m;outer;inner"
tsv "frames of a waker do not belong to the stack" \
	"ab 1/2 1.5: 7 offcpu-time: \n\t1 w (/waker)\n\tffffffff81000000 ttwu ([kernel.kallsyms])\n\t0 -- ([waker])\n$K\t2 m (/own)\n\n" "7|1||1|||m"
tsv "nor does their file" \
	"ab 1/2 1.5: 7 offcpu-time: \n\t1 w (/waker)\n\t0 -- ([waker])\n$K\t2 m (/own)\n\n" "7|1||1|/own" --by module
tsv "a recursive function counts a wait once" 'ab 1/2 1.5: 7 offcpu-time: \n\t1 f (x)\n\t1 g (x)\n\t1 f (x)\n\n' "7|7|1||1|f
7|0|1||1|g" --by function
tsv "the module is the file of the innermost user frame" "$A" "4000|4|2000|1|/lib/libc.so" --by module
tsv "records without a state or kind" 'ab 1/2 1.5: 7 offcpu-time: \n\t1 f (x)\n\n' "7|1||1|" --by state
tsv "text without process IDs" 'ab 2 1.5: 7 offcpu-time: \n\t1 f (x)\n\nab 3 1.5: 7 offcpu-time: \n\t1 f (x)\n\n' "14|2||2|ab|" --by process
tsv "a process has the name of its main thread" \
	'th 1/2 1.5: 7 offcpu-time: \n\t1 f (x)\n\nmain 1/1 1.5: 7 offcpu-time: \n\t1 f (x)\n\n' "14|2||2|main|1" --by process
once() { # TOTAL OPEN
	printf '%s' '# host: hostname=h duration=10.000\n# wait: count=1 total_ns=TOTAL open=OPEN initial=1\nab 1/2 1.5: 1 offcpu-time: \n\t1 f (x)\n\n' |
		sed "s/TOTAL/$1/; s/OPEN/$2/"
}
tsv "a wait of 99 % of the recording is set aside" "$(once 9900000000 1)" ""
tsv "a shorter one is ranked" "$(once 9899999999 1)" "9899999999|1||1|||f"
tsv "a wait that ended is ranked" "$(once 9999999999 0)" "9999999999|1||1|||f"
for kind in lock disk-read disk-write fsync swap throttled page-fault stopped net-send; do
	tsv "a wait of kind $kind is ranked however long it is: it may be what is wrong" \
		"$(once 10000000000 1 | sed "s/initial=1/& kind=$kind/")" "10000000000|1||1|$kind||f"
done
for kind in child condition futex poll unknown; do
	tsv "one of kind $kind is set aside" "$(once 10000000000 1 | sed "s/initial=1/& kind=$kind/")" ""
done
tsv "runnable time beyond the total is not believed" "$(printf '%s' "$B" | sed 's/kind=lock/runnable_ns=901/')" "900|1|900|1|||main;f"

## other input

tsv "folded lines are ranked" 'p;a;b 5\np;a;c 7\nq;a;b 6\n# x\n\n' "11||||||a;b
7||||||a;c"
tsv "--unit is that of folded lines" 'p;a;b 5\n' "5000||||||a;b" --unit us
tsv "--unit=count: folded lines are of counts" 'p;a 5\n' "5||||||a" --unit count
like "$("$report" --unit count "$TMP/in" | head -n 2 | tail -n 1)" '^sum +5 waits in all' "--unit=count: the summary counts waits"
tsv "folded lines of fold --threads have threads" '[w x tid=7];p;a 5\n[w x tid=8];p;a 5\n' "10|||2|||a"
tsv "folded lines of fold --delimit have system calls" 'p;a;-;entry;ksys_read;schedule 5\n' "5|||||read|a"
tsv "folded lines of fold --all have system calls" 'p;a_[i];b_[j];__x64_sys_read_[k];x_[k] 5\n' "5|||||read|a;b"
tsv "folded lines without marks have system calls" 'p;a;entry_SYSCALL_64_after_hwframe;do_syscall_64;__x64_sys_read;vfs_read 5\n' "5|||||read|a"
damaged "a header that is cut by the end of the file" 'ab 1/2 1.5: 7' "" "cut short"
tsv "a folded line of a process alone" 'p 5\n' "5||||||"
tsv "text of perf script" 'ab 1/2 [000] 1.5: 10 cycles: \n\t12 f+0x1 (/x)\n\t34 main (/x)\n\n' "10|1||1|||main;f"
like "$(head -n 1 "$out")" 'rank.total.count.mean' "periods of another event are not called ns"
like "$("$report" "$TMP/in")" 'samples    1, 10 of event cycles in all' "the summary names the event"
tsv "--unit=ns sets the unit of an event" 'ab 1/2 [000] 1.5: 10 x: \n\t12 f+0x1 (/x)\n\n' "10|1||1|||f" --unit ns
like "$(head -n 1 "$out")" 'total_ns' "with --unit=ns they are times"
tsv "--unit does not change the text of symbolize" "$B" "900|1|900|1|lock||main;f" --unit ms
M='# wait: count=18446744073709551615 total_ns=18446744073709551615 max_ns=18446744073709551615\nab 1/2 1.5: 1 offcpu-time: \n\t1 f (x)\n\n'
tsv "sums beyond 64 bits are exact" \
	"$M$M$M" \
	"55340232221128654845|55340232221128654845|18446744073709551615|1|||f"
is "$("$report" --json "$TMP/in" | grep -o '"total_ns": [0-9]*' | head -n 1)" '"total_ns": 55340232221128654845' "and in JSON"
in_file "$A"
printf '%b' "$B" >"$TMP/in2"
run "$report" --tsv "$TMP/in" "$TMP/in2"
is "$rc:$(cut -f 2 "$out" | tr '\n' ' ')" "0:total_ns 4000 900 " "several files are read as one"
is "$("$report" --tsv <"$TMP/in" | wc -l):$("$report" --tsv - <"$TMP/in" | wc -l)" "2:2" "without FILE, or with -, stdin is read"
in_file 'ab 1/2 1.5: 7 one: \n\t1 f (x)\n\nab 1/2 1.5: 9 two: \n\t1 f (x)\n\n'
run "$report" "$TMP/in"
like "$rc:$(cat "$err")" "^0:.*only event 'one' is counted; 1 record of another is skipped, the first of 'two'" "other events are reported"
totals='# stacktools perf-script 1\n# totals: waits=WAITS total_ns=900 lost=0 samples=3\n\n'
P='# sample: count=3 total_ns=600\nab 1/2 [000] 1.4: 600 cpu-clock: \n\t12 g+0x1 (/bin/x)\n\t34 main+0x2 (/bin/x)\n\n'
tsv "waits are ranked, also behind a sample" "$(printf '%s' "$totals" | sed 's/WAITS/1/')$P$B" "900|1|900|1|lock||main;f"
run "$report" "$TMP/in"
is "$rc:$(cat "$out" "$err")" "0:recorded   1 process with 1 thread
waits      1, 900 ns in all, mean 900 ns, 1 distinct stack
of it      idle 0 ns
on CPU     600 ns, by 3 samples; --event cpu-clock ranks them

1 place; % of 900 ns, all of it
   #     time      %   count     mean  longest threads  kind
  1.   900 ns  100.0       1   900 ns   900 ns       1  lock
      main > f" "and what samples say is in a line of its own, in no percentage"
is "$("$report" --json "$TMP/in" | perl -MCpanel::JSON::XS -0777 -ne 'my $j = decode_json($_);
	print join " ", @$j{qw(total_ns ranked_ns on_cpu_ns on_cpu_samples event)}')" "900 900 600 3 offcpu-time" "and so in JSON"
run "$report" --tsv --event cpu-clock "$TMP/in"
is "$rc:$(sed 1d "$out" | cut -f 2,10)" "0:600	main;g" "--event cpu-clock ranks the samples"
tsv "samples are ranked where there is no wait" "$(printf '%s' "$totals" | sed 's/WAITS/0/')$P" "600|3||1|||main;g"
answers_no "waits of a text that has only samples" "no wait in '.*in'
.*hint: there are records of another event: --event cpu-clock counts them" --event offcpu-time "$TMP/in"

## captures

main=$(nm "$BIN/fold" 2>/dev/null | awk '$3 == "main" { print $1 }')
if [ -n "$main" ] && "$OBJ/t/unit/resolve" --make "$TMP/a.cap" "$BIN/fold" "$BIN/fold" prog "" "$main"; then
	run "$report" --tsv --all "$TMP/a.cap"
	is "$rc:$(cat "$err")" "0:" "a capture is read"
	"$BIN/symbolize" -q "$TMP/a.cap" | "$report" --tsv --all >"$TMP/want"
	same "$out" "$TMP/want" "a capture has the rows of its text"
	like "$(cat "$out")" 'main' "its functions have names"
	"$OBJ/t/unit/resolve" --make "$TMP/t.cap" "$BIN/fold" "$BIN/fold" prog t "$main"
	"$report" "$TMP/t.cap" >"$TMP/got" 2>"$TMP/err"
	is "$("$BIN/capinfo" --verify "$TMP/t.cap" | sed 's/: /  /')" "$(grep -E '^(damaged|incomplete)' "$TMP/got" | sed 's/^[a-z]* */&/; s/ \{1,\}/  /')" \
		"a capture without its trailer is as incomplete as capinfo says"
	like "$("$report" --json "$TMP/t.cap" 2>/dev/null)" '"incomplete": "ends at byte [0-9]+ without a trailer' "so it is in JSON"
	head -c $(($(wc -c <"$TMP/a.cap") - 20)) "$TMP/a.cap" >"$TMP/cut.cap"
	like "$("$report" "$TMP/cut.cap" 2>/dev/null)" '^damaged    cut at byte [0-9]+' "one that is cut elsewhere is damaged"
	"$BIN/symbolize" -q "$TMP/a.cap" >"$TMP/a.txt"
	run "$report" --tsv --all "$TMP/a.cap" "$TMP/a.txt" "$TMP/a.cap"
	is "$rc:$(awk 'NR > 1 { n += $2 } END { print n }' "$out")" \
		"0:$(awk 'NR > 1 { n += 3 * $2 } END { print n }' "$TMP/want")" "captures and texts can be given together"
	for args in --events "--by 1s" "--chain -t 1"; do
		# shellcheck disable=SC2086 # words
		fails "a capture of sums ($args)" "hint: record with offcpu-record --events
stackreport: symbolize could not read the capture '$TMP/a.cap': it ended with status 2" $args "$TMP/a.cap"
	done
	echo 'mine user=main  # ours' >"$TMP/-rules"
	run "$report" --tsv --all --by kind --kinds -rules "$TMP/a.cap"
	is "$rc:$(cat "$err"):$(cut -f 8 "$out" | grep -cx mine)" "0::1" "--kinds: rules of the user's name the waits of a capture"
	echo 'mine' >"$TMP/bad-rules"
	fails "what is not a rule" "line 1 of '$TMP/bad-rules': 'mine' has no condition" --kinds "$TMP/bad-rules" "$TMP/a.cap"
	mkfifo "$TMP/fifo"
	for args in "$TMP/a.txt" "$TMP/a.cap $TMP/a.txt" "$TMP/fifo"; do
		# shellcheck disable=SC2086 # words
		status 64 "--kinds is refused for text (${args##*/})" timeout 60 "$report" --kinds "$TMP/-rules" $args
		is "$(head -n 1 "$err"):$(cat "$out")" \
			"stackreport: --kinds is for captures, and '${args##* }' has its kinds already: give it to symbolize:" "and the message says which"
	done
	run sh -c '"$1" --kinds -rules <"$2"' - "$report" "$TMP/a.txt"
	like "$rc:$(cat "$err")" "^64:stackreport: --kinds is for captures, and standard input has its kinds already" "and of standard input"
	head -c $(($(wc -c <"$TMP/a.cap") - 20)) "$TMP/a.cap" >"$TMP/cut.cap"
	run "$report" --tsv --all "$TMP/cut.cap"
	is "$rc" 1 "a truncated capture gives status 1"
	like "$(cat "$err")" "^symbolize: " "symbolize reports what is missing"
	run sh -c '"$1" <"$2"' - "$report" "$TMP/a.cap"
	like "$rc:$(cat "$err")" "^2:stackreport: '-' is a capture, not the text of symbolize
.*hint: .*symbolize" "a capture on stdin gives status 2 and a hint"
	run sh -c '"$1" --tsv --all /dev/stdin <"$2"' - "$report" "$TMP/a.cap"
	same "$out" "$TMP/want" "a capture may be /dev/stdin"
	cp "$report" "$TMP/alone"
	run env PATH=/nonexistent "$TMP/alone" "$TMP/a.cap"
	is "$rc" 2 "a capture without symbolize gives status 2"
	like "$(cat "$err")" "cannot run 'symbolize', which reads the capture '$TMP/a.cap': No such file" "a missing symbolize is reported"
	like "$(cat "$err")" 'hint: ' "with a hint"
	run env PATH="$BIN" "$TMP/alone" --tsv --all "$TMP/a.cap"
	same "$out" "$TMP/want" "symbolize is found through PATH"
	cp "$TMP/a.cap" "$TMP/\$(touch pwned); x.cap"
	status 0 "no shell sees the name of a capture" "$report" --all "$TMP/\$(touch pwned); x.cap"
	ok "and no command in it runs" [ ! -e "$TMP/pwned" ]
	cp "$TMP/a.cap" "$TMP/-V"
	run "$report" --tsv --all -- -V
	same "$out" "$TMP/want" "a capture may have the name of an option"
	printf '#!/bin/sh\nkill -KILL $$\n' >"$TMP/symbolize"
	chmod +x "$TMP/symbolize"
	run "$TMP/alone" "$TMP/a.cap"
	like "$rc:$(cat "$err")" '^2:.*was killed by SIGKILL' "a symbolize that is killed gives status 2"
else
	skip "a capture is read" "no symbol table in $BIN/fold"
fi
printf '\211stkcap\n\0\0' >"$TMP/bad.cap"
fails "a capture that symbolize cannot read" "symbolize could not read the capture '$TMP/bad.cap': it ended with status 2" "$TMP/bad.cap"

## each wait by itself

for seed in 1 2 3; do
	mkdir "$TMP/e$seed"
	perl "$DATA/report/events.pl" "$seed" "$TMP/e$seed" || fail "events.pl $seed"
	run "$report" --by 50ms --all --tsv "$TMP/e$seed/text"
	is "$rc:$(cat "$err")" "0:" "random waits ($seed): --by 50ms succeeds"
	same "$out" "$TMP/e$seed/intervals" "random waits ($seed): each interval has its part of each wait"
	"$report" --by function --all --tsv "$TMP/e$seed/text" >"$out"
	is "$(perl -e 'my %p; open F, "<", shift; while (<F>) { my ($f, $p) = /;(\w+) (\d+)/; $p{$f} = $p }
		open F, "<", shift; while (<F>) { my @f = split /\t|\n/; next unless $p{$f[-1]}; $n++;
			print "$f[-1]: $f[5], not $p{$f[-1]}\n" if abs($f[5] - $p{$f[-1]}) * 128 > $p{$f[-1]} } print "$n\n"' \
		"$TMP/e$seed/p99" "$out")" 5 "random waits ($seed): the 99th percentile is right to 1/128"
done
n=$(wc -l <"$TMP/e1/intervals")
is "$("$report" --by 50ms --json "$TMP/e1/text" | perl -MCpanel::JSON::XS -0777 -ne 'my $j = decode_json($_);
	print scalar @{$j->{rows}}, " ", join ",", sort keys %{$j->{rows}[0]}')" \
	"$((n - 1)) blocked_ns,count,from_ns,greatest,max_ns,mean_ns,runnable_ns,total_ns" "--by 50ms --json has the same intervals"
is "$("$report" --by 50ms --json "$TMP/e1/text" | perl -MCpanel::JSON::XS -0777 -ne 'my $j = decode_json($_);
	print join("\t", $_->{from_ns}, @$_{qw(total_ns blocked_ns runnable_ns count)}, $_->{mean_ns} // "", $_->{max_ns} // "",
		$_->{greatest}{total_ns}, $_->{greatest}{kind}, "", join ";", @{$_->{greatest}{functions}}), "\n" for @{$j->{rows}}')" \
	"$(sed 1d "$TMP/e1/intervals")" "with the same numbers"
is "$("$report" --by 50ms -n 3 "$TMP/e1/text" | grep -c '^ *[0-9.]* [mn]*s ')" 3 "-n is the number of intervals to print"
is "$("$report" --by 50ms --tsv --kind lock,pipe "$TMP/e1/text" | awk -F '\t' 'NR > 1 { n += $2 } END { printf "%.0f", n }')" \
	"$("$report" --by kind --tsv --kind lock,pipe "$TMP/e1/text" | awk -F '\t' 'NR > 1 { n += $2 } END { printf "%.0f", n }')" \
	"--kind selects the waits of intervals"
fails "too many intervals" "a recording of 1\.000 s has more than 100000 intervals of 1\.000 us
.*hint: --by=10us makes fewer" --by 1us "$TMP/e1/text"
run "$report" --by 10us --tsv "$TMP/e1/text"
is "$rc:$(wc -l <"$out")" 0:100001 "what the hint says works"

# wait THREAD BEGIN_MS LEN_MS RUNNABLE_MS KIND FUNCTION [WAKER]
wait_at() {
	printf '# wait: count=1 total_ns=%d max_ns=%d runnable_ns=%d kind=%s state=S\n' $(($3 * 1000000)) $(($3 * 1000000)) \
		$(($4 * 1000000)) "$5"
	printf 'th-%s 1/%s [000] %d.%09d: %d offcpu-time: \n\tffffffff81000000 __x64_sys_read+0x1 ([kernel.kallsyms])\n' "$1" "$1" \
		$((100 + $2 / 1000)) $(($2 % 1000 * 1000000)) $(($3 * 1000000))
	printf '\t12 %s+0x1 (/x)\n\t34 main+0x2 (/x)\n' "$6"
	[ -z "$7" ] || printf '# waker: %s\n#\t12 waking+0x1 (/x)\n# waker: th-99 1/99\n#\t12 x+0x1 (/x)\n' "$7"
	echo
}
host='# host: hostname=h start=x duration=1.000 monotonic=100.000000000'
{
	echo "$host"
	wait_at 12 50 150 2 disk-read fb '[disk]'
	wait_at 11 100 400 1 lock fa 'th-12 1/12'
	wait_at 12 300 100 0 pipe fb2 'name with blanks 1/21'
	wait_at 21 310 40 5 sleep fc '[timer]'
	wait_at 11 700 100 1 poll fz 'sh 9/99'
	wait_at 11 850 20 0 poll fz '[hidden]'
} >"$TMP/path"
run "$report" --chain -t 11 --segments "$TMP/path"
is "$rc:$(cat "$out" "$err")" "0:thread     th-11 1/11
window     0.000000 s to 1.000000 s
path       1.000 s: running 499.0 ms, runnable 9.000 ms, blocked 252.0 ms, no wait recorded 240.0 ms
blocked    ended by interrupts 133.0 ms, waker hidden 20.00 ms, waker without a recorded wait 99.00 ms

the 10 greatest of 12 parts of the path; % of 1.000 s
   #     time      %   count  longest  thread              what
  1. 250.0 ms   25.0       2 200.0 ms  th-11 1/11          running
  2. 230.0 ms   23.0       2 130.0 ms  th-11 1/11          no wait recorded
  3. 199.0 ms   19.9       2 100.0 ms  th-12 1/12          running
  4. 99.00 ms    9.9       1 99.00 ms  th-11 1/11          poll by sh
      main > fz  in read
  5. 98.00 ms    9.8       1 98.00 ms  th-12 1/12          disk-read by [disk]
      main > fb  in read
  6. 50.00 ms    5.0       1 50.00 ms  th-21 1/21          running
  7. 35.00 ms    3.5       1 35.00 ms  th-21 1/21          sleep by [timer]
      main > fc  in read
  8. 20.00 ms    2.0       1 20.00 ms  th-11 1/11          poll by [hidden]
      main > fz  in read
  9. 10.00 ms    1.0       1 10.00 ms  th-21 1/21          no wait recorded
 10. 5.000 ms    0.5       1 5.000 ms  th-21 1/21          runnable

the path in order of time
       from     time  thread              what
 0.000000 s 100.0 ms  th-11 1/11          no wait recorded
 0.100000 s 98.00 ms  th-12 1/12          disk-read by [disk]
      main > fb  in read
 0.198000 s 2.000 ms  th-12 1/12          runnable
 0.200000 s 100.0 ms  th-12 1/12          running
 0.300000 s 10.00 ms  th-21 1/21          no wait recorded
 0.310000 s 35.00 ms  th-21 1/21          sleep by [timer]
      main > fc  in read
 0.345000 s 5.000 ms  th-21 1/21          runnable
 0.350000 s 50.00 ms  th-21 1/21          running
 0.400000 s 99.00 ms  th-12 1/12          running
 0.499000 s 1.000 ms  th-11 1/11          runnable
 0.500000 s 200.0 ms  th-11 1/11          running
 0.700000 s 99.00 ms  th-11 1/11          poll by sh
      main > fz  in read
 0.799000 s 1.000 ms  th-11 1/11          runnable
 0.800000 s 50.00 ms  th-11 1/11          running
 0.850000 s 20.00 ms  th-11 1/11          poll by [hidden]
      main > fz  in read
 0.870000 s 130.0 ms  th-11 1/11          no wait recorded" "--chain shows what made up a thread's time"
run "$report" --chain -t 11 --segments --tsv --from .1 --to 450ms "$TMP/path"
is "$rc:$(sed 1d "$out")" "0:100000000	98000000	th-12	1	12	blocked	[disk]	interrupt	disk-read	read	main;fb
198000000	2000000	th-12	1	12	runnable					
200000000	100000000	th-12	1	12	running					
300000000	10000000	th-21	1	21	no-wait					
310000000	35000000	th-21	1	21	blocked	[timer]	interrupt	sleep	read	main;fc
345000000	5000000	th-21	1	21	runnable					
350000000	50000000	th-21	1	21	running					
400000000	50000000	th-12	1	12	running					" "--from and --to are its window, and --segments --tsv has the parts in order"
run "$report" --chain -t 11 --tsv -n 2 "$TMP/path"
is "$rc:$(cat "$out")" "0:rank	total_ns	count	max_ns	comm	pid	tid	what	waker	why	kind	syscall	stack
1	250000000	2	200000000	th-11	1	11	running					
2	230000000	2	130000000	th-11	1	11	no-wait					" "--tsv has the sums"
run "$report" --chain -t 11 --mark fz "$TMP/path"
is "$rc:$(sed -n 3,4p "$out")" "0:requests   1 request between waits in fz, mean 50.00 ms, longest 50.00 ms
path       50.00 ms: running 50.00 ms" "--mark: a request is between two waits in that function"
run "$report" --chain -t 11 --mark read --segments --json "$TMP/path"
is "$(perl -MCpanel::JSON::XS -0777 -ne 'my $j = decode_json($_); my $s = 0; $s += $_->{total_ns} for @{$j->{segments}};
	print join " ", @$j{qw(tid requests total_ns running_ns)}, $j->{slowest}{from_ns}, $j->{slowest}{total_ns}, $s, $j->{rows}[0]{what}' "$out")" \
	"11 2 250000000 250000000 500000000 200000000 200000000 running" "or in that system call; the segments are those of the slowest one"
{
	echo "$host"
	wait_at 11 100 400 1 lock fa
	wait_at 11 600 400 0 lock fa | sed 's/state=S/& open=1/'
} >"$TMP/alone.txt"
run "$report" --chain "$TMP/alone.txt"
is "$rc" 0 "of the only thread no TID is needed"
like "$(cat "$out")" 'blocked    not ended 400.0 ms, no waker recorded 399.0 ms
wakers     none recorded, so waits are not followed: record with --wakers' "what is not explained is reported with the reason"
sed '/^# host/d' "$TMP/path" >"$TMP/no-host"
is "$("$report" --chain -t 11 --tsv "$TMP/no-host" | awk -F '\t' 'NR > 1 { n += $2 } END { printf "%.0f", n }')" 820000000 \
	"without the recording's times, it begins with the first wait and ends with the last"
# sample THREAD AT_MS FUNCTION [COUNT]
sample_at() {
	printf '# sample: count=%d total_ns=%d\nth-%s 1/%s [000] %d.%09d: %d cpu-clock: \n\t12 %s+0x1 (/x)\n\t34 main+0x2 (/x)\n\n' "${4:-1}" \
		$((${4:-1} * 10101010)) "$1" "$1" $((100 + $2 / 1000)) $(($2 % 1000 * 1000000)) $((${4:-1} * 10101010)) "$3"
}
{
	echo "$host"
	wait_at 11 100 100 0 sleep fa '[timer]'
	wait_at 11 300 100 0 sleep fa '[timer]'
	wait_at 11 500 100 0 sleep fa '[timer]'
	for at in 210 220 299; do
		sample_at 11 $at hash_rows
	done
	sample_at 11 250 sort_rows
	sample_at 11 350 not_running
	sample_at 11 450 summed 2
	sample_at 12 250 other_thread
} >"$TMP/sampled"
run "$report" --chain "$TMP/sampled"
is "$rc:$(cat "$out" "$err")" "0:thread     th-11 1/11
window     0.000000 s to 1.000000 s
path       1.000 s: running 200.0 ms, blocked 300.0 ms, no wait recorded 500.0 ms
sampled    4 samples in 100.0 ms of what is running
blocked    ended by interrupts 300.0 ms

5 parts of the path; % of 1.000 s
   #     time      %   count  longest  thread              what
  1. 500.0 ms   50.0       2 400.0 ms  th-11 1/11          no wait recorded
  2. 300.0 ms   30.0       3 100.0 ms  th-11 1/11          sleep by [timer]
      main > fa  in read
  3. 100.0 ms   10.0       1 100.0 ms  th-11 1/11          running
  4. 75.00 ms    7.5       1 75.00 ms  th-11 1/11          running (by samples)
      main > hash_rows
  5. 25.00 ms    2.5       1 25.00 ms  th-11 1/11          running (by samples)
      main > sort_rows" "--chain divides what is running among its samples"
run "$report" --chain --tsv --from 150ms --to 310ms "$TMP/sampled"
is "$rc:$(sed 1d "$out")" "0:1	75000000	1	75000000	th-11	1	11	running		samples			main;hash_rows
2	60000000	2	50000000	th-11	1	11	blocked	[timer]	interrupt	sleep	read	main;fa
3	25000000	1	25000000	th-11	1	11	running		samples			main;sort_rows" "so does --tsv"
is "$("$report" --chain --json "$TMP/sampled" | perl -MCpanel::JSON::XS -0777 -ne 'my $j = decode_json($_);
	print join " ", @$j{qw(running_ns sampled_ns samples)}, map { "$_->{total_ns}:$_->{functions}[1]" } grep { ($_->{why} // "") eq "samples" } @{$j->{rows}}')" \
	"200000000 100000000 4 75000000:hash_rows 25000000:sort_rows" "and --json"
is "$("$report" --chain --segments --tsv "$TMP/sampled" | awk -F '\t' '$6 == "running" { n += $2 } END { print n ":" NF }')" 200000000:11 \
	"--segments are not divided"
run "$report" --chain -t 12 "$TMP/sampled"
like "$rc:$(cat "$err")" "^1:.*no wait is of thread 12" "of a thread that has only samples there is no path"
run "$report" --chain --event offcpu-time "$TMP/sampled"
is "$rc:$(grep -c 'sample' "$out"):$(cat "$err")" "0:0:" "--event selects one of the events"
for args in "--chain" "--chain -t 21" "--by 100ms"; do
	in_file "$A"
	# shellcheck disable=SC2086 # words
	fails "a text of sums ($args)" "when each wait was is not in '.*in', only sums of waits
.*hint: record with 'offcpu-record --events'; text must be that of 'symbolize --events'" $args "$TMP/in"
done
sed 's/ duration/ x/' "$TMP/path" >"$TMP/mixed"
printf '%b' "$A" >>"$TMP/mixed"
run "$report" --by 100ms --tsv "$TMP/mixed"
is "$rc:$(sed 1d "$out" | wc -l)" 1:9 "where a few waits are known only as sums, the others are reported, status 1"
like "$(cat "$err")" '4 of 10 waits are known only as sums and are left out' "and how many is said"
fails "--chain without a TID" "chain is of one thread, and 3 waited
.*hint: name it with -t TID" --chain "$TMP/path"
answers_no "a thread that does not occur" "no wait is of thread 4711
.*hint: .*--by thread lists them" --chain -t 4711 "$TMP/path"
answers_no "a function that the thread does not wait in" "the thread has no two waits in 'fa', between" --chain -t 11 --mark fa "$TMP/path"
answers_no "a function that does not occur at all" "no two waits in 'zzz'" --chain -t 11 --mark zzz "$TMP/path"
fails "a window behind the end" "the recording ends at 1.000 s, before --from" --chain -t 11 --from 2 "$TMP/path"
for args in "-t 1" "--from 1s" "--to 1s" "--mark f" "--segments" "--chain --from 2 --to 1" "--chain a b" "--by 1s a b" "--by 0s" "--by 1x" \
	"--chain --by 1s" "--chain --kind lock" "--chain --idle" "--chain --all" "--chain --function f" "--chain -t 0" "--chain -t x"; do
	# shellcheck disable=SC2086 # words
	status 64 "$args is a usage error" "$report" $args
	[ -s "$out" ] && fail "$args writes nothing to stdout"
done
H2='# wait: count=1 total_ns=7 max_ns=7 runnable_ns=0 kind=\033[2J\na\033]0;x\007b 1/2 1.5: 7 offcpu-time: \n\t1 b\033[1m\377n (/f)\n# waker: \033[2J\377 8/9\n\n'
in_file "$H2"
for args in "--chain" "--chain --tsv" "--chain --json" "--chain --segments --tsv" "--by 1s" "--by 1s --tsv" "--by 1s --json"; do
	# shellcheck disable=SC2086 # words
	run "$report" $args "$TMP/in"
	is "$rc:$(LC_ALL=C tr -d '\n\t -~' <"$out" | LC_ALL=C sed 's/\xef\xbf\xbd//g' | wc -c)" "0:0" "no control character of a name is printed: $args"
done
for time in 18446744073709551616.0 18446744073.709551615 1.2345678901 x; do
	in_file "# wait: count=1 total_ns=7 max_ns=7\nab 1/2 $time: 7 offcpu-time: \n\t1 f (x)\n\n# wait: count=1 total_ns=7 max_ns=7\nab 1/2 9.0: 7 offcpu-time: \n\t1 f (x)\n\n"
	run "$report" --chain --tsv "$TMP/in"
	ok "a time of $time is no time" test "$rc:$(sed 1d "$out" | cut -f 2)" = 1:7
done

## damage

F='ab 1/2 1.5: 5 offcpu-time: \n\t1 f (x)\n\n'
in_file 'junk\n\njunk\n'
fails "a file of another kind" "'$TMP/in' is neither a capture nor text of waits; line 1: neither header nor frame
.*hint: stackreport reads captures, the text of symbolize" "$TMP/in"
for seed in 1 2 3 4 5; do
	perl -e 'srand shift; print pack "C*", map { int rand 256 } 1 .. 20000' $seed >"$TMP/random"
	fails "random bytes ($seed)" "'$TMP/random' is neither a capture nor text of waits; line [0-9]*: " "$TMP/random"
done
printf '\211stk' >"$TMP/random"
fails "the beginning of a capture" "'$TMP/random' is neither a capture nor text of waits" "$TMP/random"
run sh -c 'echo junk | "$1"' - "$report"
like "$rc:$(cat "$err")" "^2:.*'standard input' is neither a capture nor text" "and so does standard input"
damaged "a line that is neither header nor frame" "$F\tgarbage\n$F" "10 " "1 malformed .* line 4 of '.*in': neither header nor frame"
damaged "a frame outside a record" "\t12 f (x)\n$F" "5 " "line 1 of .*a frame outside a record"
damaged "a record without its blank line" "${F%??}$F" "5 " "line 1 of .*without a blank line"
damaged "a record that is cut by the end of the file" "$F${F%??}" "5 " "line 4 of .*cut short"
damaged "a period beyond 64 bits" "${F}cd 3/4 1.6: 18446744073709551616 offcpu-time: \n\t1 f (x)\n\n" "5 " "line 4 of .*does not fit"
for word in count=1x total_ns=18446744073709551616 max_ns=-1 runnable_ns=1.5; do
	damaged "a comment with $word" "# wait: $word\n$F$F" "5 " "line 2 of .*a number in the comment"
done
damaged "a folded line without a number" 'p;a 5\np;b\np;c x\np;d 6\n' "6 5 " "2 malformed .* line 2 of .*folded line without a number"
damaged "a folded number beyond 64 bits" 'p;a 5\np;b 18446744073709551616\n' "5 " "line 2 of .*does not fit"
: >"$TMP/empty"
answers_no "an empty file" "no wait in '$TMP/empty'" "$TMP/empty"
answers_no "empty standard input" "no wait in standard input"
in_file '# stacktools perf-script 1\n# host: duration=1.000\n'
answers_no "a text without records" "no wait in '$TMP/in'" "$TMP/in"
head -c 100000 "$BIN/fold" >"$TMP/elf"
fails "a program" "is neither a capture nor text of waits" "$TMP/elf"
in_file "$A$B"
answers_no "a kind that does not occur" "no wait is of kind 'swap'.*
.*hint: there are waits of disk-read, lock" --kind swap "$TMP/in"
answers_no "a function that does not occur" "no stack has the function 'mai'.*
.*hint: there is 'main'" --function mai "$TMP/in"
answers_no "a function that is like none" "hint: --by function lists them" --function zzz "$TMP/in"
fails "a missing file" "cannot open '$TMP/none': No such file" "$TMP/in" "$TMP/none"
fails "a directory" "cannot read '$TMP': Is a directory" "$TMP"
printf 'PERFILE2\0\0\0\0' >"$TMP/perf.data"
fails "a perf.data file" "hint: .*perf script -i '$TMP/perf.data'" "$TMP/perf.data"

# each prefix of a stream: no crash, and no place that is not in the whole stream
in_file "$A$B"
size=$(wc -c <"$TMP/in") i=0 bad=
while [ "$i" -lt "$size" ]; do
	head -c "$i" "$TMP/in" >"$TMP/part"
	run "$report" --tsv "$TMP/part"
	[ "$rc" -le 1 ] || bad="$bad $i:status-$rc"
	sed 1d "$out" | grep -qvE '(read	main;read|lock		main;f)$' && bad="$bad $i:output"
	i=$((i + 7))
done
is "$bad" "" "a stream that is cut anywhere gives only complete places"

## hostile names

H='# lost: name=\033[2J count=1\n# damaged: \033[2J\n# wait: count=1 total_ns=7 kind=\033[2J state=\001\na\033]0;x\007b 1/2 1.5: 7 offcpu-time: \n\tffffffff81000000 __x64_sys_\033c ([kernel.kallsyms])\n\t1 t\tb\033[1m\377\302\233\000n\\\\ (/f\033[31m)\n\n'
in_file "$H"
for args in "" "--by function" "--by thread" "--by process" "--by kind" "--by module" "--by state" --tsv --json \
	"--tsv --by thread" "--tsv --by module"; do
	# shellcheck disable=SC2086 # words
	run "$report" $args "$TMP/in"
	is "$rc:$(LC_ALL=C tr -d '\n\t -~' <"$out" | LC_ALL=C sed 's/\xef\xbf\xbd//g' | wc -c)" "0:0" "no control character of a name is printed: ${args:-the table}"
done
run "$report" --tsv "$TMP/in"
is "$(awk -F '\t' '{ print NF }' "$out" | sort -u)" 10 "a tab in a name does not add a field"
ok "hostile names give valid JSON" sh -c '"$1" --json "$2" | perl -MCpanel::JSON::XS -0777 -ne "ref decode_json(\$_)->{rows} eq q(ARRAY) or die"' - "$report" "$TMP/in"
answers_no "a hostile --function" 'no stack has the function .x\\x1b\[2J' --function "$(printf 'x\033[2J')" "$TMP/in"
in_file "ab 1/2 1.5: 7 offcpu-time: \n\t1 f (x)\n\t2 - (x)\n\t3 -- (x)\n\t4 main (x)\n\n"
status 0 "functions with the names of marks do no harm" "$report" --all "$TMP/in"
in_file 'ab 1/2 1.5: 7 offcpu-time: \n\t1 "\x27 (x)\n\t2 main (x)\n\n'
status 0 "a function with an empty name does no harm" "$report" --all "$TMP/in"
perl -e 'print "ab 1/2 1.5: 7 offcpu-time:\n\t1 ", "x" x (17 << 20), " (x)\n\ncd 1/2 1.5: 5 offcpu-time:\n\t1 f (x)\n\n"' >"$TMP/in"
run "$report" --tsv "$TMP/in"
is "$rc:$(sed 1d "$out" | cut -f 2,10)" "1:5	f" "a line of 17 MiB is skipped, and the next record is counted"
perl -e 'print "p;", "x" x (17 << 20), " 5\np;a 6\n"' >"$TMP/in"
run "$report" --tsv "$TMP/in"
like "$rc:$(cat "$err")" "^2:.*line 1: a line of more than 16 MiB" "a folded line of 17 MiB, the first one, gives status 2"
perl -e 'print "ab 1/2 1.5: 7 offcpu-time:\n", "\t1 fff (x)\n" x 100000, "\n"' >"$TMP/in"
status 0 "a stack of 100,000 frames is ranked" "$report" "$TMP/in"
is "$(tail -n 1 "$out" | tr -s ' f>')" " f > ... > f > f > f > f > f > f > f > f > f > f" "its row has one line"
run "$report" --by function --tsv "$TMP/in"
is "$(sed 1d "$out" | cut -f 2-)" "7	7	1	7			1	fff" "its function counts once"

# memory: the same stacks in 20 times the input
perl -e 'for (1..20000) { print "# wait: count=1 total_ns=$_\nab 1/2 $_.5: 10 offcpu-time: \n", (map { "\t12 function_$_+0x".($_*7)." (/usr/lib/x)\n" } 1..40), "\n" }' >"$TMP/big"
peak() {
	perl -e 'my $p = fork // die; if (!$p) { open STDOUT, ">", "/dev/null"; exec @ARGV }
		my ($st, $u) = (pack("l", 0), "\0" x 144); syscall(61, $p, $st, 0, $u); print((unpack "q5", $u)[4])' "$@"
}
small=$(head -n 43000 "$TMP/big" | peak "$report")
large=$(peak "$report" "$TMP/big")
ok "memory depends on distinct stacks, not on the input ($small and $large KiB)" test "$large" -lt $((small + 4096))

## exit status and command line

in_file "$A"
run sh -c '"$0" "$1" >/dev/full' "$report" "$TMP/in"
is "$rc" 2 "a full disk gives status 2"
like "$(cat "$err")" 'cannot write' "a full disk is reported"
run sh -c '"$0" "$1" >&-' "$report" "$TMP/in"
is "$rc" 2 "a closed stdout gives status 2"
perl -e 'for (1..50000) { print "p;function$_ ", 100000 - $_, "\n" }' >"$TMP/in"
is "$("$report" --tsv "$TMP/in" | head -n 2 | tail -n 1 | cut -f 2,10)" "99999	function1" "a reader that closes the pipe early gets its lines"
is "$(perl -e 'open my $p, "-|", @ARGV or die; readline $p; close $p; print $? & 127' "$report" --tsv "$TMP/in")" 13 \
	"SIGPIPE ends it then"
is "$("$report" "$TMP/in" | grep -cE '^ +[0-9]+\. ')" 10 "the table has ten rows"
is "$("$report" -n 3 "$TMP/in" | grep -cE '^ +[0-9]+\. ')" 3 "-n sets the number of rows"
is "$("$report" --tsv "$TMP/in" | wc -l)" 50001 "--tsv prints all"
is "$("$report" --tsv --top 5 "$TMP/in" | wc -l)" 6 "unless --top says how many"
for bad in --by=x --by= --top=0 --top=x --width=39 --unit=s --nope --idle=1 --function --kind; do
	status 64 "$bad is a usage error" "$report" "$bad"
	[ -s "$out" ] && fail "$bad writes nothing to stdout"
done
status 64 "--json and --tsv exclude one another" "$report" --json --tsv
status 64 "--by and --function exclude one another" "$report" --by kind --function x
tap_done
