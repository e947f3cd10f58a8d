#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
dir=$(dirname "$0")
exec "${STACKTOOLS_OBJ:-$dir/../obj}/t/unit-unwindcomp" "$dir/cfi/corpus"
