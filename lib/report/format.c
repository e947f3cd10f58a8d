/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/format.h"
#include "fold/table.h"

#include <string.h>
#include <sys/ioctl.h>

static const char no_functions[] = "(no user frames)";

/* --- names --- */

/* Append P, with what a terminal could obey as \xNN. A backslash stays: symbolize has doubled its own. */
void format_clean(struct buf *b, const char *p, size_t len)
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

void format_string(struct buf *b, const struct waits *w, uint32_t id)
{
	size_t len;
	const char *p = waits_string(w, id, &len);

	format_clean(b, p, len);
}

static bool continues(uint8_t byte)
{
	return (byte & 0xc0) == 0x80;
}

/* The columns of clean text, one a character. */
size_t format_columns(const uint8_t *p, size_t len)
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
void format_cut(struct buf *b, const uint8_t *p, size_t len, size_t width)
{
	size_t n = format_columns(p, len), head, tail, at;

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

const char *format_digits(char text[FORMAT_NUMBER_MAX], wait_sum v)
{
	text[foldtab_digits(v, text)] = '\0';
	return text;
}

/* Four digits and a unit: "14.58 s", "583.2 ms". */
const char *format_time(char text[FORMAT_NUMBER_MAX], wait_sum ns)
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
		len += (size_t)snprintf(text + len, FORMAT_NUMBER_MAX - len, ".%0*u", (int)decimals,
			(unsigned int)(scaled % powers[decimals]));
	snprintf(text + len, FORMAT_NUMBER_MAX - len, " %s", units[u].name);
	return text;
}

const char *format_amount(char text[FORMAT_NUMBER_MAX], const struct waits *w, wait_sum v)
{
	return w->is_time ? format_time(text, v) : format_digits(text, v);
}

const char *format_percent(char text[FORMAT_NUMBER_MAX], wait_sum part, wait_sum all)
{
	unsigned int tenths = 0;

	while (all > (wait_sum)1 << 100) {
		all >>= 10;
		part >>= 10;
	}
	if (all)
		tenths = (unsigned int)((part * 1000 + all / 2) / all);
	snprintf(text, FORMAT_NUMBER_MAX, "%u.%u", tenths / 10, tenths % 10);
	return text;
}

const char *format_plural(wait_sum n, const char *one, const char *many)
{
	return n == 1 ? one : many;
}

const char *format_noun(enum ranking_by by, wait_sum n)
{
	switch (by) {
	case RANKING_STACK:
		return format_plural(n, "place", "places");
	case RANKING_FUNCTION:
		return format_plural(n, "function", "functions");
	case RANKING_THREAD:
		return format_plural(n, "thread", "threads");
	case RANKING_PROCESS:
		return format_plural(n, "process", "processes");
	case RANKING_KIND:
		return format_plural(n, "kind", "kinds");
	case RANKING_MODULE:
		return format_plural(n, "module", "modules");
	case RANKING_STATE:
		return format_plural(n, "state", "states");
	case RANKING_WAKER:
		return format_plural(n, "waker", "wakers");
	case RANKING_THREAD_NAME:
		return format_plural(n, "name of threads", "names of threads");
	case RANKING_PROCESS_NAME:
		return format_plural(n, "name of processes", "names of processes");
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

	format_string(&clean, w, id);
	format_cut(b, clean.p, clean.len, width);
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
	n = format_columns(b.p, b.len);
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

		format_clean(&clean, p, file);
		format_clean(&clean, slash + 1, len - (size_t)(slash + 1 - p));
	} else {
		format_clean(&clean, p, len);
	}
	format_cut(b, clean.p, clean.len, max);
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
		taken = format_columns(more.p, more.len) + format_columns(text.p, text.len) + 3;
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

void format_path(struct buf *b, const struct waits *w, const struct wait_path *path, size_t width)
{
	struct buf call = { 0 };
	size_t taken;

	if (path->call) {
		buftext_str(&call, "  in ");
		put_name(&call, w, path->call, MAX(width / 3, (size_t)8));
	}
	taken = format_columns(call.p, call.len);
	if (path->n)
		put_functions(b, w, path, width - MIN(width - 1, taken));
	else
		buftext_str(b, no_functions);
	buf_put(b, call.p, call.len);
	b->failed |= call.failed;
	buf_free(&call);
}

/* --- parts of tables --- */

/* Append TEXT right-aligned in WIDTH columns, of which at least the first is blank. */
void format_cell(struct buf *b, const char *text, size_t width)
{
	size_t len = strlen(text);

	do
		buftext_str(b, " ");
	while (++len < width);
	buftext_str(b, text);
}

/* The name of a group that is not of stacks, clean. */
void format_group(struct buf *b, const struct waits *w, enum ranking_by by, const struct ranking_group *g)
{
	const struct wait_thread *t;
	const struct wait_process *process;

	switch (by) {
	case RANKING_THREAD:
		t = &w->threads[g->key];
		process = &w->processes[t->process];
		format_string(b, w, g->kind);
		buftext_str(b, " ");
		format_string(b, w, process->id);
		buftext_str(b, process->id ? "/" : "");
		format_string(b, w, t->id);
		return;
	case RANKING_PROCESS:
		format_string(b, w, w->processes[g->key].name);
		buftext_str(b, w->processes[g->key].id ? " " : "");
		format_string(b, w, w->processes[g->key].id);
		return;
	case RANKING_FUNCTION:
		if (g->is_call)
			buftext_str(b, "system call ");
		if (g->key)
			format_string(b, w, g->key);
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
			format_string(b, w, g->key);
		else
			buftext_str(b, "(not known)");
	}
}

const char *format_title(enum ranking_by by)
{
	static const char *const titles[] = { [RANKING_STACK] = "stack",
		[RANKING_FUNCTION] = "function",
		[RANKING_THREAD] = "thread",
		[RANKING_PROCESS] = "process",
		[RANKING_KIND] = "kind",
		[RANKING_MODULE] = "module",
		[RANKING_STATE] = "state",
		[RANKING_WAKER] = "waker",
		[RANKING_THREAD_NAME] = "thread-name",
		[RANKING_PROCESS_NAME] = "process" };

	return titles[by];
}

void format_greatest(struct buf *b, size_t n, const char *one, const char *many)
{
	buftext_str(b, "the ");
	if (n != 1)
		buftext_printf(b, "%zu ", n);
	buftext_printf(b, "greatest%s of ", format_plural(n, one, many));
}

bool format_heading(struct buf *b, enum ranking_by by, size_t n, size_t all, const char *one,
	const char *many, const char *nothing)
{
	if (!all) {
		buftext_str(b, nothing);
		return false;
	}
	if (n < all)
		format_greatest(b, n, one, many);
	format_counted(b, all, format_noun(by, 1), format_noun(by, 2));
	return true;
}

void format_counted(struct buf *b, wait_sum n, const char *one, const char *many)
{
	char text[FORMAT_NUMBER_MAX];

	buftext_str(b, format_digits(text, n));
	buftext_str(b, " ");
	buftext_str(b, format_plural(n, one, many));
}

/* "54.38 s", "120 periods of cycles" */
void format_sum(struct buf *b, const struct waits *w, wait_sum v)
{
	char text[FORMAT_NUMBER_MAX];

	buftext_str(b, format_amount(text, w, v));
	if (w->is_time)
		return;
	buftext_str(b, w->unit == WAITS_UNIT_COUNT ? " waits" : w->event ? " of event " : " periods");
	if (w->unit != WAITS_UNIT_COUNT)
		format_string(b, w, w->event);
}

const char *format_damaged(const struct waits *w)
{
	return w->no_end ? "incomplete" : "damaged";
}

void format_lost(struct buf *b, const struct waits *w, int indent)
{
	for (size_t i = 0; i < w->n_lost; i++) {
		if (i)
			buftext_str(b, ", ");
		else
			buftext_printf(b, "%*s%-*s", indent, "", 11 - indent, "lost");
		format_string(b, w, w->lost[i].name);
		buftext_str(b, " ");
		buftext_dec(b, w->lost[i].count, 1);
	}
	buftext_str(b, w->n_lost ? "\n" : "");
	if (w->damaged) {
		buftext_printf(b, "%*s%-*s ", indent, "", 10 - indent, format_damaged(w));
		format_string(b, w, w->damaged);
		buftext_str(b, "\n");
	}
}

size_t format_width(size_t wanted)
{
	struct winsize size;

	if (wanted)
		return wanted;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col)
		return MAX(size.ws_col, (unsigned short)40);
	return 80;
}

/* --- TSV --- */

void format_tsv_number(struct buf *b, wait_sum v, bool known)
{
	char text[FORMAT_NUMBER_MAX];

	if (known)
		buftext_str(b, format_digits(text, v));
	buftext_str(b, "\t");
}

const char *format_tsv_title(enum ranking_by by)
{
	return by == RANKING_STACK                                       ? "kind\tsyscall\tstack"
	       : by == RANKING_THREAD                                    ? "comm\tpid\ttid"
	       : by == RANKING_PROCESS                                   ? "comm\tpid"
	       : by == RANKING_THREAD_NAME || by == RANKING_PROCESS_NAME ? "comm"
									 : format_title(by);
}

void format_tsv_group(struct buf *b, const struct waits *w, enum ranking_by by, const struct ranking_group *g)
{
	const struct wait_path *path = &w->paths[by == RANKING_STACK ? g->key : 0];

	if (by == RANKING_STACK) {
		format_string(b, w, g->kind);
		buftext_str(b, "\t");
		format_string(b, w, path->call);
		buftext_str(b, "\t");
		for (uint32_t i = 0; i < path->n; i++) {
			buftext_str(b, i ? ";" : "");
			format_string(b, w, w->functions[path->first + i]);
		}
	} else if (by == RANKING_THREAD) {
		format_string(b, w, g->kind);
		buftext_str(b, "\t");
		format_string(b, w, w->processes[w->threads[g->key].process].id);
		buftext_str(b, "\t");
		format_string(b, w, w->threads[g->key].id);
	} else if (by == RANKING_PROCESS) {
		format_string(b, w, w->processes[g->key].name);
		buftext_str(b, "\t");
		format_string(b, w, w->processes[g->key].id);
	} else {
		format_string(b, w, g->key);
	}
	buftext_str(b, "\n");
}

/* Give what is in B to O, so that it does not grow with the table. */
void format_pass(struct out *o, struct buf *b)
{
	if (b->len)
		out_put(o, b->p, b->len);
	b->len = 0;
}

/* --- JSON --- */

void format_json_line(struct format_json *wr, unsigned int indent)
{
	if (!wr->one_line)
		json_line(&wr->j, indent);
}

void format_json_sum(struct format_json *wr, const char *key, wait_sum v)
{
	char digits[40];
	size_t len = foldtab_digits(v, digits);

	json_number(&wr->j, key, digits, len);
}

/* A sum, whose key ends in "_ns" if it is a time. */
void format_json_amount(struct format_json *wr, const char *key, wait_sum v)
{
	char name[32];

	snprintf(name, sizeof(name), "%s%s", key, wr->w->is_time ? "_ns" : "");
	format_json_sum(wr, name, v);
}

/* The string; null for the empty one. A NUL in it becomes U+FFFD. */
void format_json_text(struct format_json *wr, const char *key, uint32_t id)
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

static void json_path(struct format_json *wr, const struct ranking_group *g)
{
	const struct wait_path *path = &wr->w->paths[g->key];

	format_json_text(wr, "kind", g->kind);
	format_json_text(wr, "syscall", path->call);
	json_bool(&wr->j, "kernel", path->kernel && path->n);
	json_begin(&wr->j, "functions", '[');
	for (uint32_t i = 0; i < path->n; i++)
		format_json_text(wr, NULL, wr->w->functions[path->first + i]);
	json_end(&wr->j, ']');
}

void format_json_group(struct format_json *wr, enum ranking_by by, const struct ranking_group *g)
{
	const struct waits *w = wr->w;

	switch (by) {
	case RANKING_STACK:
		json_path(wr, g);
		break;
	case RANKING_THREAD:
		format_json_text(wr, "comm", g->kind);
		format_json_text(wr, "pid", w->processes[w->threads[g->key].process].id);
		format_json_text(wr, "tid", w->threads[g->key].id);
		break;
	case RANKING_PROCESS:
		format_json_text(wr, "comm", w->processes[g->key].name);
		format_json_text(wr, "pid", w->processes[g->key].id);
		break;
	case RANKING_THREAD_NAME:
	case RANKING_PROCESS_NAME:
		format_json_text(wr, "comm", g->key);
		break;
	default:
		format_json_text(wr, g->is_call ? "syscall" : format_title(by), g->key);
	}
}

void format_json_stats(struct format_json *wr, const struct wait_stats *s)
{
	format_json_amount(wr, "total", s->total);
	if (!wr->w->folded) {
		format_json_sum(wr, "count", s->count);
		format_json_amount(wr, "mean", wait_stats_mean(s));
	}
	if (s->has_max)
		format_json_amount(wr, "max", s->max_ns);
	if (s->split) {
		format_json_amount(wr, "split", s->split);
		format_json_amount(wr, "runnable", s->runnable);
	}
}

static void json_rest(struct format_json *wr, const char *key, const struct ranking_rest *rest)
{
	format_json_line(wr, 2);
	json_begin(&wr->j, key, '{');
	format_json_amount(wr, "total", rest->stats.total);
	json_u64(&wr->j, "places", rest->places);
	json_u64(&wr->j, "threads", rest->threads);
	json_end(&wr->j, '}');
}

void format_json_summary(struct format_json *wr, const struct ranking *r)
{
	const struct waits *w = wr->w;

	if (w->elapsed_ns)
		json_u64(&wr->j, "elapsed_ns", w->elapsed_ns);
	json_u64(&wr->j, "processes", r->n_processes);
	json_u64(&wr->j, "threads", r->n_threads);
	json_u64(&wr->j, "stacks", w->n_stacks);
	if (w->event)
		format_json_text(wr, "event", w->event);
	format_json_stats(wr, &r->all);
	if (w->has_kind)
		format_json_amount(wr, "idle", r->idle);
	if (w->has_split) {
		format_json_amount(wr, "not_idle_blocked", r->blocked);
		format_json_amount(wr, "not_idle_runnable", r->runnable);
	}
	if (w->n_on_cpu) {
		format_json_sum(wr, "on_cpu_ns", w->on_cpu_ns);
		format_json_sum(wr, "on_cpu_samples", w->n_on_cpu);
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
		format_json_text(wr, format_damaged(w), w->damaged);
	format_json_amount(wr, "ranked", r->ranked);
	json_rest(wr, "idle_set_aside", &r->set_aside_idle);
	json_rest(wr, "once_set_aside", &r->set_aside_once);
}
