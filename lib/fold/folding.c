/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fold/folding.h"
#include "base/hash.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

/* These are not hash tables: a slot holds the last entry put there. A forgotten entry only costs time. */
#define SEEN_SLOTS 65536
#define GUESSES 16384
#define PREFETCH_MAX 512

int bodycache_init(struct bodycache *c, uint64_t seed, struct err *e)
{
	*c = (struct bodycache){ .bodies.seed = seed,
		.seen = calloc(SEEN_SLOTS, sizeof(*c->seen)),
		.guesses = calloc(GUESSES, sizeof(*c->guesses)) };
	return c->seen && c->guesses ? 0 : err_nomem(e, "stacks");
}

void bodycache_free(struct bodycache *c)
{
	intern_free(&c->bodies);
	free(c->values);
	free(c->seen);
	free(c->guesses);
	*c = (struct bodycache){ 0 };
}

/* The index of a body among the guesses, from four words spread over it. */
static uint32_t sample(const char *body, size_t len)
{
	const unsigned char *p = (const unsigned char *)body;
	const size_t step = (len - 8) / 4;
	uint64_t h;

	h = hash_mul(hash_load64(p + step) ^ HASH_K0, hash_load64(p + 2 * step) ^ HASH_K1);
	h ^= hash_mul(hash_load64(p + 3 * step) ^ HASH_K2, hash_load64(p) ^ len);
	return (uint32_t)(hash_mul(h, HASH_K3) % GUESSES);
}

struct bodycache_key bodycache_expect(const struct bodycache *c, const char *body, size_t len)
{
	struct bodycache_key k = { .body = body, .len = len };
	const struct intern_entry *e;
	uint32_t id_1;

	if (len < 8)
		return k;
	k.guess = sample(body, len);
	id_1 = c->guesses[k.guess];
	if (!id_1 || id_1 > c->bodies.n)
		return k;
	e = &c->bodies.entries[id_1 - 1];
	__builtin_prefetch(&c->values[id_1 - 1]);
	if (e->len == len) {
		for (size_t at = 0; at < MIN(len, (size_t)PREFETCH_MAX); at += 64)
			__builtin_prefetch(e->text + at);
	}
	return k;
}

struct bodycache_value *bodycache_find(struct bodycache *c, struct bodycache_key *k)
{
	uint32_t *guess = &c->guesses[k->guess], id;

	if (*guess && *guess <= c->bodies.n) {
		const struct intern_entry *e = &c->bodies.entries[*guess - 1];

		if (e->len == k->len && memcmp(e->text, k->body, k->len) == 0)
			return &c->values[*guess - 1];
	}
	k->hash = intern_hash(&c->bodies, k->body, k->len);
	id = intern_find(&c->bodies, k->body, k->len, k->hash);
	if (id == INTERN_NONE)
		return NULL;
	*guess = id + 1;
	return &c->values[id];
}

int bodycache_keep(
	struct bodycache *c, const struct bodycache_key *k, const struct bodycache_value *v, struct err *e)
{
	uint32_t tag = (uint32_t)(k->hash >> 32), *seen = &c->seen[k->hash % SEEN_SLOTS];
	uint32_t id;

	if (c->bodies.bytes > BODYCACHE_MAX / 2 && *seen != tag) {
		*seen = tag;
		return 0;
	}
	/* also bounds many short bodies */
	if (c->bodies.bytes > BODYCACHE_MAX || c->bodies.n > BODYCACHE_MAX / 64)
		intern_reset(&c->bodies);
	id = intern_add(&c->bodies, k->body, k->len, k->hash);
	if (id == INTERN_NONE || base_grow(&c->values, &c->cap, c->bodies.n, sizeof(*c->values)) != 0)
		return err_nomem(e, "stacks");
	c->values[id] = *v;
	c->guesses[k->guess] = id + 1;
	return 0;
}

static const char not_known[] = "neither header nor frame";

/* A frame's functions, as a part of folding.functions. */
struct frame_span {
	size_t at, len;
	enum foldframe_side side;
};

enum state { OUTSIDE, SKIPPING };

/* The parts of a record's weight: what is added to its stack, and to its stack with one more frame. */
enum part { PART_STACK, PART_RUNNABLE, PART_PREEMPTED, PART_BLOCKED, PART_ON_CPU, PARTS };
static const char *const part_frames[PARTS] = { "", "[runnable]", "[preempted]", "[blocked]", "[on-CPU]" };

/* The ids of a stack with each of part_frames, plus one; 0 = not made yet. */
struct part_stacks {
	uint32_t id_1[PARTS];
};

struct folding {
	const struct folding_opts *o;
	struct foldtab table;
	struct folding_report report;
	struct bodycache cache[2]; /* index = java or not: the same text means different frames */
	enum state state; /* SKIPPING: the previous paragraph was cut inside a record */
	struct frame_span *frames; /* of the current stack, innermost first */
	size_t n_frames, max_frames;
	bool needs_comment; /* of each record, by the options */
	bool skips_zeroes; /* a stack may get nothing of a wait */
	struct part_stacks *part_stacks; /* index = id of a stack */
	size_t max_part_stacks;
	struct buf functions; /* text of the frames */
	struct perfscript_str module; /* of the innermost user frame */
	bool has_module;
	bool has_waker; /* the current stack */
	size_t n_own; /* and then the frames of the thread itself */
	struct perfscript_str first_waker; /* of the current record; empty: none */
	struct perfscript_str waker; /* whose frames are being read; empty: none */
	struct buf text; /* the current stack or name */
	struct buf scratch;
};

/* A record while it is being read. */
struct record {
	struct perfscript_header h;
	const char *line, *body; /* header, and what follows it */
	size_t line_len;
	struct perfscript_str wait; /* its "# wait:" comment, or empty */
	const char *end; /* end of its paragraph */
	enum paragraph_end how;
	bool chosen; /* is of the event to fold */
	bool java;
	struct bodycache_key key; /* of the body, if that is the whole paragraph's */
};

int folding_new(const struct folding_opts *opts, struct folding **ret, struct err *e)
{
	struct folding *f = calloc(1, sizeof(*f));
	uint64_t seed = 0;

	if (!f)
		return err_nomem(e, "folding");
	/* unpredictable if the kernel has random bytes; the result is the same with a fixed seed */
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != (ssize_t)sizeof(seed))
		seed = HASH_K3;
	f->o = opts;
	f->skips_zeroes = opts->weight != FOLDING_BOTH || opts->runnable || opts->wall;
	f->needs_comment = opts->client || opts->by_count || f->skips_zeroes || opts->no_idle ||
			   opts->n_kinds || opts->kind_frames;
	foldtab_init(&f->table, seed);
	for (size_t i = 0; i < ARRAY_LEN(f->cache); i++) {
		if (bodycache_init(&f->cache[i], seed, e) != 0) {
			folding_free(f);
			return -ENOMEM;
		}
	}
	if (opts->event && opts->event[0]) {
		f->report.event = strdup(opts->event);
		if (!f->report.event) {
			folding_free(f);
			return err_nomem(e, "folding");
		}
	}
	*ret = f;
	return 0;
}

void folding_free(struct folding *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < ARRAY_LEN(f->cache); i++)
		bodycache_free(&f->cache[i]);
	foldtab_free(&f->table);
	free(f->report.event);
	free(f->report.other);
	free(f->report.other_kind);
	free(f->frames);
	free(f->part_stacks);
	buf_free(&f->functions);
	buf_free(&f->text);
	buf_free(&f->scratch);
	free(f);
}

const struct foldtab *folding_table(const struct folding *f)
{
	return &f->table;
}

const struct folding_report *folding_report(const struct folding *f)
{
	return &f->report;
}

static bool starts(const char *p, size_t len, const char *word)
{
	size_t n = strlen(word);

	return len >= n && memcmp(p, word, n) == 0;
}

static void malformed(struct folding *f, const struct paragraphs *in, const char *at, const char *why)
{
	if (f->report.malformed++)
		return;
	f->report.bad_why = why;
	paragraphs_where(in, at, &f->report.bad_path, &f->report.bad_line);
}

/* Reverse the order of frames, which are separated by ';'. */
static void reverse_frames(struct buf *text, size_t from, struct buf *scratch)
{
	char *p = (char *)text->p;
	size_t end = text->len;

	buf_reset(scratch);
	while (end > from) {
		const char *sep = memrchr(p + from, ';', end - from);
		size_t at = sep ? (size_t)(sep - p) + 1 : from;

		buf_put(scratch, p + at, end - at);
		if (!sep)
			break;
		buf_put(scratch, ";", 1);
		end = at - 1;
	}
	if (scratch->failed)
		text->failed = true;
	else if (scratch->len)
		memcpy(p + from, scratch->p, scratch->len);
}

static void put_comm(struct buf *out, struct perfscript_str comm)
{
	size_t at = out->len;

	buf_put(out, comm.p, comm.len);
	for (size_t i = at; !out->failed && i < out->len; i++) {
		if (out->p[i] == ' ')
			out->p[i] = '_';
	}
}

/* The id of the text before the stack: the name of the process and what the options add; STATE may be "". */
static uint32_t name_of(struct folding *f, const struct perfscript_header *h,
	const struct perfscript_wait *wait, const char *state)
{
	const struct folding_opts *o = f->o;
	struct buf *out = &f->text;

	buf_reset(out);
	if (o->client) {
		o->client->name(o->client->ctx, h, wait, out);
		return out->failed ? INTERN_NONE : intern_put(&f->table.names, out->p, out->len);
	}
	buf_put(out, state, strlen(state));
	buf_put(out, ";", *state != '\0');
	if (o->threads) {
		buf_put(out, "[", 1);
		put_comm(out, h->comm);
		buf_put(out, " tid=", 5);
		buf_put(out, h->tid.p, h->tid.len);
		buf_put(out, "];", 2);
	}
	put_comm(out, h->comm);
	if (o->pid || o->tid) {
		buf_put(out, "-", 1);
		buf_put(out, h->pid.len ? h->pid.p : "?", h->pid.len ? h->pid.len : 1);
	}
	if (o->tid) {
		buf_put(out, "/", 1);
		buf_put(out, h->tid.p, h->tid.len);
	}
	if (o->reverse)
		reverse_frames(out, 0, &f->scratch);
	return out->failed ? INTERN_NONE : intern_put(&f->table.names, out->p, out->len);
}

static int push_frame(struct folding *f, size_t at, enum foldframe_side side, struct err *e)
{
	if (f->functions.failed)
		return err_nomem(e, "a deep stack");
	if (f->n_frames == f->max_frames &&
		base_grow(&f->frames, &f->max_frames, f->n_frames + 1, sizeof(*f->frames)) != 0)
		return err_nomem(e, "a deep stack");
	f->frames[f->n_frames++] =
		(struct frame_span){ .at = at, .len = f->functions.len - at, .side = side };
	return 0;
}

/* Add the mark between the thread's own frames and those of its waker. */
static int add_waker_mark(struct folding *f, struct err *e)
{
	size_t at = f->functions.len;

	f->has_module = false; /* that was the waker's */
	buf_put(&f->functions, "--", 2);
	return push_frame(f, at, FOLDFRAME_WAKER, e);
}

static int add_line(
	struct folding *f, bool java, const char *line, size_t len, const char **bad, struct err *e)
{
	enum foldframe_side side = FOLDFRAME_USER;
	struct perfscript_frame frame;
	size_t at = f->functions.len;
	int n;

	if (!perfscript_frame(line, len, &frame)) {
		if (!perfscript_srcline(line, len))
			*bad = not_known;
		return 0;
	}
	if (f->o->delimit || f->o->module)
		side = foldframe_side(&frame);
	if (side == FOLDFRAME_WAKER && !f->has_waker)
		return add_waker_mark(f, e);
	if (f->o->module && side == FOLDFRAME_USER && !f->has_module && !f->has_waker) {
		f->has_module = true;
		f->module = frame.dso;
	}
	n = foldframe_put(&frame, &f->o->frames, java, &f->functions, e);
	if (n == -EFBIG) {
		*bad = "a frame that expands beyond 16 MiB";
		return 0;
	}
	if (n <= 0)
		return n;
	return push_frame(f, at, side, e);
}

/* End the frames of the current waker with its name, from "comm pid/tid" or "[timer]". */
static int end_waker(struct folding *f, struct err *e)
{
	struct perfscript_str name = f->waker;
	const char *space, *end;
	size_t at = f->functions.len;

	if (!name.len)
		return 0;
	space = memrchr(name.p, ' ', name.len);
	end = name.p + name.len;
	f->waker.len = 0;
	if (!space || name.p[0] == '[')
		space = end;
	put_comm(&f->functions, (struct perfscript_str){ name.p, (size_t)(space - name.p) });
	if (space < end && (f->o->pid || f->o->tid)) {
		const char *slash = f->o->tid ? end : memchr(space, '/', (size_t)(end - space));

		buf_put(&f->functions, "-", 1);
		buf_put(&f->functions, space + 1, (size_t)((slash ? slash : end) - space) - 1);
	}
	return push_frame(f, at, FOLDFRAME_WAKER, e);
}

static int begin_waker(struct folding *f, struct perfscript_str name, struct err *e)
{
	int code = end_waker(f, e);
	size_t at = f->functions.len;

	if (!f->has_waker)
		f->n_own = f->n_frames;
	f->has_waker = true;
	f->waker = name;
	buf_put(&f->functions, "--", 2);
	return code ? code : push_frame(f, at, FOLDFRAME_WAKER, e);
}

/* A comment in a record: of a waker, one of its frames, or something else. */
static int add_comment(struct folding *f, const char *line, size_t len, const char **bad, struct err *e)
{
	struct perfscript_str name;

	if (perfscript_waker(line, len, &name))
		return begin_waker(f, name, e);
	if (!f->waker.len || len < 2 || line[1] != '\t')
		return 0;
	return add_line(f, starts(f->waker.p, f->waker.len, "java"), line + 1, len - 1, bad, e);
}

/* The frames of wakers came after the thread's own, each waker innermost first: put them before, in reverse.
 */
static void turn_wakers(struct folding *f)
{
	const size_t n = f->n_frames, own = f->n_own;
	struct frame_span *v = f->frames, swap;

	for (size_t i = 0; i < n / 2; i++)
		swap = v[i], v[i] = v[n - 1 - i], v[n - 1 - i] = swap;
	for (size_t i = 0; i < own / 2; i++)
		swap = v[n - own + i], v[n - own + i] = v[n - 1 - i], v[n - 1 - i] = swap;
}

/* Does a system call lie between frame A and its caller B? TURNED: those of a waker, which A called. */
static bool are_sides(const struct frame_span *a, const struct frame_span *b, bool turned)
{
	return turned ? a->side == FOLDFRAME_USER && b->side == FOLDFRAME_KERNEL
		      : a->side == FOLDFRAME_KERNEL && b->side == FOLDFRAME_USER;
}

/* The id of the current frames as a stack of the table. */
static uint32_t stack_of(struct folding *f)
{
	struct buf *out = &f->text;

	buf_reset(out);
	for (size_t i = f->n_frames; i-- > 0;) {
		const struct frame_span *v = &f->frames[i];

		if (i + 1 < f->n_frames && are_sides(v, v + 1, f->has_waker && i < f->n_frames - f->n_own))
			buf_put(out, ";-", 2);
		buf_put(out, ";", 1);
		buf_put(out, f->functions.p + v->at, v->len);
	}
	if (f->o->reverse && out->len) {
		/* the separator moves to the end, before the name */
		memmove(out->p, out->p + 1, out->len - 1);
		out->len--;
		reverse_frames(out, 0, &f->scratch);
		buf_put(out, ";", 1);
	}
	if (f->has_module) {
		buf_put(out, "\n", 1);
		buf_put(out, f->module.p, f->module.len);
	}
	return out->failed ? INTERN_NONE : intern_put(&f->table.stacks, out->p, out->len);
}

static int keep_name(char **where, struct perfscript_str name, struct err *e)
{
	*where = strndup(name.p, name.len);
	return *where ? 0 : err_nomem(e, "the name of an event");
}

static bool is_event(const char *name, const struct perfscript_str *event)
{
	return name && strlen(name) == event->len && memcmp(name, event->p, event->len) == 0;
}

/* Choose waits by a capture's totals, "# totals: waits=12 ...", if no event was given or seen. */
static int choose_by_totals(struct folding *f, const char *line, size_t len, struct err *e)
{
	static const char has_waits[] = "# totals: waits=", event[] = "offcpu-time";
	const size_t n = sizeof(has_waits) - 1;

	if (f->report.event || len <= n || memcmp(line, has_waits, n) != 0 || line[n] < '1' || line[n] > '9')
		return 0;
	return keep_name(&f->report.event, (struct perfscript_str){ event, sizeof(event) - 1 }, e);
}

/* Set whether the record is of the event to fold; the first event seen is chosen if none was given. */
static int choose(struct folding *f, struct record *r, struct err *e)
{
	struct folding_report *rep = &f->report;
	const struct perfscript_str *event = &r->h.event;

	r->chosen = true;
	if (!event->len)
		return 0;
	if (!rep->event)
		return keep_name(&rep->event, *event, e);
	if (is_event(rep->event, event) || is_event(f->o->also, event))
		return 0;
	r->chosen = false;
	return rep->other ? 0 : keep_name(&rep->other, *event, e);
}

static uint64_t waits_of(const struct perfscript_wait *w)
{
	return w->has_count ? w->count : 1;
}

/* Is WORD in LIST, "poll,pipe"? */
static bool is_listed(const char *list, struct perfscript_str word)
{
	for (const char *p = list, *end; *p; p = *end ? end + 1 : end) {
		end = strchrnul(p, ',');
		if ((size_t)(end - p) == word.len && memcmp(p, word.p, word.len) == 0)
			return true;
	}
	return false;
}

/* Is a wait of a kind that is to be folded? Counts it if not. 1, 0, or -ENOMEM. */
static int is_chosen_kind(struct folding *f, const struct perfscript_wait *w, struct err *e)
{
	struct folding_report *rep = &f->report;
	const struct folding_opts *o = f->o;
	bool listed = !o->n_kinds;

	if (o->no_idle && w->kind.len && is_listed("idle", w->kind))
		return 0;
	if (!w->kind.len && !listed) {
		rep->no_kind = add_saturating(rep->no_kind, waits_of(w));
		return 0;
	}
	for (size_t i = 0; i < o->n_kinds && !listed; i++)
		listed = is_listed(o->kinds[i], w->kind);
	if (listed)
		return 1;
	rep->other_kinds = add_saturating(rep->other_kinds, waits_of(w));
	return rep->other_kind ? 0 : keep_name(&rep->other_kind, w->kind, e);
}

/*
 * Divide the period of R into the parts that the options request. 1, or 0 if a weight is requested
 * that the wait does not have. *BAD: what is wrong with the record, or NULL.
 */
static int divide(struct folding *f, const struct record *r, const struct perfscript_wait *w,
	uint64_t part[PARTS], const char **bad)
{
	const struct folding_opts *o = f->o;
	const bool sample = o->wall && is_event(o->also, &r->h.event);
	const bool whole = sample || (o->weight == FOLDING_BOTH && !o->runnable && !o->wall);
	const enum part rest = sample ? PART_ON_CPU : o->wall ? PART_BLOCKED : PART_STACK;
	uint64_t period = r->h.period, runnable = w->preempted ? period : w->runnable_ns;

	part[rest] = period;
	if (r->h.overflow)
		*bad = "a period that does not fit 64 bits";
	else if (!whole && w->has_runnable &&
		 (w->runnable_ns > period || (w->has_total && w->runnable_ns > w->total_ns)))
		*bad = "a runnable_ns that is greater than the whole wait";
	if (*bad || whole)
		return 1;
	if (!w->has_runnable && !w->preempted) {
		f->report.no_runnable = add_saturating(f->report.no_runnable, waits_of(w));
		return o->weight == FOLDING_BOTH;
	}
	f->report.has_runnable = true;
	if (o->runnable || o->wall)
		part[w->preempted ? PART_PREEMPTED : PART_RUNNABLE] = runnable;
	part[rest] = o->weight == FOLDING_RUNNABLE ? runnable : period - runnable;
	return 1;
}

/*
 * The parts of the weight of a record whose comment, *W, is needed. 1, 0 if an option leaves it out, or
 * -ENOMEM. *BAD: what is wrong with the record, or NULL.
 */
static int weigh(struct folding *f, const struct record *r, struct perfscript_wait *w, uint64_t part[PARTS],
	const char **bad, struct err *e)
{
	const struct folding_opts *o = f->o;
	int code;

	if (r->wait.len && !perfscript_wait(r->wait.p, r->wait.len, w)) {
		*bad = o->by_count ? "a count that is not a 64-bit number"
				   : "a number in the comment that is not a 64-bit one";
		return 1;
	}
	f->report.has_comment |= r->wait.len != 0;
	code = o->no_idle || o->n_kinds ? is_chosen_kind(f, w, e) : 1;
	if (code <= 0)
		return code;
	if (!o->by_count)
		return divide(f, r, w, part, bad);
	part[o->runnable && w->preempted ? PART_PREEMPTED : PART_STACK] = waits_of(w);
	return 1;
}

/* The id of STACK with the frame of PART as its innermost. */
static uint32_t part_stack(struct folding *f, uint32_t stack, enum part part)
{
	const bool reverse = f->o->reverse;
	struct buf *out = &f->text;
	const char *text;
	uint32_t *id_1;
	size_t len;

	if (base_grow(&f->part_stacks, &f->max_part_stacks, stack + (size_t)1, sizeof(*f->part_stacks)) != 0)
		return INTERN_NONE;
	id_1 = &f->part_stacks[stack].id_1[part];
	if (*id_1)
		return *id_1 - 1;
	text = intern_text(&f->table.stacks, stack, &len);
	buf_reset(out);
	if (!reverse)
		buf_put(out, text, len);
	buf_put(out, ";", !reverse);
	buf_put(out, part_frames[part], strlen(part_frames[part]));
	buf_put(out, ";", reverse);
	if (reverse)
		buf_put(out, text, len);
	if (!out->failed)
		*id_1 = intern_put(&f->table.stacks, out->p, out->len) + 1;
	return *id_1 - 1;
}

/* The id of STACK with KIND as its innermost frame. */
static uint32_t kind_stack(struct folding *f, uint32_t stack, struct perfscript_str kind)
{
	const bool reverse = f->o->reverse;
	struct buf *out = &f->text;
	const char *text;
	size_t len;

	text = intern_text(&f->table.stacks, stack, &len);
	buf_reset(out);
	if (!reverse)
		buf_put(out, text, len);
	buf_put(out, ";", !reverse);
	buf_put(out, "[", 1);
	for (size_t i = 0; i < kind.len; i++)
		buf_put(out, kind.p[i] == ';' ? ":" : kind.p + i, 1);
	buf_put(out, "]", 1);
	buf_put(out, ";", reverse);
	if (reverse)
		buf_put(out, text, len);
	return out->failed ? INTERN_NONE : intern_put(&f->table.stacks, out->p, out->len);
}

/* Add the parts of R that have a frame of their own, in its STACK or before its NAME. */
static int add_parts(struct folding *f, const struct record *r, uint32_t name, uint32_t stack,
	const uint64_t part[PARTS], struct err *e)
{
	for (enum part i = PART_RUNNABLE; i < PARTS; i++) {
		uint32_t own = stack, pair;

		if (!part[i])
			continue;
		if (f->o->side_by_side)
			name = name_of(f, &r->h, NULL, part_frames[i]);
		else
			own = part_stack(f, stack, i);
		pair = name == INTERN_NONE || own == INTERN_NONE ? FOLDTAB_NONE
								 : foldtab_pair(&f->table, name, own);
		if (pair == FOLDTAB_NONE)
			return err_nomem(e, "the distinct stacks");
		f->table.pairs[pair].sum += part[i];
	}
	return 0;
}

/* Add R to the sum of its stack; the cached V avoids looking up their pair. */
static int account(struct folding *f, const struct paragraphs *in, const struct record *r,
	struct bodycache_value *v, struct err *e)
{
	const struct folding_client *client = f->o->client;
	struct perfscript_wait wait = { 0 };
	uint64_t part[PARTS] = { 0 };
	const char *bad = NULL;
	uint32_t name, stack = v->stack;
	int code = 1;

	if (!r->chosen) {
		if (!client || !client->other || !perfscript_wait(r->wait.p, r->wait.len, &wait) ||
			!client->other(client->ctx, &r->h, &wait))
			f->report.filtered++;
		return 0;
	}
	if (f->needs_comment) {
		code = weigh(f, r, &wait, part, &bad, e);
	} else {
		part[PART_STACK] = r->h.period;
		bad = r->h.overflow ? "a period that does not fit 64 bits" : NULL;
	}
	if (code < 0)
		return code;
	if (bad) {
		malformed(f, in, r->line, bad);
		return 0;
	}
	f->report.records++;
	if (!code)
		return 0;
	f->report.folded++;
	f->report.with_waker += v->has_waker;
	f->report.samples += part[PART_ON_CPU] != 0;
	name = name_of(f, &r->h, &wait, "");
	if (f->o->kind_frames && wait.kind.len && stack != INTERN_NONE)
		stack = kind_stack(f, stack, wait.kind);
	if (name == INTERN_NONE || stack == INTERN_NONE)
		return err_nomem(e, "the distinct stacks");
	code = f->o->runnable || f->o->wall ? add_parts(f, r, name, stack, part, e) : 0;
	if (code || (f->skips_zeroes && !part[PART_STACK]))
		return code;
	if (stack != v->stack) {
		/* the cache has the pair of the stack alone */
		const uint32_t pair = foldtab_pair(&f->table, name, stack);

		if (pair == FOLDTAB_NONE)
			return err_nomem(e, "the distinct stacks");
		f->table.pairs[pair].sum += part[PART_STACK];
		return 0;
	}
	if (name != v->name) {
		v->pair = foldtab_pair(&f->table, name, v->stack);
		v->name = name;
	}
	if (v->pair == FOLDTAB_NONE)
		return err_nomem(e, "the distinct stacks");
	f->table.pairs[v->pair].sum += part[PART_STACK];
	if (!client)
		return 0;
	code = client->added(client->ctx,
		&(struct folding_added){ .pair = v->pair,
			.weight = part[PART_STACK],
			.header = &r->h,
			.wait = &wait,
			.waker = { r->body + v->waker_at, v->waker_len } },
		&bad, e);
	if (code > 0)
		malformed(f, in, r->line, bad);
	return MIN(code, 0);
}

/* A record without a blank line at its end. A record that is not a sample never has one. */
static void unended(struct folding *f, const struct paragraphs *in, const struct record *r, const char *why)
{
	if (f->n_frames || !perfscript_is_side_band(r->line, r->line_len))
		malformed(f, in, r->line, why);
}

/*
 * Read the lines of an unknown body, up to its end or to the next header (with its "# wait:"
 * comment), to which *STOP then points.
 */
static int walk_body(struct folding *f, const struct paragraphs *in, const struct record *r,
	const char **stop, uint32_t *n_bad, struct err *e)
{
	const char *wait = NULL;
	struct perfscript_header h;

	f->n_frames = 0;
	f->has_waker = false;
	f->waker.len = f->first_waker.len = 0;
	f->has_module = false;
	buf_reset(&f->functions);
	*n_bad = 0;
	for (const char *p = r->body, *next; p < r->end; p = next) {
		size_t len = (size_t)((const char *)memchr(p, '\n', (size_t)(r->end - p)) - p);
		const char *bad = NULL;
		int code = 0;

		next = p + len + 1;
		if (*p == '#') {
			wait = perfscript_details(p, len) ? p : NULL;
			if (!f->first_waker.len)
				perfscript_waker(p, len, &f->first_waker);
			if (f->o->wakers)
				code = add_comment(f, p, len, &bad, e);
		} else if (perfscript_header(p, len, &h)) {
			*stop = wait ? wait : p;
			return 0;
		} else {
			wait = NULL;
			code = add_line(f, r->java, p, len, &bad, e);
		}
		if (code)
			return code;
		if (bad) {
			++*n_bad;
			malformed(f, in, p, bad);
		}
	}
	*stop = r->end;
	if (end_waker(f, e) != 0)
		return -ENOMEM;
	if (f->has_waker)
		turn_wakers(f);
	return 0;
}

/* Fold a body that was not found in the cache. */
static int fold_body(struct folding *f, const struct paragraphs *in, const struct record *r,
	const char **next, struct err *e)
{
	struct bodycache_value v = { .name = INTERN_NONE };
	int code = walk_body(f, in, r, next, &v.bad, e);

	if (code)
		return code;
	if (*next < r->end) {
		unended(f, in, r, "a record without a blank line at its end");
		return 0;
	}
	if (r->how != PARAGRAPH_BLANK) {
		unended(f, in, r,
			r->how == PARAGRAPH_EOF ? "a record cut short by the end of the input"
						: "a record of more than 16 MiB");
		f->state = SKIPPING;
		return 0;
	}
	v.has_waker = f->has_waker;
	if (f->first_waker.len) {
		v.waker_at = (uint32_t)(f->first_waker.p - r->body);
		v.waker_len = (uint32_t)f->first_waker.len;
	}
	v.stack = r->chosen ? stack_of(f) : INTERN_NONE;
	if (r->chosen && v.stack == INTERN_NONE)
		return err_nomem(e, "the distinct stacks");
	code = account(f, in, r, &v, e);
	if (!code && r->chosen && r->key.hash)
		code = bodycache_keep(&f->cache[r->java], &r->key, &v, e);
	return code;
}

/*
 * Fold a record from its header on; *NEXT is where reading continues. Only the first record of a
 * paragraph is looked up by its whole body: if more follow, no body reaches the paragraph's end,
 * and hashing each body up to that end would take quadratic time.
 */
static int fold_record(struct folding *f, const struct paragraphs *in, struct record *r, bool first,
	const char **next, struct err *e)
{
	struct bodycache_value *v = NULL;
	int code = choose(f, r, e);

	if (code)
		return code;
	if (first && r->how == PARAGRAPH_BLANK)
		v = bodycache_find(&f->cache[r->java], &r->key);
	else
		r->key.hash = 0;
	if (!v)
		return fold_body(f, in, r, next, e);
	foldtab_prefetch(&f->table, v->pair);
	*next = r->end;
	/* the first bad line was reported when the body was read */
	f->report.malformed += v->bad;
	return account(f, in, r, v, e);
}

/* A line outside a record. */
static void stray(struct folding *f, const struct paragraphs *in, const char *line, size_t len)
{
	struct perfscript_frame frame;

	if (!perfscript_frame(line, len, &frame))
		malformed(f, in, line, not_known);
	else if (f->state != SKIPPING)
		malformed(f, in, line, "a frame outside a record");
}

int folding_add(struct folding *f, const struct paragraphs *in, const struct paragraph *para, struct err *e)
{
	const struct folding_client *client = f->o->client;
	const char *p = para->text, *end = p + para->len, *next;
	struct record r = { .end = end, .how = para->end };
	bool first = true;
	int code = 0;

	for (; p < end && !code; p = next) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t len = (size_t)(nl - p);

		next = nl + 1;
		if (*p == '#') {
			r.wait = (struct perfscript_str){ .p = p,
				.len = perfscript_details(p, len) ? len : 0 };
			if (r.wait.len)
				continue;
			if (client)
				client->comment(client->ctx, p, len);
			code = choose_by_totals(f, p, len, e);
			continue;
		}
		r.java = starts(p, len, "java");
		if (first)
			r.key = bodycache_expect(&f->cache[r.java], next, (size_t)(end - next));
		if (para->end == PARAGRAPH_CUT_LINE && next == end) {
			malformed(f, in, p, "a line of more than 16 MiB");
		} else if (perfscript_header(p, len, &r.h)) {
			r.line = p;
			r.line_len = len;
			r.body = next;
			f->state = OUTSIDE;
			code = fold_record(f, in, &r, first, &next, e);
			first = false;
		} else {
			stray(f, in, p, len);
		}
		r.wait.len = 0;
	}
	if (para->end == PARAGRAPH_BLANK)
		f->state = OUTSIDE;
	return code;
}

int folding_run(struct folding *f, struct paragraphs *in, struct err *e)
{
	struct paragraph para;
	int code;

	while ((code = paragraphs_next(in, &para, e)) > 0) {
		code = folding_add(f, in, &para, e);
		if (code)
			return code;
	}
	return code;
}
