// SPDX-License-Identifier: GPL-2.0-or-later
// What all pages of flame share: numbers as text, elements, search, colours, the tip, keys, and the self-test.
// Names come from programs that are not trusted: they become text of nodes and of a canvas, never markup.
"use strict";
const page = (() => {
const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);

// --- what page.c encodes

function bytes(base64) {
	const text = atob(base64), out = new Uint8Array(text.length);
	for (let i = 0; i < text.length; i++)
		out[i] = text.charCodeAt(i);
	return out;
}
function column(base64, into) { // LEB128 numbers, below 2^53, into an array of as many
	const b = bytes(base64);
	for (let i = 0, at = 0; i < into.length; i++) {
		let v = b[at++];
		if (v > 127) {
			let scale = 128;
			for (v &= 127; b[at] > 127; scale *= 128)
				v += (b[at++] & 127) * scale;
			v += b[at++] * scale;
		}
		into[i] = v;
	}
	return into;
}

// --- numbers

const grouped = (v) => String(v).replace(/\B(?=(\d{3})+$)/g, ",");
function percent(part, whole) {
	if (!whole)
		return "0 %";
	const p = 100 * part / whole;
	return (p === 0 || p >= 0.01 ? p.toFixed(2) : "< 0.01") + " %";
}
const NS = {ns: 1, us: 1e3, ms: 1e6, s: 1e9};
function time(ns) { // in the unit that reads best, with three digits
	const unit = ["s", "ms", "us"].find((u) => ns >= 0.9995 * NS[u]);
	if (!unit)
		return ns + " ns";
	const t = ns / NS[unit];
	return (t < 9.995 ? t.toFixed(2) : t < 99.95 ? t.toFixed(1) : grouped(t.toFixed(0))) + " " + unit;
}
const count = (n, one, many) => grouped(n) + " " + (n === 1 ? one : many || one + "s");

// --- elements

function fill(element, ...children) {
	element.replaceChildren(...children);
}
function make(tag, text, cls) {
	const e = document.createElement(tag);
	if (text !== undefined)
		e.textContent = text;
	if (cls)
		e.className = cls;
	return e;
}
const short = (s, n) => (s.length > n ? s.slice(0, n) + "…" : s);
function entry(color, text) { // of the legend
	const li = make("li"), swatch = make("i");
	swatch.style.background = color;
	li.append(swatch, text);
	return li;
}
function showTip(e, name, lines) { // beside the pointer, or within the rectangle of an element
	const t = $("tip");
	t.hidden = false;
	fill(t, make("b", short(name, 2000)), ...lines.map((line) => make("span", line)));
	const x = e.clientX + 14, y = e.clientY + 16;
	t.style.left = Math.max(4, Math.min(x, innerWidth - t.offsetWidth - 6)) + "px";
	t.style.top = (y + t.offsetHeight > innerHeight ? Math.max(4, e.clientY - t.offsetHeight - 10) : y) + "px";
}
function hideTip() {
	$("tip").hidden = true;
}
function fitCanvas(canvas, width, height) { // its context, in pixels of CSS
	const dpr = window.devicePixelRatio || 1, ctx = canvas.getContext("2d");
	if (canvas.width !== Math.round(width * dpr) || canvas.height !== Math.round(height * dpr)) {
		canvas.width = Math.round(width * dpr);
		canvas.height = Math.round(height * dpr);
		canvas.style.width = width + "px";
		canvas.style.height = height + "px";
	}
	ctx.setTransform(dpr, 0, 0, dpr, 0, 0);
	ctx.globalAlpha = 1;
	return ctx;
}

// --- search: text, or a regular expression between slashes

function matcher(text) { // a function of a name; null if there is nothing to search for, or it is malformed, which is shown
	const re = /^\/(.*)\/([imsu]*)$/s.exec(text);
	$("search").setAttribute("aria-invalid", "false");
	$("found").textContent = "";
	if (!text)
		return null;
	try {
		const pattern = re && new RegExp(re[1], re[2]), small = text.toLowerCase();
		return re ? (name) => pattern.test(name) : (name) => name.toLowerCase().includes(small);
	} catch (e) {
		$("search").setAttribute("aria-invalid", "true");
		$("found").textContent = "not a regular expression";
		return null;
	}
}

// --- colours

const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const theme = {dark: false, changed: () => {}};
function setTheme(name) { // "dark", "light", or "" for the browser's
	if (name)
		document.documentElement.dataset.theme = name;
	theme.dark = name ? name === "dark" : prefersDark.matches;
	theme.changed();
}
const otherTheme = () => setTheme(theme.dark ? "light" : "dark");
const sameTheme = () => setTheme(document.documentElement.dataset.theme || "");
function onTheme(changed) { // calls it now, too
	theme.changed = changed;
	sameTheme();
}
prefersDark.addEventListener("change", sameTheme);

// --- keys

function showHelp(on) {
	$("help").hidden = !on;
	$("keys").setAttribute("aria-expanded", String(on));
}
// MAIN has the focus when a search ends; SEARCH takes its text; PRESS(event) is true if the key means something
function keys(main, search, press) {
	document.addEventListener("keydown", (e) => {
		const t = e.target;
		if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented)
			return;
		if (t === $("search")) {
			if (e.key === "Escape") {
				t.value = "";
				search("");
				main.focus();
				e.preventDefault();
			} else if (e.key === "Enter") {
				main.focus();
				e.preventDefault();
			}
			return;
		}
		// Enter presses a button, arrows scroll a table, and letters choose from a list
		const elsewhere = t !== main && t !== document.body && t !== document.documentElement;
		if (elsewhere && (e.key === "Enter" || e.key === " " || e.key.startsWith("Arrow") || t.tagName === "SELECT"))
			return;
		if (common(e.key) || press(e.key, e))
			e.preventDefault();
	});
	const common = (key) => {
		if (key === "Escape" && !$("help").hidden) {
			showHelp(false);
		} else if (key === "Escape" && $("search").value) {
			$("search").value = "";
			search("");
		} else if (key === "/") {
			$("search").focus();
			$("search").select();
		} else if (key === "d") {
			otherTheme();
		} else if (key === "?") {
			showHelp($("help").hidden);
		} else {
			return false;
		}
		return true;
	};
	$("tools").addEventListener("submit", (e) => e.preventDefault());
	$("search").addEventListener("input", (e) => search(e.target.value));
	$("theme").addEventListener("click", otherTheme);
	$("keys").addEventListener("click", () => showHelp($("help").hidden));
}

// --- #selftest: a page is used as a person would, and what was found is written into it as TAP

function selftest(run) {
	if (location.hash !== "#selftest")
		return;
	const lines = [];
	const ok = (good, what) => lines.push((good ? "ok " : "not ok ") + (lines.length + 1) + " - " + what);
	const key = (name, target, more) => target.dispatchEvent(
		new KeyboardEvent("keydown", {key: name, bubbles: true, cancelable: true, ...more}));
	try {
		run(ok, key);
		ok(document.scripts.length === 3 && !document.querySelector("img, iframe, object, link, b *, td *"), "no name became markup");
	} catch (e) {
		ok(false, "it ends: " + e.stack);
	}
	lines.push("1.." + lines.length);
	const pre = make("pre", lines.join("\n") + "\n");
	pre.id = "selftest";
	document.body.append(pre);
}

// --- waits: what timeline.h puts

function stacks() { // of each, an array of names, outermost first
	const b = bytes(data.stacks), all = new Array(data.nStacks);
	let at = 0;
	const next = () => {
		let v = 0, scale = 1;
		for (; b[at] > 127; scale *= 128)
			v += (b[at++] & 127) * scale;
		return v + b[at++] * scale;
	};
	for (let i = 0; i < all.length; i++)
		all[i] = Array.from({length: next()}, next);
	return all;
}
const isKernel = (name) => name.endsWith("_[k]");
const plain = (name) => (/._\[[kji]\]$/.test(name) ? name.slice(0, -4) : name) || "(no name)";
const CALL = /^(?:__x64_sys_|__ia32_(?:compat_)?sys_|__arm64_(?:compat_)?sys_|__se_(?:compat_)?sys_|__do_(?:compat_)?sys_|ksys_)([^.]+)/;
function place(names) { // the two innermost user functions and the system call, or kernel functions where there are none
	const end = names.indexOf("--"), own = (end < 0 ? names : names.slice(0, end)).filter((name) => name !== "-");
	const user = own.filter((name) => !isKernel(name)), kernel = own.filter(isKernel);
	const call = kernel.map((name) => CALL.exec(plain(name))).find((match) => match);
	const parts = (user.length || call ? user : kernel.filter((name) => !/^(__)?schedule/.test(name))).slice(-2).map(plain);
	if (call && parts[parts.length - 1] !== call[1])
		parts.push(call[1]);
	return parts.join(" > ") || "no stack";
}
function threadName(i) { // as `ps` shows it
	const [name, pid, tid, process] = data.threads[i];
	return name + " " + (pid === tid ? pid : process === name || !process ? pid + "/" + tid : tid + " of " + process + " " + pid);
}
const KINDS = { // hue, saturation, lightness where it is light
	lock: [2, 72, 55], condition: [18, 62, 60], futex: [350, 60, 58], sleep: [255, 22, 66], "disk-read": [212, 75, 52],
	"disk-write": [222, 60, 62], fsync: [232, 62, 48], "net-receive": [145, 52, 42], "net-send": [120, 42, 52], accept: [165, 40, 52],
	poll: [180, 48, 46], pipe: [75, 48, 44], child: [300, 30, 60], signal: [315, 40, 62], terminal: [285, 28, 52],
	event: [195, 38, 58], "page-fault": [328, 70, 52], swap: [340, 75, 40], throttled: [28, 60, 36], stopped: [0, 0, 40],
	scheduler: [45, 92, 50], idle: [220, 10, 80], unknown: [220, 8, 60], other: [220, 8, 52],
};
const RUNNABLE = KINDS.scheduler; // as what waits for a CPU
function hueOf(name) { // rules may have kinds of their own
	let h = 7;
	for (let i = 0; i < name.length; i++)
		h = (h * 31 + name.charCodeAt(i)) % 1009;
	return Object.hasOwn(KINDS, name) ? KINDS[name] : [h * 137 % 360, 40 + h % 3 * 12, 50 + h % 4 * 4];
}
function shaded([hue, pure, light]) {
	return theme.dark ? [hue, pure * 0.85, pure < 11 && light > 70 ? 32 : light * 0.94] : [hue, pure, light];
}
const shade = ([hue, pure, light]) => `hsl(${hue} ${pure}% ${light}%)`;
const kindColor = (name) => shade(shaded(hueOf(name)));
const kindInk = (name) => inkOn(shaded(hueOf(name)));
function inkOn([hue, pure, light]) { // black or white, whichever is read better
	const a = pure / 100 * Math.min(light, 100 - light) / 100;
	const channel = (n) => {
		const k = (n + hue / 30) % 12, v = light / 100 - a * Math.max(-1, Math.min(k - 3, 9 - k, 1));
		return ((v + 0.055) / 1.055) ** 2.4;
	};
	return 0.2126 * channel(0) + 0.7152 * channel(8) + 0.0722 * channel(4) > 0.18 ? "#000000" : "#ffffff";
}
const runnableColor = () => shade(shaded(RUNNABLE));
function ticks(from, to, most) { // round numbers within, at most MOST of them
	let step = 10 ** Math.floor(Math.log10((to - from) / most || 1));
	for (let i = 0; (to - from) / step > most; i++)
		step *= [2, 2.5, 2][i % 3];
	const found = [];
	for (let k = Math.ceil(from / step); k * step <= to && found.length <= most; k++)
		found.push(k * step);
	return {found, step};
}
function clock(ns, step) { // a time of the axis, with as many digits as STEP needs
	const unit = step >= 1e8 || ns >= 1e10 ? "s" : step >= 1e5 || ns >= 1e7 ? "ms" : step >= 100 ? "us" : "ns";
	const digits = Math.max(0, Math.ceil(-Math.log10(step / NS[unit]) - 1e-9));
	return grouped((ns / NS[unit]).toFixed(Math.min(digits, 9)).split(".")[0]) + (digits ? "." + (ns / NS[unit]).toFixed(Math.min(digits, 9)).split(".")[1] : "") + " " + unit;
}

return {$, data, bytes, column, NS, grouped, percent, time, count, fill, make, short, entry, showTip, hideTip, fitCanvas, matcher,
	theme, onTheme, sameTheme, showHelp, keys, selftest, stacks, isKernel, plain, place, threadName,
	kindColor, kindInk, runnableColor, ticks, clock};
})();
