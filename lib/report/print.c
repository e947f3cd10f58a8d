/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/print.h"
#include "base/json.h"
#include "fold/table.h"

#include <string.h>

#define INDENT 6 /* of a stack in the table */
#define NUMBER_MAX 48

static const char called_by[] = "called by";
static const char no_functions[] = "(no user frames)";

/* --- names --- */

/* Append P, with what a terminal could obey as \xNN. A backslash stays: symbolize has doubled its own. */
static void put_clean(struct buf *b, const char *p, size_t len)
{
	char hex[8];
	size_t n;

	for (size_t i = 0; i < len; i += n) {
		n = text_utf8_len(p + i, len - i);
		if (n) {
			buf_put(b, p + i, n);
		} else {
			snprintf(hex, sizeof(hex), "\\x%02x", (unsigned char)p[i]);
			buftext_str(b, hex);
			n = 1;
		}
	}
}

static void put_string(struct buf *b, const struct waits *w, uint32_t id)
{
	size_t len;
	const char *p = waits_string(w, id, &len);

	put_clean(b, p, len);
}

static bool continues(uint8_t byte)
{
	return (byte & 0xc0) == 0x80;
}

/* The columns of clean text, one a character. */
static size_t columns(const uint8_t *p, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += !continues(p[i]);
	return n;
}

/* The length in bytes of the first N characters. */
static size_t first_columns(const uint8_t *p, size_t len, size_t n)
{
	size_t i = 0;

	while (i < len && (n || continues(p[i])))
		n -= !continues(p[i++]);
	return i;
}

/* Append clean text; of more than WIDTH columns its middle is cut. */
static void put_cut(struct buf *b, const uint8_t *p, size_t len, size_t width)
{
	size_t n = columns(p, len), head, tail, at;

	if (n <= width) {
		buf_put(b, p, len);
		return;
	}
	width = MAX(width, (size_t)5);
	head = (width - 3) / 2;
	tail = width - 3 - head;
	buf_put(b, p, first_columns(p, len, head));
	buftext_str(b, "...");
	at = first_columns(p, len, n - tail);
	buf_put(b, p + at, len - at);
}

/* --- numbers --- */

static const char *put_digits(char text[NUMBER_MAX], wait_sum v)
{
	text[foldtab_digits(v, text)] = '\0';
	return text;
}

/* Four digits and a unit: "14.58 s", "583.2 ms". */
static const char *put_time(char text[NUMBER_MAX], wait_sum ns)
{
	static const struct {
		uint64_t ns;
		const char *name;
	} units[] = { { 1000000000, "s" }, { 1000000, "ms" }, { 1000, "us" }, { 1, "ns" } };
	static const uint32_t powers[] = { 1, 10, 100, 1000 };
	size_t u = 0, decimals, len;
	wait_sum whole, scaled;

	while (u + 1 < ARRAY_LEN(units) && ns < units[u].ns)
		u++;
	whole = ns / units[u].ns;
	decimals = whole >= 1000 || units[u].ns == 1 ? 0 : whole >= 100 ? 1 : whole >= 10 ? 2 : 3;
	scaled = ns % units[u].ns * powers[decimals];
	scaled = whole * powers[decimals] + (scaled + units[u].ns / 2) / units[u].ns;
	if (decimals && scaled == 10000) { /* rounded up */
		scaled /= 10;
		decimals--;
	}
	len = foldtab_digits(scaled / powers[decimals], text);
	if (decimals)
		len += (size_t)snprintf(text + len, NUMBER_MAX - len, ".%0*u", (int)decimals,
			(unsigned int)(scaled % powers[decimals]));
	snprintf(text + len, NUMBER_MAX - len, " %s", units[u].name);
	return text;
}

static const char *put_amount(char text[NUMBER_MAX], const struct waits *w, wait_sum v)
{
	return w->is_time ? put_time(text, v) : put_digits(text, v);
}

static const char *put_percent(char text[NUMBER_MAX], wait_sum part, wait_sum all)
{
	unsigned int tenths = 0;

	while (all > (wait_sum)1 << 100) {
		all >>= 10;
		part >>= 10;
	}
	if (all)
		tenths = (unsigned int)((part * 1000 + all / 2) / all);
	snprintf(text, NUMBER_MAX, "%u.%u", tenths / 10, tenths % 10);
	return text;
}

static wait_sum mean(const struct wait_stats *s)
{
	return s->count ? s->total / s->count + (s->total % s->count >= s->count - s->count / 2) : 0;
}

static const char *plural(wait_sum n, const char *one, const char *many)
{
	return n == 1 ? one : many;
}

static const char *group_noun(enum ranking_by by, wait_sum n)
{
	switch (by) {
	case RANKING_STACK:
		return plural(n, "place", "places");
	case RANKING_FUNCTION:
		return plural(n, "function", "functions");
	case RANKING_THREAD:
		return plural(n, "thread", "threads");
	case RANKING_PROCESS:
		return plural(n, "process", "processes");
	case RANKING_KIND:
		return plural(n, "kind", "kinds");
	case RANKING_MODULE:
		return plural(n, "module", "modules");
	case RANKING_STATE:
		return plural(n, "state", "states");
	}
	return "";
}

/* --- stacks in short --- */

/* Functions of every program or thread, above what its own code is. */
static bool is_startup(const struct waits *w, uint32_t id)
{
	static const char *const names[] = { "_start", "__libc_start_main", "__libc_start_call_main",
		"__libc_start_main_impl", "clone", "clone3", "__clone", "__clone3", "__GI___clone",
		"__GI___clone3", "start_thread", "ret_from_fork", "ret_from_fork_asm", "kthread" };
	size_t len;
	const char *p = waits_string(w, id, &len);

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (strlen(names[i]) == len && memcmp(p, names[i], len) == 0)
			return true;
	}
	return false;
}

/* Functions within the C library, below the one that a program calls. */
static bool is_within_library(const struct waits *w, uint32_t id)
{
	static const char *const starts[] = { "__", "lll_", "futex_wait", "syscall", "_IO_" };
	size_t len;
	const char *p = waits_string(w, id, &len);

	for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
		if (strlen(starts[i]) <= len && memcmp(p, starts[i], strlen(starts[i])) == 0)
			return true;
	}
	return false;
}

static void put_name(struct buf *b, const struct waits *w, uint32_t id, size_t width)
{
	struct buf clean = { 0 };

	put_string(&clean, w, id);
	put_cut(b, clean.p, clean.len, width);
	b->failed |= clean.failed;
	buf_free(&clean);
}

/* The functions [FROM, TO) of PATH, each at most MAX columns. */
static void put_names(struct buf *b, const struct waits *w, const struct wait_path *path, uint32_t from,
	uint32_t to, size_t max)
{
	for (uint32_t i = from; i < to; i++) {
		if (i > from)
			buftext_str(b, " > ");
		put_name(b, w, w->functions[path->first + i], max);
	}
}

static size_t names_columns(
	const struct waits *w, const struct wait_path *path, uint32_t from, uint32_t to, size_t max)
{
	struct buf b = { 0 };
	size_t n;

	put_names(&b, w, path, from, to, max);
	n = columns(b.p, b.len);
	buf_free(&b);
	return n;
}

/* A function of a program that an interpreter or a virtual machine executes, as symbolize(1) names it. */
static bool is_script(const char *p, size_t len)
{
	static const char *const marks[] = { "py::", "php::", "perl::", "ruby::", "JS:" };

	for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
		if (len > strlen(marks[i]) && memcmp(p, marks[i], strlen(marks[i])) == 0)
			return true;
	}
	/* a method of Java: for the ';' behind the class fold has put ':' */
	return memmem(p, len, ":::", 3);
}

/* Its name, in which the file has no directories: "py::main:app.py". */
static void put_script_name(struct buf *b, const struct waits *w, uint32_t id, size_t max)
{
	struct buf clean = { 0 };
	size_t len, file;
	const char *p = waits_string(w, id, &len);

	file = len;
	while (file > 0 && p[file - 1] != (p[0] == 'J' ? ' ' : ':'))
		file--;
	if (file > 0 && memchr(p + file, '/', len - file)) {
		const char *slash = memrchr(p + file, '/', len - file);

		put_clean(&clean, p, file);
		put_clean(&clean, slash + 1, len - (size_t)(slash + 1 - p));
	} else {
		put_clean(&clean, p, len);
	}
	put_cut(b, clean.p, clean.len, max);
	b->failed |= clean.failed;
	buf_free(&clean);
}

/*
 * Append the N outermost functions of PATH, if its thread executes a program of an interpreter: of the
 * program's own as many as fit, innermost first, and the innermost function of all; the interpreter's,
 * between them, say little.
 * False if there are none, or not even the innermost one fits.
 */
static bool put_scripts(
	struct buf *b, const struct waits *w, const struct wait_path *path, uint32_t n, size_t width)
{
	const size_t max = MAX(width * 2 / 5, (size_t)16);
	struct buf text = { 0 };
	bool any = false;

	for (uint32_t end = n; end > 0;) {
		struct buf more = { 0 };
		uint32_t at = end;
		size_t len, taken;

		for (; at > 0; at--) {
			const char *p = waits_string(w, w->functions[path->first + at - 1], &len);

			if (is_script(p, len))
				break;
		}
		if (at == 0)
			break;
		put_script_name(&more, w, w->functions[path->first + at - 1], max);
		if (!any && at < n) {
			buftext_str(&text, at + 1 < n ? "... > " : "");
			put_name(&text, w, w->functions[path->first + n - 1], max);
		}
		taken = columns(more.p, more.len) + columns(text.p, text.len) + 3;
		if (taken + 6 > width) {
			if (any)
				buftext_str(b, "... > ");
			buf_free(&more);
			break;
		}
		if (text.len)
			buftext_str(&more, " > ");
		buf_put(&more, text.p, text.len);
		more.failed |= text.failed;
		buf_free(&text);
		text = more;
		any = true;
		end = at - 1;
	}
	if (any)
		buf_put(b, text.p, text.len);
	b->failed |= text.failed;
	buf_free(&text);
	return any;
}

/*
 * Append the path in at most WIDTH columns, if the innermost function fits. What is cut first is within the
 * C library.
 */
static void put_functions(struct buf *b, const struct waits *w, const struct wait_path *path, size_t width)
{
	static const char gap[] = " > ... > ";
	uint32_t start = 0, end = path->n, tail;
	size_t max = MAX(width * 2 / 5, (size_t)16), used;

	/* deeper ones do not fit; each takes four columns or more */
	if (path->n <= width / 4 + 1 && names_columns(w, path, 0, path->n, SIZE_MAX) <= width) {
		put_names(b, w, path, 0, path->n, SIZE_MAX);
		return;
	}
	while (start + 1 < path->n && is_startup(w, w->functions[path->first + start]))
		start++;
	while (end > start + 2 && is_within_library(w, w->functions[path->first + end - 1]))
		end--;
	if (put_scripts(b, w, path, end, width))
		return;
	tail = end - 1;
	used = names_columns(w, path, start, start + 1, max) + sizeof(gap) - 1 +
	       names_columns(w, path, tail, tail + 1, max);
	if (start == tail || used > width) {
		if (start != tail)
			buftext_str(b, "... > ");
		put_names(b, w, path, tail, tail + 1, start == tail ? width : width - MIN(width, (size_t)6));
		return;
	}
	for (; tail > start + 1; tail--) {
		size_t more = names_columns(w, path, tail - 1, tail, max) + 3;
		/* the last one takes the place of the gap's dots */
		size_t dots = tail - 1 == start + 1 ? 6 : 0;

		if (used + more > width + dots)
			break;
		used += more;
	}
	put_names(b, w, path, start, start + 1, max);
	buftext_str(b, tail == start + 1 ? " > " : gap);
	put_names(b, w, path, tail, end, max);
}

static void put_path(struct buf *b, const struct waits *w, const struct wait_path *path, size_t width)
{
	struct buf call = { 0 };
	size_t taken;

	if (path->call) {
		buftext_str(&call, "  in ");
		put_name(&call, w, path->call, MAX(width / 3, (size_t)8));
	}
	taken = columns(call.p, call.len);
	if (path->n)
		put_functions(b, w, path, width - MIN(width - 1, taken));
	else
		buftext_str(b, no_functions);
	buf_put(b, call.p, call.len);
	b->failed |= call.failed;
	buf_free(&call);
}

/* --- the table --- */

/* Append TEXT right-aligned in WIDTH columns, of which at least the first is blank. */
static void cell(struct buf *b, const char *text, size_t width)
{
	size_t len = strlen(text);

	do
		buftext_str(b, " ");
	while (++len < width);
	buftext_str(b, text);
}

/* The numbers of group G, or their titles if it is NULL. */
static void put_cells(struct buf *b, const struct report_print *p, const struct ranking_group *g, size_t rank,
	wait_sum ranked, bool self, bool threads)
{
	const struct waits *w = p->waits;
	char text[NUMBER_MAX];

	if (g)
		snprintf(text, sizeof(text), "%zu.", rank);
	cell(b, g ? text : "#", 4);
	cell(b,
		g                             ? put_amount(text, w, g->stats.total)
		: w->is_time                  ? "time"
		: w->unit == WAITS_UNIT_COUNT ? "waits"
					      : "period",
		9);
	cell(b, g ? put_percent(text, g->stats.total, ranked) : "%", 7);
	if (self)
		cell(b, g ? put_amount(text, w, g->self) : "self", 9);
	if (!w->folded) {
		cell(b, g ? put_digits(text, g->stats.count) : "count", 8);
		cell(b, g ? put_amount(text, w, mean(&g->stats)) : "mean", 9);
	}
	if (w->has_max)
		cell(b, !g ? "longest" : g->stats.has_max ? put_time(text, g->stats.max_ns) : "-", 9);
	if (threads && w->n_threads)
		cell(b, g ? put_digits(text, g->threads) : "threads", 8);
}

/* The name of a group that is not of stacks, clean. */
static void put_group_name(
	struct buf *b, const struct waits *w, enum ranking_by by, const struct ranking_group *g)
{
	const struct wait_thread *t;
	const struct wait_process *process;

	switch (by) {
	case RANKING_THREAD:
		t = &w->threads[g->key];
		process = &w->processes[t->process];
		put_string(b, w, t->name);
		buftext_str(b, " ");
		put_string(b, w, process->id);
		buftext_str(b, process->id ? "/" : "");
		put_string(b, w, t->id);
		return;
	case RANKING_PROCESS:
		put_string(b, w, w->processes[g->key].name);
		buftext_str(b, w->processes[g->key].id ? " " : "");
		put_string(b, w, w->processes[g->key].id);
		return;
	case RANKING_FUNCTION:
		if (g->is_call)
			buftext_str(b, "system call ");
		if (g->key)
			put_string(b, w, g->key);
		else
			buftext_str(b, no_functions);
		return;
	case RANKING_MODULE:
		if (!g->key) {
			buftext_str(b, no_functions);
			return;
		}
		/* fall through */
	default:
		if (g->key)
			put_string(b, w, g->key);
		else
			buftext_str(b, "(not known)");
	}
}

static const char *by_title(enum ranking_by by)
{
	static const char *const titles[] = { [RANKING_STACK] = "stack",
		[RANKING_FUNCTION] = "function",
		[RANKING_THREAD] = "thread",
		[RANKING_PROCESS] = "process",
		[RANKING_KIND] = "kind",
		[RANKING_MODULE] = "module",
		[RANKING_STATE] = "state" };

	return titles[by];
}

/* TITLE is that of the last column; callers without a key are none. */
static void put_groups(struct buf *b, const struct report_print *p, const struct ranking_groups *groups,
	enum ranking_by by, wait_sum all, const char *title, bool self)
{
	const struct waits *w = p->waits;
	const bool threads = by != RANKING_THREAD && !self;
	const bool callers = title == called_by;
	size_t n = p->top ? MIN(p->top, groups->n) : groups->n, from = b->len;
	struct buf name = { 0 };

	put_cells(b, p, NULL, 0, all, self, threads);
	if (by != RANKING_STACK || w->has_kind) {
		buftext_str(b, "  ");
		buftext_str(b, title);
	}
	buftext_str(b, "\n");
	for (size_t i = 0; i < n; i++) {
		const struct ranking_group *g = &groups->p[i];
		size_t used;

		from = b->len;
		put_cells(b, p, g, i + 1, all, self, threads);
		used = columns(b->p + from, b->len - from) + 2;
		buf_reset(&name);
		if (by == RANKING_STACK)
			put_string(&name, w, g->kind);
		else if (callers && !g->key)
			buftext_str(&name, "(outermost)");
		else
			put_group_name(&name, w, by, g);
		if (name.len) {
			buftext_str(b, "  ");
			put_cut(b, name.p, name.len, p->width > used + 12 ? p->width - used : 12);
		}
		buftext_str(b, "\n");
		if (by != RANKING_STACK)
			continue;
		buftext_printf(b, "%*s", INDENT, "");
		put_path(b, w, &w->paths[g->key], p->width - INDENT);
		buftext_str(b, "\n");
	}
	b->failed |= name.failed;
	buf_free(&name);
}

static void put_counted(struct buf *b, wait_sum n, const char *one, const char *many)
{
	char text[NUMBER_MAX];

	buftext_str(b, put_digits(text, n));
	buftext_str(b, " ");
	buftext_str(b, plural(n, one, many));
}

/* "54.38 s", "120 periods of cycles" */
static void put_sum(struct buf *b, const struct waits *w, wait_sum v)
{
	char text[NUMBER_MAX];

	buftext_str(b, put_amount(text, w, v));
	if (w->is_time)
		return;
	buftext_str(b, w->unit == WAITS_UNIT_COUNT ? " waits" : w->event ? " of event " : " periods");
	if (w->unit != WAITS_UNIT_COUNT)
		put_string(b, w, w->event);
}

static void put_parts(struct buf *b, const struct waits *w, const struct ranking *r)
{
	char text[NUMBER_MAX];
	wait_sum rest = r->all.total - r->idle - r->blocked - r->runnable;

	if (!w->has_kind && !w->has_split)
		return;
	buftext_str(b, "of it      ");
	if (w->has_kind) {
		buftext_str(b, "idle ");
		buftext_str(b, put_amount(text, w, r->idle));
	}
	if (w->has_split) {
		buftext_str(b, w->has_kind ? ", blocked " : "blocked ");
		buftext_str(b, put_amount(text, w, r->blocked));
		buftext_str(b, ", runnable ");
		buftext_str(b, put_amount(text, w, r->runnable));
		if (rest) {
			buftext_str(b, ", not known ");
			buftext_str(b, put_amount(text, w, rest));
		}
	}
	buftext_str(b, "\n");
}

static void put_summary(struct buf *b, const struct report_print *p, const struct ranking *r)
{
	const struct waits *w = p->waits;
	char text[NUMBER_MAX];

	buftext_str(b, "recorded   ");
	if (w->elapsed_ns) {
		buftext_str(b, put_time(text, w->elapsed_ns));
		buftext_str(b, " of ");
	}
	put_counted(b, r->n_processes, "process", "processes");
	if (r->n_threads) {
		buftext_str(b, " with ");
		put_counted(b, r->n_threads, "thread", "threads");
	}
	buftext_str(b, w->folded ? "\nsum        " : "\nwaits      ");
	if (!w->folded) {
		buftext_str(b, put_digits(text, r->all.count));
		buftext_str(b, ", ");
	}
	put_sum(b, w, r->all.total);
	buftext_str(b, " in all, ");
	if (!w->folded) {
		buftext_str(b, "mean ");
		buftext_str(b, put_amount(text, w, mean(&r->all)));
		buftext_str(b, ", ");
	}
	put_counted(b, w->n_stacks, "distinct stack", "distinct stacks");
	buftext_str(b, "\n");
	put_parts(b, w, r);
	if (p->opts->kinds) {
		buftext_str(b, "only kind  ");
		put_clean(b, p->opts->kinds, strlen(p->opts->kinds));
		buftext_str(b, "\n");
	}
	for (size_t i = 0; i < w->n_lost; i++) {
		buftext_str(b, i ? ", " : "lost       ");
		put_string(b, w, w->lost[i].name);
		buftext_str(b, " ");
		buftext_dec(b, w->lost[i].count, 1);
	}
	buftext_str(b, w->n_lost ? "\n" : "");
	if (w->damaged) {
		buftext_str(b, "damaged    ");
		put_string(b, w, w->damaged);
		buftext_str(b, "\n");
	}
}

static void put_rest(struct buf *b, const struct report_print *p, const struct ranking_rest *rest,
	const char *what, const char *option)
{
	if (!rest->places)
		return;
	buftext_str(b, what);
	put_sum(b, p->waits, rest->stats.total);
	buftext_str(b, " in ");
	put_counted(b, rest->places, "place", "places");
	if (rest->threads) {
		buftext_str(b, " of ");
		put_counted(b, rest->threads, "thread", "threads");
	}
	buftext_str(b, option);
}

static void put_table(struct buf *b, const struct report_print *p, const struct ranking *r)
{
	const struct ranking_groups *g = &r->groups;
	enum ranking_by by = p->opts->by;
	size_t n = p->top ? MIN(p->top, g->n) : g->n;

	put_summary(b, p, r);
	buftext_str(b, "\n");
	if (!g->n) {
		buftext_str(b, "nothing to rank:\n");
	} else {
		if (n < g->n)
			buftext_printf(b, "the %zu greatest of ", n);
		put_counted(b, g->n, group_noun(by, 1), group_noun(by, 2));
		buftext_str(b, "; % of ");
		put_sum(b, p->waits, r->ranked);
		buftext_str(b,
			r->ranked == r->all.total ? ", all of it\n" : ", without what is set aside below\n");
		put_groups(b, p, g, by, r->ranked, by_title(by == RANKING_STACK ? RANKING_KIND : by),
			by == RANKING_FUNCTION);
	}
	if (r->set_aside_idle.places || r->set_aside_once.places)
		buftext_str(b, g->n ? "\n" : "");
	put_rest(b, p, &r->set_aside_idle, "idle: ", "; --idle ranks them too\n");
	put_rest(b, p, &r->set_aside_once, "waited once, all the time: ", "; --all ranks them too\n");
}

/* --- TSV --- */

static void put_tsv_head(struct buf *b, const struct report_print *p, enum ranking_by by, bool self)
{
	const char *unit = p->waits->is_time ? "_ns" : "";

	buftext_printf(b, "rank\ttotal%s\t", unit);
	if (self)
		buftext_printf(b, "self%s\t", unit);
	buftext_printf(b, "count\tmean%s\tmax%s\tthreads\t", unit, unit);
	buftext_str(b, by == RANKING_STACK     ? "kind\tsyscall\tstack\n"
		       : by == RANKING_THREAD  ? "comm\tpid\ttid\n"
		       : by == RANKING_PROCESS ? "comm\tpid\n"
					       : by_title(by));
	buftext_str(b, by == RANKING_STACK || by == RANKING_THREAD || by == RANKING_PROCESS ? "" : "\n");
}

static void put_field(struct buf *b, wait_sum v, bool known)
{
	char text[NUMBER_MAX];

	if (known)
		buftext_str(b, put_digits(text, v));
	buftext_str(b, "\t");
}

static void put_tsv_name(
	struct buf *b, const struct waits *w, enum ranking_by by, const struct ranking_group *g)
{
	const struct wait_path *path = &w->paths[by == RANKING_STACK ? g->key : 0];

	if (by == RANKING_STACK) {
		put_string(b, w, g->kind);
		buftext_str(b, "\t");
		put_string(b, w, path->call);
		buftext_str(b, "\t");
		for (uint32_t i = 0; i < path->n; i++) {
			buftext_str(b, i ? ";" : "");
			put_string(b, w, w->functions[path->first + i]);
		}
	} else if (by == RANKING_THREAD) {
		put_string(b, w, w->threads[g->key].name);
		buftext_str(b, "\t");
		put_string(b, w, w->processes[w->threads[g->key].process].id);
		buftext_str(b, "\t");
		put_string(b, w, w->threads[g->key].id);
	} else if (by == RANKING_PROCESS) {
		put_string(b, w, w->processes[g->key].name);
		buftext_str(b, "\t");
		put_string(b, w, w->processes[g->key].id);
	} else {
		put_string(b, w, g->key);
	}
	buftext_str(b, "\n");
}

/* With SELF_FIELD, the time SELF is among them; NULL: it is not known. */
static void put_tsv_numbers(struct buf *b, const struct waits *w, const struct wait_stats *s, size_t threads,
	bool self_field, const wait_sum *self)
{
	put_field(b, s->total, true);
	if (self_field)
		put_field(b, self ? *self : 0, self);
	put_field(b, s->count, !w->folded);
	put_field(b, mean(s), !w->folded);
	put_field(b, s->max_ns, s->has_max);
	put_field(b, threads, w->n_threads);
}

/* Give what is in B to O, so that it does not grow with the table. */
static void pass(struct out *o, struct buf *b)
{
	out_put(o, b->p, b->len);
	b->len = 0;
}

static void put_tsv(
	struct out *o, struct buf *b, const struct report_print *p, const struct ranking_groups *g)
{
	const enum ranking_by by = p->opts->by;
	const bool self = by == RANKING_FUNCTION;
	size_t n = p->top ? MIN(p->top, g->n) : g->n;

	put_tsv_head(b, p, by, self);
	for (size_t i = 0; i < n; i++) {
		put_field(b, i + 1, true);
		put_tsv_numbers(b, p->waits, &g->p[i].stats, g->p[i].threads, self, &g->p[i].self);
		put_tsv_name(b, p->waits, by, &g->p[i]);
		pass(o, b);
	}
	pass(o, b);
}

/* --- JSON --- */

struct writer {
	struct json j;
	const struct waits *w;
	struct buf text;
	bool failed;
};

static void json_sum(struct writer *wr, const char *key, wait_sum v)
{
	char digits[40];
	size_t len = foldtab_digits(v, digits);

	json_number(&wr->j, key, digits, len);
}

/* A sum, whose key ends in "_ns" if it is a time. */
static void json_amount(struct writer *wr, const char *key, wait_sum v)
{
	char name[32];

	snprintf(name, sizeof(name), "%s%s", key, wr->w->is_time ? "_ns" : "");
	json_sum(wr, name, v);
}

/* The string; null for the empty one. A NUL in it becomes U+FFFD. */
static void json_text(struct writer *wr, const char *key, uint32_t id)
{
	size_t len;
	const char *p = waits_string(wr->w, id, &len);

	buf_reset(&wr->text);
	for (size_t i = 0; i < len; i++) {
		if (p[i])
			buf_put(&wr->text, &p[i], 1);
		else
			buftext_str(&wr->text, "\xef\xbf\xbd");
	}
	buf_put(&wr->text, "", 1);
	wr->failed |= wr->text.failed;
	if (!wr->text.failed)
		json_str(&wr->j, key, len ? (const char *)wr->text.p : NULL);
}

static void json_stats(struct writer *wr, const struct wait_stats *s)
{
	json_amount(wr, "total", s->total);
	if (!wr->w->folded) {
		json_sum(wr, "count", s->count);
		json_amount(wr, "mean", mean(s));
	}
	if (s->has_max)
		json_amount(wr, "max", s->max_ns);
	if (s->split) {
		json_amount(wr, "split", s->split);
		json_amount(wr, "runnable", s->runnable);
	}
}

static void json_path(struct writer *wr, const struct ranking_group *g)
{
	const struct wait_path *path = &wr->w->paths[g->key];

	json_text(wr, "kind", g->kind);
	json_text(wr, "syscall", path->call);
	json_bool(&wr->j, "kernel", path->kernel && path->n);
	json_begin(&wr->j, "functions", '[');
	for (uint32_t i = 0; i < path->n; i++)
		json_text(wr, NULL, wr->w->functions[path->first + i]);
	json_end(&wr->j, ']');
}

static void json_group(struct writer *wr, enum ranking_by by, const struct ranking_group *g, bool self)
{
	const struct waits *w = wr->w;

	json_line(&wr->j, 4);
	json_begin(&wr->j, NULL, '{');
	switch (by) {
	case RANKING_STACK:
		json_path(wr, g);
		break;
	case RANKING_THREAD:
		json_text(wr, "comm", w->threads[g->key].name);
		json_text(wr, "pid", w->processes[w->threads[g->key].process].id);
		json_text(wr, "tid", w->threads[g->key].id);
		break;
	case RANKING_PROCESS:
		json_text(wr, "comm", w->processes[g->key].name);
		json_text(wr, "pid", w->processes[g->key].id);
		break;
	default:
		json_text(wr, g->is_call ? "syscall" : by_title(by), g->key);
	}
	json_stats(wr, &g->stats);
	if (self)
		json_amount(wr, "self", g->self);
	if (w->n_threads)
		json_u64(&wr->j, "threads", g->threads);
	json_end(&wr->j, '}');
}

static void json_groups(struct writer *wr, const char *key, const struct report_print *p,
	const struct ranking_groups *g, enum ranking_by by, bool self)
{
	size_t n = p->top ? MIN(p->top, g->n) : g->n;

	json_line(&wr->j, 2);
	json_begin(&wr->j, key, '[');
	for (size_t i = 0; i < n; i++)
		json_group(wr, by, &g->p[i], self);
	json_end(&wr->j, ']');
}

static void json_rest(struct writer *wr, const char *key, const struct ranking_rest *rest)
{
	json_line(&wr->j, 2);
	json_begin(&wr->j, key, '{');
	json_amount(wr, "total", rest->stats.total);
	json_u64(&wr->j, "places", rest->places);
	json_u64(&wr->j, "threads", rest->threads);
	json_end(&wr->j, '}');
}

static void json_summary(struct writer *wr, const struct ranking *r)
{
	const struct waits *w = wr->w;

	if (w->elapsed_ns)
		json_u64(&wr->j, "elapsed_ns", w->elapsed_ns);
	json_u64(&wr->j, "processes", r->n_processes);
	json_u64(&wr->j, "threads", r->n_threads);
	json_u64(&wr->j, "stacks", w->n_stacks);
	if (w->event)
		json_text(wr, "event", w->event);
	json_stats(wr, &r->all);
	if (w->has_kind)
		json_amount(wr, "idle", r->idle);
	if (w->has_split) {
		json_amount(wr, "not_idle_blocked", r->blocked);
		json_amount(wr, "not_idle_runnable", r->runnable);
	}
	json_begin(&wr->j, "lost", '{');
	for (size_t i = 0; i < w->n_lost; i++) {
		size_t len;
		const char *name = waits_string(w, w->lost[i].name, &len);

		buf_reset(&wr->text);
		buf_put(&wr->text, name, strnlen(name, len));
		buf_put(&wr->text, "", 1);
		if (!wr->text.failed)
			json_u64(&wr->j, (const char *)wr->text.p, w->lost[i].count);
	}
	json_end(&wr->j, '}');
	if (w->damaged)
		json_text(wr, "damaged", w->damaged);
	json_amount(wr, "ranked", r->ranked);
	json_rest(wr, "idle_set_aside", &r->set_aside_idle);
	json_rest(wr, "once_set_aside", &r->set_aside_once);
}

static void put_json(struct writer *wr, const struct report_print *p, const struct ranking *r)
{
	json_begin(&wr->j, NULL, '{');
	json_str(&wr->j, "by", by_title(p->opts->by));
	json_summary(wr, r);
	json_groups(wr, "rows", p, &r->groups, p->opts->by, p->opts->by == RANKING_FUNCTION);
	json_end(&wr->j, '}');
}

int report_ranking(struct out *o, const struct report_print *p, const struct ranking *r, struct err *e)
{
	struct writer wr = { .j = { .o = o, .spaced = true }, .w = p->waits };
	struct buf b = { 0 };
	bool failed;

	if (p->format == REPORT_JSON) {
		put_json(&wr, p, r);
		out_char(o, '\n');
	} else if (p->format == REPORT_TSV) {
		put_tsv(o, &b, p, &r->groups);
	} else {
		put_table(&b, p, r);
		pass(o, &b);
	}
	failed = b.failed || wr.failed;
	buf_free(&b);
	buf_free(&wr.text);
	return failed ? err_nomem(e, "the report") : 0;
}

/* --- callers and callees --- */

static void put_around(
	struct buf *b, const struct report_print *p, const struct ranking_function *r, const char *name)
{
	const struct waits *w = p->waits;
	char text[NUMBER_MAX];

	buftext_str(b, "function   ");
	put_clean(b, name, strlen(name));
	buftext_str(b, "\ntotal      ");
	put_sum(b, w, r->total.total);
	if (!w->folded) {
		buftext_str(b, " in ");
		put_counted(b, r->total.count, "wait", "waits");
	}
	if (r->threads) {
		buftext_str(b, " of ");
		put_counted(b, r->threads, "thread", "threads");
	}
	buftext_str(b, "\nself       ");
	buftext_str(b, put_amount(text, w, r->self));
	buftext_str(b, " (");
	buftext_str(b, put_percent(text, r->self, r->total.total));
	buftext_str(b, " %): it is the innermost user function\n\n");
	put_groups(b, p, &r->callers, RANKING_FUNCTION, r->total.total, called_by, false);
	if (r->callees.n) {
		buftext_str(b, "\n");
		put_groups(b, p, &r->callees, RANKING_FUNCTION, r->total.total, "calls", false);
	}
}

static void put_around_tsv(struct out *o, struct buf *b, const struct report_print *p,
	const struct ranking_groups *g, const char *what)
{
	size_t n = p->top ? MIN(p->top, g->n) : g->n;

	for (size_t i = 0; i < n; i++) {
		buftext_str(b, g->p[i].is_call ? "syscall" : what);
		buftext_str(b, "\t");
		put_tsv_numbers(b, p->waits, &g->p[i].stats, g->p[i].threads, true, NULL);
		put_tsv_name(b, p->waits, RANKING_FUNCTION, &g->p[i]);
		pass(o, b);
	}
}

int report_function(struct out *o, const struct report_print *p, const struct ranking_function *r,
	const char *name, struct err *e)
{
	struct writer wr = { .j = { .o = o, .spaced = true }, .w = p->waits };
	const char *unit = p->waits->is_time ? "_ns" : "";
	struct buf b = { 0 };
	bool failed;

	if (p->format == REPORT_JSON) {
		json_begin(&wr.j, NULL, '{');
		json_str(&wr.j, "function", name);
		json_stats(&wr, &r->total);
		json_amount(&wr, "self", r->self);
		json_u64(&wr.j, "threads", r->threads);
		json_groups(&wr, "callers", p, &r->callers, RANKING_FUNCTION, false);
		json_groups(&wr, "callees", p, &r->callees, RANKING_FUNCTION, false);
		json_end(&wr.j, '}');
		out_char(o, '\n');
	} else if (p->format == REPORT_TSV) {
		buftext_printf(&b, "relation\ttotal%s\tself%s\tcount\tmean%s\tmax%s\tthreads\tfunction\n",
			unit, unit, unit, unit);
		buftext_str(&b, "function\t");
		put_tsv_numbers(&b, p->waits, &r->total, r->threads, true, &r->self);
		put_clean(&b, name, strlen(name));
		buftext_str(&b, "\n");
		put_around_tsv(o, &b, p, &r->callers, "caller");
		put_around_tsv(o, &b, p, &r->callees, "callee");
		pass(o, &b);
	} else {
		put_around(&b, p, r, name);
		pass(o, &b);
	}
	failed = b.failed || wr.failed;
	buf_free(&b);
	buf_free(&wr.text);
	return failed ? err_nomem(e, "the report") : 0;
}
