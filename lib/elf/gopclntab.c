/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/gopclntab.h"
#include "base/search.h"
#include "elf/section.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#define BYTES_MAX (UINT64_C(1) << 30)
#define WORD 8
#define HEAD_BYTES 8 /* magic, two bytes of zero, size of an instruction, size of a pointer */
#define FUNCTIONS_MAX (1u << 26)
#define INLINED 2 /* which of a function's other tables says what was inlined: internal/abi/symtab.go */

enum version { GO_1_2, GO_1_16, GO_1_18, GO_1_20 };

struct gopclntab {
	uint8_t *bytes; /* of the section */
	size_t len; /* from the table's beginning */
	const uint8_t *p; /* the table's beginning */
	enum version version;
	uint64_t text; /* what functions' addresses are relative to; since 1.18 */
	size_t n; /* functions */
	/* offsets of the parts */
	size_t functions, records, names, units, files, values;
};

/* A reader of what follows OFFSET. */
static struct rd at(const struct gopclntab *t, uint64_t offset)
{
	struct rd r = rd_init(t->p, t->len);

	if (offset > t->len)
		r.bad = true;
	else
		r.p += offset;
	return r;
}

/* The string at OFFSET; NULL if it does not end inside the table. */
static const char *string_at(const struct gopclntab *t, uint64_t offset)
{
	struct rd r = at(t, offset);

	return !r.bad && memchr(r.p, '\0', rd_left(&r)) ? (const char *)r.p : NULL;
}

/* Entries of the table of functions: an address and the offset of a record. */
static size_t entry_bytes(const struct gopclntab *t)
{
	return t->version < GO_1_18 ? 2 * WORD : 8;
}

/* Where function I begins; I may be the number of functions: where the last one ends. */
static uint64_t start_of(const struct gopclntab *t, size_t i)
{
	struct rd r = at(t, t->functions + i * entry_bytes(t));

	return t->version < GO_1_18 ? rd_u64(&r) : t->text + rd_u32(&r);
}

/* --- the header --- */

static bool read_head(struct rd *r, enum version *version)
{
	static const uint32_t magics[] = { 0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1 };
	uint32_t magic = rd_u32(r);
	size_t i = 0;

	while (i < ARRAY_LEN(magics) && magics[i] != magic)
		i++;
	*version = (enum version)i;
	return i < ARRAY_LEN(magics) && rd_u16(r) == 0 && rd_u8(r) == 1 && rd_u8(r) == WORD && !r->bad;
}

/* Go 1.2 has all offsets from the table's beginning. */
static bool read_parts_1_2(struct gopclntab *t, struct rd *r)
{
	t->n = rd_u64(r);
	t->functions = HEAD_BYTES + WORD;
	return !r->bad && t->n <= FUNCTIONS_MAX;
}

static bool read_parts(struct gopclntab *t, struct rd *r)
{
	uint64_t parts[5];

	t->n = rd_u64(r);
	rd_u64(r); /* number of files */
	if (t->version >= GO_1_18)
		t->text = rd_u64(r);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		parts[i] = rd_u64(r);
		if (parts[i] > t->len)
			return false;
	}
	t->names = parts[0];
	t->units = parts[1];
	t->files = parts[2];
	t->values = parts[3];
	t->functions = t->records = parts[4];
	return !r->bad && t->n <= FUNCTIONS_MAX;
}

/* Do the functions ascend, and all lie in executable loads? */
static bool good_functions(const struct gopclntab *t, const struct elffile *f)
{
	struct rd r = at(t, t->functions);
	const struct elffile_load *in = NULL;
	uint64_t last = 0;

	if (r.bad || rd_left(&r) / entry_bytes(t) < t->n || !t->n)
		return false;
	/* behind the last one there is only an address */
	if (rd_left(&r) - t->n * entry_bytes(t) < entry_bytes(t) / 2)
		return false;
	for (size_t i = 0; i <= t->n; i++) {
		uint64_t start = start_of(t, i), inside = i < t->n ? start : start - 1;

		if (i && start <= last)
			return false;
		for (size_t k = 0; !in || inside - in->vaddr >= in->memsz; k++) {
			if (k == f->n_loads)
				return false;
			in = f->loads[k].exec ? &f->loads[k] : in;
		}
		last = start;
	}
	return true;
}

/*
 * The address of the text in a position-independent program is a relocation of
 * the header's word at VADDR. Returns 0 if there is none.
 */
static uint64_t relocated(const struct elffile *f, uint64_t vaddr)
{
	for (size_t i = 0; i < f->n_sections; i++) {
		const struct elffile_section *s = &f->sections[i];
		_cleanup_free_ uint8_t *bytes = NULL;
		struct rd r;
		size_t len;

		if (s->type != SHT_RELA || s->entsize != sizeof(Elf64_Rela) || !(s->flags & SHF_ALLOC) ||
			s->size > BYTES_MAX || elffile_read(f, s, &bytes, &len, NULL) != 0)
			continue;
		for (r = rd_init(bytes, len); rd_left(&r) >= sizeof(Elf64_Rela);) {
			uint64_t where = rd_u64(&r), info = rd_u64(&r), addend = rd_u64(&r);

			if (where == vaddr && ELF64_R_TYPE(info) == R_X86_64_RELATIVE)
				return addend;
		}
	}
	return 0;
}

/* A word of SECTION's BYTES, by its number, or what relocates it. */
static uint64_t module_word(const struct elffile *f, const struct elfsection *s, size_t i)
{
	struct rd r = rd_init(s->bytes, s->len);
	uint64_t word;

	rd_bytes(&r, i * WORD);
	word = rd_u64(&r);
	return word || r.bad ? word : relocated(f, s->header->addr + i * WORD);
}

/*
 * Since Go 1.26 only the runtime's moduledata has the address of the text. It has
 * a section of its own. It must point to this table, at VADDR, and its lowest PC
 * must be the first function's. Returns 0 if there is none.
 */
static uint64_t text_of_module(const struct gopclntab *t, const struct elffile *f, uint64_t vaddr)
{
	enum { TABLE = 0, LOWEST = 20, TEXT = 22 }; /* runtime/symtab.go: words of moduledata */
	struct elfsection_names names;
	struct elfsection s = { 0 };
	uint64_t text = 0;

	if (elfsection_names(f, &names, NULL) != 0)
		return 0;
	if (elfsection_load(f, &names, ".go.module", BYTES_MAX, &s, NULL) > 0 &&
		module_word(f, &s, TABLE) == vaddr) {
		text = module_word(f, &s, TEXT);
		if (module_word(f, &s, LOWEST) != text + start_of(t, 0))
			text = 0;
	}
	elfsection_free(&s);
	elfsection_names_free(&names);
	return text;
}

/* Check the table at T->p, which has address VADDR. */
static bool read_table(struct gopclntab *t, const struct elffile *f, uint64_t vaddr)
{
	struct rd r = rd_init(t->p, t->len);

	t->text = 0;
	if (!read_head(&r, &t->version))
		return false;
	if (t->version == GO_1_2 ? !read_parts_1_2(t, &r) : !read_parts(t, &r))
		return false;
	if (t->version >= GO_1_18 && !t->text)
		t->text = relocated(f, vaddr + HEAD_BYTES + 2 * WORD);
	if (t->version >= GO_1_18 && !t->text)
		t->text = text_of_module(t, f, vaddr);
	return good_functions(t, f);
}

/* --- where it is --- */

static int load_by_name(struct gopclntab *t, const struct elffile *f, const struct elfsection_names *names,
	uint64_t *vaddr, struct err *e)
{
	static const char *const called[] = { ".gopclntab", ".data.rel.ro.gopclntab", ".data.rel.ro" };
	struct elfsection sec;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < ARRAY_LEN(called); i++) {
		if (i == 2 && !elfsection_has(f, names, ".note.go.buildid"))
			break;
		rc = elfsection_load(f, names, called[i], BYTES_MAX, &sec, e);
		if (rc < 0)
			err_prefix(e, "its %s", called[i]);
	}
	if (rc <= 0)
		return rc;
	t->bytes = sec.bytes;
	t->p = sec.bytes;
	t->len = sec.len;
	*vaddr = sec.header->addr;
	return 1;
}

/*
 * Search the section for the table, if an external linker merged it with other
 * data. Go aligns it to 32 bytes. What only looks like a header is not followed
 * by functions in order.
 */
static bool search(struct gopclntab *t, const struct elffile *f, uint64_t vaddr)
{
	size_t len = t->len, tries = 64;
	enum version v;

	for (size_t at = (size_t)(-vaddr & 31); at < len && len - at >= HEAD_BYTES && tries; at += 32) {
		struct rd head = rd_init(t->bytes + at, HEAD_BYTES);

		if (!read_head(&head, &v))
			continue;
		t->p = t->bytes + at;
		t->len = len - at;
		if (read_table(t, f, vaddr + at))
			return true;
		tries--;
	}
	return false;
}

static int find(struct gopclntab *t, const struct elffile *f, struct err *e)
{
	struct elfsection_names names;
	uint64_t vaddr = 0;
	bool own;
	int rc = elfsection_names(f, &names, e);

	if (rc)
		return rc;
	own = elfsection_has(f, &names, ".gopclntab") || elfsection_has(f, &names, ".data.rel.ro.gopclntab");
	rc = load_by_name(t, f, &names, &vaddr, e);
	elfsection_names_free(&names);
	if (rc <= 0)
		return rc;
	if (own ? read_table(t, f, vaddr) : search(t, f, vaddr))
		return 1;
	return own ? err_set(e, -EINVAL, "its .gopclntab is malformed or of an unknown version") : 0;
}

int gopclntab_open(const struct elffile *f, struct gopclntab **ret, struct err *e)
{
	struct gopclntab *t;
	int rc;

	if (!f->is64 || f->machine != EM_X86_64)
		return 0;
	t = calloc(1, sizeof(*t));
	if (!t)
		return err_nomem(e, "a table of Go functions");
	rc = find(t, f, e);
	if (rc <= 0)
		gopclntab_close(t);
	else
		*ret = t;
	return rc;
}

void gopclntab_close(struct gopclntab *t)
{
	if (!t)
		return;
	free(t->bytes);
	free(t);
}

/* --- functions --- */

size_t gopclntab_count(const struct gopclntab *t)
{
	return t->n;
}

void gopclntab_range(const struct gopclntab *t, size_t i, uint64_t *start, uint64_t *end)
{
	*start = start_of(t, i);
	*end = start_of(t, i + 1);
}

bool gopclntab_get(const struct gopclntab *t, size_t i, struct gopclntab_function *ret)
{
	struct rd r;
	uint64_t record;
	uint32_t others;
	const char *name;

	if (i >= t->n)
		return false;
	r = at(t, t->functions + i * entry_bytes(t) + entry_bytes(t) / 2);
	record = t->records + (t->version < GO_1_18 ? rd_u64(&r) : rd_u32(&r));
	r = at(t, record);
	*ret = (struct gopclntab_function){ .start = start_of(t, i), .end = start_of(t, i + 1) };
	rd_bytes(&r, t->version < GO_1_18 ? WORD : 4); /* its address, once more */
	name = string_at(t, t->names + rd_u32(&r));
	rd_bytes(&r, 8); /* arguments, deferreturn */
	ret->sp = rd_u32(&r);
	ret->file = rd_u32(&r);
	ret->line = rd_u32(&r);
	others = rd_u32(&r);
	ret->name = name && !r.bad ? name : "";
	if (t->version == GO_1_2)
		return !r.bad;
	ret->unit = rd_u32(&r);
	rd_bytes(&r, t->version == GO_1_20 ? 5 : 1); /* first line; number of special functions */
	ret->flags = rd_u8(&r);
	rd_bytes(&r, 2 + 4 * INLINED); /* number of other data */
	if (others > INLINED && !r.bad)
		ret->inlined = rd_u32(&r);
	return !r.bad || others <= INLINED;
}

bool gopclntab_find(const struct gopclntab *t, uint64_t vaddr, struct gopclntab_function *ret)
{
	size_t i = PARTITION_POINT(0, t->n + 1, mid, start_of(t, mid) <= vaddr);

	return i && i <= t->n && gopclntab_get(t, i - 1, ret);
}

/* --- values by PC --- */

static struct gopclntab_run run(
	const struct gopclntab *t, const struct gopclntab_function *fn, uint32_t table)
{
	struct gopclntab_run r = {
		.in = at(t, t->values + (uint64_t)table), .start = fn->start, .end = fn->start, .value = -1
	};

	if (!table) /* the function has none */
		r.in.bad = true;
	return r;
}

void gopclntab_frames(
	const struct gopclntab *t, const struct gopclntab_function *fn, struct gopclntab_run *ret)
{
	*ret = run(t, fn, fn->sp);
}

/*
 * Pairs of the value's change (zigzag) and the length of its range. A change of
 * 0 ends the table, except in the first pair.
 */
bool gopclntab_next(struct gopclntab_run *r)
{
	uint32_t change = rd_uleb32(&r->in), bytes;

	if (r->in.bad || (!change && r->begun))
		return false;
	bytes = rd_uleb32(&r->in);
	if (r->in.bad || !bytes)
		return false;
	r->begun = true;
	r->value = (int32_t)((uint32_t)r->value + (change >> 1 ^ (0 - (change & 1))));
	r->start = r->end;
	r->end += bytes;
	return true;
}

static bool value_at(const struct gopclntab *t, const struct gopclntab_function *fn, uint32_t table,
	uint64_t vaddr, int32_t *ret)
{
	struct gopclntab_run r = run(t, fn, table);

	while (gopclntab_next(&r)) {
		*ret = r.value;
		if (vaddr < r.end)
			return true;
	}
	return false;
}

/* The name of file NUMBER of the function's compilation unit. */
static const char *file_name(const struct gopclntab *t, const struct gopclntab_function *fn, uint32_t number)
{
	struct rd r = at(t, t->units + 4 * ((uint64_t)fn->unit + number));
	uint32_t offset = rd_u32(&r);

	return r.bad || offset == UINT32_MAX ? NULL : string_at(t, t->files + (uint64_t)offset);
}

bool gopclntab_line(const struct gopclntab *t, const struct gopclntab_function *fn, uint64_t vaddr,
	const char **file, uint32_t *line)
{
	int32_t number, n, inlined = -1;

	if (t->version == GO_1_2 || (fn->inlined && !value_at(t, fn, fn->inlined, vaddr, &inlined)) ||
		inlined >= 0)
		return false;
	if (!value_at(t, fn, fn->file, vaddr, &number) || !value_at(t, fn, fn->line, vaddr, &n) ||
		number < 0 || n <= 0)
		return false;
	*file = file_name(t, fn, (uint32_t)number);
	*line = (uint32_t)n;
	return *file && **file;
}
