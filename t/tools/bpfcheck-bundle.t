#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# bpfcheck --bundle: what the bundle holds, what it must not hold, and that --root reads it.
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
is "$rc $(cat "$err")" "0 " "--bundle writes a bundle and prints no message"
is "$(stat -c %a b.tar)" 600 "the bundle is readable by its owner only"
is "$(tar -tf b.tar | grep -vc '^bpfcheck-bundle/')" 0 "every entry of the bundle is in one folder"
tar -tf b.tar | sed 's/^bpfcheck-bundle.//' | grep -v '^CONTENTS$' | sort >is
awk '!/left out:/ { print $1 }' "$out" | sort >listed
same listed is "the bundle has exactly the files that bpfcheck listed"
same "$out" bpfcheck-bundle/CONTENTS "CONTENTS in the bundle is the printed list"
ok "no file is left out because a rule for it is missing" sh -c '! grep "no rule says" "$1"' sh "$out"
run timeout 60 "$B" --root bpfcheck-bundle --json
ok "an unpacked bundle works as a tree for --root" [ "$rc" -le 1 ]
checks() { # results of the checks that only read, and do not probe
	perl -MCpanel::JSON::XS -0777 -ne '
		print map { "$_->{id} $_->{status}\n" } grep { $_->{group} =~ /^(kernel|configuration|BTF|sysctls|symbols)$/ }
			grep { $_->{id} !~ /debuginfod|debug_files|vmlinux/ } @{decode_json($_)->{checks}}' "$1" | sort
}
checks "$out" >there
"$B" --json >live.json
checks live.json >here
same here there "checks of the unpacked bundle give the same results as on the machine"
perl -MCpanel::JSON::XS -0777 -ne 'decode_json($_)' bpfcheck-bundle/bpfcheck.json
is "$?" 0 "bpfcheck.json in the bundle is valid JSON"
like "$(cat bpfcheck-bundle/bpfcheck.txt)" '^kernel +ok' "bpfcheck.txt in the bundle has the output of -v"

# nothing secret, on a machine that has secrets
like "$(cat bpfcheck-bundle/proc/kallsyms)" '^(0{16}|ffffffff81000000) T _stext$' "kallsyms in the bundle has no kernel address"
ok "cmdline in the bundle has no root=, console= or password parameter" sh -c '! grep -qE "root=|console=|luks|password" bpfcheck-bundle/proc/cmdline'
ok "the mount list in the bundle has no disk file systems" sh -c '! grep -qE " (ext4|xfs|nfs4?|cifs|fuse[^ ]*|overlay) " bpfcheck-bundle/proc/self/mounts'
ok "status in the bundle has no process name, PID or groups" sh -c '! grep -qE "^(Name|Pid|PPid|Groups)" bpfcheck-bundle/proc/self/status'
bundle env SUDO_USER=mallory7 HOME=/srv/people/mallory7 DEBUGINFOD_URLS='https://mallory7:s3cr3t@symbols.example/' "$B"
ok "no password of a server is in the bundle" sh -c '! grep -ra s3cr3t bpfcheck-bundle'
ok "no user name is in the bundle" sh -c '! grep -ra mallory7 bpfcheck-bundle'
host=$(uname -n)
if [ ${#host} -gt 4 ] && [ "$host" != localhost ]; then
	ok "no name of the machine" sh -c '! grep -rawF -e "$1" bpfcheck-bundle --include="bpfcheck*" --include=CONTENTS' sh "$host"
else
	skip "no name of the machine" "it is called '$host'"
fi
ok "no container ID is in the bundle" sh -c '! find bpfcheck-bundle | grep -E "[/-][0-9a-f]{12,}" | grep -vE "0{12,}"'

# errors
: >there.tar
run "$B" --bundle there.tar
like "$rc $(cat "$err")" "^2 bpfcheck: cannot create 'there.tar': File exists" "--bundle does not overwrite an existing file"
is "$(wc -c <there.tar)" 0 "the existing file is unchanged"
ln -s nowhere link
run "$B" --bundle link
is "$rc$(ls nowhere 2>/dev/null)" 2 "--bundle does not follow a symbolic link"
run "$B" --bundle no/such/b.tar
like "$rc $(cat "$err")" "^2 .*cannot create 'no/such/b.tar': No such file" "the message names a missing folder"
run sh -c '"$1" --bundle - >/dev/full' sh "$B"
like "$rc $(cat "$err")" '^2 .*cannot write the bundle.*No space left' "--bundle reports a full disk"
"$B" --bundle - >piped.tar 2>"$err"
is "$? $(tar -tf piped.tar | head -n 1)" "0 bpfcheck-bundle/bpfcheck.json" "--bundle - writes the bundle to standard output"
like "$(cat "$err")" '^bpfcheck.json ' "with --bundle - the list goes to standard error"
if command -v script >/dev/null; then
	script -qec "$B --bundle -" /dev/null >tty.out 2>&1
	like "$? $(cat tty.out)" 'not written to a terminal' "--bundle - does not write to a terminal"
else
	skip "--bundle - does not write to a terminal" "no script(1)"
fi
mkdir small && if mount -t tmpfs -o size=64k none small 2>/dev/null; then
	run "$B" --bundle small/b.tar
	like "$rc $(cat "$err")" '^2 .*No space left' "a disk that fills up is reported"
	ok "an incomplete bundle is removed" [ ! -e small/b.tar ]
	umount small
else
	skip "a disk that fills up is reported" "cannot mount a tmpfs"
fi
for with in --json --caps '--root /' -v; do
	# shellcheck disable=SC2086 # words
	run "$B" --bundle x.tar $with
	is "$rc" 64 "--bundle cannot be combined with $with"
done
tap_done
