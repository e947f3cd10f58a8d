/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/pack.h"
#include "elf/section.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#define EXTRA 3 /* added sections: build ID, .symtab, .strtab */

static const char extra_names[] = "\0.note.gnu.build-id\0.symtab\0.strtab";
#define NAME_NOTE 1
#define NAME_SYMTAB 20
#define NAME_STRTAB 28

/* A section of the image. */
struct part {
	struct elffile_section header; /* in the image; link as in the file */
	const struct elffile *from; /* where its bytes are from; NULL = it has none */
	const struct elffile_section *source;
};

struct pack {
	const struct elffile *f;
	struct elfsection_names names;
	struct part *parts;
	size_t n;
	uint64_t bytes; /* of all sources */
};

static const char *name_of(const struct pack *p, const struct elffile_section *s)
{
	return s->name < p->names.len ? (const char *)p->names.bytes + s->name : "";
}

static bool is_plt(const char *name)
{
	return strncmp(name, ".plt", 4) == 0 || strncmp(name, ".iplt", 5) == 0;
}

/* Is section I the string table of a symbol table? */
static bool is_linked(const struct elffile *f, size_t i)
{
	for (size_t k = 0; k < f->n_sections; k++)
		if ((f->sections[k].type == SHT_SYMTAB || f->sections[k].type == SHT_DYNSYM) &&
			f->sections[k].link == i)
			return true;
	return false;
}

static bool is_wanted(const struct pack *p, size_t i)
{
	const struct elffile_section *s = &p->f->sections[i];
	const char *name = name_of(p, s);

	switch (s->type) {
	case SHT_SYMTAB:
	case SHT_DYNSYM:
		return true;
	case SHT_STRTAB:
		return i == p->f->names || is_linked(p->f, i);
	case SHT_RELA:
	case SHT_REL:
		return s->flags & SHF_ALLOC;
	case SHT_PROGBITS:
		return is_plt(name) || strcmp(name, ".gnu_debugdata") == 0;
	default:
		return false;
	}
}

static bool has_symtab(const struct elffile *f)
{
	for (size_t i = 0; f && i < f->n_sections; i++)
		if (f->sections[i].type == SHT_SYMTAB)
			return true;
	return false;
}

static void put_source(struct pack *p, struct part *part, const struct elffile *from, size_t i)
{
	part->from = from;
	part->source = &from->sections[i];
	p->bytes = part->source->size > UINT64_MAX - p->bytes ? UINT64_MAX : p->bytes + part->source->size;
}

/* Drop the bytes of a section. Only sections that are loaded keep their place. */
static void empty_part(struct part *part)
{
	if (part->header.flags & SHF_ALLOC)
		part->header.type = SHT_NOBITS;
	else
		part->header = (struct elffile_section){ 0 };
}

static void add_debug_symtab(struct pack *p, const struct elffile *debug)
{
	for (size_t i = 0; i < debug->n_sections; i++) {
		const struct elffile_section *s = &debug->sections[i];
		struct part *syms = &p->parts[p->n], *strings = syms + 1;

		if (s->type != SHT_SYMTAB || s->link >= debug->n_sections ||
			debug->sections[s->link].type != SHT_STRTAB)
			continue;
		syms->header = *s;
		syms->header.name = (uint32_t)p->names.len + NAME_SYMTAB;
		syms->header.link = (uint32_t)p->n + 1;
		put_source(p, syms, debug, i);
		strings->header = debug->sections[s->link];
		strings->header.name = (uint32_t)p->names.len + NAME_STRTAB;
		put_source(p, strings, debug, s->link);
		p->n += 2;
		return;
	}
}

static int plan(struct pack *p, const struct elffile *debug)
{
	p->parts = calloc(p->f->n_sections + EXTRA + 1, sizeof(*p->parts));
	if (!p->parts)
		return -ENOMEM;
	/* section 0 is unused, and present even if there are no other sections */
	p->n = MAX(p->f->n_sections, (size_t)1);
	for (size_t i = 1; i < p->f->n_sections; i++) {
		p->parts[i].header = p->f->sections[i];
		if (is_wanted(p, i))
			put_source(p, &p->parts[i], p->f, i);
		else
			empty_part(&p->parts[i]);
	}
	if (!has_symtab(p->f) && has_symtab(debug))
		add_debug_symtab(p, debug);
	return 0;
}

static void align(struct buf *b, size_t from)
{
	static const char zeros[8];

	buf_put(b, zeros, (8 - (b->len - from) % 8) % 8);
}

/* Append the bytes of PART to OUT. The section name table also gets the names of the added sections. */
static int put_part(const struct pack *p, struct part *part, size_t from, struct buf *out, struct err *e)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t len;
	int rc;

	if (!part->from)
		return 0;
	align(out, from);
	part->header.offset = out->len - from;
	rc = elffile_read(part->from, part->source, &bytes, &len, e);
	if (rc)
		return rc;
	buf_put(out, bytes, len);
	if (part->from == p->f && (size_t)(part - p->parts) == p->f->names)
		buf_put(out, extra_names, sizeof(extra_names));
	part->header.size = out->len - from - part->header.offset;
	return 0;
}

/* Append a note with the build ID, if there is one. */
static void put_note(struct pack *p, size_t from, struct buf *out)
{
	const struct cap_build_id *id = &p->f->build_id;
	struct part *part = &p->parts[p->n];

	if (!id->len)
		return;
	align(out, from);
	part->header = (struct elffile_section){ .name = (uint32_t)p->names.len + NAME_NOTE,
		.type = SHT_NOTE,
		.offset = out->len - from,
		.align = 4 };
	buf_fixed(out, 4, 4);
	buf_fixed(out, id->len, 4);
	buf_fixed(out, NT_GNU_BUILD_ID, 4);
	buf_put(out, "GNU", 4);
	buf_put(out, id->bytes, id->len);
	align(out, from);
	part->header.size = 16 + ((id->len + 3u) & ~3u);
	p->n++;
}

static void put_headers(const struct pack *p, struct buf *out)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct elffile_section *s = &p->parts[i].header;

		buf_fixed(out, s->name, 4);
		buf_fixed(out, s->type, 4);
		buf_fixed(out, s->flags & ~(uint64_t)SHF_COMPRESSED, 8);
		buf_fixed(out, s->addr, 8);
		buf_fixed(out, s->offset, 8);
		/*
		 * section 0 has the values that do not fit the ELF header:
		 * number of sections, index of the name table
		 */
		buf_fixed(out, !i && p->n >= SHN_LORESERVE ? p->n : s->size, 8);
		buf_fixed(out, !i && p->f->names >= SHN_LORESERVE ? p->f->names : s->link, 4);
		buf_fixed(out, s->type == SHT_SYMTAB || s->type == SHT_DYNSYM, 4); /* sh_info */
		buf_fixed(out, s->align, 8);
		buf_fixed(out, s->entsize, 8);
	}
}

static void put_loads(const struct elffile *f, struct buf *out)
{
	for (size_t i = 0; i < f->n_loads; i++) {
		const struct elffile_load *l = &f->loads[i];

		buf_fixed(out, PT_LOAD, 4);
		buf_fixed(out, PF_R | (l->exec ? PF_X : 0), 4);
		buf_fixed(out, l->offset, 8);
		buf_fixed(out, l->vaddr, 8);
		buf_fixed(out, l->vaddr, 8);
		buf_fixed(out, l->filesz, 8);
		buf_fixed(out, l->memsz, 8);
		buf_fixed(out, 4096, 8);
	}
}

/* Append the ELF header to B, from where put_all() copies it to the reserved space. */
static void put_head(const struct pack *p, uint64_t shoff, struct buf *b)
{
	static const uint8_t ident[EI_NIDENT] = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT };
	const struct elffile *f = p->f;
	size_t names = f->names < f->n_sections ? f->names : 0;

	buf_put(b, ident, sizeof(ident));
	buf_fixed(b, f->type, 2);
	buf_fixed(b, f->machine, 2);
	buf_fixed(b, EV_CURRENT, 4);
	buf_fixed(b, 0, 8); /* e_entry */
	buf_fixed(b, f->n_loads ? sizeof(Elf64_Ehdr) : 0, 8);
	buf_fixed(b, shoff, 8);
	buf_fixed(b, 0, 4); /* e_flags */
	buf_fixed(b, sizeof(Elf64_Ehdr), 2);
	buf_fixed(b, sizeof(Elf64_Phdr), 2);
	buf_fixed(b, f->n_loads, 2);
	buf_fixed(b, sizeof(Elf64_Shdr), 2);
	buf_fixed(b, p->n < SHN_LORESERVE ? p->n : 0, 2);
	buf_fixed(b, names < SHN_LORESERVE ? names : SHN_XINDEX, 2);
}

static int put_all(struct pack *p, struct buf *out, struct err *e)
{
	size_t from = out->len;
	struct buf head = { 0 };
	uint64_t shoff;

	buf_put(out, &(Elf64_Ehdr){ 0 }, sizeof(Elf64_Ehdr));
	put_loads(p->f, out);
	for (size_t i = 1; i < p->n; i++) {
		int rc = put_part(p, &p->parts[i], from, out, e);

		if (rc)
			return rc;
	}
	put_note(p, from, out);
	align(out, from);
	shoff = out->len - from;
	put_headers(p, out);
	put_head(p, shoff, &head);
	if (!out->failed && !head.failed)
		memcpy(out->p + from, head.p, head.len);
	out->failed = out->failed || head.failed;
	buf_free(&head);
	return out->failed ? err_nomem(e, "an image") : 0;
}

int elfpack_make(
	const struct elffile *f, const struct elffile *debug, uint64_t max, struct buf *out, struct err *e)
{
	struct pack p = { .f = f };
	int rc;

	if (!f->is64)
		return err_set(e, -EOPNOTSUPP, "is an ELF file of 32 bits");
	rc = elfsection_names(f, &p.names, e);
	rc = rc ? rc : plan(&p, debug) ? err_nomem(e, "sections") : 0;
	if (!rc && (p.bytes > max || p.n > max / 256 || f->n_loads > max / 256))
		rc = err_set(e, -EFBIG,
			"its symbols take %llu bytes, %llu is the most that a capture holds of a file",
			(unsigned long long)p.bytes, (unsigned long long)max);
	rc = rc ? rc : put_all(&p, out, e);
	elfsection_names_free(&p.names);
	free(p.parts);
	return rc;
}
