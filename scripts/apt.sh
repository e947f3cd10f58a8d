# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
# shellcheck disable=SC2154 # the script's variables
# Debian's packages of other suites, downloaded without installing anything:
# source this. The script that does has say() and sets
#
#   $apt     a folder for apt's lists and state
#   $suites  the suites to read, of the mirror that apt on this machine uses
#   $ubuntu  suites of Ubuntu to read too, with trixie among $suites: its keyring is
#            a package of Debian's (optional)
#   $architecture  of the packages (optional: amd64)
#
#   run_apt COMMAND ARG...  apt-get or apt-cache with these settings
#   update                  updates the package lists once a day; if the mirror is
#                           unreachable, the previous lists are used, and it fails

apt_options() {
	printf '%s\n' "Dir::Etc::sourcelist=$apt/sources.list" Dir::Etc::sourceparts=- Dir::Etc::preferences=/dev/null \
		Dir::Etc::preferencesparts=/dev/null "Dir::State=$apt" "Dir::State::lists=$apt/lists" "Dir::State::status=$apt/nothing" \
		"Dir::Cache=$apt/cache" Dir::Cache::pkgcache= Dir::Cache::srcpkgcache= Dir::Log=/dev Dir::Log::Terminal= \
		"APT::Architecture=${architecture:-amd64}" "APT::Architectures=${architecture:-amd64}" APT::Sandbox::User=root Acquire::Languages=none \
		Acquire::Retries=1
}

run_apt() { # COMMAND ARG...
	a_command=$1
	shift
	# shellcheck disable=SC2046 # one -o for each; only the name of the cache may contain spaces
	(
		IFS='
'
		"$a_command" $(apt_options | sed 's/^/-o/') "$@"
	)
}

# The mirror that apt on this machine uses for its own suite.
mirror() {
	apt-get --print-uris update 2>/dev/null |
		sed -nE "s/^'(.*)\/dists\/(bullseye|bookworm|trixie)\/InRelease'.*/\1/p" | head -n 1
}

ubuntu_sources() {
	rm -rf "$apt/keyring" && mkdir "$apt/keyring" || return 1
	(
		cd "$apt/keyring" &&
			run_apt apt-get -qq download ubuntu-keyring/trixie &&
			dpkg-deb -x ./*.deb .
	) >"$apt/log" 2>&1 || return 1
	for suite in $ubuntu; do
		echo "deb [signed-by=$apt/keyring/usr/share/keyrings/ubuntu-archive-keyring.gpg] http://archive.ubuntu.com/ubuntu $suite main universe"
	done >>"$apt/sources.list"
	run_apt apt-get -qq --error-on=any update >"$apt/log" 2>&1
}

update() {
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" || exit 2
	: >"$apt/nothing"
	[ -z "$(find "$apt/updated" -mmin -1440 2>/dev/null)" ] || return 0
	a_mirror=$(mirror)
	if [ -z "$a_mirror" ]; then
		say "apt is not configured for a mirror of Debian here"
		return 1
	fi
	for suite in $suites; do
		echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $a_mirror $suite main"
	done >"$apt/sources.list"
	if run_apt apt-get -qq --error-on=any update >"$apt/log" 2>&1 && { [ -z "${ubuntu-}" ] || ubuntu_sources; }; then
		: >"$apt/updated"
		return 0
	fi
	tail -n 3 "$apt/log" >&2
	say "cannot update the lists of packages: going on with what '${apt%/*}' has"
	# try again in an hour
	touch -d '23 hours ago' "$apt/updated"
	return 1
}
