/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/plt.h"
#include "base/base.h"
#include "base/bytes.h"
#include "base/search.h"
#include "elf/section.h"
#include "elf/symbols.h"

#include <elf.h>
#include <errno.h>

/*
 * pltx86 - what a stub of a procedure linkage table does on x86-64.
 *
 * Formats: System V ABI for x86-64, "Procedure Linkage Table"; the variants of
 * the linkers for indirect branch tracking (endbr64, .plt.sec) and against
 * speculation (retpolines). Each stub begins with an instruction that reads the
 * slot of the global offset table or, if that is in .plt.sec, with one that
 * pushes the number of the relocation. Another architecture needs another such
 * part.
 */

#define PLTX86_ALIGN 8 /* stubs begin at multiples of this, counted from the beginning of the section */

struct pltx86_stub {
	size_t len; /* of its instructions, without padding */
	bool by_index; /* `index` identifies the function, else `slot` */
	uint64_t slot; /* address in the global offset table */
	uint32_t index; /* of the relocation in .rela.plt */
};

enum pltx86_fills {
	PLTX86_OTHER, /* not the address of a function */
	PLTX86_SYMBOL, /* the address of the relocation's symbol */
	PLTX86_RESOLVER, /* the result of the function at the relocation's addend (IFUNC) */
};

static bool pltx86_stub(const uint8_t *p, size_t len, uint64_t vaddr, struct pltx86_stub *ret);
static enum pltx86_fills pltx86_fills(uint32_t type);

/* Skip the N bytes of WHAT if they are next. */
static bool take(struct rd *r, const char *what, size_t n)
{
	if (rd_left(r) < n || memcmp(r->p, what, n) != 0)
		return false;
	rd_bytes(r, n);
	return true;
}

/* Skip an opcode and the 32 bits behind it, which are stored in *IMM. */
static bool take_imm(struct rd *r, const char *opcode, size_t n, uint32_t *imm)
{
	struct rd at = *r;

	if (!take(&at, opcode, n))
		return false;
	*imm = rd_u32(&at);
	if (at.bad)
		return false;
	*r = at;
	return true;
}

/* Skip the code for a function that is not bound yet; retpolines have additional calls and jumps. */
static void take_tail(struct rd *r)
{
	uint32_t imm;

	while (take_imm(r, "\x68", 1, &imm) || take_imm(r, "\xe9", 1, &imm) ||
		take_imm(r, "\xf2\xe9", 2, &imm) || take_imm(r, "\xe8", 1, &imm))
		;
}

/* Is there a stub at P (LEN bytes, maybe more than one stub) with address VADDR? */
static bool pltx86_stub(const uint8_t *p, size_t len, uint64_t vaddr, struct pltx86_stub *ret)
{
	struct rd r = rd_init(p, MIN(len, 32)), before;
	uint32_t imm;

	*ret = (struct pltx86_stub){ 0 };
	take(&r, "\xf3\x0f\x1e\xfa", 4); /* endbr64 */
	before = r;
	take_imm(&r, "\x41\xbb", 2, &imm); /* mov $index,%r11d: mold */
	if (take_imm(&r, "\xff\x25", 2, &imm) || /* jmp *disp(%rip) */
		take_imm(&r, "\xf2\xff\x25", 3, &imm) || /* the same with bnd */
		take_imm(&r, "\x4c\x8b\x1d", 3, &imm)) { /* mov disp(%rip),%r11: retpoline */
		ret->slot = vaddr + (uint64_t)(r.p - p) + (uint64_t)(int64_t)(int32_t)imm;
		take_tail(&r);
	} else {
		r = before;
		if (!take_imm(&r, "\x68", 1, &ret->index)) /* push $index */
			return false;
		if (!take_imm(&r, "\xe9", 1, &imm) && !take_imm(&r, "\xf2\xe9", 2, &imm))
			return false;
		ret->by_index = true;
	}
	ret->len = (size_t)(r.p - p);
	return true;
}

/* What a relocation of TYPE (R_X86_64_*) puts into its slot. */
static enum pltx86_fills pltx86_fills(uint32_t type)
{
	switch (type) {
	case R_X86_64_JUMP_SLOT:
	case R_X86_64_GLOB_DAT:
		return PLTX86_SYMBOL;
	case R_X86_64_IRELATIVE:
		return PLTX86_RESOLVER;
	default:
		return PLTX86_OTHER;
	}
}

#define PIECE (sizeof(Elf64_Rela) * 4096) /* bytes of relocations in memory */
#define NAMES_MAX (64 << 20) /* limit for bytes of names read: a hostile table has one in every slot */
#define NO_NAME UINT32_MAX

struct stub {
	uint64_t start, end;
	uint64_t slot;
	uint32_t index, name; /* of its relocation; offset in `names` */
	uint32_t name_len;
	bool by_index;
};

struct pltsym {
	struct stub *stubs; /* ascending by start */
	size_t n, cap;
	struct buf names;
};

/* A slot that a stub jumps through, and what a relocation puts into it. */
struct slot {
	uint64_t vaddr, resolver;
	uint32_t symbol; /* of .dynsym */
	enum pltx86_fills fills;
	uint32_t name, name_len;
};

struct work {
	struct elfcode code;
	struct elfsection_names section_names;
	const uint64_t *vaddrs;
	size_t n_vaddrs;
	uint64_t budget; /* bytes that may still be read: hostile sections overlap */
	struct pltsym *p;
	struct slot *slots; /* ascending by vaddr, distinct */
	size_t n_slots, n_resolvers;
	size_t names_seen; /* bytes */
};

/* --- the stubs --- */

static const char *section_name(const struct work *w, const struct elffile_section *s)
{
	return s->name < w->section_names.len ? (const char *)w->section_names.bytes + s->name : "";
}

/* Is any of the addresses in [start, end)? */
static bool is_wanted(const struct work *w, uint64_t start, uint64_t end)
{
	size_t lo;

	if (!w->vaddrs)
		return true;
	lo = PARTITION_POINT(0, w->n_vaddrs, mid, w->vaddrs[mid] < start);
	return lo < w->n_vaddrs && w->vaddrs[lo] < end;
}

static bool has_stubs(const struct work *w, const struct elffile_section *s)
{
	const char *name = section_name(w, s);

	return s->type == SHT_PROGBITS && s->flags & SHF_EXECINSTR && s->addr <= UINT64_MAX - s->size &&
	       (strncmp(name, ".plt", 4) == 0 || strncmp(name, ".iplt", 5) == 0) &&
	       is_wanted(w, s->addr, s->addr + s->size);
}

static int spend(struct work *w, uint64_t bytes, struct err *e)
{
	if (bytes > w->budget)
		return err_set(e, -EINVAL, "has sections that overlap");
	w->budget -= bytes;
	return 0;
}

static int scan_section(struct work *w, const struct elffile_section *s, struct err *e)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	struct pltx86_stub found;
	size_t len = 0;
	int rc = spend(w, s->size, e);

	rc = rc ? rc : elffile_read(w->code.f, s, &bytes, &len, e);
	if (rc)
		return err_prefix(e, "its linkage table"), rc;
	for (size_t at = 0; at < len;) {
		uint64_t start = s->addr + at;

		if (!pltx86_stub(bytes + at, len - at, start, &found)) {
			at += PLTX86_ALIGN;
			continue;
		}
		at += (found.len + PLTX86_ALIGN - 1) / PLTX86_ALIGN * PLTX86_ALIGN;
		if (!is_wanted(w, start, start + found.len))
			continue;
		if (base_grow(&w->p->stubs, &w->p->cap, w->p->n + 1, sizeof(*w->p->stubs)) != 0)
			return err_nomem(e, "a linkage table");
		w->p->stubs[w->p->n++] = (struct stub){ .start = start,
			.end = start + found.len,
			.slot = found.slot,
			.index = found.index,
			.by_index = found.by_index,
			.name = NO_NAME };
	}
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct stub *x = a, *y = b;

	return CMP(x->start, y->start);
}

static int find_stubs(struct work *w, struct err *e)
{
	const struct elffile *f = w->code.f;
	int rc = 0;

	for (size_t i = 0; i < f->n_sections && rc == 0; i++)
		if (has_stubs(w, &f->sections[i]))
			rc = scan_section(w, &f->sections[i], e);
	if (w->p->n)
		qsort(w->p->stubs, w->p->n, sizeof(*w->p->stubs), by_start);
	return rc;
}

/* --- their slots --- */

/* Set the slots of stubs that have a relocation number instead. */
static int index_slots(struct work *w, struct err *e)
{
	const struct elffile *f = w->code.f;
	const struct elffile_section *rela = NULL;
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t len = 0, any = 0;

	for (size_t i = 0; i < w->p->n; i++)
		any += w->p->stubs[i].by_index;
	for (size_t i = 0; any && i < f->n_sections && !rela; i++)
		if (f->sections[i].type == SHT_RELA &&
			strcmp(section_name(w, &f->sections[i]), ".rela.plt") == 0)
			rela = &f->sections[i];
	if (!rela)
		return 0;
	if (elffile_read(f, rela, &bytes, &len, e) != 0)
		return err_prefix(e, "its .rela.plt"), -EINVAL;
	for (size_t i = 0; i < w->p->n; i++) {
		struct stub *s = &w->p->stubs[i];

		if (s->by_index && s->index < len / sizeof(Elf64_Rela))
			s->slot = elfcode_le64(bytes + s->index * sizeof(Elf64_Rela));
	}
	return 0;
}

static int by_vaddr(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return CMP(x->vaddr, y->vaddr);
}

static int collect_slots(struct work *w, struct err *e)
{
	int rc = index_slots(w, e);
	size_t n = 0;

	if (rc)
		return rc;
	w->slots = calloc(w->p->n + 1, sizeof(*w->slots));
	if (!w->slots)
		return err_nomem(e, "a linkage table");
	for (size_t i = 0; i < w->p->n; i++)
		w->slots[i] = (struct slot){ .vaddr = w->p->stubs[i].slot, .name = NO_NAME };
	qsort(w->slots, w->p->n, sizeof(*w->slots), by_vaddr);
	for (size_t i = 0; i < w->p->n; i++)
		if (!n || w->slots[n - 1].vaddr != w->slots[i].vaddr)
			w->slots[n++] = w->slots[i];
	w->n_slots = n;
	return 0;
}

static struct slot *slot_at(const struct work *w, uint64_t vaddr)
{
	struct slot key = { .vaddr = vaddr };

	return bsearch(&key, w->slots, w->n_slots, sizeof(*w->slots), by_vaddr);
}

/* Elf64_Rela: r_offset, r_info (symbol, type), r_addend. The first relocation of a slot is used. */
static void take_relocs(struct work *w, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++, p += sizeof(Elf64_Rela)) {
		uint64_t info = elfcode_le64(p + 8);
		enum pltx86_fills fills = pltx86_fills((uint32_t)info);
		struct slot *s = fills == PLTX86_OTHER ? NULL : slot_at(w, elfcode_le64(p));

		if (!s || s->fills != PLTX86_OTHER)
			continue;
		s->fills = fills;
		s->symbol = (uint32_t)(info >> 32);
		s->resolver = elfcode_le64(p + 16);
		w->n_resolvers += fills == PLTX86_RESOLVER;
	}
}

static int read_relocs(struct work *w, struct err *e)
{
	const struct elffile *f = w->code.f;
	_cleanup_free_ uint8_t *piece = malloc(PIECE);

	if (!piece)
		return err_nomem(e, "relocations");
	for (size_t i = 0; i < f->n_sections; i++) {
		const struct elffile_section *s = &f->sections[i];
		uint64_t size = s->size / sizeof(Elf64_Rela) * sizeof(Elf64_Rela);
		int rc = 0;

		if (s->type != SHT_RELA || !(s->flags & SHF_ALLOC))
			continue;
		rc = spend(w, size, e);
		for (uint64_t done = 0, n; done < size && rc == 0; done += n) {
			n = MIN(size - done, PIECE);
			rc = elffile_read_at(f, s->offset + done, piece, n, e);
			if (rc == 0)
				take_relocs(w, piece, n / sizeof(Elf64_Rela));
		}
		if (rc)
			return err_prefix(e, "its relocations"), rc;
	}
	return 0;
}

/* --- their names --- */

static void put_name(struct work *w, struct slot *s, const char *name)
{
	struct buf *b = &w->p->names;
	size_t len;

	if (s->name != NO_NAME || w->names_seen >= NAMES_MAX)
		return;
	len = strnlen(name, NAMES_MAX - w->names_seen);
	w->names_seen += len;
	if (!len || w->names_seen >= NAMES_MAX)
		return;
	s->name = (uint32_t)b->len;
	s->name_len = (uint32_t)len;
	buf_put(b, name, len);
	buf_put(b, "@plt", 5);
}

/* A symbol table in memory. */
struct symbols {
	uint8_t *syms, *strings;
	size_t n, strings_len;
};

static int read_symbols(const struct work *w, size_t k, struct symbols *ret, struct err *e)
{
	const struct elfcode_table *t = &w->code.tables[k];
	size_t len = 0;
	int rc;

	if (!t->n)
		return 0;
	rc = elffile_read(w->code.f, t->syms, &ret->syms, &len, e);
	rc = rc ? rc : elffile_read(w->code.f, t->strings, &ret->strings, &ret->strings_len, e);
	if (rc)
		return err_prefix(e, "its %s", elfcode_table_name(k)), rc;
	ret->n = len / sizeof(Elf64_Sym);
	return 0;
}

static void name_by_symbol(struct work *w, const struct symbols *y)
{
	for (size_t i = 0; i < w->n_slots; i++) {
		struct slot *s = &w->slots[i];
		struct elfcode_symbol sym;

		if (s->fills != PLTX86_SYMBOL || s->symbol >= y->n)
			continue;
		sym = elfcode_symbol(true, y->syms + s->symbol * sizeof(Elf64_Sym));
		if (sym.name < y->strings_len)
			put_name(w, s, (const char *)y->strings + sym.name);
	}
}

static int by_resolver(const void *a, const void *b)
{
	const struct slot *x = *(const struct slot *const *)a, *y = *(const struct slot *const *)b;

	return CMP(x->resolver, y->resolver);
}

/* RESOLVED is sorted by resolver. If several slots have the same resolver, each gets the name. */
static void name_by_resolver(struct work *w, const struct symbols *y, struct slot **resolved)
{
	for (size_t i = 0; i < y->n; i++) {
		struct elfcode_symbol sym = elfcode_symbol(true, y->syms + i * sizeof(Elf64_Sym));
		size_t lo;

		if (sym.type != STT_GNU_IFUNC || !elfcode_names_code(w->code.f, &sym, y->strings_len))
			continue;
		lo = PARTITION_POINT(0, w->n_resolvers, mid, resolved[mid]->resolver < sym.value);
		/*
		 * stop at a slot with a name: those behind it have one too, so
		 * a hostile table costs no more
		 */
		for (; lo < w->n_resolvers && resolved[lo]->resolver == sym.value &&
			resolved[lo]->name == NO_NAME;
			lo++)
			put_name(w, resolved[lo], (const char *)y->strings + sym.name);
	}
}

static int name_resolved(struct work *w, const struct symbols y[2], struct err *e)
{
	_cleanup_free_ struct slot **resolved = calloc(w->n_resolvers + 1, sizeof(struct slot *));
	size_t n = 0;

	if (!resolved)
		return err_nomem(e, "a linkage table");
	for (size_t i = 0; i < w->n_slots; i++)
		if (w->slots[i].fills == PLTX86_RESOLVER)
			resolved[n++] = &w->slots[i];
	qsort(resolved, n, sizeof(struct slot *), by_resolver);
	for (size_t k = 0; k < 2; k++)
		name_by_resolver(w, &y[k], resolved);
	for (size_t i = 0; i < n; i++) {
		char text[64];

		snprintf(text, sizeof(text), "*ABS*+0x%llx", (unsigned long long)resolved[i]->resolver);
		put_name(w, resolved[i], text);
	}
	return 0;
}

static int name_slots(struct work *w, struct err *e)
{
	struct symbols y[2] = { 0 };
	int rc = w->n_resolvers ? read_symbols(w, 0, &y[0], e) : 0;

	rc = rc ? rc : read_symbols(w, 1, &y[1], e);
	if (rc == 0)
		name_by_symbol(w, &y[1]);
	if (rc == 0 && w->n_resolvers)
		rc = name_resolved(w, y, e);
	for (size_t k = 0; k < 2; k++) {
		free(y[k].syms);
		free(y[k].strings);
	}
	if (rc == 0 && w->names_seen >= NAMES_MAX)
		return err_set(
			e, -EINVAL, "has a linkage table of more than %d MiB of names", NAMES_MAX >> 20);
	return rc ? rc : w->p->names.failed ? err_nomem(e, "a linkage table") : 0;
}

/* --- loading --- */

/* Keep the stubs whose slot has a name. */
static void keep_named(struct work *w)
{
	struct pltsym *p = w->p;
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++) {
		const struct slot *s = slot_at(w, p->stubs[i].slot);

		if (!s || s->name == NO_NAME)
			continue;
		p->stubs[n] = p->stubs[i];
		p->stubs[n].name = s->name;
		p->stubs[n++].name_len = s->name_len;
	}
	p->n = n;
}

static int load(struct work *w, struct err *e)
{
	int rc = elfsection_names(w->code.f, &w->section_names, e);

	rc = rc ? rc : find_stubs(w, e);
	if (rc || !w->p->n)
		return rc;
	rc = elfcode_open(w->code.f, &w->code, e);
	rc = rc ? rc : collect_slots(w, e);
	rc = rc ? rc : read_relocs(w, e);
	rc = rc ? rc : name_slots(w, e);
	if (rc == 0)
		keep_named(w);
	return rc;
}

int pltsym_load(const struct elffile *f, const uint64_t *vaddrs, size_t n, struct pltsym **ret, struct err *e)
{
	struct work w = { .code.f = f, .vaddrs = vaddrs, .n_vaddrs = n, .budget = f->size };
	int rc = 0;

	w.p = calloc(1, sizeof(*w.p));
	if (!w.p)
		return err_nomem(e, "a linkage table");
	if (f->machine == EM_X86_64 && f->is64)
		rc = load(&w, e);
	elfsection_names_free(&w.section_names);
	elfcode_spans_free(&w.code.spans);
	free(w.slots);
	if (rc) {
		pltsym_free(w.p);
		return rc;
	}
	*ret = w.p;
	return 0;
}

void pltsym_free(struct pltsym *p)
{
	if (!p)
		return;
	free(p->stubs);
	buf_free(&p->names);
	free(p);
}

bool pltsym_stub(const struct pltsym *p, size_t i, struct pltsym_hit *ret)
{
	const struct stub *s;

	if (i >= p->n)
		return false;
	s = &p->stubs[i];
	*ret = (struct pltsym_hit){ .start = s->start,
		.end = s->end,
		.name = (const char *)p->names.p + s->name,
		.name_len = s->name_len };
	return true;
}

bool pltsym_find(const struct pltsym *p, uint64_t vaddr, struct pltsym_hit *ret)
{
	size_t lo = PARTITION_POINT(0, p->n, mid, p->stubs[mid].start <= vaddr);

	return lo && pltsym_stub(p, lo - 1, ret) && vaddr < ret->end;
}
