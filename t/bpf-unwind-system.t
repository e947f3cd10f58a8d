#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Programs of the distribution, idle: every thread's user stack is eu-stack's
# and gdb's, frame by frame.
# shellcheck disable=SC2016,SC2154 # Perl's variables; $rc and others of lib.sh
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/rec-lib.sh"
. "$(dirname "$0")/unwind-lib.sh"
need_bpf

python=python3
[ ! -x /usr/bin/python3 ] || python=/usr/bin/python3

# have TEXT PROGRAM: is it here? If not, TEXT is skipped.
have() {
	command -v "$2" >/dev/null && return
	skip "$1" "no $2"
	return 1
}

start bash-read bash -c 'read -r x; echo "$x"'
start bash-wait bash -c 'f() { if [ "$1" -gt 0 ]; then f $(($1 - 1)); else sleep 1000; fi; :; }; f 10; :'
start dash dash -c 'read -r x; echo "$x"'
start python "$python" "$T_DIR/unwind/threads.py"
# shellcheck disable=SC2016 # Perl's
start perl perl -e 'sub r { my $n = shift; return $n ? r($n - 1) + 1 : sleep 1000 } print r(20)'
start perl-sort perl -e 'print sort { sleep 1000; $a <=> $b } map { $_ } 3, 2, 1'
start sqlite3 sqlite3 :memory:
start cat cat
start tail tail -f /dev/null
start sort sort
start cc1 "${CC:-cc}" -x c -c -o /dev/null -
start make make -s -f /dev/fd/0
start gdb gdb -nx -q -batch -ex 'python import time; time.sleep(1000)'
git init -q "$TMP/repo"
start git git -C "$TMP/repo" cat-file --batch

# have() comes after start(): then both say the same of what is missing
redis() {
	have "redis-server" redis-server || return 0
	start_busy redis redis-server --port 0 --unixsocket "$TMP/redis.sock" --save '' --io-threads 2 --dir "$TMP"
	until_true test -S "$TMP/redis.sock"
	redis-cli -s "$TMP/redis.sock" client no-evict off >/dev/null 2>&1
	start redis-cli redis-cli -s "$TMP/redis.sock" blpop nothing 0
}

node_program='
	const { Worker } = require("worker_threads");
	new Worker("setTimeout(() => {}, 1e9)", { eval: true });
	setTimeout(() => {}, 1e9);
'

# A cluster of its own, as an ordinary user.
postgres() {
	pg_bin=$(dirname "$(readlink -f "$(command -v postgres)")" 2>/dev/null)
	for pg_dir in /usr/lib/postgresql/*/bin; do
		[ ! -x "$pg_dir/initdb" ] || pg_bin=$pg_dir
	done
	if [ ! -x "$pg_bin/initdb" ]; then
		skip "postgres" "no postgres"
		return 1
	fi
	pg=$TMP/pg
	chmod 711 "$TMP"
	mkdir "$pg"
	chown nobody "$pg"
	as_nobody "$pg_bin/initdb" -N -A trust -U test -D "$pg/data" >"$pg.log" 2>&1 || return 1
	start_busy postgres setpriv --reuid=nobody --regid=nogroup --clear-groups "$pg_bin/postgres" -D "$pg/data" -k "$pg" \
		-c listen_addresses= -c fsync=off
	until_true as_nobody "$pg_bin/psql" -h "$pg" -U test -c 'create table t (i int)' postgres
	start psql-sleep "$pg_bin/psql" -h "$pg" -U test -c 'select pg_sleep(1000)' postgres
	start psql-idle "$pg_bin/psql" -h "$pg" -U test postgres
	start psql-sorted "$pg_bin/psql" -h "$pg" -U test -c 'select max(pg_sleep(1000)::text) from generate_series(1, 3) i order by 1' postgres
	until_true pg_backends
	for pg_pid in $(pgrep -P "$(pid_of postgres)"); do
		pg_name=postgres-$pg_pid
		ps -o args= "$pg_pid" >"$W/pg.name"
		also "$pg_name" "$pg_pid" "$W/pg.name"
		busy_names="$busy_names $pg_name"
		pg_names="${pg_names-} $pg_name"
	done
}

as_nobody() {
	setpriv --reuid=nobody --regid=nogroup --clear-groups "$@" 7>&-
}

pg_backends() {
	[ "$(pgrep -c -P "$(pid_of postgres)" -a)" -ge 3 ] && [ "$(pgrep -P "$(pid_of postgres)" | xargs ps -o args= | grep -c ' SELECT$')" -ge 2 ] &&
		pgrep -P "$(pid_of postgres)" | xargs ps -o args= | grep -q ' idle$'
}

redis
postgres
if have "node" node; then
	start node node -e "$node_program"
fi
if have "java" java && have "java" keytool; then
	start_busy java keytool -J-Xmx64m -genkeypair -keystore "$TMP/none"
	until_true grep -q : "$W/java.err"
fi

# python3 makes more than 127 frames of forty calls
record_blocked "$TMP/system.cap" --depth 512
agrees "bash in its builtin read" bash-read
agrees "bash waiting for a child, below ten functions" bash-wait
agrees "dash" dash
agrees "python3 below forty calls: sleep, accept, wait, lock and read" python
agrees "perl in sleep, below twenty subs" perl
agrees "perl in a sort's comparison" perl-sort
agrees "sqlite3 waiting for a statement" sqlite3
agrees "cat" cat
agrees "tail -f" tail
agrees "sort" sort
agrees "the compiler's driver" cc1
agrees "make waiting for its makefile" make
agrees "gdb" gdb
agrees "git cat-file --batch" git
for name in redis redis-cli; do
	[ ! -e "$W/$name.pid" ] || agrees "$name" "$name" --busy
done
for name in postgres psql-sleep psql-idle psql-sorted ${pg_names-}; do
	[ ! -e "$W/$name.pid" ] || agrees "postgres: $name, $(tr -d '\n#' <"$W/$name.out")" "$name" --busy
done
[ ! -e "$W/node.pid" ] || agrees "node: main thread, workers and helpers" node --files-only
[ ! -e "$W/java.pid" ] || agrees "java: native threads" java --busy --files-only
agreed
tap_done
