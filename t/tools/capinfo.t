#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck disable=SC2016 # $1 and the like are for an inner shell
. "$(dirname "$0")/../lib/tap.sh"

capinfo=$BIN/capinfo
cap=$TMP/cap.bin
esc=$(printf '\033')

"$OBJ/t/unit/cap_reader" --write "$cap" || exit 1
size=$(wc -c <"$cap")

# cut_at N FILE: writes the first N bytes of the capture
cut_at() {
	head -c "$1" "$cap" >"$2"
}

# change OFFSET BYTE FILE: writes the capture with one byte replaced (octal)
change() {
	cp "$cap" "$3"
	# shellcheck disable=SC2059 # the byte is an octal escape
	printf "\\$2" | dd of="$3" bs=1 seek="$1" conv=notrunc 2>/dev/null
}

# --- an independent reader, written from docs/capture.5 ---

ok "a reader written from capture(5) alone reads the capture" \
	sh -c 'perl "$1" "$2" >"$3"' sh "$DATA/capture/decode.pl" "$cap" "$TMP/records"
status 0 "--json exits with status 0" "$capinfo" --json "$cap"
cp "$out" "$TMP/json"
ok "--json agrees with the independent reader in every field and sum" \
	perl "$DATA/capture/compare.pl" "$TMP/records" "$TMP/json"
is "$(wc -l <"$TMP/json")" 1 "--json prints one line"
ok "the comparison notices a field that differs" sh -c '
	sed "s/tgid=4242/tgid=4243/" "$1" >"$1.changed"
	! perl "$3" "$1.changed" "$2"' sh "$TMP/records" "$TMP/json" "$DATA/capture/compare.pl"

# --- the report ---

status 0 "a complete capture gives status 0" "$capinfo" "$cap"
text=$(cat "$out")
is "$(cat "$err")" "" "a complete capture gives no message on stderr"
like "$text" '^state +complete$' "the report says that the capture is complete"
like "$text" '^system +Linux 6\.18\.0-test x86_64' "the report shows the kernel of the host"
like "$text" '^started +2026-09-10 00:26:40 UTC$' "the report shows the start of the recording"
is "$(date -u -d @1789000000 '+%Y-%m-%d %H:%M:%S')" "2026-09-10 00:26:40" "date(1) shows the same start"
like "$text" '^duration +2\.000000000 s, stopped by: duration$' "the report shows the duration and why the recording stopped"
like "$text" '^options +pid=4242$' "the report shows the options of the recorder"
like "$text" '^ +4242 +2 +[0-9]+ +[0-9]+\.[0-9]{9} s +2  tar;get  /usr/bin/target \(PID 7 in its namespace\)$' \
	"the report shows a process with all figures and its PID in its namespace"
like "$text" '^ +2 +1 +1 +0\.000000005 s +1  kthreadd \(kernel thread\)$' "the report marks a kernel thread"
like "$text" 'mappings not read: EACCES' "the report shows why mappings are missing"
like "$text" '^  user +1 +4 +0\.000001550 s  stopped: stack memory could not be read$' "the report counts stacks by verdict and reason"
like "$text" '^  user +1 +1 +0\.000000007 s  failed: .* \(EFAULT\)$' "the report shows errors by name"
like "$text" '^user stacks 0\.00 % of 18446744073709551615 waits complete; 18446744073709551615 unverified; 1 helper-error; 4 no-memory$' \
	"the report shows the complete user stacks, without kernel threads"
like "$text" '^  no-memory +4 +0\.000001550 s +1  no known mapping, 0xffffffffffffffff$' "the report shows where walks of user stacks stopped"
like "$(cat "$TMP/json")" '"stops":\[\{"reason":"no-memory","mapped":false,"file":null,"place":"ffffffffffffffff","places":1,"waits":4,"off_cpu_ns":1550\}\]' \
	"--json shows where walks of user stacks stopped"
like "$text" '^ +8  waits\.recorded +waits: in the capture$' "the report shows the last value of each counter"
like "$text" '^balance +0 waits seen = 8 recorded \+ 0 filtered \+ 0 lost: this does not hold$' "the report shows the balance of waits, and that it does not hold"
ok "the report shows losses in a section of their own" sh -c '
	printf "%s\n" "$1" | sed -n "/^lost/,\$p" | grep -q "18446744073709551615  lost.ring_full"' sh "$text"
ok "the report has no control characters" sh -c '! printf "%s" "$1" | grep -q "[[:cntrl:]]"' sh "$text"
like "$text" 'st\\x1b\[31m$' "an escape sequence in the host name is shown as text"
run sh -c '"$1" - <"$2"' sh "$capinfo" "$cap"
is "$(sed -n 2,99p "$out")" "$(printf '%s\n' "$text" | sed 1d)" "a capture on standard input gives the same report"
run sh -c 'cat "$2" | "$1" -' sh "$capinfo" "$cap"
is "$(sed -n 2,99p "$out")" "$(printf '%s\n' "$text" | sed 1d)" "a capture from a pipe gives the same report"

# --- mappings ---

status 0 "--maps exits with status 0" "$capinfo" --maps -p 4242 "$cap"
cat >"$TMP/want" <<'EOF'
00400000-00480000 r-xp 00001000 08:01 99                                 /usr/bin/target
00480000-00490000 rwxs 00000000 00:00 0 
00490000-00500000 r-xp 00091000 08:01 99                                 /usr/bin/target
7ffff7fc0000-7ffff7fc2000 r-xp 00000000 00:00 0                          [vdso]
EOF
same "$out" "$TMP/want" "--maps shows the newest mapping; the rest of an older one keeps its file offset"
is "$(sed -n 's/^\(.*\) [^ ]*vdso.*/\1/p' "$out" | awk '{ print length($0) }')" \
	"$(sed -n 's/^\(.*\) [^ ]*vdso.*/\1/p' /proc/self/maps | awk '{ print length($0) }')" \
	"--maps puts paths in the same column as the kernel"
run "$capinfo" -m "$cap"
is "$(grep -c '^# pid' "$out")" 3 "--maps prints a line before each of several processes"
like "$(cat "$out")" '/tmp/new\\x0aline \\xff\\x1b \(deleted\)$' "a path cannot forge a line of --maps, and a deleted file is marked"
run "$capinfo" --maps -p 2 "$cap"
is "$rc:$(cat "$out")" "0:" "--maps prints nothing for a kernel thread"
status 1 "--maps for a missing process gives status 1" "$capinfo" --maps -p 1 "$cap"
like "$(cat "$err")" '^capinfo: no process 1 in this capture' "the message names the missing process"

# --- threads ---

status 0 "--threads exits with status 0" "$capinfo" --threads "$cap"
is "$(head -n 1 "$out" | tr -s ' ')" " PID TID NS-PID NS-TID WAITS OFF-CPU LIFE ON-CPU RUNNABLE BLOCKED SUM NAME" "--threads prints a heading"
ok "--threads prints the same IDs as --json, also those in the namespace" perl -MCpanel::JSON::XS -e '
	open my $f, "<", $ARGV[0] or die; my $j = decode_json(join "", <$f>);
	my %want = map { my $p = $j->{processes}[$_->{process}];
		join(" ", $p->{pid}, $_->{tid}, map { $_ || "-" } $p->{ns_pid}, $_->{ns_tid}) => 1 } @{$j->{threads}};
	open my $t, "<", $ARGV[1] or die; my (%got, $waits); <$t>;
	while (<$t>) { my @w = split; $got{"@w[0..3]"} = 1; }
	for (keys %want) { die "missing: $_\n" unless $got{$_} }
	' "$TMP/json" "$out"
like "$(cat "$out")" '^ +4242 +[0-9]+ +7 +[0-9]+ +[0-9]+ +[0-9]+\.[0-9]{9} ' "--threads shows a thread of PID 4242, which is 7 in its namespace"
ok "a thread name cannot forge a line of --threads" sh -c '! LC_ALL=C grep -q "[[:cntrl:]]" "$1"' sh "$out"
run "$capinfo" --threads -p 2 "$cap"
is "$(awk 'NR > 1 { print $1 }' "$out" | sort -u)" 2 "--threads with -p prints the threads of one process"
status 1 "--threads for a missing process gives status 1" "$capinfo" --threads -p 1 "$cap"

# --- damage ---

status 0 "--verify of a complete capture gives status 0" "$capinfo" --verify "$cap"
is "$(cat "$out")$(cat "$err")" "ok" "--verify of a complete capture prints only ok"
cut_at $((size - 5)) "$TMP/cut"
status 1 "--verify of a truncated capture gives status 1" "$capinfo" --verify "$TMP/cut"
like "$(cat "$out")" "^damaged: cut at byte $((size - 5)): the block at byte [0-9]+ \(trailer\) is incomplete; waits after 2\.000 s of recording are missing$" \
	"--verify shows where a capture is cut, and from when on waits are missing"
is "$(wc -l <"$out")" 1 "--verify prints one line for a truncated capture"
like "$(cat "$err")" "^capinfo: '$TMP/cut': cut at byte" "--verify reports a truncated capture on stderr too"
change $((size - 100)) 377 "$TMP/changed"
for mode in "" --json --maps --verify; do
	# shellcheck disable=SC2086 # an empty mode is not an argument
	status 1 "a changed byte gives status 1 (${mode:-report})" "$capinfo" $mode "$TMP/changed"
	like "$(cat "$err")" "wrong checksum of a block|no block where" "a changed byte is reported on stderr"
done
run "$capinfo" "$TMP/changed"
like "$(cat "$out")" '^ +4242 ' "the report shows the intact part of a damaged capture"
like "$(cat "$err")" 'missing, up to its end at 2\.000 s' "the message says how far the recording went"
cat "$cap" "$cap" >"$TMP/twice"
status 1 "two captures in one file give status 1" "$capinfo" --verify "$TMP/twice"
like "$(cat "$out")" 'something follows the trailer, at byte .*no waits are missing' "no waits are missing if something follows the trailer"
cut_at 24 "$TMP/header"
status 1 "a file header alone gives status 1" "$capinfo" "$TMP/header"
like "$(cat "$out")" '^lost: not known' "the losses of a file header alone are not known"
like "$(cat "$err")" 'ends at byte 24 without a trailer.*missing from the start' "all waits of a file header alone are missing"
bad=
n=0
while [ "$n" -lt "$size" ]; do
	cut_at "$n" "$TMP/c"
	"$capinfo" "$TMP/c" >/dev/null 2>"$err"
	rc=$?
	want=1
	[ "$n" -lt 24 ] && want=2
	[ "$rc" -eq "$want" ] && [ -s "$err" ] || bad="$bad $n:$rc"
	n=$((n + 13))
done
is "$bad" "" "a cut inside the file header gives status 2, a later cut 1, each with a message"

# --- files that are not captures ---

refused() {
	status 2 "capinfo refuses $1" "$capinfo" "$2"
	like "$(cat "$err")" "^capinfo: .*$3" "capinfo reports $1: $3"
	is "$(cat "$out")" "" "capinfo prints nothing on stdout if it refuses a file"
}
: >"$TMP/empty"
mkdir "$TMP/dir"
refused "a directory" "$TMP/dir" 'Is a directory'
refused "an empty file" "$TMP/empty" 'empty, not a capture'
refused "an ELF file" "$capinfo" 'not a capture'
refused "an endless device" /dev/zero 'not a capture'
refused "a missing file" "$TMP/none" 'No such file or directory'
change 8 001 "$TMP/order"
printf '\001\002\003\004' | dd of="$TMP/order" bs=1 seek=8 conv=notrunc 2>/dev/null
refused "a capture in the other byte order" "$TMP/order" 'other byte order'
change 16 002 "$TMP/version"
refused "a version that was changed without its checksum" "$TMP/version" 'header is damaged'
printf '\211stkcap\n\004\003\002\001\030\000\000\000\002\000\000\000' >"$TMP/newer"
perl -e 'local $/; open my $f, "<:raw", $ARGV[0]; my $c = 0xffffffff;
	for my $b (unpack "C*", <$f>) { $c ^= $b; $c = $c & 1 ? ($c >> 1) ^ 0x82f63b78 : $c >> 1 for 1 .. 8 }
	print pack "V", $c ^ 0xffffffff' "$TMP/newer" >"$TMP/newer.crc"
cat "$TMP/newer.crc" >>"$TMP/newer"
refused "a capture of a greater major version" "$TMP/newer" 'a capture of format 2.0; this reads formats up to 1'
like "$(cat "$err")" 'hint: use a newer stacktools' "the hint for a greater major version is a newer stacktools"
mkfifo "$TMP/fifo"
cat "$cap" >"$TMP/fifo" &
status 0 "a capture is read from a FIFO" "$capinfo" --verify "$TMP/fifo"
wait $!
{
	cat "$TMP/header"
	cat /dev/zero
} 2>/dev/null | "$capinfo" --verify - >"$out" 2>"$err"
like "$(cat "$out")" 'no block where one is due, at byte 24' "endless junk from a pipe is rejected"
printf 'x\n%sy' "$esc" >"$TMP/$(printf 'a\033b')"
run "$capinfo" "$TMP/$(printf 'a\033b')"
like "$(cat "$err")" 'a\\x1bb' "a file name's control characters are escaped in messages"
if [ "$(id -u)" -eq 0 ] && command -v runuser >/dev/null && id nobody >/dev/null 2>&1; then
	chmod 755 "$TMP"
	# user nobody may have no access to the build folder
	cp "$capinfo" "$OBJ/t/unit/cap_reader" "$TMP"
	status 2 "the capture of another user is refused" runuser -u nobody -- "$TMP/capinfo" "$cap"
	like "$(cat "$err")" 'Permission denied' "the message says that permission is denied"
	cp "$cap" "$TMP/public"
	chmod 644 "$TMP/public"
	status 0 "a readable capture needs no privileges" runuser -u nobody -- "$TMP/capinfo" "$TMP/public"
else
	skip "the capture of another user is refused" "needs root and runuser"
fi

# --- the writer, folders and terminals ---

if [ "$(id -u)" -eq 0 ] && command -v runuser >/dev/null && id nobody >/dev/null 2>&1; then
	mkdir -m 755 "$TMP/folder"
	: >"$TMP/folder/mine"
	: >"$TMP/folder/yours"
	chown nobody "$TMP/folder/mine"
	chmod 644 "$TMP/folder/mine" "$TMP/folder/yours"
	status 0 "an own empty file is used in a folder that cannot be changed" \
		runuser -u nobody -- "$TMP/cap_reader" --write "$TMP/folder/mine"
	is "$(stat -c %a "$TMP/folder/mine") $("$capinfo" --verify "$TMP/folder/mine")" "600 ok" "the own empty file becomes a private, complete capture"
	status 2 "an empty file of another user is not used" runuser -u nobody -- "$TMP/cap_reader" --write "$TMP/folder/yours"
	like "$(cat "$err")" "cannot replace '.*yours': Permission denied" "the message says why the file of another user is not used"
else
	skip "an own empty file is used in a folder that cannot be changed" "needs root and runuser"
fi

if command -v script >/dev/null; then
	run script -qec "$OBJ/t/unit/cap_reader --write -" /dev/null
	like "$(cat "$out")" 'standard output is a terminal' "a capture is not written to a terminal"
	run script -qec "$OBJ/t/unit/cap_reader --write /dev/tty" /dev/null
	like "$(cat "$out")" 'the file is a terminal' "a capture is not written to /dev/tty"
	run script -qec "$capinfo -" /dev/null
	like "$(cat "$out")" 'standard input is a terminal, not a capture' "a capture is not read from a terminal"
else
	skip "a capture is not written to a terminal" "no script(1)"
fi
"$OBJ/t/unit/cap_reader" --write - | "$capinfo" --verify - >"$out" 2>"$err"
is "$(cat "$out")" ok "a capture is written to a pipe and read from it"
"$OBJ/t/unit/cap_reader" --write - >"$TMP/redirected"
same "$cap" "$TMP/redirected" "a capture on redirected stdout has the same bytes"
run sh -c '"$1" --write - >/dev/full' sh "$OBJ/t/unit/cap_reader"
is "$rc:$(cat "$err")" "2:cap_reader: cannot write to 'standard output': No space left on device" \
	"the writer reports a full device"
run sh -c '"$1" --write - >&-' sh "$OBJ/t/unit/cap_reader"
like "$rc:$(cat "$err")" "^2:.*Bad file descriptor" "the writer reports a closed stdout"

# --- stdout ---

run sh -c '"$1" "$2" >/dev/full' sh "$capinfo" "$cap"
is "$rc" 2 "a report to a full device gives status 2"
like "$(cat "$err")" 'No space left on device' "the message about the full device has the reason"
run sh -c '"$1" "$2" >&-' sh "$capinfo" "$cap"
is "$rc" 2 "a report to a closed stdout gives status 2"

# --- command line ---

for args in "" "$cap $cap" "--maps --json $cap" "--threads --maps $cap" "--verify --maps $cap" "-p 1 $cap" "--maps -p x $cap" "-z $cap" \
	"--maps -p"; do
	# shellcheck disable=SC2086 # several arguments
	status 64 "usage error: capinfo $(echo "$args" | sed "s|$TMP/||g")" "$capinfo" $args
	is "$(wc -l <"$err")" 2 "a usage error prints two lines"
done
status 0 "--help exits with status 0" "$capinfo" --help
like "$(cat "$out")" '^usage: capinfo ' "--help prints the usage"
status 0 "--version exits with status 0" "$capinfo" -V
like "$(cat "$out")" '^capinfo \(stacktools\) [0-9]' "--version prints name and version"

tap_done
