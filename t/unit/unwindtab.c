/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Builds tables from rows, checks and searches them, and compares with a linear search of the rows. */
#include "base/tap.h"
#include "unwind/compile.h"
#include "unwind/table.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define MAX_ROWS 100000
#define SEG (UINT64_C(1) << UNWIND_SEG_SHIFT)

struct row {
	uint64_t pc;
	struct unwind_rule rule;
};

struct table {
	uint8_t *bytes;
	size_t len;
	struct unwindtab view;
};

static const struct unwind_rule none;

static struct unwind_rule by_sp(int off)
{
	return (struct unwind_rule){
		.cfa = UNWIND_CFA_REG, .reg = 7, .ra = UNWIND_RA_CALL, .cfa_off = off, .ra_off = -24
	};
}

static uint32_t chance(uint32_t *seed)
{
	return *seed = *seed * 1664525 + 1013904223, *seed >> 8;
}

static bool same(const struct unwind_rule *a, const struct unwind_rule *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* Build and check the table of N rows. False if a step fails. */
static bool make(const struct row *rows, size_t n, struct table *t)
{
	const struct unwindtab_load loads[] = { { 0x1000, 0x10000, 0x8000 }, { 0x9000, 0x30000, 0x100 } };
	struct unwindtab_head head = { .machine = 62, .n_loads = ARRAY_LEN(loads) };
	struct unwindrows *r = NULL;
	bool good = unwindrows_open(&r, NULL) == 0;

	t->bytes = NULL;
	for (size_t i = 0; good && i < n; i++)
		good = unwindrows_add(r, rows[i].pc, &rows[i].rule, NULL) == 0;
	good = good && unwindrows_finish(r, &head, loads, &t->bytes, &t->len, NULL) == 0 &&
	       unwindtab_view(t->bytes, t->len, &t->view, NULL) == 0;
	unwindrows_close(r);
	return good;
}

/* The rule at PC by a linear search of ROWS. */
static const struct unwind_rule *listed(const struct row *rows, size_t n, uint64_t pc)
{
	const struct unwind_rule *found = &none;

	for (size_t i = 0; i < n && rows[i].pc <= pc; i++)
		found = &rows[i].rule;
	return found;
}

static bool right_at(const struct table *t, const struct row *rows, size_t n, uint64_t pc)
{
	uint64_t start = 0, end = 0;
	const struct unwind_rule *got = unwindtab_find(&t->view, pc, &start, &end);
	const struct unwind_rule *want = listed(rows, n, pc);

	if (!got)
		return same(want, &none);
	return same(got, want) && start <= pc && pc < end && same(listed(rows, n, start), want) &&
	       same(listed(rows, n, end - 1), want);
}

/* --- building and searching --- */

static size_t random_rows(struct row *rows, size_t max, uint32_t seed)
{
	uint64_t pc = 0x401000 + chance(&seed) % 0x20000;
	size_t n = chance(&seed) % max + 1;

	for (size_t i = 0; i < n; i++) {
		uint32_t kind = chance(&seed) % 8;

		rows[i].pc = pc;
		rows[i].rule = kind == 0 && i ? none : by_sp(8 + 8 * (int)(chance(&seed) % 40));
		pc += kind == 1  ? chance(&seed) % (3 * SEG) + 1
		      : kind < 4 ? chance(&seed) % 600 + 1
				 : chance(&seed) % 9 + 1;
	}
	rows[n - 1].rule = none;
	return n;
}

static void test_random(struct tap *t)
{
	struct row *rows = calloc(1000, sizeof(*rows));
	size_t wrong = 0;

	for (uint32_t seed = 1; rows && seed <= 200; seed++) {
		size_t n = random_rows(rows, 1000, seed);
		struct table tab;

		if (!make(rows, n, &tab)) {
			wrong++;
			continue;
		}
		for (size_t i = 0; i < n; i++) {
			uint64_t border = rows[i].pc & ~(SEG - 1);

			wrong += !right_at(&tab, rows, n, rows[i].pc);
			wrong += !right_at(&tab, rows, n, rows[i].pc - 1);
			wrong += !right_at(&tab, rows, n, border);
			wrong += !right_at(&tab, rows, n, border + SEG - 1);
		}
		wrong += unwindtab_find(&tab.view, tab.view.head->vaddr - 1, NULL, NULL) != NULL;
		free(tab.bytes);
	}
	free(rows);
	tap_eq_u64(t, wrong, 0, "200 tables of random rows agree with a linear search at every border");
}

static void test_shape(struct tap *t)
{
	const struct row rows[] = { { 0x12345, by_sp(8) }, { 0x12346, by_sp(8) }, { 0x12350, by_sp(16) },
		{ 0x45678, none }, { 0x45680, by_sp(8) }, { 0x45690, none } };
	struct table tab;
	uint64_t start, end;

	if (!tap_ok(t, make(rows, ARRAY_LEN(rows), &tab), "a table is built and accepted"))
		return;
	tap_eq_u64(t, tab.view.head->vaddr, 0x10000, "a table begins with the segment of the first row");
	tap_eq_u64(t, tab.view.head->n_segs, 4, "a table ends with the last segment that has a row");
	tap_eq_u64(t, tab.view.head->n_rules, 3, "equal rules are stored once, and rule 0 is reserved");
	tap_eq_u64(t, tab.view.head->n_rows, 3 + 1 + 1 + 4, "a row that changes nothing is dropped");
	unwindtab_find(&tab.view, 0x12347, &start, &end);
	tap_ok(t, start == 0x12345 && end == 0x12350, "a row is valid up to the next one that differs");
	unwindtab_find(&tab.view, 0x2ffff, &start, &end);
	tap_ok(t, start == 0x20000 && end == 0x30000, "a row that covers a whole segment is found there");
	tap_ok(t, same(unwindtab_find(&tab.view, 0x12344, NULL, NULL), &none),
		"before the first row there is no rule");
	tap_ok(t, unwindtab_find(&tab.view, 0x50000, NULL, NULL) == NULL,
		"behind the table nothing is found");
	tap_ok(t, unwindtab_find(&tab.view, 0xffff, NULL, NULL) == NULL, "before the table nothing is found");
	free(tab.bytes);
	tap_ok(t, make(rows, 0, &tab) && tab.view.head->n_segs == 0 && tab.view.head->n_rules == 1,
		"a table without rows is valid");
	free(tab.bytes);
}

static void test_rules_run_out(struct tap *t)
{
	struct row *rows = calloc(UNWINDTAB_RULES_MAX + 100, sizeof(*rows));
	size_t n = UNWINDTAB_RULES_MAX + 100, wrong = 0;
	struct table tab;

	for (size_t i = 0; rows && i < n; i++)
		rows[i] = (struct row){ 0x1000 + 8 * i, by_sp((int)i) };
	if (!rows || !tap_ok(t, make(rows, n, &tab), "a file with too many rules gets a table"))
		return;
	for (size_t i = 0; i < n; i++) {
		const struct unwind_rule *r = unwindtab_find(&tab.view, 0x1000 + 8 * i, NULL, NULL);

		wrong += i < UNWINDTAB_RULES_MAX - 2 ? !same(r, &rows[i].rule)
						     : r->cfa != UNWIND_CFA_UNSUPPORTED;
	}
	tap_eq_u64(t, tab.view.head->n_rules, UNWINDTAB_RULES_MAX,
		"a table for too many rules has the maximum number of rules");
	tap_eq_u64(t, wrong, 0, "rows beyond the rule limit are unsupported, the others are right");
	free(tab.bytes);
	free(rows);
}

static void test_rows_run_out(struct tap *t)
{
	struct row *rows = calloc(MAX_ROWS, sizeof(*rows));
	size_t wrong = 0;
	struct table tab;

	for (size_t i = 0; rows && i < MAX_ROWS; i++)
		rows[i] = (struct row){ 0x10000 + i, by_sp(i & 1 ? 8 : 16) };
	if (!rows || !tap_ok(t, make(rows, MAX_ROWS, &tab), "a row at every byte gives a table"))
		return;
	tap_eq_u64(t, tab.view.segs[0].rows, UNWIND_ROWS_MAX,
		"a segment has at most the maximum number of rows");
	for (size_t i = 0; i < MAX_ROWS; i++) {
		const struct unwind_rule *r = unwindtab_find(&tab.view, 0x10000 + i, NULL, NULL);

		if (i == UNWIND_ROWS_MAX - 1 || i == UNWIND_ROWS_MAX)
			wrong += r->cfa != UNWIND_CFA_UNSUPPORTED;
		else
			wrong += !same(r, &rows[i].rule);
	}
	tap_eq_u64(
		t, wrong, 0, "rows beyond a segment's limit are unsupported, and the next segment is right");
	free(tab.bytes);
	free(rows);
}

static void test_too_wide(struct tap *t)
{
	const struct row rows[] = { { 0x1000, by_sp(8) }, { 0x1000 + UNWINDTAB_SEGS_MAX * SEG, by_sp(16) } };
	const struct unwind_rule rule = by_sp(8), other = by_sp(16);
	struct unwindrows *r;
	struct err e = { 0 };
	struct table tab;

	tap_ok(t, !make(rows, 2, &tab), "text of more than 4 GiB has no table");
	if (unwindrows_open(&r, NULL))
		return;
	unwindrows_add(r, 0x1000, &rule, NULL);
	tap_ok(t, unwindrows_add(r, rows[1].pc, &other, &e) == -E2BIG,
		"adding a row beyond 4 GiB gives E2BIG: %s", e.msg);
	unwindrows_close(r);
}

/* --- damage --- */

/* A small table with two segments, an empty one between them, and every kind of rule. */
static bool small_table(struct table *tab)
{
	struct row rows[] = { { 0x10010, by_sp(8) }, { 0x10011, by_sp(16) }, { 0x10110, by_sp(24) },
		{ 0x10120, { .cfa = UNWIND_CFA_PLT, .reg = 7, .cfa_off = 8, .ra_off = 11 } },
		{ 0x10140, { .cfa = UNWIND_CFA_DEREF_PLUS, .reg = 7, .cfa_off = 40, .ra_off = 8 } },
		{ 0x10150, { .cfa = UNWIND_CFA_UNSUPPORTED, .ra = UNWIND_RA_UNSUPPORTED } },
		{ 0x10160, none },
		{ 0x30000, { .cfa = UNWIND_CFA_DEREF,
				   .reg = 7,
				   .fp = UNWIND_FP_AT_SP,
				   .ra = UNWIND_RA_AT_SP,
				   .flags = UNWIND_SIGNAL,
				   .cfa_off = 160,
				   .fp_off = 120,
				   .ra_off = 168 } },
		{ 0x30009, { .cfa = UNWIND_CFA_REG, .reg = 7, .ra = UNWIND_RA_REG, .ra_off = 5 } },
		{ 0x30010, none } };

	return make(rows, ARRAY_LEN(rows), tab);
}

/* LEN writable bytes that end at an unmapped page. */
static uint8_t *before_hole(size_t len)
{
	size_t room = (len + 4095) & ~(size_t)4095;
	uint8_t *p = mmap(NULL, room + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + room, 4096, PROT_NONE))
		abort();
	return p + room - len;
}

static void drop(uint8_t *p, size_t len)
{
	size_t room = (len + 4095) & ~(size_t)4095;

	munmap(p + len - room, room + 4096);
}

/* Does every search stay inside its arrays and find a valid rule? BPF reads without further checks. */
static bool safe(const struct unwindtab *v)
{
	uint64_t from = v->head->vaddr, to = from + (uint64_t)v->head->n_segs * SEG;

	for (uint64_t pc = from; pc < to; pc += pc % 0x10000 < 0x200 ? 1 : 0x80) {
		uint64_t start, end;
		const struct unwind_rule *r = unwindtab_find(v, pc, &start, &end);

		if (!r || r < v->rules || r >= v->rules + v->head->n_rules || start > pc || end <= pc ||
			r->cfa > UNWIND_CFA_DEREF_PLUS || r->ra > UNWIND_RA_CALL || r->fp > UNWIND_FP_UNKNOWN)
			return false;
	}
	return true;
}

static void test_flips(struct tap *t, const struct table *tab)
{
	static const uint8_t changes[] = { 0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff, 0x7f };
	uint8_t *p = before_hole(tab->len);
	size_t accepted = 0, unsafe = 0, unsealed = 0;
	struct unwindtab v;

	for (size_t i = 0; i < tab->len; i++) {
		for (size_t k = 0; k < ARRAY_LEN(changes); k++) {
			memcpy(p, tab->bytes, tab->len);
			p[i] ^= changes[k];
			unsealed += unwindtab_view(p, tab->len, &v, NULL) == 0;
			unwindtab_seal(p, tab->len);
			if (unwindtab_view(p, tab->len, &v, NULL) == 0) {
				accepted++;
				unsafe += !safe(&v);
			}
		}
	}
	drop(p, tab->len);
	tap_eq_u64(t, unsealed, 0, "no changed byte passes the checksum");
	tap_ok(t, accepted > 0, "with a corrected checksum some changed tables are accepted");
	tap_eq_u64(t, unsafe, 0, "every search of an accepted table stays inside it");
}

static void test_cuts(struct tap *t, const struct table *tab)
{
	size_t accepted = 0;
	struct unwindtab v;

	for (size_t n = 0; n < tab->len; n += n < 256 ? 1 : 8) {
		uint8_t *p = before_hole(n & ~(size_t)7);

		memcpy(p, tab->bytes, n & ~(size_t)7);
		accepted += unwindtab_view(p, n & ~(size_t)7, &v, NULL) == 0;
		if (n >= sizeof(struct unwindtab_head)) {
			unwindtab_seal(p, n & ~(size_t)7);
			accepted += unwindtab_view(p, n & ~(size_t)7, &v, NULL) == 0;
		}
		drop(p, n & ~(size_t)7);
	}
	tap_eq_u64(t, accepted, 0, "a table cut at any place is refused, even with a right checksum");
}

/* Write VALUE at AT of a copy and seal it: it must be refused with -EINVAL and WHY in the message. */
static void refuse(struct tap *t, const struct table *tab, size_t at, uint64_t value, size_t width,
	const char *why, const char *name)
{
	uint8_t *p = malloc(tab->len);
	struct err e = { 0 };
	struct unwindtab v;
	bool magic = at == 0;

	memcpy(p, tab->bytes, tab->len);
	memcpy(p + at, &value, width);
	if (!magic)
		unwindtab_seal(p, tab->len);
	tap_ok(t, unwindtab_view(p, tab->len, &v, &e) == -EINVAL && strstr(e.msg, why), "%s (%s)", name,
		e.msg);
	free(p);
}

static void test_refusals(struct tap *t, const struct table *tab)
{
	const struct unwindtab *v = &tab->view;
	size_t segs = (size_t)((const uint8_t *)v->segs - tab->bytes);
	size_t rules = (size_t)((const uint8_t *)v->rules - tab->bytes);
	size_t first = v->segs[0].at, pc = first + 514 + 2 * v->segs[0].rows;
	struct unwindtab out;

	refuse(t, tab, 0, 1, 1, "not an unwind table", "a table with another magic is refused");
	refuse(t, tab, offsetof(struct unwindtab_head, vaddr), 0x10001, 8, "head",
		"an unaligned address is refused");
	refuse(t, tab, offsetof(struct unwindtab_head, n_segs), 65536, 4, "head",
		"too many segments are refused");
	refuse(t, tab, offsetof(struct unwindtab_head, n_segs), 65535, 4, "shorter",
		"more segments than bytes are refused");
	refuse(t, tab, offsetof(struct unwindtab_head, n_rules), 0, 4, "head",
		"a table without rules is refused");
	refuse(t, tab, offsetof(struct unwindtab_head, n_rules), UNWINDTAB_RULES_MAX + 1, 4, "head",
		"too many rules are refused");
	refuse(t, tab, offsetof(struct unwindtab_head, n_loads), UNWINDTAB_LOADS_MAX + 1, 4, "head",
		"too many loads are refused");
	refuse(t, tab, offsetof(struct unwindtab_head, n_rows), 5, 8, "miscounts",
		"a wrong number of rows is refused");
	refuse(t, tab, segs, 0xfffffff8, 4, "outside", "a segment outside the table is refused");
	refuse(t, tab, segs, v->segs[0].at - 8U, 4, "outside", "a segment inside the rules is refused");
	refuse(t, tab, segs + 4, 65536, 4, "outside", "a segment of too many rows is refused");
	refuse(t, tab, segs + 16, v->segs[0].at, 4, "outside", "a segment inside another one is refused");
	refuse(t, tab, rules, 1, 1, "kind of rule", "a rule 0 that is not empty is refused");
	refuse(t, tab, rules + 16, 0, 1, "kind of rule", "an empty rule other than rule 0 is refused");
	refuse(t, tab, rules + 16, UNWIND_CFA_DEREF_PLUS + 1, 1, "kind of rule",
		"an unknown kind of CFA is refused");
	refuse(t, tab, rules + 17, 32, 1, "kind of rule", "an unknown register is refused");
	refuse(t, tab, rules + 18, 6, 1, "kind of rule", "an unknown kind of frame pointer is refused");
	refuse(t, tab, rules + 18, 6 << 4, 1, "kind of rule", "an unknown kind of return address is refused");
	refuse(t, tab, rules + 28, 2, 4, "kind of rule", "an unknown kind of second register is refused");
	refuse(t, tab, rules + 28, 8, 4, "kind of rule", "a second register above the frame is refused");
	refuse(t, tab, rules + 28, (uint32_t)-12, 4, "kind of rule",
		"a second register across two words is refused");
	refuse(t, tab, rules + 4 * 16 + 2, UNWIND_RA_CALL << 4, 1, "kind of rule",
		"a second register in a rule without room for it is refused");
	refuse(t, tab, rules + 19, 16, 1, "kind of rule", "an unknown flag is refused");
	refuse(t, tab, first, 1, 2, "out of order", "a first page that does not begin with row 0 is refused");
	refuse(t, tab, first + 2, 0, 2, "out of order", "a first page without row 0 is refused");
	refuse(t, tab, first + 4, 0xffff, 2, "out of order", "a page behind the rows is refused");
	refuse(t, tab, first + 512, 1, 2, "out of order", "pages that do not end with the rows are refused");
	refuse(t, tab, first + 514, 0xffff, 2, "out of order", "a rule number beyond the rules is refused");
	refuse(t, tab, pc, 1, 1, "out of order", "a row 0 that does not begin the segment is refused");
	refuse(t, tab, pc + 2, 0x10, 1, "out of order", "a row at the address of the one before is refused");
	tap_ok(t, unwindtab_view(tab->bytes + 4, tab->len - 4, &out, NULL) == -EINVAL,
		"a table at an unaligned address is refused");
}

static void test_loads(struct tap *t, const struct table *tab)
{
	uint64_t v = 0;

	tap_ok(t, unwindtab_vaddr(&tab->view, 0x1000, &v) && v == 0x10000,
		"the first byte of a load has its address");
	tap_ok(t, unwindtab_vaddr(&tab->view, 0x8fff, &v) && v == 0x17fff,
		"the last byte of a load has its address");
	tap_ok(t, unwindtab_vaddr(&tab->view, 0x9000, &v) && v == 0x30000,
		"the byte behind a load belongs to the next load");
	tap_ok(t, !unwindtab_vaddr(&tab->view, 0x9100, &v), "an offset behind all loads has no address");
	tap_ok(t, !unwindtab_vaddr(&tab->view, 0xfff, &v), "an offset before all loads has no address");
}

/* Registers have DWARF numbers; 0 is valid, it is RAX. */
static void test_registers(struct tap *t)
{
	static const struct {
		int reg;
		bool good;
	} by[] = { { -1, false }, { 0, true }, { 15, true }, { 31, true }, { 32, false } };

	for (size_t i = 0; i < ARRAY_LEN(by); i++) {
		const struct row ra[] = { { 0x10010, { .cfa = UNWIND_CFA_REG,
							     .reg = 7,
							     .ra = UNWIND_RA_REG,
							     .ra_off = by[i].reg } },
			{ 0x10020, none } };
		const struct row fp[] = { { 0x10010, { .cfa = UNWIND_CFA_REG,
							     .reg = 7,
							     .fp = UNWIND_FP_REG,
							     .fp_off = by[i].reg } },
			{ 0x10020, none } };
		struct table tab;

		tap_ok(t, make(ra, 2, &tab) == by[i].good, "a return address in register %d is %s", by[i].reg,
			by[i].good ? "accepted" : "refused");
		free(tab.bytes);
		tap_ok(t, make(fp, 2, &tab) == by[i].good, "a frame pointer in register %d is %s", by[i].reg,
			by[i].good ? "accepted" : "refused");
		free(tab.bytes);
	}
}

static void test_texts(struct tap *t)
{
	size_t empty = 0;

	for (unsigned int i = 0; i <= UNWINDTAB_LEFT; i++)
		empty += !unwindtab_left_text(i) || !*unwindtab_left_text(i);
	tap_eq_u64(t, empty, 0, "every reason for a dropped entry has a text, also an unknown one");
}

int main(void)
{
	struct tap t = { 0 };
	struct table tab;

	test_shape(&t);
	test_random(&t);
	test_rules_run_out(&t);
	test_rows_run_out(&t);
	test_too_wide(&t);
	if (tap_ok(&t, small_table(&tab), "a table with every kind of rule is accepted")) {
		tap_ok(&t, safe(&tab.view), "searches of a table with every kind of rule stay inside it");
		test_flips(&t, &tab);
		test_cuts(&t, &tab);
		test_refusals(&t, &tab);
		test_loads(&t, &tab);
		free(tab.bytes);
	}
	test_registers(&t);
	test_texts(&t);
	return tap_done(&t);
}
