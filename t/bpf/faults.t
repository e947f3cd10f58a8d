#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# scripts/faults: some of its rows, and that it notices what is not as it should be.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"

need_bpf
faults() {
	run timeout 300 sh "$TOP/scripts/faults" "$@"
}
verdicts() { # each row's name and verdict
	sed -nE 's/^\| ([^|]*) \|.*\| ([^|]*) \|$/\1: \2/p' "$out" | sed 1d
}

faults "output in " "output is" "disk" "file size" "recorder: SIG" "recorded process" "capture"
is "$(verdicts | grep -v ': ok$')" "" "full disks, signals, and damaged captures are what they should be"
is "$rc $(verdicts | wc -l)" "0 14" "each of these faults has a row, and the status is 0"
like "$(tail -n 1 "$out")" "^14 faults, 14 as it should be; Linux $(uname -r), " "the last line says how many, and where"

# a symbolize that crashes, and a recorder that reports a full disk as success
mkdir "$TMP/bin"
ln -s "$BIN"/* "$TMP/bin"
rm "$TMP/bin/symbolize" "$TMP/bin/offcpu-record"
# shellcheck disable=SC2016 # the scripts'
printf '#!/bin/sh\nkill -SEGV $$\n' >"$TMP/bin/symbolize"
# shellcheck disable=SC2016
printf '#!/bin/sh\n"%s/offcpu-record" "$@"\nexit 0\n' "$BIN" >"$TMP/bin/offcpu-record"
chmod +x "$TMP/bin/symbolize" "$TMP/bin/offcpu-record"
run env STACKTOOLS_BIN="$TMP/bin" timeout 100 sh "$TOP/scripts/faults" "output is" "capture cut"
is "$rc $(verdicts)" "1 output is /dev/full: NOT: status 0, not 2
capture cut at each 1/25: NOT: status symbolize: 139, not 0" "a wrong status and a crash are reported, and the status is 1"
status 64 "a fault that does not exist is a mistake" timeout 100 sh "$TOP/scripts/faults" "no such thing"

tap_done
