#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The memory of unwind tables: bounded, shared, given back, and asked for again.
# shellcheck disable=SC2016,SC2046,SC2086,SC2154 # Perl's variables; words; $rc and others of tap.sh
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf
export STACKTOOLS_CACHE=
mkfifo "$TMP/hold"
# what never ends its readers
exec 7<>"$TMP/hold"

# Ten programs, each with a table of its own of 180 KB.
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

# each wakes up, and waits again
wake() {
	kill -STOP "$@"
	sleep 0.1
	kill -CONT "$@"
}

# How many of these processes have a wait of that verdict and reason
having() {
	h_want=$1
	waits "$2" '$h{"$w->{pid} $w->{user_stack_verdict} " . ($w->{user_stack_error} // "none")} = ""' |
		awk -v w="$h_want" '$2 " " $3 == w { n++ } END { print n + 0 }'
}

# the arrays of rules (1 MiB), segments and times (128 KiB each), and their headers
fixed=$(((1024 + 128 + 128 + 3 * 4) * 1024))

# What the kernel accounts to the maps of process PID that hold tables: those
# that it has open, and the chunks, which are open no longer but have their
# numbers in the array of maps.
kernel_bytes() {
	for k_file in /proc/"$1"/fdinfo/*; do
		sed -n 's/^map_id:[^0-9]*//p' "$k_file"
	done 2>/dev/null | sort -u | while read -r k_id; do
		bpftool map show id "$k_id" -j
		echo
	done | perl -MJSON::PP -ne '
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
is "$rc $(counter "$TMP/large.cap" unwind.tables_dropped)" "0 0" "with 512M no table is dropped"
is "$(having 'complete none' "$TMP/large.cap")" 10 "every program has its whole stack"
between "$(counter "$TMP/large.cap" unwind.rows)" 600000 800000 "by a table of its own"

rec_start "$TMP/small.cap" -q --force $(targets "$@") --unwind-memory 1M
wake "$@"
sleep 1.5
held=$(kernel_bytes "$rec_pid")
rec_stop
is "$rc" 0 "with 1M the same programs are recorded"
bytes=$(counter "$TMP/small.cap" unwind.bytes)
between "$bytes" 1 $((1048576 + fixed)) "their tables take no more than that, and the fixed arrays"
if command -v bpftool >/dev/null; then
	is "$held" "$bytes" "the kernel accounts as much to the maps"
else
	skip "the kernel accounts as much to the maps" "no bpftool"
fi
tables=$(counter "$TMP/small.cap" unwind.tables)
dropped=$(counter "$TMP/small.cap" unwind.tables_dropped)
between "$tables" 2 9 "some have tables"
between "$dropped" 5 60 "those that have none are counted"
complete=$(having 'complete none' "$TMP/small.cap")
between "$complete" 1 5 "the programs that have tables have whole stacks"
between "$(having 'stopped dropped' "$TMP/small.cap")" $((10 - complete)) 10 "the others say that the table was dropped"

# One goes from a recording with room for all; of another one, with room for
# few, those go that have tables.
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
# those of $left that have whole stacks, by the last flush: they wake up until one has
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
between "$n" 1 10 "tables that were dropped and are missed come back when there is room"
between "$(counter "$TMP/back.cap" unwind.bytes)" 1 $((1048576 + fixed)) "within the bound"
rec "$TMP/one.cap" $(targets "${10}") -d 0.5
# ten seconds later it is given back
given_back() {
	[ "$(counter "$TMP/freed.cap" unwind.rows)" = "$(counter "$TMP/one.cap" unwind.rows)" ]
}
ok "the table that nobody uses any more is freed" until_true given_back
kill -TERM "$freed"
wait "$freed"
is $? 0 "a recording that outlives one of its programs"
is "$(counter "$TMP/freed.cap" unwind.rows)" "$(counter "$TMP/one.cap" unwind.rows)" "and stays so"

"$OBJ/t/work/crowd" 200 "$OBJ/t/work/crowd" <"$TMP/hold" >"$TMP/crowd.out" 2>&1 7>&- &
crowd=$!
at_exit_kill "$crowd"
until_true test -s "$TMP/crowd.out"
all=$(pgrep -P "$crowd" | tr '\n' ' ')
rec "$TMP/two.cap" $(targets $(pgrep -P "$crowd" | head -n 2)) -d 0.5
rec "$TMP/crowd.cap" $(targets $all) -d 0.5
is "$(counter "$TMP/crowd.cap" unwind.processes)" 200 "two hundred processes of one program"
for what in tables rows bytes; do
	is "$(counter "$TMP/crowd.cap" "unwind.$what")" "$(counter "$TMP/two.cap" "unwind.$what")" \
		"they have as many $what as two of them"
done
tap_done
