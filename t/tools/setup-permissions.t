#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# scripts/setup-permissions: which capabilities it gives, to whom, and what it refuses.
# shellcheck disable=SC2016
. "$(dirname "$0")/../lib/tap.sh"

PATH=$PATH:/usr/sbin:/sbin
setup() {
	run timeout 120 sh "$TOP/scripts/setup-permissions" "$@"
}

setup
like "$rc $(cat "$err")" '^64 setup-permissions: what to do' "no action is a usage error"
is "$(wc -l <"$err")" 2 "a usage error prints two lines"
setup --group
is "$rc" 64 "--group without a name is a usage error"
setup --show --remove
is "$rc" 64 "two actions are a usage error"
setup --group 'a;b'
is "$rc" 64 "a group name with shell syntax is a usage error"
setup --frobnicate
is "$rc" 64 "an unknown option is a usage error"
setup --help
like "$rc $(cat "$out")" '^0 usage: ' "--help prints on standard output"
setup --show --bin "$TMP/none"
like "$rc $(cat "$err")" "^2 .*no folder '$TMP/none'" "the message names a missing folder"
mkdir "$TMP/empty"
setup --show --bin "$TMP/empty"
like "$rc $(cat "$err")" "^2 .*no tools in '$TMP/empty'" "the message names a folder without tools"

if [ "$(id -u)" -ne 0 ]; then
	skip "tools get capabilities" "needs root"
	tap_done
	exit
fi

S=$TMP/sbin
install_tools() {
	rm -rf "$S"
	mkdir -m 755 "$S"
	cp "$BIN/offcpu-record" "$BIN/stackmap-test" "$BIN/kallsyms-resolve" "$BIN/fold" "$S"
	# bpfcheck --caps takes seconds of CPU time, and here its result is always the same
	cat >"$S/bpfcheck" <<-END
		#!/bin/sh
		found=$TMP/found\$(printf %s "\$*" | tr -c a-z- _)
		[ -e "\$found" ] || { "$BIN/bpfcheck" "\$@" >"\$found"; echo \$? >"\$found.status"; }
		cat "\$found"
		exit "\$(cat "\$found.status")"
	END
	chown root:root "$S"/*
	chmod 755 "$TMP" "$S" "$S"/*
}
member() {
	setpriv --reuid=65534 --regid=65534 --groups=100 "$@"
}
stranger() {
	setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}
state() {
	(cd "$S" && stat -c '%n %a %U:%G' ./* && getcap ./*)
}

install_tools
state >"$TMP/before"
setup --group no-such-group --bin "$S"
like "$rc $(cat "$err")" "^2 .*no group 'no-such-group'" "the message names a missing group"
like "$(cat "$err")" 'hint: groupadd' "the hint for a missing group is groupadd"
chmod 757 "$S/stackmap-test"
setup --group users --bin "$S"
like "$rc $(cat "$err")" '^2 .*stackmap-test. can be written by its group or by everybody' "a world-writable tool is refused"
chmod 775 "$S/stackmap-test"
setup --group users --bin "$S"
is "$rc" 2 "a group-writable tool is refused"
chmod 755 "$S/stackmap-test"
chmod 777 "$S"
setup --group users --bin "$S"
like "$rc $(cat "$err")" "^2 .*folder '$S' can be written by others" "tools in a folder that others can write to are refused"
chmod 755 "$S"
chown nobody "$S/kallsyms-resolve"
setup --group users --bin "$S"
like "$rc $(cat "$err")" "^2 .*kallsyms-resolve' belongs to nobody" "a tool that does not belong to root is refused"
chown root "$S/kallsyms-resolve"
mv "$S/kallsyms-resolve" "$TMP/kr" && ln -s "$TMP/kr" "$S/kallsyms-resolve"
setup --group users --bin "$S"
like "$rc $(cat "$err")" "^2 .*kallsyms-resolve' is not a regular file" "a tool that is a symbolic link is refused"
rm "$S/kallsyms-resolve" && mv "$TMP/kr" "$S/kallsyms-resolve"
state >"$TMP/after"
same "$TMP/before" "$TMP/after" "a refusal changes nothing"
if unshare -m true 2>/dev/null; then
	run unshare -m sh -c 'mount --bind "$1" "$1" && mount -o remount,bind,nosuid "$1" && sh "$2" --group users --bin "$1"' \
		sh "$S" "$TOP/scripts/setup-permissions"
	like "$rc $(cat "$err")" '^2 .*mounted nosuid' "a file system mounted nosuid is refused"
else
	skip "a file system mounted nosuid is refused" "unshare: not permitted"
fi

setup --group users --bin "$S" --dry-run
is "$rc" 0 "--dry-run exits with status 0"
like "$(cat "$out")" "^setcap cap_[a-z_,]*\+ep $S/offcpu-record" "--dry-run prints the commands"
state >"$TMP/after"
same "$TMP/before" "$TMP/after" "--dry-run changes nothing"

# the capabilities of bpfcheck --caps in the words of setcap, without those that the ptrace rule makes useless
found() { # TOOL
	perl -MCpanel::JSON::XS -0777 -ne '
		($t) = grep { $_->{name} eq "'"$1"'" } @{decode_json($_)->{caps}{tools}};
		print join ",", sort map { lc } grep { !/PTRACE|DAC_READ|SYS_ADMIN|SYS_RESOURCE/ }
			@{$t->{required}}, map { $_->{cap} } @{$t->{useful}};' "$TMP/caps.json"
}
granted() {
	getcap "$S/$1" | sed 's/.* //; s/[+=].*//' | tr , '\n' | sort | paste -sd, -
}
setup --minimal --group users --bin "$S"
is "$(granted offcpu-record)" "cap_bpf,cap_perfmon" "--minimal gives only the required capabilities"
setup --group users --bin "$S"
is "$rc $(cat "$err")" "0 " "--group gives capabilities without a message"
"$S/bpfcheck" --caps --json >"$TMP/caps.json" 2>/dev/null
for tool in offcpu-record stackmap-test kallsyms-resolve; do
	is "$(granted $tool)" "$(found $tool)" "$tool gets exactly the capabilities that bpfcheck --caps lists"
	is "$(stat -c '%a %U:%G' "$S/$tool")" "750 root:users" "$tool is for root and the group only"
	for cap in $(granted $tool | tr 'a-z,' 'A-Z '); do
		like "$(cat "$out")" "^  $cap +[a-z].*" "the output says what $tool does with $cap"
	done
done
is "$(getcap "$S/fold" "$S/bpfcheck")" "" "a tool that needs no capabilities gets none"
like "$(cat "$out")" 'record their own processes' "the output says that members can record their own processes"
setup --show --bin "$S"
like "$rc $(cat "$out")" 'offcpu-record +-rwxr-x--- root:users +CAP_BPF .*CAP_PERFMON' "--show prints mode, owner and capabilities of a tool"
is "$rc" 0 "--show finds nothing wrong"

cd "$TMP" && mkdir -m 777 open
# setpriv keeps the capability to start any file until it execs, so the stranger starts a shell first
run stranger sh -c '"$1" --version' sh "$S/offcpu-record"
is "$rc" 126 "a user outside the group cannot start the recorder"
run member timeout 20 "$S/offcpu-record" -o open/cap.bin -- sleep 0.1
like "$rc $(cat "$err")" '^0 .*' "a member of the group can record"
like "$(cat "$err")" 'user stacks: 100.00 % of' "a member of the group gets complete user stacks"
run member "$S/offcpu-record" -d 0.1 -p $$ -o open/root.bin
like "$rc $(cat "$err")" '^2 offcpu-record: ' "a member of the group cannot record a process of root"
chmod 755 "$S/stackmap-test"
setup --show --bin "$S"
like "$rc $(cat "$err")" '^1 .*stackmap-test. has capabilities and is open to everybody' "--show finds a tool that has been opened to everybody since"

setup --remove --bin "$S"
is "$rc" 0 "--remove exits with status 0"
state >"$TMP/after"
same "$TMP/before" "$TMP/after" "--remove restores modes, owners and capabilities"

setup --sudoers users --bin "$S"
like "$rc $(cat "$out")" "^0 " "--sudoers exits with status 0"
words=$(sed -n 's/^%users ALL=(root) NOPASSWD: [^ ]* \(.*\)$/\1/p' "$out" | sed 's/\\,/,/g')
for line in '-p 1 -d 5 -o -' '-p 4194303 -d 3600 -o -'; do
	like "$line" "$words" "the sudoers line allows $line"
done
for line in '-p 1 -d 5 -o /etc/passwd' '-p 1 -d 5 -o - -- sh' '-a -d 5 -o -' '-p 1 -d 5 -o - --force' '-p 1 -o - -d 5'; do
	ok "the sudoers line does not allow $line" sh -c '! printf "%s\n" "$1" | grep -qE -e "$2"' sh "$line" "$words"
done
if command -v visudo >/dev/null; then
	cp "$out" "$TMP/sudoers" && chmod 440 "$TMP/sudoers"
	status 0 "visudo accepts the sudoers line" visudo -cf "$TMP/sudoers"
else
	skip "visudo accepts the sudoers line" "no visudo"
fi
setup --systemd --bin "$S"
like "$rc $(cat "$out")" '^AmbientCapabilities=.*CAP_BPF' "--systemd prints a unit with ambient capabilities"
is "$(sed -n 's/^AmbientCapabilities=//p' "$out")" "$(sed -n 's/^CapabilityBoundingSet=//p' "$out")" "the bounding set of the unit equals its ambient capabilities"
if command -v systemd-analyze >/dev/null; then
	cp "$out" "$TMP/offcpu-record@.service"
	run systemd-analyze verify "$TMP/offcpu-record@.service"
	is "$rc $(grep -F offcpu-record "$err")" "0 " "systemd-analyze accepts the unit"
else
	skip "systemd-analyze accepts the unit" "no systemd-analyze"
fi
tap_done
