/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "flame/svg.h"
#include "flame/frame.h"
#include "flame/kinds.h"

#include <errno.h>
#include <string.h>

static const char css[] = ""
#include <svg.css.h>
	;
static const char js[] = ""
#include <svg.js.h>
	;

static const char begin[] = "<?xml version=\"1.0\"?>\n<!-- stacktools flame -->\n";
const struct result_type svg_type = { "an SVG of flame", begin, sizeof(begin) - 1 };

#define ROW 17 /* pixels, with a gap of one */
#define MARGIN 10
#define ABOVE 64 /* the title and the controls */
#define BELOW 44 /* details, and what was omitted */
#define COLUMN 7.3 /* the width of a character, at most */

/* One place for all frames of a depth: where the next one begins. */
struct layout {
	const struct flametree *t;
	uint64_t *next;
	uint8_t *class_above; /* by depth: of the frame there */
	uint8_t *kinds; /* by node, the family; NULL: colours are by class */
	uint32_t deepest; /* drawn */
	uint64_t omitted;
	double min; /* value of the least frame that is drawn */
	double scale; /* pixels of a unit */
};

/* Advance *I to the next frame that is drawn; false at the end. *START is where it begins. */
static bool next_drawn(struct layout *l, uint32_t *i, uint64_t *start)
{
	for (; *i < l->t->n; *i = l->t->nodes[*i].end) {
		const struct flametree_node *node = &l->t->nodes[*i];

		*start = l->next[node->depth];
		l->next[node->depth] += node->sum;
		l->next[node->depth + 1] = *start;
		if (node->sum && ((double)node->sum >= l->min || !*i))
			return true;
		l->omitted += node->end - *i;
	}
	return false;
}

/* "12,345" */
static void put_count(struct out *o, uint64_t v)
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)v);

	for (int i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			out_char(o, ',');
		out_char(o, digits[i]);
	}
}

/* Hue in degrees, saturation and lightness in percent, as #rrggbb: not every viewer knows hsl(). */
static void put_hsl(struct out *o, double hue, double saturation, double lightness)
{
	static const int offsets[] = { 0, 8, 4 };
	double l = lightness / 100, a = saturation / 100 * MIN(l, 1 - l);

	out_char(o, '#');
	for (size_t i = 0; i < ARRAY_LEN(offsets); i++) {
		double k = offsets[i] + hue / 30, low;

		k -= k >= 12 ? 12 : 0;
		low = MIN(MIN(k - 3, 9 - k), 1);
		out_printf(o, "%02x", (unsigned int)((l - a * MAX(low, -1)) * 255 + 0.5));
	}
}

/* The colours of graph.js. */
static void put_class_color(struct out *o, enum frame_class class, unsigned int tone)
{
	/* two hues, and the saturation */
	static const double hues[FRAME_CLASSES][3] = {
		[FRAME_USER] = { 22, 46, 78 },
		[FRAME_KERNEL] = { 205, 228, 72 },
		[FRAME_SCRIPT] = { 88, 128, 48 },
		[FRAME_INLINED] = { 168, 186, 48 },
		[FRAME_WAKER] = { 268, 292, 58 },
		[FRAME_STATE] = { 338, 354, 72 },
		[FRAME_BLOCKED] = { 216, 226, 16 },
		[FRAME_ON_CPU] = { 60, 64, 92 },
	};

	if (class == FRAME_MARK)
		out_str(o, "#d9dce1");
	else
		put_hsl(o, hues[class][0] + (hues[class][1] - hues[class][0]) * (tone & 7) / 7,
			hues[class][2], 68 + (tone >> 3) * 3);
}

static void put_change_color(struct out *o, uint64_t before, uint64_t after)
{
	double most = (double)MAX(before, after), part = ((double)after - (double)before) / most;
	int step = (int)(20 * (part < 0 ? -part : part) + 0.5);

	if (!step)
		out_str(o, "#e4e6ea");
	else
		put_hsl(o, part > 0 ? 4 : 215, 60 + step, 92 - step * 1.3);
}

static void put_name(struct out *o, const struct flametree *t, uint32_t i, double width)
{
	size_t columns = width > COLUMN ? (size_t)(width / COLUMN) : 0, len = 3, fit;
	const char *name = i ? intern_text(&t->names, t->nodes[i].name, &len) : "all";

	if (!len) {
		name = "(no name)";
		len = strlen(name);
	}
	if (width < 0) {
		frame_put_xml(o, name, len);
		return;
	}
	if (i && frame_is_marked(name, len))
		len -= 4;
	fit = frame_fit(name, len, columns);
	if (fit < len && columns < 3)
		return;
	if (fit < len)
		fit = frame_fit(name, len, columns - 2);
	frame_put_xml(o, name, fit);
	if (fit < len)
		out_str(o, "..");
}

static void put_frame(
	struct out *o, struct layout *l, const struct flame_opts *opts, uint32_t i, uint64_t start, double y)
{
	const struct flametree_node *node = &l->t->nodes[i];
	double x = MARGIN + (double)start * l->scale, width = (double)node->sum * l->scale;
	enum frame_class class = FRAME_MARK;
	unsigned int tone = 0;
	const char *name;
	size_t len;

	if (i) {
		name = intern_text(&l->t->names, node->name, &len);
		class = l->class_above[node->depth - 1] == FRAME_WAKER ? FRAME_WAKER : frame_class(name, len);
		tone = frame_tone(name, len);
	}
	l->class_above[node->depth] = (uint8_t) class;
	out_str(o, "<g><title>");
	put_name(o, l->t, i, -1);
	out_str(o, " (");
	if (opts->differential) {
		out_str(o, "before ");
		put_count(o, node->sum_before);
		out_str(o, ", after ");
	}
	put_count(o, node->sum);
	if (opts->unit[0]) {
		out_char(o, ' ');
		frame_put_xml(o, opts->unit, strlen(opts->unit));
	}
	out_printf(o, ", %.2f %%)</title><rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%d\" fill=\"",
		100 * (double)node->sum / (double)l->t->nodes[0].sum, x, y, width, ROW - 1);
	if (l->kinds && i)
		put_hsl(o, kind_families[l->kinds[i]].hue, kind_families[l->kinds[i]].saturation,
			68 + (tone >> 3) * 3);
	else if (opts->differential && i)
		put_change_color(o, node->sum_before, node->sum);
	else
		put_class_color(o, class, tone);
	out_printf(o, "\"/><text x=\"%.2f\" y=\"%.0f\">", x + 3, y + ROW - 5);
	put_name(o, l->t, i, width > 6 ? width - 6 : 0);
	out_str(o, "</text></g>\n");
}

/* Between the controls: each family that a frame is of, as far as there is room. */
static void put_legend(struct out *o, const struct layout *l, double width)
{
	double x = MARGIN + 110;
	bool used[KIND_FAMILIES] = { false };

	for (uint32_t i = 1; i < l->t->n; i++)
		used[l->kinds[i]] = true;
	for (size_t k = 0; k < KIND_FAMILIES; k++) {
		const struct kind_family *f = &kind_families[k];
		const double next = x + 26 + COLUMN * (double)strlen(f->name);

		if (!used[k] || next > width - MARGIN - 90)
			continue;
		out_printf(
			o, "<rect class=\"kind\" x=\"%.0f\" y=\"41\" width=\"10\" height=\"10\" fill=\"", x);
		put_hsl(o, f->hue, f->saturation, 71);
		out_printf(o, "\"/><text class=\"kind\" x=\"%.0f\" y=\"50\">%s</text>\n", x + 14, f->name);
		x = next;
	}
}

static void put_head(struct out *o, const struct layout *l, const struct flame_opts *opts, double height)
{
	double width = (double)opts->width;

	out_str(o, begin);
	out_printf(o,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"%.0f\" height=\"%.0f\" "
		"viewBox=\"0 0 %.0f %.0f\">\n<title>",
		width, height, width, height);
	frame_put_xml(o, opts->title, strlen(opts->title));
	out_str(o, "</title>\n<style><![CDATA[\n");
	out_str(o, css);
	out_str(o, "]]></style>\n<rect class=\"back\" width=\"100%\" height=\"100%\"/>\n");
	out_printf(o, "<text id=\"heading\" x=\"%.0f\" y=\"26\">", width / 2);
	frame_put_xml(o, opts->title, strlen(opts->title));
	out_printf(o,
		"</text>\n<text id=\"reset\" class=\"control off\" x=\"%d\" y=\"50\">Reset zoom</text>\n"
		"<text id=\"search\" class=\"control off\" x=\"%.0f\" y=\"50\">Search</text>\n",
		MARGIN, width - MARGIN);
	if (l->kinds)
		put_legend(o, l, width);
	out_str(o, "<g id=\"frames\">\n");
}

static void put_tail(struct out *o, const struct layout *l, const struct flame_opts *opts, double height)
{
	out_printf(o, "</g>\n<text id=\"details\" x=\"%d\" y=\"%.0f\"> </text>\n", MARGIN, height - 26);
	out_printf(o, "<text id=\"omitted\" x=\"%d\" y=\"%.0f\">", MARGIN, height - 9);
	if (l->omitted) {
		put_count(o, l->omitted);
		out_printf(o, " %s narrower than %g %% of all %s omitted",
			l->omitted == 1 ? "frame" : "frames", 100 * opts->min,
			l->omitted == 1 ? "is" : "are");
	}
	out_str(o, "</text>\n<script><![CDATA[\n");
	out_str(o, js);
	out_str(o, "]]></script>\n</svg>\n");
}

int svg_put(struct out *o, const struct flametree *t, const struct flame_opts *opts, struct err *e)
{
	_cleanup_free_ uint64_t *next = calloc((size_t)t->depth + 2, sizeof(*next));
	_cleanup_free_ uint8_t *classes = calloc((size_t)t->depth + 2, sizeof(*classes));
	_cleanup_free_ uint8_t *kinds = NULL;
	struct layout l = { .t = t, .next = next, .class_above = classes };
	uint64_t start = 0;
	double height;

	if (opts->kinds)
		kinds = kind_families_of(t);
	if (!next || !classes || (opts->kinds && !kinds))
		return err_nomem(e, "the picture");
	l.kinds = kinds;
	l.min = opts->min * (double)t->nodes[0].sum;
	l.scale = (double)(opts->width - 2 * MARGIN) / (double)t->nodes[0].sum;
	for (uint32_t i = 0; next_drawn(&l, &i, &start); i++)
		l.deepest = MAX(l.deepest, t->nodes[i].depth);
	height = ABOVE + (double)ROW * (l.deepest + 1) + BELOW;
	put_head(o, &l, opts, height);
	l.omitted = 0;
	next[0] = 0;
	for (uint32_t i = 0; next_drawn(&l, &i, &start); i++) {
		uint32_t depth = t->nodes[i].depth;

		put_frame(o, &l, opts, i, start,
			ABOVE + (double)ROW * (opts->icicle ? depth : l.deepest - depth));
	}
	put_tail(o, &l, opts, height);
	return 0;
}
