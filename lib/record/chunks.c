/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/chunks.h"

#include "record/bitrun.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#define GROW_LEAST 4 /* chunks at a time */
#define GROW_MOST 256 /* each is a descriptor until it is in place */
#define JOBS 8 /* threads that may wait for RCU at the same time */
#define CHUNKS_MOST 65000 /* each is a mapping, and vm.max_map_count is 65530 */
#define POLL_US 50

enum phase { MAKING, INSTALLING, DONE };

/* What a thread works on; read here as far as `phase` allows. */
struct job {
	struct chunks *chunks;
	pthread_t thread;
	bool running; /* to be joined */
	uint32_t first, n; /* chunks to be made, */
	uint32_t made; /* made: complete once no longer MAKING */
	uint32_t keys[GROW_MOST];
	int fds[GROW_MOST];
	int make_error, install_error;
	_Atomic int phase;
};

struct chunks {
	int fd;
	struct opener *opener;
	uint32_t limit; /* chunks, with number 0 */
	uint32_t end; /* one more than the last that can be used */
	uint8_t *base; /* chunk I is at base + I * UNWIND_CHUNK_BYTES */
	struct bitrun *runs; /* of each chunk */
	uint64_t used; /* grains */
	struct job jobs[JOBS]; /* in turn: only the newest may be MAKING */
	uint32_t newest;
};

const void *chunks_at(const struct chunks *c, uint32_t chunk, uint32_t grain)
{
	return c->base + (size_t)chunk * UNWIND_CHUNK_BYTES + (size_t)grain * UNWIND_GRAIN;
}

static int create_chunk(struct opener *o)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);

	int fd = bpf_map_create(
		BPF_MAP_TYPE_ARRAY, "unwind_chunk", sizeof(uint32_t), UNWIND_CHUNK_BYTES, 1, &opts);

	return fd == -EPERM && o ? opener_bpf_map(o, OPENWIRE_CHUNK_MAP, 0) : fd;
}

static int create_outer(uint32_t n, int inner_fd)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .inner_map_fd = (uint32_t)inner_fd);

	return bpf_map_create(
		BPF_MAP_TYPE_ARRAY_OF_MAPS, "unwind_chunks", sizeof(uint32_t), sizeof(uint32_t), n, &opts);
}

static int make_one(struct chunks *c, uint32_t number)
{
	_cleanup_close_ int fd = create_chunk(c->opener);
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

/* One system call for all, because each one waits for RCU; kernels before 5.19 know no such call. */
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

/* Signals are for the thread that waits for them. */
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

/* Job J has ended, and what it made is in place. */
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

/* Settle the jobs that have ended; where WAIT, the others too. */
static int settle_all(struct chunks *c, bool wait, struct err *e)
{
	int rc = 0;

	for (struct job *j = c->jobs; rc == 0 && j < c->jobs + JOBS; j++)
		if (wait || atomic_load(&j->phase) == DONE)
			rc = settle(j, e);
	return rc;
}

/* Begin to make N chunks more; the newest job is no longer MAKING. Waits where all are at work. */
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

/* Every chunk that was asked for is usable here, or there is an error why not. */
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

/* Is the last of the job's chunks in the array? They are put there in their order. */
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

/* At least N chunks more, in steps that grow with what is there, so that there are few. */
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
	/* descriptors are free again once the chunks before are in place */
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

	/* without memory nobody can tell: say what lets the caller try again */
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
	_cleanup_close_ int inner = create_chunk(c->opener);
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

int chunks_open(uint32_t n, uint32_t first, struct opener *opener, struct chunks **ret, struct err *e)
{
	CLEANUP(chunks_close_p) struct chunks *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return err_nomem(e, "unwind tables");
	c->fd = -1;
	c->opener = opener;
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
