/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hand-made ELF files with one section each, for tests of section readers.
 */
#ifndef STACKTOOLS_T_ELF_SECTIONS_H
#define STACKTOOLS_T_ELF_SECTIONS_H

#include "base/bytes.h"

#include <elf.h>
#include <string.h>

/* A 64-bit little-endian file with a section NAME of LEN bytes and, if ID_LEN > 0, a build ID. */
static inline void elf_section(
	struct buf *b, const char *name, const void *bytes, size_t len, const void *id, uint32_t id_len)
{
	Elf64_Nhdr note = { .n_namesz = 4, .n_descsz = id_len, .n_type = NT_GNU_BUILD_ID };
	Elf64_Ehdr head = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_shoff = sizeof(head),
		.e_ehsize = sizeof(head),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 4,
		.e_shstrndx = 3 };
	Elf64_Shdr s[4] = { 0 };
	uint64_t at = sizeof(head) + sizeof(s);

	s[1].sh_type = SHT_PROGBITS;
	s[1].sh_name = 1;
	s[1].sh_offset = at;
	s[1].sh_size = len;
	at = (at + len + 7) & ~UINT64_C(7);
	s[2].sh_type = id_len ? SHT_NOTE : SHT_PROGBITS;
	s[2].sh_offset = at;
	s[2].sh_size = id_len ? sizeof(note) + 4 + id_len : 0;
	s[2].sh_addralign = 4;
	at += s[2].sh_size;
	s[3].sh_type = SHT_STRTAB;
	s[3].sh_offset = at;
	s[3].sh_size = strlen(name) + 2;
	buf_reset(b);
	buf_put(b, &head, sizeof(head));
	buf_put(b, s, sizeof(s));
	buf_put(b, bytes, len);
	while (b->len % 8)
		buf_fixed(b, 0, 1);
	if (id_len) {
		buf_put(b, &note, sizeof(note));
		buf_put(b, "GNU", 4);
		buf_put(b, id, id_len);
	}
	buf_fixed(b, 0, 1);
	buf_put(b, name, strlen(name) + 1);
}

#endif
