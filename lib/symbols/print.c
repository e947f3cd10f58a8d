/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/print.h"
#include "base/text.h"
#include "capture/stats.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

struct perftext_wait {
	const struct cap_sample *sample;
	const struct cap_proc *proc;
	const struct cap_stack *kernel, *user;
	const char *comm; /* the thread's */
	uint32_t ns_tid; /* the thread's, in its own PID namespace; 0 = unknown */
};
extern const char perftext_json_kernel[]; /* before the kernel frames */
extern const char perftext_json_user[]; /* between both */
extern const char perftext_json_end[]; /* behind the user frames */

#define NS UINT64_C(1000000000)
#define LINE_BYTES 1024

const char perftext_json_kernel[] = ",\"kernel_stack\":[";
const char perftext_json_user[] = "],\"user_stack\":[";
const char perftext_json_end[] = "]}\n";

static void perftext_wait(struct buf *b, const struct perftext_wait *w);

static void put_key(struct buf *b, const char *key, uint64_t v)
{
	buftext_str(b, key);
	buftext_dec(b, v, 1);
}

/* A value of "key=value": never empty. */
static void put_value(struct buf *b, const char *key, const char *value)
{
	buftext_str(b, key);
	buftext_escaped(b, value && *value ? value : "-", TEXT_WORD);
}

static void put_build_id(struct buf *b, const struct cap_build_id *id)
{
	char digits[2 * CAP_BUILD_ID_MAX + 1];

	buftext_str(b, text_hex(digits, id->bytes, MIN(id->len, CAP_BUILD_ID_MAX)));
}

static void put_utc(struct buf *b, uint64_t real_ns)
{
	time_t t = (time_t)(real_ns / NS);
	struct tm tm;
	char text[64] = "-";

	if (real_ns && gmtime_r(&t, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	buftext_str(b, text);
}

static uint64_t duration_ns(const struct capread *c)
{
	uint64_t stop = c->complete ? c->trailer.stop_ns : c->last_flush_ns;

	return stop > c->host.start_mono_ns ? stop - c->host.start_mono_ns : 0;
}

static bool is_lost(const struct cap_counter *c)
{
	return strncmp(c->name, "lost.", 5) == 0 && c->value;
}

uint64_t perftext_lost(const struct capread *c)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < c->n_counters; i++) {
		const char *name = c->counters[i].name;
		size_t len = strlen(name);

		if (is_lost(&c->counters[i]) && (len < 3 || strcmp(name + len - 3, "_ns") != 0))
			sum += c->counters[i].value;
	}
	return sum;
}

/* How it was recorded, when that was not the best way; and what is no exact wait says so. */
static void put_mode(struct buf *b, const struct capread *c)
{
	struct capmode m;

	capmode_get(c, &m);
	if (m.best)
		return;
	buftext_str(b, "# mode: ");
	capmode_put_why(b, &m);
	buftext_str(b, "\n");
	if (!m.sampled)
		return;
	put_value(b, "# mode: name=", m.name);
	buftext_str(b, " ");
	capmode_put(b, &m);
	buftext_str(b, "\n");
}

/* The '#' lines at the top of the text; FORMAT line first. */
static void perftext_head(struct buf *b, const struct capread *c, const struct perftext_totals *t)
{
	const struct cap_host *h = &c->host;

	buftext_str(b, "# stacktools perf-script 1\n");
	put_value(b, "# kernel: release=", h->release);
	put_value(b, " machine=", h->machine);
	buftext_printf(b, " stext=0x%" PRIx64 " build-id=%s", h->stext, h->kernel_build_id.len ? "" : "-");
	put_build_id(b, &h->kernel_build_id);
	put_value(b, " boot-id=", h->boot_id);
	put_value(b, "\n# host: hostname=", h->hostname);
	put_value(b, " recorder=", h->recorder);
	buftext_str(b, " start=");
	put_utc(b, h->start_real_ns);
	buftext_printf(b, " duration=%" PRIu64 ".%03" PRIu64 "\n", duration_ns(c) / NS,
		duration_ns(c) % NS / 1000000);
	buftext_printf(b, "# totals: waits=%" PRIu64 " total_ns=%" PRIu64 " lost=%" PRIu64 "\n", t->waits,
		t->total_ns, t->lost);
	put_mode(b, c);
	for (size_t i = 0; i < c->n_counters; i++) {
		if (!is_lost(&c->counters[i]))
			continue;
		put_value(b, "# lost: name=", c->counters[i].name);
		buftext_printf(b, " count=%" PRIu64 "\n", c->counters[i].value);
	}
	if (c->damage[0]) {
		buftext_str(b, "# damaged: ");
		buftext_escaped(b, c->damage, TEXT_LINE);
		buftext_str(b, "\n");
	}
}

/* "# not-used: file=PATH reason=WHY" */
static void perftext_not_used(struct buf *b, const char *path, const char *why)
{
	put_value(b, "# not-used: file=", path);
	buftext_str(b, " reason=");
	buftext_escaped(b, why, TEXT_LINE);
	buftext_str(b, "\n");
}

/* The length of the piece of COMM at I that is written as it is, 0 = escape its byte. */
static size_t plain_piece(const char *comm, size_t i, size_t len)
{
	if (comm[i] == ';' || comm[i] == '\\' || (i == 0 && comm[i] == '#'))
		return 0;
	return text_utf8_len(comm + i, len - i);
}

static bool space_is_safe(const char *comm, size_t i, size_t len)
{
	unsigned char next = i + 1 < len ? (unsigned char)comm[i + 1] : ' ';

	return i > 0 && next > ' ' && !(next >= '0' && next <= '9');
}

static void put_comm(struct buf *b, const char *comm)
{
	size_t len = strnlen(comm, 256), before = b->len;

	for (size_t i = 0, n; i < len; i += n ? n : 1) {
		n = plain_piece(comm, i, len);
		if (comm[i] == ' ' && !space_is_safe(comm, i, len))
			buftext_str(b, "_");
		else if (n)
			buf_put(b, comm + i, n);
		else
			buftext_printf(b, "\\x%02x", (unsigned char)comm[i]);
	}
	if (!len)
		buftext_str(b, "[empty]");
	else if (b->len - before == 1)
		buftext_str(b, " ");
}

static bool not_asked(const struct cap_stack *s)
{
	return s->verdict == CAP_FAILED && s->reason == CAP_R_NOT_ASKED;
}

/* What went wrong, in one word; NULL when nothing did. */
static const char *error_word(const struct cap_stack *s)
{
	if (s->verdict == CAP_TRUNCATED)
		return "truncated";
	if (s->verdict != CAP_FAILED && s->verdict != CAP_STOPPED)
		return NULL;
	return s->reason == CAP_R_ERRNO ? err_name(s->error) : capture_reason_name(s->reason);
}

/* The same for people, as part of a frame: no parentheses, quotes or arrows. */
static const char *error_phrase(const struct cap_stack *s)
{
	static const char *const phrases[CAP_R_COUNT] = {
		[CAP_R_NONE] = "no reason given",
		[CAP_R_KTHREAD] = "kernel thread",
		[CAP_R_EXEC] = "inside execve",
		[CAP_R_NOT_SEEN] = "wait began before the recording",
		[CAP_R_LOST] = "lost, the ring buffer was full",
		[CAP_R_EXITING] = "thread was exiting",
		[CAP_R_COMPAT] = "32-bit task",
		[CAP_R_EMPTY] = "empty",
		[CAP_R_MEMORY] = "stack memory unreadable",
	};

	if (s->reason < CAP_R_COUNT && phrases[s->reason])
		return phrases[s->reason];
	return s->reason == CAP_R_ERRNO ? err_name(s->error) : capture_reason_name(s->reason);
}

static void put_verdict(struct buf *b, const char *key, const struct cap_stack *s)
{
	const char *word = error_word(s);

	buftext_str(b, key);
	buftext_str(b, not_asked(s) ? "not-asked" : capture_verdict_name(s->verdict));
	if (word && s->verdict != CAP_TRUNCATED && !not_asked(s)) {
		buftext_str(b, ":");
		buftext_str(b, word);
	}
}

static void put_comment(struct buf *b, const struct perftext_wait *w)
{
	const struct cap_sample *s = w->sample;
	char letters[16];

	put_key(b, "# wait: count=", s->count);
	put_key(b, " total_ns=", s->total_ns);
	put_key(b, " max_ns=", s->max_ns);
	buftext_str(b, " state=");
	buftext_str(b, capture_state_letter(s->state, letters));
	buftext_str(b, s->flags & CAP_SAMPLE_OPEN ? " open=1" : " open=0");
	buftext_str(b, s->flags & CAP_SAMPLE_INITIAL ? " initial=1" : " initial=0");
	buftext_str(b, s->flags & CAP_SAMPLE_PREEMPTED ? " preempted=1" : " preempted=0");
	put_verdict(b, " kernel=", w->kernel);
	put_verdict(b, " user=", w->user);
	buftext_str(b, "\n");
}

/* The comment and the first line of a record. End it with a newline of your own. */
static void perftext_wait(struct buf *b, const struct perftext_wait *w)
{
	const struct cap_sample *s = w->sample;

	put_comment(b, w);
	put_comm(b, w->comm);
	put_key(b, " ", w->proc->tgid);
	put_key(b, "/", s->tid);
	put_key(b, " [000] ", s->last_ns / NS);
	buftext_str(b, ".");
	buftext_dec(b, s->last_ns % NS, 9);
	put_key(b, ": ", MAX(s->total_ns, (uint64_t)1));
	buftext_str(b, " offcpu-time: \n");
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

static void put_symbol(struct buf *b, const struct frame *f)
{
	if (f->name) {
		put_name(b, f->name);
		buftext_str(b, f->unsure ? "?" : "");
		if (f->no_start)
			return;
		buftext_str(b, "+0x");
		buftext_hex(b, f->offset, 1);
	} else if (f->in_file && f->module) {
		buftext_str(b, "[");
		buftext_escaped(b, base_name(f->module), TEXT_WORD);
		buftext_str(b, "+0x");
		buftext_hex(b, f->module_offset, 1);
		buftext_str(b, "]");
	} else {
		buftext_str(b, "[unknown]");
	}
}

static void put_module(struct buf *b, const struct frame *f)
{
	if (f->kernel && (!f->module || !*f->module)) {
		buftext_str(b, "[kernel.kallsyms]");
		return;
	}
	buftext_str(b, f->kernel ? "[" : "");
	buftext_escaped(b, f->module && *f->module ? f->module : "[unknown]", TEXT_WORD);
	buftext_str(b, f->kernel ? "]" : "");
}

/* Symbol and module as they are: the line put together in one place, LINE_BYTES at most. */
static bool put_plain_frame(struct buf *b, const struct frame *f)
{
	char line[LINE_BYTES], *p = line;
	size_t name = f->name ? strnlen(f->name, LINE_BYTES) : LINE_BYTES;
	size_t module = f->module && !f->kernel ? strnlen(f->module, LINE_BYTES) : LINE_BYTES;

	if (name + module + 64 > LINE_BYTES || !module || f->no_start || f->unsure || f->name[0] == '(' ||
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
	put_module(b, f);
	buftext_str(b, ")\n");
}

/* The place below its frame, as perf's srcline. */
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
 * A line for each call that was inlined, innermost first, and one for the
 * function itself. With LINES each has the source line below it, where it is known.
 */
static void perftext_frame(struct buf *b, const struct frame *f, bool lines)
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

/*
 * The line that stands for what a stack lacks: instead of its frames where it
 * failed, as its outermost frame where it was cut short. Nothing for a whole
 * stack, one that nothing proves whole, or one that was not to be recorded.
 */
static void perftext_lack(struct buf *b, const struct cap_stack *s)
{
	bool kernel = s->kind == CAP_STACK_KERNEL;

	if ((s->verdict != CAP_FAILED && s->verdict != CAP_STOPPED && s->verdict != CAP_TRUNCATED) ||
		not_asked(s))
		return;
	buftext_str(b, "\t");
	buftext_hex(b, s->verdict == CAP_STOPPED ? s->stop_pc : 0, 16);
	if (s->verdict == CAP_TRUNCATED)
		buftext_printf(b, " [truncated at %" PRIu32 " frames", s->len);
	else if (s->verdict == CAP_STOPPED)
		buftext_printf(b, " [stopped: %s", error_phrase(s));
	else
		buftext_printf(b, " [no %s stack: %s", kernel ? "kernel" : "user", error_phrase(s));
	buftext_str(b, kernel ? "] ([kernel.kallsyms])\n" : "] ([unknown])\n");
}

/* ,"KEY":"VALUE" or null; the first comma is part of KEY. */
static void put_json(struct buf *b, const char *key, const char *value)
{
	buftext_str(b, key);
	if (!value) {
		buftext_str(b, "null");
		return;
	}
	buftext_str(b, "\"");
	buftext_escaped(b, value, TEXT_JSON);
	buftext_str(b, "\"");
}

/* ,"mode":"raw","mode_tried":"not btf: ...": for all but the best; ,"samples":{...} where waits are
 * estimates. */
static void put_json_mode(struct buf *b, const struct capread *c)
{
	struct capmode m;

	capmode_get(c, &m);
	if (m.best)
		return;
	put_json(b, ",\"mode\":", m.name);
	put_json(b, ",\"mode_tried\":", m.tried);
	if (!m.sampled)
		return;
	put_key(b, ",\"samples\":{\"hz\":", m.hz);
	put_key(b, ",\"looks\":", m.looks);
	put_key(b, ",\"looks_late\":", m.late);
	put_key(b, ",\"looks_left_out\":", m.left_out);
	put_key(b, ",\"estimated_ns\":", m.estimated_ns);
	if (m.checked)
		put_key(b, ",\"schedstat_ns\":", m.schedstat_ns);
	else
		buftext_str(b, ",\"schedstat_ns\":null");
	buftext_str(b, "}");
}

/* The same in JSON; each object is one line. */
static void perftext_json_head(struct buf *b, const struct capread *c, const struct perftext_totals *t)
{
	const struct cap_host *h = &c->host;
	const char *sep = "";

	put_json(b, "{\"type\":\"capture\",\"release\":", h->release);
	put_json(b, ",\"version\":", h->version);
	put_json(b, ",\"machine\":", h->machine);
	put_json(b, ",\"hostname\":", h->hostname);
	put_json(b, ",\"boot_id\":", h->boot_id);
	put_json(b, ",\"recorder\":", h->recorder);
	buftext_str(b, ",\"kernel_build_id\":\"");
	put_build_id(b, &h->kernel_build_id);
	buftext_printf(b, "\",\"stext\":\"0x%" PRIx64 "\",\"start\":\"", h->stext);
	put_utc(b, h->start_real_ns);
	buftext_printf(b, "\",\"start_mono_ns\":%" PRIu64 ",\"duration_ns\":%" PRIu64, h->start_mono_ns,
		duration_ns(c));
	buftext_printf(b, ",\"records\":%" PRIu64 ",\"waits\":%" PRIu64 ",\"total_ns\":%" PRIu64, t->records,
		t->waits, t->total_ns);
	buftext_printf(b, ",\"complete\":%s", c->complete ? "true" : "false");
	put_json(b, ",\"damage\":", c->damage[0] ? c->damage : NULL);
	put_json_mode(b, c);
	buftext_str(b, ",\"lost\":{");
	for (size_t i = 0; i < c->n_counters; i++) {
		if (!is_lost(&c->counters[i]))
			continue;
		buftext_str(b, sep);
		put_json(b, "", c->counters[i].name);
		buftext_printf(b, ":%" PRIu64, c->counters[i].value);
		sep = ",";
	}
	buftext_str(b, "}}\n");
}

static void perftext_json_not_used(struct buf *b, const char *path, const char *why)
{
	put_json(b, "{\"type\":\"not-used\",\"file\":", path);
	put_json(b, ",\"reason\":", why);
	buftext_str(b, "}\n");
}

static void put_json_stack(struct buf *b, const char *half, const struct cap_stack *s)
{
	const char *word = error_word(s);

	buftext_printf(b, ",\"%s_stack_id\":%" PRIu32, half, s->id);
	buftext_printf(b, ",\"%s_stack_verdict\":", half);
	put_json(b, "", capture_verdict_name(s->verdict));
	buftext_printf(b, ",\"%s_stack_error\":", half);
	put_json(b, "", word);
	buftext_printf(b, ",\"%s_stack_error_text\":", half);
	if (s->verdict == CAP_TRUNCATED)
		buftext_printf(b, "\"truncated at %" PRIu32 " frames\"", s->len);
	else if (word && s->reason == CAP_R_ERRNO)
		put_json(b, "", strerror(s->error < 0 ? -s->error : s->error));
	else
		put_json(b, "", word ? capture_reason_text(s->reason) : NULL);
	if (s->verdict == CAP_STOPPED)
		buftext_printf(b, ",\"%s_stop_pc\":\"0x%" PRIx64 "\"", half, s->stop_pc);
	if (!s->n_exact)
		return;
	buftext_printf(b, ",\"%s_stack_exact\":", half);
	for (uint32_t i = 0; i < s->n_exact; i++)
		put_key(b, i ? "," : "[", s->exact[i]);
	buftext_str(b, "]");
}

/*
 * Everything up to the frames, with the numbers of the exact ones where there
 * are any (struct cap_stack); then the kernel's and the user's, "," between
 * them.
 */
static void perftext_json_wait(struct buf *b, const struct perftext_wait *w)
{
	const struct cap_sample *s = w->sample;
	char letters[16];

	put_json(b, "{\"type\":\"wait\",\"comm\":", w->comm);
	put_key(b, ",\"pid\":", w->proc->tgid);
	put_key(b, ",\"tid\":", s->tid);
	put_key(b, ",\"ns_pid\":", w->proc->ns_tgid);
	put_key(b, ",\"ns_tid\":", w->ns_tid);
	put_key(b, ",\"process\":", w->proc->id);
	put_json(b, ",\"process_comm\":", w->proc->comm);
	put_json(b, ",\"exe\":", w->proc->exe && *w->proc->exe ? w->proc->exe : NULL);
	buftext_str(b, w->proc->flags & CAP_PROC_KTHREAD ? ",\"kthread\":true" : ",\"kthread\":false");
	put_key(b, ",\"count\":", s->count);
	put_key(b, ",\"total_ns\":", s->total_ns);
	put_key(b, ",\"max_ns\":", s->max_ns);
	put_key(b, ",\"first_ns\":", s->first_ns);
	put_key(b, ",\"last_ns\":", s->last_ns);
	put_json(b, ",\"state\":", capture_state_letter(s->state, letters));
	put_key(b, ",\"state_bits\":", s->state);
	buftext_str(b, s->flags & CAP_SAMPLE_OPEN ? ",\"open\":true" : ",\"open\":false");
	buftext_str(b, s->flags & CAP_SAMPLE_INITIAL ? ",\"initial\":true" : ",\"initial\":false");
	buftext_str(b, s->flags & CAP_SAMPLE_PREEMPTED ? ",\"preempted\":true" : ",\"preempted\":false");
	put_json_stack(b, "kernel", w->kernel);
	put_json_stack(b, "user", w->user);
}

static void put_json_number(struct buf *b, const char *key, uint32_t v)
{
	buftext_str(b, key);
	if (v)
		buftext_dec(b, v, 1);
	else
		buftext_str(b, "null");
}

/* Where execution is in a function: of its own call or of the address. */
static void put_json_place(struct buf *b, const char *file, uint32_t line, uint32_t column)
{
	put_json(b, ",\"file\":", file);
	put_json_number(b, ",\"line\":", line);
	put_json_number(b, ",\"column\":", column);
}

static void put_json_inlined(struct buf *b, const struct frame *f)
{
	buftext_str(b, ",\"inlined\":[");
	for (uint32_t i = 0; i < f->n_inlined; i++) {
		put_json(b, i ? ",{\"symbol\":" : "{\"symbol\":", f->inlined[i].name);
		put_json(b, ",\"linkage_name\":", f->inlined[i].linkage);
		put_json_place(b, f->inlined[i].file, f->inlined[i].line, f->inlined[i].column);
		buftext_str(b, "}");
	}
	buftext_str(b, "]");
}

static void perftext_json_frame(struct buf *b, const struct frame *f)
{
	buftext_printf(b, "{\"address\":\"0x%" PRIx64 "\"", f->address);
	put_json(b, ",\"symbol\":", f->name);
	put_json(b, ",\"linkage_name\":", f->linkage);
	if (f->name && !f->no_start)
		put_key(b, ",\"offset\":", f->offset);
	else
		buftext_str(b, ",\"offset\":null");
	if (f->kernel && f->name && f->module && !*f->module)
		put_json(b, ",\"module\":", "kernel");
	else
		put_json(b, ",\"module\":", f->module);
	if (f->in_file)
		buftext_printf(b, ",\"module_offset\":\"0x%" PRIx64 "\"", f->module_offset);
	else
		buftext_str(b, ",\"module_offset\":null");
	put_json_inlined(b, f);
	put_json_place(b, f->file, f->line, f->column);
	put_json(b, ",\"source\":", frame_source_name(f->source));
	put_json(b, ",\"reason\":", f->reason);
	buftext_str(b, "}");
}

#define AHEAD 8 /* frames whose text is fetched before it is needed */

struct text {
	size_t at;
	uint32_t len;
};

struct print {
	const struct waitlist *w;
	struct buf arena; /* the lines of all frames */
	struct text *texts; /* by frame id */
};

const char *waitlist_comm(const struct capread *c, const struct cap_sample *s, uint32_t *ns_tid)
{
	const struct cap_thread *t = capread_thread(c, s->proc, s->tid);

	*ns_tid = t ? t->ns_tid : 0;
	return t ? t->comm : c->procs[s->proc].comm;
}

/* Each frame becomes text once. */
static int render_frames(struct print *j, struct err *e)
{
	size_t n = resolve_count(j->w->r);

	j->texts = calloc(n + 1, sizeof(*j->texts));
	if (!j->texts)
		return err_nomem(e, "frames");
	for (size_t i = 0; i < n; i++) {
		const struct frame *f = resolve_frame(j->w->r, (uint32_t)i);

		j->texts[i].at = j->arena.len;
		if (j->w->json)
			perftext_json_frame(&j->arena, f);
		else
			perftext_frame(&j->arena, f, j->w->lines);
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

static void put_text(const struct print *j, struct out *out, struct buf *b, const struct waitlist_record *r,
	const struct perftext_wait *w)
{
	perftext_wait(b, w);
	put_buf(out, b);
	put_frames(j, out, &r->kernel, "");
	perftext_lack(b, w->kernel);
	put_buf(out, b);
	put_frames(j, out, &r->user, "");
	perftext_lack(b, w->user);
	buf_put(b, "\n", 1);
	put_buf(out, b);
}

static void put_wait_json(const struct print *j, struct out *out, struct buf *b,
	const struct waitlist_record *r, const struct perftext_wait *w)
{
	perftext_json_wait(b, w);
	put_buf(out, b);
	out_str(out, perftext_json_kernel);
	put_frames(j, out, &r->kernel, ",");
	out_str(out, perftext_json_user);
	put_frames(j, out, &r->user, ",");
	out_str(out, perftext_json_end);
}

static void put_head(const struct print *j, struct out *out, struct buf *b)
{
	struct modules_file f;

	if (j->w->json)
		perftext_json_head(b, j->w->c, &j->w->totals);
	else
		perftext_head(b, j->w->c, &j->w->totals);
	for (uint32_t i = 0; i < j->w->c->n_files; i++) {
		if (!resolve_file(j->w->r, i, &f) || !f.problem)
			continue;
		if (j->w->json)
			perftext_json_not_used(b, j->w->c->files[i].path, f.problem);
		else
			perftext_not_used(b, j->w->c->files[i].path, f.problem);
	}
	if (!j->w->json)
		buf_put(b, "\n", 1);
	put_buf(out, b);
}

static void put_record(const struct print *j, struct out *out, struct buf *b, const struct waitlist_record *r)
{
	const struct cap_sample *s = r->sample;
	struct perftext_wait w = { .sample = s,
		.proc = &j->w->c->procs[s->proc],
		.kernel = &j->w->c->stacks[s->kstack],
		.user = &j->w->c->stacks[s->ustack] };

	w.comm = waitlist_comm(j->w->c, s, &w.ns_tid);
	if (j->w->json)
		put_wait_json(j, out, b, r, &w);
	else
		put_text(j, out, b, r, &w);
}

int waitlist_print(const struct waitlist *w, struct out *out, struct err *e)
{
	struct print p = { .w = w };
	struct buf b = { 0 };
	int rc = render_frames(&p, e);

	if (rc == 0)
		put_head(&p, out, &b);
	for (size_t i = 0; i < w->n_records && rc == 0 && !out->code; i++)
		put_record(&p, out, &b, &w->records[i]);
	buf_free(&b);
	buf_free(&p.arena);
	free(p.texts);
	return rc;
}

int ladder_add(struct ladder *l, const struct frame *f, uint64_t times)
{
	bool added = false;

	l->addresses[f->source]++;
	l->frames[f->source] += times;
	l->unsure += f->unsure ? times : 0;
	l->with_line += f->line || (f->n_inlined && f->inlined[0].line) ? times : 0;
	l->with_inlined += f->n_inlined ? times : 0;
	l->inlined += f->n_inlined * times;
	if (!f->module)
		return 0;
	/* a module's name is one string, whoever speaks of it */
	if (idmap_put(&l->seen, f->source, (uintptr_t)f->module, 0, &added) == UINT32_MAX)
		return -ENOMEM;
	l->files[f->source] += added;
	return 0;
}

void ladder_free(struct ladder *l)
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

void ladder_text(struct buf *b, const struct ladder *l, const struct modules_stats *s, const char *prefix)
{
	buftext_printf(b, "%s%-14s %12s %10s %6s\n", prefix, "names from", "frames", "addresses", "files");
	for (unsigned int i = 0; i < FRAME_SOURCES; i++)
		if (l->addresses[i])
			buftext_printf(b, "%s%-14s %12" PRIu64 " %10" PRIu64 " %6" PRIu64 "\n", prefix,
				frame_source_name((enum frame_source)i), l->frames[i], l->addresses[i],
				l->files[i]);
	buftext_printf(b,
		"%s%" PRIu64 " frames have a source line, %" PRIu64 " have inlined calls (%" PRIu64
		" in all), %" PRIu64 " are named by the function before\n",
		prefix, l->with_line, l->with_inlined, l->inlined, l->unsure);
	if (s)
		put_times(b, s, prefix);
}
