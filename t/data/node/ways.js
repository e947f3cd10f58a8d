// SPDX-License-Identifier: GPL-2.0-or-later
// ways.js DIR FIFO [NAME...]: a thread for each of the ways below, or for those, and the main thread, wait in
// it. DIR/NAME is the thread's ID and what V8 says of its stack: "FUNCTION<tab>FILE<tab>LINE" for each frame, innermost first.
// It ends when FIFO does.
'use strict';
const { Worker, isMainThread, workerData } = require('worker_threads');
const fs = require('fs');
const path = require('path');
const vm = require('vm');
const { spawnSync, execSync } = require('child_process');
const [dir, fifo] = isMainThread ? process.argv.slice(2) : workerData.slice(1);
const cell = new Int32Array(new SharedArrayBuffer(4));

Error.stackTraceLimit = Infinity;
Error.prepareStackTrace = (e, sites) => sites;

// The runtime hides some frames of its own only if it is asked later: all are here.
function say(name, sites) {
  const text = sites.filter((s) => !s.isAsync()).map((s) =>
    `${s.isEval() && s.getFunctionName() === 'eval' ? '' : s.getFunctionName() ?? ''}\t${s.getFileName() ?? ''}\t${s.getLineNumber() ?? ''}\n`);

  if (fs.existsSync(path.join(dir, name)))
    return;
  fs.writeFileSync(path.join(dir, name + '.new'), path.basename(fs.readlinkSync('/proc/thread-self')) + '\n' + text.join(''));
  fs.renameSync(path.join(dir, name + '.new'), path.join(dir, name));
}

let name = isMainThread ? 'main' : workerData[0];
// these stand in one line, so that V8 was asked where it waits
function pause() { say(name, new Error().stack); Atomics.wait(cell, 0, 0, 100); }
function pauseFile() { say(name, new Error().stack); fs.readFileSync(fifo); }
function pauseRead() { const fd = fs.openSync(fifo); say(name, new Error().stack); fs.readSync(fd, Buffer.alloc(1)); }
function pauseSpawn() { say(name, new Error().stack); spawnSync('cat', [fifo]); }
function pauseExec() { say(name, new Error().stack); execSync(`cat ${fifo}`); }

class Thing {
  #secret() {
    pause();
  }
  static make() { return new Thing(0); }
  static stat() {
    pause();
  }
  constructor(wait) {
    if (wait)
      pause();
  }
  method() { pause(); }
  hidden() { this.#secret(); }
  get getter() { pause(); return 1; }
  set setter(x) { pause(); }
  toString() { pause(); return ''; }
  valueOf() { pause(); return 1; }
  toJSON() { pause(); return 1; }
  async later() {
    pause();
    await 1;
  }
  *values() {
    yield 1;
    pause();
    yield 2;
  }
  async *stream() { pause(); yield 1; }
  [Symbol.iterator]() { pause(); return [][Symbol.iterator](); }
}
const thing = new Thing(0);

function deep(n) {
  if (n > 0)
    return deep(n - 1) + 1;
  pause();
  return 0;
}

let stopped = false;
function leaf(n) { if (stopped) pause(); return n + 1; }
function mid(n) {
  return leaf(n) * 2;
}
function hot(n) {
  let sum = 0;
  for (let i = 0; i < 4; i++)
    sum += mid(n + i);
  return sum;
}
function loop() {
  for (let i = 0; i < 60000; i++)
    mid(i);
  stopped = true;
  for (;;)
    mid(3);
}

const ways = {
  wait: () => pause(),
  file: () => pauseFile(),
  read: () => pauseRead(),
  spawn: () => pauseSpawn(),
  exec: () => pauseExec(),
  map: () => [1, 2].map((x) => pause()),
  each() { [1].forEach(function () { pause(); }); },
  sort: () => [3, 1, 2].sort((a, b) => { pause(); return a - b; }),
  reduce: () => [3, 1].reduce((a, b) => pause(), 0),
  typed: () => new Uint8Array([1, 2]).filter((x) => pause()),
  from: () => Array.from([1], (x) => pause()),
  maps: () => new Map([[1, 2]]).forEach((v, k) => pause()),
  getter: () => thing.getter,
  setter: () => { thing.setter = 1; },
  method: () => Thing.make().method(),
  hidden: () => thing.hidden(),
  static: () => Thing.stat(),
  construct: () => new Thing(1),
  text: () => `${thing}`,
  number: () => thing * 2,
  json: () => JSON.stringify({ a: thing }),
  reviver: () => JSON.parse('[1]', (k, v) => pause()),
  replace: () => 'aXb'.replace(/X/, (m) => { pause(); return m; }),
  replaceAll: () => 'aXb'.replace('X', (m) => { pause(); return m; }),
  iterator: () => [...thing],
  generator: () => { for (const x of thing.values()) ; },
  proxy: () => new Proxy({}, { get(target, key) { pause(); return 1; } }).x,
  construction: () => Reflect.construct(Thing, [1]),
  reflect: () => Reflect.apply(pause, null, []),
  bound: () => pause.bind(null)(),
  call: () => pause.call(null),
  apply: () => pause.apply(null, []),
  async: () => { thing.later(); },
  stream: () => { thing.stream().next(); },
  eval: () => eval('\npause()'),
  global: () => { globalThis.pause = pause; (0, eval)('function evaluated() {\n  pause(); }\nevaluated()'); },
  func: () => new Function('f', '\nf();')(pause),
  vm: () => vm.runInThisContext('(f) => {\n f(); }', { filename: 'made.js', lineOffset: 10 })(pause),
  tag: () => ((s) => { pause(); })`x`,
  deep: () => deep(300),
  hot: () => {
    for (let i = 0; i < 10000; i++)
      hot(i);
    stopped = true;
    for (;;)
      hot(3);
  },
  loop: () => loop(),
  wide: () => require(path.join(dir, '..', 'wide.js'))(pause),
};
// those that the event loop calls
const later = {
  promise: () => Promise.resolve().then(() => pause()),
  microtask: () => queueMicrotask(() => pause()),
  tick: () => process.nextTick(() => pause()),
  timer: () => setTimeout(() => pause(), 0),
  awaited: async () => { await 1; pause(); },
};

if (isMainThread) {
  const source = '// \u20ac: characters of two bytes\n\n\nmodule.exports = (f) => {\n  f(); };\n';

  fs.writeFileSync(path.join(dir, '..', 'wide.js'), source);
  const names = process.argv.length > 4 ? process.argv.slice(4) : [...Object.keys(ways), ...Object.keys(later)];

  fs.writeSync(1, names.length + '\n');
  for (const way of names)
    new Worker(__filename, { workerData: [way, dir, fifo], stdin: true }).on('error', (e) => { throw e; });
  setTimeout(function main() {
    for (;;)
      pause();
  }, 100);
} else if (ways[name]) {
  for (;;)
    ways[name]();
} else {
  setInterval(later[name], 20);
}
