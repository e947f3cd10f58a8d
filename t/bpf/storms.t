#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# scripts/soak: a storm of forks for seconds, and that it notices waits that do not add up.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"

need_bpf
run env TMPDIR="$TMP" timeout 120 sh "$TOP/scripts/soak" -d 2 fork
is "$rc" 0 "a recording of the whole machine through a storm of forks is complete enough to be read, and adds up"
like "$(grep '^| fork ' "$out")" '^\| fork \| [1-9][0-9]* \| [1-9][0-9]* \| [1-9][0-9]* \| [0-9.]* % \|.*\| [1-9][0-9]* \| [1-9][0-9]* \| [0-9]+\.[0-9] \| [01] \| ok \|$' \
	"its row has rates, memory and size"
is "$(pgrep -f "$TMP/stacktools-soak" | wc -l)" 0 "the storm has ended"

# a capinfo by which one wait is missing: t/tools/capinfo.t has how it says so
mkdir "$TMP/bin"
ln -s "$BIN"/* "$TMP/bin"
rm "$TMP/bin/capinfo"
# shellcheck disable=SC2016 # the script's
printf '#!/bin/sh\n"%s/capinfo" "$@" | sed -E "s/ waits seen = .*/&: this does not hold/"\n' "$BIN" >"$TMP/bin/capinfo"
chmod +x "$TMP/bin/capinfo"
run env STACKTOOLS_BIN="$TMP/bin" timeout 120 sh "$TOP/scripts/soak" -d 1 fork
like "$rc $(grep '^| fork ' "$out")" '^1 .* NOT: the waits do not add up \|$' "waits that do not add up are reported, and the status is 1"

tap_done
