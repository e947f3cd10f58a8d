// SPDX-License-Identifier: GPL-2.0-or-later
// The page of a heat map: the cells of heat.h in a canvas, and what is in those that are selected.
"use strict";
(() => {
const {$, data, column, grouped, percent, time, count, fill, make, short, entry, showTip, hideTip, fitCanvas, matcher, theme, clock} = page;
const {columns, edges, binNs, kinds, names} = data;
const rows = edges.length - 1, N = data.entries;
const LEFT = 62, RIGHT = 12, TOP = 8, BOTTOM = 22; // pixels around the cells
const FONT = "12px system-ui, sans-serif";
const FOUND = 30; // places in the list

// --- the entries, and the sums of what is chosen of them

const cellOf = column(data.cell, new Float64Array(N)), threadOf = column(data.thread, new Uint32Array(N));
const kindOf = column(data.kind, new Uint8Array(N)), stackOf = column(data.stack, new Uint32Array(N));
const countOf = column(data.count, new Float64Array(N)), sumOf = column(data.sum, new Float64Array(N));
for (let i = 1; i < N; i++)
	cellOf[i] += cellOf[i - 1];
const first = new Uint32Array(columns * rows + 1); // entry of each cell
for (let i = 0, cell = 0; cell < first.length; cell++) {
	while (i < N && cellOf[i] < cell)
		i++;
	first[cell] = i;
}
const stacks = page.stacks();
const places = stacks.map((stack) => page.place(stack.map((n) => names[n])));
const chosen = new Uint8Array(N);
const cellCount = new Float64Array(columns * rows), cellSum = new Float64Array(columns * rows);
let test = null, byTime = false, least = 1, most = 1;
let focus = -1, anchor = -1, hover = -1; // cells; what is selected is between anchor and focus

function choose() {
	const kind = Number($("kind").value), thread = Number($("thread").value);
	const inName = test && Uint8Array.from(names, (name) => test(page.plain(name)));
	const inStack = test && stacks.map((stack) => stack.some((n) => inName[n]));
	const inKind = test && kinds.map(test), inThread = test && data.threads.map((t, i) => test(page.threadName(i)));
	let n = 0, sum = 0;
	cellCount.fill(0);
	cellSum.fill(0);
	for (let i = 0; i < N; i++) {
		chosen[i] = (kind < 0 || kindOf[i] === kind) && (thread < 0 || threadOf[i] === thread) &&
			(!test || (stackOf[i] && inStack[stackOf[i] - 1]) || inKind[kindOf[i]] || (threadOf[i] && inThread[threadOf[i] - 1])) ? 1 : 0;
		if (!chosen[i])
			continue;
		n += countOf[i];
		sum += sumOf[i];
		cellCount[cellOf[i]] += countOf[i];
		cellSum[cellOf[i]] += sumOf[i];
	}
	scale();
	if (test)
		$("found").textContent = count(n, "wait") + ", " + time(sum);
	showList();
	paint();
}
function scale() {
	const v = byTime ? cellSum : cellCount;
	least = Infinity;
	most = 0;
	for (let i = 0; i < v.length; i++) {
		if (cellCount[i]) {
			least = Math.min(least, v[i]);
			most = Math.max(most, v[i]);
		}
	}
	least = byTime ? Math.max(1, Math.min(least, most)) : 1;
	most = Math.max(most, least);
	legend();
}

// --- colours: by the logarithm, and the least one is well visible

const STEPS = 24;
function tint(part) { // of 0 to 1
	const p = Math.round(part * STEPS) / STEPS;
	return theme.dark ? `hsl(${265 - 215 * p} ${55 + 40 * p}% ${55 + 20 * p}%)` : `hsl(${205 + 75 * p} ${70 + 20 * p}% ${50 - 36 * p}%)`;
}
const part = (v) => (most > least ? Math.log(Math.max(v, least) / least) / Math.log(most / least) : 0);
function legend() {
	const li = make("li", undefined, "scale");
	const show = byTime ? time : (v) => grouped(Math.round(v));
	li.append(make("b", byTime ? "time of a cell's waits:" : "waits in a cell:"), " " + show(least));
	for (let k = 0; most > least && k <= 8; k++) {
		const swatch = make("i");
		swatch.style.background = tint(k / 8);
		swatch.title = show(least * (most / least) ** (k / 8));
		li.append(swatch);
		if (k === 4)
			li.append(show(Math.sqrt(least * most)));
	}
	if (most > least)
		li.append(show(most));
	else
		li.append(Object.assign(entry(tint(0), "").firstChild));
	fill($("legend"), li, make("li", "across: when a wait began, since the first at " + data.origin + " s of the monotonic clock; up: how long it took"));
}

// --- drawing

const main = $("main"), canvas = $("canvas"), over = $("over");
let width = 0, height = 0, cw = 1, ch = 1;
const xOf = (column) => LEFT + column * cw, yOf = (row) => TOP + (rows - row) * ch; // the lower edge of a row
function paint() {
	width = main.clientWidth;
	height = Math.max(main.clientHeight, TOP + BOTTOM + rows * 3);
	cw = (width - LEFT - RIGHT) / columns;
	ch = (height - TOP - BOTTOM) / rows;
	const ctx = fitCanvas(canvas, width, height), back = theme.dark ? "#16181c" : "#ffffff", ink = theme.dark ? "#b3b8c0" : "#555555";
	ctx.fillStyle = back;
	ctx.fillRect(0, 0, width, height);
	ctx.font = FONT;
	ctx.fillStyle = ink;
	ctx.strokeStyle = theme.dark ? "#33383f" : "#e3e5e8";
	ctx.lineWidth = 1;
	ctx.textBaseline = "middle";
	ctx.textAlign = "right";
	for (let row = 0; row <= rows; row++) {
		const decade = Math.log10(edges[row]);
		if (Math.abs(decade - Math.round(decade)) > 1e-6)
			continue;
		const y = Math.round(yOf(row)) + 0.5;
		ctx.beginPath();
		ctx.moveTo(LEFT, y);
		ctx.lineTo(width - RIGHT, y);
		ctx.stroke();
		ctx.fillText(time(edges[row]).replace(/\.0+ /, " "), LEFT - 6, Math.min(Math.max(y, 8), height - BOTTOM - 4));
	}
	ctx.textAlign = "center";
	const end = columns * binNs, {found, step} = page.ticks(0, end, Math.max(3, Math.floor(width / 110)));
	for (const t of found) {
		const x = Math.round(LEFT + t / binNs * cw) + 0.5;
		ctx.beginPath();
		ctx.moveTo(x, TOP);
		ctx.lineTo(x, height - BOTTOM + 4);
		ctx.stroke();
		ctx.fillText(clock(t, step), Math.min(x, width - 30), height - BOTTOM / 2);
	}
	const v = byTime ? cellSum : cellCount;
	for (let cell = 0; cell < v.length; cell++) {
		if (!cellCount[cell])
			continue;
		const c = cell % columns, r = (cell - c) / columns;
		ctx.fillStyle = tint(part(v[cell]));
		const x = xOf(c), y = yOf(r + 1);
		ctx.fillRect(x, y, Math.max(cw - (cw > 5 ? 0.8 : 0), 1.5), Math.max(ch - (ch > 5 ? 0.8 : 0), 1.5));
	}
	paintOver();
}
function paintOver() {
	const ctx = fitCanvas(over, width, height);
	ctx.clearRect(0, 0, width, height);
	ctx.strokeStyle = theme.dark ? "#ffffff" : "#000000";
	if (anchor >= 0) {
		const [c0, c1, r0, r1] = range();
		ctx.fillStyle = theme.dark ? "rgb(0 0 0 / 0.5)" : "rgb(255 255 255 / 0.6)";
		const x = xOf(c0), y = yOf(r1 + 1), w = (c1 - c0 + 1) * cw, h = (r1 - r0 + 1) * ch;
		ctx.beginPath();
		ctx.rect(LEFT, TOP, columns * cw, rows * ch);
		ctx.rect(x, y, w, h);
		ctx.fill("evenodd");
		ctx.lineWidth = 1;
		ctx.strokeRect(x - 0.5, y - 0.5, w + 1, h + 1);
	}
	for (const [cell, thick] of [[hover, 1], [document.activeElement === main ? focus : -1, 2]]) {
		if (cell < 0)
			continue;
		const c = cell % columns, r = (cell - c) / columns;
		ctx.lineWidth = thick;
		ctx.strokeRect(xOf(c) - 1, yOf(r + 1) - 1, cw + 2, ch + 2);
	}
}
let pending = 0;
function repaint() {
	if (!pending)
		pending = requestAnimationFrame(() => {
			pending = 0;
			paintOver();
		});
}
function at(e) { // the cell at a pointer, or -1
	const box = canvas.getBoundingClientRect();
	const c = Math.floor((e.clientX - box.left - LEFT) / cw), r = rows - 1 - Math.floor((e.clientY - box.top - TOP) / ch);
	return c >= 0 && c < columns && r >= 0 && r < rows ? r * columns + c : -1;
}

// --- what is in cells

function range() { // of the selection: columns and rows, the last ones included
	const a = [anchor % columns, focus % columns], b = [Math.floor(anchor / columns), Math.floor(focus / columns)];
	return [Math.min(...a), Math.max(...a), Math.min(...b), Math.max(...b)];
}
function between(low, high, unit) { // two times, in the unit of the greater one
	const scale = page.NS[unit] || 1;
	const digits = Math.max(0, Math.ceil(Math.log10(scale / Math.max(1, high - low))) + 1);
	const text = (v) => (v / scale).toFixed(Math.min(digits, 9)).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
	return text(low) + " – " + text(high) + " " + unit;
}
const unitOf = (ns) => ["s", "ms", "us"].find((u) => ns >= page.NS[u]) || "ns";
function describeRange(c0, c1, r0, r1) {
	const end = (c1 + 1) * binNs;
	const long = r0 === 0 && edges[0] <= 1000 ? "up to " + time(edges[r1 + 1]) : time(edges[r0]) + " – " + time(edges[r1 + 1]);
	return between(c0 * binNs, end, unitOf(end)) + ", waits of " + long;
}
function gather(c0, c1, r0, r1) { // what is chosen in a range, by stack and kind, the greatest sums first
	const groups = new Map();
	let n = 0, sum = 0, others = 0, othersSum = 0;
	for (let r = r0; r <= r1; r++) {
		for (let i = first[r * columns + c0]; i < first[r * columns + c1 + 1]; i++) {
			if (!chosen[i])
				continue;
			n += countOf[i];
			sum += sumOf[i];
			if (!stackOf[i]) {
				others += countOf[i];
				othersSum += sumOf[i];
				continue;
			}
			const key = stackOf[i] * 64 + kindOf[i];
			const g = groups.get(key) || {stack: stackOf[i] - 1, kind: kindOf[i], n: 0, sum: 0, threads: new Set()};
			groups.set(key, g);
			g.n += countOf[i];
			g.sum += sumOf[i];
			g.threads.add(threadOf[i]);
		}
	}
	return {n, sum, others, othersSum, groups: Array.from(groups.values()).sort((a, b) => b.sum - a.sum || b.n - a.n)};
}
const one = (cell) => [cell % columns, cell % columns, Math.floor(cell / columns), Math.floor(cell / columns)];
const amount = (g) => count(g.n, "wait") + ", " + time(g.sum);
const total = (g) => count(g.n, "wait") + ", " + grouped(g.sum) + " ns (" + time(g.sum) + ")";
function describe(cell) {
	const g = gather(...one(cell)), lines = [g.n ? total(g) : "no wait"];
	for (const top of g.groups.slice(0, 4))
		lines.push(amount(top) + ": " + kinds[top.kind] + ", " + short(places[top.stack], 200));
	const rest = g.groups.length - 4;
	if (rest > 0)
		lines.push("and " + count(rest, "other place"));
	if (g.others)
		lines.push(count(g.others, "wait") + " in other places, which the page does not have");
	return lines;
}
function showList() {
	const r = anchor < 0 ? [0, columns - 1, 0, rows - 1] : range(), g = gather(...r);
	const title = (anchor < 0 ? "All: " : describeRange(...r) + ": ") + total(g);
	const items = g.groups.slice(0, FOUND).map((top) => {
		const d = make("details"), s = make("summary"), swatch = make("i");
		swatch.style.background = page.kindColor(kinds[top.kind]);
		s.append(make("span", time(top.sum), "number"), make("span", percent(top.sum, g.sum), "number"), make("span", count(top.n, "wait"), "number"), swatch,
			kinds[top.kind] + " ", make("span", places[top.stack], "name"), " " + (top.threads.size > 1 ? "(" + top.threads.size + " threads)" : ""));
		d.append(s);
		d.addEventListener("toggle", () => {
			if (d.childElementCount > 1)
				return;
			const ol = make("ol");
			fill(ol, ...stacks[top.stack].slice(-200).filter((n) => names[n] !== "-")
				.map((n) => make("li", page.plain(names[n]), page.isKernel(names[n]) ? "kernel" : "")));
			d.append(ol);
		});
		return d;
	});
	const rest = g.groups.slice(FOUND).reduce((a, x) => ({n: a.n + x.n, sum: a.sum + x.sum}), {n: 0, sum: 0});
	if (rest.n)
		items.push(make("p", count(g.groups.length - FOUND, "other place") + ": " + amount(rest)));
	if (g.others)
		items.push(make("p", "Places that the page does not have, being those of least time of their cells: " + amount({n: g.others, sum: g.othersSum})));
	fill($("list"), make("h2", title), ...items);
	$("reset").disabled = anchor < 0;
}
function announce() {
	const text = describeRange(...one(focus)) + ": " + describe(focus).join("; ");
	$("status").textContent = text;
	$("item").textContent = text;
	$("item").setAttribute("aria-selected", "true");
}

// --- mouse, touch and keys

function select(from, to) {
	anchor = from;
	focus = to;
	showList();
	announce();
	paintOver();
}
function selectNothing() {
	anchor = -1;
	showList();
	paintOver();
}
function tip(e) {
	const cell = at(e);
	if (cell !== hover) {
		hover = cell;
		repaint();
	}
	if (cell < 0 || !cellCount[cell])
		hideTip();
	else
		showTip(e, describeRange(...one(cell)), describe(cell));
}
let dragging = false;
main.addEventListener("pointerdown", (e) => {
	const cell = at(e);
	if (e.button || cell < 0)
		return;
	dragging = true;
	try {
		main.setPointerCapture(e.pointerId);
	} catch (error) {
		// a pointer that a script made
	}
	select(e.shiftKey && anchor >= 0 ? anchor : cell, cell);
});
main.addEventListener("pointermove", (e) => {
	tip(e);
	const cell = at(e);
	if (dragging && cell >= 0 && cell !== focus)
		select(anchor, cell);
});
for (const type of ["pointerup", "pointercancel"])
	main.addEventListener(type, () => (dragging = false));
main.addEventListener("pointerleave", () => {
	hover = -1;
	hideTip();
	repaint();
});
main.addEventListener("focus", () => {
	if (focus < 0)
		next(1);
	else
		announce();
	repaint();
});
main.addEventListener("blur", repaint);
main.addEventListener("scroll", hideTip);
function move(cell, more) {
	if (more)
		return select(anchor < 0 ? focus : anchor, cell);
	if (anchor >= 0)
		return select(cell, cell);
	focus = cell;
	announce();
	paintOver();
}
function next(step) { // through the cells that have waits, by time and then by duration
	const n = columns * rows, order = (k) => (k % rows) * columns + Math.floor(k / rows);
	let k = focus < 0 ? (step > 0 ? -1 : n) : (focus % columns) * rows + Math.floor(focus / columns);
	for (k += step; k >= 0 && k < n; k += step) {
		if (cellCount[order(k)])
			return move(order(k));
	}
}
function press(key, e) {
	if (focus < 0)
		focus = 0;
	const c = focus % columns, r = Math.floor(focus / columns);
	switch (key) {
	case "ArrowLeft":
		move(r * columns + Math.max(c - 1, 0), e.shiftKey);
		return true;
	case "ArrowRight":
		move(r * columns + Math.min(c + 1, columns - 1), e.shiftKey);
		return true;
	case "ArrowUp":
		move(Math.min(r + 1, rows - 1) * columns + c, e.shiftKey);
		return true;
	case "ArrowDown":
		move(Math.max(r - 1, 0) * columns + c, e.shiftKey);
		return true;
	case "Enter":
	case " ":
		select(focus, focus);
		return true;
	case "n":
		next(1);
		return true;
	case "p":
		next(-1);
		return true;
	case "Escape":
		selectNothing();
		return true;
	case "c":
		otherColor();
		return true;
	case "k":
		$("kind").focus();
		return true;
	case "t":
		$("thread").focus();
		return true;
	}
	return false;
}
function otherColor() {
	byTime = !byTime;
	$("color").textContent = "Colour: " + (byTime ? "time" : "waits");
	scale();
	paint();
}
function search(text) {
	test = matcher(text);
	choose();
}
function options(select, all, items) {
	const option = (value, text) => Object.assign(make("option", text), {value});
	fill(select, option(-1, all), ...items.map(([value, text]) => option(value, short(text, 60))));
	select.addEventListener("change", choose);
}

// --- the page tests itself

function selftest(ok, press) {
	const key = (name, more) => press(name, main, more);
	const all = [0, columns - 1, 0, rows - 1];
	const point = (type, cell) => {
		const box = canvas.getBoundingClientRect(), c = cell % columns, r = Math.floor(cell / columns);
		main.dispatchEvent(new PointerEvent(type, {clientX: box.left + xOf(c) + cw / 2, clientY: box.top + yOf(r + 1) + ch / 2, bubbles: true, button: 0}));
	};
	const luminance = (x, y) => {
		const dpr = devicePixelRatio, rgb = canvas.getContext("2d").getImageData(Math.round(x * dpr), Math.round(y * dpr), 1, 1).data;
		return [0.2126, 0.7152, 0.0722].reduce((sum, w, i) => sum + w * ((rgb[i] / 255 + 0.055) / 1.055) ** 2.4, 0);
	};
	let g = gather(...all);
	ok(g.n === data.waits, "the cells have all waits");
	ok(Math.abs(g.sum - Number(data.total)) <= Number(data.total) * 1e-12, "and their time");
	ok(Math.abs(g.groups.reduce((sum, x) => sum + x.sum, 0) + g.othersSum - g.sum) <= g.sum * 1e-9, "the list's places sum up to that");
	ok($("list").textContent.includes(grouped(g.sum) + " ns"), "the list shows the whole");
	let rare = -1, busiest = 0;
	for (let cell = 0; cell < cellCount.length; cell++) {
		if (cellCount[cell] && (rare < 0 || cellCount[cell] < cellCount[rare]))
			rare = cell;
		if (cellCount[cell] > cellCount[busiest])
			busiest = cell;
	}
	const shown = luminance(xOf(rare % columns) + cw / 3, yOf(Math.floor(rare / columns) + 1) + ch / 3), back = luminance(1, 1);
	ok((Math.max(shown, back) + 0.05) / (Math.min(shown, back) + 0.05) >= 3, "the rarest cell has a contrast of 3 to the background");
	point("pointermove", busiest);
	ok(!$("tip").hidden && $("tip").textContent.includes(grouped(cellCount[busiest])) && $("tip").textContent.includes(grouped(cellSum[busiest]) + " ns"), "the tip has the cell's number and time");
	point("pointerdown", busiest);
	point("pointerup", busiest);
	ok($("list").textContent.includes(": " + count(cellCount[busiest], "wait") + ", " + grouped(cellSum[busiest])), "a click selects a cell");
	const row = Math.floor(busiest / columns);
	point("pointerdown", row * columns);
	point("pointermove", row * columns + columns - 1);
	point("pointerup", row * columns + columns - 1);
	let n = 0;
	for (let c = 0; c < columns; c++)
		n += cellCount[row * columns + c];
	ok($("list").firstChild.textContent.includes(": " + count(n, "wait") + ","), "a drag selects a range, whose waits are summed");
	const d = $("list").querySelector("details");
	if (d) {
		d.open = true;
		d.dispatchEvent(new Event("toggle"));
	}
	ok(!d || d.querySelectorAll("li").length > 0 || !stacks[gather(...range()).groups[0].stack].length, "a place shows its stack");
	key("Escape");
	ok(anchor < 0 && $("reset").disabled, "Escape selects nothing");
	main.focus();
	focus = busiest;
	key("ArrowRight");
	key("ArrowLeft");
	key("ArrowUp");
	key("ArrowDown");
	ok(columns < 2 || rows < 2 || Math.abs(focus - busiest) <= columns + 1, "arrows move");
	focus = -1;
	key("n");
	ok(cellCount[focus] > 0 && $("status").textContent.includes(total(gather(...one(focus)))), "n moves to a cell with waits, which is described");
	key("ArrowRight", {shiftKey: true});
	ok(anchor >= 0, "Shift and an arrow select");
	key("Escape");
	const before = tint(0.5), shade = theme.dark;
	key("d");
	ok(theme.dark !== shade && tint(0.5) !== before, "d changes the colours");
	key("d");
	key("c");
	ok(byTime && $("legend").textContent.includes("time") && most === Math.max(1, ...cellSum), "c colours by time");
	key("c");
	let sum = 0;
	for (let k = 0; k < kinds.length; k++) {
		$("kind").value = k;
		choose();
		sum += gather(...all).n;
	}
	ok(sum === data.waits, "the kinds sum up to all waits");
	$("kind").value = -1;
	sum = 0;
	for (const option of $("thread").options) {
		if (Number(option.value) < 0)
			continue;
		$("thread").value = option.value;
		choose();
		sum += gather(...all).n;
	}
	ok(sum === data.waits, "the threads sum up to all waits");
	$("thread").value = -1;
	choose();
	key("/");
	ok(document.activeElement === $("search"), "/ goes to the search");
	$("search").value = kinds[0];
	$("search").dispatchEvent(new Event("input", {bubbles: true}));
	g = gather(...all);
	ok(g.n > 0 && $("found").textContent === count(g.n, "wait") + ", " + time(g.sum), "a search shows what it finds");
	search("/(/");
	ok($("search").getAttribute("aria-invalid") === "true" && gather(...all).n === data.waits, "a bad regular expression is reported");
	press("Escape", $("search"));
	ok(!test && document.activeElement === main, "Escape ends the search");
	key("?");
	ok(!$("help").hidden, "? shows the keys");
	key("?");
}

options($("kind"), "all kinds", kinds.map((name, i) => [i, name]));
options($("thread"), "all threads", data.threads.map((t, i) => [i + 1, page.threadName(i)])
	.concat(data.otherThreads ? [[0, count(data.otherThreads, "other thread")]] : threadOf.includes(0) ? [[0, "threads that are not known"]] : []));
$("color").addEventListener("click", otherColor);
$("reset").addEventListener("click", selectNothing);
page.keys(main, search, press);
page.onTheme(() => {
	scale();
	paint();
});
choose();
new ResizeObserver(paint).observe(main);
document.body.dataset.drawnMs = Math.round(performance.now());
page.selftest(selftest);
})();
