/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/symkeep.h"
#include "symbols/symcache.h"

#include <elf.h>
#include <errno.h>
#include <time.h>

struct symkeep {
	struct symcache *cache;
	uint64_t opened_ns; /* by the clock that files are stamped with */
	uint64_t kept;
};

/* The files of an answer, in this order: absent ones are all zero. */
struct files {
	struct symcache_file of[SYMCACHE_FILES_MAX];
	size_t n;
};

enum { OPT_INLINES = 1, OPT_LINES = 2, OPT_DEMANGLE = 4, OPT_VERSION_SHIFT = 8 };

int symkeep_open(struct symkeep **ret, struct err *e)
{
	_cleanup_free_ struct symkeep *k = calloc(1, sizeof(*k));
	struct timespec now;
	int rc;

	if (!k)
		return err_nomem(e, "a cache");
	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	k->opened_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	rc = symcache_open(SYMCACHE_BYTES_DEFAULT, &k->cache, e);
	if (rc == 0)
		*ret = TAKE_PTR(k);
	return rc;
}

void symkeep_close(struct symkeep *k)
{
	if (!k)
		return;
	symcache_close(k->cache);
	free(k);
}

/* What is not loaded is debug information, mostly. */
static uint64_t debug_bytes(const struct elffile *f)
{
	uint64_t sum = 0;

	for (size_t i = 0; f && i < f->n_sections; i++) {
		const struct elffile_section *s = &f->sections[i];

		if (s->type == SHT_PROGBITS && !(s->flags & SHF_ALLOC))
			sum += MIN(s->size, f->size);
	}
	return sum;
}

static bool is_worth(const struct symlook_input *in)
{
	return (in->inlines || in->lines) && in->elf->build_id.len &&
	       (in->dwp || in->n_dwos || debug_bytes(in->elf) + debug_bytes(in->debug) >= SYMKEEP_BYTES_MIN);
}

/* False for a file that has no identity: bytes in memory, or one that may be changing. */
static bool add_file(const struct symkeep *k, const struct elffile *f, struct files *all)
{
	struct symcache_file *to = &all->of[all->n++];

	*to = (struct symcache_file){ 0 };
	if (!f)
		return true;
	return f->fd >= 0 && symcache_identify(f->fd, to) == 0 && to->mtime_ns < k->opened_ns &&
	       to->ctime_ns < k->opened_ns;
}

static bool identify(const struct symkeep *k, const struct symlook_input *in, struct files *all)
{
	bool ok;

	all->n = 0;
	if (!is_worth(in) || in->n_dwos > SYMCACHE_FILES_MAX - 4)
		return false;
	ok = add_file(k, in->elf, all) && add_file(k, in->debug, all) && add_file(k, in->alt, all) &&
	     add_file(k, in->dwp, all);
	for (size_t i = 0; ok && i < in->n_dwos; i++)
		ok = add_file(k, in->dwos[i].file, all);
	return ok;
}

static struct symcache_key key_of(const struct symlook_input *in, const struct files *all)
{
	return (struct symcache_key){ .id = in->elf->build_id,
		.files = all->of,
		.n_files = all->n,
		.options = (in->inlines ? OPT_INLINES : 0) | (in->lines ? OPT_LINES : 0) |
			   (in->demangle ? OPT_DEMANGLE : 0) |
			   (uint64_t)SYMLOOK_VERSION << OPT_VERSION_SHIFT };
}

bool symkeep_get(struct symkeep *k, const struct symlook_input *in, uint8_t **ret, struct symanswer *view)
{
	struct files all;
	struct symcache_key key;

	if (!identify(k, in, &all))
		return false;
	key = key_of(in, &all);
	return symcache_get(k->cache, &key, in->vaddrs, in->n_vaddrs, ret, view, NULL) == 0;
}

void symkeep_put(struct symkeep *k, const struct symlook_input *in, const uint8_t *bytes, size_t len)
{
	struct files all;
	struct symcache_key key;

	if (!identify(k, in, &all))
		return;
	key = key_of(in, &all);
	k->kept += symcache_put(k->cache, &key, bytes, len, NULL) == 1;
}

void symkeep_stats(const struct symkeep *k, struct symkeep_stats *ret)
{
	struct diskcache_stats s;

	symcache_stats(k->cache, &s);
	*ret = (struct symkeep_stats){ .hits = s.hits, .misses = s.misses, .kept = k->kept, .bad = s.bad };
}
