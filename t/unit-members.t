#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck disable=SC2034 # read by unit.sh
unit_name="unit-members"
. "$(dirname "$0")/unit.sh"
