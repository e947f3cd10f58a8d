#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck disable=SC2154,SC2016 # $out, $err and $rc come from tap.sh; sh -c expands its own
# The search for debug files: each place, with the right file and with wrong ones, compared with gdb.
. "$(dirname "$0")/../lib/tap.sh"

unit=$OBJ/t/unit/debugfile
CC=${CC:-cc}
unset DEBUGINFOD_URLS DEBUGINFOD_PROGRESS DEBUGINFOD_VERBOSE DEBUGINFOD_TIMEOUT
export DEBUGINFOD_CACHE_PATH="$TMP/cache"

command -v "$CC" >/dev/null || skip_all "no C compiler for the test programs"
have_gdb=
command -v gdb >/dev/null && gdb -nx -batch -ex 'python print(1)' 2>/dev/null | grep -qx 1 && have_gdb=1

mkdir "$TMP/made"
cd "$TMP/made" || exit 1
cat >prog.c <<'C'
struct shared { int a, b; char c[40]; };
struct other { struct shared s; struct other *next; };
static inline int inner(struct other *o) { return o->s.a * (int)KIND; }
int work(struct other *o) { return inner(o) + (o->next ? work(o->next) : 0); }
int main(void) { struct other o = { { 1, 2, "" }, 0 }; return work(&o); }
C
# shellcheck disable=SC2015 # intended: skip if any command fails
"$CC" -O1 -g -gdwarf-4 -DKIND=1 -Wl,--build-id=sha1 -o full prog.c &&
	"$CC" -O1 -g -gdwarf-4 -DKIND=2 -Wl,--build-id=sha1 -o other prog.c &&
	"$CC" -O1 -g -gdwarf-4 -DKIND=1 -Wl,--build-id=none -o bare prog.c &&
	objcopy --only-keep-debug full full.debug &&
	objcopy --only-keep-debug other other.debug &&
	objcopy --only-keep-debug bare bare.debug || skip_all "the test programs do not build"

id_of() {
	readelf -n "$1" | sed -n 's/.*Build ID: *//p'
}

# id_path ID: the path of a build ID below a debug directory
id_path() {
	echo "$1" | sed 's|^\(..\)\(.*\)$|.build-id/\1/\2.debug|'
}

id=$(id_of full)
ids=$(id_path "$id")

# value LABEL: prints a value of the last run
value() {
	sed -n "s/^$1=//p" "$out"
}

# tree FULL DEBUG [OBJCOPY-FLAGS...]: makes a new tree at $w. bin/prog is FULL, stripped, with a debug link
# to prog.debug, which has the contents of DEBUG.
tree() { # FULL DEBUG [OBJCOPY-FLAGS...]
	t_full=$1
	t_debug=$2
	shift 2
	n_trees=$((${n_trees:-0} + 1))
	w=$TMP/w$n_trees
	mkdir -p "$w/bin" "$w/dbg"
	objcopy "$@" "$t_debug" "$w/prog.debug"
	strip -o "$w/bin/prog" "$t_full"
	(cd "$w" && objcopy --add-gnu-debuglink=prog.debug bin/prog)
}

# put PLACE: moves the debug file of the tree to PLACE and sets $at to its path
put() {
	case $1 in
	build-id) at=$w/dbg/$ids ;;
	beside) at=$w/bin/prog.debug ;;
	dot-debug) at=$w/bin/.debug/prog.debug ;;
	debug-dir) at=$w/dbg$w/bin/prog.debug ;;
	esac
	mkdir -p "$(dirname "$at")"
	mv "$w/prog.debug" "$at"
}

find_debug() { # [ARGUMENTS...] FILE
	run timeout 20 "$unit" --find "$@"
}

# gdb_finds PROG DIR: prints the debug file that gdb reads for PROG with the debug directory DIR
gdb_finds() {
	gdb -nx -batch -iex "set debug-file-directory $2" -iex 'set debuginfod enabled off' \
		-ex 'python print("\n".join(["=" + o.filename for o in gdb.objfiles() if o.owner]))' "$1" 2>/dev/null |
		sed -n 's/^=//p'
}

as_gdb() { # NAME: gdb finds the debug file of the last run
	if [ "$have_gdb" ]; then
		is "$(gdb_finds "$w/bin/prog" "$w/dbg")" "$(value debug)" "$1: gdb agrees"
	else
		skip "$1: gdb agrees" "no gdb with Python"
	fi
}

# --- the right file at each place, as gdb finds it ---

for place in build-id beside dot-debug debug-dir; do
	for kind in full bare; do
		[ "$place$kind" != build-idbare ] || continue
		tree $kind $kind.debug
		put $place
		find_debug -d "$w/dbg" "$w/bin/prog"
		is "$(value debug)" "$at" "$kind, $place: the debug file is found"
		is "$(value where)$(value missed)" "$at" "$kind, $place: the path is reported, and no complaint"
		as_gdb "$kind, $place"
	done
done

tree full full.debug --compress-debug-sections=zlib
put dot-debug
find_debug -d "$w/dbg" "$w/bin/prog"
is "$(value debug)" "$at" "a compressed debug file is found"
if command -v eu-strip >/dev/null; then
	tree full full.debug
	rm "$w/prog.debug"
	(cd "$w/bin" && eu-strip -f prog.debug -o prog "$TMP/made/full")
	find_debug "$w/bin/prog"
	is "$(value debug)" "$w/bin/prog.debug" "a debug file made by eu-strip is found"
	as_gdb "eu-strip"
else
	skip "a debug file made by eu-strip is found" "no eu-strip"
fi

tree full full.debug
put beside
mkdir "$w/links"
ln -s ../bin/prog "$w/links/prog"
find_debug "$w/links/prog"
is "$(value debug)" "$w/bin/prog.debug" "a program that is a link: the debug file beside its target is found"
tree full full.debug
put debug-dir
ln -s bin "$w/sbin"
find_debug -d "$w/dbg" "$w/sbin/prog"
is "$(value debug)" "$at" "a program in a linked directory: the debug file of its real path is found"
as_gdb "a program in a linked directory"

tree full full.debug
put beside
mkdir -p "$w/first" "$w/dbg/$(dirname "$ids")"
cp "$at" "$w/dbg/$ids"
find_debug -d "$w/first" -d "$w/dbg" "$w/bin/prog"
is "$(value debug)" "$w/dbg/$ids" "the build ID is preferred to the debug link, and each --debug-dir is searched"
as_gdb "build ID and debug link"

find_debug "$TMP/made/full"
is "$(value debug)$(value missed)" "" "a file with its own debug information gets no other"

# --- files in the right place that must not be used ---

for place in beside dot-debug debug-dir; do
	for kind in full bare; do
		tree $kind $kind.debug
		put $place
		printf x >>"$at"
		find_debug -d "$w/dbg" "$w/bin/prog"
		is "$(value debug)" "" "$kind, $place: a file with another CRC is not used"
		like "$(value missed)" "^'$at' has CRC [0-9a-f]{8} instead of [0-9a-f]{8}$" "$kind, $place: another CRC is reported"
		as_gdb "$kind, $place, another CRC"
	done
	tree full other.debug
	put $place
	find_debug -d "$w/dbg" "$w/bin/prog"
	is "$(value debug)" "" "$place: a file with another build ID is not used, though its CRC matches"
	like "$(value missed)" "^'$at' has build ID $(id_of other) instead of $id$" "$place: another build ID is reported"
	tree full bare.debug
	put $place
	find_debug -d "$w/dbg" "$w/bin/prog"
	like "$(value debug)$(value missed)" "^'$at' has no build ID" "$place: a file without a build ID is not used"
done
tree full other.debug
put build-id
find_debug -d "$w/dbg" "$w/bin/prog"
like "$(value debug)$(value missed)" "^'$at' has build ID" "a file stored under a wrong build ID is not used"
as_gdb "a file stored under a wrong build ID"

tree full full.debug
put dot-debug
mkdir -p "$w/dbg/$(dirname "$ids")"
cp "$TMP/made/other.debug" "$w/dbg/$ids"
find_debug -d "$w/dbg" "$w/bin/prog"
is "$(value debug)$(value missed)" "$at" "after a wrong file the search finds the right one"

tree full full.debug
cp "$w/bin/prog" "$w/copy"
mkdir -p "$w/dbg/$(dirname "$ids")"
mv "$w/copy" "$w/dbg/$ids"
find_debug -d "$w/dbg" "$w/bin/prog"
like "$(value debug)$(value missed)" "holds neither" "a copy of the stripped program is not a debug file"
tree full full.debug
mkdir -p "$w/dbg/$(dirname "$ids")"
ln "$w/bin/prog" "$w/dbg/$ids"
find_debug -d "$w/dbg" "$w/bin/prog"
is "$(value debug)$(value missed)" "" "the stripped program itself is not a debug file"

# spoil WHAT: replaces $at by something that must neither be used nor block
spoil() {
	rm -f "$at"
	case $1 in
	loop) ln -s "$(basename "$at")" "$at" ;;
	FIFO) mkfifo "$at" ;;
	directory) mkdir "$at" ;;
	device) ln -s /dev/zero "$at" ;;
	text) echo "no ELF file" >"$at" ;;
	empty) : >"$at" ;;
	cut) head -c 3000 "$TMP/made/full.debug" >"$at" ;;
	dangling) ln -s nowhere "$at" ;;
	esac
}

for place in build-id beside dot-debug debug-dir; do
	for what in loop FIFO directory device text empty cut dangling; do
		tree full full.debug
		put $place
		spoil $what
		find_debug -d "$w/dbg" "$w/bin/prog"
		is "$rc:$(value debug)" "0:" "$place: not used as a debug file: $what"
		case $what in
		dangling) is "$(value missed)" "" "$place: a $what link is ignored without a message" ;;
		*) like "$(value missed)" "^'$at' " "$place: reported as unusable: $what" ;;
		esac
	done
done

# --- under a --symfs ---

debug=usr/lib/debug
tree full full.debug
mkdir -p "$w/$debug/$(dirname "$ids")" "$w/store"
cp "$w/prog.debug" "$w/$debug/$ids"
find_debug -s "$w" /bin/prog
is "$(value debug)" "$w/$debug/$ids" "symfs: a debug file is found by build ID below /usr/lib/debug"
is "$(value where)" "$w/$debug/$ids" "symfs: the path of the debug file is reported as one of this machine"
rm "$w/$debug/$ids"
mkdir -p "$w/$debug/bin"
cp "$w/prog.debug" "$w/$debug/bin/"
find_debug -s "$w" /bin/prog
is "$(value debug)" "$w/$debug/bin/prog.debug" "symfs: a debug file is found by debug link below /usr/lib/debug"
rm "$w/$debug/bin/prog.debug"
cp "$w/prog.debug" "$w/bin/"
find_debug -s "$w" /bin/prog
is "$(value debug)" "$w/bin/prog.debug" "symfs: a debug file is found beside the program"
rm "$w/bin/prog.debug"
ln -s /bin "$w/sbin"
mkdir -p "$w/bin/.debug"
cp "$w/prog.debug" "$w/bin/.debug/"
find_debug -s "$w" /sbin/prog
is "$(value debug)" "$w/bin/.debug/prog.debug" "symfs: an absolute link to a directory is resolved inside the symfs"
rm "$w/bin/.debug/prog.debug"

cp "$w/prog.debug" "$w/store/"
ln -s /store/prog.debug "$w/$debug/$ids"
find_debug -s "$w" /bin/prog
is "$(value debug)" "$w/store/prog.debug" "symfs: an absolute link to a debug file is resolved inside the symfs"
rm "$w/store/prog.debug"

# a valid debug file outside the symfs, with a link to it in every place
cp "$w/prog.debug" "$TMP/outside.debug"
up=../../../../../../../../../../..
for to in "$TMP/outside.debug" "$up$TMP/outside.debug" "/proc/self/root$TMP/outside.debug"; do
	rm -f "$w/$debug/$ids"
	for at in "$w/$debug/$ids" "$w/bin/prog.debug" "$w/bin/.debug/prog.debug" "$w/$debug/bin/prog.debug"; do
		ln -sf "$to" "$at"
	done
	find_debug -s "$w" /bin/prog
	is "$(value debug)$(value missed)" "" "symfs: links to ${to%"$TMP"*}... do not leave the symfs"
done
rm -rf "${w:?}/$debug/.build-id" "$w/bin/.debug"
mkdir -p "$TMP/outdir/$(dirname "$ids")"
cp "$w/prog.debug" "$TMP/outdir/$ids"
ln -s "$TMP/outdir/.build-id" "$w/$debug/.build-id"
find_debug -s "$w" /bin/prog
is "$(value debug)$(value missed)" "" "symfs: a link to a directory does not leave the symfs"
rm "$w/$debug/.build-id"
mkdir -p "$w/$debug/$(dirname "$ids")"
mkfifo "$w/$debug/$ids"
find_debug -s "$w" /bin/prog
like "$rc:$(value debug)$(value missed)" "^0:'$w/$debug/$ids' is not a regular" "symfs: a FIFO does not block"
mkdir -p "$TMP/own/$(dirname "$ids")"
cp "$w/prog.debug" "$TMP/own/$ids"
find_debug -s "$w" -d "$TMP/own" /bin/prog
is "$(value debug)" "$TMP/own/$ids" "a --debug-dir of this machine is used together with a symfs"

# --- alternate files ---

# alternate NAME: makes an alternate file with dwz; the programs refer to it by NAME
alternate() {
	tree full full.debug
	cp "$TMP/made/full" "$w/a"
	cp "$TMP/made/other" "$w/b"
	dwz -m "$w/alt" -M "$1" "$w/a" "$w/b" 2>/dev/null && [ -s "$w/alt" ] || return 1
	objcopy --only-keep-debug "$w/a" "$w/prog.debug"
	strip -o "$w/bin/prog" "$w/a"
}

# gdb_misses_alt PROG: counts gdb's complaints about a missing alternate file
gdb_misses_alt() {
	gdb -nx -batch -iex "set debug-file-directory $w/dbg" -iex 'set debuginfod enabled off' \
		-ex 'info line work' "$1" 2>&1 | grep -c 'debugaltlink'
}

if command -v dwz >/dev/null && alternate ../../../.dwz/alt; then
	put build-id
	find_debug -d "$w/dbg" "$w/bin/prog"
	is "$(value debug)" "$at" "a debug file is used even if its alternate file is missing"
	like "$(value alt)$(value missed)" "^alternate file '../../../.dwz/alt' is not there" "a missing alternate file is reported"
	[ -z "$have_gdb" ] || is "$(gdb_misses_alt "$w/bin/prog")" 1 "gdb misses the alternate file too"
	mkdir "$w/.dwz"
	mv "$w/alt" "$w/.dwz/alt"
	find_debug -d "$w/dbg" "$w/bin/prog"
	is "$(value alt)$(value missed)" "$w/.dwz/alt" "a relative name of an alternate file starts at the debug file"
	[ -z "$have_gdb" ] || is "$(gdb_misses_alt "$w/bin/prog")" 0 "gdb finds the alternate file by its relative name too"
	mkdir "$w/real"
	mv "$at" "$w/real/prog.debug"
	ln -s "$w/real/prog.debug" "$at"
	mkdir -p "$w/x/y"
	mv "$w/.dwz" "$TMP/.dwz"
	mv "$w/real" "$w/x/y/real"
	ln -sf "$w/x/y/real/prog.debug" "$at"
	mv "$TMP/.dwz" "$w/.dwz"
	find_debug -d "$w/dbg" "$w/bin/prog"
	is "$(value alt)" "$w/.dwz/alt" "a relative name of an alternate file starts at the real path of the debug file"
	cp "$TMP/made/other.debug" "$w/.dwz/alt"
	find_debug -d "$w/dbg" "$w/bin/prog"
	like "$(value alt)$(value missed)" "^alternate file: '.*/.dwz/alt' has build ID" "an alternate file with another build ID is not used"

	alternate "$TMP/named.alt"
	put build-id
	cp "$w/alt" "$TMP/named.alt"
	find_debug -d "$w/dbg" "$w/bin/prog"
	is "$(value alt)" "$TMP/named.alt" "an alternate file is found by its absolute name"
	rm "$TMP/named.alt"
	alt_at=$w/dbg/$(id_path "$(id_of "$w/alt")")
	mkdir -p "$(dirname "$alt_at")"
	cp "$w/alt" "$alt_at"
	find_debug -d "$w/dbg" "$w/bin/prog"
	is "$(value alt)" "$alt_at" "an alternate is found by its build ID"
	[ -z "$have_gdb" ] || is "$(gdb_misses_alt "$w/bin/prog")" 0 "gdb finds the alternate file by its build ID too"

	alternate /usr/lib/debug/.dwz/no-such-host/alt
	put build-id
	mkdir -p "$w/dbg/.dwz/no-such-host"
	cp "$w/alt" "$w/dbg/.dwz/no-such-host/alt"
	find_debug -d "$w/dbg" "$w/bin/prog"
	is "$(value alt)" "$w/dbg/.dwz/no-such-host/alt" "an alternate file below /usr/lib/debug is searched for below each --debug-dir too"
	find_debug "$w/a"
	like "$(value debug):$(value missed)" "^:alternate file" "a file with its own debug information has alternate files too"
	mkdir -p "$w/usr/lib/debug/.dwz/no-such-host"
	cp "$w/alt" "$w/usr/lib/debug/.dwz/no-such-host/alt"
	find_debug -s "$w" /a
	is "$(value alt)" "$w/usr/lib/debug/.dwz/no-such-host/alt" "symfs: an alternate file is searched for inside the symfs"
else
	skip "alternate files are found" "dwz is missing or makes no alternate file"
fi

# --- MiniDebugInfo, made as distributions make it ---

# functions of an ELF file, from eu-readelf
functions() {
	eu-readelf "$@" | awk '$4 == "FUNC" && $2 !~ /^0*$/ { print $NF }' | sort -u
}

if command -v xz >/dev/null && command -v eu-readelf >/dev/null; then
	mkdir "$TMP/mini"
	cd "$TMP/mini" || exit 1
	nm -D "$TMP/made/full" --format=posix --defined-only | awk '{ print $1 }' | sort >dynamic
	nm "$TMP/made/full" --format=posix --defined-only | awk '$2 == "T" || $2 == "t" { print $1 }' | sort >all
	comm -13 dynamic all >kept
	objcopy --only-keep-debug "$TMP/made/full" debug
	objcopy -S --remove-section .comment --keep-symbols=kept debug inside 2>/dev/null
	xz -k inside
	strip -o packed "$TMP/made/full"
	objcopy --add-section .gnu_debugdata=inside.xz packed
	run timeout 20 "$unit" --mini packed
	same "$out" inside "the file in .gnu_debugdata is unpacked unchanged"
	functions -s "$out" >ours
	functions -s --elf-section=.gnu_debugdata packed >theirs
	same ours theirs "the functions in .gnu_debugdata are those that eu-readelf finds"
	ok "work() is a function in .gnu_debugdata" grep -qx work ours
	head -c 300 inside.xz >cut.xz
	strip -o cut "$TMP/made/full"
	objcopy --add-section .gnu_debugdata=cut.xz cut
	status 2 "a truncated .gnu_debugdata is refused" timeout 20 "$unit" --mini cut
	like "$(cat "$err")" "its .gnu_debugdata: is cut" "a truncated .gnu_debugdata is reported"
	strip -o alien "$TMP/made/other"
	objcopy --add-section .gnu_debugdata=inside.xz alien
	status 2 "the .gnu_debugdata of another program is not used" timeout 20 "$unit" --mini alien
	like "$(cat "$err")" "its .gnu_debugdata: .*build ID differs" "the .gnu_debugdata of another program is reported"
else
	skip ".gnu_debugdata is unpacked" "no xz or no eu-readelf"
fi

# --- split debug information ---

mkdir "$TMP/split"
cd "$TMP/split" || exit 1
if "$CC" -O1 -g -gdwarf-4 -gsplit-dwarf -DKIND=1 -c "$TMP/made/prog.c" -o p.o && "$CC" -o p p.o && [ -e p.dwo ]; then
	run timeout 20 "$unit" --dwo "$TMP/split/p" "$TMP/split/p.dwo"
	is "$(value dwo)" "$TMP/split/p.dwo" "a .dwo is found by its absolute path"
	run timeout 20 "$unit" --dwo "$TMP/split/p" p.dwo
	is "$(value dwo)" "$TMP/split/p.dwo" "a .dwo is found by a relative path"
	run timeout 20 "$unit" --dwo "$TMP/split/p" /no/such/directory/p.dwo
	is "$(value dwo)" "$TMP/split/p.dwo" "a .dwo is found beside the program if its recorded directory is missing"
	run timeout 20 "$unit" --dwo -s "$TMP/split" /p /p.dwo
	is "$(value dwo)" "$TMP/split/p.dwo" "a .dwo is found inside a symfs"
	run timeout 20 "$unit" --dwo "$TMP/split/p" q.dwo
	is "$(value dwo):$(value missed)" ":'q.dwo' is not there" "a missing .dwo is reported"
	mkfifo f.dwo
	run timeout 20 "$unit" --dwo "$TMP/split/p" f.dwo
	like "$rc:$(value dwo)$(value missed)" "^0:.*is not a regular file" "a FIFO in place of a .dwo does not block"
	if command -v dwp >/dev/null && dwp -e p -o p.dwp 2>/dev/null; then
		find_debug "$TMP/split/p"
		is "$(value dwp)" "$TMP/split/p.dwp" "a .dwp package is found beside the program"
		ln -s p link
		find_debug "$TMP/split/link"
		is "$(value dwp)" "$TMP/split/p.dwp" "a .dwp package is found beside the target of a link to the program"
		cp "$TMP/made/full.debug" p.dwp
		find_debug "$TMP/split/p"
		like "$(value dwp)$(value missed)" "is not a package" "a .dwp that is not a package is not used"
	else
		skip "a .dwp package is found beside the program" "no dwp"
	fi
else
	skip "split debug information is found" "the compiler makes none"
fi

# --- servers ---

cd "$TMP/made" || exit 1

# port_of FILE: waits for a server to write its port to FILE, and prints it
port_of() {
	t_tries=0
	while [ ! -s "$1" ] && [ $t_tries -lt 600 ]; do
		sleep 0.1
		t_tries=$((t_tries + 1))
	done
	cat "$1"
}

# serve HOW: starts a server on this machine that behaves like HOW; sets $url
serve() {
	rm -f "$TMP/port"
	python3 "$DATA/symbols/server.py" "$1" "$TMP/made/other.debug" >"$TMP/port" 2>/dev/null &
	at_exit_kill $!
	url=http://127.0.0.1:$(port_of "$TMP/port")/
}

# search sets it: seconds that the search took
took=0
search() { # SECONDS
	rm -rf "$TMP/cache"
	t_from=$(date +%s)
	DEBUGINFOD_URLS=$url find_debug -u "$1" "$w/bin/prog"
	took=$(($(date +%s) - t_from))
}

has_lib=
ldconfig -p 2>/dev/null | grep -q 'libdebuginfod\.so\.1' && has_lib=1
tree full full.debug
mkdir "$w/served"
cp "$w/prog.debug" "$w/served/prog.debug"
rm "$w/prog.debug"
if [ "$has_lib" ] && command -v debuginfod >/dev/null && command -v python3 >/dev/null; then
	port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
	debuginfod -p "$port" -d "$TMP/index" -t 1 -F "$w/served" >"$TMP/server.log" 2>&1 </dev/null &
	at_exit_kill $!
	url=http://127.0.0.1:$port
	tries=0
	while search 60 && [ -z "$(value debug)" ] && [ $tries -lt 40 ]; do
		tries=$((tries + 1))
		sleep 0.5
	done
	same "$(value debug)" "$w/served/prog.debug" "a debug file is fetched from a server"
	is "$(DEBUGINFOD_URLS=$url debuginfod-find debuginfo "$id")" "$(value debug)" "the debug file is the one that debuginfod-find fetches"
	DEBUGINFOD_URLS=$url find_debug "$w/bin/prog"
	is "$(value debug)" "" "no server is queried unless the caller requests it"
	DEBUGINFOD_URLS=http://127.0.0.1:1 find_debug -u 60 "$w/bin/prog"
	is "$(basename "$(value debug)")" debuginfo "a fetched file is kept and used while the server is down"
	main=$(nm "$TMP/made/full" | awk '$3 == "main" { print $1 }')
	"$OBJ/t/unit/resolve" --make "$TMP/served.cap" "$w/bin/prog" "$w/bin/prog" a "" "$main"
	like "$(DEBUGINFOD_URLS=$url "$BIN/symbolize" -q --format=json "$TMP/served.cap")" \
		'"symbol":"main".*"file":"[^"]+","line":[0-9]+.*"source":"dwarf"' "symbolize uses names and lines from a server"
	is "$(DEBUGINFOD_URLS='' "$BIN/symbolize" -q --format=json "$TMP/served.cap" | grep -c '"source":"dwarf"')" 0 \
		"symbolize queries no server without DEBUGINFOD_URLS"
else
	skip "a debug file is fetched from a server" "no debuginfod"
fi
if [ "$has_lib" ] && command -v python3 >/dev/null; then
	serve liar
	search 60
	like "$(value debug)$(value missed)" "has build ID $(id_of "$TMP/made/other") instead" "a server's file with another build ID is not used"
	serve garbage
	search 60
	like "$(value debug)$(value missed)" "is not an ELF file" "a server's file that is not ELF is not used"
	serve deaf
	search 1
	like "$(value debug)$(value missed)" "no server of DEBUGINFOD_URLS gave it within 1 s" "a server that hangs is reported"
	ok "a server that hangs costs no more than the time limit ($took s)" test "$took" -le 15
	"$OBJ/t/unit/resolve" --make "$TMP/deaf.cap" "$w/bin/prog" "$w/bin/prog" a "" 1000
	DEBUGINFOD_URLS=$url DEBUGINFOD_TIMEOUT=3 script -qec "'$BIN/symbolize' --no-cache '$TMP/deaf.cap' >'$TMP/deaf.text'" \
		/dev/null </dev/null >"$TMP/terminal" 2>&1
	like "$(tr '\r' '\n' <"$TMP/terminal")" '^symbolize: debug file of .*MiB' "symbolize shows on a terminal which file it waits for"
	ok "symbolize prints stacks even if the server hangs" grep -q 'offcpu-time' "$TMP/deaf.text"
	DEBUGINFOD_URLS=$url DEBUGINFOD_TIMEOUT=2 "$BIN/symbolize" -q --no-cache "$TMP/deaf.cap" >"$TMP/deaf.text" 2>"$TMP/terminal"
	is "$(cat "$TMP/terminal")" "" "symbolize shows no progress if stderr is not a terminal"
	serve dribble
	search 1
	like "$(value debug)$(value missed)" "no server of DEBUGINFOD_URLS gave it within 1 s" "a server that sends a byte now and then is reported"
	ok "a server that sends slowly costs little more than the time limit ($took s)" test "$took" -le 15
	export DEBUGINFOD_RETRY_LIMIT=1
	search 1
	like "$(value debug)$(value missed)" "gave it within 1 s|began to send it and broke off" "a slow server is reported also if the request is repeated"
	unset DEBUGINFOD_RETRY_LIMIT
	serve none
	search 60
	is "$(value debug)$(value missed)" "" "a server that lacks the file is not reported"
	url=http://127.0.0.1:1
	search 60
	like "$(value debug)$(value missed)" "DEBUGINFOD_URLS cannot be queried: Connection refused" "a server that is down is reported"
else
	skip "servers that misbehave are reported" "no libdebuginfod or no python3"
fi
if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
	export ASAN_OPTIONS=detect_leaks=0 # leak detection does not work under strace
	strace -f -e trace=socket,connect,clone,fork,vfork,clone3 -o "$TMP/trace" "$unit" --find -u 5 "$w/bin/prog" >/dev/null
	is "$(grep -cE 'socket|connect|clone|fork' "$TMP/trace")" 0 "without DEBUGINFOD_URLS no socket and no process is created"
	DEBUGINFOD_URLS=http://127.0.0.1:1 strace -f -e trace=socket,connect,clone,fork,vfork,clone3 -o "$TMP/trace" \
		"$unit" --find -u 5 "$w/bin/prog" >/dev/null
	like "$(cat "$TMP/trace")" 'clone|fork' "with DEBUGINFOD_URLS a process is created"
else
	skip "without DEBUGINFOD_URLS no socket and no process is created" "no strace"
fi

tap_done
