// SPDX-License-Identifier: GPL-2.0-or-later
// nodestack.js DEPTH: a thread that waits as often as possible, DEPTH distinct functions deep, for a
// minute. Counted are those of Node around it, the text as a function, and wait() itself.
const word = new Int32Array(new SharedArrayBuffer(4));
const end = Date.now() + 60000;
const depth = Number(process.argv[2]) - new Error().stack.split('\n').length - 1;
let text = '';
for (let i = 1; i < depth; i++) text += `function f${i}(n) { return f${i + 1}(n + 1) }\n`;
text += `function f${depth}(n) { while (Date.now() < end) Atomics.wait(word, 0, 0, 0.001) }\nreturn f1(0)`;
new Function('word', 'end', text)(word, end);
