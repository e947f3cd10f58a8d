# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
# What t/unit-NAME.t does: it becomes the program made of t/unit-NAME.c (or of unit_name, where that is set), with
# the arguments that it has set.

unit=${STACKTOOLS_OBJ:-$(dirname "$0")/../obj}/t/${unit_name:-$(basename "$0" .t)}
if ! [ -x "$unit" ]; then
	echo "Bail out!  '$unit' is not built: run make first"
	exit 1
fi
exec "$unit" "$@"
