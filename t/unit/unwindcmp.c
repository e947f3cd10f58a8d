/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Without arguments it checks that the comparison with libdw notices every kind
 * of error in a table. With an argument it is a comparison for other tests:
 *
 *	unit/unwindcmp FILE
 *
 * prints each difference with its address, and the totals. The exit status is 0
 * without differences, 1 with differences, and 2 if FILE cannot be read or compiled.
 */
#include "base/tap.h"
#include "unwind/compile.h"
#include "../lib/dwarfeval.h"
#include "../lib/unwindcmp.h"

#include <dwarf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

static struct unwindcmp_totals compare(const struct elffile *f, const uint8_t *bytes, size_t len, char *first)
{
	struct unwindcmp_totals n = { 0 };
	struct unwindtab t;
	struct err e;

	if (unwindtab_view(bytes, len, &t, &e) || unwindcmp(f, &t, NULL, NULL, &n, &e))
		snprintf(first, 256, "%.200s", e.msg);
	return n;
}

static void keep_first(void *arg, uint64_t pc, const char *text)
{
	char *buf = arg;

	if (!*buf)
		snprintf(buf, 256, "%llx %s", (unsigned long long)pc, text);
}

/* The number of the rule at PC; 0 = no row. */
static size_t rule_at(const struct unwindtab *t, uint64_t pc)
{
	const struct unwind_rule *r = unwindtab_find(t, pc, NULL, NULL);

	return r ? (size_t)(r - t->rules) : 0;
}

/* The number of differences of the table whose rule I is replaced by OTHER; the first one in FIRST. */
static uint64_t differences(const struct elffile *f, const struct unwindtab *v, size_t i,
	const struct unwind_rule *other, char *first)
{
	size_t len = v->head->bytes;
	uint8_t *copy = malloc(len);
	struct unwindcmp_totals n = { 0 };
	struct unwindtab t;

	memcpy(copy, v->bytes, len);
	memcpy(copy + ((const uint8_t *)&v->rules[i] - v->bytes), other, sizeof(*other));
	unwindtab_seal(copy, len);
	*first = 0;
	if (unwindtab_view(copy, len, &t, NULL) == 0)
		unwindcmp(f, &t, keep_first, first, &n, NULL);
	free(copy);
	return n.differences;
}

static void changed(struct tap *t, const struct elffile *f, const struct unwindtab *v, size_t i)
{
	static const char *const names[] = { "CFA's offset", "CFA's register", "CFA's kind",
		"frame pointer's place", "return address's place", "RBX's place", "end", "signal flag" };
	char first[256];

	for (size_t k = 0; k < ARRAY_LEN(names); k++) {
		struct unwind_rule r = v->rules[i];
		uint64_t n;

		switch (k) {
		case 0:
			r.cfa_off += 8;
			break;
		case 1:
			r.reg = r.reg == 7 ? 6 : 7;
			break;
		case 2:
			r.cfa = UNWIND_CFA_DEREF;
			break;
		case 3:
			r.fp = r.fp == UNWIND_FP_SAME ? UNWIND_FP_CFA : UNWIND_FP_SAME;
			break;
		case 4:
			r.ra = UNWIND_RA_CFA;
			r.ra_off = -16;
			break;
		case 5:
			r.ra = UNWIND_RA_CALL;
			r.ra_off = r.ra_off ? UNWIND_BX_SAME : -24;
			break;
		case 6:
			r.ra = UNWIND_RA_END;
			break;
		default:
			r.flags = UNWIND_SIGNAL;
			break;
		}
		n = differences(f, v, i, &r, first);
		tap_ok(t, n > 0, "a changed %s is noticed (%s)", names[k], first);
	}
}

static void test_compare(struct tap *t)
{
	struct elffile *f = NULL;
	struct unwindcmp_totals n;
	uint8_t *bytes = NULL;
	struct unwindtab v;
	char first[256] = "";
	size_t len, here;
	uint64_t vaddr;

	if (!tap_ok(t,
		    elffile_open(AT_FDCWD, "/proc/self/exe", false, &f, NULL) == 0 &&
			    unwindcomp(f, &bytes, &len, NULL) == 0 &&
			    unwindtab_view(bytes, len, &v, NULL) == 0,
		    "this program has a table"))
		return;
	n = compare(f, bytes, len, first);
	tap_eq_str(t, first, "", "the table of this program can be compared");
	tap_ok(t, n.rows > 100, "the comparison covers more than 100 rows (%llu)",
		(unsigned long long)n.rows);
	tap_eq_u64(t, n.differences, 0, "libdw agrees with every row");
	/* the rule of the last row of the table that has one */
	for (vaddr = v.head->vaddr + v.head->n_segs * UINT64_C(0x10000) - 1;
		(here = rule_at(&v, vaddr)) == 0;)
		vaddr--;
	changed(t, f, &v, here);
	elffile_close(f);
	free(bytes);
}

/* A table without rows. */
static void test_rows(struct tap *t)
{
	struct unwindtab_head empty = { .magic = 0, .n_rules = 1 };
	struct elffile *f = NULL;
	struct unwindcmp_totals n;
	uint8_t bytes[sizeof(empty) + sizeof(struct unwind_rule)] __attribute__((aligned(8))) = { 0 };
	char first[256] = "";

	if (elffile_open(AT_FDCWD, "/proc/self/exe", false, &f, NULL))
		return;
	memcpy(bytes, &empty, sizeof(empty));
	unwindtab_seal(bytes, sizeof(bytes));
	n = compare(f, bytes, sizeof(bytes), first);
	tap_ok(t, n.differences > 100 && n.rows == 0,
		"a table without rows differs in every row of libdw (%llu) %s",
		(unsigned long long)n.differences, first);
	elffile_close(f);
}

static void test_eval(struct tap *t)
{
	const struct dwarfeval m = { .seed = 1, .pc = 0x1000c, .pc_reg = 16, .cfa = 100 };
	const Dwarf_Op plt[] = { { .atom = DW_OP_breg7, .number = 8 }, { .atom = DW_OP_breg16 },
		{ .atom = DW_OP_lit15 }, { .atom = DW_OP_and }, { .atom = DW_OP_lit11 }, { .atom = DW_OP_ge },
		{ .atom = DW_OP_lit3 }, { .atom = DW_OP_shl }, { .atom = DW_OP_plus } };
	const Dwarf_Op saved[] = { { .atom = DW_OP_call_frame_cfa },
		{ .atom = DW_OP_plus_uconst, .number = (Dwarf_Word)-16 } };
	const Dwarf_Op value[] = { { .atom = DW_OP_call_frame_cfa }, { .atom = DW_OP_stack_value } };
	const Dwarf_Op in_reg[] = { { .atom = DW_OP_regx, .number = 5 } };
	const Dwarf_Op dry[] = { { .atom = DW_OP_lit1 }, { .atom = DW_OP_plus } };
	const Dwarf_Op unknown[] = { { .atom = DW_OP_piece, .number = 8 } };
	const Dwarf_Op sums[] = { { .atom = DW_OP_const1u, .number = 12 }, { .atom = DW_OP_lit5 },
		{ .atom = DW_OP_minus }, { .atom = DW_OP_dup }, { .atom = DW_OP_mul }, { .atom = DW_OP_lit3 },
		{ .atom = DW_OP_drop } };
	uint64_t v = 0, sp = dwarfeval_register(&m, 7);

	tap_ok(t, dwarfeval_value(&m, plt, ARRAY_LEN(plt), &v) && v == sp + 16,
		"the expression of a PLT is evaluated");
	tap_ok(t, dwarfeval_value(&m, sums, ARRAY_LEN(sums), &v) && v == 49, "arithmetic is evaluated");
	tap_ok(t, dwarfeval_location(&m, saved, 2, &v) && v == dwarfeval_memory(&m, 84),
		"a location in memory is read");
	tap_ok(t, dwarfeval_location(&m, value, 2, &v) && v == 100,
		"a location with DW_OP_stack_value is a value");
	tap_ok(t, dwarfeval_location(&m, in_reg, 1, &v) && v == dwarfeval_register(&m, 5),
		"a register location is read");
	tap_ok(t, !dwarfeval_value(&m, dry, 2, &v), "an expression whose stack underflows has no value");
	tap_ok(t, !dwarfeval_value(&m, unknown, 1, &v),
		"an expression with an unknown operation has no value");
	tap_ok(t,
		dwarfeval_register(&m, 3) != dwarfeval_register(&m, 4) &&
			dwarfeval_memory(&m, 3) != dwarfeval_register(&m, 3),
		"registers and memory hold different values");
}

static void print_one(void *arg, uint64_t pc, const char *text)
{
	(void)arg;
	printf("%016" PRIx64 " %s\n", pc, text);
}

static int print_totals(const char *path)
{
	struct unwindcmp_totals n = { 0 };
	struct elffile *f = NULL;
	uint8_t *bytes = NULL;
	struct unwindtab t;
	struct err e;
	size_t len;
	int rc = elffile_open(AT_FDCWD, path, false, &f, &e);

	rc = rc ? rc : unwindcomp(f, &bytes, &len, &e);
	rc = rc ? rc : unwindtab_view(bytes, len, &t, &e);
	rc = rc ? rc : unwindcmp(f, &t, print_one, NULL, &n, &e);
	if (rc)
		fprintf(stderr, "'%s': %s\n", path, e.msg);
	else
		printf("compared    %" PRIu64 "\nnot held    %" PRIu64 "\nrefused     %" PRIu64
		       "\nblank       %" PRIu64 "\nbeyond      %" PRIu64 "\ndifferences %" PRIu64 "\n",
			n.rows, n.unheld, n.refused, n.blank, n.beyond, n.differences);
	free(bytes);
	elffile_close(f);
	return rc ? 2 : n.differences != 0;
}

int main(int argc, char *argv[])
{
	struct tap t = { 0 };

	if (argc > 1)
		return print_totals(argv[1]);
	test_eval(&t);
	test_compare(&t);
	test_rows(&t);
	return tap_done(&t);
}
