/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/tabcache.h"
#include "base/text.h"
#include "unwind/unwindtab.h"

#include <errno.h>
#include <string.h>

#define SUFFIX "-1.tab" /* the version of the format: unwindtab.h */
#define KEY_PARTS 5 /* of the file */

#define NAME_CAP (2 * CAP_BUILD_ID_MAX + KEY_PARTS * 17 + sizeof(SUFFIX))

_Static_assert(NAME_CAP <= DISKCACHE_NAME_CAP, "a name fits");

struct tabcache {
	struct diskcache *disk;
	uint64_t nameless; /* asked for without a build ID: misses */
};

static int check(const uint8_t *bytes, size_t len, struct err *e)
{
	struct unwindtab view;

	return unwindtab_view(bytes, len, &view, e);
}

int tabcache_open(uint64_t limit, struct tabcache **ret, struct err *e)
{
	static const struct diskcache_kind kind = { SUFFIX, "unwind table", check };
	_cleanup_free_ struct tabcache *c = calloc(1, sizeof(*c));
	int rc = c ? diskcache_open(&kind, limit, &c->disk, e) : err_nomem(e, "a cache");

	if (rc == 0)
		*ret = TAKE_PTR(c);
	return rc;
}

void tabcache_close(struct tabcache *c)
{
	if (!c)
		return;
	diskcache_close(c->disk);
	free(c);
}

/* BUILD ID-DEVICE-INODE-SIZE-MTIME-CTIME-1.tab, all hexadecimal: not a hash, which could be met on purpose.
 */
static bool entry_name(const struct tabcache_key *k, char name[NAME_CAP])
{
	const uint64_t file[KEY_PARTS] = { k->dev, k->inode, k->size, k->mtime_ns, k->ctime_ns };
	char *p;

	if (!k->id.len || k->id.len > CAP_BUILD_ID_MAX)
		return false;
	p = text_hex(name, k->id.bytes, k->id.len) + 2 * k->id.len;
	for (size_t i = 0; i < KEY_PARTS; i++)
		p += sprintf(p, "-%llx", (unsigned long long)file[i]);
	memcpy(p, SUFFIX, sizeof(SUFFIX));
	return true;
}

int tabcache_get(
	struct tabcache *c, const struct tabcache_key *key, uint8_t **ret, size_t *len, struct err *e)
{
	char name[NAME_CAP];

	if (entry_name(key, name))
		return diskcache_get(c->disk, name, ret, len, e);
	c->nameless++;
	return err_set(e, -ENOENT, "no build ID to find an unwind table by");
}

int tabcache_put(
	struct tabcache *c, const struct tabcache_key *key, const uint8_t *bytes, size_t len, struct err *e)
{
	char name[NAME_CAP];

	if (!entry_name(key, name))
		return err_set(e, -EINVAL, "no build ID to keep an unwind table by");
	return diskcache_put(c->disk, name, bytes, len, e);
}

void tabcache_stats(const struct tabcache *c, struct diskcache_stats *ret)
{
	diskcache_stats(c->disk, ret);
	ret->misses += c->nameless;
}
