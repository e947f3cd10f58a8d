#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# bpfcheck --bundle: what is in it, what is not, and that it serves.
# shellcheck disable=SC2016
. "$(dirname "$0")/../lib/tap.sh"

B=$BIN/bpfcheck
cd "$TMP" || exit 1
bundle() {
	rm -rf b.tar bpfcheck-bundle
	run timeout 60 "$@" --bundle b.tar
	tar -xf b.tar
}

bundle "$B"
is "$rc $(cat "$err")" "0 " "a bundle is written"
is "$(stat -c %a b.tar)" 600 "for its owner alone"
is "$(tar -tf b.tar | grep -vc '^bpfcheck-bundle/')" 0 "everything is in one folder"
tar -tf b.tar | sed 's/^bpfcheck-bundle.//' | grep -v '^CONTENTS$' | sort >is
awk '!/left out:/ { print $1 }' "$out" | sort >told
same told is "what is in it is what it listed"
same "$out" bpfcheck-bundle/CONTENTS "the list is in it too"
ok "nothing was left out for want of a rule" sh -c '! grep "no rule says" "$1"' sh "$out"
run timeout 60 "$B" --root bpfcheck-bundle --json
ok "unpacked, it is a tree for --root" [ "$rc" -le 1 ]
checks() { # what reading says, without what trying says
	perl -MJSON::PP -0777 -ne '
		print map { "$_->{id} $_->{status}\n" } grep { $_->{group} =~ /^(kernel|configuration|BTF|sysctls|symbols)$/ }
			grep { $_->{id} !~ /debuginfod|debug_files|vmlinux/ } @{decode_json($_)->{checks}}' "$1" | sort
}
checks "$out" >there
"$B" --json >live.json
checks live.json >here
same here there "and its checks come out as they did on the machine"
perl -MJSON::PP -0777 -ne 'decode_json($_)' bpfcheck-bundle/bpfcheck.json
is "$?" 0 "it holds what --json prints"
like "$(cat bpfcheck-bundle/bpfcheck.txt)" '^kernel +ok' "and what -v prints"

# secrets: of a machine that has some
like "$(cat bpfcheck-bundle/proc/kallsyms)" '^(0{16}|ffffffff81000000) T _stext$' "no address of the kernel is in it"
ok "nor what else is on the command line" sh -c '! grep -qE "root=|console=|luks|password" bpfcheck-bundle/proc/cmdline'
ok "nor mounts of disks" sh -c '! grep -qE " (ext4|xfs|nfs4?|cifs|fuse[^ ]*|overlay) " bpfcheck-bundle/proc/self/mounts'
ok "nor the name of the process or its neighbours" sh -c '! grep -qE "^(Name|Pid|PPid|Groups)" bpfcheck-bundle/proc/self/status'
bundle env SUDO_USER=mallory7 HOME=/srv/people/mallory7 DEBUGINFOD_URLS='https://mallory7:s3cr3t@symbols.example/' "$B"
ok "no password of a server" sh -c '! grep -ra s3cr3t bpfcheck-bundle'
ok "no name of a user" sh -c '! grep -ra mallory7 bpfcheck-bundle'
host=$(uname -n)
if [ ${#host} -gt 4 ] && [ "$host" != localhost ]; then
	ok "no name of the machine" sh -c '! grep -rawF -e "$1" bpfcheck-bundle --include="bpfcheck*" --include=CONTENTS' sh "$host"
else
	skip "no name of the machine" "it is called '$host'"
fi
ok "no id of a container" sh -c '! find bpfcheck-bundle | grep -E "[/-][0-9a-f]{12,}" | grep -vE "0{12,}"'

# what can go wrong
: >there.tar
run "$B" --bundle there.tar
like "$rc $(cat "$err")" "^2 bpfcheck: cannot create 'there.tar': File exists" "a file that is there is not written over"
is "$(wc -c <there.tar)" 0 "and stays as it was"
ln -s nowhere link
run "$B" --bundle link
is "$rc$(ls nowhere 2>/dev/null)" 2 "a link is not followed"
run "$B" --bundle no/such/b.tar
like "$rc $(cat "$err")" "^2 .*cannot create 'no/such/b.tar': No such file" "a folder that is not there is named"
run sh -c '"$1" --bundle - >/dev/full' sh "$B"
like "$rc $(cat "$err")" '^2 .*cannot write the bundle.*No space left' "a full disk is reported"
"$B" --bundle - >piped.tar 2>"$err"
is "$? $(tar -tf piped.tar | head -n 1)" "0 bpfcheck-bundle/bpfcheck.json" "- is standard output"
like "$(cat "$err")" '^bpfcheck.json ' "the list is on standard error then"
if command -v script >/dev/null; then
	script -qec "$B --bundle -" /dev/null >tty.out 2>&1
	like "$? $(cat tty.out)" 'not written to a terminal' "a terminal gets none"
else
	skip "a terminal gets none" "no script(1)"
fi
mkdir small && if mount -t tmpfs -o size=64k none small 2>/dev/null; then
	run "$B" --bundle small/b.tar
	like "$rc $(cat "$err")" '^2 .*No space left' "a disk that gets full is reported"
	ok "and half a bundle is taken away again" [ ! -e small/b.tar ]
	umount small
else
	skip "a disk that gets full is reported" "no mount"
fi
for with in --json --caps '--root /' -v; do
	# shellcheck disable=SC2086 # words
	run "$B" --bundle x.tar $with
	is "$rc" 64 "--bundle goes alone, not with $with"
done
tap_done
