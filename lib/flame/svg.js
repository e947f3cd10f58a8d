// SPDX-License-Identifier: GPL-2.0-or-later
// The SVG of a flame graph: a click zooms, "/" or "Search" searches, Escape goes back.
"use strict";
(function () {
	var MARGIN = 10, COLUMN = 7.3, LEAST = 0.3;
	var get = function (id) { return document.getElementById(id); };
	var svg = document.documentElement, width = svg.viewBox.baseVal.width - 2 * MARGIN;
	var frames = Array.prototype.map.call(get("frames").children, function (g) {
		var rect = g.querySelector("rect"), title = g.querySelector("title").textContent;
		return {
			g: g, rect: rect, text: g.querySelector("text"), title: title,
			name: title.slice(0, title.lastIndexOf(" (")),
			x: +rect.getAttribute("x") - MARGIN, w: +rect.getAttribute("width"), y: +rect.getAttribute("y")
		};
	});
	var all = frames[0], callers = function (f) { // from the root to f's caller
		var sign = frames.length > 1 && frames[1].y > all.y ? 1 : -1;
		return frames.filter(function (a) {
			return (f.y - a.y) * sign > 0 && a.x <= f.x + 0.011 && a.x + a.w >= f.x + f.w - 0.011;
		});
	};

	function label(f, w) {
		var name = f === all ? f.name : f.name.replace(/(.)_\[[kji]\]$/, "$1"), columns = Math.floor((w - 6) / COLUMN);
		return name.length <= columns ? name : columns < 3 ? "" : name.slice(0, columns - 2) + "..";
	}
	function show(f, x, w) {
		f.rect.setAttribute("x", (MARGIN + x).toFixed(2));
		f.rect.setAttribute("width", w.toFixed(2));
		f.text.setAttribute("x", (MARGIN + x + 3).toFixed(2));
		f.text.textContent = label(f, w);
		f.g.style.display = "";
	}
	function zoom(to) {
		var scale = width / to.w, above = callers(to), sign = above.length && to.y < above[0].y ? -1 : 1;
		frames.forEach(function (f) {
			var x = (f.x - to.x) * scale, w = f.w * scale, caller = above.indexOf(f) >= 0;
			f.g.classList.toggle("caller", caller);
			if (caller)
				show(f, 0, width);
			else if (to === all || ((f.y - to.y) * sign >= 0 && x > -0.5 && x + w < width + 0.5 && w >= LEAST))
				show(f, Math.max(x, 0), w);
			else
				f.g.style.display = "none";
		});
		get("reset").classList.toggle("off", to === all);
	}
	function search(text) {
		var test, ends = [], sum = 0, re = /^\/(.*)\/([imsu]*)$/.exec(text || "");
		try {
			re = re && new RegExp(re[1], re[2]);
		} catch (e) {
			get("details").textContent = "not a regular expression";
			return;
		}
		test = function (name) {
			return re ? re.test(name) : name.toLowerCase().indexOf(text.toLowerCase()) >= 0;
		};
		frames.forEach(function (f) {
			var hit = Boolean(text) && f !== all && test(f.name);
			f.g.classList.toggle("found", hit);
			if (hit)
				ends.push(f);
		});
		// what is covered from left to right: a frame below another match counts once
		ends.sort(function (a, b) { return a.x - b.x || b.w - a.w; });
		ends.reduce(function (end, f) {
			sum += Math.max(0, f.x + f.w - Math.max(end, f.x));
			return Math.max(end, f.x + f.w);
		}, 0);
		get("search").textContent = text ? "Matched: " + (100 * sum / all.w).toFixed(2) + " % (clear)" : "Search";
	}
	function ask() {
		var on = get("frames").querySelector(".found") || get("search").textContent !== "Search";
		var text = on ? "" : prompt("Search: text, or a regular expression as /text/", "");
		if (text !== null)
			search(text);
	}
	frames.forEach(function (f) {
		f.g.addEventListener("click", function () { zoom(f); });
		f.g.addEventListener("mouseenter", function () { get("details").textContent = f.title; });
		f.g.addEventListener("mouseleave", function () { get("details").textContent = " "; });
	});
	get("reset").addEventListener("click", function () { zoom(all); });
	get("search").addEventListener("click", ask);
	get("search").classList.remove("off");
	addEventListener("keydown", function (e) {
		if (e.ctrlKey || e.metaKey || e.altKey)
			return;
		if (e.key === "/") {
			e.preventDefault();
			ask();
		} else if (e.key === "Escape") {
			search("");
			zoom(all);
		}
	});
})();
