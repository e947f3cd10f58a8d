#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# make install: what ends up where.
. "$(dirname "$0")/../lib/tap.sh"

if ! command -v make >/dev/null || ! command -v cc >/dev/null; then
	skip_all "make or cc is not installed"
fi
# the tree that is tested may have been built elsewhere, or with sanitizers
set -- -C "$TOP" O="$(dirname "$BIN")"
case $BIN in
"$TOP/bin") set -- -C "$TOP" ;;
*/san) set -- -C "$TOP" SAN=1 ;;
esac
unset MAKEFLAGS MFLAGS MAKELEVEL
if ! make -q "$@" tools >/dev/null 2>&1; then
	skip_all "the tree has changed since it was built: make first"
fi

root=$TMP/root
status 0 "make install with DESTDIR and prefix" make "$@" DESTDIR="$root" prefix=/opt/st install
tools=$(cd "$TOP/tools" && for f in *.c; do echo "${f%.c}"; done | sort)
want=$(printf '%s\n' "$tools" | sed 's/^fold$/stackfold/' | sort)
is "$(cd "$root/opt/st/bin" && find . -type f | sed 's/^\.\///' | sort)" "$want" \
	"every tool is in bin, fold as stackfold"
ok "no fold in bin shadows fold(1)" [ ! -e "$root/opt/st/bin/fold" ]
is "$(cd "$root/opt/st/libexec" && find . -type f)" "./stacktools/fold" \
	"libexec/stacktools has fold under its own name, and nothing else"
same "$root/opt/st/bin/stackfold" "$root/opt/st/libexec/stacktools/fold" "both are the same program"
is "$(printf 'abc\n' | PATH="$root/opt/st/libexec/stacktools:$PATH" fold --version | cut -d' ' -f1)" fold \
	"with that folder first in PATH, fold is ours"

is "$(printf 'abc\n' | "$root/opt/st/bin/stackfold" --version | cut -d' ' -f1)" stackfold "stackfold calls itself so"
is "$("$root/opt/st/bin/stackfold" --nonsense 2>&1 | grep -oE '^(usage: )?stackfold:? ' | tr -d '\n')" "stackfold: usage: stackfold " \
	"in its messages, too"
if command -v mandoc >/dev/null; then
	page=$(mandoc -T utf8 "$root/opt/st/share/man/man1/stackfold.1" | col -b)
	like "$page" '^STACKFOLD\(1\)' "and so does its page"
	is "$(printf '%s\n' "$page" | grep '| fold ')" "" "and its examples"
	is "$(for page in "$root"/opt/st/share/man/man*/*; do mandoc -T utf8 "$page" | tail -n 1 | sed 's/  .*//'; done | sort -u)" \
		"stacktools $("$root/opt/st/bin/capinfo" --version | cut -d' ' -f3)" "each page has the version at its foot"
else
	skip "and so does its page" "no mandoc"
	skip "and its examples" "no mandoc"
	skip "each page has the version at its foot" "no mandoc"
fi

for tool in $tools; do
	page=$tool.1
	[ "$tool" != fold ] || page=stackfold.1
	ok "the manual page of $tool is in man1" [ -s "$root/opt/st/share/man/man1/$page" ]
done
ok "no page of fold shadows that of fold(1)" [ ! -e "$root/opt/st/share/man/man1/fold.1" ]
ok "the pipelines are in man7" [ -s "$root/opt/st/share/man/man7/stacktools.7" ]
ok "the capture is in man5" [ -s "$root/opt/st/share/man/man5/capture.5" ]
for tool in $want; do
	ok "what completes $tool is where bash looks" grep -q "^complete -F .* $tool$" "$root/opt/st/share/bash-completion/completions/$tool"
	is "$(head -n 1 "$root/opt/st/share/zsh/site-functions/_$tool")" "#compdef $tool" "and where zsh does"
	ok "and where fish does" grep -q "^complete -c $tool -s h -l help " "$root/opt/st/share/fish/vendor_completions.d/$tool.fish"
done
is "$(find "$root/opt/st/share" -type f ! -path '*/man/*' | wc -l)" $((3 * $(echo "$want" | wc -l))) "and nothing else is in share"
is "$("$root/opt/st/bin/stackfold" --version | cut -d ' ' -f 1)" stackfold "stackfold calls itself stackfold"
run "$root/opt/st/bin/stackfold" --nope
like "$(cat "$err")" '^usage: stackfold .*see stackfold --help' "and points to its own help"
is "$(find "$root" -type f -path '*/bin/*' ! -perm 755)" "" "programs have mode 755"
is "$(find "$root" -type f -path '*/share/*' ! -perm 644)" "" "pages and completions have mode 644"

status 0 "each folder can be chosen" make "$@" DESTDIR="$TMP/two" \
	bindir=/b libexecdir=/l mandir=/m bashcompdir=/cb zshcompdir=/cz fishcompdir=/cf install
ok "and are used" [ -e "$TMP/two/b/stackfold" ]
ok "and are used for libexec" [ -e "$TMP/two/l/stacktools/fold" ]
ok "and are used for pages" [ -e "$TMP/two/m/man7/stacktools.7" ]
for file in cb/stackfold cz/_stackfold cf/stackfold.fish; do
	ok "and are used for completions: $file" [ -e "$TMP/two/$file" ]
done
ok "nothing goes to the default prefix then" [ ! -e "$TMP/two/usr" ]

: >"$root/opt/st/bin/theirs"
: >"$root/opt/st/libexec/stacktools/theirs"
status 0 "make uninstall takes the same settings" make "$@" DESTDIR="$root" prefix=/opt/st uninstall
is "$(cd "$root" && find . -type f | sort)" "$(printf '%s\n' ./opt/st/bin/theirs ./opt/st/libexec/stacktools/theirs)" \
	"and removes what install put there, and nothing else"
rm "$root/opt/st/libexec/stacktools/theirs"
status 0 "make uninstall where nothing is left" make "$@" DESTDIR="$root" prefix=/opt/st uninstall
ok "its own folder goes with the last file" [ ! -e "$root/opt/st/libexec/stacktools" ]

tap_done
