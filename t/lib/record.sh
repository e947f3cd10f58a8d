# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
# shellcheck disable=SC2034 # $rc is for the test
# Functions for tests that record: source this after tap.sh.
#
#   need_bpf [MODE]          skips the whole file if recording in MODE (btf) does not work
#   can_record MODE          true if recording in MODE works
#   rec CAP ARG...           records in the foreground, with -q
#   rec_start CAP ARG...     records in the background; returns when recording; sets $rec_pid
#   rec_stop [SIGNAL]        ends that recording and sets $rc to its status
#   waits CAP CODE           runs Perl for every wait of a capture: $w is the wait,
#                            %c the capture; CODE adds to $n or pushes to @o
#   samples CAP CODE         the same for every sample of what threads executed
#                            with $events set, each wait and sample is by itself
#   counter CAP NAME         prints a counter of capinfo
# A workload ends when its stdin does. Tests keep the write end as fd 7, which no recorder
# may inherit.
#
#   within GOT WANT PERCENT NAME
#   until_true COMMAND...    polls for about a minute, or POLLS times
#   recording PID CAP        true if that recorder has begun to record
#   sleeping_libraries NS    builds $TMP/liba.so, whose a_entry sleeps NS nanoseconds in its function a_sleeps, and libb.so
#   build_compat SOURCE OUT  builds a 32-bit program, or sets $no_compat to the reason
#
# To compare a capture with what the program "waits" reported in $TMP/said:
#   steal_ns                 time that a hypervisor has given to other machines
#   judged CAP               reads the capture; $stolen is the time stolen during the recording
#   judge WHAT               checks the recorded times or counts; WHAT = requested, measured, off or count

# Perl that opens a perf event for all of CPU 0 that counts nothing (PERF_COUNT_SW_DUMMY): status 0,
# or 1 if refused
# shellcheck disable=SC2016,SC2034 # Perl's variables; used by tests
PERF_EVENT='my $nr = `uname -m` =~ /aarch64/ ? 241 : 298;
	my $attr = pack("LLQ", 1, 112, 9) . "\0" x 96;
	exit(syscall($nr, $attr, -1, 0, -1, 0) < 0);'

rec_pid=

# build_compat SOURCE OUT: builds an i386 program without libraries that ends at once if stdin is
# empty. Sets $no_compat to the reason if that fails: not all kernels and hypervisors run such
# programs
build_compat() {
	no_compat=
	if ! "${CC:-cc}" -m32 -nostdlib -static -o "$2" "$1" 2>/dev/null; then
		no_compat='no gcc -m32'
	elif ! "$2" </dev/null >/dev/null 2>&1; then
		no_compat='no 32-bit programs on this kernel'
	fi
}

can_record() { # MODE
	"$BIN/offcpu-record" -q --mode "$1" --force -o "$TMP/probe.cap" -- true >"$TMP/probe.log" 2>&1
	[ $? -le 1 ] # 1: a process that ends at once may do so before its mappings were read
}

need_bpf() { # [MODE]
	[ "$(id -u)" -eq 0 ] || skip_all "recording needs root"
	can_record "${1:-btf}" || skip_all "recording does not work here: $(head -n 1 "$TMP/probe.log")"
}

# what_is_lost CAP: says what a recording with status 1 has lost, in case that the test wants another status
what_is_lost() {
	[ "$rc" -ne 1 ] || "$BIN/capinfo" "$1" 2>/dev/null | grep -E '^ +[1-9][0-9]* +lost\.' | diag
}
rec() {
	cap=$1
	shift
	run timeout -k 5 60 "$BIN/offcpu-record" -q --force -o "$cap" "$@" 7>&-
	still_balanced "$cap"
	what_is_lost "$cap"
}

# own_rec CAP OPTION...: rec by a copy of the recorder, $TMP/own/offcpu-record, which no other test runs
own_rec() {
	mkdir -p "$TMP/own" && cp "$BIN/offcpu-record" "$TMP/own" || return
	real_bin=$BIN
	BIN=$TMP/own
	rec "$@"
	BIN=$real_bin
}

until_true() {
	u_left=${POLLS:-600}
	until "$@"; do
		u_left=$((u_left - 1))
		[ $u_left -gt 0 ] || return 1
		sleep 0.1
	done
}

# recording PID CAP: true if the recorder has begun: the file has its 24-byte header and the recorder
# waits for events, or the file is longer, for a recorder that never waits
recording() {
	r_bytes=$(stat -c %s "$2" 2>/dev/null)
	[ "${r_bytes:-0}" -gt 24 ] || { [ "${r_bytes:-0}" -gt 0 ] && grep -q poll "/proc/$1/wchan" 2>/dev/null; }
}

# rec_began: true if the recorder has begun, or has already ended: then it has no executable
rec_began() {
	recording "$rec_pid" "$rec_cap" || [ ! -e "/proc/$rec_pid/exe" ]
}

# shellcheck disable=SC2086 # $rec_as: words before the command, to run as another user
rec_start() {
	rec_cap=$1
	shift
	rm -f "$rec_cap"
	${rec_as-} "$BIN/offcpu-record" -o "$rec_cap" "$@" >"$TMP/rec.out" 2>"$TMP/rec.err" </dev/null 7>&- &
	rec_pid=$!
	at_exit_kill "$rec_pid"
	until_true rec_began
	sleep 0.3
}

rec_stop() {
	kill "-${1:-INT}" "$rec_pid" 2>/dev/null
	wait "$rec_pid" 2>/dev/null # the shell would print a message about a killed recorder
	rc=$?
	still_balanced "$rec_cap"
	what_is_lost "$rec_cap"
}

sleeping_libraries() {
	for l in a b; do
		cat >"$TMP/$l.c" <<-C
			#include <sys/syscall.h>
			#include <time.h>
			__attribute__((noinline)) static long ${l}_sleeps(void)
			{
				struct timespec ts = {.tv_nsec = $1};
				long ret;
				__asm__ volatile("syscall" : "=a"(ret) : "0"((long)SYS_nanosleep), "D"(&ts), "S"((void *)0)
				                 : "rcx", "r11", "memory");
				return ret;
			}
			void ${l}_entry(void);
			void ${l}_entry(void) { ${l}_sleeps(); __asm__ volatile("" ::: "memory"); }
		C
		${CC:-cc} -O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls -shared -fPIC -o "$TMP/lib$l.so" "$TMP/$l.c" || return
	done
}

records() {
	"$BIN/symbolize" -q --format=json ${events:+--events} "$2" 2>"$TMP/waits.err" | perl -MCpanel::JSON::XS -e '
		use strict; use warnings;
		our ($n, @o, $w, %c, %h) = (0);
		my $code = eval "sub { $ARGV[0] }" or die $@;
		sub kernel { join ";", map { $_->{symbol} // "?" } @{$w->{kernel_stack} || []} }
		sub user { join ";", map { $_->{symbol} // "?" } @{$w->{user_stack} || []} }
		while (<STDIN>) {
			$w = decode_json($_);
			if ($w->{type} eq "capture") { %c = %$w; next }
			$code->() if $w->{type} eq $ARGV[1];
		}
		print @o ? join("\n", @o) . "\n" : %h ? map("$_ $h{$_}\n", sort keys %h) : "$n\n"' "$3" "$1"
}

waits() {
	records wait "$@"
}

samples() {
	records sample "$@"
}

counter() {
	"$BIN/capinfo" "$1" 2>/dev/null | awk -v n="$2" '$2 == n { print $1; exit }'
}

within() {
	if perl -e 'my ($g, $w, $p) = @ARGV; exit !($w != 0 && abs($g - $w) <= abs($w) * $p / 100)' \
		"${1:-0}" "${2:-0}" "$3"; then
		pass "$4"
	else
		fail "$4"
		printf 'got %s, want %s within %s %%\n' "$1" "$2" "$3" | diag
	fi
}

# between GOT LOW HIGH NAME
between() {
	if perl -e 'exit !($ARGV[0] >= $ARGV[1] && $ARGV[0] <= $ARGV[2])' "${1:-0}" "$2" "$3"; then
		pass "$4"
	else
		fail "$4"
		printf 'got %s, want %s to %s\n' "$1" "$2" "$3" | diag
	fi
}

# but_for_others: for recordings of the whole machine; sets $rc to 0 if the only loss is processes that
# ended before their mappings were read, since these may be any processes
# shellcheck disable=SC2154 # $err is set by tap.sh
but_for_others() {
	[ "$rc" -ne 1 ] || [ "$(grep '^  lost: ' "$err" | sed 's/[0-9][0-9]*/N/; s/process without/processes without/')" != '  lost: N processes without mappings: ended, or not readable' ] || rc=0
}

t_capinfo=$BIN/capinfo # a test may have a copy of the recorder alone in another BIN

# balanced CAP: true if the waits that were recorded, filtered and lost add up to those seen, in count and in ns, and
# those recorded are in the capture. If it is not complete, some may not have been written yet.
balanced() {
	"$t_capinfo" --json "$1" 2>/dev/null | perl -MCpanel::JSON::XS -0777 -ne '
		my $c = decode_json($_);
		exit if !exists $c->{counters}{"waits.seen"};
		for (["", "waits"], ["_ns", "off_cpu_ns"]) {
			my ($b, $has) = ($c->{"balance$_->[0]"}, $c->{totals}{$_->[1]});
			my $sum = $b->{recorded} + $b->{unwritten} + $b->{overwritten} + $b->{filtered} + $b->{lost};
			next if $b->{holds} && $sum == $b->{seen} && ($c->{complete} ? !$b->{unwritten} && $has == $b->{recorded} : $has >= $b->{recorded});
			print "complete: $c->{complete}, $_->[1] in the capture: $has;", map { " $_ $b->{$_}" } sort keys %$b;
			print "\n";
			exit 1;
		}'
}

# still_balanced CAP...: a failed test for each of these captures that is not balanced
still_balanced() {
	for b_cap; do
		[ -f "$b_cap" ] && [ "$(head -c 4 "$b_cap" | tr -d '\0')" = "$(printf '\211stk')" ] || continue
		balanced "$b_cap" >"$TMP/balance.log" && continue
		fail "the balance of ${b_cap##*/} holds"
		diag <"$TMP/balance.log"
	done
}
# every capture that the test leaves behind; rec() and rec_stop() look at each that they make
all_balanced() {
	still_balanced "$TMP"/*.cap "$TMP"/*/*.cap "$TMP"/*.bin "$TMP"/*/*.bin
}
# shellcheck disable=SC2034 # for tap_done
tap_last=all_balanced

# steal_ns: prints the time that a hypervisor gave to other machines. A thread that loses the CPU to
# them inside a sleep call never blocks if the time is over when it runs again.
steal_ns() {
	awk '/^cpu / { printf "%d0000000\n", $9 }' /proc/stat
}

# A thread that has vanished from /proc may still be preempted in its exit: that time is left out.
judged() {
	waits "$1" '
		return if $w->{preempted} && kernel() =~ /(^|;)do_exit(;|$)/;
		my $k = "$w->{tid} " . ($w->{preempted} ? "R" : "S");
		$h{$k} += $w->{total_ns}; $h{"$w->{tid} N"} += $w->{count} if !$w->{preempted}' >"$TMP/got"
}

# Prints one line per thread. The recorded time must lie between the requested and the measured time, and
# blocked and runnable time must add up to the whole time off the CPU. The measured time includes the CPU
# time of the calls, which is considerable on a slow machine.
judge() {
	perl -e '
		my %h; open my $g, "<", $ARGV[1]; while (<$g>) { my ($t, $k, $v) = split; $h{$t}{$k} = $v }
		open my $s, "<", $ARGV[2]; my ($bad, $stolen) = (0, $ARGV[3]);
		while (<$s>) {
			my ($name, $tid, $count, $requested, $measured, $off, $off_most) = split;
			my ($S, $R, $N) = map { $h{$tid}{$_} // 0 } qw(S R N);
			print "$name: recorded $S + runnable $R of $off to $off_most off, requested $requested, measured $measured; $N waits of $count\n";
			if ($ARGV[0] eq "requested") { $bad++ if $S < $requested - $stolen }
			elsif ($ARGV[0] eq "measured") { $bad++ if $S > $measured * 1.01 + 3e6 || $S + $R < ($measured < $off ? $measured : $off) * 0.99 - $stolen }
			elsif ($ARGV[0] eq "off") { $bad++ if $S + $R < $off * 0.99 - $stolen || $S + $R > $off_most * 1.01 }
			elsif ($ARGV[0] eq "count") { $bad++ if $N < $count - 1 - $stolen / 2e7 && $name ne "w-mutex" || $N > $count + 8 }
		}
		exit !!$bad' "$1" "$TMP/got" "$TMP/said" "$stolen"
}
