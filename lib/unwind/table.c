/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/table.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/search.h"
#include "base/text.h"
#include "runtime_abi.h"
#include "system/worker.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define UNWINDTAB_MAGIC UINT64_C(0x3762617477755453) /* "STuwtab7" */

#define CRC_FROM (offsetof(struct unwindtab_head, crc) + sizeof(uint32_t))
#define SEG_BYTES (UINT64_C(1) << UNWIND_SEG_SHIFT)
#define REGISTER_MAX 31 /* DWARF numbers of general registers: 0 to 15 on x86-64, 0 to 31 on arm64 */

_Static_assert(sizeof(struct unwindtab_load) == 24 && sizeof(struct unwindtab_head) % 8 == 0 &&
		       sizeof(struct unwindtab_seg) == 8,
	"parts at 8");

/* The three arrays of a segment. */
struct segment {
	const uint16_t *first, *rule;
	const uint8_t *pc;
	uint32_t rows;
};

static struct segment arrays_at(const void *at, uint32_t rows)
{
	const uint16_t *first = at;
	const uint16_t *rule = first + UNWIND_SEG_PAGES + 1;

	return (struct segment){ first, rule, (const uint8_t *)(rule + rows), rows };
}

static struct segment segment_at(const uint8_t *bytes, const struct unwindtab_seg *s)
{
	return arrays_at(bytes + s->at, s->rows);
}

/* --- checking --- */

/* ra_off of UNWIND_RA_CALL: one of enum unwind_bx, or the offset of a word below the CFA. */
static bool good_call(const struct unwind_rule *r)
{
	const int word = r->flags & UNWIND_WORD4 ? 4 : 8;

	return (r->cfa == UNWIND_CFA_REG || r->cfa == UNWIND_CFA_DEREF) && r->ra_off <= UNWIND_BX_UNKNOWN &&
	       (r->ra_off == UNWIND_BX_UNKNOWN || r->ra_off % word == 0);
}

/* The two kinds of UNWIND_CFA_GO_* use all offsets for the CFA. */
static bool good_go(const struct unwind_rule *r)
{
	return r->reg <= (r->cfa == UNWIND_CFA_GO_TLS ? UNWIND_GO_MORE : 0) && r->ra == UNWIND_RA_CFA &&
	       !r->flags && (r->fp == UNWIND_FP_SAME || r->fp == UNWIND_FP_CFA || r->fp == UNWIND_FP_UNKNOWN);
}

/* FLAG: UNWIND_WORD4 in a table of i386 code. Only a rule of no use lacks it. */
static bool good_rule(const struct unwind_rule *r, uint8_t flag)
{
	bool reg_ok = r->fp != UNWIND_FP_REG || (r->fp_off >= 0 && r->fp_off <= REGISTER_MAX);

	reg_ok = reg_ok && (r->ra != UNWIND_RA_REG || (r->ra_off >= 0 && r->ra_off <= REGISTER_MAX));
	if (r->cfa != UNWIND_CFA_UNSUPPORTED && (r->flags & UNWIND_WORD4) != flag)
		return false;
	if (r->cfa == UNWIND_CFA_GO_SAVED || r->cfa == UNWIND_CFA_GO_TLS)
		return good_go(r);
	return reg_ok && r->cfa >= UNWIND_CFA_REG && r->cfa <= UNWIND_CFA_DEREF_PLUS &&
	       r->reg <= REGISTER_MAX && r->fp <= UNWIND_FP_UNKNOWN && r->ra <= UNWIND_RA_CALL &&
	       (r->ra != UNWIND_RA_CALL || good_call(r)) &&
	       !(r->flags & ~(UNWIND_SIGNAL | UNWIND_IN_SYSCALL | UNWIND_GO_COPIES | UNWIND_WORD4));
}

static bool good_rules(const struct unwind_rule *rules, uint32_t n, uint32_t machine)
{
	const uint8_t flag = machine == EM_386 ? UNWIND_WORD4 : 0;
	static const struct unwind_rule none;

	if (memcmp(&rules[0], &none, sizeof(none)) != 0)
		return false;
	for (uint32_t i = 1; i < n; i++)
		if (!good_rule(&rules[i], flag))
			return false;
	return true;
}

/* Each page begins where the one before ends. */
static bool good_pages(const struct segment *s)
{
	if (s->first[0] != 0 || s->first[UNWIND_SEG_PAGES] != s->rows || s->pc[0] != 0 || s->first[1] == 0)
		return false;
	for (unsigned int p = 0; p < UNWIND_SEG_PAGES; p++)
		if (s->first[p] > s->first[p + 1])
			return false;
	return true;
}

/* Sixteen bytes at once with the compiler's vector types: a comparison gives -1 or 0 in each lane. */
typedef uint8_t bytes16 __attribute__((vector_size(16)));
typedef uint16_t words8 __attribute__((vector_size(16)));

/* The number of bytes that are not above the one before. */
static uint32_t count_descents(const uint8_t *pc, uint32_t n)
{
	uint32_t total = 0, i = 1;

	while (n - i >= 16) {
		bytes16 some = { 0 };
		uint32_t rounds = MIN((n - i) / 16, 255U); /* before a lane overflows */

		for (; rounds; rounds--, i += 16) {
			bytes16 here, before;

			memcpy(&here, pc + i, 16);
			memcpy(&before, pc + i - 1, 16);
			some -= (bytes16)(here <= before);
		}
		for (unsigned int lane = 0; lane < 16; lane++)
			total += some[lane];
	}
	for (; i < n; i++)
		total += pc[i] <= pc[i - 1];
	return total;
}

static bool all_below(const uint16_t *rule, uint32_t n, uint16_t limit)
{
	const words8 limits = limit - (words8){ 0 };
	words8 over = { 0 };
	uint16_t any = 0;
	uint32_t i = 0;

	for (; n - i >= 8; i += 8) {
		words8 here;

		memcpy(&here, rule + i, 16);
		over |= (words8)(here >= limits);
	}
	for (unsigned int lane = 0; lane < 8; lane++)
		any |= over[lane];
	for (; i < n; i++)
		any |= rule[i] >= limit;
	return !any;
}

/* Rows ascend within a page: where they do not, a page must begin. */
static bool good_rows(const struct segment *s, uint32_t n_rules)
{
	uint32_t allowed = 0;

	for (unsigned int p = 1; p < UNWIND_SEG_PAGES; p++) {
		uint32_t i = s->first[p];

		allowed += i && i < s->first[p + 1] && s->pc[i] <= s->pc[i - 1];
	}
	return count_descents(s->pc, s->rows) == allowed && all_below(s->rule, s->rows, (uint16_t)n_rules);
}

/* Segments must not overlap, and must be in order behind the rules: none is read twice. */
static int check_segments(const struct unwindtab *t, uint64_t from, struct err *e)
{
	uint64_t rows = 0;

	for (uint32_t i = 0; i < t->head->n_segs; i++) {
		const struct unwindtab_seg *g = &t->segs[i];
		struct segment s;

		if (!g->rows && !g->at)
			continue;
		if (!g->rows || g->rows > UNWIND_ROWS_MAX || g->at % 8 || g->at < from ||
			UNWIND_SEG_BYTES((uint64_t)g->rows) > t->head->bytes ||
			g->at > t->head->bytes - UNWIND_SEG_BYTES((uint64_t)g->rows))
			return err_set(e, -EINVAL, "segment %u of the unwind table lies outside it", i);
		s = segment_at(t->bytes, g);
		if (!good_pages(&s) || !good_rows(&s, t->head->n_rules))
			return err_set(e, -EINVAL, "segment %u of the unwind table is out of order", i);
		from = g->at + UNWIND_SEG_BYTES((uint64_t)g->rows);
		rows += g->rows;
	}
	if (rows != t->head->n_rows)
		return err_set(e, -EINVAL, "the unwind table miscounts its rows");
	return 0;
}

static bool good_interpreter(const struct unwindtab_interpreter *i)
{
	return i->kind < RUNTIME_KINDS && i->eval[0] <= i->eval[1] && i->cold[0] <= i->cold[1];
}

static int check_head(const struct unwindtab_head *h, size_t len, struct err *e)
{
	if (h->magic != UNWINDTAB_MAGIC)
		return err_set(e, -EINVAL, "is not an unwind table of this version");
	if (h->bytes != len)
		return err_set(e, -EINVAL, "the unwind table is cut or has a tail");
	if (h->crc != crc32c(0, (const uint8_t *)h + CRC_FROM, len - CRC_FROM))
		return err_set(e, -EINVAL, "the checksum of the unwind table is wrong");
	if (h->vaddr % SEG_BYTES || h->n_segs > UNWINDTAB_SEGS_MAX || !h->n_rules ||
		h->n_rules > UNWINDTAB_RULES_MAX || h->section > UNWINDTAB_ALL ||
		h->n_loads > UNWINDTAB_LOADS_MAX || !good_interpreter(&h->interpreter))
		return err_set(e, -EINVAL, "the head of the unwind table makes no sense");
	return 0;
}

int unwindtab_view(const void *bytes, size_t len, struct unwindtab *ret, struct err *e)
{
	struct unwindtab t = { .head = bytes, .bytes = bytes };
	uint64_t front;
	int rc;

	if ((uintptr_t)bytes % 8 || len < sizeof(*t.head))
		return err_set(e, -EINVAL, "is too short for an unwind table");
	rc = check_head(t.head, len, e);
	if (rc)
		return rc;
	t.loads = (const struct unwindtab_load *)(t.head + 1);
	t.segs = (const struct unwindtab_seg *)(t.loads + t.head->n_loads);
	t.rules = (const struct unwind_rule *)(t.segs + t.head->n_segs);
	front = sizeof(*t.head) + t.head->n_loads * sizeof(*t.loads) + t.head->n_segs * sizeof(*t.segs) +
		t.head->n_rules * sizeof(*t.rules);
	if (front > len)
		return err_set(e, -EINVAL, "the unwind table is shorter than its head says");
	if (!good_rules(t.rules, t.head->n_rules, t.head->machine))
		return err_set(e, -EINVAL, "the unwind table has an unknown kind of rule");
	rc = check_segments(&t, front, e);
	if (rc == 0)
		*ret = t;
	return rc;
}

void unwindtab_seal(void *bytes, size_t len)
{
	struct unwindtab_head *h = bytes;

	h->magic = UNWINDTAB_MAGIC;
	h->bytes = len;
	h->crc = crc32c(0, (uint8_t *)h + CRC_FROM, len - CRC_FROM);
}

/* --- searching --- */

/* The last row that begins at OFFSET or before. Row 0 begins the segment, so there is one. */
static uint32_t row_of(const struct segment *s, uint32_t offset)
{
	uint32_t page = offset >> UNWIND_PAGE_SHIFT;
	uint32_t lo = (uint32_t)PARTITION_POINT(
		s->first[page], s->first[page + 1], mid, s->pc[mid] <= (uint8_t)offset);

	return lo - 1;
}

/* Where row I begins. Its page is the last one with at most I rows before it. */
static uint32_t row_offset(const struct segment *s, uint32_t i)
{
	uint32_t lo = (uint32_t)PARTITION_POINT(0, UNWIND_SEG_PAGES, mid, s->first[mid] <= i);

	return (lo - 1) << UNWIND_PAGE_SHIFT | s->pc[i];
}

uint16_t unwindtab_rule_at(const void *segment, uint32_t rows, uint32_t offset)
{
	struct segment s = arrays_at(segment, rows);

	return s.rule[row_of(&s, offset)];
}

const struct unwind_rule *unwindtab_find(
	const struct unwindtab *t, uint64_t vaddr, uint64_t *start, uint64_t *end)
{
	uint64_t number = (vaddr - t->head->vaddr) >> UNWIND_SEG_SHIFT, base, from, to;
	struct segment s;
	uint32_t i;

	if (vaddr < t->head->vaddr || number >= t->head->n_segs)
		return NULL;
	base = t->head->vaddr + (number << UNWIND_SEG_SHIFT);
	from = base;
	to = base + SEG_BYTES;
	i = 0;
	if (t->segs[number].rows) {
		s = segment_at(t->bytes, &t->segs[number]);
		i = row_of(&s, (uint32_t)(vaddr - base));
		from = base + row_offset(&s, i);
		if (i + 1 < s.rows)
			to = base + row_offset(&s, i + 1);
		i = s.rule[i];
	}
	if (start)
		*start = from;
	if (end)
		*end = to;
	return &t->rules[i];
}

bool unwindtab_vaddr(const struct unwindtab *t, uint64_t offset, uint64_t *vaddr)
{
	for (uint32_t i = 0; i < t->head->n_loads; i++) {
		const struct unwindtab_load *l = &t->loads[i];

		if (offset >= l->offset && offset - l->offset < l->bytes) {
			*vaddr = l->vaddr + (offset - l->offset);
			return true;
		}
	}
	return false;
}

const char *unwindtab_left_text(unsigned int left)
{
	static const char *const texts[UNWINDTAB_LEFT] = {
		[UNWINDTAB_EXPRESSION] = "rows whose frame or return address no rule can hold",
		[UNWINDTAB_FP_UNKNOWN] = "rows without a rule for the frame pointer",
		[UNWINDTAB_OUTSIDE] = "FDEs, or parts of them, outside executable segments",
		[UNWINDTAB_OVERLAP] = "FDEs cut short, as another one begins inside them",
		[UNWINDTAB_BAD_CIE] = "CIEs that are malformed or of an unknown kind",
		[UNWINDTAB_BAD_FDE] = "FDEs that are malformed, or whose CIE is",
		[UNWINDTAB_TOO_MANY] = "rows beyond the limits of a table",
	};

	return left < UNWINDTAB_LEFT ? texts[left] : "omitted for an unknown reason";
}

#define SUFFIX "-5.tab" /* the version of the format: unwindtab_*() */
#define KEY_PARTS 5 /* numbers that identify the file */

#define NAME_CAP (2 * CAPTURE_BUILD_ID_MAX + KEY_PARTS * 17 + sizeof(SUFFIX))

_Static_assert(NAME_CAP <= DISKCACHE_NAME_CAP, "a name fits");

struct table_cache {
	struct diskcache *disk; /* NULL = through the process */
	struct worker *worker;
	uint64_t limit;
	struct diskcache_stats stats; /* of requests to the process */
	uint64_t nameless; /* requests without a build ID: misses */
};

struct table_cache_key table_cache_key_of(const struct stat *st)
{
	return (struct table_cache_key){
		.dev = st->st_dev,
		.inode = st->st_ino,
		.size = (uint64_t)st->st_size,
		.mtime_ns = (uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec,
		.ctime_ns = (uint64_t)st->st_ctim.tv_sec * 1000000000u + (uint64_t)st->st_ctim.tv_nsec,
	};
}

bool table_cache_same_file(const struct table_cache_key *a, const struct table_cache_key *b)
{
	return a->dev == b->dev && a->inode == b->inode && a->size == b->size && a->mtime_ns == b->mtime_ns &&
	       a->ctime_ns == b->ctime_ns;
}

static int check(const uint8_t *bytes, size_t len, struct err *e)
{
	struct unwindtab view;

	return unwindtab_view(bytes, len, &view, e);
}

static const struct diskcache_kind tables = { SUFFIX, "unwind table", check };

int table_cache_open(uint64_t limit, struct table_cache **ret, struct err *e)
{
	_cleanup_free_ struct table_cache *c = calloc(1, sizeof(*c));
	int rc = c ? diskcache_open(&tables, limit, &c->disk, e) : err_nomem(e, "a cache");

	if (rc == 0)
		*ret = TAKE_PTR(c);
	return rc;
}

/* --- the process that opens and stores entries for a recorder --- */

enum store_kind { STORE_OPEN, STORE_PUT, STORE_REMOVE };

/* STORE_PUT: with a descriptor that has the bytes of the entry. */
struct store_request {
	uint32_t kind;
	char name[NAME_CAP]; /* with NUL */
};

/* In the process: the bytes of descriptor FD. */
static int put_from(struct diskcache *disk, const char *name, int fd, uint64_t limit, struct err *e)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	struct stat st;
	int rc;

	if (fd < 0 || fstat(fd, &st) != 0 || st.st_size <= 0 || (uint64_t)st.st_size > limit)
		return err_set(e, -EINVAL, "no bytes for the cache");
	bytes = malloc((size_t)st.st_size);
	if (!bytes)
		return err_nomem(e, "an entry of the cache");
	rc = readfd_at(fd, bytes, (size_t)st.st_size, 0);
	return rc ? err_sys(e, rc, "cannot read an entry for the cache")
		  : diskcache_put(disk, name, bytes, (size_t)st.st_size, e);
}

/* A worker_fn. */
static int serve(void *ctx, const void *request, size_t len, int *fds, struct worker_answer *a)
{
	const struct store_request *q = request;
	const struct table_cache *c = ctx;

	if (len != sizeof(*q) || !memchr(q->name, 0, sizeof(q->name)))
		return -EPERM;
	if (q->kind == STORE_OPEN) {
		a->fd = diskcache_open_entry(c->disk, q->name, &a->err);
		return a->fd < 0 ? a->fd : 0;
	}
	if (q->kind == STORE_PUT)
		return put_from(c->disk, q->name, fds[0], c->limit, &a->err);
	if (q->kind != STORE_REMOVE)
		return -EPERM;
	diskcache_remove(c->disk, q->name);
	return 0;
}

static int trust(const uint8_t *bytes, size_t len, struct err *e)
{
	(void)bytes, (void)len, (void)e;
	return 0;
}

static int run(void *arg, int sock)
{
	/* the tables are checked by who uses them */
	static const struct diskcache_kind unchecked = { SUFFIX, "unwind table", trust };
	struct table_cache *c = arg;
	struct store_request q;

	if (diskcache_open(&unchecked, c->limit, &c->disk, NULL) != 0)
		return 1;
	worker_serve(sock, &q, sizeof(q), serve, c);
	return 0;
}

#define STORE_MEMORY (UINT64_C(64) << 20) /* beside an entry */

int table_cache_start(uint64_t limit, struct table_cache **ret, struct err *e)
{
	/* paths are limited by Landlock, not here */
	static const struct syscall_rule rules[] = { SYSCALL_ALLOW(openat), SYSCALL_ALLOW(newfstatat),
		SYSCALL_ALLOW(read), SYSCALL_ALLOW(write), SYSCALL_ALLOW(lseek), SYSCALL_ALLOW(getdents64),
		SYSCALL_ALLOW(renameat), SYSCALL_ALLOW(unlinkat), SYSCALL_ALLOW(utimensat),
		SYSCALL_ALLOW(geteuid), SYSCALL_ALLOW_IF(fcntl, SYSCALL_INT(1, F_GETFL)),
		SYSCALL_ALLOW_IF(fcntl, SYSCALL_INT(1, F_SETFD)) };
	_cleanup_free_ struct table_cache *c = NULL;
	struct table_cache *direct = NULL;
	char path[PATH_MAX];
	const struct sandbox_opts box = { .comm = "unwind-cache",
		.memory_bytes = STORE_MEMORY + limit,
		.file_bytes = limit,
		.n_received = 8,
		.folder = path,
		.rules = rules,
		.n_rules = ARRAY_LEN(rules) };
	/* creates the folder, and says why there is no cache */
	int rc = table_cache_open(limit, &direct, e);

	table_cache_close(direct);
	rc = rc ? rc : diskcache_place(tables.what, path, e);
	if (rc)
		return rc;
	c = calloc(1, sizeof(*c));
	if (!c)
		return err_nomem(e, "a cache");
	c->limit = limit;
	rc = worker_start(&(struct worker_opts){ .who = "the process that stores unwind tables",
				  .sandbox = &box,
				  .hurry = true,
				  .run = run,
				  .arg = c },
		&c->worker, e);
	if (!rc)
		*ret = TAKE_PTR(c);
	return rc;
}

uint32_t table_cache_pid(const struct table_cache *c)
{
	return c ? worker_pid(c->worker) : 0;
}

#define STORE_MS                                                                                             \
	2000 /* a disk may block its writers, and a process may be stopped: then there is no cache           \
	      */

/* FD: a descriptor to send, or -1; then that of the reply, or -1. 0 or -errno. */
static int ask(struct table_cache *c, const struct store_request *q, int *fd, struct err *e)
{
	struct worker_reply r = { .fd = -1 };
	int rc = worker_send(c->worker, q, sizeof(*q), fd, *fd >= 0);

	*fd = -1;
	rc = rc ? rc : worker_receive(c->worker, STORE_MS, NULL, 0, true, &r);
	if (rc != 1) {
		worker_stop(c->worker, 0, NULL);
		return err_set(e, -ENOTCONN, "the process that stores unwind tables did not reply");
	}
	*fd = r.fd;
	return r.error ? err_set(e, r.error, "%s", r.why) : 0;
}

static int get_through(
	struct table_cache *c, const struct store_request *q, uint8_t **ret, size_t *len, struct err *e)
{
	_cleanup_close_ int fd = -1;
	struct store_request bad = *q;
	int rc = ask(c, q, &fd, e), none = -1;

	rc = rc ? rc : fd < 0 ? -EMFILE : diskcache_read_entry(&tables, fd, ret, len, e);
	c->stats.hits += rc == 0;
	c->stats.bad += rc == -EINVAL;
	c->stats.misses += rc && rc != -EINVAL;
	if (fd >= 0 && rc == -EINVAL) {
		bad.kind = STORE_REMOVE;
		ask(c, &bad, &none, NULL);
	}
	return rc;
}

static int put_through(
	struct table_cache *c, const struct store_request *q, const uint8_t *bytes, size_t len, struct err *e)
{
	_cleanup_close_ int fd = worker_memfd("unwind-table");
	int to = fd, rc = fd < 0 ? fd : writefd_at(fd, bytes, len, 0);

	rc = rc ? err_sys(e, rc, "cannot hand over an unwind table") : ask(c, q, &to, e);
	if (to >= 0 && to != fd)
		close(to);
	c->stats.puts += !rc;
	return rc;
}

void table_cache_close(struct table_cache *c)
{
	if (!c)
		return;
	if (c->disk)
		diskcache_close(c->disk);
	worker_free(c->worker);
	free(c);
}

/*
 * BUILD ID-DEVICE-INODE-SIZE-MTIME-CTIME-2.tab, all hexadecimal. Not a hash,
 * for which a collision could be created.
 */
static bool entry_name(const struct table_cache_key *k, char name[NAME_CAP])
{
	const uint64_t file[KEY_PARTS] = { k->dev, k->inode, k->size, k->mtime_ns, k->ctime_ns };
	char *p;

	if (!k->id.len || k->id.len > CAPTURE_BUILD_ID_MAX)
		return false;
	p = text_hex(name, k->id.bytes, k->id.len) + 2 * k->id.len;
	for (size_t i = 0; i < KEY_PARTS; i++)
		p += sprintf(p, "-%llx", (unsigned long long)file[i]);
	memcpy(p, SUFFIX, sizeof(SUFFIX));
	return true;
}

int table_cache_get(
	struct table_cache *c, const struct table_cache_key *key, uint8_t **ret, size_t *len, struct err *e)
{
	struct store_request q = { .kind = STORE_OPEN };

	if (entry_name(key, q.name))
		return c->disk ? diskcache_get(c->disk, q.name, ret, len, e)
			       : get_through(c, &q, ret, len, e);
	c->nameless++;
	return err_set(e, -ENOENT, "no build ID to find an unwind table by");
}

int table_cache_put(struct table_cache *c, const struct table_cache_key *key, const uint8_t *bytes,
	size_t len, struct err *e)
{
	struct store_request q = { .kind = STORE_PUT };

	if (!entry_name(key, q.name))
		return err_set(e, -EINVAL, "no build ID to keep an unwind table by");
	return c->disk ? diskcache_put(c->disk, q.name, bytes, len, e) : put_through(c, &q, bytes, len, e);
}

void table_cache_stats(const struct table_cache *c, struct diskcache_stats *ret)
{
	*ret = c->stats;
	if (c->disk)
		diskcache_stats(c->disk, ret);
	ret->misses += c->nameless;
}
