/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A hand-made relocatable ELF file that stands for a kernel module: two
 * sections of code, a .modinfo, and a .debug_info of eight words that
 * relocations fill.
 */
#ifndef STACKTOOLS_T_KMOD_MADE_H
#define STACKTOOLS_T_KMOD_MADE_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define KMOD_RELEASE "1.2.3-made"
#define KMOD_TEXT_SIZE 0x100

enum {
	KMOD_NULL,
	KMOD_TEXT,
	KMOD_EXIT,
	KMOD_MODINFO,
	KMOD_NOTE,
	KMOD_INFO,
	KMOD_RELA,
	KMOD_STR,
	KMOD_SYMTAB,
	KMOD_STRTAB,
	KMOD_SHSTRTAB,
	KMOD_SECTIONS
};

/* In .text: first at 0, twin at 0x20, second at 0x40, twin again at 0x60. In .exit.text: leave at 0. */
enum {
	KMOD_FIRST = 1,
	KMOD_TWIN,
	KMOD_SECOND,
	KMOD_TWIN2,
	KMOD_LEAVE,
	KMOD_EXTERN,
	KMOD_STR_SECTION,
	KMOD_SYMBOLS
};

struct kmod_image {
	Elf64_Ehdr eh;
	Elf64_Shdr sh[KMOD_SECTIONS];
	struct {
		Elf64_Nhdr head;
		char owner[4];
		uint8_t id[20];
	} note;
	char modinfo[64];
	uint64_t info[8];
	Elf64_Rela rela[4];
	char str[16];
	Elf64_Sym syms[KMOD_SYMBOLS];
	char strings[64], names[96];
};

static inline void kmod_section(
	struct kmod_image *m, int i, uint32_t type, uint64_t flags, size_t at, size_t size)
{
	m->sh[i].sh_type = type;
	m->sh[i].sh_flags = flags;
	m->sh[i].sh_offset = at;
	m->sh[i].sh_size = size;
	m->sh[i].sh_addralign = 16;
}

#define KMOD_PART(m, i, type, flags, part)                                                                   \
	kmod_section((m), (i), (type), (flags), offsetof(struct kmod_image, part), sizeof((m)->part))

static inline void kmod_symbol(struct kmod_image *m, int i, uint32_t name, uint16_t section, uint64_t value)
{
	m->syms[i] = (Elf64_Sym){ .st_name = name,
		.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
		.st_shndx = section,
		.st_value = value,
		.st_size = 0x18 };
}

static inline void kmod_fill(struct kmod_image *m)
{
	static const char names[] =
		"\0.text\0.exit.text\0.modinfo\0.note.gnu.build-id\0.debug_info\0.rela.debug_info\0"
		".debug_str\0.symtab";
	static const char strings[] = "\0first\0twin\0second\0leave\0elsewhere";

	memset(m, 0, sizeof(*m));
	memcpy(m->eh.e_ident, "\177ELF\2\1\1", 7);
	m->eh.e_type = ET_REL;
	m->eh.e_machine = EM_X86_64;
	m->eh.e_shoff = offsetof(struct kmod_image, sh);
	m->eh.e_shentsize = sizeof(Elf64_Shdr);
	m->eh.e_shnum = KMOD_SECTIONS;
	m->eh.e_shstrndx = KMOD_SHSTRTAB;
	kmod_section(m, KMOD_TEXT, SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, 0, KMOD_TEXT_SIZE);
	kmod_section(m, KMOD_EXIT, SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, 0, 0x20);
	KMOD_PART(m, KMOD_MODINFO, SHT_PROGBITS, SHF_ALLOC, modinfo);
	KMOD_PART(m, KMOD_NOTE, SHT_NOTE, SHF_ALLOC, note);
	m->sh[KMOD_NOTE].sh_addralign = 4;
	KMOD_PART(m, KMOD_INFO, SHT_PROGBITS, 0, info);
	KMOD_PART(m, KMOD_RELA, SHT_RELA, SHF_INFO_LINK, rela);
	m->sh[KMOD_RELA].sh_info = KMOD_INFO;
	m->sh[KMOD_RELA].sh_link = KMOD_SYMTAB;
	m->sh[KMOD_RELA].sh_entsize = sizeof(Elf64_Rela);
	KMOD_PART(m, KMOD_STR, SHT_PROGBITS, 0, str);
	KMOD_PART(m, KMOD_SYMTAB, SHT_SYMTAB, 0, syms);
	m->sh[KMOD_SYMTAB].sh_link = KMOD_STRTAB;
	m->sh[KMOD_SYMTAB].sh_entsize = sizeof(Elf64_Sym);
	KMOD_PART(m, KMOD_STRTAB, SHT_STRTAB, 0, strings);
	KMOD_PART(m, KMOD_SHSTRTAB, SHT_STRTAB, 0, names);
	memcpy(m->names, names, sizeof(names));
	memcpy(m->strings, strings, sizeof(strings));
	m->sh[KMOD_TEXT].sh_name = 1;
	m->sh[KMOD_EXIT].sh_name = 7;
	m->sh[KMOD_MODINFO].sh_name = 18;
	m->sh[KMOD_NOTE].sh_name = 27;
	m->sh[KMOD_INFO].sh_name = 46;
	m->sh[KMOD_RELA].sh_name = 58;
	m->sh[KMOD_STR].sh_name = 75;
	m->sh[KMOD_SYMTAB].sh_name = 86;
	kmod_symbol(m, KMOD_FIRST, 1, KMOD_TEXT, 0);
	kmod_symbol(m, KMOD_TWIN, 7, KMOD_TEXT, 0x20);
	kmod_symbol(m, KMOD_SECOND, 12, KMOD_TEXT, 0x40);
	kmod_symbol(m, KMOD_TWIN2, 7, KMOD_TEXT, 0x60);
	kmod_symbol(m, KMOD_LEAVE, 19, KMOD_EXIT, 0);
	kmod_symbol(m, KMOD_EXTERN, 25, SHN_UNDEF, 0);
	kmod_symbol(m, KMOD_STR_SECTION, 0, KMOD_STR, 0);
	memcpy(m->modinfo, "license=GPL\0vermagic=" KMOD_RELEASE " SMP mod_unload \0name=made",
		sizeof("license=GPL\0vermagic=" KMOD_RELEASE " SMP mod_unload \0name=made"));
	m->note.head = (Elf64_Nhdr){ 4, sizeof(m->note.id), NT_GNU_BUILD_ID };
	memcpy(m->note.owner, "GNU", 4);
	memset(m->note.id, 7, sizeof(m->note.id));
	m->rela[0] = (Elf64_Rela){ 0, ELF64_R_INFO(KMOD_SECOND, R_X86_64_64), 4 };
	m->rela[1] = (Elf64_Rela){ 8, ELF64_R_INFO(KMOD_STR_SECTION, R_X86_64_32), 5 };
	m->rela[2] = (Elf64_Rela){ 16, ELF64_R_INFO(KMOD_LEAVE, R_X86_64_64), -1 };
	m->rela[3] = (Elf64_Rela){ 24, ELF64_R_INFO(KMOD_EXTERN, R_X86_64_64), 0 };
}

#endif
