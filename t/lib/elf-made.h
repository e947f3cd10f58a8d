/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hand-made ELF libraries whose unwind information has a given number of rows:
 * one for each byte of their text, which begins at offset 4096.
 */
#ifndef STACKTOOLS_T_ELF_MADE_H
#define STACKTOOLS_T_ELF_MADE_H

#include "base/bytes.h"
#include "system/maps.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define ELF_TEXT 4096 /* file offset and address of the text */

static inline void elf_entry(struct buf *b, size_t at)
{
	uint32_t len;

	while ((b->len - at) % 8)
		buf_fixed(b, 0, 1);
	len = (uint32_t)(b->len - at - 4);
	memcpy(b->p + at, &len, 4);
}

/* .eh_frame: a CIE (CFA = RSP + 8), and an FDE whose CFA alternates. */
static inline void elf_frames(struct buf *b, uint32_t rows)
{
	static const uint8_t cie[] = { 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0, 0x0c, 7, 8, 0x90, 1 };
	size_t first = b->len, at;

	buf_fixed(b, 0, 8);
	buf_put(b, cie, sizeof(cie));
	elf_entry(b, first);
	at = b->len;
	buf_fixed(b, 0, 4);
	buf_fixed(b, at + 4 - first, 4);
	buf_fixed(b, ELF_TEXT, 8);
	buf_fixed(b, rows, 8);
	buf_fixed(b, 0, 1);
	for (uint32_t i = 1; i < rows; i++) {
		buf_fixed(b, 0x41, 1);
		buf_fixed(b, 0x0e, 1);
		buf_fixed(b, i & 1 ? 16 : 8, 1);
	}
	elf_entry(b, at);
	buf_fixed(b, 0, 4);
}

/* Write a library of ROWS rows to PATH; 0 = without unwind information. */
static inline bool elf_write(const char *path, uint32_t rows)
{
	static const char names[] = "\0.text\0.eh_frame\0.shstrtab";
	uint64_t text = (rows / 4096 + 1) * 4096, frames = ELF_TEXT + text;
	struct buf b = { 0 };
	Elf64_Ehdr head = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(head),
		.e_shoff = 512,
		.e_ehsize = sizeof(head),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 4,
		.e_shstrndx = 3 };
	Elf64_Phdr load = { .p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_filesz = frames,
		.p_memsz = frames,
		.p_align = 4096 };
	Elf64_Shdr sections[4] = { { 0 },
		{ .sh_name = 1,
			.sh_type = SHT_PROGBITS,
			.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
			.sh_addr = ELF_TEXT,
			.sh_offset = ELF_TEXT,
			.sh_size = text },
		{ .sh_name = 7,
			.sh_type = SHT_PROGBITS,
			.sh_flags = SHF_ALLOC,
			.sh_addr = frames,
			.sh_offset = frames },
		{ .sh_name = 17, .sh_type = SHT_STRTAB, .sh_offset = 1024, .sh_size = sizeof(names) } };
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	bool good = fd >= 0;

	if (rows)
		elf_frames(&b, rows);
	sections[2].sh_size = b.len;
	good = good && pwrite(fd, &head, sizeof(head), 0) == sizeof(head) &&
	       pwrite(fd, &load, sizeof(load), sizeof(head)) == sizeof(load) &&
	       pwrite(fd, sections, sizeof(sections), 512) == sizeof(sections) &&
	       pwrite(fd, names, sizeof(names), 1024) == sizeof(names) && ftruncate(fd, (off_t)frames) == 0 &&
	       pwrite(fd, b.p, b.len, (off_t)frames) == (ssize_t)b.len;
	if (fd >= 0)
		close(fd);
	buf_free(&b);
	return good;
}

/* The mapping of this process at START. Its path stays valid. */
struct elf_found {
	uint64_t start;
	struct procmap m;
	bool there;
};

static inline int elf_is_it(void *ctx, const struct procmap *m)
{
	static char paths[256][128];
	static unsigned int n;
	struct elf_found *f = ctx;

	if (m->start != f->start)
		return 0;
	f->m = *m;
	f->m.path = paths[n % 256];
	snprintf(paths[n++ % 256], sizeof(paths[0]), "%s", m->path);
	f->there = true;
	return 1;
}

/* Map one page of PATH's text, executable, at AT (may be NULL). *RET is the mapping as /proc shows it. */
static inline bool elf_map(const char *path, void *at, struct procmap *ret)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elf_found f = { 0 };
	void *p = fd < 0 ? MAP_FAILED
			 : mmap(at, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | (at ? MAP_FIXED : 0), fd,
				   ELF_TEXT);

	f.start = (uint64_t)p;
	if (p == MAP_FAILED || procmaps_each((uint32_t)getpid(), elf_is_it, &f, NULL) < 0 || !f.there)
		return false;
	*ret = f.m;
	return true;
}

#endif
