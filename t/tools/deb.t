#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The Debian package: what is in it, and what its installation, upgrade, removal and purge do.
# shellcheck disable=SC2016 # the inner shell's
. "$(dirname "$0")/../lib/tap.sh"

PATH=$PATH:/usr/sbin:/sbin
unset MAKEFLAGS MFLAGS MAKELEVEL
package() {
	run sh "$TOP/scripts/deb" "$@"
}
package -x
is "$rc $(cat "$err")" "64 deb: unknown option '-x'
usage: sh scripts/deb [-r] [-o DIR] [-b OBJ]" "an unknown option is a usage error"
package -o
like "$rc $(head -n 1 "$err")" "^64 deb: option '-o' needs an argument$" "an option without its argument is a usage error"
package word
like "$rc $(head -n 1 "$err")" "^64 deb: unexpected argument 'word'$" "an argument is a usage error"
package -o /dev/null/x
like "$rc $(tail -n 1 "$err")" "^2 deb: cannot make the folder '/dev/null/x'$" "a folder that cannot be made is reported"
package -b "$TMP/none"
like "$rc $(tail -n 2 "$err")" "2 deb: there are no objects in '$TMP/none'
deb: hint: make" "a folder without objects is reported"
mkdir "$TMP/fake"
fake() { # PROGRAM LINE...: of a script by that name
	fake=$TMP/fake/$1
	shift
	printf '%s\n' '#!/bin/sh' "$@" >"$fake"
	chmod +x "$fake"
}
faked() { # OPTION...: of scripts/deb
	run env PATH="$TMP/fake:$PATH" sh "$TOP/scripts/deb" "$@"
}
fake dpkg-checkbuilddeps 'echo "dpkg-checkbuilddeps: error: Unmet build dependencies: clang zlib1g-dev" >&2; exit 1'
faked
is "$rc $(cat "$err")" "2 deb: packages are missing: clang zlib1g-dev
deb: hint: sh scripts/deps deb" "missing packages are reported, with the command that installs them"
rm "$TMP/fake/dpkg-checkbuilddeps"
mkdir "$TMP/few"
for program in sh env dirname mkdir; do
	ln -s "$(command -v $program)" "$TMP/few"
done
run env PATH="$TMP/few" sh "$TOP/scripts/deb"
is "$rc $(cat "$err")" "2 deb: dpkg-buildpackage is not installed
deb: hint: on Debian: sh scripts/deps deb" "another distribution is reported"

is "$(awk -F '[ ,]+' '/^Build-Depends:/ { on = 1 } on { print $2 } !/,$/ { on = 0 }' "$TOP/debian/control" | sort)" \
	"$({
		echo debhelper-compat
		sed -n "s/^build='\(.*\)'$/\1/p" "$TOP/scripts/deps" | tr ' ' '\n' | grep -vxE 'gcc|libc6-dev|make'
	} | sort)" "Build-Depends are the packages of scripts/deps build, without those of build-essential"

# the tested tree may be built in another folder, or with sanitizers
set -- -C "$TOP" O="$(dirname "$BIN")"
case $BIN in
"$TOP/bin") set -- -C "$TOP" ;;
*/san) skip_rest="this tree is built with sanitizers" ;;
esac
for program in dpkg-buildpackage dh lintian; do
	command -v $program >/dev/null || skip_rest="$program is not installed"
done
make -q "$@" tools >/dev/null 2>&1 || skip_rest="the tree has changed since it was built: make first"
if [ -n "${skip_rest-}" ]; then
	skip "the package" "$skip_rest"
	tap_done
	exit
fi

# --- scripts/deb, with builds that are none
fake dh ''
fake dpkg-buildpackage 'echo "no such compiler" >&2; exit 3'
faked
is "$rc $(tail -n 2 "$err")" "2 no such compiler
deb: the build failed, see above" "a build that fails is reported with the end of its log"
fake dpkg-buildpackage 'pwd >../path.deb; umask >../mask.deb; echo same >../same.deb'
mkdir "$TMP/packages"
faked -r -o "$TMP/packages"
like "$rc $(cat "$out" "$err")" "^1 .*/first/mask.deb .*/second/mask.deb differ" "-r reports a package that depends on how it is built"
is "$(ls "$TMP/packages")" "" "and writes none"
fake dpkg-buildpackage 'echo same >../same.deb'
faked -r -o "$TMP/packages"
is "$rc $(cat "$out" "$err") $(cat "$TMP/packages/same.deb")" "0 $TMP/packages/same.deb same" "-r writes a package that does not"

# --- what is in the package
export DEB_BUILD_OPTIONS=noautodbgsym DPKG_DEB_COMPRESSOR_TYPE=gzip DPKG_DEB_COMPRESSOR_LEVEL=1 # in less time
(
	cd "$TOP" && mkdir -p "$TMP/source/tree/t/data" && cp -r Makefile README.md LICENSE debian "$TMP/source/tree" &&
		cp -r t/data/cfi "$TMP/source/tree/t/data" && cd "$TMP/source" && dpkg-source -Zgzip -z1 -b tree
) >"$TMP/source.log" 2>&1
package -b "$OBJ" -o "$TMP/my packages"
deb=$TMP/stacktools.deb
is "$rc $(cat "$out" "$err")" "0 $(ls "$TMP/my packages"/stacktools_*_"$(dpkg --print-architecture)".deb)" "scripts/deb prints the name of the package"
cp "$TMP/my packages"/*.deb "$deb" || {
	tap_done
	exit
}
# in the recorder's compressed programs any three letters may stand together
lintian --allow-root --fail-on error,warning --pedantic -I --suppress-tags spelling-error-in-binary "$deb" "$TMP"/source/*.dsc >"$TMP/lintian" 2>&1 &
lintian=$!
at_exit_kill $lintian

x=$TMP/x root=$TMP/root
dpkg-deb -x "$deb" "$x"
settings='prefix=/usr zshcompdir=/usr/share/zsh/vendor-completions'
# shellcheck disable=SC2086 # words
make -s "$@" DESTDIR="$root" $settings install >/dev/null
files() { # FOLDER TEST...: of find
	(cd "$1" && shift && find . ! -type d "$@" | sed 's/^\.\///; s/\.gz$//' | sort)
}
files "$root" >"$TMP/want"
files "$x" ! -path './usr/share/doc/*' >"$TMP/got"
same "$TMP/got" "$TMP/want" "the package has exactly what make install installs, besides documentation"
is "$(files "$x/usr/share/doc")" "$(cd "$TOP" && {
	printf 'stacktools/%s\n' README.md README.Debian NEWS changelog copyright docs/*.md docs/tutorial/*.svg && cd t &&
		printf 'stacktools/examples/%s\n' tutorial/* work/convoy.c
} | sort)" \
	"and README, NEWS, docs/*.md, the tutorial's pictures and its scripts"
examples=$x/usr/share/doc/stacktools/examples
for script in "$examples"/tutorial/*; do
	[ "${script%.py}" = "$script" ] || continue
	run sh "$script" broken
	is "$rc:$(grep -c '^usage: ' "$err")" 64:1 "the package's ${script##*/} runs"
done
build_id() {
	readelf -n "$1" 2>/dev/null | sed -n 's/^ *Build ID: //p'
}
while read -r file; do
	case $file in
	*/man/*) zcat "$x/$file.gz" | cmp -s - "$root/$file" || echo "$file" ;;
	usr/bin/* | */stacktools/fold)
		id=$(build_id "$x/$file")
		[ -n "$id" ] && [ "$id" = "$(build_id "$root/$file")" ] || echo "$file"
		;;
	*) cmp -s "$x/$file" "$root/$file" || echo "$file" ;;
	esac
done <"$TMP/want" >"$TMP/got"
is "$(cat "$TMP/got")" "" "its files are those of make install, programs by their build IDs"
is "$(dpkg-deb -c "$deb" | awk '{ print $1, $2, ($6 ~ /\/(bin|libexec)\//) ? "program" : "other" }' | sort -u)" \
	"-rw-r--r-- root/root other
-rwxr-xr-x root/root program
drwxr-xr-x root/root other
drwxr-xr-x root/root program
lrwxrwxrwx root/root program" "everything is root's, and nothing is set-user-ID"
is "$(grep -rlF "$TOP/" "$x")" "" "no file says where the package was built"
version=$(dpkg-deb -f "$deb" Version)
is "$(for tool in "$x"/usr/bin/*; do "$tool" --version; done)" \
	"$(for tool in "$x"/usr/bin/*; do echo "${tool##*/} (stacktools) $version"; done)" "the tools run, and have the version of the package"
if command -v mandoc >/dev/null; then
	mkdir "$TMP/pages"
	for page in "$x"/usr/share/man/man*/*.gz; do
		page_name=${page##*/}
		zcat "$page" >"$TMP/pages/${page_name%.gz}"
	done
	is "$(cd "$TMP/pages" && mandoc -T lint -W warning ./* | grep -v 'WARNING: sections out of conventional order: Sh E')" "" \
		"the manual pages have no warnings"
else
	skip "the manual pages have no warnings" "no mandoc"
fi

# --- installation, in a copy of this system that is thrown away
if [ "$(id -u)" -ne 0 ]; then
	skip "the package is installed, upgraded, removed and purged" "needs root"
elif ! unshare --mount true 2>"$TMP/why"; then
	skip "the package is installed, upgraded, removed and purged" "$(head -n 1 "$TMP/why")"
else
	mkdir "$TMP/over"
	mkfifo "$TMP/ready"
	unshare --mount --propagation private sh -c '
		cd "$1" && mount -t tmpfs tmpfs . && cd "$1" && mkdir upper work root packages &&
			mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" overlay root &&
			mkdir -p root/packages && mount --bind packages root/packages &&
			mount --rbind /proc root/proc && mount --rbind /dev root/dev
		echo $? >"$2"
		exec sleep 1000' sh "$TMP/over" "$TMP/ready" 2>"$TMP/why" &
	namespace=$!
	at_exit_kill $namespace
	mounted=$(cat "$TMP/ready")
fi
if [ "${mounted-}" = 0 ]; then
	upper=/proc/$namespace/root$TMP/over/upper
	S=/proc/$namespace/root$TMP/over/root
	inside() {
		nsenter -t "$namespace" -m chroot "$TMP/over/root" env -i PATH="$PATH" HOME=/packages LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
	}
	dpkg_inside() {
		run inside dpkg --no-triggers --force-unsafe-io "$@"
	}
	repack() { # VERSION SED: the package with that version, and its preinst edited
		dpkg-deb -R "$deb" "$TMP/repack" && sed -i "s/^Version: .*/Version: $1/" "$TMP/repack/DEBIAN/control" &&
			sed -i "$2" "$TMP/repack/DEBIAN/preinst" && dpkg-deb -b "$TMP/repack" "$S/packages/$1.deb" >/dev/null
		rm -r "$TMP/repack"
	}
	recorder() { # mode, owner and capabilities
		inside stat -c '%a %U:%G' /usr/bin/offcpu-record
		getcap "$S/usr/bin/offcpu-record" | sed 's/.* //'
	}
	noted=$S/var/lib/misc/stacktools.permissions
	cp "$deb" "$S/packages/1.deb"
	repack 9.1 ''
	repack 9.2 '$a exit 1'

	dpkg_inside -i /packages/1.deb
	is "$rc $(cat "$err")" "0 " "the package is installed"
	like "$(inside getent group stacktools)" '^stacktools:[^:]*:[1-9][0-9]{2}:$' "there is a system group stacktools without members"
	is "$(inside dpkg -L stacktools | while read -r file; do getcap "$S$file"; done)" "" "no program has capabilities"
	is "$(recorder)" "755 root:root" "the recorder is open to everybody"
	! command -v bash >/dev/null || [ ! -e /usr/share/bash-completion/bash_completion ] ||
		is "$(inside bash --norc -c '. /usr/share/bash-completion/bash_completion; _completion_loader oncpu-record; complete -p oncpu-record')" \
			"complete -F _oncpu_record oncpu-record" "bash finds the completions"
	! command -v zsh >/dev/null ||
		is "$(inside zsh -fc 'autoload -U compinit; compinit -u -D; echo $_comps[oncpu-record]')" "_oncpu-record" "zsh finds the completions"
	! command -v fish >/dev/null ||
		is "$(inside fish -c 'complete -C "oncpu-record --pi"' | cut -f 1)" "--pid" "fish finds the completions"

	# as README.Debian says
	zcat -f "$x/usr/share/doc/stacktools/README.Debian"* | sed -n 's/^    \(chgrp\|chmod\|setcap\) /\1 /p' >"$S/packages/by-hand"
	run inside sh -e /packages/by-hand
	is "$rc $(wc -l <"$S/packages/by-hand") $(cat "$err")" "0 3 " "README.Debian has the commands that give the group the recorder"
	granted="750 root:stacktools
cap_perfmon,cap_bpf=ep"
	is "$(recorder)" "$granted" "and they do"
	run inside setpriv --reuid=65534 --regid=65534 --groups=stacktools offcpu-record --version
	is "$rc $(cat "$out")" "0 offcpu-record (stacktools) $version" "a member of the group can start it"
	run inside setpriv --reuid=65534 --regid=65534 --clear-groups sh -c '/usr/bin/offcpu-record --version'
	is "$rc" 126 "another user cannot"
	run inside /usr/libexec/stacktools/setup-permissions --show
	like "$(cat "$out")" '^offcpu-record +-rwxr-x--- root:stacktools +CAP_BPF CAP_PERFMON$' "the installed setup-permissions shows the installed tools"

	dpkg_inside -i /packages/9.1.deb
	is "$rc $(cat "$err")" "0 " "the package is upgraded"
	is "$(recorder)" "$granted" "an upgrade keeps owner, mode and capabilities"
	is "$(grep '^stacktools:' "$out")" "stacktools: /usr/bin/offcpu-record keeps cap_perfmon,cap_bpf=ep, for the group stacktools" "and reports it"
	ok "the note about them is removed" [ ! -e "$noted" ]
	dpkg_inside -i /packages/9.2.deb
	is "$rc $(inside dpkg-query -W -f '${Version} ${db:Status-Status}' stacktools)" "1 9.1 installed" "an upgrade that fails leaves the old package"
	is "$(recorder)" "$granted" "with owner, mode and capabilities"
	ok "and no note" [ ! -e "$noted" ]
	mv "$S/usr/sbin/setcap" "$S/usr/sbin/setcap.away"
	dpkg_inside -i /packages/9.1.deb
	mv "$S/usr/sbin/setcap.away" "$S/usr/sbin/setcap"
	like "$rc $(grep '^stacktools:' "$err")" '^0 stacktools: /usr/bin/offcpu-record has lost cap_perfmon,cap_bpf=ep; see /usr/share/doc/stacktools/README.Debian$' \
		"without setcap an upgrade succeeds, and reports what is lost"
	is "$(recorder)" "750 root:stacktools" "and the recorder stays closed to others"

	run inside sh -e /packages/by-hand
	dpkg_inside -r stacktools
	is "$rc $(cat "$err")" "0 " "the package is removed"
	is "$(sed 's#^#/#' "$TMP/want" | while read -r file; do [ ! -e "$S$file" ] || echo "$file"; done)" "" "and all its files are gone"
	dpkg_inside -i /packages/1.deb
	is "$rc $(cat "$err") $(recorder)" "0  755 root:root" "installed again, with the group still there, the recorder has no capabilities"
	mkdir -p "$S/var/cache/stacktools" && : >"$S/var/cache/stacktools/table"
	dpkg_inside -P stacktools
	is "$rc $(cat "$err")" "0 " "the package is purged"
	is "$(cd "$upper" && find . -type f ! -path './var/lib/dpkg/*' ! -path './var/log/*' ! -path './etc/*' ! -path './run/*' |
		while read -r file; do cmp -s "$file" "/$file" || echo "$file"; done)" "" "no file is left"
	is "$(cd "$upper" && find . -type d ! -path './packages*' | while read -r folder; do [ -d "/$folder" ] || echo "$folder"; done)" "" "nor a folder"
	for file in passwd group; do
		same "$S/etc/$file" "/etc/$file" "/etc/$file is as it was"
	done

	dpkg_inside -i /packages/1.deb
	gid=$(inside getent group stacktools | cut -d: -f3)
	echo "mate:x:64000:$gid::/:/bin/sh" >>"$S/etc/passwd"
	dpkg_inside -P stacktools
	like "$rc $(grep '^stacktools:' "$err")" '^0 stacktools: the group stacktools is still there$' "a purge leaves a group that a user has as the primary one"
	kill "$namespace"
elif [ -n "${mounted-}" ]; then
	skip "the package is installed, upgraded, removed and purged" "no overlay of /: $(head -n 1 "$TMP/why")"
fi

wait $lintian
is "$? $(cat "$TMP/lintian")" "0 " "lintian has nothing to report"
tap_done
