// SPDX-License-Identifier: GPL-2.0-or-later
// The page of time lines: the waits of threads.h in a canvas, a row a thread, and who ended them.
"use strict";
(() => {
const {$, data, column, grouped, time, count, fill, make, short, entry, showTip, hideTip, fitCanvas, matcher, theme, clock} = page;
const {kinds, names, wakers, threads, idleThreads} = data;
const N = data.waits, T = threads.length, NONE = -1;
const ROW = 22, BAR = 16, AXIS = 22; // pixels
const FONT = "12px system-ui, sans-serif";
const OPEN = 1, INITIAL = 2, PREEMPTED = 4;
const LEAST = 1.5; // pixels of the narrowest wait that is drawn by itself
const ARROWS = 120; // waits in sight, at most, of which all arrows are drawn
const SPAN = Math.max(data.span, 1);

// --- the waits, thread by thread, each thread's in order: a number stands for a wait

const thread = new Uint32Array(data.nWhats), kind = new Uint32Array(data.nWhats), waker = new Int32Array(data.nWhats);
const stack = new Uint32Array(data.nWhats), flags = new Uint8Array(data.nWhats);
const begin = new Float64Array(N), total = new Float64Array(N), runnable = new Float64Array(N), what = new Uint32Array(N);
const first = new Uint32Array(T + 1); // wait of each thread
const sampleAt = new Float64Array(data.samples), sampleFirst = new Uint32Array(T + 1);
(function decode() {
	const whats = column(data.whats, new Uint32Array(5 * data.nWhats));
	for (let i = 0; i < data.nWhats; i++) {
		thread[i] = whats[5 * i];
		kind[i] = whats[5 * i + 1];
		waker[i] = whats[5 * i + 2] - 1;
		stack[i] = whats[5 * i + 3];
		flags[i] = whats[5 * i + 4];
	}
	const place = (ofWhat, n, starts) => { // where each event goes
		const to = new Uint32Array(n), next = new Uint32Array(T + 1);
		for (let i = 0; i < n; i++)
			next[thread[ofWhat[i]] + 1]++;
		for (let t = 0; t < T; t++)
			next[t + 1] += next[t];
		starts.set(next);
		for (let i = 0; i < n; i++)
			to[i] = next[thread[ofWhat[i]]]++;
		return to;
	};
	let of = column(data.what, new Uint32Array(N));
	let to = place(of, N, first), now = 0;
	const put = (text, into, change) => {
		const v = column(text, new Float64Array(N));
		for (let i = 0; i < N; i++)
			into[to[i]] = change ? change(v[i]) : v[i];
	};
	put(data.begin, begin, (v) => (now += v));
	put(data.duration, total);
	put(data.runnable, runnable, (v) => v - 1); // -1: not known
	for (let i = 0; i < N; i++)
		what[to[i]] = of[i];
	of = column(data.sampleWhat, new Uint32Array(data.samples));
	to = place(of, data.samples, sampleFirst);
	now = 0;
	column(data.sampleBegin, new Float64Array(data.samples)).forEach((v, i) => (sampleAt[to[i]] = now += v));
})();
const stacks = page.stacks();
const threadOf = (i) => thread[what[i]], kindOf = (i) => kinds[kind[what[i]]], flagsOf = (i) => flags[what[i]];
const endOf = (i) => begin[i] + total[i];
const wakeOf = (i) => endOf(i) - Math.max(runnable[i], 0); // when it was woken: at its end, where that is not known
const nameOf = (t) => page.threadName(t);
const spaced = (name) => name.replace(/-(\d+\/\d+)$/, " $1"); // "comm-pid/tid"
const wakerThread = (i) => (waker[what[i]] < 0 ? NONE : wakers[waker[what[i]]][1]);
const wakerName = (i) => (waker[what[i]] < 0 ? "" : wakerThread(i) >= 0 ? nameOf(wakerThread(i)) : spaced(wakers[waker[what[i]]][0]));
function search1(from, to, test) { // the first of FROM..TO that passes, TO if none does; those that pass are last
	while (from < to) {
		const middle = (from + to) >> 1;
		if (test(middle))
			to = middle;
		else
			from = middle + 1;
	}
	return from;
}

// What a wait was a consequence of: its waker's last wait before it woke, if it ended within this one, and so on
function chain(i) {
	const steps = [i], seen = new Set(steps);
	while (steps.length < 20) {
		const t = wakerThread(i);
		if (t < 0 || (flagsOf(i) & (OPEN | PREEMPTED)))
			break;
		const wake = wakeOf(i), j = search1(first[t], first[t + 1], (k) => endOf(k) > wake) - 1;
		if (j < first[t] || endOf(j) <= begin[i] || seen.has(j))
			break;
		steps.push(j);
		seen.add(j);
		i = j;
	}
	return steps;
}

// --- rows: threads below the name of their process, and then the idle ones, if they are shown

let rows = [], rowOf = new Int32Array(T), showIdle = false;
function layout() {
	let process = null;
	const head = (t) => {
		process = threads[t][1];
		rows.push({process: short(threads[t][3] || "?", 60) + " " + process});
	};
	rows = [];
	rowOf.fill(NONE);
	for (let t = 0; t < T; t++) {
		if (t === T - idleThreads) {
			rows.push({idle: true});
			process = null;
		}
		if (t >= T - idleThreads && !showIdle)
			break;
		if (threads[t][1] !== process)
			head(t);
		rowOf[t] = rows.length;
		rows.push({thread: t});
	}
	$("space").style.height = AXIS + rows.length * ROW + "px";
}

// --- drawing

const main = $("main"), canvas = $("canvas"), over = $("over");
let from = 0, to = SPAN; // what is in sight, in ns
let width = 0, height = 0, gutter = 180, hover = NONE, focus = NONE, selected = NONE, steps = [];
let found = null; // for each "what", whether it is searched for
let test = null, inSight = 0;
const xOf = (ns) => gutter + (ns - from) / (to - from) * (width - gutter);
const nsOf = (x) => from + (x - gutter) / (width - gutter) * (to - from);
const yOf = (row) => AXIS + row * ROW - main.scrollTop;
const K = kinds.length, OTHERS = K + 1; // in place of a kind: runnable, and what is not searched for
let colors = [], inks = [], labels = []; // of kinds: their colours, those of text on them, and the width of that
let sums = new Float64Array(0), used = new Uint8Array(0); // of each pixel, by kind

function paintRow(ctx, t, y) {
	const last = first[t + 1], scale = (width - gutter) / (to - from), end = Math.ceil(width);
	const start = search1(first[t], last, (i) => endOf(i) >= from), slots = K + 2;
	const top = y + (ROW - BAR) / 2;
	if (last === first[t])
		return;
	// between its first and its last record it executed when it did not wait
	const x0 = Math.max(gutter, xOf(begin[first[t]])), x1 = Math.min(end, xOf(endOf(last - 1)));
	ctx.fillStyle = theme.dark ? "#1f3a2a" : "#d9f0de";
	if (x1 > x0)
		ctx.fillRect(x0, top, Math.max(x1 - x0, 1), BAR);
	let low = end, high = -1;
	for (let i = start; i < last && begin[i] <= to; i++) {
		const w = what[i], b = begin[i], ns = total[i], other = found && !found[w];
		const run = runnable[i] > 0 ? runnable[i] : 0, slot = other ? OTHERS : kind[w];
		inSight++;
		if (ns * scale < LEAST) {
			const px = Math.floor(gutter + (b + ns / 2 - from) * scale);
			if (px < gutter || px >= end)
				continue;
			sums[px * slots + slot] += ns ? ns - run : 1e-3;
			sums[px * slots + (other ? OTHERS : K)] += run;
			used[px] = 1;
			low = px < low ? px : low;
			high = px > high ? px : high;
			continue;
		}
		const a = Math.max(xOf(b), gutter), z = Math.min(xOf(b + ns), end + 2), middle = Math.max(a, Math.min(z, xOf(b + ns - run)));
		ctx.fillStyle = colors[slot];
		ctx.fillRect(a, top, Math.max(middle - a, run < ns ? 0.5 : 0), BAR);
		if (run) {
			ctx.fillStyle = colors[other ? OTHERS : K];
			ctx.fillRect(middle, top, Math.max(z - middle, 0.5), BAR);
		}
		if (middle - a > labels[kind[w]] + 8 && !other) {
			ctx.fillStyle = inks[kind[w]];
			ctx.fillText(kinds[kind[w]], a + 4, y + ROW / 2);
		}
	}
	// in each pixel, a bar as high as the part of the time that was waited
	for (let px = low; px <= high; px++) {
		if (!used[px])
			continue;
		used[px] = 0;
		let all = 0, bottom = top + BAR;
		for (let k = 0; k < slots; k++)
			all += sums[px * slots + k];
		const tall = Math.min(BAR, Math.max(2, all * scale * BAR));
		for (let k = 0; k < slots; k++) {
			const v = sums[px * slots + k];
			if (!v)
				continue;
			sums[px * slots + k] = 0;
			const h = tall * v / all;
			ctx.fillStyle = colors[k];
			ctx.fillRect(px, bottom - h, 1, h);
			bottom -= h;
		}
	}
	ctx.fillStyle = theme.dark ? "#eceef1" : "#1b1b1b"; // samples
	for (let i = search1(sampleFirst[t], sampleFirst[t + 1], (k) => sampleAt[k] >= from), px = -1; i < sampleFirst[t + 1] && sampleAt[i] <= to; i++) {
		const x = Math.round(xOf(sampleAt[i]));
		if (x !== px)
			ctx.fillRect(x, top + BAR - 4, 1, 4);
		px = x;
	}
}
function fit(ctx, text, room) { // as much of a text as there is room for
	let n = Math.min(text.length, 60);
	if (n === text.length && ctx.measureText(text).width <= room)
		return text;
	while (n > 0 && ctx.measureText(text.slice(0, n) + "…").width > room)
		n--;
	return text.slice(0, n) + "…";
}
function paint() {
	width = main.clientWidth;
	height = main.clientHeight;
	gutter = Math.min(220, Math.max(90, Math.floor(width * 0.2)));
	const ctx = fitCanvas(canvas, width, height);
	const back = theme.dark ? "#16181c" : "#ffffff", ink = theme.dark ? "#eceef1" : "#1b1b1b", soft = theme.dark ? "#b3b8c0" : "#555555";
	const line = theme.dark ? "#33383f" : "#e3e5e8";
	if (used.length !== Math.ceil(width)) {
		used = new Uint8Array(Math.ceil(width));
		sums = new Float64Array(used.length * (K + 2));
	}
	ctx.fillStyle = back;
	ctx.fillRect(0, 0, width, height);
	ctx.font = FONT;
	ctx.textBaseline = "middle";
	const {found: marks, step} = page.ticks(from, to, Math.max(3, Math.floor((width - gutter) / 120)));
	ctx.fillStyle = line;
	for (const t of marks)
		ctx.fillRect(Math.round(xOf(t)), AXIS - 4, 1, height);
	inSight = 0;
	const top = Math.max(0, Math.floor(main.scrollTop / ROW)), bottom = Math.min(rows.length, Math.ceil((main.scrollTop + height) / ROW));
	for (let r = top; r < bottom; r++) {
		const row = rows[r], y = yOf(r);
		ctx.textAlign = "left";
		if (row.thread === undefined) {
			ctx.font = "600 " + FONT;
			ctx.fillStyle = theme.dark ? "#22262c" : "#f2f2f2";
			ctx.fillRect(0, y + 1, width, ROW - 2);
			ctx.fillStyle = ink;
			ctx.fillText(row.idle ? (showIdle ? "▾ " : "▸ ") + count(idleThreads, "idle thread") + ": " + (showIdle ? "hide (i)" : "show (i)") : row.process, 6, y + ROW / 2);
			ctx.font = FONT;
			continue;
		}
		ctx.save();
		ctx.beginPath();
		ctx.rect(gutter, Math.max(y, AXIS), width, ROW);
		ctx.clip();
		ctx.fillStyle = line; // what is not known
		ctx.fillRect(gutter, y + ROW / 2, width, 1);
		paintRow(ctx, row.thread, y);
		ctx.restore();
		const [name, , tid] = threads[row.thread];
		ctx.fillStyle = ink;
		ctx.fillText(fit(ctx, name || "(no name)", gutter - (gutter < 150 ? 16 : 80)), gutter < 150 ? 8 : 14, y + ROW / 2);
		if (gutter < 150)
			continue;
		ctx.textAlign = "right";
		ctx.fillStyle = soft;
		ctx.fillText(fit(ctx, tid, 60), gutter - 8, y + ROW / 2);
	}
	ctx.fillStyle = back;
	ctx.fillRect(0, 0, width, AXIS);
	ctx.fillStyle = soft;
	ctx.textAlign = "center";
	for (const t of marks)
		ctx.fillText(clock(t, step), Math.min(Math.max(xOf(t), gutter + 20), width - 30), AXIS / 2 - 1);
	ctx.textAlign = "left";
	ctx.fillText(grouped(N) + " waits", 6, AXIS / 2 - 1);
	$("reset").disabled = from === 0 && to === SPAN;
	$("out").disabled = from === 0 && to === SPAN;
	paintOver();
}
function arrow(ctx, i, strong) { // from the row of the waker to this one, at the time of the wake-up
	const x = xOf(wakeOf(i)), row = rowOf[threadOf(i)], t = wakerThread(i);
	if (row < 0 || x < gutter || x > width || (flagsOf(i) & (OPEN | PREEMPTED)) || waker[what[i]] < 0)
		return;
	const source = t < 0 ? NONE : rowOf[t] >= 0 ? rowOf[t] : rows.findIndex((r) => r.idle);
	const y1 = yOf(row) + ROW / 2, down = source < row;
	const y0 = source < 0 ? y1 - ROW : yOf(source) + ROW / 2;
	const tip = y1 + (down ? -BAR / 2 : BAR / 2), size = strong ? 5 : 3.5;
	ctx.globalAlpha = strong ? 1 : 0.55;
	ctx.lineWidth = strong ? 2 : 1;
	ctx.strokeStyle = ctx.fillStyle = theme.dark ? "#ffffff" : "#111111";
	ctx.beginPath();
	if (source >= 0) {
		ctx.moveTo(x, y0);
		ctx.lineTo(x, tip);
		ctx.stroke();
		ctx.beginPath();
		ctx.arc(x, y0, strong ? 3 : 2, 0, 7);
		ctx.fill();
		ctx.beginPath();
	}
	ctx.moveTo(x, tip);
	ctx.lineTo(x - size, tip + (down ? -size : size) * 1.4);
	ctx.lineTo(x + size, tip + (down ? -size : size) * 1.4);
	ctx.fill();
	ctx.globalAlpha = 1;
}
function paintOver() {
	const ctx = fitCanvas(over, width, height);
	ctx.clearRect(0, 0, width, height);
	ctx.save();
	ctx.beginPath();
	ctx.rect(0, AXIS, width, height);
	ctx.clip();
	const outline = (i, thick) => {
		const row = i < 0 ? NONE : rowOf[threadOf(i)];
		if (row < 0)
			return;
		const x = Math.max(xOf(begin[i]), gutter), z = Math.min(xOf(endOf(i)), width);
		if (z < gutter || x > width)
			return;
		ctx.strokeStyle = theme.dark ? "#ffffff" : "#000000";
		ctx.lineWidth = thick;
		ctx.strokeRect(x - 1, yOf(row) + (ROW - BAR) / 2 - 1, Math.max(z - x, 1) + 2, BAR + 2);
	};
	if (inSight <= ARROWS) {
		for (const row of rows) {
			if (row.thread === undefined)
				continue;
			const last = first[row.thread + 1];
			for (let i = search1(first[row.thread], last, (k) => endOf(k) >= from); i < last && begin[i] <= to; i++)
				arrow(ctx, i, false);
		}
	}
	for (const i of steps) {
		outline(i, i === selected ? 2.5 : 1.5);
		arrow(ctx, i, true);
	}
	if (hover >= 0) {
		outline(hover, 1);
		arrow(ctx, hover, true);
	}
	if (document.activeElement === main)
		outline(focus, 2);
	ctx.restore();
}
let pending = 0, whole = false;
function repaint(all) {
	whole = whole || all;
	if (!pending)
		pending = requestAnimationFrame(() => {
			pending = 0;
			if (whole)
				paint();
			else
				paintOver();
			whole = false;
			saveState();
		});
}

// --- what is said of a wait

const exactly = (ns) => grouped(Math.floor(ns / 1e9)) + "." + String(Math.floor(ns % 1e9)).padStart(9, "0") + " s";
function describe(i) {
	const f = flagsOf(i), lines = [];
	const known = runnable[i] >= 0;
	lines.push(kindOf(i) + ", " + grouped(total[i]) + " ns (" + time(total[i]) + ")" +
		(f & PREEMPTED ? ": lost the CPU" : known && runnable[i] ? ": blocked " + time(total[i] - runnable[i]) + ", then runnable " + time(runnable[i]) : ""));
	lines.push("from " + exactly(begin[i]) + " to " + exactly(endOf(i)));
	if (f & INITIAL)
		lines.push("had begun before the recording");
	if (f & OPEN)
		lines.push("had not ended at the end of the recording");
	if (waker[what[i]] >= 0)
		lines.push("woken by " + short(wakerName(i), 200));
	return lines;
}
const placeOf = (i) => page.place(stacks[stack[what[i]]].map((n) => names[n]));
function announce(i) {
	const text = nameOf(threadOf(i)) + ": " + describe(i).join("; ") + "; " + short(placeOf(i), 300);
	$("status").textContent = text;
	$("item").textContent = text;
	$("item").setAttribute("aria-selected", String(i === selected));
}
function frames(list) {
	const ol = make("ol");
	fill(ol, ...list.filter((name) => name !== "-").slice(0, 300).map((name) => make("li", page.plain(name), page.isKernel(name) ? "kernel" : "")));
	return ol;
}
function part(title, list) {
	const div = make("div");
	div.append(make("h3", title), frames(list));
	return div;
}
function showList() {
	if (selected < 0) {
		fill($("list"), make("p", "A click or Enter selects a wait: its stack, who woke the thread, and what that one had waited for before."));
		return;
	}
	const i = selected, own = stacks[stack[what[i]]].map((n) => names[n]), lines = describe(i);
	const parts = [[]];
	for (const name of own) {
		if (name === "--")
			parts.push([]);
		else
			parts[parts.length - 1].push(name);
	}
	const zoom = make("button", "Zoom to it");
	zoom.type = "button";
	zoom.addEventListener("click", () => zoomTo(i));
	const head = make("h2", nameOf(threadOf(i)) + ": " + lines[0]), line = make("p", lines.slice(1).join("; ") + " ");
	line.append(zoom);
	const ol = make("ol", undefined, "steps");
	for (const j of steps.slice(1)) {
		const li = make("li"), b = make("button", nameOf(threadOf(j)));
		b.type = "button";
		b.addEventListener("click", () => {
			select(j);
			bring(j);
		});
		li.append(b, "had waited " + time(total[j]) + " until " + time(wakeOf(steps[steps.indexOf(j) - 1]) - endOf(j)) + " before: " + kindOf(j) + ", " + short(placeOf(j), 200) +
			(waker[what[j]] >= 0 ? "; woken by " + short(wakerName(j), 100) : ""));
		ol.append(li);
	}
	const lastStep = steps[steps.length - 1], t = wakerThread(lastStep);
	if (t >= 0 && !(flagsOf(lastStep) & OPEN))
		ol.append(make("li", nameOf(t) + " executed since this wait began, or has no record of waiting"));
	const div = make("div", undefined, "stacks");
	div.append(part("Waits in", parts[0].slice().reverse()));
	for (const p of parts.slice(1).filter((list) => list.length > 1))
		div.append(part("Woken by " + short(spaced(p[p.length - 1]), 100), p.slice(0, -1)));
	fill($("list"), head, line, ...(ol.childElementCount ? [make("h3", "What it is a consequence of"), ol] : []), div);
	$("list").scrollTop = 0;
}
function legend() {
	const named = new Set();
	for (let w = 0; w < data.nWhats; w++)
		named.add(kind[w]);
	fill($("legend"), ...kinds.map((name, k) => entry(colors[k], name)), entry(colors[K], "runnable: waits for a CPU"),
		entry(theme.dark ? "#1f3a2a" : "#d9f0de", "between waits: executes"), entry(theme.dark ? "#33383f" : "#e3e5e8", "line: nothing recorded"),
		...(data.samples ? [make("li", "| samples of the CPU")] : []));
}

// --- zoom, selection, search

function show(a, b) {
	const least = Math.min(100, SPAN), w = Math.max(least, Math.min(SPAN, b - a));
	a = Math.max(0, Math.min(SPAN - w, a + (b - a - w) / 2));
	from = a;
	to = a + w;
	repaint(true);
}
const zoom = (factor, around) => show(around - (around - from) * factor, around + (to - around) * factor);
const pan = (part) => show(from + part * (to - from), to + part * (to - from));
const center = () => (focus >= 0 && endOf(focus) > from && begin[focus] < to ? Math.min(to, Math.max(from, (begin[focus] + endOf(focus)) / 2)) : (from + to) / 2);
const zoomTo = (i) => show(begin[i] - Math.max(total[i], 50) * 0.6, endOf(i) + Math.max(total[i], 50) * 0.6);
function bring(i) { // into sight
	if (threadOf(i) >= T - idleThreads && !showIdle)
		toggleIdle();
	const y = rowOf[threadOf(i)] * ROW;
	if (y < main.scrollTop || y + ROW + AXIS > main.scrollTop + main.clientHeight)
		main.scrollTop = y - main.clientHeight / 2;
	if (endOf(i) < from || begin[i] > to)
		show(begin[i] + total[i] / 2 - (to - from) / 2, begin[i] + total[i] / 2 + (to - from) / 2);
	repaint(true);
}
function select(i) {
	selected = i;
	steps = i < 0 ? [] : chain(i);
	if (i >= 0) {
		focus = i;
		announce(i);
	}
	showList();
	repaint(false);
}
function goTo(i) {
	focus = i;
	bring(i);
	announce(i);
}
function search(text) {
	test = matcher(text);
	found = null;
	if (test) {
		const inName = names.map((name) => test(page.plain(name))), inStack = stacks.map((s) => s.some((n) => inName[n]));
		const inThread = threads.map((t, i) => test(nameOf(i))), inKind = kinds.map((name) => test(name));
		found = Uint8Array.from(thread, (t, w) => (inThread[t] || inKind[kind[w]] || inStack[stack[w]] ? 1 : 0));
		let n = 0, ns = 0;
		for (let i = 0; i < N; i++) {
			if (found[what[i]]) {
				n++;
				ns += total[i];
			}
		}
		$("found").textContent = count(n, "wait") + ", " + time(ns);
	}
	repaint(true);
}
function toggleIdle() {
	showIdle = !showIdle;
	layout();
	repaint(true);
}

// the address has what is in sight, what is selected and what is searched for, and can be sent as a link
function saveState() {
	const parts = [];
	if (from > 0 || to < SPAN)
		parts.push("time=" + Math.round(from) + "-" + Math.round(to));
	if (selected >= 0)
		parts.push("wait=" + selected);
	if ($("search").value)
		parts.push("search=" + encodeURIComponent($("search").value));
	const hash = "#" + parts.join("&");
	if (hash === (location.hash || "#") || location.hash === "#selftest")
		return;
	try {
		history.replaceState(null, "", hash);
	} catch (e) {
		// a page that may not have a history still works
	}
}
function loadState() {
	let range = [0, SPAN], wait = NONE, text = "";
	for (const part of location.hash.slice(1).split("&")) {
		const [key, value = ""] = part.split("=");
		if (key === "time" && /^\d+-\d+$/.test(value))
			range = value.split("-").map(Number);
		if (key === "wait" && /^\d+$/.test(value) && Number(value) < N)
			wait = Number(value);
		if (key === "search") {
			try {
				text = decodeURIComponent(value);
			} catch (e) {
				text = "";
			}
		}
	}
	$("search").value = text;
	search(text);
	show(...range);
	select(wait);
	if (wait >= 0)
		bring(wait);
}

// --- mouse, touch and keys

function under(e) { // the row, the time, and the waits within two pixels of a pointer
	const box = canvas.getBoundingClientRect(), x = e.clientX - box.left, y = e.clientY - box.top;
	const row = y < AXIS ? undefined : rows[Math.floor((y - AXIS + main.scrollTop) / ROW)];
	const at = {row, ns: nsOf(x), a: 0, b: 0};
	if (!row || row.thread === undefined || x < gutter)
		return at;
	const t = row.thread, low = nsOf(x - 1), high = nsOf(x + 1);
	at.a = search1(first[t], first[t + 1], (i) => endOf(i) >= low);
	at.b = search1(at.a, first[t + 1], (i) => begin[i] > high);
	if (at.b - at.a > 1) { // the one that the pointer is within, if it is wide enough
		const i = search1(at.a, at.b, (k) => endOf(k) >= at.ns);
		if (i < at.b && begin[i] <= at.ns && total[i] * (width - gutter) / (to - from) >= LEAST)
			at.a = i, at.b = i + 1;
	}
	return at;
}
function tip(e) {
	const at = under(e), n = at.b - at.a, i = n === 1 ? at.a : NONE;
	if (i !== hover) {
		hover = i;
		repaint(false);
	}
	if (!at.row || at.row.thread === undefined) {
		hideTip();
	} else if (n === 1) {
		showTip(e, nameOf(at.row.thread), [...describe(i), short(placeOf(i), 300)]);
	} else if (n > 1) {
		const by = new Map();
		let ns = 0;
		for (let k = at.a; k < at.b; k++) {
			by.set(kindOf(k), (by.get(kindOf(k)) || 0) + total[k]);
			ns += total[k];
		}
		const most = Array.from(by).sort((x, y) => y[1] - x[1]).slice(0, 4).map(([name, v]) => name + " " + time(v));
		showTip(e, nameOf(at.row.thread), [count(n, "wait") + " here, " + time(ns) + ": " + most.join(", "), "a click zooms in"]);
	} else {
		const t = at.row.thread, last = first[t + 1] - 1;
		const known = last >= first[t] && at.ns > begin[first[t]] && at.ns < endOf(last);
		showTip(e, nameOf(t), [known ? "executes, at " + exactly(at.ns) : "nothing recorded, at " + exactly(Math.max(0, at.ns))]);
	}
}
function click(e) {
	const at = under(e);
	if (at.row && at.row.idle)
		toggleIdle();
	else if (at.b - at.a === 1)
		select(at.a);
	else if (at.b > at.a)
		zoom(0.1, at.ns);
	else
		select(NONE);
}
const pointers = new Map();
let moved = 0;
canvas.addEventListener("pointerdown", (e) => {
	if (e.button)
		return;
	pointers.set(e.pointerId, e);
	moved = 0;
	try {
		canvas.setPointerCapture(e.pointerId);
	} catch (error) {
		// a pointer that a script made
	}
});
canvas.addEventListener("pointermove", (e) => {
	const before = pointers.get(e.pointerId);
	if (!before)
		return tip(e);
	pointers.set(e.pointerId, e);
	hideTip();
	moved += Math.abs(e.clientX - before.clientX) + Math.abs(e.clientY - before.clientY);
	const ns = (to - from) / (width - gutter);
	if (pointers.size === 2) { // pinch: what is below both fingers stays there
		const other = Array.from(pointers.values()).find((p) => p.pointerId !== e.pointerId), box = canvas.getBoundingClientRect();
		const old = Math.abs(before.clientX - other.clientX), now = Math.abs(e.clientX - other.clientX);
		if (old > 10 && now > 10)
			zoom(old / now, nsOf(other.clientX - box.left));
	} else if (moved > 4) {
		show(from - (e.clientX - before.clientX) * ns, to - (e.clientX - before.clientX) * ns);
		if (e.pointerType === "mouse")
			main.scrollTop -= e.clientY - before.clientY;
	}
});
canvas.addEventListener("pointerup", (e) => {
	if (pointers.delete(e.pointerId) && moved <= 4 && !pointers.size)
		click(e);
});
canvas.addEventListener("pointercancel", (e) => pointers.delete(e.pointerId));
canvas.addEventListener("pointerleave", () => {
	hover = NONE;
	hideTip();
	repaint(false);
});
canvas.addEventListener("wheel", (e) => {
	if (e.ctrlKey || e.metaKey)
		zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY / 200))), nsOf(e.clientX - canvas.getBoundingClientRect().left));
	else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY))
		pan((e.deltaX || e.deltaY) / (width - gutter));
	else
		return;
	e.preventDefault();
}, {passive: false});
main.addEventListener("scroll", () => {
	hideTip();
	repaint(true);
});
main.addEventListener("focus", () => {
	if (focus < 0 && N)
		focus = 0;
	if (focus >= 0)
		announce(focus);
	repaint(false);
});
main.addEventListener("blur", () => repaint(false));
function otherThread(step) { // the wait there that is at the same time, or next to it
	const middle = Math.min(to, Math.max(from, (begin[focus] + endOf(focus)) / 2));
	for (let r = rowOf[threadOf(focus)] + step; r >= 0 && r < rows.length; r += step) {
		const t = rows[r].thread;
		if (t === undefined || first[t] === first[t + 1])
			continue;
		return goTo(Math.min(search1(first[t], first[t + 1], (i) => endOf(i) >= middle), first[t + 1] - 1));
	}
}
function next(step) {
	for (let i = focus + step; i >= 0 && i < N; i += step) {
		if (!found || found[what[i]])
			return goTo(i);
	}
}
function press(key) {
	if (!N)
		return false;
	if (focus < 0)
		focus = 0;
	const t = threadOf(focus);
	switch (key) {
	case "ArrowLeft":
		goTo(Math.max(focus - 1, first[t]));
		return true;
	case "ArrowRight":
		goTo(Math.min(focus + 1, first[t + 1] - 1));
		return true;
	case "ArrowUp":
		otherThread(-1);
		return true;
	case "ArrowDown":
		otherThread(1);
		return true;
	case "Enter":
	case " ":
		select(focus);
		return true;
	case "g": {
		const path = chain(focus);
		if (path.length > 1) {
			select(path[1]);
			bring(path[1]);
		}
		return true;
	}
	case "n":
		next(1);
		return true;
	case "p":
		next(-1);
		return true;
	case "+":
	case "=":
		zoom(0.5, center());
		return true;
	case "-":
		zoom(2, center());
		return true;
	case "0":
		show(0, SPAN);
		return true;
	case "<":
	case ",":
		pan(-0.5);
		return true;
	case ">":
	case ".":
		pan(0.5);
		return true;
	case "z":
		zoomTo(focus);
		return true;
	case "i":
		if (idleThreads)
			toggleIdle();
		return true;
	case "Escape":
		if (selected >= 0)
			select(NONE);
		else
			show(0, SPAN);
		return true;
	}
	return false;
}

// --- the page tests itself

function selftest(ok, press) {
	const key = (name) => press(name, main);
	const point = (type, i, more) => {
		const box = canvas.getBoundingClientRect();
		const x = xOf(Math.min(to, Math.max(from, begin[i] + (total[i] - Math.max(runnable[i], 0)) / 2)));
		canvas.dispatchEvent(new PointerEvent(type, {clientX: box.left + x, clientY: box.top + yOf(rowOf[threadOf(i)]) + ROW / 2, bubbles: true, button: 0, pointerId: 7, ...more}));
	};
	let sum = 0n, sorted = true, within = true;
	for (let i = 0; i < N; i++) {
		sum += BigInt(total[i]);
		sorted = sorted && (i === first[threadOf(i)] || begin[i] >= begin[i - 1]);
		within = within && runnable[i] <= total[i] && endOf(i) <= SPAN;
	}
	ok(String(sum) === data.total && first[T] === N, "the waits sum up to the whole, exactly");
	ok(sorted && within, "each thread's waits are in order, and within the recording");
	ok(threads.every((t, i) => (rowOf[i] >= 0) === (i < T - idleThreads)), "idle threads are not shown at first");
	let longest = 0;
	for (let i = 1; i < N; i++)
		longest = rowOf[threadOf(i)] >= 0 && (rowOf[threadOf(longest)] < 0 || total[i] > total[longest]) ? i : longest;
	if (rowOf[threadOf(longest)] < 0)
		toggleIdle();
	bring(longest);
	paint();
	const dpr = devicePixelRatio;
	const pixel = (i) => Array.from(canvas.getContext("2d").getImageData(Math.floor(Math.max(gutter, xOf(begin[i]) + (total[i] ? 1 : 0)) * dpr), Math.floor((yOf(rowOf[threadOf(i)]) + ROW / 2 + BAR / 2 - 2) * dpr), 1, 1).data);
	zoomTo(longest);
	paint();
	const drawn = pixel(longest);
	ok(Math.abs((to - from) - Math.min(SPAN, total[longest] * 2.2)) < 200 + to * 1e-6, "a zoom shows the wait");
	ok(drawn.slice(0, 3).join() !== (theme.dark ? "22,24,28" : "255,255,255"), "it is drawn");
	point("pointermove", longest);
	ok(!$("tip").hidden && $("tip").textContent.includes(grouped(total[longest]) + " ns") && $("tip").textContent.includes(exactly(begin[longest])), "the tip has its exact times");
	point("pointerdown", longest);
	point("pointerup", longest);
	ok(selected === longest && $("list").textContent.includes(grouped(total[longest]) + " ns"), "a click selects it");
	ok($("list").querySelectorAll("li").length >= Math.min(1, stacks[stack[what[longest]]].length), "its stack is shown");
	key("Escape");
	ok(selected < 0, "Escape selects nothing");
	key("Escape");
	ok(from === 0 && to === SPAN, "and then shows the whole");
	let chained = NONE;
	for (let i = 0; i < N && chained < 0; i++)
		chained = rowOf[threadOf(i)] >= 0 && chain(i).length > 1 ? i : NONE;
	if (chained >= 0) {
		const path = chain(chained);
		focus = chained;
		key("Enter");
		ok(selected === chained && $("list").querySelectorAll(".steps button").length === path.length - 1, "a wait shows what it is a consequence of");
		key("g");
		ok(selected === path[1] && threadOf(path[1]) === wakerThread(chained), "g goes to the waker's wait");
		ok(endOf(path[1]) <= wakeOf(chained) && endOf(path[1]) > begin[chained], "which ended within the first");
		zoomTo(chained);
		select(chained);
		paint();
		const blank = !over.getContext("2d").getImageData(0, 0, over.width, over.height).data.some((v) => v);
		ok(!blank, "arrows are drawn");
		key("Escape");
	}
	main.focus();
	show(0, SPAN);
	goTo(first[threadOf(longest)]);
	key("ArrowRight");
	key("ArrowLeft");
	ok(focus === first[threadOf(longest)], "arrows move within a thread");
	const was = threadOf(focus);
	key("ArrowDown");
	key("ArrowUp");
	ok(rows[rowOf[was] + 1] === undefined || threadOf(focus) === was || rowOf[was] === rows.length - 1 || threadOf(focus) !== undefined, "arrows move to other threads");
	ok($("status").textContent.startsWith(nameOf(threadOf(focus))) && $("item").textContent === $("status").textContent, "the wait in focus is described");
	key("+");
	const wide = to - from;
	ok(SPAN < 300 || Math.abs(wide - SPAN / 2) < 1, "+ zooms in");
	key(">");
	key("<");
	key("-");
	ok(Math.abs(to - from - Math.min(SPAN, wide * 2)) < 1, "- zooms out");
	key("0");
	canvas.dispatchEvent(new WheelEvent("wheel", {deltaY: -200, ctrlKey: true, bubbles: true, cancelable: true, clientX: width / 2, clientY: 100}));
	ok(SPAN < 300 || to - from < SPAN / 2, "Ctrl and the wheel zoom");
	const at = from;
	point("pointerdown", longest);
	point("pointermove", longest, {clientX: 400});
	point("pointermove", longest, {clientX: 380});
	point("pointerup", longest, {clientX: 380});
	ok(SPAN < 300 || from !== at, "a drag moves");
	pointers.clear();
	key("0");
	const shade = theme.dark, before = colors[0];
	key("d");
	ok(theme.dark !== shade && colors[0] !== before, "d changes the colours");
	key("d");
	key("i");
	ok(!idleThreads || rows.length > 0, "i shows the idle threads");
	key("i");
	location.hash = "#time=0-" + Math.ceil(SPAN / 2) + "&wait=0";
	loadState();
	ok(selected === 0 && to <= Math.max(100, SPAN / 2 + 1), "the address brings back what is in sight and selected");
	location.hash = "#selftest";
	select(NONE);
	show(0, SPAN);
	key("/");
	ok(document.activeElement === $("search"), "/ goes to the search");
	$("search").value = kindOf(longest);
	$("search").dispatchEvent(new Event("input", {bubbles: true}));
	let n = 0, ns = 0;
	for (let i = 0; i < N; i++) {
		if (found[what[i]])
			n++, ns += total[i];
	}
	ok(found[what[longest]] && $("found").textContent === count(n, "wait") + ", " + time(ns), "a search shows what it finds");
	focus = 0;
	key("n");
	ok(found[what[focus]] || n < 2, "n goes to a wait that was found");
	search("/(/");
	ok($("search").getAttribute("aria-invalid") === "true" && !found, "a bad regular expression is reported");
	press("Escape", $("search"));
	ok(!test && document.activeElement === main, "Escape ends the search");
	key("?");
	ok(!$("help").hidden, "? shows the keys");
	key("?");
}

$("in").addEventListener("click", () => zoom(0.5, center()));
$("out").addEventListener("click", () => zoom(2, center()));
$("reset").addEventListener("click", () => show(0, SPAN));
page.keys(main, search, press);
const measure = canvas.getContext("2d");
measure.font = FONT;
labels = kinds.map((name) => measure.measureText(name).width);
layout();
page.onTheme(() => {
	colors = [...kinds.map((name) => page.kindColor(name)), page.runnableColor(), theme.dark ? "#3a3f47" : "#d9dce1"];
	inks = kinds.map(page.kindInk);
	legend();
	paint();
});
loadState();
addEventListener("hashchange", loadState);
new ResizeObserver(() => repaint(true)).observe(main);
document.body.dataset.drawnMs = Math.round(performance.now());
page.selftest(selftest);
})();
