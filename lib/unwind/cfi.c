/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/cfi.h"
#include "base/search.h"

#include <errno.h>

#define CFI_CIES_MAX (1u << 20)
#define CFI_FDES_MAX (1u << 24)

/* Encodings of pointers: the low half is the form, then the base. */
enum {
	PE_ABSPTR = 0x00,
	PE_ULEB = 0x01,
	PE_UDATA2 = 0x02,
	PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04,
	PE_SIGNED = 0x08,
	PE_FORM = 0x0f,
	PE_PCREL = 0x10,
	PE_ALIGNED = 0x50,
	PE_BASE = 0x70,
	PE_INDIRECT = 0x80,
	PE_OMIT = 0xff,
};

#define LENGTH_64BIT 0xffffffff
#define LENGTH_RESERVED 0xfffffff0
#define NO_CIE UINT32_MAX

/* An entry and its body, which follows the length and the identifier. */
struct entry {
	uint64_t at, next; /* offsets of it and of the next entry */
	uint64_t cie; /* offset of its CIE; unused if is_cie */
	struct rd body;
	bool is_cie;
	bool wide; /* the 64-bit form */
};

struct reader {
	struct cfi *c;
	uint32_t *late; /* offsets of FDEs that precede their CIE */
	size_t n_late, late_cap, cies_cap, fdes_cap;
	uint32_t last_cie;
};

/* --- numbers --- */

static uint64_t sign_extend(uint64_t v, unsigned int bytes)
{
	unsigned int unused = 64 - 8 * bytes;

	return (uint64_t)((int64_t)(v << unused) >> unused);
}

static unsigned int fixed_size(uint8_t form, uint8_t address_size)
{
	switch (form & ~PE_SIGNED) {
	case PE_ABSPTR:
		return address_size;
	case PE_UDATA2:
		return 2;
	case PE_UDATA4:
		return 4;
	case PE_UDATA8:
		return 8;
	default:
		return 0;
	}
}

bool cfi_known_encoding(uint8_t enc)
{
	uint8_t form = enc & (PE_FORM & ~PE_SIGNED);

	if (enc & PE_INDIRECT || (enc & PE_BASE) > PE_ALIGNED)
		return false;
	return form <= PE_UDATA8;
}

/* Read the value at R in the form of ENC, without adding its base. */
static uint64_t read_form(struct rd *r, uint8_t enc, uint8_t address_size)
{
	uint8_t form = enc & PE_FORM;
	unsigned int n = fixed_size(form, address_size);
	uint64_t v;

	if (!n)
		return form & PE_SIGNED ? (uint64_t)rd_sleb(r) : rd_uleb(r);
	v = rd_fixed(r, n);
	return form & PE_SIGNED && n < 8 ? sign_extend(v, n) : v;
}

static uint64_t read_pointer(struct rd *r, const struct cfi_section *s, uint8_t enc, uint8_t address_size)
{
	uint64_t here = s->vaddr + (uint64_t)(r->p - s->p), v;

	if ((enc & PE_BASE) == PE_ALIGNED) {
		rd_bytes(r, (size_t)(-here & (address_size - 1U)));
		return rd_fixed(r, address_size);
	}
	v = read_form(r, enc, address_size);
	if ((enc & PE_BASE) == PE_PCREL)
		v += here;
	return s->narrow ? (uint32_t)v : v;
}

uint64_t cfi_pointer(struct rd *r, const struct cfi_section *s, const struct cfi_cie *cie)
{
	return read_pointer(r, s, cie->encoding, cie->address_size);
}

/* --- entries --- */

/*
 * Read the entry at *AT. Returns 1, 0 at the end of the section, or -EINVAL if
 * its length leads outside. An entry of length 0 is a terminator: some linkers
 * leave one at the end of an object's part, so more entries may follow.
 */
static int next_entry(const struct cfi_section *s, uint64_t *at, struct entry *ret)
{
	struct rd r;
	uint64_t len, id;

	do {
		if (s->len - *at < 4)
			return 0;
		r = rd_init(s->p + *at, s->len - *at);
		len = rd_u32(&r);
		ret->at = *at;
		*at += 4;
		if (!len && s->open_end)
			return 0;
	} while (!len);
	ret->wide = len == LENGTH_64BIT;
	if (ret->wide)
		len = rd_u64(&r);
	else if (len >= LENGTH_RESERVED)
		return -EINVAL;
	if (r.bad || (len > rd_left(&r) && !s->partial))
		return -EINVAL;
	r.end = r.p + MIN(len, rd_left(&r));
	*at = ret->next = (uint64_t)(r.end - s->p);
	id = (uint64_t)(r.p - s->p);
	ret->cie = ret->wide ? rd_u64(&r) : rd_u32(&r);
	ret->is_cie = ret->cie == (s->eh ? 0 : ret->wide ? UINT64_MAX : UINT32_MAX);
	if (s->eh)
		ret->cie = id - ret->cie;
	ret->body = r;
	return 1;
}

/* --- CIEs --- */

/*
 * Read the data that the letters behind 'z' announce. At an unknown letter the
 * rest is skipped by its length, unless it might contain the encoding.
 */
static bool read_augmentation(
	struct rd *r, const struct cfi_section *s, const char *letters, struct cfi_cie *c)
{
	uint64_t len = rd_uleb(r);
	const uint8_t *data = rd_bytes(r, len);
	struct rd a;

	if (!data)
		return false;
	a = rd_init(data, len);
	for (; *letters; letters++) {
		uint8_t enc;

		if (*letters == 'R') {
			c->encoding = rd_u8(&a);
		} else if (*letters == 'L') {
			rd_u8(&a);
		} else if (*letters == 'P') {
			enc = rd_u8(&a);
			if (enc != PE_OMIT)
				read_pointer(&a, s, (uint8_t)(enc & ~PE_INDIRECT), c->address_size);
		} else if (*letters == 'S') {
			c->signal = true;
		} else if (*letters != 'B' && *letters != 'G') {
			return !a.bad && !strpbrk(letters, "RS");
		}
	}
	return !a.bad;
}

static bool parse_cie(const struct cfi_section *s, const struct entry *en, struct cfi_cie *c)
{
	struct rd r = en->body;
	uint8_t version = rd_u8(&r);
	const char *letters = (const char *)r.p;
	size_t n = strnlen(letters, rd_left(&r));

	if ((version != 1 && version != 3 && version != 4) || !rd_bytes(&r, n + 1))
		return false;
	if (version == 4) {
		c->address_size = rd_u8(&r);
		if (rd_u8(&r) != 0) /* segment selectors: not on any supported machine */
			return false;
	}
	if (c->address_size != 8 && c->address_size != 4)
		return false;
	if (letters[0] == 'e' && letters[1] == 'h') {
		rd_bytes(&r, c->address_size);
		letters += 2;
	}
	c->code_align = rd_uleb(&r);
	c->data_align = rd_sleb(&r);
	c->ra_reg = version == 1 ? rd_u8(&r) : rd_uleb(&r);
	c->sized = *letters == 'z';
	if (c->sized ? !read_augmentation(&r, s, letters + 1, c) : *letters)
		return false;
	c->insns = (uint32_t)(r.p - s->p);
	return !r.bad && cfi_known_encoding(c->encoding);
}

static int add_cie(struct reader *x, const struct entry *en)
{
	struct cfi *c = x->c;
	struct cfi_cie *cie;

	if (c->n_cies == CFI_CIES_MAX)
		return -E2BIG;
	if (base_grow(&c->cies, &x->cies_cap, c->n_cies + 1, sizeof(*c->cies)))
		return -ENOMEM;
	cie = &c->cies[c->n_cies];
	*cie = (struct cfi_cie){
		.at = (uint32_t)en->at,
		.insns_end = (uint32_t)en->next,
		.address_size = c->section.narrow ? 4 : 8,
	};
	if (parse_cie(&c->section, en, cie))
		c->n_cies++;
	else
		c->bad_cies++;
	return 0;
}

/* --- FDEs --- */

/* Find the CIE at offset AT. CIEs are in the order of the section; most FDEs have that of the FDE before. */
static uint32_t find_cie(struct reader *x, uint64_t at)
{
	const struct cfi *c = x->c;
	size_t lo;

	if (x->last_cie < c->n_cies && c->cies[x->last_cie].at == at)
		return x->last_cie;
	lo = PARTITION_POINT(0, c->n_cies, mid, c->cies[mid].at < at);
	if (lo == c->n_cies || c->cies[lo].at != at)
		return NO_CIE;
	return x->last_cie = (uint32_t)lo;
}

static bool parse_fde(
	const struct cfi_section *s, const struct entry *en, const struct cfi_cie *cie, struct cfi_fde *f)
{
	struct rd r = en->body;
	uint64_t len;

	f->pc = read_pointer(&r, s, cie->encoding, cie->address_size);
	len = read_form(&r, cie->encoding & (PE_FORM & ~PE_SIGNED), cie->address_size);
	if (cie->sized)
		rd_bytes(&r, rd_uleb(&r));
	f->end = f->pc + len;
	f->insns = (uint32_t)(r.p - s->p);
	f->insns_end = (uint32_t)en->next;
	return !r.bad && f->end >= f->pc;
}

static bool first_entry(const struct cfi_section *s, struct entry *ret)
{
	uint64_t at = 0;

	return s->len <= UINT32_MAX && next_entry(s, &at, ret) > 0 && !ret->at && !ret->body.bad;
}

bool cfi_one_cie(const struct cfi_section *s, struct cfi_cie *ret)
{
	struct entry en;

	*ret = (struct cfi_cie){ .address_size = 8 };
	if (!first_entry(s, &en) || !en.is_cie)
		return false;
	ret->insns_end = (uint32_t)en.next;
	return parse_cie(s, &en, ret);
}

bool cfi_one_cie_vaddr(const struct cfi_section *s, uint64_t *ret)
{
	struct entry en;

	if (!first_entry(s, &en) || en.is_cie)
		return false;
	*ret = s->vaddr + en.cie;
	return true;
}

bool cfi_one_fde(const struct cfi_section *s, const struct cfi_cie *cie, struct cfi_fde *ret)
{
	struct entry en;

	*ret = (struct cfi_fde){ 0 };
	return first_entry(s, &en) && !en.is_cie && parse_fde(s, &en, cie, ret) && ret->pc < ret->end;
}

static int add_fde(struct reader *x, const struct entry *en, uint32_t cie)
{
	struct cfi *c = x->c;
	struct cfi_fde *f;

	if (cie == NO_CIE) {
		c->bad_fdes++;
		return 0;
	}
	if (c->n_fdes == CFI_FDES_MAX)
		return -E2BIG;
	if (base_grow(&c->fdes, &x->fdes_cap, c->n_fdes + 1, sizeof(*c->fdes)))
		return -ENOMEM;
	f = &c->fdes[c->n_fdes];
	f->cie = cie;
	if (!parse_fde(&c->section, en, &c->cies[cie], f))
		c->bad_fdes++;
	else if (f->pc == f->end)
		c->empty++;
	else
		c->n_fdes++;
	return 0;
}

static int keep_for_later(struct reader *x, const struct entry *en)
{
	if (base_grow(&x->late, &x->late_cap, x->n_late + 1, sizeof(*x->late)))
		return -ENOMEM;
	x->late[x->n_late++] = (uint32_t)en->at;
	return 0;
}

static int add_entry(struct reader *x, const struct entry *en)
{
	uint32_t cie;

	if (en->body.bad) {
		x->c->bad_fdes++;
		return 0;
	}
	if (en->is_cie)
		return add_cie(x, en);
	cie = find_cie(x, en->cie);
	if (cie == NO_CIE && en->cie > en->at && en->cie < x->c->section.len)
		return keep_for_later(x, en);
	return add_fde(x, en, cie);
}

static int read_entries(struct reader *x)
{
	const struct cfi_section *s = &x->c->section;
	struct entry en;
	uint64_t at = 0;
	int rc, more;

	while ((more = next_entry(s, &at, &en)) > 0) {
		rc = add_entry(x, &en);
		if (rc)
			return rc;
	}
	x->c->bad_fdes += more < 0;
	for (size_t i = 0; i < x->n_late; i++) {
		at = x->late[i];
		next_entry(s, &at, &en);
		rc = add_fde(x, &en, find_cie(x, en.cie));
		if (rc)
			return rc;
	}
	return 0;
}

int cfi_read(const struct cfi_section *s, struct cfi *ret, struct err *e)
{
	struct reader x = {
		.c = ret,
	};
	int rc;

	*ret = (struct cfi){ .section = *s };
	if (s->len > UINT32_MAX)
		return err_set(e, -E2BIG, "call frame information of 4 GiB or more");
	rc = read_entries(&x);
	free(x.late);
	if (rc)
		cfi_free(ret);
	if (rc == -E2BIG)
		return err_set(e, rc, "more than %u CIEs or %u FDEs", CFI_CIES_MAX, CFI_FDES_MAX);
	return rc ? err_nomem(e, "call frame information") : 0;
}

void cfi_free(struct cfi *c)
{
	free(c->cies);
	free(c->fdes);
	c->cies = NULL;
	c->fdes = NULL;
	c->n_cies = c->n_fdes = 0;
}

/* The upper two bits are an opcode of their own, with the operand in the lower bits. */
enum {
	OP_HIGH = 0xc0,
	OP_LOW = 0x3f,
	OP_ADVANCE_LOC = 0x40,
	OP_OFFSET = 0x80,
	OP_RESTORE = 0xc0,

	OP_NOP = 0x00,
	OP_SET_LOC = 0x01,
	OP_ADVANCE_LOC1 = 0x02,
	OP_ADVANCE_LOC2 = 0x03,
	OP_ADVANCE_LOC4 = 0x04,
	OP_OFFSET_EXTENDED = 0x05,
	OP_RESTORE_EXTENDED = 0x06,
	OP_UNDEFINED = 0x07,
	OP_SAME_VALUE = 0x08,
	OP_REGISTER = 0x09,
	OP_REMEMBER_STATE = 0x0a,
	OP_RESTORE_STATE = 0x0b,
	OP_DEF_CFA = 0x0c,
	OP_DEF_CFA_REGISTER = 0x0d,
	OP_DEF_CFA_OFFSET = 0x0e,
	OP_DEF_CFA_EXPRESSION = 0x0f,
	OP_EXPRESSION = 0x10,
	OP_OFFSET_EXTENDED_SF = 0x11,
	OP_DEF_CFA_SF = 0x12,
	OP_DEF_CFA_OFFSET_SF = 0x13,
	OP_VAL_OFFSET = 0x14,
	OP_VAL_OFFSET_SF = 0x15,
	OP_VAL_EXPRESSION = 0x16,
	OP_MIPS_ADVANCE_LOC8 = 0x1d,
	OP_GNU_ARGS_SIZE = 0x2e,
	OP_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

/* Nearly every number takes one byte. */
static inline uint64_t read_uleb(struct rd *in)
{
	if (in->p < in->end && !(*in->p & 0x80))
		return *in->p++;
	return rd_uleb(in);
}

/* The column of register REG; NULL if no walk needs it. */
static struct cfarule *column(struct cfarun *r, uint64_t reg)
{
	if (reg == r->regs.fp)
		return &r->now.col[CFARUN_FP];
	if (reg == r->regs.bx)
		return &r->now.col[CFARUN_BX];
	if (reg == r->regs.ra)
		return &r->now.col[CFARUN_RA];
	if (reg == r->regs.sp)
		return &r->now.col[CFARUN_SP];
	return NULL;
}

static void set(struct cfarun *r, uint64_t reg, struct cfarule rule)
{
	struct cfarule *c = column(r, reg);

	if (!c)
		return;
	*c = rule;
	r->changed = true;
}

/* Offsets are factored. One that overflows is as wrong as any other invalid offset. */
static int64_t factored(const struct cfarun *r, uint64_t n)
{
	return (int64_t)(n * (uint64_t)r->cie->data_align);
}

static void set_offset(struct cfarun *r, enum cfarule_kind kind, uint64_t reg, uint64_t n)
{
	set(r, reg, (struct cfarule){ .kind = kind, .off = factored(r, n) });
}

static void restore(struct cfarun *r, uint64_t reg)
{
	struct cfarule *c = column(r, reg);

	if (!c)
		return;
	if (r->initial)
		*c = r->initial->col[c - r->now.col];
	else
		*c = (struct cfarule){ .kind = CFARULE_UNSPECIFIED };
	r->changed = true;
}

static struct cfarule read_expression(struct cfarun *r, enum cfarule_kind kind)
{
	uint32_t len = rd_uleb32(&r->insns);
	const uint8_t *p = rd_bytes(&r->insns, len);

	return (struct cfarule){ .kind = kind, .reg = len, .expr = p };
}

static void def_cfa(struct cfarun *r, uint32_t reg, int64_t off)
{
	r->now.col[CFARUN_CFA] = (struct cfarule){ .kind = CFARULE_OFFSET, .reg = reg, .off = off };
	r->changed = true;
}

/* Change half of a rule, which must be "register and offset". */
static bool change_cfa(struct cfarun *r, bool change_reg, uint32_t reg, int64_t off)
{
	struct cfarule *c = &r->now.col[CFARUN_CFA];

	if (c->kind != CFARULE_OFFSET)
		return false;
	if (change_reg) {
		c->reg = reg;
		r->changed = true;
	} else {
		c->off = off;
		r->moved = true;
	}
	return true;
}

static bool remember(struct cfarun *r)
{
	if (r->depth == CFARUN_DEPTH)
		return false;
	r->saved[r->depth++] = r->now;
	return true;
}

static bool recall(struct cfarun *r)
{
	if (!r->depth)
		return false;
	r->now = r->saved[--r->depth];
	r->changed = true;
	return true;
}

/* Run an instruction about the CFA or the state. Returns false if it is malformed. */
static bool run_cfa(struct cfarun *r, uint8_t op)
{
	struct rd *in = &r->insns;
	uint32_t reg;

	switch (op) {
	case OP_DEF_CFA:
		reg = rd_uleb32(in);
		def_cfa(r, reg, (int64_t)read_uleb(in));
		return true;
	case OP_DEF_CFA_SF:
		reg = rd_uleb32(in);
		def_cfa(r, reg, factored(r, (uint64_t)rd_sleb(in)));
		return true;
	case OP_DEF_CFA_REGISTER:
		return change_cfa(r, true, rd_uleb32(in), 0);
	case OP_DEF_CFA_OFFSET:
		return change_cfa(r, false, 0, (int64_t)read_uleb(in));
	case OP_DEF_CFA_OFFSET_SF:
		return change_cfa(r, false, 0, factored(r, (uint64_t)rd_sleb(in)));
	case OP_DEF_CFA_EXPRESSION:
		r->now.col[CFARUN_CFA] = read_expression(r, CFARULE_EXPRESSION);
		r->changed = true;
		return true;
	case OP_REMEMBER_STATE:
		return remember(r);
	case OP_RESTORE_STATE:
		return recall(r);
	case OP_GNU_ARGS_SIZE: /* only used for exceptions */
		rd_uleb(in);
		return true;
	default:
		return op == OP_NOP;
	}
}

/* Run an instruction about one register. */
static void run_register(struct cfarun *r, uint8_t op)
{
	struct rd *in = &r->insns;
	uint64_t reg = rd_uleb(in);

	switch (op) {
	case OP_OFFSET_EXTENDED:
		set_offset(r, CFARULE_OFFSET, reg, rd_uleb(in));
		break;
	case OP_OFFSET_EXTENDED_SF:
		set_offset(r, CFARULE_OFFSET, reg, (uint64_t)rd_sleb(in));
		break;
	case OP_GNU_NEGATIVE_OFFSET_EXTENDED:
		set_offset(r, CFARULE_OFFSET, reg, -rd_uleb(in));
		break;
	case OP_VAL_OFFSET:
		set_offset(r, CFARULE_VAL_OFFSET, reg, rd_uleb(in));
		break;
	case OP_VAL_OFFSET_SF:
		set_offset(r, CFARULE_VAL_OFFSET, reg, (uint64_t)rd_sleb(in));
		break;
	case OP_RESTORE_EXTENDED:
		restore(r, reg);
		break;
	case OP_UNDEFINED:
		set(r, reg, (struct cfarule){ .kind = CFARULE_UNDEFINED });
		break;
	case OP_SAME_VALUE:
		set(r, reg, (struct cfarule){ .kind = CFARULE_SAME });
		break;
	case OP_REGISTER:
		set(r, reg, (struct cfarule){ .kind = CFARULE_REGISTER, .reg = rd_uleb32(in) });
		break;
	case OP_EXPRESSION:
		set(r, reg, read_expression(r, CFARULE_EXPRESSION));
		break;
	default:
		set(r, reg, read_expression(r, CFARULE_VAL_EXPRESSION));
		break;
	}
}

/* Advance the location by N units. Always returns true. */
static bool advance(struct cfarun *r, uint64_t n, uint64_t *delta)
{
	if (__builtin_mul_overflow(n, r->cie->code_align, delta))
		r->insns.bad = true;
	return true;
}

/* DW_CFA_set_loc: must not decrease. */
static bool set_location(struct cfarun *r, uint64_t *delta)
{
	uint64_t to = cfi_pointer(&r->insns, r->section, r->cie);

	if (to < r->loc)
		r->insns.bad = true;
	*delta = to - r->loc;
	return true;
}

/* Run an instruction that advances the location by *DELTA. Always returns true. */
static bool run_location(struct cfarun *r, uint8_t op, uint64_t *delta)
{
	struct rd *in = &r->insns;

	switch (op) {
	case OP_ADVANCE_LOC1:
		return advance(r, rd_u8(in), delta);
	case OP_ADVANCE_LOC2:
		return advance(r, rd_u16(in), delta);
	case OP_ADVANCE_LOC4:
		return advance(r, rd_u32(in), delta);
	case OP_MIPS_ADVANCE_LOC8:
		return advance(r, rd_u64(in), delta);
	default:
		return set_location(r, delta);
	}
}

/* The kind of an opcode without operand bits. */
enum class { UNKNOWN, ABOUT_LOCATION, ABOUT_REGISTER, ABOUT_CFA };

static const uint8_t class_of[OP_LOW + 1] = {
	[OP_NOP] = ABOUT_CFA,
	[OP_SET_LOC] = ABOUT_LOCATION,
	[OP_ADVANCE_LOC1] = ABOUT_LOCATION,
	[OP_ADVANCE_LOC2] = ABOUT_LOCATION,
	[OP_ADVANCE_LOC4] = ABOUT_LOCATION,
	[OP_MIPS_ADVANCE_LOC8] = ABOUT_LOCATION,
	[OP_OFFSET_EXTENDED] = ABOUT_REGISTER,
	[OP_RESTORE_EXTENDED] = ABOUT_REGISTER,
	[OP_UNDEFINED] = ABOUT_REGISTER,
	[OP_SAME_VALUE] = ABOUT_REGISTER,
	[OP_REGISTER] = ABOUT_REGISTER,
	[OP_EXPRESSION] = ABOUT_REGISTER,
	[OP_OFFSET_EXTENDED_SF] = ABOUT_REGISTER,
	[OP_VAL_OFFSET] = ABOUT_REGISTER,
	[OP_VAL_OFFSET_SF] = ABOUT_REGISTER,
	[OP_VAL_EXPRESSION] = ABOUT_REGISTER,
	[OP_GNU_NEGATIVE_OFFSET_EXTENDED] = ABOUT_REGISTER,
	[OP_REMEMBER_STATE] = ABOUT_CFA,
	[OP_RESTORE_STATE] = ABOUT_CFA,
	[OP_DEF_CFA] = ABOUT_CFA,
	[OP_DEF_CFA_REGISTER] = ABOUT_CFA,
	[OP_DEF_CFA_OFFSET] = ABOUT_CFA,
	[OP_DEF_CFA_EXPRESSION] = ABOUT_CFA,
	[OP_DEF_CFA_SF] = ABOUT_CFA,
	[OP_DEF_CFA_OFFSET_SF] = ABOUT_CFA,
	[OP_GNU_ARGS_SIZE] = ABOUT_CFA,
};

/*
 * Run until the location advances by *DELTA. Returns false at the end of the
 * instructions, or with R->bad if one is malformed.
 */
static bool run_row(struct cfarun *r, uint64_t *delta)
{
	bool good = true, moved = false;

	while (good && !moved && rd_left(&r->insns)) {
		uint8_t op = *r->insns.p++;

		if ((op & OP_HIGH) == OP_ADVANCE_LOC)
			moved = advance(r, op & OP_LOW, delta);
		else if ((op & OP_HIGH) == OP_OFFSET)
			set_offset(r, CFARULE_OFFSET, op & OP_LOW, read_uleb(&r->insns));
		else if ((op & OP_HIGH) == OP_RESTORE)
			restore(r, op & OP_LOW);
		else if (class_of[op] == ABOUT_CFA)
			good = run_cfa(r, op);
		else if (class_of[op] == ABOUT_REGISTER)
			run_register(r, op);
		else if (class_of[op] == ABOUT_LOCATION)
			moved = run_location(r, op, delta);
		else
			good = op == r->regs.nop;
	}
	r->bad = !good || r->insns.bad;
	return moved && !r->bad;
}

bool cfarun_initial(const struct cfi_section *s, const struct cfi_cie *cie, const struct cfarun_regs *regs,
	struct cfarules *ret)
{
	struct cfarun r = { .cie = cie, .section = s, .regs = *regs };
	uint64_t delta;

	r.insns = rd_init(s->p + cie->insns, cie->insns_end - cie->insns);
	if (run_row(&r, &delta) || r.bad) /* a CIE has no location to advance */
		return false;
	*ret = r.now;
	return true;
}

void cfarun_begin(struct cfarun *r, const struct cfi_section *s, const struct cfi_cie *cie,
	const struct cfi_fde *f, const struct cfarun_regs *regs, const struct cfarules *initial)
{
	r->cie = cie;
	r->section = s;
	r->initial = initial;
	r->regs = *regs;
	r->insns = rd_init(s->p + f->insns, f->insns_end - f->insns);
	r->loc = f->pc;
	r->end = f->end;
	r->now = *initial;
	r->changed = true;
	r->moved = false;
	r->bad = false;
	r->depth = 0;
}

bool cfarun_next(struct cfarun *r, uint64_t *start)
{
	while (r->loc < r->end) {
		uint64_t delta = 0;
		bool row;

		if (!run_row(r, &delta) || delta > r->end - r->loc)
			delta = r->end - r->loc;
		row = delta && (r->changed || r->moved || r->bad);
		*start = r->loc;
		r->loc += delta;
		if (row) {
			r->same = !r->changed;
			r->changed = r->moved = false;
			return true;
		}
	}
	return false;
}
