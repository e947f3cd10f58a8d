/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/filetab.h"
#include "base/intern.h"
#include "record/buildid.h"
#include "record/mapfile.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

struct file {
	struct cap_file cap; /* id CAP_NONE until it is emitted; path is ours */
	uint32_t pid; /* which mapped it last, here: */
	uint64_t start, end;
	uint32_t next; /* another file with the same hash, UINT32_MAX = none */
};

struct filetab {
	struct file *files;
	size_t n, cap;
	struct idmap by_key;
	uint64_t unread;
	uint32_t emitted; /* ids given so far */
	struct opener *opener;
};

int filetab_new(struct filetab **ret, struct err *e)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : err_nomem(e, "the table of files");
}

void filetab_free(struct filetab *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n; i++)
		free((char *)(uintptr_t)t->files[i].cap.path);
	free(t->files);
	idmap_free(&t->by_key);
	free(t);
}

void filetab_opener(struct filetab *t, struct opener *o)
{
	t->opener = o;
}

static uint64_t hash_path(const char *s)
{
	uint64_t h = 0xcbf29ce484222325u;

	while (*s)
		h = (h ^ (unsigned char)*s++) * 0x100000001b3u;
	return h;
}

static uint64_t mtime_ns(const struct stat *st)
{
	return (uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec;
}

static void look_at(const struct filetab *t, struct cap_file *f, uint32_t pid, const struct procmap *m)
{
	struct stat st;
	_cleanup_close_ int fd = -1;

	if (mapfile_is_gone(t->opener, pid, m))
		f->flags |= CAP_FILE_DELETED;
	fd = mapfile_open(t->opener, pid, m, &st);
	if (fd >= 0) {
		f->size = (uint64_t)st.st_size;
		f->mtime_ns = mtime_ns(&st);
		f->error = buildid_read(fd, &f->build_id);
	} else {
		f->error = fd;
	}
	if (f->error)
		f->flags |= CAP_FILE_UNREAD;
}

static struct file *add_file(struct filetab *t, uint32_t pid, const struct procmap *m)
{
	struct file *f;
	char *path = strdup(m->path);

	if (!path || base_grow(&t->files, &t->cap, t->n + 1, sizeof(*t->files)) != 0) {
		free(path);
		return NULL;
	}
	f = &t->files[t->n];
	*f = (struct file){ .next = UINT32_MAX };
	f->cap = (struct cap_file){ .id = CAP_NONE,
		.dev_major = m->dev_major,
		.dev_minor = m->dev_minor,
		.inode = m->inode,
		.path = path };
	if (mapfile_is_pseudo(path)) {
		f->cap.flags = CAP_FILE_PSEUDO;
		if (strcmp(path, "[vdso]") == 0) {
			size_t len;
			const uint8_t *image = mapfile_vdso(&len);

			if (image)
				buildid_in_image(image, len, &f->cap.build_id);
		}
	} else {
		look_at(t, &f->cap, pid, m);
	}
	t->n++;
	return f;
}

/* Who maps it now is the likeliest to map it later. */
static uint32_t note_mapper(struct filetab *t, uint32_t at, uint32_t pid, const struct procmap *m)
{
	struct file *f = &t->files[at];

	f->pid = pid;
	f->start = m->start;
	f->end = m->end;
	return at;
}

static bool matches(const struct cap_file *f, const struct procmap *m)
{
	return f->inode == m->inode && f->dev_major == m->dev_major && f->dev_minor == m->dev_minor &&
	       strcmp(f->path, m->path) == 0;
}

uint32_t filetab_get(struct filetab *t, uint32_t pid, const struct procmap *m)
{
	struct idmap_slot *slot;
	uint64_t hi, lo;
	struct file *f;
	uint32_t at;

	if (!*m->path || strcmp(m->path, "//anon") == 0)
		return UINT32_MAX;
	hi = (uint64_t)m->dev_major << 32 | m->dev_minor;
	lo = m->inode ^ hash_path(m->path);
	slot = idmap_find(&t->by_key, hi, lo);
	for (at = slot ? slot->value : UINT32_MAX; at != UINT32_MAX; at = t->files[at].next)
		if (matches(&t->files[at].cap, m))
			return note_mapper(t, at, pid, m);
	f = add_file(t, pid, m);
	if (!f)
		return UINT32_MAX;
	at = (uint32_t)(f - t->files);
	slot = idmap_find(&t->by_key, hi, lo);
	if (slot) {
		f->next = slot->value;
		slot->value = at;
	} else {
		idmap_put(&t->by_key, hi, lo, at, NULL);
	}
	return note_mapper(t, at, pid, m);
}

void filetab_tell(struct filetab *t, uint32_t file, const struct cap_build_id *id)
{
	struct cap_file *f = file < t->n ? &t->files[file].cap : NULL;

	if (f && f->flags & CAP_FILE_UNREAD && !f->build_id.len && f->id == CAP_NONE)
		f->build_id = *id;
}

const char *filetab_path(const struct filetab *t, uint32_t file)
{
	return file < t->n ? t->files[file].cap.path : "";
}

bool filetab_place(const struct filetab *t, uint32_t file, struct procmap *ret)
{
	const struct cap_file *f = file < t->n ? &t->files[file].cap : NULL;

	if (!f)
		return false;
	ret->path = f->path;
	ret->dev_major = f->dev_major;
	ret->dev_minor = f->dev_minor;
	ret->inode = f->inode;
	return true;
}

void filetab_way(const struct filetab *t, uint32_t file, struct filetab_way *ret)
{
	const struct file *f = &t->files[file];

	*ret = (struct filetab_way){ f->cap, f->pid, f->start, f->end, t->opener };
}

int filetab_open(const struct filetab_way *f)
{
	const struct procmap m = { .start = f->start,
		.end = f->end,
		.dev_major = f->cap.dev_major,
		.dev_minor = f->cap.dev_minor,
		.inode = f->cap.inode,
		.path = f->cap.path };
	struct stat st;
	int fd;

	if (f->cap.flags & CAP_FILE_PSEUDO)
		return -ENOENT;
	fd = mapfile_open(f->opener, f->pid, &m, &st);
	if (fd < 0)
		return fd;
	/* its PID, or its path, may be another's by now */
	if (st.st_ino == f->cap.inode &&
		(f->cap.error || ((uint64_t)st.st_size == f->cap.size && mtime_ns(&st) == f->cap.mtime_ns)))
		return fd;
	close(fd);
	return -ESTALE;
}

uint32_t filetab_emit(struct filetab *t, uint32_t file, struct capwrite *w)
{
	struct cap_file *f;

	if (file >= t->n)
		return CAP_NONE;
	f = &t->files[file].cap;
	if (f->id != CAP_NONE)
		return f->id;
	f->id = t->emitted++;
	t->unread += (f->flags & CAP_FILE_UNREAD) != 0;
	capwrite_file(w, f);
	if (strcmp(f->path, "[vdso]") == 0) {
		size_t len;
		const uint8_t *image = mapfile_vdso(&len);

		if (image)
			capwrite_image(w, &(struct cap_image){ f->id, (uint32_t)len, image });
	}
	return f->id;
}

uint64_t filetab_unread(const struct filetab *t)
{
	return t->unread;
}
