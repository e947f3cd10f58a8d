/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ELF files in memory around call frame information that a test writes entry
 * by entry: 64 KiB and more of text at TEXT, the frame section at FRAME.
 */
#ifndef STACKTOOLS_T_CFI_IMAGE_H
#define STACKTOOLS_T_CFI_IMAGE_H

#include "base/bytes.h"

#include <elf.h>
#include <string.h>

#define TEXT UINT64_C(0x400000)
#define TEXT_BYTES UINT64_C(0x200000)
#define FRAME (TEXT + TEXT_BYTES) /* so near that pcrel addresses of a real section lead into the text */

struct image_opts {
	bool debug; /* .debug_frame, else .eh_frame */
	bool no_sections; /* only program headers, PT_GNU_EH_FRAME among them */
	uint64_t flags; /* of the section */
	uint16_t machine, type; /* 0 = EM_X86_64, ET_EXEC */
	const char *name; /* NULL = by `debug` */
	const struct buf *second; /* a .debug_frame beside it */
	bool narrow; /* an i386 file, with one section: only debug and machine are heeded */
};

static inline void image_pad(struct buf *b, size_t to)
{
	while (b->len % to)
		buf_fixed(b, 0, 1);
}

static inline void image_section(struct buf *b, uint32_t name, uint32_t type, uint64_t flags, uint64_t addr,
	uint64_t offset, uint64_t size)
{
	Elf64_Shdr s = { .sh_name = name,
		.sh_type = type,
		.sh_flags = flags,
		.sh_addr = addr,
		.sh_offset = offset,
		.sh_size = size };

	buf_put(b, &s, sizeof(s));
}

static inline void image_load(
	struct buf *b, uint32_t flags, uint64_t offset, uint64_t addr, uint64_t filesz, uint64_t memsz)
{
	Elf64_Phdr p = { .p_type = PT_LOAD,
		.p_flags = flags,
		.p_offset = offset,
		.p_vaddr = addr,
		.p_filesz = filesz,
		.p_memsz = memsz };

	buf_put(b, &p, sizeof(p));
}

/* The same of i386: ELFCLASS32. */
static inline void image_make_narrow(struct buf *ret, const void *frame, size_t n, const struct image_opts *o)
{
	enum { HDR = 52 + 2 * 32 };
	const uint32_t names_at = (uint32_t)(HDR + n);
	const char names[16] = "\0.debug_frame";
	Elf32_Ehdr h = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS32, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = o->machine ? o->machine : EM_386,
		.e_phoff = 52,
		.e_phentsize = 32,
		.e_phnum = 2,
		.e_shoff = names_at + sizeof(names),
		.e_shentsize = 40,
		.e_shnum = 3,
		.e_shstrndx = 2 };
	const Elf32_Phdr loads[2] = {
		{ .p_type = PT_LOAD,
			.p_flags = PF_R | PF_X,
			.p_offset = 0x1000,
			.p_vaddr = TEXT,
			.p_memsz = TEXT_BYTES },
		{ .p_type = PT_LOAD,
			.p_flags = PF_R,
			.p_offset = HDR,
			.p_vaddr = FRAME,
			.p_filesz = (uint32_t)n,
			.p_memsz = (uint32_t)n },
	};
	const Elf32_Shdr sections[3] = { { 0 },
		{ .sh_name = 1,
			.sh_type = SHT_PROGBITS,
			.sh_addr = o->debug ? 0 : FRAME,
			.sh_offset = HDR,
			.sh_size = (uint32_t)n },
		{ .sh_name = 1, .sh_type = SHT_STRTAB, .sh_offset = names_at, .sh_size = sizeof(names) } };
	char name[sizeof(names)];

	memcpy(name, names, sizeof(names));
	if (!o->debug)
		memcpy(name + 1, ".eh_frame", 10);
	buf_put(ret, &h, sizeof(h));
	buf_put(ret, loads, sizeof(loads));
	buf_put(ret, frame, n);
	buf_put(ret, name, sizeof(name));
	buf_put(ret, sections, sizeof(sections));
}

/* An ELF file in *RET (empty at first) with the N bytes at FRAME as its frame section. */
static inline void image_make(struct buf *ret, const void *frame, size_t n, const struct image_opts *o)
{
	enum { HDR = 64 + 3 * 56 };
	const uint64_t at = HDR + 16;
	const struct buf nothing = { 0 }, *second = o->second ? o->second : &nothing;
	uint64_t second_at = (at + n + 7) & ~UINT64_C(7), names_at = second_at + second->len;
	char names[64] = "";
	const char *name = o->name ? o->name : o->debug ? ".debug_frame" : ".eh_frame";
	uint32_t name_len = (uint32_t)strlen(name);
	Elf64_Ehdr h = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = o->type ? o->type : ET_EXEC,
		.e_machine = o->machine ? o->machine : EM_X86_64,
		.e_phoff = 64,
		.e_phentsize = 56,
		.e_phnum = 3,
		.e_shentsize = 64 };
	Elf64_Phdr eh = {
		.p_type = o->no_sections ? PT_GNU_EH_FRAME : PT_NULL, .p_vaddr = FRAME - 16, .p_filesz = 12
	};

	if (o->narrow) {
		image_make_narrow(ret, frame, n, o);
		return;
	}
	if (!o->no_sections) {
		h.e_shoff = (names_at + sizeof(names) + 7) & ~UINT64_C(7);
		h.e_shnum = 4;
		h.e_shstrndx = 3;
	}
	memcpy(names + 1, name, name_len);
	memcpy(names + 1 + name_len + 1, ".debug_frame", 13);
	buf_put(ret, &h, sizeof(h));
	image_load(ret, PF_R | PF_X, 0x1000, TEXT, 0, TEXT_BYTES);
	image_load(ret, PF_R, HDR, FRAME - 16, n + 16, n + 16);
	buf_put(ret, &eh, sizeof(eh));
	/* .eh_frame_hdr: version 1, udata8, nothing more, and the address */
	buf_put(ret, "\1\4\377\377", 4);
	buf_fixed(ret, FRAME, 8);
	buf_fixed(ret, 0, 4);
	buf_put(ret, frame, n);
	image_pad(ret, 8);
	buf_put(ret, second->p, second->len);
	if (o->no_sections)
		return;
	buf_put(ret, names, sizeof(names));
	image_pad(ret, 8);
	image_section(ret, 0, SHT_NULL, 0, 0, 0, 0);
	image_section(ret, 1, SHT_PROGBITS, o->flags, o->debug ? 0 : FRAME, at, n);
	image_section(
		ret, 1 + name_len + 1, second->len ? SHT_PROGBITS : SHT_NULL, 0, 0, second_at, second->len);
	image_section(ret, 1, SHT_STRTAB, 0, 0, names_at, sizeof(names));
}

/* Patch the 32-bit length of the entry that began at AT, padded with DW_CFA_nop. */
static inline void image_end_entry(struct buf *b, size_t at)
{
	uint32_t len;

	image_pad(b, 8);
	len = (uint32_t)(b->len - at - 4);
	memcpy(b->p + at, &len, sizeof(len));
}

/*
 * A CIE of version 1 with augmentation "zR" and addresses of 8 bytes: code by
 * 1, data by -8, CFA rsp+8, return address at c-8. Returns where it is.
 */
static inline size_t image_cie(struct buf *b, bool debug)
{
	size_t at = b->len;

	buf_fixed(b, 0, 4);
	buf_fixed(b, debug ? 0xffffffff : 0, 4);
	buf_put(b, "\1zR\0\1\x78\20\1\4", 9);
	buf_put(b, "\x0c\7\10\x90\1", 5); /* def_cfa rsp, 8; offset rip, 1 */
	image_end_entry(b, at);
	return at;
}

/* An FDE of the CIE at CIE for LEN bytes at PC. */
static inline size_t image_fde(
	struct buf *b, size_t cie, uint64_t pc, uint64_t len, const void *insns, size_t n, bool debug)
{
	size_t at = b->len;

	buf_fixed(b, 0, 4);
	buf_fixed(b, debug ? cie : b->len - cie, 4);
	buf_fixed(b, pc, 8);
	buf_fixed(b, len, 8);
	buf_fixed(b, 0, 1); /* augmentation data */
	buf_put(b, insns, n);
	image_end_entry(b, at);
	return at;
}

#endif
