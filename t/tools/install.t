#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# make install: which file is installed where.
. "$(dirname "$0")/../lib/tap.sh"

if ! command -v make >/dev/null || ! command -v cc >/dev/null; then
	skip_all "make or cc is not installed"
fi
# the tested tree may be built in another folder, or with sanitizers
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
status 0 "make install with DESTDIR and prefix succeeds" make "$@" DESTDIR="$root" prefix=/opt/st install
tools=$(cd "$TOP/tools" && for f in *.c; do echo "${f%.c}"; done | sort)
want=$(printf '%s\n' "$tools" | sed 's/^fold$/stackfold/' | sort)
is "$(cd "$root/opt/st/bin" && find . -type f | sed 's/^\.\///' | sort)" "$want" \
	"every tool is installed in bin, fold as stackfold"
is "$(cd "$root/opt/st/bin" && readlink oncpu-record)" offcpu-record "oncpu-record is another name of offcpu-record"
is "$("$root/opt/st/bin/oncpu-record" --version | cut -d' ' -f1)" oncpu-record "and uses it"
ok "bin has no fold, which would shadow fold(1)" [ ! -e "$root/opt/st/bin/fold" ]
is "$(cd "$root/opt/st/libexec" && find . -type f | sort)" "./stacktools/fold
./stacktools/setup-permissions" "libexec/stacktools has only fold, under its own name, and setup-permissions"
same "$root/opt/st/bin/stackfold" "$root/opt/st/libexec/stacktools/fold" "stackfold and libexec/stacktools/fold are the same program"
is "$(printf 'abc\n' | PATH="$root/opt/st/libexec/stacktools:$PATH" fold --version | cut -d' ' -f1)" fold \
	"fold is the one of stacktools if libexec/stacktools is first in PATH"

run "$root/opt/st/libexec/stacktools/setup-permissions" --show
is "$rc $(cut -d ' ' -f 1 "$out" | tr '\n' ' ')" "0 offcpu-record stackmap-test kallsyms-resolve " "the installed setup-permissions is for the tools beside it"
"$root/opt/st/libexec/stacktools/setup-permissions" --help >"$TMP/help"
"$root/opt/st/libexec/stacktools/setup-permissions" --nope 2>>"$TMP/help"
is "$(sed -n 's/^\(usage: [^ ]*\) .*/\1/p' "$TMP/help" | sort -u)" "usage: $root/opt/st/libexec/stacktools/setup-permissions" \
	"and calls itself as it was called"

is "$(printf 'abc\n' | "$root/opt/st/bin/stackfold" --version | cut -d' ' -f1)" stackfold "stackfold --version prints the name stackfold"
is "$("$root/opt/st/bin/stackfold" --nonsense 2>&1 | grep -oE '^(usage: )?stackfold:? ' | tr -d '\n')" "stackfold: usage: stackfold " \
	"error messages of stackfold use the name stackfold"
if command -v mandoc >/dev/null; then
	page=$(mandoc -T utf8 "$root/opt/st/share/man/man1/stackfold.1" | col -b)
	like "$page" '^STACKFOLD\(1\)' "the manual page of stackfold uses the name stackfold"
	is "$(printf '%s\n' "$page" | grep '| fold ')" "" "examples in the manual page of stackfold use the name stackfold"
	is "$(for page in "$root"/opt/st/share/man/man*/*; do mandoc -T utf8 "$page" | tail -n 1 | sed 's/  .*//'; done | sort -u)" \
		"stacktools $("$root/opt/st/bin/capinfo" --version | cut -d' ' -f3)" "each manual page has the version in its footer"
else
	skip "the manual page of stackfold uses the name stackfold" "no mandoc"
	skip "examples in the manual page of stackfold use the name stackfold" "no mandoc"
	skip "each manual page has the version in its footer" "no mandoc"
fi

for tool in $tools; do
	page=$tool.1
	[ "$tool" != fold ] || page=stackfold.1
	ok "the manual page of $tool is in man1" [ -s "$root/opt/st/share/man/man1/$page" ]
done
ok "no manual page shadows that of fold(1)" [ ! -e "$root/opt/st/share/man/man1/fold.1" ]
ok "stacktools(7) is in man7" [ -s "$root/opt/st/share/man/man7/stacktools.7" ]
ok "capture(5) is in man5" [ -s "$root/opt/st/share/man/man5/capture.5" ]
for tool in $want oncpu-record; do
	ok "the completion of $tool is installed for bash" grep -q "^complete -F .* $tool$" "$root/opt/st/share/bash-completion/completions/$tool"
	is "$(head -n 1 "$root/opt/st/share/zsh/site-functions/_$tool")" "#compdef $tool" "the completion of each tool is installed for zsh"
	ok "the completion of each tool is installed for fish" grep -q "^complete -c $tool -s h -l help " "$root/opt/st/share/fish/vendor_completions.d/$tool.fish"
done
is "$(find "$root/opt/st/share" -type f ! -path '*/man/*' | wc -l)" $((3 * ($(echo "$want" | wc -l) + 1))) "share has only manual pages and completions"
is "$("$root/opt/st/bin/stackfold" --version | cut -d ' ' -f 1)" stackfold "the first word of stackfold --version is stackfold"
run "$root/opt/st/bin/stackfold" --nope
like "$(cat "$err")" '^usage: stackfold .*see stackfold --help' "a usage error of stackfold refers to stackfold --help"
is "$(find "$root" -type f ! -path '*/share/*' ! -perm 755)" "" "programs have mode 755"
is "$(find "$root" -type f -path '*/share/*' ! -perm 644)" "" "manual pages and completions have mode 644"

status 0 "make install accepts a variable for each folder" make "$@" DESTDIR="$TMP/two" \
	bindir=/b libexecdir=/l mandir=/m bashcompdir=/cb zshcompdir=/cz fishcompdir=/cf install
ok "make install uses bindir" [ -e "$TMP/two/b/stackfold" ]
ok "make install uses libexecdir" [ -e "$TMP/two/l/stacktools/fold" ]
ok "make install uses mandir" [ -e "$TMP/two/m/man7/stacktools.7" ]
for file in cb/stackfold cz/_stackfold cf/stackfold.fish; do
	ok "make install uses the folders for completions: $file" [ -e "$TMP/two/$file" ]
done
ok "with all folders set nothing is installed in /usr" [ ! -e "$TMP/two/usr" ]

: >"$root/opt/st/bin/theirs"
: >"$root/opt/st/libexec/stacktools/theirs"
status 0 "make uninstall accepts the same settings" make "$@" DESTDIR="$root" prefix=/opt/st uninstall
is "$(cd "$root" && find . -type f | sort)" "$(printf '%s\n' ./opt/st/bin/theirs ./opt/st/libexec/stacktools/theirs)" \
	"make uninstall removes exactly what make install installed"
rm "$root/opt/st/libexec/stacktools/theirs"
status 0 "make uninstall succeeds if nothing is left" make "$@" DESTDIR="$root" prefix=/opt/st uninstall
ok "make uninstall removes its own folder if that is empty" [ ! -e "$root/opt/st/libexec/stacktools" ]

# Names that the shell would take apart, beside files of others
strange="$TMP/it's \"a\" & more; or less"
status 0 "make install accepts any characters in the names of folders" make "$@" DESTDIR="$strange" prefix="/opt/our tools" install
is "$(cd "$strange/opt/our tools" && find . ! -type d | sort)" "$(cd "$TMP/two" && find . ! -type d | sed \
	's#^./b/#./bin/#; s#^./l/#./libexec/#; s#^./m/#./share/man/#; s#^./cb/#./share/bash-completion/completions/#; s#^./cz/#./share/zsh/site-functions/#; s#^./cf/#./share/fish/vendor_completions.d/#' | sort)" \
	"it installs the same files there"
(cd "$strange/opt/our tools" && find . -type d ! -name stacktools -exec touch {}/theirs \;)
status 0 "so does make uninstall" make "$@" DESTDIR="$strange" prefix="/opt/our tools" uninstall
is "$(find "$strange" ! -type d ! -name theirs) $(find "$strange" -name stacktools)" " " "make uninstall leaves nothing there"
is "$(find "$strange" -name theirs | wc -l)" "$(($(find "$strange/opt/our tools" -type d | wc -l)))" "but what it did not install"
status 0 "make uninstall needs no compiler" make "$@" CC="$TMP/no-cc" DESTDIR="$TMP/two" \
	bindir=/b libexecdir=/l mandir=/m bashcompdir=/cb zshcompdir=/cz fishcompdir=/cf uninstall
is "$(find "$TMP/two" ! -type d)" "" "and removes all tools then, too"

tap_done
