/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * file - an untrusted ELF file: its loads, sections and build ID.
 *
 * Format: System V ABI, chapters 4 and 5; <elf.h>. Opening a file reads only
 * its headers. The bytes of a section are read with pread(2) into the caller's
 * memory, never through a mapping, so that a file that is truncated meanwhile
 * causes an error instead of SIGBUS. Every size is checked against the size of
 * the file before memory is allocated. Reads little-endian files of both
 * classes.
 */
#ifndef STACKTOOLS_ELF_FILE_H
#define STACKTOOLS_ELF_FILE_H

#include "base/err.h"
#include "capture/types.h"

/*
 * elfnote - the notes of an ELF file, among them the GNU build ID.
 *
 * Sources: the ELF specification (Nhdr) and NT_GNU_BUILD_ID of <elf.h>.
 */

#define ELFNOTE_BYTES_MAX (1u << 20) /* larger sections and segments of notes are not read */

/*
 * Store the first build ID in LEN bytes of notes, at any position, in *RET.
 * Returns false if there is none before the end or before a truncated note.
 * ALIGN is the alignment of the section or segment: each note and its
 * descriptor begin at a multiple of 8 bytes if it is 8, else of 4.
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
	const uint8_t *image; /* if fd is -1; owned by the caller */
	uint64_t size; /* of the whole file */
	uint64_t mtime_ns; /* CLOCK_REALTIME; 0 for bytes in memory */
	bool is64;
	uint16_t type, machine; /* ET_*, EM_* */
	struct elffile_load *loads;
	struct elffile_section *sections;
	size_t n_loads, n_sections;
	size_t names; /* index of the section name string table; >= n_sections: none */
	/* virtual address and size of PT_GNU_EH_FRAME; size 0: none */
	uint64_t eh_frame_hdr, eh_frame_hdr_size;
	struct cap_build_id build_id; /* len 0 = none */
};

/*
 * Open PATH relative to the directory DIRFD (AT_FDCWD, or -1 with an absolute
 * path). With IN_ROOT, DIRFD is the root: absolute paths, symbolic links and
 * ".." are resolved inside it and cannot leave it (openat2(2)).
 *
 * Errors: -ENOENT etc. as open(2). -EINVAL if it is not a regular file (a FIFO,
 * device or directory is neither read nor waited for), if it is not an ELF
 * file, or if its headers point outside the file. Release *RET with
 * elffile_close().
 */
int elffile_open(int dirfd, const char *path, bool in_root, struct elffile **ret, struct err *e);

/*
 * The same for an open descriptor. On success *RET owns FD, on failure the
 * caller still does. Besides allocating memory, it only calls fstat(2) and
 * pread(2).
 */
int elffile_fd(int fd, struct elffile **ret, struct err *e);

/* The same for LEN bytes in memory, which must outlive *RET. Used for the vdso. */
int elffile_image(const void *bytes, size_t len, struct elffile **ret, struct err *e);

void elffile_close(struct elffile *f); /* NULL is fine */

/*
 * Read a section into new memory, followed by one NUL byte. Release it with
 * free(3). -EINVAL if the section lies outside the file, occupies no space in
 * it or is compressed, -EFBIG above 1 GiB, -EIO if the file became shorter
 * meanwhile.
 */
int elffile_read(
	const struct elffile *f, const struct elffile_section *s, uint8_t **ret, size_t *len, struct err *e);

/* Read exactly N bytes at OFFSET of the file into BUF, or fail as above. */
int elffile_read_at(const struct elffile *f, uint64_t offset, void *buf, size_t n, struct err *e);

/*
 * Read up to MAX bytes at address VADDR into new memory; fewer if the load ends
 * before that. -EINVAL if no load has this address in the file.
 */
int elffile_read_vaddr(
	const struct elffile *f, uint64_t vaddr, uint64_t max, uint8_t **ret, size_t *len, struct err *e);

/*
 * Convert OFFSET in the file to the virtual address that symbol tables use.
 * Searches the PT_LOADs, executable ones first. Returns false if none contains
 * the offset.
 */
bool elffile_vaddr(const struct elffile *f, uint64_t offset, uint64_t *vaddr);

#endif
