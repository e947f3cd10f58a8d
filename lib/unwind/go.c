/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/go.h"
#include "unwind/x86.h"
#define UNWIND_CODE_X86
#include "unwind_code.h"

#include <errno.h>
#include <string.h>

#define WORD 8
#define TEXT_MAX (UINT64_C(1) << 30)
#define STEPS_MAX 24 /* instructions read behind a call */
#define OFFSET_MAX 0xffff /* of the members of Go's structs, and of frame sizes, in a rule */
#define RETURN_FROM_SIGNAL "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05" /* mov $15,%rax; syscall */

struct unwindgo {
	struct gopclntab *table;
	uint8_t *text; /* N bytes from the first function on; fewer if the file has no more */
	uint64_t base;
	size_t len;
	struct unwind_rule to_goroutine; /* of systemstack; cfa 0 = not known */
};

/* The rows of a function that are being made. */
struct making {
	struct unwindgo *g;
	const struct gopclntab_function *fn;
	unwindgo_row *row;
	void *ctx;
	struct err *e;
	int rc;
	struct unwind_rule last; /* the last row, which is not sent yet: another one at LAST_PC replaces it */
	uint64_t last_pc;
	bool any;
};

static const struct unwind_rule none,
	unsupported = { .cfa = UNWIND_CFA_UNSUPPORTED, .ra = UNWIND_RA_UNSUPPORTED };
static const struct unwind_rule end_mark = {
	.cfa = UNWIND_CFA_REG, .reg = UNWINDX86_SP, .cfa_off = WORD, .ra = UNWIND_RA_END
};

static void send_last(struct making *m)
{
	if (!m->rc && m->any)
		m->rc = m->row(m->ctx, m->last_pc, &m->last, m->e);
}

static void put(struct making *m, uint64_t pc, const struct unwind_rule *rule)
{
	if (pc >= m->fn->end || (m->any && pc < m->last_pc))
		return;
	if (m->any && pc > m->last_pc)
		send_last(m);
	m->any = true;
	m->last_pc = pc;
	m->last = *rule;
}

/* --- code --- */

/* The code from PC up to the end of FN, *LEN bytes; NULL if it cannot be read. */
static const uint8_t *code_at(
	const struct unwindgo *g, const struct gopclntab_function *fn, uint64_t pc, size_t *len)
{
	uint64_t at = pc - g->base;

	if (pc < g->base || at >= g->len || pc >= fn->end)
		return NULL;
	*len = (size_t)MIN(fn->end - pc, g->len - at);
	return g->text + at;
}

static bool code_is(const struct unwindgo *g, const struct gopclntab_function *fn, uint64_t pc,
	const void *bytes, size_t n)
{
	size_t len;
	const uint8_t *code = code_at(g, fn, pc, &len);

	return code && len >= n && memcmp(code, bytes, n) == 0;
}

static bool decode_at(const struct unwindgo *g, const struct gopclntab_function *fn, uint64_t pc,
	struct unwindx86_insn *ret)
{
	size_t len;
	const uint8_t *code = code_at(g, fn, pc, &len);

	return code && unwindx86_decode(code, len, ret);
}

/* mov %rbp,disp(%rsp) */
static bool saves_fp(const struct unwindx86_insn *i, int32_t disp)
{
	return i->op == 0x89 && i->wide && i->memory && i->reg == UNWINDX86_RBP && i->base == UNWINDX86_RSP &&
	       !i->indexed && !i->fs && i->disp == disp;
}

/* --- where a function keeps the other stack pointer --- */

enum kind { UNKNOWN, NUMBER, TLS, STACK, DIFFERENCE, SAVED };

/* What a register holds, in terms of the registers right behind a call. */
struct value {
	enum kind kind;
	int32_t number; /* NUMBER: itself; TLS, STACK: of the first word; SAVED: the register */
	int32_t off[3]; /* TLS, STACK: of the words behind it: *(*(fs:number) + off[0]) + ... */
	unsigned int n;
	int32_t minus; /* DIFFERENCE: *(*(sp+number) + off[0]) - *(sp+minus) */
};

struct values {
	struct value of[16]; /* by the encoding's numbers */
};

static struct value load(const struct values *v, const struct unwindx86_insn *i)
{
	struct value x = { UNKNOWN };

	if (!i->wide || i->indexed || i->base == UNWINDX86_RIP)
		return x;
	if (i->fs) {
		if (i->base == UNWINDX86_NO_BASE)
			x = (struct value){ TLS, .number = i->disp };
		else if (v->of[i->base].kind == NUMBER)
			x = (struct value){ TLS, .number = v->of[i->base].number + i->disp };
		return x;
	}
	if (i->base == UNWINDX86_NO_BASE)
		return x;
	if (i->base == UNWINDX86_RSP)
		return (struct value){ STACK, .number = i->disp };
	x = v->of[i->base];
	if ((x.kind != TLS && x.kind != STACK) || x.n == ARRAY_LEN(x.off))
		return (struct value){ UNKNOWN };
	x.off[x.n++] = i->disp;
	return x;
}

static struct value subtract(const struct values *v, const struct unwindx86_insn *i)
{
	struct value x = v->of[i->reg];

	if (!i->wide || !i->memory || i->fs || i->indexed || i->base != UNWINDX86_RSP || x.kind != STACK ||
		x.n != 1)
		return (struct value){ UNKNOWN };
	x.kind = DIFFERENCE;
	x.minus = i->disp;
	return x;
}

/* Follow instruction I. Returns false for one that may do more than is known here. */
static bool follow(struct values *v, const struct unwindx86_insn *i)
{
	struct value x = { UNKNOWN };

	switch (i->op) {
	case 0x8b: /* mov to a register */
		x = i->memory ? load(v, i) : i->wide ? v->of[i->rm] : x;
		v->of[i->reg] = x;
		return true;
	case 0x89: /* mov from a register; what is stored in memory is not used again */
		if (!i->memory)
			v->of[i->rm] = i->wide ? v->of[i->reg] : x;
		return true;
	case 0xc7: /* mov of a number */
		if (!i->memory)
			v->of[i->rm] = (struct value){ NUMBER, .number = i->imm };
		return true;
	case 0x2b: /* sub */
		v->of[i->reg] = subtract(v, i);
		return true;
	case 0x8d: /* lea */
		v->of[i->reg] = x;
		return true;
	case 0x01: /* add and sub to a register */
	case 0x29:
		if (!i->memory)
			v->of[i->rm] = x;
		return true;
	default:
		return false;
	}
}

/* The value that the code at PC, right behind a call, sets the stack pointer to; *PC then follows that. */
static struct value restored_sp(const struct unwindgo *g, const struct gopclntab_function *fn, uint64_t *pc)
{
	static const uint8_t saved[] = { 3, UNWINDX86_RBP, 12, 13, 14, 15 }; /* by what is called */
	struct values v = { 0 };
	struct unwindx86_insn i;

	for (size_t k = 0; k < ARRAY_LEN(saved); k++)
		v.of[saved[k]] = (struct value){ SAVED, .number = saved[k] };
	for (unsigned int step = 0; step < STEPS_MAX && decode_at(g, fn, *pc, &i); step++) {
		if (!follow(&v, &i))
			break;
		*pc += i.len;
		if (unwindx86_sets_sp(&i))
			return v.of[UNWINDX86_RSP];
	}
	return (struct value){ UNKNOWN };
}

/*
 * Does the code at PC, where the other stack pointer was restored, agree that
 * FRAME bytes lie between it and the return address? It may not come to a
 * return: then only the table knows. *FP: it sets the frame pointer.
 */
static bool agrees(
	const struct unwindgo *g, const struct gopclntab_function *fn, uint64_t pc, int32_t frame, bool *fp)
{
	struct unwindx86_insn i;
	int32_t sum = 0;

	*fp = false;
	for (unsigned int step = 0; step < STEPS_MAX && decode_at(g, fn, pc, &i); step++, pc += i.len) {
		bool sp = i.has_modrm && !i.memory && i.rm == UNWINDX86_RSP;

		if (i.op == 0xc3)
			return sum == frame;
		if ((i.op == 0x83 || i.op == 0x81) && sp)
			sum += i.reg % 8 == 0 ? i.imm : -i.imm;
		else if (i.op >= 0x58 && i.op <= 0x5f)
			sum += WORD;
		else if (i.op != 0x8b && i.op != 0x89 && i.op != 0xc7)
			return true;
		*fp |= (i.op == 0x8b && i.reg == UNWINDX86_RBP) || (i.op == 0x5d && i.reg == UNWINDX86_RBP);
	}
	return true;
}

static bool small(int32_t v)
{
	return v >= 0 && v <= OFFSET_MAX;
}

/* The rule for a stack pointer of value X; cfa 0 = none. FRAME: its distance from the return address. */
static struct unwind_rule switch_rule(const struct value *x, int32_t frame)
{
	struct unwind_rule r = { .ra = UNWIND_RA_CFA };

	if (x->kind == TLS && x->n == 3 && small(x->off[0]) && small(x->off[1]) && small(x->off[2])) {
		r.cfa = UNWIND_CFA_GO_TLS;
		r.reg = UNWIND_GO_GOROUTINE;
		r.cfa_off = x->number;
		r.fp_off = (int32_t)((uint32_t)x->off[1] << 16 | (uint32_t)x->off[0]);
		r.ra_off = (int32_t)((uint32_t)x->off[2] << 16 | (uint32_t)(frame + WORD));
	} else if (x->kind == DIFFERENCE && x->off[0] == UNWIND_GO_STACK_END) {
		r.cfa = UNWIND_CFA_GO_SAVED;
		r.cfa_off = x->number;
		r.fp_off = x->minus;
		r.ra_off = frame + WORD;
	} else if (x->kind == STACK && x->n == 0) {
		r.cfa = UNWIND_CFA_DEREF_PLUS;
		r.reg = UNWINDX86_SP;
		r.cfa_off = x->number;
		r.ra_off = frame + WORD;
	} else if (x->kind == SAVED) {
		r.cfa = UNWIND_CFA_REG;
		r.reg = (uint8_t)unwindx86_dwarf((unsigned int)x->number);
		r.cfa_off = frame + WORD;
		r.ra = UNWIND_RA_CALL;
		r.ra_off = UNWIND_BX_UNKNOWN;
	}
	return r;
}

/*
 * The rule of a call that ends at AFTER, in a function that has set the stack
 * pointer. FRAME: the function's frame before that. SAVED: it has saved the
 * frame pointer at its top.
 */
static struct unwind_rule rule_of_call(const struct unwindgo *g, const struct gopclntab_function *fn,
	uint64_t after, int32_t frame, bool saved)
{
	uint64_t pc = after;
	const struct value x = restored_sp(g, fn, &pc);
	struct unwind_rule r = { 0 };
	bool fp = false;

	if (x.kind != UNKNOWN && small(frame + WORD) && agrees(g, fn, pc, frame, &fp))
		r = switch_rule(&x, frame);
	if (!r.cfa)
		return unsupported;
	if (saved) {
		r.fp = UNWIND_FP_CFA;
		if (r.cfa < UNWIND_CFA_GO_SAVED)
			r.fp_off = -2 * WORD;
	} else if (fp) {
		r.fp = UNWIND_FP_UNKNOWN;
	}
	return r;
}

/* --- functions by name --- */

static bool is_named(const struct gopclntab_function *fn, const char *name)
{
	return strncmp(fn->name, "runtime.", 8) == 0 && strcmp(fn->name + 8, name) == 0;
}

static bool ends_stack(const struct gopclntab_function *fn)
{
	return is_named(fn, "goexit") || is_named(fn, "mstart") || is_named(fn, "rt0_go") ||
	       strcmp(fn->name, "_rt0_amd64") == 0 || strcmp(fn->name, "_rt0_amd64_linux") == 0;
}

/* Before Go 1.17 the table does not say which functions set the stack pointer. */
static bool sets_sp(const struct gopclntab_function *fn)
{
	static const char *const names[] = { "systemstack", "asmcgocall", "asmcgocall_no_g", "mcall",
		"morestack", "cgocallback", "cgocallback_gofunc", "gogo", "nanotime", "nanotime1", "walltime",
		"walltime1", "sigtramp", "cgoSigtramp", "sigfwd", "callCgoSigaction", "callCgoMmap",
		"callCgoMunmap", "racecall", "racecallbackthunk", "msancall", "asancall", "libfuzzerCall" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (is_named(fn, names[i]))
			return true;
	return fn->flags & GOPCLNTAB_SP_WRITE;
}

/* --- rows --- */

/*
 * The row from PC on, with SIZE bytes between the stack pointer and the return
 * address; FP: enum unwind_fp. Go functions do not keep RBX, but what needs it is
 * C code, and a walk comes to that only by a rule that loses it.
 */
static void put_frame(struct making *m, uint64_t pc, int32_t size, enum unwind_fp fp, uint8_t flags)
{
	struct unwind_rule r = { .cfa = UNWIND_CFA_REG,
		.reg = UNWINDX86_SP,
		.cfa_off = size + WORD,
		.fp = fp,
		.fp_off = fp == UNWIND_FP_CFA ? -2 * WORD : 0,
		.ra = UNWIND_RA_CALL,
		.ra_off = fp == UNWIND_FP_UNKNOWN ? UNWIND_BX_UNKNOWN : UNWIND_BX_SAME,
		.flags = flags };

	if (size == -WORD && code_is(m->g, m->fn, pc - 2, "\x41\x5c", 2)) { /* pop %r12: see vfork(2) */
		r.ra = UNWIND_RA_REG;
		r.ra_off = 12;
	} else if (size < 0 || size > INT32_MAX - WORD) {
		r = unsupported;
	}
	put(m, pc, &r);
}

/* Does I, at PC, call runtime.NAME? */
static bool calls(const struct unwindgo *g, uint64_t pc, const struct unwindx86_insn *i, const char *name)
{
	struct gopclntab_function fn;

	return i->op == 0xe8 && gopclntab_find(g->table, pc + i->len + (uint64_t)(int64_t)i->imm, &fn) &&
	       is_named(&fn, name);
}

/*
 * newstack either gives the thread to another goroutine, or moves the stack of
 * the one that it runs: mark the calls for the latter from PC up to END.
 */
static void put_copies(struct making *m, uint64_t pc, uint64_t end, int32_t size, enum unwind_fp fp)
{
	struct unwindx86_insn i;

	for (; pc < end && decode_at(m->g, m->fn, pc, &i); pc += i.len) {
		if (!calls(m->g, pc, &i, "copystack"))
			continue;
		put_frame(m, pc, size, fp, UNWIND_GO_COPIES);
		put_frame(m, pc + i.len, size, fp, 0);
	}
}

/* Where the first frame of SIZE bytes begins at PC: is the frame pointer saved at its top, and from where on?
 */
static bool fp_is_saved(const struct making *m, uint64_t pc, int32_t size, uint64_t *from)
{
	struct unwindx86_insn i;

	*from = pc;
	if (size == WORD && pc > m->fn->start && code_is(m->g, m->fn, pc - 1, "\x55", 1))
		return true;
	if (!decode_at(m->g, m->fn, pc, &i) || !saves_fp(&i, size - WORD))
		return false;
	*from = pc + i.len;
	return true;
}

struct frames {
	bool known, saved; /* about the first frame: was the frame pointer saved? */
	uint64_t from; /* where it has been saved */
};

/* The rows of the range of R, up to END. */
static void put_range(struct making *m, struct frames *f, const struct gopclntab_run *r)
{
	uint64_t from;
	enum unwind_fp fp;

	if (r->value <= 0) {
		put_frame(m, r->start, r->value, UNWIND_FP_SAME, 0);
		return;
	}
	if (!f->known) {
		f->known = true;
		f->saved = fp_is_saved(m, r->start, r->value, &f->from) && f->from < r->end;
		if (f->saved && f->from > r->start)
			put_frame(m, r->start, r->value, UNWIND_FP_SAME, 0);
	}
	from = f->saved ? MAX(f->from, r->start) : r->start;
	fp = f->saved ? UNWIND_FP_CFA : UNWIND_FP_UNKNOWN;
	put_frame(m, from, r->value, fp, 0);
	if (is_named(m->fn, "newstack"))
		put_copies(m, from, r->end, r->value, fp);
}

/*
 * The calls of a function behind PC, where it has set the stack pointer, with
 * FRAME bytes on the stack before that.
 */
static void put_calls(struct making *m, uint64_t pc, int32_t frame, bool saved)
{
	struct unwindx86_insn i;
	struct unwind_rule r;

	if (is_named(m->fn, "mcall")) {
		put(m, pc, &end_mark);
		return;
	}
	put(m, pc, &unsupported);
	for (; !m->rc && decode_at(m->g, m->fn, pc, &i); pc += i.len) {
		if (i.op != 0xe8 && !(i.op == 0xff && i.reg % 8 == 2))
			continue;
		r = rule_of_call(m->g, m->fn, pc + i.len, frame, saved);
		if (is_named(m->fn, "morestack")) {
			r = m->g->to_goroutine.cfa ? m->g->to_goroutine : unsupported;
			if (r.cfa == UNWIND_CFA_GO_TLS) {
				r.reg = UNWIND_GO_MORE;
				r.fp = UNWIND_FP_UNKNOWN;
			}
		} else if (r.cfa == UNWIND_CFA_GO_TLS &&
			   strncmp(m->fn->name, "runtime.cgocallback", 19) == 0) {
			r.reg = UNWIND_GO_CALLBACK;
		}
		put(m, pc, &r);
		put(m, pc + i.len, &unsupported);
	}
}

/* Where FN sets the stack pointer first, or cannot be read any more; its end if it does not. */
static uint64_t first_set(const struct making *m)
{
	uint64_t pc = m->fn->start;
	struct unwindx86_insn i;

	for (; decode_at(m->g, m->fn, pc, &i); pc += i.len)
		if (unwindx86_sets_sp(&i))
			return pc + i.len;
	return MIN(pc, m->fn->end);
}

static void put_rows(struct making *m)
{
	uint64_t set = sets_sp(m->fn) ? first_set(m) : m->fn->end;
	struct gopclntab_run r;
	struct frames f = { 0 };
	int32_t frame = 0; /* at SET */
	uint64_t end = m->fn->start;

	gopclntab_frames(m->g->table, m->fn, &r);
	while (!m->rc && gopclntab_next(&r) && r.start < set) {
		put_range(m, &f, &r);
		end = MIN(r.end, m->fn->end);
		frame = r.value;
	}
	if (m->rc)
		return;
	if (end < set)
		put(m, end, &none);
	if (set < m->fn->end)
		put_calls(m, set, frame, f.saved);
}

/*
 * A signal handler returns to the first byte of this function, where nothing has
 * called: the row begins in the padding before it, as in libc.
 */
static bool returns_from_signal(const struct unwindgo *g, const struct gopclntab_function *fn)
{
	return strncmp(fn->name, "runtime.sigreturn", 17) == 0 &&
	       code_is(g, fn, fn->start, RETURN_FROM_SIGNAL, sizeof(RETURN_FROM_SIGNAL) - 1);
}

int unwindgo_rows(struct unwindgo *g, size_t i, unwindgo_row *row, void *ctx, struct err *e)
{
	const struct unwind_rule from_signal = CODE_SIGRETURN_RULE(0, 160, 120, 168);
	struct gopclntab_function fn, next;
	struct making m = { .g = g, .fn = &fn, .row = row, .ctx = ctx, .e = e };

	if (!gopclntab_get(g->table, i, &fn)) {
		unwindgo_range(g, i, &fn.start, &fn.end);
		put(&m, fn.start, &none);
	} else if (ends_stack(&fn)) {
		put(&m, fn.start, &end_mark);
	} else if (returns_from_signal(g, &fn)) {
		put(&m, fn.start, &from_signal);
	} else {
		put_rows(&m);
	}
	if (gopclntab_get(g->table, i + 1, &next) && returns_from_signal(g, &next) &&
		code_is(g, &fn, fn.end - 1, "\xcc", 1))
		put(&m, fn.end - 1, &from_signal);
	send_last(&m);
	return m.rc;
}

/* --- opening --- */

/* Learn from systemstack where the thread, its goroutine and the goroutine's stack pointer are. */
static int keep_to_goroutine(void *ctx, uint64_t pc, const struct unwind_rule *rule, struct err *e)
{
	struct unwindgo *g = ctx;

	(void)pc, (void)e;
	if (rule->cfa == UNWIND_CFA_GO_TLS)
		g->to_goroutine = *rule;
	return 0;
}

static void find_systemstack(struct unwindgo *g)
{
	struct gopclntab_function fn;

	for (size_t i = 0; i < gopclntab_count(g->table) && !g->to_goroutine.cfa; i++)
		if (gopclntab_get(g->table, i, &fn) && is_named(&fn, "systemstack"))
			unwindgo_rows(g, i, keep_to_goroutine, g, NULL);
}

int unwindgo_open(const struct elffile *f, struct unwindgo **ret, struct err *e)
{
	struct unwindgo *g = calloc(1, sizeof(*g));
	uint64_t start, end;
	int rc = g ? gopclntab_open(f, &g->table, e) : err_nomem(e, "Go functions");

	if (rc <= 0) {
		unwindgo_close(g);
		return rc;
	}
	unwindgo_range(g, 0, &g->base, &end);
	unwindgo_range(g, gopclntab_count(g->table) - 1, &start, &end);
	rc = elffile_read_vaddr(f, g->base, MIN(end - g->base, TEXT_MAX), &g->text, &g->len, e);
	if (rc) {
		unwindgo_close(g);
		return err_prefix(e, "the code of its Go functions"), rc;
	}
	find_systemstack(g);
	*ret = g;
	return 1;
}

void unwindgo_close(struct unwindgo *g)
{
	if (!g)
		return;
	gopclntab_close(g->table);
	free(g->text);
	free(g);
}

size_t unwindgo_count(const struct unwindgo *g)
{
	return gopclntab_count(g->table);
}

void unwindgo_range(const struct unwindgo *g, size_t i, uint64_t *start, uint64_t *end)
{
	gopclntab_range(g->table, i, start, end);
}
