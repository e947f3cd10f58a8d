#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The memory of unwind tables: it is bounded, shared, freed, and allocated again.
# shellcheck disable=SC2016,SC2046,SC2086,SC2154 # Perl's variables; words; $rc and others of tap.sh
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf
export STACKTOOLS_CACHE=
mkfifo "$TMP/hold"
# a pipe that has no data and no end of file
exec 7<>"$TMP/hold"

# Ten programs, each with its own table of 180 KB.
perl "$DATA/unwind/manyrows" 60 30 >"$TMP/0.so" 2>"$TMP/len"
len=$(($(cat "$TMP/len") + 4096))
pids=
for n in 1 2 3 4 5 6 7 8 9 10; do
	cp "$TMP/0.so" "$TMP/$n.so"
	"$OBJ/t/work/maps" "$TMP/$n.so" "$len" >"$TMP/$n.out" 2>&1 </dev/null 7>&- &
	at_exit_kill $!
	pids="$pids $!"
done
for n in 1 2 3 4 5 6 7 8 9 10; do
	until_true test -s "$TMP/$n.out"
done
set -- $pids
first=$1

targets() {
	printf ' -p %s' "$@"
}

# wake PID...: each of them wakes up and waits again
wake() {
	kill -STOP "$@"
	sleep 0.1
	kill -CONT "$@"
}

# having "VERDICT REASON" CAP: prints how many processes have a wait with that verdict and reason
having() {
	h_want=$1
	waits "$2" '$h{"$w->{pid} $w->{user_stack_verdict} " . ($w->{user_stack_error} // "none")} = ""' |
		awk -v w="$h_want" '$2 " " $3 == w { n++ } END { print n + 0 }'
}

# the arrays of rules (1 MiB), segments and times (128 KiB each), and their headers
fixed=$(((1024 + 128 + 128 + 3 * 4) * 1024))

# kernel_bytes PID: prints the memory that the kernel charges to the maps with
# unwind tables: those that PID has open, and the chunks, which are closed but
# whose IDs are in the array of maps.
kernel_bytes() {
	for k_file in /proc/"$1"/fdinfo/*; do
		sed -n 's/^map_id:[^0-9]*//p' "$k_file"
	done 2>/dev/null | sort -u | while read -r k_id; do
		bpftool map show id "$k_id" -j
		echo
	done | perl -MCpanel::JSON::XS -ne '
		my $m = eval { decode_json($_) } or next;
		$sum += $m->{bytes_memlock} if $m->{name} =~ /^unwind_(segs|rules|used)$/;
		next if $m->{name} ne "unwind_chunks";
		for (@{decode_json(`bpftool map dump id $m->{id} -j`)}) {
			next if ref $_->{value} ne "ARRAY";
			my $chunk = unpack "V", pack "C4", map { hex } @{$_->{value}};
			$sum += decode_json(`bpftool map show id $chunk -j`)->{bytes_memlock};
		}
		END { print $sum + 0, "\n" }'
}

rec "$TMP/large.cap" $(targets "$@") --unwind-memory 512M -d 1
is "$rc $(counter "$TMP/large.cap" unwind.tables_dropped)" "0 0" "with --unwind-memory 512M no table is dropped"
is "$(having 'complete none' "$TMP/large.cap")" 10 "with --unwind-memory 512M the stack of every program is complete"
between "$(counter "$TMP/large.cap" unwind.rows)" 600000 800000 "with --unwind-memory 512M the tables have the rows of all ten programs"

rec_start "$TMP/small.cap" -q --force $(targets "$@") --unwind-memory 1M
wake "$@"
sleep 1.5
held=$(kernel_bytes "$rec_pid")
rec_stop
is "$rc" 0 "with --unwind-memory 1M the recording ends with status 0"
bytes=$(counter "$TMP/small.cap" unwind.bytes)
between "$bytes" 1 $((1048576 + fixed)) "with 1M the tables and the fixed arrays stay within the limit"
if command -v bpftool >/dev/null; then
	is "$held" "$bytes" "unwind.bytes is what the kernel charges to the maps"
else
	skip "unwind.bytes is what the kernel charges to the maps" "no bpftool"
fi
tables=$(counter "$TMP/small.cap" unwind.tables)
dropped=$(counter "$TMP/small.cap" unwind.tables_dropped)
between "$tables" 2 9 "with 1M some of the ten programs have tables"
between "$dropped" 5 60 "with 1M dropped tables are counted"
complete=$(having 'complete none' "$TMP/small.cap")
between "$complete" 1 5 "with 1M the stacks of some programs are complete"
between "$(having 'stopped dropped' "$TMP/small.cap")" $((10 - complete)) 10 "with 1M the stacks of the other programs have the reason dropped"

# Programs end during two recordings: one program of a recording with memory for
# all tables, and those that have tables in a recording with memory for few.
timeout 200 "$BIN/offcpu-record" -q --force -o "$TMP/freed.cap" $(targets "$first" "${10}") \
	>"$TMP/freed.log" 2>&1 </dev/null 7>&- &
freed=$!
until_true test -s "$TMP/freed.cap"
rec_start "$TMP/back.cap" -q --force $(targets "$@") --unwind-memory 1M
ended=$(waits "$TMP/small.cap" '$h{$w->{pid}} = "" if $w->{user_stack_verdict} eq "complete"' | tr '\n' ' ')
sleep 0.5
kill "$first" $ended 2>/dev/null
left=
for p in "$@"; do
	case " $ended $first " in
	*" $p "*) ;;
	*) left="$left $p" ;;
	esac
done
# come_back: wakes up the processes in $left and sets $n to how many of them have a complete stack as of the
# last flush; true if there is one
come_back() {
	wake $left 2>/dev/null
	back=$(waits "$TMP/back.cap" '$h{$w->{pid}} = "" if $w->{user_stack_verdict} eq "complete"' | tr '\n' ' ')
	n=0
	for p in $left; do
		case " $back " in
		*" $p "*) n=$((n + 1)) ;;
		esac
	done
	[ "$n" -gt 0 ]
}
until_true come_back
rec_stop
come_back
between "$n" 1 10 "a dropped table that is needed is loaded when memory becomes free"
between "$(counter "$TMP/back.cap" unwind.bytes)" 1 $((1048576 + fixed)) "reloaded tables stay within the limit"
rec "$TMP/one.cap" $(targets "${10}") -d 0.5
# the table is freed ten seconds later
given_back() {
	[ "$(counter "$TMP/freed.cap" unwind.rows)" = "$(counter "$TMP/one.cap" unwind.rows)" ]
}
ok "a table that no process uses is freed" until_true given_back
kill -TERM "$freed"
wait "$freed"
is $? 0 "a recording that outlives one of its programs ends with status 0"
is "$(counter "$TMP/freed.cap" unwind.rows)" "$(counter "$TMP/one.cap" unwind.rows)" "the freed table is not counted at the end"

"$OBJ/t/work/crowd" 200 "$OBJ/t/work/crowd" <"$TMP/hold" >"$TMP/crowd.out" 2>&1 7>&- &
crowd=$!
at_exit_kill "$crowd"
until_true test -s "$TMP/crowd.out"
all=$(pgrep -P "$crowd,$(pgrep -P "$crowd")") # its child and the others, which that one has forked
rec "$TMP/two.cap" $(targets $(echo "$all" | head -n 2)) -d 0.5
rec "$TMP/crowd.cap" $(targets $all) -d 0.5
is "$(counter "$TMP/crowd.cap" unwind.processes)" 200 "all of two hundred processes of one program are recorded"
for what in tables rows bytes; do
	is "$(counter "$TMP/crowd.cap" "unwind.$what")" "$(counter "$TMP/two.cap" "unwind.$what")" \
		"two hundred processes of one program need as many $what as two"
done
tap_done
