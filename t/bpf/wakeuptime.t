#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Who ended waits, and how long they were, against libbpf-tools' wakeuptime beside it. (offwaketime, which has the
# stack of the wait too, is not in that package; bcc's needs kprobes.)
# shellcheck disable=SC2016,SC2154 # Perl's variables; $rc and others of tap.sh
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf
command -v wakeuptime >/dev/null || skip_all 'wakeuptime (libbpf-tools) is missing'

# Two processes that answer each other through pipes: one does so at once, the other after a sleep, which a timer ends
cat >"$TMP/two.py" <<'EOF'
import os, sys, time

def named(name):
    with open("/proc/self/comm", "w") as f:
        f.write(name)

ask, answer = os.pipe(), os.pipe()
child = os.fork()
if child:
    named("wt-asks")
    print(child, flush=True)
    sys.stdin.readline()
    for _ in range(300):
        os.write(ask[1], b"x")
        os.read(answer[0], 1)
    os.close(ask[1])
    os.wait()
else:
    named("wt-answers")
    os.close(ask[1])
    while os.read(ask[0], 1):
        time.sleep(.003)
        os.write(answer[1], b"x")
EOF
mkfifo "$TMP/go"
python3 "$TMP/two.py" <"$TMP/go" >"$TMP/child" 2>"$TMP/log" &
load=$!
at_exit_kill "$load"
exec 8>"$TMP/go"
ok 'there are two processes' until_true test -s "$TMP/child"
# one for each, as it has no room for the stacks of all wake-ups of a busy machine
peers=
for pid in "$load" "$(cat "$TMP/child")"; do
	wakeuptime -p "$pid" >"$TMP/peer.$pid" 2>"$TMP/peer.err" &
	at_exit_kill "$!"
	peers="$peers $!"
	ok 'wakeuptime records one' until_true sh -c 'cat "/proc/$1/fdinfo/"* 2>/dev/null | grep -q "^link_type"' sh "$!"
done
rec_start "$TMP/w.cap" -q --force --wakers --follow -p "$load"
echo >&8
exec 8>&-
wait "$load"
rec_stop
# shellcheck disable=SC2086 # two words
kill -INT $peers
wait

# TARGET WAKER NS, of those two; not of the wait that had begun before
waits "$TMP/w.cap" 'return if $w->{initial} || !$w->{waker} || $w->{waker}{interrupt} || !$w->{waker}{comm};
	$h{"$w->{comm} $w->{waker}{comm}"} += $w->{total_ns} - $w->{runnable_ns}' | grep '^wt-.* wt-' | sort >"$TMP/ours"
perl -ne '$target = $1 if /^\ttarget: +(\S+)/; $waker = $1 if /^\t +waker: (\S+)/;
	$sum{"$target $waker"} += $1 * 1000 if $waker && /^\t(\d+)$/; undef $waker if /^$/;
	END { print "$_ $sum{$_}\n" for grep { /^wt-.* wt-/ } sort keys %sum }' "$TMP"/peer.[0-9]* >"$TMP/theirs"
is "$(cut -d' ' -f1,2 "$TMP/ours" | tr '\n' ,)" 'wt-answers wt-asks,wt-asks wt-answers,' 'each of two processes is woken by the other'
is "$(cut -d' ' -f1,2 "$TMP/theirs" | tr '\n' ,)" 'wt-answers wt-asks,wt-asks wt-answers,' 'wakeuptime says so, too'
while read -r target waker ns; do
	theirs=$(sed -n "s/^$target $waker //p" "$TMP/theirs")
	between "$ns" $((${theirs:-0} * 49 / 50 - 3000000)) $((${theirs:-0} * 51 / 50 + 3000000)) \
		"$target was blocked until $waker woke it for as long as wakeuptime says ($theirs ns)"
done <"$TMP/ours"
tap_done
