# SPDX-License-Identifier: GPL-2.0-or-later
# Included by ways.rb.
def included; sleep 0.1 + say('sleep'); end

included
