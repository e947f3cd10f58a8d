# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
# Functions for tests with Go programs: source this after tap.sh.
#
#   build_go NAME SOURCE [FLAG...]	builds t/data/go/SOURCE to $TMP/NAME

command -v go >/dev/null || skip_all "no go"
export GOCACHE="$TMP/go-cache" GOPATH="$TMP/go-path" GO111MODULE=off GOFLAGS=

build_go() {
	g_name=$1
	g_source=$DATA/go/$2
	shift 2
	go build -o "$TMP/$g_name" "$@" "$g_source" >"$TMP/go.log" 2>&1 && return
	diag <"$TMP/go.log"
	return 1
}
