// SPDX-License-Identifier: GPL-2.0-or-later
// npm: @firefox-devtools/profiler-cli@0.10.0
// reads: perf export
// The Firefox Profiler's importer and call tree, by its client for the command line.
import { execFile, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { promisify } from "node:util";

const [file] = process.argv.slice(2);
const client = `${process.cwd()}/@firefox-devtools/profiler-cli/dist/profiler-cli.js`;
const sessions = mkdtempSync(`${tmpdir()}/stacktools-firefox.`);
const options = { maxBuffer: 1 << 30, env: { ...process.env, PROFILER_CLI_SESSION_DIR: sessions } };
const ask = async (...args) =>
	JSON.parse((await promisify(execFile)(process.execPath, [client, ...args, "--session", "s", "--json"], options)).stdout);

// The client's "load" gives up after half a second, so the daemon that it starts is started here. Before its log says so,
// do not query it: the client would take it for dead.
const daemon = spawn(process.execPath, [client, "--daemon", file, "--session", "s"], { ...options, stdio: "ignore" });
let ended = false;
const end = new Promise((resolve) => daemon.on("close", () => { ended = true; resolve(); }));

async function loaded() {
	for (;;) {
		const log = existsSync(`${sessions}/s.log`) ? readFileSync(`${sessions}/s.log`, "utf8") : "";

		if (/Profile loaded/.test(log))
			return;
		if (ended || /\[ERROR\]/.test(log))
			throw new Error(log.replace(/^\[LOG\].*\n/gm, ""));
		await new Promise((resolve) => setTimeout(resolve, 50));
	}
}

const read = { samples: 0, threads: [], weight: 0, unit: "", stacks: [] };
try {
	await loaded();
	for (const { name, pid, tid, threadHandle } of (await ask("thread", "list", "--limit", "0")).threads) {
		const thread = `${name} ${pid}/${tid}`;
		const tree = await ask("thread", "samples-top-down", "--include-idle", "--max-lines", "1000000", "--thread", threadHandle);
		const walk = (node, frames) => {
			if (node.selfSamples > 0)
				read.stacks.push({ weight: node.selfSamples, thread, frames });
			(node.children ?? []).forEach((child) => walk(child, [...frames, child.name]));
		};

		read.samples += (await ask("thread", "info", "--thread", threadHandle)).sampleCount;
		read.threads.push(thread);
		read.weight += tree.regularCallTree.totalSamples;
		read.unit = tree.weightType;
		walk(tree.regularCallTree, []);
	}
} finally {
	daemon.kill();
	await end;
	rmSync(sessions, { recursive: true });
}
read.stacks.sort((a, b) => b.weight - a.weight);
console.log(JSON.stringify(read));
