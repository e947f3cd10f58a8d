/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of elf/reloc.h. t/tools/symbolize-kmod.t compares the result with other programs.
 */
#include "base/bytes.h"
#include "base/tap.h"
#include "elf/reloc.h"
#include "../lib/kmod-made.h"

#include <errno.h>
#include <stdlib.h>

#define ROOM (1 << 20)

static int open_made(const struct kmod_image *m, size_t len, uint64_t max, struct elfrel *r, struct err *e)
{
	struct elffile *f = NULL;
	int rc = elffile_image(m, len, &f, e);

	*r = (struct elfrel){ 0 };
	rc = rc ? rc : elfrel_open(f, max, r, e);
	elffile_close(f);
	return rc;
}

static uint64_t word(const struct elfrel *r, size_t i)
{
	uint64_t v;

	memcpy(&v, r->bytes + r->elf->sections[KMOD_INFO].offset + 8 * i, sizeof(v));
	return v;
}

static void test_good(struct tap *t)
{
	struct kmod_image m;
	struct elfrel r;
	const struct elffile_section *s;
	Elf64_Sym y;

	kmod_fill(&m);
	m.info[1] = UINT64_MAX;
	if (!tap_ok(t, open_made(&m, sizeof(m), ROOM, &r, NULL) == 0, "a module is laid out"))
		return;
	s = r.elf->sections;
	tap_ok(t,
		s[KMOD_TEXT].addr && s[KMOD_EXIT].addr > s[KMOD_TEXT].addr + KMOD_TEXT_SIZE &&
			s[KMOD_TEXT].addr % 16 == 0 && s[KMOD_EXIT].addr % 16 == 0,
		"the module's sections are in order, aligned, and do not overlap or touch");
	tap_ok(t, !s[KMOD_INFO].addr && !s[KMOD_SYMTAB].addr, "a section that is not loaded has no address");
	tap_eq_u64(t, word(&r, 0), s[KMOD_TEXT].addr + 0x44,
		"a relocated address is the sum of section, symbol and addend");
	tap_eq_u64(t, word(&r, 1), UINT64_C(0xffffffff00000005),
		"a relocation of four bytes changes four bytes");
	tap_eq_u64(t, word(&r, 2), s[KMOD_EXIT].addr - 1, "the addend of a relocation may be negative");
	tap_eq_u64(t, word(&r, 3), 0, "a relocation for an undefined symbol gives 0");
	memcpy(&y, r.bytes + s[KMOD_SYMTAB].offset + KMOD_SECOND * sizeof(y), sizeof(y));
	tap_eq_u64(t, y.st_value, s[KMOD_TEXT].addr + 0x40, "a symbol has its address");
	memcpy(&y, r.bytes + s[KMOD_SYMTAB].offset + KMOD_EXTERN * sizeof(y), sizeof(y));
	tap_eq_u64(t, y.st_value, 0, "an undefined symbol has address 0");
	elfrel_close(&r);
}

/* Test that M is refused with CODE and a message that contains WORD_. */
static void refused(struct tap *t, const struct kmod_image *m, uint64_t max, int code, const char *word_,
	const char *name)
{
	struct err e = { 0 };
	struct elfrel r;
	int rc = open_made(m, sizeof(*m), max, &r, &e);

	if (!tap_ok(t, rc == code && strstr(e.msg, word_), "%s", name))
		tap_diag("%d: %s", rc, e.msg);
	elfrel_close(&r);
}

static void test_refused(struct tap *t)
{
	struct kmod_image m;

	kmod_fill(&m);
	m.rela[1].r_info = ELF64_R_INFO(KMOD_STR_SECTION, R_X86_64_PC32);
	refused(t, &m, ROOM, -EOPNOTSUPP, "type 2", "a relocation of another kind is refused");
	kmod_fill(&m);
	m.rela[1].r_offset = sizeof(m.info) - 3;
	refused(t, &m, ROOM, -EINVAL, "outside", "a relocation that ends outside its section is refused");
	m.rela[1].r_offset = UINT64_MAX - 1;
	refused(t, &m, ROOM, -EINVAL, "outside", "a relocation at the end of the address space is refused");
	kmod_fill(&m);
	m.rela[0].r_info = ELF64_R_INFO(KMOD_SYMBOLS, R_X86_64_64);
	refused(t, &m, ROOM, -EINVAL, "symbol 8", "a relocation with a missing symbol is refused");
	kmod_fill(&m);
	m.syms[KMOD_SECOND].st_shndx = KMOD_SECTIONS;
	refused(t, &m, ROOM, -EINVAL, "section 11",
		"a relocation with a symbol in a missing section is refused");
	kmod_fill(&m);
	m.rela[1].r_addend = -1;
	refused(t, &m, ROOM, -EINVAL, "fit", "a relocation whose value does not fit is refused");
	kmod_fill(&m);
	m.sh[KMOD_RELA].sh_entsize = 0;
	refused(t, &m, ROOM, -EINVAL, "malformed", "relocations with entry size 0 are refused");
	kmod_fill(&m);
	m.sh[KMOD_RELA].sh_link = KMOD_STR;
	refused(t, &m, ROOM, -EINVAL, "malformed",
		"relocations linked to another section than a symbol table are refused");
	kmod_fill(&m);
	m.sh[KMOD_RELA].sh_size = UINT64_MAX - 23;
	refused(t, &m, ROOM, -EINVAL, "outside", "relocations larger than the file are refused");
	kmod_fill(&m);
	m.sh[KMOD_RELA].sh_type = SHT_REL;
	refused(t, &m, ROOM, -EOPNOTSUPP, "addends", "relocations without addends are refused");
	kmod_fill(&m);
	m.sh[KMOD_TEXT].sh_addralign = 24;
	refused(t, &m, ROOM, -EINVAL, "alignment", "an alignment that is not a power of two is refused");
	m.sh[KMOD_TEXT].sh_addralign = UINT64_C(1) << 63;
	refused(t, &m, ROOM, -EINVAL, "alignment", "an alignment that is too large is refused");
	kmod_fill(&m);
	m.sh[KMOD_TEXT].sh_size = UINT64_MAX;
	refused(t, &m, ROOM, -EINVAL, "size", "a code section as large as the address space is refused");
	kmod_fill(&m);
	m.sh[KMOD_INFO].sh_size = UINT64_MAX;
	refused(t, &m, UINT64_MAX, -EINVAL, "outside", "debug information larger than the file is refused");
	kmod_fill(&m);
	refused(t, &m, 100, -E2BIG, "100 bytes", "a module larger than the limit is refused");
	m.eh.e_machine = EM_386;
	refused(t, &m, ROOM, -EOPNOTSUPP, "machine", "a module of another machine is refused");
}

/* Damaged modules: they may be accepted or refused, but must not crash the reader. */
static void test_hostile(struct tap *t)
{
	const size_t size = sizeof(struct kmod_image);
	struct kmod_image m;
	size_t cut = 0, flipped = 0;
	struct elfrel r;

	for (size_t len = 0; len < size; len++, cut++) {
		void *copy = malloc(len + 1);

		kmod_fill(&m);
		memcpy(copy, &m, len);
		open_made(copy, len, ROOM, &r, NULL);
		elfrel_close(&r);
		free(copy);
	}
	tap_eq_u64(t, cut, size, "a module cut anywhere does not crash the reader");
	for (size_t bit = 0; bit < 8 * size; bit++, flipped++) {
		kmod_fill(&m);
		((uint8_t *)&m)[bit / 8] ^= (uint8_t)(1 << bit % 8);
		open_made(&m, size, ROOM, &r, NULL);
		elfrel_close(&r);
	}
	tap_eq_u64(t, flipped, 8 * size, "a module with any bit changed does not crash the reader");
}

static void test_many_tables(struct tap *t)
{
	struct kmod_image m;
	struct elfrel r;

	kmod_fill(&m);
	m.sh[KMOD_NOTE] = m.sh[KMOD_RELA];
	m.rela[3] = (Elf64_Rela){ 24, ELF64_R_INFO(0, R_X86_64_64), 9 };
	tap_ok(t, open_made(&m, sizeof(m), ROOM, &r, NULL) == 0 && word(&r, 3) == 9,
		"a relocation with symbol 0 gives its addend, even if two tables have it");
	elfrel_close(&r);
}

int main(void)
{
	struct tap t = { 0 };

	test_good(&t);
	test_refused(&t);
	test_hostile(&t);
	test_many_tables(&t);
	return tap_done(&t);
}
