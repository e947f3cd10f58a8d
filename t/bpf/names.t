#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Names of user frames that the recorder stores, for readers without the files.
# shellcheck disable=SC2016,SC2119,SC2154,SC2317 # Perl's variables; $rc and others of tap.sh; functions that ok calls
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf
cc=${CC:-cc}
command -v "$cc" >/dev/null || skip_all "no C compiler for the program to be recorded"

cat >"$TMP/prog.c" <<'C'
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) static void sleeps(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, 0);
	__asm__ volatile("" ::: "memory");
}
__attribute__((noinline)) void caller(void);
void caller(void) { sleeps(); __asm__ volatile("" ::: "memory"); }
int main(int argc, char **argv)
{
	for (int i = 0; i < 100000 && (argc < 2 || i < 100); i++)
		caller();
	return 0;
}
C
"$cc" -O1 -g -fno-optimize-sibling-calls -o "$TMP/prog" "$TMP/prog.c" || skip_all "the program does not build"

# stored CAP: prints "FILE OFFSET NAME" for each stored name; NAME is its outermost frame
stored() {
	perl "$DATA/capture/decode.pl" "$1" | perl -ne '
		if (/^file id=(\d+) .* path=(.*)$/) { $path{$1} = $2 }
		next unless /^name file=(\d+) offset=(\d+) .* frames=(\S*)/;
		my ($file, $offset, @frames) = ($1, $2, split /;/, $3);
		my ($name) = split /\|/, $frames[-1] // "";
		print "$path{$file} $offset $name\n"'
}

# frames CAP: prints the same for each distinct user frame that symbolize names
frames() {
	"$BIN/symbolize" -q --format=json "$1" 2>/dev/null | perl -MCpanel::JSON::XS -ne '
		my $w = decode_json($_);
		next unless $w->{type} eq "wait";
		my $leaf = 1;
		for my $f (@{$w->{user_stack} || []}) {
			my $back = $leaf ? 0 : 1;
			$leaf = 0;
			next unless defined $f->{symbol} && defined $f->{module_offset} && $f->{module} =~ m{^/};
			my $o = $f->{module_offset} =~ /^0x/ ? hex $f->{module_offset} : $f->{module_offset};
			my $name = $f->{symbol};
			print "$f->{module} ", $o - $back, " $name\n";
		}' | sort -u
}

# --- stored names match the files

"$TMP/prog" >"$TMP/log" 2>&1 </dev/null &
prog=$!
at_exit_kill "$prog"
rec "$TMP/a.cap" -p "$prog" -d 1
is "$rc" 0 "a recording exits with status 0"
stored "$TMP/a.cap" | sort -u >"$TMP/stored"
frames "$TMP/a.cap" >"$TMP/frames"
for f in sleeps caller main; do
	ok "the name of function $f is stored" grep -q "^$TMP/prog [0-9]* $f\$" "$TMP/stored"
done
ok "names of library functions are stored" grep -q '/libc[.-].* [0-9]* .*nanosleep' "$TMP/stored"
ok "each frame that symbolize names from files has the same stored name" \
	sh -c 'test -s "$1" && test -z "$(comm -13 "$2" "$1")"' sh "$TMP/frames" "$TMP/stored"
is "$(counter "$TMP/a.cap" names.stored)" "$(wc -l <"$TMP/stored")" "names.stored counts the stored names"
is "$(counter "$TMP/a.cap" names.late) $(counter "$TMP/a.cap" names.unresolved)" "0 0" "no lookup is late, and no place is without a name"
is "$(counter "$TMP/a.cap" names.files)" "$(cut -d ' ' -f 1 "$TMP/stored" | sort -u | wc -l)" "names.files counts the files of the stored names"
like "$("$BIN/capinfo" "$TMP/a.cap")" " $(wc -l <"$TMP/stored") names" "capinfo shows the number of stored names"

# --- inlined calls and lines: names stored at the end of a short recording have none

cat >"$TMP/lined.c" <<'C'
#include <time.h>
static inline __attribute__((always_inline)) void inner(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, 0);
	__asm__ volatile("" ::: "memory");
}
int main(void)
{
	for (;;)
		inner();
}
C
"$cc" -O1 -g -o "$TMP/lined" "$TMP/lined.c"
"$TMP/lined" >"$TMP/log" 2>&1 </dev/null &
lined=$!
at_exit_kill "$lined"
rec_start "$TMP/long.cap" -q -p "$lined"
# as of the last flush
names_stored() {
	stored=$(counter "$TMP/long.cap" names.stored)
	[ "${stored:-0}" -gt 2 ]
}
until_true names_stored
rec_stop
rec "$TMP/short.cap" -p "$lined" -d 0.3s
mv "$TMP/lined" "$TMP/elsewhere"
like "$("$BIN/symbolize" -q --format=json "$TMP/long.cap")" \
	'"symbol":"main",[^{]*"inlined":\[\{"symbol":"inner"[^}]*"file":"[^"]*lined\.c","line":[0-9]+' \
	"inlined calls and lines are stored while a recording runs"
like "$("$BIN/symbolize" -q --format=json "$TMP/short.cap")" '"symbol":"main",[^{]*"inlined":\[\]' \
	"a recording of less than a second stores only the name of the function"
is "$(counter "$TMP/short.cap" names.plain)" "$(counter "$TMP/short.cap" names.stored)" "names.plain counts names stored without inlined calls and lines"
is "$(counter "$TMP/long.cap" names.plain)" 0 "names.plain is 0 for the longer recording"
kill "$lined"

# --- a wait from the beginning to the end, of which there is a sample only then: its names are looked up before

sleep 1000 &
waits=$!
at_exit_kill "$waits"
rec_start "$TMP/wait.cap" -q -p "$waits"
place_stored() {
	stored=$(counter "$TMP/wait.cap" names.stored)
	[ "${stored:-0}" -gt 2 ] && [ "$(counter "$TMP/wait.cap" waits.recorded)" -eq 0 ]
}
ok "the names of a wait in progress are stored" until_true place_stored
rec_stop
is "$(counter "$TMP/wait.cap" names.stored)" "$stored" "and no more at the end of it"
like "$("$BIN/symbolize" -q "$TMP/wait.cap")" 'clock_nanosleep' "by which it has its names"
kill "$waits"

# --- functions without a name: the same label with the file and without it

"$cc" -O1 -fno-pie -no-pie -fno-optimize-sibling-calls -s -o "$TMP/unnamed" "$TMP/prog.c"
"$TMP/unnamed" >"$TMP/log" 2>&1 </dev/null &
unnamed=$!
at_exit_kill "$unnamed"
rec "$TMP/u.cap" -p "$unnamed" -d 0.5s
"$BIN/symbolize" -q "$TMP/u.cap" | grep -o '\[unnamed+.* (.*' | sort -u >"$TMP/with"
rm "$TMP/unnamed"
"$BIN/symbolize" -q "$TMP/u.cap" | grep -o '\[unnamed+.* (.*' | sort -u >"$TMP/without"
ok "a function without a name has a label" grep -q '^\[unnamed+0x40[0-9a-f]*\]+0x[0-9a-f]* (' "$TMP/with"
same "$TMP/without" "$TMP/with" "without the file each such frame has the same label"
kill "$unnamed"

# --- recordings without names

rec "$TMP/n.cap" --no-symbols -p "$prog" -d 0.5s
is "$rc" 0 "a recording with --no-symbols exits with status 0"
is "$(stored "$TMP/n.cap" | wc -l)" 0 "--no-symbols stores no names"
is "$(counter "$TMP/n.cap" names.stored)" "" "--no-symbols stores no counters of names"
rec "$TMP/k.cap" -K -p "$prog" -d 0.5s
is "$(stored "$TMP/k.cap" | wc -l)" 0 "-K stores no names, since there are no user stacks"

# --- files that are deleted or replaced

cp "$TMP/prog" "$TMP/brief"
"$TMP/brief" >"$TMP/log" 2>&1 </dev/null &
brief=$!
at_exit_kill "$brief"
until_true sh -c '[ "$(readlink "/proc/$1/exe")" = "$2" ]' sh "$brief" "$TMP/brief"
until_true grep -q nanosleep "/proc/$brief/wchan"
rm "$TMP/brief"
rec "$TMP/d.cap" -p "$brief" -d 0.5s
ok "names of a deleted program that still runs are stored" sh -c 'grep -q "/brief [0-9]* caller$" <<-E
	$1
	E' sh "$(stored "$TMP/d.cap")"
kill "$brief"
cp "$TMP/prog" "$TMP/brief"
rec "$TMP/c.cap" -- "$TMP/brief" 1
ok "names of a command that has ended are stored" sh -c 'grep -q "/brief [0-9]* caller$" <<-E
	$1
	E' sh "$(stored "$TMP/c.cap")"
# Names are stored every second. A recording that takes a second or longer is repeated.
replaced() {
	cp "$TMP/prog" "$TMP/brief"
	rec "$TMP/r.cap" -- sh -c '"$1" 1; rm "$1"; cp "$2" "$1"' sh "$TMP/brief" "$(command -v true)"
	test "$(waits "$TMP/r.cap" '$n = $c{duration_ns}')" -lt 1000000000
}
until_true replaced
ok "no names are taken from another file at the path of the program" sh -c '! grep -q "/brief " <<-E
	$1
	E' sh "$(stored "$TMP/r.cap")"
ok "names.unresolved counts places in a replaced program" test "$(counter "$TMP/r.cap" names.unresolved)" -gt 0

# --- without the files

# plain CAP: prints waits and frames as text, without comment lines, which say how names were found
plain() {
	"$BIN/symbolize" -q "$1" 2>/dev/null | grep -v '^#'
}

cp "$TMP/prog" "$TMP/brief"
rec "$TMP/c.cap" -- "$TMP/brief" 1
plain "$TMP/c.cap" >"$TMP/with"
ok "symbolize names the functions of an existing program" grep -q ' caller+0x' "$TMP/with"
ok "capinfo --pack packs the capture" "$BIN/capinfo" --pack "$TMP/p.cap" "$TMP/c.cap"
rm "$TMP/brief"
plain "$TMP/p.cap" >"$TMP/without"
same "$TMP/without" "$TMP/with" "a packed capture gives the same names after the program is deleted"
plain "$TMP/c.cap" >"$TMP/without"
same "$TMP/without" "$TMP/with" "stored names are the same after the program is deleted"

tap_done
