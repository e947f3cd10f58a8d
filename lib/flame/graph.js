// SPDX-License-Identifier: GPL-2.0-or-later
// The page of a flame graph: draws the tree of graph.h into a canvas, and answers mouse, keys and search.
"use strict";
(() => {
const ROW = 18; // pixels of a row
const LEAST = 0.5; // pixels of the narrowest frame that is drawn
const FONT = "12px ui-monospace, Menlo, Consolas, monospace";
const USER = 0, KERNEL = 1, SCRIPT = 2, INLINED = 3, WAKER = 4, STATE = 5, MARK = 6, BLOCKED = 7, ON_CPU = 8;
const CLASSES = ["user", "kernel", "script or JIT", "inlined", "waker", "runnable or preempted", "mark", "blocked", "on the CPU"];
const {$, data, bytes, NS, grouped, percent, fill, make, short, entry, showTip, hideTip, matcher, theme} = page;
const {names, differential} = data;
const N = data.nodes;
const exact = BigInt(data.sum) < 2n ** 53n && BigInt(data.sumBefore) < 2n ** 53n;

// --- the tree

const looks = bytes(data.looks);
const nameOf = new Uint32Array(N), parentOf = new Uint32Array(N), endOf = new Uint32Array(N), depthOf = new Uint32Array(N);
const classOf = new Uint8Array(N);
// values for drawing are doubles; beyond 2^53 those that are shown come from integers beside them
const self = new Float64Array(N), after = new Float64Array(N), before = new Float64Array(differential ? N : 0);
const exactSelf = exact ? self : new BigUint64Array(N);
const exactAfter = exact ? after : new BigUint64Array(N);
const exactBefore = exact ? before : new BigUint64Array(before.length);

(function decode() {
	const b = bytes(data.tree);
	let at = 0;
	const small = () => {
		let v = 0, scale = 1;
		for (; b[at] > 127; scale *= 128)
			v += (b[at++] & 127) * scale;
		return v + b[at++] * scale;
	};
	const large = () => {
		let v = 0n, shift = 0n;
		for (; b[at] > 127; shift += 7n)
			v |= BigInt(b[at++] & 127) << shift;
		return v | BigInt(b[at++]) << shift;
	};
	const value = exact ? small : large;
	let path = new Uint32Array(1024), depth = 0;
	for (let i = 0; i < N; i++) {
		depth -= small();
		if (depth >= path.length) {
			const longer = new Uint32Array(2 * path.length);
			longer.set(path);
			path = longer;
		}
		path[depth] = i;
		depthOf[i] = depth;
		parentOf[i] = depth ? path[depth - 1] : 0;
		nameOf[i] = small();
		exactSelf[i] = exactAfter[i] = value();
		if (differential)
			exactBefore[i] = value();
		endOf[i] = i + 1;
		classOf[i] = i === 0 ? MARK : classOf[parentOf[i]] === WAKER ? WAKER : looks[2 * nameOf[i]];
		depth++;
	}
	for (let i = N - 1; i > 0; i--) {
		const p = parentOf[i];
		exactAfter[p] += exactAfter[i];
		if (differential)
			exactBefore[p] += exactBefore[i];
		if (endOf[i] > endOf[p])
			endOf[p] = endOf[i];
	}
	for (let i = 0; !exact && i < N; i++) {
		self[i] = Number(exactSelf[i]);
		after[i] = Number(exactAfter[i]);
		if (differential)
			before[i] = Number(exactBefore[i]);
	}
})();

let value = after; // what widths stand for
const start = new Float64Array(N); // of each frame, in the unit of value
function place() {
	const next = new Float64Array(N); // where the next child begins
	for (let i = 1; i < N; i++) {
		const p = parentOf[i];
		start[i] = next[p];
		next[p] += value[i];
		next[i] = start[i];
	}
}
place();

const nameText = (i) => (i === 0 ? "all" : names[nameOf[i]] || "(no name)");
const isMarked = (name) => /._\[[kji]\]$/.test(name);
const label = (i) => {
	const name = nameText(i);
	return isMarked(name) ? name.slice(0, -4) : name;
};

// --- numbers

function human(v) { // the same time in a unit that is easier to read
	const ns = v * (NS[data.unit] || 0);
	const unit = ["s", "ms", "us"].find((u) => ns >= NS[u]);
	if (!unit || NS[unit] <= NS[data.unit])
		return "";
	const t = ns / NS[unit];
	return " (" + t.toFixed(t < 10 ? 2 : t < 100 ? 1 : 0) + " " + unit + ")";
}
const amount = (v) => grouped(v) + (data.unit ? " " + data.unit : "") + human(Number(v));
function change(i) {
	const d = exactAfter[i] - exactBefore[i];
	const text = d < 0 ? "−" + grouped(-d) : "+" + grouped(d);
	return text + (before[i] ? " (" + (d < 0 ? "−" : "+") + percent(Math.abs(Number(d)), before[i]) + ")" : " (new)");
}
function describe(i) {
	const lines = [amount(value === before ? exactBefore[i] : exactAfter[i]) + " — " + percent(value[i], value[0]) + " of all" +
		(i && parentOf[i] ? ", " + percent(value[i], value[parentOf[i]]) + " of its caller" : "")];
	if (self[i] && endOf[i] > i + 1)
		lines.push("own: " + amount(exactSelf[i]));
	if (differential)
		lines.push("before " + amount(exactBefore[i]) + ", after " + amount(exactAfter[i]) + ", change " + change(i));
	if (i && classOf[i] !== USER && classOf[i] !== MARK)
		lines.push(CLASSES[classOf[i]]);
	if (i && kinds)
		lines.push("mostly " + data.families[kinds[i]][0]);
	return lines;
}

// --- colours

const HUES = [[22, 46, 78], [205, 228, 72], [88, 128, 48], [168, 186, 48], [268, 292, 58], [338, 354, 72], [], [216, 226, 16], [60, 64, 92]]; // two hues, the saturation
const cached = new Map();
function once(key, make) {
	let c = cached.get(key);
	if (c === undefined)
		cached.set(key, c = make());
	return c;
}
function tint(cls, tone) {
	return once(cls * 32 + tone, () => {
		if (cls === MARK)
			return theme.dark ? "#3a3f47" : "#d9dce1";
		const [from, to, pure] = HUES[cls];
		const hue = from + (to - from) * (tone & 7) / 7, light = (tone >> 3) * 3;
		return theme.dark ? `hsl(${hue} ${pure * 0.6}% ${24 + light}%)` : `hsl(${hue} ${pure}% ${68 + light}%)`;
	});
}
// red where it grew, blue where it shrank: by the part of the greater of both values, in 20 steps
function changeTint(b, a) {
	const most = Math.max(b, a), step = most ? Math.round(20 * (a - b) / most) : 0;
	return once("change " + step, () => {
		const hue = step > 0 ? 4 : 215, n = Math.abs(step);
		if (!n)
			return theme.dark ? "#3a3f47" : "#e4e6ea";
		return theme.dark ? `hsl(${hue} ${30 + n * 2}% ${24 + n}%)` : `hsl(${hue} ${60 + n}% ${92 - n * 1.3}%)`;
	});
}
const kinds = data.kinds ? bytes(data.kinds) : null; // of each frame, if colours are by kind: an index of data.families
function kindTint(kind, tone) {
	return once("kind " + kind + " " + tone, () => {
		const hue = data.families[kind][1], pure = data.families[kind][2], light = (tone >> 3) * 3;
		return theme.dark ? `hsl(${hue} ${pure * 0.6}% ${24 + light}%)` : `hsl(${hue} ${pure}% ${68 + light}%)`;
	});
}
const tintOf = (i) => (i === 0 ? tint(MARK, 0) : kinds ? kindTint(kinds[i], looks[2 * nameOf[i] + 1]) : differential ? changeTint(before[i], after[i]) : tint(classOf[i], looks[2 * nameOf[i] + 1]));

// --- layout: the frames of each row, from left to right; frame -1 stands for frames too narrow to be drawn

const tree = $("tree"), space = $("space"), canvas = $("canvas"), ctx = canvas.getContext("2d", {alpha: false});
let zoom = 0, focus = 0, hover = -1, icicle = data.icicle;
let rows = [], width = 0, height = 0, charWidth = 7;

function layout() {
	width = tree.clientWidth;
	rows = [];
	for (let a = zoom; a !== 0;) {
		a = parentOf[a];
		rows[depthOf[a]] = {nodes: [a], x: [0], w: [width]};
	}
	const scale = value[zoom] ? width / value[zoom] : 0, left = start[zoom];
	for (let i = zoom; i < endOf[zoom];) {
		const x = (start[i] - left) * scale, w = value[i] * scale;
		const row = rows[depthOf[i]] || (rows[depthOf[i]] = {nodes: [], x: [], w: []});
		const last = row.nodes.length - 1;
		if (i === zoom || w >= LEAST) {
			row.nodes.push(i);
			row.x.push(x);
			row.w.push(i === zoom ? width : w);
			i++;
			continue;
		}
		if (last >= 0 && row.nodes[last] < 0 && row.x[last] + row.w[last] > x - LEAST) {
			row.w[last] = x + w - row.x[last];
		} else if (w > 0) {
			row.nodes.push(-1);
			row.x.push(x);
			row.w.push(w);
		}
		i = endOf[i];
	}
	space.style.height = rows.length * ROW + "px";
}
const top = (depth) => (icicle ? depth : rows.length - 1 - depth) * ROW;

function paint() {
	const tall = printing ? Math.min(rows.length * ROW, 16000) : Math.min(tree.clientHeight, rows.length * ROW);
	const dpr = window.devicePixelRatio || 1;
	if (canvas.width !== Math.round(width * dpr) || canvas.height !== Math.round(tall * dpr)) {
		canvas.width = Math.round(width * dpr);
		canvas.height = Math.round(tall * dpr);
		canvas.style.width = width + "px";
		canvas.style.height = tall + "px";
	}
	height = tall;
	const scroll = printing ? 0 : tree.scrollTop;
	const back = theme.dark ? "#16181c" : "#ffffff", ink = theme.dark ? "#f3f4f6" : "#111111";
	ctx.setTransform(dpr, 0, 0, dpr, 0, 0);
	ctx.globalAlpha = 1;
	ctx.fillStyle = back;
	ctx.fillRect(0, 0, width, tall);
	ctx.font = FONT;
	ctx.textBaseline = "middle";
	for (let d = 0; d < rows.length; d++) {
		const y = top(d) - scroll, row = rows[d];
		if (y > tall || y < -ROW || !row)
			continue;
		for (let k = 0; k < row.nodes.length; k++) {
			const i = row.nodes[k], x = row.x[k], w = row.w[k];
			if (i < 0) {
				if (w >= LEAST) {
					ctx.globalAlpha = 0.25;
					ctx.fillStyle = ink;
					ctx.fillRect(x, y + ROW / 2 - 1, w, 2);
				}
				continue;
			}
			const hit = matched && i && matched[nameOf[i]];
			ctx.globalAlpha = depthOf[i] < depthOf[zoom] ? 0.55 : matched && !hit ? (theme.dark ? 0.45 : 0.35) : 1;
			ctx.fillStyle = hit ? (theme.dark ? "#b526b5" : "#f08cf0") : tintOf(i);
			ctx.fillRect(x, y, w > 2 ? w - 0.6 : w, ROW - 1);
			ctx.globalAlpha = 1;
			if (w < 3 * charWidth)
				continue;
			const room = Math.floor((w - 7) / charWidth);
			let text = label(i);
			if (text.length > room)
				text = room > 2 ? text.slice(0, room - 1) + "…" : "";
			ctx.fillStyle = ink;
			if (text)
				ctx.fillText(text, x + 3, y + ROW / 2, w - 6);
		}
	}
	if (!printing) {
		outline(hover, 1, scroll);
		if (document.activeElement === tree)
			outline(focus, 2, scroll);
	}
	ctx.globalAlpha = 1;
}
function box(i) { // where a frame is drawn, if it is
	const row = i >= 0 && rows[depthOf[i]], k = row ? row.nodes.indexOf(i) : -1;
	return k < 0 ? null : {x: row.x[k], w: row.w[k], y: top(depthOf[i])};
}
function outline(i, thick, scroll) {
	const b = box(i);
	if (!b)
		return;
	ctx.strokeStyle = theme.dark ? "#ffffff" : "#000000";
	ctx.lineWidth = thick;
	ctx.strokeRect(b.x + thick / 2, b.y - scroll + thick / 2, Math.max(b.w - thick, 1), ROW - 1 - thick);
}
function at(x, y) { // the frame at a place of the canvas, or -1
	const line = Math.floor((y + tree.scrollTop) / ROW);
	const row = y < height && rows[icicle ? line : rows.length - 1 - line];
	let low = 0, high = row ? row.nodes.length : 0;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (row.x[middle] <= x)
			low = middle + 1;
		else
			high = middle;
	}
	return low && x < row.x[low - 1] + row.w[low - 1] ? row.nodes[low - 1] : -1;
}

let pending = 0, printing = false;
function repaint() {
	if (!pending)
		pending = requestAnimationFrame(() => {
			pending = 0;
			paint();
		});
}
function refresh() {
	layout();
	paint();
}

// --- what is shown around it

function showPath() {
	const path = [];
	for (let i = zoom; ; i = parentOf[i]) {
		path.unshift(i);
		if (!i || path.length > 200)
			break;
	}
	if (path[0])
		path.unshift(0);
	fill($("path"), ...path.map((i) => {
		const b = make("button", short(nameText(i), 200));
		b.type = "button";
		b.title = "Zoom to this frame";
		b.addEventListener("click", () => zoomTo(i));
		return b;
	}));
	$("path").hidden = zoom === 0;
	$("reset").disabled = zoom === 0;
}
function announce(i) {
	const text = short(nameText(i), 300) + ": " + describe(i).join("; ");
	const item = $("item"), p = parentOf[i];
	$("status").textContent = text;
	item.textContent = text;
	item.setAttribute("aria-level", depthOf[i] + 1);
	item.setAttribute("aria-selected", "true");
	if (endOf[i] > i + 1)
		item.setAttribute("aria-expanded", "true");
	else
		item.removeAttribute("aria-expanded");
	let nth = 0, all = 0;
	for (let c = p + 1; i && c < endOf[p]; c = endOf[c]) {
		all++;
		if (c <= i)
			nth++;
	}
	item.setAttribute("aria-posinset", nth || 1);
	item.setAttribute("aria-setsize", all || 1);
}
function legend() {
	if (differential) {
		fill($("legend"), entry(changeTint(0, 1), "new"), entry(changeTint(2, 3), "grew"), entry(changeTint(1, 1), "same"),
			entry(changeTint(3, 2), "shrank"), entry(changeTint(1, 0), "gone"));
		return;
	}
	if (kinds) {
		fill($("legend"), ...[...new Set(kinds.subarray(1))].sort((a, b) => a - b).map((kind) => entry(kindTint(kind, 11), data.families[kind][0])));
		return;
	}
	const used = new Set(classOf.subarray(1));
	fill($("legend"), ...[USER, KERNEL, SCRIPT, INLINED, WAKER, STATE, BLOCKED, ON_CPU].filter((c) => used.has(c))
		.map((c) => entry(tint(c, 11), CLASSES[c])));
}
// Functions by their own value. A function that calls itself counts once in what it has with its callees.
function fillTable() {
	const own = new Float64Array(names.length), all = new Float64Array(names.length), open = new Uint32Array(names.length);
	const ends = [];
	for (let i = 1; i < N; i++) {
		while (ends.length && endOf[ends[ends.length - 1]] <= i)
			open[nameOf[ends.pop()]]--;
		const n = nameOf[i];
		own[n] += self[i];
		if (!open[n]++)
			all[n] += after[i];
		ends.push(i);
	}
	const best = Array.from(own.keys()).filter((n) => own[n] > 0).sort((a, b) => own[b] - own[a]).slice(0, 50);
	fill($("rows"), ...best.map((n) => {
		const tr = make("tr");
		tr.append(make("td", short(names[n] || "(no name)", 300)), make("td", about(own[n])), make("td", percent(own[n], after[0])),
			make("td", about(all[n])), make("td", percent(all[n], after[0])));
		return tr;
	}));
}
const about = (v) => (v < 2 ** 53 ? grouped(v) : "≈ " + v.toPrecision(6));

// --- zoom, search, state

function zoomTo(i, quiet) {
	zoom = i;
	focus = i;
	showPath();
	layout();
	tree.scrollTop = icicle ? 0 : tree.scrollHeight;
	reveal(i);
	paint();
	if (!quiet) {
		announce(i);
		saveState(true);
	}
}
function reveal(i) {
	const b = box(i);
	if (b && (b.y < tree.scrollTop || b.y + ROW > tree.scrollTop + tree.clientHeight))
		tree.scrollTop = b.y - tree.clientHeight / 2;
}
let matched = null; // for each name, whether it is searched for
let query = "";
function search(text, quiet) {
	const test = matcher(text);
	query = text;
	matched = null;
	if (test) {
		matched = Uint8Array.from(names, (name) => (test(name) ? 1 : 0));
		const [sum, frames] = matchedSum();
		$("found").textContent = percent(sum, value[0]) + " in " + grouped(frames) + (frames === 1 ? " frame" : " frames");
		$("found").title = "of all; a frame below another match counts once";
	}
	repaint();
	if (!quiet)
		saveState(false);
}
function matchedSum() { // of the outermost matches: none is counted twice
	let sum = 0, frames = 0;
	for (let i = 1, skip = 1; i < N; i++) {
		if (!matched[nameOf[i]])
			continue;
		frames++;
		if (i >= skip) {
			sum += value[i];
			skip = endOf[i];
		}
	}
	return [sum, frames];
}
function saveState(push) {
	const parts = [];
	if (zoom)
		parts.push("zoom=" + zoom);
	if (query)
		parts.push("search=" + encodeURIComponent(query));
	if (icicle !== data.icicle)
		parts.push("flip");
	const hash = "#" + parts.join("&");
	if (hash === (location.hash || "#"))
		return;
	try {
		history[push ? "pushState" : "replaceState"](null, "", hash);
	} catch (e) {
		// a page that may not have a history still works
	}
}
function loadState() {
	let z = 0, text = "", flip = false;
	for (const part of location.hash.slice(1).split("&")) {
		const [key, ...rest] = part.split("=");
		if (key === "zoom" && Number(rest[0]) < N && Number(rest[0]) > 0)
			z = Math.floor(Number(rest[0]));
		if (key === "search") {
			try {
				text = decodeURIComponent(rest.join("="));
			} catch (e) {
				text = "";
			}
		}
		flip = flip || key === "flip";
	}
	icicle = flip ? !data.icicle : data.icicle;
	$("search").value = text;
	search(text, true);
	zoomTo(z, true);
}
function flip() {
	icicle = !icicle;
	zoomTo(zoom, true);
	saveState(false);
}
function otherSide() {
	if (!differential)
		return;
	value = value === after ? before : after;
	$("side").textContent = "Widths: " + (value === after ? "after" : "before");
	place();
	search(query, true);
	refresh();
}
// --- mouse and keys

function tip(e) {
	const r = canvas.getBoundingClientRect();
	const i = at(e.clientX - r.left, e.clientY - r.top);
	if (i !== hover) {
		hover = i;
		repaint();
	}
	canvas.style.cursor = i < 0 ? "default" : "pointer";
	if (i < 0)
		hideTip();
	else
		showTip(e, nameText(i), describe(i));
}
function leave() {
	hover = -1;
	hideTip();
	repaint();
}
function focusOn(i) {
	focus = i;
	reveal(i);
	announce(i);
	paint();
}
function beside(i, step) { // the frame drawn beside it in its row
	const row = rows[depthOf[i]];
	let k = row ? row.nodes.indexOf(i) : -1;
	if (k < 0)
		return i;
	for (k += step; k >= 0 && k < row.nodes.length; k += step) {
		if (row.nodes[k] >= 0)
			return row.nodes[k];
	}
	return i;
}
function callee(i) { // the widest one that is drawn, on the way to the zoomed frame
	if (depthOf[i] < depthOf[zoom]) {
		let z = zoom;
		while (parentOf[z] !== i)
			z = parentOf[z];
		return z;
	}
	let best = i;
	for (let c = i + 1; c < endOf[i]; c = endOf[c]) {
		if (box(c) && (best === i || value[c] > value[best]))
			best = c;
	}
	return best;
}
function press(key) { // true if the key means something
	if (!box(focus))
		focus = zoom;
	switch (key) {
	case "ArrowUp":
	case "ArrowDown":
		focusOn(icicle === (key === "ArrowUp") ? parentOf[focus] : callee(focus));
		return true;
	case "ArrowLeft":
		focusOn(beside(focus, -1));
		return true;
	case "ArrowRight":
		focusOn(beside(focus, 1));
		return true;
	case "Enter":
		zoomTo(focus);
		return true;
	case "Escape":
		zoomTo(0);
		return true;
	case "f":
		flip();
		return true;
	case "w":
		otherSide();
		return true;
	case "t":
		$("top").open = !$("top").open;
		return true;
	}
	return false;
}

canvas.addEventListener("mousemove", tip);
canvas.addEventListener("mouseleave", leave);
canvas.addEventListener("click", (e) => {
	const r = canvas.getBoundingClientRect(), i = at(e.clientX - r.left, e.clientY - r.top);
	if (i >= 0)
		zoomTo(i);
});
tree.addEventListener("scroll", () => {
	hideTip();
	repaint();
});
tree.addEventListener("focus", () => {
	announce(focus);
	repaint();
});
tree.addEventListener("blur", repaint);
page.keys(tree, search, press);
$("reset").addEventListener("click", () => zoomTo(0));
$("flip").addEventListener("click", flip);
$("side").addEventListener("click", otherSide);
$("side").hidden = !differential;
addEventListener("popstate", loadState);
addEventListener("hashchange", loadState);
addEventListener("beforeprint", () => {
	printing = true;
	theme.dark = false;
	cached.clear();
	refresh();
});
addEventListener("afterprint", () => {
	printing = false;
	page.sameTheme();
	refresh();
});
let tall = tree.clientHeight;
new ResizeObserver(() => {
	if (tree.clientWidth !== width)
		layout();
	if (!icicle) // what is at the lower edge stays there
		tree.scrollTop += tall - tree.clientHeight;
	tall = tree.clientHeight;
	repaint();
}).observe(tree);

// --- #selftest: uses the page as a person would, and writes what it found into it as TAP

function selftest(ok, press) {
	const drawn = () => rows.reduce((n, row) => n + (row ? row.nodes.filter((i) => i >= 0).length : 0), 0);
	const widest = (from) => {
		let best = 0;
		for (let i = from + 1; i < endOf[from]; i = endOf[i]) {
			if (!best || value[i] > value[best])
				best = i;
		}
		return best;
	};
	const key = (name, target) => press(name, target || tree);
	const click = (i, type) => {
		const b = box(i), r = canvas.getBoundingClientRect();
		canvas.dispatchEvent(new MouseEvent(type, {clientX: r.left + b.x + b.w / 2, clientY: r.top + b.y - tree.scrollTop + ROW / 2, bubbles: true}));
	};
	let sound = true;
	for (let i = 1; i < N && sound; i++)
		sound = parentOf[i] < i && endOf[i] <= endOf[parentOf[i]] && start[i] >= start[parentOf[i]] && exactAfter[i] <= exactAfter[parentOf[i]];
	ok(sound, "each frame is within its caller");
	ok(String(exactAfter[0]) === data.sum, "the frames sum up to the whole");
	let narrow = 0;
	rows.forEach((row) => row.nodes.forEach((i, k) => (narrow += i > 0 && row.w[k] < LEAST ? 1 : 0)));
	ok(drawn() > 0 && narrow === 0, "no frame is drawn that is narrower than half a pixel");
	const pixel = ctx.getImageData(Math.round(canvas.width / 2), Math.round((top(0) - tree.scrollTop + 2) * canvas.height / height), 1, 1).data;
	ok(pixel[0] !== (theme.dark ? 0x16 : 255), "the root is drawn");
	const first = widest(0);
	click(first, "mousemove");
	ok(!$("tip").hidden && $("tip").firstChild.textContent === short(nameText(first), 2000), "the tip has the whole name");
	ok($("tip").textContent.includes(grouped(exactAfter[first])), "the tip has the exact value");
	click(first, "click");
	ok(zoom === first && box(first).w === width && $("path").childElementCount === depthOf[first] + 1, "a click zooms, and the path is shown");
	ok(location.hash.includes("zoom=" + first), "the address has the zoom");
	key("Escape");
	ok(zoom === 0 && $("reset").disabled, "Escape resets the zoom");
	tree.focus();
	focusOn(0);
	const away = icicle ? "ArrowDown" : "ArrowUp", back = icicle ? "ArrowUp" : "ArrowDown";
	key(away);
	ok(focus === first, "an arrow moves to the widest callee");
	ok($("status").textContent.startsWith(short(nameText(first), 300)) && $("item").getAttribute("aria-level") === "2", "the frame in focus is described");
	key("ArrowRight");
	key("ArrowLeft");
	key(back);
	ok(focus === 0, "arrows move back");
	key(away);
	key("Enter");
	ok(zoom === focus && zoom === first, "Enter zooms");
	key("Escape");
	const word = names[nameOf[first]];
	key("/");
	ok(document.activeElement === $("search"), "/ goes to the search");
	$("search").value = word;
	$("search").dispatchEvent(new Event("input", {bubbles: true}));
	const flags = names.map((name) => name.toLowerCase().includes(word.toLowerCase()));
	let sum = 0;
	for (let i = 1; i < N; i++) { // what ends in a match or below one
		let hit = false;
		for (let a = i; a && !hit; a = parentOf[a])
			hit = flags[nameOf[a]];
		sum += hit ? self[i] : 0;
	}
	ok(N > 200000 || !word || (matched && Math.abs(matchedSum()[0] - sum) <= sum * 1e-9), "a search counts each stack once");
	ok(!word || $("found").textContent.startsWith(percent(sum, value[0])) || N > 200000, "the share that matches is shown");
	const whole = $("found").textContent;
	search("/" + word.replace(/[^A-Za-z0-9]/g, "\\$&") + "/i");
	ok(!word || $("found").textContent === whole, "a regular expression finds the same");
	search("/(/");
	ok($("search").getAttribute("aria-invalid") === "true" && !matched, "a bad regular expression is reported");
	key("Escape", $("search"));
	ok(!query && document.activeElement === tree, "Escape ends the search");
	ok(!kinds || ($("legend").childElementCount === new Set(kinds.subarray(1)).size && tintOf(first) === kindTint(kinds[first], looks[2 * nameOf[first] + 1])),
		"the legend has each family of kinds, and frames their colour");
	const was = icicle;
	key("f");
	ok(icicle !== was && top(0) === (icicle ? 0 : (rows.length - 1) * ROW), "f flips the graph");
	key("f");
	key("?");
	ok(!$("help").hidden, "? shows the keys");
	key("?");
	const shade = theme.dark, tinted = tintOf(first);
	key("d");
	ok(theme.dark !== shade && tintOf(first) !== tinted, "d changes the colours");
	key("d");
	key("w");
	ok(!differential || (value === before && String(exactBefore[0]) === data.sumBefore), "w draws the values before");
	key("w");
	location.hash = "#search=" + encodeURIComponent(word) + "&zoom=" + first;
	loadState();
	ok(zoom === first && query === word, "the address brings zoom and search back");
	fillTable();
	ok($("rows").childElementCount > 0, "there is a table of functions");
}

ctx.font = FONT;
charWidth = ctx.measureText("mmmmmmmmmm").width / 10;
page.onTheme(() => {
	cached.clear();
	legend();
	repaint();
});
loadState();
document.body.dataset.drawnMs = Math.round(performance.now());
setTimeout(fillTable, 50);
page.selftest(selftest);
})();
