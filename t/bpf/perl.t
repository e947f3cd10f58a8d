#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The subroutines of Perl programs are in the stacks, where Perl itself says they are.
#
#   RUNTIME=COMMAND  another Perl than Debian's 5.36 (scripts/runtimes)
# shellcheck disable=SC2016,SC2154,SC2317 # Perl's variables; $rc and others of tap.sh; functions that ok calls
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
. "$(dirname "$0")/../lib/scripts.sh"
need_bpf
perl=${RUNTIME:-/usr/bin/perl}
version=5.36
[ -z "${RUNTIME-}" ] || version=$("$perl" -e 'print "5.$^V->{version}[1]"')
export BIN OBJ TMP

# --- what Perl says of processes that block in many ways ---

record_ways perl "$version" "$perl" "$DATA/perl/ways.pl" "$TMP/said" "$DATA/perl/included.pl"
# the code of a sort belongs to the subroutine around it; evals in it begin native frames of their own
find "$TMP/said" -type f | sed 's,.*/,,; s/$/ same/; s/^\(sort\|nested\) same/\1 misplaced/' | sort >"$TMP/want"
same_ways Perl_runops_standard "the subroutines, files and lines are Perl's, behind their native frames"
"$BIN/symbolize" -q "$TMP/ways.cap" >"$TMP/text" 2>/dev/null
like "$(grep 'main::pause' "$TMP/text")" '^	               0 perl::main::pause:/.*/t/data/perl/ways\.pl \(\[perl\]\)$' "text: package, subroutine and file"
like "$("$BIN/capinfo" "$TMP/ways.cap")" '^scripts     perl: [1-9][0-9]* frames in [1-9][0-9]* waits, 0 of them not readable$' "capinfo counts script frames by runtime"

# --- subroutines that come and go ---

run timeout -k 5 60 "$BIN/offcpu-record" --force -o "$TMP/churn.cap" -- "$perl" "$DATA/perl/churn.pl" 1
is "$rc" 0 "subroutines that are made and freed at a high rate are recorded"
truth perl "$TMP/churn.cap"
like "$(cat "$TMP/truth")" '^right [1-9][0-9]* wrong 0 ' "of $(cat "$out") subroutines, none has the name, file or line of another one: $(cat "$TMP/truth")"
ok "many of them were seen" test "$(sed 's/.*functions //' "$TMP/truth")" -ge 100

# --- programs that lie ---

options=$(perl -MConfig -e 'print " " . join " ", sort split " ", join " ", Config::bincompat_options()')
build() { # VERSION OPTIONS OUT
	"${CC:-cc}" -O1 -rdynamic -pthread -fcf-protection=none -DVERSION="$1" -DOPTIONS="\"$2\"" -o "$3" "$DATA/perl/fake.c"
}
ok "a program that says it is Perl 5.36 is built" build 36 "$options" "$TMP/fake"
ok "and one of 5.34" build 34 "$(echo "$options" | sed 's/ PERLIO_LAYERS/& PERL_IMPLICIT_CONTEXT/')" "$TMP/behind"
ok "and one of a version that does not exist" build 99 "$options" "$TMP/future"
ok "and one that was built with other options" build 36 "$options DEBUGGING" "$TMP/debugging"
fake "$TMP/fake" none cycle empty top negative wild kernel cv statement name huge negative_name package calls thread control
fake "$TMP/behind" behind many
fake "$TMP/future" future
fake "$TMP/debugging" debugging
fakes_begun
# shellcheck disable=SC2086 # a list
rec "$TMP/lie.cap" --runtimes perl -d 0.3 $fakes
is "$rc" 0 "programs that lie about their frames are recorded"
lied() { # HOW: its subroutines, with their lines
	seen "$TMP/lie.cap" "$1" 'map { ($_->{function} // "?") . ":" . ($_->{line} // "") } @s'
}
all='Forged::sub0:10 Forged::sub1:11 Forged::sub2:12 {main}:13'
is "$(lied none)" "$all" "a forged Perl that is consistent has its frames"
between "$(lied cycle | wc -w)" 120 127 "a cycle of stacks ends at the depth limit of 127"
is "$(lied empty)" "" "stacks without contexts in a cycle: no frames, and an end"
is "$(lied behind)" "$all" "the same of 5.34"
for how in top negative wild kernel cv statement name negative_name package many; do
	is "$(lied $how)" "" "a pointer or number that leads nowhere ($how): no frame is shown"
done
ok "and that is counted" test "$(counter "$TMP/lie.cap" scripts.no_memory)" -ge 10
is "$(lied thread)" "" "an interpreter whose stack is not one: no frame is shown"
ok "and that is counted" test "$(counter "$TMP/lie.cap" scripts.no_thread)" -ge 1
is "$(lied huge)" "Forged::sub0:10 ?: Forged::sub2:12 {main}:13" "a name of 2 GB is not readable"
is "$(lied calls)" "Forged::sub0:10 Forged::sub1:11 Forged::sub2:12" "more calls from C than native frames: all follow the outermost one"
"$BIN/symbolize" -q "$TMP/lie.cap" >"$TMP/text" 2>/dev/null
like "$(grep 'not readable' "$TMP/text")" '^	               0 \[perl: not readable\] \(\[perl\]\)$' "what is not readable is printed as such"
like "$(grep 'Forged::.x0a' "$TMP/text")" '^	               0 perl::Forged::\\x0a;{\\x09' "control characters in a name are escaped"
for how in future debugging; do
	is "$(lied $how)" "" "not known ($how): no frames are guessed"
done
is "$(counter "$TMP/lie.cap" scripts.refused)" 2 "and that is counted"
like "$("$BIN/capinfo" "$TMP/lie.cap")" 'perl 5\.99 \(version not known, its functions are not shown\), 1 process' "and the capture says so"
tap_done
