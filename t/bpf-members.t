#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
exec "${STACKTOOLS_OBJ:-$(dirname "$0")/../obj}/t/unit-members"
