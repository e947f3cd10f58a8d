/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/debuglink.h"
#include "base/bytes.h"
#include "elf/elfsection.h"

#include <errno.h>
#include <zlib.h>

#define SECTION_MAX (DEBUGLINK_NAME_MAX + 256)
#define PIECE (256 << 10)
#define STOP_EVERY (4 << 20) /* bytes between two calls of STOP */

/* NAME and its NUL. */
static int read_name(struct rd *r, struct debuglink *ret, struct err *e)
{
	const char *name = (const char *)r->p;
	size_t n = strnlen(name, MIN(rd_left(r), sizeof(ret->name)));

	*ret = (struct debuglink){ 0 };
	if (n == 0)
		return err_set(e, -EINVAL, "has no name");
	if (n == sizeof(ret->name))
		return err_set(e, -EINVAL, "has a name of %zu bytes or more", sizeof(ret->name));
	if (n == rd_left(r))
		return err_set(e, -EINVAL, "has a name without an end");
	memcpy(ret->name, name, n);
	rd_bytes(r, n + 1);
	return 0;
}

/* Does it stay below the directory that it is put behind? */
static bool is_below(const char *name)
{
	if (name[0] == '/')
		return false;
	for (const char *p = name; p; p = strchr(p, '/')) {
		p += *p == '/';
		if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || !p[2]))
			return false;
	}
	return strcmp(name, ".") != 0;
}

int debuglink_parse(const void *bytes, size_t len, struct debuglink *ret, struct err *e)
{
	struct rd r = rd_init(bytes, len);
	int rc = read_name(&r, ret, e);

	if (rc)
		return rc;
	if (!is_below(ret->name))
		return err_set(e, -EINVAL, "has '%s', which is no plain name", ret->name);
	rd_bytes(&r, -(len - rd_left(&r)) & 3);
	ret->crc = rd_u32(&r);
	return r.bad ? err_set(e, -EINVAL, "has no CRC") : 0;
}

int debuglink_parse_alt(const void *bytes, size_t len, struct debuglink *ret, struct err *e)
{
	struct rd r = rd_init(bytes, len);
	int rc = read_name(&r, ret, e);
	size_t n;

	if (rc)
		return rc;
	n = rd_left(&r);
	if (n == 0 || n > CAP_BUILD_ID_MAX)
		return err_set(e, -EINVAL, "has a build ID of %zu bytes", n);
	ret->build_id.len = (uint8_t)n;
	memcpy(ret->build_id.bytes, r.p, n);
	return 0;
}

static int read_section(const struct elffile *f, const char *name, struct debuglink *ret, struct err *e,
	int (*parse)(const void *, size_t, struct debuglink *, struct err *))
{
	struct elfsection_names names;
	struct elfsection s = { 0 };
	int rc = elfsection_names(f, &names, e);

	*ret = (struct debuglink){ 0 };
	if (rc)
		return rc;
	rc = elfsection_load(f, &names, name, SECTION_MAX, &s, e);
	if (rc > 0) {
		rc = parse(s.bytes, s.len, ret, e);
		if (rc)
			err_prefix(e, "its %s", name);
		else
			rc = 1;
	}
	elfsection_free(&s);
	elfsection_names_free(&names);
	return rc;
}

int debuglink_read(const struct elffile *f, struct debuglink *ret, struct err *e)
{
	return read_section(f, ".gnu_debuglink", ret, e, debuglink_parse);
}

int debuglink_alt(const struct elffile *f, struct debuglink *ret, struct err *e)
{
	return read_section(f, ".gnu_debugaltlink", ret, e, debuglink_parse_alt);
}

/* Up to PIECE bytes at AT; how many, 0 at the end, -errno. */
static ssize_t piece(const struct elffile *f, uint64_t at, uint8_t *own, const uint8_t **ret)
{
	size_t n = MIN(PIECE, f->size - at);
	ssize_t got;

	*ret = f->fd < 0 ? f->image + at : own;
	if (f->fd < 0)
		return (ssize_t)n;
	do
		got = pread(f->fd, own, n, (off_t)at);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

int debuglink_crc(const struct elffile *f, int (*stop)(void *ctx, uint64_t done, uint64_t total), void *ctx,
	uint32_t *ret, struct err *e)
{
	_cleanup_free_ uint8_t *own = malloc(PIECE);
	uLong crc = crc32(0, NULL, 0);
	uint64_t told = 0;
	const uint8_t *p;
	ssize_t n;

	if (!own)
		return err_nomem(e, "a checksum");
	for (uint64_t at = 0; at < f->size; at += (uint64_t)n) {
		n = piece(f, at, own, &p);
		if (n < 0)
			return err_sys(e, (int)n, "cannot be read");
		if (n == 0)
			return err_set(e, -EIO, "became shorter while it was read");
		crc = crc32(crc, p, (uInt)n);
		if (stop && at - told >= STOP_EVERY) {
			told = at;
			if (stop(ctx, at, f->size))
				return err_set(e, -ECANCELED, "was not checked to its end");
		}
	}
	*ret = (uint32_t)crc;
	return 0;
}
