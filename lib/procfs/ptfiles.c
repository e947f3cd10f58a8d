/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/ptfiles.h"
#include "base/hash.h"
#include "procfs/procreach.h"
#include "record/files.h"
#include "system/broker.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#define FILE_BYTES_MAX (UINT64_C(256) << 20) /* of one that is made of its mappings */
#define CHUNK (64u << 10)
#define MAPS_MAX (64u << 20)

/* --- a file made of what is mapped of it --- */

struct remake {
	const struct ptreach *reach;
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
		ssize_t n = ptreach_memory(r->reach, (pid_t)r->pid, m->start + done, bytes, take);

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

static int remake(const struct ptreach *reach, uint32_t pid, const struct procmap *m)
{
	_cleanup_close_ int fd = memfd_create("remade", MFD_CLOEXEC);
	struct remake r = { .reach = reach, .pid = pid, .like = m, .fd = fd };

	if (fd < 0)
		return -errno;
	if (procaccess_maps(reach->opener, pid, take_mapping, &r, NULL) != 0 || !r.any ||
		!forget_sections(fd))
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

static int file_of(const struct ptreach *r, uint32_t pid, const struct procmap *m)
{
	struct stat st;
	int fd;

	if (strcmp(m->path, "[vdso]") == 0)
		return vdso_file();
	if (!m->inode)
		return -1;
	fd = mapfile_open(r->opener, pid, m, &st);
	return fd >= 0 || fd == -EMEDIUMTYPE ? fd : remake(r, pid, m);
}

/* --- the list --- */

static int hash_one(void *ctx, const struct procmap *m)
{
	uint64_t *hash = ctx;
	const uint64_t words[] = { m->start, m->end, m->offset, m->inode,
		(uint64_t)m->dev_major << 32 | m->dev_minor };

	if (m->prot & PROT_EXEC)
		*hash = hash_bytes(words, sizeof(words), *hash);
	return 0;
}

int ptfiles_look(struct ptfiles *f, const struct ptreach *r, uint32_t pid, bool *changed, struct err *e)
{
	uint64_t hash = HASH_K0, text_hash;
	_cleanup_free_ char *text = NULL;
	_cleanup_close_ int fd = procaccess_open(r->opener, OPENWIRE_MAPS, pid);
	size_t len;
	int rc = fd < 0 ? fd : base_read(fd, MAPS_MAX, &text, &len);

	if (rc)
		return err_sys(e, rc == -ENOENT ? -ESRCH : rc, "cannot read '/proc/%u/maps'", pid);
	text_hash = hash_bytes(text, len, HASH_K1);
	*changed = false;
	if (f->seen && text_hash == f->text)
		return 0;
	f->text = text_hash;
	for (char *save, *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		struct procmap m;

		if (procmaps_parse(line, &m))
			hash_one(&hash, &m);
	}
	*changed = hash != f->seen;
	return 0;
}

struct tell {
	struct ptfiles *f;
	const struct ptreach *reach;
	uint32_t pid;
	size_t maps, files;
	uint64_t hash;
	int (*fn)(void *ctx, const struct ptfiles_map *m, int fd, struct err *e);
	void *ctx;
	struct err *e;
};

static int tell_one(void *ctx, const struct procmap *m)
{
	struct tell *t = ctx;
	bool vdso = strcmp(m->path, "[vdso]") == 0;
	struct ptfiles_map map = { .start = m->start, .end = m->end, .offset = vdso ? 0 : m->offset };
	_cleanup_close_ int fd = -1;

	hash_one(&t->hash, m);
	if (!(m->prot & PROT_EXEC))
		return 0;
	if (t->maps++ >= PTFILES_MAPS) {
		t->f->cut++;
		return 0;
	}
	if (vdso || m->inode) {
		if (t->files++ < PTFILES_FILES)
			fd = file_of(t->reach, t->pid, m);
		else
			t->f->cut++;
		t->f->unread += fd < 0 && t->files <= PTFILES_FILES;
	}
	return t->fn(t->ctx, &map, fd, t->e);
}

static bool is_32_bit(const struct ptreach *r, uint32_t pid)
{
	char ident[PROCFILE_EXE_BYTES];

	return procreach_text(r->looker, pid, pid, PROCFILE_EXE, ident, sizeof(ident)) == sizeof(ident) &&
	       memcmp(ident, ELFMAG, SELFMAG) == 0 && ident[EI_CLASS] == ELFCLASS32;
}

int ptfiles_tell(struct ptfiles *f, const struct ptreach *r, uint32_t pid,
	int (*fn)(void *ctx, const struct ptfiles_map *m, int fd, struct err *e), void *ctx, struct err *e)
{
	struct tell tell = { .f = f, .reach = r, .pid = pid, .hash = HASH_K0, .fn = fn, .ctx = ctx, .e = e };
	int rc;

	if (is_32_bit(r, pid))
		return err_set(e, -ENOEXEC, "process %u runs a 32-bit program", pid);
	*f = (struct ptfiles){ .text = f->text };
	rc = procaccess_maps(r->opener, pid, tell_one, &tell, e);
	/* what was told is what is known: if that is not what was looked at, the next look has to read it all
	 */
	f->text = 0;
	f->seen = rc ? 0 : tell.hash;
	return rc;
}
