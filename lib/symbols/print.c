/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/print.h"
#include "base/json.h"
#include "base/text.h"
#include "capture/counters.h"
#include "capture/stats.h"
#include "symbols/tables.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

struct perf_text_wait {
	const struct cap_sample *sample;
	const struct cap_proc *proc;
	const struct cap_stack *kernel, *user;
	const char *comm; /* of the thread */
	const char *kind; /* NULL = not known */
	uint32_t ns_tid; /* of the thread, in its own PID namespace; 0 = unknown */
};

#define NS UINT64_C(1000000000)
#define LINE_BYTES 1024

static void put_key(struct buf *b, const char *key, uint64_t v)
{
	buftext_str(b, key);
	buftext_dec(b, v, 1);
}

/* A value of "key=value", never empty: "-" if VALUE is. */
static void put_value(struct buf *b, const char *key, const char *value)
{
	buftext_str(b, key);
	buftext_escaped(b, value && *value ? value : "-", TEXT_WORD);
}

static void put_build_id(struct buf *b, const struct cap_build_id *id)
{
	char digits[2 * CAPTURE_BUILD_ID_MAX + 1];

	buftext_str(b, text_hex(digits, id->bytes, MIN(id->len, CAPTURE_BUILD_ID_MAX)));
}

/* REAL_NS as UTC in TEXT; "-" if it is unknown. */
static const char *utc(uint64_t real_ns, char text[64])
{
	time_t t = (time_t)(real_ns / NS);
	struct tm tm;

	if (!real_ns || !gmtime_r(&t, &tm) || !strftime(text, 64, "%Y-%m-%dT%H:%M:%SZ", &tm))
		return "-";
	return text;
}

static uint64_t duration_ns(const struct cap_reader *c)
{
	const uint64_t stop = c->complete ? c->trailer.stop_ns : c->last_flush_ns;
	const uint64_t kept = cap_reader_kept_ns(c);

	if (kept)
		return kept;
	return stop > c->host.start_mono_ns ? stop - c->host.start_mono_ns : 0;
}

/* When what was recorded, or kept, begins: CLOCK_MONOTONIC. */
static uint64_t begin_ns(const struct cap_reader *c)
{
	const uint64_t stop = c->complete ? c->trailer.stop_ns : c->last_flush_ns,
		       kept = cap_reader_kept_ns(c);

	return kept && kept <= stop ? stop - kept : c->host.start_mono_ns;
}

static bool is_lost(const struct cap_counter *c)
{
	return c->value && counter_is_loss(c->name);
}

bool perf_text_is_loss(const struct cap_counter *c)
{
	size_t len = strlen(c->name);

	return is_lost(c) && (len < 3 || strcmp(c->name + len - 3, "_ns") != 0);
}

uint64_t perf_text_lost(const struct cap_reader *c)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < c->n_counters; i++)
		sum += perf_text_is_loss(&c->counters[i]) ? c->counters[i].value : 0;
	return sum;
}

/* The recording mode, unless it was the best; for a sampled one, also that waits are estimates. */
static void put_mode(struct buf *b, const struct cap_reader *c)
{
	struct cap_mode m;

	cap_mode_get(c, &m);
	if (m.best)
		return;
	buftext_str(b, "# mode: ");
	cap_mode_put_why(b, &m);
	buftext_str(b, "\n");
	if (!m.sampled)
		return;
	put_value(b, "# mode: name=", m.name);
	buftext_str(b, " ");
	cap_mode_put(b, &m);
	buftext_str(b, "\n");
}

/* The '#' lines at the top of the text; the format line is first. */
static void perf_text_head(struct buf *b, const struct cap_reader *c, const struct perf_text_totals *t)
{
	const struct cap_host *h = &c->host;
	char start[64];

	buftext_str(b, "# stacktools perf-script 1\n");
	put_value(b, "# kernel: release=", h->release);
	put_value(b, " machine=", h->machine);
	buftext_printf(b, " stext=0x%" PRIx64 " build-id=%s", h->stext, h->kernel_build_id.len ? "" : "-");
	put_build_id(b, &h->kernel_build_id);
	put_value(b, " boot-id=", h->boot_id);
	put_value(b, "\n# host: hostname=", h->hostname);
	put_value(b, " recorder=", h->recorder);
	buftext_printf(b, " start=%s", utc(h->start_real_ns, start));
	buftext_printf(
		b, " duration=%" PRIu64 ".%03" PRIu64, duration_ns(c) / NS, duration_ns(c) % NS / 1000000);
	buftext_printf(b, " monotonic=%" PRIu64 ".%09" PRIu64 "\n", begin_ns(c) / NS, begin_ns(c) % NS);
	buftext_printf(b, "# totals: waits=%" PRIu64 " total_ns=%" PRIu64 " lost=%" PRIu64, t->waits,
		t->total_ns, t->lost);
	if (t->samples)
		put_key(b, " samples=", t->samples);
	buftext_str(b, "\n");
	if (c->n_waits)
		buftext_printf(b, "# events: count=%" PRIu64 "\n", c->n_waits);
	put_mode(b, c);
	for (size_t i = 0; i < c->n_counters; i++) {
		if (!is_lost(&c->counters[i]))
			continue;
		put_value(b, "# lost: name=", c->counters[i].name);
		buftext_printf(b, " count=%" PRIu64 "\n", c->counters[i].value);
	}
	if (c->damage[0]) {
		buftext_str(b, c->no_trailer ? "# incomplete: " : "# damaged: ");
		buftext_escaped(b, c->damage, TEXT_LINE);
		buftext_str(b, "\n");
	}
}

/* "# not-used: file=PATH reason=WHY" */
static void perf_text_not_used(struct buf *b, const char *path, const char *why)
{
	put_value(b, "# not-used: file=", path);
	buftext_str(b, " reason=");
	buftext_escaped(b, why, TEXT_LINE);
	buftext_str(b, "\n");
}

/* The length of the piece of COMM at I that needs no escaping; 0 = escape this byte. A space is the caller's.
 */
static size_t plain_piece(const char *comm, size_t i, size_t len)
{
	size_t n = text_utf8_len(comm + i, len - i);

	if (comm[i] == ';' || comm[i] == '\\' || (i == 0 && comm[i] == '#'))
		return 0;
	return n > 1 && text_is_space(comm + i, n) ? 0 : n;
}

static bool space_is_safe(const char *comm, size_t i, size_t len)
{
	unsigned char next = i + 1 < len ? (unsigned char)comm[i + 1] : ' ';

	return i > 0 && next > ' ' && !(next >= '0' && next <= '9');
}

/* Would a file that begins with COMM be taken for another format? Viewers look at the first bytes. */
static bool begins_other_format(const char *comm)
{
	static const char *const begins[] = { "{", "[{", "<", "FLR", "JAVA PROFILE", "PERFILE2", "SIMPLEPERF",
		"SLOW", "events:" };

	for (size_t i = 0; i < ARRAY_LEN(begins); i++) {
		if (strncmp(comm, begins[i], strlen(begins[i])) == 0)
			return true;
	}
	return false;
}

static void put_comm(struct buf *b, const char *comm, enum wait_format format)
{
	const bool escape_first = format == WAIT_PERF && begins_other_format(comm);
	size_t len = strnlen(comm, 256), before = b->len;

	for (size_t i = 0, n; i < len; i += n ? n : 1) {
		n = i == 0 && escape_first ? 0 : plain_piece(comm, i, len);
		if (comm[i] == ' ' && !space_is_safe(comm, i, len))
			buftext_str(b, "_");
		else if (n)
			buf_put(b, comm + i, n);
		else if (comm[i] == '\\')
			buftext_str(b, "\\\\");
		else
			buftext_printf(b, "\\x%02x", (unsigned char)comm[i]);
	}
	if (!len)
		buftext_str(b, "[empty]");
	else if (b->len - before == 1)
		buftext_str(b, " ");
}

static bool not_recorded(const struct cap_stack *s)
{
	return s->verdict == VERDICT_FAILED && s->reason == REASON_NOT_RECORDED;
}

/* A thread that was interrupted in its own code has no kernel stack. */
static bool is_absent(const struct cap_stack *s)
{
	return not_recorded(s) || (s->verdict == VERDICT_FAILED && s->reason == REASON_USER_MODE);
}

static bool is_truncated(const struct cap_stack *s)
{
	return capture_truncated(s->verdict, s->reason);
}

static bool is_stopped(const struct cap_stack *s)
{
	return capture_stopped(s->verdict, s->reason);
}

/* What went wrong, in one word; NULL if nothing did. */
static const char *error_word(const struct cap_stack *s)
{
	if (is_truncated(s))
		return "truncated";
	if (s->verdict != VERDICT_FAILED && !is_stopped(s))
		return NULL;
	return s->reason == REASON_ERRNO ? err_name(s->error) : capture_reason_name(s->reason);
}

/* The same for users, as part of a frame: no parentheses, quotes or arrows. */
static const char *error_phrase(const struct cap_stack *s)
{
	static const char *const phrases[REASON_COUNT] = {
		[REASON_NONE] = "no reason given",
		[REASON_KTHREAD] = "kernel thread",
		[REASON_EXEC] = "inside execve",
		[REASON_NOT_SEEN] = "wait began before the recording",
		[REASON_LOST] = "lost, the ring buffer was full",
		[REASON_EXITING] = "thread was exiting",
		[REASON_COMPAT] = "32-bit task",
		[REASON_EMPTY] = "empty",
		[REASON_MEMORY] = "stack memory unreadable",
	};

	if (s->reason < REASON_COUNT && phrases[s->reason])
		return phrases[s->reason];
	return s->reason == REASON_ERRNO ? err_name(s->error) : capture_reason_name(s->reason);
}

static void put_verdict(struct buf *b, const char *key, const struct cap_stack *s)
{
	const char *word = error_word(s);

	buftext_str(b, key);
	buftext_str(b, is_absent(s) ? capture_reason_name(s->reason) : capture_verdict_name(s->verdict));
	if (word && s->verdict != VERDICT_TRUNCATED && !is_absent(s)) {
		buftext_str(b, ":");
		buftext_str(b, word);
	}
}

/* What interrupt W is called, in TEXT: "[timer]"; a hidden thread is "[hidden]". NULL: it is a known thread.
 */
static const char *unnamed_waker(const struct wait_printer *p, const struct cap_waker *w, char text[64])
{
	const char *kind = p->wakers[w->id - 1].kind;

	if (w->flags & CAPTURE_WAKER_INTERRUPT)
		snprintf(text, 64, "[%s]", kind ? kind : "interrupt");
	else if (w->proc == CAPTURE_NONE)
		snprintf(text, 64, "[hidden]");
	else
		return NULL;
	return text;
}

static const char *waker_comm(const struct wait_printer *p, const struct cap_waker *w, uint32_t *ns_tid)
{
	const struct cap_sample at = { .proc = w->proc, .tid = w->tid, .first_ns = w->first_ns };

	return wait_printer_comm(p->c, &at, ns_tid);
}

/* Of a thread that ran, not a wait. */
static bool is_sample(const struct cap_sample *s)
{
	return s->flags & CAPTURE_SAMPLE_ON_CPU;
}

/* The key of a comment, so that readers can sum by it without looking at frames. */
static void put_waker_key(struct buf *b, const struct wait_printer *p, uint32_t id)
{
	const struct cap_waker *w = id ? &p->c->wakers[id - 1] : NULL;
	const char *name;
	uint32_t ns_tid;
	char text[64];

	if (!w)
		return;
	name = unnamed_waker(p, w, text);
	put_value(b, " waker=", name ? name : waker_comm(p, w, &ns_tid));
}

static void put_comment(struct buf *b, const struct wait_printer *p, const struct perf_text_wait *w)
{
	const struct cap_sample *s = w->sample;
	char letters[16];

	put_key(b, is_sample(s) ? "# sample: count=" : "# wait: count=", s->count);
	put_key(b, " total_ns=", s->total_ns);
	if (is_sample(s)) {
		put_verdict(b, " kernel=", w->kernel);
		put_verdict(b, " user=", w->user);
		buftext_str(b, "\n");
		return;
	}
	put_key(b, " max_ns=", s->max_ns);
	if (s->is_split)
		put_key(b, " runnable_ns=", s->runnable_ns);
	if (w->kind) {
		buftext_str(b, " kind=");
		buftext_str(b, w->kind);
	}
	buftext_str(b, " state=");
	buftext_str(b, capture_state_letter(s->state, letters));
	buftext_str(b, s->flags & CAPTURE_SAMPLE_OPEN ? " open=1" : " open=0");
	buftext_str(b, s->flags & CAPTURE_SAMPLE_INITIAL ? " initial=1" : " initial=0");
	buftext_str(b, s->flags & CAPTURE_SAMPLE_PREEMPTED ? " preempted=1" : " preempted=0");
	put_verdict(b, " kernel=", w->kernel);
	put_verdict(b, " user=", w->user);
	put_waker_key(b, p, s->waker);
	buftext_str(b, "\n");
}

/* The first line of a record. Viewers want microseconds. */
static void put_first_line(struct buf *b, const struct perf_text_wait *w, uint64_t time_ns, uint64_t period,
	enum wait_format format)
{
	put_comm(b, w->comm, format);
	put_key(b, " ", w->proc->tgid);
	put_key(b, "/", w->sample->tid);
	put_key(b, " [000] ", time_ns / NS);
	buftext_str(b, ".");
	if (format == WAIT_PERF)
		buftext_dec(b, time_ns % NS / 1000, 6);
	else
		buftext_dec(b, time_ns % NS, 9);
	put_key(b, ": ", period);
	buftext_str(b, is_sample(w->sample) ? " cpu-clock: \n" : " offcpu-time: \n");
}

/* The period of a wait: readers take 0 for 1. */
static uint64_t period_of(const struct cap_sample *s)
{
	return MAX(s->total_ns, (uint64_t)1);
}

/* The comment and the first line of a record. The caller ends the record with a blank line. */
static void perf_text_wait(struct buf *b, const struct wait_printer *p, const struct perf_text_wait *w)
{
	put_comment(b, p, w);
	put_first_line(b, w, w->sample->last_ns, period_of(w->sample), WAIT_TEXT);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void put_name(struct buf *b, const char *name)
{
	if (name[0] == '(')
		buftext_str(b, "::");
	buftext_escaped(b, name, TEXT_LINE);
}

/* NAME as a word in which the bytes ALSO are escaped as well; BARE: without the brackets around "[vdso]". */
static void put_word(struct buf *b, const char *name, const char *also, bool bare)
{
	struct buf text = { 0 };
	size_t from, to;

	buftext_escaped(&text, name, TEXT_WORD);
	from = bare && text.len > 2 && text.p[0] == '[' && text.p[text.len - 1] == ']';
	to = text.len - from;
	for (size_t i = from; i < to; i++) {
		const char c = (char)text.p[i];

		if (strchr(also, c))
			buftext_printf(b, "\\x%02x", (unsigned char)c);
		else
			buf_put(b, &c, 1);
	}
	b->failed = b->failed || text.failed;
	buf_free(&text);
}

/*
 * The function without a name that F is in, or F alone. Readers cut a name at "(", split it at "->", drop
 * quotes and replace ";"; brackets would end the label early.
 */
static void put_label(struct buf *b, const struct frame *f)
{
	buftext_str(b, "[");
	put_word(b, base_name(f->module), "()[]>;\"'", true);
	buftext_str(b, "+0x");
	buftext_hex(b, f->module_address - (f->source == FRAME_FDE ? f->offset : 0), 1);
	buftext_str(b, "]");
}

/*
 * As perf-map-agent names a method for perf, which stackcollapse-perf.pl and
 * flamegraph.pl know: "Ljava/lang/Thread;::sleep".
 */
static void put_java(struct buf *b, const char *name)
{
	const char *dot = strrchr(name, '.');
	char class[2] = { 0 };

	buftext_str(b, "L");
	for (const char *p = name; dot && p < dot; p++) {
		class[0] = *p == '.' ? '/' : *p;
		buftext_escaped(b, class, TEXT_LINE);
	}
	buftext_str(b, ";::");
	buftext_escaped(b, dot ? dot + 1 : name, TEXT_LINE);
}

/* Readers cut a name at "(", which is in the middle of Ruby's "block (2 levels) in f". */
static void put_script_text(struct buf *b, const char *text)
{
	const size_t from = b->len;

	buftext_escaped(b, text, TEXT_LINE);
	for (size_t i = from; i < b->len; i++)
		if (b->p[i] == '(' || b->p[i] == ')')
			b->p[i] = b->p[i] == '(' ? '{' : '}';
}

/* As V8 names a function for perf, without tier and line: "JS:function file"; builtins have no file. */
static void put_js(struct buf *b, const struct frame *f)
{
	buftext_str(b, "JS:");
	put_script_text(b, f->name);
	if (!f->file || !*f->file)
		return;
	buftext_str(b, " ");
	put_script_text(b, f->file);
}

/* As CPython names its functions for perf: "py::function:file". */
static void put_script(struct buf *b, const struct frame *f)
{
	bool python = strcmp(f->runtime, "python") == 0;

	if (!f->name) {
		buftext_str(b, "[");
		buftext_escaped(b, f->runtime, TEXT_WORD);
		buftext_str(b, ": not readable]");
		return;
	}
	if (strcmp(f->runtime, "java") == 0) {
		put_java(b, f->name);
		return;
	}
	if (strcmp(f->runtime, "v8") == 0) {
		put_js(b, f);
		return;
	}
	buftext_escaped(b, python ? "py" : f->runtime, TEXT_WORD);
	buftext_str(b, "::");
	put_script_text(b, f->name);
	buftext_str(b, ":");
	put_script_text(b, f->file ? f->file : "");
}

static bool ends_in_offset(const struct frame *f)
{
	return !f->runtime && (f->name ? !f->no_start : f->source == FRAME_FDE);
}

void perf_text_frame_name(struct buf *b, const struct frame *f)
{
	if (f->runtime)
		put_script(b, f);
	else if (f->name)
		put_name(b, f->name);
	else if (f->in_file && f->module)
		put_label(b, f);
	else
		buftext_str(b, "[unknown]");
}

static void put_symbol(struct buf *b, const struct frame *f)
{
	perf_text_frame_name(b, f);
	if (ends_in_offset(f)) {
		buftext_str(b, "+0x");
		buftext_hex(b, f->offset, 1);
	}
}

static void put_module(struct buf *b, const struct frame *f, const char *also)
{
	if (f->kernel && (!f->module || !*f->module)) {
		buftext_str(b, "[kernel.kallsyms]");
		return;
	}
	if (f->runtime) {
		buftext_str(b, "[");
		buftext_escaped(b, f->runtime, TEXT_WORD);
		buftext_str(b, "]");
		return;
	}
	buftext_str(b, f->kernel ? "[" : "");
	put_word(b, f->module && *f->module ? f->module : "[unknown]", also, false);
	buftext_str(b, f->kernel ? "]" : "");
}

/* Fast path for a symbol and module without escapes: builds the line in a buffer of LINE_BYTES. */
static bool put_plain_frame(struct buf *b, const struct frame *f)
{
	char line[LINE_BYTES], *p = line;
	size_t name = f->name ? strnlen(f->name, LINE_BYTES) : LINE_BYTES;
	size_t module = f->module && !f->kernel ? strnlen(f->module, LINE_BYTES) : LINE_BYTES;

	if (name + module + 64 > LINE_BYTES || !module || f->no_start || f->name[0] == '(' ||
		!buftext_is_plain(f->name, name) || !buftext_is_plain(f->module, module))
		return false;
	*p++ = '\t';
	p = buftext_hex_at(p, f->address, 16);
	*p++ = ' ';
	p = (char *)mempcpy(p, f->name, name);
	p = (char *)mempcpy(p, "+0x", 3);
	p = buftext_hex_at(p, f->offset, 1);
	p = (char *)mempcpy(p, " (", 2);
	p = (char *)mempcpy(p, f->module, module);
	p = (char *)mempcpy(p, ")\n", 2);
	buf_put(b, line, (size_t)(p - line));
	return true;
}

static void put_own_frame(struct buf *b, const struct frame *f)
{
	if (put_plain_frame(b, f))
		return;
	buftext_str(b, "\t");
	buftext_hex(b, f->address, 16);
	buftext_str(b, " ");
	put_symbol(b, f);
	buftext_str(b, " (");
	put_module(b, f, "");
	buftext_str(b, ")\n");
}

/* The source line below a frame, like perf's srcline. */
static void put_place(struct buf *b, const char *file, uint32_t line)
{
	if (!file || !line)
		return;
	buftext_str(b, "  ");
	buftext_escaped(b, file, TEXT_WORD);
	put_key(b, ":", line);
	buftext_str(b, "\n");
}

/*
 * A line for each inlined call, innermost first, and one for the function itself. With LINES, each
 * is followed by its source line if that is known.
 */
static void perf_text_frame(struct buf *b, const struct frame *f, bool lines)
{
	for (uint32_t i = 0; i < f->n_inlined; i++) {
		const struct frame_call *c = &f->inlined[i];

		buftext_str(b, "\t");
		buftext_hex(b, f->address, 16);
		buftext_str(b, " ");
		put_name(b, c->name && *c->name ? c->name : "[unknown]");
		buftext_str(b, " (inlined)\n");
		if (lines)
			put_place(b, c->file, c->line);
	}
	put_own_frame(b, f);
	if (lines)
		put_place(b, f->file, f->line);
}

/* One line, of CALL, which is inlined into F, or of F itself if CALL is NULL. */
static void put_viewer_line(struct buf *b, const struct frame *f, const struct frame_call *call)
{
	size_t symbol;
	bool has_offset;

	buftext_str(b, "\t");
	buftext_hex(b, f->address, 16);
	buftext_str(b, " ");
	symbol = b->len;
	if (call)
		put_name(b, call->name && *call->name ? call->name : "[unknown]");
	else
		put_symbol(b, f);
	has_offset = !call && ends_in_offset(f);
	if (!has_offset && !b->failed && memchr(b->p + symbol, '+', b->len - symbol))
		buftext_str(b, "+0x0");
	buftext_str(b, " (");
	put_module(b, f, "()");
	buftext_str(b, ")\n");
}

/*
 * The same for viewers. They show the module of each function, so that of an inlined call is where its code
 * is. Perfetto looks for the last parenthesis, and cuts a symbol at its last "+" whether an offset follows or
 * not.
 */
static void perf_text_viewer_frame(struct buf *b, const struct frame *f)
{
	for (uint32_t i = 0; i < f->n_inlined; i++)
		put_viewer_line(b, f, &f->inlined[i]);
	if ((f->module && strpbrk(f->module, "()")) || !put_plain_frame(b, f))
		put_viewer_line(b, f, NULL);
}

/* Is script frame I shown instead of its native frame? */
static bool is_instead(const struct cap_stack *s, uint32_t i)
{
	return s->scripts[i].instead && (!i || s->scripts[i - 1].at != s->scripts[i].at);
}

static uint32_t shown_frames(const struct cap_stack *s)
{
	uint32_t n = s->len + s->n_scripts;

	for (uint32_t i = 0; i < s->n_scripts; i++)
		n -= is_instead(s, i);
	return n;
}

bool perf_text_lack_name(struct buf *b, const struct cap_stack *s)
{
	bool kernel = s->kind == CAPTURE_STACK_KERNEL;

	if ((s->verdict != VERDICT_FAILED && !is_stopped(s) && !is_truncated(s)) || is_absent(s))
		return false;
	if (is_truncated(s))
		buftext_printf(b, "[truncated at %" PRIu32 " frames]", shown_frames(s));
	else if (is_stopped(s))
		buftext_printf(b, "[stopped: %s]", error_phrase(s));
	else
		buftext_printf(b, "[no %s stack: %s]", kernel ? "kernel" : "user", error_phrase(s));
	return true;
}

/* The line for the missing part of a stack. */
static void perf_text_lack(struct buf *b, const struct cap_stack *s)
{
	const size_t before = b->len;

	buftext_str(b, "\t");
	buftext_hex(b, is_stopped(s) ? s->stop_pc : 0, 16);
	buftext_str(b, " ");
	if (!perf_text_lack_name(b, s))
		b->len = before;
	else
		buftext_str(b, s->kind == CAPTURE_STACK_KERNEL ? " ([kernel.kallsyms])\n" : " ([unknown])\n");
}

/* The recording mode, unless it was the best; "samples" if waits are estimates. */
static void put_json_mode(struct json *j, const struct cap_reader *c)
{
	struct cap_mode m;

	cap_mode_get(c, &m);
	if (m.best)
		return;
	json_str(j, "mode", m.name);
	json_str(j, "mode_tried", m.tried);
	if (m.sampled)
		cap_mode_put_json(j, &m);
}

/* The head as JSON. Each object is one line. */
static void perf_text_json_head(struct buf *b, const struct cap_reader *c, const struct perf_text_totals *t)
{
	const struct cap_host *h = &c->host;
	struct json j = { .b = b };
	char start[64];

	json_begin(&j, NULL, '{');
	json_str(&j, "type", "capture");
	json_str(&j, "release", h->release);
	json_str(&j, "version", h->version);
	json_str(&j, "machine", h->machine);
	json_str(&j, "hostname", h->hostname);
	json_str(&j, "boot_id", h->boot_id);
	json_str(&j, "recorder", h->recorder);
	json_bytes(&j, "kernel_build_id", h->kernel_build_id.bytes,
		MIN(h->kernel_build_id.len, CAPTURE_BUILD_ID_MAX));
	json_address(&j, "stext", h->stext);
	json_str(&j, "start", utc(h->start_real_ns, start));
	json_u64(&j, "start_real_ns", h->start_real_ns);
	json_u64(&j, "start_mono_ns", h->start_mono_ns);
	json_u64(&j, "duration_ns", duration_ns(c));
	json_u64(&j, "records", t->records);
	json_u64(&j, "waits", t->waits);
	json_u64(&j, "total_ns", t->total_ns);
	json_u64(&j, "cpu_samples", t->samples);
	json_u64(&j, "events", c->n_waits);
	json_bool(&j, "complete", c->complete);
	json_str(&j, "damage", c->damage[0] ? c->damage : NULL);
	put_json_mode(&j, c);
	json_begin(&j, "lost", '{');
	for (size_t i = 0; i < c->n_counters; i++)
		if (is_lost(&c->counters[i]))
			json_u64(&j, c->counters[i].name, c->counters[i].value);
	json_end(&j, '}');
	json_end(&j, '}');
	buftext_str(b, "\n");
}

static void perf_text_json_not_used(struct buf *b, const char *path, const char *why)
{
	struct json j = { .b = b };

	json_begin(&j, NULL, '{');
	json_str(&j, "type", "not-used");
	json_str(&j, "file", path);
	json_str(&j, "reason", why);
	json_end(&j, '}');
	buftext_str(b, "\n");
}

/* The names of the members that describe one stack of a wait. */
struct stack_keys {
	const char *id, *verdict, *error, *error_text, *stop_pc, *exact;
};

static const struct stack_keys kernel_keys = { "kernel_stack_id", "kernel_stack_verdict",
	"kernel_stack_error", "kernel_stack_error_text", "kernel_stop_pc", "kernel_stack_exact" };
static const struct stack_keys user_keys = { "user_stack_id", "user_stack_verdict", "user_stack_error",
	"user_stack_error_text", "user_stop_pc", "user_stack_exact" };

static void put_json_stack(struct json *j, const struct stack_keys *keys, const struct cap_stack *s)
{
	const char *word = error_word(s);
	char text[64];

	json_u64(j, keys->id, s->id);
	json_str(j, keys->verdict, capture_verdict_name(s->verdict));
	json_str(j, keys->error, word);
	if (is_truncated(s)) {
		snprintf(text, sizeof(text), "truncated at %" PRIu32 " frames", shown_frames(s));
		json_str(j, keys->error_text, text);
	} else if (word && s->reason == REASON_ERRNO) {
		json_str(j, keys->error_text, strerror(s->error < 0 ? -s->error : s->error));
	} else {
		json_str(j, keys->error_text, word ? capture_reason_text(s->reason) : NULL);
	}
	if (is_stopped(s))
		json_address(j, keys->stop_pc, s->stop_pc);
	if (!s->n_exact)
		return;
	json_begin(j, keys->exact, '[');
	for (uint32_t i = 0, script = 0, more = 0; i < s->n_exact; i++) {
		/* script frames are in the list of frames too; the first one may replace the native one */
		for (; script < s->n_scripts && s->scripts[script].at < s->exact[i]; script++)
			more += !is_instead(s, script);
		json_u64(j, NULL, s->exact[i] + more);
	}
	json_end(j, ']');
}

static void put_json_split(struct json *j, const struct perf_text_wait *w)
{
	const struct cap_sample *s = w->sample;

	json_u64(j, "max_ns", s->max_ns);
	if (s->is_split)
		json_u64(j, "runnable_ns", s->runnable_ns);
	else
		json_null(j, "runnable_ns");
	json_str(j, "kind", w->kind);
}

static void put_json_state(struct json *j, const struct cap_sample *s)
{
	char letters[16];

	json_str(j, "state", capture_state_letter(s->state, letters));
	json_u64(j, "state_bits", s->state);
	json_bool(j, "open", s->flags & CAPTURE_SAMPLE_OPEN);
	json_bool(j, "initial", s->flags & CAPTURE_SAMPLE_INITIAL);
	json_bool(j, "preempted", s->flags & CAPTURE_SAMPLE_PREEMPTED);
}

/* All members before the frames, with the numbers of the exact frames if there are any (struct cap_stack). */
static void perf_text_json_wait(struct json *j, const struct perf_text_wait *w)
{
	const struct cap_sample *s = w->sample;

	json_begin(j, NULL, '{');
	json_str(j, "type", is_sample(s) ? "sample" : "wait");
	json_str(j, "comm", w->comm);
	json_u64(j, "pid", w->proc->tgid);
	json_u64(j, "tid", s->tid);
	json_u64(j, "ns_pid", w->proc->ns_tgid);
	json_u64(j, "ns_tid", w->ns_tid);
	json_u64(j, "process", w->proc->id);
	json_str(j, "process_comm", w->proc->comm);
	json_str(j, "exe", w->proc->exe && *w->proc->exe ? w->proc->exe : NULL);
	json_bool(j, "kthread", w->proc->flags & CAPTURE_PROC_KTHREAD);
	json_u64(j, "count", s->count);
	json_u64(j, "total_ns", s->total_ns);
	if (!is_sample(s))
		put_json_split(j, w);
	json_u64(j, "first_ns", s->first_ns);
	json_u64(j, "last_ns", s->last_ns);
	if (is_sample(s))
		json_str(j, "event", "cpu-clock");
	else
		put_json_state(j, s);
	put_json_stack(j, &kernel_keys, w->kernel);
	put_json_stack(j, &user_keys, w->user);
}

static void put_json_number(struct json *j, const char *key, uint32_t v)
{
	if (v)
		json_u64(j, key, v);
	else
		json_null(j, key);
}

/* The place of execution in a function: its call, or the address. */
static void put_json_place(struct json *j, const char *file, uint32_t line, uint32_t column)
{
	json_str(j, "file", file);
	put_json_number(j, "line", line);
	put_json_number(j, "column", column);
}

void perf_text_json_frame(struct json *j, const struct frame *f)
{
	json_address(j, "address", f->address);
	json_str(j, "symbol", f->name);
	if (f->runtime) {
		json_str(j, "runtime", f->runtime);
		json_str(j, "function", f->name);
	}
	json_str(j, "linkage_name", f->linkage);
	if (f->scheduler)
		json_bool(j, "scheduler", true);
	if (f->name ? !f->no_start : f->source == FRAME_FDE)
		json_u64(j, "offset", f->offset);
	else
		json_null(j, "offset");
	json_str(j, "module", f->kernel && f->name && f->module && !*f->module ? "kernel" : f->module);
	if (f->in_file)
		json_address(j, "module_offset", f->module_offset);
	else
		json_null(j, "module_offset");
	if (f->in_file && f->in_image)
		json_address(j, "module_address", f->module_address);
	else
		json_null(j, "module_address");
	json_begin(j, "inlined", '[');
	for (uint32_t i = 0; i < f->n_inlined; i++) {
		json_begin(j, NULL, '{');
		json_str(j, "symbol", f->inlined[i].name);
		json_str(j, "linkage_name", f->inlined[i].linkage);
		put_json_place(j, f->inlined[i].file, f->inlined[i].line, f->inlined[i].column);
		json_end(j, '}');
	}
	json_end(j, ']');
	put_json_place(j, f->file, f->line, f->column);
	json_str(j, "source", frame_source_name(f->source));
	json_str(j, "reason", f->reason);
}

#define AHEAD 8 /* how many frames ahead to prefetch */

struct text {
	size_t at;
	uint32_t len;
};

struct print {
	const struct wait_printer *w;
	struct buf arena; /* text of all frames */
	struct text *texts; /* indexed by frame id */
};

const char *wait_printer_comm(const struct cap_reader *c, const struct cap_sample *s, uint32_t *ns_tid)
{
	const struct cap_thread *t = cap_reader_thread(c, s->proc, s->tid, s->first_ns);

	*ns_tid = t ? t->ns_tid : 0;
	return t ? t->comm : c->procs[s->proc].comm;
}

static void put_json_frame(struct buf *b, const struct frame *f)
{
	struct json j = { .b = b };

	json_begin(&j, NULL, '{');
	perf_text_json_frame(&j, f);
	json_end(&j, '}');
}

/* Render each frame once. */
static int render_frames(struct print *j, struct err *e)
{
	size_t n = resolve_count(j->w->r);

	j->texts = calloc(n + 1, sizeof(*j->texts));
	if (!j->texts)
		return err_nomem(e, "frames");
	for (size_t i = 0; i < n; i++) {
		const struct frame *f = resolve_frame(j->w->r, (uint32_t)i);

		j->texts[i].at = j->arena.len;
		if (j->w->format == WAIT_JSON)
			put_json_frame(&j->arena, f);
		else if (f->scheduler && !j->w->scheduler)
			continue;
		else if (j->w->format == WAIT_PERF)
			perf_text_viewer_frame(&j->arena, f);
		else
			perf_text_frame(&j->arena, f, j->w->lines);
		j->texts[i].len = (uint32_t)(j->arena.len - j->texts[i].at);
	}
	return j->arena.failed ? err_nomem(e, "frames") : 0;
}

static void put_frames(
	const struct print *j, struct out *out, const struct stackids_span *s, const char *between)
{
	const uint32_t *ids = stackids_at(j->w->stacks, s);
	size_t n = strlen(between);

	for (uint32_t i = 0; i < s->len; i++) {
		const struct text *t = &j->texts[ids[i]];

		if (i + AHEAD < s->len)
			__builtin_prefetch(j->arena.p + j->texts[ids[i + AHEAD]].at);
		if (i && n)
			out_put(out, between, n);
		out_put(out, j->arena.p + t->at, t->len);
	}
}

static void put_buf(struct out *out, struct buf *b)
{
	if (b->failed)
		out->code = out->code ? out->code : -ENOMEM;
	out_put(out, b->p, b->len);
	buf_reset(b);
}

/* As put_frames(), with each line as a comment. */
static void put_commented(const struct print *j, struct out *out, const struct stackids_span *s)
{
	const uint32_t *ids = stackids_at(j->w->stacks, s);

	for (uint32_t i = 0; i < s->len; i++) {
		const struct text *t = &j->texts[ids[i]];
		const char *p = (const char *)j->arena.p + t->at, *end = p + t->len;

		for (size_t len; p < end; p += len) {
			len = (size_t)((const char *)memchr(p, '\n', (size_t)(end - p)) - p) + 1;
			out_put(out, "#", 1);
			out_put(out, p, len);
		}
	}
}

static void put_commented_lack(struct out *out, struct buf *b, const struct cap_stack *s)
{
	perf_text_lack(b, s);
	out_put(out, "#", b->len != 0);
	put_buf(out, b);
}

/* Waker ID, and those before it. */
static void put_wakers(const struct print *j, struct out *out, struct buf *b, uint32_t id)
{
	for (const struct cap_waker *w; id; id = w->next) {
		const struct wait_printer_waker *p = &j->w->wakers[id - 1];
		const char *name;
		uint32_t ns_tid;
		char text[64];

		w = &j->w->c->wakers[id - 1];
		name = unnamed_waker(j->w, w, text);
		buftext_str(b, "# waker: ");
		if (name) {
			buftext_str(b, name);
		} else {
			put_comm(b, waker_comm(j->w, w, &ns_tid), WAIT_TEXT);
			put_key(b, " ", j->w->c->procs[w->proc].tgid);
			put_key(b, "/", w->tid);
		}
		buftext_str(b, "\n");
		put_buf(out, b);
		put_commented(j, out, &p->kernel);
		put_commented_lack(out, b, &j->w->c->stacks[w->kstack]);
		put_commented(j, out, &p->user);
		put_commented_lack(out, b, &j->w->c->stacks[w->ustack]);
	}
}

static void add_frames(const struct print *j, struct buf *b, const struct stackids_span *s)
{
	const uint32_t *ids = stackids_at(j->w->stacks, s);

	for (uint32_t i = 0; i < s->len; i++)
		buf_put(b, j->arena.p + j->texts[ids[i]].at, j->texts[ids[i]].len);
}

static void put_text(const struct print *j, struct out *out, struct buf *b,
	const struct wait_printer_record *r, const struct perf_text_wait *w)
{
	perf_text_wait(b, j->w, w);
	put_buf(out, b);
	put_frames(j, out, &r->kernel, "");
	perf_text_lack(b, w->kernel);
	put_buf(out, b);
	put_frames(j, out, &r->user, "");
	perf_text_lack(b, w->user);
	if (w->sample->waker) {
		put_buf(out, b);
		put_wakers(j, out, b, w->sample->waker);
	}
	buf_put(b, "\n", 1);
	put_buf(out, b);
}

/* Member "waker": the waker ID, with its own waker in it. */
static void put_waker_json(const struct print *p, struct out *out, struct json *j, uint32_t id)
{
	const struct cap_reader *c = p->w->c;
	size_t depth = 0;

	for (const struct cap_waker *w; id; id = w->next, depth++) {
		const struct wait_printer_waker *r = &p->w->wakers[id - 1];
		uint32_t ns_tid;

		w = &c->wakers[id - 1];
		json_begin(j, "waker", '{');
		json_bool(j, "interrupt", w->flags & CAPTURE_WAKER_INTERRUPT);
		if (w->flags & CAPTURE_WAKER_INTERRUPT)
			json_str(j, "kind", r->kind);
		if (w->proc != CAPTURE_NONE) {
			json_str(j, "comm", waker_comm(p->w, w, &ns_tid));
			json_u64(j, "pid", c->procs[w->proc].tgid);
			json_u64(j, "tid", w->tid);
			json_u64(j, "process", w->proc);
			json_str(j, "process_comm", c->procs[w->proc].comm);
		}
		put_json_stack(j, &kernel_keys, &c->stacks[w->kstack]);
		put_json_stack(j, &user_keys, &c->stacks[w->ustack]);
		json_begin(j, "kernel_stack", '[');
		put_buf(out, j->b);
		put_frames(p, out, &r->kernel, ",");
		json_end(j, ']');
		json_begin(j, "user_stack", '[');
		put_buf(out, j->b);
		put_frames(p, out, &r->user, ",");
		json_end(j, ']');
	}
	while (depth--)
		json_end(j, '}');
}

static void put_wait_json(const struct print *p, struct out *out, struct buf *b,
	const struct wait_printer_record *r, const struct perf_text_wait *w)
{
	struct json j = { .b = b };

	perf_text_json_wait(&j, w);
	json_begin(&j, "kernel_stack", '[');
	put_buf(out, b);
	put_frames(p, out, &r->kernel, ",");
	json_end(&j, ']');
	json_begin(&j, "user_stack", '[');
	put_buf(out, b);
	put_frames(p, out, &r->user, ",");
	json_end(&j, ']');
	if (w->sample->waker)
		put_waker_json(p, out, &j, w->sample->waker);
	json_end(&j, '}');
	buf_put(b, "\n", 1);
	put_buf(out, b);
}

static void put_head(const struct print *j, struct out *out, struct buf *b)
{
	const bool json = j->w->format == WAIT_JSON || j->w->format == WAIT_TABLES;
	struct modules_file f;

	if (json)
		perf_text_json_head(b, j->w->c, &j->w->totals);
	else
		perf_text_head(b, j->w->c, &j->w->totals);
	for (uint32_t i = 0; i < j->w->c->n_files; i++) {
		if (!resolve_file(j->w->r, i, &f) || !f.problem)
			continue;
		if (json)
			perf_text_json_not_used(b, j->w->c->files[i].path, f.problem);
		else
			perf_text_not_used(b, j->w->c->files[i].path, f.problem);
	}
	if (!json)
		buf_put(b, "\n", 1);
	put_buf(out, b);
}

/* S is the sample of R, or one wait of it. */
static struct perf_text_wait wait_of(
	const struct print *j, const struct wait_printer_record *r, const struct cap_sample *s)
{
	struct perf_text_wait w = { .sample = s,
		.proc = &j->w->c->procs[s->proc],
		.kernel = &j->w->c->stacks[s->kstack],
		.user = &j->w->c->stacks[s->ustack],
		.kind = r->kind };

	w.comm = wait_printer_comm(j->w->c, s, &w.ns_tid);
	return w;
}

static void put_record(const struct print *j, struct out *out, struct buf *b,
	const struct wait_printer_record *r, const struct cap_sample *s)
{
	const struct perf_text_wait w = wait_of(j, r, s);

	if (j->w->format == WAIT_JSON)
		put_wait_json(j, out, b, r, &w);
	else
		put_text(j, out, b, r, &w);
}

struct cap_sample wait_printer_turn_sample(const struct wait_printer *w, const struct wait_printer_turn *t)
{
	struct cap_sample s = *w->records[t->record].sample;
	const struct cap_wait *one;

	if (t->wait == CAPTURE_NONE)
		return s;
	one = &w->c->waits[t->wait];
	s.total_ns = s.max_ns = one->total_ns;
	s.count = 1;
	s.first_ns = s.last_ns = one->start_ns;
	s.is_split = one->is_split;
	s.runnable_ns = one->runnable_ns;
	return s;
}

static void put_turn(const struct print *j, struct out *out, struct buf *b, const struct wait_printer_turn *t)
{
	const struct cap_sample s = wait_printer_turn_sample(j->w, t);

	put_record(j, out, b, &j->w->records[t->record], &s);
}

/*
 * Waits as samples, for viewers (print.h). Each thread has a time line of its own, on which its waits follow
 * one another without gaps. A viewer that weighs samples by time lets each one reach half-way to its
 * neighbours. So a wait has a sample at its begin and one at its end, and the next wait begins at the same
 * time: each wait then weighs as much as it lasted. A wait that is too short for two samples has one, at its
 * begin. It reaches half-way to the next wait, which therefore begins twice as late; the other half of that
 * gap is the next wait's, which needs so much less after it. It must last at least as long for that: so waits
 * are sorted by length.
 */
typedef unsigned __int128 u128;

#define SAMPLES_A_RECORD 10
#define SAMPLES_MIN UINT64_C(10000)
#define SAMPLES_MAX UINT64_C(100000)
#define MICROSECOND UINT64_C(1000)
#define LAST_TIME (UINT64_MAX / MICROSECOND * MICROSECOND) /* a whole one */

struct timeline {
	const struct cap_reader *c;
	uint64_t samples; /* to divide TOTAL into */
	u128 total;
	uint64_t begin_ns, end_ns; /* of this event, so far */
	uint64_t at_ns; /* where the next wait of the thread begins */
	uint64_t lent_ns; /* how much of the gap before it is its own */
};

static uint64_t later(uint64_t time_ns, uint64_t ns)
{
	return MIN(add_saturating(time_ns, ns), LAST_TIME);
}

static uint64_t whole_microseconds(uint64_t ns)
{
	return ns + (MICROSECOND - ns % MICROSECOND) % MICROSECOND;
}

/* By event, thread and its name: speedscope takes a thread with two names for two. */
static int by_thread(const struct timeline *l, const struct cap_sample *x, const struct cap_sample *y)
{
	uint32_t ns_tid;
	int d = CMP(is_sample(x), is_sample(y));

	d = d ? d : CMP(l->c->procs[x->proc].tgid, l->c->procs[y->proc].tgid);
	d = d ? d : CMP(x->tid, y->tid);
	if (d || x->proc == y->proc)
		return d;
	return strcmp(wait_printer_comm(l->c, x, &ns_tid), wait_printer_comm(l->c, y, &ns_tid));
}

static int by_thread_and_length(const void *a, const void *b, void *lines)
{
	const struct cap_sample *x = ((const struct wait_printer_record *)a)->sample;
	const struct cap_sample *y = ((const struct wait_printer_record *)b)->sample;
	int d = by_thread(lines, x, y);

	d = d ? d : CMP(period_of(x), period_of(y));
	return d ? d : CMP(x, y);
}

/* How many samples a wait of NS has; nothing comes after the LAST one of a thread, so it must have an end. */
static uint64_t samples_of(const struct timeline *l, uint64_t ns, bool last)
{
	uint64_t n = (uint64_t)((ns * (u128)l->samples + l->total / 2) / l->total);

	return MIN(MAX(n, last ? UINT64_C(2) : UINT64_C(1)), ns);
}

/* Sample I of N of W, with the frames BODY. */
static void put_sample(struct out *out, struct buf *b, const struct perf_text_wait *w, const struct buf *body,
	uint64_t time_ns, uint64_t i, uint64_t n)
{
	const uint64_t period = period_of(w->sample);

	put_first_line(b, w, time_ns, period / n + (i < period % n), WAIT_PERF);
	put_buf(out, b);
	out_put(out, body->p, body->len);
}

static void put_samples(struct timeline *l, struct out *out, struct buf *b, const struct perf_text_wait *w,
	const struct buf *body, bool last)
{
	const uint64_t period = period_of(w->sample), n = samples_of(l, period, last);
	const uint64_t rest_ns = period - l->lent_ns;
	const bool alone = n == 1;

	for (uint64_t i = 0; i < n && !out->code; i++) {
		uint64_t time_ns = later(l->at_ns, alone ? 0 : (uint64_t)((u128)rest_ns * i / (n - 1)));

		/* a thread that waited for less than a microsecond has a weight, too */
		put_sample(out, b, w, body, last && i == n - 1 ? whole_microseconds(time_ns) : time_ns, i, n);
	}
	l->at_ns = later(l->at_ns, rest_ns);
	l->lent_ns = 0;
	if (last) {
		l->at_ns = whole_microseconds(l->at_ns);
	} else if (alone) {
		l->at_ns = later(l->at_ns, rest_ns);
		l->lent_ns = rest_ns;
	}
	l->end_ns = MAX(l->end_ns, l->at_ns);
}

/* Viewers drop a sample without frames. */
static void put_body(const struct print *j, struct buf *body, const struct wait_printer_record *r,
	const struct perf_text_wait *w)
{
	buf_reset(body);
	add_frames(j, body, &r->kernel);
	perf_text_lack(body, w->kernel);
	add_frames(j, body, &r->user);
	perf_text_lack(body, w->user);
	buftext_str(body, body->len ? "\n" : "\t               0 [no stack] ([unknown])\n\n");
}

/*
 * Begin a time line, unless S follows BEFORE on one. What threads execute comes after what all of them waited
 * for, since a viewer that reads one event would share its time out to the others.
 */
static void begin_timeline(struct timeline *l, const struct cap_sample *before, const struct cap_sample *s)
{
	const struct cap_proc *procs = l->c->procs;

	if (before && is_sample(before) != is_sample(s))
		l->begin_ns = l->end_ns;
	else if (before && before->tid == s->tid && procs[before->proc].tgid == procs[s->proc].tgid)
		return; /* another name of the same thread */
	l->at_ns = l->begin_ns;
}

static void put_all_samples(const struct print *j, struct out *out, struct buf *b)
{
	struct wait_printer_record *records = j->w->records;
	const size_t n = j->w->n_records;
	struct timeline l = { .c = j->w->c,
		.samples = MIN(MAX(SAMPLES_A_RECORD * n, SAMPLES_MIN), SAMPLES_MAX),
		.begin_ns = MIN(j->w->c->host.start_mono_ns / MICROSECOND * MICROSECOND, LAST_TIME) };
	struct buf body = { 0 };

	for (size_t i = 0; i < n; i++)
		l.total += period_of(records[i].sample);
	qsort_r(records, n, sizeof(*records), by_thread_and_length, &l);
	for (size_t i = 0; i < n && !out->code; i++) {
		const struct perf_text_wait w = wait_of(j, &records[i], records[i].sample);

		begin_timeline(&l, i ? records[i - 1].sample : NULL, w.sample);
		put_body(j, &body, &records[i], &w);
		if (body.failed)
			out->code = -ENOMEM;
		else
			put_samples(&l, out, b, &w, &body,
				i + 1 == n || by_thread(&l, w.sample, records[i + 1].sample) != 0);
	}
	buf_free(&body);
}

int wait_printer_print(const struct wait_printer *w, struct out *out, struct err *e)
{
	struct print p = { .w = w };
	struct buf b = { 0 };
	int rc = w->format == WAIT_TABLES ? 0 : render_frames(&p, e);

	if (w->format == WAIT_TABLES) {
		put_head(&p, out, &b);
		rc = tables_print(w, out, e);
	} else if (rc == 0 && w->format == WAIT_PERF) {
		put_all_samples(&p, out, &b);
	} else if (rc == 0) {
		if (!w->no_head)
			put_head(&p, out, &b);
		for (size_t i = 0; i < w->n_records && !w->turns && !out->code; i++)
			put_record(&p, out, &b, &w->records[i], w->records[i].sample);
		for (size_t i = 0; i < w->n_turns && !out->code; i++)
			put_turn(&p, out, &b, &w->turns[i]);
	}
	buf_free(&b);
	buf_free(&p.arena);
	free(p.texts);
	return rc;
}

int name_coverage_add(struct name_coverage *l, const struct frame *f, uint64_t times)
{
	bool added = false;

	l->addresses[f->source]++;
	l->frames[f->source] += times;
	l->with_line += f->line || (f->n_inlined && f->inlined[0].line) ? times : 0;
	l->with_inlined += f->n_inlined ? times : 0;
	l->inlined += f->n_inlined * times;
	if (!f->module)
		return 0;
	/* equal module names are the same string, so the pointer is the key */
	if (idmap_put(&l->seen, f->source, (uintptr_t)f->module, 0, &added) == UINT32_MAX)
		return -ENOMEM;
	l->files[f->source] += added;
	return 0;
}

void name_coverage_free(struct name_coverage *l)
{
	idmap_free(&l->seen);
}

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

static void put_times(struct buf *b, const struct modules_stats *s, const char *prefix)
{
	buftext_printf(b, "%sfinding %" PRIu64 " files took %.1f ms, reading them %.1f ms\n", prefix,
		s->files, ms(s->ns_find), ms(s->ns_wall));
	buftext_printf(b,
		"%sin the processes: symbols %.1f ms, debug information %.1f ms, lines %.1f ms, "
		"names %.1f ms; %.1f ms of CPUs in all\n",
		prefix, ms(s->ns_symbols), ms(s->ns_units), ms(s->ns_lines), ms(s->ns_names),
		ms(s->ns_processes));
	buftext_printf(b,
		"%s%" PRIu64 " of %" PRIu64 " units of debug information were read; a process had %" PRIu64
		" MiB at most\n",
		prefix, s->units_read, s->units, s->memory_bytes >> 20);
	if (s->cache_hits || s->cache_misses || s->cache_bad)
		buftext_printf(b,
			"%sof answers kept on disk %" PRIu64 " were used, %" PRIu64
			" were not there, %" PRIu64 " were unusable; %" PRIu64 " are new\n",
			prefix, s->cache_hits, s->cache_misses, s->cache_bad, s->cache_kept);
}

void name_coverage_text(
	struct buf *b, const struct name_coverage *l, const struct modules_stats *s, const char *prefix)
{
	buftext_printf(b, "%s%-14s %12s %10s %6s\n", prefix, "names from", "frames", "addresses", "files");
	for (unsigned int i = 0; i < FRAME_SOURCES; i++)
		if (l->addresses[i])
			buftext_printf(b, "%s%-14s %12" PRIu64 " %10" PRIu64 " %6" PRIu64 "\n", prefix,
				frame_source_name((enum frame_source)i), l->frames[i], l->addresses[i],
				l->files[i]);
	buftext_printf(b,
		"%s%" PRIu64 " frames have a source line, %" PRIu64 " have inlined calls (%" PRIu64
		" in all), %" PRIu64 " have no name\n",
		prefix, l->with_line, l->with_inlined, l->inlined,
		l->frames[FRAME_FDE] + l->frames[FRAME_MODULE] + l->frames[FRAME_RAW]);
	if (s)
		put_times(b, s, prefix);
}
