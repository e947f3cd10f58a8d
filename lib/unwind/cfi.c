/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/cfi.h"
#include "base/bytes.h"

#include <errno.h>

/* Encodings of pointers: the low half is the form, then what it counts from. */
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

/* An entry's frame: what follows its length and its identifier. */
struct entry {
	uint64_t at, next; /* offsets of it and of what follows it */
	uint64_t cie; /* offset of its CIE; it is one itself where is_cie */
	struct rd body;
	bool is_cie;
	bool wide; /* the 64-bit form */
};

struct reader {
	struct cfi *c;
	uint32_t *late; /* offsets of FDEs that stand before their CIE */
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

/* The value at R in the form of ENC, not counted from anything yet. */
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
	return (enc & PE_BASE) == PE_PCREL ? v + here : v;
}

uint64_t cfi_pointer(struct rd *r, const struct cfi_section *s, const struct cfi_cie *cie)
{
	return read_pointer(r, s, cie->encoding, cie->address_size);
}

/* --- entries --- */

/*
 * The entry at *AT. 1, 0 at the section's end, -EINVAL where its length leads
 * outside. An entry of length 0 is a terminator: some linkers leave one where
 * an object's part ends, so that more may follow.
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
	if (r.bad || len > rd_left(&r))
		return -EINVAL;
	r.end = r.p + len;
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
 * What the letters behind 'z' announce. One that is not known ends them: its
 * data are skipped by the length, unless they might hold the encoding.
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
		if (rd_u8(&r) != 0) /* segment selectors: not on any machine that is read */
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
		.address_size = 8,
	};
	if (parse_cie(&c->section, en, cie))
		c->n_cies++;
	else
		c->bad_cies++;
	return 0;
}

/* --- FDEs --- */

/* CIEs are kept in the order of the section; most FDEs have that of the one before. */
static uint32_t find_cie(struct reader *x, uint64_t at)
{
	const struct cfi *c = x->c;
	size_t lo = 0, hi = c->n_cies;

	if (x->last_cie < c->n_cies && c->cies[x->last_cie].at == at)
		return x->last_cie;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (c->cies[mid].at < at)
			lo = mid + 1;
		else
			hi = mid;
	}
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
