/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stackmap/loaded.h"

#include <elf.h>
#include <link.h>
#include <string.h>

struct query {
	uint64_t addr;
	struct loaded *ret;
	bool found;
};

/* The GNU build ID among the notes of LEN bytes at P. */
static void read_notes(const uint8_t *p, size_t len, struct loaded *ret)
{
	while (len >= sizeof(ElfW(Nhdr))) {
		ElfW(Nhdr) note;
		size_t name, desc, whole;

		memcpy(&note, p, sizeof(note));
		name = (note.n_namesz + 3UL) & ~3UL;
		desc = (note.n_descsz + 3UL) & ~3UL;
		whole = sizeof(note) + name + desc;
		if (whole > len)
			return;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
			memcmp(p + sizeof(note), "GNU", 4) == 0) {
			ret->build_id = p + sizeof(note) + name;
			ret->build_id_len = note.n_descsz;
			return;
		}
		p += whole;
		len -= whole;
	}
}

static int look_at(struct dl_phdr_info *info, size_t size, void *data)
{
	struct query *q = data;

	(void)size;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type != PT_LOAD || q->addr < start || q->addr >= start + ph->p_memsz)
			continue;
		*q->ret = (struct loaded){
			.path = info->dlpi_name,
			.vaddr = q->addr - info->dlpi_addr,
			.offset = q->addr - start + ph->p_offset,
		};
		q->found = true;
	}
	for (size_t i = 0; q->found && !q->ret->build_id && i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type == PT_NOTE)
			read_notes((const uint8_t *)at, ph->p_memsz, q->ret);
	}
	return q->found;
}

bool loaded_find(uint64_t addr, struct loaded *ret)
{
	struct query q = { .addr = addr, .ret = ret };

	dl_iterate_phdr(look_at, &q);
	return q.found;
}
