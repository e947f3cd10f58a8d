<?php
/* SPDX-License-Identifier: GPL-2.0-or-later
 * phpstack.php DEPTH: a process that waits as often as possible, DEPTH distinct functions deep, for a minute. */
$depth = (int)$argv[1];
$end = microtime(true) + 60;
$text = '';
for ($i = 1; $i < $depth - 1; $i++)
	$text .= "function f$i() { return f" . ($i + 1) . "(); }\n";
eval($text . "function f$i() { global \$end; while (microtime(true) < \$end) usleep(1); }");
f1();
