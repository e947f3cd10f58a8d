#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# scripts/setup-permissions: what it gives, to whom, and what it refuses to touch.
# shellcheck disable=SC2016
. "$(dirname "$0")/../lib/tap.sh"

PATH=$PATH:/usr/sbin:/sbin
setup() {
	run timeout 120 sh "$TOP/scripts/setup-permissions" "$@"
}

setup
like "$rc $(cat "$err")" '^64 setup-permissions: what to do' "without an action it asks for one"
is "$(wc -l <"$err")" 2 "in two lines"
setup --group
is "$rc" 64 "--group needs a name"
setup --show --remove
is "$rc" 64 "one action at a time"
setup --group 'a;b'
is "$rc" 64 "a name that the shell would understand is no group"
setup --frobnicate
is "$rc" 64 "an unknown option"
setup --help
like "$rc $(cat "$out")" '^0 usage: ' "--help is on standard output"
setup --show --bin "$TMP/none"
like "$rc $(cat "$err")" "^2 .*no folder '$TMP/none'" "a folder that is not there is named"
mkdir "$TMP/empty"
setup --show --bin "$TMP/empty"
like "$rc $(cat "$err")" "^2 .*no tools in '$TMP/empty'" "and one without tools"

if [ "$(id -u)" -ne 0 ]; then
	skip "what it gives" "capabilities are given by root"
	tap_done
	exit
fi

S=$TMP/sbin
install_tools() {
	rm -rf "$S"
	mkdir -m 755 "$S"
	cp "$BIN/bpfcheck" "$BIN/offcpu-record" "$BIN/stackmap-test" "$BIN/kallsyms-resolve" "$BIN/fold" "$S"
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
like "$rc $(cat "$err")" "^2 .*no group 'no-such-group'" "a group that is not there is named"
like "$(cat "$err")" 'hint: groupadd' "with the command that makes it"
chmod 757 "$S/stackmap-test"
setup --group users --bin "$S"
like "$rc $(cat "$err")" '^2 .*stackmap-test. can be written by its group or by everybody' "a world-writable tool is refused"
chmod 775 "$S/stackmap-test"
setup --group users --bin "$S"
is "$rc" 2 "so is one that its group can write"
chmod 755 "$S/stackmap-test"
chmod 777 "$S"
setup --group users --bin "$S"
like "$rc $(cat "$err")" "^2 .*folder '$S' can be written by others" "a folder in which others could replace it"
chmod 755 "$S"
chown nobody "$S/kallsyms-resolve"
setup --group users --bin "$S"
like "$rc $(cat "$err")" "^2 .*kallsyms-resolve' belongs to nobody" "a tool that is not root's"
chown root "$S/kallsyms-resolve"
mv "$S/kallsyms-resolve" "$TMP/kr" && ln -s "$TMP/kr" "$S/kallsyms-resolve"
setup --group users --bin "$S"
like "$rc $(cat "$err")" "^2 .*kallsyms-resolve' is not a regular file" "a link"
rm "$S/kallsyms-resolve" && mv "$TMP/kr" "$S/kallsyms-resolve"
state >"$TMP/after"
same "$TMP/before" "$TMP/after" "after all these refusals nothing has changed"
if unshare -m true 2>/dev/null; then
	run unshare -m sh -c 'mount --bind "$1" "$1" && mount -o remount,bind,nosuid "$1" && sh "$2" --group users --bin "$1"' \
		sh "$S" "$TOP/scripts/setup-permissions"
	like "$rc $(cat "$err")" '^2 .*mounted nosuid' "a file system without capabilities is refused"
else
	skip "a file system without capabilities is refused" "unshare: not permitted"
fi

setup --group users --bin "$S" --dry-run
is "$rc" 0 "--dry-run"
like "$(cat "$out")" "^setcap cap_[a-z_,]*\+ep $S/offcpu-record" "prints the commands"
state >"$TMP/after"
same "$TMP/before" "$TMP/after" "and runs none"

# the capabilities that bpfcheck found, in setcap's words, without those that the ptrace rule makes useless
found() { # TOOL
	perl -MJSON::PP -0777 -ne '
		($t) = grep { $_->{name} eq "'"$1"'" } @{decode_json($_)->{caps}{tools}};
		print join ",", sort map { lc } grep { !/PTRACE|DAC_READ|SYS_ADMIN|SYS_RESOURCE/ }
			@{$t->{required}}, map { $_->{cap} } @{$t->{useful}};' "$TMP/caps.json"
}
granted() {
	getcap "$S/$1" | sed 's/.* //; s/[+=].*//' | tr , '\n' | sort | paste -sd, -
}
setup --minimal --group users --bin "$S"
is "$(granted offcpu-record)" "cap_bpf,cap_perfmon" "--minimal gives only what it cannot do without"
setup --group users --bin "$S"
is "$rc $(cat "$err")" "0 " "the tools get capabilities"
"$S/bpfcheck" --caps --json >"$TMP/caps.json" 2>/dev/null
for tool in offcpu-record stackmap-test kallsyms-resolve; do
	is "$(granted $tool)" "$(found $tool)" "$tool has those that bpfcheck --caps found, and no others"
	is "$(stat -c '%a %U:%G' "$S/$tool")" "750 root:users" "$tool is for the group alone"
	for cap in $(granted $tool | tr 'a-z,' 'A-Z '); do
		like "$(cat "$out")" "^  $cap +[a-z].*" "what $tool does with $cap is said"
	done
done
is "$(getcap "$S/fold" "$S/bpfcheck")" "" "what needs none has none"
like "$(cat "$out")" 'record their own processes' "the limit is reported"
setup --show --bin "$S"
like "$rc $(cat "$out")" 'offcpu-record +-rwxr-x--- root:users +CAP_BPF .*CAP_PERFMON' "--show shows it"
is "$rc" 0 "and finds nothing wrong"

cd "$TMP" && mkdir -m 777 open
# setpriv itself keeps the capability to start anything until it execs
run stranger sh -c '"$1" --version' sh "$S/offcpu-record"
is "$rc" 126 "who is not in the group cannot start it"
run member timeout 20 "$S/offcpu-record" -o open/cap.bin -- sleep 0.1
like "$rc $(cat "$err")" '^0 .*' "a member records"
like "$(cat "$err")" 'user stacks: 100.00 % of' "with whole stacks"
run member "$S/offcpu-record" -d 0.1 -p $$ -o open/root.bin
like "$rc $(cat "$err")" '^2 offcpu-record: ' "root's processes stay closed to members"
chmod 755 "$S/stackmap-test"
setup --show --bin "$S"
like "$rc $(cat "$err")" '^1 .*stackmap-test. has capabilities and is open to everybody' "--show finds a tool that was opened since"

setup --remove --bin "$S"
is "$rc" 0 "--remove"
state >"$TMP/after"
same "$TMP/before" "$TMP/after" "leaves everything as it was before"

setup --sudoers users --bin "$S"
like "$rc $(cat "$out")" "^0 " "a line for sudo"
words=$(sed -n 's/^%users ALL=(root) NOPASSWD: [^ ]* \(.*\)$/\1/p' "$out" | sed 's/\\,/,/g')
for line in '-p 1 -d 5 -o -' '-p 4194303 -d 3600 -o -'; do
	like "$line" "$words" "it allows $line"
done
for line in '-p 1 -d 5 -o /etc/passwd' '-p 1 -d 5 -o - -- sh' '-a -d 5 -o -' '-p 1 -d 5 -o - --force' '-p 1 -o - -d 5'; do
	ok "but not $line" sh -c '! printf "%s\n" "$1" | grep -qE -e "$2"' sh "$line" "$words"
done
if command -v visudo >/dev/null; then
	cp "$out" "$TMP/sudoers" && chmod 440 "$TMP/sudoers"
	status 0 "visudo finds it right" visudo -cf "$TMP/sudoers"
else
	skip "visudo finds it right" "no visudo"
fi
setup --systemd --bin "$S"
like "$rc $(cat "$out")" '^AmbientCapabilities=.*CAP_BPF' "a unit for systemd has ambient capabilities"
is "$(sed -n 's/^AmbientCapabilities=//p' "$out")" "$(sed -n 's/^CapabilityBoundingSet=//p' "$out")" "and can get no others"
if command -v systemd-analyze >/dev/null; then
	cp "$out" "$TMP/offcpu-record@.service"
	run systemd-analyze verify "$TMP/offcpu-record@.service"
	is "$rc $(grep -F offcpu-record "$err")" "0 " "systemd-analyze finds it right"
else
	skip "systemd-analyze finds it right" "no systemd-analyze"
fi
tap_done
