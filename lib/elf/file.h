/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * file - an ELF file that nobody vouches for: its loads, sections and
 * build ID.
 *
 * Format: System V ABI, chapters 4 and 5; <elf.h>. Only the headers are read
 * at open; the bytes of a section come with pread(2) into memory of the
 * caller, never through a mapping, so that a file which is truncated meanwhile
 * gives an error and no SIGBUS. Every size is checked against the file's
 * before anything is allocated. Little-endian files of both classes are read.
 */
#ifndef STACKTOOLS_ELF_FILE_H
#define STACKTOOLS_ELF_FILE_H

#include "base/err.h"
#include "capture/types.h"

/*
 * elfnote - the notes of an ELF file: the GNU build ID among them.
 * Source: the ELF specification (Nhdr) and NT_GNU_BUILD_ID of <elf.h>.
 */

#define ELFNOTE_BYTES_MAX (1u << 20) /* of a section or segment of notes that is worth reading */

/*
 * The first build ID in LEN bytes of notes, from anywhere, into *RET; false
 * when there is none, or one only behind a note that is cut. ALIGN is that of
 * the section or segment: each note and its descriptor begin at a multiple of
 * 8 bytes where it is 8, else of 4.
 */
bool elfnote_build_id(const void *notes, size_t len, uint64_t align, struct cap_build_id *ret);

/* A PT_LOAD. */
struct elffile_load {
	uint64_t offset, vaddr, filesz, memsz;
	bool exec;
};

struct elffile_section {
	uint32_t name; /* offset in the section `names` */
	uint32_t type, link, info; /* SHT_*, index of the linked section, sh_info */
	uint64_t flags, addr, offset, size, align, entsize;
};

struct elffile {
	int fd; /* -1 = bytes in memory */
	const uint8_t *image; /* for fd -1, the caller's */
	uint64_t size; /* of the whole file */
	uint64_t mtime_ns; /* CLOCK_REALTIME; 0 for bytes in memory */
	bool is64;
	uint16_t type, machine; /* ET_*, EM_* */
	struct elffile_load *loads;
	struct elffile_section *sections;
	size_t n_loads, n_sections;
	size_t names; /* the section with the sections' names; n_sections or more: there is none */
	uint64_t eh_frame_hdr, eh_frame_hdr_size; /* virtual address of PT_GNU_EH_FRAME; size 0: none */
	struct cap_build_id build_id; /* len 0 = it has none */
};

/*
 * Open PATH as seen from the directory DIRFD (AT_FDCWD, or -1 with an absolute
 * path). With IN_ROOT, DIRFD is the root: absolute paths and symbolic links,
 * ".." too, are resolved inside it and cannot leave it (openat2(2)).
 * -ENOENT and the like as open(2); -EINVAL for what is no regular file (a
 * FIFO, a device, a directory: not waited for, not read) or no ELF file, or
 * one whose headers point outside it. Release *RET with elffile_close().
 */
int elffile_open(int dirfd, const char *path, bool in_root, struct elffile **ret, struct err *e);

/*
 * The same of an open descriptor, which *RET owns from then on; on failure it stays the caller's.
 * Takes fstat(2) and pread(2) and nothing else of the kernel.
 */
int elffile_fd(int fd, struct elffile **ret, struct err *e);

/* The same over LEN bytes in memory, which must outlive *RET: the vdso. */
int elffile_image(const void *bytes, size_t len, struct elffile **ret, struct err *e);

void elffile_close(struct elffile *f); /* NULL is fine */

/*
 * The bytes of a section in fresh memory with one NUL behind them, free(3)
 * them. -EINVAL for one that lies outside the file or occupies none of it,
 * -EFBIG beyond 1 GiB, -EIO where the file became shorter meanwhile.
 */
int elffile_read(
	const struct elffile *f, const struct elffile_section *s, uint8_t **ret, size_t *len, struct err *e);

/* N bytes of the file at OFFSET into BUF, all of them or an error as above. */
int elffile_read_at(const struct elffile *f, uint64_t offset, void *buf, size_t n, struct err *e);

/*
 * Up to MAX bytes of the file that lie at VADDR, in fresh memory: fewer where
 * the load ends. -EINVAL where no load has that address in the file.
 */
int elffile_read_vaddr(
	const struct elffile *f, uint64_t vaddr, uint64_t max, uint8_t **ret, size_t *len, struct err *e);

/*
 * The virtual address (as the symbol table counts) of the byte at OFFSET of
 * the file. By PT_LOAD, executable ones first; false where no load holds it.
 */
bool elffile_vaddr(const struct elffile *f, uint64_t offset, uint64_t *vaddr);

#endif
