/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/symfile.h"
#include "base/fs.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

DEFINE_CLEANUP(struct elffile *, elffile_close);

static bool is_boot_id(const char *boot_id)
{
	struct root r = { .fd = -1 };
	char line[64] = "";

	if (root_open(NULL, &r, NULL) != 0)
		return false;
	root_line(&r, "proc/sys/kernel/random/boot_id", line, sizeof(line), NULL);
	root_close(&r);
	return *line && strcmp(line, boot_id) == 0;
}

int symfile_init(struct symfile *s, const char *symfs, const char *boot_id, struct err *e)
{
	s->symfs = -1;
	s->same_boot = boot_id && is_boot_id(boot_id);
	if (!symfs)
		return 0;
	s->symfs = open(symfs, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (s->symfs < 0)
		return err_sys(e, -errno, "cannot open the directory '%s'", symfs);
	return 0;
}

void symfile_close(struct symfile *s)
{
	if (s->symfs >= 0)
		close(s->symfs);
	s->symfs = -1;
}

static bool same_id(const struct cap_build_id *a, const struct cap_build_id *b)
{
	return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

/* Is F the file that was mapped? */
static int prove(const struct elffile *f, const struct cap_file *file, struct err *e)
{
	char was[2 * CAP_BUILD_ID_MAX + 1], is[2 * CAP_BUILD_ID_MAX + 1];

	if (file->build_id.len) {
		if (same_id(&file->build_id, &f->build_id))
			return 0;
		text_hex(was, file->build_id.bytes, MIN(file->build_id.len, CAP_BUILD_ID_MAX));
		text_hex(is, f->build_id.bytes, f->build_id.len);
		if (!*is)
			return err_set(e, -ESTALE,
				"is another file: build ID %s is recorded, this one has none", was);
		return err_set(
			e, -ESTALE, "is another file: build ID %s is recorded, this one has %s", was, is);
	}
	if (!file->size || !file->mtime_ns)
		return err_set(e, -ESTALE, "cannot be proven: no build ID, size and time are recorded");
	if (file->size != f->size)
		return err_set(e, -ESTALE,
			"is another file: it has no build ID recorded, and another size (%llu, was %llu)",
			(unsigned long long)f->size, (unsigned long long)file->size);
	if (file->mtime_ns != f->mtime_ns)
		return err_set(e, -ESTALE,
			"is another file: it has no build ID recorded, and was modified at another time");
	return 0;
}

/* How much a failure says: the highest is told. */
static int weight(int code)
{
	switch (code) {
	case -ENOENT:
	case -ENOTDIR:
		return 1;
	case -EACCES:
	case -EPERM:
		return 2;
	case -ESTALE:
		return 4;
	default:
		return 3;
	}
}

static int try_place(int dirfd, const char *path, bool in_root, const struct cap_file *file,
	struct elffile **ret, struct err *worst)
{
	CLEANUP(elffile_close_p) struct elffile *f = NULL;
	struct err e = { 0 };
	int rc = elffile_open(dirfd, path, in_root, &f, &e);

	rc = rc ? rc : prove(f, file, &e);
	if (rc == 0) {
		*ret = TAKE_PTR(f);
		return 0;
	}
	if (!worst->code || weight(rc) > weight(worst->code))
		*worst = e;
	return rc;
}

static int try_proc_root(uint32_t tgid, const struct cap_file *file, struct elffile **ret, struct err *worst)
{
	char dir[64];
	_cleanup_close_ int fd = -1;

	snprintf(dir, sizeof(dir), "/proc/%u/root", tgid);
	fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : try_place(fd, file->path, true, file, ret, worst);
}

int symfile_open(const struct symfile *s, const struct cap_file *file, uint32_t tgid, struct elffile **ret,
	struct err *e)
{
	struct err worst = { 0 };
	int rc = -ENOENT;

	if (file->path[0] != '/')
		return err_set(e, -ENOENT, "has no path on disk");
	rc = try_place(AT_FDCWD, file->path, false, file, ret, &worst);
	if (rc && s->symfs >= 0)
		rc = try_place(s->symfs, file->path, true, file, ret, &worst);
	if (rc && s->same_boot && tgid)
		rc = try_proc_root(tgid, file, ret, &worst);
	if (rc && e)
		*e = worst;
	return rc ? worst.code : 0;
}

int symfile_open_debug(const struct symfile *s, const struct cap_build_id *id, struct elffile **ret)
{
	char name[2 * CAP_BUILD_ID_MAX + 1], path[2 * CAP_BUILD_ID_MAX + 64];
	const struct cap_file want = { .build_id = *id };
	struct err ignored = { 0 };
	int rc = -ENOENT;

	if (id->len < 2)
		return -ENOENT;
	text_hex(name, id->bytes, MIN(id->len, CAP_BUILD_ID_MAX));
	snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%.2s/%s.debug", name, name + 2);
	if (s->symfs >= 0)
		rc = try_place(s->symfs, path, true, &want, ret, &ignored);
	return rc ? try_place(AT_FDCWD, path, false, &want, ret, &ignored) : 0;
}
