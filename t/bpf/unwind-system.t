#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Idle programs of the distribution: the user stack of every thread matches
# eu-stack and gdb, frame by frame.
# shellcheck disable=SC2016,SC2154 # Perl's variables; $rc and others of tap.sh
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
. "$(dirname "$0")/../lib/unwind.sh"
need_bpf

python=python3
[ ! -x /usr/bin/python3 ] || python=/usr/bin/python3

# have TEXT PROGRAM: true if PROGRAM is installed; if not, test TEXT is skipped
have() {
	command -v "$2" >/dev/null && return
	skip "$1" "no $2"
	return 1
}

start bash-read bash -c 'read -r x; echo "$x"'
start bash-wait bash -c 'f() { if [ "$1" -gt 0 ]; then f $(($1 - 1)); else sleep 1000; fi; :; }; f 10; :'
start dash dash -c 'read -r x; echo "$x"'
start python "$python" "$DATA/unwind/threads.py"
# shellcheck disable=SC2016 # Perl's
start perl perl -e 'sub r { my $n = shift; return $n ? r($n - 1) + 1 : sleep 1000 } print r(20)'
start perl-sort perl -e 'print sort { sleep 1000; $a <=> $b } map { $_ } 3, 2, 1'
start sqlite3 sqlite3 :memory:
sqlite3 "$TMP/db" 'create table t (i)'
start sqlite3-holder sqlite3 -cmd 'begin exclusive' "$TMP/db"
# sqlite3-lock retries ten times a second
settled
start_busy sqlite3-lock sqlite3 -cmd '.timeout 1000000' "$TMP/db" 'select * from t'
start cat cat
start tail tail -f /dev/null
start sort sort
start cc1 "${CC:-cc}" -x c -c -o /dev/null -
start make make -s -f /dev/fd/0
start gdb gdb -nx -q -batch -ex 'python import time; time.sleep(1000)'
git init -q "$TMP/repo"
start git git -C "$TMP/repo" cat-file --batch
start git-alias git -c alias.wait='!cat' wait

# programs that may be missing; redis() and postgres() skip their tests then
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

as_nobody() {
	setpriv --reuid=nobody --regid=nogroup --clear-groups "$@" 7>&-
}

# client NAME ARG...: starts psql with ARG (-c SQL), which waits for its results
client() {
	c_name=$1
	shift
	start "$c_name" "$pg_bin/psql" -qX -h "$pg" -U test "$@" postgres
}

# starts its own cluster as an ordinary user
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
		-c listen_addresses= -c fsync=off -c logging_collector=on
	until_true as_nobody "$pg_bin/psql" -qX -h "$pg" -U test -c 'create table t (i int)' postgres >>"$pg.log" 2>&1
	client psql-holder -c 'begin' -c 'lock table t' -c 'select pg_sleep(1000)'
	until_true pg_has ' SELECT$'
	client psql-waiter -c 'table t'
	client psql-idle
	client psql-sorted -c 'select max(pg_sleep(1000)::text) from generate_series(1, 3) i order by 1'
	# the name of the setting up to version 15, and its name since
	client psql-parallel -c 'set force_parallel_mode = on' -c 'set debug_parallel_query = on' \
		-c 'select count(pg_sleep(1000)) from pg_class'
	for pg_title in ' SELECT waiting$' ' idle$' ': parallel worker ' ': logger '; do
		until_true pg_has "$pg_title" || fail "postgres has a process '$pg_title'"
	done
	until_true pg_has ' SELECT$' 3 || fail "postgres has three backends at work"
	for pg_pid in $(pgrep -P "$(pid_of postgres)"); do
		pg_name=postgres-$pg_pid
		# without the PID of the leader in the title of a worker
		ps -o args= "$pg_pid" | sed 's/ for PID.*//; s/ *$//' >"$W/pg.name"
		also "$pg_name" "$pg_pid" "$W/pg.name"
		busy_names="$busy_names $pg_name"
		pg_names="${pg_names-} $pg_name"
	done
}

# pg_has TITLE [N]: true if N processes of the cluster have that title; N is 1 unless given
pg_has() {
	[ "$(pgrep -P "$(pid_of postgres)" | xargs ps -o args= | grep -c "$1")" -ge "${2:-1}" ]
}

redis
postgres
if have "node" node; then
	# busy, since garbage is collected some time later
	start_busy node node -e "$node_program"
fi
if have "java" java && have "java" keytool; then
	start_busy java keytool -J-Xmx64m -genkeypair -keystore "$TMP/none"
	until_true grep -qs : "$W/java.err"
fi

# python3 has more than 127 frames for forty calls
record_blocked "$TMP/system.cap" --depth 512
agrees "bash in its builtin read" bash-read
agrees "bash waiting for a child, below ten functions" bash-wait
agrees "dash in its builtin read" dash
agrees "python3 below forty calls: sleep, accept, wait, lock and read" python
agrees "perl in sleep, below twenty subs" perl
agrees "perl in the comparison of a sort" perl-sort
agrees "sqlite3 waiting for a statement" sqlite3
agrees "sqlite3 waiting for a statement in a transaction" sqlite3-holder
# it sleeps repeatedly, and may be between two sleeps when the recording begins
agrees "sqlite3 waiting for the lock of another process" sqlite3-lock --busy --no-initial
agrees "cat reading a pipe" cat
agrees "tail -f" tail
agrees "sort reading a pipe" sort
agrees "the compiler's driver" cc1
agrees "make waiting for its makefile" make
agrees "gdb in a Python sleep" gdb
agrees "git cat-file --batch" git
agrees "git waiting for its alias" git-alias
for name in redis redis-cli; do
	[ ! -e "$W/$name.pid" ] || agrees "$name" "$name" --busy
done
for name in postgres psql-holder psql-waiter psql-idle psql-sorted psql-parallel; do
	[ ! -e "$W/$name.pid" ] || agrees "postgres: $name" "$name" --busy
done
for name in ${pg_names-}; do
	agrees "$(cat "$W/$name.out")" "$name" --busy
done
[ ! -e "$W/node.pid" ] || agrees "node: main thread, workers and helpers" node --busy --files-only
[ ! -e "$W/java.pid" ] || agrees "java: native threads" java --busy --files-only
agreed
tap_done
