/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/unwind_memory.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/hashtable.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

int bitrun_open(struct bitrun *b, uint32_t bits)
{
	*b = (struct bitrun){ .bits = bits, .longest = bits };
	b->words = calloc((size_t)bits / 64 + 1, sizeof(*b->words));
	return b->words ? 0 : -ENOMEM;
}

void bitrun_close(struct bitrun *b)
{
	free(b->words);
	*b = (struct bitrun){ 0 };
}

/* The first number from AT on whose bit is VALUE, or the end of the range. */
static uint32_t next(const struct bitrun *b, uint32_t at, bool value)
{
	const uint64_t flip = value ? 0 : ~UINT64_C(0);
	uint32_t w = at / 64;
	uint64_t word;

	if (at >= b->bits)
		return b->bits;
	word = (b->words[w] ^ flip) & ~UINT64_C(0) << at % 64;
	while (!word && ++w <= (b->bits - 1) / 64)
		word = b->words[w] ^ flip;
	if (!word)
		return b->bits;
	return MIN(w * 64 + (uint32_t)__builtin_ctzll(word), b->bits);
}

static void set(struct bitrun *b, uint32_t at, uint32_t n, bool value)
{
	while (n) {
		uint32_t in = MIN(64 - at % 64, n);
		uint64_t mask = (in == 64 ? ~UINT64_C(0) : (UINT64_C(1) << in) - 1) << at % 64;

		if (value)
			b->words[at / 64] |= mask;
		else
			b->words[at / 64] &= ~mask;
		at += in;
		n -= in;
	}
}

bool bitrun_take(struct bitrun *b, uint32_t n, uint32_t *at)
{
	uint32_t longest = 0;

	if (n > b->longest)
		return false;
	for (uint32_t from = next(b, 0, false), to; from < b->bits; from = next(b, to, false)) {
		to = next(b, from, true);
		longest = MAX(longest, to - from);
		if (to - from < n)
			continue;
		set(b, from, n, true);
		b->used += n;
		*at = from;
		return true;
	}
	b->longest = longest;
	return false;
}

void bitrun_give(struct bitrun *b, uint32_t at, uint32_t n)
{
	set(b, at, n, false);
	b->used -= n;
	b->longest = b->bits - b->used;
}

#define CHUNKS_GRAINS_OF(bytes) ((uint32_t)(((bytes) + UNWIND_GRAIN - 1) / UNWIND_GRAIN))

#define GROW_LEAST 4 /* chunks at a time */
#define GROW_MOST 256 /* each is a descriptor until it is in the array */
#define JOBS 8 /* threads that may wait for RCU at the same time */
#define CHUNKS_MOST 65000 /* each is a mapping, and vm.max_map_count is 65530 */
#define POLL_US 50

enum phase { MAKING, INSTALLING, DONE };

/* What a thread works on. The caller reads it only as far as `phase` allows. */
struct job {
	struct chunks *chunks;
	pthread_t thread;
	bool running; /* the thread must be joined */
	uint32_t first, n; /* chunks to make, from this number */
	uint32_t made; /* chunks made; final once no longer MAKING */
	uint32_t keys[GROW_MOST];
	int fds[GROW_MOST];
	int make_error, install_error;
	_Atomic int phase;
};

struct chunks {
	int fd;
	struct worker *broker;
	uint32_t limit; /* number of chunks, including chunk 0 */
	uint32_t end; /* one more than the last usable chunk */
	uint8_t *base; /* chunk I is at base + I * UNWIND_CHUNK_BYTES */
	struct bitrun *runs; /* the grains of each chunk */
	uint64_t used; /* grains */
	struct job jobs[JOBS]; /* used in turn; only the newest may be MAKING */
	uint32_t newest;
};

/* The block at GRAIN of CHUNK. */
static const void *chunks_at(const struct chunks *c, uint32_t chunk, uint32_t grain)
{
	return c->base + (size_t)chunk * UNWIND_CHUNK_BYTES + (size_t)grain * UNWIND_GRAIN;
}

static int create_chunk(struct worker *o)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);

	int fd = bpf_map_create(
		BPF_MAP_TYPE_ARRAY, "unwind_chunk", sizeof(uint32_t), UNWIND_CHUNK_BYTES, 1, &opts);

	return fd == -EPERM && o ? broker_bpf_map(o, BROKER_CHUNK_MAP, 0, false) : fd;
}

static int create_outer(uint32_t n, int inner_fd)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .inner_map_fd = (uint32_t)inner_fd);

	return bpf_map_create(
		BPF_MAP_TYPE_ARRAY_OF_MAPS, "unwind_chunks", sizeof(uint32_t), sizeof(uint32_t), n, &opts);
}

static int make_one(struct chunks *c, uint32_t number)
{
	_cleanup_close_ int fd = create_chunk(c->broker);
	void *p;

	if (fd < 0)
		return fd;
	p = mmap(c->base + (size_t)number * UNWIND_CHUNK_BYTES, UNWIND_CHUNK_BYTES, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_FIXED, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	return TAKE_FD(fd);
}

static void make(struct chunks *c, struct job *j)
{
	while (j->made < j->n) {
		int fd = make_one(c, j->first + j->made);

		if (fd < 0) {
			j->make_error = fd;
			return;
		}
		j->keys[j->made] = j->first + j->made;
		j->fds[j->made++] = fd;
	}
}

/* One system call for all, because each one waits for RCU. Kernels before 5.19 do not have it. */
static int put_in_place(int outer_fd, const struct job *j)
{
	LIBBPF_OPTS(bpf_map_batch_opts, opts);
	uint32_t count = j->made;
	int rc;

	if (count == 0 || bpf_map_update_batch(outer_fd, j->keys, j->fds, &count, &opts) == 0)
		return 0;
	for (uint32_t i = 0; i < j->made; i++) {
		rc = bpf_map_update_elem(outer_fd, &j->keys[i], &j->fds[i], BPF_ANY);
		if (rc)
			return rc;
	}
	return 0;
}

static void *work(void *ctx)
{
	struct job *j = ctx;

	make(j->chunks, j);
	atomic_store(&j->phase, INSTALLING);
	j->install_error = put_in_place(j->chunks->fd, j);
	atomic_store(&j->phase, DONE);
	return NULL;
}

/* Block signals in the new thread: another one waits for them. */
static bool start_thread(struct job *j)
{
	sigset_t all, old;
	bool started;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	started = pthread_create(&j->thread, NULL, work, j) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return started;
}

static void close_all(struct job *j)
{
	for (uint32_t i = 0; i < j->made; i++)
		close(j->fds[i]);
	j->made = 0;
}

/*
 * Wait for the end of job J. Fails if its chunks could not be put into the
 * array; else closes their descriptors.
 */
static int settle(struct job *j, struct err *e)
{
	if (j->running)
		pthread_join(j->thread, NULL);
	j->running = false;
	if (j->install_error)
		return err_sys(e, j->install_error, "cannot show BPF the memory of unwind tables");
	close_all(j);
	return 0;
}

/* Settle the jobs that have ended; with WAIT, the others too. */
static int settle_all(struct chunks *c, bool wait, struct err *e)
{
	int rc = 0;

	for (struct job *j = c->jobs; rc == 0 && j < c->jobs + JOBS; j++)
		if (wait || atomic_load(&j->phase) == DONE)
			rc = settle(j, e);
	return rc;
}

/* Begin to make up to N more chunks; the newest job must no longer be MAKING. Waits if all jobs are busy. */
static int start(struct chunks *c, uint32_t n, struct err *e)
{
	struct job *j = &c->jobs[(c->newest + 1) % JOBS];
	int rc = settle_all(c, false, e);

	if (rc == 0)
		rc = settle(j, e);
	if (rc)
		return rc;
	c->newest = (c->newest + 1) % JOBS;
	j->chunks = c;
	j->first = c->end;
	j->n = MIN(n, MIN(GROW_MOST, c->limit - c->end));
	j->make_error = 0;
	atomic_store(&j->phase, MAKING);
	j->running = start_thread(j);
	if (!j->running)
		work(j);
	return 0;
}

/*
 * Wait until the newest job has made its chunks, and let this process use them.
 * Fails if it could make none.
 */
static int collect(struct chunks *c, struct err *e)
{
	const struct job *j = &c->jobs[c->newest];

	while (atomic_load(&j->phase) == MAKING)
		usleep(POLL_US);
	while (c->end < j->first + j->made) {
		if (bitrun_open(&c->runs[c->end], CHUNKS_GRAINS) != 0)
			return err_nomem(e, "unwind tables");
		c->end++;
	}
	if (c->end == j->first && j->make_error)
		return err_sys(e, j->make_error, "cannot make memory for unwind tables");
	return 0;
}

/* Is the last chunk of job J in the array? They are put there in order. */
static bool in_sight(const struct chunks *c, const struct job *j)
{
	uint32_t last = j->first + j->made - 1, id;

	return bpf_map_lookup_elem(c->fd, &last, &id) == 0;
}

int chunks_commit(struct chunks *c, struct err *e)
{
	collect(c, NULL);
	for (struct job *j = c->jobs; j < c->jobs + JOBS; j++)
		while (j->made && atomic_load(&j->phase) != DONE && !in_sight(c, j))
			usleep(POLL_US);
	return settle_all(c, false, e);
}

static int start_and_collect(struct chunks *c, uint32_t n, struct err *e)
{
	int rc = start(c, n, e);

	return rc ? rc : collect(c, e);
}

/*
 * Make N chunks or more. Steps grow with the number of chunks, so that there
 * are few of them; callers repeat if it made fewer.
 */
static int grow(struct chunks *c, uint32_t n, struct err *e)
{
	uint32_t end = c->end;
	int rc = collect(c, e);

	if (rc == 0 && c->end > end)
		return 0;
	if (c->end == c->limit)
		return err_set(e, -ENOSPC, "no room is left in the %u MiB for unwind tables", c->limit / 4);
	n = MAX(n, MAX(GROW_LEAST, c->end / 32));
	rc = start_and_collect(c, n, e);
	/* descriptors become free when earlier chunks are in the array */
	if (rc == -EMFILE && settle_all(c, true, e) == 0)
		rc = start_and_collect(c, n, e);
	return rc;
}

static uint64_t free_grains(const struct chunks *c, uint32_t end)
{
	return (uint64_t)(end - 1) * CHUNKS_GRAINS - c->used;
}

int chunks_reserve(struct chunks *c, uint64_t grains, struct err *e)
{
	if (grains > free_grains(c, c->limit))
		return err_set(e, -ENOSPC, "no room is left in the %u MiB for unwind tables", c->limit / 4);
	while (grains > free_grains(c, c->end)) {
		uint64_t lacking = grains - free_grains(c, c->end);
		int rc = grow(c, (uint32_t)((lacking + CHUNKS_GRAINS - 1) / CHUNKS_GRAINS), e);

		if (rc)
			return rc;
	}
	return 0;
}

static bool take_from(struct chunks *c, uint32_t from, uint32_t grains, struct chunks_block *ret)
{
	for (uint32_t i = from; i < c->end; i++) {
		if (!bitrun_take(&c->runs[i], grains, &ret->grain))
			continue;
		ret->chunk = i;
		ret->p = c->base + (size_t)i * UNWIND_CHUNK_BYTES + (size_t)ret->grain * UNWIND_GRAIN;
		c->used += grains;
		return true;
	}
	return false;
}

int chunks_take(struct chunks *c, uint32_t grains, struct chunks_block *ret, struct err *e)
{
	uint32_t from = 1;

	if (grains == 0 || grains > CHUNKS_GRAINS)
		return err_set(e, -EINVAL, "a block of %u grains", grains);
	while (!take_from(c, from, grains, ret)) {
		int rc;

		from = c->end;
		rc = grow(c, 1, e);
		if (rc)
			return rc;
	}
	return 0;
}

void chunks_give(struct chunks *c, uint32_t chunk, uint32_t grain, uint32_t grains)
{
	bitrun_give(&c->runs[chunk], grain, grains);
	c->used -= grains;
}

bool chunks_ever_fit(
	const struct chunks *c, uint32_t (*grains)(const void *ctx, uint32_t i), const void *ctx, uint32_t n)
{
	_cleanup_free_ uint32_t *left = calloc(c->limit, sizeof(*left));
	uint32_t end = 1, full = 1;

	/* if out of memory, the answer is unknown: return the one that makes the caller try again */
	for (uint32_t i = 0; left && i < n; i++) {
		uint32_t need = grains(ctx, i), at = full;

		while (at < end && left[at] < need)
			at++;
		if (at == c->limit)
			return false;
		if (at == end)
			left[end++] = CHUNKS_GRAINS;
		left[at] -= need;
		while (full < end && left[full] == 0)
			full++;
	}
	return true;
}

static int open_maps(struct chunks *c, struct err *e)
{
	_cleanup_close_ int inner = create_chunk(c->broker);
	void *p;

	c->fd = inner < 0 ? inner : create_outer(c->limit, inner);
	if (c->fd < 0)
		return err_sys(e, c->fd, "cannot create the maps of unwind tables");
	p = mmap(NULL, (size_t)c->limit * UNWIND_CHUNK_BYTES, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return err_sys(
			e, -errno, "cannot set aside %u MiB of addresses for unwind tables", c->limit / 4);
	c->base = p;
	return 0;
}

DEFINE_CLEANUP(struct chunks *, chunks_close);

int chunks_open(uint32_t n, uint32_t first, struct worker *broker, struct chunks **ret, struct err *e)
{
	CLEANUP(chunks_close_p) struct chunks *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return err_nomem(e, "unwind tables");
	c->fd = -1;
	c->broker = broker;
	c->limit = MIN(MAX(n, 2), CHUNKS_MOST);
	c->end = 1;
	c->runs = calloc(c->limit, sizeof(*c->runs));
	if (!c->runs)
		return err_nomem(e, "unwind tables");
	rc = open_maps(c, e);
	if (rc)
		return rc;
	for (int i = 0; i < JOBS; i++)
		atomic_init(&c->jobs[i].phase, DONE);
	rc = start(c, first, e);
	if (rc == 0)
		*ret = TAKE_PTR(c);
	return rc;
}

void chunks_close(struct chunks *c)
{
	if (!c)
		return;
	for (struct job *j = c->jobs; j < c->jobs + JOBS; j++)
		if (settle(j, NULL) != 0)
			close_all(j);
	for (uint32_t i = 1; i < c->end; i++)
		bitrun_close(&c->runs[i]);
	if (c->base)
		munmap(c->base, (size_t)c->limit * UNWIND_CHUNK_BYTES);
	if (c->fd >= 0)
		close(c->fd);
	free(c->runs);
	free(c);
}

int chunks_fd(const struct chunks *c)
{
	return c->fd;
}

void chunks_stats(const struct chunks *c, struct chunks_stats *ret)
{
	ret->chunks = c->end - 1;
	ret->bytes = ret->chunks * (UNWIND_CHUNK_BYTES + CHUNKS_MAP_HEADER);
	ret->bytes_used = c->used * UNWIND_GRAIN;
}

/* sharedarray - an array map whose values are mapped here: both sides read and write them in place. */

struct sharedarray {
	int fd;
	void *p; /* the values, each at a multiple of its size; NULL = not open */
	size_t bytes; /* that are mapped */
};

#define PAGE 4096

static size_t whole_pages(size_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* N values of SIZE bytes (a multiple of 8), all zero. Release with sharedarray_close(). */
static int sharedarray_open(struct sharedarray *a, const char *name, size_t size, uint32_t n, struct err *e)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	_cleanup_close_ int fd =
		bpf_map_create(BPF_MAP_TYPE_ARRAY, name, sizeof(uint32_t), (uint32_t)size, n, &opts);
	size_t bytes = whole_pages(size * n);
	void *p;

	*a = (struct sharedarray){ 0 };
	if (fd < 0)
		return err_sys(e, fd, "cannot create the map '%s'", name);
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return err_sys(e, -errno, "cannot map the map '%s'", name);
	*a = (struct sharedarray){ .fd = TAKE_FD(fd), .p = p, .bytes = bytes };
	return 0;
}

static void sharedarray_close(struct sharedarray *a)
{
	if (!a->p)
		return;
	munmap(a->p, a->bytes);
	close(a->fd);
	*a = (struct sharedarray){ 0 };
}

/* Kernel memory of such an array: whole pages, and one of its own. */
static uint64_t sharedarray_bytes(size_t size, uint32_t n)
{
	return whole_pages(size * n) + PAGE;
}

/* Free numbers below `fresh` form a list from `idle` through `next`; 0 ends it. */
struct ruleset {
	struct sharedarray array;
	struct unwind_rule *rules;
	uint64_t seed;
	struct hashtable numbers; /* numbers in use, by rule */
	uint32_t fresh;
	uint16_t idle;
	uint16_t next[UNWIND_RULES_MAX];
	uint32_t holders[UNWIND_RULES_MAX];
};

_Static_assert(UNWIND_RULES_MAX - 1 <= UINT16_MAX, "a number is 16 bits");

DEFINE_CLEANUP(struct ruleset *, ruleset_close);

int ruleset_open(struct ruleset **ret, struct err *e)
{
	CLEANUP(ruleset_close_p) struct ruleset *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return err_nomem(e, "unwind rules");
	r->fresh = 1;
	if (getrandom(&r->seed, sizeof(r->seed), GRND_NONBLOCK) != (ssize_t)sizeof(r->seed))
		r->seed = (uintptr_t)r;
	rc = sharedarray_open(&r->array, "unwind_rules", sizeof(*r->rules), UNWIND_RULES_MAX, e);
	if (rc)
		return rc;
	r->rules = r->array.p;
	*ret = TAKE_PTR(r);
	return 0;
}

void ruleset_close(struct ruleset *r)
{
	if (!r)
		return;
	sharedarray_close(&r->array);
	hashtable_free(&r->numbers);
	free(r);
}

/* The rule of NUMBER; valid until it is given back. */
static const struct unwind_rule *ruleset_at(const struct ruleset *r, uint16_t number)
{
	return &r->rules[number];
}

int ruleset_fd(const struct ruleset *r)
{
	return r->array.fd;
}

static uint64_t hash_rule(const struct ruleset *r, const struct unwind_rule *rule)
{
	return hash_bytes(rule, sizeof(*rule), r->seed);
}

static bool equal(const struct unwind_rule *a, const struct unwind_rule *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* A free number, or 0. */
static uint16_t new_number(struct ruleset *r)
{
	uint16_t n = r->idle;

	if (n)
		r->idle = r->next[n];
	else if (r->fresh < UNWIND_RULES_MAX)
		n = (uint16_t)r->fresh++;
	return n;
}

int ruleset_take(struct ruleset *r, const struct unwind_rule *rule, uint16_t *ret)
{
	uint64_t hash = hash_rule(r, rule);
	uint32_t n;

	*ret = 0;
	if (equal(rule, &(struct unwind_rule){ 0 }))
		return 0;
	n = HASHTABLE_FIND(&r->numbers, hash, i, equal(&r->rules[i], rule));
	if (n == HASHTABLE_NONE) {
		n = hashtable_reserve(&r->numbers, 1) == 0 ? new_number(r) : 0;
		if (!n)
			return -ENOSPC;
		r->rules[n] = *rule;
		hashtable_add(&r->numbers, hash, n);
	}
	r->holders[n]++;
	*ret = (uint16_t)n;
	return 0;
}

void ruleset_give(struct ruleset *r, uint16_t number)
{
	if (number == 0 || --r->holders[number] > 0)
		return;
	hashtable_remove(&r->numbers, hash_rule(r, &r->rules[number]), number);
	r->rules[number] = (struct unwind_rule){ 0 };
	r->next[number] = r->idle;
	r->idle = number;
}

uint32_t ruleset_count(const struct ruleset *r)
{
	return (uint32_t)r->numbers.n;
}

static uint64_t ruleset_bytes(void)
{
	return sharedarray_bytes(sizeof(struct unwind_rule), UNWIND_RULES_MAX);
}

#define SEGS_DEFAULT 65536
#define PROCS_DEFAULT 16384

struct table {
	uint32_t seg, n_segs;
	uint32_t n_rules; /* that it has taken, with their numbers in `rules` */
	uint16_t *rules;
	uint64_t rows;
	bool live;
};

/* What BPF may still read: a table or, if `table` is 0, a block of mappings. */
struct left {
	uint32_t table, chunk, grain, grains;
};

struct leaving {
	struct left *v;
	size_t n, cap;
};

struct unwindspace {
	struct chunks *chunks;
	struct ruleset *rules;
	struct sharedarray seg_array, used_array;
	uint64_t *segs; /* struct unwind_seg, written as one word */
	uint64_t *used;
	struct bitrun seg_runs, numbers;
	int procs_fd, runtimes_fd, hotspots_fd;
	struct table *tables; /* UNWIND_TABLES_MAX */
	uint64_t n_rows, n_tables;
	size_t held; /* tables and blocks of mappings, including leaving ones */
	struct leaving now, before; /* removed since the last unwindspace_quiet(), and before it */
};

/* A table whose segments are copied. `rules` maps its rule numbers to those of the recording. */
struct copying {
	const struct unwindtab *tab;
	const uint16_t *rules;
};

static uint32_t seg_grains(const void *ctx, uint32_t i)
{
	const struct unwindtab_seg *segs = ctx;

	return segs[i].rows ? CHUNKS_GRAINS_OF(UNWIND_SEG_BYTES(segs[i].rows)) : 0;
}

static struct unwind_seg seg_at(const struct unwindspace *s, uint32_t i)
{
	struct unwind_seg seg;

	memcpy(&seg, &s->segs[i], sizeof(seg));
	return seg;
}

/* Show segment I to BPF, after everything that it refers to. */
static void seg_publish(struct unwindspace *s, uint32_t i, struct unwind_seg seg)
{
	uint64_t word;

	memcpy(&word, &seg, sizeof(word));
	__atomic_store_n(&s->segs[i], word, __ATOMIC_RELEASE);
}

static int make_arrays(struct unwindspace *s, uint32_t segs, struct err *e)
{
	int rc = sharedarray_open(&s->seg_array, "unwind_segs", sizeof(struct unwind_seg), segs, e);

	if (rc == 0)
		rc = sharedarray_open(&s->used_array, "unwind_used", sizeof(uint64_t), UNWIND_TABLES_MAX, e);
	s->segs = s->seg_array.p;
	s->used = s->used_array.p;
	return rc;
}

static int make_procs(struct unwindspace *s, uint32_t n, bool at_once, struct err *e)
{
	/* preallocating all of them takes the kernel milliseconds */
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = at_once ? 0 : BPF_F_NO_PREALLOC);

	s->procs_fd = bpf_map_create(
		BPF_MAP_TYPE_HASH, "unwind_procs", sizeof(uint32_t), sizeof(struct unwind_proc), n, &opts);
	if (s->procs_fd < 0)
		return err_sys(e, s->procs_fd, "cannot create the map 'unwind_procs'");
	s->runtimes_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "runtimes", sizeof(uint32_t),
		sizeof(struct runtime_file), RUNTIMES_MAX, NULL);
	if (s->runtimes_fd < 0)
		return err_sys(e, s->runtimes_fd, "cannot create the map 'runtimes'");
	s->hotspots_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "hotspots", sizeof(uint32_t),
		sizeof(struct hotspot_file), RUNTIMES_MAX, NULL);
	return s->hotspots_fd < 0 ? err_sys(e, s->hotspots_fd, "cannot create the map 'hotspots'") : 0;
}

static int make_books(struct unwindspace *s, uint32_t segs, struct err *e)
{
	uint32_t zero;

	s->tables = calloc(UNWIND_TABLES_MAX, sizeof(*s->tables));
	if (!s->tables || bitrun_open(&s->seg_runs, segs) != 0 ||
		bitrun_open(&s->numbers, UNWIND_TABLES_MAX) != 0)
		return err_nomem(e, "unwind tables");
	bitrun_take(&s->numbers, 1, &zero);
	return 0;
}

DEFINE_CLEANUP(struct unwindspace *, unwindspace_close);

int unwindspace_open(const struct unwindspace_opts *opts, struct unwindspace **ret, struct err *e)
{
	CLEANUP(unwindspace_close_p) struct unwindspace *s = calloc(1, sizeof(*s));
	uint32_t segs = opts->segs ? opts->segs : SEGS_DEFAULT;
	int rc;

	if (!s)
		return err_nomem(e, "unwind tables");
	s->procs_fd = s->runtimes_fd = s->hotspots_fd = -1;
	/* first, because its thread works while the rest is made */
	rc = chunks_open((uint32_t)MIN(opts->bytes / UNWIND_CHUNK_BYTES, UINT32_MAX), opts->first_chunks,
		opts->broker, &s->chunks, e);
	if (rc == 0)
		rc = make_arrays(s, segs, e);
	if (rc == 0)
		rc = ruleset_open(&s->rules, e);
	if (rc == 0)
		rc = make_procs(s, opts->procs ? opts->procs : PROCS_DEFAULT, opts->procs_at_once, e);
	if (rc == 0)
		rc = make_books(s, segs, e);
	if (rc == 0)
		*ret = TAKE_PTR(s);
	return rc;
}

void unwindspace_close(struct unwindspace *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; s->tables && i < UNWIND_TABLES_MAX; i++)
		free(s->tables[i].rules);
	free(s->tables);
	free(s->now.v);
	free(s->before.v);
	bitrun_close(&s->seg_runs);
	bitrun_close(&s->numbers);
	sharedarray_close(&s->seg_array);
	sharedarray_close(&s->used_array);
	ruleset_close(s->rules);
	chunks_close(s->chunks);
	if (s->procs_fd >= 0)
		close(s->procs_fd);
	if (s->runtimes_fd >= 0)
		close(s->runtimes_fd);
	if (s->hotspots_fd >= 0)
		close(s->hotspots_fd);
	free(s);
}

void unwindspace_fds(const struct unwindspace *s, struct unwindspace_fds *ret)
{
	ret->chunks = chunks_fd(s->chunks);
	ret->segs = s->seg_array.fd;
	ret->rules = ruleset_fd(s->rules);
	ret->used = s->used_array.fd;
	ret->procs = s->procs_fd;
	ret->runtimes = s->runtimes_fd;
	ret->hotspots = s->hotspots_fd;
}

/* Reserve room in both lists for one more entry, so that leave() cannot fail. */
static int hold_one(struct unwindspace *s, struct err *e)
{
	if (base_grow(&s->now.v, &s->now.cap, s->held + 1, sizeof(*s->now.v)) != 0 ||
		base_grow(&s->before.v, &s->before.cap, s->held + 1, sizeof(*s->before.v)) != 0)
		return err_nomem(e, "unwind tables");
	s->held++;
	return 0;
}

/* Free all that table NUMBER has, even an incomplete one, at once. */
static void release(struct unwindspace *s, uint32_t number)
{
	struct table *t = &s->tables[number];

	for (uint32_t i = t->seg; i < t->seg + t->n_segs; i++) {
		struct unwind_seg seg = seg_at(s, i);

		if (seg.rows)
			chunks_give(s->chunks, seg.chunk, seg.grain,
				CHUNKS_GRAINS_OF(UNWIND_SEG_BYTES(seg.rows)));
		seg_publish(s, i, (struct unwind_seg){ 0 });
	}
	if (t->n_segs)
		bitrun_give(&s->seg_runs, t->seg, t->n_segs);
	for (uint32_t i = 0; i < t->n_rules; i++)
		ruleset_give(s->rules, t->rules[i]);
	free(t->rules);
	*t = (struct table){ 0 };
	bitrun_give(&s->numbers, number, 1);
	s->held--;
}

static int take_rules(struct unwindspace *s, struct table *t, const struct unwindtab *tab, struct err *e)
{
	uint32_t n = tab->head->n_rules;

	t->rules = calloc(n ? n : 1, sizeof(*t->rules));
	if (!t->rules)
		return err_nomem(e, "unwind rules");
	for (; t->n_rules < n; t->n_rules++)
		if (ruleset_take(s->rules, &tab->rules[t->n_rules], &t->rules[t->n_rules]) != 0)
			return err_set(
				e, -ENOSPC, "more than %d distinct unwind rules", UNWIND_RULES_MAX - 1);
	return 0;
}

static void copy_rows(uint8_t *to, const uint8_t *from, uint32_t rows, const uint16_t *rules)
{
	const size_t first = (UNWIND_SEG_PAGES + 1) * sizeof(uint16_t), numbers = rows * sizeof(uint16_t);
	const uint16_t *own = (const uint16_t *)(const void *)(from + first);
	uint16_t *theirs = (uint16_t *)(void *)(to + first);

	memcpy(to, from, first);
	for (uint32_t i = 0; i < rows; i++)
		theirs[i] = rules[own[i]];
	memcpy(to + first + numbers, from + first + numbers, rows);
}

static int add_seg(struct unwindspace *s, uint32_t at, const struct copying *c, uint32_t i, struct err *e)
{
	const struct unwindtab_seg *seg = &c->tab->segs[i];
	struct chunks_block block;
	int rc;

	if (seg->rows == 0)
		return 0;
	rc = chunks_take(s->chunks, seg_grains(c->tab->segs, i), &block, e);
	if (rc)
		return rc;
	copy_rows(block.p, c->tab->bytes + seg->at, seg->rows, c->rules);
	seg_publish(s, at,
		(struct unwind_seg){
			.chunk = block.chunk, .grain = (uint16_t)block.grain, .rows = (uint16_t)seg->rows });
	return 0;
}

static int add_segs(struct unwindspace *s, struct table *t, const struct unwindtab *tab, struct err *e)
{
	const struct copying c = { .tab = tab, .rules = t->rules };
	uint64_t grains = 0;
	int rc;

	for (uint32_t i = 0; i < tab->head->n_segs; i++)
		grains += seg_grains(tab->segs, i);
	rc = chunks_reserve(s->chunks, grains, e);
	for (uint32_t i = 0; rc == 0 && i < tab->head->n_segs; i++)
		rc = add_seg(s, t->seg + i, &c, i, e);
	return rc;
}

static int add_parts(struct unwindspace *s, struct table *t, const struct unwindtab *tab, struct err *e)
{
	int rc;

	if (!bitrun_take(&s->seg_runs, tab->head->n_segs, &t->seg))
		return err_set(e, -ENOSPC, "no room is left for segments of unwind tables");
	t->n_segs = tab->head->n_segs;
	rc = take_rules(s, t, tab, e);
	return rc ? rc : add_segs(s, t, tab, e);
}

static int check(const struct unwindspace *s, const struct unwindtab *tab, struct err *e)
{
	if (tab->head->n_segs == 0)
		return err_set(e, -EINVAL, "an unwind table of no segments");
	if (tab->head->n_segs > s->seg_runs.bits)
		return err_set(e, -E2BIG, "an unwind table of %u segments, more than the %u there are",
			tab->head->n_segs, s->seg_runs.bits);
	for (uint32_t i = 0; i < tab->head->n_segs; i++)
		if (tab->segs[i].rows > UNWIND_ROWS_MAX)
			return err_set(
				e, -EINVAL, "an unwind table with %u rows in a segment", tab->segs[i].rows);
	return 0;
}

static void go_live(struct unwindspace *s, uint32_t number, uint64_t rows)
{
	struct table *t = &s->tables[number];

	t->live = true;
	t->rows = rows;
	s->n_rows += rows;
	s->n_tables++;
	__atomic_store_n(&s->used[number], now_ns(), __ATOMIC_RELAXED);
}

static int too_big(const struct unwindspace *s, const struct unwindtab *tab, struct err *e)
{
	if (chunks_ever_fit(s->chunks, seg_grains, tab->segs, tab->head->n_segs))
		return e ? e->code : -ENOSPC;
	return err_set(e, -E2BIG, "an unwind table of %llu rows, larger than all the memory for them",
		(unsigned long long)tab->head->n_rows);
}

int unwindspace_add(
	struct unwindspace *s, const struct unwindtab *tab, uint32_t *table, uint32_t *seg, struct err *e)
{
	uint32_t number;
	int rc = check(s, tab, e);

	if (rc == 0)
		rc = hold_one(s, e);
	if (rc)
		return rc;
	if (!bitrun_take(&s->numbers, 1, &number)) {
		s->held--;
		return err_set(e, -ENOSPC, "more than %d unwind tables", UNWIND_TABLES_MAX - 1);
	}
	rc = add_parts(s, &s->tables[number], tab, e);
	if (rc) {
		release(s, number);
		return rc == -ENOSPC ? too_big(s, tab, e) : rc;
	}
	go_live(s, number, tab->head->n_rows);
	*table = number;
	*seg = s->tables[number].seg;
	return 0;
}

static void leave(struct unwindspace *s, struct left what)
{
	s->now.v[s->now.n++] = what;
}

void unwindspace_remove(struct unwindspace *s, uint32_t table)
{
	struct table *t = &s->tables[table % UNWIND_TABLES_MAX];

	if (table >= UNWIND_TABLES_MAX || !t->live)
		return;
	t->live = false;
	s->n_rows -= t->rows;
	s->n_tables--;
	leave(s, (struct left){ .table = table });
}

const struct unwind_rule *unwindspace_rule(
	const struct unwindspace *s, uint32_t seg, uint32_t segs, uint64_t at)
{
	uint64_t i = at >> UNWIND_SEG_SHIFT;
	struct unwind_seg place;

	if (i >= segs || seg + i >= s->seg_runs.bits)
		return NULL;
	place = seg_at(s, seg + (uint32_t)i);
	if (!place.rows)
		return NULL;
	return ruleset_at(s->rules, unwindtab_rule_at(chunks_at(s->chunks, place.chunk, place.grain),
					    place.rows, at & ((1u << UNWIND_SEG_SHIFT) - 1)));
}

uint64_t unwindspace_used_ns(const struct unwindspace *s, uint32_t table)
{
	return __atomic_load_n(&s->used[table % UNWIND_TABLES_MAX], __ATOMIC_RELAXED);
}

int unwindspace_maps_new(struct unwindspace *s, uint32_t n, struct unwindspace_maps *ret, struct err *e)
{
	size_t bytes = (size_t)n * sizeof(struct unwind_map);
	struct chunks_block block;
	int rc;

	*ret = (struct unwindspace_maps){ .n = n };
	if (n == 0)
		return 0;
	if (n > UNWIND_MAPS_MAX)
		return err_set(
			e, -E2BIG, "%u executable mappings in a process, more than %d", n, UNWIND_MAPS_MAX);
	rc = hold_one(s, e);
	if (rc)
		return rc;
	rc = chunks_take(s->chunks, CHUNKS_GRAINS_OF(bytes), &block, e);
	if (rc) {
		s->held--;
		return rc;
	}
	ret->maps = memset(block.p, 0, bytes);
	ret->chunk = block.chunk;
	ret->grain = block.grain;
	return 0;
}

void unwindspace_maps_drop(struct unwindspace *s, const struct unwindspace_maps *m)
{
	if (m->n)
		leave(s, (struct left){ .chunk = m->chunk,
				 .grain = m->grain,
				 .grains = CHUNKS_GRAINS_OF(m->n * sizeof(struct unwind_map)) });
}

int unwindspace_commit(struct unwindspace *s, struct err *e)
{
	return chunks_commit(s->chunks, e);
}

int unwindspace_proc_set(struct unwindspace *s, uint32_t tgid, const struct unwind_proc *p, struct err *e)
{
	int rc = bpf_map_update_elem(s->procs_fd, &tgid, p, BPF_ANY);

	if (rc == -E2BIG)
		return err_set(e, -ENOSPC, "no room is left for the mappings of process %u", tgid);
	return rc ? err_sys(e, rc, "cannot show BPF the mappings of process %u", tgid) : 0;
}

int unwindspace_runtime_set(
	struct unwindspace *s, uint32_t number, const struct runtime_file *f, struct err *e)
{
	int rc = bpf_map_update_elem(s->runtimes_fd, &number, f, BPF_ANY);

	return rc ? err_sys(e, rc, "cannot show BPF an interpreter") : 0;
}

int unwindspace_hotspot_set(
	struct unwindspace *s, uint32_t number, const struct hotspot_file *f, struct err *e)
{
	int rc = bpf_map_update_elem(s->hotspots_fd, &number, f, BPF_ANY);

	return rc ? err_sys(e, rc, "cannot show BPF a virtual machine") : 0;
}

bool unwindspace_proc_get(const struct unwindspace *s, uint32_t tgid, struct unwind_proc *ret)
{
	return bpf_map_lookup_elem(s->procs_fd, &tgid, ret) == 0;
}

void unwindspace_procs_sweep(
	struct unwindspace *s, bool (*keep)(void *ctx, uint32_t tgid, const struct unwind_proc *p), void *ctx)
{
	struct unwind_proc p;
	uint32_t key, next;
	bool more = bpf_map_get_next_key(s->procs_fd, NULL, &next) == 0;

	while (more) {
		key = next;
		/* before KEY is deleted: without KEY the iteration would start again */
		more = bpf_map_get_next_key(s->procs_fd, &key, &next) == 0;
		if (unwindspace_proc_get(s, key, &p) && !keep(ctx, key, &p))
			unwindspace_proc_drop(s, key);
	}
}

void unwindspace_proc_drop(struct unwindspace *s, uint32_t tgid)
{
	bpf_map_delete_elem(s->procs_fd, &tgid);
}

void unwindspace_quiet(struct unwindspace *s)
{
	struct leaving free_now = s->before;

	for (size_t i = 0; i < free_now.n; i++) {
		const struct left *l = &free_now.v[i];

		if (l->table) {
			release(s, l->table);
		} else {
			chunks_give(s->chunks, l->chunk, l->grain, l->grains);
			s->held--;
		}
	}
	s->before = s->now;
	s->now = free_now;
	s->now.n = 0;
}

void unwindspace_stats(const struct unwindspace *s, struct unwindspace_stats *ret)
{
	struct chunks_stats c;

	chunks_stats(s->chunks, &c);
	*ret = (struct unwindspace_stats){ .bytes_used = c.bytes_used,
		.rows = s->n_rows,
		.tables = s->n_tables,
		.rules = ruleset_count(s->rules) };
	ret->bytes = c.bytes + ruleset_bytes() + sharedarray_bytes(sizeof(uint64_t), s->seg_runs.bits) +
		     sharedarray_bytes(sizeof(uint64_t), UNWIND_TABLES_MAX);
}
