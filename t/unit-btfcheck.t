#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
TOP=$(dirname "$0")/..
export TOP
. "$(dirname "$0")/unit.sh"
