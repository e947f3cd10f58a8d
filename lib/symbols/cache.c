/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/cache.h"
#include "base/hash.h"
#include "base/text.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SYM_CACHE_FILES_MAX 64

#define SUFFIX "-1.sym" /* version of the format: symbols/answer.h and struct head */
#define MAGIC UINT32_C(0x31637973)
#define NAME_CAP (2 * CAPTURE_BUILD_ID_MAX + 17 + sizeof(SUFFIX))

_Static_assert(NAME_CAP <= DISKCACHE_NAME_CAP, "a name fits");

/* The start of an entry. The files follow, then the answer. */
struct head {
	uint32_t magic, crc; /* CRC of everything that follows */
	uint64_t options;
	uint32_t n_files, id_len;
	uint8_t id[CAPTURE_BUILD_ID_MAX];
};

_Static_assert(sizeof(struct head) % 8 == 0, "what follows is aligned");

struct sym_cache {
	struct diskcache *disk;
	uint64_t nameless; /* look-ups with a key that gives no name: misses */
	uint64_t others; /* entries without all addresses, or of another key: misses, not hits */
};

/* The identity of an open file. -errno as fstat(2). */
static int sym_cache_identify(int fd, struct sym_cache_file *ret)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return -errno;
	*ret = (struct sym_cache_file){ .dev = st.st_dev,
		.inode = st.st_ino,
		.size = (uint64_t)st.st_size,
		.mtime_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec,
		.ctime_ns = (uint64_t)st.st_ctim.tv_sec * 1000000000 + (uint64_t)st.st_ctim.tv_nsec };
	return 0;
}

/* --- an entry --- */

static size_t answer_at(const struct head *h)
{
	return sizeof(*h) + h->n_files * sizeof(struct sym_cache_file);
}

static uint32_t crc_of(const uint8_t *bytes, size_t len)
{
	const size_t from = offsetof(struct head, options);

	return crc32c(0, bytes + from, len - from);
}

static int check(const uint8_t *bytes, size_t len, struct err *e)
{
	struct sym_answer view;
	struct head h;

	if (len < sizeof(h))
		return err_set(e, -EINVAL, "is shorter than its head");
	memcpy(&h, bytes, sizeof(h));
	if (h.magic != MAGIC || h.n_files > SYM_CACHE_FILES_MAX || h.id_len > sizeof(h.id) ||
		len < answer_at(&h))
		return err_set(e, -EINVAL, "has a head that makes no sense");
	if (h.crc != crc_of(bytes, len))
		return err_set(e, -EINVAL, "has another checksum than it says");
	return sym_answer_view(bytes + answer_at(&h), len - answer_at(&h), &view, e);
}

static void head_of(const struct sym_cache_key *k, struct head *h)
{
	*h = (struct head){ .magic = MAGIC,
		.options = k->options,
		.n_files = (uint32_t)k->n_files,
		.id_len = (uint32_t)k->id.len };
	memcpy(h->id, k->id.bytes, k->id.len);
}

/*
 * BUILD_ID-HASH-1.sym, where HASH covers the rest of the key. The entry holds the whole key, so a
 * hash collision does no harm.
 */
static bool entry_name(const struct sym_cache_key *k, char name[NAME_CAP])
{
	uint64_t hash;

	if (!k->id.len || k->id.len > CAPTURE_BUILD_ID_MAX || !k->n_files || k->n_files > SYM_CACHE_FILES_MAX)
		return false;
	hash = hash_bytes(k->files, k->n_files * sizeof(*k->files), k->options);
	text_hex(name, k->id.bytes, k->id.len);
	snprintf(name + 2 * k->id.len, NAME_CAP - 2 * k->id.len, "-%016llx" SUFFIX, (unsigned long long)hash);
	return true;
}

static bool same_key(const uint8_t *bytes, const struct sym_cache_key *k)
{
	struct head have, want;

	memcpy(&have, bytes, sizeof(have));
	head_of(k, &want);
	want.crc = have.crc;
	return memcmp(&have, &want, sizeof(have)) == 0 &&
	       memcmp(bytes + sizeof(have), k->files, k->n_files * sizeof(*k->files)) == 0;
}

/* --- the cache --- */

int sym_cache_open(uint64_t limit, struct sym_cache **ret, struct err *e)
{
	static const struct diskcache_kind kind = { SUFFIX, "answer about symbols", check };
	_cleanup_free_ struct sym_cache *c = calloc(1, sizeof(*c));
	int rc = c ? diskcache_open(&kind, limit, &c->disk, e) : err_nomem(e, "a cache");

	if (rc == 0)
		*ret = TAKE_PTR(c);
	return rc;
}

void sym_cache_close(struct sym_cache *c)
{
	if (!c)
		return;
	diskcache_close(c->disk);
	free(c);
}

/* Both arrays ascend. */
static bool has_all(const struct sym_answer *a, const uint64_t *vaddrs, size_t n)
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

int sym_cache_get(struct sym_cache *c, const struct sym_cache_key *key, const uint64_t *vaddrs, size_t n,
	uint8_t **ret, struct sym_answer *view, struct err *e)
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
		rc = sym_answer_view(bytes, len - from, view, e);
		if (rc == 0 && has_all(view, vaddrs, n)) {
			*ret = TAKE_PTR(bytes);
			return 0;
		}
	}
	c->others++;
	return rc ? rc : err_set(e, -ENOENT, "the answer that is kept does not have all addresses");
}

/* False if the same request with the same files could get a better answer later. */
static bool is_final(const struct sym_answer *a)
{
	if (a->head->n_wants)
		return false;
	for (size_t i = 0; i < a->head->n_addrs; i++)
		if (a->addrs[i].reason == SYM_R_LIMIT || a->addrs[i].reason == SYM_R_DEBUG_MISSING)
			return false;
	return true;
}

int sym_cache_put(
	struct sym_cache *c, const struct sym_cache_key *key, const uint8_t *bytes, size_t len, struct err *e)
{
	struct sym_answer view;
	struct buf b = { 0 };
	char name[NAME_CAP];
	struct head h;
	int rc;

	if (!entry_name(key, name))
		return 0;
	rc = sym_answer_view(bytes, len, &view, e);
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

void sym_cache_stats(const struct sym_cache *c, struct diskcache_stats *ret)
{
	diskcache_stats(c->disk, ret);
	ret->hits -= c->others;
	ret->misses += c->others + c->nameless;
}

struct sym_store {
	struct sym_cache *cache;
	uint64_t opened_ns; /* CLOCK_REALTIME_COARSE, which also stamps files */
	uint64_t kept;
};

/* The files of an answer, in the order of add_file(); missing files are all zero. */
struct files {
	struct sym_cache_file of[SYM_CACHE_FILES_MAX];
	size_t n;
};

enum { OPT_INLINES = 1, OPT_LINES = 2, OPT_DEMANGLE = 4, OPT_VERSION_SHIFT = 8 };

int sym_store_open(struct sym_store **ret, struct err *e)
{
	_cleanup_free_ struct sym_store *k = calloc(1, sizeof(*k));
	struct timespec now;
	int rc;

	if (!k)
		return err_nomem(e, "a cache");
	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	k->opened_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	rc = sym_cache_open(SYM_CACHE_BYTES_DEFAULT, &k->cache, e);
	if (rc == 0)
		*ret = TAKE_PTR(k);
	return rc;
}

void sym_store_close(struct sym_store *k)
{
	if (!k)
		return;
	sym_cache_close(k->cache);
	free(k);
}

/* Sections that are not loaded are mostly debug information. */
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

static bool is_worth(const struct sym_lookup_input *in)
{
	return (in->inlines || in->lines) && in->elf->build_id.len &&
	       (in->dwp || in->n_dwos ||
		       debug_bytes(in->elf) + debug_bytes(in->debug) >= SYM_STORE_BYTES_MIN);
}

/* False for a file without an identity: bytes in memory, or a file that may be changing. */
static bool add_file(const struct sym_store *k, const struct elffile *f, struct files *all)
{
	struct sym_cache_file *to = &all->of[all->n++];

	*to = (struct sym_cache_file){ 0 };
	if (!f)
		return true;
	return f->fd >= 0 && sym_cache_identify(f->fd, to) == 0 && to->mtime_ns < k->opened_ns &&
	       to->ctime_ns < k->opened_ns;
}

static bool identify(const struct sym_store *k, const struct sym_lookup_input *in, struct files *all)
{
	bool ok;

	all->n = 0;
	if (!is_worth(in) || in->n_dwos > SYM_CACHE_FILES_MAX - 4)
		return false;
	ok = add_file(k, in->elf, all) && add_file(k, in->debug, all) && add_file(k, in->alt, all) &&
	     add_file(k, in->dwp, all);
	for (size_t i = 0; ok && i < in->n_dwos; i++)
		ok = add_file(k, in->dwos[i].file, all);
	return ok;
}

static struct sym_cache_key key_of(const struct sym_lookup_input *in, const struct files *all)
{
	return (struct sym_cache_key){ .id = in->elf->build_id,
		.files = all->of,
		.n_files = all->n,
		.options = (in->inlines ? OPT_INLINES : 0) | (in->lines ? OPT_LINES : 0) |
			   (in->demangle ? OPT_DEMANGLE : 0) |
			   (uint64_t)SYM_LOOKUP_VERSION << OPT_VERSION_SHIFT };
}

bool sym_store_get(
	struct sym_store *k, const struct sym_lookup_input *in, uint8_t **ret, struct sym_answer *view)
{
	struct files all;
	struct sym_cache_key key;

	if (!identify(k, in, &all))
		return false;
	key = key_of(in, &all);
	return sym_cache_get(k->cache, &key, in->vaddrs, in->n_vaddrs, ret, view, NULL) == 0;
}

void sym_store_put(struct sym_store *k, const struct sym_lookup_input *in, const uint8_t *bytes, size_t len)
{
	struct files all;
	struct sym_cache_key key;

	if (!identify(k, in, &all))
		return;
	key = key_of(in, &all);
	k->kept += sym_cache_put(k->cache, &key, bytes, len, NULL) == 1;
}

void sym_store_stats(const struct sym_store *k, struct sym_store_stats *ret)
{
	struct diskcache_stats s;

	sym_cache_stats(k->cache, &s);
	*ret = (struct sym_store_stats){ .hits = s.hits, .misses = s.misses, .kept = k->kept, .bad = s.bad };
}

#define SYM_SCHEDULE_MEMORY_LEAST (UINT64_C(64) << 20) /* for one process: with less it can read nothing */

#define MEMORY_DEFAULT (UINT64_C(2) << 30)

/* Move the jobs whose answers are cached to the front; returns how many. */
static size_t take_kept(const struct sym_schedule *r, struct sym_reader_job *jobs, size_t n)
{
	size_t taken = 0;

	for (size_t i = 0; r->keep && i < n; i++) {
		struct sym_reader_job j = jobs[i];

		if (!sym_store_get(r->keep, &j.in, &j.bytes, &j.answer))
			continue;
		jobs[i] = jobs[taken];
		jobs[taken++] = j;
		if (r->done)
			r->done(r->ctx, &jobs[taken - 1]);
	}
	return taken;
}

static void keep_new(const struct sym_schedule *r, const struct sym_reader_job *jobs, size_t n)
{
	for (size_t i = 0; r->keep && i < n; i++)
		if (jobs[i].bytes)
			sym_store_put(r->keep, &jobs[i].in, jobs[i].bytes, jobs[i].len);
}

void sym_schedule_run(const struct sym_schedule *r, struct sym_reader_job *jobs, size_t n)
{
	const uint64_t memory = r->memory_bytes ? r->memory_bytes : MEMORY_DEFAULT;
	const size_t kept = take_kept(r, jobs, n);
	struct sym_reader_opts o = {
		.jobs = r->jobs, .seconds = r->seconds, .tick = r->tick, .tick_ctx = r->ctx
	};

	if (!o.jobs)
		o.jobs = (unsigned int)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L);
	o.jobs = MIN(o.jobs, (unsigned int)MAX(memory / SYM_SCHEDULE_MEMORY_LEAST, UINT64_C(1)));
	o.memory_bytes = memory / o.jobs;
	for (size_t i = kept; i < n; i++)
		/* The look-up must reach its own limit before malloc(3) fails. */
		jobs[i].in.max_bytes = o.memory_bytes / 4 * 3;
	/* each job reports its own failure */
	sym_reader_run(&o, jobs + kept, n - kept, r->done, r->ctx, NULL);
	keep_new(r, jobs + kept, n - kept);
}
