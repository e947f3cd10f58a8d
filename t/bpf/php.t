#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The functions of PHP programs are in the stacks, where PHP itself says they are.
#
#   RUNTIME=COMMAND  another PHP than Debian's 8.2 (scripts/runtimes)
#   FPM=COMMAND      its server (default: that of the same suite)
# shellcheck disable=SC2016,SC2154,SC2317 # Perl's variables; $rc and others of tap.sh; functions that ok calls
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
. "$(dirname "$0")/../lib/scripts.sh"
need_bpf
php=${RUNTIME:-/usr/bin/php8.2}
[ -x "$php" ] || skip_all "no php8.2-cli"
version=8.2
[ -z "${RUNTIME-}" ] || version=$("$php" -r 'echo PHP_MAJOR_VERSION, ".", PHP_MINOR_VERSION;')
export BIN OBJ TMP

scripts() { # CAP: the script functions of each wait, innermost first
	waits "$1" 'push @o, join " ", map { ($_->{function} // "?") . ($_->{line} ? ":$_->{line}" : "") } grep { $_->{runtime} } @{$w->{user_stack}}'
}

# --- what PHP says of processes that block in many ways ---

way_ids() {
	head -q -n 1 "$TMP"/said/*
}
record_ways php "$version" "$php" "$DATA/php/ways.php" "$TMP/said"
# from 8.4 some functions in C have no frame
find "$TMP/said" -type f | sed 's,.*/,,; s/$/ same/; s/^frameless same/frameless different/' | sort >"$TMP/want"
same_ways execute_ex "the functions, files and lines are PHP's, each behind its native frame"

"$BIN/symbolize" -q "$TMP/ways.cap" >"$TMP/text" 2>/dev/null
like "$(grep 'Base::pause' "$TMP/text")" '^	               0 php::Ways\\\\Of\\\\Base::pause:/.*/t/data/php/ways\.php \(\[php\]\)$' "text: class, function and file"
like "$(grep 'usleep: ' "$TMP/text")" '^	               0 php::usleep: \(\[php\]\)$' "text: a function in C"
"$BIN/fold" "$TMP/text" >"$TMP/folded" 2>/dev/null
closure='php::(Ways\\\\Of\\\\)?{closure[^;]*}:[^;]*ways\.php;execute_ex;(ZEND_[A-Z_]*;)?' # the handler, if PHP was built so
like "$(grep usort "$TMP/folded")" ";php::{main}:[^;]*ways\\.php;${closure}php::usort:;.*;zend_call_function;${closure}php::usleep:;.*nanosleep" "fold: PHP and native frames alternate in the order of the calls"
like "$("$BIN/capinfo" "$TMP/ways.cap")" '^scripts     php: [1-9][0-9]* frames in [1-9][0-9]* waits, 0 of them not readable$' "capinfo counts script frames by runtime"

# --- functions that come and go ---

mkdir "$TMP/churn"
run timeout -k 5 60 "$BIN/offcpu-record" --force -o "$TMP/churn.cap" -- "$php" "$DATA/php/churn.php" "$TMP/churn" 1
is "$rc" 0 "functions that are made and freed at a high rate are recorded"
truth php "$TMP/churn.cap"
like "$(cat "$TMP/truth")" '^right [1-9][0-9]* wrong 0 ' "of $(cat "$out") functions, none has the name, file or line of another one: $(cat "$TMP/truth")"
ok "many of them were seen" test "$(sed 's/.*functions //' "$TMP/truth")" -ge 100

# --- a server ---

fpm=${FPM:-${RUNTIME:-/usr/sbin/php-fpm8.2}}
export RUNTIME_PROGRAM="/usr/sbin/php-fpm$version" # which the commands of scripts/runtimes run then
if [ -x "$fpm" ] && "$fpm" -v 2>/dev/null | grep -q fpm; then
	mkdir "$TMP/www"
	for i in 1 2 3; do
		printf '<?php\nfunction page%s() {\n%*susleep(50000); echo "page%s";\n}\npage%s();\n' $i 1 '' $i $i >"$TMP/www/$i.php"
	done
	cat >"$TMP/fpm.conf" <<-EOF
		[global]
		error_log = $TMP/fpm.log
		[www]
		user = 65534
		group = 65534
		listen = $TMP/fpm.sock
		listen.mode = 0666
		pm = static
		pm.max_children = 2
	EOF
	chmod 711 "$TMP" && chmod 755 "$TMP/www"
	"$fpm" -n -F -y "$TMP/fpm.conf" >"$TMP/fpm.out" 2>&1 &
	fpm_pid=$!
	at_exit_kill "$fpm_pid"
	served() {
		[ "$(perl "$DATA/php/request.pl" "$TMP/fpm.sock" "$TMP/www/1.php" 2>/dev/null | tail -c 5)" = page1 ]
	}
	ok "php-fpm answers" until_true served
	# shellcheck disable=SC2046 # a list
	rec_start "$TMP/fpm.cap" -p "$fpm_pid" $(pgrep -P "$fpm_pid" | sed 's/^/-p /')
	for i in 1 2 3 1 2 3; do
		perl "$DATA/php/request.pl" "$TMP/fpm.sock" "$TMP/www/$i.php" >"$TMP/page"
	done
	rec_stop
	kill "$fpm_pid"
	wait "$fpm_pid"
	is "$rc" 0 "php-fpm is recorded"
	scripts "$TMP/fpm.cap" | grep page | sort -u >"$TMP/pages"
	printf 'usleep page%s:3 {main}:5\n' 1 2 3 >"$TMP/want"
	same "$TMP/pages" "$TMP/want" "php-fpm: each request has the functions of its own page"
else
	skip "no php-fpm" 3
fi
unset RUNTIME_PROGRAM

# --- options ---

run timeout -k 5 60 "$BIN/offcpu-record" -q --force --runtimes python -o "$TMP/none.cap" -- "$php" -r 'usleep(100000);'
is "$rc $(waits "$TMP/none.cap" '$n += grep { $_->{runtime} } @{$w->{user_stack}}')" "0 0" "--runtimes python: native frames only"

# --- programs that lie ---

ok "a program that says it is PHP 8.2 is built" "${CC:-cc}" -O1 -rdynamic -fcf-protection=none '-DVERSION="8.2.99"' -o "$TMP/fake" "$DATA/php/fake.c"
ok "and one of a version that does not exist" "${CC:-cc}" -O1 -rdynamic -fcf-protection=none '-DVERSION="9.9.0"' -o "$TMP/future" "$DATA/php/fake.c"
fake "$TMP/fake" none cycle groups wild kernel function opcodes huge long name class line control placeholder
fake "$TMP/future" future
fakes_begun
# shellcheck disable=SC2086 # a list
rec "$TMP/lie.cap" --runtimes php -d 0.3 $fakes
is "$rc" 0 "programs that lie about their frames are recorded"
lied() { # HOW: its functions, with their lines
	seen "$TMP/lie.cap" "$1" 'map { ($_->{function} // "?") . ":" . ($_->{line} // "") } @s'
}
is "$(lied none)" "forged0:10 forged1:11 forged2:12 forged3:13" "a forged PHP that is consistent has its frames"
between "$(lied cycle | wc -w)" 120 127 "a cycle of frames ends at the depth limit of 127"
between "$(lied placeholder | wc -w)" 120 127 "so does one of generators"
is "$(lied groups)" "" "more groups of frames than native frames: none is shown"
ok "and that is counted" test "$(counter "$TMP/lie.cap" scripts.mismatch)" -ge 1
for how in wild kernel function opcodes huge name; do
	is "$(lied $how)" "" "a pointer or length that leads nowhere ($how): no frame is shown"
done
ok "and that is counted" test "$(counter "$TMP/lie.cap" scripts.no_memory)" -ge 6
is "$(lied long)" "forged0:10 ?: forged2:12 forged3:13" "a name that is too long is not readable"
is "$(lied class)" "forged0:10 forged1:11 forged2:12 forged3:13" "a class that cannot be read is none"
is "$(lied line)" "forged0:10 forged1: forged2:12 forged3:13" "an opcode of another function has no line"
"$BIN/symbolize" -q "$TMP/lie.cap" >"$TMP/text" 2>/dev/null
like "$(grep 'not readable' "$TMP/text")" '^	               0 \[php: not readable\] \(\[php\]\)$' "what is not readable is printed as such"
like "$(grep 'php::.x0a' "$TMP/text")" '^	               0 php::\\x0a;{\\x09' "control characters in a name are escaped"
is "$(lied future)" "" "an unknown version: no frames are guessed"
is "$(counter "$TMP/lie.cap" scripts.refused)" 1 "and that is counted"
like "$("$BIN/capinfo" "$TMP/lie.cap")" 'php 9\.9 \(version not known, its functions are not shown\), 1 process' "and the capture says so"
tap_done
