<?php
/* SPDX-License-Identifier: GPL-2.0-or-later
 * Functions that are made and freed at a high rate, for $argv[2] seconds: file N of the folder $argv[1] has
 * one that waits in line 3 + N mod 61. Prints how many were made. */
for ($n = 0; $n < 300; $n++)
	file_put_contents("$argv[1]/$n.php", "<?php\nreturn function () {" . str_repeat("\n", 1 + $n % 61) . "usleep(1); };\n");
$made = 0;
for ($end = microtime(true) + $argv[2]; microtime(true) < $end; $made++) {
	$f = include "$argv[1]/" . $made * 7 % 300 . '.php';
	$f();
	unset($f);
}
echo $made, "\n";
