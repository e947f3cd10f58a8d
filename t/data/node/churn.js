// SPDX-License-Identifier: GPL-2.0-or-later
// churn.js N: makes N functions, each in a script of its own, in which it waits and that nothing refers to
// afterwards: fNUMBER in fNUMBER.js, at line NUMBER % 50 + 1. Objects move all the time. It begins when it can
// read its standard input.
'use strict';
const vm = require('vm');
const cell = new Int32Array(new SharedArrayBuffer(4));
let kept = [];

console.log('ready');
require('fs').readSync(0, Buffer.alloc(1));
const n = +process.argv[2];
for (let i = 0; i < n; i++) {
  const source = '\n'.repeat(i % 50) + `(function f${i}(cell) { Atomics.wait(cell, 0, 0, 1); })`;

  vm.runInThisContext(source, { filename: `f${i}.js` })(cell);
  kept.push(source, { i }, [i]);
  if (i % 16 === 0)
    gc();
  else if (i % 4 === 0)
    gc({ type: 'minor' });
  if (kept.length > 300)
    kept = kept.slice(150);
}
console.log('made');
