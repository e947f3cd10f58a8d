/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/unwindrows.h"
#include "base/hash.h"

#include <errno.h>

#define SEG_BYTES (UINT64_C(1) << UNWIND_SEG_SHIFT)
#define SLOTS_FIRST 1024 /* few files have more rules than half of it, and these stay in the cache */
#define ALIGN_UP(n) (((n) + 7) & ~(uint64_t)7)

/* The segment that is being filled. */
struct segment {
	uint32_t rows;
	uint32_t page; /* first[] is right up to this one */
	uint16_t first[UNWIND_SEG_PAGES + 1];
	uint16_t rule[UNWIND_ROWS_MAX];
	uint8_t pc[UNWIND_ROWS_MAX];
};

struct unwindrows {
	bool begun;
	uint64_t vaddr; /* of the first segment */
	uint16_t in_force; /* the rule of the last row */
	struct segment seg;
	struct unwindtab_seg *segs; /* those that are written; `at` counts from the first of them */
	size_t n_segs, segs_cap; /* n_segs is the number of the one being filled */
	uint8_t *bytes;
	size_t len, bytes_cap;
	uint64_t n_rows, left;
	struct unwind_rule *rules;
	size_t n_rules, rules_cap;
	uint64_t seed;
	uint16_t *slots; /* rule numbers by content, at most half of them taken; 0 = free */
	size_t n_slots;
};

static const struct unwind_rule unsupported = { .cfa = UNWIND_CFA_UNSUPPORTED, .ra = UNWIND_RA_UNSUPPORTED };

/* --- rules --- */

static bool same_rule(const struct unwind_rule *a, const struct unwind_rule *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static int append_rule(struct unwindrows *r, const struct unwind_rule *rule)
{
	if (base_grow(&r->rules, &r->rules_cap, r->n_rules + 1, sizeof(*r->rules)))
		return -ENOMEM;
	r->rules[r->n_rules++] = *rule;
	return 0;
}

/* The slot of RULE, or the free one where it belongs. */
static inline uint16_t *slot_of(const struct unwindrows *r, const struct unwind_rule *rule)
{
	uint64_t words[2];
	size_t at;

	memcpy(words, rule, sizeof(words));
	at = hash_mul(words[0] ^ r->seed, words[1] ^ HASH_K1) & (r->n_slots - 1);
	while (r->slots[at] && !same_rule(&r->rules[r->slots[at]], rule))
		at = (at + 1) & (r->n_slots - 1);
	return &r->slots[at];
}

static int grow_slots(struct unwindrows *r)
{
	size_t n = r->n_slots ? 2 * r->n_slots : SLOTS_FIRST;
	uint16_t *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	free(r->slots);
	r->slots = slots;
	r->n_slots = n;
	for (size_t i = 1; i < r->n_rules; i++)
		*slot_of(r, &r->rules[i]) = (uint16_t)i;
	return 0;
}

static int add_rule(struct unwindrows *r, const struct unwind_rule *rule, uint16_t *ret)
{
	*ret = (uint16_t)r->n_rules;
	if (append_rule(r, rule) || (2 * r->n_rules > r->n_slots && grow_slots(r)))
		return -ENOMEM;
	*slot_of(r, rule) = *ret;
	return 0;
}

/* The number of RULE. The last number is kept for what cannot be held. */
static int number_of(struct unwindrows *r, const struct unwind_rule *rule, uint16_t *ret)
{
	if (same_rule(rule, &r->rules[0])) {
		*ret = 0;
		return 0;
	}
	*ret = *slot_of(r, rule);
	if (*ret)
		return 0;
	if (r->n_rules >= UNWINDTAB_RULES_MAX - 1 && !same_rule(rule, &unsupported)) {
		r->left++;
		return number_of(r, &unsupported, ret);
	}
	return add_rule(r, rule, ret);
}

/* --- segments --- */

/* N bytes at the end, at a multiple of 8; NULL when memory ran out. */
static uint8_t *extend(struct unwindrows *r, size_t n)
{
	size_t need = r->len + ALIGN_UP(n);
	uint8_t *at;

	if (need > r->bytes_cap) {
		size_t cap = MAX(2 * r->bytes_cap, need + 65536);
		uint8_t *p = realloc(r->bytes, cap);

		if (!p)
			return NULL;
		r->bytes = p;
		r->bytes_cap = cap;
	}
	at = r->bytes + r->len;
	memset(at + n, 0, ALIGN_UP(n) - n);
	r->len = need;
	return at;
}

/* One without any unwind information takes no room. */
static bool is_blank(const struct segment *s)
{
	return s->rows == 1 && s->rule[0] == 0;
}

/* Write the segment that was filled; the next one is not begun. */
static int close_segment(struct unwindrows *r)
{
	struct segment *s = &r->seg;
	struct unwindtab_seg *ret;
	uint8_t *at;

	if (base_grow(&r->segs, &r->segs_cap, r->n_segs + 1, sizeof(*r->segs)))
		return -ENOMEM;
	ret = &r->segs[r->n_segs++];
	*ret = (struct unwindtab_seg){ 0 };
	if (is_blank(s))
		return 0;
	while (s->page < UNWIND_SEG_PAGES)
		s->first[++s->page] = (uint16_t)s->rows;
	if (r->len > UINT32_MAX)
		return -E2BIG;
	*ret = (struct unwindtab_seg){ (uint32_t)r->len, s->rows };
	at = extend(r, UNWIND_SEG_BYTES(s->rows));
	if (!at)
		return -ENOMEM;
	memcpy(at, s->first, sizeof(s->first));
	memcpy(at + sizeof(s->first), s->rule, 2 * (size_t)s->rows);
	memcpy(at + sizeof(s->first) + 2 * (size_t)s->rows, s->pc, s->rows);
	r->n_rows += s->rows;
	return 0;
}

static void append_row(struct segment *s, uint32_t offset, uint16_t rule)
{
	uint32_t page = offset >> UNWIND_PAGE_SHIFT;

	while (s->page < page)
		s->first[++s->page] = (uint16_t)s->rows;
	s->rule[s->rows] = rule;
	s->pc[s->rows++] = (uint8_t)offset;
}

static void begin_segment(struct segment *s, uint16_t rule)
{
	s->rows = 0;
	s->page = 0;
	s->first[0] = 0;
	append_row(s, 0, rule);
}

/* Make the segment of PC the one that is being filled. */
static int reach(struct unwindrows *r, uint64_t pc)
{
	uint64_t want = (pc - r->vaddr) >> UNWIND_SEG_SHIFT;
	int rc;

	if (want >= UNWINDTAB_SEGS_MAX)
		return -E2BIG;
	while (r->n_segs < want) {
		rc = close_segment(r);
		if (rc)
			return rc;
		begin_segment(&r->seg, r->in_force);
	}
	return 0;
}

static void begin(struct unwindrows *r, uint64_t pc)
{
	r->begun = true;
	r->vaddr = pc & ~(SEG_BYTES - 1);
	begin_segment(&r->seg, 0);
}

/* The row that a segment begins with gives way to one at its first byte. */
static void put_row(struct segment *s, uint32_t offset, uint16_t rule)
{
	if (offset == 0)
		s->rule[0] = rule;
	else
		append_row(s, offset, rule);
}

/* The way of every row; unwindrows_add() has a shorter one for all but a few. */
static int add_row(struct unwindrows *r, uint64_t pc, const struct unwind_rule *rule)
{
	uint16_t number;
	int rc;

	if (!r->begun)
		begin(r, pc);
	rc = number_of(r, rule, &number);
	rc = rc ? rc : reach(r, pc);
	if (rc || number == r->in_force)
		return rc;
	if (r->seg.rows >= UNWIND_ROWS_MAX - 1) {
		r->left++;
		rc = number_of(r, &unsupported, &number);
		if (rc || number == r->in_force)
			return rc;
	}
	put_row(&r->seg, (uint32_t)(pc & (SEG_BYTES - 1)), number);
	r->in_force = number;
	return 0;
}

int unwindrows_add(struct unwindrows *r, uint64_t pc, const struct unwind_rule *rule, struct err *e)
{
	uint64_t offset = pc - r->vaddr - (r->n_segs << UNWIND_SEG_SHIFT);
	uint16_t number = *slot_of(r, rule);
	int rc;

	if (number && r->begun && offset < SEG_BYTES && r->seg.rows < UNWIND_ROWS_MAX - 1) {
		if (number != r->in_force)
			put_row(&r->seg, (uint32_t)offset, number);
		r->in_force = number;
		return 0;
	}
	rc = add_row(r, pc, rule);
	if (rc == -E2BIG)
		return err_set(e, rc, "text of more than 4 GiB");
	return rc ? err_nomem(e, "unwind rows") : 0;
}

uint64_t unwindrows_left(const struct unwindrows *r)
{
	return r->left;
}

int unwindrows_open(struct unwindrows **ret, struct err *e)
{
	static const struct unwind_rule none;
	struct unwindrows *r = calloc(1, sizeof(*r));

	if (!r)
		return err_nomem(e, "unwind rows");
	r->seed = (uintptr_t)r; /* nobody outside knows it, so nobody can prepare collisions */
	if (append_rule(r, &none) || grow_slots(r)) {
		unwindrows_close(r);
		return err_nomem(e, "unwind rules");
	}
	*ret = r;
	return 0;
}

void unwindrows_close(struct unwindrows *r)
{
	if (!r)
		return;
	free(r->segs);
	free(r->bytes);
	free(r->rules);
	free(r->slots);
	free(r);
}

/* --- the whole --- */

/* Put the parts before the segments in front of them. */
static void write_front(
	struct unwindrows *r, const struct unwindtab_load *loads, size_t n_loads, uint64_t front)
{
	uint8_t *at = r->bytes + sizeof(struct unwindtab_head);

	for (size_t i = 0; i < r->n_segs; i++)
		if (r->segs[i].rows)
			r->segs[i].at += (uint32_t)front;
	memset(r->bytes, 0, front);
	if (n_loads)
		memcpy(at, loads, n_loads * sizeof(*loads));
	at += n_loads * sizeof(*loads);
	if (r->n_segs)
		memcpy(at, r->segs, r->n_segs * sizeof(*r->segs));
	at += r->n_segs * sizeof(*r->segs);
	memcpy(at, r->rules, r->n_rules * sizeof(*r->rules));
}

static int assemble(struct unwindrows *r, const struct unwindtab_load *loads, size_t n_loads)
{
	uint64_t front, tail = r->len;

	while (r->n_segs && !r->segs[r->n_segs - 1].rows)
		r->n_segs--;
	front = sizeof(struct unwindtab_head) + n_loads * sizeof(*loads) + r->n_segs * sizeof(*r->segs) +
		r->n_rules * sizeof(*r->rules);
	if (tail + front > UINT32_MAX)
		return -E2BIG;
	if (!extend(r, front))
		return -ENOMEM;
	memmove(r->bytes + front, r->bytes, tail);
	write_front(r, loads, n_loads, front);
	return 0;
}

int unwindrows_finish(struct unwindrows *r, const struct unwindtab_head *head,
	const struct unwindtab_load *loads, uint8_t **ret, size_t *len, struct err *e)
{
	int rc = r->begun ? close_segment(r) : 0;
	struct unwindtab_head *h;

	rc = rc ? rc : assemble(r, loads, head->n_loads);
	if (rc == -E2BIG)
		return err_set(e, rc, "an unwind table of more than 4 GiB");
	if (rc)
		return err_nomem(e, "an unwind table");
	h = (struct unwindtab_head *)r->bytes;
	*h = *head;
	h->vaddr = r->vaddr;
	h->n_segs = (uint32_t)r->n_segs;
	h->n_rules = (uint32_t)r->n_rules;
	h->n_rows = r->n_rows;
	*len = r->len;
	*ret = TAKE_PTR(r->bytes);
	unwindtab_seal(*ret, *len);
	return 0;
}
