/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/fde.h"
#include "base/search.h"
#include "elf/section.h"
#include "unwind/cfi.h"

#include <elf.h>
#include <errno.h>

#define HDR_BYTES 12 /* of the form that all linkers write, before the table */
#define HDR_SDATA4_OF_HDR 0x3b /* DW_EH_PE_datarel | DW_EH_PE_sdata4: the only form that can be searched */
#define HDR_UDATA4 0x03
#define HDR_ENTRY 8
#define FDE_BYTES 64 /* lengths, CIE, start and range */
#define CIE_BYTES 256
#define CIES 16
#define WINDOW_BYTES 2048
#define LOAD_COST                                                                                            \
	(16u << 10) /* reading so many bytes of the table takes as long as one search in the file            \
		     */
#define VISITS_PER_ADDR 16 /* FDEs over one address, on average, above which a file is hostile */

/* The table of .eh_frame_hdr. */
struct table {
	const struct elffile *f;
	uint64_t vaddr; /* of the header: entries are relative to it */
	uint64_t offset; /* of the first entry, in the file */
	size_t n;
	uint8_t *bytes; /* the whole table; NULL: entries are read one by one */
	/* the entry that was read last, because addresses are ascending */
	size_t last;
	struct fde_range range; /* end 0: there is no such FDE */
	/* by the address of each: a file has few */
	struct {
		uint64_t vaddr;
		struct cfi_cie cie;
		bool good;
	} cies[CIES];
	/* the bytes read last: FDEs are mostly in the order of their functions */
	uint8_t window[WINDOW_BYTES];
	uint64_t window_at;
	size_t window_len;
};

static bool offset_of(const struct elffile *f, uint64_t vaddr, uint64_t *offset, uint64_t *left)
{
	for (size_t i = 0; i < f->n_loads; i++) {
		const struct elffile_load *l = &f->loads[i];

		if (vaddr < l->vaddr || vaddr - l->vaddr >= l->filesz || l->offset > UINT64_MAX - l->filesz)
			continue;
		*offset = l->offset + (vaddr - l->vaddr);
		*left = l->filesz - (vaddr - l->vaddr);
		return true;
	}
	return false;
}

static bool open_table(const struct elffile *f, struct table *t)
{
	uint64_t left;
	uint8_t head[HDR_BYTES];
	struct rd r = rd_init(head, sizeof(head));

	*t = (struct table){ .f = f, .vaddr = f->eh_frame_hdr, .last = SIZE_MAX };
	if (f->eh_frame_hdr_size < HDR_BYTES || !offset_of(f, t->vaddr, &t->offset, &left) ||
		left < HDR_BYTES || elffile_read_at(f, t->offset, head, HDR_BYTES, NULL) != 0)
		return false;
	if (rd_u8(&r) != 1)
		return false;
	rd_u8(&r); /* encoding of the address of .eh_frame: any of four bytes */
	if (rd_u8(&r) != HDR_UDATA4 || rd_u8(&r) != HDR_SDATA4_OF_HDR)
		return false;
	rd_u32(&r);
	t->n = rd_u32(&r);
	t->offset += HDR_BYTES;
	return t->n && t->n <= (MIN(left, f->eh_frame_hdr_size) - HDR_BYTES) / HDR_ENTRY;
}

/* Read the whole table if the searches for N addresses would cost more. */
static int load_table(struct table *t, size_t n)
{
	const size_t len = t->n * HDR_ENTRY;

	if (n < len / LOAD_COST)
		return 0;
	t->bytes = malloc(len);
	if (!t->bytes)
		return -ENOMEM;
	if (elffile_read_at(t->f, t->offset, t->bytes, len, NULL) != 0)
		t->n = 0;
	return 0;
}

static uint64_t relative(const struct table *t, uint32_t v)
{
	return t->vaddr + (uint64_t)(int32_t)v;
}

/* The start and the FDE's address of entry I. */
static bool entry_at(const struct table *t, size_t i, uint64_t *start, uint64_t *fde)
{
	uint8_t bytes[HDR_ENTRY];
	struct rd r = rd_init(t->bytes ? t->bytes + i * HDR_ENTRY : bytes, HDR_ENTRY);

	if (!t->bytes && elffile_read_at(t->f, t->offset + i * HDR_ENTRY, bytes, HDR_ENTRY, NULL) != 0)
		return false;
	*start = relative(t, rd_u32(&r));
	*fde = relative(t, rd_u32(&r));
	return true;
}

/* Up to MAX bytes of the entry of .eh_frame at VADDR. */
static bool read_bytes(
	const struct elffile *f, uint64_t vaddr, uint8_t *bytes, size_t max, struct cfi_section *ret)
{
	uint64_t offset, left;

	if (!offset_of(f, vaddr, &offset, &left))
		return false;
	*ret = (struct cfi_section){
		.p = bytes, .len = MIN(left, max), .vaddr = vaddr, .eh = true, .partial = true
	};
	return elffile_read_at(f, offset, bytes, ret->len, NULL) == 0;
}

static const struct cfi_cie *read_cie(struct table *t, uint64_t vaddr)
{
	const size_t i = (size_t)(vaddr / 8 * UINT64_C(0x9e3779b97f4a7c15) >> 60) % CIES;
	uint8_t bytes[CIE_BYTES];
	struct cfi_section s;

	if (t->cies[i].vaddr != vaddr) {
		t->cies[i].vaddr = vaddr;
		t->cies[i].good =
			read_bytes(t->f, vaddr, bytes, sizeof(bytes), &s) && cfi_one_cie(&s, &t->cies[i].cie);
	}
	return t->cies[i].good ? &t->cies[i].cie : NULL;
}

/* The first bytes of the FDE at VADDR; they stay valid until the next call. */
static bool read_window(struct table *t, uint64_t vaddr, struct cfi_section *ret)
{
	if (vaddr < t->window_at || vaddr - t->window_at + FDE_BYTES > t->window_len) {
		t->window_at = vaddr;
		t->window_len = 0;
		if (!read_bytes(t->f, vaddr, t->window, WINDOW_BYTES, ret))
			return false;
		t->window_len = ret->len;
	}
	*ret = (struct cfi_section){ .p = t->window + (vaddr - t->window_at),
		.len = MIN(t->window_len - (vaddr - t->window_at), (size_t)FDE_BYTES),
		.vaddr = vaddr,
		.eh = true,
		.partial = true };
	return true;
}

/* The range of the FDE at VADDR, if it begins at START. */
static struct fde_range read_fde(struct table *t, uint64_t vaddr, uint64_t start)
{
	const struct cfi_cie *cie;
	struct cfi_section s;
	struct cfi_fde fde;
	uint64_t at;

	if (!read_window(t, vaddr, &s) || !cfi_one_cie_vaddr(&s, &at))
		return (struct fde_range){ 0 };
	cie = read_cie(t, at);
	if (!cie || !cfi_one_fde(&s, cie, &fde) || fde.pc != start)
		return (struct fde_range){ 0 };
	return (struct fde_range){ fde.pc, fde.end, cie->signal };
}

static bool covers(const struct fde_range *r, uint64_t vaddr)
{
	return vaddr >= r->start && vaddr < r->end;
}

/* Search VADDR in T; false if the table lies about it. */
static bool find(struct table *t, uint64_t vaddr, struct fde_range *ret)
{
	uint64_t start = 0, fde = 0;
	size_t i = PARTITION_POINT(0, t->n, mid, entry_at(t, mid, &start, &fde) && start <= vaddr);

	*ret = (struct fde_range){ 0 };
	if (!i)
		return true;
	if (!entry_at(t, i - 1, &start, &fde))
		return false;
	if (i - 1 != t->last) {
		t->last = i - 1;
		t->range = read_fde(t, fde, start);
	}
	if (covers(&t->range, vaddr))
		*ret = t->range;
	return t->range.end != 0;
}

/* --- without the table --- */

/* The addresses without a range. */
struct rest {
	uint64_t *vaddrs; /* ascending */
	struct fde_range **to;
	size_t n, visits;
};

static int open_rest(size_t n, struct rest *r)
{
	*r = (struct rest){ .vaddrs = malloc(n * sizeof(*r->vaddrs)), .to = malloc(n * sizeof(*r->to)) };
	return r->vaddrs && r->to ? 0 : -ENOMEM;
}

static void add_to_rest(struct rest *r, uint64_t vaddr, struct fde_range *to)
{
	r->vaddrs[r->n] = vaddr;
	r->to[r->n++] = to;
}

/* Put those for which the table is of no use into R. */
static int find_all(
	const struct elffile *f, const uint64_t *vaddrs, size_t n, struct fde_range *ret, struct rest *r)
{
	struct table t;
	const bool good = open_table(f, &t);

	if (good && load_table(&t, n) != 0)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (!good || !find(&t, vaddrs[i], &ret[i]))
			add_to_rest(r, vaddrs[i], &ret[i]);
	free(t.bytes);
	return 0;
}

static void match(const struct cfi *c, struct rest *r)
{
	for (size_t k = 0; k < c->n_fdes && r->visits <= VISITS_PER_ADDR * (r->n + c->n_fdes); k++) {
		const struct cfi_fde *f = &c->fdes[k];

		if (f->end <= r->vaddrs[0] || f->pc > r->vaddrs[r->n - 1])
			continue;
		for (size_t i = PARTITION_POINT(0, r->n, mid, r->vaddrs[mid] < f->pc);
			i < r->n && r->vaddrs[i] < f->end; i++, r->visits++)
			if (!r->to[i]->end || f->pc > r->to[i]->start)
				*r->to[i] = (struct fde_range){ f->pc, f->end, c->cies[f->cie].signal };
	}
}

/* Match all FDEs of section NAME. Only a lack of memory is an error. */
static int scan(const struct elffile *f, const char *name, bool eh, uint64_t max_bytes, struct rest *r)
{
	struct elfsection_names names = { 0 };
	struct elfsection sec = { 0 };
	struct cfi c = { 0 };
	int rc;

	if (!r->n)
		return 0;
	rc = elfsection_names(f, &names, NULL);
	rc = rc ? rc : elfsection_load(f, &names, name, max_bytes, &sec, NULL);
	if (rc > 0) {
		const struct cfi_section s = {
			.p = sec.bytes, .len = sec.len, .vaddr = sec.header->addr, .eh = eh
		};

		rc = cfi_read(&s, &c, NULL);
	}
	if (rc == 0)
		match(&c, r);
	cfi_free(&c);
	elfsection_free(&sec);
	elfsection_names_free(&names);
	return rc == -ENOMEM ? rc : 0;
}

int fde_ranges(const struct elffile *f, const struct elffile *debug, const uint64_t *vaddrs, size_t n,
	uint64_t max_bytes, struct fde_range *ret, struct err *e)
{
	struct rest r = { 0 };
	int rc;

	memset(ret, 0, n * sizeof(*ret));
	if (!n || f->type == ET_REL) /* whose call frame information is not relocated */
		return 0;
	rc = open_rest(n, &r);
	rc = rc ? rc : find_all(f, vaddrs, n, ret, &r);
	rc = rc ? rc : scan(f, ".eh_frame", true, max_bytes, &r);
	r.n = r.visits = 0;
	for (size_t i = 0; i < n && rc == 0; i++)
		if (!ret[i].end)
			add_to_rest(&r, vaddrs[i], &ret[i]);
	rc = rc ? rc : scan(f, ".debug_frame", false, max_bytes, &r);
	if (debug)
		rc = rc ? rc : scan(debug, ".debug_frame", false, max_bytes, &r);
	free(r.vaddrs);
	free(r.to);
	return rc ? err_nomem(e, "call frame information") : 0;
}
