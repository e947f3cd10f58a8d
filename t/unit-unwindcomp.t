#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
set -- "$(dirname "$0")/cfi/corpus"
. "$(dirname "$0")/unit.sh"
