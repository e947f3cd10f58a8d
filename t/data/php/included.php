<?php
/* SPDX-License-Identifier: GPL-2.0-or-later */

usleep(100000 + (int)Ways\Of\say('usleep'));
