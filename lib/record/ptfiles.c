/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ptfiles.h"
#include "hash.h"
#include "mapfile.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#define FILE_BYTES_MAX (UINT64_C(256) << 20) /* of one that is made of its mappings */
#define CHUNK (64u << 10)

/* --- a file made of what is mapped of it --- */

struct remake {
	uint32_t pid;
	const struct procmap *like;
	int fd;
	bool any;
};

static void copy_mapping(struct remake *r, const struct procmap *m)
{
	_cleanup_free_ uint8_t *bytes = malloc(CHUNK);
	uint64_t len = m->end - m->start;

	if (!bytes || m->offset > FILE_BYTES_MAX || len > FILE_BYTES_MAX - m->offset)
		return;
	for (uint64_t done = 0; done < len; done += CHUNK) {
		size_t take = (size_t)MIN(len - done, CHUNK);
		struct iovec here = { bytes, take }, there = { (void *)(uintptr_t)(m->start + done), take };
		ssize_t n = process_vm_readv((pid_t)r->pid, &here, 1, &there, 1, 0);

		if (n <= 0 || pwrite(r->fd, bytes, (size_t)n, (off_t)(m->offset + done)) != n)
			return;
		r->any |= !m->offset && !done;
	}
}

/* Those that may be written are not what the file says. */
static int take_mapping(void *ctx, const struct procmap *m)
{
	struct remake *r = ctx;

	if (m->inode == r->like->inode && m->dev_major == r->like->dev_major &&
		m->dev_minor == r->like->dev_minor && (m->prot & PROT_READ) && !(m->prot & PROT_WRITE))
		copy_mapping(r, m);
	return 0;
}

/* Sections are mapped nowhere: what the header says of them leads to nothing. */
static bool forget_sections(int fd)
{
	Elf64_Ehdr h;

	if (pread(fd, &h, sizeof(h), 0) != sizeof(h) || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0)
		return false;
	h.e_shoff = 0;
	h.e_shnum = h.e_shstrndx = 0;
	return pwrite(fd, &h, sizeof(h), 0) == sizeof(h);
}

static int remake(uint32_t pid, const struct procmap *m)
{
	_cleanup_close_ int fd = memfd_create("remade", MFD_CLOEXEC);
	struct remake r = { .pid = pid, .like = m, .fd = fd };

	if (fd < 0)
		return -errno;
	if (procmaps_each(pid, take_mapping, &r, NULL) != 0 || !r.any || !forget_sections(fd))
		return -ENOENT;
	return TAKE_FD(fd);
}

static int vdso_file(void)
{
	size_t len;
	const uint8_t *image = mapfile_vdso(&len);
	_cleanup_close_ int fd = image ? memfd_create("vdso", MFD_CLOEXEC) : -1;

	if (fd < 0 || pwrite(fd, image, len, 0) != (ssize_t)len)
		return -1;
	return TAKE_FD(fd);
}

static int file_of(uint32_t pid, const struct procmap *m)
{
	struct stat st;
	int fd;

	if (strcmp(m->path, "[vdso]") == 0)
		return vdso_file();
	if (!m->inode)
		return -1;
	fd = mapfile_open(pid, m, &st);
	return fd >= 0 || fd == -EMEDIUMTYPE ? fd : remake(pid, m);
}

/* --- the list --- */

struct look {
	struct ptfiles *f;
	uint64_t hash;
};

static int hash_one(void *ctx, const struct procmap *m)
{
	struct look *l = ctx;
	const uint64_t words[] = { m->start, m->end, m->offset, m->inode,
		(uint64_t)m->dev_major << 32 | m->dev_minor };

	if (m->prot & PROT_EXEC)
		l->hash = hash_bytes(words, sizeof(words), l->hash);
	return 0;
}

struct fill {
	struct ptfiles *f;
	uint32_t pid;
	size_t files;
};

static int take_one(void *ctx, const struct procmap *m)
{
	struct fill *fill = ctx;
	struct ptfiles *f = fill->f;
	int fd = -1;

	if (!(m->prot & PROT_EXEC))
		return 0;
	if (f->n >= PTFILES_MAX || base_grow(&f->maps, &f->cap, f->n + 1, sizeof(*f->maps)) != 0) {
		f->cut++;
		return 0;
	}
	if (fill->files < PTFILES_FDS)
		fd = file_of(fill->pid, m);
	else
		f->cut++;
	fill->files += fd >= 0;
	f->maps[f->n++] = (struct ptfiles_map){ .start = m->start,
		.end = m->end,
		.offset = strcmp(m->path, "[vdso]") == 0 ? 0 : m->offset,
		.fd = fd >= 0 ? fd : -1 };
	return 0;
}

int ptfiles_look(struct ptfiles *f, uint32_t pid, bool *changed, struct err *e)
{
	struct look look = { .f = f, .hash = HASH_K0 };
	struct fill fill = { .f = f, .pid = pid };
	int rc = procmaps_each(pid, hash_one, &look, e);

	*changed = !rc && look.hash != f->seen;
	if (rc || !*changed)
		return rc;
	ptfiles_close_files(f);
	f->n = 0;
	f->seen = look.hash;
	return procmaps_each(pid, take_one, &fill, e);
}

void ptfiles_close_files(struct ptfiles *f)
{
	for (size_t i = 0; i < f->n; i++) {
		if (f->maps[i].fd >= 0)
			close(f->maps[i].fd);
		f->maps[i].fd = -1;
	}
}

void ptfiles_reset(struct ptfiles *f)
{
	ptfiles_close_files(f);
	free(f->maps);
	*f = (struct ptfiles){ 0 };
}

bool ptfiles_covers(const struct ptfiles *f, uint64_t addr)
{
	for (size_t i = 0; i < f->n && f->maps[i].start <= addr; i++)
		if (addr < f->maps[i].end)
			return true;
	return false;
}
