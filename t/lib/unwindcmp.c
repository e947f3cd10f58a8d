/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwindcmp.h"
#include "dwarfeval.h"
#include "elf/gopclntab.h"
#include "unwind/text.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define TEXT_MAX 1024
#define PLT_ENTRY 16
/* libdw reports this case only by this text: its error numbers are not public */
#define NO_MATCH "no matching address range"

/* The DWARF numbers in files of i386, by those of x86-64, which our rules have: rax, rdx, rcx, rbx, ... */
static const uint8_t i386[] = { 0, 2, 1, 3, 6, 7, 5, 4 };
enum { I386_RA = 8 };

/* The numbers in our rules, and that of the register that is the PC, which arm64 has not. */
enum {
	X86_BX = 3,
	X86_FP = 6,
	X86_SP = 7,
	X86_RA = 16,
	ARM64_FP = 29,
	ARM64_RA = 30,
	ARM64_SP = 31,
	NO_PC = 999
};

/* The result of leaving a frame. */
struct caller {
	uint64_t cfa, sp, fp, ra, bx;
	bool end; /* there is no caller */
	bool fp_unknown, bx_unknown;
};

/* The rule of a register as libdw reports it. */
struct place {
	Dwarf_Op mem[3];
	Dwarf_Op *ops;
	size_t n;
	bool bad;
};

/* A frame as libdw reports it. */
struct theirs {
	Dwarf_Frame *frame;
	uint64_t end; /* of its row */
	bool signal, failed; /* failed: there is a row, but libdw cannot report it */
	Dwarf_Op *cfa;
	size_t n_cfa;
	struct place sp, fp, ra, bx;
	uint32_t machine; /* EM_* of the file */
};

struct comparison {
	Elf *elf;
	Dwarf *dwarf;
	uint32_t machine; /* EM_* of the file */
	Dwarf_CFI *cfi[2]; /* of .eh_frame, of .debug_frame; NULL = missing */
	const struct unwindtab *table;
	struct gopclntab *go; /* NULL = no Go program */
	unwindcmp_report *report;
	void *arg;
	struct unwindcmp_totals *totals;
};

/* --- libdw's side --- */

static bool no_match(void)
{
	const char *msg = dwarf_errmsg(0);

	return msg && strcmp(msg, NO_MATCH) == 0;
}

/* The number in the file of register REG of our rules. */
static unsigned int number(uint32_t machine, unsigned int reg)
{
	if (machine != EM_386)
		return reg;
	return reg < ARRAY_LEN(i386) ? i386[reg] : reg == X86_RA ? I386_RA : 99;
}

static unsigned int fp_of(uint32_t machine)
{
	return machine == EM_AARCH64 ? ARM64_FP : X86_FP;
}

static unsigned int sp_of(uint32_t machine)
{
	return machine == EM_AARCH64 ? ARM64_SP : X86_SP;
}

static unsigned int ra_of(uint32_t machine)
{
	return machine == EM_AARCH64 ? ARM64_RA : X86_RA;
}

static unsigned int pc_of(uint32_t machine)
{
	return machine == EM_AARCH64 ? NO_PC : number(machine, X86_RA);
}

static void ask_register(Dwarf_Frame *frame, unsigned int reg, struct place *p)
{
	p->bad = dwarf_frame_register(frame, (int)reg, p->mem, &p->ops, &p->n) != 0;
}

static void describe(struct theirs *t)
{
	Dwarf_Addr start, end;
	bool signal;
	int ra = dwarf_frame_info(t->frame, &start, &end, &signal);

	t->end = end;
	t->signal = signal;
	t->failed = ra < 0 || dwarf_frame_cfa(t->frame, &t->cfa, &t->n_cfa) != 0 || !t->n_cfa;
	ask_register(t->frame, number(t->machine, sp_of(t->machine)), &t->sp);
	ask_register(t->frame, number(t->machine, fp_of(t->machine)), &t->fp);
	ask_register(t->frame, number(t->machine, X86_BX), &t->bx);
	ask_register(t->frame, (unsigned int)ra, &t->ra);
}

/* Ask libdw for the frame at PC. Returns false if it has none. */
static bool ask(const struct comparison *c, uint64_t pc, struct theirs *ret)
{
	*ret = (struct theirs){ .end = pc + 1, .machine = c->machine };
	for (size_t i = 0; i < ARRAY_LEN(c->cfi); i++) {
		if (!c->cfi[i])
			continue;
		if (dwarf_cfi_addrframe(c->cfi[i], pc, &ret->frame) == 0) {
			describe(ret);
			return true;
		}
		ret->frame = NULL;
		if (!no_match()) {
			ret->failed = true;
			return true;
		}
	}
	return false;
}

/* A file's machine, from the register that is its PC. */
static uint32_t machine_of(const struct dwarfeval *m)
{
	return m->pc_reg == I386_RA ? EM_386 : m->pc_reg == NO_PC ? EM_AARCH64 : EM_X86_64;
}

/* The value of register REG, by its number in our rules. */
static uint64_t value_of(const struct dwarfeval *m, uint64_t reg)
{
	return dwarfeval_register(m, number(machine_of(m), (unsigned int)reg));
}

static bool evaluate(
	const struct dwarfeval *m, const struct place *p, unsigned int reg, uint64_t *value, bool *undefined)
{
	*undefined = !p->bad && !p->n && p->ops;
	if (p->bad)
		return false;
	if (!p->n) {
		*value = p->ops ? 0 : value_of(m, reg);
		return true;
	}
	return dwarfeval_location(m, p->ops, p->n, value);
}

/*
 * By default, libdw does not treat RBX as callee-saved on x86-64: without a rule
 * it reports RBX as undefined. If the expression for RBX cannot be evaluated,
 * RBX is unknown, and the rest of the row is still compared.
 */
static void their_bx(const struct dwarfeval *m, const struct theirs *t, struct caller *ret)
{
	bool undefined;

	ret->bx_unknown = !evaluate(m, &t->bx, X86_BX, &ret->bx, &undefined);
	if (!ret->bx_unknown && undefined)
		ret->bx = value_of(m, X86_BX);
}

static bool their_caller(struct dwarfeval *m, const struct theirs *t, struct caller *ret)
{
	bool no_sp;

	*ret = (struct caller){ 0 };
	if (t->failed || !dwarfeval_value(m, t->cfa, t->n_cfa, &ret->cfa))
		return false;
	m->cfa = ret->cfa;
	their_bx(m, t, ret);
	return evaluate(m, &t->ra, ra_of(t->machine), &ret->ra, &ret->end) &&
	       evaluate(m, &t->fp, fp_of(t->machine), &ret->fp, &ret->fp_unknown) &&
	       evaluate(m, &t->sp, sp_of(t->machine), &ret->sp, &no_sp);
}

/* --- our side --- */

static unsigned int word(const struct unwind_rule *r)
{
	return r->flags & UNWIND_WORD4 ? 4 : 8;
}

static uint64_t at(const struct dwarfeval *m, uint64_t base, int32_t off)
{
	return dwarfeval_memory(m, base + (uint64_t)(int64_t)off);
}

static uint64_t our_cfa(const struct dwarfeval *m, const struct unwind_rule *r)
{
	uint64_t base = value_of(m, r->reg) + (uint64_t)(int64_t)r->cfa_off;

	if (r->cfa == UNWIND_CFA_PLT)
		return base + ((m->pc & 15) >= (uint64_t)r->ra_off ? word(r) : 0);
	if (r->cfa == UNWIND_CFA_DEREF)
		return dwarfeval_memory(m, base);
	if (r->cfa == UNWIND_CFA_DEREF_PLUS)
		return dwarfeval_memory(m, base) + (uint64_t)(int64_t)r->ra_off;
	return base;
}

static uint64_t our_fp(const struct dwarfeval *m, const struct unwind_rule *r, uint64_t cfa)
{
	if (r->fp == UNWIND_FP_CFA)
		return at(m, cfa, r->fp_off);
	if (r->fp == UNWIND_FP_AT_SP)
		return at(m, value_of(m, sp_of(machine_of(m))), r->fp_off);
	if (r->fp == UNWIND_FP_AT_FP)
		return at(m, value_of(m, fp_of(machine_of(m))), r->fp_off);
	return value_of(m, r->fp == UNWIND_FP_REG ? (uint64_t)r->fp_off : fp_of(machine_of(m)));
}

static uint64_t our_ra(const struct dwarfeval *m, const struct unwind_rule *r, uint64_t cfa)
{
	bool implied = r->cfa == UNWIND_CFA_PLT || r->cfa == UNWIND_CFA_DEREF_PLUS;

	if (r->ra == UNWIND_RA_AT_SP)
		return at(m, value_of(m, sp_of(machine_of(m))), r->ra_off);
	if (r->ra == UNWIND_RA_REG)
		return value_of(m, (uint64_t)r->ra_off);
	return at(m, cfa, implied || r->ra == UNWIND_RA_CALL ? -(int32_t)word(r) : r->ra_off);
}

static uint64_t our_bx(const struct dwarfeval *m, const struct unwind_rule *r, uint64_t cfa)
{
	return r->ra_off == UNWIND_BX_SAME ? value_of(m, X86_BX) : at(m, cfa, r->ra_off);
}

static void our_caller(const struct dwarfeval *m, const struct unwind_rule *r, struct caller *ret)
{
	*ret = (struct caller){ .end = r->ra == UNWIND_RA_END, .fp_unknown = r->fp == UNWIND_FP_UNKNOWN };
	ret->cfa = ret->sp = our_cfa(m, r);
	ret->fp = our_fp(m, r, ret->cfa);
	ret->ra = our_ra(m, r, ret->cfa);
	ret->bx_unknown = r->ra != UNWIND_RA_CALL || r->ra_off == UNWIND_BX_UNKNOWN;
	if (!ret->bx_unknown)
		ret->bx = our_bx(m, r, ret->cfa);
}

/* --- both --- */

static size_t put_ops(char *buf, size_t at_, const char *label, const Dwarf_Op *ops, size_t n)
{
	int len = snprintf(buf + at_, TEXT_MAX - at_, " %s", label);

	at_ += (size_t)MAX(len, 0);
	for (size_t i = 0; i < n && at_ < TEXT_MAX; i++) {
		len = snprintf(buf + at_, TEXT_MAX - at_, " 0x%x(%" PRId64 ",%" PRId64 ")", ops[i].atom,
			(int64_t)ops[i].number, (int64_t)ops[i].number2);
		at_ += (size_t)MAX(len, 0);
	}
	return MIN(at_, (size_t)TEXT_MAX - 1);
}

static void differ(const struct comparison *c, uint64_t pc, const struct unwind_rule *r,
	const struct theirs *t, const char *what)
{
	struct unwindtext text = { .fp = "" };
	char buf[TEXT_MAX];
	int n;
	size_t len;

	c->totals->differences++;
	if (!c->report)
		return;
	if (r)
		unwindtext(r, c->machine, &text);
	n = snprintf(buf, sizeof(buf), "%s: ours %s %s %s %s; libdw", what, r ? text.cfa : "none", text.fp,
		text.ra, text.bx);
	len = (size_t)MAX(n, 0);
	if (!t)
		snprintf(buf + len, sizeof(buf) - len, " none");
	else if (t->failed)
		snprintf(buf + len, sizeof(buf) - len, " fails");
	else {
		len = put_ops(buf, len, "cfa", t->cfa, t->n_cfa);
		len = put_ops(buf, len, "fp", t->fp.ops, t->fp.n);
		len = put_ops(buf, len, "ra", t->ra.ops, t->ra.n);
		put_ops(buf, len, "bx", t->bx.ops, t->bx.n);
	}
	c->report(c->arg, pc, buf);
}

/* What differs at PC on the machine derived from SEED; NULL if nothing does. */
static const char *difference(const struct unwind_rule *r, const struct theirs *t, uint64_t pc, uint64_t seed)
{
	struct dwarfeval m = { .seed = seed, .pc = pc, .pc_reg = pc_of(t->machine) };
	struct caller ours, theirs;

	if (!their_caller(&m, t, &theirs))
		return "libdw's expression is not understood";
	our_caller(&m, r, &ours);
	if (ours.end != theirs.end)
		return "end";
	if (ours.cfa != theirs.cfa)
		return "cfa";
	if (ours.end)
		return NULL;
	if (ours.ra != theirs.ra)
		return "ra";
	if (ours.sp != theirs.sp)
		return "sp";
	if (!ours.fp_unknown && (theirs.fp_unknown || ours.fp != theirs.fp))
		return "rbp";
	if (!ours.bx_unknown && (theirs.bx_unknown || ours.bx != theirs.bx))
		return "rbx";
	return ((r->flags & UNWIND_SIGNAL) != 0) == t->signal ? NULL : "signal";
}

static void compare_rows(const struct comparison *c, uint64_t pc, uint64_t end, const struct unwind_rule *r,
	const struct theirs *t)
{
	uint64_t last = r->cfa == UNWIND_CFA_PLT ? MIN(end, pc + PLT_ENTRY) : pc + 1;
	const char *what = NULL;

	for (; pc < last && !what; pc++) {
		what = difference(r, t, pc, 0x5eed);
		what = what ? what : difference(r, t, pc, 0xcafe);
	}
	if (what)
		differ(c, pc - 1, r, t, what);
	else
		c->totals->rows++;
}

/* Compare one row of either side at PC. R is NULL if the table has no row. */
static void compare_at(const struct comparison *c, uint64_t pc, uint64_t end, const struct unwind_rule *r,
	const struct theirs *t)
{
	if (!t)
		differ(c, pc, r, NULL, "row");
	else if (t->failed && (!r || r->cfa == UNWIND_CFA_UNSUPPORTED))
		c->totals->refused++;
	else if (!r || t->failed)
		differ(c, pc, r, t, "row");
	else if (r->cfa == UNWIND_CFA_UNSUPPORTED || r->ra == UNWIND_RA_UNSUPPORTED)
		c->totals->unheld++;
	else
		compare_rows(c, pc, end, r, t);
}

/* Is the row that libdw has at PC, or would have, that of a Go function? */
static bool is_go(const struct comparison *c, uint64_t pc)
{
	struct gopclntab_function fn;
	Dwarf_Frame *frame = NULL;
	bool other = c->cfi[0] && dwarf_cfi_addrframe(c->cfi[0], pc, &frame) == 0;

	free(frame);
	return c->go && !other && gopclntab_find(c->go, pc, &fn);
}

/* The same for a row of a Go function. */
static void compare_go(
	const struct comparison *c, uint64_t pc, const struct unwind_rule *r, const struct theirs *t)
{
	struct dwarfeval m = { .seed = 0x5eed, .pc = pc, .pc_reg = X86_RA };
	struct caller ours, theirs;

	if (!r) {
		differ(c, pc, r, t, "row");
	} else if (!t || r->cfa != UNWIND_CFA_REG || r->reg != X86_SP || r->flags ||
		   r->ra != UNWIND_RA_CALL) {
		c->totals->beyond++;
	} else {
		our_caller(&m, r, &ours);
		if (!their_caller(&m, t, &theirs) || ours.cfa != theirs.cfa || ours.ra != theirs.ra)
			differ(c, pc, r, t, "cfa");
		else
			c->totals->rows++;
	}
}

/* Compare at PC. Returns where to continue, never beyond END. */
static uint64_t compare(const struct comparison *c, uint64_t pc, uint64_t end)
{
	uint64_t start, next = pc + 1;
	const struct unwind_rule *r = unwindtab_find(c->table, pc, &start, &next);
	struct theirs t;
	bool there = ask(c, pc, &t);

	/* rows that are valid only inside a system call are in no FDE */
	if (r && (r->cfa == UNWIND_CFA_NONE || (r->flags & UNWIND_IN_SYSCALL)))
		r = NULL;
	if (there && t.frame)
		next = r ? MIN(next, t.end) : t.end;
	else if (!r)
		next = pc + 1;
	next = MIN(next > pc ? next : pc + 1, end);
	if ((r || there) && is_go(c, pc))
		compare_go(c, pc, r, there ? &t : NULL);
	else if (r || there)
		compare_at(c, pc, next, r, there ? &t : NULL);
	else
		c->totals->blank++;
	free(t.frame);
	return next;
}

static int open_libdw(struct comparison *c, const struct elffile *f, struct err *e)
{
	elf_version(EV_CURRENT);
	c->elf = elf_begin(f->fd, ELF_C_READ, NULL);
	if (!c->elf)
		return err_set(e, -EINVAL, "libelf: %s", elf_errmsg(-1));
	c->cfi[0] = dwarf_getcfi_elf(c->elf);
	c->dwarf = dwarf_begin_elf(c->elf, DWARF_C_READ, NULL);
	c->cfi[1] = c->dwarf ? dwarf_getcfi(c->dwarf) : NULL;
	return 0;
}

static void close_libdw(struct comparison *c)
{
	if (c->cfi[0])
		dwarf_cfi_end(c->cfi[0]);
	if (c->dwarf)
		dwarf_end(c->dwarf);
	elf_end(c->elf);
}

int unwindcmp(const struct elffile *f, const struct unwindtab *t, unwindcmp_report *report, void *arg,
	struct unwindcmp_totals *ret, struct err *e)
{
	struct comparison c = {
		.table = t, .report = report, .arg = arg, .totals = ret, .machine = f->machine
	};
	int rc = open_libdw(&c, f, e);

	if (rc)
		return rc;
	gopclntab_open(f, &c.go, NULL);
	*ret = (struct unwindcmp_totals){ 0 };
	for (size_t i = 0; i < f->n_loads; i++) {
		const struct elffile_load *l = &f->loads[i];
		uint64_t end = l->vaddr + l->memsz;

		if (!l->exec || end < l->vaddr)
			continue;
		for (uint64_t pc = l->vaddr; pc < end;)
			pc = compare(&c, pc, end);
	}
	close_libdw(&c);
	gopclntab_close(c.go);
	return 0;
}
