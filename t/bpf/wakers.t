#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Who ended each wait, against a program whose threads wait for one other thread each (t/work/wakers.c).
# shellcheck disable=SC2016,SC2154 # Perl's variables; $rc and others of tap.sh
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf
chmod 755 "$TMP"
WAKERS=$OBJ/t/work/wakers

# In Perl: the function of the program that the wait is in, and the name of waker W. Without page faults: there a
# thread may wait for whoever changes the address space.
IN='my ($f) = grep { /^(?!pthread)\w+_wait$/ } map { $_->{symbol} // "" } @{$w->{user_stack}};
	sub who { my $k = shift; !$k ? "none" : $k->{interrupt} ? "[" . ($k->{kind} // "interrupt") . "]" : $k->{comm} // "[hidden]" }
	return if !$f || $w->{open} || $w->{preempted} || $w->{initial} ||
		grep { ($_->{symbol} // "") =~ /page_fault/ } @{$w->{kernel_stack}};'

rec "$TMP/w.cap" --wakers=3 -- "$WAKERS"
is "$rc" 0 'a program is recorded with its wakers'
cp "$out" "$TMP/truth"
waits "$TMP/w.cap" "$IN"' $h{"$f " . who($w->{waker})} += $w->{count}' | sort >"$TMP/got"
while read -r function waker most; do
	n=$(sed -n "s/^$function \\$waker //p; s/^$function $waker //p" "$TMP/got" | head -n 1)
	others=$(grep "^$function " "$TMP/got" | grep -v "^$function none " | grep -vF "$function $waker ")
	case $function in [ab]_wait) others=$(printf '%s\n' "$others" | grep -v "^$function wakers ") ;; esac # the first ones
	is "$others" '' "waits in $function were ended by $waker alone"
	[ "$most" = - ] && most=1000000
	ok "so were ${n:-0}, which is not more than there can be" test "${n:-0}" -gt 0 -a "${n:-0}" -le "$most"
done <"$TMP/truth"
known=$(counter "$TMP/w.cap" wakers.known) missing=$(counter "$TMP/w.cap" wakers.missing)
ok "a waker is missing of at most one wait in a thousand: ${missing:-0} of $known" test $((${missing:-0} * 1000)) -le "$known"
is "$(counter "$TMP/w.cap" wakers.known)" "$(waits "$TMP/w.cap" '$n += $w->{count} if $w->{waker}')" \
	'the counter of wakers is the sum over the waits'
like "$("$BIN/capinfo" "$TMP/w.cap")" '[1-9][0-9]* wakers' 'capinfo counts them'

# their stacks
is "$(waits "$TMP/w.cap" "$IN"' return unless $f =~ /^[abc]_wait/ && who($w->{waker}) =~ /^ring/;
	$h{join " ", $w->{waker}{user_stack_verdict}, (map { $_->{symbol} } @{$w->{waker}{user_stack}})[0, 1]} = ""')" \
	'complete write give ' 'a waker has its own user stack'
is "$(waits "$TMP/w.cap" "$IN"' return unless $f =~ /^p[io]ng_wait/ && who($w->{waker}) =~ /^p[io]ng/;
	$h{join " ", (grep { /^(hit|run_)/ } map { $_->{symbol} // "" } @{$w->{waker}{user_stack}}),
		grep { $_ eq "futex_wake" } map { $_->{symbol} // "" } @{$w->{waker}{kernel_stack}}} = ""' | sort)" \
	'hit run_ping futex_wake 
hit run_pong futex_wake ' 'and its kernel stack, from what it called to wake'
is "$(waits "$TMP/w.cap" "$IN"' my $k = $w->{waker}; return unless $k && $f eq "sleep_wait";
	$h{join " ", @{$k->{user_stack}} + 0, $k->{comm} // "-", $k->{user_stack_verdict}, $k->{kernel_stack}[0]{symbol},
		$k->{kernel_stack}[-1]{symbol} =~ /^asm_/ ? "asm" : $k->{kernel_stack}[-1]{symbol}} = ""')" \
	'0 - failed hrtimer_wakeup asm ' 'of an interrupt there are its own frames, not those of the thread that it interrupted'
like "$(waits "$TMP/w.cap" "$IN"' return if $f ne "a_wait"; my $c = $w->{waker}; $h{join " ", who($c), who($c->{waker}),
	who($c->{waker}{waker}), who($c->{waker}{waker}{waker})} += $w->{count}' | sort -k5 -rn | head -n 1)" \
	'^ring-c ring-b ring-a none 2[0-9][0-9]$' '--wakers=3 goes back three steps and no further'

# The text, and what fold makes of it, against the JSON.
"$BIN/symbolize" -q "$TMP/w.cap" >"$TMP/w.txt"
"$BIN/fold" "$TMP/w.txt" >"$TMP/plain"
grep -v '^#' "$TMP/w.txt" | "$BIN/fold" >"$TMP/bare" 2>"$TMP/bare.err"
same "$TMP/plain" "$TMP/bare" 'the wakers are comments: without them the stacks are the same'
"$BIN/fold" --wakers --tid "$TMP/w.txt" >"$TMP/folded"
"$BIN/symbolize" -q --format json "$TMP/w.cap" | perl -MJSON::PP -ne '
	sub names { my ($k) = @_; map { my $f = $_; ((map { $_->{symbol} } @{$f->{inlined}}), $f->{symbol}) }
		grep { !$_->{scheduler} } @$k }
	my $o = decode_json($_); next if $o->{type} ne "wait" || $o->{preempted};
	my $line = join ";", "$o->{comm}-$o->{pid}/$o->{tid}", reverse(names($o->{user_stack})), ();
	my @k = reverse names($o->{kernel_stack}); $line = join ";", $line, @k;
	for (my $w = $o->{waker}; $w; $w = $w->{waker}) {
		$line = join ";", $line, "--", names($w->{kernel_stack}), names($w->{user_stack}),
			$w->{user_stack_verdict} eq "failed" && !$w->{interrupt} ? "FAILED" : (),
			$w->{interrupt} ? "[" . ($w->{kind} // "interrupt") . "]" : "$w->{comm}-$w->{pid}/$w->{tid}";
	}
	$s{$line} += $o->{total_ns} unless $line =~ /FAILED/;
	END { print "$_ $s{$_}\n" for grep { /ring-|sleep_wait/ } sort keys %s }' >"$TMP/want"
grep -E 'ring-|sleep_wait' "$TMP/folded" | grep -v 'no user stack' >"$TMP/got"
ok 'there is something to compare' test "$(wc -l <"$TMP/want")" -ge 6
same "$TMP/got" "$TMP/want" 'fold --wakers prints the chain behind each stack'

# A waker that is not recorded itself.
mkfifo "$TMP/life" "$TMP/pipe"
exec 7<>"$TMP/life"
sh -c 'while read -r line; do :; done' <"$TMP/pipe" 7>&- &
reader=$!
at_exit_kill $reader
perl -e '$0 = "feeder"; open STDOUT, ">", shift or die; $| = 1; while (1) { select undef, undef, undef, 0.02; print "x\n" or exit }' \
	"$TMP/pipe" 7>&- &
feeder=$!
at_exit_kill $feeder
rec "$TMP/p.cap" --wakers=2 -d 1 -p $reader
is "$rc" 0 'one process is recorded, and who wakes it'
is "$(waits "$TMP/p.cap" ' return if $w->{initial} || $w->{open} || $w->{preempted}; my $k = $w->{waker};
	return if ($k->{user_stack_error} // "") eq "not-ready"; # its tables are requested when it wakes first
	$h{join " ", $k->{pid} // "-", $k->{user_stack_verdict} // "-", $k->{user_stack}[-1]{symbol} // "-"} = ""')" \
	"$feeder complete _start " 'a waker need not be recorded itself: it has a name and a whole stack'
is "$(waits "$TMP/p.cap" ' return if $w->{open}; $h{$w->{waker}{waker}{kind}} = "" if $w->{waker} && $w->{waker}{waker}')" 'timer ' \
	'from the second time on, it is known who had woken it'
is "$(waits "$TMP/p.cap" '$h{$w->{pid}} = ""')" "$reader " 'its own waits are not recorded'
"$BIN/symbolize" -q "$TMP/p.cap" | "$BIN/stackreport" --by waker --tsv >"$TMP/by" 2>&1
like "$(sed -n 2p "$TMP/by")" '	perl$|	feeder$' 'stackreport --by waker names it'

# What another user's process does is not shown to a user with file capabilities.
mkdir -m 777 "$TMP/u"
cp "$BIN/offcpu-record" "$TMP/u"
if setcap cap_bpf,cap_perfmon,cap_syslog,cap_sys_ptrace,cap_checkpoint_restore+ep "$TMP/u/offcpu-record" 2>"$TMP/why"; then
	setpriv --reuid=65534 --regid=65534 --clear-groups sh -c 'while read -r line; do :; done' <"$TMP/pipe" 7>&- &
	theirs=$!
	at_exit_kill $theirs
	until_true grep -q '^Uid:	65534	' /proc/$theirs/status
	kill $reader
	STACKTOOLS_CACHE='' run timeout -k 5 60 setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all \
		"$TMP/u/offcpu-record" -q --wakers=2 -d 1 -o "$TMP/u/o.cap" -p $theirs 7>&-
	is "$rc" 0 'a user records a process of theirs'
	[ "$rc" -eq 0 ] || diag <"$err"
	is "$(waits "$TMP/u/o.cap" ' return if $w->{initial} || $w->{open} || $w->{preempted}; my $k = $w->{waker};
		$h{join " ", exists $k->{comm} ? "named" : "hidden", @{$k->{user_stack}} + @{$k->{kernel_stack}}, $k->{waker} ? "chain" : "end"} = ""')" \
		'hidden 0 end ' 'a waker that the user may not trace is hidden'
	like "$("$BIN/symbolize" -q "$TMP/u/o.cap")" '# waker: \[hidden\]' 'and is called so'
else
	skip 'a waker that the user may not trace is hidden' "file capabilities: $(cat "$TMP/why")"
fi

# what it cannot do
for mode in raw procfs; do
	status 64 "--wakers is refused in mode $mode" "$BIN/offcpu-record" --wakers --mode $mode -- true
	like "$(cat "$err")" '--wakers goes with mode btf' 'and says which one has it'
done
status 64 'a chain of nine is refused' "$BIN/offcpu-record" --wakers=9 -- true
like "$(cat "$err")" "'9' is out of range: 1 to 8" 'and says how long one can be'
ln -s "$BIN/offcpu-record" "$TMP/oncpu-record"
status 64 'samples have no wakers' "$TMP/oncpu-record" --wakers -- true
like "$(cat "$err")" '--wakers is of waits' 'and says why'
cp "$BIN/offcpu-record" "$TMP/u/bare"
run setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all,+bpf,+perfmon --ambient-caps=-all,+bpf,+perfmon \
	"$TMP/u/bare" --mode btf --wakers -o "$TMP/u/no.cap" -- true
is "$rc" 2 'without the kernel'"'"'s symbols there are no wakers'
like "$(cat "$err")" "cannot record wakers: no usable address in '/proc/kallsyms'" 'and says what is missing'
ok 'and leaves no file' test ! -e "$TMP/u/no.cap"
run "$BIN/fold" --wakers "$TMP/bare"
is "$rc" 1 'fold --wakers of a text without wakers is incomplete'
tap_done
