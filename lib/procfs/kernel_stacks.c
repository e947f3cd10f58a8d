/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/kernel_stacks.h"
#include "base/hash.h"
#include "base/intern.h"

#include <string.h>
#include <sys/random.h>

static const char *const names[] = {
#include <syscalls.h>
};

const char *sysname_find(int32_t nr)
{
	return nr >= 0 && (size_t)nr < ARRAY_LEN(names) ? names[nr] : NULL;
}

#define NAMES_MAX ((CAPTURE_SYNTHETIC_END - CAPTURE_SYNTHETIC_START) / CAPTURE_SYNTHETIC_STEP)
#define NAME_BYTES 600 /* KSYM_NAME_LEN of Linux is 512 */
#define PLACES_MAX 65536 /* texts of frames whose address is cached */
#define KERNEL_FRAMES_MAX 64 /* MAX_STACK_TRACE_DEPTH of fs/proc/base.c */

struct kernel_stacks {
	struct kernel_stacks_opts o;
	struct stack_table *tab;
	struct intern names; /* id = number */
	uint32_t written; /* of them */
	uint64_t overflow;
	struct intern places; /* text of a frame -> addresses[id] */
	uint64_t *addresses;
	size_t max_addresses;
	uint64_t seed[2];
	struct offcpu_ev_stack ev; /* the stack being made */
};

int kernel_stacks_new(const struct kernel_stacks_opts *o, struct stack_table *tab, struct kernel_stacks **ret,
	struct err *e)
{
	struct kernel_stacks *p = calloc(1, sizeof(*p));

	if (!p)
		return err_nomem(e, "the stacks");
	p->o = *o;
	p->tab = tab;
	if (getrandom(p->seed, sizeof(p->seed), GRND_NONBLOCK) != sizeof(p->seed))
		p->seed[0] = 1, p->seed[1] = 2;
	p->names.seed = p->places.seed = p->seed[0];
	stack_table_marked(tab);
	*ret = p;
	return 0;
}

void kernel_stacks_free(struct kernel_stacks *p)
{
	if (!p)
		return;
	intern_free(&p->names);
	intern_free(&p->places);
	free(p->addresses);
	free(p);
}

/* --- names in place of addresses --- */

/* The last number is for names that get none of their own. */
static uint64_t number_of(struct kernel_stacks *p, const char *name, size_t len)
{
	uint64_t hash = intern_hash(&p->names, name, len);
	uint32_t id = intern_find(&p->names, name, len, hash);

	if (id == INTERN_NONE && p->names.n < NAMES_MAX - 1)
		id = intern_add(&p->names, name, len, hash);
	if (id == INTERN_NONE) {
		p->overflow++;
		return CAPTURE_SYNTHETIC_START + NAMES_MAX * CAPTURE_SYNTHETIC_STEP;
	}
	/* the end of the number's range: symbols are looked up one byte before an address */
	return CAPTURE_SYNTHETIC_START + (uint64_t)(id + 1) * CAPTURE_SYNTHETIC_STEP;
}

void kernel_stacks_write(struct kernel_stacks *p, struct cap_writer *w)
{
	for (; p->written < p->names.n; p->written++) {
		uint64_t start = CAPTURE_SYNTHETIC_START + (uint64_t)p->written * CAPTURE_SYNTHETIC_STEP;
		size_t len;
		_cleanup_free_ char *name = NULL;
		const char *text = intern_text(&p->names, p->written, &len);

		name = strndup(text, len);
		cap_writer_ksym(w, &(struct cap_ksym){ .start = start,
					   .end = start + CAPTURE_SYNTHETIC_STEP,
					   .name = name ? name : "?",
					   .module = CAPTURE_SYNTHETIC_MODULE });
	}
}

uint64_t kernel_stacks_overflow(const struct kernel_stacks *p)
{
	return p->overflow;
}

/* --- a stack --- */

static void begin(struct kernel_stacks *p, uint8_t kind, uint8_t verdict, uint32_t reason)
{
	p->ev.type = OFFCPU_EV_STACK;
	p->ev.kind = kind;
	p->ev.verdict = verdict;
	p->ev.reason = reason;
	p->ev.len = 0;
	p->ev.stop_pc = 0;
}

static void push(struct kernel_stacks *p, uint64_t address)
{
	if (p->ev.len < OFFCPU_FRAMES_MAX)
		p->ev.frames[p->ev.len++] = address;
}

/* The identity is made of the frames and how they end. */
static void end(struct kernel_stacks *p, struct offcpu_stack_id *ret)
{
	size_t bytes = p->ev.len * sizeof(p->ev.frames[0]);
	uint64_t how = (uint64_t)p->ev.kind << 40 | (uint64_t)p->ev.verdict << 32 | p->ev.reason;

	ret->hi = hash_bytes(p->ev.frames, bytes, p->seed[0] ^ how) | 1;
	ret->lo = hash_bytes(p->ev.frames, bytes, p->seed[1] ^ how);
	p->ev.id = *ret;
	stack_table_add(p->tab, &p->ev);
}

static void no_stack(struct offcpu_stack_id *ret, unsigned int reason, int error)
{
	*ret = (struct offcpu_stack_id){ .lo = OFFCPU_FAILED(reason, error) };
}

/* --- kernel stacks --- */

/*
 * Several functions may have the same name. So the size and module in the text
 * must match those of the symbol; otherwise there is no address.
 */
static uint64_t address_of(const struct kernel_stacks *p, const struct procparse_frame *f, const char *name)
{
	uint64_t start = p->o.ks ? kallsyms_address(p->o.ks, name) : 0;
	struct kallsyms_sym sym;

	if (!start || !kallsyms_find(p->o.ks, start, &sym) || strcmp(sym.name, name) != 0)
		return 0;
	if (sym.start != start || f->offset > f->size || sym.end - start != f->size)
		return 0;
	if (f->module ? strlen(sym.module) != f->module_len ||
				memcmp(sym.module, f->module, f->module_len) != 0
		      : sym.module[0])
		return 0;
	return start + f->offset;
}

static uint64_t new_place(struct kernel_stacks *p, const struct procparse_frame *f)
{
	char name[NAME_BYTES];
	uint64_t address;

	snprintf(name, sizeof(name), "%.*s", (int)MIN(f->name_len, sizeof(name) - 1), f->name);
	address = address_of(p, f, name);
	return address ? address : number_of(p, name, strlen(name));
}

/* The address of the frame whose text is LEN bytes at TEXT. It is cached, because the lookup is slow. */
static uint64_t place(struct kernel_stacks *p, const char *text, size_t len, const struct procparse_frame *f)
{
	uint64_t hash = intern_hash(&p->places, text, len);
	uint32_t id = intern_find(&p->places, text, len, hash);

	if (id != INTERN_NONE)
		return p->addresses[id];
	if (p->places.n >= PLACES_MAX ||
		base_grow(&p->addresses, &p->max_addresses, p->places.n + 1, sizeof(*p->addresses)) != 0)
		return new_place(p, f);
	id = intern_add(&p->places, text, len, hash);
	if (id == INTERN_NONE)
		return new_place(p, f);
	p->addresses[id] = new_place(p, f);
	return p->addresses[id];
}

static bool push_stack(struct kernel_stacks *p, const char *text, size_t len)
{
	const char *at = text, *stop = text + len;
	struct procparse_frame f;

	begin(p, CAPTURE_STACK_KERNEL, VERDICT_COMPLETE, REASON_NONE);
	for (const char *line = at; procparse_frame(&at, stop, &f); line = at)
		push(p, place(p, line, (size_t)(at - line), &f));
	if (p->ev.len >= KERNEL_FRAMES_MAX)
		p->ev.verdict = VERDICT_TRUNCATED;
	return p->ev.len > 0;
}

/* "[WHAT NAME]" */
static void push_named(struct kernel_stacks *p, const char *what, const char *which)
{
	char name[NAME_BYTES];

	snprintf(name, sizeof(name), "[%s%s]", what, which);
	push(p, number_of(p, name, strlen(name)));
}

/* A 32-bit program has other numbers. It is recognized by its stack, which is below 4 GiB. */
static void push_syscall(struct kernel_stacks *p, const struct procparse_syscall *c)
{
	const char *name = c->sp >> 32 ? sysname_find(c->nr) : NULL;
	char number[16];

	if (c->nr < 0)
		return;
	snprintf(number, sizeof(number), "%d", c->nr);
	push_named(p, "syscall ", name ? name : number);
}

void kernel_stacks_kernel(struct kernel_stacks *p, const struct sampler_seen *s, struct offcpu_stack_id *ret)
{
	const char letter[] = { s->stat.state, '\0' };

	if (p->o.no_kernel) {
		no_stack(ret, REASON_NOT_RECORDED, 0);
		return;
	}
	if (!s->stack || !push_stack(p, s->stack, s->stack_len)) {
		begin(p, CAPTURE_STACK_KERNEL, VERDICT_UNVERIFIED, REASON_NAMES_ONLY);
		if (s->wchan[0])
			push_named(p, "wait channel ", s->wchan);
		if (s->has_syscall)
			push_syscall(p, &s->syscall);
		if (!p->ev.len)
			push_named(p, "state ", letter);
	}
	end(p, ret);
}

void kernel_stacks_named(struct kernel_stacks *p, const char *name, struct offcpu_stack_id *ret)
{
	if (p->o.no_kernel) {
		no_stack(ret, REASON_NOT_RECORDED, 0);
		return;
	}
	begin(p, CAPTURE_STACK_KERNEL, VERDICT_UNVERIFIED, REASON_NAMES_ONLY);
	push_named(p, "", name);
	end(p, ret);
}

/* --- user stacks --- */

void kernel_stacks_user(struct kernel_stacks *p, const struct sampler_seen *s, bool kthread, int error,
	struct offcpu_stack_id *ret)
{
	if (p->o.no_user || kthread) {
		no_stack(ret, p->o.no_user ? REASON_NOT_RECORDED : REASON_KTHREAD, 0);
		return;
	}
	if (!s->has_syscall || !s->syscall.pc) {
		no_stack(ret, error ? REASON_ERRNO : REASON_BETWEEN, error);
		return;
	}
	begin(p, CAPTURE_STACK_USER, VERDICT_STOPPED, REASON_PC_ONLY);
	p->ev.stop_pc = s->syscall.pc;
	push(p, s->syscall.pc);
	end(p, ret);
}

void kernel_stacks_between(struct kernel_stacks *p, struct offcpu_stack_id *ret)
{
	no_stack(ret, p->o.no_user ? REASON_NOT_RECORDED : REASON_BETWEEN, 0);
}

/*
 * The frame after a signal's trampoline is the one that was interrupted. Only
 * that one gets the mark, see record/stacks.c.
 */
static void mark_exact(struct kernel_stacks *p, const struct cap_stack *s)
{
	for (uint32_t i = 0; i < s->n_exact; i++) {
		uint32_t n = s->exact[i];
		bool after = n == 1 || (i && s->exact[i - 1] == n - 1);

		if (after && n < p->ev.len)
			p->ev.frames[n] |= OFFCPU_EXACT;
	}
}

void kernel_stacks_walked(struct kernel_stacks *p, const struct cap_stack *s, struct offcpu_stack_id *ret)
{
	struct cap_stack cut = *s;

	if (p->o.no_user || !s->len) {
		no_stack(ret, p->o.no_user ? REASON_NOT_RECORDED : s->reason, s->error);
		return;
	}
	if (s->len > OFFCPU_FRAMES_MAX)
		capture_truncate(&cut);
	begin(p, CAPTURE_STACK_USER, cut.verdict, cut.reason);
	p->ev.stop_pc = cut.stop_pc;
	for (uint32_t i = 0; i < s->len; i++)
		push(p, s->frames[i]);
	mark_exact(p, s);
	end(p, ret);
}
