/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/hotspot.h"
#include "base/base.h"
#include "elf/symbols.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES_MAX 16384
#define SECTION_MAX (UINT64_C(64) << 20)
#define PARTS 8

/* struct VMStructEntry: names of type, member and member's type, is static, offset, address of a static one
 */
enum { STRUCT_TYPE = 0, STRUCT_MEMBER = 8, STRUCT_STATIC = 24, STRUCT_ADDRESS = 40, STRUCT_BYTES = 48 };
/* struct VMTypeEntry: name, name of the superclass, three flags, size */
enum { TYPE_NAME = 0, TYPE_SIZE = 32, TYPE_BYTES = 40 };

/* Sections as they are in memory after relocation. */
struct part {
	const struct elffile_section *section;
	uint8_t *bytes;
	size_t len;
};

struct image {
	const struct elffile *f;
	struct part parts[PARTS];
	size_t n;
};

/* Store what relative relocations put into P, which is loaded at its own addresses. */
static void relocate(const struct elffile *f, const struct part *p)
{
	for (size_t i = 0; i < f->n_sections; i++) {
		const struct elffile_section *s = &f->sections[i];
		_cleanup_free_ uint8_t *relocations = NULL;
		size_t len;

		if (s->type != SHT_RELA || !(s->flags & SHF_ALLOC) || s->size > SECTION_MAX ||
			elffile_read(f, s, &relocations, &len, NULL) != 0)
			continue;
		for (size_t at = 0; at + sizeof(Elf64_Rela) <= len; at += sizeof(Elf64_Rela)) {
			Elf64_Rela r;
			uint64_t to;

			memcpy(&r, relocations + at, sizeof(r));
			to = r.r_offset - p->section->addr;
			if (ELF64_R_TYPE(r.r_info) == R_X86_64_RELATIVE && p->len >= 8 && to <= p->len - 8)
				memcpy(p->bytes + to, &r.r_addend, 8);
		}
	}
}

/* The section that ADDR lies in, up to its end; NULL if the file has no bytes there. */
static const uint8_t *bytes_at(struct image *m, uint64_t addr, size_t *left)
{
	struct part *p;

	for (size_t i = 0; i < m->n; i++) {
		p = &m->parts[i];
		if (addr - p->section->addr >= p->len)
			continue;
		*left = p->len - (addr - p->section->addr);
		return p->bytes + (addr - p->section->addr);
	}
	for (size_t i = 0; i < m->f->n_sections && m->n < PARTS; i++) {
		const struct elffile_section *s = &m->f->sections[i];

		if (s->type != SHT_PROGBITS || !(s->flags & SHF_ALLOC) || s->size > SECTION_MAX ||
			addr - s->addr >= s->size)
			continue;
		p = &m->parts[m->n];
		if (elffile_read(m->f, s, &p->bytes, &p->len, NULL) != 0)
			return NULL;
		p->section = s;
		m->n++;
		if (s->flags & SHF_WRITE)
			relocate(m->f, p);
		if (addr - s->addr >= p->len)
			return NULL;
		*left = p->len - (addr - s->addr);
		return p->bytes + (addr - s->addr);
	}
	return NULL;
}

static uint64_t word_at(struct image *m, uint64_t addr)
{
	size_t left;
	const uint8_t *p = bytes_at(m, addr, &left);
	uint64_t word = 0;

	if (p && left >= sizeof(word))
		memcpy(&word, p, sizeof(word));
	return word;
}

/* An int; 0 also if the variable is among those that begin as 0. */
static uint32_t int_at(struct image *m, uint64_t addr)
{
	size_t left;
	const uint8_t *p = bytes_at(m, addr, &left);

	return p && left >= 4 ? elfcode_le32(p) : 0;
}

static bool is_text(struct image *m, uint64_t addr, const char *text)
{
	size_t left, len = strlen(text) + 1;
	const uint8_t *p = bytes_at(m, addr, &left);

	return p && left >= len && memcmp(p, text, len) == 0;
}

struct variable {
	const char *type, *member;
	uint64_t address;
};

/* Find the variables, which end with one without names. */
static void find_variables(struct image *m, uint64_t table, struct variable *v)
{
	uint64_t entry = word_at(m, table), type;

	for (size_t i = 0; i < ENTRIES_MAX; i++, entry += STRUCT_BYTES) {
		type = word_at(m, entry + STRUCT_TYPE);
		if (!type)
			return;
		if (!int_at(m, entry + STRUCT_STATIC))
			continue;
		for (struct variable *k = v; k->type; k++)
			if (is_text(m, type, k->type) &&
				is_text(m, word_at(m, entry + STRUCT_MEMBER), k->member))
				k->address = word_at(m, entry + STRUCT_ADDRESS);
	}
}

static void find_sizes(struct image *m, uint64_t table, uint32_t *sizes)
{
	static const char *const names[HOTSPOT_SIZES] = {
		[HOTSPOT_CODE_HEAP] = "CodeHeap",
		[HOTSPOT_HEAP_BLOCK] = "HeapBlock",
		[HOTSPOT_CODE_BLOB] = "CodeBlob",
		[HOTSPOT_STUB_QUEUE] = "StubQueue",
		[HOTSPOT_NMETHOD] = "nmethod",
		[HOTSPOT_PC_DESC] = "PcDesc",
		[HOTSPOT_METHOD] = "Method",
		[HOTSPOT_CONST_METHOD] = "ConstMethod",
		[HOTSPOT_CONSTANT_POOL] = "ConstantPool",
		[HOTSPOT_INSTANCE_KLASS] = "InstanceKlass",
	};
	uint64_t entry = word_at(m, table), name;

	for (size_t i = 0; i < ENTRIES_MAX; i++, entry += TYPE_BYTES) {
		name = word_at(m, entry + TYPE_NAME);
		if (!name)
			return;
		for (size_t k = 0; k < HOTSPOT_SIZES; k++)
			if (is_text(m, name, names[k]))
				sizes[k] = int_at(m, entry + TYPE_SIZE);
	}
}

uint32_t hotspot_read(
	const struct elffile *f, uint64_t structs, uint64_t types, struct unwindtab_hotspot *ret)
{
	enum { HEAPS, CALL_RETURN, INTERPRETER, MAJOR, MINOR, SECURITY, ALL };
	struct variable v[ALL + 1] = { [HEAPS] = { "CodeCache", "_heaps", 0 },
		[CALL_RETURN] = { "StubRoutines", "_call_stub_return_address", 0 },
		[INTERPRETER] = { "AbstractInterpreter", "_code", 0 },
		[MAJOR] = { "Abstract_VM_Version", "_vm_major_version", 0 },
		[MINOR] = { "Abstract_VM_Version", "_vm_minor_version", 0 },
		[SECURITY] = { "Abstract_VM_Version", "_vm_security_version", 0 } };
	struct image m = { .f = f };
	uint32_t version = 0;

	if (f->machine == EM_X86_64) {
		find_variables(&m, structs, v);
		find_sizes(&m, types, ret->sizes);
		version = (int_at(&m, v[MAJOR].address) & 0xff) << 24 |
			  (int_at(&m, v[MINOR].address) & 0xff) << 16 |
			  (int_at(&m, v[SECURITY].address) & 0xff) << 8;
	}
	for (size_t i = 0; i < m.n; i++)
		free(m.parts[i].bytes);
	ret->heaps = v[HEAPS].address;
	ret->call_return = v[CALL_RETURN].address;
	ret->interpreter = v[INTERPRETER].address;
	return version;
}
