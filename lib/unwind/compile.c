/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/compile.h"
#include "base/hash.h"
#include "base/hashtable.h"
#include "elf/section.h"
#include "unwind/go.h"
#include "unwind/interpreter.h"
#include "unwind/machine.h"

#include <elf.h>
#include <errno.h>

#define SEG_BYTES (UINT64_C(1) << UNWIND_SEG_SHIFT)
#define ALIGN_UP(n) (((n) + 7) & ~(uint64_t)7)

/* The segment that is being filled. */
struct segment {
	uint32_t rows;
	uint32_t page; /* first[] is valid up to this one */
	uint16_t first[UNWIND_SEG_PAGES + 1];
	uint16_t rule[UNWIND_ROWS_MAX];
	uint8_t pc[UNWIND_ROWS_MAX];
};

struct unwindrows {
	bool begun;
	uint64_t vaddr; /* of the first segment */
	uint16_t in_force; /* the rule of the last row */
	struct segment seg;
	struct unwindtab_seg *segs; /* finished segments; `at` is relative to the first one */
	size_t n_segs, segs_cap; /* n_segs is the index of the one being filled */
	uint8_t *bytes;
	size_t len, bytes_cap;
	uint64_t n_rows, left;
	struct unwind_rule *rules;
	size_t n_rules, rules_cap;
	uint64_t seed;
	struct hashtable numbers; /* of the rules, by content */
};

static const struct unwind_rule unsupported = { .cfa = UNWIND_CFA_UNSUPPORTED, .ra = UNWIND_RA_UNSUPPORTED };

/* --- rules --- */

static bool same_rule(const struct unwind_rule *a, const struct unwind_rule *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static uint64_t hash_rule(const struct unwindrows *r, const struct unwind_rule *rule)
{
	uint64_t words[2];

	memcpy(words, rule, sizeof(words));
	return hash_mul(words[0] ^ r->seed, words[1] ^ HASH_K1);
}

static inline uint32_t find_rule(const struct unwindrows *r, const struct unwind_rule *rule, uint64_t hash)
{
	return HASHTABLE_FIND(&r->numbers, hash, i, same_rule(&r->rules[i], rule));
}

/*
 * Find or assign the number of RULE. The last number is reserved for
 * `unsupported`, which replaces rules above the limit.
 */
static int number_of(struct unwindrows *r, const struct unwind_rule *rule, uint16_t *ret)
{
	uint64_t hash = hash_rule(r, rule);
	uint32_t at = find_rule(r, rule, hash);

	if (at == HASHTABLE_NONE && r->n_rules >= UNWINDTAB_RULES_MAX - 1 && !same_rule(rule, &unsupported)) {
		r->left++;
		return number_of(r, &unsupported, ret);
	}
	if (at == HASHTABLE_NONE) {
		if (hashtable_reserve(&r->numbers, 1) != 0 ||
			base_grow(&r->rules, &r->rules_cap, r->n_rules + 1, sizeof(*r->rules)) != 0)
			return -ENOMEM;
		at = (uint32_t)r->n_rules++;
		r->rules[at] = *rule;
		hashtable_add(&r->numbers, hash, at);
	}
	*ret = (uint16_t)at;
	return 0;
}

/* --- segments --- */

/* Append N bytes, at a multiple of 8; NULL if memory runs out. */
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

/* A segment without any unwind information takes no space. */
static bool is_blank(const struct segment *s)
{
	return s->rows == 1 && s->rule[0] == 0;
}

/* Write the filled segment. Does not begin the next one. */
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

/* Make the segment of PC the current one. */
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

/* The first row of a segment is replaced by a row at its first byte. */
static void put_row(struct segment *s, uint32_t offset, uint16_t rule)
{
	if (offset == 0)
		s->rule[0] = rule;
	else
		append_row(s, offset, rule);
}

/* The general case; unwindrows_add() has a fast path for most rows. */
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
	uint32_t number = find_rule(r, rule, hash_rule(r, rule));
	int rc;

	if (number != HASHTABLE_NONE && r->begun && offset < SEG_BYTES && r->seg.rows < UNWIND_ROWS_MAX - 1) {
		if (number != r->in_force)
			put_row(&r->seg, (uint32_t)offset, (uint16_t)number);
		r->in_force = (uint16_t)number;
		return 0;
	}
	rc = add_row(r, pc, rule);
	if (rc == -E2BIG)
		return err_set(e, rc, "text of more than 4 GiB");
	return rc ? err_nomem(e, "unwind rows") : 0;
}

static uint64_t unwindrows_left(const struct unwindrows *r)
{
	return r->left;
}

int unwindrows_open(struct unwindrows **ret, struct err *e)
{
	static const struct unwind_rule none;
	struct unwindrows *r = calloc(1, sizeof(*r));
	uint16_t number;

	if (!r)
		return err_nomem(e, "unwind rows");
	r->seed = (uintptr_t)r; /* unknown outside the process, so that collisions cannot be prepared */
	if (number_of(r, &none, &number)) {
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
	hashtable_free(&r->numbers);
	free(r);
}

/* --- the table --- */

/* Write the parts before the segments in front of them. */
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

#define PE_OMIT 0xff

/* An executable address range. */
struct span {
	uint64_t start, end;
};

/* The start and the index of an FDE (or a load), for sorting. */
struct key {
	uint64_t pc;
	uint32_t fde;
	uint32_t source;
};

/* The rules from a CIE's initial instructions. */
struct initial {
	struct cfarules rules;
	bool bad;
};

/*
 * If several sources cover an address, the first one is used. The functions of
 * GO stand in `cfi` as FDEs without instructions.
 */
enum { EH, GO, DEBUG, SOURCES };

struct source {
	uint8_t *bytes;
	struct cfi cfi;
	struct initial *initial;
};

struct compiler {
	const struct elffile *f;
	const struct unwindmachine *machine;
	struct source sources[SOURCES];
	struct unwindgo *go;
	struct span *spans;
	size_t n_spans, span; /* the current one of the sweep */
	struct key *keys;
	size_t n_keys;
	struct unwindrows *rows;
	bool begun;
	uint64_t covered; /* rows are complete up to here */
	struct unwindtab_head head;
	struct cfarun run;
	struct unwind_rule rule; /* of the last row */
	unsigned int lost; /* lost in it */
};

static const struct unwind_rule none;

/* --- where call frame information is --- */

/*
 * For a file without section headers: PT_GNU_EH_FRAME points to a header of
 * four bytes, whose second byte is the encoding of the address of .eh_frame
 * behind it. The end of .eh_frame is not given; the end of the load bounds it.
 */
static int find_by_segment(struct compiler *c, struct cfi_section *s, uint8_t **ret, struct err *e)
{
	const struct elffile *f = c->f;
	const struct cfi_cie as_reported = { .address_size = 8 };
	_cleanup_free_ uint8_t *head = NULL;
	struct cfi_cie how = as_reported;
	struct rd r;
	size_t len;
	int rc = elffile_read_vaddr(f, f->eh_frame_hdr, 4 + 8, &head, &len, e);

	if (rc)
		return err_prefix(e, "its PT_GNU_EH_FRAME"), rc;
	*s = (struct cfi_section){ .p = head, .len = len, .vaddr = f->eh_frame_hdr, .narrow = !f->is64 };
	r = rd_init(head, len);
	if (rd_u8(&r) != 1)
		return err_set(e, -EINVAL, "its PT_GNU_EH_FRAME is of an unknown version");
	how.encoding = rd_u8(&r);
	rd_u16(&r);
	s->vaddr = cfi_pointer(&r, s, &how);
	if (r.bad || !cfi_known_encoding(how.encoding))
		return err_set(e, -EINVAL, "its PT_GNU_EH_FRAME has no address");
	rc = elffile_read_vaddr(f, s->vaddr, UNWINDCOMP_SECTION_MAX, ret, &s->len, e);
	if (rc)
		return err_prefix(e, "its .eh_frame"), rc;
	s->p = *ret;
	s->eh = s->open_end = true;
	return 1;
}

static int find_by_name(struct compiler *c, const struct elfsection_names *names, unsigned int which,
	struct cfi_section *s, uint8_t **ret, struct err *e)
{
	struct elfsection sec;
	int rc = elfsection_load(
		c->f, names, which == EH ? ".eh_frame" : ".debug_frame", UNWINDCOMP_SECTION_MAX, &sec, e);

	if (rc <= 0)
		return rc;
	*ret = sec.bytes;
	*s = (struct cfi_section){ .p = sec.bytes,
		.len = sec.len,
		.vaddr = sec.header->addr,
		.eh = which == EH,
		.narrow = !c->f->is64 };
	return 1;
}

static int read_initial(struct compiler *c, struct source *src)
{
	struct cfi *cfi = &src->cfi;

	src->initial = calloc(cfi->n_cies + 1, sizeof(*src->initial));
	if (!src->initial)
		return -ENOMEM;
	for (size_t i = 0; i < cfi->n_cies; i++) {
		struct initial *in = &src->initial[i];
		struct cfarun_regs regs;

		in->bad = !unwindmachine_columns(c->machine, cfi->cies[i].ra_reg, &regs) ||
			  !cfarun_initial(&cfi->section, &cfi->cies[i], &regs, &in->rules);
		c->head.left[UNWINDTAB_BAD_CIE] += in->bad;
	}
	return 0;
}

static int read_source(
	struct compiler *c, const struct elfsection_names *names, unsigned int which, struct err *e)
{
	struct source *src = &c->sources[which];
	struct cfi_section s;
	int rc = find_by_name(c, names, which, &s, &src->bytes, e);

	if (rc == 0 && which == EH && !names->len && c->f->eh_frame_hdr_size)
		rc = find_by_segment(c, &s, &src->bytes, e);
	if (rc <= 0)
		return rc;
	rc = cfi_read(&s, &src->cfi, e);
	if (rc)
		return rc;
	c->head.n_cies += (uint32_t)src->cfi.n_cies;
	c->head.n_fdes += (uint32_t)src->cfi.n_fdes;
	c->head.left[UNWINDTAB_BAD_CIE] += src->cfi.bad_cies;
	c->head.left[UNWINDTAB_BAD_FDE] += src->cfi.bad_fdes;
	if (src->cfi.n_fdes)
		c->head.section |= which == EH ? UNWINDTAB_EH_FRAME : UNWINDTAB_DEBUG_FRAME;
	return read_initial(c, src) ? err_nomem(e, "CIEs") : 0;
}

/*
 * The functions of a Go program. A table of functions that cannot be read counts
 * as a bad FDE: .debug_frame may have the rows.
 */
static int read_go(struct compiler *c, struct err *e)
{
	struct source *src = &c->sources[GO];
	int rc = unwindgo_open(c->f, &c->go, e);
	size_t n;

	if (rc <= 0) {
		c->head.left[UNWINDTAB_BAD_FDE] += rc < 0;
		return rc == -ENOMEM ? rc : 0;
	}
	n = unwindgo_count(c->go);
	src->cfi.fdes = calloc(n, sizeof(*src->cfi.fdes));
	src->initial = calloc(1, sizeof(*src->initial));
	if (!src->cfi.fdes || !src->initial)
		return err_nomem(e, "Go functions");
	for (size_t i = 0; i < n; i++)
		unwindgo_range(c->go, i, &src->cfi.fdes[i].pc, &src->cfi.fdes[i].end);
	src->cfi.n_fdes = n;
	c->head.n_fdes += (uint32_t)n;
	c->head.section |= UNWINDTAB_GOPCLNTAB;
	return 0;
}

static bool is_go(const struct elffile *f, const struct elfsection_names *names)
{
	return elfsection_has(f, names, ".gopclntab") || elfsection_has(f, names, ".data.rel.ro.gopclntab");
}

/*
 * Where Go's runtime switches stacks, its .debug_frame says what is not so. On
 * x86-64 .gopclntab goes before it (read_go()); on arm64, where that is not read,
 * Go code has no rows: it keeps a frame pointer, and a stack found by it is
 * unverified.
 *
 * An unreadable .debug_frame is an error only if there is nothing else. */
static int read_sources(struct compiler *c, struct err *e)
{
	struct elfsection_names names;
	int rc = elfsection_names(c->f, &names, e);

	rc = rc ? rc : read_source(c, &names, EH, e);
	rc = rc ? rc : read_go(c, e);
	if (rc == 0 && !(c->machine->link && is_go(c->f, &names))) {
		rc = read_source(c, &names, DEBUG, e);
		if (rc && rc != -ENOMEM && (c->sources[EH].cfi.n_fdes || c->go)) {
			c->head.left[UNWINDTAB_BAD_FDE]++;
			rc = 0;
		}
	}
	elfsection_names_free(&names);
	return rc;
}

/* --- sorting --- */

static const struct cfi_fde *fde_of(const struct compiler *c, const struct key *k)
{
	return &c->sources[k->source].cfi.fdes[k->fde];
}

/* Sort by 11 bits of the address at a time, skipping those that do not differ. Stable. */
static void radix_sort(struct key *keys, struct key *spare, size_t n)
{
	uint64_t differ = 0;
	struct key *from = keys, *to = spare, *t;

	for (size_t i = 1; i < n; i++)
		differ |= keys[i].pc ^ keys[0].pc;
	for (unsigned int shift = 0; shift < 64 && differ >> shift; shift += 11) {
		size_t count[2049] = { 0 };

		if (!(differ >> shift & 2047))
			continue;
		for (size_t i = 0; i < n; i++)
			count[(from[i].pc >> shift & 2047) + 1]++;
		for (size_t i = 1; i < 2048; i++)
			count[i] += count[i - 1];
		for (size_t i = 0; i < n; i++)
			to[count[from[i].pc >> shift & 2047]++] = from[i];
		t = from;
		from = to;
		to = t;
	}
	if (from != keys)
		memcpy(keys, from, n * sizeof(*keys));
}

static int sort_keys(struct key *keys, size_t n)
{
	struct key *spare;
	size_t i = 1;

	while (i < n && keys[i - 1].pc <= keys[i].pc)
		i++;
	if (i >= n)
		return 0;
	spare = malloc(n * sizeof(*spare));
	if (!spare)
		return -ENOMEM;
	radix_sort(keys, spare, n);
	free(spare);
	return 0;
}

static int make_keys(struct compiler *c)
{
	size_t n = 0;

	for (unsigned int s = 0; s < SOURCES; s++)
		n += c->sources[s].cfi.n_fdes;
	c->keys = malloc((n + 1) * sizeof(*c->keys));
	if (!c->keys)
		return -ENOMEM;
	for (unsigned int s = 0; s < SOURCES; s++)
		for (size_t i = 0; i < c->sources[s].cfi.n_fdes; i++)
			c->keys[c->n_keys++] = (struct key){ c->sources[s].cfi.fdes[i].pc, (uint32_t)i, s };
	return sort_keys(c->keys, n);
}

/* --- where code is --- */

/* Keys of the executable loads. An ELF header at the beginning of a load is not code. */
static size_t load_keys(const struct elffile *f, struct key *keys)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n_loads; i++) {
		const struct elffile_load *l = &f->loads[i];
		uint64_t skip = l->offset ? 0 : f->is64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);

		if (l->exec && l->memsz > skip && l->memsz <= UINT64_MAX - l->vaddr)
			keys[n++] = (struct key){ .pc = l->vaddr + skip, .fde = (uint32_t)i };
	}
	return n;
}

/* Make the sorted list of code spans; those that touch are merged. */
static int read_spans(struct compiler *c)
{
	_cleanup_free_ struct key *keys = calloc(c->f->n_loads + 1, sizeof(*keys));
	size_t n = keys ? load_keys(c->f, keys) : 0;

	c->spans = calloc(n + 1, sizeof(*c->spans));
	if (!keys || !c->spans || sort_keys(keys, n))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct elffile_load *l = &c->f->loads[keys[i].fde];
		const struct span s = { keys[i].pc, l->vaddr + l->memsz };
		struct span *last = c->n_spans ? &c->spans[c->n_spans - 1] : NULL;

		if (last && s.start <= last->end)
			last->end = MAX(last->end, s.end);
		else
			c->spans[c->n_spans++] = s;
	}
	return 0;
}

/* --- rows --- */

/* Most rows differ from the one before only by the offset of the CFA. */
static void make_rule(struct compiler *c, bool signal)
{
	int64_t off = c->run.now.col[CFARUN_CFA].off;

	if (c->run.bad) {
		c->rule = unsupported;
		c->lost = 0;
		c->head.left[UNWINDTAB_BAD_FDE]++;
	} else if (c->run.same && c->rule.cfa == UNWIND_CFA_REG && off == (int32_t)off) {
		c->rule.cfa_off = (int32_t)off;
	} else {
		c->lost = unwindmachine_rule(c->machine, &c->run.now, signal, &c->rule);
	}
}

static int add_compiled_row(struct compiler *c, uint64_t pc, bool signal, struct err *e)
{
	make_rule(c, signal);
	c->head.left[UNWINDTAB_EXPRESSION] += (c->lost & UNWINDMACHINE_LOST_CFA) != 0;
	c->head.left[UNWINDTAB_FP_UNKNOWN] += (c->lost & UNWINDMACHINE_LOST_FP) != 0;
	return unwindrows_add(c->rows, pc, &c->rule, e);
}

/*
 * Rows end at PC and begin again at NEXT. Behind a system call the last row
 * stays valid for a thread that is blocked in it. Functions begin at multiples
 * of 16: if NEXT is one, the code before it is padding and not read. The rest
 * of a function may begin anywhere.
 */
static int end_rows(struct compiler *c, uint64_t pc, uint64_t next, struct err *e)
{
	_cleanup_free_ uint8_t *code = NULL;
	struct unwind_rule rule = c->rule;
	const unsigned int bytes = unwindmachine_syscall_bytes(c->machine);
	uint64_t after = pc + bytes;
	size_t len;
	int rc = unwindrows_add(c->rows, pc, &none, e);

	if (rc || next <= after || next % 16 == 0 || rule.cfa != UNWIND_CFA_REG ||
		elffile_read_vaddr(c->f, pc, bytes, &code, &len, NULL) != 0 || len != bytes ||
		!unwindmachine_is_syscall(c->machine, code))
		return rc;
	rule.flags |= UNWIND_IN_SYSCALL;
	rc = unwindrows_add(c->rows, after, &rule, e);
	if (!rc && after + 1 < next)
		rc = unwindrows_add(c->rows, after + 1, &none, e);
	return rc;
}

struct go_rows {
	struct compiler *c;
	uint64_t end;
};

/* As unwindgo_row. */
static int add_go_row(void *ctx, uint64_t pc, const struct unwind_rule *rule, struct err *e)
{
	struct go_rows *g = ctx;

	if (pc >= g->end)
		return 0;
	g->c->rule = *rule;
	g->c->head.left[UNWINDTAB_EXPRESSION] += rule->cfa == UNWIND_CFA_UNSUPPORTED;
	return unwindrows_add(g->c->rows, pc, rule, e);
}

/* Add the rows of FDE F up to END. A gap before F gets a row without unwind information. */
static int add_rows(
	struct compiler *c, const struct source *src, const struct cfi_fde *f, uint64_t end, struct err *e)
{
	const struct cfi_cie *cie = &src->cfi.cies[f->cie];
	struct cfarun_regs regs;
	uint64_t pc;
	int rc = 0;

	if (c->begun && f->pc > c->covered)
		rc = end_rows(c, c->covered, f->pc, e);
	c->begun = true;
	c->covered = end;
	if (src == &c->sources[GO]) {
		struct go_rows g = { c, end };

		return rc ? rc : unwindgo_rows(c->go, (size_t)(f - src->cfi.fdes), add_go_row, &g, e);
	}
	unwindmachine_columns(c->machine, cie->ra_reg, &regs);
	cfarun_begin(&c->run, &src->cfi.section, cie, f, &regs, &src->initial[f->cie].rules);
	c->run.end = end;
	while (!rc && cfarun_next(&c->run, &pc))
		rc = add_compiled_row(c, pc, cie->signal, e);
	return rc;
}

/* Cut END where the executable span with F's beginning ends. Returns 0 if F begins outside all spans. */
static uint64_t clip(struct compiler *c, const struct cfi_fde *f, uint64_t end)
{
	const struct span *s;

	while (c->span < c->n_spans && c->spans[c->span].end <= f->pc)
		c->span++;
	s = &c->spans[c->span];
	if (c->span == c->n_spans || f->pc < s->start || end > s->end)
		c->head.left[UNWINDTAB_OUTSIDE]++;
	if (c->span == c->n_spans || f->pc < s->start)
		return 0;
	return MIN(end, s->end);
}

/* Of the FDEs at keys[*I] that begin together, return the longest, of equal ones the last. Advances *I. */
static const struct cfi_fde *longest(struct compiler *c, size_t *i)
{
	const struct key *first = &c->keys[*i], *k = first;
	const struct cfi_fde *ret = fde_of(c, first);

	for (++*i; *i < c->n_keys; ++*i) {
		k = &c->keys[*i];
		if (k->pc != first->pc || k->source != first->source)
			break;
		if (fde_of(c, k)->end >= ret->end)
			ret = fde_of(c, k);
		c->head.left[UNWINDTAB_OVERLAP]++;
	}
	return ret;
}

/*
 * Where the next FDE begins that cuts one of SOURCE. FDEs of .eh_frame are cut
 * only by other FDEs of .eh_frame.
 */
static uint64_t next_start(const struct compiler *c, size_t i, unsigned int source)
{
	for (; i < c->n_keys; i++)
		if (c->keys[i].source <= source)
			return c->keys[i].pc;
	return UINT64_MAX;
}

/*
 * Add all FDEs by address. Each is valid up to where the next one begins, and
 * not again behind that, which is what a search in .eh_frame_hdr finds.
 */
static int sweep(struct compiler *c, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < c->n_keys;) {
		unsigned int source = c->keys[i].source;
		const struct cfi_fde *f = longest(c, &i);
		uint64_t next = next_start(c, i, source), end;

		if (c->sources[source].initial[f->cie].bad) {
			c->head.left[UNWINDTAB_BAD_FDE]++;
			continue;
		}
		if (source != EH && c->begun && f->pc < c->covered)
			continue;
		c->head.left[UNWINDTAB_OVERLAP] += next < f->end;
		end = clip(c, f, MIN(f->end, next));
		if (end)
			rc = add_rows(c, &c->sources[source], f, end, e);
	}
	if (!rc && c->begun)
		rc = unwindrows_add(c->rows, c->covered, &none, e);
	return rc;
}

static void release(struct compiler *c)
{
	for (unsigned int s = 0; s < SOURCES; s++) {
		cfi_free(&c->sources[s].cfi);
		free(c->sources[s].initial);
		free(c->sources[s].bytes);
	}
	unwindgo_close(c->go);
	free(c->spans);
	free(c->keys);
	unwindrows_close(c->rows);
}

/* List the executable PT_LOADs of the file. */
static void list_loads(struct compiler *c, struct unwindtab_load *loads)
{
	for (size_t i = 0; i < c->f->n_loads && c->head.n_loads < UNWINDTAB_LOADS_MAX; i++) {
		const struct elffile_load *l = &c->f->loads[i];

		if (l->exec && l->filesz)
			loads[c->head.n_loads++] = (struct unwindtab_load){ l->offset, l->vaddr, l->filesz };
	}
}

static int compile(struct compiler *c, uint8_t **ret, size_t *len, struct err *e)
{
	struct unwindtab_load loads[UNWINDTAB_LOADS_MAX];
	int rc = read_sources(c, e);

	if (rc)
		return rc;
	list_loads(c, loads);
	c->head.interpreter = interpreter_find(c->f, &c->head.hotspot);
	if (read_spans(c) || make_keys(c))
		return err_nomem(e, "FDEs");
	rc = unwindrows_open(&c->rows, e);
	rc = rc ? rc : sweep(c, e);
	if (rc)
		return rc;
	c->head.left[UNWINDTAB_TOO_MANY] = unwindrows_left(c->rows);
	return unwindrows_finish(c->rows, &c->head, loads, ret, len, e);
}

int unwindcomp(const struct elffile *f, uint8_t **ret, size_t *len, struct err *e)
{
	struct compiler c = {
		.f = f, .machine = unwindmachine_find(f->machine, f->is64), .head.machine = f->machine
	};
	int rc;

	if (!c.machine)
		return err_set(e, -EOPNOTSUPP, "is for another machine than x86-64, i386 and arm64");
	if (f->type == ET_REL)
		return err_set(e, -EINVAL, "is not linked: its code has no addresses yet");
	rc = compile(&c, ret, len, e);
	release(&c);
	return rc;
}

int unwindcomp_fd(int fd, uint8_t **ret, size_t *len, struct err *e)
{
	struct elffile *f = NULL;
	int rc = elffile_fd(fd, &f, e);

	if (rc)
		close(fd);
	else
		rc = unwindcomp(f, ret, len, e);
	elffile_close(f);
	return rc;
}
