// SPDX-License-Identifier: GPL-2.0-or-later
// Two worker threads that wait in functions of the same name, in texts of the same length and name, on
// different lines.
'use strict';
const { Worker } = require('worker_threads');
const word = new Int32Array(new SharedArrayBuffer(4));
const blank = '\n'.repeat(20);
const text = `const { workerData } = require('worker_threads');
function alike() { Atomics.wait(workerData, 0, 0) }
alike();
`;
for (const each of [blank + text, text + blank]) new Worker(each, { eval: true, workerData: word });
