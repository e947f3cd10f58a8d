<?php
// SPDX-License-Identifier: GPL-2.0-or-later
// waits.php SECONDS FILE: waits for time, a pipe, a disk and a process.
function sleeps() {
	usleep(2000);
}

function syncs($file) {
	$f = fopen($file, 'w');
	fwrite($f, str_repeat('x', 10000));
	fsync($f);
	fclose($f);
}

function runs() {
	exec('true');
}

function reads() {
	$p = popen('sleep 0.002; echo x', 'r');
	fgets($p);
	pclose($p);
}

for ($end = microtime(true) + $argv[1]; microtime(true) < $end;) {
	sleeps();
	syncs($argv[2]);
	runs();
	array_map('reads', [1]);
}
