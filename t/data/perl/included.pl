# SPDX-License-Identifier: GPL-2.0-or-later

Time::HiRes::usleep(100000 + main::say_where());
1;
