/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/debugsearch.h"
#include "base/clock.h"
#include "base/text.h"
#include "elf/debuglink.h"
#include "elf/elfsection.h"

#include <errno.h>
#include <string.h>

DEFINE_CLEANUP(struct elffile *, elffile_close);

/* How much a failure says: the highest is told. What is not there says nothing. */
static int weight(int code)
{
	switch (code) {
	case -ENOENT:
	case -ENOTDIR:
	case -ENAMETOOLONG:
		return 0;
	case -EACCES:
	case -EPERM:
	case -ELOOP:
		return 1;
	case -EXDEV: /* another build ID */
		return 3;
	case -EBADMSG: /* the same, and another CRC */
		return 4;
	default:
		return 2;
	}
}

static void miss(struct debugsearch *s, int root, const char *path, const struct err *e)
{
	char shown[PATH_MAX + PATH_MAX];

	if (e->code == -ENOMEM || e->code == -ECANCELED)
		s->stop = e->code;
	if (weight(e->code) <= s->weight)
		return;
	s->weight = weight(e->code);
	debugplace_show(root, path, shown, sizeof(shown));
	snprintf(s->missed, sizeof(s->missed), "'%.350s' %.150s", shown, e->msg);
}

static int check_build_id(const struct debugsearch *s, const struct elffile *f, struct err *e)
{
	char want[2 * CAP_BUILD_ID_MAX + 1], is[2 * CAP_BUILD_ID_MAX + 1];
	const struct cap_build_id *id = s->build_id;

	if (!id || !id->len ||
		(id->len == f->build_id.len && memcmp(id->bytes, f->build_id.bytes, id->len) == 0))
		return 0;
	text_hex(want, id->bytes, MIN(id->len, CAP_BUILD_ID_MAX));
	text_hex(is, f->build_id.bytes, MIN(f->build_id.len, CAP_BUILD_ID_MAX));
	if (!*is)
		return err_set(e, -EXDEV, "has no build ID, which should be %s", want);
	return err_set(e, -EXDEV, "has build ID %s instead of %s", is, want);
}

static int stop_crc(void *ctx, uint64_t done, uint64_t total)
{
	struct debugsearch *s = ctx;

	if (now_ns() > s->until_ns)
		return 1;
	if (!s->progress || s->progress(s->progress_ctx, s->path, done, total) == 0)
		return 0;
	s->stop = -ECANCELED;
	return 1;
}

static int check_crc(struct debugsearch *s, const struct elffile *f, struct err *e)
{
	uint32_t is;
	int rc;

	if (!s->crc)
		return 0;
	if (!s->until_ns)
		s->until_ns = now_ns() + (uint64_t)s->seconds * 1000000000;
	rc = debuglink_crc(f, stop_crc, s, &is, e);
	if (rc == -ECANCELED && !s->stop)
		return err_set(e, -ETIMEDOUT, "could not be checked within %u s", s->seconds);
	if (rc || is == *s->crc)
		return rc;
	return err_set(e, -EBADMSG, "has CRC %08x instead of %08x", is, *s->crc);
}

static int check_content(const struct debugsearch *s, const struct elffile *f, struct err *e)
{
	struct elfsection_names names;
	int rc = s->sections ? elfsection_names(f, &names, e) : 0;
	bool has = false;

	if (rc || !s->sections)
		return rc;
	for (const char *const *name = s->sections; *name && !has; name++)
		has = elfsection_has(f, &names, *name);
	elfsection_names_free(&names);
	return has ? 0 : err_set(e, -EINVAL, "%s", s->lacks);
}

/* The cheap questions first; reading all of a file only for one that is nearly proven. */
static int prove(struct debugsearch *s, const struct elffile *f, struct err *e)
{
	int rc;

	if (s->of && debugplace_same(s->of, f))
		return err_set(e, -ENOENT, "is the file itself");
	if (s->of && (s->of->machine != f->machine || s->of->is64 != f->is64))
		return err_set(e, -EINVAL, "is of another machine");
	rc = check_build_id(s, f, e);
	rc = rc ? rc : check_content(s, f, e);
	return rc ? rc : check_crc(s, f, e);
}

bool debugsearch_try_at(struct debugsearch *s, int root, const char *path)
{
	CLEANUP(elffile_close_p) struct elffile *f = NULL;
	struct err e = { 0 };
	int rc;

	if (s->stop || s->found)
		return true;
	snprintf(s->path, sizeof(s->path), "%s", path);
	rc = debugplace_open(root, path, &f, &e);
	rc = rc ? rc : prove(s, f, &e);
	if (rc) {
		miss(s, root, path, &e);
		return s->stop != 0;
	}
	s->found = TAKE_PTR(f);
	s->root = root;
	return true;
}

bool debugsearch_try(struct debugsearch *s, const char *path)
{
	return (s->symfs >= 0 && path[0] == '/' && debugsearch_try_at(s, s->symfs, path)) ||
	       debugsearch_try_at(s, DEBUGPLACE_HERE, path);
}

bool debugsearch_try_fd(struct debugsearch *s, int fd)
{
	char link[64];
	bool over;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	over = debugsearch_try_at(s, DEBUGPLACE_HERE, link);
	if (s->found && !debugplace_real(DEBUGPLACE_HERE, link, s->path, sizeof(s->path)))
		s->path[0] = 0;
	close(fd);
	return over;
}
