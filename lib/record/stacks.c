/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/stacks.h"
#include "base/hash.h"
#include "base/intern.h"

#include <string.h>

#define KERNEL_SPAN (UINT64_C(1) << 30)
#define SMALL_PLACES UINT64_C(0xffff900000000000) /* each for one symbol or one address */
#define SMALL_SPAN (UINT64_C(1) << 24)
#define SMALL_MAX (1u << 20)
#define MODULE_PLACES UINT64_C(0xffffa00000000000)
#define MODULE_SPAN (UINT64_C(1) << 30)
#define MODULE_MAX (1u << 14)

/* The text of a module is one piece: what is farther from its first symbol is not part of it. */
#define MODULE_REACH (UINT64_C(64) << 20)

struct kernel_mask {
	struct idmap small; /* start of the symbol, or the address -> number of its place */
	struct idmap modules; /* hash of the name -> number of its place */
	uint64_t *anchors; /* for each place of a module: the real address of its first symbol */
	size_t n_anchors, max_anchors;
	uint32_t n_small;
};

static int kernel_mask_new(struct kernel_mask **ret, struct err *e)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : err_nomem(e, "the table of hidden addresses");
}

void kernel_mask_free(struct kernel_mask *h)
{
	if (!h)
		return;
	idmap_free(&h->small);
	idmap_free(&h->modules);
	free(h->anchors);
	free(h);
}

/* The address at OFFSET in the place of KEY. */
static uint64_t small_place(struct kernel_mask *h, uint64_t key, uint64_t offset)
{
	bool added = false;
	uint32_t at = idmap_put(&h->small, 0, key, h->n_small, &added);

	h->n_small += added;
	return SMALL_PLACES + MIN(at, SMALL_MAX) * SMALL_SPAN + MIN(offset, SMALL_SPAN - 1);
}

/*
 * The number of the place of module NAME; UINT32_MAX = there is none. A new
 * place is anchored at START, the first symbol that was met.
 */
static uint32_t module_place(struct kernel_mask *h, const char *name, uint64_t start)
{
	uint64_t key = hash_bytes(name, strlen(name), 0);
	const struct idmap_slot *slot = idmap_find(&h->modules, 0, key);

	if (slot)
		return slot->value;
	if (h->n_anchors == MODULE_MAX ||
		base_grow(&h->anchors, &h->max_anchors, h->n_anchors + 1, sizeof(*h->anchors)) != 0 ||
		idmap_put(&h->modules, 0, key, (uint32_t)h->n_anchors, NULL) != h->n_anchors)
		return UINT32_MAX;
	h->anchors[h->n_anchors] = start;
	return (uint32_t)h->n_anchors++;
}

static bool near(uint64_t a, uint64_t b)
{
	return (a > b ? a - b : b - a) < MODULE_REACH;
}

/*
 * The substitute for ADDR, which belongs to SYM (NULL = none), in a kernel with
 * _stext at STEXT (0 = not known). Always the same for the same ADDR and SYM.
 * If out of memory, the place is meaningless and shared with other addresses.
 */
static uint64_t kernel_mask_address(
	struct kernel_mask *h, const struct kallsyms_sym *sym, uint64_t stext, uint64_t addr)
{
	uint32_t at;

	if (!sym)
		return small_place(h, addr, 0);
	if (!*sym->module && stext && sym->start >= stext && addr - stext < KERNEL_SPAN)
		return addr - stext + KERNEL_MASK_STEXT;
	if (!*sym->module || strcmp(sym->module, "bpf") == 0)
		return small_place(h, sym->start, addr - sym->start);
	at = module_place(h, sym->module, sym->start);
	if (at == UINT32_MAX || !near(addr, h->anchors[at]) || !near(sym->start, h->anchors[at]))
		return small_place(h, sym->start, addr - sym->start);
	return MODULE_PLACES + at * MODULE_SPAN + MODULE_SPAN / 2 + addr - h->anchors[at];
}

struct stack {
	uint32_t cap_id; /* CAPTURE_NONE until it is emitted; then its frames are freed or kept */
	uint8_t kind, verdict, reason;
	bool traced; /* a kernel stack that begins with frames of the tracer */
	bool waking; /* and then with those of the wake-up itself */
	bool sure; /* stack_table_sure() */
	int32_t error;
	uint32_t epoch; /* in which it was used last: stack_table_turn() */
	uint32_t len, n_exact;
	uint16_t n_scripts;
	uint8_t runtime; /* number of the interpreter's file, if there are script frames */
	uint64_t stop_pc;
	uint64_t *frames; /* `len` frames, `n_scripts` pairs of words, the indexes of the exact frames */
};

struct stack_table {
	struct stack *stacks;
	size_t n, cap;
	struct idmap by_id[2]; /* kernel, user: identity -> stack */
	struct idmap symbols; /* starts of the symbols that were written */
	struct idmap addresses; /* kernel addresses whose symbol was found */
	const struct kallsyms *ks;
	uint64_t sched_start, sched_end; /* .sched.text */
	uint64_t waking_start, waking_end; /* try_to_wake_up() */
	uint64_t stext;
	struct kernel_mask *mask; /* NULL = kernel addresses are written as they are */
	bool wants_symbols;
	bool marked;
	struct runtimes *runtimes; /* the caller's; NULL = none */
	struct cap_script_at *places; /* scratch: those of the stack that is being written */
	size_t max_places;
	uint32_t depth; /* maximum number of frames of a stack */
	uint32_t emitted;
	uint32_t epoch;
	uint64_t keep_bytes; /* bytes left for frames of written stacks */
	struct stack_table_stats stats;
};

int stack_table_new(uint32_t depth, struct stack_table **ret, struct err *e)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return err_nomem(e, "the table of stacks");
	(*ret)->depth = depth;
	return 0;
}

void stack_table_free(struct stack_table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n; i++)
		free(t->stacks[i].frames);
	free(t->stacks);
	idmap_free(&t->by_id[0]);
	idmap_free(&t->by_id[1]);
	idmap_free(&t->symbols);
	idmap_free(&t->addresses);
	kernel_mask_free(t->mask);
	free(t->places);
	free(t);
}

int stack_table_mask(struct stack_table *t, struct err *e)
{
	return kernel_mask_new(&t->mask, e);
}

void stack_table_marked(struct stack_table *t)
{
	t->marked = true;
}

void stack_table_runtimes(struct stack_table *t, struct runtimes *r)
{
	t->runtimes = r;
}

void stack_table_symbols(struct stack_table *t, const struct kallsyms *ks)
{
	struct kallsyms_sym waking;

	t->ks = ks;
	t->wants_symbols = false;
	t->sched_start = ks ? kallsyms_address(ks, "__sched_text_start") : 0;
	t->sched_end = ks ? kallsyms_address(ks, "__sched_text_end") : 0;
	t->stext = ks ? kallsyms_address(ks, "_stext") : 0;
	t->waking_start = ks ? kallsyms_address(ks, "try_to_wake_up") : 0;
	t->waking_end = t->waking_start && kallsyms_find(ks, t->waking_start, &waking) ? waking.end : 0;
}

/* Its code, hot and cold, is less than 4 KiB. It lies in .sched.text, far from what traces and from BPF
 * programs. */
#define SCHEDULE_BYTES 4096

void stack_table_schedule(struct stack_table *t, uint64_t address)
{
	if (t->ks || !address)
		return;
	t->sched_start = address - SCHEDULE_BYTES;
	t->sched_end = address + SCHEDULE_BYTES;
}

static struct idmap *ids(struct stack_table *t, unsigned int kind)
{
	return &t->by_id[kind == CAPTURE_STACK_USER];
}

/* The stack ID of KIND, a new and empty one if *ADDED; NULL if out of memory. */
static struct stack *slot(
	struct stack_table *t, unsigned int kind, const struct offcpu_stack_id *id, bool *added)
{
	uint32_t at;

	if (base_grow(&t->stacks, &t->cap, t->n + 1, sizeof(*t->stacks)) != 0)
		return NULL;
	at = idmap_put(ids(t, kind), id->hi, id->lo, (uint32_t)t->n, added);
	if (at == UINT32_MAX)
		return NULL;
	if (*added)
		t->stacks[t->n++] = (struct stack){ .cap_id = CAPTURE_NONE, .kind = (uint8_t)kind };
	t->stacks[at].epoch = t->epoch;
	return &t->stacks[at];
}

static uint32_t *exact_of(const struct stack *s)
{
	return (uint32_t *)(void *)(s->frames + s->len + 2 * s->n_scripts);
}

static size_t frames_bytes(const struct stack *s)
{
	return (s->len + 2u * s->n_scripts) * sizeof(*s->frames) + s->n_exact * sizeof(uint32_t);
}

/* The words of script frame I. */
static const uint64_t *script_of(const struct stack *s, uint32_t i)
{
	return s->frames + s->len + (size_t)2 * i;
}

/* Is frame I of EV marked as an exact PC? The first frame needs no mark. */
static bool is_marked(const struct stack_table *t, const struct offcpu_ev_stack *ev, uint32_t i)
{
	return t->marked && ev->kind == CAPTURE_STACK_USER && i && (ev->frames[i] & OFFCPU_EXACT);
}

/* Copy the first LEN frames of EV to S, without the marks, and its script frames. False if out of memory. */
static bool copy_frames(
	const struct stack_table *t, struct stack *s, const struct offcpu_ev_stack *ev, uint32_t len)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < len; i++)
		n += is_marked(t, ev, i);
	s->len = len;
	s->n_exact = n;
	s->n_scripts = t->runtimes && ev->len + 2u * ev->scripts <= OFFCPU_FRAMES_MAX ? ev->scripts : 0;
	s->runtime = ev->runtime;
	s->frames = malloc(frames_bytes(s));
	if (!s->frames) {
		s->len = s->n_exact = s->n_scripts = 0;
		return false;
	}
	memcpy(s->frames, ev->frames, len * sizeof(*s->frames));
	memcpy(s->frames + len, ev->frames + ev->len, (size_t)2 * s->n_scripts * sizeof(*s->frames));
	n = 0;
	for (uint32_t i = 0; n < s->n_exact; i++) {
		if (!is_marked(t, ev, i))
			continue;
		s->frames[i] &= ~OFFCPU_EXACT;
		exact_of(s)[n++] = i;
	}
	return true;
}

void stack_table_add(struct stack_table *t, const struct offcpu_ev_stack *ev)
{
	struct stack *s;
	bool added;
	uint32_t len = ev->len;

	s = slot(t, ev->kind, &ev->id, &added);
	/* ignore a known stack; one that was reported lost and sent again is used by the next samples */
	if (!s || (!added && s->reason != REASON_LOST))
		return;
	/* a frame-pointer chain often ends in zeros, because the program's entry cleared the register */
	while (ev->kind == CAPTURE_STACK_USER && len > 1 && !ev->frames[len - 1])
		len--;
	if (!copy_frames(t, s, ev, len))
		return;
	s->cap_id = CAPTURE_NONE;
	s->traced = ev->kind == CAPTURE_STACK_KERNEL && ev->script_reason != OFFCPU_NOT_TRACED;
	s->waking = ev->kind == CAPTURE_STACK_KERNEL && ev->script_reason == OFFCPU_WAKING;
	s->verdict = ev->verdict;
	s->reason = (uint8_t)ev->reason;
	s->stop_pc = ev->stop_pc;
}

/*
 * The number of leading frames that belong to the tracer: those before the
 * first one of the scheduler. At a classic tracepoint, Linux 5.10 reports the
 * scheduler's frame twice, although it does not call itself: the first one is
 * skipped too. At a wake-up, those up to try_to_wake_up().
 */
static uint32_t own_frames(const struct stack_table *t, const struct stack *s)
{
	for (uint32_t i = 0; s->waking && i < s->len && i < OFFCPU_OWN_FRAMES; i++)
		if (s->frames[i] > t->waking_start && s->frames[i] <= t->waking_end)
			return i + 1;
	for (uint32_t i = 0; !s->waking && i < s->len && i < OFFCPU_OWN_FRAMES; i++)
		if (s->frames[i] >= t->sched_start && s->frames[i] < t->sched_end)
			return i + 1 < s->len && s->frames[i + 1] == s->frames[i] ? i + 1 : i;
	return 0;
}

/* ADDR is a return address, so look up the byte before it, which belongs to the call. */
static bool find_symbol(const struct stack_table *t, uint64_t addr, struct kallsyms_sym *ret)
{
	return t->ks && kallsyms_find(t->ks, addr - 1, ret);
}

/* The address that the capture gets for ADDR, which belongs to SYM (NULL = none). */
static uint64_t shown(const struct stack_table *t, const struct kallsyms_sym *sym, uint64_t addr)
{
	return t->mask ? kernel_mask_address(t->mask, sym, t->stext, addr) : addr;
}

bool stack_table_scheduler(const struct stack_table *t, uint64_t *start, uint64_t *end)
{
	struct kallsyms_sym first, last;

	if (!t->ks || !t->sched_start || t->sched_end <= t->sched_start ||
		!kallsyms_find(t->ks, t->sched_start, &first) ||
		!kallsyms_find(t->ks, t->sched_end - 1, &last))
		return false;
	*start = shown(t, &first, t->sched_start);
	*end = shown(t, &last, t->sched_end - 1) + 1;
	return *start < *end;
}

static void emit_symbol(struct stack_table *t, uint64_t addr, struct cap_writer *w)
{
	struct kallsyms_sym sym;
	bool added;

	/* mode procfs writes the symbols of the numbers that it uses as addresses */
	if (addr >= CAPTURE_SYNTHETIC_START || idmap_find(&t->addresses, 0, addr))
		return;
	if (!find_symbol(t, addr, &sym)) {
		t->wants_symbols = true;
		t->stats.kernel_unnamed++;
		return;
	}
	idmap_put(&t->addresses, 0, addr, 0, NULL);
	idmap_put(&t->symbols, 0, sym.start, 0, &added);
	if (added)
		cap_writer_ksym(w, &(struct cap_ksym){ .start = shown(t, &sym, sym.start),
					   .end = shown(t, &sym, sym.end),
					   .name = sym.name,
					   .module = sym.module });
}

static void mask_frames(const struct stack_table *t, uint64_t *frames, uint32_t n)
{
	struct kallsyms_sym sym;

	for (uint32_t i = 0; t->mask && i < n; i++)
		frames[i] = shown(t, find_symbol(t, frames[i], &sym) ? &sym : NULL, frames[i]);
}

/* How many native and script frames are among the first DEPTH of S, in the order of calls. */
static void cut(const struct stack *s, uint32_t depth, uint32_t *natives, uint32_t *scripts)
{
	uint32_t i = 0, k = 0;

	while (i < s->len && i + k < depth) {
		i++;
		while (k < s->n_scripts && i + k < depth && SCRIPT_AT(script_of(s, k)[0]) == i - 1)
			k++;
	}
	*natives = i;
	*scripts = k;
}

/* Write the script frames of S and refer to them in OUT. */
static void emit_scripts(
	struct stack_table *t, const struct stack *s, uint32_t n, struct cap_stack *out, struct cap_writer *w)
{
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t *words = script_of(s, i);
		uint32_t ids[RUNTIMES_INLINED_MAX], k = out->n_scripts, before = k ? t->places[k - 1].at : 0;
		size_t found = runtimes_frames(t->runtimes, s->runtime, words[0], words[1], w, ids);

		if (!found || base_grow(&t->places, &t->max_places, k + found, sizeof(*t->places)) != 0)
			break;
		for (size_t j = 0; j < found; j++)
			t->places[k + j] = (struct cap_script_at){
				.at = MAX(MIN(SCRIPT_AT(words[0]), out->len - 1), before), .frame = ids[j]
			};
		out->n_scripts = (uint32_t)(k + found);
	}
	out->scripts = t->places;
}

static void emit_frames(struct stack_table *t, struct stack *s, struct cap_stack *out, struct cap_writer *w)
{
	uint32_t skip = s->traced ? own_frames(t, s) : 0, scripts = s->n_scripts;

	out->len = s->len - skip;
	out->frames = s->frames + skip;
	/* kernel stacks have no exact frames, so the indexes need no shift */
	out->n_exact = s->n_exact;
	out->exact = exact_of(s);
	/* frames that replace native ones are counted already */
	if (out->len + (runtimes_instead(t->runtimes, s->runtime) ? 0 : s->n_scripts) > t->depth) {
		cut(s, t->depth, &out->len, &scripts);
		capture_truncate(out);
	}
	emit_scripts(t, s, scripts, out, w);
	while (out->n_exact && out->exact[out->n_exact - 1] >= out->len)
		out->n_exact--;
	if (s->kind != CAPTURE_STACK_KERNEL)
		return;
	for (uint32_t i = 0; i < out->len; i++)
		emit_symbol(t, out->frames[i], w);
	mask_frames(t, s->frames + skip, out->len);
}

/* Call it after S was written: free its frames, or keep them if there is room. */
static void drop_frames(struct stack_table *t, struct stack *s)
{
	uint64_t bytes = frames_bytes(s);

	if (s->kind == CAPTURE_STACK_USER && bytes <= t->keep_bytes) {
		t->keep_bytes -= bytes;
		return;
	}
	free(s->frames);
	s->frames = NULL;
}

void stack_table_keep(struct stack_table *t, uint64_t bytes)
{
	t->keep_bytes = bytes;
}

bool stack_table_frames(const struct stack_table *t, const struct offcpu_stack_id *id, struct cap_stack *ret)
{
	const struct idmap_slot *at = idmap_find(&t->by_id[1], id->hi, id->lo);
	const struct stack *s = at ? &t->stacks[at->value] : NULL;

	*ret = (struct cap_stack){ .kind = CAPTURE_STACK_USER };
	if (!s)
		return false;
	ret->len = MIN(s->len, t->depth);
	if (!s->len || !s->frames)
		return !s->len;
	ret->frames = s->frames;
	ret->exact = exact_of(s);
	ret->n_exact = s->n_exact;
	return true;
}

uint32_t stack_table_emit(struct stack_table *t, unsigned int kind, const struct offcpu_stack_id *id,
	struct cap_writer *w, struct stack_table_end *end)
{
	bool added;
	struct stack *s = slot(t, kind, id, &added);
	struct cap_stack out = { 0 };

	if (!s)
		return CAPTURE_NONE;
	if (added) {
		s->verdict = VERDICT_FAILED;
		s->reason = id->hi ? REASON_LOST : (uint8_t)(id->lo >> 32);
		s->error = id->hi ? 0 : (int32_t)(uint32_t)id->lo;
	}
	if (end)
		*end = (struct stack_table_end){ s->verdict, s->reason };
	if (s->reason == REASON_LOST)
		t->stats.lost++;
	if (s->cap_id != CAPTURE_NONE)
		return s->cap_id;
	s->cap_id = t->emitted++;
	t->stats.stacks++;
	out = (struct cap_stack){ .id = s->cap_id,
		.kind = s->kind,
		.verdict = s->verdict,
		.reason = s->reason,
		.error = s->error,
		.stop_pc = s->stop_pc };
	if (s->len)
		emit_frames(t, s, &out, w);
	t->stats.truncated += capture_truncated(out.verdict, out.reason);
	cap_writer_stack(w, &out);
	drop_frames(t, s);
	return s->cap_id;
}

bool stack_table_user(const struct stack_table *t, const struct offcpu_stack_id *id, struct cap_stack *ret)
{
	const struct idmap_slot *at = idmap_find(&t->by_id[1], id->hi, id->lo);
	const struct stack *s = at ? &t->stacks[at->value] : NULL;

	if (!s || s->cap_id != CAPTURE_NONE || !s->frames)
		return false;
	*ret = (struct cap_stack){ .kind = s->kind,
		.len = MIN(s->len, t->depth),
		.frames = s->frames,
		.n_exact = s->n_exact,
		.exact = exact_of(s) };
	return true;
}

void stack_table_sure(struct stack_table *t, const struct offcpu_stack_id *id)
{
	const struct idmap_slot *at = idmap_find(&t->by_id[1], id->hi, id->lo);

	if (at)
		t->stacks[at->value].sure = true;
}

/* S becomes the first N frames of FROM, with the script frames between them. False if out of memory. */
static bool cut_frames(const struct stack *from, uint32_t n, struct stack *s)
{
	uint32_t n_exact = 0, n_scripts = 0;

	while (n_exact < from->n_exact && exact_of(from)[n_exact] < n)
		n_exact++;
	while (n_scripts < from->n_scripts && SCRIPT_AT(script_of(from, n_scripts)[0]) < n)
		n_scripts++;
	s->frames = malloc((n + 2 * (size_t)n_scripts) * sizeof(*s->frames) + n_exact * sizeof(uint32_t));
	if (!s->frames)
		return false;
	s->len = n;
	s->n_exact = n_exact;
	s->n_scripts = (uint16_t)n_scripts;
	s->runtime = from->runtime;
	memcpy(s->frames, from->frames, n * sizeof(*s->frames));
	memcpy(s->frames + n, from->frames + from->len, 2 * (size_t)n_scripts * sizeof(*s->frames));
	memcpy(exact_of(s), exact_of(from), n_exact * sizeof(uint32_t));
	return true;
}

bool stack_table_cut(struct stack_table *t, const struct offcpu_stack_id *id, uint32_t n, uint8_t reason,
	struct offcpu_stack_id *ret)
{
	const struct idmap_slot *at = idmap_find(&t->by_id[1], id->hi, id->lo);
	struct offcpu_stack_id cut;
	struct stack *s;
	bool added;

	if (!at || t->stacks[at->value].sure || !t->stacks[at->value].frames || n > t->stacks[at->value].len)
		return false;
	/* BPF's ids have a secret in them, so these do */
	cut.hi = hash_bytes(id, sizeof(*id), n) | 1;
	cut.lo = hash_bytes(id, sizeof(*id), n ^ HASH_K1);
	s = slot(t, CAPTURE_STACK_USER, &cut, &added);
	if (!s)
		return false;
	*ret = cut;
	if (!added)
		return true;
	s->verdict = VERDICT_STOPPED;
	s->reason = reason;
	at = idmap_find(&t->by_id[1], id->hi, id->lo);
	if (!cut_frames(&t->stacks[at->value], n, s))
		return true; /* without frames, it is as true */
	s->stop_pc = s->frames[n - 1];
	return true;
}

bool stack_table_has(const struct stack_table *t, const struct offcpu_stack_id *id)
{
	return idmap_find(&t->by_id[1], id->hi, id->lo) != NULL;
}

size_t stack_table_count(const struct stack_table *t)
{
	return t->n;
}

void stack_table_turn(struct stack_table *t)
{
	t->epoch++;
}

void stack_table_hold(struct stack_table *t, unsigned int kind, const struct offcpu_stack_id *id)
{
	const struct idmap_slot *at = idmap_find(ids(t, kind), id->hi, id->lo);

	if (at)
		t->stacks[at->value].epoch = t->epoch;
}

/* Set *RET to the part of M whose stacks are in use, with their numbers once the others are removed. */
static bool ids_in_use(
	const struct stack_table *t, const struct idmap *m, const uint32_t *numbers, struct idmap *ret)
{
	for (size_t i = 0; i < m->n; i++) {
		const struct idmap_slot *s = &m->slots[i];

		if (t->stacks[s->value].epoch == t->epoch &&
			idmap_put(ret, s->hi, s->lo, numbers[s->value], NULL) == UINT32_MAX)
			return false;
	}
	return true;
}

static void release(struct stack_table *t, struct stack *s)
{
	if (s->frames && s->cap_id != CAPTURE_NONE && s->kind == CAPTURE_STACK_USER)
		t->keep_bytes += frames_bytes(s);
	free(s->frames);
}

void stack_table_forget(struct stack_table *t)
{
	_cleanup_free_ uint32_t *numbers = calloc(t->n + 1, sizeof(*numbers));
	struct idmap by_id[2] = { 0 };
	size_t kept = 0;

	for (size_t i = 0; numbers && i < t->n; i++) {
		numbers[i] = (uint32_t)kept;
		kept += t->stacks[i].epoch == t->epoch;
	}
	if (!numbers || !ids_in_use(t, &t->by_id[0], numbers, &by_id[0]) ||
		!ids_in_use(t, &t->by_id[1], numbers, &by_id[1])) {
		idmap_free(&by_id[0]);
		idmap_free(&by_id[1]);
		return;
	}
	for (size_t i = 0; i < t->n; i++) {
		if (t->stacks[i].epoch == t->epoch)
			t->stacks[numbers[i]] = t->stacks[i];
		else
			release(t, &t->stacks[i]);
	}
	t->n = kept;
	for (int i = 0; i < 2; i++) {
		idmap_free(&t->by_id[i]);
		t->by_id[i] = by_id[i];
	}
}

bool stack_table_wants_symbols(struct stack_table *t)
{
	bool wants = t->wants_symbols;

	t->wants_symbols = false;
	return wants;
}

void stack_table_stats(const struct stack_table *t, struct stack_table_stats *ret)
{
	*ret = t->stats;
}
