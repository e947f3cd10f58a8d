// SPDX-License-Identifier: GPL-2.0-or-later
// npm: speedscope@1.25.0
// reads: perf folded export
// speedscope's own page, as far as its importer goes.
import { readFileSync, readdirSync } from "node:fs";
import { basename } from "node:path";
import vm from "node:vm";

const [file] = process.argv.slice(2);
const dir = `${process.cwd()}/speedscope/dist/release`;
const bundle = readdirSync(dir).find((name) => /^speedscope.*\.js$/.test(name));

// The bundle exports nothing, but each of its modules defines its exports by this function. Its last statement draws the
// page: it is stopped there.
let importer;
const quiet = () => {};
const scope = vm.createContext({
	atob, TextDecoder, TextEncoder, performance, setTimeout,
	console: { assert: quiet, error: quiet, log: quiet, warn: quiet },
	addEventListener: quiet, location: { hash: "", href: "" }, matchMedia: () => ({ addListener: quiet }),
	document: { get body() { throw new Error("there is no page"); } },
	watch: (name, get) => { importer = name === "importProfileGroupFromBase64" ? get : importer; },
});
vm.runInContext(`self = window = globalThis;
	const define = Object.defineProperty;
	Object.defineProperty = (o, name, d) => { watch(name, d.get); return define(o, name, d); }`, scope);
try {
	vm.runInContext(readFileSync(`${dir}/${bundle}`, "utf8"), scope);
} catch (e) {
	if (e.message !== "there is no page")
		throw e;
}
await new Promise(setImmediate);

const group = await importer()(basename(file), readFileSync(file).toString("base64"));
if (!group)
	throw new Error("speedscope does not recognise it");
const read = { samples: 0, threads: [], weight: 0, unit: group.profiles[0].getWeightUnit(), stacks: [] };
for (const profile of group.profiles) {
	read.samples += profile.samples.length;
	read.threads.push(profile.getName());
	read.weight += profile.getTotalWeight();
	const walk = (node, path) => {
		const frames = node.isRoot() ? path : [...path, node.frame.name];

		if (node.getSelfWeight() > 0)
			read.stacks.push({ weight: node.getSelfWeight(), thread: profile.getName(), frames });
		node.children.forEach((child) => walk(child, frames));
	};
	walk(profile.getGroupedCalltreeRoot(), []);
}
read.stacks.sort((a, b) => b.weight - a.weight);
console.log(JSON.stringify(read));
