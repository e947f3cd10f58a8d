#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# with stacks of threads that are larger than what the looker may have
# shellcheck disable=SC3045 # not everywhere: then they are as they are
ulimit -s 262144 2>/dev/null
. "$(dirname "$0")/unit.sh"
