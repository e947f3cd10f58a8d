#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
TOP=$(dirname "$0")/.. exec "${STACKTOOLS_OBJ:-$(dirname "$0")/../obj}/t/unit-btfcheck"
