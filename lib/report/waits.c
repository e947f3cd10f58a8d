/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/waits.h"
#include "base/hash.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#define NS_PER_S UINT64_C(1000000000)

static const uint32_t units_ns[] = { [WAITS_UNIT_AUTO] = 1,
	[WAITS_UNIT_NS] = 1,
	[WAITS_UNIT_US] = 1000,
	[WAITS_UNIT_MS] = 1000000,
	[WAITS_UNIT_COUNT] = 1 };

typedef struct perfscript_str str;

/* What all rows of a stack share. */
struct place {
	uint32_t path, module;
};

/* Sums of a pair of the table. */
struct cell {
	struct wait_stats stats;
	uint32_t bins_1; /* the first bin, plus one; 0 = none */
};

/* What is needed while reading. */
struct waits_reader {
	struct waits *w;
	struct folding_client client; /* of FOLDING, with its options */
	struct folding_opts options;
	struct folding *folding;
	struct paragraphs *in;
	bool started; /* there was a paragraph */
	bool flushed; /* the last one was a flush */
	bool plain; /* stacks as fold prints them, without rows */
	struct foldtab own; /* of folded lines, which folding does not read */
	const struct foldtab *table; /* of either */
	struct cell *cells; /* index = pair of the table */
	size_t max_cells;
	uint64_t duration_ns; /* of the recording whose records come, as far as it is known */
	uint64_t flushed_ns; /* waits->elapsed_ns at the flush before */
	struct idmap by_process, by_thread;
	struct intern paths;
	struct place *places; /* index = stack of the table */
	size_t n_places, max_places, max_rows;
	bool each; /* keep events */
	const char *samples; /* the event of samples, of which nothing is summed; NULL: none */
	struct hashtable by_bin; /* of waits->bins */
	struct intern wakers; /* of events, as the text has them */
};

static bool is(str s, const char *word)
{
	return s.len == strlen(word) && memcmp(s.p, word, s.len) == 0;
}

static bool begins(str s, const char *word)
{
	size_t n = strlen(word);

	return s.len >= n && memcmp(s.p, word, n) == 0;
}

/* Cut WORD from the end of S. */
static bool cut(str *s, const char *word)
{
	size_t n = strlen(word);

	if (s->len < n || memcmp(s->p + s->len - n, word, n) != 0)
		return false;
	s->len -= n;
	return true;
}

static bool number(str s, uint64_t *ret)
{
	uint64_t v = 0;

	for (size_t i = 0; i < s.len; i++) {
		if (s.p[i] < '0' || s.p[i] > '9' || __builtin_mul_overflow(v, (uint64_t)10, &v) ||
			__builtin_add_overflow(v, (uint64_t)(s.p[i] - '0'), &v))
			return false;
	}
	*ret = v;
	return s.len > 0;
}

/* The value of KEY, " name=" for instance, in a comment: up to the next blank. */
static bool find_value(str line, const char *key, str *ret)
{
	const char *at = memmem(line.p, line.len, key, strlen(key)), *end = line.p + line.len;

	if (!at)
		return false;
	ret->p = at + strlen(key);
	for (at = ret->p; at < end && *at != ' ';)
		at++;
	ret->len = (size_t)(at - ret->p);
	return true;
}

static uint32_t keep(struct waits *w, str s)
{
	return intern_put(&w->strings, s.p, s.len);
}

void wait_stats_add(struct wait_stats *to, const struct wait_stats *s)
{
	to->total += s->total;
	to->count += s->count;
	to->split += s->split;
	to->runnable += s->runnable;
	to->single += s->single;
	to->whole += s->whole;
	to->max_ns = MAX(to->max_ns, s->max_ns);
	to->has_max |= s->has_max;
	to->squares += s->squares;
}

wait_sum wait_stats_mean(const struct wait_stats *s)
{
	return s->count ? s->total / s->count + (s->total % s->count >= s->count - s->count / 2) : 0;
}

/* --- single waits --- */

#define BUCKET_BITS 6 /* the first bit of a number and so many more are its bucket */

uint32_t wait_bucket(uint64_t ns)
{
	uint32_t shift = ns >> (BUCKET_BITS + 1) ? 63 - BUCKET_BITS - (uint32_t)__builtin_clzll(ns) : 0;

	return (shift << BUCKET_BITS) + (uint32_t)(ns >> shift);
}

uint64_t wait_bucket_ns(uint32_t bucket)
{
	uint32_t shift = bucket >> (BUCKET_BITS + 1) ? (bucket >> BUCKET_BITS) - 1 : 0;
	uint64_t low = (uint64_t)(bucket - (shift << BUCKET_BITS)) << shift;

	return low + (UINT64_C(1) << shift >> 1);
}

/* "12.345" seconds */
static bool seconds(str value, uint64_t *ns)
{
	str whole = perfscript_split(&value, '.');
	uint64_t s, fraction = 0;
	size_t digits = value.len;

	if (!number(whole, &s) || digits > 9 || (digits && !number(value, &fraction)))
		return false;
	for (; digits < 9; digits++)
		fraction *= 10;
	return !__builtin_mul_overflow(s, NS_PER_S, ns) && !__builtin_add_overflow(*ns, fraction, ns);
}

static int add_bin(struct waits_reader *r, struct cell *c, uint32_t pair, uint64_t ns, struct err *e)
{
	struct waits *w = r->w;
	const uint32_t bucket = wait_bucket(ns);
	const uint64_t hash = hash_mul(((uint64_t)pair << 32 | bucket) ^ HASH_K0, HASH_K1);
	uint32_t at =
		HASHTABLE_FIND(&r->by_bin, hash, i, w->bins[i].row == pair && w->bins[i].bucket == bucket);

	if (at == HASHTABLE_NONE) {
		if (w->n_bins >= HASHTABLE_MAX || hashtable_reserve(&r->by_bin, 1) != 0 ||
			base_grow(&w->bins, &w->max_bins, w->n_bins + 1, sizeof(*w->bins)) != 0)
			return err_nomem(e, "how long waits were");
		at = (uint32_t)w->n_bins++;
		w->bins[at] = (struct wait_bin){ .row = pair, .bucket = bucket, .next = c->bins_1 - 1 };
		c->bins_1 = at + 1;
		hashtable_add(&r->by_bin, hash, at);
	}
	w->bins[at].count++;
	return 0;
}

static int add_event(struct waits_reader *r, const struct folding_added *a, struct err *e)
{
	struct waits *w = r->w;
	struct wait_event v = { .row = a->pair,
		.len_ns = a->wait->total_ns,
		.runnable_ns = WAIT_NOT_KNOWN,
		.waker = WAITS_NONE,
		.open = a->wait->open };
	uint64_t end;

	/* events have 32-bit indexes */
	if (w->n_events >= UINT32_MAX || !perfscript_time(a->header, &v.begin_ns) ||
		__builtin_add_overflow(v.begin_ns, v.len_ns, &end)) {
		w->n_sums++;
		return 0;
	}
	if (a->wait->preempted)
		v.runnable_ns = v.len_ns;
	else if (a->wait->has_runnable && a->wait->runnable_ns <= v.len_ns)
		v.runnable_ns = a->wait->runnable_ns;
	if (a->waker.len) {
		v.waker = intern_put(&r->wakers, a->waker.p, a->waker.len);
		if (v.waker == INTERN_NONE)
			return err_nomem(e, "the wakers");
	}
	if (base_grow(&w->events, &w->max_events, w->n_events + 1, sizeof(*w->events)) != 0)
		return err_nomem(e, "each wait");
	w->events[w->n_events++] = v;
	return 0;
}

/* --- the comments at the top --- */

/* AGAIN: a flush has the time of the same recording. */
static void add_duration(struct waits_reader *r, str value, bool again)
{
	struct waits *w = r->w;
	uint64_t ns, all;

	if (!seconds(value, &ns) || __builtin_add_overflow(w->elapsed_ns, ns, &all))
		return;
	if (again)
		all -= r->duration_ns;
	r->duration_ns = ns;
	w->elapsed_ns = all;
}

static void add_loss(struct waits *w, str name, uint64_t count)
{
	uint32_t id = keep(w, name);

	for (size_t i = 0; i < w->n_lost; i++) {
		if (w->lost[i].name == id) {
			if (__builtin_add_overflow(w->lost[i].count, count, &w->lost[i].count))
				w->lost[i].count = UINT64_MAX;
			return;
		}
	}
	if (id != INTERN_NONE && w->n_lost < 1000 &&
		base_grow(&w->lost, &w->max_lost, w->n_lost + 1, sizeof(*w->lost)) == 0)
		w->lost[w->n_lost++] = (struct wait_loss){ .name = id, .count = count };
}

static void on_comment(void *ctx, const char *p, size_t len)
{
	static const char *const damaged[] = { "# damaged: ", "# incomplete: " };
	struct waits_reader *r = ctx;
	struct waits *w = r->w;
	str line = { p, len }, value, name;
	uint64_t count;

	if (begins(line, "# host:") && find_value(line, " duration=", &value)) {
		add_duration(r, value, false);
		if (!w->start_ns && find_value(line, " monotonic=", &value))
			seconds(value, &w->start_ns);
	} else if (begins(line, "# flush:") && find_value(line, " duration=", &value)) {
		r->flushed = true;
		add_duration(r, value, true);
	} else if (begins(line, "# lost:") && find_value(line, " name=", &name) &&
		   find_value(line, " count=", &value) && number(value, &count)) {
		add_loss(w, name, count);
	}
	for (size_t i = 0; i < ARRAY_LEN(damaged); i++) {
		const size_t n = strlen(damaged[i]);

		if (!begins(line, damaged[i]) || w->damaged)
			continue;
		w->damaged = keep(w, (str){ p + n, len - n });
		w->damaged = w->damaged == INTERN_NONE ? 0 : w->damaged;
		w->no_end = i == 1;
	}
}

/* --- records --- */

/*
 * What distinguishes the records of one stack, instead of a name in the table. No part has a newline,
 * because none is in a line of text.
 */
struct label {
	str pid, tid, kind, state, waker;
	str process; /* folded lines: the name of the process, instead of a PID */
	str comm;
};

static void put_label(struct buf *out, const struct label *l)
{
	const str *const parts[] = { &l->pid, &l->tid, &l->kind, &l->state, &l->waker, &l->process,
		&l->comm };

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		buf_put(out, "\n", i > 0);
		buf_put(out, parts[i]->p, parts[i]->len);
	}
}

static struct label get_label(str text)
{
	struct label l;

	l.pid = perfscript_split(&text, '\n');
	l.tid = perfscript_split(&text, '\n');
	l.kind = perfscript_split(&text, '\n');
	l.state = perfscript_split(&text, '\n');
	l.waker = perfscript_split(&text, '\n');
	l.process = perfscript_split(&text, '\n');
	l.comm = text;
	return l;
}

static void on_name(
	void *ctx, const struct perfscript_header *h, const struct perfscript_wait *wait, struct buf *out)
{
	struct label l = { .pid = h->pid,
		.tid = h->tid,
		.kind = wait->kind,
		.state = wait->state,
		.waker = wait->waker,
		.comm = h->comm };

	(void)ctx;
	put_label(out, &l);
}

static struct cell *cell_of(struct waits_reader *r, uint32_t pair, struct err *e)
{
	if (pair >= r->max_cells &&
		base_grow(&r->cells, &r->max_cells, (size_t)pair + 1, sizeof(*r->cells)) != 0) {
		err_nomem(e, "the sums of stacks");
		return NULL;
	}
	return &r->cells[pair];
}

static bool on_other(void *ctx, const struct perfscript_header *h, const struct perfscript_wait *wait)
{
	struct waits *w = ((struct waits_reader *)ctx)->w;

	if (!is(h->event, "cpu-clock") || !wait->has_total)
		return false;
	w->on_cpu_ns += wait->total_ns;
	w->n_on_cpu += wait->has_count ? wait->count : 1;
	return true;
}

/* Of sums of samples it is not known when each was. */
static int add_sample(struct waits_reader *r, const struct folding_added *a, struct err *e)
{
	struct waits *w = r->w;
	struct wait_sample v = { .row = a->pair };

	if ((a->wait->has_count && a->wait->count != 1) || w->n_samples >= UINT32_MAX ||
		!perfscript_time(a->header, &v.at_ns))
		return 0;
	if (base_grow(&w->samples, &w->max_samples, w->n_samples + 1, sizeof(*w->samples)) != 0)
		return err_nomem(e, "each sample");
	w->samples[w->n_samples++] = v;
	return 0;
}

static int on_added(void *ctx, const struct folding_added *a, const char **bad, struct err *e)
{
	struct waits_reader *r = ctx;
	const struct perfscript_wait *wait = a->wait;
	struct cell *c = cell_of(r, a->pair, e);
	struct wait_stats *s = c ? &c->stats : NULL;
	uint64_t total = wait->has_total ? wait->total_ns : a->weight;
	uint64_t count = wait->has_count ? wait->count : 1;
	double mean = count ? (double)total / (double)count : (double)total;
	bool whole = wait->open && wait->initial;
	bool single = wait->has_count && count == 1 && wait->has_max && wait->max_ns == total;
	int code = 0;

	(void)bad;
	if (!s)
		return -ENOMEM;
	if (r->samples && is(a->header->event, r->samples))
		return add_sample(r, a, e);
	r->w->is_time |= wait->has_total;
	s->total += total;
	s->count += count;
	s->squares += (double)total * MAX(mean, wait->has_max && count != 1 ? (double)wait->max_ns : 0);
	/* nearly: the recording begins and ends a little outside its waits */
	if (whole && (wait_sum)total * 100 >= (wait_sum)r->duration_ns * 99)
		s->whole++;
	if (wait->has_max) {
		s->max_ns = MAX(s->max_ns, wait->max_ns);
		s->has_max = true;
	}
	if (wait->has_runnable && wait->runnable_ns <= total) {
		s->split += total;
		s->runnable += wait->runnable_ns;
	}
	if (single) {
		s->single++;
		code = add_bin(r, c, a->pair, total, e);
		if (!code && r->each)
			code = add_event(r, a, e);
	} else if (r->each) {
		r->w->n_sums = add_saturating(r->w->n_sums, count);
	}
	return code;
}

/* --- folded lines --- */

static size_t trailing_digits(str s)
{
	size_t n = 0;

	while (n < s.len && s.p[s.len - 1 - n] >= '0' && s.p[s.len - 1 - n] <= '9')
		n++;
	return n;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* The parts of "comm;a;b;c 123". */
static bool folded_parts(str line, str *stack, str *sum)
{
	size_t digits = trailing_digits(line);

	if (!digits || digits == line.len || !is_blank(line.p[line.len - digits - 1]))
		return false;
	*stack = (str){ line.p, line.len - digits - 1 };
	*sum = (str){ line.p + line.len - digits, digits };
	return stack->len > 0;
}

/*
 * Does the text begin with a folded line? A header of perf script that ends in a number has no ';'. *IS_TEXT:
 * with that, a header or a comment.
 */
static bool is_folded(const struct paragraph *para, bool *is_text)
{
	str text = { para->text, para->len }, line, stack, sum;
	struct perfscript_header header;

	*is_text = para->len && para->text[0] == '#';
	do
		line = perfscript_split(&text, '\n');
	while (text.len && (!line.len || line.p[0] == '#'));
	*is_text |= perfscript_header(line.p, line.len, &header);
	if (!line.len || line.p[0] == '#' || is_blank(line.p[0]) || !folded_parts(line, &stack, &sum))
		return false;
	*is_text = true;
	return memchr(stack.p, ';', stack.len) ||
	       (!perfscript_header(line.p, line.len, &header) && (!text.len || !is_blank(text.p[0])));
}

/* Add the line as it is. STACK begins behind the ';' after FIRST, or is empty. */
static int add_plain(struct waits_reader *r, str first, str stack, uint64_t sum, struct err *e)
{
	const char *begin = first.p + first.len;
	uint32_t name = intern_put(&r->own.names, first.p, first.len);
	uint32_t frames = intern_put(&r->own.stacks, begin, (size_t)(stack.p + stack.len - begin)), pair;

	pair = name == INTERN_NONE || frames == INTERN_NONE ? FOLDTAB_NONE
							    : foldtab_pair(&r->own, name, frames);
	if (pair == FOLDTAB_NONE)
		return err_nomem(e, "the distinct stacks");
	r->own.pairs[pair].sum += sum;
	r->w->n_records++;
	return 0;
}

static int add_folded(struct waits_reader *r, str stack, uint64_t sum, struct err *e)
{
	struct buf label = { 0 };
	struct label l = { 0 };
	struct cell *c;
	uint32_t name, frames, pair;
	str first = perfscript_split(&stack, ';'), tid;

	if (r->plain)
		return add_plain(r, first, stack, sum, e);
	if (begins(first, "[") && find_value(first, " tid=", &tid) && cut(&tid, "]")) {
		l.tid = tid;
		l.comm = (str){ first.p + 1, (size_t)(tid.p - first.p) - 1 - strlen(" tid=") };
		first = perfscript_split(&stack, ';');
	}
	l.process = first;
	put_label(&label, &l);
	name = label.failed ? INTERN_NONE : intern_put(&r->own.names, label.p, label.len);
	frames = intern_put(&r->own.stacks, stack.p, stack.len);
	buf_free(&label);
	if (name == INTERN_NONE || frames == INTERN_NONE)
		return err_nomem(e, "the distinct stacks");
	pair = foldtab_pair(&r->own, name, frames);
	if (pair == FOLDTAB_NONE)
		return err_nomem(e, "the distinct stacks");
	c = cell_of(r, pair, e);
	if (!c)
		return -ENOMEM;
	c->stats.total += sum;
	r->w->n_records++;
	return 0;
}

static int folded_add(
	struct waits_reader *r, const struct paragraphs *in, const struct paragraph *para, struct err *e)
{
	str text = { para->text, para->len }, stack, sum;
	struct waits *w = r->w;
	uint64_t value;
	int code = 0;

	while (text.len && !code) {
		str line = perfscript_split(&text, '\n');
		const char *why = NULL;

		if (!line.len || line.p[0] == '#')
			continue;
		if (para->end == PARAGRAPH_CUT_LINE && !text.len)
			why = "a line of more than 16 MiB";
		else if (!folded_parts(line, &stack, &sum))
			why = "a folded line without a number at its end";
		else if (!number(sum, &value))
			why = "a number that does not fit 64 bits";
		else
			code = add_folded(r, stack, value, e);
		if (why && !w->n_malformed++) {
			w->bad_why = why;
			paragraphs_where(in, line.p, &w->bad_path, &w->bad_line);
		}
	}
	return code;
}

/* --- stacks into paths --- */

struct frames {
	str *p;
	size_t n, cap;
};

static int push(struct frames *f, str s)
{
	if (base_grow(&f->p, &f->cap, f->n + 1, sizeof(*f->p)) != 0)
		return -ENOMEM;
	f->p[f->n++] = s;
	return 0;
}

/* A function that only the kernel has, where a folded line does not mark the kernel's. */
static bool is_kernel_entry(str s)
{
	static const char *const starts[] = { "entry_SYSCALL", "entry_INT80", "do_syscall_64", "do_int80_",
		"do_fast_syscall_32", "x64_sys_call", "__x64_sys_", "__ia32_", "__arm64_", "[syscall ",
		"ret_from_fork", "asm_exc_", "asm_sysvec_", "asm_common_interrupt", "el0t_", "el0_svc",
		"el0_da", "invoke_syscall", "__schedule", "schedule_timeout" };

	for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
		if (begins(s, starts[i]))
			return true;
	}
	return false;
}

static bool is_scheduler(str s)
{
	return is(s, "__schedule") || is(s, "schedule") || begins(s, "schedule_") ||
	       begins(s, "preempt_schedule") || begins(s, "io_schedule") || begins(s, "__cond_resched");
}

/*
 * The name of the system call that a kernel function is the entry of; on old kernels, and where the
 * compiler has merged functions, only the function behind it is on the stack.
 */
static bool call_of(str s, bool *entry, str *call)
{
	static const char *const starts[] = { "[syscall ", "__x64_sys_", "__ia32_sys_", "__ia32_compat_sys_",
		"__x32_compat_sys_", "__arm64_sys_", "__arm64_compat_sys_", "__se_sys_", "__se_compat_sys_",
		"__do_sys_", "__do_compat_sys_", "ksys_", "sys_", "compat_sys_" };

	for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
		size_t n = strlen(starts[i]);

		if (!begins(s, starts[i]))
			continue;
		*call = (str){ s.p + n, s.len - n };
		*entry = i < 7;
		if (i == 0 && !cut(call, "]"))
			return false;
		*call = i ? perfscript_split(call, '.') : *call; /* .isra.0, .cold */
		return call->len > 0;
	}
	return false;
}

/* Take a stack of the table apart: user functions, kernel functions, the file. Outermost first. */
static int take_apart(struct waits *w, str text, struct frames *user, struct frames *kernel, str *module)
{
	const char *newline = text.len ? memrchr(text.p, '\n', text.len) : NULL;
	bool in_kernel = !w->folded && !newline;
	int code = 0;

	user->n = kernel->n = 0;
	*module = (str){ "", 0 };
	if (newline) {
		*module = (str){ newline + 1, (size_t)(text.p + text.len - newline - 1) };
		text.len = (size_t)(newline - text.p);
	}
	if (!w->folded && text.len)
		perfscript_split(&text, ';'); /* the table's stacks begin with it */
	while (text.len && !code) {
		str s = perfscript_split(&text, ';');

		if (is(s, "--"))
			break; /* the rest is the waker's */
		if (is(s, "-")) {
			in_kernel = true;
			continue;
		}
		in_kernel |= cut(&s, "_[k]") || (w->folded && is_kernel_entry(s));
		cut(&s, "_[j]");
		cut(&s, "_[i]");
		code = push(in_kernel ? kernel : user, s);
	}
	return code;
}

static str find_call(const struct frames *kernel)
{
	str call, best = { "", 0 };
	bool entry;

	for (size_t i = 0; i < kernel->n; i++) {
		if (!call_of(kernel->p[i], &entry, &call))
			continue;
		if (entry)
			return call;
		if (!best.len)
			best = call;
	}
	return best;
}

/* The index of the path, which is added if it is new; WAITS_NONE when memory runs out. */
static uint32_t put_path(struct waits_reader *r, const struct frames *f, bool kernel, str call)
{
	struct waits *w = r->w;
	struct wait_path path = { .first = w->n_functions, .kernel = kernel };
	size_t known = r->paths.n;
	uint32_t id;

	for (size_t i = 0; i < f->n; i++) {
		if (kernel && is_scheduler(f->p[i]))
			continue;
		id = keep(w, f->p[i]);
		if (id == INTERN_NONE || base_grow(&w->functions, &w->max_functions, w->n_functions + 3,
						 sizeof(*w->functions)) != 0)
			return WAITS_NONE;
		w->functions[w->n_functions++] = id;
	}
	path.n = (uint32_t)(w->n_functions - path.first);
	path.call = keep(w, call);
	if (path.call == INTERN_NONE ||
		base_grow(&w->functions, &w->max_functions, w->n_functions + 2, sizeof(*w->functions)) != 0)
		return WAITS_NONE;
	/* the key is the functions, the call and the side; only the functions stay */
	w->functions[w->n_functions] = path.call;
	w->functions[w->n_functions + 1] = kernel;
	id = intern_put(&r->paths, w->functions + path.first, (path.n + 2) * sizeof(*w->functions));
	if (id == INTERN_NONE)
		return WAITS_NONE;
	if (id < known) {
		w->n_functions = path.first;
		return id;
	}
	if (base_grow(&w->paths, &w->max_paths, w->n_paths + 1, sizeof(*w->paths)) != 0)
		return WAITS_NONE;
	w->paths[w->n_paths++] = path;
	return id;
}

/* Of the stacks that are new. */
static int make_places(struct waits_reader *r)
{
	struct waits *w = r->w;
	struct frames user = { 0 }, kernel = { 0 };
	int code = base_grow(&r->places, &r->max_places, r->table->stacks.n, sizeof(*r->places));

	for (uint32_t i = (uint32_t)r->n_places; i < r->table->stacks.n && !code; i++) {
		str text, module, call;
		bool only_kernel;

		text.p = intern_text(&r->table->stacks, i, &text.len);
		code = take_apart(w, text, &user, &kernel, &module);
		if (code)
			break;
		call = find_call(&kernel);
		only_kernel = !user.n && !call.len;
		r->places[i].path = put_path(r, only_kernel ? &kernel : &user, only_kernel, call);
		r->places[i].module = keep(w, module);
		if (r->places[i].path == WAITS_NONE || r->places[i].module == INTERN_NONE)
			code = -ENOMEM;
		r->n_places = i + 1;
	}
	free(user.p);
	free(kernel.p);
	return code;
}

/* --- threads and processes --- */

static uint32_t put_process(struct waits_reader *r, const struct label *l)
{
	struct waits *w = r->w;
	uint32_t name = keep(w, l->process.len ? l->process : l->comm), id = keep(w, l->pid), at;
	bool added;

	if (name == INTERN_NONE || id == INTERN_NONE)
		return WAITS_NONE;
	/* text that has no PIDs: a process is what has one name */
	at = idmap_put(&r->by_process, id, l->pid.len ? 0 : name, (uint32_t)w->n_processes, &added);
	if (at == WAITS_NONE ||
		base_grow(&w->processes, &w->max_processes, w->n_processes + 1, sizeof(*w->processes)) != 0)
		return WAITS_NONE;
	if (added)
		w->processes[w->n_processes++] = (struct wait_process){ .id = id, .name = name };
	else if (l->pid.len && l->pid.len == l->tid.len && memcmp(l->pid.p, l->tid.p, l->pid.len) == 0)
		w->processes[at].name = name; /* the main thread has the name of the process */
	return at;
}

static uint32_t put_thread(struct waits_reader *r, const struct label *l, uint32_t process)
{
	struct waits *w = r->w;
	uint32_t name = keep(w, l->comm), id = keep(w, l->tid), at;
	bool added;

	if (name == INTERN_NONE || id == INTERN_NONE)
		return WAITS_NONE;
	at = idmap_put(&r->by_thread, process, id, (uint32_t)w->n_threads, &added);
	if (at == WAITS_NONE ||
		base_grow(&w->threads, &w->max_threads, w->n_threads + 1, sizeof(*w->threads)) != 0)
		return WAITS_NONE;
	if (added)
		w->threads[w->n_threads++] =
			(struct wait_thread){ .id = id, .name = name, .process = process };
	return at;
}

static int make_row(struct waits_reader *r, const struct foldtab_pair *pair, struct wait_row *row)
{
	struct waits *w = r->w;
	struct label l;
	str text;

	text.p = intern_text(&r->table->names, pair->name, &text.len);
	l = get_label(text);
	row->path = r->places[pair->stack].path;
	row->module = r->places[pair->stack].module;
	row->comm = keep(w, l.comm);
	row->kind = keep(w, l.kind);
	row->state = keep(w, l.state);
	row->waker = keep(w, l.waker);
	row->process = put_process(r, &l);
	row->thread = WAITS_NONE;
	if (row->comm == INTERN_NONE || row->kind == INTERN_NONE || row->state == INTERN_NONE ||
		row->waker == INTERN_NONE || row->process == WAITS_NONE)
		return -ENOMEM;
	if (l.tid.len) {
		row->thread = put_thread(r, &l, row->process);
		if (row->thread == WAITS_NONE)
			return -ENOMEM;
	}
	w->has_kind |= row->kind != 0;
	w->has_state |= row->state != 0;
	return 0;
}

/* Give the row what its pair has now. */
static void update_row(struct waits *w, struct wait_row *row, const struct cell *c)
{
	const wait_sum total = row->stats.total, count = row->stats.count;

	row->stats = c->stats;
	row->stats.total *= units_ns[w->unit];
	row->stats.squares *= (double)units_ns[w->unit] * units_ns[w->unit];
	row->first_bin = c->bins_1 - 1;
	row->last = (struct wait_last){ row->stats.total - total, row->stats.count - count };
	w->has_max |= row->stats.has_max;
	w->has_split |= row->stats.split != 0;
}

/* "comm pid/tid" or "[timer]" */
static bool take_waker(struct waits_reader *r, str text, struct wait_waker *k)
{
	struct waits *w = r->w;
	const char *space = memrchr(text.p, ' ', text.len);
	const struct idmap_slot *slot;
	uint64_t n;
	str pid, tid;
	uint32_t id;

	*k = (struct wait_waker){ .thread = WAITS_NONE };
	if (space) {
		tid = (str){ space + 1, (size_t)(text.p + text.len - space - 1) };
		pid = perfscript_split(&tid, '/');
	}
	if (!space || !number(pid, &n) || !number(tid, &n)) {
		k->name = keep(w, text);
		k->interrupt = begins(text, "[") && !is(text, "[hidden]");
		return k->name != INTERN_NONE;
	}
	k->name = keep(w, (str){ text.p, (size_t)(space - text.p) });
	id = keep(w, pid);
	slot = idmap_find(&r->by_process, id, 0);
	if (slot)
		slot = idmap_find(&r->by_thread, slot->value, keep(w, tid));
	k->thread = slot ? slot->value : WAITS_NONE;
	return k->name != INTERN_NONE && id != INTERN_NONE;
}

static int make_wakers(struct waits_reader *r, struct err *e)
{
	struct waits *w = r->w;

	w->wakers = calloc(r->wakers.n + 1, sizeof(*w->wakers));
	for (uint32_t i = 0; w->wakers && i < r->wakers.n; i++) {
		str text;

		text.p = intern_text(&r->wakers, i, &text.len);
		if (!take_waker(r, text, &w->wakers[w->n_wakers++]))
			return err_nomem(e, "the wakers");
	}
	return w->wakers ? 0 : err_nomem(e, "the wakers");
}

/* Make rows of the new pairs of the table, with the same indexes, and update the others. */
static int make_rows(struct waits_reader *r, struct err *e)
{
	struct waits *w = r->w;
	const size_t known = w->n_rows;

	if (make_places(r) != 0)
		return err_nomem(e, "the paths of stacks");
	if (base_grow(&w->rows, &r->max_rows, r->table->n, sizeof(*w->rows)) != 0)
		return err_nomem(e, "the waits");
	for (size_t i = 0; i < r->table->n; i++) {
		update_row(w, &w->rows[i], &r->cells[i]);
		if (i >= known && make_row(r, &r->table->pairs[i], &w->rows[i]) != 0)
			return err_nomem(e, "the waits");
	}
	w->n_rows = r->table->n;
	w->n_stacks = r->table->stacks.n;
	return r->each ? make_wakers(r, e) : 0;
}

/* --- all of it --- */

static int start(struct waits_reader *r, bool folded, struct err *e)
{
	uint64_t seed = 0;

	r->w->folded = folded;
	if (!folded)
		return folding_new(&r->options, &r->folding, e);
	/* unpredictable if the kernel has random bytes; the result is the same with a fixed seed */
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != (ssize_t)sizeof(seed))
		seed = HASH_K3;
	foldtab_init(&r->own, seed);
	return 0;
}

/* Up to the next flush with FLUSHES, else to the end. 1 after a flush, 0 at the end, or -errno. */
static int read_piece(struct waits_reader *r, bool flushes, struct err *e)
{
	struct paragraph para;
	int code = 0;

	r->flushed = false;
	while (!(flushes && r->flushed) && (code = paragraphs_next(r->in, &para, e)) > 0) {
		code = 0;
		r->flushed = false;
		if (!r->started)
			code = start(r, is_folded(&para, &r->w->is_text), e);
		r->started = true;
		if (!code)
			code = r->folding ? folding_add(r->folding, r->in, &para, e)
					  : folded_add(r, r->in, &para, e);
		if (code)
			return code;
	}
	if (flushes && r->flushed)
		return 1;
	if (code || r->started)
		return code;
	r->started = true;
	return start(r, true, e);
}

static uint32_t keep_name(struct waits *w, const char *name)
{
	return name ? keep(w, (str){ name, strlen(name) }) : 0;
}

/* What folding reports. */
static int take_report(struct waits *w, const struct folding_report *f)
{
	w->n_records = f->records;
	w->n_filtered = f->filtered;
	w->n_malformed = f->malformed;
	w->bad_path = f->bad_path;
	w->bad_line = f->bad_line;
	w->bad_why = f->bad_why;
	w->event = keep_name(w, f->event);
	w->other = keep_name(w, f->other);
	return w->event == INTERN_NONE || w->other == INTERN_NONE ? -ENOMEM : 0;
}

static void choose_unit(struct waits *w)
{
	str event;

	event.p = waits_string(w, w->event, &event.len);
	/* such text is in ns in any case */
	w->is_time |= is(event, "offcpu-time");
	if (w->is_time)
		w->unit = WAITS_UNIT_NS;
	else if (w->unit == WAITS_UNIT_AUTO)
		w->is_time = w->folded;
	else
		w->is_time = w->unit != WAITS_UNIT_COUNT;
}

static void release(struct waits_reader *r)
{
	folding_free(r->folding);
	foldtab_free(&r->own);
	free(r->cells);
	free(r->places);
	idmap_free(&r->by_process);
	idmap_free(&r->by_thread);
	intern_free(&r->paths);
	intern_free(&r->wakers);
	hashtable_free(&r->by_bin);
}

int waits_open(struct waits *w, struct paragraphs *in, const struct waits_opts *opts,
	struct waits_reader **ret, struct err *e)
{
	struct waits_reader *r = calloc(1, sizeof(*r));

	*ret = r;
	*w = (struct waits){ .unit = opts->unit };
	if (!r || intern_put(&w->strings, "", 0) != 0)
		return err_nomem(e, "the waits");
	r->w = w;
	r->in = in;
	r->each = opts->each;
	r->samples = opts->samples;
	r->client = (struct folding_client){
		.ctx = r, .comment = on_comment, .name = on_name, .other = on_other, .added = on_added
	};
	r->options = (struct folding_opts){ .event = opts->event,
		.also = opts->samples,
		.delimit = true,
		.module = true,
		.client = &r->client };
	return 0;
}

int waits_sum_up(struct waits_reader *r, struct err *e)
{
	struct waits *w = r->w;

	r->table = r->folding ? folding_table(r->folding) : &r->own;
	if (r->folding && take_report(w, folding_report(r->folding)) != 0)
		return err_nomem(e, "the waits");
	choose_unit(w);
	w->last_ns = w->elapsed_ns - MIN(r->flushed_ns, w->elapsed_ns);
	r->flushed_ns = w->elapsed_ns;
	return make_rows(r, e);
}

int waits_next(struct waits_reader *r, struct err *e)
{
	int more = read_piece(r, true, e), code = more < 0 ? more : waits_sum_up(r, e);

	return code ? code : more;
}

int waits_rest(struct waits_reader *r, struct err *e)
{
	int code = read_piece(r, false, e);

	return code ? code : waits_sum_up(r, e);
}

void waits_close(struct waits_reader *r)
{
	if (r)
		release(r);
	free(r);
}

int waits_read(struct waits *w, struct paragraphs *in, const struct waits_opts *opts, struct err *e)
{
	struct waits_reader *r;
	int code = waits_open(w, in, opts, &r, e);

	if (!code)
		code = waits_rest(r, e);
	waits_close(r);
	return code;
}

/* --- what was skipped --- */

const char *waits_file_name(const char *path)
{
	return strcmp(path, "-") == 0 ? "standard input" : path;
}

bool waits_filtered(const struct waits *w, struct err *e)
{
	size_t event_len, other_len;
	const char *event = waits_string(w, w->event, &event_len);
	const char *other = waits_string(w, w->other, &other_len);

	if (!w->n_filtered)
		return false;
	err_set(e, -ENODATA, "only event '%.*s' is counted; %llu %s skipped, the first of '%.*s'",
		(int)event_len, event, (unsigned long long)w->n_filtered,
		w->n_filtered == 1 ? "record of another is" : "records of others are", (int)other_len, other);
	return true;
}

bool waits_malformed(const struct waits *w, const char *tool, struct err *e)
{
	if (!w->n_malformed)
		return false;
	err_set(e, -EINVAL, "%llu malformed %s skipped; the first is line %llu of '%s': %s",
		(unsigned long long)w->n_malformed,
		w->n_malformed == 1 ? "line or record is" : "lines or records are",
		(unsigned long long)w->bad_line, waits_file_name(w->bad_path), w->bad_why);
	if (!w->n_records)
		err_hint(e, "%s reads captures, the text of symbolize or of 'perf script', and folded lines",
			tool);
	return true;
}

bool waits_other_input(const struct waits *w, const char *tool, struct err *e)
{
	/* what some lines of a program look like says nothing */
	if (w->is_text || w->n_malformed <= add_saturating(w->n_records, w->n_filtered))
		return false;
	err_set(e, -EINVAL, "'%s' is neither a capture nor text of waits; line %llu: %s",
		waits_file_name(w->bad_path), (unsigned long long)w->bad_line, w->bad_why);
	err_hint(e, "%s reads captures, the text of symbolize or of 'perf script', and folded lines", tool);
	return true;
}

/* --- each wait --- */

int waits_need_each(const struct waits *w, const char *path, struct err *e)
{
	if (w->n_events && w->n_events >= w->n_sums)
		return 0;
	err_set(e, -ENODATA, "when each wait was is not in '%s', only sums of waits", waits_file_name(path));
	err_hint(e, "record with 'offcpu-record --events'; text must be that of 'symbolize --events'");
	return -ENODATA;
}

bool waits_have_sums(const struct waits *w, struct err *e)
{
	if (!w->n_sums)
		return false;
	err_set(e, -ENODATA, "%llu of %llu waits are known only as sums and are left out",
		(unsigned long long)w->n_sums, (unsigned long long)add_saturating(w->n_sums, w->n_events));
	return true;
}

uint64_t waits_start(const struct waits *w)
{
	uint64_t start = w->start_ns ? w->start_ns : UINT64_MAX;

	for (size_t i = 0; i < w->n_events; i++)
		start = MIN(start, w->events[i].begin_ns);
	return start;
}

uint64_t waits_end(const struct waits *w)
{
	uint64_t end = w->start_ns ? add_saturating(w->start_ns, w->elapsed_ns) : 0;

	for (size_t i = 0; i < w->n_events; i++)
		end = MAX(end, w->events[i].begin_ns + w->events[i].len_ns);
	return end;
}

/* --- stacks alone --- */

/* The name in a folded line: blanks are those of the format. */
static void on_plain_name(
	void *ctx, const struct perfscript_header *h, const struct perfscript_wait *wait, struct buf *out)
{
	size_t at = out->len;

	(void)ctx;
	(void)wait;
	buf_put(out, h->comm.p, h->comm.len);
	for (size_t i = at; !out->failed && i < out->len; i++) {
		if (out->p[i] == ' ')
			out->p[i] = '_';
	}
}

static int on_plain_added(void *ctx, const struct folding_added *a, const char **bad, struct err *e)
{
	struct waits_reader *r = ctx;

	(void)bad;
	(void)e;
	r->w->is_time |= a->wait->has_total;
	r->w->has_kind |= a->wait->kind.len > 0;
	return 0;
}

static int fold_all(struct waits_reader *r, struct waits_stacks *ret, struct err *e)
{
	struct waits *w = r->w;
	struct foldtab_query query = { 0 };
	int code;

	if (intern_put(&w->strings, "", 0) != 0)
		return err_nomem(e, "the waits");
	code = read_piece(r, false, e);
	if (code)
		return code;
	if (r->folding && take_report(w, folding_report(r->folding)) != 0)
		return err_nomem(e, "the waits");
	if (r->folding) {
		const struct folding_report *report = folding_report(r->folding);

		w->has_kind |=
			report->other_kinds || (r->options.no_idle && report->folded < report->records);
	}
	choose_unit(w);
	code = foldtab_lines(r->folding ? folding_table(r->folding) : &r->own, &query, &ret->lines, e);
	for (size_t i = 0; !code && i < ret->lines.n; i++)
		ret->lines.lines[i].sum *= units_ns[w->unit];
	w->n_stacks = ret->lines.n;
	return code;
}

int waits_fold(struct waits *w, struct waits_stacks *ret, struct paragraphs *in, enum waits_unit unit,
	const struct waits_selection *select, struct err *e)
{
	struct waits_reader r = { .w = w, .in = in, .plain = true };
	int code;

	*w = (struct waits){ .unit = unit };
	*ret = (struct waits_stacks){ 0 };
	r.client = (struct folding_client){ .ctx = &r,
		.comment = on_comment,
		.name = on_plain_name,
		.other = on_other,
		.added = on_plain_added };
	r.options = (struct folding_opts){ .event = select->event,
		.no_idle = select->no_idle,
		.kinds = &select->kinds,
		.n_kinds = select->kinds != NULL,
		.client = &r.client };
	code = fold_all(&r, ret, e);
	ret->folding = r.folding;
	ret->own = r.own;
	return code;
}

void waits_stacks_free(struct waits_stacks *s)
{
	free(s->lines.lines);
	folding_free(s->folding);
	foldtab_free(&s->own);
	*s = (struct waits_stacks){ 0 };
}

void waits_free(struct waits *w)
{
	intern_free(&w->strings);
	free(w->functions);
	free(w->paths);
	free(w->processes);
	free(w->threads);
	free(w->rows);
	free(w->bins);
	free(w->events);
	free(w->samples);
	free(w->wakers);
	free(w->lost);
	*w = (struct waits){ 0 };
}
