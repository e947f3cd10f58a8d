#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The methods and blocks of Ruby programs are in the stacks, where Ruby itself says they are.
# RUNTIME=COMMAND: another Ruby than Debian's own (scripts/runtimes).
# shellcheck disable=SC2016,SC2154,SC2317 # Perl's variables; $rc and others of tap.sh; functions that ok calls
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
. "$(dirname "$0")/../lib/scripts.sh"
need_bpf
ruby=${RUNTIME:-/usr/bin/ruby}
[ -x "$ruby" ] || skip_all "no ruby"
version=$("$ruby" -e 'puts RUBY_VERSION[/\d+\.\d+/]')
export BIN OBJ TMP

# --- what Ruby says of processes that block in many ways ---

record_ways ruby "$version" "$ruby" "$DATA/ruby/ways.rb" "$TMP/said" "$DATA/ruby/included.rb"
find "$TMP/said" -type f | sed 's,.*/,,; s/$/ same/' | sort >"$TMP/want"
# rb_vm_exec() calls vm_exec_core(), which has no symbol; from 3.3 on neither has
same_ways '<rb_vm_exec' "the functions, files and lines are Ruby's, each before its native frame"
complete=$(waits "$TMP/ways.cap" '$n += $w->{total_ns} if $w->{user_stack_verdict} eq "complete"')
every=$(waits "$TMP/ways.cap" '$n += $w->{total_ns}')
ok "at least 99 % of the time has complete native stacks" test "$complete" -ge $((every * 99 / 100))
"$BIN/symbolize" -q "$TMP/ways.cap" >"$TMP/text" 2>/dev/null
like "$(grep 'ruby::pause' "$TMP/text")" '^	               0 ruby::pause:/.*/t/data/ruby/ways\.rb \(\[ruby\]\)$' "text: method and file"
"$BIN/fold" "$TMP/text" >"$TMP/folded" 2>/dev/null
like "$(grep 'ruby::sort_by' "$TMP/folded")" ';ruby::<main>:[^;]*ways\.rb;.*;ruby::block in <main>:[^;]*ways\.rb;[^;]*libruby[^;]*;ruby::sort_by:[^;]*;ruby::each:[^;]*;.*;rb_block_call.*;rb_ary_each;.*;ruby::block {2 levels} in <main>:[^;]*ways\.rb;[^;]*libruby[^;]*;ruby::sleep:' "fold: Ruby, methods in C and native frames alternate in the order of the calls"
like "$("$BIN/capinfo" "$TMP/ways.cap")" '^scripts     ruby: [1-9][0-9]* frames in [1-9][0-9]* waits, 0 of them not readable$' "capinfo counts script frames by runtime"
is "$(counter "$TMP/ways.cap" scripts.mismatch)" 0 "all fit the native frames"

run timeout -k 5 60 "$BIN/offcpu-record" -q --force -o "$TMP/deep.cap" -- "$ruby" -e 'def deep(n) n > 0 ? deep(n - 1) : sleep(0.3) end; deep(300)'
deep=$(waits "$TMP/deep.cap" 'my @s = map { $_->{function} // "?" } grep { $_->{runtime} } @{$w->{user_stack}};
	push @o, "@s" if $w->{total_ns} > 2e8 && @s')
like "$deep" '^sleep( deep)+$' "a recursion 300 deep has its innermost frames"
between "$(echo "$deep" | wc -w)" 110 127 "up to the depth limit"

# --- the JIT compiler: no call of vm_exec_core() executes its code ---

if "$ruby" --yjit -e 'exit RubyVM::YJIT.enabled?' 2>/dev/null; then
	cat >"$TMP/yjit.rb" <<-'EOF'
		def deep(n) n > 0 ? deep(n - 1) : sleep(0.01) end
		60.times { [1].each { |x| deep(3) } }
	EOF
	run timeout -k 5 60 "$BIN/offcpu-record" -q --force -o "$TMP/yjit.cap" -- "$ruby" --yjit --yjit-call-threshold=2 "$TMP/yjit.rb"
	waits "$TMP/yjit.cap" 'my $u = join " < ", map { ($_->{function} // "?") . (($_->{file} // "<?") =~ /^</ ? "" : ":$_->{line}") } grep { $_->{runtime} } @{$w->{user_stack}};
		push @o, ("$w->{user_stack_verdict} $u") x $w->{count} if $w->{max_ns} >= 8e6' | sort | uniq -c | sort -rn >"$TMP/yjit"
	like "$(head -n 1 "$TMP/yjit")" '^ *[0-9]+ unverified sleep:1( < deep:1){4} < block \(2 levels\) in <main>:2 < each:2 < block in <main>:2 < times(:2)? < <main>:2$' "with the JIT compiler all functions are there in their order"
else
	skip "this Ruby has no YJIT" 1
fi

# --- methods that come and go ---

run timeout -k 5 60 "$BIN/offcpu-record" --force -o "$TMP/churn.cap" -- "$ruby" "$DATA/ruby/churn.rb" 1
is "$rc" 0 "methods that are made and freed at a high rate, while objects are moved, are recorded"
truth ruby "$TMP/churn.cap"
like "$(cat "$TMP/truth")" '^right [1-9][0-9]* wrong 0 ' "of $(cat "$out") methods, none has the name, file or line of another one: $(cat "$TMP/truth")"
ok "most of them were seen" test "$(sed 's/.*functions //' "$TMP/truth")" -ge $(($(cat "$out") / 2))

# --- options ---

run timeout -k 5 60 "$BIN/offcpu-record" -q --force --runtimes python -o "$TMP/none.cap" -- "$ruby" -e 'sleep 0.1'
is "$rc $(waits "$TMP/none.cap" '$n += grep { $_->{runtime} } @{$w->{user_stack}}')" "0 0" "--runtimes python: native frames only"

# --- programs that lie ---

build() { # VERSION OUT
	"${CC:-cc}" -O1 -rdynamic -pthread -fcf-protection=none -DVERSION="\"$1\"" -o "$2" "$DATA/ruby/fake.c"
}
ok "a program that says it is Ruby 3.1 is built" build 3.1.99 "$TMP/fake"
ok "and one of a version that does not exist" build 9.9.0 "$TMP/future"
fake "$TMP/fake" none endless skipped groups none_ends below above wild kernel env iseq body label huge text path lines method \
	long symbol serial index position entries thread context control
fake "$TMP/future" future
fakes_begun
# shellcheck disable=SC2086 # a list
rec "$TMP/lie.cap" --runtimes ruby -d 0.3 $fakes
is "$rc" 0 "programs that lie about their frames are recorded"
lied() { # HOW: its functions, with their lines
	seen "$TMP/lie.cap" "$1" 'map { ($_->{function} // "?") . ":" . ($_->{line} // "") } @s'
}
all='cfunc:10 forged0:10 forged1:11 forged2:12'
is "$(lied none)" "$all" "a forged Ruby that is consistent has its frames"
between "$(lied endless | wc -w)" 120 127 "more frames than can be ends at the depth limit of 127"
is "$(lied skipped)" "" "thousands of frames that are not shown: no frames, and an end"
for how in groups none_ends; do
	is "$(lied $how)" "" "groups of frames and native frames differ in number ($how): none is shown"
done
ok "and that is counted" test "$(counter "$TMP/lie.cap" scripts.mismatch)" -ge 2
for how in below above wild kernel env iseq body label huge text path lines method; do
	is "$(lied $how)" "" "a pointer or number that leads nowhere ($how): no frame is shown"
done
ok "and that is counted" test "$(counter "$TMP/lie.cap" scripts.no_memory)" -ge 13
for how in thread context; do
	is "$(lied $how)" "" "a structure that is not the thread's own ($how): no frame is shown"
done
ok "and that is counted" test "$(counter "$TMP/lie.cap" scripts.no_thread)" -ge 2
is "$(lied long)" "cfunc:10 forged0:10 ?: forged2:12" "a name that is too long is not readable"
for how in symbol serial; do
	is "$(lied $how)" "?: forged0:10 forged1:11 forged2:12" "a symbol that is not the method's ($how) is not its name"
done
for how in index position entries; do
	is "$(lied $how)" "cfunc:10 forged0:10 forged1: forged2:12" "a line table or position that makes no sense ($how): no line"
done
"$BIN/symbolize" -q "$TMP/lie.cap" >"$TMP/text" 2>/dev/null
like "$(grep 'not readable' "$TMP/text")" '^	               0 \[ruby: not readable\] \(\[ruby\]\)$' "what is not readable is printed as such"
like "$(grep 'ruby::.x0a' "$TMP/text")" '^	               0 ruby::\\x0a;\{\\x09' "control characters in a name are escaped"
is "$(lied future)" "" "an unknown version: no frames are guessed"
is "$(counter "$TMP/lie.cap" scripts.refused)" 1 "and that is counted"
like "$("$BIN/capinfo" "$TMP/lie.cap")" 'ruby 9\.9 \(version not known, its functions are not shown\), 1 process' "and the capture says so"
tap_done
