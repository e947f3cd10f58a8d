// SPDX-License-Identifier: GPL-2.0-or-later
// waits.js SECONDS FILE: a program whose main thread and workers wait for time, a lock, a disk and a process.
'use strict';
const { Worker, isMainThread, workerData } = require('worker_threads');
const fs = require('fs');
const child = require('child_process');

function sleeps(cell) {
	Atomics.wait(cell, 0, 0, 2);
}

function locks(cell) {
	while (Atomics.compareExchange(cell, 1, 0, 1) !== 0)
		Atomics.wait(cell, 1, 1, 5);
	Atomics.wait(cell, 0, 0, 1);
	Atomics.store(cell, 1, 0);
	Atomics.notify(cell, 1);
}

function syncs(cell, file) {
	const fd = fs.openSync(file, 'w');
	fs.writeSync(fd, 'x'.repeat(10000));
	fs.fsyncSync(fd);
	fs.closeSync(fd);
	Atomics.wait(cell, 0, 0, 1);
}

function runs() {
	child.spawnSync('true');
}

const all = { sleeps, locks, syncs, runs };

if (isMainThread) {
	const data = { cell: new Int32Array(new SharedArrayBuffer(8)), end: Date.now() + 1000 * process.argv[2], file: process.argv[3] };
	for (const name of ['sleeps', 'locks', 'locks', 'syncs', 'runs'])
		new Worker(__filename, { workerData: { name, ...data } });
	setInterval(() => { if (Date.now() > data.end) process.exit(); }, 5);
} else {
	while (Date.now() < workerData.end)
		all[workerData.name](workerData.cell, workerData.file);
}
