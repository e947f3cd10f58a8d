#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# make STATIC=1: tools that are copied to a machine without libraries, here a root that has only them, /proc and /sys.
# shellcheck disable=SC2016 # the inner shell's
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"

need_bpf
unset MAKEFLAGS MFLAGS MAKELEVEL CI
set -- make -C "$TOP" -s
case $BIN in
"$TOP/bin") ;;
*/san) skip_all "the sanitizers' libraries are shared" ;;
*) set -- "$@" O="$(dirname "$BIN")" ;;
esac
"$@" -q all >/dev/null 2>&1 || skip_all "the tree has changed since it was built"

root=$TMP/root
mkdir -p "$root/bin" "$root/proc" "$root/sys"
tools='offcpu-record symbolize fold bpfcheck'
# shellcheck disable=SC2046,SC2086 # words
status 0 "make STATIC=1 links the objects of the plain build" "$@" STATIC=1 BIN="$root/bin" $(printf "$root/bin/%s " $tools)
is "$(grep -c ' CC \| BPF ' "$out") $(cat "$err")" "0 " "nothing is compiled for it, and the linker warns of nothing"
for tool in $tools; do
	run readelf -hldSW "$root/bin/$tool"
	is "$(grep -cE 'INTERP|\(NEEDED\)|\.symtab|\.debug' "$out")" 0 "$tool names no dynamic linker and no library, and has no symbols"
	is "$(grep -oE '^ *Type: +DYN|FLAGS_1.*|GNU_RELRO|GNU_STACK.* RW ' "$out" | sed 's/0x[^ ]*//g; s/  */ /g' | sort | tr '\n' ',')" \
		" Type: DYN,FLAGS_1) Flags: NOW PIE,GNU_RELRO,GNU_STACK RW ," "$tool is hardened: static PIE, RELRO, no executable stack"
done
ok "the recorder is small enough to copy" [ "$(stat -c %s "$root/bin/offcpu-record")" -lt 8000000 ]

in_root() { # TOOL ARG...
	unshare --mount --propagation slave sh -c '
		mount --bind "$1" "$1" && mount --bind /proc "$1/proc" && mount --rbind /sys "$1/sys" && cd "$1" && shift &&
		exec env -i PATH="$PATH:/usr/sbin" chroot . /bin/"$@"' sh "$root" "$@"
}

# a program without symbols, and one that has some
strip -o "$TMP/stripped" "$OBJ/t/work/steady" || exit 1
mkfifo "$TMP/life" && exec 7<>"$TMP/life"
for program in "$OBJ/t/work/steady" "$TMP/stripped"; do
	"$program" >"$TMP/ready.${program##*/}" <"$TMP/life" 7>&- &
	eval "${program##*/}=$!"
	at_exit_kill $!
	until_true grep -q ready "$TMP/ready.${program##*/}"
done
# shellcheck disable=SC2154 # set by eval
run in_root offcpu-record -p "$steady" -p "$stripped" -d 2 -o /capture
is "$rc $(grep '^  lost: ' "$err")" "0   lost: nothing" "the static recorder records two processes completely"
is "$(cd "$root" && find . -path ./proc -prune -o -path ./sys -prune -o -type f -print | grep -v '^./bin/\|^./var/cache/stacktools/')" ./capture \
	"it wrote its capture, and nothing else but its cache"
exec 7>&-

run in_root symbolize /capture
is "$rc" 0 "the static symbolize reads it, where the programs are not"
mv "$out" "$TMP/text"
for function in in_futex in_sleeps in_poll at_work do_syscall_64 clock_nanosleep; do
	ok "the text has the function $function" grep -qE "^	 *[0-9a-f]* $function\+" "$TMP/text"
done
is "$(grep '^# wait: ' "$TMP/text" | grep -o ' user=.*' | sort -u)" ' user=complete' "every user stack is complete"
"$BIN/symbolize" "$root/capture" >"$TMP/text.linked" 2>&1
is "$(grep -c '[0-9a-f] in_[a-z]*+' "$TMP/text")" "$(grep -c '[0-9a-f] in_[a-z]*+' "$TMP/text.linked")" \
	"it names as many frames of the program as the symbolize with libraries"
in_root fold <"$TMP/text" >"$TMP/folded" 2>"$err"
"$BIN/fold" <"$TMP/text" >"$TMP/folded.linked"
ok "something is folded" test -s "$TMP/folded"
same "$TMP/folded" "$TMP/folded.linked" "the static fold sums it as the other one does"

# what needs shared libraries says so
run env DEBUGINFOD_URLS=http://127.0.0.1:1 "$root/bin/symbolize" -v "$root/capture"
is "$(grep -c 'DEBUGINFOD_URLS is set, but a static program cannot load libdebuginfod.so.1; use a symbolize that is not static' "$err" | sed 's/^[1-9].*/some/')" \
	some "debug servers are not asked, for a reason"
run "$root/bin/symbolize" "$root/capture"
is "$(grep -c 'hint: a server' "$err")" 0 "no server is recommended"
run in_root bpfcheck --json
like "$(cat "$out")" '"static programs ask no debug servers: debug files' "bpfcheck says that servers are not asked"
like "$(in_root bpfcheck)" 'offcpu-record +ready' "bpfcheck in that root finds the recorder ready"

# the names of users are those in /etc/passwd
mkdir "$root/etc" "$root/tmp"
echo 'wilhelmina:x:0:0::/root:/bin/sh' >"$root/etc/passwd"
in_root bpfcheck --bundle /tmp/wilhelmina.tar.gz >"$out" 2>&1
tar -xOf "$root/tmp/wilhelmina.tar.gz" >"$TMP/bundle" 2>/dev/null
is "$(grep -c . "$TMP/bundle" | sed 's/[1-9].*/some/') $(grep -ac wilhelmina "$TMP/bundle")" "some 0" "the name of the user is not in a bundle"

tap_done
