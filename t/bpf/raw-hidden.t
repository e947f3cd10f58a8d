#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Mode raw without the kernel's BTF, raw tracepoints, tracefs or the initial PID namespace.
# shellcheck disable=SC2016,SC2086,SC2119,SC2154,SC2317 # Perl's variables; commands of several words; $rc and others of tap.sh; functions that ok calls
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf
export BIN OBJ TMP
REFUSE_RAW="$OBJ/t/work/refuse bpf=17"
SLEEP='sleep 0.2'
sleeps='$n += $w->{total_ns} if $w->{comm} eq "sleep" && kernel() =~ /nanosleep/ && user() =~ /nanosleep/'

# hidden DIR COMMAND...: runs COMMAND in a mount namespace in which DIR is empty
hidden() {
	hide=$1
	shift
	run timeout -k 5 60 unshare -m sh -c 'mount -t tmpfs none "$0" && exec "$@"' "$hide" "$@"
}

# If the kernel's BTF is hidden, the recorder uses mode raw, reports that and stores it in the capture.
hidden /sys/kernel/btf "$BIN/offcpu-record" --force -o "$TMP/h.cap" -- $SLEEP
is "$rc" 0 "without /sys/kernel/btf a command is still recorded"
like "$(cat "$err")" "not btf: cannot read the kernel's BTF, '/sys/kernel/btf/vmlinux'" "without /sys/kernel/btf the recorder says why it does not use mode btf"
like "$(cat "$err")" '^offcpu-record: recording in mode raw$' "without /sys/kernel/btf the recorder says that it uses mode raw"
like "$(cat "$err")" 'degraded: without BTF: waits that began before the recording have no stacks' "without /sys/kernel/btf the recorder says what is missing"
between "$(waits "$TMP/h.cap" "$sleeps")" 190000000 5000000000 "without /sys/kernel/btf a wait has both stacks"
like "$("$BIN/capinfo" "$TMP/h.cap")" '^mode +raw: not btf: cannot read' "capinfo shows mode raw and the reason"
like "$("$BIN/symbolize" "$TMP/h.cap" 2>/dev/null)" '^# mode: raw: not btf: cannot read' "symbolize shows mode raw and the reason"
like "$("$BIN/symbolize" --format=json "$TMP/h.cap" 2>/dev/null | head -n 1)" '"mode":"raw","mode_tried":"not btf: cannot read' \
	"the JSON of symbolize has mode raw and the reason"
like "$("$BIN/capinfo" --json "$TMP/h.cap")" '"mode":"raw"' "the JSON of capinfo has mode raw"
is "$("$BIN/symbolize" "$TMP/h.cap" 2>/dev/null | "$BIN/fold" | grep -c nanosleep)" 1 "fold skips the line of the mode"
hidden /sys/kernel/btf "$BIN/offcpu-record" --mode btf --force -o "$TMP/no.cap" -- true
is "$rc" 2 "--mode btf without /sys/kernel/btf exits with status 2"
ok "--mode btf without /sys/kernel/btf leaves no file" test ! -e "$TMP/no.cap"
rec "$TMP/b.cap" -- $SLEEP
is "$("$BIN/symbolize" "$TMP/b.cap" 2>/dev/null | grep -c '^# mode')" 0 "symbolize shows no line of the mode for mode btf"

# BTF from a file is accepted only if it matches this kernel.
cp /sys/kernel/btf/vmlinux "$TMP/good.btf"
hidden /sys/kernel/btf "$BIN/offcpu-record" -q --mode raw --btf "$TMP/good.btf" --force -o "$TMP/g.cap" -- $SLEEP
is "$rc" 0 "--btf accepts a copy of the kernel's BTF"
between "$(waits "$TMP/g.cap" "$sleeps")" 190000000 5000000000 "with --btf a wait has both stacks"

# refused FILE REGEX NAME: tests that --btf FILE is refused with a message that matches REGEX
refused() {
	rm -f "$TMP/no.cap"
	run timeout -k 5 60 "$BIN/offcpu-record" --mode raw --btf "$1" --force -o "$TMP/no.cap" -- true
	if [ "$rc" -eq 2 ] && [ ! -e "$TMP/no.cap" ] && grep -qE "$2" "$err"; then
		pass "$3"
	else
		fail "$3"
		{
			echo "status $rc"
			cat "$err"
		} | diag
	fi
}
head -c 1000000 "$TMP/good.btf" >"$TMP/cut.btf"
refused "$TMP/cut.btf" "'$TMP/cut.btf'.*not understood|not understood.*'$TMP/cut.btf'" "--btf refuses a truncated file and names it"
echo 'no BTF' >"$TMP/text.btf"
refused "$TMP/text.btf" "'$TMP/text.btf'" "--btf refuses a file without BTF and names it"
: >"$TMP/empty.btf"
refused "$TMP/empty.btf" "'$TMP/empty.btf'" "--btf refuses an empty file and names it"
refused "$TMP" "'$TMP'" "--btf refuses a directory and names it"
mkfifo "$TMP/fifo.btf"
refused "$TMP/fifo.btf" "'$TMP/fifo.btf' is not a regular file" "--btf refuses a FIFO without waiting for a writer"
truncate -s 300M "$TMP/large.btf"
refused "$TMP/large.btf" "'$TMP/large.btf' is too large for BTF: 314572800 bytes" "--btf refuses a file that is far too large"
refused "$TMP/none.btf" "'$TMP/none.btf': No such file" "--btf refuses a missing file and names it"

run "$BIN/offcpu-record" --mode btf --btf "$TMP/good.btf" -o "$TMP/no.cap" -- true
is "$rc" 64 "--btf with --mode btf is a usage error"

# move.pl FROM TO STRUCT MEMBER: copies BTF as another kernel may have it: MEMBER is 16 bytes further on
cat >"$TMP/move.pl" <<'PL'
use strict; use warnings;
my ($from, $to, $struct, $member) = @ARGV;
open my $f, "<:raw", $from or die; local $/; my $b = <$f>;
my ($magic, $version, $flags, $hdr, $toff, $tlen, $soff, $slen) = unpack "vCCVVVVV", $b;
my $str = sub { my $at = $hdr + $soff + $_[0]; substr $b, $at, index($b, "\0", $at) - $at };
my %tail = (1 => [4, 0], 3 => [12, 0], 4 => [0, 12], 5 => [0, 12], 6 => [0, 8], 13 => [0, 8], 14 => [4, 0], 15 => [0, 12],
	17 => [4, 0], 19 => [0, 12]);
my $n = 0;
for (my $at = $hdr + $toff; $at < $hdr + $toff + $tlen;) {
	my ($name, $info, $size) = unpack "VVV", substr $b, $at, 12;
	my ($kind, $len, $bits) = ($info >> 24 & 31, $info & 0xffff, $info >> 31);
	my $t = $tail{$kind} // [0, 0];
	if ($kind == 4 && $str->($name) eq $struct) {
		for my $i (0 .. $len - 1) {
			my $m = $at + 12 + 12 * $i;
			my ($mname, $mtype, $off) = unpack "VVV", substr $b, $m, 12;
			next if $str->($mname) ne $member;
			substr($b, $m + 8, 4) = pack "V", $off + 128;
			$n++;
		}
	}
	$at += 12 + $t->[0] + $t->[1] * $len;
}
die "no $struct.$member" unless $n;
open my $o, ">:raw", $to or die; print $o $b;
PL
for member in pid comm flags start_boottime group_leader mm stack thread_pid se; do
	perl "$TMP/move.pl" "$TMP/good.btf" "$TMP/moved.btf" task_struct "$member" || fail "move.pl moves $member"
	refused "$TMP/moved.btf" "is of another kernel: this one has task_struct.$member.* at byte" "--btf refuses BTF of a kernel with $member at another offset"
done

# If raw tracepoints are refused, the recorder uses classic ones, even if tracefs is not mounted.
run timeout -k 5 60 $REFUSE_RAW "$BIN/offcpu-record" --mode raw --force -o "$TMP/c.cap" -- $SLEEP
ok "without raw tracepoints a command is still recorded" test "$rc" -le 1
like "$(cat "$err")" 'classic tracepoints.*raw tracepoints are refused: Operation not permitted' "without raw tracepoints the recorder says that it uses classic ones, and why"
between "$(waits "$TMP/c.cap" "$sleeps")" 190000000 5000000000 "without raw tracepoints a wait has both stacks"
hidden /sys/kernel/tracing $REFUSE_RAW "$BIN/offcpu-record" -q --mode raw --force -o "$TMP/ct.cap" -- $SLEEP
ok "classic tracepoints work without /sys/kernel/tracing" test "$rc" -le 1
between "$(waits "$TMP/ct.cap" "$sleeps")" 190000000 5000000000 "classic tracepoints without /sys/kernel/tracing: a wait has both stacks"
hidden /sys/kernel/tracing "$BIN/offcpu-record" -q --mode raw --force -o "$TMP/rt.cap" -- $SLEEP
is "$rc" 0 "raw tracepoints work without /sys/kernel/tracing"
hidden /sys/kernel/tracing "$BIN/offcpu-record" -q --force -o "$TMP/bt.cap" -- $SLEEP
is "$rc" 0 "mode btf works without /sys/kernel/tracing"

# If programs cannot run unattached (BPF_PROG_TEST_RUN), the offsets of members cannot be found.
run timeout -k 5 60 "$OBJ/t/work/refuse" bpf=10 "$BIN/offcpu-record" --mode raw --force -o "$TMP/no.cap" -- true
is "$rc" 2 "without BPF_PROG_TEST_RUN mode raw exits with status 2"
like "$(cat "$err")" 'hint: it needs BPF_PROG_TEST_RUN' "without BPF_PROG_TEST_RUN the hint names it"
run timeout -k 5 60 "$OBJ/t/work/refuse" bpf=10 "$BIN/offcpu-record" --mode raw --btf "$TMP/good.btf" --force -o "$TMP/no.cap" -- true
is "$rc" 2 "without BPF_PROG_TEST_RUN --btf does not help"

# In a PID namespace, without BTF: PIDs and TIDs are those of the namespace.
cat >"$TMP/ns.sh" <<'SH'
mount -t tmpfs none /sys/kernel/btf
sleep 100 &
other=$!
"$BIN/offcpu-record" -q --force -o "$TMP/n1.cap" -- sh -c 'sleep 0.2; echo $$ >"$TMP/n1.pid"'
echo $? >"$TMP/n1.rc"
"$BIN/offcpu-record" -q --force -o "$TMP/n2.cap" -d 0.4 -p $other
echo "$? $other" >"$TMP/n2.rc"
"$BIN/offcpu-record" -q --force -o "$TMP/n3.cap" -d 0.4 -a
echo $? >"$TMP/n3.rc"
"$BIN/offcpu-record" -q --force -o "$TMP/n4.cap" -d 0.4 -t $other
echo $? >"$TMP/n4.rc"
kill $other
SH
mkfifo "$TMP/outside"
"$OBJ/t/work/idle" 2 <"$TMP/outside" >/dev/null & # outside the namespace
at_exit_kill $!
exec 6>"$TMP/outside"
timeout -k 5 60 unshare -pmf --mount-proc sh "$TMP/ns.sh" >/dev/null 2>"$err" </dev/null
is "$(cat "$TMP/n1.rc")" 0 "a command is recorded in a PID namespace"
is "$(waits "$TMP/n1.cap" '$h{$w->{pid}} = 1 if $w->{comm} eq "sh"')" "$(cat "$TMP/n1.pid") 1" "in a PID namespace a command has its PID there"
between "$(waits "$TMP/n1.cap" "$sleeps")" 190000000 5000000000 "in a PID namespace children are recorded, with both stacks"
is "$(cut -d' ' -f1 "$TMP/n2.rc")" 0 "-p records in a PID namespace"
is "$(waits "$TMP/n2.cap" 'push @o, "$w->{pid} $w->{initial}$w->{open} $w->{comm}"')" "$(cut -d' ' -f2 "$TMP/n2.rc") 11 sleep" \
	"-p in a PID namespace takes a PID of that namespace"
is "$(cat "$TMP/n3.rc")" 0 "-a records in a PID namespace"
is "$(waits "$TMP/n3.cap" '$n++ if $w->{comm} =~ /^i(dle|-wait)$/')" 0 "-a in a PID namespace records no process outside it"
ok "-a in a PID namespace records the processes inside it" test "$(waits "$TMP/n3.cap" '$n++ if $w->{comm} eq "sleep"')" -ge 1
is "$(waits "$TMP/n4.cap" 'push @o, $w->{tid}')" "$(cut -d' ' -f2 "$TMP/n2.rc")" "-t in a PID namespace takes a TID of that namespace"
run timeout -k 5 60 unshare -pmf --mount-proc $REFUSE_RAW "$BIN/offcpu-record" --mode raw --force -o "$TMP/no.cap" -- true
is "$rc" 2 "classic tracepoints cannot record in a PID namespace"
like "$(cat "$err")" 'raw tracepoints are refused.*classic ones have no ids of this PID namespace' "in a PID namespace the recorder says why classic tracepoints cannot be used"

# Times in task_struct are by the clocks of the host, not of a time namespace.
run timeout -k 5 60 unshare -Tpf --boottime 100000 --mount-proc "$BIN/offcpu-record" -q --mode raw --force -o "$TMP/time.cap" -- $SLEEP
is "$rc" 0 "in a time namespace a command is recorded"
between "$(waits "$TMP/time.cap" "$sleeps")" 190000000 5000000000 "in a time namespace a wait has both stacks"
tap_done
