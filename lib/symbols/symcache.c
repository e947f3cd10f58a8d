/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/symcache.h"

#include "base/hash.h"
#include "base/text.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define SUFFIX "-1.sym" /* the version of the format: symanswer.h and struct head */
#define MAGIC UINT32_C(0x31637973)
#define NAME_CAP (2 * CAP_BUILD_ID_MAX + 17 + sizeof(SUFFIX))

_Static_assert(NAME_CAP <= DISKCACHE_NAME_CAP, "a name fits");

/* What an entry begins with: then the files, then the answer. */
struct head {
	uint32_t magic, crc; /* of all behind it */
	uint64_t options;
	uint32_t n_files, id_len;
	uint8_t id[CAP_BUILD_ID_MAX];
};

_Static_assert(sizeof(struct head) % 8 == 0, "what follows is aligned");

struct symcache {
	struct diskcache *disk;
	uint64_t nameless; /* asked for with a key that names nothing: misses */
	uint64_t others; /* entries that do not have the addresses, or are of another key: misses, no hits */
};

int symcache_identify(int fd, struct symcache_file *ret)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return -errno;
	*ret = (struct symcache_file){ .dev = st.st_dev,
		.inode = st.st_ino,
		.size = (uint64_t)st.st_size,
		.mtime_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec,
		.ctime_ns = (uint64_t)st.st_ctim.tv_sec * 1000000000 + (uint64_t)st.st_ctim.tv_nsec };
	return 0;
}

/* --- an entry --- */

static size_t answer_at(const struct head *h)
{
	return sizeof(*h) + h->n_files * sizeof(struct symcache_file);
}

static uint32_t crc_of(const uint8_t *bytes, size_t len)
{
	const size_t from = offsetof(struct head, options);

	return crc32c(0, bytes + from, len - from);
}

static int check(const uint8_t *bytes, size_t len, struct err *e)
{
	struct symanswer view;
	struct head h;

	if (len < sizeof(h))
		return err_set(e, -EINVAL, "is shorter than its head");
	memcpy(&h, bytes, sizeof(h));
	if (h.magic != MAGIC || h.n_files > SYMCACHE_FILES_MAX || h.id_len > sizeof(h.id) ||
		len < answer_at(&h))
		return err_set(e, -EINVAL, "has a head that makes no sense");
	if (h.crc != crc_of(bytes, len))
		return err_set(e, -EINVAL, "has another checksum than it says");
	return symanswer_view(bytes + answer_at(&h), len - answer_at(&h), &view, e);
}

static void head_of(const struct symcache_key *k, struct head *h)
{
	*h = (struct head){ .magic = MAGIC,
		.options = k->options,
		.n_files = (uint32_t)k->n_files,
		.id_len = (uint32_t)k->id.len };
	memcpy(h->id, k->id.bytes, k->id.len);
}

/* BUILD ID-HASH OF THE REST-1.sym: what the hash stands for is in the entry, so one that is met does no harm.
 */
static bool entry_name(const struct symcache_key *k, char name[NAME_CAP])
{
	uint64_t hash;

	if (!k->id.len || k->id.len > CAP_BUILD_ID_MAX || !k->n_files || k->n_files > SYMCACHE_FILES_MAX)
		return false;
	hash = hash_bytes(k->files, k->n_files * sizeof(*k->files), k->options);
	text_hex(name, k->id.bytes, k->id.len);
	snprintf(name + 2 * k->id.len, NAME_CAP - 2 * k->id.len, "-%016llx" SUFFIX, (unsigned long long)hash);
	return true;
}

static bool same_key(const uint8_t *bytes, const struct symcache_key *k)
{
	struct head have, want;

	memcpy(&have, bytes, sizeof(have));
	head_of(k, &want);
	want.crc = have.crc;
	return memcmp(&have, &want, sizeof(have)) == 0 &&
	       memcmp(bytes + sizeof(have), k->files, k->n_files * sizeof(*k->files)) == 0;
}

/* --- the cache --- */

int symcache_open(uint64_t limit, struct symcache **ret, struct err *e)
{
	static const struct diskcache_kind kind = { SUFFIX, "answer about symbols", check };
	_cleanup_free_ struct symcache *c = calloc(1, sizeof(*c));
	int rc = c ? diskcache_open(&kind, limit, &c->disk, e) : err_nomem(e, "a cache");

	if (rc == 0)
		*ret = TAKE_PTR(c);
	return rc;
}

void symcache_close(struct symcache *c)
{
	if (!c)
		return;
	diskcache_close(c->disk);
	free(c);
}

/* Both ascend. */
static bool has_all(const struct symanswer *a, const uint64_t *vaddrs, size_t n)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		while (at < a->head->n_addrs && a->addrs[at].vaddr < vaddrs[i])
			at++;
		if (at == a->head->n_addrs || a->addrs[at].vaddr != vaddrs[i])
			return false;
	}
	return true;
}

int symcache_get(struct symcache *c, const struct symcache_key *key, const uint64_t *vaddrs, size_t n,
	uint8_t **ret, struct symanswer *view, struct err *e)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	char name[NAME_CAP];
	size_t len = 0, from;
	int rc;

	if (!entry_name(key, name)) {
		c->nameless++;
		return err_set(e, -ENOENT, "no build ID to find an answer by");
	}
	rc = diskcache_get(c->disk, name, &bytes, &len, e);
	if (rc)
		return rc;
	if (same_key(bytes, key)) {
		from = sizeof(struct head) + key->n_files * sizeof(*key->files);
		memmove(bytes, bytes + from, len - from);
		rc = symanswer_view(bytes, len - from, view, e);
		if (rc == 0 && has_all(view, vaddrs, n)) {
			*ret = TAKE_PTR(bytes);
			return 0;
		}
	}
	c->others++;
	return rc ? rc : err_set(e, -ENOENT, "the answer that is kept does not have all addresses");
}

/* May the same question be answered better some day, with the same files? */
static bool is_final(const struct symanswer *a)
{
	if (a->head->n_wants)
		return false;
	for (size_t i = 0; i < a->head->n_addrs; i++)
		if (a->addrs[i].reason == SYM_R_LIMIT || a->addrs[i].reason == SYM_R_DEBUG_MISSING)
			return false;
	return true;
}

int symcache_put(
	struct symcache *c, const struct symcache_key *key, const uint8_t *bytes, size_t len, struct err *e)
{
	struct symanswer view;
	struct buf b = { 0 };
	char name[NAME_CAP];
	struct head h;
	int rc;

	if (!entry_name(key, name))
		return 0;
	rc = symanswer_view(bytes, len, &view, e);
	if (rc)
		return rc;
	if (!is_final(&view))
		return 0;
	head_of(key, &h);
	buf_put(&b, &h, sizeof(h));
	buf_put(&b, key->files, key->n_files * sizeof(*key->files));
	buf_put(&b, bytes, len);
	if (b.failed) {
		rc = err_nomem(e, "an answer about symbols");
	} else {
		h.crc = crc_of(b.p, b.len);
		memcpy(b.p, &h, sizeof(h));
		rc = diskcache_put(c->disk, name, b.p, b.len, e);
	}
	buf_free(&b);
	return rc ? rc : 1;
}

void symcache_stats(const struct symcache *c, struct diskcache_stats *ret)
{
	diskcache_stats(c->disk, ret);
	ret->hits -= c->others;
	ret->misses += c->others + c->nameless;
}
