#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Large numbers: a process with thousands of mappings, a binary with three
# million rows, five thousand processes of three hundred files.
# shellcheck disable=SC2016,SC2154 # Perl's variables; $rc and others of tap.sh
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
. "$(dirname "$0")/../lib/unwind.sh"
need_bpf
unset ORACLES_ONLY
export STACKTOOLS_CACHE=

made() { # made NAME FUNCTIONS STRIDE: makes a library; sets $len to the number of bytes to map
	perl "$DATA/unwind/manyrows" "$2" "$3" >"$TMP/$1.so" 2>"$TMP/$1.len"
	len=$(($(cat "$TMP/$1.len") + 4096))
}

made rows 3000 30
start rows "$OBJ/t/work/maps" "$TMP/rows.so" "$len"
made maps 120 30
start maps "$OBJ/t/work/maps" "$TMP/maps.so" "$len" 5000
start beyond "$OBJ/t/work/maps" "$TMP/maps.so" "$len" 12000

is "$("$BIN/unwindinfo" -s "$TMP/rows.so" | sed -n 's/^rows  *//p')" 3000003 "a library of 3,000 functions has three million rows"
is "$("$BIN/unwindinfo" -s "$TMP/rows.so" | sed -n 's/^left out  *//p')" nothing "no row of that library is left out"
record_blocked "$TMP/large.cap"
is "$rc" 0 "a recording of large processes ends with status 0"
agrees "a hundred frames in a binary with three million rows" rows --oracles eu
agreed
bytes=$(counter "$TMP/large.cap" unwind.bytes)
between "$bytes" 9000000 18000000 "three million rows take 9 to 18 MB of the kernel's memory"

# The addresses of its stack: each function, of 1006 bytes, has 500 pushes and a
# call of 5 bytes; behind the last function are mov and syscall, 7 bytes.
base=$(sed 's/.* //' "$W/maps.out")
wanted=$(perl -e 'my ($base, $n) = (hex shift, 4);
	print join ";", map { sprintf "%x", $_ } $base + 120 * 1006 + 7, map { $base + $_ * 30 * 1006 + 505 } reverse 0 .. $n - 1' "$base")
is "$(waits "$TMP/large.cap" 'no warnings; push @o, join ";", map { my $a = $_->{address}; $a =~ s/^0x0*//; $a } @{$w->{user_stack}}[0 .. 4]
	if $w->{pid} == '"$(pid_of maps)" | sort -u)" "$wanted" "in the last of 5,000 mappings the stack has the right frames"
is "$(waits "$TMP/large.cap" '$h{"$w->{user_stack_verdict} " . ($w->{user_stack_error} // "none")} = "" if $w->{pid} == '"$(pid_of maps)" | sed 's/ $//')" \
	"complete none" "in the last of 5,000 mappings the stack is complete"
# a stack that is walked afterwards, from a snapshot, is complete, as all mappings are known then
is "$(waits "$TMP/large.cap" '$h{"$w->{user_stack_verdict} " . ($w->{user_stack_error} // "none")} = "" if $w->{pid} == '"$(pid_of beyond)" | sed 's/ $//; /^complete none$/d')" \
	"stopped no-mapping" "with 12,000 mappings the walk stops at a mapping that is left out"
have=$(awk '$2 ~ /x/' "/proc/$(pid_of beyond)/maps" | grep -vc '\[vsyscall\]')
is "$(counter "$TMP/large.cap" unwind.maps_cut)" $((have - 8192)) "each mapping that is left out is counted once"
rec "$TMP/bound.cap" -p "$(pid_of rows)" --unwind-memory 4M -d 0.5
is "$rc $(counter "$TMP/bound.cap" unwind.tables_dropped)" "0 1" "a table larger than --unwind-memory is dropped and counted"
is "$(waits "$TMP/bound.cap" '$h{"$w->{user_stack_verdict} " . ($w->{user_stack_error} // "none")} = ""' | sed 's/ $//')" \
	"stopped dropped" "stacks without their table have the reason dropped"
finish
between "$(counter "$TMP/bound.cap" unwind.bytes)" 1 $((4194304 + 1323008)) "with a dropped table the memory stays within the limit"

# crowd_ends CAP: prints lines "VERDICT REASON WAITS"; without waits(), which takes ten seconds for so many
crowd_ends() {
	"$BIN/symbolize" -q --format=json "$1" 2>/dev/null | DIR="$TMP/crowd/" perl -ne '
		next if !/^\{"type":"wait","comm":"one-of-many"/ || !/"exe":"\Q$ENV{DIR}/;
		my ($n) = /"count":(\d+)/;
		my ($verdict, $error) = /"user_stack_verdict":"([a-z]+)","user_stack_error":(?:"([a-z-]+)"|null)/;
		$h{$verdict . " " . ($error // "none")} += $n;
		END { print "$_ $h{$_}\n" for sort keys %h }'
}

# all_mapped CAP: true if the mappings of all processes of the crowd are known as of the last flush. Reading the capture
# takes CPU time that the recorder needs
all_mapped() {
	sleep 1
	n=$(counter "$1" unwind.processes)
	[ "${n:-0}" -ge 5000 ]
}

# many_whole CAP N: true if N waits have a complete stack as of the last flush. Each process of the crowd
# wakes up every 2 s.
many_whole() {
	sleep 2
	n=$(crowd_ends "$1" | sed -n 's/^complete none //p')
	[ "${n:-0}" -ge "$2" ]
}

# Five thousand processes of three hundred programs, each its own file
if "$compiler" -D_GNU_SOURCE -O1 -static -s -o "$TMP/one" "$TOP/t/work/crowd.c" 2>"$TMP/static.log"; then
	mkdir "$TMP/crowd"
	for n in $(seq 300); do
		cp "$TMP/one" "$TMP/crowd/$n"
	done
	"$OBJ/t/work/crowd" 5000 "$TMP"/crowd/* <&7 >"$TMP/crowd.out" 2>&1 7>&- &
	crowd=$!
	at_exit_kill "$crowd"
	until_true test -s "$TMP/crowd.out"
	is "$(cat "$TMP/crowd.out")" 5000 "five thousand processes of three hundred files run"
	for memory in 64M 4M; do
		rec_start "$TMP/crowd.cap" -q --force -a -U --unwind-memory "$memory"
		until_true all_mapped "$TMP/crowd.cap"
		case $memory in
		64M) until_true many_whole "$TMP/crowd.cap" 5000 ;;
		*) until_true many_whole "$TMP/crowd.cap" 1000 ;;
		esac 2>/dev/null
		high=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$rec_pid/status")
		rec_stop
		between "$rc" 0 1 "$memory: a recording of five thousand processes ends with status 0 or 1"
		[ "$rc" -eq 0 ] || diag <"$TMP/rec.err"
		between "$high" 1 300000 "$memory: the recorder takes less than 300 MB"
		bytes=$(counter "$TMP/crowd.cap" unwind.bytes)
		between "$bytes" 1 $((${memory%M} * 1048576 + 1719296)) "$memory: the kernel's memory stays within the limit"
		ok "$memory: the mappings of every process are known" [ "$(counter "$TMP/crowd.cap" unwind.processes)" -ge 5000 ]
		ok "$memory: the counters of waits add up" balanced "$TMP/crowd.cap"
		crowd_ends "$TMP/crowd.cap" >"$TMP/crowd.ends"
		diag <"$TMP/crowd.ends"
		if [ "$memory" = 64M ]; then
			# the private user that the recorder becomes cannot enter their folder: for each file it needs the broker
			requests=$(counter "$TMP/crowd.cap" broker.requests)
			most=$((10 * $(counter "$TMP/crowd.cap" unwind.processes) + 2 * $(counter "$TMP/crowd.cap" unwind.snapshots)))
			ok "$memory: the broker is not asked for the same file by each stack ($requests requests, not $most)" test "$requests" -le "$most"
			is "$(counter "$TMP/crowd.cap" unwind.tables_dropped)" 0 "$memory: no table is dropped"
			between "$(counter "$TMP/crowd.cap" unwind.tables)" 300 1000 "$memory: each file has one table"
			is "$(grep -vcE '^(complete none|stopped not-ready|failed not-seen) ' "$TMP/crowd.ends")" 0 \
				"$memory: all stacks are complete, except waits that began before the table was ready"
			ok "$memory: at least 5000 waits have a complete stack" test "$(sed -n 's/^complete none //p' "$TMP/crowd.ends")" -ge 5000
		else
			between "$(counter "$TMP/crowd.cap" unwind.tables_dropped)" 50 5000 "$memory: tables are dropped and counted"
			between "$(counter "$TMP/crowd.cap" unwind.tables)" 1 250 "$memory: not every file's table is loaded"
			# of whatever runs on this machine: a single table of a large library may take most of it
			between "$bytes" $((3 * 1048576 + 1323008)) 100000000 "$memory: as many tables are loaded as fit"
			is "$(grep -vcE '^(complete none|stopped (not-ready|dropped)|failed not-seen) ' "$TMP/crowd.ends")" 0 \
				"$memory: each stack is complete or has a reason"
			ok "$memory: at least 1000 waits have a complete stack" test "$(sed -n 's/^complete none //p' "$TMP/crowd.ends")" -ge 1000
		fi
	done
	kill "$crowd"
else
	skip "five thousand processes of three hundred files run" "no static libc"
fi
tap_done
